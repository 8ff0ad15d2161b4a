"""From a fitted library, and queries where there are some, to its diagnosis."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from skillsight_core._background import Background, Floats
from skillsight_core._diagnosis import _labels, _pairs, _queries, _texts, _words
from skillsight_core._diagnosis._model import Diagnosis, Energies, Labelled, Offender, Point
from skillsight_core._diagnosis._phrases import Phrases
from skillsight_core._encoders import Encoder, SentenceTransformerEncoder
from skillsight_core._estimator import SkillSight
from skillsight_core._library import Library, Rows
from skillsight_core._ranking import Ranking
from skillsight_core._skills import Skill

_OF = "diagnose"
_LISTED = 10  # offenders, phrases and pairs that are named


def diagnose(
    ss: SkillSight,
    queries: _queries.Queries | None = None,
    qrels: _queries.Qrels | None = None,
    *,
    query_embeddings: ArrayLike | None = None,
    encoder: Encoder | None = None,
    skills: Sequence[Skill] | None = None,
) -> Diagnosis:
    """Measure what makes retrieval over a library go wrong, and what calibration changes.

    Parameters
    ----------
    ss : SkillSight
        Fitted.
    queries : sequence of str, or mapping of query id to str, optional
        Tasks that people would search the library with. Without them there is no E_Q.
    qrels : sequence, or mapping of query id to labels, optional
        The gold skills of each query: ids, or a mapping of id to grade, of which those above 0
        count. A sequence goes with a sequence of queries, a mapping with a mapping. Queries
        without an entry are not labelled.
    query_embeddings : array-like of shape (q, m), optional
        Vectors of the queries, in their order, by the encoder of the skills.
    encoder : Encoder, optional
        Computes them where they are not given; by default the sentence-transformers model that
        the library says it was built with.
    skills : sequence of Skill, optional
        The skills with their texts, which a library does not keep: for phrases, invisible
        characters and missing descriptions. Those that are not in the library are passed over.

    Returns
    -------
    Diagnosis
        Plain data; see there for what each measurement means.

    Raises
    ------
    NotFittedError
        ``ss`` has not learned a library.
    ValueError
        Numbers of queries, labels and vectors differ, no label names a skill of the library, or
        nothing says how to compute the vectors.
    TypeError
        ``queries`` or ``qrels`` is of another kind.

    Warns
    -----
    SkillSightWarning
        Labels name skills that are not in the library.

    Notes
    -----
    The library and its background are read at one moment; time grows with the square of the
    number of skills (every skill is compared with every other), memory with the number.

    Examples
    --------
    >>> import numpy as np
    >>> texts = [f"use this skill when you need {word}" for word in "abcdefgh"]
    >>> found = diagnose(SkillSight().fit(texts, np.eye(8) + 0.5))
    >>> [word.token for word in found.words.generic][:3]
    ['use', 'this', 'skill']
    """
    state = ss._fitted(_OF)
    library, background = state.library.compact(), state.background
    if queries is None and (qrels is not None or query_embeddings is not None):
        raise ValueError(f"{_OF}: queries must be given with qrels and query_embeddings, got None")
    rankings: list[Ranking] = []
    gold: list[Rows | None] = []
    if queries is not None:
        asked = _queries.read(queries, qrels, library, of=_OF)
        gold = asked.gold
        if query_embeddings is None and asked.texts:
            query_embeddings = _encoder(encoder, state.encoder).encode(asked.texts)
        vectors = [] if query_embeddings is None else list(np.asarray(query_embeddings))
        if len(vectors) != len(asked.texts):
            raise ValueError(
                f"{_OF}: query_embeddings must have one row for each query, got {len(vectors)} "
                f"rows for {len(asked.texts)} queries"
            )
        rankings = [
            ss._ranking(library, background, text, vector, of=_OF)
            for text, vector in zip(asked.texts, vectors, strict=True)
        ]
    if skills is not None:
        skills = [skill for skill in skills if library.row(skill.id) is not None]
    phrases = None if skills is None else Phrases({skill.id: skill.text for skill in skills})
    energies = _energies(library, background, rankings, gold)
    return Diagnosis(
        ids=library.ids,
        encoder=state.encoder,
        energies=energies,
        words=_words.measure(library),
        offenders=_offenders(library, np.array(energies.skills), phrases),
        phrases=None if phrases is None else phrases.most_shared(_LISTED),
        pairs=_pairs.measure(library, background, beta=ss.beta, most=_LISTED),
        texts=_texts.measure(library, skills),
        labelled=_labelled(library, rankings, gold),
    )


def _encoder(given: Encoder | None, name: str | None) -> Encoder:
    if given is None and name is None:
        raise ValueError(
            f"{_OF}: queries need query_embeddings or an encoder where the library does not name "
            "its own, got neither"
        )
    return given if given is not None else SentenceTransformerEncoder(name)


def _energies(
    library: Library,
    background: Background,
    rankings: Sequence[Ranking],
    gold: Sequence[Rows | None],
) -> Energies:
    of_skills = background.energy(library.embeddings(np.arange(library.n_rows)))
    vectors = np.zeros((0, library.n_features), np.float32)
    if rankings:
        vectors = np.stack([ranking.vector for ranking in rankings])
    of_queries = background.energy(vectors)
    if any(rows is not None for rows in gold):
        beside = [None if rows is None else of_skills[rows].mean() for rows in gold]
    else:
        beside = [of_skills[row] for row in _nearest(library, vectors)]
    return Energies(
        rank=background.basis.shape[1],
        chance=background.basis.shape[1] / max(library.n_features, 1),
        skills=tuple(of_skills.tolist()),
        skill_mean=_mean(of_skills),
        queries=tuple(of_queries.tolist()),
        query_mean=_mean(of_queries),
        points=tuple(
            Point(float(mine), float(its))
            for mine, its in zip(of_queries, beside, strict=False)
            if its is not None
        ),
        singular_values=tuple(background.singular_values.tolist()),
    )


def _nearest(library: Library, vectors: Floats) -> list[int]:
    """The row with the greatest cosine for each vector."""
    if library.n_rows == 0:
        return []
    return [int(library.similarities(vector[None])[0].argmax()) for vector in vectors]


def _offenders(
    library: Library, energies: NDArray[np.float64], phrases: Phrases | None
) -> tuple[Offender, ...]:
    worst = np.lexsort((np.arange(len(energies)), -energies))[:_LISTED]
    found = []
    for row in worst.tolist():
        (segment,) = library.segments
        tokens = segment.tokens[segment.bounds[row] : segment.bounds[row + 1]]
        generic = library.statistics.is_generic(library.statistics.df[tokens])
        found.append(
            Offender(
                id=segment.ids[row],
                energy=float(energies[row]),
                generic_share=float(generic.mean()) if len(generic) else 0.0,
                phrases=() if phrases is None else phrases.of(segment.ids[row], 3),
            )
        )
    return tuple(found)


def _labelled(
    library: Library, rankings: Sequence[Ranking], gold: Sequence[Rows | None]
) -> Labelled | None:
    known = [(r, rows) for r, rows in zip(rankings, gold, strict=True) if rows is not None]
    if not known:
        return None
    return _labels.measure(library, [r for r, _ in known], [rows for _, rows in known])


def _mean(values: NDArray[np.float64]) -> float | None:
    return float(values.mean()) if len(values) else None
