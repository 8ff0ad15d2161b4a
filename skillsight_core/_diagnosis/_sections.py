"""A diagnosis in words and tables, for the report and the page alike."""

from __future__ import annotations

from dataclasses import dataclass

from skillsight_core._diagnosis._model import Diagnosis, Finding, Pair, Phrase

_WORDS = 15  # generic words that are named
_IDS = 3  # skills that a finding names


@dataclass(frozen=True)
class Table:
    """Rows under a heading; ``numbers`` are the columns that hold some, counted from 0."""

    caption: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    numbers: tuple[int, ...]


@dataclass(frozen=True)
class Section:
    """One subject: sentences, then tables. ``key`` says which chart goes with it."""

    key: str
    title: str
    lines: tuple[str, ...]
    tables: tuple[Table, ...] = ()


def sections(diagnosis: Diagnosis, most: int | None = None) -> list[Section]:
    """The sections of a diagnosis in the order they are read; ``most`` skills or pairs of each."""
    written = [_background(diagnosis), _retrieval(diagnosis), _words(diagnosis)]
    written += [_offenders(diagnosis, most), _pairs(diagnosis, most), _texts(diagnosis)]
    return [section for section in written if section is not None]


def _background(d: Diagnosis) -> Section:
    energies = d.energies
    if not energies.rank:
        return Section(
            "energies", "Background", ("No background is removed from this library's vectors.",)
        )
    power = [value**2 for value in energies.singular_values]
    kept = sum(power[: energies.rank]) / sum(power)
    lines = []
    if energies.skill_mean is not None:
        compared = ""
        if energies.query_mean is not None:
            times = energies.skill_mean / energies.query_mean if energies.query_mean else 0.0
            compared = f", {energies.query_mean:.1%} of a query's (E_Q)" + (
                f": {times:.1f} times as much" if times else ""
            )
        lines.append(
            f"{energies.skill_mean:.1%} of a skill's vector is background (E_D){compared}."
        )
    lines.append(
        f"The background has rank {energies.rank} and holds {kept:.1%} of what the generic words "
        f"share; of a random vector it would hold {energies.chance:.1%}."
    )
    return Section("energies", "Background", tuple(lines))


def _retrieval(d: Diagnosis) -> Section | None:
    found = d.labelled
    if found is None:
        return None
    before, after = found.before, found.after
    lines = (
        f"{count(found.n_queries, 'labelled query', 'labelled queries')}, ranked by cosine alone "
        "and as SkillSight ranks.",
        "A word in common with the query points to a right skill in "
        f"{_rate(found.anywhere.generic)} of cases when it is generic, in "
        f"{_rate(found.anywhere.other)} when it is not. (SkillSight looks for such words and finds "
        "them in wrong skills, too: the two last rates below may be lower for it.)",
    )
    rows = [
        (
            "Wrong skills above the best right one",
            f"{before.hard_negatives:.1%}",
            f"{after.hard_negatives:.1%}",
        )
    ]
    rows += [
        (f"Right skills among the first {k}", f"{before.recall[i]:.1%}", f"{after.recall[i]:.1%}")
        for i, k in enumerate(found.depths)
        if k in (1, 3, 5, 10)
    ]
    rows += [
        (f"Skills to show for {recall:.0%} of the right ones", f"{depth:,}", f"{new:,}")
        for recall, depth, new in zip(found.recalls, before.depth_for, after.depth_for, strict=True)
    ]
    first, second = before.gold_rates, after.gold_rates
    rows += [
        (f"{kind} word in common, first 3: skill is right", _rate(one), _rate(other))
        for kind, one, other in (
            ("Generic", first.generic, second.generic),
            ("Other", first.other, second.other),
        )
    ]
    table = Table("Before and after", ("Measure", "Cosine", "SkillSight"), tuple(rows), (1, 2))
    return Section("retrieval", "Retrieval", lines, (table,))


