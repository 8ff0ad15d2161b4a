"""Embeddings kept on disk, so that no text is encoded twice by the same encoder."""

from __future__ import annotations

import hashlib
import os
import sqlite3
import sys
import warnings
import zlib
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TypeVar

import numpy as np

from skillsight_core._background import Floats
from skillsight_core._encoders import Encoder, encoder_name, in_chunks
from skillsight_core._errors import SkillSightWarning
from skillsight_core._validation import check_texts

Argument = TypeVar("Argument")
Result = TypeVar("Result")

_FILE = "embeddings.sqlite3"
_SLOTS = 500  # variables of one SELECT; SQLite allowed 999 for a long time
_PATIENCE = 30.0  # seconds to wait for another process that writes


def cache_folder() -> Path:
    """Folder that SKILLSIGHT_CACHE names, else the user's own for what may be lost."""
    if chosen := os.environ.get("SKILLSIGHT_CACHE"):
        return Path(chosen)
    if sys.platform == "win32":
        local = os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local"
        return Path(local, "skillsight", "Cache")
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "skillsight"
    base = Path(os.environ.get("XDG_CACHE_HOME", ""))
    # Its standard has a relative path ignored.
    return (base if base.is_absolute() else Path.home() / ".cache") / "skillsight"


class CachedEncoder:
    r"""Encoder that asks another one only for the texts it has not seen before.

    A vector is found by the encoder's name and the text alone: the order of a library does not
    matter, and runs, processes and libraries share what they know. New vectors are stored while
    the encoding goes on, so that an interrupted one keeps what it has.

    Parameters
    ----------
    encoder : Encoder
        Encoder with a name.
    path : str or path, optional
        Folder of the cache, made when needed. None for the environment variable
        ``SKILLSIGHT_CACHE``, and where that is not set for the user's cache folder:
        ``$XDG_CACHE_HOME/skillsight`` or ``~/.cache/skillsight`` on Linux,
        ``~/Library/Caches/skillsight`` on macOS, ``%LOCALAPPDATA%\skillsight\Cache`` on Windows.
    show_progress : bool
        Draw a progress bar on stderr when more than 300 texts are new and stderr is a terminal.

    Raises
    ------
    TypeError
        ``encoder`` is not an encoder.
    ValueError
        ``encoder`` has no name.

    Warns
    -----
    SkillSightWarning
        The cache was damaged and has been started anew, or its folder cannot be used and texts
        are encoded without it.
    """

    def __init__(
        self,
        encoder: Encoder,
        path: str | os.PathLike[str] | None = None,
        *,
        show_progress: bool = True,
    ) -> None:
        if isinstance(encoder, str | type) or not isinstance(encoder, Encoder):
            raise TypeError(
                f"CachedEncoder: encoder must be an object with a method encode, got {encoder!r}"
            )
        name = encoder_name(encoder)
        if name is None:
            raise ValueError(
                "CachedEncoder: encoder must have a name, without which its vectors cannot be told "
                f"from another's, got {type(encoder).__name__} without one"
            )
        self.encoder = encoder
        self.name = name
        self.path = cache_folder() if path is None else Path(path)
        self._show_progress = show_progress
        self._usable = True

    def encode(self, texts: list[str], /) -> Floats:
        """Encode texts, the unknown ones through the encoder, each distinct text once.

        Parameters
        ----------
        texts : list of str
            Any texts.

        Returns
        -------
        ndarray of shape (n, m), float32
            The encoder's vectors in single precision, in the order of the texts.

        Raises
        ------
        TypeError
            ``texts`` is not a list of strings.
        ValueError
            The encoder gave vectors of another number or size than it should.
        """
        texts = check_texts(texts, of="CachedEncoder.encode")
        if not texts:
            return np.asarray(self.encoder.encode([]), dtype=np.float32)
        keys = {text: self._key(text) for text in texts}
        known = self._use(_read, list(keys.values())) or {}
        missing = [text for text, key in keys.items() if key not in known]
        self._check_sizes(known)
        for chunk in in_chunks(missing, show_progress=self._show_progress):
            vectors = self._encode(chunk)
            new = {keys[text]: vector for text, vector in zip(chunk, vectors, strict=True)}
            known.update(new)
            self._check_sizes(known)  # before anything is stored
            self._use(_write, new)
        return np.stack([known[keys[text]] for text in texts])

    def _key(self, text: str) -> bytes:
        salt = hashlib.sha256(self.name.encode("utf-8", "surrogatepass")).digest()
        return hashlib.sha256(salt + text.encode("utf-8", "surrogatepass")).digest()

    def _encode(self, texts: list[str]) -> Floats:
        vectors = np.asarray(self.encoder.encode(texts), dtype=np.float32)
        if vectors.ndim != 2 or len(vectors) != len(texts):
            raise ValueError(
                f"CachedEncoder: the encoder {self.name!r} must give one row for each of "
                f"{len(texts)} texts, got the shape {vectors.shape}"
            )
        return vectors

    def _check_sizes(self, vectors: dict[bytes, Floats]) -> None:
        sizes = sorted({len(vector) for vector in vectors.values()})
        if len(sizes) > 1:
            raise ValueError(
                f"CachedEncoder: an encoder's vectors must all have one size, got {sizes} under "
                f"the name {self.name!r}, partly from {self.path / _FILE}"
            )

    def _use(
        self, action: Callable[[sqlite3.Connection, Argument], Result], argument: Argument
    ) -> Result | None:
        """Do something with the cache, in a fresh file if it is damaged, else do without it."""
        for first in (True, False):
            if not self._usable:
                break
            try:
                with _opened(self.path) as cache:
                    return action(cache, argument)
            except (sqlite3.Error, OSError) as error:
                if first and _is_damage(error) and _set_aside(self.path / _FILE):
                    message = f"{self.path / _FILE} was damaged, is set aside and starts anew"
                else:
                    self._usable = False  # not to wait for it again and again
                    message = f"nothing is cached in {self.path}: {error}"
                # stacklevel: this method, encode, and then who called it
                warnings.warn(f"CachedEncoder: {message}", SkillSightWarning, stacklevel=3)
        return None


