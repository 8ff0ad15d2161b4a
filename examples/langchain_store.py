"""A retriever over a Chroma collection that is there already, and with a metadata filter."""

from pathlib import Path

import chromadb
from langchain_chroma import Chroma

from skillsight_core import CachedEncoder, SentenceTransformerEncoder, load_skills
from skillsight_langchain import EncoderEmbeddings, SkillSightRetriever, skill_documents

QUERY = "exit code 137 again"

# The collection, as any application may have made it; the embeddings may be of any LangChain kind.
library = load_skills(Path(__file__).parent / "library")
documents = skill_documents(library)
for document in documents:
    document.metadata["topic"] = document.id.split("/")[0]
embeddings = EncoderEmbeddings(CachedEncoder(SentenceTransformerEncoder()))
store = Chroma("skills", embeddings, client=chromadb.EphemeralClient())
store.add_documents(documents)

print("plain similarity")
for document in store.similarity_search(QUERY, k=3):
    print(f"  {document.id}")

retriever = SkillSightRetriever.from_vectorstore(store)
print("SkillSight")
for document in retriever.invoke(QUERY):
    matched = ", ".join(document.metadata["skillsight"]["matched_tokens"])
    print(f"  {document.metadata['relevance_score']:5.2f}  {document.id}  ({matched})")

print("SkillSight, testing only")
for document in retriever.invoke(QUERY, k=2, filter={"topic": "testing"}):
    print(f"  {document.metadata['relevance_score']:5.2f}  {document.id}")
