"""One SKILL.md: bytes to front matter and body, by the best reading there is.

The format (agentskills.io) is YAML front matter between two lines of ``---``, then Markdown. Valid
files are read to the letter. Of the others as much is read as can be, and every departure is
noted with its line. YAML values stay text as written: ``version: 1.10`` is not 1.1, and
``name: no`` is not False.
"""

from __future__ import annotations

import codecs
import re
import reprlib
import textwrap
from dataclasses import dataclass
from itertools import groupby
from typing import Any, NamedTuple

from skillsight_core._errors import require

_BOMS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_DEEPEST = 32  # levels of front matter: what copies, pickles or prints it recurses as deep
_LONGEST_DESCRIPTION = 1024  # characters, by the format
_CONTROLS = re.compile(r"[\x00-\x08\x0e-\x1a\x1c-\x1f]")
# A key at the start of a line. No space after the colon is needed, but https:// is no key.
_KEY = re.compile(r"""^(["']?)([^\W\d][\w.-]*)\1[ \t]*:(?!//)""")
_BLOCK_MARK = re.compile(r"^[|>][+-]?[1-9]?[+-]?(?=\s|$)")


class Repair(NamedTuple):
    """Where a file is not what the format asks for (line, counted from 1), and what was done."""

    line: int | None
    reason: str


class UnreadableError(ValueError):
    """There is no skill to be had from these bytes; the message is the reason."""


@dataclass(frozen=True)
class SkillFile:
    """What one file says, and the repairs it took to read it.

    The values of ``metadata`` are text as written, lists and mappings of it, or None.
    """

    name: str
    description: str
    body: str
    metadata: dict[str, Any]
    repairs: list[Repair]


class _Entry(NamedTuple):
    value: Any
    line: int


class _InvalidYamlError(ValueError):
    def __init__(self, problem: str, line: int = 0) -> None:
        super().__init__(problem)
        self.line = line  # from 0, within the text that was parsed


def parse(data: bytes, folder: str, *, cut: bool = False) -> SkillFile:
    """Read a SKILL.md.

    Parameters
    ----------
    data : bytes
        The file, or its beginning.
    folder : str
        Name of the folder it is in, which stands in for a missing name.
    cut : bool
        Whether it is only the beginning, which may end within a character.

    Raises
    ------
    UnreadableError
        The file is not text, or says nothing.
    """
    repairs: list[Repair] = []
    text = _decode(data, cut, repairs).removeprefix("\ufeff")
    front, body = _split(text.replace("\r\n", "\n").replace("\r", "\n").split("\n"), repairs)
    given = front.pop("description", None)
    name = " ".join(_as_text("name", front.pop("name", None), repairs).split())
    description = _as_text("description", given, repairs)
    if not (name or description or body):
        raise UnreadableError("no name, no description and no body")
    if not name:
        name = folder
        repairs.append(Repair(1, "no name (that of the folder is used)"))
    if not description:
        description = first_paragraph(body)
        instead = " (the first paragraph is used)" if description else ""
        repairs.append(Repair(1, f"no description{instead}"))
    elif len(description) > _LONGEST_DESCRIPTION:
        reason = (
            f"description of {len(description):,} characters, more than the "
            f"{_LONGEST_DESCRIPTION:,} of the format (kept whole)"
        )
        repairs.append(Repair(given.line if given else None, reason))
    metadata = {key: entry.value for key, entry in front.items()}
    return SkillFile(name, description, body, metadata, repairs)


def _split(lines: list[str], repairs: list[Repair]) -> tuple[dict[str, _Entry], str]:
    """Divide a file into front matter and body."""
    start = next((i for i, line in enumerate(lines) if line.strip()), None)
    if start is None:
        raise UnreadableError("empty file")
    if lines[start].strip() != "---":
        repairs.append(Repair(start + 1, "no front matter"))
        return {}, "\n".join(lines).strip()
    if start > 0:
        repairs.append(Repair(start + 1, "front matter begins after the first line"))
    inner = lines[start + 1 :]
    end = next((i for i, line in enumerate(inner) if line.rstrip() in ("---", "...")), None)
    if end is None:
        reason = "front matter is not closed (taken to end at a blank line)"
        repairs.append(Repair(start + 1, reason))
        breaks = (i for i, line in enumerate(inner) if not line.strip() or line.startswith("#"))
        end = next(breaks, len(inner))
        rest = inner[end:]
    else:
        rest = inner[end + 1 :]
    front, unread = _front_matter(inner[:end], start + 2, repairs)
    return front, "\n".join([*unread, "", *rest]).strip()


