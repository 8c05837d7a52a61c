"""The live line of a running search."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console

from p2smt.report.tables import bound_text
from p2smt.search.joint import ProgressCallback
from p2smt.units import format_time


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
