"""Plain dense retrieval and SkillSight side by side, on the 168 skills beside this file.

Run it with ``make demo``.
"""

from __future__ import annotations

import json
from pathlib import Path
from statistics import mean

from rich.console import Console
from rich.table import Table

from skillsight_core import (
    CachedEncoder,
    RankedSkill,
    SentenceTransformerEncoder,
    SkillSight,
    load_skills,
)

HERE = Path(__file__).parent
SHOWN = 3  # queries of each kind


def main() -> None:
    console = Console(highlight=False)
    library = load_skills(HERE / "library")
    labelled = [json.loads(line) for line in (HERE / "queries.jsonl").open(encoding="utf-8")]
    queries = [entry["query"] for entry in labelled]
    wanted = [set(entry["skills"]) for entry in labelled]

    console.print(f"{len(library)} skills, {len(queries)} labelled queries, all-MiniLM-L6-v2")
    encoder = CachedEncoder(SentenceTransformerEncoder())
    skill_vectors = encoder.encode(library.texts)
    query_vectors = encoder.encode(queries)

    skillsight = SkillSight().fit(library.texts, skill_vectors, library.ids, encoder=encoder)
    plain = SkillSight(background="none", lexical=False, fusion="rectified")  # cosine alone
    plain.fit(library.texts, skill_vectors, library.ids)
    console.print(
        f"background: {len(skillsight.generic_tokens_)} generic words span "
        f"{skillsight.background_rank_} of {skillsight.n_features_in_} dimensions; "
        f"{skillsight.background_energy(skill_vectors).mean():.0%} of a skill lies in them, "
        f"{skillsight.background_energy(query_vectors).mean():.0%} of a query"
    )

    dense = plain.rank_batch(queries, query_vectors, k=10)
    ours = skillsight.rank_batch(queries, query_vectors, k=10)
    gains = [
        reciprocal_rank(o, w) - reciprocal_rank(d, w)
        for o, d, w in zip(ours, dense, wanted, strict=True)
    ]
    order = sorted(range(len(queries)), key=gains.__getitem__)
    energy = skillsight.background_energy(query_vectors)
    for title, chosen in (
        ("Where SkillSight does better", order[: -SHOWN - 1 : -1]),
        ("Where SkillSight does worse", [i for i in order[:SHOWN] if gains[i] < 0]),
    ):
        console.rule(title)
        for i in chosen:
            console.print(f"\n[bold]{queries[i]}[/]")
            console.print(side_by_side(dense[i][:3], ours[i][:3], wanted[i]))
            console.print(evidence(ours[i], wanted[i], energy[i], skillsight.generic_tokens_))

    console.rule("All queries")
    console.print(summary(dense, ours, wanted))
    better, worse = sum(gain > 0 for gain in gains), sum(gain < 0 for gain in gains)
    console.print(
        f"SkillSight ranks the right skill higher for {better} queries, lower for {worse}, "
        f"and alike for {len(gains) - better - worse}."
    )


def reciprocal_rank(hits: list[RankedSkill], wanted: set[str]) -> float:
    """1 / rank of the first right skill, 0 if there is none."""
    return next((1 / hit.rank for hit in hits if hit.id in wanted), 0.0)


def recall(hits: list[RankedSkill], wanted: set[str]) -> float:
    """Share of the right skills among the hits."""
    return len({hit.id for hit in hits} & wanted) / len(wanted)


def side_by_side(dense: list[RankedSkill], ours: list[RankedSkill], wanted: set[str]) -> Table:
    """The first hits of both, the right skill marked."""
    table = Table(box=None, padding=(0, 3, 0, 2))
    table.add_column("dense retrieval")
    table.add_column("SkillSight")
    for pair in zip(dense, ours, strict=True):
        table.add_row(*(f"{'[green]*' if h.id in wanted else ' '} {h.id}" for h in pair))
    return table


def evidence(
    hits: list[RankedSkill], wanted: set[str], energy: float, generic: frozenset[str]
) -> str:
    """What decided about the right skill, or about the first one where the right one is missing."""
    hit = next((hit for hit in hits if hit.id in wanted), hits[0])
    words = " ".join(word for word in hit.matched_tokens if word not in generic) or "-"
    return (
        f"  [dim]{energy:.0%} of the query was background; {hit.id.split('/')[1]} has "
        f"{hit.lexical:.0%} of its words, specific: {words}[/]"
    )


def summary(
    dense: list[list[RankedSkill]], ours: list[list[RankedSkill]], wanted: list[set[str]]
) -> Table:
    """Recall@3 and MRR@10 of both over all queries."""
    table = Table(box=None, padding=(0, 3, 0, 2))
    for heading in ("", "Recall@3", "MRR@10"):
        table.add_column(heading, justify="right" if heading else "left")
    for name, rankings in (("dense retrieval", dense), ("SkillSight", ours)):
        recall_at_3 = mean(
            recall(hits[:3], want) for hits, want in zip(rankings, wanted, strict=True)
        )
        mrr_at_10 = mean(
            reciprocal_rank(hits, want) for hits, want in zip(rankings, wanted, strict=True)
        )
        table.add_row(name, f"{recall_at_3:.1%}", f"{mrr_at_10:.1%}")
    return table


if __name__ == "__main__":
    main()
