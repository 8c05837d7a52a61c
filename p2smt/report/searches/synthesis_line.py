"""The live line of a synthesis."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console

from p2smt.search.schedule.synthesis.state import SynthesisState, Tell


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
