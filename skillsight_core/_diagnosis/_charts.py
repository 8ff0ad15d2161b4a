"""The charts of the page: energies, spectrum, words, recall."""

from __future__ import annotations

from skillsight_core._diagnosis._model import Diagnosis
from skillsight_core._diagnosis._svg import Chart

_SHOWN = 20  # singular values that are drawn
_BINS = 20  # of the energies


def charts(d: Diagnosis) -> dict[str, list[str]]:
    """SVG of each section, by its key."""
    return {
        "energies": [_energies(d), _spectrum(d)] if d.energies.rank else [],
        "words": [_words(d)] if d.words.occurrences else [],
        "retrieval": [_recall(d)] if d.labelled else [],
    }


def energy_bins(d: Diagnosis) -> tuple[list[float], list[int]]:
    """Borders and numbers of skills of a histogram of the energies."""
    top = max(max(d.energies.skills), 1e-9)
    counts = [0] * _BINS
    for energy in d.energies.skills:
        counts[min(int(energy / top * _BINS), _BINS - 1)] += 1
    return [top * i / _BINS for i in range(_BINS + 1)], counts


def _energies(d: Diagnosis) -> str:
    energies = d.energies
    if not energies.points:
        edges, counts = energy_bins(d)
        chart = Chart(
            (0, edges[-1]),
            (0, max(counts)),
            x_label="background of a skill",
            y_label="skills",
            x_form="{:.0%}".format,
        )
        chart.bars(edges, counts, ["one"] * len(counts))
        return chart.svg("Background of the skills", f"Mean {energies.skill_mean or 0:.1%}.")
    top = 1.05 * max(max(point) for point in energies.points)
    chart = Chart(
        (0, top),
        (0, top),
        x_label="background of the query",
        y_label="background of its skill",
        form="{:.0%}".format,
        x_form="{:.0%}".format,
    )
    chart.path([(0, 0), (top, top)], "line")
    chart.dots(energies.points, "one")
    chart.note(0.98 * top, 0.6 * top, "skill = query", "end")
    above = sum(point.skill > point.query for point in energies.points)
    return chart.svg(
        "Queries and their skills",
        f"Above the diagonal, the skill is more background than the query: {above} of "
        f"{len(energies.points)} points.",
    )


def _spectrum(d: Diagnosis) -> str:
    rank, values = d.energies.rank, d.energies.singular_values[:_SHOWN]
    chart = Chart(
        (0.5, len(values) + 0.5),
        (0, max(values)),
        x_label="direction",
        y_label="singular value",
        x_ticks=[i for i in range(1, len(values) + 1) if i == 1 or i % 5 == 0],
    )
    edges = [i + 0.5 for i in range(len(values) + 1)]
    chart.bars(edges, values, ["one" if i < rank else "two" for i in range(len(values))])
    chart.note(min(rank, len(values)) + 1, 0.8 * max(values), f"rank {rank}")
    return chart.svg(
        "Spectrum of the generic words",
        f"The first {rank} of {len(d.energies.singular_values)} directions are the background.",
    )


def _words(d: Diagnosis) -> str:
    words, threshold = d.words, d.words.threshold or 0.0
    top = max(words.occurrences)
    chart = Chart(
        (words.edges[0], max(words.edges[-1], words.edges[0] + 1e-9)),
        (0, top),
        x_label="IDF (common words left, rare words right)",
        y_label="occurrences",
        form="{:,.0f}".format,
    )
    kinds = ["one" if edge < threshold else "two" for edge in words.edges]
    chart.bars(words.edges, words.occurrences, kinds)
    chart.path([(threshold, 0), (threshold, top)], "line")
    chart.note(threshold, 0.94 * top, f"\u2002threshold {threshold:.2f}")
    return chart.svg(
        "Where generic words end",
        f"{words.generic_share:.0%} of the occurrences lie below Otsu's threshold.",
    )


def _recall(d: Diagnosis) -> str:
    found = d.labelled
    assert found is not None
    last = max(found.depths[-1], 2)
    low = 0.1 * int(10 * min(*found.before.recall, *found.after.recall, 0.9))
    chart = Chart(
        (1, last),
        (low, 1.0),
        x_label="skills shown",
        y_label="right skills among them",
        x_ticks=[10**i for i in range(6) if 10**i <= last],
        log=True,
        form="{:.0%}".format,
        x_form="{:,.0f}".format,
    )
    for recall, kind in ((found.before.recall, "two"), (found.after.recall, "one")):
        points = list(zip(found.depths, recall, strict=True))
        chart.path(points, kind)
        chart.dots(points, kind)
    return chart.svg(
        "Recall",
        f"Among the first 3: {found.before.recall[found.depths.index(3)]:.1%} by cosine, "
        f"{found.after.recall[found.depths.index(3)]:.1%} by SkillSight."
        if 3 in found.depths
        else "By cosine and by SkillSight.",
    )
