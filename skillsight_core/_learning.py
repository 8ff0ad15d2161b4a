"""What a `SkillSight` learns, keeps and changes: the library and its background."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from skillsight_core import _validation
from skillsight_core._background import Background, Floats
from skillsight_core._encoders import Encoder, encoder_name
from skillsight_core._errors import NotFittedError, SkillSightWarning
from skillsight_core._fusion import FUSIONS
from skillsight_core._library import Library, Rows
from skillsight_core._tokenizer import Tokenizer, tokenize

_BACKGROUNDS = ("low-idf", "high-idf", "all", "random", "none")
FEWEST_SKILLS = 6  # below, what the skills share cannot be told from what they are


class State(NamedTuple):
    """Everything a query reads; replaced as a whole, so that a reader sees one moment."""

    library: Library
    background: Background
    encoder: str | None


class Learner:
    """The part of `SkillSight` that learns; parameters and learned state are described there."""

    beta: float
    pool_size: int
    fusion: str
    background: str
    background_rank: int | str
    semantic: bool
    lexical: bool
    min_evidence: float
    unique_texts: bool
    tokenizer: Tokenizer | None
    random_state: int

    def __init__(self) -> None:
        self._lock = threading.Lock()

    def __getstate__(self) -> dict[str, Any]:
        kept = {name: value for name, value in vars(self).items() if name != "_lock"}
        if "_state" in kept:  # of a vocabulary that may be growing, the part that is learned
            library = kept["_state"].library
            own = replace(library, vocabulary=library.vocabulary.copy())
            kept["_state"] = kept["_state"]._replace(library=own)
        return kept

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, _lock=threading.Lock())

    def __sklearn_is_fitted__(self) -> bool:
        return "_state" in vars(self)

    # -- learning --------------------------------------------------------------------------------

    def fit(
        self,
        texts: Iterable[str],
        embeddings: ArrayLike,
        ids: Iterable[str] | None = None,
        *,
        encoder: Encoder | str | None = None,
    ) -> Self:
        """Learn a library.

        Parameters
        ----------
        texts : iterable of n str
            What is tokenised for each skill; may be empty texts.
        embeddings : array-like of shape (n, m)
            One vector for each text, finite and not zero; scaled to unit length in a copy.
        ids : iterable of n str, optional
            Distinct identities; digests of the texts by default.
        encoder : Encoder or str, optional
            Where the embeddings came from; its name is kept and saved.

        Returns
        -------
        SkillSight
            This object.

        Raises
        ------
        ValueError
            An argument of the constructor, the sizes, the ids or a row of the embeddings is not
            as said above.
        TypeError
            A text or an id is not a str.

        Warns
        -----
        SkillSightWarning
            There are fewer than six skills, too few to have a background; none is removed.
        """
        self._check_parameters("SkillSight.fit")
        empty = Library.empty(0)
        library = self._extended(empty, texts, embeddings, ids, of="SkillSight.fit")
        background = self._learn_background(library, of="SkillSight.fit")
        with self._lock:
            self._state = State(library, background, encoder_name(encoder))
        return self

    def add(
        self, texts: Iterable[str], embeddings: ArrayLike, ids: Iterable[str] | None = None
    ) -> Self:
        """Add skills; they and their words count from the next call on.

        Document frequencies, IDF and evidence are exact at once; the background stays as learned
        until `refresh`. Nothing changes when an argument is refused.

        Parameters
        ----------
        texts, embeddings, ids
            As in `fit`, in the same dimension; ids that are not in the library.

        Raises
        ------
        ValueError, TypeError
            As in `fit`, or an id is in the library already.
        """
        of = "SkillSight.add"
        with self._lock:
            state = self._fitted(of)
            library = self._extended(state.library, texts, embeddings, ids, of=of)
            background = state.background
            if state.library.n_features != library.n_features:  # the first skills of all
                background = Background.none(library.n_features)
            self._state = state._replace(library=library, background=background)
        return self

    def remove(self, ids: Iterable[str]) -> Self:
        """Remove skills; they and their words are gone from the next call on.

        Raises
        ------
        ValueError
            An id is not in the library; nothing is removed then.
        """
        of = "SkillSight.remove"
        with self._lock:
            state = self._fitted(of)
            rows = known_rows(state.library, _validation.distinct_ids(ids, of=of), of=of)
            self._state = state._replace(library=state.library.remove(rows))
        return self

    def refresh(self) -> Self:
        """Learn the background again from the skills there are now, and forget removed ones.

        Queries go on meanwhile with the library as it was.
        """
        of = "SkillSight.refresh"
        with self._lock:
            state = self._fitted(of)
            library = state.library.compact()
            background = self._learn_background(library, of=of)
            self._state = state._replace(library=library, background=background)
        return self

    # -- what was learned --------------------------------------------------------------------

    def __contains__(self, id: object) -> bool:
        """Whether the library holds a skill with this id."""
        library = self._fitted("SkillSight.__contains__").library
        return isinstance(id, str) and library.row(id) is not None

    @property
    def n_skills_(self) -> int:
        return self._fitted("SkillSight.n_skills_").library.statistics.n_skills

    @property
    def n_features_in_(self) -> int:
        return self._fitted("SkillSight.n_features_in_").library.n_features

    @property
    def ids_(self) -> tuple[str, ...]:
        return self._fitted("SkillSight.ids_").library.ids

    @property
    def generic_tokens_(self) -> frozenset[str]:
        library = self._fitted("SkillSight.generic_tokens_").library
        generic = library.statistics.is_generic(library.statistics.df).tolist()
        # A writer may be appending to the vocabulary: what lies beyond is of a later library.
        words = list(library.vocabulary)[: len(generic)]
        return frozenset(
            word for word, is_generic in zip(words, generic, strict=True) if is_generic
        )

    @property
    def idf_threshold_(self) -> float:
        return self._fitted("SkillSight.idf_threshold_").library.statistics.threshold

    @property
    def basis_(self) -> Floats:
        return self._fitted("SkillSight.basis_").background.basis

    @property
    def background_rank_(self) -> int:
        return int(self.basis_.shape[1])

    @property
    def singular_values_(self) -> NDArray[np.float64]:
        return self._fitted("SkillSight.singular_values_").background.singular_values

    @property
    def encoder_name_(self) -> str | None:
        return self._fitted("SkillSight.encoder_name_").encoder

    # -- steps of learning -----------------------------------------------------------------------

    def _fitted(self, of: str) -> State:
        try:
            state: State = vars(self)["_state"]
        except KeyError:
            raise NotFittedError(
                f"{of}: call fit first, this SkillSight has not learned a library"
            ) from None
        return state

    def _check_parameters(self, of: str) -> None:
        _validation.check_number(self.beta, "beta", low=0.0, high=np.inf, of=of)
        _validation.check_count(self.pool_size, "pool_size", at_least=1, of=of)
        _validation.check_choice(self.fusion, "fusion", among=FUSIONS, of=of)
        _validation.check_choice(self.background, "background", among=_BACKGROUNDS, of=of)
        if self.background_rank != "effective":
            _validation.check_count(self.background_rank, "background_rank", at_least=0, of=of)  # type: ignore[arg-type]
        _validation.check_number(self.min_evidence, "min_evidence", low=0.0, high=1.0, of=of)
        for name in ("semantic", "lexical", "unique_texts"):
            _validation.check_choice(getattr(self, name), name, among=(True, False), of=of)
        _validation.check_count(self.random_state, "random_state", at_least=0, of=of)
        if self.tokenizer is not None and not callable(self.tokenizer):
            raise TypeError(f"{of}: tokenizer must be callable or None, got {self.tokenizer!r}")

    def _extended(
        self,
        library: Library,
        texts: Iterable[str],
        embeddings: ArrayLike,
        ids: Iterable[str] | None,
        *,
        of: str,
    ) -> Library:
        texts = _validation.check_texts(texts, of=of)
        digests = _validation.text_digests(texts)
        ids = _validation.check_ids(ids, digests, of=of)
        taken = [id_ for id_ in ids if library.row(id_) is not None]
        if taken:
            raise ValueError(
                f"{of}: ids must be new, got some that are in the library: "
                f"{_validation.some(taken)}"
            )
        rows = _validation.check_embeddings(embeddings, ids, library.n_features or None, of=of)
        if library.n_rows == 0:
            library = Library.empty(rows.shape[1])
        return library.add(ids, rows, digests, map(self._tokens, texts))

    def _tokens(self, text: str) -> list[str]:
        return (self.tokenizer or tokenize)(text)

    def _learn_background(self, library: Library, *, of: str) -> Background:
        if self.background == "none" or self.background_rank == 0:
            return Background.none(library.n_features)
        if library.statistics.n_skills < FEWEST_SKILLS:
            warnings.warn(
                f"{of}: {library.statistics.n_skills} skills are too few to have a background, "
                f"none is removed; at least {FEWEST_SKILLS} are needed",
                SkillSightWarning,
                stacklevel=3,
            )
            return Background.none(library.n_features)
        rank = None if self.background_rank == "effective" else int(self.background_rank)
        return Background.span(library.mean_embeddings(self._background_tokens(library)), rank)

    def _background_tokens(self, library: Library) -> NDArray[np.int32]:
        df = library.statistics.df
        generic = library.statistics.is_generic(df)
        present = df > 0
        if self.background == "high-idf":
            chosen = np.flatnonzero(present & ~generic)
        elif self.background == "all":
            chosen = np.flatnonzero(present)
        elif self.background == "random":
            random = np.random.default_rng(self.random_state)
            chosen = random.choice(np.flatnonzero(present), int(generic.sum()), replace=False)
        else:
            chosen = np.flatnonzero(generic)
        return np.sort(chosen).astype(np.int32)


def known_rows(library: Library, ids: Sequence[str], *, of: str) -> Rows:
    found = [(id_, library.row(id_)) for id_ in ids]
    unknown = [str(id_) for id_, row in found if row is None]
    if unknown:
        raise ValueError(
            f"{of}: ids must be in the library, got some that are not: {_validation.some(unknown)}"
        )
    return np.array([row for _, row in found], dtype=np.intp)
