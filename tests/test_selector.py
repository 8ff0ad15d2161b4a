"""Selecting tools for a query or a conversation."""

from __future__ import annotations

import copy
import gzip
import itertools
import json
import pickle
import threading
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from skillsight_core import CachedEncoder, SkillSight, SkillSightWarning, ToolSelector, load_tools
from tests.fakes import HashEncoder

ROOT = Path(__file__).resolve().parents[1]
WORDS = [
    ("get_weather", "Current weather in a city"),
    ("get_forecast", "Weather forecast for the coming days"),
    ("send_email", "Send an electronic mail to somebody"),
    ("search", "Search the web for pages"),
    ("list_accounts", "Accounts of the signed-in customer"),
    ("create_invoice", "Draft an invoice for an order"),
    ("play_track", "Play a song on the speaker"),
    ("mcp__github__create_issue", "Open an issue in a repository"),
    ("deletePage", "Remove a wiki page"),
    ("translate", "Translate a sentence into French"),
]
TOOLS = [{"name": name, "description": text, "input_schema": {}} for name, text in WORDS]
CATALOGUE = ROOT / "examples" / "tools.json"


def selector(tools=None, **options) -> ToolSelector:
    return ToolSelector(TOOLS if tools is None else tools, HashEncoder(), **options)


def names(tools) -> list[str]:
    return [tool["name"] for tool in tools]


def user(text):
    return {"role": "user", "content": text}


def assistant(text):
    return {"role": "assistant", "content": text}


# -- what comes back -----------------------------------------------------------------------------


def test_the_very_objects_come_back_in_the_callers_order():
    for tools in (TOOLS, TOOLS[::-1]):
        chosen = selector(tools).select("weather forecast for my city", 3)
        positions = [next(i for i, tool in enumerate(tools) if tool is one) for one in chosen]
        assert len(chosen) == 3
        assert positions == sorted(positions)


def test_selected_is_what_the_core_ranks_first():
    encoder = HashEncoder()
    skills = load_tools(TOOLS)
    texts = [skill.text for skill in skills]
    core = SkillSight().fit(texts, encoder.encode(texts), [skill.id for skill in skills])
    query = "draft a mail about the invoice"
    for k in range(len(TOOLS) + 2):
        ranked = core.rank(query, encoder.encode([query])[0], k=k)
        assert set(names(selector().select(query, k))) == {hit.id for hit in ranked}


def test_a_larger_k_keeps_what_a_smaller_one_had():
    chosen = [set(names(selector().select("weather in a city", k))) for k in range(11)]
    assert [len(c) for c in chosen] == list(range(11))
    assert all(small <= large for small, large in itertools.pairwise(chosen))


def test_k_of_the_call_goes_before_k_of_the_selector():
    assert len(selector(k=2).select("weather")) == 2
    assert len(selector(k=2).select("weather", k=4)) == 4


@pytest.mark.parametrize("k", [-1, 1.5, True, "3"])
def test_a_k_that_is_no_count_is_refused(k):
    with pytest.raises(ValueError, match=r"ToolSelector: k must be an integer >= 0"):
        selector(k=k)
    with pytest.raises(ValueError, match=r"ToolSelector.select: k must be an integer >= 0"):
        selector().select("weather", k)


def test_min_evidence_may_leave_the_list_empty():
    picky = selector(min_evidence=0.5)
    assert picky.select("quantum chromodynamics lattice") == []
    assert names(picky.select("play a song")) == ["play_track"]


def test_unknown_options_are_refused():
    with pytest.raises(TypeError, match="unexpected keyword argument 'no_such'"):
        selector(no_such=1)


@pytest.mark.parametrize("n", [0, 1, 2, 5])
def test_few_tools_are_no_reason_to_warn_or_fail(n):
    assert len(selector(TOOLS[:n]).select("weather", 3)) == min(n, 3)


def test_an_empty_query_gives_k_tools():
    assert len(selector().select("", 3)) == 3
    assert len(selector().select([], 3)) == 3


# -- names ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [name for name, _ in WORDS])
def test_a_name_as_the_query_is_always_included(name):
    assert name in names(selector().select(name, 0))
    assert name in names(selector().select(f" {name}\n", 1))


