"""The same documents in every store."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.vectorstores import InMemoryVectorStore, VectorStore

from skillsight_core import SkillSight
from tests.fakes import HashEncoder
from tests.libraries import TEMPLATE, WORDS, Made

DIM = 48


class CountingEmbeddings(Embeddings):
    """`HashEncoder` for LangChain; counts what it is asked for, and by whom."""

    name = "hash-embeddings"

    def __init__(self, dim: int = DIM) -> None:
        self.encoder = HashEncoder(dim)
        self.queries = self.async_queries = self.documents = 0

    def embed_query(self, text: str) -> list[float]:
        self.queries += 1
        return self.encoder.encode([text])[0].tolist()

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        self.documents += 1
        return self.encoder.encode(texts).tolist()

    async def aembed_query(self, text: str) -> list[float]:
        self.async_queries += 1
        return self.encoder.encode([text])[0].tolist()

    async def aembed_documents(self, texts: list[str]) -> list[list[float]]:
        return self.embed_documents(texts)


def uuid_of(number: int) -> str:
    """An id that every store accepts."""
    return str(uuid.uuid5(uuid.NAMESPACE_OID, str(number)))


def library(n: int, seed: int = 0) -> list[Document]:
    """n documents of a shared template and words of their own."""
    import numpy as np

    random = np.random.default_rng(seed)
    documents = []
    for i in range(n):
        words = random.choice(WORDS, size=int(random.integers(3, 9)))
        text = f"{TEMPLATE} {' '.join(words)} item{i}"
        documents.append(
            Document(id=uuid_of(i), page_content=text, metadata={"group": i % 2, "number": i})
        )
    return documents


def core_of(documents: list[Document], **options: Any) -> SkillSight:
    """The bare core, fitted on the same documents."""
    texts = [document.page_content for document in documents]
    made = Made(texts, HashEncoder(DIM).encode(texts), [document.id for document in documents])
    return made.fit(**options)


def queries(n: int, seed: int = 1) -> list[str]:
    """Queries of three words of the library and one of the template."""
    import numpy as np

    random = np.random.default_rng(seed)
    return [" ".join([*random.choice(WORDS, size=3), "user"]) for _ in range(n)]


@pytest.fixture(scope="session")
def postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A PostgreSQL with pgvector, as its connection string; runs as nobody where we are root."""
    pgserver = pytest.importorskip("pgserver")
    binaries = Path(pgserver.__file__).parent / "pginstall" / "bin"
    # Not below pytest's own folder, which other users cannot enter.
    folder = Path(tempfile.mkdtemp(prefix="skillsight-postgres-"))
    folder.chmod(0o755)
    data = folder / "data"
    data.mkdir(0o700)
    other: dict[str, Any] = {}
    if os.geteuid() == 0:
        other = {"user": "nobody", "group": data.group(), "extra_groups": []}
        shutil.chown(data, "nobody")
    subprocess.run(
        [binaries / "initdb", "-D", data, "-A", "trust", "-U", "postgres", "-E", "UTF8", "-N"],
        check=True,
        capture_output=True,
        cwd="/",
        **other,
    )
    settings = ["listen_addresses=", f"unix_socket_directories={data}", "fsync=off"]
    arguments = [part for setting in settings for part in ("-c", setting)]
    with (folder / "log").open("w") as log:
        server = subprocess.Popen(
            [binaries / "postgres", "-D", data, *arguments],
            cwd="/",
            stdout=log,
            stderr=log,
            **other,
        )
    try:
        for _ in range(300):
            ready = subprocess.run([binaries / "pg_isready", "-h", data], capture_output=True)
            if ready.returncode == 0:
                break
            time.sleep(0.1)
        else:
            pytest.fail(f"PostgreSQL does not start: {(folder / 'log').read_text()[-1000:]}")
        yield f"postgresql+psycopg://postgres@/postgres?host={data}"
    finally:
        server.send_signal(signal.SIGINT)  # stop at once, whoever is connected
        server.wait(timeout=30)
        shutil.rmtree(folder)


STORES = [
    "memory",
    "chroma-l2",
    "chroma-cosine",
    "chroma-ip",
    "chroma-disk",
    "faiss-l2",
    "faiss-ip",
    "qdrant-cosine",
    "qdrant-dot",
    "qdrant-euclid",
    "postgres-cosine",
    "postgres-ip",
    "postgres-l2",
]

