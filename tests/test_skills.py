"""Skills, and reading them from whatever a folder of SKILL.md files may hold."""

from __future__ import annotations

import copy
import os
import pickle
import stat
import tempfile
import warnings
from collections.abc import Iterator
from dataclasses import FrozenInstanceError, replace
from pathlib import Path

import pytest
import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st

from skillsight_core._errors import SkillSightWarning
from skillsight_core._skillmd import SkillFile, UnreadableError, parse
from skillsight_core._skills import FileNote, Skill, SkillLibrary, load_skills
from tests.conftest import ours

EXAMPLES = Path(__file__).parent.parent / "examples" / "library"


def put(root: Path, path: str, content: str | bytes) -> Path:
    file = root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content.encode() if isinstance(content, str) else content)
    return file


def skill_md(name: str = "a-skill", description: str = "Does it.", body: str = "Steps.") -> str:
    return f"---\nname: {name}\ndescription: {description}\n---\n\n{body}\n"


def quietly(path: Path) -> SkillLibrary:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SkillSightWarning)
        return load_skills(path)


def load_one(root: Path, content: str | bytes) -> tuple[Skill, FileNote | None]:
    """The skill of one file ``folder/SKILL.md``, and the note if it was repaired."""
    put(root, "folder/SKILL.md", content)
    library = quietly(root)
    assert len(library) == 1, library.report
    return library[0], next(iter(library.report.repaired), None)


# -- Skill ---------------------------------------------------------------------------------------


def test_text_is_name_description_and_body_on_lines_of_their_own() -> None:
    assert Skill("i", "n", "d", "b1\nb2").text == "n\nd\nb1\nb2"


def test_text_leaves_out_empty_parts() -> None:
    assert Skill("i", "n", "", "b").text == "n\nb"
    assert Skill("i", "n", "d").text == "n\nd"
    assert Skill("i", "", "").text == ""


def test_text_consists_of_the_chosen_fields_in_their_order() -> None:
    assert Skill("i", "n", "d", "b", fields=("description", "name")).text == "d\nn"


def test_skill_is_frozen_and_its_metadata_read_only() -> None:
    skill = Skill("i", "n", "d", metadata={"license": "MIT"})
    with pytest.raises(FrozenInstanceError):
        skill.name = "x"  # type: ignore[misc]
    with pytest.raises(TypeError, match="does not support item assignment"):
        skill.metadata["license"] = "x"  # type: ignore[index]


def test_metadata_is_a_copy() -> None:
    given_metadata = {"license": "MIT"}
    skill = Skill("i", "n", "d", metadata=given_metadata)
    given_metadata["license"] = "none"
    assert skill.metadata == {"license": "MIT"}


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, replace])
def test_copies_are_equal(duplicate) -> None:
    skill = Skill("i", "n", "d", "b", {"metadata": {"author": "x"}}, fields=("name",))
    assert duplicate(skill) == skill
    assert hash(duplicate(skill)) == hash(skill)


def test_skill_survives_pickling() -> None:
    skill = Skill("i", "n", "d", "b", {"allowed-tools": ["Read"]})
    assert pickle.loads(pickle.dumps(skill)) == skill


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"id": 1}, "Skill: id must be a str, got int"),
        ({"name": None}, "Skill: name must be a str, got NoneType"),
        ({"description": ["d"]}, "Skill: description must be a str, got list"),
        ({"body": b"b"}, "Skill: body must be a str, got bytes"),
        ({"metadata": "MIT"}, "Skill: metadata must be a mapping, got str"),
        ({"fields": "name"}, "Skill: fields must be a sequence of str, got one str: 'name'"),
        ({"fields": 3}, "Skill: fields must be a sequence of str, got one int: 3"),
    ],
)
def test_skill_of_wrong_types_is_refused(arguments, message) -> None:
    with pytest.raises(TypeError, match=message):
        Skill(**{"id": "i", "name": "n", "description": "d"} | arguments)


def test_empty_id_is_refused() -> None:
    with pytest.raises(ValueError, match="Skill: id must not be empty, got ''"):
        Skill("", "n", "d")


@pytest.mark.parametrize("fields", [(), ("title",), ("name", "name"), ([],)])
def test_fields_other_than_the_three_once_each_are_refused(fields) -> None:
    with pytest.raises(ValueError, match="Skill: fields must be some of 'name', 'description', 'b"):
        Skill("i", "n", "d", fields=fields)


# -- the library ---------------------------------------------------------------------------------


def test_the_example_library_loads_as_it_is() -> None:
    if not EXAMPLES.is_dir():
        pytest.skip("the examples are not part of this distribution")
    library = load_skills(EXAMPLES)
    files = sorted(EXAMPLES.rglob("SKILL.md"))
    assert len(library) == len(files) == 168
    assert library.report.repaired == library.report.skipped == ()
    assert library.ids == sorted(file.parent.relative_to(EXAMPLES).as_posix() for file in files)
    for skill in library:
        raw = (EXAMPLES / skill.id / "SKILL.md").read_text(encoding="utf-8")
        _, front, body = raw.split("---\n", 2)
        reference = yaml.safe_load(front)
        assert skill.name == reference.pop("name")
        assert skill.description == reference.pop("description").strip()
        assert skill.body == body.strip()
        assert skill.metadata.keys() == reference.keys()


