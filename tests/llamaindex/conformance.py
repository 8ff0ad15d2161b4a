"""What any LlamaIndex postprocessor or retriever that ranks ought to do, as classes to inherit.

A subclass names its subject in the abstract methods and inherits the tests. A test may be
overridden only with an xfail and the reason.
"""

from __future__ import annotations

import asyncio
import copy
import pickle
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import llama_index.core.instrumentation as instrument
import pytest
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.instrumentation.event_handlers import BaseEventHandler
from llama_index.core.instrumentation.events.rerank import ReRankEndEvent, ReRankStartEvent
from llama_index.core.instrumentation.events.retrieval import (
    RetrievalEndEvent,
    RetrievalStartEvent,
)
from llama_index.core.llms import MockLLM
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.schema import NodeWithScore, QueryBundle

from tests.llamaindex.parts import ids, results


class PostprocessorConformance(ABC):
    """For postprocessors that reorder and cut."""

    @abstractmethod
    def postprocessor(self, top_n: int = 3) -> BaseNodePostprocessor: ...

    @abstractmethod
    def nodes(self) -> list[NodeWithScore]:
        """More than five, with scores; new ones at each call."""

    @abstractmethod
    def query(self) -> str: ...

    def test_returns_the_best_of_the_nodes_in_descending_order(self) -> None:
        hits = self.postprocessor().postprocess_nodes(self.nodes(), query_str=self.query())
        assert len(hits) == 3
        assert set(ids(hits)) <= set(ids(self.nodes()))
        assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)

    def test_fewer_results_are_the_beginning_of_more(self) -> None:
        def ranked(n: int) -> list[tuple[str, float]]:
            return results(
                self.postprocessor(n).postprocess_nodes(self.nodes(), None, self.query())
            )

        total = len(self.nodes())
        everything = ranked(10**6)
        assert len(everything) == total
        assert all(ranked(n) == everything[:n] for n in (0, 1, 2, total, total + 1))

    def test_leaves_nodes_and_query_bundle_as_they_were(self) -> None:
        nodes, bundle = self.nodes(), QueryBundle(self.query())
        before = copy.deepcopy((nodes, bundle))
        hits = self.postprocessor().postprocess_nodes(nodes, bundle)
        for hit in hits:
            hit.node.metadata["written"] = "later"
            hit.node.relationships.clear()
        assert (nodes, bundle) == before

    def test_keeps_text_metadata_and_relationships(self) -> None:
        given = {hit.node.node_id: hit.node for hit in self.nodes()}
        for hit in self.postprocessor().postprocess_nodes(self.nodes(), query_str=self.query()):
            node = given[hit.node.node_id]
            assert type(hit.node) is type(node)
            assert hit.node.get_content() == node.get_content()
            assert node.metadata.items() <= hit.node.metadata.items()
            assert hit.node.relationships == node.relationships

    def test_adds_nothing_to_what_language_and_embedding_models_read(self) -> None:
        given = {hit.node.node_id: hit.node for hit in self.nodes()}
        for hit in self.postprocessor().postprocess_nodes(self.nodes(), query_str=self.query()):
            for mode in ("llm", "embed"):
                text = given[hit.node.node_id].get_content(metadata_mode=mode)
                assert hit.node.get_content(metadata_mode=mode) == text

    def test_accepts_nodes_without_scores_and_embeddings(self) -> None:
        scored = self.postprocessor().postprocess_nodes(self.nodes(), query_str=self.query())
        bare = [NodeWithScore(node=hit.node.model_copy(), score=None) for hit in self.nodes()]
        for hit in bare:
            hit.node.embedding = None
        hits = self.postprocessor().postprocess_nodes(bare, query_str=self.query())
        assert results(hits) == results(scored)

    def test_no_nodes_give_no_results(self) -> None:
        assert self.postprocessor().postprocess_nodes([], query_str=self.query()) == []

    def test_order_of_the_input_does_not_matter(self) -> None:
        forward = self.postprocessor().postprocess_nodes(self.nodes(), query_str=self.query())
        backward = self.postprocessor().postprocess_nodes(self.nodes()[::-1], None, self.query())
        assert results(forward) == results(backward)

    def test_refuses_to_work_without_a_query(self) -> None:
        with pytest.raises(ValueError, match="query"):
            self.postprocessor().postprocess_nodes(self.nodes())

    async def test_async_gives_the_same(self) -> None:
        subject = self.postprocessor()
        expected = subject.postprocess_nodes(self.nodes(), query_str=self.query())
        got = await subject.apostprocess_nodes(self.nodes(), query_str=self.query())
        assert results(got) == results(expected)

    def test_threads_and_event_loops_may_share_it(self) -> None:
        subject = self.postprocessor()
        _assert_shareable(
            lambda: subject.postprocess_nodes(self.nodes(), query_str=self.query()),
            lambda: subject.apostprocess_nodes(self.nodes(), query_str=self.query()),
        )

    async def test_fires_one_start_and_one_end_event(self) -> None:
        with events(ReRankStartEvent, ReRankEndEvent) as seen:
            hits = self.postprocessor().postprocess_nodes(self.nodes(), query_str=self.query())
            await self.postprocessor().apostprocess_nodes(self.nodes(), query_str=self.query())
        start, end, *again = seen
        assert (len(start.nodes), start.top_n) == (len(self.nodes()), 3)
        assert str(start.query) == self.query()
        assert results(end.nodes) == results(hits)
        assert list(map(type, again)) == [ReRankStartEvent, ReRankEndEvent]

    def test_copies_and_pickles_work_alike(self) -> None:
        subject = self.postprocessor()
        expected = results(subject.postprocess_nodes(self.nodes(), query_str=self.query()))
        for twin in (copy.deepcopy(subject), pickle.loads(pickle.dumps(subject))):
            got = twin.postprocess_nodes(self.nodes(), query_str=self.query())
            assert results(got) == expected

    def test_serialises_under_its_class_name(self) -> None:
        subject = self.postprocessor()
        assert (
            subject.to_dict()["class_name"] == type(subject).class_name() == type(subject).__name__
        )


