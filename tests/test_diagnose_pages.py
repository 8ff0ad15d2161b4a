"""What a diagnosis looks like: report, picture, page, command."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from html.parser import HTMLParser

import pytest

from skillsight_core import Diagnosis, MissingDependencyError, Skill, SkillSight, diagnose
from skillsight_core._cli import main
from skillsight_core._diagnosis._svg import steps
from tests.fakes import HashEncoder

ENCODER = HashEncoder()
TEXTS = [
    f"Use this skill when the user asks to {topic}."
    for topic in ("merge <b>files</b>", "review code", "plan budgets", "label images", "tune sql",
                  "rotate keys", "resize photos", "merge <b>files</b> & folders")
]  # fmt: skip
IDS = ["<script>alert(1)</script>", "[bold]review[/]", *(f"skill-{i}" for i in range(2, 8))]
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "chrome"))), None)


def diagnosed(*, labelled: bool) -> Diagnosis:
    ss = SkillSight().fit(TEXTS, ENCODER.encode(TEXTS), IDS)
    skills = [Skill(id_, "", text) for id_, text in zip(IDS, TEXTS, strict=True)]
    if not labelled:
        return diagnose(ss)
    queries, gold = ["merge files", "resize my photos"], [[IDS[0]], ["skill-6"]]
    return diagnose(ss, queries, gold, encoder=ENCODER, skills=skills)


@pytest.fixture(params=[True, False], ids=["labelled", "bare"])
def found(request) -> Diagnosis:
    return diagnosed(labelled=request.param)


class Page(HTMLParser):
    """Reads a page and complains about what a browser would have to repair."""

    VOID = frozenset({"meta", "rect", "circle", "line", "polyline"})

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def all(self, *names: str) -> list[dict[str, str | None]]:
        return [attrs for tag, attrs in self.tags if tag in names]


def test_the_page_is_well_formed_and_accessible(found):
    text = found.as_html("My <library>")
    page = Page(text)
    assert page.tags[0] == ("html", {"lang": "en"})
    assert len(page.all("h1")) == 1
    assert len(page.all("h2")) == len(page.all("section"))
    assert all(attrs.get("scope") in ("col", "row") for attrs in page.all("th"))
    assert all(attrs["role"] == "img" and attrs["aria-label"] for attrs in page.all("svg"))
    assert len(page.all("caption")) == len(page.all("table"))
    assert "<title>My &lt;library&gt;: diagnosis</title>" in text


def test_the_page_needs_nothing_but_itself(found):
    text = found.as_html()
    page = Page(text)
    assert not page.all("script", "link", "img", "iframe", "object", "embed")
    assert not any({"src", "href", "onclick"} & attrs.keys() for _, attrs in page.tags)
    assert not re.search(r"url\(|@import|https?:", text)
    assert "prefers-color-scheme: dark" in text


def test_words_of_a_library_are_no_markup_anywhere(found):
    text = found.as_html()
    assert "<script>" not in text
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in text
    assert "[bold]review[/]" in str(found)


def test_the_report_says_the_main_numbers():
    found = diagnosed(labelled=True)
    report = str(found)
    energies = found.energies
    assert f"{energies.skill_mean:.1%} of a skill's vector is background (E_D)" in report
    assert f"{energies.query_mean:.1%} of a query's (E_Q)" in report
    assert f"{len(found.words.generic)} of {found.words.n_tokens} words are generic" in report
    assert "use this skill when the user asks to" in report
    before, after = found.labelled.before, found.labelled.after
    first = rf"Right skills among the first 1 +{before.recall[0]:.1%} +{after.recall[0]:.1%}"
    assert re.search(first, report)


def test_a_report_of_bare_vectors_says_what_it_cannot_know():
    report = str(diagnosed(labelled=False))
    assert "in a folder of skills only" in report
    assert "Retrieval" not in report


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (0, 1, [0, 0.2, 0.4, 0.6, 0.8, 1]),
        (3, 17, [5, 10, 15]),
        (0, 0.05, [0, 0.01, 0.02, 0.03, 0.04, 0.05]),
    ],
)
def test_axes_have_round_steps(low, high, expected):
    assert steps(low, high) == pytest.approx(expected)


def test_the_picture_is_drawn(found, tmp_path):
    pytest.importorskip("matplotlib")
    found.plot(tmp_path / "out.png")
    assert (tmp_path / "out.png").read_bytes().startswith(b"\x89PNG")


def test_the_picture_without_matplotlib_names_the_extra(found, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(MissingDependencyError, match=r"pip install 'skillsight\[plot\]'"):
        found.plot(tmp_path / "out.png")


# -- in a browser ----------------------------------------------------------------------------------

_REPORT = """<script>
const page = document.documentElement;
parent.postMessage([page.scrollWidth, innerWidth, getComputedStyle(document.body).backgroundColor,
  Math.max(...[...document.querySelectorAll("svg")].map(s => s.getBoundingClientRect().width))],
  "*");
