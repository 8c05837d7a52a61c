"""The live line of `p2smt synthesize`."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from p2smt.synthesis.question import Tell


def live() -> AbstractContextManager[Tell]:
    """A line on stderr with what is tried, bound and best, where stderr is a terminal."""
    from p2smt.report.tables import console
    from p2smt.synthesis.question import tell_nobody

    screen = console(stderr=True)
    if not screen.is_terminal:
        return nullcontext(tell_nobody)
    from p2smt.report.progress import synthesis_line

    return synthesis_line(screen)
