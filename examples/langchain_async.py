"""Many queries at once in an async application, which goes on meanwhile."""

import asyncio
from pathlib import Path

from langchain_core.vectorstores import InMemoryVectorStore

from skillsight_core import CachedEncoder, SentenceTransformerEncoder, load_skills
from skillsight_langchain import EncoderEmbeddings, SkillSightRetriever, skill_documents

QUERIES = [
    "add an index for this slow query",
    "merge these PDFs into one",
    "write the minutes of our meeting",
]


async def main() -> None:
    embeddings = EncoderEmbeddings(CachedEncoder(SentenceTransformerEncoder()))
    store = InMemoryVectorStore(embeddings)
    library = load_skills(Path(__file__).parent / "library")
    await store.aadd_documents(skill_documents(library))
    retriever = await asyncio.to_thread(SkillSightRetriever.from_vectorstore, store, k=1)
    for query, (best,) in zip(QUERIES, await retriever.abatch(QUERIES), strict=True):
        print(f"{query} -> {best.id}")


asyncio.run(main())
