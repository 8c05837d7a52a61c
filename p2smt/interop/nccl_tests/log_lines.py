"""The lines of a log as the program printed them: without colours and what launchers put before.

Every launcher and collector of logs marks lines in its own way (``[1,0]<stdout>:``, ``0:``, a
time, the name of a pod, several of these), so no list of them is ever whole.  But what stands
before a heading or a line of the device list is the mark, and the marks of other lines have its
shape: the same punctuation with other words and numbers between.  Where each line is a JSON
object, as Docker keeps them, one of its values is the line.  The rows of a table in Markdown
are lines without their bars, whose units stand beside the names of columns.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from p2smt.files.json_text import loads

MAX_LINE = 4096
MAX_MARK = 256
MAX_SHAPES = 16
_ESCAPE = re.compile(r"\x1b\[[0-9;?]{0,16}[A-Za-z]")
_HEADING = re.compile(r"(?<![\w/])size(?:\(B\))?(?:\s+[a-z#_()]+){0,64}?\s+(?:cpu)?time\b")
_DEVICE = re.compile(r"(?<!\w)Rank\s+\d{1,9}\s+(?:Group|Pid|on|device)\s")
_ROW = re.compile(r"(?<![\w.\-])\d{1,20}\s+\d{1,20}\s+u?(?:float|half|double|bfloat|int|char|f8e)")
_UNIT = re.compile(r"\s+\((\w{1,12}|[KMG]?B/s)\)")
_TEXTS = ("log", "message", "msg", "textPayload")
_PIECE = re.compile(r"(\d+)|([0-9A-Za-z]+)|(\s+)|(.)", re.ASCII)


def plain_lines(text: str) -> list[str]:
    """The lines of a text, stripped, each without its mark; as many as there are."""
    found = text.split("\n")
    if is_json_log(text):
        found = [_json_text(line) or "" for line in found]
    lines = [_ESCAPE.sub("", line[:MAX_LINE]).strip() for line in found]
    lines = [without_bars(line) for line in lines]
    shapes = _shapes(lines)
    return [_unmarked(line, shapes) for line in lines] if shapes else lines


def without_bars(line: str) -> str:
    """A row of a table in Markdown with blanks for its bars, its rule as an empty line.

    Names in its heading are in small letters, as nccl-tests prints them; other lines stay.
    """
    if line[:1] != "|" or len(line) >= MAX_LINE:
        return line
    cells = [_UNIT.sub(r"(\1)", cell.strip()) for cell in line.strip("|").split("|")]
    if all(set(cell) <= set(":-") for cell in cells):
        return ""
    names = [cell.lower().partition("(")[0] for cell in cells]
    return "  ".join(map(str.lower, cells) if names[0] == "size" and "time" in names else cells)


def without_marks(lines: list[str], what: re.Pattern[str]) -> list[str]:
    """Lines without the marks that stand before those of a kind; a mark of blanks is none."""
    marks = dict.fromkeys(filter(None, map(str.strip, _marks(lines, what))))
    shapes = [re.compile(_shape(mark), re.ASCII) for mark in list(marks)[:MAX_SHAPES]]
    return [_unmarked(line, shapes) for line in lines] if shapes else lines


def is_json_log(text: str) -> bool:
    """Whether the first line is a JSON object that holds the text of a line of a log."""
    return text[:1] == "{" and _json_text(text.partition("\n")[0]) is not None


def _json_text(line: str) -> str | None:
    try:
        found = loads(line[: 8 * MAX_LINE])
    except (ValueError, RecursionError):
        return None
    values = [found.get(name) for name in _TEXTS] if isinstance(found, dict) else []
    return next((value for value in values if isinstance(value, str)), None)


def _shapes(lines: list[str]) -> list[re.Pattern[str]]:
    """The shapes of marks, the longest first; rows tell them only where there is no heading.

    A row alone tells none of digits: a number before it may be one of its own.
    """
    found = dict.fromkeys(_marks(lines, _HEADING))
    marks = dict.fromkeys((*found, *_marks(lines, _DEVICE)))
    if not found:
        marks |= {mark: None for mark in _marks(lines, _ROW) if re.search(r"[^\d\s.]", mark)}
    shapes = dict.fromkeys(map(_shape, filter(None, marks)))
    return [re.compile(s, re.ASCII) for s in sorted(shapes, key=len, reverse=True)[:MAX_SHAPES]]


def _marks(lines: list[str], what: re.Pattern[str]) -> Iterator[str]:
    """What stands before the lines of a kind; nothing before some of them."""
    for line in lines:
        if (at := what.search(line)) and at.start() <= MAX_MARK:
            yield line[: at.start()].rstrip("# \t")


def _shape(mark: str) -> str:
    """An expression for all marks that differ in words and numbers only."""
    parts = []
    for number, word, blank, other in _PIECE.findall(mark):
        kinds = ((number, r"\d+"), (word, "[0-9A-Za-z]+"), (blank, r"\s+"))
        parts.append(next((shape for found, shape in kinds if found), re.escape(other)))
    return "".join(parts) + (r"(?=[\s#]|$)" if mark[-1].isalnum() else "")


def _unmarked(line: str, shapes: list[re.Pattern[str]]) -> str:
    whole = len(line) < MAX_LINE
    found = next(filter(None, (shape.match(line) for shape in shapes)), None) if whole else None
    return line[found.end() :].strip() if found else line
