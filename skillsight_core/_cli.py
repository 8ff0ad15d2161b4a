"""The command line: ``skillsight index`` and ``skillsight search``."""

from __future__ import annotations

import dataclasses
import json
import sys
import warnings
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.padding import Padding

from skillsight_core._diagnosis._command import command as diagnose
from skillsight_core._errors import LibraryFileError
from skillsight_core._opening import index_folder, open_library, save_cards
from skillsight_core._result import RankedSkill
from skillsight_core.evaluation._command import command as evaluate

app = typer.Typer(
    help="Calibrated retrieval for libraries of skills and tools.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)

Model = Annotated[
    str | None,
    typer.Option(
        help="sentence-transformers model, a name or a folder; all-MiniLM-L6-v2 by default."
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for machines.")]


@app.command()
def index(
    path: Annotated[Path, typer.Argument(help="Folder with SKILL.md files at any depth.")],
    output: Annotated[Path, typer.Option("-o", "--output", help="Folder to write.")],
    model: Model = None,
) -> None:
    """Read a folder of skills, learn its background and write an index."""
    opened = index_folder(path, model)
    opened.skillsight.save(output)
    save_cards(output, opened.cards)
    fitted = opened.skillsight
    print(
        f"Indexed {fitted.n_skills_} skills in {output}: {len(fitted.generic_tokens_)} generic "
        f"words, a background of {fitted.background_rank_} in {fitted.n_features_in_} dimensions."
    )


@app.command()
def search(
    query: Annotated[str, typer.Argument(help="The task, in words.")],
    library: Annotated[
        Path, typer.Option("-l", "--library", help="An index, or a folder with SKILL.md files.")
    ],
    k: Annotated[int, typer.Option("-k", help="How many skills.")] = 3,
    explain: Annotated[bool, typer.Option(help="Show why each skill has its place.")] = False,
    as_json: AsJson = False,
    model: Model = None,
) -> None:
    """Find the skills for a task.

    A folder of skills is indexed on the fly; its embeddings are cached, so that only new and
    changed skills are encoded the next time.
    """
    opened = open_library(library, model)
    (vector,) = opened.encoder.encode([query])
    hits = opened.skillsight.rank(query, vector, k=k)
    if as_json:
        results = [{**dataclasses.asdict(hit), **opened.cards[hit.id]._asdict()} for hit in hits]
        print(json.dumps({"query": query, "results": results}, indent=2, ensure_ascii=False))
        return
    console = Console()
    if not hits:
        console.print("No skill was found.")
    elif explain:
        removed = opened.skillsight.background_energy(vector)[0]
        console.print(f"{removed:.0%} of the query's vector was background.")
    for hit in hits:
        card = opened.cards[hit.id]
        lines = [_shortened(card.description)] if card.description else []
        if explain:
            lines += _reasons(hit, opened.skillsight.generic_tokens_)
        console.print(f"{hit.rank}. [bold]{escape(card.name)}[/]  [dim]{escape(hit.id)}[/]")
        for line in lines:
            console.print(Padding(escape(line), (0, 0, 0, 3)), highlight=False)


app.command("diagnose")(diagnose)
app.command("evaluate")(evaluate)


def main() -> None:
    """Run the command line: one line for what went wrong, 2 as the status for wrong usage."""
    warnings.showwarning = _one_line_warning
    try:
        app()
    except (LibraryFileError, ValueError, TypeError, FileNotFoundError) as error:
        _complain(error, status=2)
    except (ImportError, OSError) as error:
        _complain(error, status=1)


def _reasons(hit: RankedSkill, generic: frozenset[str]) -> list[str]:
    """Why a skill has its place, in lines; words that the whole library uses are not named."""
    words = [
        " ".join(word for word in tokens if word not in generic) or "-"
        for tokens in (hit.matched_tokens, hit.unmatched_tokens)
    ]
    return [
        f"score {hit.score:.2f} = semantic {hit.semantic_z:.2f} "
        f"+ lexical {max(hit.lexical_z, 0.0):.2f}; "
        f"cosine {hit.dense:.3f}, without background {hit.semantic:.3f}",
        f"covers {hit.lexical:.0%} of the query: {words[0]}; not: {words[1]}",
    ]


def _shortened(text: str, most: int = 200) -> str:
    line = " ".join(text.split())
    return line if len(line) <= most else line[: most - 1].rstrip() + "…"


def _complain(error: Exception, *, status: int) -> None:
    print(f"skillsight: error: {' '.join(str(error).split())}", file=sys.stderr)
    sys.exit(status)


def _one_line_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    print(f"skillsight: warning: {message}", file=sys.stderr)
