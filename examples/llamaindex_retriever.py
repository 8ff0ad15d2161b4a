"""A calibrated retriever over an index, why each skill is there, and a filter."""

from __future__ import annotations

from llama_index.core import VectorStoreIndex
from llama_index.core.vector_stores import MetadataFilter, MetadataFilters
from llamaindex_offline import MiniLM, skill_nodes

from skillsight_llamaindex import SkillSightRetriever

QUERY = "exit code 137 again"

index = VectorStoreIndex(skill_nodes(), embed_model=MiniLM())
retriever = SkillSightRetriever.from_index(index, k=3)

print(f"{QUERY}\nplain")
for hit in index.as_retriever(similarity_top_k=3).retrieve(QUERY):
    print(f"{hit.score:6.2f}  {hit.node_id}")

print("SkillSight")
for hit in retriever.retrieve(QUERY):
    why = hit.metadata["skillsight"]
    print(f"{hit.score:6.2f}  {hit.node_id}  matched: {', '.join(why['matched_tokens'])}")

print("SkillSight, testing only")
testing = MetadataFilters(filters=[MetadataFilter(key="area", value="testing")])
filtered = SkillSightRetriever(index, retriever.calibrator, search_kwargs={"filters": testing})
for hit in filtered.retrieve(QUERY):
    print(f"{hit.score:6.2f}  {hit.node_id}")