</script></body>"""
_FRAME = """<iframe src="page.html" width="{width}" height="800"></iframe>
<script>onmessage = e => document.title = JSON.stringify(e.data)</script>"""


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine")
@pytest.mark.parametrize(
    ("scheme", "background"), [(0, "rgb(20, 23, 26)"), (1, "rgb(255, 255, 255)")]
)
@pytest.mark.parametrize("width", [390, 1280])
def test_the_page_fits_phone_and_desktop_in_light_and_dark(width, scheme, background, tmp_path):
    text = diagnosed(labelled=True).as_html()
    (tmp_path / "page.html").write_text(text.replace("</body>", _REPORT), encoding="utf-8")
    (tmp_path / "frame.html").write_text(_FRAME.format(width=width), encoding="utf-8")
    shown = subprocess.run(
        [
            str(CHROMIUM), "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic",
            "--no-first-run", "--disable-background-networking", "--disable-component-update",
            "--disable-sync", f"--user-data-dir={tmp_path / 'profile'}",
            f"--blink-settings=preferredColorScheme={scheme}", "--window-size=1400,900",
            "--virtual-time-budget=5000", "--dump-dom", (tmp_path / "frame.html").as_uri(),
        ],
        capture_output=True, text=True, timeout=120, check=True,
    ).stdout  # fmt: skip
    measured = re.search(r"<title>(.*?)</title>", shown)
    assert measured is not None, shown
    content, window, colour, drawing = json.loads(measured[1])
    assert content <= window == width
    assert 250 < drawing <= window
    assert colour == background


# -- the command -----------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path):
    for name, text in zip(
        ("merge", "review", "plan", "label", "tune", "rotate"), TEXTS, strict=False
    ):
        path = tmp_path / "library" / name / "SKILL.md"
        path.parent.mkdir(parents=True)
        path.write_text(f"---\nname: {name}\ndescription: {text}\n---\nDo it.\n", encoding="utf-8")
    return tmp_path / "library"


def run(monkeypatch, *arguments) -> int:
    monkeypatch.setattr(sys, "argv", ["skillsight", "diagnose", *map(str, arguments)])
    with pytest.raises(SystemExit) as stopped:
        main()
    return int(stopped.value.code or 0)


@pytest.fixture
def queries(tmp_path):
    path = tmp_path / "queries.jsonl"
    lines = [{"query": "review my code", "skills": ["review"]}, {"query": "tune\u2028this"}]
    path.write_text("\n".join(json.dumps(line, ensure_ascii=False) for line in lines) + "\n\n")
    return path


def test_the_command_diagnoses_a_folder_and_an_index(
    minilm, folder, queries, tmp_path, monkeypatch, capsys
):
    page = tmp_path / "out.html"
    assert run(monkeypatch, folder, "--queries", queries, "--html", page) == 0
    assert "1 labelled query" in capsys.readouterr().out
    assert "<h1>library</h1>" in page.read_text(encoding="utf-8")
    assert run(monkeypatch, folder, "--queries", queries, "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert len(found["energies"]["queries"]) == 2
    assert found["texts"]["without_description"] == []

    monkeypatch.setattr(
        sys, "argv", ["skillsight", "index", str(folder), "-o", str(tmp_path / "i")]
    )
    with pytest.raises(SystemExit):
        main()
    capsys.readouterr()
    assert run(monkeypatch, tmp_path / "i", "--queries", queries, "--json") == 0
    indexed = json.loads(capsys.readouterr().out)
    assert indexed["phrases"] is None
    assert indexed["labelled"] == found["labelled"]


@pytest.mark.parametrize(
    "line",
    [
        "no json",
        '"a string"',
        '{"skills": []}',
        '{"query": "a", "skills": "id"}',
        '{"query": 1}',
    ],
)
def test_a_line_that_is_no_query_is_named_in_one_sentence(
    line, folder, queries, monkeypatch, capsys
):
    queries.write_text('{"query": "fine"}\n' + line + "\n", encoding="utf-8")
    assert run(monkeypatch, folder, "--queries", queries) == 2
    message = capsys.readouterr().err
    assert message.count("\n") == 1
    assert f"{queries}:2: a line must be" in message


def test_a_missing_queries_file_is_an_error_of_usage(folder, tmp_path, monkeypatch, capsys):
    assert run(monkeypatch, folder, "--queries", tmp_path / "none.jsonl") == 2
    assert "none.jsonl" in capsys.readouterr().err
