"""What is wrong with the texts: look-alike and invisible characters, nothing to go by."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable

import numpy as np

from skillsight_core._diagnosis._model import Finding, Texts
from skillsight_core._diagnosis._words import vocabulary
from skillsight_core._library import Library
from skillsight_core._skillmd import first_paragraph
from skillsight_core._skills import Skill

_ALPHABETS = ("LATIN", "CYRILLIC", "ARMENIAN", "CHEROKEE")
# Greek letters are signs in Latin words, as in "TGF-β", "PPARγ" and "NFκB", unless they look like
# Latin ones and stand in the midst of at least four, or are an omicron, which is a sign of nothing.
_GREEK_IN_LATIN = re.compile(
    "[a-z]\u03bf|\u03bf[a-z]|(?<=[a-z]{2})[αεικνρτυχ](?=[a-z]{2})"
    "|(?<=[a-z])[αεικνρτυχ](?=[a-z]{3})|(?<=[a-z]{3})[αεικνρτυχ](?=[a-z])"
)
_JOINER = re.compile("[._'-]+")
# Zero-width, bidirectional and tag characters. Variation selectors and joiners belong to emoji
# and to scripts that need them, and are suspect only after plain Latin letters.
_INVISIBLE = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f"
    "\u3164\ufeff\uffa0\U000e0000-\U000e007f]|(?<=[A-Za-z])[\u200c\u200d\ufe00-\ufe0f]"
)


def measure(library: Library, skills: Iterable[Skill] | None) -> Texts:
    """Look at the words of a compact library and, where they are known, at its skills."""
    ids = np.array(library.ids, dtype=object)
    mixed = []
    for number, token in enumerate(vocabulary(library)):
        if not token.isascii() and _mixes_alphabets(token):
            rows = library.postings(np.array([number], np.int32)).rows
            mixed.append(Finding(token, tuple(ids[np.sort(rows)])))
    wordless = tuple(ids[library.lengths == 0])
    if skills is None:
        return Texts(tuple(mixed), None, None, wordless)
    hidden: dict[str, list[str]] = {}
    undescribed = []
    for skill in skills:
        for character in sorted(set(_INVISIBLE.findall(skill.text))):
            hidden.setdefault(_named(character), []).append(skill.id)
        if not skill.description.strip() or skill.description == first_paragraph(skill.body):
            undescribed.append(skill.id)
    invisible = tuple(Finding(name, tuple(found)) for name, found in sorted(hidden.items()))
    return Texts(tuple(mixed), invisible, tuple(undescribed), wordless)


def _mixes_alphabets(token: str) -> bool:
    parts = _JOINER.split(token)  # "email-маркетинг" is two words
    return any(
        len({_alphabet(letter) for letter in part} - {""}) > 1 or _GREEK_IN_LATIN.search(part)
        for part in parts
    )


def _alphabet(letter: str) -> str:
    script = unicodedata.name(letter, "").partition(" ")[0]
    return script if script in _ALPHABETS else ""


def _named(character: str) -> str:
    return f"U+{ord(character):04X} {unicodedata.name(character, 'unnamed').lower()}"
