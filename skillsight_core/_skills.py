"""Skills as text: what a skill is, and reading a tree of SKILL.md files."""

from __future__ import annotations

import os
import stat
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, overload

from skillsight_core._errors import SkillSightWarning
from skillsight_core._skillmd import Repair, UnreadableError, parse
from skillsight_core._skilltree import Found, as_text, find

FIELDS = ("name", "description", "body")
_MOST_BYTES = 1 << 20  # of one file; what follows is data, not instructions
_NAMED = 3  # files that a warning names; the report has all of them
_LISTED = 10  # and a summary
_REASONS = 5  # reasons that the note of one file gives


@dataclass(frozen=True)
class Skill:
    """One skill, or anything else that is found by its text.

    Attributes
    ----------
    id : str
        Identity; names and texts may repeat, ids may not.
    name, description, body : str
        The text; each may be empty.
    metadata : mapping of str to object
        Everything else that is known, as a read-only copy. From a SKILL.md: the remaining front
        matter, its values text as written, or lists and mappings of it, or None.
    fields : tuple of str
        What `text` consists of, in this order; some of "name", "description", "body".

    Raises
    ------
    TypeError, ValueError
        A part is not a str, the id is empty, or a field is unknown or repeated.
    """

    id: str
    name: str
    description: str
    body: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict, hash=False)
    fields: tuple[str, ...] = field(default=FIELDS, kw_only=True)

    def __post_init__(self) -> None:
        kinds = {"id": str, **dict.fromkeys(FIELDS, str), "metadata": Mapping}
        for part, kind in kinds.items():
            value = getattr(self, part)
            if not isinstance(value, kind):
                allowed, got = kind.__name__.lower(), type(value).__name__
                raise TypeError(f"Skill: {part} must be a {allowed}, got {got}")
        if not self.id:
            raise ValueError("Skill: id must not be empty, got ''")
        object.__setattr__(self, "metadata", _ReadOnly(self.metadata))
        object.__setattr__(self, "fields", checked_fields(self.fields, of="Skill"))

    @property
    def text(self) -> str:
        """What is embedded and tokenised: the chosen fields, one after another on new lines."""
        return "\n".join(part for part in (getattr(self, name) for name in self.fields) if part)


