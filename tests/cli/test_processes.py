"""The command line as a process: what it imports, Ctrl-C, time limits, pipes and full disks."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from tests.cli.tools import (
    DEEP,
    DEEP_REQUESTS,
    TINY,
    Outcome,
    assert_one_error,
    cli,
    command,
    process,
)
from tests.tiers import but_the_first

HEAVY = ("ortools", "z3", "numpy", "rich.table", "p2smt.encodings", "p2smt.cluster.topology")
TERMINAL = {"TERM": "xterm", "COLUMNS": "200", "CI": "", "NO_COLOR": ""}


@pytest.fixture
def deep(tmp_path: Path) -> str:
    path = tmp_path / "deep.yaml"
    path.write_text(DEEP)
    return str(path)


@pytest.mark.parametrize(
    "code",
    [
        "import p2smt",
        "from p2smt.cli import run; assert run(['--help']) == 0",
        "from p2smt.cli import run; assert run(['solve', '--help']) == 0",
        "from p2smt.cli import run; assert run(['--version']) == 0",
    ],
)
def test_solvers_are_not_loaded_before_they_are_needed(code: str) -> None:
    check = f"import sys\n{code}\nsys.exit(', '.join(set({HEAVY}) & set(sys.modules)) or 0)"
    done = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True)
    assert (done.returncode, done.stderr.strip()) == (0, "")


def test_the_process_is_the_command_line() -> None:
    outcome = process("placements", "--levels", "2,4", "--axes", "2,4", "--json")
    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.json() == cli("placements", "--levels", "2,4", "--axes", "2,4", "--json").json()
    assert_one_error(process("placements", "--levels", "2,4", "--axes", "3,4"))


def test_results_do_not_depend_on_a_terminal_that_shows_only_ascii() -> None:
    outcome = process("topology", "show", "azure-ndv4", PYTHONIOENCODING="ascii")
    assert outcome.code == 0


CTRL_C = (signal.SIGINT, 130, "p2smt: interrupted")
TERMINATE = (signal.SIGTERM, 143, "p2smt: terminated")
"""A signal, the exit code after it, and the last line on stderr."""


PATIENT = """
from p2smt.cli import main, signals
from p2smt.report import progress
signals.AGAIN_S, progress.FIRST_S, progress.EVERY_S = 3600.0, 0.0, 0.01
main()
"""


def interrupted(
    *arguments: str,
    number: signal.Signals = signal.SIGINT,
    again_after_s: float | None = None,
    under: Sequence[str] = (),
) -> Outcome:
    """Run on a terminal for stderr, and send a signal once the live line shows an answer.

    again_after_s: after so long the signal is sent a second time.
    under: the command that runs the command line, and gets the signal.

    However late a signal comes that repeats the first, it counts as the same; and the live line
    waits for no two seconds.
    """
    read, write = os.openpty()
    with subprocess.Popen(
        [*under, sys.executable, "-c", PATIENT, *arguments],
        stdout=subprocess.PIPE,
        stderr=write,
        env={**os.environ, **TERMINAL},
        text=True,
    ) as running:
        os.close(write)
        shown = _until(read, b"best ")
        running.send_signal(number)
        if again_after_s is not None:
            time.sleep(again_after_s)
            running.send_signal(number)
        assert running.stdout is not None
        out = running.stdout.read()
        shown += _until(read, None)
    os.close(read)
    return Outcome(running.returncode, out, shown.decode())


def _until(terminal: int, word: bytes | None) -> bytes:
    """What a terminal shows until a word appears, or until its other end is closed."""
    shown = b""
    while word is None or word not in shown:
        try:
            more = os.read(terminal, 4096)
        except OSError:  # Linux: the other end is closed
            break
        if not more:
            break
        shown += more
    return shown


@pytest.mark.parametrize(
    ("as_json", "how"),
    [
        (True, CTRL_C),
        (False, TERMINATE),
        pytest.param(False, CTRL_C, marks=pytest.mark.exhaustive),
        pytest.param(True, TERMINATE, marks=pytest.mark.exhaustive),
    ],
)
def test_a_signal_writes_the_best_plan_found(
    deep: str, tmp_path: Path, as_json: bool, how: tuple[signal.Signals, int, str]
) -> None:
    plan, (number, code, words) = tmp_path / "plan.json", how
    more = ("--json",) if as_json else ()
    outcome = interrupted(
        "solve", "-t", deep, *DEEP_REQUESTS, "-o", str(plan), *more, number=number
    )
    assert outcome.code == code, outcome
    assert "Traceback" not in outcome.err
    assert outcome.err.rstrip().endswith(words)
    written = json.loads(plan.read_text())
    del written["answer"]
    if as_json:
        data = outcome.json()
        assert data["interrupted"] is True
        assert data["plan"] == written
        assert data["bound_s"] <= data["objective_s"]
    else:
        assert outcome.out.startswith("interrupted: the best found so far\n")
        assert outcome.out.endswith(f"plan written to {plan}\n")
    assert cli("verify", str(plan)).code == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["deep.yaml", "plan.json"]


@pytest.mark.parametrize("again_after_s", but_the_first(0.01, 0.002, 0.05))
def test_a_signal_that_comes_twice_at_once_counts_once(
    deep: str, tmp_path: Path, again_after_s: float
) -> None:
    """`timeout` signals its child, and then its process group with the child in it."""
    plan = str(tmp_path / "plan.json")
    outcome = interrupted(
        *("solve", "-t", deep, *DEEP_REQUESTS, "-o", plan),
        number=signal.SIGTERM,
        again_after_s=again_after_s,
    )
    _assert_saved(outcome, plan)


@pytest.mark.skipif(shutil.which("timeout") is None, reason="this system has no timeout")
def test_timeout_saves_the_best_plan_found(deep: str, tmp_path: Path) -> None:
    """`timeout` does on a signal to itself what it does when its time is up."""
    plan = str(tmp_path / "plan.json")
    outcome = interrupted(
        *("solve", "-t", deep, *DEEP_REQUESTS, "-o", plan),
        number=signal.SIGTERM,
        under=("timeout", "--preserve-status", "-s", "TERM", "600"),
    )
    _assert_saved(outcome, plan)


def _assert_saved(outcome: Outcome, plan: str) -> None:
    assert outcome.code == 143, outcome
    assert outcome.err.rstrip().endswith("p2smt: terminated")
    assert outcome.out.endswith(f"plan written to {plan}\n")
    assert cli("verify", plan).code == 0


LONG = {
    "z3": ("programs", "--factors", "2,2,2,2", "--length", "6", "--solver", "z3"),
    "cpsat": ("placements", "--levels", "64,64,64,64", "--axes", "8,8,8,8,8,8,8,8", "--json"),
}


@pytest.mark.parametrize(
    "how",
    [
        pytest.param(CTRL_C, id="int"),
        pytest.param(TERMINATE, id="term", marks=pytest.mark.exhaustive),
    ],
)
@pytest.mark.parametrize("name", LONG)
def test_a_signal_ends_every_search(name: str, how: tuple[signal.Signals, int, str]) -> None:
    number, code, words = how
    with in_the_middle_of(LONG[name]) as running:
        running.send_signal(number)
        out, err = running.communicate(timeout=600)
    assert (running.returncode, out, err) == (code, "", f"{words}\n")


@contextlib.contextmanager
def in_the_middle_of(arguments: Sequence[str]) -> Iterator[subprocess.Popen[str]]:
    """A command whose solver has been at work for a while."""
    with subprocess.Popen(
        command(*arguments), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as running:
        end = time.monotonic() + 600
        while _cpu_s(running.pid) < 2 and time.monotonic() < end:
            time.sleep(0.02)
        try:
            yield running
        finally:
            running.kill()


def _cpu_s(process: int) -> float:
    """Processor time that a process has used."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


