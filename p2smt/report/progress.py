"""One line that changes while a search goes on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console

from p2smt.parallel_search.engine import SearchProgress
from p2smt.report.tables import bound_text
from p2smt.search.joint import ProgressCallback
from p2smt.synthesis.question import SynthesisState, Tell
from p2smt.units import format_time, plain

# The live line of a running search.


@contextmanager
def live_line(screen: Console) -> Iterator[ProgressCallback]:
    """Shows the best objective so far, the proved bound and the gap while the search runs."""
    with screen.status("searching") as status:

        def show(best_s: float | None, bound_s: float) -> None:
            if best_s is None:
                status.update(f"searching; bound {format_time(bound_s)}")
                return
            status.update(f"best {format_time(best_s)}; {bound_text('proved', bound_s, best_s)}")

        yield show


@contextmanager
def live_count(screen: Console, doing: str) -> Iterator[Callable[[int, int], None]]:
    """Shows how many of how many are done."""
    with screen.status(doing) as status:

        def show(done: int, every: int) -> None:
            status.update(f"{doing}: {done} of {every}")

        yield show


# The live line of a search in parts.


ProgressLine = Callable[[SearchProgress, float | None], None]


@contextmanager
def search_line(screen: Console) -> Iterator[ProgressLine]:
    """Shows how far a search has come, while it runs."""
    with screen.status("searching") as status:
        yield lambda progress, tick_s: status.update(progress_text(progress, tick_s))


def progress_text(progress: SearchProgress, tick_s: float | None) -> str:
    """Cubes open and closed by verdict, incumbent, bound and gap, workers, and time to go.

    ``tick_s``: seconds of a tick; None: nothing is measured.
    """
    closed = ", ".join(f"{many} {verdict.value}" for verdict, many in progress.closed)
    parts = [f"{progress.open_subproblems} cubes open" + (f", {closed}" if closed else "")]
    if tick_s is None:
        parts += [] if progress.count is None else [f"{progress.count} found"]
    elif progress.incumbent is not None:
        parts.append(f"best {format_time(progress.incumbent.value * tick_s)}")
        parts += [] if progress.gap is None else [f"gap {plain(100 * progress.gap, 2)} %"]
    elif progress.bound is not None:
        parts.append(f"bound {format_time(progress.bound * tick_s)}")
    parts.append("1 worker" if progress.workers == 1 else f"{progress.workers} workers")
    if progress.to_go_s:
        parts.append(f"about {format_time(progress.to_go_s)} to go")
    return "; ".join(parts)


# The live line of a synthesis.


@contextmanager
def synthesis_line(screen: Console) -> Iterator[Tell]:
    """Shows the size that is tried, the bound and the best rate, while the search runs."""
    with screen.status("searching") as status:
        yield lambda state: status.update(state_text(state))


def state_text(state: SynthesisState) -> str:
    """Such as ``trying (3,7,6); bound 7/6; best 4/3``; rates are rounds a chunk."""
    parts = [f"trying {state.size}" + (f" {state.doing}" if state.doing else "")]
    parts += [] if state.bound is None else [f"bound {state.bound}"]
    parts += [] if state.best is None else [f"best {state.best}"]
    return "; ".join(parts)