@pytest.mark.parametrize(
    ("query", "named"),
    [
        ("call mcp__github__create_issue, please", "mcp__github__create_issue"),
        ("use deletePage.", "deletePage"),
        ("(send_email)", "send_email"),
        ("use `search` for it", "search"),
        ('the "translate" tool', "translate"),
    ],
)
def test_a_name_within_the_query_is_included_beyond_k(query, named):
    assert names(selector().select(query, 0)) == [named]


def test_an_ordinary_word_and_a_part_of_a_name_are_no_names():
    assert selector().select("search for my_get_weather2 and send_email_now", 0) == []


def test_all_tools_of_one_name_are_included():
    twice = [*TOOLS, {"name": "get_weather", "description": "Of another server"}]
    assert [t["description"] for t in selector(twice).select("get_weather", 0)] == [
        "Current weather in a city", "Of another server",
    ]  # fmt: skip


def test_always_include_does_not_count_in_k():
    always = selector(k=1, always_include=["translate", "search"])
    assert names(always.select("play a song")) == ["search", "play_track", "translate"]


def test_a_missing_name_in_always_include_warns_and_may_come_later():
    with pytest.warns(SkillSightWarning, match=r"always_include must be names of tools.*'later'"):
        always = selector(k=0, always_include=["later", "search"])
    assert names(always.select("x")) == ["search"]
    assert names(always.add({"name": "later"}).select("x")) == ["search", "later"]


def test_always_include_as_one_str_is_refused():
    with pytest.raises(TypeError, match=r"always_include must be a sequence of str, got one str"):
        selector(always_include="search")


def test_tools_that_the_provider_runs_stay_in_their_place():
    provider = {"type": "web_search"}
    mixed = [*TOOLS[:3], provider, *TOOLS[3:]]
    chosen = selector(mixed).select("weather forecast and search the web", 3)
    assert any(tool is provider for tool in chosen)
    assert [t for t in mixed if t in chosen] == chosen
    assert selector([provider]).select("x") == [provider]


# -- conversations -------------------------------------------------------------------------------


def test_do_it_after_a_question_selects_for_the_question():
    talk = [user("weather forecast for Paris"), assistant("Shall I?"), user("do it")]
    assert "get_forecast" in names(selector().select(talk, 2))
    assert "get_forecast" not in names(selector().select("do it", 2))


def test_a_new_topic_in_a_short_message_is_found_beside_the_old_one():
    talk = [user("weather forecast for Paris"), user("play a song")]
    assert {"play_track", "get_forecast"} <= set(names(selector().select(talk, 3)))


def test_a_long_last_message_speaks_for_itself():
    long = "translate this sentence into French: " + "la " * 200
    talk = [user("weather forecast for Paris"), user(long)]
    assert selector().queries_of(talk) == [long.strip()]


def test_the_window_is_bounded_in_characters_and_messages():
    talk = [user(f"message {i} " + "x" * 30) for i in range(50)] + [user("do it")]
    window, last = selector().queries_of(talk)
    assert last == "do it"
    assert len(window) <= 500
    assert window.count("message") == 6
    assert window.startswith("message 44")
    assert window.endswith("do it")
    (huge,) = selector().queries_of([user("begin " + "y" * 10**6 + " end")])
    assert len(huge) <= 2001
    assert huge.startswith("begin")
    assert huge.endswith("end")


def test_a_long_answer_is_passed_over_but_not_what_was_asked_before_it():
    talk = [user("weather for Paris"), assistant("z" * 5000), user("and now?")]
    assert selector().queries_of(talk)[0] == "weather for Paris\nand now?"


def test_the_selection_is_the_same_throughout_a_turn():
    turn = [user("weather forecast for Paris"), assistant("Shall I?"), user("do it")]
    first = names(selector(k=3).select(turn))
    call = {"role": "assistant", "content": "Let me play a song.", "tool_calls": [
        {"id": "1", "type": "function", "function": {"name": first[0], "arguments": "{}"}}
    ]}  # fmt: skip
    answer = {"role": "tool", "tool_call_id": "1", "content": "translate the web page invoice"}
    for n in range(4):
        assert names(selector(k=3).select([*turn, *[call, answer] * n])) == first


