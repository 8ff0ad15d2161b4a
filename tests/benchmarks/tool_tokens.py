"""Prompt tokens that tool selection saves, beside how often the right tool is still there.

    python -m tests.benchmarks.tool_tokens ../shared/data/tools-livemcp

Reads a BEIR folder of tools (``corpus.jsonl.gz``, ``queries.jsonl.gz``, ``qrels/test.tsv``), each
text a description and, on its last line, "parameter: what it is; parameter: what it is". A tool is
counted as its function schema in OpenAI's form, in JSON, at four characters for a token. Prints
JSON.
"""

from __future__ import annotations

import gzip
import json
import sys
from pathlib import Path
from typing import Any

from skillsight_core import SentenceTransformerEncoder, ToolSelector

DATA = Path(__file__).resolve().parents[3] / "shared" / "data" / "tools-livemcp"


def lines(path: Path) -> list[dict[str, Any]]:
    with gzip.open(path, "rt", encoding="utf-8") as stream:
        return [json.loads(line) for line in stream]


def as_tool(document: dict[str, Any]) -> dict[str, Any]:
    description, _, last = document["text"].rpartition("\n")
    properties = {}
    for part in last.split("; "):
        name, colon, about = part.partition(":")
        if not (colon and name.strip().isidentifier()):
            description, properties = document["text"], {}
            break
        properties[name.strip()] = {"type": "string", "description": about.strip()}
    return {
        "type": "function",
        "function": {
            "name": document["title"],
            "description": description,
            "parameters": {"type": "object", "properties": properties},
        },
    }


def tokens(tools: list[dict[str, Any]]) -> float:
    return sum(len(json.dumps(tool, ensure_ascii=False)) for tool in tools) / 4


def measure(folder: Path, ks: tuple[int, ...] = (3, 10)) -> dict[str, Any]:
    corpus = lines(folder / "corpus.jsonl.gz")
    tools = [as_tool(document) for document in corpus]
    ids = {id(tool): document["_id"] for tool, document in zip(tools, corpus, strict=True)}
    gold: dict[str, set[str]] = {}
    for line in (folder / "qrels" / "test.tsv").read_text().splitlines()[1:]:
        query, document, score = line.split("\t")
        if int(score) > 0:
            gold.setdefault(query, set()).add(document)
    queries = [query for query in lines(folder / "queries.jsonl.gz") if query["_id"] in gold]
    encoder = SentenceTransformerEncoder()
    vectors = encoder.encode([query["text"] for query in queries])
    selector = ToolSelector(tools, encoder)
    rows = {}
    for k in ks:
        used = any_found = all_found = recall = 0.0
        for query, vector in zip(queries, vectors, strict=True):
            chosen = selector.select(query["text"], k, query_embeddings=[vector])
            wanted = gold[query["_id"]]
            found = wanted & {ids[id(tool)] for tool in chosen}
            used += tokens(chosen)
            any_found += bool(found)
            all_found += found == wanted
            recall += len(found) / len(wanted)
        n = len(queries)
        rows[str(k)] = {
            "tokens": round(used / n),
            "saved": round(1 - used / n / tokens(tools), 4),
            "a_gold_tool_there": round(any_found / n, 4),
            "all_gold_tools_there": round(all_found / n, 4),
            "recall": round(recall / n, 4),
        }
    return {
        "tools": len(tools),
        "queries": len(queries),
        "tokens_of_all": round(tokens(tools)),
        "k": rows,
    }


if __name__ == "__main__":
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else DATA
    if folder.is_dir():
        print(json.dumps(measure(folder), indent=2))
    else:
        print(f"skipped: there is no {folder}; name a folder in BEIR layout")
