"""Neural systems for comparison, each through the library that owns it.

Documents and queries are encoded before the clock starts, as they are for every other method; a
reranker reads query and document together, so that its reading is timed.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from skillsight_core._background import Floats
from skillsight_core._cache import CachedEncoder
from skillsight_core._encoders import SentenceTransformerEncoder, _quiet
from skillsight_core._errors import require
from skillsight_core._validation import check_embeddings
from skillsight_core.evaluation._bge_m3 import BgeM3
from skillsight_core.evaluation._methods import Method, Rank, Ranking, Setting

_SPARSE_SHARE = 0.3  # of BGE-M3's sparse score beside the dense one (arXiv:2402.03216)


def _loaded(kind: str, model: str, load: Callable[[], Any]) -> Any:
    """What ``load`` gives; one sentence when the model is not there."""
    hub = logging.getLogger("huggingface_hub")
    level = hub.level
    hub.setLevel(logging.ERROR)  # without a network it tells of each of its attempts
    try:
        with _quiet():
            return load()
    except (OSError, ValueError) as error:
        raise OSError(
            f"evaluate: the model {model!r} of the method {kind!r} could not be loaded; write "
            f"{kind}:MODEL with a folder or the name of a model that can be downloaded"
        ) from error
    finally:
        hub.setLevel(level)


def _sentence_transformers(kind: str) -> Any:
    return require("sentence_transformers", extra="embeddings", purpose=f"the method {kind!r}")


# -- one vector for each text --------------------------------------------------------------------


class _Side:
    """The encoder of one side, documents or queries, with the prompt the model has for it."""

    def __init__(self, name: str, encode: Callable[..., Any], prompt: str | None) -> None:
        self.name = f"{name} {encode.__name__} {prompt!r}"
        self._encode = encode
        self._prompt = {} if prompt is None else {"prompt": prompt}

    def encode(self, texts: list[str], /) -> Floats:
        vectors = self._encode(texts, normalize_embeddings=True, **self._prompt)
        return np.asarray(vectors, dtype=np.float32)


def _embed(model: str) -> Method:
    """Dense retrieval by another embedding model, by inner product.

    The model's own prompts for queries and documents apply; the setting's query prompt replaces
    the former.
    """

    def method(setting: Setting) -> Rank:
        library = _sentence_transformers("embed")
        loaded = _loaded("embed", model, lambda: library.SentenceTransformer(model))
        name = SentenceTransformerEncoder(model).name
        document = CachedEncoder(_Side(name, loaded.encode_document, None))
        query = CachedEncoder(_Side(name, loaded.encode_query, setting.query_prompt))
        documents = document.encode(list(setting.benchmark.texts))
        documents = check_embeddings(documents, setting.benchmark.ids, None, of=model)
        queries = query.encode(setting.queries)
        return lambda part: [setting.best(scores) for scores in queries[part] @ documents.T]

    return method


# -- query and document read together ------------------------------------------------------------


def _rerank(model: str) -> Method:
    """Dense retrieval's best documents, put in the order of a cross-encoder."""

    def method(setting: Setting) -> Rank:
        library = _sentence_transformers("rerank")
        reader = _loaded("rerank", model, lambda: library.CrossEncoder(model))
        texts, ids = setting.benchmark.texts, setting.benchmark.ids
        row = {id_: i for i, id_ in enumerate(ids)}
        documents, queries = setting.embeddings, setting.query_embeddings

        def one(query: str, dense: NDArray[np.floating]) -> Ranking:
            found = [id_ for id_, _ in setting.best(dense)]
            pairs = [(query, texts[row[id_]]) for id_ in found]
            scores = np.asarray(reader.predict(pairs, show_progress_bar=False), dtype=np.float64)
            order = np.argsort(-scores, kind="stable")
            return [(found[i], float(scores[i])) for i in order]

        return lambda part: [
            one(query, dense)
            for query, dense in zip(setting.queries[part], queries[part] @ documents.T, strict=True)
        ]

    return method


