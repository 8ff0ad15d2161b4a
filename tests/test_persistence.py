"""Libraries on disk."""

from __future__ import annotations

import hashlib
import json
import mmap
import pickle
import threading
from pathlib import Path

import numpy as np
import pytest

from skillsight_core import LibraryFileError, SkillSight, SkillSightWarning
from tests.fakes import HashEncoder
from tests.libraries import Made, embed, made, of_texts, queries

MAPPED = pytest.mark.parametrize("mapped", [True, False])


def shout(text: str) -> list[str]:
    return text.upper().split()


@pytest.fixture
def folder(tmp_path) -> Path:
    library = made(40)
    ss = SkillSight().fit(*library, encoder="minilm")
    ss.save(tmp_path / "lib")
    return tmp_path / "lib"


def answers(ss: SkillSight) -> list:
    return [ss.rank(query, embed(query), k=50) for query in queries(6)]


def arrays_file(folder: Path) -> Path:
    (path,) = folder.glob("arrays-*.safetensors")
    return path


def edit(folder: Path, sealed: bool = True, **changes) -> None:
    """Change fields of the manifest; sealed: with a new checksum, as a forger would."""
    manifest = json.loads((folder / "library.json").read_text())
    manifest.update(changes)
    if sealed:
        manifest.pop("checksum")
        canonical = json.dumps(manifest, sort_keys=True).encode()
        manifest["checksum"] = hashlib.sha256(canonical).hexdigest()
    (folder / "library.json").write_text(json.dumps(manifest))


# -- round trips ---------------------------------------------------------------------------------


@MAPPED
@pytest.mark.parametrize("fusion", ["robust", "rectified"])
def test_a_loaded_library_answers_as_the_saved_one(tmp_path, mapped, fusion):
    ss = made(40).fit(fusion=fusion, pool_size=30, min_evidence=0.01, beta=0.5)
    ss.save(tmp_path)
    loaded = SkillSight.load(tmp_path, mmap=mapped)
    assert loaded.get_params() == ss.get_params()
    assert answers(loaded) == answers(ss)
    assert loaded.ids_ == ss.ids_
    assert loaded.generic_tokens_ == ss.generic_tokens_
    assert loaded.idf_threshold_ == ss.idf_threshold_
    np.testing.assert_array_equal(loaded.basis_, ss.basis_)
    np.testing.assert_array_equal(loaded.singular_values_, ss.singular_values_)
    assert loaded.basis_.dtype == np.float32


@MAPPED
def test_a_loaded_library_lives_on(tmp_path, mapped):
    library = made(60)
    ss = library.take(range(40)).fit()
    ss.save(tmp_path)
    loaded = SkillSight.load(tmp_path, mmap=mapped)
    for one in (ss, loaded):
        one.add(*library.take(range(40, 60)))
        one.remove(["s3", "s50"])
        one.refresh()
    assert answers(loaded) == answers(ss)


def test_a_library_with_a_history_is_saved_without_traces(tmp_path):
    library = made(40)
    ss = library.fit()
    ss.add(["secretword"], [embed("x")], ["gone"]).remove(["gone"])
    ss.save(tmp_path)
    assert answers(SkillSight.load(tmp_path)) == answers(ss)
    everything = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    assert b"secretword" not in everything
    assert b"gone" not in everything


@pytest.mark.parametrize(("mapped", "expected"), [(True, True), (False, False)])
def test_mapped_arrays_stay_on_disk(folder, mapped, expected):
    state = SkillSight.load(folder, mmap=mapped)._state
    (segment,) = state.library.segments
    for array in (segment.embeddings, segment.rows, segment.bounds, state.background.basis):
        owner = array
        while isinstance(owner, np.ndarray):
            owner = owner.base
        assert isinstance(owner, mmap.mmap) is expected
    assert segment.embeddings.flags.writeable is not expected


@MAPPED
def test_empty_and_tiny_libraries_round_trip(tmp_path, mapped):
    for n in (0, 1):
        with pytest.warns(SkillSightWarning):
            ss = made(1).take(range(n)).fit()
        ss.save(tmp_path / str(n))
        loaded = SkillSight.load(tmp_path / str(n), mmap=mapped)
        assert loaded.n_features_in_ == 48
        assert answers(loaded) == answers(ss)
    wordless = Made([""] * 8, made(8).vectors, made(8).ids).fit()
    wordless.save(tmp_path / "wordless")
    assert answers(SkillSight.load(tmp_path / "wordless", mmap=mapped)) == answers(wordless)


