"""Where the SKILL.md files of a folder are, and under which id."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

_NO_SKILLS_IN = frozenset({".git", ".venv", "__pycache__", "node_modules"})


class Found(NamedTuple):
    """A file: its path relative to the root, with forward slashes, and where it really is."""

    path: str
    real: str


class Tree(NamedTuple):
    """The files of a folder by id, sorted, and (path, reason) of what gives no skill."""

    files: dict[str, Found]
    skipped: list[tuple[str, str]]


def find(location: Path) -> Tree:
    """Look for SKILL.md files below a folder; a file is a tree of one.

    Terminates on any tree: each real folder is entered once, and real ones before linked ones, so
    that what has a path without links goes by that path.
    """
    if location.is_file():
        file = Found(location.name, os.path.realpath(location))
        return _identified([file], location.parent.resolve().name, [])
    root = os.path.realpath(location)
    skipped: list[tuple[str, str]] = []
    files: list[Found] = []
    linked_files: list[Found] = []
    entered: set[str] = set()
    folders, linked_folders = [Found("", root)], deque[Found]()
    while folders or linked_folders:
        folder = folders.pop() if folders else linked_folders.popleft()
        if folder.real in entered:
            continue
        entered.add(folder.real)
        try:
            entries = sorted(os.scandir(folder.real), key=lambda entry: entry.name)
        except OSError as error:
            skipped.append((folder.path or ".", f"cannot be opened: {error.strerror}"))
            continue
        for entry in entries:
            is_folder = _is_folder(entry)
            if entry.name in _NO_SKILLS_IN or not (is_folder or entry.name.lower() == "skill.md"):
                continue
            path = f"{folder.path}/{entry.name}" if folder.path else entry.name
            real = os.path.realpath(entry.path)
            linked = real != entry.path
            if linked and not Path(real).is_relative_to(root):
                skipped.append((path, "link that leads out of the folder"))
            elif is_folder:
                (linked_folders if linked else folders).append(Found(path, real))
            else:
                (linked_files if linked else files).append(Found(path, real))

    known = {file.real: file for file in reversed([*sorted(files), *sorted(linked_files)])}
    return _identified(known.values(), Path(root).name, skipped)


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:  # a link to itself, or into what may not be searched
        return False


def _identified(files: Iterable[Found], root_name: str, skipped: list[tuple[str, str]]) -> Tree:
    identified: dict[str, Found] = {}
    for file in sorted(files):  # SKILL.md before skill.md
        id_ = as_text(file.path.rpartition("/")[0]) or "."
        if id_ in identified:
            skipped.append((file.path, f"same id as {identified[id_].path}"))
        else:
            identified[id_] = file
    at_root = identified.pop(".", None)
    if at_root is not None:
        own = as_text(root_name) or "."
        identified["." if own in identified else own] = at_root
    return Tree(dict(sorted(identified.items())), sorted(skipped))


def as_text(path: str) -> str:
    """Make text of a path that any file can hold: names need not be UTF-8, ids must be."""
    return os.fsencode(path).decode("utf-8", "replace")