def test_library_is_a_sequence_in_order_of_ids(tmp_path) -> None:
    for name in ("b", "a/z", "c", "a"):
        put(tmp_path, f"{name}/SKILL.md", skill_md(name.replace("/", "-")))
    library = load_skills(tmp_path)
    assert library.ids == ["a", "a/z", "b", "c"] == [skill.id for skill in library]
    assert library.texts == [skill.text for skill in library]
    assert library[-1].id == "c"
    assert [skill.id for skill in library[1:3]] == ["a/z", "b"]
    assert isinstance(library[1:3], list)
    assert library[2] in library
    assert len(library) == 4
    assert library.report.loaded == ("a/SKILL.md", "a/z/SKILL.md", "b/SKILL.md", "c/SKILL.md")
    with pytest.raises(FrozenInstanceError):
        library.skills = ()  # type: ignore[misc]


def test_loading_twice_gives_equal_libraries(tmp_path) -> None:
    put(tmp_path, "a/SKILL.md", skill_md())
    put(tmp_path, "b/SKILL.md", "No front matter.")
    assert quietly(tmp_path) == quietly(tmp_path)


def test_library_survives_pickling_and_copying(tmp_path) -> None:
    put(tmp_path, "a/SKILL.md", skill_md())
    library = load_skills(tmp_path)
    assert pickle.loads(pickle.dumps(library)) == library == copy.deepcopy(library)


def test_fields_choose_the_text_of_every_skill(tmp_path) -> None:
    put(tmp_path, "a/SKILL.md", skill_md("n", "d", "b"))
    assert load_skills(tmp_path, fields=["description", "name"]).texts == ["d\nn"]


def test_same_names_in_different_folders_stay_apart(tmp_path) -> None:
    put(tmp_path, "x/pdf/SKILL.md", skill_md("pdf", "One."))
    put(tmp_path, "y/pdf/SKILL.md", skill_md("pdf", "Two."))
    assert {skill.id: skill.description for skill in load_skills(tmp_path)} == {
        "x/pdf": "One.",
        "y/pdf": "Two.",
    }


def test_skill_directly_in_the_folder_goes_by_its_name(tmp_path, monkeypatch) -> None:
    file = put(tmp_path, "pdf/SKILL.md", skill_md())
    monkeypatch.chdir(file.parent)
    for path in (file, file.parent, str(file.parent) + "/", ".", "SKILL.md", "../pdf"):
        assert load_skills(path).ids == ["pdf"]


def test_skill_directly_in_the_folder_gives_way_to_one_below_of_that_id(tmp_path) -> None:
    put(tmp_path, "pdf/SKILL.md", "---\ndescription: Outer.\n---\n")
    put(tmp_path, "pdf/pdf/SKILL.md", skill_md("pdf", "Inner."))
    library = quietly(tmp_path / "pdf")
    assert [(s.id, s.name, s.description) for s in library] == [
        (".", "pdf", "Outer."),
        ("pdf", "pdf", "Inner."),
    ]


def test_file_name_is_read_in_any_case_and_one_per_folder(tmp_path) -> None:
    put(tmp_path, "a/skill.md", skill_md())
    put(tmp_path, "b/Skill.MD", skill_md())
    put(tmp_path, "c/SKILL.md", skill_md("upper"))
    put(tmp_path, "c/skill.md", skill_md("lower"))
    put(tmp_path, "d/README.md", "Not a skill.")
    if (tmp_path / "c/skill.md").samefile(tmp_path / "c/SKILL.md"):
        pytest.skip("this file system does not tell upper from lower case")
    with pytest.warns(SkillSightWarning, match=r"1 skipped .*c/skill\.md: same id as c/SKILL\.md"):
        library = load_skills(tmp_path)
    assert library.ids == ["a", "b", "c"]
    assert library[2].name == "upper"


# -- the report and the warnings -----------------------------------------------------------------


def test_report_sums_up_what_happened(tmp_path) -> None:
    put(tmp_path, "good/SKILL.md", skill_md())
    put(tmp_path, "plain/SKILL.md", "# Plain\n\nJust text.\n")
    put(tmp_path, "empty/SKILL.md", "\n \n")
    assert str(quietly(tmp_path).report).split("\n") == [
        "2 skills loaded, 1 of them repaired; 1 skipped",
        "  repaired plain/SKILL.md:1: no front matter; no name (that of the folder is used); "
        "no description (the first paragraph is used)",
        "  skipped empty/SKILL.md: empty file",
    ]


