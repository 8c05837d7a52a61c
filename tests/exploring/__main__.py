"""``python -m tests.exploring``: tries the properties on new examples; ``make explore`` runs it.

Exit code 1 where something was found.  Cases that can be written stand in tests/found.json then,
and every run of the tests fails on them until they are mended; the others are shown with the line
that makes Hypothesis repeat them.  Ctrl-C, a hang-up and SIGTERM end a round early: its processes
are killed, what was found is written, and the exit code is 128 and the number of the signal.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType

from tests.exploring.found import FOUND, add_case, read_cases
from tests.exploring.turns import Tried, Turns

GRACE_S = 30.0
"""After the end a failing case may still get smaller, and an example that runs may end."""
WANTED = 1000
"""Examples after which a property counts as tried."""
ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@dataclass
class Round:
    """One call: its processes and what they found."""

    options: argparse.Namespace
    end_s: float
    running: dict[int, subprocess.Popen[bytes]] = field(default_factory=dict)
    said: list[str] = field(default_factory=list)
    ended_by: int = 0
    before: int = 0

    @property
    def state(self) -> Path:
        """The folder of counts, cases and logs."""
        return Path(self.options.state)

    def run(self) -> None:
        """Processes until the end of the time; one that dies is told, and another takes over."""
        for name in ("cases", "failures", "logs"):
            shutil.rmtree(self.state / name, ignore_errors=True)
            (self.state / name).mkdir(parents=True)
        Turns(self.state).begin()
        self.before = self.examples()
        for one in ENDING:
            if signal.getsignal(one) is not signal.SIG_IGN:
                signal.signal(one, self._end)
        try:
            self._watch()
        finally:
            left = self._kill_all()
        if not self.ended_by:
            self.said += [f"{name}: was not over {GRACE_S:g} s after the end" for name in left]

    def examples(self) -> int:
        """Of all properties, in all rounds."""
        with Turns(self.state).table() as table:
            return sum(tried.examples for tried in table.values())

    def _end(self, number: int, _frame: FrameType | None) -> None:
        """Only noted: an exception could come between the start of a process and its entry."""
        self.ended_by = number

    def _watch(self) -> None:
        for _ in range(self.options.workers):
            self._start()
        while self.running and not self.ended_by and time.time() < self.end_s + GRACE_S:
            time.sleep(0.2)
            self._look()

    def _kill_all(self) -> list[str]:
        """Kills the processes with those that they started; what they were trying."""
        held: list[str] = []
        for number, process in self.running.items():
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            held += Turns(self.state).left_by(number, "did not end")
        return held

    def _start(self) -> None:
        line = [sys.executable, "-m", "pytest", "-q", "-p", "tests.exploring.plugin"]
        line += ["-p", "no:cacheprovider", "--explore-state", str(self.state.resolve())]
        line += ["--explore-until", str(self.end_s)]
        line += ["--explore-most", str(self.options.most)] if self.options.most else []
        line += ["--explore-steadily"] if self.options.steadily else []
        log = (self.state / "logs" / f"{len(list((self.state / 'logs').iterdir()))}.txt").open("w")
        process = subprocess.Popen(
            [*line, *given(self.options)], stdout=log, stderr=log, start_new_session=True
        )
        self.running[process.pid] = process

    def _look(self) -> None:
        for number, process in list(self.running.items()):
            if process.poll() is None:
                continue
            del self.running[number]
            held = Turns(self.state).left_by(number, "its process died")
            if process.returncode not in (0, 5):
                logs = self.state / "logs"
                self.said.append(f"a process ended with code {process.returncode}: see {logs}")
                self.said += [f"{name}: its process died" for name in held]
                if held and time.time() < self.end_s:
                    self._start()

    def write_cases(self) -> list[str]:
        """Moves what was found to the committed file; the tests that it is about."""
        cases = [case for path in self._cases() for case in read_cases(path)]
        for case in cases:
            add_case(case, Path(self.options.found))
        return sorted({case.test for case in cases})

    def _cases(self) -> list[Path]:
        return sorted((self.state / "cases").glob("*.json"))


def told(table: dict[str, Tried]) -> str:
    """Examples by property, the least-tried last, and what those below the goal take each."""
    rows = [f"{tried.examples:9,}  {name}  {tried.rests}" for name, tried in _sorted(table)]
    few = [(name, tried) for name, tried in _sorted(table) if tried.examples < WANTED]
    below = [
        f"{tried.examples:9,}  {tried.each_s:9.3f} s  {name}  {tried.rests}" for name, tried in few
    ]
    unwritable = [
        f"{name}: {tried.unwritable}" for name, tried in table.items() if tried.unwritable
    ]
    parts = [("examples of each property, in all rounds", rows)]
    parts += [(f"below {WANTED:,}, with seconds per example", below)] if below else []
    parts += [("values that cannot be written down", unwritable)] if unwritable else []
    return "\n".join("\n".join([f"\n{title}:", *lines]) for title, lines in parts)


def _sorted(table: dict[str, Tried]) -> list[tuple[str, Tried]]:
    return sorted(table.items(), key=lambda pair: (-pair[1].examples, pair[0]))


def given(options: argparse.Namespace) -> list[str]:
    """What pytest is given: plugins, a selection, paths."""
    plugins = [f"-p{name}" for name in options.plugin]
    return [*plugins, *(["-k", options.k] if options.k else []), *options.paths]


def options_of(arguments: list[str]) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser("python -m tests.exploring", description=__doc__)
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--workers", type=int, default=os.cpu_count())
    parser.add_argument("--most", type=int, help="examples of each property, in all rounds")
    parser.add_argument("--steadily", action="store_true", help="the same examples every time")
    parser.add_argument("--found", default=str(FOUND), help="the file of cases")
    parser.add_argument("--state", default=".explore", help="the folder of counts and logs")
    parser.add_argument("--plugin", action="append", default=[], help="of pytest")
    parser.add_argument("-k", help="properties by name, as pytest's")
    parser.add_argument("paths", nargs="*", help="as pytest's")
    return parser.parse_args(arguments)


def main() -> int:
    """A round; 1 if something was found, 128 and the number of the signal that ended it."""
    options = options_of(sys.argv[1:])
    this = Round(options, time.time() + 60 * options.minutes)
    this.run()
    tests = this.write_cases()
    failed = show(this)
    if tests:
        print(f"\nwritten to {options.found}", flush=True)
    if this.ended_by:
        return 128 + this.ended_by
    if tests:
        print("with it the tests say:", flush=True)
        options.paths, options.k = tests, None
        line = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--tb=no"]
        subprocess.run([*line, f"--found={options.found}", *given(options)], check=False)
    return 1 if failed or this.said or tests else 0


def show(this: Round) -> list[str]:
    """Prints the tables of a round and what it found; the properties that failed."""
    if this.examples() == this.before and not this.ended_by:
        this.said.append(
            "no property was tried: reading the tests took the time; give more MINUTES"
        )
    with Turns(this.state).table() as table:
        print(told(table))
        failed = sorted(name for name, tried in table.items() if tried.rests == "failed")
    for path in sorted((this.state / "failures").iterdir()):
        print(f"\n{path}:\n{path.read_text()[-3000:]}")
    print("\nfound:" if failed or this.said else "\nnothing was found")
    print("\n".join([*failed, *this.said]), flush=True)
    return failed


if __name__ == "__main__":
    sys.exit(main())