def test_any_string_is_an_id_or_a_word(tmp_path):
    names = [
        "new\nline",
        "\U0001f600",
        "\ud800 alone",
        "",
        "nul\0",
        '"quoted\\"',
        "\u2028",
        "a/../b",
    ]
    texts = [f"word{i} \ud800 {name}" for i, name in enumerate(names)]
    ss = SkillSight(tokenizer=shout).fit(texts, of_texts(texts).vectors, names)
    ss.save(tmp_path)
    loaded = SkillSight.load(tmp_path, tokenizer=shout)
    assert loaded.ids_ == tuple(names)
    assert loaded._state.library.vocabulary == ss._state.library.vocabulary
    assert loaded.rank("\ud800 word2", embed("x"), k=9) == ss.rank("\ud800 word2", embed("x"), k=9)


def test_numbers_of_numpy_are_saved_as_numbers(tmp_path):
    ss = made(20).fit(pool_size=np.int64(9), beta=np.float32(0.5), unique_texts=np.bool_(True))
    ss.save(tmp_path)
    assert SkillSight.load(tmp_path).get_params() == ss.get_params()


def test_no_file_is_a_pickle(folder):
    assert sorted(path.suffix for path in folder.iterdir()) == [".json", ".safetensors"]
    for path in folder.iterdir():
        data = path.read_bytes()
        assert not data.startswith(b"\x80")
        assert b"numpy" not in data
    safetensors = pytest.importorskip("safetensors.numpy")
    arrays = safetensors.load_file(arrays_file(folder))  # a foreign reader reads it
    np.testing.assert_array_equal(arrays["basis"], SkillSight.load(folder).basis_)


def test_a_second_save_replaces_the_first(folder):
    first = arrays_file(folder)
    other = made(30, seed=5).fit()
    other.save(folder)
    assert answers(SkillSight.load(folder)) == answers(other)
    assert arrays_file(folder) != first
    assert len(list(folder.iterdir())) == 2
    other.save(folder)
    assert len(list(folder.iterdir())) == 2
    assert answers(SkillSight.load(folder)) == answers(other)


def test_a_mapped_library_survives_its_replacement(folder):
    mapped = SkillSight.load(folder)
    before = answers(mapped)
    made(30, seed=5).fit().save(folder)
    assert answers(mapped) == before


def test_a_loaded_library_can_be_saved_over_itself(folder):
    mapped = SkillSight.load(folder)
    before = answers(mapped)
    mapped.save(folder)
    assert answers(SkillSight.load(folder)) == before
    mapped.remove(["s0"]).save(folder)
    assert "s0" not in SkillSight.load(folder).ids_


# -- encoders and tokenizers ---------------------------------------------------------------------


def test_another_encoder_is_refused_by_both_names(folder):
    with pytest.raises(
        LibraryFileError,
        match=r"SkillSight.load: encoder must be the one the library was built with, 'minilm', "
        r"got 'hash-64-0': .*lib",
    ):
        SkillSight.load(folder, encoder=HashEncoder())
    assert SkillSight.load(folder, encoder="minilm").encoder_name_ == "minilm"
    assert SkillSight.load(folder).encoder_name_ == "minilm"


def test_a_library_without_encoder_takes_any(tmp_path):
    made(20).fit().save(tmp_path)
    assert SkillSight.load(tmp_path, encoder="any").encoder_name_ is None


def test_a_nameless_encoder_of_another_dimension_is_refused_by_both_dimensions(folder):
    nameless = HashEncoder(12)
    nameless.name = None
    with pytest.raises(
        LibraryFileError,
        match=r"SkillSight.load: the encoder's dimension must be the one the library was built "
        r"with, 48, got 12: .*lib",
    ):
        SkillSight.load(folder, encoder=nameless)
    fitting = HashEncoder(48)
    fitting.name = None
    assert SkillSight.load(folder, encoder=fitting).encoder_name_ == "minilm"


