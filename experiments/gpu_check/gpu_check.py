"""Runs a committed set of cases on this machine's GPUs and checks every result.

    python -m experiments.gpu_check.gpu_check

Needs torch and numpy beside what ``make gpu-bundle`` packs, and nothing from a network.  Ranks run
over NCCL, and over Gloo with CUDA tensors; where there are fewer GPUs than ranks, several share
one.  It ends within its budget of time, and writes ``results.json`` and ``results.md`` to ``$OUT``,
or to experiments/gpu_check/results of the current folder.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from experiments.gpu_check.case_sets import CaseSet, read_sets
from experiments.gpu_check.checking import (
    FAILED,
    LEAST_S,
    NOT_RUN,
    START_S,
    VERIFIED,
    Checker,
    Clock,
    Row,
)
from p2smt.runtime.payload import DataType, RunOptions
from p2smt.runtime.ranks.on_ranks import Fleet, StartCommand, launch
from p2smt.runtime.schedules.schedule_job import ScheduleJob

if TYPE_CHECKING:
    from p2smt.runtime.payload import RankReport
    from p2smt.runtime.work import Work

ROOT = Path(__file__).resolve().parents[2]
OK, WRONG, BAD_INPUT, NO_GPU = 0, 1, 2, 5
BUDGET_S = 500.0
"""Of nine minutes, so that what was started last can be ended."""
LATEST_S = 30.0
"""So long after the budget this process is ended."""
MOST_S = 86400.0
"""Of an option: a day is more than any check takes."""

OTHERS = (DataType.BFLOAT16, DataType.FLOAT16, DataType.INT64)


def main(arguments: Sequence[str], alarm: Callable[[int], object] | None = None) -> int:
    """Check, write, and say how it went: 0 if every case that ran verified.

    ``alarm``: ends this process after so many seconds whatever it waits for, a driver perhaps;
    ranks end with it.
    """
    given = _parser().parse_args(arguments)
    if refused := refused_time("--budget", given.budget) or refused_time("--start", given.start):
        print(f"gpu_check: error: {refused}", file=sys.stderr)
        return BAD_INPUT
    if alarm is not None:
        alarm(int(given.budget + LATEST_S))
    if given.device == "cuda" and (reason := why_no_gpu()):
        print(f"gpu_check: error: {reason}", file=sys.stderr)
        return NO_GPU
    names = given.backend or (["nccl", "gloo"] if given.device == "cuda" else ["gloo"])
    if "nccl" in names and given.device == "cpu":
        print("gpu_check: error: --backend nccl: does not run on device cpu", file=sys.stderr)
        return BAD_INPUT
    clock = Clock(given.budget, given.start)
    try:
        return check(names, given.device, read_sets(), given.out, clock)
    except OSError as error:
        print(f"gpu_check: error: {error}", file=sys.stderr)
        return BAD_INPUT


def refused_time(option: str, seconds: float) -> str:
    """Why an option cannot be so many seconds, NaN perhaps; empty if it can."""
    if LEAST_S <= seconds <= MOST_S:
        return ""
    least = f"{LEAST_S:g} s, the least that a start gets"
    return f"{option} {seconds:g}: must be from {least}, to {MOST_S:g} s"


def why_no_gpu() -> str:
    """Why nothing can run on a GPU here; empty if something can."""
    remedy = "or try the script itself with --backend gloo --device cpu"
    try:
        import torch
    except ImportError:
        return f"torch is not installed; install a CUDA build of it, {remedy}"
    if not torch.cuda.is_available():
        return f"this torch ({torch.__version__}) finds no CUDA GPU; use a CUDA build, {remedy}"
    return ""


def check(
    backends: Sequence[str], device: str, sets: Sequence[CaseSet], out: Path, clock: Clock
) -> int:
    """Run everything that there is time for; write what was found after each start of ranks."""
    from experiments.gpu_check.table import data, markdown

    rows: list[Row] = []
    machines: list[dict[str, str]] = []
    out.mkdir(parents=True, exist_ok=True)
    for found in _everything(backends, device, sets, clock, machines):
        rows += found
        written = data(rows, machines, clock)
        (out / "results.json").write_text(json.dumps(written, indent=1) + "\n", encoding="utf-8")
        (out / "results.md").write_text(markdown(written), encoding="utf-8")
        print(_progress(found), file=sys.stderr, flush=True)
    print((out / "results.md").read_text(encoding="utf-8"), end="")
    states = {row.state for row in rows}
    return OK if FAILED not in states and VERIFIED in states else WRONG


def _everything(
    backends: Sequence[str],
    device: str,
    sets: Sequence[CaseSet],
    clock: Clock,
    machines: list[dict[str, str]],
) -> Iterator[list[Row]]:
    """What is small first, so that it is run in any case."""
    gpus = gpu_count(device)
    checkers = {
        (backend, count): Checker(
            started, options_on(backend, device, count, gpus), clock, machines
        )
        for backend in backends
        for count in sorted({one.work.ranks for one in sets})
    }
    for backend in backends:
        yield list(one_rank(backend, device, clock))
    for large in (False, True):
        for backend in backends:
            for one in (one for one in sets if one.large is large):
                yield from _in_every_type(one, checkers[backend, one.work.ranks])
        for one in (one for one in sets if one.large is large and device == "cuda"):
            on_cpus = Checker(started, options_on("gloo", "cpu", 1, 0), clock, machines)
            if isinstance(one.work, ScheduleJob):
                yield on_cpus.rows(one)


def _in_every_type(one: CaseSet, checker: Checker) -> Iterator[list[Row]]:
    """Schedules go over Gloo on CPUs only."""
    if isinstance(one.work, ScheduleJob) and checker.options.device != "cpu":
        return
    yield checker.rows(one)
    for kind in OTHERS if one.every_type else ():
        yield replace(checker, options=replace(checker.options, data_type=kind)).rows(one)


def options_on(backend: str, device: str, ranks: int, gpus: int) -> RunOptions:
    """With a GPU for each rank where there are as many, else with as few on one as can be."""
    options = RunOptions(backend, device, warmup=0, repeat=1)
    return replace(options, ranks_per_gpu=max(1, -(-ranks // gpus))) if gpus else options


def started(work: Work, options: RunOptions) -> list[RankReport]:
    """The reports of ranks on this machine, which talk over its loopback interface.

    They find the product where this script has it.
    """
    local = {"GLOO_SOCKET_IFNAME": "lo", "NCCL_SOCKET_IFNAME": "lo", "NCCL_IB_DISABLE": "1"}
    chosen = {name: value for name, value in local.items() if name not in os.environ}
    return launch(work, options, Fleet((StartCommand(environment={**chosen, **_paths()}),)))


def _paths() -> dict[str, str]:
    before = os.environ.get("PYTHONPATH")
    return {"PYTHONPATH": str(ROOT) if before is None else f"{ROOT}{os.pathsep}{before}"}


def one_rank(backend: str, device: str, clock: Clock) -> Iterator[Row]:
    """A row per collective and type on a communicator of one rank, made in a process of its own."""
    limit = clock.limit_s
    if limit is None:
        yield _one_rank_row(backend, device, "", "all collectives", NOT_RUN, "the time is over")
        return
    command = [sys.executable, "-m", "experiments.gpu_check.one_rank", backend, device]
    environment = {**os.environ, **_paths()}
    asked: dict[str, Any] = {"capture_output": True, "text": True, "env": environment}
    try:
        done = subprocess.run(command, timeout=limit, check=False, **asked)
    except subprocess.TimeoutExpired:
        why = f"no result within {limit:g} s"
        yield _one_rank_row(backend, device, "", "all collectives", FAILED, why)
        return
    if done.returncode:
        why = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1][:300]
        yield _one_rank_row(backend, device, "", "all collectives", FAILED, why)
        return
    for row in json.loads(done.stdout.splitlines()[-1]):
        state, said = (FAILED, row["reason"]) if row["reason"] else (VERIFIED, "every element")
        yield _one_rank_row(backend, device, row["data_type"], row["case"], state, said)


def _one_rank_row(backend: str, device: str, kind: str, case: str, state: str, said: str) -> Row:
    return Row(backend, device, 1, 1, kind, "a communicator of one rank", case, state, said)


def _progress(found: Sequence[Row]) -> str:
    first = found[0]
    right = sum(row.state == VERIFIED for row in found)
    where = f"{first.backend}, {first.device}, {first.data_type}, {first.ranks} rank(s)"
    return f"{where}, {first.case_set}: {right} of {len(found)} verified"


def gpu_count(device: str) -> int:
    """GPUs that torch sees; 0 on CPUs."""
    if device == "cpu":
        return 0
    import torch

    return torch.cuda.device_count()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="gpu_check", description=(__doc__ or "").splitlines()[0])
    add = parser.add_argument
    out = Path(os.environ.get("OUT") or Path("experiments") / "gpu_check" / "results")
    add("--backend", action="append", choices=("nccl", "gloo"), help="may repeat; default: both")
    add("--device", default="cuda", choices=("cuda", "cpu"), help="cpu: to try the script")
    add("--budget", type=float, default=BUDGET_S, metavar="S", help="seconds for all (500)")
    add("--start", type=float, default=START_S, metavar="S", help="of them, for one start (75)")
    add("--out", type=Path, default=out, metavar="DIR", help="default: $OUT")
    return parser


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], signal.alarm))
