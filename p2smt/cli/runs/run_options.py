"""What the options of `run` mean."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from p2smt.cli import given
from p2smt.errors import InputError
from p2smt.runtime.job import Job
from p2smt.runtime.payload import RunOptions

if TYPE_CHECKING:
    from p2smt.cli.scene_options import RequestTexts
    from p2smt.cli.schedules.schedule_options import ScheduleOptions
    from p2smt.runtime.arrays.rank_steps import ArrayJob
    from p2smt.runtime.schedules.job import ScheduleJob


@dataclass(frozen=True, slots=True)
class SceneTexts:
    """The options that say what runs without a file, as given."""

    topology: str | None
    axes: str | None
    placement: str | None
    requests: RequestTexts
    programs: tuple[str, ...]

    @property
    def own(self) -> bool:
        """Whether any is given that a plan holds itself: all but --topology."""
        options = (self.axes, self.placement, self.requests.kind)
        return self.requests.some or bool(self.programs) or any(o is not None for o in options)


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


def job_of(plan: str | None, payload: str | None, pipeline: str | None, scene: SceneTexts) -> Job:
    """The job of a plan file, or of requests with programs."""
    from p2smt.parallelism.request import MAX_CHUNKS
    from p2smt.units import parse_bytes

    size = None if payload is None else parse_bytes(payload, "payload")
    chunks = None if pipeline is None else given.count_of(pipeline, "pipeline", MAX_CHUNKS)
    if plan is None:
        return _program_job(size, chunks or 1, scene)
    if scene.own:
        raise InputError(
            "a plan file with --axes, --placement, requests, --kind or --program",
            "holds its own",
            "drop the options, or the file",
        )
    from p2smt.plans.file import read_plan
    from p2smt.runtime.programs.plan_job import Changes, plan_job

    links = None if scene.topology is None else given.topology_of(scene.topology)
    return plan_job(read_plan(plan), f"plan {plan}", Changes(size, chunks, links))


def _program_job(size: int | None, chunks: int, scene: SceneTexts) -> Job:
    from p2smt.cli import scene_options
    from p2smt.plans.given_program import given_programs
    from p2smt.runtime.programs.plan_job import requests_job

    if scene.topology is None:
        raise InputError("run", "needs a plan file, or --topology with requests", "see --help")
    asked = scene_options.placed_requests(
        scene.topology, scene.axes, scene.placement, scene.requests
    )
    problem = asked.of(size)
    programs = given_programs(problem, asked.placement, scene.programs)
    return requests_job(problem, asked.placement, programs, chunks)


def schedule_job_of(
    text: str, source: str, payload: str | None, asked: ScheduleOptions
) -> ScheduleJob:
    """The job of a schedule file."""
    from p2smt.interop.schedule_files import read_schedule
    from p2smt.runtime.schedules.job import schedule_job
    from p2smt.units import parse_bytes

    size = None if payload is None else parse_bytes(payload, "payload")
    return schedule_job(read_schedule(text, source, asked.reading()), size, asked.depth())


def array_job_of(plan: str) -> ArrayJob:
    """The job of the plan file of a redistribution."""
    from p2smt.resharding.check import redistribution_plan
    from p2smt.resharding.plan_file import read_redistribution
    from p2smt.runtime.arrays.rank_steps import array_job

    return array_job(redistribution_plan(read_redistribution(plan), f"plan {plan[:200]}"))


def refuse_for_arrays(
    payload: str | None, pipeline: str | None, dtype: str | None, scene: SceneTexts
) -> None:
    """The plan of a redistribution says itself what moves where.

    Raises:
        InputError: an option of other plans or of programs was given.
    """
    own = scene.own or scene.topology is not None
    if own or any(option is not None for option in (payload, pipeline, dtype)):
        raise InputError(
            "a redistribution with --payload, --pipeline, --dtype, --topology, --axes, "
            "--placement, requests or --program",
            "takes none of them",
            "drop them",
        )


def refuse_for_schedule(pipeline: str | None, scene: SceneTexts) -> None:
    """A schedule stands alone.

    Raises:
        InputError: an option of plans or programs was given.
    """
    if pipeline is not None or scene.topology is not None or scene.own:
        raise InputError(
            "a schedule with --pipeline, --topology, --axes, --placement, requests or --program",
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


def check_started(ranks: int, devices: int) -> None:
    """There must be a rank for each device, or for each rank of a schedule."""
    if ranks != devices:
        raise InputError(f"{ranks} ranks", f"there are {devices} devices", "start as many")
