"""Times a program on one rank: whole, step by step, and against the single collective."""

from __future__ import annotations

import time
from collections.abc import Callable

from p2smt.runtime.options import RequestRun, RunOptions
from p2smt.runtime.programs.prepared import Prepared
from p2smt.runtime.programs.repetitions import Repetitions
from p2smt.runtime.site import Tell


def time_request(
    prepared: Prepared,
    options: RunOptions,
    run: RequestRun,
    tell: Tell,
    compared: Repetitions | None = None,
) -> None:
    """Program, baseline and single steps in turn; their order rotates with the repetitions.

    All ranks enter a timed section together, behind a barrier; each notes how long it takes
    until its own part is complete.  What each turn leaves is ``compared`` (None: nothing is).
    """
    run.steps_s = [[] for _ in prepared.request.steps]
    for repetition in range(-options.warmup, options.repeat):
        times = _repetition(prepared, options, repetition, tell, compared)
        if repetition < 0:
            continue
        for name, samples in (("program", run.total_s), ("baseline", run.baseline_s)):
            if name in times:
                samples.append(times[name])
        for step, taken in enumerate(run.steps_s, start=1):
            if f"step {step}" in times:
                taken.append(times[f"step {step}"])
    if compared is not None:
        compared.finish()


def _repetition(
    prepared: Prepared,
    options: RunOptions,
    repetition: int,
    tell: Tell,
    compared: Repetitions | None,
) -> dict[str, float]:
    """Times of one repetition by name; the order of the turns rotates."""
    times: dict[str, float] = {}

    def measure(name: str, run: Callable[[], None]) -> None:
        tell(name)
        times[name] = _timed(prepared, run)

    load = prepared.load if compared is None else compared.load

    def program() -> None:
        measure("program", prepared.program.run)

    def baseline() -> None:
        assert prepared.single is not None
        measure("baseline", prepared.single.program.run)

    def steps() -> None:
        for step in range(len(prepared.request.steps)):
            measure(f"step {step + 1}", lambda: prepared.program.run_step(step))  # noqa: B023

    turns = {"program": program, "baseline": baseline, "steps": steps}
    chosen = [name for name in options.timed if name != "baseline" or prepared.single is not None]
    first = repetition % len(chosen)
    for name in chosen[first:] + chosen[:first]:
        load()
        turns[name]()
        if compared is not None:
            compared.check(name, repetition)
    return times


def _timed(prepared: Prepared, run: Callable[[], None]) -> float:
    prepared.site.synchronize()
    prepared.site.barrier()
    begin = time.perf_counter()
    run()
    prepared.site.synchronize()
    return time.perf_counter() - begin
