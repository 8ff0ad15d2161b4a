"""The measurements of a library, as plain data."""

from __future__ import annotations

import dataclasses
import os
from dataclasses import dataclass
from typing import Any, NamedTuple


class Point(NamedTuple):
    """Background energies of one query and of the skill it is compared with."""

    query: float
    skill: float


@dataclass(frozen=True)
class Energies:
    """How much of the vectors is background: ``e_B(v) = ||B^T v||^2`` for unit v, in [0, 1].

    Attributes
    ----------
    rank : int
        r, the dimension of the background.
    chance : float
        ``r / m``, the mean energy of random directions.
    skills : tuple of float
        e_B of each skill, in the order of `Diagnosis.ids`.
    skill_mean : float or None
        E_D, the mean of ``skills``; None for an empty library.
    queries : tuple of float
        e_B of each query; empty without queries.
    query_mean : float or None
        E_Q, the mean of ``queries``.
    points : tuple of Point
        For each query with known gold skills, its energy and the mean energy of those. Without
        any labels, for each query its energy and that of the skill with the greatest cosine.
    singular_values : tuple of float
        Spectrum of the stacked directions G, descending, that the rank was chosen from.
    """

    rank: int
    chance: float
    skills: tuple[float, ...]
    skill_mean: float | None
    queries: tuple[float, ...]
    query_mean: float | None
    points: tuple[Point, ...]
    singular_values: tuple[float, ...]


@dataclass(frozen=True)
class Word:
    """A token, the number of skills that contain it, and its IDF."""

    token: str
    df: int
    idf: float


@dataclass(frozen=True)
class Words:
    """The vocabulary and where its generic part ends.

    Attributes
    ----------
    n_tokens : int
        Distinct tokens of the library.
    threshold : float or None
        Otsu's threshold: tokens with a lower IDF are generic. None for a library without words.
    generic : tuple of Word
        The generic tokens, most frequent first.
    generic_share : float
        Share of all occurrences (pairs of a skill and a distinct token of it) whose token is
        generic, in [0, 1].
    edges : tuple of float
        Borders of the bins of the IDF histogram, one more than there are bins; the threshold is
        one of them.
    occurrences : tuple of int
        Occurrences in each bin: each token counts ``df`` times, as in Otsu's threshold.
    """

    n_tokens: int
    threshold: float | None
    generic: tuple[Word, ...]
    generic_share: float
    edges: tuple[float, ...]
    occurrences: tuple[int, ...]


@dataclass(frozen=True)
class Phrase:
    """Words that stand in a row in many skills.

    Attributes
    ----------
    text : str
        At least three words in lower case, joined by spaces, that stand in a row in one sentence.
    n_skills : int
        Every three words in a row of it stand so in this many skills or more.
    """

    text: str
    n_skills: int


@dataclass(frozen=True)
class Offender:
    """A skill of which much is background.

    Attributes
    ----------
    id : str
        The skill.
    energy : float
        e_B of its vector.
    generic_share : float
        Share of its distinct tokens that are generic.
    phrases : tuple of Phrase
        Its longest phrases that many skills share; empty where texts are not known.
    """

    id: str
    energy: float
    generic_share: float
    phrases: tuple[Phrase, ...]


@dataclass(frozen=True)
class Pair:
    """A skill and the one most like it once the background is taken out.

    Attributes
    ----------
    ids : tuple of two str
        The skills, in the order of the library.
    cosine : float
        ``cos(P a, P b)``, P = I - B B^T: cosine of what is left of the two vectors.
    dense : float
        ``cos(a, b)``.
    identical : bool
        Whether the texts are byte-identical.
    only_first, only_second : tuple of str
        The tokens with the greatest weight ``idf(t) (1 - df(t)/N)^beta`` that one of them contains
        and the other does not: the words that tell them apart.
    """

    ids: tuple[str, str]
    cosine: float
    dense: float
    identical: bool
    only_first: tuple[str, ...]
    only_second: tuple[str, ...]


@dataclass(frozen=True)
class Pairs:
    """Skills that are easily taken for one another.

    Every skill with its nearest other one by `Pair.cosine` makes a pair; no pair is listed twice.

    Attributes
    ----------
    near_duplicates : tuple of Pair
        The closest pairs with a cosine of ``threshold`` or more.
    n_near_duplicates : int
        How many there are of them.
    confusable : tuple of Pair
        The closest of the other pairs.
    threshold : float
        Border between the two.
    """

    near_duplicates: tuple[Pair, ...]
    n_near_duplicates: int
    confusable: tuple[Pair, ...]
    threshold: float


