"""The line on stderr that says what the command does that runs: a process runs one at a time."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from p2smt.parallel_search.engine import SearchProgress
    from p2smt.report.progress import LiveLine
    from p2smt.result import SearchStage
    from p2smt.synthesis.question import SynthesisState

DOING = {
    "plan": "planning",
    "estimate": "estimating",
    "solve": "solving",
    "placements": "listing placements",
    "programs": "listing programs",
    "compare": "comparing",
    "cost": "pricing",
    "crossings": "seeking crossings",
    "run": "running",
    "synthesize": "synthesizing",
    "redistribute": "planning steps",
    "transfer": "planning trees",
    "verify": "verifying",
    "convert": "converting",
    "export": "exporting",
    "calibrate": "calibrating",
    "topology": "reading",
}
KEEPING = frozenset({"plan", "solve", "compare", "synthesize", "redistribute"})
"""Commands that end with the best found when they are interrupted."""
_LINE: ContextVar[LiveLine | None] = ContextVar("line", default=None)


@contextmanager
def watched(command: str | None, quiet: bool) -> Iterator[None]:
    """While a command runs, its line, where stderr is a terminal."""
    if command not in DOING or quiet or not sys.stderr.isatty():
        yield
        return
    from p2smt.report.progress import live_line

    with live_line(DOING[command], keeps=command in KEEPING) as line:
        before = _LINE.set(line)
        try:
            yield
        finally:
            _LINE.reset(before)


def teller() -> Callable[[SearchStage], None] | None:
    """Who is told how far a search has come; None: nobody looks on."""
    line = _LINE.get()
    return None if line is None else line.tell


def say(words: str) -> None:
    """What is done now, or with what, where somebody looks on."""
    if (line := _LINE.get()) is not None:
        line.say(lambda: words)


def tell_times(best_s: float | None, bound_s: float) -> None:
    """The best objective so far and the proved bound, in seconds."""
    from p2smt.result import SearchStage

    if (tell := teller()) is not None:
        tell(SearchStage("", best_s, bound_s))


def tell_count(done: int, every: int) -> None:
    """How many verdicts of how many were solved again."""
    from p2smt.result import SearchStage

    if (tell := teller()) is not None:
        tell(SearchStage("solving again", done=done, every=every))


def tell_parts(progress: SearchProgress, tick_s: float | None) -> None:
    """How far a search in parts has come."""
    from p2smt.report.progress import progress_text

    if (line := _LINE.get()) is not None:
        line.say(lambda: progress_text(progress, tick_s))


def tell_sizes(state: SynthesisState) -> None:
    """Which size of schedules is tried."""
    from p2smt.report.progress import state_text

    if (line := _LINE.get()) is not None:
        line.say(lambda: state_text(state))