@pytest.mark.parametrize(
    ("missing", "complaint"),
    [
        ("parameters", r"lack what every library has \('parameters'\)"),
        ("words", r"lack what every library has \('words'\)"),
        ("dimension", r"lack what every library has \('dimension'\)"),
        (
            "arrays",
            "the arrays file must lie in the folder and be named as save names it, got None",
        ),
    ],
)
def test_a_forged_manifest_that_lacks_something_is_refused(folder, missing, complaint):
    path = folder / "library.json"
    manifest = json.loads(path.read_text())
    del manifest[missing], manifest["checksum"]
    text = json.dumps(manifest, sort_keys=True)
    manifest["checksum"] = hashlib.sha256(text.encode()).hexdigest()
    path.write_text(json.dumps(manifest))
    with pytest.raises(LibraryFileError, match=complaint):
        SkillSight.load(folder)


def test_a_copy_made_while_another_thread_adds_is_whole():
    ss = made(40).fit()
    more = made(900)
    stop = threading.Event()

    def add():
        for i in range(40, 900):
            if stop.is_set():
                return
            ss.add([f"{more.texts[i]} word{i}"], [more.vectors[i]], [more.ids[i]])

    writer = threading.Thread(target=add)
    writer.start()
    try:
        copies = [pickle.loads(pickle.dumps(ss)) for _ in range(30)]
    finally:
        stop.set()
        writer.join()
    for copied in copies:
        assert len(copied.ids_) == copied.n_skills_
        assert copied.rank("bazar", embed("bazar"), k=1)


def test_another_tokenizer_is_refused_by_both_names(tmp_path, folder):
    with pytest.raises(
        LibraryFileError,
        match=r"SkillSight.load: tokenizer must be the one the library was built with, None, "
        r"got 'tests.test_persistence.shout'",
    ):
        SkillSight.load(folder, tokenizer=shout)
    made(20).fit(tokenizer=shout).save(tmp_path / "loud")
    with pytest.raises(LibraryFileError, match=r"'tests.test_persistence.shout', got None"):
        SkillSight.load(tmp_path / "loud")
    assert SkillSight.load(tmp_path / "loud", tokenizer=shout).tokenizer is shout


# -- damage --------------------------------------------------------------------------------------


def flip(path: Path, at: int) -> None:
    data = bytearray(path.read_bytes())
    data[at] ^= 1
    path.write_bytes(data)


@MAPPED
@pytest.mark.parametrize("where", [0, 9, 0.5, -1])
def test_one_changed_bit_is_refused(folder, where, mapped):
    path = arrays_file(folder)
    flip(path, int(where * path.stat().st_size) if isinstance(where, float) else where)
    with pytest.raises(
        LibraryFileError,
        match=rf"SkillSight.load: {path.name} does not match its checksum, it was changed or "
        "damaged after it was written: .*lib",
    ):
        SkillSight.load(folder, mmap=mapped)


@MAPPED
@pytest.mark.parametrize("left", [0, 7, 1000])
def test_a_truncated_file_is_refused(folder, left, mapped):
    path = arrays_file(folder)
    path.write_bytes(path.read_bytes()[:left])
    with pytest.raises(
        LibraryFileError,
        match=rf"SkillSight.load: {path.name} (must have \d+ bytes, got|cannot be)",
    ):
        SkillSight.load(folder, mmap=mapped)


@MAPPED
def test_a_missing_arrays_file_is_refused(folder, mapped):
    name = arrays_file(folder).name
    arrays_file(folder).unlink()
    with pytest.raises(LibraryFileError, match=rf"SkillSight.load: {name} cannot be read"):
        SkillSight.load(folder, mmap=mapped)


@pytest.mark.parametrize(
    "change",
    [{"skills": 41}, {"encoder": "other"}, {"dimension": 47}, {"parameters": {}}, {"more": 1}],
    ids=str,
)
def test_a_changed_manifest_is_refused(folder, change):
    edit(folder, sealed=False, **change)
    with pytest.raises(
        LibraryFileError,
        match=r"SkillSight.load: library.json does not match its checksum, it was changed or "
        "damaged after it was written: .*lib",
    ):
        SkillSight.load(folder)


@pytest.mark.parametrize("version", [0, 2, "1", None])
def test_another_format_version_is_refused(folder, version):
    edit(folder, version=version)
    with pytest.raises(
        LibraryFileError, match=f"SkillSight.load: format version must be 1, got {version!r}: "
    ):
        SkillSight.load(folder)


