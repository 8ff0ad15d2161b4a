"""Text to tokens."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillsight_core import tokenize
from tests.libraries import embed, of_texts

TABLE = {
    "": "",
    " \t\n ... - _ ' + # !?": "",
    # identifiers: whole and in parts
    "get_accounts": "get_accounts get accounts",
    "listPullRequests": "listpullrequests list pull requests",
    "kebab-case-name": "kebab-case-name kebab case name",
    "mcp__server__tool": "mcp__server__tool mcp server tool",
    "snake_Case-mixedUp": "snake_case-mixedup snake case mixed up",
    "HTTPServer": "httpserver http server",
    "getHTTPServer": "gethttpserver get http server",
    "parseHTML5Page": "parsehtml5page parse html5 page",
    "createEC2Instance": "createec2instance create ec2 instance",
    "uploadToS3Bucket": "uploadtos3bucket upload to s3 bucket",
    "__init__": "init",
    "foo/bar:baz": "foo bar baz",
    "node.js": "node.js node js",
    # versions, numbers, signs
    "7.23": "7.23",
    "v6.2.8": "v6.2.8 6.2.8",
    "2024-01-31": "2024-01-31",
    "x86_64": "x86_64 x86 64",
    "gpt-4o": "gpt-4o gpt 4o",
    "C++, C# and F#": "c++ c# and f#",
    ".NET": ".net net",
    "R": "r",
    "C or R?": "c or r",
    "the theme": "the theme",
    # acronyms and their plurals
    "PDF": "pdf",
    "PDFs": "pdfs",
    "listPDFs": "listpdfs list pdfs",
    "PDFs_list": "pdfs_list pdfs list",
    "NASA's": "nasa",
    # apostrophes
    "don't": "don't",
    "don\u2019t": "don't",
    "'quoted'": "quoted",
    "user's": "user",
    # one form of each character; nothing invisible
    "\uff21\uff22\uff23\uff11": "abc1",
    "\ufb01le": "file",
    "cafe\u0301 caf\u00e9": "caf\u00e9 caf\u00e9",
    "zero\u200bwidth\ufeff": "zerowidth",
    "bi\u202edi\u2066": "bidi",
    "soft\u00adhyphen": "softhyphen",
    "non\u2011breaking": "non-breaking non breaking",
    "na\u00efve Stra\u00dfe": "na\u00efve stra\u00dfe",
    "\u0420\u0410\u0417 \u0434\u0432\u0430": "\u0440\u0430\u0437 \u0434\u0432\u0430",
    "\U0001f600 smile": "smile",
    # scripts without spaces
    "\u6771": "\u6771",
    "\u6771\u4eac": "\u6771\u4eac",
    "\u6771\u4eac\u90fd": "\u6771\u4eac \u4eac\u90fd",
    "\u6771\u4eac\u3001\u5927\u962a": "\u6771\u4eac \u5927\u962a",
    "\u65e5\u672c\u306ePDF\u3092\u958b\u304f": (
        "\u65e5\u672c \u672c\u306e pdf \u3092\u958b \u958b\u304f"
    ),
    "\ud55c\uad6d\uc5b4 API": "\ud55c\uad6d \uad6d\uc5b4 api",
    "\u0e44\u0e17\u0e22": "\u0e44\u0e17 \u0e17\u0e22",
    # vowel signs belong to the word
    "\u0939\u093f\u0928\u094d\u0926\u0940 \u092d\u093e\u0937\u093e": (
        "\u0939\u093f\u0928\u094d\u0926\u0940 \u092d\u093e\u0937\u093e"
    ),
    # what nobody types
    "a" * 128: "a" * 128,
    "a" * 129: "",
    "a" * 200 + "_get": "get",
}


@pytest.mark.parametrize(("text", "tokens"), TABLE.items(), ids=map(ascii, range(len(TABLE))))
def test_texts_split_as_the_table_says(text, tokens):
    assert tokenize(text) == tokens.split()


def test_repetitions_stay():
    assert tokenize("go, go GO") == ["go", "go", "go"]


texts = st.text(
    st.one_of(
        st.sampled_from("aAbZ019 ._-'+#\n"),
        st.characters(),
        st.sampled_from("\u6771\u4eac\u0e44\u0e17\u0939\u093f\u0301\u200b\uff21\u2019\u0130\u03a3"),
    ),
    max_size=40,
)


@given(texts)
def test_tokens_are_short_lower_case_and_not_empty(text):
    for token in tokenize(text):
        assert 0 < len(token) <= 128
        assert token == token.lower()
        assert not any(character.isspace() for character in token)


@given(texts, texts)
def test_lines_are_independent(one, other):
    assert tokenize(one + "\n" + other) == tokenize(one) + tokenize(other)


@given(st.text(st.characters(max_codepoint=127), max_size=40))
def test_ascii_is_read_alike_among_other_text(text):
    assert tokenize(text + "\n\u6771") == [*tokenize(text), "\u6771"]


@given(texts)
def test_a_token_that_is_tokenised_gives_itself_first(text):
    for token in tokenize(text):
        if token.isascii():
            assert tokenize(token)[:1] == [token.removesuffix("'s")]


@pytest.mark.parametrize(
    "unit",
    [
        "a", "A", "1", ".", "_", "'", "a'", "a'b_", "a.", "a_", "A1", "aB", "AAs", "+", "#", "a+",
        " ", "1.", "\u6771", "\u6771a", "\u0301", "\u0939\u093f", "\u200b", "a'\u00e9",
    ],
)  # fmt: skip
@pytest.mark.parametrize("end", ["", "!", "a.b", "Ab'"])
def test_time_is_linear_in_the_length(unit, end):
    """Eight times the text may take forty times the processor's time, but not sixty-four.

    The time of this thread alone, so that a busy machine does not count; below 0.2 s any is fine.
    """

    def seconds(length: int) -> float:
        best = float("inf")
        for attempt in range(3):
            text = unit * (length // len(unit)) + end + str(attempt)  # not in any cache
            begin = time.thread_time()
            tokenize(text)
            best = min(best, time.thread_time() - begin)
        return best

    seconds(100)
    assert seconds(64_000) < max(40 * seconds(8_000), 0.2)


def test_symbols_and_single_letters_discriminate():
    ss = of_texts(["write C++", "write C#", "write R", "write 7.23", "write 7.24"]).fit(
        background="none", semantic=False
    )
    for place, query in enumerate(["c++", "c#", "r", "7.23", "7.24"]):
        best = ss.rank(query, embed("write"), k=1)[0]
        assert (best.id, best.matched_tokens) == (f"s{place}", (query,))


def test_only_whole_words_match():
    ss = of_texts(["theme park", "the park"]).fit(background="none")
    assert ss.explain("the", embed("x"), "s0").matched_tokens == ()
    assert ss.explain("the", embed("x"), "s1").matched_tokens == ("the",)