def test_summary_stays_short(tmp_path) -> None:
    for number in range(300):
        put(tmp_path, f"s{number:03}/SKILL.md", "text")
    lines = str(quietly(tmp_path).report).split("\n")
    assert len(lines) == 12
    assert lines[-1] == "  repaired and 290 more"


def test_one_warning_for_all_repaired_and_one_for_all_skipped(tmp_path) -> None:
    for number in range(5):
        put(tmp_path, f"r{number}/SKILL.md", f"---\nname: r\ndescription: Use: {number}\n---\n")
    for number in range(4):
        put(tmp_path, f"s{number}/SKILL.md", "")
    put(tmp_path, "good/SKILL.md", skill_md())
    with pytest.warns(SkillSightWarning) as caught:
        library = load_skills(tmp_path)
    assert len(library) == 6
    problem = "mapping values are not allowed in this context (read line by line)"
    named = "; ".join(
        f"r{n}/SKILL.md:3: front matter is not valid YAML: {problem}" for n in range(3)
    )
    assert [str(warning.message) for warning in ours(caught)] == [
        f"load_skills: 5 repaired (see .report): {named}; and 2 more",
        "load_skills: 4 skipped (see .report): s0/SKILL.md: empty file; s1/SKILL.md: empty file; "
        "s2/SKILL.md: empty file; and 1 more",
    ]
    assert {warning.filename for warning in ours(caught)} == {__file__}


def test_valid_files_raise_no_warning(tmp_path) -> None:
    put(tmp_path, "a/SKILL.md", skill_md())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        load_skills(tmp_path)


def test_a_name_that_is_not_printable_is_escaped_in_messages(tmp_path) -> None:
    put(tmp_path, "a\n\x1b[31m/SKILL.md", "")
    assert str(quietly(tmp_path).report.skipped[0]) == r"'a\n\x1b[31m/SKILL.md': empty file"


# -- user errors ---------------------------------------------------------------------------------


def test_missing_path_is_an_error(tmp_path) -> None:
    expected = r"load_skills: path must be an existing folder or SKILL\.md file, got '.*nowhere'"
    with pytest.raises(FileNotFoundError, match=expected):
        load_skills(tmp_path / "nowhere")


@pytest.mark.parametrize(("path", "kind"), [(3, "int"), (None, "NoneType"), (b"x", "bytes")])
def test_path_of_another_type_is_an_error(path, kind) -> None:
    with pytest.raises(TypeError, match=f"load_skills: path must be a str or a Path, got {kind}"):
        load_skills(path)


def test_unknown_field_is_an_error_before_anything_is_read(tmp_path) -> None:
    with pytest.raises(ValueError, match=r"load_skills: fields must be some of .*, got \('title',"):
        load_skills(tmp_path, fields=["title"])


def test_folder_without_skills_gives_an_empty_library_and_a_warning(tmp_path) -> None:
    put(tmp_path, "docs/README.md", "x")
    with pytest.warns(SkillSightWarning, match="load_skills: no SKILL.md in '.+'"):
        library = load_skills(tmp_path)
    assert len(library) == 0
    assert (library.ids, library.texts, list(library)) == ([], [], [])


# -- front matter that is as it should be --------------------------------------------------------

VALID = {
    "plain": ("name: n\ndescription: Does it.", "Does it.", {}),
    "folded": ("name: n\ndescription: >-\n  Does\n  it.", "Does it.", {}),
    "folded, trailing break": ("name: n\ndescription: >\n  Does\n  it.\n", "Does it.", {}),
    "literal": ("name: n\ndescription: |\n  Does\n  it.", "Does\nit.", {}),
    "quoted colon": ('name: n\ndescription: "Use: it"', "Use: it", {}),
    "plain over lines": ("name: n\ndescription: Does\n  it.", "Does it.", {}),
    "flow": ('{"name": "n", "description": "d"}', "d", {}),
    "comments": ("# c\nname: n # c\ndescription: d", "d", {}),
    "all fields": (
        "name: n\ndescription: d\nlicense: MIT\ncompatibility: git\n"
        "allowed-tools: Read Write\nmetadata:\n  author: x\n  version: '1.0'",
        "d",
        {
            "license": "MIT",
            "compatibility": "git",
            "allowed-tools": "Read Write",
            "metadata": {"author": "x", "version": "1.0"},
        },
    ),
    "values stay text as written": (
        "name: n\ndescription: d\nversion: 1.10\nok: no\nday: 2024-01-02\nlist: [1, 0x2]\nnone: ~",
        "d",
        {"version": "1.10", "ok": "no", "day": "2024-01-02", "list": ["1", "0x2"], "none": None},
    ),
}


@pytest.mark.parametrize("kind", VALID)
@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("bom", ["", "\ufeff"])
def test_valid_front_matter_is_read_to_the_letter(tmp_path, kind, newline, bom) -> None:
    front, description, metadata = VALID[kind]
    content = f"{bom}---\n{front}\n---\n\n# T\n\nb\n".replace("\n", newline)
    skill, note = load_one(tmp_path, content)
    assert note is None
    expected = Skill("folder", "n", description, "# T\n\nb", metadata)
    assert skill == expected