@dataclass(frozen=True)
class Finding:
    """Something odd in the text of skills: what it is, and the skills that have it."""

    what: str
    ids: tuple[str, ...]


@dataclass(frozen=True)
class Texts:
    """What is wrong with the texts themselves.

    Attributes
    ----------
    mixed_scripts : tuple of Finding
        Words with letters of alphabets that look alike, such as a Cyrillic letter in a Latin word.
    invisible : tuple of Finding or None
        Characters that are drawn as nothing. None where texts are not known.
    without_description : tuple of str or None
        Skills without a description of their own; None where skills are not known.
    without_words : tuple of str
        Skills whose text has no token at all.
    """

    mixed_scripts: tuple[Finding, ...]
    invisible: tuple[Finding, ...] | None
    without_description: tuple[str, ...] | None
    without_words: tuple[str, ...]


@dataclass(frozen=True)
class GoldRates:
    """How often a word that query and skill have in common points to a gold skill.

    Over all triples of a labelled query, a skill of some set, and a distinct token of the query
    that the skill contains: the share whose skill is gold, apart for generic tokens and others.
    None where there is no such triple.
    """

    generic: float | None
    other: float | None


@dataclass(frozen=True)
class Ranked:
    """One ranking of the whole library against the labels.

    Attributes
    ----------
    hard_negatives : float
        Mean over the labelled queries of the share of non-gold skills that stand above the best
        gold one.
    recall : tuple of float
        Mean share of a query's gold skills among the first k, for each k of `Labelled.depths`.
    depth_for : tuple of int
        The smallest k whose mean recall reaches each of `Labelled.recalls`.
    gold_rates : GoldRates
        Over the first three skills of each query. A ranking that looks for words in common finds
        more of them in wrong skills, too, so its rates may be lower though its order is better.
    """

    hard_negatives: float
    recall: tuple[float, ...]
    depth_for: tuple[int, ...]
    gold_rates: GoldRates


@dataclass(frozen=True)
class Labelled:
    """Retrieval for labelled queries by plain cosine and as the library's estimator ranks.

    Attributes
    ----------
    n_queries : int
        Queries with at least one gold skill in the library.
    depths : tuple of int
        The k that recall is given for.
    recalls : tuple of float
        The recalls that a depth is given for.
    anywhere : GoldRates
        Over all skills: what a word in common tells by itself.
    before, after : Ranked
        By cosine alone; by `SkillSight.rank`.
    """

    n_queries: int
    depths: tuple[int, ...]
    recalls: tuple[float, ...]
    anywhere: GoldRates
    before: Ranked
    after: Ranked


@dataclass(frozen=True)
class Diagnosis:
    """What `diagnose` found; ``str()`` of it is a report to read.

    Attributes
    ----------
    ids : tuple of str
        The skills, in order of insertion.
    encoder : str or None
        Name of the encoder of their vectors.
    energies : Energies
    words : Words
    offenders : tuple of Offender
        The skills with the most background, worst first.
    phrases : tuple of Phrase or None
        What many skills share word for word, most shared first; None where texts are not known.
    pairs : Pairs
    texts : Texts
    labelled : Labelled or None
        None without labelled queries.
    """

    ids: tuple[str, ...]
    encoder: str | None
    energies: Energies
    words: Words
    offenders: tuple[Offender, ...]
    phrases: tuple[Phrase, ...] | None
    pairs: Pairs
    texts: Texts
    labelled: Labelled | None

    def as_dict(self) -> dict[str, Any]:
        """Everything as dictionaries, tuples, numbers and strings, ready for JSON."""
        return dataclasses.asdict(self)

    def plot(self, path: str | os.PathLike[str]) -> None:
        """Draw the energies, the words, the spectrum and the recall in one picture.

        Parameters
        ----------
        path : path-like
            File to write; its ending gives the format (".png", ".svg", ".pdf").

        Raises
        ------
        MissingDependencyError
            matplotlib is not installed.
        """
        from skillsight_core._diagnosis import _plot

        _plot.save(self, path)

    def as_html(self, title: str = "Skill library") -> str:
        """Everything as one page that needs no other file and no network.

        Parameters
        ----------
        title : str
            Name of the library.
        """
        from skillsight_core._diagnosis import _html

        return _html.page(self, title)

    def __str__(self) -> str:
        from skillsight_core._diagnosis import _report

        return _report.as_text(self)