def _decode(data: bytes, cut: bool, repairs: list[Repair]) -> str:
    encoding = next((name for bom, name in _BOMS if data.startswith(bom)), None)
    if encoding is None:
        # Without a mark, the zero bytes of the first characters tell: they are ASCII.
        zeros = [byte == 0 for byte in data[:4]]
        wide = {"utf-16-le": [False, True] * 2, "utf-16-be": [True, False] * 2}
        encoding = next((name for name, pattern in wide.items() if zeros == pattern), "utf-8")
    legacy = False
    try:
        text = codecs.getincrementaldecoder(encoding)().decode(data, final=not cut)
        if encoding.startswith("utf-16"):
            repairs.append(Repair(1, f"encoded as {encoding}, not UTF-8"))
    except UnicodeDecodeError as error:
        text = data.decode(encoding, "replace")
        wrong = text.count("\ufffd")
        # A few bad bytes in good UTF-8, or a text that never was UTF-8?
        legacy = encoding == "utf-8" and 2 * wrong >= sum(char > "\x7f" for char in text)
        if legacy:
            text, encoding = _decode_legacy(data)
            reason = f"not UTF-8 (read as {encoding})"
        else:
            reason = f"not valid {encoding} ({wrong} characters could not be read)"
        repairs.append(Repair(data.count(b"\n", 0, error.start) + 1, reason))
    if "\0" in text or (legacy and _CONTROLS.search(text)):
        raise UnreadableError("not a text file")
    return text


def _decode_legacy(data: bytes) -> tuple[str, str]:
    try:
        return data.decode("cp1252"), "cp1252"
    except UnicodeDecodeError:
        return data.decode("latin-1"), "latin-1"


def _front_matter(
    lines: list[str], first: int, repairs: list[Repair]
) -> tuple[dict[str, _Entry], list[str]]:
    """Read the lines from line ``first`` on, and give back those that are something else."""
    found: list[Repair] = []
    try:
        front = _yaml("\n".join(lines), first, found)
    except _InvalidYamlError as error:
        reason = f"front matter is not valid YAML: {error} (read line by line)"
        repairs.append(Repair(first + error.line, reason))
        return _line_by_line(lines, first, repairs)
    repairs += found
    return front, []


def _line_by_line(
    lines: list[str], first: int, repairs: list[Repair]
) -> tuple[dict[str, _Entry], list[str]]:
    """Each key with its lines by itself, so that one that is broken spoils no other.

    A key without valid YAML is read as plain text: the rest of the line and what continues it. A
    line that neither is a key nor continues one ends the front matter.
    """
    lines = textwrap.dedent("\n".join(lines).expandtabs(4)).split("\n")
    starts: list[int] = []
    end, after_blank = len(lines), False
    for number, line in enumerate(lines):
        if _KEY.match(line):
            starts.append(number)
        elif line.startswith("#"):
            continue
        elif line.strip() and (not starts or (after_blank and line[0] not in " -")):
            end = number
            break
        after_blank = not line.strip()
    while 0 < end < len(lines) and (not lines[end - 1].strip() or lines[end - 1][0] == "#"):
        end -= 1  # what looked like a comment is a heading of the text that follows
    front: dict[str, _Entry] = {}
    for start, stop in zip(starts, [*starts[1:], end], strict=False):
        for key, value in _entry(lines[start:stop], first + start, repairs).items():
            if key in front:
                repairs.append(_repeated(key, first + start))
            front[key] = value
    return front, lines[end:]


