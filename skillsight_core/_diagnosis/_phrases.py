"""Phrases: what many skills share word for word."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from itertools import pairwise

from skillsight_core._diagnosis._model import Phrase

_ROW = 3  # words in a row that make a phrase
_FEWEST, _SHARE = 3, 0.05  # skills that have to share it, and of the library

_END = re.compile(r"[.!?;\u3002]\s*(?=\s|$)|\n\s*(?:\n|[-*#>|]|\d+[.)]\s)")  # of a sentence or item
# Identifiers and hyphenated words are one word; scripts without spaces have one to a character.
_WORD = re.compile(r"[\u0e00-\u0eff\u3040-\u30ff\u3400-\u9fff]|[^\W_]+(?:[-_.'\u2019]+[^\W_]+)*")


class Phrases:
    """The phrases of a library.

    Three words in a row of a sentence count once for each skill that has them. They are shared
    when at least three skills and 5 % of all have them; a phrase is a longest run of words of
    which every three in a row are shared. Time and memory are linear in the length of the texts.

    Parameters
    ----------
    texts : mapping of str to str
        Text of each skill by its id.
    """

    def __init__(self, texts: Mapping[str, str]) -> None:
        self._sentences = {
            id_: [_WORD.findall(sentence) for sentence in _END.split(text.lower())]
            for id_, text in texts.items()
        }
        found = Counter(
            row
            for sentences in self._sentences.values()
            for row in {row for words in sentences for row in _rows(words)}
        )
        fewest = max(_FEWEST, _SHARE * len(texts))
        self._shared = {row: count for row, count in found.items() if count >= fewest}

    def of(self, id_: str, most: int) -> tuple[Phrase, ...]:
        """The longest phrases of one skill, of equal ones the most shared first."""
        found = {phrase for words in self._sentences[id_] for phrase in self._runs(words)}
        return _apart(sorted(found, key=lambda p: (-p.text.count(" "), -p.n_skills, p.text)), most)

    def most_shared(self, most: int) -> tuple[Phrase, ...]:
        """The phrases that most skills share, of equal ones the longest first."""
        found = {
            phrase
            for sentences in self._sentences.values()
            for words in sentences
            for phrase in self._runs(words)
        }
        return _apart(sorted(found, key=lambda p: (-p.n_skills, -len(p.text), p.text)), most)

    def _runs(self, words: list[str]) -> set[Phrase]:
        counts = [self._shared.get(row, 0) for row in _rows(words)]
        borders = [-1, *(i for i, count in enumerate(counts) if not count), len(counts)]
        return {
            Phrase(" ".join(words[before + 1 : end + _ROW - 1]), min(counts[before + 1 : end]))
            for before, end in pairwise(borders)
            if end > before + 1
        }


def _rows(words: list[str]) -> list[tuple[str, ...]]:
    return [tuple(words[i : i + _ROW]) for i in range(len(words) - _ROW + 1)]


def _apart(phrases: list[Phrase], most: int) -> tuple[Phrase, ...]:
    """The first phrases, without those that hold or lie within one before them."""
    chosen: list[Phrase] = []
    for phrase in phrases:
        if len(chosen) == most:
            break
        if not any(_within(phrase, other) or _within(other, phrase) for other in chosen):
            chosen.append(phrase)
    return tuple(chosen)


def _within(part: Phrase, whole: Phrase) -> bool:
    return f" {part.text} " in f" {whole.text} "
