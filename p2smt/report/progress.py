"""One line that changes while something goes on, for whoever sits at a terminal.

A thread writes it: a solver's call comes back only when it is over.  Nothing is written in the
first two seconds; from then on the line is written again where it says something else, at most
four times a second.  Whatever else is written takes the line off first.
"""

from __future__ import annotations

import os
import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sized
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TextIO, TypeVar

from p2smt.result import SearchStage
from p2smt.units import format_time, plain

if TYPE_CHECKING:
    from p2smt.parallel_search.engine import SearchProgress
    from p2smt.synthesis.setting import SynthesisState

FIRST_S = 2.0
"""Nothing is written before, in seconds."""
EVERY_S = 0.25
"""Between two lines, in seconds."""
HINT_S = 10.0
"""After so long it is said that an interrupt keeps the answer."""
_GUESS_S = 5.0
"""No guess at what is left before, in seconds."""
KEEPS = "Ctrl-C keeps the best found"
_OFF = "\r\x1b[2K"
T = TypeVar("T")


def is_watched(stream: TextIO, environ: Mapping[str, str] = os.environ) -> bool:
    """Whether a line that changes is welcome there: a terminal, in no CI, without NO_COLOR."""
    if environ.get("NO_COLOR") or environ.get("CI") or environ.get("TERM") == "dumb":
        return False
    return stream.isatty()


class LiveLine:
    """The line of what is ``doing``, on a stream, while its context is open.

    ``keeps``: an interrupt ends what is done with the best found so far.  ``ends``: what is
    written to stdout is the answer, and ends the line.
    """

    def __init__(self, stream: TextIO, doing: str, keeps: bool = False, ends: bool = True) -> None:
        self._stream, self.doing, self.keeps, self._ends = stream, doing, keeps, ends
        self._said: Callable[[], str] | None = None
        self._stage, self._shown = SearchStage(""), ""
        self._started_s = self._stage_s = time.monotonic()
        self._ended, self._lock = threading.Event(), threading.RLock()
        self._thread = threading.Thread(target=self._write, daemon=True)
        self._aside: list[tuple[str, TextIO]] = []

    def tell(self, stage: SearchStage) -> None:
        """What a search does now; worded only where it is seen."""
        if stage.doing != self._stage.doing:
            self._stage_s = time.monotonic()
        self._stage = stage
        self._said = lambda: stage_text(stage)

    def say(self, words: Callable[[], str]) -> None:
        """The same in words of its own."""
        self._said = words

    def end(self) -> None:
        """Take the line off for good."""
        self._ended.set()
        self.clear()

    def clear(self) -> None:
        """Take the line off until it is written again."""
        with self._lock:
            if self._shown:
                self._stream.write(_OFF)
                self._stream.flush()
            self._shown = ""

    def text(self, now_s: float) -> str:
        """What the line says then, on the monotonic clock."""
        elapsed_s, stage_s = now_s - self._started_s, now_s - self._stage_s
        parts = [self.doing, self._said() if self._said else "", clock_text(elapsed_s)]
        if 0.0 < (share := self._stage.share) < 1.0 and stage_s >= _GUESS_S:
            parts.append(f"about {clock_text(stage_s * (1 / share - 1))} to go")
        if self.keeps and elapsed_s >= HINT_S:
            parts.append(KEEPS)
        return "; ".join(filter(None, parts))

    def _write(self) -> None:
        wait_s = FIRST_S
        while not self._ended.wait(wait_s):
            wait_s, text = EVERY_S, self.text(time.monotonic())
            text = text[: shutil.get_terminal_size().columns - 1]
            with self._lock:
                if text != self._shown and not self._ended.is_set():
                    self._stream.write(_OFF + text)
                    self._stream.flush()
                    self._shown = text

    def __enter__(self) -> LiveLine:
        for name in ("stdout", "stderr"):
            stream = getattr(sys, name)
            if stream.isatty():
                self._aside.append((name, stream))
                setattr(sys, name, _Beside(stream, self, self._ends and name == "stdout"))
        self._thread.start()
        return self

    def __exit__(self, *_exc: object) -> None:
        self.end()
        self._thread.join()
        for name, stream in self._aside:
            setattr(sys, name, stream)


class _Beside:
    """A stream of the same terminal: the line goes before anything is written there.

    An answer (``ends``) ends it, a note interrupts it.
    """

    def __init__(self, stream: TextIO, line: LiveLine, ends: bool) -> None:
        self._stream, self._line, self._ends = stream, line, ends

    def write(self, text: str) -> int:
        with self._line._lock:
            if self._ends:
                self._line.end()
            else:
                self._line.clear()
            return self._stream.write(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


@contextmanager
def live_line(
    doing: str, *, keeps: bool = False, quiet: bool = False, ends: bool = True
) -> Iterator[LiveLine | None]:
    """The line of what is done while the context is open; None where nobody looks on."""
    if quiet or not is_watched(sys.stderr):
        yield None
        return
    with LiveLine(sys.stderr, doing, keeps, ends) as line:
        yield line


def counted(items: Iterable[T], doing: str, every: int | None = None) -> Iterator[T]:
    """The items one by one, with a line that says how many are done: for scripts.

    ``every``: how many there are, where the items do not say.  What a script prints between them
    does not end the line.
    """
    if every is None and isinstance(items, Sized):
        every = len(items)
    with live_line(doing, ends=False) as line:
        for done, item in enumerate(items):
            if line is not None:
                line.tell(SearchStage("", done=done, every=every))
            yield item


# What the line says.


def clock_text(seconds: float) -> str:
    """Such as ``8 s``, ``2 min 5 s`` or ``3 h 20 min``."""
    whole = int(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


def stage_text(stage: SearchStage) -> str:
    """Such as ``bounds of strategies: 3 of 12; best 14.3 s; proved bound 14.1 s (gap 1.4 %)``."""
    count = f"{stage.done:,}" if stage.done is not None else ""
    if count and stage.every is not None:
        count += f" of {stage.every:,}"
    parts = [": ".join(filter(None, (stage.doing, count)))]
    if stage.best_s is not None:
        parts.append(f"best {format_time(stage.best_s)}")
    if stage.bound_s is not None:
        parts.append(_bound(stage.bound_s, stage.best_s))
    return "; ".join(filter(None, parts))


def _bound(bound_s: float, best_s: float | None) -> str:
    from p2smt.report.tables import bound_text

    if best_s is None:
        return f"bound {format_time(bound_s)}"
    return bound_text("proved", bound_s, best_s)


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


def state_text(state: SynthesisState) -> str:
    """Such as ``trying (3,7,6); bound 7/6; best 4/3``; rates are rounds a chunk."""
    parts = [f"trying {state.size}" + (f" {state.doing}" if state.doing else "")]
    parts += [] if state.bound is None else [f"bound {state.bound}"]
    parts += [] if state.best is None else [f"best {state.best}"]
    return "; ".join(parts)
