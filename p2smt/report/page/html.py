"""A story as one page that asks nothing of any other host, and runs no script but its own; or as
a part of somebody else's page, without script.

Every text is escaped; data for the script is JSON without ``<``, ``>`` and ``&``; the policy names
style and script by their hashes, so that the same story gives the same bytes.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterator
from importlib.resources import files
from typing import Any

from p2smt.report.page.charts import bars, scatter, stack, text
from p2smt.report.page.story import (
    Bars,
    Drawn,
    Picture,
    Scatter,
    Section,
    Stack,
    Still,
    Story,
    Table,
    numbered,
)

_MARKS = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}
HATCH = (
    '<svg class="defs" width="0" height="0" aria-hidden="true"><defs><pattern id="hatch" '
    'width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">'
    '<rect width="3" height="6" fill="#fff"/></pattern></defs></svg>'
)


def page(story: Story) -> str:
    """The page."""
    style, script = _own("parts.css") + _own("page.css"), _own("page.js")
    data: dict[str, Any] = {}
    body = "".join(_body(story, data))
    return "".join(
        (
            '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">\n',
            f'<meta http-equiv="Content-Security-Policy" content="{policy(style, script)}">\n',
            '<meta name="viewport" content="width=device-width,initial-scale=1">\n',
            '<meta name="referrer" content="no-referrer">\n',
            f"<title>{text(story.title)}</title>\n<style>{style}</style></head>\n<body>\n",
            body,
            f'<script type="application/json" id="data">{json_text(data)}</script>\n',
            f"<script>{script}</script>\n</body></html>\n",
        )
    )


def policy(style: str, script: str) -> str:
    """What the page may do: run that script, use that style, and show pictures that it holds."""
    return (
        f"default-src 'none'; script-src '{_hash(script)}'; style-src '{_hash(style)}'; "
        "img-src data:; base-uri 'none'; form-action 'none'; "
        "require-trusted-types-for 'script'; trusted-types 'none'"
    )


def json_text(data: object) -> str:
    """JSON that ends no script and opens no tag."""
    found = json.dumps(data, separators=(",", ":"), ensure_ascii=True, sort_keys=True)
    return "".join(_MARKS.get(character, character) for character in found)


def _own(name: str) -> str:
    return files("p2smt.report.page").joinpath(name).read_text(encoding="utf-8")


def _hash(content: str) -> str:
    digest = hashlib.sha256(content.encode()).digest()
    return f"sha256-{base64.b64encode(digest).decode()}"


# A part of somebody else's page.


MOST_ROWS = 30
"""Rows of a table there."""


def fragment(story: Story) -> str:
    """Verdict, numbers, and what needs no script, its style kept to itself."""
    return "".join(_fragment(story))


def _fragment(story: Story) -> Iterator[str]:
    own = _own("parts.css").replace(":root", "&", 1)  # rules hold inside the part alone
    yield f'<div class="p2smt"><style>.p2smt {{ {own} {_APART} }}</style>{HATCH}'
    yield from _head(story, "p")
    name = hashlib.sha256(repr(story).encode()).hexdigest()[:8]  # no other part's
    shown = [one for one in story.sections if one.first or _still(one) or one.tables]
    for number, section in enumerate(shown):
        yield f"<details{' open' * (not number)}><summary>{text(section.title)}</summary>"
        yield f'<p class="lead">{text(f"{section.lead} {section.key}")}</p>'
        if section.first is not None:
            yield from _table(section.first, MOST_ROWS)
        for at, picture in enumerate(_still(section)):
            yield f'<div class="picture">{_chart(picture, f"p2smt-{name}-{number}-{at}")}</div>'
        for one in section.tables:
            yield from _table(one, MOST_ROWS)
        yield "</details>"
    yield "</div>\n"


_APART = (
    "& { color: var(--ink); background: #fff; font: 16px/1.5 system-ui, sans-serif; padding: 12px; "
    "font-variant-numeric: tabular-nums; overflow-wrap: anywhere; } p { margin: 0 0 8px; } "
    "table, tr { color: var(--ink) !important; background: #fff !important; }"  # in dark notebooks
)


def _still(section: Section) -> list[Stack | Bars | Scatter | Still]:
    """The pictures that need no script."""
    return [one for one in section.pictures if not isinstance(one, Drawn)]


def _chart(picture: Stack | Bars | Scatter | Still, name: str) -> str:
    match picture:
        case Still():
            caption = f'<p class="cap">{text(picture.caption)}</p>'
            return f'{caption}<div class="still">{picture.svg}</div>'
        case Stack():
            return "".join(stack(picture))
        case Bars():
            return "".join(bars(picture))
        case Scatter():
            return "".join(scatter(picture, name))


# The body, from the verdict to the commands.


def _body(story: Story, data: dict[str, Any]) -> Iterator[str]:
    yield f"{HATCH}<header>"
    yield from _head(story, "h1")
    yield '<nav aria-label="Sections">'
    yield from (
        f'<a href="#{anchor}">{text(section.title)}</a>'
        for anchor, section in numbered(story.sections)
    )
    yield '<a href="#rests">What this rests on</a></nav></header>\n<main>\n'
    for anchor, section in numbered(story.sections):
        yield from _section(anchor, section, data)
    yield from _rests(story)
    yield "</main>\n"


def _head(story: Story, title: str) -> Iterator[str]:
    """From the title, a tag of that name, to the numbers."""
    yield f'<p class="kicker">p2smt {text(story.kind)}</p>\n'
    yield f'<{title} class="title"><bdi>{text(story.title)}</bdi></{title}>\n'
    yield f'<p class="verdict">{text(story.verdict)}</p>\n'
    for label, words in story.warnings:
        yield f'<p class="warning" role="note"><b>{text(label)}:</b> {text(words)}</p>\n'
    yield '<dl class="figures">'
    for figure in story.figures:
        yield f'<div><dd class="big">{text(figure.value)}</dd><dt>{text(figure.label)}</dt>'
        yield f'<dd class="small">{text(figure.note)}</dd></div>'
    yield "</dl>\n"


def _section(anchor: str, section: Section, data: dict[str, Any]) -> Iterator[str]:
    yield f'<section id="{anchor}"><h2>{text(section.title)}</h2>\n'
    yield f'<p class="lead">{text(f"{section.lead} {section.key}")}</p>\n'
    if section.first is not None:
        yield from _table(section.first)
    for number, picture in enumerate(section.pictures):
        yield '<div class="picture">'
        yield from _picture(picture, f"{anchor}p{number}", data)
        yield "</div>\n"
    for one in section.tables:
        yield f"<details><summary>{text(one.title)}</summary>"
        yield from _table(one)
        yield "</details>\n"
    yield "</section>\n"


def _picture(picture: Picture, name: str, data: dict[str, Any]) -> Iterator[str]:
    match picture:
        case Stack() | Bars() | Still():
            yield _chart(picture, name)
        case Scatter():
            yield _chart(picture, name)
            yield f'<p class="live" id="{name}-told" role="status" aria-live="polite">'
            yield "Point at a strategy, or tab to the picture and use the arrow keys.</p>"
            told = [[one.name, one.told] for one in picture.points]
            data[name] = {"kind": "scatter", "told": told}
        case Drawn():
            yield f'<div class="grid" id="{name}" data-kind="{text(picture.kind)}">'
            yield f'<p class="noscript">{text(picture.name)} is drawn by the page\'s script.</p>'
            yield "</div>"
            data[name] = {"kind": picture.kind, "name": picture.name, **picture.data}


def _table(table: Table, most: int | None = None) -> Iterator[str]:
    """A table, or its first rows."""
    right = [head.startswith(">") for head in table.heads]
    yield '<div class="scroll" tabindex="0" role="region" aria-label="Table"><table><thead><tr>'
    for head, number in zip(table.heads, right, strict=True):
        yield f'<th scope="col"{" class=n" * number}>{text(head.lstrip(">"))}</th>'
    yield "</tr></thead><tbody>"
    for row in table.rows[:most]:
        yield "<tr>"
        for at, (cell, number) in enumerate(zip(row, right, strict=True)):
            tag = "td" if at else "th"
            yield f"<{tag}{' class=n' * number}{' scope=row' * (not at)}><bdi>{text(cell)}</bdi>"
            yield f"</{tag}>"
        yield "</tr>"
    yield "</tbody></table></div>"
    if most is not None and len(table.rows) > most:
        yield f'<p class="small">{most} of {len(table.rows):,} rows</p>'


def _rests(story: Story) -> Iterator[str]:
    yield '<section id="rests"><h2>What this rests on</h2><dl class="rests">'
    for label, words in story.rests:
        yield f"<dt>{text(label)}</dt><dd>{text(words)}</dd>"
    for words in story.lacks:
        yield f"<dt>Not in this file</dt><dd>{text(words)}</dd>"
    yield "</dl>"
    if story.sources:
        yield f"<details><summary>Sources ({len(story.sources)})</summary><ul>"
        yield from (f"<li><bdi>{text(one)}</bdi></li>" for one in story.sources)
        yield "</ul></details>"
    if story.commands:
        yield "<h3>Make it again</h3>"
    yield from (f"<pre>{text(one)}</pre>" for one in story.commands)
    if story.library is not None:
        yield f"<h3>Make the library choose so</h3><p>{text(story.library.words)}</p>"
        yield from (f"<pre>{text(one)}</pre>" for one in story.library.commands)
    yield "</section>\n"
