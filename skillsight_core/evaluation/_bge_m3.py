"""BGE-M3's two readings of a text in one pass: a vector, and a weight for each word piece."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from skillsight_core._background import Floats
from skillsight_core._errors import require

_CHUNK = 64  # texts whose vectors of every token are in memory at once


class HybridVectors(NamedTuple):
    """Of n texts: ``dense`` (n, m), unit rows; ``sparse`` (n, vocabulary), at least 0."""

    dense: Floats
    sparse: sparse.csr_array


class BgeM3:
    """BGE-M3 (arXiv:2402.03216) through sentence-transformers, with the head of its sparse scores.

    A token's weight is ``relu(W h + b)`` of its last hidden state h, W and b from the model's
    ``sparse_linear.pt``; a word piece that occurs more than once has its greatest weight, special
    tokens have none. (FlagEmbedding, whose model this is, has no version for current transformers.)

    Parameters
    ----------
    model : str
        Folder or name on the hub.

    Raises
    ------
    OSError
        The model, or the head in it, is not there.
    """

    def __init__(self, model: str) -> None:
        library = require("sentence_transformers", extra="embeddings", purpose="BGE-M3")
        self._torch = require("torch", extra="embeddings", purpose="BGE-M3")
        self._model = library.SentenceTransformer(model)
        file = library.util.load_file_path(model, "sparse_linear.pt")
        if file is None:
            raise OSError(f"{model}: there is no sparse_linear.pt")
        head = self._torch.load(file, map_location="cpu", weights_only=True)
        self._weight = head["weight"].float().numpy()[0]
        self._bias = float(head["bias"][0])
        self._special = list(self._model.tokenizer.all_special_ids)
        self._n_tokens = len(self._model.tokenizer)

    def encode(self, texts: list[str]) -> HybridVectors:
        """Read the texts."""
        parts = [self._read(texts[i : i + _CHUNK]) for i in range(0, len(texts), _CHUNK)]
        return HybridVectors(
            np.concatenate([part.dense for part in parts]),
            sparse.csr_array(sparse.vstack([part.sparse for part in parts])),
        )

    def _read(self, texts: list[str]) -> HybridVectors:
        read = self._model.encode(texts, output_value=None, show_progress_bar=False)
        dense = np.stack([self._array(text, "sentence_embedding") for text in read])
        weights = np.zeros((len(texts), self._n_tokens), np.float32)
        for row, text in zip(weights, read, strict=True):
            states = self._array(text, "token_embeddings")
            tokens = self._array(text, "input_ids").astype(np.intp)
            seen = self._array(text, "attention_mask").astype(bool)[: len(states)]
            gains = np.maximum(states @ self._weight + self._bias, 0.0)
            np.maximum.at(row, tokens[: len(states)][seen], gains[seen])
        weights[:, self._special] = 0.0
        return HybridVectors(
            dense / np.linalg.norm(dense, axis=1, keepdims=True), sparse.csr_array(weights)
        )

    @staticmethod
    def _array(features: Any, name: str) -> Floats:
        return np.asarray(features[name].detach().cpu().float().numpy())