def test_query_from_messages_replaces_the_window():
    seen = []

    def hook(messages):
        seen.append(messages)
        return "play a song"

    talk = [user("weather forecast")]
    assert names(selector(k=1, query_from_messages=hook).select(talk)) == ["play_track"]
    assert seen == [talk]
    with pytest.raises(TypeError, match=r"query_from_messages must return a str, got NoneType"):
        selector(query_from_messages=lambda messages: None).select(talk)


CALLED = "create_invoice"
HISTORY = {
    "openai": [
        {"role": "assistant", "content": None, "tool_calls": [
            {"id": "1", "type": "function", "function": {"name": CALLED, "arguments": "{}"}}]},
        {"role": "tool", "tool_call_id": "1", "content": "done"},
    ],
    "openai-legacy": [{"role": "assistant", "function_call": {"name": CALLED, "arguments": "{}"}}],
    "openai-responses": [{"type": "function_call", "name": CALLED, "arguments": "{}"}],
    "anthropic": [
        {"role": "assistant", "content": [
            {"type": "text", "text": "I draft it."},
            {"type": "tool_use", "id": "1", "name": CALLED, "input": {}}]},
        {"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": "1", "content": "done"}]},
    ],
    "answer-only": [{"role": "tool", "name": CALLED, "content": "done"}],
    "attributes": [SimpleNamespace(type="ai", content="", tool_calls=[{"name": CALLED}])],
}  # fmt: skip


@pytest.mark.parametrize("form", HISTORY)
def test_tools_called_earlier_stay(form):
    talk = [user("draft it"), *HISTORY[form], user("play a song")]
    assert names(selector(k=0).select(talk)) == [CALLED]


def test_a_result_in_a_user_message_is_not_what_the_user_said():
    talk = [user("play a song"), *HISTORY["anthropic"]]
    assert selector().queries_of(talk) == ["play a song"]


def test_messages_of_langchain_are_read():
    messages = pytest.importorskip("langchain_core.messages")
    talk = [
        messages.SystemMessage("You are helpful. translate"),
        messages.HumanMessage([{"type": "text", "text": "play a song"}, {"type": "image"}]),
        messages.AIMessage("", tool_calls=[{"name": CALLED, "args": {}, "id": "1"}]),
        messages.ToolMessage("done", tool_call_id="1"),
    ]
    assert selector().queries_of(talk) == ["play a song"]
    assert names(selector(k=1).select(talk)) == [CALLED, "play_track"]


def test_messages_of_llamaindex_are_read():
    llms = pytest.importorskip("llama_index.core.base.llms.types")
    talk = [
        llms.ChatMessage(role="user", content="play a song"),
        llms.ChatMessage(role="assistant", blocks=[
            llms.ToolCallBlock(tool_call_id="1", tool_name=CALLED, tool_kwargs={})]),
        llms.ChatMessage(role="tool", content="done", additional_kwargs={"tool_call_id": "1"}),
        llms.ChatMessage(role="assistant", content="", additional_kwargs={
            "tool_calls": [{"function": {"name": "search"}}]}),
    ]  # fmt: skip
    assert selector().queries_of(talk) == ["play a song"]
    assert names(selector(k=1).select(talk)) == ["search", CALLED, "play_track"]


@pytest.mark.parametrize("wrong", [None, 3, {"role": "user"}])
def test_what_is_no_query_is_refused(wrong):
    with pytest.raises(TypeError, match=r"query_or_messages must be a str or a sequence"):
        selector().select(wrong)
    with pytest.raises(
        TypeError, match=r"messages must have a role or a type, got str at position 1"
    ):
        selector().select([user("x"), "hello"])


# -- live ----------------------------------------------------------------------------------------


def test_adding_and_removing_gives_what_a_new_selector_has():
    grown = selector(TOOLS[:4]).add(TOOLS[4:])
    shrunk = selector([*TOOLS, {"name": "extra", "description": "x"}]).remove("extra")
    again = selector().remove(["search", "translate"]).add([TOOLS[3], TOOLS[9]])
    for query in ("weather in a city", "draft an invoice", "search the web", "nothing of it"):
        for k in (1, 3, 10):
            expected = names(selector().select(query, k))
            assert names(grown.select(query, k)) == expected
            assert names(shrunk.select(query, k)) == expected
            assert sorted(names(again.select(query, k))) == sorted(expected)


