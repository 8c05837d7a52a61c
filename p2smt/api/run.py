"""Plans, programs, schedules and redistributions on ranks: what ``p2smt run`` does."""

from __future__ import annotations

from collections.abc import Sequence
from typing import overload

from p2smt.cluster.topology import Topology
from p2smt.errors import InputError
from p2smt.parallelism.placement import Placement
from p2smt.parallelism.request import Problem
from p2smt.plans.file_model import AnyPlan
from p2smt.plans.given_program import given_programs
from p2smt.resharding.redistribution_plan import RedistributionPlan
from p2smt.runtime.arrays.rank_steps import array_job
from p2smt.runtime.payload import RunOptions
from p2smt.runtime.programs.plan_job import Changes, plan_job, requests_job
from p2smt.runtime.ranks.on_ranks import run_job
from p2smt.runtime.ranks.run_arrays import ArrayRunResult, run_arrays
from p2smt.runtime.ranks.run_schedule import ScheduleResult, run_schedule
from p2smt.runtime.schedules.schedule_job import schedule_job
from p2smt.runtime.summary import RunResult
from p2smt.schedules.model import DEFAULT_DEPTH, Schedule


@overload
def run(
    work: AnyPlan,
    options: RunOptions | None = None,
    *,
    payload_bytes: int | None = None,
    chunks: int | None = None,
    links: Topology | None = None,
    port: int = 0,
) -> RunResult | None: ...
@overload
def run(
    work: Schedule,
    options: RunOptions | None = None,
    *,
    payload_bytes: int | None = None,
    fifo_depth: int | None = None,
    unverified: bool = False,
    port: int = 0,
) -> ScheduleResult | None: ...
@overload
def run(
    work: RedistributionPlan,
    options: RunOptions | None = None,
    *,
    port: int = 0,
) -> ArrayRunResult | None: ...
def run(
    work: AnyPlan | Schedule | RedistributionPlan,
    options: RunOptions | None = None,
    *,
    payload_bytes: int | None = None,
    chunks: int | None = None,
    links: Topology | None = None,
    fifo_depth: int | None = None,
    unverified: bool = False,
    port: int = 0,
) -> RunResult | ScheduleResult | ArrayRunResult | None:
    """Run a plan, a schedule or a redistribution: check the results, and time it on real ranks.

    Args:
        work: by :func:`~p2smt.api.files.read_plan` or :func:`~p2smt.api.files.read_schedule`, or
            of :func:`~p2smt.api.arrays.redistribute`.
        options: backend (gloo, nccl, or reference in one process), repetitions and so on.
        payload_bytes: instead of the sizes in the plan; of a schedule, of a rank's larger buffer.
        chunks, links: of a plan: pipeline chunks, and where predictions are from, if not its own.
        fifo_depth: of a schedule: messages that a connection holds before its sender waits.
        unverified: of a schedule: run it whatever the checker says.
        port: that ranks meet at; 0: any.

    Returns:
        None on every rank but 0 of ranks that existed already (torchrun, srun).

    Raises:
        InputError: the work, or an argument that is not for it; a schedule that is wrong.
        BackendError, ExecutionError: the ranks could not be run.
    """
    options = options or RunOptions()
    if isinstance(work, Schedule):
        _refuse("a schedule", chunks=chunks, links=links)
        depth = DEFAULT_DEPTH if fifo_depth is None else fifo_depth
        job = schedule_job(work, payload_bytes, depth)
        return run_schedule(job, options, port=port, unverified=unverified)
    if isinstance(work, RedistributionPlan):
        what = "a redistribution"
        _refuse(what, payload_bytes=payload_bytes, chunks=chunks, links=links)
        _refuse(what, fifo_depth=fifo_depth, unverified=unverified or None)
        return run_arrays(array_job(work), options, port=port)
    _refuse("a plan", fifo_depth=fifo_depth, unverified=unverified or None)
    return run_job(
        plan_job(work, "plan", Changes(payload_bytes, chunks, links)), options, port=port
    )


def run_programs(
    problem: Problem,
    placement: Placement,
    programs: Sequence[str | None] = (),
    options: RunOptions | None = None,
    *,
    chunks: int = 1,
    port: int = 0,
) -> RunResult | None:
    """Run the requests of a problem on a placement, one after the other.

    Args:
        problem: cluster, axes and requests.
        placement: the matrix.
        programs: for the requests that have any, in their order; None: the single collective.
        options, chunks, port: as for :func:`run`.

    Returns:
        None on every rank but 0 of ranks that existed already (torchrun, srun).

    Raises:
        InputError: sizes that do not fit, too many programs, or one that does not parse.
        BackendError, ExecutionError: the ranks could not be run.
    """
    found = given_programs(problem, placement, programs)
    job = requests_job(problem, placement, found, chunks)
    return run_job(job, options or RunOptions(), port=port)


def _refuse(what: str, **given: object) -> None:
    """Arguments that are not for this kind of work."""
    for name, value in given.items():
        if value is not None:
            raise InputError(name, f"is not for {what}", "drop it")
