"""A fitted library on disk: JSON for what people read, safetensors for arrays, no pickle.

The folder holds ``library.json`` and the arrays file that it names. The arrays are written first,
under a name of their own; replacing ``library.json`` is the one atomic step that puts them in
force, so a reader finds the old library or the new one, whole, whatever interrupts the writer.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import tempfile
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from skillsight_core._background import Background
from skillsight_core._errors import LibraryFileError, require
from skillsight_core._library import Library, Segment
from skillsight_core._statistics import Statistics

_FORMAT, _VERSION = "skillsight-library", 1
MANIFEST = "library.json"
_ARRAYS = re.compile(r"arrays-[0-9a-f]{16}\.safetensors")
_SEGMENT_ARRAYS = (
    "embeddings", "digests", "lengths", "bounds", "tokens", "repeats", "terms", "starts", "rows",
    "counts",
)  # fmt: skip
_DTYPES = {
    "F32": "<f4", "F64": "<f8", "I32": "<i4", "I64": "<i8", "U8": "<u1", "U16": "<u2", "U64": "<u8",
}  # fmt: skip

Arrays = dict[str, NDArray[Any]]


class Saved(NamedTuple):
    """What `load` finds in a folder."""

    parameters: dict[str, Any]
    encoder: str | None
    library: Library
    background: Background


def save(
    path: str | PathLike[str],
    *,
    parameters: dict[str, Any],
    encoder: str | None,
    library: Library,
    background: Background,
) -> None:
    """Write a compact library and its background to a folder."""
    folder = Path(path)
    if folder.exists() and not folder.is_dir():
        raise LibraryFileError(f"SkillSight.save: path must be a folder, got a file: {folder}")
    if folder.is_dir() and not (folder / MANIFEST).exists() and _foreign(folder):
        raise LibraryFileError(
            f"SkillSight.save: path must be new, empty or hold a library, got a folder with other "
            f"files: {folder}"
        )
    previous = _named_arrays(folder)
    data = _serialised(library, background)
    folder.mkdir(parents=True, exist_ok=True)
    digest = hashlib.sha256(data).hexdigest()
    name = f"arrays-{digest[:16]}.safetensors"
    manifest = {
        "format": _FORMAT,
        "version": _VERSION,
        "parameters": parameters,
        "encoder": encoder,
        "dimension": library.n_features,
        "skills": library.statistics.n_skills,
        "words": library.statistics.total_length,
        "background_rank": background.basis.shape[1],
        "arrays": {"file": name, "bytes": len(data), "sha256": digest},
    }
    manifest["checksum"] = _checksum(manifest)
    _replace(folder / name, data)
    try:
        _replace(folder / MANIFEST, (json.dumps(manifest, indent=2) + "\n").encode())
    except BaseException:
        if previous != folder / name:
            (folder / name).unlink(missing_ok=True)
        raise
    if previous is not None and previous != folder / name:
        previous.unlink(missing_ok=True)


def load(path: str | PathLike[str], *, mmap: bool, encoder: str | None) -> Saved:
    """Read what `save` wrote, or say in one sentence why not."""
    folder = Path(path)
    manifest = _read_manifest(folder)
    try:
        built_with = manifest["encoder"]
        if encoder is not None and built_with is not None and encoder != built_with:
            raise mismatch(folder, "encoder", built_with, encoder)
        return _assembled(manifest, _read_arrays(folder, manifest["arrays"], mmap=mmap))
    except (KeyError, TypeError) as error:  # checksums are right, but nothing here wrote this
        raise LibraryFileError(
            f"SkillSight.load: {MANIFEST} or its arrays lack what every library has ({error}): "
            f"{folder}"
        ) from None


def _assembled(manifest: dict[str, Any], arrays: Arrays) -> Saved:
    background = Background(arrays["basis"], arrays["singular_values"])
    statistics = Statistics(arrays["df"], manifest["skills"], manifest["words"])
    segments: tuple[Segment, ...] = ()
    if manifest["skills"]:
        ids = tuple(_unpacked(arrays["ids"]))
        segments = (Segment(ids, **{name: arrays[name] for name in _SEGMENT_ARRAYS}),)
    vocabulary = {token: number for number, token in enumerate(_unpacked(arrays["vocabulary"]))}
    alive = np.ones(manifest["skills"], np.bool_)
    library = Library(manifest["dimension"], vocabulary, segments, alive, statistics)
    return Saved(manifest["parameters"], manifest["encoder"], library, background)


def mismatch(
    path: str | PathLike[str], what: str, saved: object, given: object
) -> LibraryFileError:
    """The error for a library that is read with something else than it was built with."""
    return LibraryFileError(
        f"SkillSight.load: {what} must be the one the library was built with, {saved!r}, "
        f"got {given!r}: {os.fspath(path)}"
    )


def _serialised(library: Library, background: Background) -> bytes:
    numpy_files = require("safetensors.numpy", extra="", purpose="saving a library")
    arrays: Arrays = {
        "basis": background.basis,
        "singular_values": background.singular_values,
        "df": library.statistics.df,
        "vocabulary": _packed(list(library.vocabulary)[: len(library.statistics.df)]),
        "ids": _packed(list(library.ids)),
    }
    for segment in library.segments:  # one, since the library is compact
        arrays |= {name: getattr(segment, name) for name in _SEGMENT_ARRAYS}
    data: bytes = numpy_files.save({k: np.ascontiguousarray(v) for k, v in arrays.items()})
    return data


def _read_manifest(folder: Path) -> dict[str, Any]:
    try:
        manifest = json.loads((folder / MANIFEST).read_bytes())
    except (FileNotFoundError, NotADirectoryError):
        raise LibraryFileError(
            f"SkillSight.load: path must be a folder written by save, got one without "
            f"{MANIFEST}: {folder}"
        ) from None
    except (OSError, ValueError) as error:
        raise LibraryFileError(
            f"SkillSight.load: {MANIFEST} cannot be read ({error}): {folder}"
        ) from None
    if not isinstance(manifest, dict) or manifest.get("format") != _FORMAT:
        raise LibraryFileError(
            f"SkillSight.load: {MANIFEST} was not written by SkillSight: {folder}"
        )
    if manifest.get("version") != _VERSION:
        raise LibraryFileError(
            f"SkillSight.load: format version must be {_VERSION}, got {manifest.get('version')!r}: "
            f"{folder}"
        )
    if manifest.pop("checksum", None) != _checksum(manifest):
        raise LibraryFileError(
            f"SkillSight.load: {MANIFEST} does not match its checksum, it was changed or damaged "
            f"after it was written: {folder}"
        )
    described = manifest.get("arrays")
    file = described.get("file") if isinstance(described, dict) else None
    if not isinstance(file, str) or not _ARRAYS.fullmatch(
        file
    ):  # it is read, and removed by the next save
        raise LibraryFileError(
            f"SkillSight.load: the arrays file must lie in the folder and be named as save names "
            f"it, got {file!r}: {folder}"
        )
    return manifest


def _read_arrays(folder: Path, described: dict[str, Any], *, mmap: bool) -> Arrays:
    path = folder / described["file"]
    try:
        data = np.memmap(path, np.uint8, "r") if mmap else np.fromfile(path, np.uint8)
    except (OSError, ValueError) as error:
        raise LibraryFileError(
            f"SkillSight.load: {path.name} cannot be read ({error}): {folder}"
        ) from None
    if len(data) != described["bytes"]:
        raise LibraryFileError(
            f"SkillSight.load: {path.name} must have {described['bytes']} bytes, got {len(data)}, "
            f"it is truncated or was replaced: {folder}"
        )
    if hashlib.sha256(data.data).hexdigest() != described["sha256"]:
        raise LibraryFileError(
            f"SkillSight.load: {path.name} does not match its checksum, it was changed or damaged "
            f"after it was written: {folder}"
        )
    # The safetensors layout: length of the header, the header in JSON, the arrays. Its own reader
    # copies; views keep the arrays on disk until they are read.
    length = int(data[:8].view("<u8")[0])
    header = json.loads(data[8 : 8 + length].tobytes())
    body = np.asarray(data)[8 + length :]
    arrays: Arrays = {}
    for name, entry in header.items():
        start, end = entry["data_offsets"]
        arrays[name] = body[start:end].view(_DTYPES[entry["dtype"]]).reshape(entry["shape"])
    return arrays


def _foreign(folder: Path) -> bool:
    """Whether the folder holds files that no interrupted save left there."""
    ours = (MANIFEST, "arrays-")
    return any(not path.name.removeprefix(".").startswith(ours) for path in folder.iterdir())


def _named_arrays(folder: Path) -> Path | None:
    """The arrays file of the library that is in the folder now, if there is a sound one."""
    try:
        return folder / str(_read_manifest(folder)["arrays"]["file"])
    except LibraryFileError:
        return None


def _replace(path: Path, data: bytes) -> None:
    """Write a file that is there whole or not at all."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def _checksum(manifest: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(manifest, sort_keys=True).encode()).hexdigest()


def _packed(strings: list[str]) -> NDArray[np.uint8]:
    return np.frombuffer(json.dumps(strings).encode("ascii"), np.uint8)


def _unpacked(packed: NDArray[np.uint8]) -> list[str]:
    strings: list[str] = json.loads(packed.tobytes())
    return strings
