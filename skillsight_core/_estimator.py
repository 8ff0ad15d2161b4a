"""The estimator: learns a library's background once, then ranks skills for any query."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Iterable, Sequence
from os import PathLike
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from skillsight_core import _persistence, _validation
from skillsight_core._background import Background, Floats
from skillsight_core._encoders import Encoder, encoder_name
from skillsight_core._errors import SkillSightWarning
from skillsight_core._fusion import FUSIONS
from skillsight_core._learning import Learner, State, known_rows
from skillsight_core._library import Library
from skillsight_core._ranking import Options, Ranking
from skillsight_core._result import RankedSkill
from skillsight_core._tokenizer import Tokenizer, name_key

_BATCH = 64  # queries whose similarities are computed at once


class SkillSight(Learner):
    """Training-free calibration of dense retrieval over a library of skills or tools.

    Fitting learns which words the library uses everywhere and the subspace of embeddings that
    those words span: its background. Ranking takes the background out of the query (no stored
    vector changes), adds lexical evidence from the query's words, and fuses both over a fixed
    number of candidates.

    Parameters
    ----------
    beta : float, default 1.0
        Exponent of ``w(t) = idf(t) (1 - df(t)/N)**beta``, the weight of a word as evidence; >= 0.
    pool_size : int, default 300
        K, the number of candidates that each channel brings. It never depends on ``k``, so a
        shorter ranking is always the beginning of a longer one.
    fusion : {"robust", "rectified"}, default "robust"
        How candidates are found and scored. "rectified" is the published formula to the letter;
        "robust" did better on nearly every set it was measured on (see ``examples/results/``).
    background : {"low-idf", "high-idf", "all", "random", "none"}, default "low-idf"
        Which tokens span the background: the generic ones, or for ablation the others, all of
        them, as many drawn at random, none.
    background_rank : "effective" or int, default "effective"
        Dimension of the background; "effective" is the spectral effective rank.
    semantic, lexical : bool, default True
        Whether the channel takes part; for ablation.
    min_evidence : float, default 0.0
        Skills with less lexical evidence (``RankedSkill.lexical``, in [0, 1]) are not returned,
        so that a query that nothing answers may return nothing.
    unique_texts : bool, default False
        Whether byte-identical texts share one place, taken by the best of them.
    tokenizer : callable, optional
        From a text to its tokens, for skills and queries alike; `tokenize` by default.
    random_state : int, default 0
        Seed of ``background="random"``.

    Attributes
    ----------
    n_skills_ : int
        Number of skills, N.
    n_features_in_ : int
        Dimension of the embeddings, m.
    ids_ : tuple of str
        Ids in order of insertion.
    generic_tokens_ : frozenset of str
        Tokens with ``idf(t) < idf_threshold_``.
    idf_threshold_ : float
        Otsu's threshold over the IDF of all token occurrences.
    basis_ : ndarray of shape (m, r), float32
        Orthonormal basis B of the background.
    background_rank_ : int
        r.
    singular_values_ : ndarray, float64
        Spectrum that the rank was chosen from.
    encoder_name_ : str or None
        Name of the encoder the embeddings came from.

    Notes
    -----
    Method: arXiv:2607.18785. Reading is safe from many threads while another one adds, removes
    or refreshes: every call works on the library as it was when the call began.

    Examples
    --------
    >>> import numpy as np
    >>> texts = ["merge PDF files", "review a pull request"]
    >>> ss = SkillSight(background="none").fit(texts, np.eye(2), ["merge", "review"])
    >>> [hit.id for hit in ss.rank("merge two PDFs", [1.0, 0.2], k=1)]
    ['merge']
    """

    def __init__(
        self,
        *,
        beta: float = 1.0,
        pool_size: int = 300,
        fusion: str = "robust",
        background: str = "low-idf",
        background_rank: int | str = "effective",
        semantic: bool = True,
        lexical: bool = True,
        min_evidence: float = 0.0,
        unique_texts: bool = False,
        tokenizer: Tokenizer | None = None,
        random_state: int = 0,
    ) -> None:
        super().__init__()
        self.beta = beta
        self.pool_size = pool_size
        self.fusion = fusion
        self.background = background
        self.background_rank = background_rank
        self.semantic = semantic
        self.lexical = lexical
        self.min_evidence = min_evidence
        self.unique_texts = unique_texts
        self.tokenizer = tokenizer
        self.random_state = random_state

    @classmethod
    def paper(cls) -> Self:
        """Return an estimator with the published configuration (arXiv:2607.18785)."""
        return cls(beta=1.0, pool_size=300, fusion="rectified", background="low-idf")

    # -- ranking ---------------------------------------------------------------------------------

    def rank(
        self,
        query: str,
        query_embedding: ArrayLike,
        *,
        k: int = 3,
        candidates: Iterable[str] | None = None,
    ) -> list[RankedSkill]:
        """Return the k best skills for a query.

        Parameters
        ----------
        query : str
            The task in words; may be empty.
        query_embedding : array-like of shape (m,)
            Its vector by the encoder of the skills; scaled to unit length.
        k : int, default 3
            How many; 0 gives none, more than there are gives all. Skills beyond the candidates
            follow these in semantic order.
        candidates : iterable of str, optional
            Ids of the only skills to consider; all by default.

        Returns
        -------
        list of RankedSkill
            Best first. Equal scores are ordered by semantic score, then by insertion.

        Raises
        ------
        NotFittedError
            `fit` has not been called.
        ValueError
            k is negative, the embedding has another dimension, is zero or not finite, or an id is
            not in the library.
        """
        of = "SkillSight.rank"
        library, background, _ = self._fitted(of)
        k = _validation.check_count(k, "k", at_least=0, of=of)
        allowed = library.alive
        if candidates is not None:
            allowed = np.zeros(library.n_rows, np.bool_)
            allowed[known_rows(library, list(dict.fromkeys(candidates)), of=of)] = True
        ranking = self._ranking(library, background, query, query_embedding, of=of)
        return _best(ranking, ranking.similarities(), allowed, k)

    def rank_batch(
        self, queries: Sequence[str], query_embeddings: ArrayLike, *, k: int = 3
    ) -> list[list[RankedSkill]]:
        """Return the k best skills for each of several queries, as `rank` does for one.

        Parameters
        ----------
        queries : sequence of b str
            The tasks.
        query_embeddings : array-like of shape (b, m)
            Their vectors.
        k : int, default 3
            How many for each.
        """
        of = "SkillSight.rank_batch"
        library, background, _ = self._fitted(of)
        k = _validation.check_count(k, "k", at_least=0, of=of)
        queries = _validation.check_texts(queries, of=of, name="queries")
        rows: list[ArrayLike] = list(query_embeddings)  # type: ignore[arg-type]
        if len(rows) != len(queries):
            raise ValueError(
                f"{of}: query_embeddings must have one row for each query, got {len(rows)} rows "
                f"for {len(queries)} queries"
            )
        rankings = [
            self._ranking(library, background, query, row, of=of)
            for query, row in zip(queries, rows, strict=True)
        ]
        ranked = []
        for start in range(0, len(rankings), _BATCH):
            block = rankings[start : start + _BATCH]
            projected = background.project(np.stack([ranking.vector for ranking in block]))
            for ranking, row in zip(block, library.similarities(projected), strict=True):
                ranked.append(_best(ranking, row, library.alive, k))
        return ranked

    def score_candidates(
        self,
        query: str,
        query_embedding: ArrayLike,
        ids: Iterable[str],
        *,
        texts: Sequence[str | None] | None = None,
        embeddings: Sequence[ArrayLike | None] | None = None,
        k: int | None = None,
    ) -> list[RankedSkill]:
        """Rank the candidates that a host brings, best first.

        Skills of the library are scored with the vectors and words held here. Others are scored
        from the text and the embedding that come with them, and count in no statistic; without an
        embedding their semantic scores are 0, without a text their lexical one is.

        Parameters
        ----------
        query : str
            The task in words.
        query_embedding : array-like of shape (m,)
            Its vector.
        ids : iterable of n str
            Distinct ids of the candidates.
        texts : sequence of n str or None, optional
            Texts of the candidates; read only for those that the library does not hold.
        embeddings : sequence of n vectors of shape (m,) or None, optional
            Their vectors; read likewise.
        k : int, optional
            How many to return; all by default.

        Returns
        -------
        list of RankedSkill
            n of them, or k (fewer with ``min_evidence`` or ``unique_texts``), standardised over
            these candidates.

        Warns
        -----
        SkillSightWarning
            Some of the candidates are not in the library.
        """
        of = "SkillSight.score_candidates"
        library, background, _ = self._fitted(of)
        listed = _validation.distinct_ids(ids, of=of)
        known_texts = _validation.check_per_id(texts, "texts", listed, of=of)
        known_vectors = _validation.check_per_id(embeddings, "embeddings", listed, of=of)
        if library.n_features == 0:  # an empty library, which has met no vector
            library = Library.empty(np.size(query_embedding))
        found = [library.row(id_) for id_ in listed]
        guests = [i for i, row in enumerate(found) if row is None]
        if guests:
            names = [listed[i] for i in guests]
            warnings.warn(
                f"{of}: {len(names)} of {len(listed)} candidates are not in the library and are "
                f"scored from what came with them: {_validation.some(names)}",
                SkillSightWarning,
                stacklevel=2,
            )
            guest_texts = _validation.check_texts([known_texts[i] or "" for i in guests], of=of)
            vectors = np.zeros((len(guests), library.n_features), np.float32)
            for row, i in enumerate(guests):
                vector = known_vectors[i]
                if vector is not None:
                    vectors[row] = _validation.check_embeddings(
                        [vector], [listed[i]], library.n_features, of=of
                    )[0]
            digests = _validation.text_digests(guest_texts)
            library = library.with_guests(names, vectors, digests, map(self._tokens, guest_texts))
            found = [library.row(id_) for id_ in listed]
        rows = np.sort(np.array(found, dtype=np.intp))
        ranking = self._ranking(library, background, query, query_embedding, of=of)
        k = len(rows) if k is None else _validation.check_count(k, "k", at_least=0, of=of)
        return ranking.results(ranking.shortened(ranking.order(rows)), k)

    def explain(self, query: str, query_embedding: ArrayLike, id: str) -> RankedSkill:
        """Return one skill as `rank` sees it, with the full decomposition of its score.

        A skill that is not among the candidates is scored as if it had been one more of them.

        Raises
        ------
        ValueError
            The id is not in the library.
        """
        of = "SkillSight.explain"
        library, background, _ = self._fitted(of)
        row = known_rows(library, [id], of=of)
        ranking = self._ranking(library, background, query, query_embedding, of=of)
        candidates = ranking.candidates(ranking.similarities(), library.alive)
        ranked = ranking.order(np.union1d(candidates, row))
        place = int(np.flatnonzero(ranked.rows[ranked.order] == row)[0])
        return ranking.result(ranked, place)

    def lexical_candidates(self, query: str) -> list[str]:
        """Ids of the ``pool_size`` skills with the most lexical evidence, in any order, for hosts.

        A host that searches its own store with ``project(query_embedding)`` unites what it finds
        with these before `score_candidates`; the two together are what `rank` ranks. Empty where
        the fusion takes candidates from the semantic channel alone.
        """
        of = "SkillSight.lexical_candidates"
        library, background, _ = self._fitted(of)
        nowhere = np.zeros(library.n_features, np.float32)  # words alone decide here
        ranking = self._ranking_by(library, background, query, nowhere, of=of)
        if not (self.lexical and ranking.options.fusion.lexical_candidates):
            return []
        return [library.id_at(row) for row in ranking.lexical_rows(library.alive).tolist()]

    # -- the background --------------------------------------------------------------------------

    def project(self, vectors: ArrayLike) -> Floats:
        """Take the background out of vectors: ``(I - B B^T) v``.

        Any store of unit vectors that ranks by inner product, cosine or squared distance returns
        the calibrated semantic order when it is searched with the projected query. The result is
        never scaled back to unit length: a vector that is mostly background keeps little.

        Parameters
        ----------
        vectors : array-like of shape (m,) or (n, m)
            Taken as they are, not scaled.

        Returns
        -------
        ndarray of the same shape, float32
        """
        of = "SkillSight.project"
        state = self._fitted(of)
        return state.background.project(
            _validation.check_vectors(vectors, state.library.n_features, of=of)
        )

    def background_energy(self, vectors: ArrayLike) -> NDArray[np.float64]:
        """Share of each vector that is background: ``||B^T v||^2 / ||v||^2``.

        Parameters
        ----------
        vectors : array-like of shape (n, m) or (m,)
            Not zero.

        Returns
        -------
        ndarray of shape (n,), float64
            In [0, 1]; n = 1 for one vector.
        """
        of = "SkillSight.background_energy"
        state = self._fitted(of)
        rows = np.atleast_2d(_validation.check_vectors(vectors, state.library.n_features, of=of))
        if len(rows) and not np.linalg.norm(rows, axis=1).all():
            raise ValueError(f"{of}: vectors must not be zero, got a row that is")
        return state.background.energy(rows)

    # -- files -----------------------------------------------------------------------------------

    def save(self, path: str | PathLike[str]) -> None:
        """Write the fitted library to a folder.

        The folder holds ``library.json`` and ``arrays-*.safetensors`` with a checksum. It appears
        whole or not at all: an interrupted save leaves what was there before.

        Parameters
        ----------
        path : path-like
            A folder that does not exist, or one written by `save` before.
        """
        state = self._fitted("SkillSight.save")
        parameters = self.get_params()
        tokenizer = parameters.pop("tokenizer")
        _persistence.save(
            path,
            parameters={**_plain(parameters), "tokenizer": _tokenizer_name(tokenizer)},
            encoder=state.encoder,
            library=state.library.compact(),
            background=state.background,
        )

    @classmethod
    def load(
        cls,
        path: str | PathLike[str],
        *,
        mmap: bool = True,
        encoder: Encoder | str | None = None,
        tokenizer: Tokenizer | None = None,
    ) -> Self:
        """Read a library written by `save`.

        Parameters
        ----------
        path : path-like
            The folder.
        mmap : bool, default True
            Whether the arrays stay on disk and are read as they are needed.
        encoder : Encoder or str, optional
            The encoder that queries will be embedded with; refused if the library was built with
            another one.
        tokenizer : callable, optional
            The tokenizer that the library was built with, where it was not the default.

        Raises
        ------
        LibraryFileError
            The folder holds no library, a damaged one, one of another format or of another
            encoder, dimension or tokenizer.
        """
        name = encoder_name(encoder)
        saved = _persistence.load(path, mmap=mmap, encoder=name)
        nameless = name is None or saved.encoder is None
        if nameless and encoder is not None and not isinstance(encoder, str):
            size = np.shape(encoder.encode([""]))[-1]  # names cannot tell, dimensions may
            if saved.library.n_rows and size != saved.library.n_features:
                known = saved.library.n_features
                raise _persistence.mismatch(path, "the encoder's dimension", known, size)
        given = _tokenizer_name(tokenizer)
        built_with = saved.parameters.pop("tokenizer")
        if given != built_with:
            raise _persistence.mismatch(path, "tokenizer", built_with, given)
        loaded = cls(**saved.parameters, tokenizer=tokenizer)
        loaded._state = State(saved.library, saved.background, saved.encoder)
        return loaded

    # -- the estimator contract ------------------------------------------------------------------

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the arguments of the constructor, by name."""
        names = inspect.signature(type(self).__init__).parameters
        return {name: getattr(self, name) for name in names if name != "self"}

    def set_params(self, **parameters: Any) -> Self:
        """Set arguments of the constructor; `fit` validates them."""
        for name, value in parameters.items():
            _validation.check_choice(
                name, "parameter", among=self.get_params(), of="SkillSight.set_params"
            )
            setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        defaults = inspect.signature(type(self).__init__).parameters
        changed = {n: v for n, v in self.get_params().items() if v != defaults[n].default}
        return f"{type(self).__name__}({', '.join(f'{n}={v!r}' for n, v in changed.items())})"

    # -- steps of ranking ------------------------------------------------------------------------

    def _ranking(
        self, library: Library, background: Background, query: str, embedding: ArrayLike, *, of: str
    ) -> Ranking:
        vector = _validation.check_query_embedding(embedding, library.n_features, of=of)
        return self._ranking_by(library, background, query, vector, of=of)

    def _ranking_by(
        self, library: Library, background: Background, query: str, vector: Floats, *, of: str
    ) -> Ranking:
        tokens = self._tokens(_validation.check_query(query, of=of))
        name = _validation.digest(name_key(query))
        return Ranking(library, background, self._options(), vector, tokens, name)

    def _options(self) -> Options:
        return Options(
            FUSIONS[self.fusion],
            self.pool_size,
            self.beta,
            self.semantic,
            self.lexical,
            self.min_evidence,
            self.unique_texts,
        )


def _best(
    ranking: Ranking, similarities: Floats, allowed: NDArray[np.bool_], k: int
) -> list[RankedSkill]:
    ranked = ranking.order(ranking.candidates(similarities, allowed))
    kept = ranking.shortened(ranked)
    if k > len(kept.order):
        kept = ranking.shortened(ranking.beyond(ranked, allowed))
    return ranking.results(kept, k)


def _plain(parameters: dict[str, Any]) -> dict[str, Any]:
    """Numbers of numpy as numbers of Python, which JSON knows."""
    return {n: v.item() if isinstance(v, np.generic) else v for n, v in parameters.items()}


def _tokenizer_name(tokenizer: Tokenizer | None) -> str | None:
    if tokenizer is None:
        return None
    return f"{tokenizer.__module__}.{getattr(tokenizer, '__qualname__', type(tokenizer).__name__)}"
