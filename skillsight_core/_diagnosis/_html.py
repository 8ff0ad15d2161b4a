"""A diagnosis as one page that opens from disk: no script, no other file, no network."""

from __future__ import annotations

from html import escape

from skillsight_core._diagnosis._charts import charts
from skillsight_core._diagnosis._model import Diagnosis
from skillsight_core._diagnosis._sections import Section, Table, count, sections

# Blue and orange of Okabe and Ito's palette, which the colour-blind tell apart.
_STYLE = """
:root { color-scheme: light dark; --page: #fff; --ink: #1b1f24; --soft: #59636e; --rule: #d5dae0;
  --one: #0072b2; --two: #c65500; --box: #f5f7f9 }
@media (prefers-color-scheme: dark) { :root { --page: #14171a; --ink: #e8eaed; --soft: #a3abb5;
  --rule: #3a4149; --one: #56b4e9; --two: #f0a03c; --box: #1d2125 } }
* { box-sizing: border-box }
body { margin: 0 auto; max-width: 68rem; padding: 1.25rem; background: var(--page);
  color: var(--ink); font: 1rem/1.5 system-ui, sans-serif; overflow-wrap: anywhere }
h1 { font-size: 1.6rem; line-height: 1.2; margin: .5rem 0 }
h2 { font-size: 1.25rem; margin: 2.5rem 0 .5rem; border-top: 1px solid var(--rule);
  padding-top: 1.25rem }
p { margin: .4rem 0; max-width: 46rem }
.soft { color: var(--soft) }
dl { display: grid; grid-template-columns: repeat(auto-fit, minmax(9rem, 1fr)); gap: .75rem }
dl div { background: var(--box); border-radius: .5rem; padding: .6rem .8rem;
  display: flex; flex-direction: column; justify-content: space-between }
dt { color: var(--soft); font-size: .85rem } dd { margin: 0; font-size: 1.5rem }
.charts { display: grid; gap: 1.5rem;
  grid-template-columns: repeat(auto-fit, minmax(min(20rem, 100%), 1fr)) }
figcaption, caption { font-weight: 600; color: var(--ink) }
figure { margin: 1.25rem 0 0; max-width: 32rem } svg { width: 100%; height: auto; display: block }
.legend span { margin-right: 1.2rem; white-space: nowrap }
.legend i { display: inline-block; width: .8em; height: .8em; border-radius: 50%;
  margin-right: .4em }
i.one { background: var(--one) } i.two { background: var(--two) }
.wide { overflow-x: auto; margin: 1.25rem 0 0; min-width: 0 }
table { border-collapse: collapse; font-size: .9rem; overflow-wrap: normal }
caption { text-align: left; padding-bottom: .3rem; white-space: nowrap }
th, td { text-align: left; vertical-align: top; padding: .35rem 1.25rem .35rem 0;
  border-bottom: 1px solid var(--rule); font-weight: normal; white-space: pre-line }
td:not(.number) { min-width: 14rem }
thead th { color: var(--soft); white-space: nowrap }
.number { text-align: right; white-space: nowrap; font-variant-numeric: tabular-nums }
text { font: 13px system-ui, sans-serif; fill: var(--soft) } .note { fill: var(--ink) }
.grid { stroke: var(--rule) } .axis { stroke: var(--soft) }
.one { fill: var(--one); stroke: var(--one) } .two { fill: var(--two); stroke: var(--two) }
rect { stroke-width: 0 } .dot { fill-opacity: .65; stroke-width: 0 }
.path { fill: none; stroke-width: 2 } .line { stroke: var(--ink); stroke-dasharray: 5 4;
  stroke-width: 1.2 } .two.path { stroke-dasharray: 7 3 }
"""
_LEGENDS = {
    "energies": "",
    "words": (("one", "generic words"), ("two", "other words")),
    "retrieval": (("one", "SkillSight"), ("two", "cosine alone")),
}


def page(diagnosis: Diagnosis, title: str) -> str:
    """The whole page."""
    drawn = charts(diagnosis)
    of = f" Vectors by {diagnosis.encoder}." if diagnosis.encoder else ""
    body = "".join(_section(s, drawn.get(s.key, [])) for s in sections(diagnosis))
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}: diagnosis</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n"
        f"<header><h1>{escape(title)}</h1>\n"
        f'<p class="soft">{count(len(diagnosis.ids), "skill")}.{escape(of)}</p>\n'
        f"{_figures(diagnosis)}</header>\n<main>\n{body}</main>\n</body>\n</html>\n"
    )


def _figures(d: Diagnosis) -> str:
    """The numbers to see first."""
    shown = [
        ("Background of skills (E_D)", d.energies.skill_mean, "{:.1%}"),
        ("Background of queries (E_Q)", d.energies.query_mean, "{:.1%}"),
        ("Rank of the background", d.energies.rank, "{:,}"),
        ("Generic words", len(d.words.generic), "{:,}"),
        ("Near-duplicates", d.pairs.n_near_duplicates, "{:,}"),
    ]
    cells = (
        f"<div><dt>{escape(name)}</dt><dd>{form.format(value)}</dd></div>"
        for name, value, form in shown
        if value is not None
    )
    return f"<dl>{''.join(cells)}</dl>\n"


def _section(section: Section, drawn: list[str]) -> str:
    lines = "".join(f"<p>{escape(line)}</p>\n" for line in section.lines)
    tables = [_table(table) for table in section.tables]
    figures = ""
    if drawn:
        keys = "".join(
            f'<span><i class="{kind}"></i>{escape(name)}</span>'
            for kind, name in _LEGENDS.get(section.key, "")
        )
        legend = f'<p class="legend">{keys}</p>\n' if keys else ""
        if len(drawn) == 1:  # there is room beside it
            drawn, tables = [*drawn, *tables], []
        figures = f'{legend}<div class="charts">{"".join(drawn)}</div>\n'
    name = f"{section.key}-title"
    return (
        f'<section aria-labelledby="{name}">\n<h2 id="{name}">{escape(section.title)}</h2>\n'
        f"{lines}{figures}{''.join(tables)}</section>\n"
    )


def _table(table: Table) -> str:
    def kind(column: int) -> str:
        return ' class="number"' if column in table.numbers else ""

    head = "".join(
        f'<th scope="col"{kind(i)}>{escape(name)}</th>' for i, name in enumerate(table.header)
    )
    rows = "".join(
        f'<tr><th scope="row">{escape(row[0])}</th>'
        + "".join(f"<td{kind(i)}>{escape(cell)}</td>" for i, cell in enumerate(row) if i)
        + "</tr>\n"
        for row in table.rows
    )
    # Whoever uses no mouse reaches what a narrow screen hides by the focus.
    return (
        f'<div class="wide" tabindex="0" role="region" aria-label="{escape(table.caption)}">'
        f"<table><caption>{escape(table.caption)}</caption>\n<thead><tr>{head}</tr></thead>\n"
        f"<tbody>\n{rows}</tbody></table></div>\n"
    )