def test_added_tools_are_seen_and_removed_ones_gone_at_the_next_call():
    live = selector()
    live.add({"name": "water_plants", "description": "Water the plants in the garden"})
    assert names(live.select("water the plants", 1)) == ["water_plants"]
    live.remove("water_plants")
    assert "water_plants" not in names(live.select("water the plants", 100))
    assert "water_plants" not in live
    assert names(live.tools) == names(TOOLS)


def test_a_selector_may_begin_empty():
    empty = selector([])
    assert empty.select("weather") == []
    assert len(empty.add(TOOLS)) == 10
    assert names(empty.select("weather forecast coming days", 1)) == ["get_forecast"]
    assert names(empty.remove(names(TOOLS)).select("weather")) == []


def test_removing_what_is_not_there_is_refused_and_changes_nothing():
    live = selector()
    with pytest.raises(ValueError, match=r"ToolSelector.remove: .* got some that are not: 'nope'"):
        live.remove(["search", "nope"])
    assert "search" in live


def test_a_tool_that_cannot_be_read_leaves_the_selector_as_it_was():
    live = selector()
    with pytest.raises(TypeError, match=r"ToolSelector.add: tool 1 must be a dict"):
        live.add([{"name": "fine"}, 5])
    assert len(live) == 10
    assert "fine" not in live


def test_reading_while_another_thread_changes_the_tools_never_fails():
    live = selector()
    failures, stop = [], threading.Event()

    def read():
        while not stop.is_set():
            try:
                chosen = live.select("weather and water the plants", 3)
                assert len({tool["name"] for tool in chosen}) == len(chosen) >= 2
            except Exception as error:
                failures.append(error)
                return

    readers = [threading.Thread(target=read) for _ in range(3)]
    for reader in readers:
        reader.start()
    for _ in range(30):
        live.add({"name": "water_plants", "description": "Water the plants"})
        live.remove("water_plants")
    stop.set()
    for reader in readers:
        reader.join()
    assert failures == []


def test_a_selector_can_be_copied_and_pickled():
    for twin in (copy.deepcopy(selector()), pickle.loads(pickle.dumps(selector()))):
        twin.add({"name": "extra"})
        assert names(twin.select("play a song", 1)) == ["play_track"]


def test_nothing_of_the_callers_is_changed():
    tools, talk = copy.deepcopy(TOOLS), [user("weather"), *HISTORY["anthropic"]]
    before = copy.deepcopy(talk)
    selector(tools).select(talk)
    assert tools == TOOLS
    assert talk == before


# -- embeddings ----------------------------------------------------------------------------------


def test_tools_are_encoded_once_ever_and_queries_never_stored(tmp_path, monkeypatch):
    monkeypatch.setenv("SKILLSIGHT_CACHE", str(tmp_path))
    first, second = HashEncoder(seed=5), HashEncoder(seed=5)
    ToolSelector(TOOLS, first).select("play a secret song")
    assert (first.calls, first.texts_encoded) == (2, 11)  # the tools, the query
    reordered = ToolSelector([*TOOLS[::-1], {"name": "new"}], second)
    assert second.texts_encoded == 1
    reordered.select("play a secret song")
    assert second.texts_encoded == 2


def test_an_encoder_without_a_name_works_without_a_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("SKILLSIGHT_CACHE", str(tmp_path))
    encoder = HashEncoder()
    del encoder.name
    assert names(ToolSelector(TOOLS, encoder).select("play a song", 1)) == ["play_track"]
    assert list(tmp_path.iterdir()) == []


def test_a_cache_of_ones_own_is_used_for_tools_and_not_for_queries(tmp_path):
    encoder = HashEncoder()
    ToolSelector(TOOLS, CachedEncoder(encoder, tmp_path)).select("play")
    CachedEncoder(encoder, tmp_path).encode(["play"])
    assert encoder.texts_encoded == 12  # ten tools, the query twice