class _ReadOnly(Mapping[str, Any]):
    """A mapping that cannot be changed but, unlike ``MappingProxyType``, copied and pickled."""

    __slots__ = ("_items",)

    def __init__(self, items: Mapping[str, Any]) -> None:
        self._items = dict(items)

    def __getitem__(self, key: str) -> Any:
        return self._items[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def __repr__(self) -> str:
        return repr(self._items)


@dataclass(frozen=True)
class FileNote:
    """What happened to one file.

    Attributes
    ----------
    path : str
        Relative to the folder that was loaded, with forward slashes.
    line : int or None
        Line of the first reason, counted from 1, where there is one.
    reason : str
        In words that follow the path.
    """

    path: str
    line: int | None
    reason: str

    def __str__(self) -> str:
        path = self.path if self.path.isprintable() else repr(self.path)
        where = path if self.line is None else f"{path}:{self.line}"
        return f"{where}: {self.reason}"


@dataclass(frozen=True)
class LoadReport:
    """What became of every file; ``str()`` of it is a summary to read.

    Attributes
    ----------
    loaded : tuple of str
        The file of each skill of the library, in its order, repaired ones included.
    repaired : tuple of FileNote
        Files of which the skill was loaded although they are not what the format asks for, one
        note for each.
    skipped : tuple of FileNote
        Files, folders and links that gave no skill.
    """

    loaded: tuple[str, ...]
    repaired: tuple[FileNote, ...]
    skipped: tuple[FileNote, ...]

    def __str__(self) -> str:
        lines = [
            f"{_count(len(self.loaded), 'skill')} loaded, {len(self.repaired)} of them repaired; "
            f"{len(self.skipped)} skipped"
        ]
        for what, notes in (("repaired", self.repaired), ("skipped", self.skipped)):
            lines += [f"  {what} {line}" for line in _some(notes, _LISTED)]
        return "\n".join(lines)


@dataclass(frozen=True, repr=False)
class SkillLibrary(Sequence[Skill]):
    """Skills in order of their ids, and the report of how they were loaded.

    A slice of it is a list of skills.

    Attributes
    ----------
    skills : tuple of Skill
        No id occurs twice.
    report : LoadReport
    """

    skills: tuple[Skill, ...]
    report: LoadReport

    @property
    def ids(self) -> list[str]:
        """The id of each skill."""
        return [skill.id for skill in self.skills]

    @property
    def texts(self) -> list[str]:
        """The text of each skill: what to embed and fit on."""
        return [skill.text for skill in self.skills]

    @overload
    def __getitem__(self, index: int) -> Skill: ...
    @overload
    def __getitem__(self, index: slice) -> list[Skill]: ...
    def __getitem__(self, index: int | slice) -> Skill | list[Skill]:
        return list(self.skills[index]) if isinstance(index, slice) else self.skills[index]

    def __len__(self) -> int:
        return len(self.skills)

    def __repr__(self) -> str:
        report = self.report
        return (
            f"<SkillLibrary: {_count(len(self), 'skill')}, {len(report.repaired)} repaired, "
            f"{len(report.skipped)} skipped>"
        )


def load_skills(path: str | os.PathLike[str], *, fields: Iterable[str] = FIELDS) -> SkillLibrary:
    """Read the skills of a folder.

    A skill is a file SKILL.md, in any upper or lower case, at any depth. Its id is the path of
    its folder relative to ``path`` ("documents/pdf-merge"); for a file directly in ``path`` it is
    the name of that folder, or "." where a skill below it has that id.

    Files that are not what the format asks for are loaded by the best reading there is and
    reported; none hides another. Of a file, the first mebibyte is read. Folders named .git,
    .venv, __pycache__ and node_modules are left out. Links are followed within the folder, every
    file is loaded once and by the path that is not a link; nothing outside is read.

    Parameters
    ----------
    path : str or path-like
        A folder, or one SKILL.md.
    fields : iterable of str
        What the text of each skill consists of: see `Skill`.

    Returns
    -------
    SkillLibrary
        Sorted by id; empty where there is no SKILL.md.

    Warns
    -----
    SkillSightWarning
        Once for repaired and once for skipped files, naming the first of them, and once if there
        is no SKILL.md at all.

    Raises
    ------
    TypeError
        ``path`` is not a str or path-like, ``fields`` is not an iterable of str.
    ValueError
        A field is unknown or repeated, or there is none.
    FileNotFoundError
        ``path`` is neither a folder nor a file.
    """
    chosen = checked_fields(fields, of="load_skills")
    given = os.fspath(path) if isinstance(path, os.PathLike) else path
    if not isinstance(given, str):
        raise TypeError(f"load_skills: path must be a str or a Path, got {type(path).__name__}")
    location = Path(given)
    if not (location.is_dir() or location.is_file()):
        raise FileNotFoundError(
            f"load_skills: path must be an existing folder or SKILL.md file, got {given!r}"
        )
    tree = find(location)
    skills: list[Skill] = []
    loaded: list[str] = []
    repaired: list[FileNote] = []
    skipped = [FileNote(name, None, reason) for name, reason in tree.skipped]
    for id_, file in tree.files.items():
        try:
            skill, repairs = _load(id_, file, chosen)
        except UnreadableError as error:
            skipped.append(FileNote(file.path, None, str(error)))
        except OSError as error:
            skipped.append(FileNote(file.path, None, f"cannot be read: {error.strerror}"))
        else:
            skills.append(skill)
            loaded.append(file.path)
            if repairs:
                repaired.append(_note(file.path, repairs))

    skipped.sort(key=lambda note: note.path)
    if not tree.files:
        warnings.warn(f"load_skills: no SKILL.md in {given!r}", SkillSightWarning, stacklevel=2)
    for what, notes in (("repaired", repaired), ("skipped", skipped)):
        if notes:
            named = "; ".join(_some(notes, _NAMED))
            message = f"load_skills: {len(notes)} {what} (see .report): {named}"
            warnings.warn(message, SkillSightWarning, stacklevel=2)
    report = LoadReport(tuple(loaded), tuple(repaired), tuple(skipped))
    return SkillLibrary(tuple(skills), report)


def _load(id_: str, file: Found, fields: tuple[str, ...]) -> tuple[Skill, list[Repair]]:
    path = Path(file.real)
    if not stat.S_ISREG(path.stat().st_mode):
        raise UnreadableError("not a regular file")  # a pipe would never end
    with path.open("rb") as stream:
        data = stream.read(_MOST_BYTES + 1)
    cut = len(data) > _MOST_BYTES
    folder = Path(id_).name or as_text(path.parent.name)
    read = parse(data[:_MOST_BYTES], folder, cut=cut)
    repairs = list(read.repairs)
    if cut:
        repairs.append(Repair(None, f"larger than {_MOST_BYTES:,} bytes (the rest was not read)"))
    return Skill(id_, read.name, read.description, read.body, read.metadata, fields=fields), repairs


def _note(path: str, repairs: list[Repair]) -> FileNote:
    line = next((repair.line for repair in repairs if repair.line), None)
    reasons = [
        repair.reason if repair.line in (None, line) else f"line {repair.line}: {repair.reason}"
        for repair in repairs
    ]
    return FileNote(path, line, "; ".join(_some(reasons, _REASONS)))


def _some(items: Sequence[object], most: int) -> list[str]:
    """Text of the first items, and how many there are beyond."""
    more = [f"and {len(items) - most} more"] if len(items) > most else []
    return [*map(str, items[:most]), *more]


def checked_fields(fields: Iterable[str], *, of: str) -> tuple[str, ...]:
    if isinstance(fields, str) or not isinstance(fields, Iterable):
        kind = type(fields).__name__
        raise TypeError(f"{of}: fields must be a sequence of str, got one {kind}: {fields!r}")
    chosen = tuple(fields)
    if not chosen or any(name not in FIELDS or chosen.count(name) > 1 for name in chosen):
        allowed = ", ".join(map(repr, FIELDS))
        raise ValueError(f"{of}: fields must be some of {allowed}, each once, got {chosen!r}")
    return chosen


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