def _is_damage(error: Exception) -> bool:
    """Whether the file is no cache; its SQL being fixed, a plain SQL error says so, too."""
    code = getattr(error, "sqlite_errorcode", None)
    damage = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_ERROR)
    return code is not None and code & 0xFF in damage


def _set_aside(file: Path) -> bool:
    """Rename a damaged file; False when that cannot be done."""
    try:
        # The log goes first: it must not be replayed into the file that comes next.
        for log in ("-wal", "-shm"):
            file.with_name(file.name + log).unlink(missing_ok=True)
        file.replace(file.with_name(file.name + ".damaged"))
    except FileNotFoundError:
        pass  # another process was faster
    except OSError:
        return False
    return True


@contextmanager
def _opened(folder: Path) -> Iterator[sqlite3.Connection]:
    """Open the cache of a folder for one action: nothing to lock, to fork or to pickle."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    with closing(sqlite3.connect(folder / _FILE, timeout=_PATIENCE)) as cache, cache:
        cache.execute("PRAGMA journal_mode = WAL")  # readers and a writer at the same time
        cache.execute("PRAGMA synchronous = NORMAL")
        cache.execute(
            "CREATE TABLE IF NOT EXISTS embeddings "
            "(key BLOB PRIMARY KEY, vector BLOB, checksum INTEGER)"
        )
        yield cache


def _read(cache: sqlite3.Connection, keys: list[bytes]) -> dict[bytes, Floats]:
    found: dict[bytes, Floats] = {}
    for start in range(0, len(keys), _SLOTS):
        some = keys[start : start + _SLOTS]
        slots = ",".join("?" * len(some))
        rows = cache.execute(
            f"SELECT key, vector, checksum FROM embeddings WHERE key IN ({slots})", some
        )
        for key, vector, checksum in rows:
            # SQLite notices damage to its structure, not to the values in it.
            if isinstance(vector, bytes) and checksum == zlib.crc32(key + vector):
                found[key] = np.frombuffer(vector, dtype="<f4")
    return found


def _write(cache: sqlite3.Connection, vectors: dict[bytes, Floats]) -> None:
    finite = {k: v.astype("<f4") for k, v in vectors.items() if np.isfinite(v).all()}
    blobs = {key: vector.tobytes() for key, vector in finite.items()}
    cache.executemany(
        "INSERT OR REPLACE INTO embeddings VALUES (?, ?, ?)",
        [(key, blob, zlib.crc32(key + blob)) for key, blob in blobs.items()],
    )