def test_given_query_embeddings_are_used_instead_of_the_encoder():
    encoder = HashEncoder()
    ours = ToolSelector(TOOLS, encoder)
    talk = [user("weather forecast"), user("play a song")]
    expected = ours.select(talk)
    vectors = encoder.encode(ours.queries_of(talk))
    before = encoder.calls
    assert ours.select(talk, query_embeddings=vectors) == expected
    assert encoder.calls == before
    with pytest.raises(ValueError, match=r"one row for each of the 2 queries, got 1"):
        ours.select(talk, query_embeddings=vectors[:1])


@pytest.mark.parametrize("wrong", ["minilm", HashEncoder, object()])
def test_what_is_no_encoder_is_refused(wrong):
    with pytest.raises(TypeError, match=r"ToolSelector: encoder must be an object with a method"):
        ToolSelector(TOOLS, wrong)


# -- real parts ----------------------------------------------------------------------------------


class Given:
    """Encoder of one known list of texts: its ready vectors; queries come with their own."""

    def __init__(self, vectors):
        self.vectors = vectors

    def encode(self, texts):
        assert len(texts) == len(self.vectors)
        return self.vectors


@pytest.mark.parametrize("name", ["tools-metatool", "tools-bfcl", "tools-livemcp"])
def test_recall_equals_the_cores_on_public_sets(name, shared_data, minilm):
    def lines(file):
        with gzip.open(shared_data / name / file, "rt", encoding="utf-8") as stream:
            return [json.loads(line) for line in stream]

    corpus, queries = lines("corpus.jsonl.gz"), lines("queries.jsonl.gz")
    vectors = np.load(shared_data / name / "corpus.minilm.f16.npy").astype(np.float32)
    gold: dict[str, set[str]] = {}
    for line in (shared_data / name / "qrels" / "test.tsv").read_text().splitlines()[1:]:
        query, document, _ = line.split("\t")
        gold.setdefault(query, set()).add(document)
    tools = [{"name": d["title"], "description": d["text"], "id": d["_id"]} for d in corpus]
    ours = ToolSelector(tools, Given(vectors))
    texts = [f"{d['title']}\n{d['text'].strip()}" for d in corpus]
    core = SkillSight().fit(texts, vectors, [d["_id"] for d in corpus])
    known = {tool["name"] for tool in tools}
    some = [q for q in queries if q["_id"] in gold][:: max(1, len(queries) // 30)]
    recall = {(who, k): 0.0 for who in ("selector", "core") for k in (3, 10)}
    for query, vector in zip(some, minilm.encode([q["text"] for q in some]), strict=True):
        named = {t["id"] for t in ours.select(query["text"], 0)}
        assert not named or any(name in query["text"] for name in known)
        for k in (3, 10):
            selected = {t["id"] for t in ours.select(query["text"], k, query_embeddings=[vector])}
            ranked = {hit.id for hit in core.rank(query["text"], vector, k=k)}
            assert selected == ranked | named
            wanted = gold[query["_id"]]
            recall["selector", k] += len((selected - (named - ranked)) & wanted) / len(wanted)
            recall["core", k] += len(ranked & wanted) / len(wanted)
    for k in (3, 10):
        assert recall["selector", k] == recall["core", k] > 0


def test_the_example_catalogue_is_large_and_its_names_are_distinct():
    skills = load_tools(CATALOGUE)
    assert len(skills) >= 500
    assert len({skill.metadata["server"] for skill in skills}) >= 25
    assert len({skill.name for skill in skills}) == len(skills)
    assert len({skill.description for skill in skills}) > 0.97 * len(skills)


def test_the_right_tool_is_found_among_the_catalogue_by_meaning(minilm):
    servers = json.loads(CATALOGUE.read_text())
    some = ("stripe", "pagerduty", "jira", "hr", "aws", "weather")  # all would take minutes
    ours = ToolSelector({server: servers[server] for server in some}, minilm)
    cases = {
        "refund the customer": "refund_payment",
        "who is on call right now?": "who_is_on_call",
        "create a jira ticket about the login bug": "jira_create_issue",
        "put my laptop receipt in for reimbursement": "submit_expense",
        "how much did we spend on AWS last month": "get_cost_and_usage",
    }
    for query, wanted in cases.items():
        assert wanted in names(ours.select(query, 3))
    talk = [user("What's the weather in Paris?"), assistant("Shall I look it up?"), user("do it")]
    assert any("forecast" in name or "weather" in name for name in names(ours.select(talk, 3)))
