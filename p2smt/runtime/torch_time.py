"""Times a program on one rank: whole, step by step, and against the single collective."""

from __future__ import annotations

import time
from collections.abc import Callable

import torch.distributed as dist

from p2smt.runtime.options import RequestRun, RunOptions
from p2smt.runtime.torch_prepared import Prepared

Tell = Callable[[str], None]
"""Notes what the rank is about to do, for the message if it never gets further."""


def time_request(prepared: Prepared, options: RunOptions, run: RequestRun, tell: Tell) -> None:
    """Program, baseline and single steps in turn; their order rotates with the repetitions.

    All ranks enter a timed section together, behind a barrier; each notes how long it takes
    until its own part is complete.
    """
    steps = len(prepared.request.steps)
    run.steps_s = [[] for _ in range(steps)]
    for repetition in range(-options.warmup, options.repeat):
        times = _repetition(prepared, repetition % 3, tell)
        if repetition < 0:
            continue
        run.total_s.append(times.pop("program"))
        if "baseline" in times:
            run.baseline_s.append(times.pop("baseline"))
        for step in range(steps):
            run.steps_s[step].append(times[f"step {step + 1}"])


def _repetition(prepared: Prepared, first: int, tell: Tell) -> dict[str, float]:
    times: dict[str, float] = {}

    def measure(name: str, run: Callable[[], None]) -> None:
        tell(name)
        times[name] = _timed(prepared, run)

    def program() -> None:
        prepared.load()
        measure("program", prepared.program.run)

    def baseline() -> None:
        if prepared.baseline is not None:
            prepared.load()
            measure("baseline", prepared.baseline.run)

    def single_steps() -> None:
        prepared.load()
        for step in range(len(prepared.request.steps)):
            measure(f"step {step + 1}", lambda: prepared.program.run_step(step))  # noqa: B023

    turns = [program, baseline, single_steps]
    for turn in turns[first:] + turns[:first]:
        turn()
    return times


def _timed(prepared: Prepared, run: Callable[[], None]) -> float:
    prepared.site.synchronize()
    dist.barrier()
    begin = time.perf_counter()
    run()
    prepared.site.synchronize()
    return time.perf_counter() - begin
