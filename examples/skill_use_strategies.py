"""Three ways for a model to use a library of skills, compared on labelled tasks.

    python examples/skill_use_strategies.py --base-url http://localhost:8000/v1 --model NAME

works with any OpenAI-compatible endpoint (a key in OPENAI_API_KEY, where it wants one):

- top-k: the full texts of SkillSight's k best skills stand in the prompt; one call;
- select: the model picks from the names and descriptions of BM25's 50 best, and gets what it
  picked in a second call;
- disclose: the model sees the names and descriptions of all skills and loads the texts it wants
  through a tool, until it answers (progressive disclosure).

Counted for each: tokens as the endpoint counts them, seconds, calls, skills that were given to the
model, and on how many tasks a skill that the labels name was among them.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import time
import urllib.request
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import mean
from typing import Any

import bm25s
from rich.console import Console
from rich.table import Table

from skillsight_core import (
    CachedEncoder,
    Encoder,
    SentenceTransformerEncoder,
    Skill,
    SkillSight,
    load_skills,
    tokenize,
)

HERE = Path(__file__).parent
SELECT_FROM = 50  # skills that the model selects from
MOST_LOADS = 8  # rounds of loading before the model has to answer

Message = dict[str, Any]

LOAD = {
    "type": "function",
    "function": {
        "name": "load_skill",
        "description": "Read the full text of a skill.",
        "parameters": {
            "type": "object",
            "properties": {"name": {"type": "string", "description": "Id of the skill."}},
            "required": ["name"],
        },
    },
}


@dataclass
class Trace:
    """What one task cost, and which skills the model was given."""

    prompt_tokens: int = 0
    completion_tokens: int = 0
    calls: int = 0
    seconds: float = 0.0
    skills: list[str] = field(default_factory=list)
    answer: str = ""


class Endpoint:
    """Chat completions of an OpenAI-compatible server."""

    def __init__(self, base_url: str, model: str, key: str = "", timeout: float = 300.0) -> None:
        self.url = base_url.rstrip("/") + "/chat/completions"
        self.model = model
        self.headers = {"Content-Type": "application/json"}
        if key:
            self.headers["Authorization"] = f"Bearer {key}"
        self.timeout = timeout

    def chat(self, messages: list[Message], trace: Trace, **options: Any) -> Message:
        """Send messages, add what the call cost to the trace, return the model's message."""
        body = {"model": self.model, "messages": messages, "temperature": 0, **options}
        request = urllib.request.Request(self.url, json.dumps(body).encode(), self.headers)
        with urllib.request.urlopen(request, timeout=self.timeout) as response:
            completion = json.load(response)
        usage = completion.get("usage") or {}
        trace.prompt_tokens += usage.get("prompt_tokens", 0)
        trace.completion_tokens += usage.get("completion_tokens", 0)
        trace.calls += 1
        message: Message = completion["choices"][0]["message"]
        return message


class Strategies:
    """The three strategies over one library."""

    def __init__(
        self, skills: Iterable[Skill], encoder: Encoder, endpoint: Endpoint, k: int
    ) -> None:
        self.skills = {skill.id: skill for skill in skills}
        self.encoder = encoder
        self.endpoint = endpoint
        self.k = k
        texts = [skill.text for skill in self.skills.values()]
        self.skillsight = SkillSight().fit(texts, encoder.encode(texts), list(self.skills))
        self.bm25 = bm25s.BM25()
        self.bm25.index([tokenize(text) for text in texts], show_progress=False)

    def top_k(self, task: str, trace: Trace) -> str:
        """Answer with SkillSight's best skills in the prompt."""
        (vector,) = self.encoder.encode([task])
        hits = self.skillsight.rank(task, vector, k=self.k)
        return self._solve(task, [hit.id for hit in hits], trace)

    def select(self, task: str, trace: Trace) -> str:
        """Answer with what the model selects from BM25's best."""
        scores = self.bm25.get_scores(tokenize(task) or [""])
        ids = list(self.skills)
        listed = [ids[i] for i in (-scores).argsort(kind="stable")[:SELECT_FROM]]
        question = (
            f"Task: {task}\n\nSkills:\n{self._catalogue(listed)}\n\n"
            f"Answer with a JSON list of the ids of at most {self.k} skills that this task needs."
        )
        message = self.endpoint.chat([{"role": "user", "content": question}], trace)
        return self._solve(task, chosen(message.get("content") or "", listed)[: self.k], trace)

    def disclose(self, task: str, trace: Trace) -> str:
        """Answer with what the model loads while it works."""
        system = (
            "Solve the task. Load the skills that help with it before you answer.\n\n"
            f"Skills:\n{self._catalogue(self.skills)}"
        )
        messages = [{"role": "system", "content": system}, {"role": "user", "content": task}]
        for _ in range(MOST_LOADS):
            message = self.endpoint.chat(messages, trace, tools=[LOAD])
            calls = message.get("tool_calls") or []
            if not calls:
                return message.get("content") or ""
            messages.append(message)
            for call in calls:
                text = self._load(call["function"]["arguments"], trace)
                messages.append({"role": "tool", "tool_call_id": call["id"], "content": text})
        return self.endpoint.chat(messages, trace).get("content") or ""

    def _load(self, arguments: str, trace: Trace) -> str:
        try:
            name = json.loads(arguments)["name"]
            text = self.skills[name].text
        except (ValueError, KeyError, TypeError):
            return f"There is no such skill: {arguments}"
        if name not in trace.skills:
            trace.skills.append(name)
        return text

    def _solve(self, task: str, ids: list[str], trace: Trace) -> str:
        trace.skills += ids
        texts = "\n\n---\n\n".join(self.skills[id_].text for id_ in ids)
        messages = [
            {"role": "user", "content": f"Skills that may help:\n\n{texts}\n\nTask: {task}"}
        ]
        return self.endpoint.chat(messages, trace).get("content") or ""

    def _catalogue(self, ids: Iterable[str]) -> str:
        return "\n".join(f"- {id_}: {self.skills[id_].description}" for id_ in ids)