SAVES_FOR_EVER = """
import threading
from p2smt.cli import signals
signals.AGAIN_S = {again_s}
signals.Interrupts().install()
try:
    print('ready', flush=True)
    threading.Event().wait()
except KeyboardInterrupt:
    print('saving', flush=True)
    threading.Event().wait()
"""


@pytest.mark.parametrize("again_s", [0.0, 3600.0])
def test_a_later_second_signal_ends_at_once(again_s: float) -> None:
    """The first is dealt with for as long as it takes: here for ever."""
    code = SAVES_FOR_EVER.format(again_s=again_s)
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as one:
        assert one.stdout is not None
        assert one.stdout.readline() == "ready\n"
        one.send_signal(signal.SIGTERM)
        assert one.stdout.readline() == "saving\n"
        one.send_signal(signal.SIGTERM)
        if again_s:
            time.sleep(0.2)
            assert one.poll() is None, "that counts as the first"
            one.kill()
    assert one.returncode == (-signal.SIGKILL if again_s else 143)


def test_a_signal_that_comes_while_an_object_ends_is_not_lost() -> None:
    """What is raised in ``__del__`` Python ignores."""
    code = (
        "import os, signal, threading\n"
        "from p2smt.cli.signals import Interrupts\n"
        "Interrupts().install()\n"
        "class Ends:\n"
        "    def __del__(self):\n        os.kill(os.getpid(), signal.SIGTERM)\n        [0] * 9\n"
        "try:\n    Ends()\n    threading.Event().wait(600)\n    print('lost')\n"
        "except KeyboardInterrupt:\n    print('interrupted')\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("interrupted\n", "")


STOPPED_WHILE_LOADING = """
import sys
from p2smt import cli

class Finder:
    def find_spec(self, name, path=None, target=None):
        if name != 'p2smt.cli.app':
            return
        try:
            exec('import os, signal; os.kill(os.getpid(), signal.SIGTERM); [0] * 9')
        except KeyboardInterrupt as error:
            {then}

sys.meta_path.insert(0, Finder())
sys.argv[1:] = ['topology', 'list']
cli.main()
"""


@pytest.mark.parametrize("then", ["raise", "raise ImportError('initialization failed') from error"])
def test_a_signal_while_modules_load_is_one_line(tmp_path: Path, then: str) -> None:
    """Python ends ``-m`` with SIGINT once an interrupt left an ``exec`` (dataclasses have one).

    Extension modules that are stopped while they load say that they cannot be.
    """
    (tmp_path / "early.py").write_text(STOPPED_WHILE_LOADING.format(then=then))
    place = {**os.environ, "PYTHONPATH": f"{tmp_path}{os.pathsep}{os.getcwd()}"}
    module = [sys.executable, "-m", "early"]
    done = subprocess.run(module, capture_output=True, text=True, env=place)
    assert (done.returncode, done.stdout, done.stderr) == (143, "", "p2smt: terminated\n")


def test_a_time_limit_is_no_proof(deep: str) -> None:
    outcome = process("solve", "-t", deep, *DEEP_REQUESTS, "--time-limit", "0.02", "--json")
    data = outcome.json()
    assert (outcome.code, outcome.err) == (3, "")
    assert data["status"] in ("feasible", "unknown")
    if None not in (data["bound_s"], data["objective_s"]):  # there was time for both
        assert data["bound_s"] <= data["objective_s"]


def test_a_pipe_that_closes_early_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "tiny.yaml").write_text(TINY)
    many = command("programs", "--factors", "2,2,2", "--length", "4")
    for arguments in (many, command("topology", "list")):
        with subprocess.Popen(
            arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        ) as running:
            assert running.stdout is not None
            assert running.stderr is not None
            running.stdout.close()
            assert running.stderr.read() == ""
        assert running.returncode == 0


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
@pytest.mark.parametrize("more", [(), ("--json",)])
def test_a_full_disk_is_one_line(more: tuple[str, ...]) -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            command("topology", "list", *more), stdout=full, stderr=subprocess.PIPE, text=True
        )
    assert_one_error(Outcome(done.returncode, "", done.stderr))