def _entry(lines: list[str], first: int, repairs: list[Repair]) -> dict[str, _Entry]:
    found: list[Repair] = []
    try:
        entry = _yaml("\n".join(lines), first, found)
    except _InvalidYamlError:
        _, _, key, value = _KEY.split(lines[0], maxsplit=1)
        kept = [value, *(line for line in lines[1:] if line[:1] != "#")]
        text = _BLOCK_MARK.sub("", " ".join(" ".join(kept).split()), count=1).strip()
        return {key: _Entry(_unquoted(text), first)}
    repairs += found
    return entry


def _unquoted(text: str) -> str:
    """Take away the quotes around a text if it is clear that they belong together."""
    inner = text[1:-1]
    quoted = len(text) > 1 and text[0] == text[-1] and text[0] in "\"'" and text[0] not in inner
    return inner if quoted else text


def _yaml(text: str, first: int, repairs: list[Repair]) -> dict[str, _Entry]:
    yaml = require("yaml", extra="", purpose="reading SKILL.md")
    try:
        # Composed, not constructed: nodes have lines and the text as written, and aliases cost
        # nothing until someone follows them.
        root = yaml.compose(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
        value = None if root is None else _value(root, _DEEPEST, set(), first, repairs)
    except yaml.YAMLError as error:
        problem = getattr(error, "problem", None) or getattr(error, "reason", None) or "unreadable"
        mark = getattr(error, "problem_mark", None)
        raise _InvalidYamlError(problem, mark.line if mark else 0) from error
    except RecursionError as error:
        raise _InvalidYamlError("nested too deeply") from error
    except _InvalidYamlError:
        raise
    except ValueError as error:  # an escape beyond Unicode, in the parser written in Python
        raise _InvalidYamlError(str(error)) from error
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise _InvalidYamlError("not a mapping of keys to values")
    lines = {_clean(key.value): first + key.start_mark.line for key, _ in root.value}
    return {key: _Entry(item, lines[key]) for key, item in value.items()}


def _value(node: Any, depth: int, seen: set[int], first: int, repairs: list[Repair]) -> Any:
    """Text, lists and mappings of a YAML node; refuses aliases, which can grow without bound."""
    if depth == 0:
        raise _InvalidYamlError("nested too deeply", node.start_mark.line)
    if id(node) in seen:
        raise _InvalidYamlError("an alias", node.start_mark.line)
    seen.add(id(node))
    if node.id == "scalar":
        if node.tag == "tag:yaml.org,2002:null":
            return None
        return _clean(node.value)
    if node.id == "sequence":
        return [_value(item, depth - 1, seen, first, repairs) for item in node.value]
    mapping: dict[str, Any] = {}
    for key_node, value_node in node.value:
        if key_node.id != "scalar":
            raise _InvalidYamlError("a key that is not text", key_node.start_mark.line)
        seen.add(id(key_node))
        key = _clean(key_node.value)
        if key in mapping:
            repairs.append(_repeated(key, first + key_node.start_mark.line))
        mapping[key] = _value(value_node, depth - 1, seen, first, repairs)
    return mapping


def _clean(text: str) -> str:
    """Replace what escapes can make and databases refuse: lone surrogates and NUL."""
    return text.encode("utf-8", "replace").decode().replace("\0", "\ufffd")


def _repeated(key: str, line: int) -> Repair:
    return Repair(line, f"{reprlib.repr(key)} given more than once (the last one counts)")


def _as_text(key: str, entry: _Entry | None, repairs: list[Repair]) -> str:
    value = entry.value if entry else None
    if entry is not None and isinstance(value, list | dict):
        kind = "list" if isinstance(value, list) else "mapping"
        repairs.append(Repair(entry.line, f"{key} is a {kind} (joined)"))
    return _joined(value).strip()


def _joined(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(map(_joined, value))
    if isinstance(value, dict):
        return ", ".join(f"{key}: {_joined(item)}" for key, item in value.items())
    return "" if value is None else str(value)


def first_paragraph(body: str) -> str:
    """Join the first lines that are prose: not blank, no heading, rule, fence or comment."""

    def is_prose(line: str) -> bool:
        return bool(line.strip()) and not line.lstrip().startswith(("#", "---", "```", "<!--"))

    for prose, lines in groupby(body.split("\n"), is_prose):
        if prose:
            return " ".join(line.strip() for line in lines)
    return ""