@pytest.mark.parametrize(("written", "name"), [("007", "007"), ("1.50", "1.50"), ("no", "no")])
def test_a_name_that_is_not_a_string_is_text_as_written(tmp_path, written, name) -> None:
    skill, note = load_one(tmp_path, skill_md(written, "2024-01-02"))
    assert (skill.name, skill.description, note) == (name, "2024-01-02", None)


# -- front matter that is not --------------------------------------------------------------------

REPAIRED = {
    # kind: (file, name, description, body, metadata, line, words of the reason)
    "unquoted colon": (
        "---\nname: n\ndescription: Use when: a: b\nlicense: MIT\nmetadata:\n  author: x\n---\nb",
        ("n", "Use when: a: b", "b", {"license": "MIT", "metadata": {"author": "x"}}),
        3, "not valid YAML: mapping values are not allowed",
    ),
    "unquoted colon over indented lines": (
        "---\nname: n\ndescription: Use: a\n  b\n\n  c\n---\nb",
        ("n", "Use: a b c", "b", {}), 3, "not valid YAML",
    ),
    "unquoted colon over lines that are not indented": (
        "---\nname: n\ndescription: Use: a\nand b\n---\nb",
        ("n", "Use: a and b", "b", {}), None, "not valid YAML",
    ),
    "address on a line that is not indented": (
        "---\nname: n\ndescription: Use: a\nhttps://x.test/y\n---\nb",
        ("n", "Use: a https://x.test/y", "b", {}), None, "not valid YAML",
    ),
    "colon and list": (
        "---\nname: n\ndescription: Use for:\n  - a\n  - b\n---\nb",
        ("n", "Use for: - a - b", "b", {}), None, "not valid YAML",
    ),
    "colon beside a literal block": (
        "---\nname: n: m\ndescription: |\n  a\n  b: c\n---\nb",
        ("n: m", "a\nb: c", "b", {}), 2, "not valid YAML",
    ),
    "bracket that opens nothing": (
        "---\nname: n\ndescription: [beta] Does it\n---\nb",
        ("n", "[beta] Does it", "b", {}), None, "not valid YAML",
    ),
    "quotes within quotes": (
        '---\nname: n\ndescription: "Say "hi" to it"\n---\nb',
        ("n", '"Say "hi" to it"', "b", {}), 3, "not valid YAML",
    ),
    "at sign and percent": (
        "---\nname: '@n\ndescription: %d\n---\nb",
        ("'@n", "%d", "b", {}), None, "not valid YAML",
    ),
    "tabs": (
        "---\nname: n\ndescription: d\nmetadata:\n\tauthor: x\n---\nb",
        ("n", "d", "b", {"metadata": {"author": "x"}}), 5, "cannot start any token",
    ),
    "all keys indented and a colon": (
        "---\n  name: n\n  description: a: b\n---\nb", ("n", "a: b", "b", {}), 3, "not valid YAML",
    ),
    "no space after the colons": (
        "---\nname:n\ndescription:d\n---\nb", ("n", "d", "b", {}), 2, "not a mapping",
    ),
    "control character": (
        "---\nname: n\ndescription: a\x08b\n---\nb", ("n", "a\x08b", "b", {}), 2, "not valid YAML",
    ),
    "duplicate key": (
        "---\nname: n\ndescription: a\nname: m\n---\nb",
        ("m", "a", "b", {}), 4, "'name' given more than once (the last one counts)",
    ),
    "duplicate key and a colon": (
        "---\nname: n\ndescription: a: b\nname: m\n---\nb",
        ("m", "a: b", "b", {}), 3, "line 4: 'name' given more than once (the last one counts)",
    ),
    "alias": (
        "---\nname: &a n\ndescription: *a\n---\nb", ("n", "*a", "b", {}), 2, "an alias",
    ),
    "list": (
        "---\n- name: n\n- two\n---\nb",
        ("folder", "- name: n - two", "- name: n\n- two\n\nb", {}), 2, "not a mapping",
    ),
    "text": (
        "---\njust text\n---\nb", ("folder", "just text", "just text\n\nb", {}), 2, "not a mapping",
    ),
    "key that is not text": (
        "---\n? [a]\n: b\nname: n\n---\nb",
        ("folder", "? [a] : b name: n", "? [a]\n: b\nname: n\n\nb", {}),
        2, "a key that is not text",
    ),
    "no name": (
        "---\ndescription: d\n---\nb",
        ("folder", "d", "b", {}), 1, "no name (that of the folder is used)",
    ),
    "null name": (
        "---\nname: null\ndescription: d\n---\nb", ("folder", "d", "b", {}), 1, "no name",
    ),
    "no description": (
        "---\nname: n\n---\n# T\n\n<!-- c -->\nFirst\nline.\n\nSecond.",
        ("n", "First line.", "# T\n\n<!-- c -->\nFirst\nline.\n\nSecond.", {}),
        1, "no description (the first paragraph is used)",
    ),
    "no description in the body either": (
        "---\nname: n\ndescription:\n---\n# T", ("n", "", "# T", {}), 1, "no description",
    ),
    "name alone": ("---\nname: n\n---\n", ("n", "", "", {}), 1, "no description"),
    "list for a description": (
        "---\nname: n\ndescription: [a, 1]\n---\nb",
        ("n", "a, 1", "b", {}), 3, "description is a list (joined)",
    ),
    "mapping for a description": (
        "---\nname: n\ndescription:\n  Use: it\n  Not: [x, y]\n---\nb",
        ("n", "Use: it, Not: x, y", "b", {}), 3, "description is a mapping (joined)",
    ),
    "no front matter": (
        "# Title\n\nSome text.\n\nMore.",
        ("folder", "Some text.", "# Title\n\nSome text.\n\nMore.", {}), 1, "no front matter",
    ),
    "rule in a text without front matter": (
        "Text.\n\n---\n\nname: n",
        ("folder", "Text.", "Text.\n\n---\n\nname: n", {}), 1, "no front matter",
    ),
    "empty front matter": (
        "---\n---\nText.", ("folder", "Text.", "Text.", {}), 1, "no name",
    ),
    "blank lines before": (
        "\n\n---\nname: n\ndescription: d\n---\nb",
        ("n", "d", "b", {}), 3, "front matter begins after the first line",
    ),
    "not closed, blank line": (
        "---\nname: n\ndescription: d\n\nBody: text.\n",
        ("n", "d", "Body: text.", {}), 1, "front matter is not closed",
    ),
    "not closed, heading": (
        "---\nname: n\ndescription: d\n# T\nBody.",
        ("n", "d", "# T\nBody.", {}), 1, "front matter is not closed",
    ),
    "not closed, end of file": (
        "---\nname: n\ndescription: d", ("n", "d", "", {}), 1, "front matter is not closed",
    ),
    "not closed, a rule in the body": (
        "---\nname: n\ndescription: d\n\n# T\n\nBody.\n\n---\n\nMore.",
        ("n", "d", "# T\n\nBody.\n\n\n\nMore.", {}), None, "not valid YAML",
    ),
    "rule, then text": (
        "---\n\nText.", ("folder", "Text.", "Text.", {}), 1, "front matter is not closed",
    ),
}  # fmt: skip


