"""Runs work on the backend that is asked for, and joins what its ranks report.

Ranks that do not exist are started, on one or several machines, and how they failed is explained.
No torch here: what starts ranks stays small, and notices what happens to them.
"""

from __future__ import annotations

import contextlib
import json
import os
import pickle
import queue
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import IO, Any

from p2smt.errors import BackendError, ExecutionError, InputError
from p2smt.runtime.job import Job
from p2smt.runtime.payload import RankReport, RunOptions, named, report_of
from p2smt.runtime.programs.reference_backend import run_reference
from p2smt.runtime.ranks.listen import serving
from p2smt.runtime.ranks.memory_check import check_memory
from p2smt.runtime.ranks.mpi_launch import on_mpi, ranks_here
from p2smt.runtime.ranks.place import check_gpus, existing_place, local_ranks
from p2smt.runtime.summary import RunResult, summarize
from p2smt.runtime.work import NodeSetup, Work
from p2smt.units import plain

_SETTLE_S = 1.0  # after a first failure: time for the others' to arrive, to tell cause from effect
_GRACE_S = 5.0
_START_S = 60.0


@dataclass(frozen=True, slots=True)
class StartCommand:
    """How a process is started on a machine: a command prefix and environment variables."""

    prefix: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)


LOCAL = StartCommand(environment={"GLOO_SOCKET_IFNAME": "lo"})
"""This machine, ranks talking over the loopback interface."""


@dataclass(frozen=True, slots=True)
class Fleet:
    """Machines with equally many ranks each, numbered machine by machine.

    ``host`` and ``port`` are where rank 0's machine opens the store (port 0: any free one).
    """

    machines: tuple[StartCommand, ...] = (LOCAL,)
    host: str = "127.0.0.1"
    port: int = 0


def launch(work: Work, options: RunOptions, fleet: Fleet | None = None) -> list[RankReport]:
    """Run work on ranks of its own and return their reports, in the order of the ranks.

    Raises:
        BackendError: torch or the backend is missing.
        ExecutionError: a rank died, failed or did not finish within the time limit.

    No process of it is left behind, whatever happens.
    """
    with contextlib.ExitStack() as stack:
        run = _Run(work, options, fleet or Fleet(), stack)
        return run.reports()


class _Process:
    """The process of one machine; its events arrive in a queue shared by all."""

    def __init__(self, machine: StartCommand, setup: NodeSetup, events: queue.Queue[Any]) -> None:
        self.ranks = set(range(setup.first_rank, setup.first_rank + setup.local_ranks))
        self.errors: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - closed by stop
        self.process = subprocess.Popen(
            [*machine.prefix, sys.executable, "-P", "-m", "p2smt.runtime.ranks.node"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.errors,
            env={**_ENVIRONMENT, **os.environ, **machine.environment},
            start_new_session=True,  # Ctrl-C reaches the launcher alone, which ends all ranks
        )
        self.ready = threading.Event()
        self.reader = threading.Thread(target=self._read, args=(events,), daemon=True)
        self.reader.start()
        assert self.process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.write(pickle.dumps(setup))
            self.process.stdin.flush()

    def _read(self, events: queue.Queue[Any]) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            event = json.loads(line)
            if event["event"] != "listening":
                self.ready.set()
            events.put(event)
        events.put({"event": "gone", "process": self})

    def last_words(self) -> str:
        """The last line that the machine's process or its ranks wrote to stderr."""
        self.errors.seek(0)
        lines = self.errors.read().decode("utf-8", "replace").split("\n")
        return next((line.strip() for line in reversed(lines) if line.strip()), "")[:300]

    def release(self) -> None:
        """Let the machine's process end its ranks."""
        assert self.process.stdin is not None
        with contextlib.suppress(OSError):
            self.process.stdin.close()

    def stop(self) -> None:
        """End the machine's process and its ranks for good.

        One that did not say that it is ready may still be importing torch; it gets no time to end
        by itself.  The signal is for ranks too: a stopped one does not notice its parent's death.
        """
        self.release()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(_GRACE_S if self.ready.is_set() else 0)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self.reader.join(_GRACE_S)
        assert self.process.stdout is not None
        self.process.stdout.close()
        self.errors.close()


# One thread per rank until torch is told how many cores there are for each.
_ENVIRONMENT = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}


