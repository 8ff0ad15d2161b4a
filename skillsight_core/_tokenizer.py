"""Text to tokens: one function for documents and queries alike."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from functools import lru_cache

Tokenizer = Callable[[str], list[str]]
"""Anything that turns a text into tokens; the same one must see documents and queries."""

# Characters that are drawn as nothing: they hide in pasted text and split words that look whole.
_INVISIBLE = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e"
    "\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\U000e0000-\U000e007f]"
)

# Scripts written without spaces, where a pair of characters does the work of a word:
# Han, kana, bopomofo, hangul, Thai, Lao, Burmese, Khmer.
_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1100-\u11ff\u1780-\u17ff\u3005-\u3007\u3040-\u312f\u3130-\u318f"
    "\u31a0-\u31bf\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff"
    "\U00020000-\U0003ffff"
)
# Vowel signs and other marks are part of the word although `\w` leaves most of them out.
_MARKS = (
    "\u0300-\u036f\u0483-\u0489\u0591-\u05c7\u0610-\u061a\u064b-\u065f\u0670"
    "\u0900-\u0963\u0971-\u0dff"
)
_LETTER = rf"(?:(?![{_UNSPACED}])(?:[^\W_]|[{_MARKS}]))"

# A chunk is a run of unspaced script, or letters and digits held together by the signs that
# belong to names: get_accounts, mcp__server__tool, node.js, v6.2.8, .NET, C++, F#, don't.
# Letters and joiners are disjoint classes, so there is one way to match and time is linear.
_CHUNK = re.compile(rf"[{_UNSPACED}]+|\.?{_LETTER}+(?:[._'-]+{_LETTER}+)*(?:\+\+|\#)?")
_ASCII_CHUNK = re.compile(r"\.?[A-Za-z0-9]+(?:[._'-]+[A-Za-z0-9]+)*(?:\+\+|#)?")
_IS_UNSPACED = re.compile(f"[{_UNSPACED}]")
# Not to be split: words, acronyms and their plurals (PDFs), names that end in a sign, don't.
_PLAIN = re.compile(r"[A-Z]?[^A-Z._'-]*|[A-Z0-9]+s?|.*(?:\+|\#)|[^._'-]*'[^._-]*")
_VERSION = re.compile(r"v?\d+(?:[.-]\d+)+")
_JOINER = re.compile(r"[._'+#-]+")
# Humps: plural acronyms (listPDFs), acronyms before a word (HTML5Page), words, other acronyms.
_CAMEL = re.compile(
    r"[A-Z]{2,}[0-9]*s(?![a-z0-9])|[A-Z]+[0-9]*(?=[A-Z][a-z])|[A-Z]?[a-z0-9]+|[A-Z0-9]+"
)

_LONGEST = 128  # what is longer is a key, a digest or an encoded file, never a word someone types


def tokenize(text: str) -> list[str]:
    """Split a text into lower-case tokens.

    The text is normalised (NFKC; zero-width and bidirectional controls removed). Words are kept
    whole. Identifiers are kept whole *and* split at joiners and at camel-case humps, so that
    ``get_accounts`` gives ``get_accounts``, ``get`` and ``accounts``. Versions and names with
    signs (``v6.2.8``, ``7.23``, ``c++``, ``.net``) and single letters survive. Scripts written
    without spaces become character bigrams (one character stands for itself). Time is linear in
    the length of the text.

    Parameters
    ----------
    text : str
        Any text; the empty text has no tokens.

    Returns
    -------
    list of str
        Tokens in the order of the text, repetitions included, at most 128 characters each.

    Examples
    --------
    >>> tokenize("listPullRequests in C++")
    ['listpullrequests', 'list', 'pull', 'requests', 'in', 'c++']
    """
    if text.isascii():
        chunks = _ASCII_CHUNK.findall(text)
    else:
        chunks = _CHUNK.findall(_INVISIBLE.sub("", unicodedata.normalize("NFKC", _unquoted(text))))
    return [token for chunk in chunks for token in _expand(chunk)]


def name_key(text: str) -> str:
    """The name that a text begins with, its first line, by its letters and digits alone.

    "PDF merge", "pdf-merge" and "pdf_merge" are one name.
    """
    first = unicodedata.normalize("NFKC", text.lstrip().partition("\n")[0])
    return "".join(filter(str.isalnum, first.casefold()))


def _unquoted(text: str) -> str:
    return text.replace("\u2019", "'").replace("\u2011", "-")  # typographic apostrophe, hyphen


@lru_cache(maxsize=1 << 16)
def _expand(chunk: str) -> tuple[str, ...]:
    """Tokens of one chunk; cached, since a library uses few surface forms very often."""
    if _IS_UNSPACED.match(chunk):
        return tuple(chunk[i : i + 2] for i in range(max(len(chunk) - 1, 1)))
    whole = chunk.lower().removesuffix("'s")
    parts: list[str] = []
    if _VERSION.fullmatch(whole):
        parts = [whole[1:]] if whole[0] == "v" else []
    elif not _PLAIN.fullmatch(chunk):
        pieces = _JOINER.split(chunk)
        parts = [hump.lower() for piece in pieces for hump in _humps(piece)]
    return tuple(token for token in dict.fromkeys([whole, *parts]) if len(token) <= _LONGEST)


def _humps(piece: str) -> list[str]:
    return _CAMEL.findall(piece) if piece.isascii() else [piece]