@pytest.mark.parametrize("parser", ["CSafeLoader", "SafeLoader"])
@pytest.mark.parametrize("kind", REPAIRED)
def test_broken_files_are_read_as_well_as_can_be(tmp_path, monkeypatch, kind, parser) -> None:
    if parser == "SafeLoader":  # PyYAML without its C library has other words and other lines
        monkeypatch.delattr(yaml, "CSafeLoader", raising=False)
    content, (name, description, body, metadata), line, words = REPAIRED[kind]
    skill, note = load_one(tmp_path, content)
    assert skill == Skill("folder", name, description, body, metadata)
    assert note is not None
    assert note.path == "folder/SKILL.md"
    if parser == "CSafeLoader" or "YAML" not in note.reason:
        assert words in note.reason
        assert note.line is not None if line is None else note.line == line
    assert 1 <= note.line <= content.count("\n") + 1


def test_escapes_leave_no_nul_and_no_lone_surrogate(tmp_path, monkeypatch) -> None:
    skill, _ = load_one(tmp_path, skill_md(description='"a\\0b"'))
    assert skill.description == "a\ufffdb"
    monkeypatch.delattr(yaml, "CSafeLoader", raising=False)  # which refuses lone surrogates
    skill, _ = load_one(tmp_path, skill_md(description='"a\\ud800b"'))
    assert skill.description == "a?b"


def test_over_long_description_is_kept_whole_and_reported(tmp_path) -> None:
    for length, repaired in ((1024, False), (1025, True)):
        skill, note = load_one(tmp_path, skill_md(description="x" * length))
        assert len(skill.description) == length
        assert (note is not None) == repaired
    assert note == FileNote(
        "folder/SKILL.md",
        3,
        "description of 1,025 characters, more than the 1,024 of the format (kept whole)",
    )


def test_many_repairs_of_one_file_are_summed_up(tmp_path) -> None:
    _, note = load_one(tmp_path, skill_md(body="b").replace("name:", "x: 1\n" * 100 + "name:"))
    assert note is not None
    assert note.reason.endswith("; and 94 more")
    assert len(note.reason) < 400


# -- bytes ---------------------------------------------------------------------------------------

ACCENTS = (
    "---\nname: caf\u00e9\ndescription: Fa\u00e7ade \u201cna\u00efve\u201d\n---\n\nBody \u00fc\n"
)