class _Run:
    def __init__(
        self, work: Work, options: RunOptions, fleet: Fleet, stack: contextlib.ExitStack
    ) -> None:
        self.work, self.options, self.fleet, self.stack = work, options, fleet, stack
        self.deadline = time.monotonic() + options.time_limit_s
        self.events: queue.Queue[Any] = queue.Queue()
        self.failures: list[dict[str, Any]] = []
        self.processes: list[_Process] = []
        self.ended: set[int] = set()
        self.found: list[RankReport] | None = None

    def reports(self) -> list[RankReport]:
        """Start everything, wait for the end."""
        port = self._start_first()
        for number in range(1, len(self.fleet.machines)):
            self._start(number, port)
        while not (self.found is not None and len(self.ended) == self.work.ranks):
            event = self._next(self.deadline)
            if event is None:
                raise self._late()
            self._note(event)
            if self.failures:
                raise self._explain()
        return self.found

    def _start(self, number: int, port: int) -> None:
        each = self.work.ranks // len(self.fleet.machines)
        setup = NodeSetup(self.work, self.options, number * each, each, self.fleet.host, port)
        process = _Process(self.fleet.machines[number], setup, self.events)
        self.stack.callback(process.stop)
        self.processes.append(process)

    def _start_first(self) -> int:
        """Start the first machine; the port that it listens on, once it has imported torch."""
        self._start(0, self.fleet.port)
        limit = min(self.deadline, time.monotonic() + _START_S)
        port = int(self._heard("listening", limit)["port"])
        self._heard("ready", limit)
        return port

    def _heard(self, wanted: str, limit: float) -> dict[str, Any]:
        """The next event of the first machine, if it is the one that is wanted."""
        event = self._next(limit)
        if event is not None and event["event"] == wanted:
            return event
        if event is None and limit == self.deadline:
            raise self._late()
        if event is None:
            raise ExecutionError(f"rank 0: did not start within {_START_S:g} s")
        self._note(event)
        raise self._explain()

    def _next(self, deadline: float) -> dict[str, Any] | None:
        try:
            found: dict[str, Any] = self.events.get(timeout=max(0.0, deadline - time.monotonic()))
        except queue.Empty:
            return None
        return found

    def _note(self, event: dict[str, Any]) -> None:
        match event["event"]:
            case "done":
                if event["reports"]:
                    self.found = [report_of(report) for report in event["reports"]]
            case "exit":
                self.ended.add(event["rank"])
                if event["code"] or not event["told"]:
                    self.failures.append(event)
            case "error" | "node":
                self.failures.append(event)
            case "gone" if not event["process"].ranks <= self.ended:
                self.failures.append(event)

    def _explain(self) -> Exception:
        """The error for the failure that caused the others: a death before a lost connection."""
        settled = time.monotonic() + _SETTLE_S
        while (event := self._next(settled)) is not None:
            self._note(event)
        worst = likeliest_cause(self.failures)
        if worst["event"] == "gone":
            process = worst["process"]
            return no_start(process.process.wait(), process.last_words())
        return failure_of(worst)

    def _late(self) -> Exception:
        """The error for a time limit: what each rank was doing."""
        for process in self.processes:
            process.release()
        doing: dict[str, list[int]] = {}
        settled = time.monotonic() + _SETTLE_S
        while (event := self._next(settled)) is not None:
            for rank, text in event.get("ranks", {}).items():
                doing.setdefault(text or "starting", []).append(int(rank))
        shown = "; ".join(f"{named(sorted(ranks))}: {text}" for text, ranks in doing.items())
        return ExecutionError(
            f"no result within {plain(self.options.time_limit_s, 6)} s "
            f"({shown or 'no rank answered'})"
        )


# Which of several failures was the cause, and what it means, for whoever started the ranks.
# A death explains the connections that others lose by it; what a rank says itself comes next.


Event = Mapping[str, Any]
"""What a machine's process tells (:mod:`p2smt.runtime.ranks.node`)."""


def likeliest_cause(failures: Sequence[Event]) -> Event:
    """The failure that caused the others."""
    return min(failures, key=_weight)


def _weight(failure: Event) -> int:
    """Which of several failures is the cause: 0 most likely.

    A rank that ends without a word breaks the connections of its neighbours, whatever its exit
    code is; these tell of it and end.
    """
    if failure["event"] == "exit":
        return 3 if failure["told"] else 0
    if failure["event"] == "error":
        return 1 if failure["kind"] != "failure" else 2
    return 4