class RetrieverConformance(ABC):
    """For retrievers that rank."""

    @abstractmethod
    def retriever(self, k: int = 3) -> BaseRetriever: ...

    @abstractmethod
    def query(self) -> str: ...

    def test_returns_k_nodes_in_descending_order(self) -> None:
        hits = self.retriever().retrieve(self.query())
        assert len(hits) == 3
        assert len(set(ids(hits))) == 3
        assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)

    def test_fewer_results_are_the_beginning_of_more(self) -> None:
        more = results(self.retriever(10).retrieve(self.query()))
        assert len(more) == 10
        for k in (0, 1, 5):
            assert results(self.retriever(k).retrieve(self.query())) == more[:k]

    def test_text_and_bundle_are_the_same_query(self) -> None:
        retriever = self.retriever()
        by_text, by_bundle = map(retriever.retrieve, (self.query(), QueryBundle(self.query())))
        assert results(by_text) == results(by_bundle)

    async def test_leaves_the_query_bundle_as_it_was(self) -> None:
        bundle = QueryBundle(self.query())
        self.retriever().retrieve(bundle)
        await self.retriever().aretrieve(bundle)
        assert bundle == QueryBundle(self.query())

    async def test_async_gives_the_same(self) -> None:
        retriever = self.retriever()
        assert results(await retriever.aretrieve(self.query())) == results(
            retriever.retrieve(self.query())
        )

    def test_what_a_caller_does_to_results_does_not_change_later_ones(self) -> None:
        retriever = self.retriever()
        first = retriever.retrieve(self.query())
        expected = copy.deepcopy(first)
        for hit in first:
            hit.node.metadata.clear()
            hit.score = None
        assert retriever.retrieve(self.query()) == expected

    def test_threads_and_event_loops_may_share_it(self) -> None:
        retriever = self.retriever()
        _assert_shareable(
            lambda: retriever.retrieve(self.query()), lambda: retriever.aretrieve(self.query())
        )

    async def test_is_traced_as_one_run_with_one_run_inside(self) -> None:
        order = [RetrievalStartEvent, RetrievalStartEvent, RetrievalEndEvent, RetrievalEndEvent]
        with events(RetrievalStartEvent, RetrievalEndEvent) as seen:
            self.retriever().retrieve(self.query())
            await self.retriever().aretrieve(self.query())
        assert list(map(type, seen)) == order * 2

    def test_works_in_a_query_engine(self) -> None:
        engine = RetrieverQueryEngine.from_args(self.retriever(), llm=MockLLM())
        response = engine.query(self.query())
        assert results(response.source_nodes) == results(self.retriever().retrieve(self.query()))
        assert response.source_nodes[0].node.get_content() in str(response)


@contextmanager
def events(*kinds: type) -> Iterator[list[Any]]:
    """The instrumentation events of these kinds, as they are fired."""
    seen: list[Any] = []

    class Handler(BaseEventHandler):
        def handle(self, event: Any, **kwargs: Any) -> None:
            if isinstance(event, kinds):
                seen.append(event)

    handler = Handler()
    handlers = instrument.get_dispatcher().event_handlers
    handlers.append(handler)
    try:
        yield seen
    finally:
        handlers.remove(handler)


def _assert_shareable(
    sync: Callable[[], list[NodeWithScore]], coroutine: Callable[[], Any]
) -> None:
    expected = results(sync())

    async def several() -> list[list[NodeWithScore]]:
        return await asyncio.gather(*(coroutine() for _ in range(4)))

    with ThreadPoolExecutor(6) as pool:
        calls = [pool.submit(sync) for _ in range(4)]
        loops = [pool.submit(asyncio.run, several()) for _ in range(2)]
        got = [call.result() for call in calls] + [hits for loop in loops for hits in loop.result()]
    assert len(got) == 12
    assert all(results(hits) == expected for hits in got)