@pytest.mark.parametrize(
    ("content", "line", "reason"),
    [
        (ACCENTS.encode("utf-16"), 1, "encoded as utf-16-le, not UTF-8"),
        (b"\xfe\xff" + ACCENTS.encode("utf-16-be"), 1, "encoded as utf-16-be, not UTF-8"),
        (ACCENTS.encode("utf-16-le"), 1, "encoded as utf-16-le, not UTF-8"),
        (ACCENTS.encode("utf-16-be"), 1, "encoded as utf-16-be, not UTF-8"),
        (ACCENTS.encode("cp1252"), 2, "not UTF-8 (read as cp1252)"),
    ],
)
def test_other_encodings_are_read_and_reported(tmp_path, content, line, reason) -> None:
    skill, note = load_one(tmp_path, content)
    assert skill == Skill(
        "folder", "caf\u00e9", "Fa\u00e7ade \u201cna\u00efve\u201d", "Body \u00fc"
    )
    assert note == FileNote("folder/SKILL.md", line, reason)


def test_latin_1_is_read_where_cp1252_has_no_character(tmp_path) -> None:
    skill, note = load_one(tmp_path, b"---\nname: n\ndescription: d\n---\ncaf\xe9 \x81")
    assert skill.body == "caf\u00e9 \x81"
    assert note == FileNote("folder/SKILL.md", 5, "not UTF-8 (read as latin-1)")


def test_a_bad_byte_does_not_turn_utf_8_into_another_encoding(tmp_path) -> None:
    skill, note = load_one(tmp_path, ACCENTS.encode() + b"\xe9 end")
    assert (skill.name, skill.body) == ("caf\u00e9", "Body \u00fc\n\ufffd end")
    assert note == FileNote(
        "folder/SKILL.md", 7, "not valid utf-8 (1 characters could not be read)"
    )


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "empty file"),
        (b"\xef\xbb\xbf \r\n\t", "empty file"),
        (b"---\n---\n", "no name, no description and no body"),
        (b"---\nlicense: MIT\n---\n", "no name, no description and no body"),
        (b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR", "not a text file"),
        (b"\x7fELF\x02\x01\x01\x00", "not a text file"),
        (b"\x1f\x8b\x08\xf0\xf1\xe9\x05\xff", "not a text file"),
        (skill_md(body="a\0b").encode(), "not a text file"),
    ],
)
def test_what_holds_no_skill_is_skipped_with_the_reason(tmp_path, content, reason) -> None:
    put(tmp_path, "bad/SKILL.md", content)
    put(tmp_path, "good/SKILL.md", skill_md())
    with pytest.warns(SkillSightWarning, match=f"1 skipped .*: bad/SKILL.md: {reason}"):
        library = load_skills(tmp_path)
    assert library.ids == ["good"]
    assert library.report.skipped == (FileNote("bad/SKILL.md", None, reason),)


@pytest.mark.parametrize("shift", range(4))
def test_huge_file_is_read_up_to_a_limit(tmp_path, shift) -> None:
    # The shift moves the limit to every place within a character of four bytes.
    skill, note = load_one(tmp_path, skill_md(body="x" * shift + "\U0001f600" * (1 << 19)))
    size = len(skill_md(body="").rstrip() + "\n\n") + shift + 4 * skill.body.count("\U0001f600")
    assert (1 << 20) - 4 < size <= 1 << 20
    assert set(skill.body) == {"\U0001f600"} | set("x" * shift)
    assert note == FileNote(
        "folder/SKILL.md", None, "larger than 1,048,576 bytes (the rest was not read)"
    )


def test_aliases_that_would_grow_without_bound_are_not_followed(tmp_path) -> None:
    bomb = "a0: &a0 [x, x]\n" + "".join(
        f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]\n" for n in range(1, 60)
    )
    skill, note = load_one(tmp_path, f"---\nname: n\ndescription: d\n{bomb}---\nb")
    assert (skill.name, skill.description, skill.body) == ("n", "d", "b")
    assert skill.metadata["a59"] == "&a59 [*a58, *a58]"
    assert note is not None
    assert "an alias" in note.reason


@pytest.mark.parametrize("opening", ["[", "{a: ", "- "])
@pytest.mark.parametrize(
    ("parser", "depth"),
    [("CSafeLoader", 40), ("CSafeLoader", 600), ("CSafeLoader", 1200), ("SafeLoader", 600)],
)
def test_deep_nesting_is_refused(tmp_path, monkeypatch, parser, opening, depth) -> None:
    if parser == "SafeLoader":
        monkeypatch.delattr(yaml, "CSafeLoader", raising=False)
    closing = {"[": "]", "{a: ": "}", "- ": ""}[opening]
    nested = f"x:\n  {opening * depth}y{closing * depth}"
    skill, note = load_one(tmp_path, f"---\nname: n\ndescription: d\n{nested}\n---\nb")
    assert (skill.name, skill.description, skill.body) == ("n", "d", "b")
    assert isinstance(skill.metadata["x"], str)
    assert note is not None