def _end(event: Event) -> str:
    code, where = event["code"], event["where"] or "its start"
    if code >= 0:
        return f"ended by itself with exit code {code} during {where}"
    return f"{_killed(-code)} during {where}"


def _killed(number: int) -> str:
    with contextlib.suppress(ValueError):
        return f"was killed by {signal.Signals(number).name}"
    return f"was killed by signal {number}"


def failure_of(event: Event) -> Exception:
    """The error for a failure of a rank, or of a port that cannot be opened."""
    if event["event"] == "exit":
        return ExecutionError(f"rank {event['rank']}: {_end(event)}")
    if event["event"] == "node":
        return ExecutionError(f"rank 0: cannot open the port of the ranks: {event['text']}")
    match event["kind"]:
        case "BackendError":
            return BackendError(event["text"])
        case "failure":
            return ExecutionError(f"rank {event['rank']}: {event['text']}")
    return ExecutionError(event["text"])


def no_start(code: int, last_words: str) -> Exception:
    """The error of a process that ended before it had started its ranks, or while they ran."""
    if "No module named 'torch'" in last_words:
        return BackendError(
            "torch: is not installed; install p2smt with its torch extra, "
            "or use --backend reference"
        )
    end = _killed(-code) if code < 0 else f"ended with exit code {code}"
    words = f": {last_words}" if last_words else ""
    return ExecutionError(f"the process that starts the ranks {end}{words}")


def run_job(job: Job, options: RunOptions, *, port: int = 0) -> RunResult | None:
    """Run a job and join the reports of its ranks; as for :func:`execute`."""
    reports = execute(job, options, port=port)
    return None if reports is None else summarize(job, reports)


def execute(job: Job, options: RunOptions, *, port: int = 0) -> list[RankReport] | None:
    """Run a job on the reference executor, or as for :func:`on_ranks`."""
    if options.backend == "reference":
        check_memory(job, options, range(job.ranks))
        return run_reference(job, options)
    return on_ranks(job, options, port=port)


def on_ranks(work: Work, options: RunOptions, *, port: int = 0) -> list[RankReport] | None:
    """Run work on real ranks: under torchrun or srun as one of them, else on ranks of its own.

    Returns None on every rank but 0 of ranks that existed already.

    Raises:
        InputError: more ranks, or more memory, than there are.
        BackendError: torch, the backend or any GPU is missing.
        ExecutionError: the port is in use, GPUs are too few, a rank died, failed, or did not
            finish within the time limit.
    """
    if options.backend == "mpi":
        check_memory(work, options, ranks_here(work.ranks))
        found = on_mpi(work, options)
        return found and in_host_order(found)
    place = existing_place()
    if place is not None and place.ranks != work.ranks:
        raise InputError(
            f"{place.ranks} ranks that a launcher started",
            f"the plan is for {work.ranks}",
            f"start {work.ranks}",
        )
    check_memory(work, options, local_ranks(place, work.ranks))
    check_gpus(options, place, work.ranks)
    if place is None:
        machine = LOCAL if "GLOO_SOCKET_IFNAME" not in os.environ else StartCommand()
        return launch(work, options, Fleet((machine,), port=port))
    if place.serves:
        place = serving(place)  # before torch is imported, which takes long
    os.environ.setdefault("TORCH_CPP_LOG_LEVEL", "FATAL")  # what fails is told in one line of ours
    from p2smt.runtime.ranks.joined import run_joined

    reports = run_joined(work, options, place)
    return reports and in_host_order(reports)


def in_host_order(reports: list[RankReport]) -> list[RankReport]:
    """The reports, if the ranks of each host follow each other.

    Raises:
        InputError: they do not; ranks are then not the devices that the topology says.
    """
    hosts = [report.machine["host"] for report in reports]
    starts = [host for rank, host in enumerate(hosts) if rank == 0 or hosts[rank - 1] != host]
    for host in starts:
        if starts.count(host) > 1:
            ranks = [rank for rank, found in enumerate(hosts) if found == host]
            raise InputError(
                f"{named(ranks)} on host {host}",
                "ranks must be numbered host by host, as devices are",
                "start them so, with srun --distribution=block for instance",
            )
    return reports