@pytest.mark.parametrize("content", ["[]", "3", "null", '{"name": "package"}', '{"format": "x"}'])
def test_foreign_json_is_refused(folder, content):
    (folder / "library.json").write_text(content)
    with pytest.raises(
        LibraryFileError, match=r"SkillSight.load: library.json was not written by SkillSight: "
    ):
        SkillSight.load(folder)


@pytest.mark.parametrize("content", [b"", b'{"format": "skillsight-lib', b"\xff\xfe\x00", b"{]"])
def test_a_manifest_that_is_no_json_is_refused(folder, content):
    (folder / "library.json").write_bytes(content)
    with pytest.raises(LibraryFileError, match=r"SkillSight.load: library.json cannot be read"):
        SkillSight.load(folder)


def test_what_is_no_library_is_refused(tmp_path, folder):
    (tmp_path / "empty").mkdir()
    for path in (tmp_path / "empty", tmp_path / "absent", folder / "library.json"):
        with pytest.raises(
            LibraryFileError,
            match=r"SkillSight.load: path must be a folder written by save, got one without "
            "library.json: ",
        ):
            SkillSight.load(path)


@pytest.mark.parametrize("up", ["../victim", "..", "README.md", "library.json", "/etc/passwd"])
def test_no_file_out_of_the_folder_is_read_or_removed(folder, up):
    victims = [folder.parent / "victim", folder / "README.md"]
    for victim in victims:
        victim.write_bytes(b"precious")
    digest = hashlib.sha256(b"precious").hexdigest()
    edit(folder, arrays={"file": up, "bytes": 8, "sha256": digest})
    with pytest.raises(
        LibraryFileError,
        match=r"SkillSight.load: the arrays file must lie in the folder and be named",
    ):
        SkillSight.load(folder)
    made(20).fit().save(folder)
    assert [victim.read_bytes() for victim in victims] == [b"precious"] * 2
    assert SkillSight.load(folder).n_skills_ == 20


# -- saving --------------------------------------------------------------------------------------


def test_foreign_folders_are_not_written_to(tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(
        LibraryFileError,
        match=r"SkillSight.save: path must be new, empty or hold a library, got a folder with "
        "other files: ",
    ):
        made(20).fit().save(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]
    with pytest.raises(
        LibraryFileError, match=r"SkillSight.save: path must be a folder, got a file"
    ):
        made(20).fit().save(tmp_path / "notes.txt")
    assert (tmp_path / "notes.txt").read_text() == "mine"


def test_other_files_in_the_folder_of_a_library_stay(folder):
    (folder / "README.md").write_text("mine")
    made(20).fit().save(folder)
    assert (folder / "README.md").read_text() == "mine"


@pytest.mark.parametrize("failing", ["arrays-", "library.json"])
def test_an_interrupted_save_leaves_the_old_library(folder, monkeypatch, failing):
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    interrupt(monkeypatch, failing)
    with pytest.raises(OSError, match=r"disk full"):
        made(30, seed=5).fit().save(folder)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    assert SkillSight.load(folder).n_skills_ == 40


@pytest.mark.parametrize("failing", ["arrays-", "library.json"])
def test_an_interrupted_first_save_can_be_repeated(tmp_path, monkeypatch, failing):
    ss = made(20).fit()
    with monkeypatch.context() as patch:
        interrupt(patch, failing)
        with pytest.raises(OSError, match=r"disk full"):
            ss.save(tmp_path)
    assert list(tmp_path.iterdir()) == []
    ss.save(tmp_path)
    assert SkillSight.load(tmp_path).n_skills_ == 20


def test_the_leavings_of_a_killed_save_are_no_obstacle(tmp_path):
    (tmp_path / "arrays-0123456789abcdef.safetensors").write_bytes(b"half")
    (tmp_path / ".library.json.x1y2").write_bytes(b"{")
    made(20).fit().save(tmp_path)
    assert SkillSight.load(tmp_path).n_skills_ == 20


def interrupt(patch: pytest.MonkeyPatch, failing: str) -> None:
    """Make replacing a file of this name fail as on a full disk."""
    genuine = Path.replace

    def replace(self: Path, target) -> Path:
        if Path(target).name.startswith(failing):
            raise OSError("disk full")
        return genuine(self, target)

    patch.setattr(Path, "replace", replace)