# -- trees ---------------------------------------------------------------------------------------


def test_nested_skills_and_hidden_folders_are_loaded_and_dependencies_are_not(tmp_path) -> None:
    kept = ["a", "a/b", "a/references/c", ".claude/skills/d", ".agent/e", ".codex/f"]
    ignored = [".git/x", "node_modules/x", "a/node_modules/y/x", "__pycache__/x", ".venv/lib/x"]
    for folder in kept + ignored:
        put(tmp_path, f"{folder}/SKILL.md", skill_md())
    assert load_skills(tmp_path).ids == sorted(kept)
    assert load_skills(tmp_path / "a/node_modules/y").ids == ["x"]


def test_loops_of_links_terminate_and_load_each_skill_once(tmp_path) -> None:
    put(tmp_path, "a/b/SKILL.md", skill_md())
    (tmp_path / "a/b/up").symlink_to(tmp_path)
    (tmp_path / "a/b/here").symlink_to(".")
    (tmp_path / "a/self").symlink_to("self")
    (tmp_path / "ping").symlink_to("pong")
    (tmp_path / "pong").symlink_to("ping")
    library = load_skills(tmp_path)
    assert library.ids == ["a/b"]
    assert library.report.skipped == ()


def test_the_path_without_links_is_the_id(tmp_path) -> None:
    put(tmp_path, "z/pdf/SKILL.md", skill_md())
    (tmp_path / "a").symlink_to("z")
    (tmp_path / "b").mkdir()
    (tmp_path / "b/SKILL.md").symlink_to("../z/pdf/SKILL.md")
    assert load_skills(tmp_path).ids == ["z/pdf"]


def test_links_within_the_folder_are_followed(tmp_path) -> None:
    put(tmp_path, "node_modules/pack/x/SKILL.md", skill_md("x"))
    put(tmp_path, "texts/y.md", skill_md("y"))
    (tmp_path / "linked").symlink_to("node_modules/pack")
    (tmp_path / "again").symlink_to("linked")
    (tmp_path / "y").mkdir()
    (tmp_path / "y/SKILL.md").symlink_to("../texts/y.md")
    library = load_skills(tmp_path)
    assert library.ids == ["again/x", "y"]
    assert [skill.name for skill in library] == ["x", "y"]


def test_links_out_of_the_folder_are_not_read(tmp_path) -> None:
    put(tmp_path, "outside/secret/SKILL.md", skill_md())
    put(tmp_path, "root/a/SKILL.md", skill_md())
    put(tmp_path, "rootless/SKILL.md", skill_md())
    root = tmp_path / "root"
    (root / "folder").symlink_to("../outside")
    (root / "sibling").symlink_to(tmp_path / "rootless")
    (root / "a/hop").symlink_to("../folder/secret")
    (root / "b").mkdir()
    (root / "b/SKILL.md").symlink_to("../../outside/secret/SKILL.md")
    (root / "data").symlink_to("../outside/secret/SKILL.md")
    with pytest.warns(SkillSightWarning, match="4 skipped .*link that leads out of the folder"):
        library = load_skills(root)
    assert library.ids == ["a"]
    assert [note.path for note in library.report.skipped] == [
        "a/hop", "b/SKILL.md", "folder", "sibling",
    ]  # fmt: skip


def test_the_folder_itself_may_be_a_link(tmp_path) -> None:
    put(tmp_path, "real/a/SKILL.md", skill_md())
    (tmp_path / "link").symlink_to("real")
    assert load_skills(tmp_path / "link").ids == ["a"]


def test_a_file_given_as_a_link_is_read_and_goes_by_the_folder_of_the_link(tmp_path) -> None:
    put(tmp_path, "texts/pdf.md", skill_md("x"))
    (tmp_path / "pdf").mkdir()
    (tmp_path / "pdf/SKILL.md").symlink_to("../texts/pdf.md")
    assert load_skills(tmp_path / "pdf/SKILL.md").ids == ["pdf"]


def test_broken_links_and_pipes_and_folders_of_that_name_are_no_skills(tmp_path) -> None:
    for name in ("broken", "pipe", "self"):
        (tmp_path / name).mkdir()
    (tmp_path / "broken/SKILL.md").symlink_to("nowhere")
    (tmp_path / "self/SKILL.md").symlink_to("SKILL.md")
    os.mkfifo(tmp_path / "pipe/SKILL.md")
    put(tmp_path, "folder/SKILL.md/inner/SKILL.md", skill_md())
    library = quietly(tmp_path)
    assert library.ids == ["folder/SKILL.md/inner"]
    assert list(map(str, library.report.skipped)) == [
        "broken/SKILL.md: cannot be read: No such file or directory",
        "pipe/SKILL.md: not a regular file",
        "self/SKILL.md: cannot be read: Too many levels of symbolic links",
    ]