def _words(d: Diagnosis) -> Section:
    words = d.words
    if words.threshold is None:
        return Section("words", "Generic words", ("The library has no words.",))
    lines = (
        f"{len(words.generic):,} of {count(words.n_tokens, 'word')} are generic, with an IDF below "
        f"{words.threshold:.2f}; they are {words.generic_share:.0%} of all occurrences.",
    )
    rows = tuple(
        (word.token, f"{word.df:,}", f"{word.df / len(d.ids):.0%}", f"{word.idf:.2f}")
        for word in words.generic[:_WORDS]
    )
    tables = [
        Table("Most frequent generic words", ("Word", "Skills", "Share", "IDF"), rows, (1, 2, 3))
    ]
    if d.phrases:
        shared = tuple((p.text, f"{p.n_skills:,}") for p in d.phrases)
        tables.append(Table("Phrases that skills share", ("Phrase", "Skills"), shared, (1,)))
    return Section("words", "Generic words", lines, tuple(tables))


def _offenders(d: Diagnosis, most: int | None) -> Section | None:
    if not (d.energies.rank and d.offenders):
        return None
    named = any(offender.phrases for offender in d.offenders)
    rows = tuple(
        (
            o.id,
            f"{o.energy:.1%}",
            f"{o.generic_share:.0%}",
            *([_listed(o.phrases)] if named else []),
        )
        for o in d.offenders[:most]
    )
    header = ("Skill", "Background", "Generic words", *(["Phrases it shares"] if named else []))
    line = "Say in their first sentences what only these skills do."
    table = Table("Skills with the most background", header, rows, (1, 2))
    return Section("offenders", "Most background", (line,), (table,))


def _pairs(d: Diagnosis, most: int | None) -> Section:
    pairs = d.pairs
    lines = [
        f"{count(pairs.n_near_duplicates, 'pair')} of near-duplicates (cosine without background "
        f"of {pairs.threshold:g} or more)."
    ]
    header = ("Skills", "Cosine", "Plain cosine", "Only in the first", "Only in the second")
    tables = [
        Table(caption, header, tuple(_pair(pair) for pair in some[:most]), (1, 2))
        for caption, some in (
            ("Nearest of the near-duplicates", pairs.near_duplicates),
            ("Most confusable other pairs", pairs.confusable),
        )
        if some
    ]
    return Section("pairs", "Skills that look alike", tuple(lines), tuple(tables))


def _texts(d: Diagnosis) -> Section:
    texts = d.texts
    lines = [f"Mixed alphabets in {finding}." for finding in map(_finding, texts.mixed_scripts)]
    lines += [f"Invisible {finding}." for finding in map(_finding, texts.invisible or ())]
    for what, ids in (
        ("a description of their own", texts.without_description or ()),
        ("a single word", texts.without_words),
    ):
        if ids:
            lines.append(f"{count(len(ids), 'skill')} without {what}: {_some(ids)}.")
    if not lines:
        lines.append("Nothing odd was found.")
    if texts.invisible is None:
        lines.append(
            "The texts are not kept in a library: invisible characters, missing descriptions and "
            "shared phrases are looked for in a folder of skills only."
        )
    return Section("texts", "Texts", tuple(lines))


def _pair(pair: Pair) -> tuple[str, ...]:
    ids = "\n".join(pair.ids) + ("\n(same text)" if pair.identical else "")
    words = (" ".join(only) or "-" for only in (pair.only_first, pair.only_second))
    return (ids, f"{pair.cosine:.2f}", f"{pair.dense:.2f}", *words)


def _finding(finding: Finding) -> str:
    return f"{finding.what} ({_some(finding.ids)})"


def _listed(phrases: tuple[Phrase, ...]) -> str:
    return "\n".join(f"{phrase.text} ({phrase.n_skills:,})" for phrase in phrases) or "-"


def _some(ids: tuple[str, ...]) -> str:
    more = f" and {len(ids) - _IDS:,} more" if len(ids) > _IDS else ""
    return ", ".join(ids[:_IDS]) + more


def _rate(rate: float | None) -> str:
    return "-" if rate is None else f"{rate:.1%}"


def count(number: int, one: str, many: str | None = None) -> str:
    """A number with its noun."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"
