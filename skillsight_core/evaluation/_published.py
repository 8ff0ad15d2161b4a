"""The published benchmarks of skill retrieval, each in its own format."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from os import PathLike
from pathlib import Path
from typing import Any

from skillsight_core._errors import require
from skillsight_core._validation import check_choice
from skillsight_core.evaluation._benchmark import (
    Benchmark,
    existing,
    joined,
    json_file,
    json_lines,
    labelled,
    with_keys,
)

Source = str | PathLike[str]


def load_sra_bench(source: Source, *, datasets: Iterable[str] = ()) -> Benchmark:
    """Read SRA-Bench.

    Parameters
    ----------
    source : path-like
        Folder with ``corpus/corpus.json`` or ``corpus.json`` (``skill_id``, ``name``,
        ``description``, ``content``) and ``instances/*.json`` (``instance_id``, ``question``,
        ``skill_annotations``); or the id of a data set on the Hugging Face hub with these files.
    datasets : iterable of str, optional
        Which files of ``instances``, by their names without ".json"; all by default.

    Returns
    -------
    Benchmark
        The query is the question alone, without the instructions that SR-Agents puts around it.
        Instances without annotation are left out.
    """
    folder = _folder(source)
    skills = json_file(existing(folder / "corpus" / "corpus.json", folder / "corpus.json"))
    skills = [with_keys(skill, ["skill_id"], where="corpus.json") for skill in skills]
    chosen = list(datasets)
    if chosen:
        files = [existing(folder / "instances" / f"{name}.json") for name in chosen]
    else:
        files = sorted((folder / "instances").glob("*.json"))
    queries, relevance = {}, {}
    for file in files:
        for instance in json_file(file):
            with_keys(instance, ["instance_id", "question"], where=str(file))
            queries[str(instance["instance_id"])] = str(instance["question"])
            gold = instance.get("skill_annotations") or []
            relevance[str(instance["instance_id"])] = {str(id_): 1 for id_ in gold}
    return _benchmark(
        " ".join(["SRA-Bench", *chosen]),
        [(s["skill_id"], s.get("name"), s.get("description"), s.get("content")) for s in skills],
        queries,
        relevance,
    )


def load_skillrouter(source: Source, *, tier: str = "easy") -> Benchmark:
    """Read SkillRouter's evaluation set.

    Parameters
    ----------
    source : path-like
        Folder with ``tasks.jsonl`` (``task_id``, ``instruction_text``), ``relevance.json`` and the
        pools ``easy/`` and ``hard/`` of ``*.jsonl.gz`` shards (``skill_id``, ``name``,
        ``description``, ``body``); or the id of a data set on the Hugging Face hub with these
        files.
    tier : {"easy", "hard"}, default "easy"
        Which pool of skills.

    Returns
    -------
    Benchmark
        Scored as published: tasks of type "generic_only" are left out (75 of 87 remain),
        ``core_gt_ids`` are gold, and nDCG takes the graded ``relevance``, both as far as the pool
        has these skills.
    """
    check_choice(tier, "tier", among=("easy", "hard"), of="load_skillrouter")
    folder = _folder(source)
    shards = sorted((folder / tier).glob("*.jsonl")) + sorted((folder / tier).glob("*.jsonl.gz"))
    skills = [skill for shard in shards for skill in json_lines(shard, "skill_id")]
    pool = {str(skill["skill_id"]) for skill in skills}
    labels = json_file(existing(folder / "relevance.json"))
    queries, gold, relevance = {}, {}, {}
    for task in json_lines(existing(folder / "tasks.jsonl"), "task_id", "instruction_text"):
        id_ = str(task["task_id"])
        label = labels.get(id_, {})
        ids = label.get("core_gt_ids", label.get("gt_skill_ids", []))
        found = tuple(str(gold_id) for gold_id in ids if str(gold_id) in pool)
        if label.get("task_type") == "generic_only" or not found:
            continue
        queries[id_], gold[id_] = str(task["instruction_text"]), found
        grades = label.get("relevance") or dict.fromkeys(found, 1)
        relevance[id_] = {str(s): int(grade) for s, grade in grades.items() if str(s) in pool}
    return _benchmark(
        f"SkillRouter {tier}",
        [(s["skill_id"], s.get("name"), s.get("description"), s.get("body")) for s in skills],
        queries,
        relevance,
        gold,
    )


def load_skillret(source: Source, *, split: str = "test", revision: str | None = None) -> Benchmark:
    """Read SkillRet.

    Parameters
    ----------
    source : path-like
        Folder with ``skills/<split>.jsonl`` (``id``, ``name``, ``description``, ``skill_md``),
        ``queries/<split>.jsonl`` (``id``, ``query``, and ``skill_ids`` or ``labels``) and, where
        there are graded labels, ``qrels/<split>.jsonl`` (``query_id``, ``skill_id``,
        ``relevance``); or the id of a data set with these subsets on the Hugging Face hub.
    split : str, default "test"
        Which of the splits.
    revision : str, optional
        Which state of the data set on the hub.

    Returns
    -------
    Benchmark
        Every skill of positive relevance is gold.
    """
    skills = list(_skillret("skills", source, split, revision, "id"))
    queries = {
        str(record["id"]): record
        for record in _skillret("queries", source, split, revision, "id", "query")
    }
    relevance = _skillret_qrels(Path(source), split)
    if relevance is None:
        relevance = {id_: _skillret_labels(record) for id_, record in queries.items()}
    return _benchmark(
        "SkillRet",
        [(s["id"], s.get("name"), s.get("description"), s.get("skill_md")) for s in skills],
        {id_: str(record["query"]) for id_, record in queries.items()},
        relevance,
    )


def _skillret(
    subset: str, source: Source, split: str, revision: str | None, *keys: str
) -> Iterator[dict[str, Any]]:
    """Records of a subset, from a file or through the package that knows the hub's formats."""
    if not _on_hub(source):
        folder = Path(source)
        file = existing(folder / subset / f"{split}.jsonl", folder / f"{subset}.jsonl")
        yield from json_lines(file, *keys)
        return
    datasets = require("datasets", package="datasets", purpose="data sets of the Hugging Face hub")
    for row in datasets.load_dataset(str(source), subset, split=split, revision=revision):
        yield with_keys(dict(row), keys, where=f"{source}, {subset}")


def _skillret_qrels(folder: Path, split: str) -> dict[str, dict[str, int]] | None:
    """Graded labels of their own file; None where there is none."""
    try:
        file = existing(folder / "qrels" / f"{split}.jsonl", folder / "qrels.jsonl")
    except FileNotFoundError:
        return None
    relevance: dict[str, dict[str, int]] = {}
    for label in json_lines(file, "query_id", "skill_id", "relevance"):
        grades = relevance.setdefault(str(label["query_id"]), {})
        grades[str(label["skill_id"])] = int(label["relevance"])
    return relevance


def _skillret_labels(query: dict[str, Any]) -> dict[str, int]:
    if "labels" in query:
        labels = query["labels"]
        labels = json.loads(labels) if isinstance(labels, str) else labels
        return {str(label["id"]): int(label["relevance"]) for label in labels}
    return {str(id_): 1 for id_ in query.get("skill_ids", [])}


def _folder(source: Source) -> Path:
    """The folder itself, or a copy of what the hub has under this name."""
    if not _on_hub(source):
        return Path(source)
    hub = require(
        "huggingface_hub", package="datasets", purpose="data sets of the Hugging Face hub"
    )
    return Path(hub.snapshot_download(str(source), repo_type="dataset"))


def _on_hub(source: Source) -> bool:
    """Whether this is no folder, but has the form owner/name."""
    path = Path(source)
    meant_as_path = not isinstance(source, str) or source.startswith((".", "~", "/"))
    return not path.exists() and not meant_as_path and len(path.parts) == 2


def _benchmark(
    name: str,
    skills: list[tuple[Any, Any, Any, Any]],
    queries: dict[str, str],
    relevance: dict[str, dict[str, int]],
    gold: dict[str, tuple[str, ...]] | None = None,
) -> Benchmark:
    if gold is None:
        queries, gold = labelled(queries, relevance)
    return Benchmark(
        name=name,
        ids=tuple(str(id_) for id_, *_ in skills),
        texts=tuple(joined(*fields) for _, *fields in skills),
        sizes=(len(skills),),
        queries=queries,
        gold=gold,
        relevance=relevance,
    )
