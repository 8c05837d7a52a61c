"""What the options of `run` mean."""

from __future__ import annotations

from typing import TYPE_CHECKING

from p2smt.cli import given
from p2smt.errors import InputError
from p2smt.runtime.job import Job
from p2smt.runtime.options import RunOptions

if TYPE_CHECKING:
    from p2smt.cli.schedule_options import ScheduleOptions
    from p2smt.runtime.schedules.job import ScheduleJob

ProgramOptions = tuple[str | None, ...]
"""--topology, --axes, --placement, --reduce, --kind, --program."""


def options_of(
    backend: str,
    device: str | None,
    dtype: str,
    warmup: str,
    repeat: str,
    time_limit: str,
    seed: str,
    ranks_per_gpu: str,
) -> RunOptions:
    """How to run."""
    from p2smt.runtime.payload import DataType

    known = {data_type.value: data_type for data_type in DataType}
    if dtype not in known:
        raise InputError(f"dtype {dtype[:20]!r}", f"must be one of {', '.join(known)}")
    limits = given.limits_of(time_limit, seed)
    return RunOptions(
        backend,
        device or ("cuda" if backend == "nccl" else "cpu"),
        known[dtype],
        given.count_of(warmup, "warmup", 1000, least=0),
        given.count_of(repeat, "repeat", 100_000, least=0),
        limits.seed,
        limits.time_limit_s or 0.0,
        given.count_of(ranks_per_gpu, "ranks per GPU", 64),
    )


def job_of(
    plan: str | None, payload: str | None, pipeline: str | None, program: ProgramOptions
) -> Job:
    """The job of a plan file, or of a program."""
    from p2smt.parallelism.request import MAX_CHUNKS
    from p2smt.units import parse_bytes

    size = None if payload is None else parse_bytes(payload, "payload")
    chunks = None if pipeline is None else given.count_of(pipeline, "pipeline", MAX_CHUNKS)
    topology, *others = program
    if plan is None:
        return _program_job(size, chunks, topology, *others)
    if any(option is not None for option in others):
        raise InputError(
            "a plan file with --axes, --placement, --reduce, --kind or --program",
            "holds its own",
            "drop the options, or the file",
        )
    from p2smt.plans.file import read_plan
    from p2smt.runtime.programs.plan_job import Changes, plan_job

    links = None if topology is None else given.topology_of(topology)
    return plan_job(read_plan(plan), f"plan {plan}", Changes(size, chunks, links))


def _program_job(
    size: int | None,
    chunks: int | None,
    topology: str | None,
    axes: str | None,
    placement: str | None,
    reduce: str | None,
    kind: str | None,
    text: str | None,
) -> Job:
    from p2smt.cli import scene_options
    from p2smt.plans.given_program import given_program
    from p2smt.runtime.programs.plan_job import program_job

    if topology is None:
        raise InputError("run", "needs a plan file, or --topology with a program", "see --help")
    wanted = scene_options.program_kind(kind)
    place = scene_options.placed_reduction(topology, axes, placement, reduce)
    payload = size or place.payload_bytes
    if not payload:
        raise InputError(f"reduce {reduce}", "has no size", "write it like dp=1MiB")
    program = given_program(wanted, place.scene.hierarchy, text)
    return program_job(
        place.scene.topology,
        place.placement,
        place.axes,
        wanted,
        program,
        payload,
        chunks or 1,
        f"{wanted.value} {place.names}",
    )


def schedule_job_of(
    text: str, source: str, payload: str | None, asked: ScheduleOptions
) -> ScheduleJob:
    """The job of a schedule file."""
    from p2smt.interop.schedule_files import read_schedule
    from p2smt.runtime.schedules.job import schedule_job
    from p2smt.units import parse_bytes

    size = None if payload is None else parse_bytes(payload, "payload")
    return schedule_job(read_schedule(text, source, asked.reading()), size, asked.depth())


def refuse_for_schedule(pipeline: str | None, scene: ProgramOptions) -> None:
    """A schedule stands alone.

    Raises:
        InputError: an option of plans or programs was given.
    """
    if pipeline is not None or any(option is not None for option in scene):
        raise InputError(
            "a schedule with --pipeline, --topology, --axes, --placement, --reduce or --program",
            "takes none of them",
            "drop them",
        )


def refuse_for_plan(asked: ScheduleOptions, unverified: bool) -> None:
    """A plan or a program has no use for options of schedules.

    Raises:
        InputError: one was given.
    """
    asked.refuse_for_plan()
    if unverified:
        raise InputError("--unverified", "is for schedules: programs are not checked before")


def check_ranks(ranks: int, devices: int) -> None:
    """There must be a rank for each device, or for each rank of a schedule."""
    if ranks != devices:
        raise InputError(f"{ranks} ranks", f"there are {devices} devices", "start as many")