def test_folder_names_that_are_not_utf_8_give_ids_that_are(tmp_path) -> None:
    folder = os.fsencode(tmp_path) + b"/caf\xe9"
    try:
        os.mkdir(folder)  # noqa: PTH102 - a path of bytes
    except OSError:
        pytest.skip("this file system takes UTF-8 only")
    put(Path(os.fsdecode(folder)), "SKILL.md", "Text.")
    library = quietly(tmp_path)
    assert library.ids == ["caf\ufffd"]
    str(library.report).encode()
    library.texts[0].encode()


@pytest.fixture
def guarded() -> Iterator[Path]:
    """A folder to deny things in, and a process that permissions apply to even if it is root."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        user = os.geteuid()
        yield folder
        os.seteuid(user)
        for path in folder.iterdir():
            path.chmod(stat.S_IRWXU)


def test_what_may_not_be_read_is_reported(guarded) -> None:
    put(guarded, "good/SKILL.md", skill_md())
    put(guarded, "closed/deep/SKILL.md", skill_md())
    put(guarded, "file/SKILL.md", skill_md()).chmod(0)
    (guarded / "closed").chmod(0)
    if os.geteuid() == 0:
        os.seteuid(65534)
    with pytest.warns(SkillSightWarning, match="2 skipped .*Permission denied"):
        library = load_skills(guarded)
    assert library.ids == ["good"]
    assert list(map(str, library.report.skipped)) == [
        "closed: cannot be opened: Permission denied",
        "file/SKILL.md: cannot be read: Permission denied",
    ]


# -- any text at all -----------------------------------------------------------------------------

PIECES = st.sampled_from(
    ["name: n", "name", "description:", "description: >", " |", "|2-", ": ", "- ", "? ", "\n",
     "\n\n", "  ", "\t", "---\n", "...\n", "# T", '"', "'", "\\ud800", "\\U00110000", "\\0", "&a",
     "*a", "<<: ", "!!python/object:os.system ", "!!binary ", "!x ", "[", "]", "{", "}", ",",
     "%YAML 1.2", "@", "`", "\x07", "\x85", "\u2028", "\ufeff", "\u6f22", "2024-01-02", "1e3",
     "null", "~", "true", "https://x"]
)  # fmt: skip
FRONT = st.one_of(
    st.text(), st.lists(st.one_of(PIECES, st.text(max_size=3)), max_size=25).map("".join)
)


def check_read(data: bytes) -> None:
    try:
        read = parse(data, "folder")
    except UnreadableError as error:
        reason = str(error)
        assert reason in {
            "empty file", "not a text file", "no name, no description and no body",
        }  # fmt: skip
        return
    assert isinstance(read, SkillFile)
    skill = Skill("folder", read.name, read.description, read.body, read.metadata)
    assert skill.name
    skill.text.encode()
    assert pickle.loads(pickle.dumps(skill)) == skill == copy.deepcopy(skill)
    # Form feeds and other breaks that YAML counts and an editor does not are all single characters.
    assert all(repair.line is None or 1 <= repair.line <= len(data) + 1 for repair in read.repairs)


@given(FRONT, st.sampled_from(["\n---\n\nBody.\n", "\n---\n", "", "\n\nBody."]))
@example('name: "\\ud800"', "\n---\n")
@example("name: *name", "\n---\n")
@example("a: !!binary x", "\n---\nBody.")
def test_any_front_matter_gives_a_skill_or_a_reason(front, rest) -> None:
    check_read(f"---\n{front}{rest}".encode("utf-8", "surrogatepass"))


@settings(max_examples=40)
@given(FRONT)
@example('name: "\\ud800\\U00110000"')
def test_any_front_matter_gives_a_skill_or_a_reason_without_the_c_parser(front) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.delattr(yaml, "CSafeLoader", raising=False)
        check_read(f"---\n{front}\n---\nBody.".encode("utf-8", "surrogatepass"))


@given(st.binary(max_size=200))
def test_any_bytes_give_a_skill_or_a_reason(data) -> None:
    check_read(data)


@given(st.binary(max_size=60), st.text(max_size=60))
def test_every_file_is_accounted_for(noise, text) -> None:
    with tempfile.TemporaryDirectory() as name:
        put(Path(name), "a/SKILL.md", noise)
        put(Path(name), "b/SKILL.md", text.encode("utf-8", "replace"))
        put(Path(name), "c/SKILL.md", skill_md())
        library = quietly(Path(name))
    report = library.report
    assert sorted([*report.loaded, *(note.path for note in report.skipped)]) == [
        "a/SKILL.md", "b/SKILL.md", "c/SKILL.md",
    ]  # fmt: skip
    assert {note.path for note in report.repaired} <= set(report.loaded)
    assert library.ids == [path.removesuffix("/SKILL.md") for path in report.loaded]
    assert "c" in library.ids
