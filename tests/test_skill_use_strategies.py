"""The example of three skill-use strategies, against a scripted server on this machine."""

from __future__ import annotations

import importlib.util
import json
import sys
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from skillsight_core import Skill
from tests.fakes import HashEncoder

pytest.importorskip("bm25s")

EXAMPLE = Path(__file__).resolve().parents[1] / "examples" / "skill_use_strategies.py"
SKILLS = [
    Skill(f"office/{name}", name, description, f"# {name}\nbody of {name}")
    for name, description in {
        "merge": "merge pdf files into one file",
        "split": "split a pdf file into pages",
        "review": "review a pull request",
        "deploy": "deploy a service to the cluster",
        "chart": "draw a chart of the sales",
        "forecast": "forecast the sales of next week",
        "invoice": "write an invoice to a customer",
    }.items()
]
TASK = "merge two pdf files"

Script = Callable[[dict[str, Any]], dict[str, Any]]


@pytest.fixture(scope="module")
def example() -> ModuleType:
    spec = importlib.util.spec_from_file_location("skill_use_strategies", EXAMPLE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # its dataclasses look themselves up there
    spec.loader.exec_module(module)
    return module


class Server:
    """Answers chat completions by a script; keeps what it was asked."""

    def __init__(self, script: Script) -> None:
        self.requests: list[dict[str, Any]] = []
        self.keys: list[str | None] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                length = int(self.headers["Content-Length"])
                request = json.loads(self.rfile.read(length))
                outer.requests.append({"path": self.path, **request})
                outer.keys.append(self.headers["Authorization"])
                prompt = sum(len(str(m["content"]).split()) for m in request["messages"])
                answer = {
                    "choices": [{"message": {"role": "assistant", **script(request)}}],
                    "usage": {"prompt_tokens": prompt, "completion_tokens": 7},
                }
                body = json.dumps(answer).encode()
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: Any) -> None:
                pass

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.http.server_port}/v1"
        threading.Thread(target=self.http.serve_forever, daemon=True).start()


@pytest.fixture
def serve() -> Iterator[Callable[[Script], Server]]:
    servers = []

    def start(script: Script) -> Server:
        servers.append(Server(script))
        return servers[-1]

    yield start
    for server in servers:
        server.http.shutdown()
        server.http.server_close()


def scripted(request: dict[str, Any]) -> dict[str, Any]:
    """A model that selects and loads the merge skill, and then answers."""
    last = request["messages"][-1]
    if "JSON list" in str(last["content"]):
        return {"content": 'I take ["office/merge", "office/unheard-of", "office/merge"].'}
    if "tools" in request and last["role"] == "user":
        call = {"name": "load_skill", "arguments": '{"name": "office/merge"}'}
        return {"content": None, "tool_calls": [{"id": "1", "type": "function", "function": call}]}
    return {"content": "done"}


def _strategies(example: ModuleType, server: Server, **options: Any) -> Any:
    endpoint = example.Endpoint(server.url, "scripted", **options)
    return example.Strategies(SKILLS, HashEncoder(), endpoint, k=2)


def test_top_k_puts_the_texts_of_the_best_skills_into_one_call(
    example: ModuleType, serve: Callable[[Script], Server]
) -> None:
    server = serve(scripted)
    trace = example.Trace()
    assert _strategies(example, server).top_k(TASK, trace) == "done"
    (request,) = server.requests
    prompt = request["messages"][0]["content"]
    assert request["path"] == "/v1/chat/completions"
    assert request["model"] == "scripted"
    assert trace.skills[0] == "office/merge"
    assert len(trace.skills) == 2
    assert "body of merge" in prompt
    assert prompt.count("body of") == 2
    assert prompt.endswith(f"Task: {TASK}")
    assert (trace.calls, trace.completion_tokens) == (1, 7)
    assert trace.prompt_tokens == len(prompt.split())


def test_select_offers_descriptions_first_and_then_gives_what_was_picked(
    example: ModuleType, serve: Callable[[Script], Server]
) -> None:
    server = serve(scripted)
    trace = example.Trace()
    assert _strategies(example, server).select(TASK, trace) == "done"
    offered, solved = (request["messages"][0]["content"] for request in server.requests)
    assert "- office/merge: merge pdf files into one file" in offered
    assert "body of" not in offered
    assert solved.count("body of") == 1
    assert "body of merge" in solved
    assert trace.skills == ["office/merge"]
    assert (trace.calls, trace.completion_tokens) == (2, 14)
    assert trace.prompt_tokens == len(offered.split()) + len(solved.split())


