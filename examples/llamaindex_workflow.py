"""An asynchronous workflow: retrieve calibrated skills, then act on the best of them."""

from __future__ import annotations

import asyncio

from llama_index.core import VectorStoreIndex
from llama_index.core.schema import NodeWithScore
from llama_index.core.workflow import Event, StartEvent, StopEvent, Workflow, step
from llamaindex_offline import MiniLM, skill_nodes

from skillsight_llamaindex import SkillSightRetriever


class Found(Event):
    """The skills for a task."""

    skills: list[NodeWithScore]


class ChooseSkill(Workflow):
    """From a task to the skill to load."""

    def __init__(self, retriever: SkillSightRetriever) -> None:
        super().__init__()
        self.retriever = retriever

    @step
    async def find(self, event: StartEvent) -> Found:
        """Ask the library."""
        return Found(skills=await self.retriever.aretrieve(event.task))

    @step
    async def choose(self, event: Found) -> StopEvent:
        """Take the best, or none where no word of the task is covered."""
        best = event.skills[0]
        covered = best.metadata["skillsight"]["lexical"]
        return StopEvent(result=best.node_id if covered > 0 else None)


async def main() -> None:
    index = VectorStoreIndex(skill_nodes(), embed_model=MiniLM())
    workflow = ChooseSkill(SkillSightRetriever.from_index(index))
    tasks = ["add an index for this slow query", "write the release post for our blog"]
    chosen = await asyncio.gather(*(workflow.run(task=task) for task in tasks))
    for task, skill in zip(tasks, chosen, strict=True):
        print(f"{task} -> {skill}")


if __name__ == "__main__":
    asyncio.run(main())