# -- one weight for each word --------------------------------------------------------------------


def _splade(model: str) -> Method:
    """Learned sparse retrieval, by inner product."""

    def method(setting: Setting) -> Rank:
        library = _sentence_transformers("splade")
        encoder = _loaded("splade", model, lambda: library.SparseEncoder(model))
        documents = _csr(encoder.encode_document(list(setting.benchmark.texts)))
        queries = _csr(encoder.encode_query(setting.queries))
        return lambda part: [
            setting.best(scores) for scores in (queries[part] @ documents.T).toarray()
        ]

    return method


def _csr(tensor: Any) -> sparse.csr_array:
    """A sparse matrix of torch as one of scipy."""
    coordinates = tensor.coalesce().cpu()
    rows, columns = coordinates.indices().numpy()
    values = coordinates.values().float().numpy()
    return sparse.csr_array((values, (rows, columns)), shape=tuple(tensor.shape))


def _bge_m3(model: str) -> Method:
    """BGE-M3's hybrid: ``dense + 0.3 sparse``, the dense and the lexical score of one model."""

    def method(setting: Setting) -> Rank:
        encoder = _loaded("bge-m3", model, lambda: BgeM3(model))
        documents = encoder.encode(list(setting.benchmark.texts))
        queries = encoder.encode(setting.queries)

        def rank(part: slice) -> list[Ranking]:
            dense = queries.dense[part] @ documents.dense.T
            lexical = (queries.sparse[part] @ documents.sparse.T).toarray()
            return [setting.best(scores) for scores in dense + _SPARSE_SHARE * lexical]

        return rank

    return method


# -- one vector for each token -------------------------------------------------------------------


def _colbert(model: str) -> Method:
    """Late interaction over all documents: ``sum over query tokens of max over d's of q_i . d_j``.

    Khattab and Zaharia, SIGIR 2020. Through sentence-transformers where it has the class for it
    (from version 6), which reads the models of pylate, too; else through pylate, which cannot be
    installed beside that version.
    """

    def method(setting: Setting) -> Rank:
        encode = _token_encoder(model)
        documents = [np.asarray(rows) for rows in encode(list(setting.benchmark.texts), False)]
        queries = [np.asarray(rows) for rows in encode(setting.queries, True)]
        tokens = np.concatenate(documents)
        starts = np.cumsum([0, *(len(rows) for rows in documents[:-1])])
        return lambda part: [
            setting.best(np.maximum.reduceat(tokens @ query.T, starts, axis=0).sum(axis=1))
            for query in queries[part]
        ]

    return method


def _token_encoder(model: str) -> Callable[[list[str], bool], list[Any]]:
    """From texts, and whether they are queries, to an array of token vectors for each."""
    library = _sentence_transformers("colbert")
    if hasattr(library, "MultiVectorEncoder"):
        encoder = _loaded("colbert", model, lambda: library.MultiVectorEncoder(model))
        return lambda texts, asked: list(
            (encoder.encode_query if asked else encoder.encode_document)(texts)
        )
    pylate = require("pylate.models", package="pylate", purpose="the method 'colbert'")
    older = _loaded("colbert", model, lambda: pylate.ColBERT(model_name_or_path=model))
    return lambda texts, asked: list(older.encode(texts, is_query=asked, show_progress_bar=False))


NEURAL: dict[str, tuple[str, Callable[[str], Method]]] = {
    "embed": ("Qwen/Qwen3-Embedding-0.6B", _embed),
    "rerank": ("Qwen/Qwen3-Reranker-0.6B", _rerank),
    "splade": ("naver/splade-cocondenser-ensembledistil", _splade),
    "colbert": ("lightonai/GTE-ModernColBERT-v1", _colbert),
    "bge-m3": ("BAAI/bge-m3", _bge_m3),
}
"""Kinds of neural systems: the model of each when none is given, and the method of a model."""
