"""A diagnosis as one picture: energies, recall, words and spectrum."""

from __future__ import annotations

import os
from collections.abc import Callable
from itertools import pairwise
from typing import Any

from skillsight_core._diagnosis._charts import energy_bins
from skillsight_core._diagnosis._model import Diagnosis
from skillsight_core._diagnosis._sections import count
from skillsight_core._errors import require

# Blue and orange of Okabe and Ito's palette, which the colour-blind tell apart.
_ONE, _TWO = "#0072b2", "#d55e00"
_SHOWN = 20  # singular values that are drawn


def save(diagnosis: Diagnosis, path: str | os.PathLike[str]) -> None:
    """Draw the picture into a file."""
    figures = require("matplotlib.figure", extra="plot", purpose="plots")
    panels = _panels(diagnosis)
    rows = 2 if len(panels) == 4 else 1
    columns = max(-(-len(panels) // rows), 1)
    figure = figures.Figure((4.5 * columns, 3.4 * rows), layout="constrained", facecolor="white")
    figure.get_layout_engine().set(w_pad=0.12, h_pad=0.12)
    for draw, axes in zip(panels, figure.subplots(rows, columns, squeeze=False).flat, strict=False):
        draw(diagnosis, axes)
        axes.spines[["top", "right"]].set_visible(False)
        axes.title.set_fontsize(11)
    figure.savefig(path, dpi=90)


def _panels(d: Diagnosis) -> list[Callable[[Diagnosis, Any], None]]:
    """What there is to draw."""
    drawn: list[Callable[[Diagnosis, Any], None]] = []
    if d.energies.rank and d.ids:
        drawn.append(_energies if d.energies.points else _skills)
    if d.labelled is not None:
        drawn.append(_recall)
    if d.words.occurrences:
        drawn.append(_words)
    if d.energies.rank:
        drawn.append(_spectrum)
    return drawn


def _energies(d: Diagnosis, axes: Any) -> None:
    energies = d.energies
    queries, skills = zip(*energies.points, strict=True)
    top = 1.05 * max(*queries, *skills, 1e-9)
    axes.plot([0, top], [0, top], "--", color="black", lw=1)
    axes.text(0.98 * top, 0.58 * top, "skill = query", ha="right")
    axes.plot(queries, skills, "o", color=_ONE, alpha=0.6, ms=5, mew=0)
    axes.set(xlim=(0, top), ylim=(0, top), xlabel="background of the query (share of its vector)")
    axes.set(ylabel="background of its skill")
    axes.set_title(
        f"Background: {energies.skill_mean:.1%} of a skill, {energies.query_mean:.1%} of a query"
    )
    axes.xaxis.set_major_formatter(_percent)
    axes.yaxis.set_major_formatter(_percent)


def _skills(d: Diagnosis, axes: Any) -> None:
    edges, counts = energy_bins(d)
    axes.stairs(counts, edges, fill=True, color=_ONE)
    axes.axvline(d.energies.skill_mean, color="black", ls="--", lw=1)
    axes.set(xlabel="background of a skill (share of its vector)", ylabel="skills")
    axes.set_title(f"Background of the skills: {d.energies.skill_mean:.1%} on average")
    axes.xaxis.set_major_formatter(_percent)


def _recall(d: Diagnosis, axes: Any) -> None:
    found = d.labelled
    if found is None:
        return
    axes.plot(found.depths, found.after.recall, "o-", color=_ONE, label="SkillSight")
    axes.plot(found.depths, found.before.recall, "s--", color=_TWO, label="cosine alone")
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter("{x:,.0f}")
    axes.yaxis.set_major_formatter(_percent)
    axes.set(xlabel="skills shown", ylabel="right skills among them")
    axes.set_title(f"Recall over {count(found.n_queries, 'labelled query', 'labelled queries')}")
    axes.legend(frameon=False, loc="lower right")


def _words(d: Diagnosis, axes: Any) -> None:
    words, threshold = d.words, d.words.threshold or 0.0
    colours = [_ONE if low < threshold else _TWO for low in words.edges[:-1]]
    widths = [high - low for low, high in pairwise(words.edges)]
    axes.bar(words.edges[:-1], words.occurrences, widths, align="edge", color=colours, ec="white")
    axes.axvline(threshold, color="black", ls="--", lw=1)
    axes.text(threshold, 0.93 * max(words.occurrences), f"  threshold {threshold:.2f}")
    axes.set(xlabel="IDF (common words left, rare words right)", ylabel="occurrences")
    axes.set_title(f"{len(words.generic):,} of {words.n_tokens:,} words are generic (blue)")
    axes.yaxis.set_major_formatter("{x:,.0f}")


def _spectrum(d: Diagnosis, axes: Any) -> None:
    values, rank = d.energies.singular_values[:_SHOWN], d.energies.rank
    colours = [_ONE if i < rank else _TWO for i in range(len(values))]
    axes.bar(range(1, len(values) + 1), values, color=colours)
    axes.set(xlabel="direction", ylabel="singular value")
    axes.set_title(f"Background of rank {rank} (blue)")
    axes.xaxis.get_major_locator().set_params(integer=True)


def _percent(value: float, _: object) -> str:
    return f"{value:.0%}"
