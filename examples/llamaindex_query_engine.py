"""The postprocessor in a query engine; the language model is a stand-in that repeats its prompt."""

from __future__ import annotations

from llama_index.core import VectorStoreIndex
from llama_index.core.llms import MockLLM
from llamaindex_offline import MiniLM, skill_nodes

from skillsight_llamaindex import SkillSightPostprocessor

index = VectorStoreIndex(skill_nodes(), embed_model=MiniLM())
engine = index.as_query_engine(
    similarity_top_k=300,  # the pool to choose from
    node_postprocessors=[SkillSightPostprocessor.from_index(index, top_n=2)],
    llm=MockLLM(),
)

for query in ("the pods keep restarting", "which rows can we move out of the orders table?"):
    response = engine.query(query)
    print(query)
    for hit in response.source_nodes:
        before = hit.metadata["retrieval_score"]
        print(f"{hit.score:6.2f}  (cosine {before:.2f})  {hit.node_id}")
    print(f"        the model was given {len(str(response))} characters")
