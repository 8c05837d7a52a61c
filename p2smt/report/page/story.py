"""What a report tells, whatever it is of: a verdict, three numbers, and sections with pictures.

All texts are for people and come from files that strangers may have written: :func:`clean` makes
each printable and short where it is read, and the page escapes it where it is written.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from p2smt.report.screen import MUST, ScreenBlock, screen
from p2smt.report.text import printable

if TYPE_CHECKING:
    from p2smt.api.saved_answers import LibraryAdvice

MOST_NAME, MOST_SENTENCE, MOST_COMMAND = 60, 300, 4096
"""Characters of a name, a sentence and a command that are shown."""


def clean(text: object, most: int = MOST_NAME) -> str:
    """A printable text of at most so many characters, which ends in ".." where it is cut."""
    found = printable(" ".join(str(text).split()))
    return found if len(found) <= most else found[: most - 2] + ".."


def sentence(text: object) -> str:
    """A printable sentence, cut where it is too long."""
    return clean(text, MOST_SENTENCE)


@dataclass(frozen=True, slots=True)
class Figure:
    """A number with its unit, what it is, and what there is to say of it."""

    value: str
    label: str
    note: str = ""


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of texts; the heads of columns of numbers begin with ">"."""

    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    title: str = "The same as a table"


@dataclass(frozen=True, slots=True)
class BarPart:
    """A part of a bar: its name, value and the value in words; ``hidden`` ones are hatched."""

    name: str
    value: float
    text: str
    hidden: bool = False


@dataclass(frozen=True, slots=True)
class Stack:
    """A bar of parts on a scale from 0 to ``whole``, whose ends are in words.

    ``marks``: values at which lines stand, with their words.  ``rest``: what is left of the whole,
    in words; empty: nothing is.
    """

    caption: str
    parts: tuple[BarPart, ...]
    whole: float
    end: str
    marks: tuple[tuple[float, str], ...] = ()
    rest: str = ""


@dataclass(frozen=True, slots=True)
class Bar:
    """A bar with a name and its value in words; ``chosen`` ones stand out."""

    name: str
    value: float
    text: str
    chosen: bool = False


@dataclass(frozen=True, slots=True)
class Bars:
    """Bars below each other, on a scale of their own or to ``whole``."""

    caption: str
    bars: tuple[Bar, ...]
    whole: float | None = None


@dataclass(frozen=True, slots=True)
class PlotPoint:
    """A point of a scatter: place, name, and what is told of it."""

    x: float
    y: float
    name: str
    told: str
    chosen: bool = False


@dataclass(frozen=True, slots=True)
class Scatter:
    """Points by two numbers that are both better when less; ``limit``: the most of y, in words."""

    x_name: str
    y_name: str
    points: tuple[PlotPoint, ...]
    limit: tuple[float, str] | None = None


@dataclass(frozen=True, slots=True)
class Drawn:
    """A picture that the page's script draws: ``kind`` and data; :func:`clean` texts alone."""

    kind: str
    name: str
    data: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Still:
    """A picture that was drawn as SVG, its texts escaped there."""

    caption: str
    svg: str


Picture = Stack | Bars | Scatter | Drawn | Still


@dataclass(frozen=True, slots=True)
class Section:
    """A heading, a sentence that says the answer, pictures, and what they show as tables."""

    title: str
    lead: str
    pictures: tuple[Picture, ...] = ()
    tables: tuple[Table, ...] = ()
    first: Table | None = None
    """A table that says more than the picture, and stands before it."""
    key: str = ""
    """How the picture is read, after the lead; a terminal has none."""


@dataclass(frozen=True, slots=True)
class Story:
    """What a report tells, in the order in which it is read.

    ``warnings``: label and sentence of what limits the answer.  ``rests``: on what, label and
    sentence.  ``commands`` make the answer again.  ``lacks``: what the file does not say, with the
    remedy.  ``library``: the file that makes it choose so; None: it reads none.
    """

    title: str
    verdict: str
    figures: tuple[Figure, ...]
    sections: tuple[Section, ...]
    warnings: tuple[tuple[str, str], ...] = ()
    rests: tuple[tuple[str, str], ...] = ()
    sources: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()
    lacks: tuple[str, ...] = ()
    kind: str = field(default="report")
    library: LibraryAdvice | None = None


def numbered(sections: Sequence[Section]) -> Iterator[tuple[str, Section]]:
    """Sections with the anchors by which the page links to them."""
    return ((f"s{number}", section) for number, section in enumerate(sections, 1))


# A story in the terminal: the verdict, the numbers, a line of each section, the commands.


def story_lines(story: Story) -> list[str]:
    """The lines: at most 20 of 80 columns."""
    return screen(_blocks(story))


def _blocks(story: Story) -> Iterator[ScreenBlock]:
    yield ScreenBlock("verdict", (story.verdict,), MUST, 3)
    yield ScreenBlock("of", (story.title,), 9, 2)
    for label, words in story.warnings:
        yield ScreenBlock("caution", (f"{label.lower()}: {words}",), 8, 2)
    for figure in story.figures:
        note = f" ({figure.note})" if figure.note else ""
        yield ScreenBlock("", (f"{figure.value} {figure.label}{note}",), 9, 2)
    for section in story.sections:
        yield ScreenBlock("", (section.lead,), 5, 2)
    for label, words in story.rests:
        yield ScreenBlock("rests", (f"{label.lower()}: {words}",), 3, 2)
    for words in story.lacks:
        yield ScreenBlock("lacks", (words,), 6, 2)
    for command in story.commands[:1]:
        yield ScreenBlock("again", (command,), 7, 2)
    if story.library is not None:
        first, *more = story.library.commands
        yield ScreenBlock("library", (f"{story.library.short}: {first}", *more), 4, 5)
    yield ScreenBlock("page", ("p2smt report FILE -o report.html",), 4)
