"""The live line of a search in parts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console

from p2smt.skeletons.outcome import SearchProgress
from p2smt.units import format_time

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
    parts = [f"{progress.open_cubes} cubes open" + (f", {closed}" if closed else "")]
    if tick_s is None:
        parts += [] if progress.count is None else [f"{progress.count} found"]
    elif progress.incumbent is not None:
        parts.append(f"best {format_time(progress.incumbent.value * tick_s)}")
        parts += [] if progress.gap is None else [f"gap {100 * progress.gap:.2g} %"]
    elif progress.bound is not None:
        parts.append(f"bound {format_time(progress.bound * tick_s)}")
    parts.append("1 worker" if progress.workers == 1 else f"{progress.workers} workers")
    if progress.to_go_s:
        parts.append(f"about {format_time(progress.to_go_s)} to go")
    return "; ".join(parts)
