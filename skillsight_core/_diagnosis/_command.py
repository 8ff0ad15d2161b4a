"""The command ``skillsight diagnose``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from skillsight_core._diagnosis import _report
from skillsight_core._diagnosis._diagnose import diagnose
from skillsight_core._opening import open_library


def command(
    library: Annotated[Path, typer.Argument(help="An index, or a folder with SKILL.md files.")],
    queries: Annotated[
        Path | None,
        typer.Option(help='Queries, a line of JSON each: {"query": "...", "skills": ["id", ...]}.'),
    ] = None,
    plot: Annotated[Path | None, typer.Option(help="Picture to write, by its ending.")] = None,
    html: Annotated[Path | None, typer.Option(help="Page to write.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for machines.")] = False,
    model: Annotated[
        str | None,
        typer.Option(
            help="sentence-transformers model, a name or a folder; all-MiniLM-L6-v2 by default."
        ),
    ] = None,
) -> None:
    """Show what makes retrieval over a library go wrong.

    With queries, also how much of them is background; with the skills that they are for, also
    what calibration changes. Phrases, invisible characters and missing descriptions are looked
    for where the texts are at hand: in a folder of skills.
    """
    texts, gold = read_queries(queries) if queries is not None else (None, None)
    opened = open_library(library, model)
    found = diagnose(opened.skillsight, texts, gold, encoder=opened.encoder, skills=opened.skills)
    if plot is not None:
        found.plot(plot)
    if html is not None:
        html.write_text(found.as_html(library.resolve().name), encoding="utf-8")
    if as_json:
        typer.echo(json.dumps(found.as_dict(), indent=2, ensure_ascii=False))
    else:
        _report.show(found, Console())


def read_queries(path: Path) -> tuple[list[str], list[list[str]] | None]:
    """Queries and their gold skills from a file; None where no line has any."""
    texts, gold = [], []
    for number, line in enumerate(path.read_text(encoding="utf-8-sig").split("\n"), start=1):
        if not line.strip():
            continue
        try:
            entry = json.loads(line)
        except json.JSONDecodeError:
            entry = None
        if not _is_entry(entry):
            raise ValueError(
                f'{path}:{number}: a line must be {{"query": "...", "skills": ["id", ...]}}, '
                f"skills optional, got {line[:60]!r}"
            )
        texts.append(entry["query"])
        gold.append(entry.get("skills") or [])
    return texts, gold if any(gold) else None


def _is_entry(value: Any) -> bool:
    if not (isinstance(value, dict) and isinstance(value.get("query"), str)):
        return False
    ids = value.get("skills") or []
    return isinstance(ids, list) and all(isinstance(id_, str) for id_ in ids)