def test_select_offers_bm25s_best_first(
    example: ModuleType, serve: Callable[[Script], Server], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(example, "SELECT_FROM", 2)
    server = serve(scripted)
    _strategies(example, server).select("split the pdf into pages", example.Trace())
    offered = server.requests[0]["messages"][0]["content"]
    assert offered.count("\n- ") == 2
    assert offered.index("office/split") < offered.index("office/merge")


def test_disclose_shows_all_descriptions_and_loads_what_the_model_asks_for(
    example: ModuleType, serve: Callable[[Script], Server]
) -> None:
    server = serve(scripted)
    trace = example.Trace()
    assert _strategies(example, server).disclose(TASK, trace) == "done"
    first, second = server.requests
    assert first["messages"][0]["content"].count("\n- ") == len(SKILLS)
    assert "body of" not in str(first["messages"])
    assert first["tools"][0]["function"]["name"] == "load_skill"
    call, result = second["messages"][-2:]
    assert call["tool_calls"][0]["id"] == result["tool_call_id"] == "1"
    assert "body of merge" in result["content"]
    assert trace.skills == ["office/merge"]
    assert trace.calls == 2


@pytest.mark.parametrize("arguments", ['{"name": "office/unheard-of"}', "{", "[]", '{"id": 1}'])
def test_disclose_tells_the_model_of_a_skill_that_is_not_there_and_ends(
    arguments: str,
    example: ModuleType,
    serve: Callable[[Script], Server],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def stubborn(request: dict[str, Any]) -> dict[str, Any]:
        if "tools" not in request:
            return {"content": "gave up"}
        call = {"name": "load_skill", "arguments": arguments}
        return {"content": None, "tool_calls": [{"id": "1", "type": "function", "function": call}]}

    monkeypatch.setattr(example, "MOST_LOADS", 3)
    server = serve(stubborn)
    trace = example.Trace()
    assert _strategies(example, server).disclose(TASK, trace) == "gave up"
    assert server.requests[1]["messages"][-1]["content"].startswith("There is no such skill")
    assert trace.skills == []
    assert trace.calls == 4


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ('["a", "b"]', ["a", "b"]),
        ('```json\n["b"]\n```', ["b"]),
        ('["c", "a", "a"]', ["a"]),
        ("none of them", []),
        ("[not json]", []),
        ('[1, {"a": 2}, "b"]', ["b"]),
    ],
)
def test_only_offered_ids_are_taken_from_an_answer(
    answer: str, expected: list[str], example: ModuleType
) -> None:
    assert example.chosen(answer, ["a", "b"]) == expected


def test_the_summary_counts_tasks_on_which_a_labelled_skill_was_given(
    example: ModuleType, serve: Callable[[Script], Server]
) -> None:
    server = serve(scripted)
    tasks = [
        {"query": TASK, "skills": ["office/merge"]},
        {"query": "draw the sales", "skills": ["office/chart"]},
    ]
    found = example.run(_strategies(example, server), tasks)
    summaries = {name: example.summary(traces) for name, traces in found.items()}
    assert summaries["top-k"]["gold"] == 1.0
    assert summaries["select"]["gold"] == 0.5  # the script takes merge whatever is asked
    assert summaries["disclose"]["gold"] == 0.5
    assert summaries["top-k"]["calls"] == 1
    assert summaries["select"]["calls"] == summaries["disclose"]["calls"] == 2
    assert summaries["top-k"]["seconds"] > 0
    assert summaries["disclose"]["completion_tokens"] == 14


def test_a_key_is_sent_only_where_there_is_one(
    example: ModuleType, serve: Callable[[Script], Server]
) -> None:
    server = serve(scripted)
    _strategies(example, server).top_k(TASK, example.Trace())
    _strategies(example, server, key="secret").top_k(TASK, example.Trace())
    assert server.keys == [None, "Bearer secret"]


def test_the_script_runs_on_the_example_library(
    example: ModuleType,
    serve: Callable[[Script], Server],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    minilm: object,
) -> None:
    server = serve(lambda request: {"content": "[]"})
    out = tmp_path / "answers.jsonl"
    library = tmp_path / "library"
    for skill in SKILLS:
        folder = library / skill.name
        folder.mkdir(parents=True)
        head = f"---\nname: {skill.name}\ndescription: {skill.description}\n---\n"
        (folder / "SKILL.md").write_text(head + skill.body)
    tasks = tmp_path / "tasks.jsonl"
    tasks.write_text(
        json.dumps({"query": TASK, "skills": ["merge"]})
        + "\n"
        + json.dumps({"query": "unanswerable", "skills": []})
        + "\n"
    )
    arguments = ["--base-url", server.url, "--model", "scripted", "--library", library]
    arguments += ["--tasks", tasks, "--output", out]
    monkeypatch.setattr(sys, "argv", ["skill_use_strategies.py", *map(str, arguments)])
    example.main()
    assert "1 tasks, scripted" in capsys.readouterr().out
    records = [json.loads(line) for line in out.read_text().splitlines()]
    assert [record["strategy"] for record in records] == ["top-k", "select", "disclose"]
    assert "merge" in records[0]["skills"]
