"""A story in the terminal: the verdict, the numbers, a line of each section, the commands."""

from __future__ import annotations

from collections.abc import Iterator

from p2smt.report.page.story import Story
from p2smt.report.screen import MUST, ScreenBlock, screen


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