def chosen(answer: str, among: list[str]) -> list[str]:
    """Ids in the first JSON list of an answer, those that were offered, each once."""
    found = re.search(r"\[.*?\]", answer, re.DOTALL)
    try:
        named = json.loads(found.group()) if found else []
    except ValueError:
        named = []
    return list(dict.fromkeys(id_ for id_ in named if id_ in among))


def run(
    strategies: Strategies, tasks: list[dict[str, Any]]
) -> dict[str, list[tuple[Trace, set[str]]]]:
    """Traces of every strategy on every task, each with the task's labelled skills."""
    ways: dict[str, Callable[[str, Trace], str]] = {
        "top-k": strategies.top_k,
        "select": strategies.select,
        "disclose": strategies.disclose,
    }
    found: dict[str, list[tuple[Trace, set[str]]]] = {name: [] for name in ways}
    for task in tasks:
        for name, solve in ways.items():
            trace = Trace()
            start = time.perf_counter()
            trace.answer = solve(task["query"], trace)
            trace.seconds = time.perf_counter() - start
            found[name].append((trace, set(task["skills"])))
    return found


def summary(traces: list[tuple[Trace, set[str]]]) -> dict[str, float]:
    """Means over the tasks; gold: share of tasks on which a labelled skill was given."""
    return {
        "gold": mean(bool(gold & set(trace.skills)) for trace, gold in traces),
        "skills": mean(len(trace.skills) for trace, _ in traces),
        "calls": mean(trace.calls for trace, _ in traces),
        "prompt_tokens": mean(trace.prompt_tokens for trace, _ in traces),
        "completion_tokens": mean(trace.completion_tokens for trace, _ in traces),
        "seconds": mean(trace.seconds for trace, _ in traces),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--base-url", required=True, help="such as http://localhost:8000/v1")
    parser.add_argument("--model", required=True)
    parser.add_argument("--library", type=Path, default=HERE / "library")
    parser.add_argument("--tasks", type=Path, default=HERE / "queries.jsonl")
    parser.add_argument("--limit", type=int, default=20, help="first so many tasks")
    parser.add_argument("-k", type=int, default=3, help="skills in the prompt at most")
    parser.add_argument("--output", type=Path, help="write every answer to this file, JSON lines")
    options = parser.parse_args()

    lines = options.tasks.read_text(encoding="utf-8").splitlines()
    tasks = [task for task in map(json.loads, lines) if task["skills"]][: options.limit]
    endpoint = Endpoint(options.base_url, options.model, os.environ.get("OPENAI_API_KEY", ""))
    encoder = CachedEncoder(SentenceTransformerEncoder())
    found = run(Strategies(load_skills(options.library), encoder, endpoint, options.k), tasks)
    if options.output:
        with options.output.open("w", encoding="utf-8") as file:
            for name, traces in found.items():
                for task, (trace, _) in zip(tasks, traces, strict=True):
                    file.write(json.dumps({"strategy": name, **task, **asdict(trace)}) + "\n")
    table = Table("strategy", title=f"{len(tasks)} tasks, {options.model}; means for each task")
    for head in summary(found["top-k"]):
        table.add_column(head, justify="right")
    for name, traces in found.items():
        table.add_row(name, *(f"{value:,.2f}" for value in summary(traces).values()))
    Console().print(table)


if __name__ == "__main__":
    main()
