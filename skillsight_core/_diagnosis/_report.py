"""A diagnosis as text for a terminal."""

from __future__ import annotations

import io
from typing import Literal

from rich.console import Console
from rich.table import Table
from rich.text import Text

from skillsight_core._diagnosis._model import Diagnosis
from skillsight_core._diagnosis._sections import Section, count, sections

_MOST = 5  # skills or pairs that are listed; the data have more
_WIDTH = 100  # of a report that is not printed to a terminal


def show(diagnosis: Diagnosis, console: Console) -> None:
    """Print the report."""
    of = f", vectors by {diagnosis.encoder}" if diagnosis.encoder else ""
    console.print(Text(f"{count(len(diagnosis.ids), 'skill')}{of}", style="bold"))
    for section in sections(diagnosis, _MOST):
        _show(section, console)


def as_text(diagnosis: Diagnosis) -> str:
    """The report as a string without colours."""
    console = Console(file=io.StringIO(), width=_WIDTH, color_system=None)
    show(diagnosis, console)
    return console.file.getvalue()  # type: ignore[attr-defined,no-any-return]


def _show(section: Section, console: Console) -> None:
    console.print()
    console.print(Text(section.title, style="bold underline"))
    for line in section.lines:
        console.print(Text(line))
    for table in section.tables:
        console.print()
        # Words of a library are no markup: everything goes in as Text.
        drawn = Table(
            title=Text(table.caption), title_justify="left", box=None, padding=(0, 2, 0, 0)
        )
        for column, name in enumerate(table.header):
            number = column in table.numbers
            justify: Literal["left", "right"] = "right" if number else "left"
            drawn.add_column(Text(name), justify=justify, overflow="fold", no_wrap=number)
        for row in table.rows:
            drawn.add_row(*map(Text, row))
        console.print(drawn)
