"""The line on stderr while a command runs: on terminals alone, by real processes on a pty."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

import pytest

from p2smt.report import progress
from p2smt.report.progress import LiveLine, clock_text, counted, stage_text
from p2smt.result import SearchLimits, SearchStage, StopWatch
from tests.cli.test_processes import CTRL_C, TERMINAL, interrupted
from tests.cli.tools import DEEP, DEEP_REQUESTS

AT_ONCE = """
import sys, time
from p2smt.cli import main
from p2smt.cli.guide import progress as cli
from p2smt.report import progress
progress.FIRST_S = progress.EVERY_S = 0.0

def waits(_of):  # as a long search does; the line has had its turn, or there is none
    line = cli._LINE.get()
    while line is not None and not line._shown and not line._ended.is_set():
        time.sleep(0.001)

import p2smt.cluster.file as file
load = file.load_topology
file.load_topology = lambda *a, **k: (waits(a), load(*a, **k))[1]
main()
"""
"""The command line whose line is written at once, and which waits for it."""
OFF = "\r\x1b[2K"


def on_terminal(*arguments: str, environment: Mapping[str, str] = {}) -> tuple[str, str]:
    """What a command writes to stdout, a pipe, and to stderr, a terminal."""
    read, write = os.openpty()
    with subprocess.Popen(
        [sys.executable, "-c", AT_ONCE, *arguments],
        stdout=subprocess.PIPE,
        stderr=write,
        env={**os.environ, **TERMINAL, **environment},
        text=True,
    ) as running:
        os.close(write)
        assert running.stdout is not None
        out, shown = running.stdout.read(), b""
        while True:
            try:
                more = os.read(read, 4096)
            except OSError:  # Linux: the other end is closed
                break
            if not more:
                break
            shown += more
    os.close(read)
    return out, shown.decode()


PLACEMENTS = ("placements", "-t", "dgx-a100:4", "--axes", "dp=8,tp=4")


def test_the_line_says_what_is_done_and_is_taken_off() -> None:
    out, shown = on_terminal(*PLACEMENTS)
    assert "placements" in out
    assert "listing placements; 0 s" in shown
    assert shown.endswith(OFF)


@pytest.mark.parametrize(
    ("arguments", "environment"),
    [
        (("--quiet",), {}),
        ((), {"NO_COLOR": "1"}),
        ((), {"CI": "true"}),
        ((), {"TERM": "dumb"}),
    ],
)
def test_nothing_is_written_where_it_is_not_wanted(
    arguments: tuple[str, ...], environment: Mapping[str, str]
) -> None:
    _, shown = on_terminal(*PLACEMENTS, *arguments, environment=environment)
    assert "listing" not in shown


def test_nothing_is_written_to_a_pipe() -> None:
    done = subprocess.run(
        [sys.executable, "-c", AT_ONCE, *PLACEMENTS],
        capture_output=True,
        text=True,
        env={**os.environ, **TERMINAL},
        check=True,
    )
    assert done.stderr == ""


@pytest.mark.slow
def test_a_long_search_shows_best_and_bound_and_ends_with_its_answer(tmp_path: Path) -> None:
    (tmp_path / "deep.yaml").write_text(DEEP)
    found = interrupted("solve", "-t", str(tmp_path / "deep.yaml"), *DEEP_REQUESTS)
    assert found.code == CTRL_C[1]
    assert re.search("solving; best [0-9.]+ m?s; proved bound .*; [0-9]+ s", found.err)
    assert found.out


class Terminal:
    """A terminal that keeps what is written."""

    def __init__(self) -> None:
        self.shown = ""

    def write(self, text: str) -> int:
        self.shown += text
        return len(text)

    def flush(self) -> None:
        """Nothing waits."""

    def isatty(self) -> bool:
        return True


def line(keeps: bool = False) -> LiveLine:
    return LiveLine(Terminal(), "solving", keeps)  # type: ignore[arg-type]


def test_the_words_grow_with_the_time() -> None:
    made = line(keeps=True)
    started_s = made._started_s
    assert made.text(started_s + 3.4) == "solving; 3 s"
    assert made.text(started_s + 75) == "solving; 1 min 15 s; Ctrl-C keeps the best found"
    made.tell(SearchStage("parts", 2.0, 1.0, done=1, every=4))
    made._stage_s = started_s
    assert made.text(started_s + 8) == (
        "solving; parts: 1 of 4; best 2 s; proved bound 1 s (gap 50 %); 8 s; about 24 s to go"
    )


def test_a_stage_says_what_is_known() -> None:
    assert stage_text(SearchStage("")) == ""
    assert stage_text(SearchStage("states", bound_s=0.5, done=1000)) == (
        "states: 1,000; bound 500 ms"
    )


@pytest.mark.parametrize(
    ("seconds", "words"), [(59.9, "59 s"), (60, "1 min 0 s"), (3600 * 2 + 61, "2 h 1 min")]
)
def test_clock(seconds: float, words: str) -> None:
    assert clock_text(seconds) == words


def test_limits_are_the_same_whoever_is_told() -> None:
    """Questions with limits are keys of what was settled."""
    told: list[SearchStage] = []
    heard = SearchLimits(5.0, told=told.append)
    assert heard == SearchLimits(5.0)
    assert hash(heard) == hash(SearchLimits(5.0))
    StopWatch.start(heard).left()
    StopWatch.start(StopWatch.start(heard).left()).tell("states", done=3)
    assert told == [SearchStage("states", done=3)]


@pytest.mark.parametrize("every", [None, 3])
def test_a_script_says_how_many_are_done_and_prints_beside_it(
    monkeypatch: pytest.MonkeyPatch, every: int | None
) -> None:
    terminal = Terminal()
    for name, value in {"TERM": "xterm", "NO_COLOR": "", "CI": ""}.items():
        monkeypatch.setenv(name, value)
    for name in ("FIRST_S", "EVERY_S"):
        monkeypatch.setattr(progress, name, 0.001)
    for name in ("stdout", "stderr"):
        monkeypatch.setattr(sys, name, terminal)
    items = "abc" if every is None else iter("abc")
    for done, item in enumerate(counted(items, "cases", every)):
        for _ in range(60_000):  # a minute: it is written a thousand times a second
            if f"{OFF}cases; {done} of 3; " in terminal.shown:
                break
            time.sleep(0.001)
        sys.stdout.write(f"row {item}\n")
    shown = re.findall(r"cases; (\d) of 3; |row (.)", terminal.shown)
    assert [*dict.fromkeys(shown)] == [
        ("0", ""),
        ("", "a"),
        ("1", ""),
        ("", "b"),
        ("2", ""),
        ("", "c"),
    ]
    assert terminal.shown.endswith((OFF, "row c\n"))
    assert sys.stdout is terminal


def test_a_script_that_nobody_watches_prints_no_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert list(counted("abc", "cases")) == ["a", "b", "c"]
    assert capsys.readouterr() == ("", "")