MakeStore = Callable[..., VectorStore]


@pytest.fixture
def make_store(request: pytest.FixtureRequest, tmp_path: Path) -> MakeStore:
    """Make a store of one of the `STORES` kinds that holds the documents, searched exactly."""

    def make(
        kind: str, documents: list[Document], embeddings: Embeddings | None = None
    ) -> VectorStore:
        embeddings = embeddings or CountingEmbeddings()
        family, _, metric = kind.partition("-")
        if family == "memory":
            store: VectorStore = InMemoryVectorStore(embeddings)
        elif family == "chroma":
            store = _chroma(metric, embeddings, tmp_path, len(documents))
        elif family == "faiss":
            store = _faiss(metric, embeddings)
        elif family == "qdrant":
            store = _qdrant(metric, embeddings)
        else:
            store = _postgres(metric, embeddings, request.getfixturevalue("postgres"))
        if documents:
            store.add_documents(documents, ids=[document.id for document in documents])
        return store

    return make


def _chroma(metric: str, embeddings: Embeddings, folder: Path, n: int) -> VectorStore:
    import chromadb
    from langchain_chroma import Chroma

    client = (
        chromadb.PersistentClient(str(folder / "chroma"))
        if metric == "disk"
        else chromadb.EphemeralClient()
    )
    index: dict[str, Any] = {} if metric == "disk" else {"space": metric}  # l2 by default
    if n:  # as good as exact: wider than the collection
        index |= {"ef_search": max(n, 100), "ef_construction": 400, "max_neighbors": 64}
    return Chroma(
        client=client,
        collection_name=f"c-{uuid.uuid4().hex}",
        embedding_function=embeddings,
        collection_configuration={"hnsw": index},
    )


def _faiss(metric: str, embeddings: Embeddings) -> VectorStore:
    import faiss
    from langchain_community.docstore.in_memory import InMemoryDocstore
    from langchain_community.vectorstores import FAISS
    from langchain_community.vectorstores.utils import DistanceStrategy

    inner = metric == "ip"
    strategies = DistanceStrategy.EUCLIDEAN_DISTANCE, DistanceStrategy.MAX_INNER_PRODUCT
    return FAISS(
        embedding_function=embeddings,
        index=faiss.IndexFlatIP(DIM) if inner else faiss.IndexFlatL2(DIM),
        docstore=InMemoryDocstore(),
        index_to_docstore_id={},
        distance_strategy=strategies[inner],
    )


def _qdrant(metric: str, embeddings: Embeddings) -> VectorStore:
    from langchain_qdrant import QdrantVectorStore
    from qdrant_client import QdrantClient, models

    client = QdrantClient(":memory:")
    distance = models.Distance[metric.upper()]
    client.create_collection("c", vectors_config=models.VectorParams(size=DIM, distance=distance))
    return QdrantVectorStore(
        client, "c", embeddings, distance=distance, validate_collection_config=False
    )


def _postgres(metric: str, embeddings: Embeddings, url: str) -> VectorStore:
    from langchain_postgres import PGEngine, PGVectorStore
    from langchain_postgres.v2.indexes import DistanceStrategy

    strategies = {
        "cosine": DistanceStrategy.COSINE_DISTANCE,
        "ip": DistanceStrategy.INNER_PRODUCT,
        "l2": DistanceStrategy.EUCLIDEAN,
    }
    engine = PGEngine.from_connection_string(url)
    table = f"t{uuid.uuid4().hex}"
    engine.init_vectorstore_table(table, vector_size=DIM)
    return PGVectorStore.create_sync(
        engine,
        embedding_service=embeddings,
        table_name=table,
        distance_strategy=strategies[metric],
    )


def group_filter(kind: str, group: int) -> Any:
    """The store's own way to say metadata["group"] == group."""
    if kind == "memory":
        return lambda document: document.metadata["group"] == group
    if kind.startswith("qdrant"):
        from qdrant_client import models

        match = models.MatchValue(value=group)
        return models.Filter(must=[models.FieldCondition(key="metadata.group", match=match)])
    return {"group": group}
