"""The few tools that a conversation needs, out of many."""

from __future__ import annotations

import re
import threading
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import zip_longest
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike

from skillsight_core import _validation
from skillsight_core._cache import CachedEncoder
from skillsight_core._encoders import Encoder, encoder_name
from skillsight_core._errors import SkillSightWarning
from skillsight_core._estimator import SkillSight
from skillsight_core._learning import FEWEST_SKILLS
from skillsight_core._messages import called_tools, check_messages, recent_queries
from skillsight_core._result import RankedSkill
from skillsight_core._skills import FIELDS, checked_fields
from skillsight_core._tools import Found, read_tools

_WORD = re.compile(r"[\w./:-]+")  # what the name of a tool may consist of
_QUOTED = re.compile(r"([`'\"])([\w./:-]+)\1")


class _Tools(NamedTuple):
    """The tools of one moment."""

    by_id: Mapping[str, Found]
    by_name: Mapping[str, Sequence[str]]

    @classmethod
    def of(cls, by_id: dict[str, Found]) -> Self:
        by_name: dict[str, list[str]] = {}
        for id_, found in by_id.items():
            if found.skill is not None:
                by_name.setdefault(found.skill.name, []).append(id_)
        return cls(by_id, by_name)


class ToolSelector:
    """Chooses the tools that a model should see, for a query or at a turn of a conversation.

    Chosen are the ``k`` tools that a `SkillSight` over all of them ranks first and, beyond these,
    every tool that the query names exactly (as an identifier, in quotes, or with nothing else),
    that was called in the conversation, or that is always included. Tools that the provider runs
    itself (``{"type": "web_search"}``) are always there.

    Selection is not access control: a host may still run a tool that was not selected.

    Parameters
    ----------
    tools : object
        Anything that `load_tools` reads; may be empty.
    encoder : Encoder
        Encodes tools and queries. If it has a name, vectors of tools (never of queries) are kept
        on disk by a `CachedEncoder`; give one yourself to choose the folder.
    k : int, default 3
        How many tools the ranking brings.
    always_include : iterable of str, optional
        Names of tools that are always selected.
    query_from_messages : callable, optional
        From the messages to the query, a str. By default there are two queries, which take turns
        to bring a tool, the better answered one first: the last message of the user after the few
        before it, as long as all of it is short, so that "do it" finds what it is about, and that
        message alone, so that a new topic is found.
    fields : iterable of str
        What the text of each tool consists of; see `load_tools`.
    **options
        Arguments of `SkillSight`, for instance ``min_evidence=0.2`` to select fewer than k tools
        where nothing answers the query. With fewer than six tools no background is removed.

    Attributes
    ----------
    tools : list
        The very objects that were given, in order.
    calibrator : SkillSight
        What ranks them; its ids are those of `load_tools`.
    query_encoder : Encoder
        What encodes queries: the given encoder, without a cache.

    Warns
    -----
    SkillSightWarning
        A name in ``always_include`` is not the name of a tool (it may be added later).

    Raises
    ------
    TypeError, ValueError
        An argument is not as said above.

    Notes
    -----
    May be used from many threads, while another one adds or removes tools.
    """

    def __init__(
        self,
        tools: Any,
        encoder: Encoder,
        *,
        k: int = 3,
        always_include: Iterable[str] = (),
        query_from_messages: Callable[[list[Any]], str] | None = None,
        fields: Iterable[str] = FIELDS,
        **options: Any,
    ) -> None:
        of = "ToolSelector"
        if isinstance(encoder, str | type) or not isinstance(encoder, Encoder):
            raise TypeError(
                f"{of}: encoder must be an object with a method encode, got {encoder!r}"
            )
        if isinstance(always_include, str):
            raise TypeError(f"{of}: always_include must be a sequence of str, got one str")
        self.k = _validation.check_count(k, "k", at_least=0, of=of)
        self.always_include = tuple(always_include)
        self._query_from_messages = query_from_messages
        self._fields = checked_fields(fields, of=of)
        cached = isinstance(encoder, CachedEncoder)
        named = encoder_name(encoder) is not None
        self._tool_encoder = CachedEncoder(encoder) if named and not cached else encoder
        self.query_encoder = encoder.encoder if isinstance(encoder, CachedEncoder) else encoder
        self.calibrator = SkillSight(**options)
        self._background = self.calibrator.background
        self._lock = threading.Lock()
        self._tools = _Tools.of({})
        self.calibrator.set_params(background="none").fit([], np.zeros((0, 0)), encoder=encoder)
        self._add(tools, of=of)
        missing = [name for name in self.always_include if name not in self._tools.by_name]
        if missing:
            warnings.warn(
                f"{of}: always_include must be names of tools, got some that are not: "
                f"{_validation.some(missing)}",
                SkillSightWarning,
                stacklevel=2,
            )

    @property
    def tools(self) -> list[Any]:
        return [found.tool for found in self._tools.by_id.values()]

    def select(
        self,
        query_or_messages: str | Sequence[Any],
        k: int | None = None,
        *,
        query_embeddings: ArrayLike | None = None,
    ) -> list[Any]:
        """Select tools.

        Parameters
        ----------
        query_or_messages : str or sequence of messages
            The task in words, or a conversation up to now in the form of OpenAI, Anthropic,
            LangChain or LlamaIndex.
        k : int, optional
            As for the constructor; 0 leaves the ranking out.
        query_embeddings : array-like of shape (q, m), optional
            Vectors of ``queries_of(query_or_messages)``, for hosts that compute them themselves.

        Returns
        -------
        list
            The very objects that were given, in the order they were given in.

        Raises
        ------
        TypeError, ValueError
            An argument is not as said above.
        """
        of = "ToolSelector.select"
        k = self.k if k is None else _validation.check_count(k, "k", at_least=0, of=of)
        tools = self._tools
        queries = self.queries_of(query_or_messages)
        names = set(self.always_include).union(*map(_names_in, queries))
        if not isinstance(query_or_messages, str):
            names |= called_tools(query_or_messages)
        chosen = {id_ for name in names for id_ in tools.by_name.get(name, ())}
        if k and tools.by_name:
            if query_embeddings is None:
                query_embeddings = self.query_encoder.encode(queries)
            vectors = list(np.asarray(query_embeddings))
            if len(vectors) != len(queries):
                raise ValueError(
                    f"{of}: query_embeddings must have one row for each of the {len(queries)} "
                    f"queries, got {len(vectors)}"
                )
            rankings = [
                self.calibrator.rank(query, vector, k=k)
                for query, vector in zip(queries, vectors, strict=True)
            ]
            chosen.update(_in_turns(rankings)[:k])
        return [
            found.tool for id_, found in tools.by_id.items() if id_ in chosen or found.skill is None
        ]

    def queries_of(self, query_or_messages: str | Sequence[Any]) -> list[str]:
        """What tools are ranked for: a str itself, for messages what they boil down to."""
        if isinstance(query_or_messages, str):
            return [query_or_messages]
        messages = check_messages(query_or_messages, of="ToolSelector.select")
        if self._query_from_messages is None:
            return recent_queries(messages)
        query = self._query_from_messages(messages)
        if not isinstance(query, str):
            raise TypeError(
                "ToolSelector.select: query_from_messages must return a str, "
                f"got {type(query).__name__}"
            )
        return [query]

    def add(self, tools: Any) -> Self:
        """Add tools, after those there are; they are selected from the next call on.

        The background is learned anew: many tools are better added in one call than in many.

        Parameters
        ----------
        tools : object
            Anything that `load_tools` reads.
        """
        self._add(tools, of="ToolSelector.add")
        return self

    def remove(self, names: str | Iterable[str]) -> Self:
        """Remove all tools of a name, or of several names.

        Raises
        ------
        ValueError
            There is no tool of a name; nothing is removed then.
        """
        wanted = [names] if isinstance(names, str) else list(dict.fromkeys(names))
        with self._lock:
            unknown = [name for name in wanted if name not in self._tools.by_name]
            if unknown:
                raise ValueError(
                    "ToolSelector.remove: names must be names of tools, got some that are not: "
                    f"{_validation.some(unknown)}"
                )
            gone = {id_ for name in wanted for id_ in self._tools.by_name[name]}
            kept = {i: found for i, found in self._tools.by_id.items() if i not in gone}
            self._tools = _Tools.of(kept)
            self.calibrator.remove(gone)
            self._refresh()
        return self

    def __contains__(self, name: object) -> bool:
        """Whether there is a tool of this name."""
        return name in self._tools.by_name

    def __len__(self) -> int:
        return len(self._tools.by_id)

    def __repr__(self) -> str:
        return f"<ToolSelector: {len(self)} tools, k={self.k}>"

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_lock"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, _lock=threading.Lock())

    def _add(self, tools: Any, *, of: str) -> None:
        with self._lock:
            by_id = dict(self._tools.by_id)
            found = read_tools(tools, fields=self._fields, taken=by_id, of=of)
            skills = [entry.skill for entry in found if entry.skill is not None]
            if skills:
                texts = [skill.text for skill in skills]
                vectors = self._tool_encoder.encode(texts)
                self.calibrator.add(texts, vectors, [skill.id for skill in skills])
                self._refresh()
            for entry in found:
                key = entry.skill.id if entry.skill else f"provider:{id(entry.tool)}"
                by_id[key] = entry
            self._tools = _Tools.of(by_id)

    def _refresh(self) -> None:
        enough = self.calibrator.n_skills_ >= FEWEST_SKILLS
        self.calibrator.set_params(background=self._background if enough else "none").refresh()


def _in_turns(rankings: Sequence[Sequence[RankedSkill]]) -> list[str]:
    """The first of each ranking, then the second of each, and so on, each id once.

    The ranking that is closest to its query begins, measured by the best semantic score, which
    compares between queries: "do it" alone is close to nothing.
    """
    by_closeness = sorted(
        rankings, key=lambda hits: -max((hit.semantic for hit in hits), default=0)
    )
    turns = zip_longest(*by_closeness)
    return list(dict.fromkeys(hit.id for turn in turns for hit in turn if hit is not None))


def _names_in(query: str) -> set[str]:
    """What a query may call by name: the whole of it, identifiers, and words in quotes.

    An ordinary word ("search") is more often meant as a word, and counts as evidence only.
    """
    words = (word.strip("./:-") for word in _WORD.findall(query))
    identifiers = {word for word in words if not _is_plain(word)}
    return {query.strip(), *identifiers, *(quoted for _, quoted in _QUOTED.findall(query))}


def _is_plain(word: str) -> bool:
    return word.isalpha() and word in (word.lower(), word.upper(), word.capitalize())
