"""report.html: everything of a study in one file that opens by itself, light or dark, on a desk or on a phone."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape
from pathlib import Path

from framework.cell import RunSpec
from framework.config import Study
from framework.stages import exam_folder, read_result, run_folder
from framework.tables import Sheet

STYLE = """
:root { color-scheme: light dark; --ink: #1c1c1e; --paper: #ffffff; --soft: #6b6b70; --line: #d9d9de; }
@media (prefers-color-scheme: dark) { :root { --ink: #ececf0; --paper: #17171a; --soft: #a0a0a8; --line: #3a3a40; } }
body { font: 16px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper); max-width: 62rem;
  margin: 0 auto; padding: 1.5rem 1rem 4rem; }
h1 { font-size: 1.7rem; margin-bottom: .2rem; } h2 { font-size: 1.2rem; margin-top: 2.2rem; }
.question { color: var(--soft); font-size: 1.1rem; margin-top: 0; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-size: .88rem; font-variant-numeric: tabular-nums; }
th, td { padding: .3rem .7rem; text-align: right; border-bottom: 1px solid var(--line); white-space: nowrap; }
th.prose, td.prose { text-align: left; } td.prose { white-space: normal; min-width: 9rem; }
th:first-child, td:first-child { text-align: left; } th { border-bottom: 2px solid var(--line); }
figure { margin: 1rem 0; background: #ffffff; border-radius: .5rem; padding: .5rem; overflow-x: auto; }
figure svg { max-width: 100%; height: auto; min-width: 34rem; }
.films { display: grid; grid-template-columns: repeat(auto-fill, minmax(16rem, 1fr)); gap: 1rem; }
.films figure { margin: 0; padding: 0; background: none; } .films img { width: 100%; border-radius: .5rem; }
.films figcaption { font-size: .88rem; color: var(--soft); }
details { margin-top: .6rem; } pre { font-size: .8rem; overflow-x: auto; }
.note { color: var(--soft); font-size: .9rem; }
.caveat { border-left: .25rem solid #d55e00; padding-left: .7rem; }
"""


@dataclass(frozen=True)
class Part:
    """A heading with a table, a figure or films under it."""

    heading: str
    table: list[list[str]] = field(default_factory=list)
    caption: str = ""
    """Under the table; what its heads mean follows."""
    legend: Sequence[tuple[str, str]] = ()
    prose: Sequence[int] = ()
    """Columns of the table that hold sentences, not figures."""
    figure: str = ""
    films: Sequence[tuple[str, bytes]] = ()
    """Caption and GIF."""

    @classmethod
    def of(cls, heading: str, sheet: Sheet, figure: str = "") -> Part:
        """A table, with all that explains it."""
        return cls(heading, sheet.plain(), sheet.caption, sheet.legend, figure=figure)


def make(title: str, study: Study, runs: Path, parts: Sequence[Part], caveats: Sequence[str]) -> bytes:
    """``caveats``: what is not in it; they stand first."""
    body = [f"<h1>{escape(title)}</h1>", f'<p class="question">{escape(study.report.question)}</p>']
    body += [f'<p class="caveat">{escape(note)}</p>' for note in caveats]
    notes = [f'<p class="note">{escape(note)}</p>' for note in _notes(study, runs)]
    explained = set[tuple[str, str]]()  # a word is explained where it first stands
    for part in parts:
        body.append(f"<h2>{escape(part.heading)}</h2>")
        if part.table:
            new = [entry for entry in part.legend if entry not in explained]
            explained.update(new)
            body += [_table(part.table, part.prose), _legend(part.caption, new)]
        body += [f"<figure>{_inline(part.figure)}</figure>"] if part.figure else []
        body += [_films(part.films)] if part.films else []
    body += ["<h2>How it was made</h2>", *notes, *_settings(study, runs)]
    head = '<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'
    page = f"<!doctype html><html lang='en'><head>{head}<title>{escape(title)}</title><style>{STYLE}</style></head>"
    return (page + f"<body>{''.join(body)}</body></html>\n").encode()


def _table(rows: Sequence[Sequence[str]], prose: Sequence[int]) -> str:
    head, *body = rows
    top = "".join(_cell("th", i in prose, cell) for i, cell in enumerate(head))
    lines = "".join(f"<tr>{''.join(_cell('td', i in prose, cell) for i, cell in enumerate(row))}</tr>" for row in body)
    return f'<div class="wide"><table><thead><tr>{top}</tr></thead><tbody>{lines}</tbody></table></div>'


def _cell(tag: str, prose: bool, text: str) -> str:
    kind = ' class="prose"' if prose else ""
    return f"<{tag}{kind}>{escape(text)}</{tag}>"


def _legend(caption: str, legend: Sequence[tuple[str, str]]) -> str:
    told = ([escape(caption)] if caption else []) + [f"<b>{escape(head)}</b>: {escape(text)}" for head, text in legend]
    return f'<p class="note">{". ".join(told)}.</p>' if told else ""


def _films(films: Sequence[tuple[str, bytes]]) -> str:
    shown = []
    for caption, data in films:
        picture = f'<img alt="{escape(caption)}" src="data:image/gif;base64,{base64.b64encode(data).decode()}">'
        shown.append(f"<figure>{picture}<figcaption>{escape(caption)}</figcaption></figure>")
    return f'<div class="films">{"".join(shown)}</div>'


def _inline(svg: str) -> str:
    """The SVG without its XML heading, so that it can stand within HTML."""
    return re.sub(r"^.*?(?=<svg)", "", svg, flags=re.DOTALL)


def _notes(study: Study, runs: Path) -> list[str]:
    """How the numbers came about."""
    notes = [
        "Intervals are 95 %, over seeds (Student's; ten seeds and more: bootstrap); with one seed, over its episodes. "
        "Lines and bands in figures go from the lowest seed to the highest."
    ]
    commits = sorted({commit for run in study.runs for commit in _commits(runs, run)})
    if len(commits) > 1:
        notes.append(f"The runs were made by different versions of the code: {', '.join(commits)}.")
    elif commits:
        notes.append(f"Code: commit {commits[0]}.")
    return notes


def _commits(runs: Path, run: RunSpec) -> set[str]:
    """Of its training, also of code that began it and did not end it, and of its evaluations."""
    try:
        record = json.loads((run_folder(runs, run) / "run.json").read_text(encoding="utf-8"))
        found = {record["provenance"].get("commit"), *record.get("earlier_commits", ())}
    except (OSError, ValueError, KeyError, AttributeError, TypeError):
        found = set()
    found |= {(read_result(exam_folder(runs, run, exam)) or {}).get("commit") for exam in run.exams}
    return {str(commit) for commit in found if commit}


def _settings(study: Study, runs: Path) -> list[str]:
    """The whole configuration of each cell's first run, folded away."""
    made = []
    for cell in study.cells:
        try:
            record = (run_folder(runs, cell.runs()[0]) / "run.json").read_text(encoding="utf-8")
        except OSError:
            continue
        made.append(f"<details><summary>{escape(cell.label)}</summary><pre>{escape(record)}</pre></details>")
    return made
