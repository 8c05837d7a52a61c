"""`p2smt run`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, assert_never

from p2smt.cli import given
from p2smt.cli import option_groups as o
from p2smt.cli.codes import OK, REFUTED
from p2smt.cli.guide.progress import say
from p2smt.cli.output import tell, tell_tables
from p2smt.cli.parameters import Text, Texts, argument, flag, opened, option, part
from p2smt.cli.schedules.schedule_options import ScheduleOptions
from p2smt.errors import InputError
from p2smt.units import counted, plain

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from p2smt.runtime.arrays.rank_steps import ArrayJob
    from p2smt.runtime.job import Job
    from p2smt.runtime.payload import RunOptions
    from p2smt.runtime.schedules.schedule_job import ScheduleJob
    from p2smt.runtime.transfers.transfer_job import TransferJob
    from p2smt.runtime.work import Work


@dataclass(frozen=True)
class LaunchOptions:
    """How ranks are started, and how often they run."""

    warmup: str = option("N", "Untimed repetitions.", default="1")
    repeat: str = option("N", "Timed repetitions.", default="5")
    time_limit: str = option("TIME", "For the whole run, such as 90s, 5m or 1h.", default="600")
    port: str = option("N", "Port that the ranks meet at; 0: any.", default="0")
    device: Text = option("NAME", "cpu or cuda; default: the backend's.")
    ranks_per_gpu: str = option("N", "Above 1: checks results, times mean nothing.", default="1")
    seed: str = option("N", "Of the payloads.", default="0")

    def options(self, backend: str, dtype: str = "float32") -> RunOptions:
        """How to run.

        Raises:
            InputError: one of them does not read.
        """
        from p2smt.runtime.payload import DataType, RunOptions

        known = {data_type.value: data_type for data_type in DataType}
        if dtype not in known:
            raise InputError(f"dtype {dtype[:20]!r}", f"must be one of {', '.join(known)}")
        limits = o.SearchOptions(time_limit=self.time_limit, seed=self.seed).limits()
        return RunOptions(
            backend,
            self.device or ("cuda" if backend == "nccl" else "cpu"),
            known[dtype],
            given.count_of(self.warmup, "warmup", 1000, least=0),
            given.count_of(self.repeat, "repeat", 100_000, least=0),
            limits.seed,
            limits.time_limit_s or 0.0,
            given.count_of(self.ranks_per_gpu, "ranks per GPU", 64),
        )


def check_started(ranks: Text, devices: int) -> None:
    """There must be a rank for each device, or for each rank of a schedule."""
    if ranks is not None and (number := given.count_of(ranks, "ranks")) != devices:
        raise InputError(counted(number, "rank"), f"there are {devices} devices", "start as many")


@opened
def run(
    *,
    file: Text = argument(
        "FILE", "A plan that solve, redistribute or transfer -o wrote, or a schedule (see verify)."
    ),
    backend: str = option(
        "NAME", "gloo, nccl, mpi, or reference (numpy, one process).", default="gloo"
    ),
    ranks: Text = option("N", "Ranks to start; must be those of FILE."),
    dtype: Text = option("NAME", "float32 (the default), float16, bfloat16 or int64."),
    payload: Text = option("SIZE", "Instead of the sizes in the plan."),
    pipeline: Text = option("M", "Chunks, instead of those in the plan."),
    topology: Text = option(
        "NAME[:N]|FILE",
        "Without a file: where to run.  With a plan: links to predict times from.",
        "-t",
    ),
    axes: Text = o.AXES,
    placement: Text = o.PLACEMENT,
    requests: o.RequestOptions,
    program: Texts = o.PROGRAM,
    launch: LaunchOptions,
    asked: ScheduleOptions = part("fifo_depth", "collective", "root", "out_of_place", "sizes"),
    unverified: bool = flag("Run a schedule or a transfer whatever the checker says."),
    details: bool = o.DETAILS,
    json: bool = o.JSON,
) -> int:
    """Run a plan, a schedule, a redistribution or a transfer on real ranks: check it, time it.

    Without a file: requests on a placement, by --topology, --axes, --placement, --reduce and so on,
    with a --program for each, as for `cost`; they run one after the other.  Under torchrun, srun
    or mpirun (--backend mpi) the ranks that exist are used.
    """
    from p2smt.interop.schedule_files import schedule_text
    from p2smt.resharding.plan_file import is_redistribution
    from p2smt.transfer.plan_file import is_transfer

    scene = _Scene(o.ClusterOptions(topology), axes, placement, requests, tuple(program or ()))
    redistributes = file is not None and is_redistribution(file)
    transfers = file is not None and not redistributes and is_transfer(file)
    text = None if file is None or redistributes or transfers else schedule_text(file)
    work: Work
    others = {
        "--payload": payload,
        "--pipeline": pipeline,
        "--dtype": dtype,
        "--topology": topology,
        "--axes": axes,
        "--placement": placement,
    }
    if file is not None and redistributes:
        _refuse_for_plan(asked, unverified)
        _refuse_for_moves("a redistribution", others, scene)
        work = _array_job(file)
    elif file is not None and transfers:
        _refuse_for_plan(asked, unverified=False)
        _refuse_for_moves("a transfer", others, scene)
        work = _transfer_job(file, unverified=unverified)
    elif file is None or text is None:
        _refuse_for_plan(asked, unverified)
        work = _job(file, payload, pipeline, scene)
    else:
        _refuse_for_schedule((pipeline, topology), scene)
        work = _schedule_job(text, file, payload, asked)
    options = launch.options(backend, dtype or "float32")
    check_started(ranks, work.ranks)
    port = given.count_of(launch.port, "port", 65_535, least=0)
    say(f"{counted(work.ranks, 'rank')}, {backend}, at most {plain(options.time_limit_s)} s")
    return _run(work, options, port, _Shown(details, json), unverified=unverified)


# What runs.


@dataclass(frozen=True, slots=True)
class _Scene:
    """What runs without a file."""

    cluster: o.ClusterOptions
    axes: Text
    placement: Text
    requests: o.RequestOptions
    programs: tuple[str, ...]

    @property
    def own(self) -> bool:
        """Whether any is given that a plan holds itself: all but --topology."""
        others = self.axes is not None or self.placement is not None
        return others or self.requests != o.RequestOptions() or bool(self.programs)


def _job(plan: Text, payload: Text, pipeline: Text, scene: _Scene) -> Job:
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

    spec = scene.cluster.topology
    links = None if spec is None else given.topology_of(spec)
    return plan_job(read_plan(plan), f"plan {plan}", Changes(size, chunks, links))


def _program_job(size: int | None, chunks: int, scene: _Scene) -> Job:
    from p2smt.plans.given_program import given_programs
    from p2smt.runtime.programs.plan_job import requests_job

    if scene.cluster.topology is None:
        raise InputError("run", "needs a plan file, or --topology with requests", "see --help")
    asked = o.placed_requests(scene.cluster, scene.axes, scene.placement, scene.requests)
    problem = asked.of(size)
    programs = given_programs(problem, asked.placement, scene.programs)
    return requests_job(problem, asked.placement, programs, chunks)


def _schedule_job(text: str, source: str, payload: Text, asked: ScheduleOptions) -> ScheduleJob:
    """The job of a schedule file."""
    from p2smt.interop.schedule_files import read_schedule
    from p2smt.runtime.schedules.schedule_job import schedule_job
    from p2smt.units import parse_bytes

    size = None if payload is None else parse_bytes(payload, "payload")
    return schedule_job(read_schedule(text, source, asked.reading()), size, asked.depth())


def _array_job(plan: str) -> ArrayJob:
    """The job of the plan file of a redistribution."""
    from p2smt.resharding.plan_check import redistribution_plan
    from p2smt.resharding.plan_file import read_redistribution
    from p2smt.runtime.arrays.rank_steps import array_job

    return array_job(redistribution_plan(read_redistribution(plan), f"plan {plan[:200]}"))


def _transfer_job(plan: str, *, unverified: bool) -> TransferJob:
    """The job of the plan file of a transfer."""
    from p2smt.runtime.ranks.run_transfer import transfer_job
    from p2smt.transfer.plan_file import read_transfer

    return transfer_job(read_transfer(plan), f"plan {plan[:200]!r}", unverified=unverified)


def _refuse_for_moves(what: str, others: Mapping[str, object], scene: _Scene) -> None:
    """The plan of a redistribution or of a transfer says itself what moves where.

    Raises:
        InputError: an option of other plans or of programs was given.
    """
    given = [name for name, value in others.items() if value is not None]
    given += ["requests or --program"] * (scene.own and not given)
    if given:
        raise InputError(f"{what} with {' and '.join(given)}", "takes none of them", "drop them")


def _refuse_for_schedule(others: Iterable[Text], scene: _Scene) -> None:
    """A schedule stands alone.

    Raises:
        InputError: an option of plans or programs was given.
    """
    if scene.own or any(option is not None for option in others):
        raise InputError(
            "a schedule with --pipeline, --topology, --axes, --placement, requests or --program",
            "takes none of them",
            "drop them",
        )


def _refuse_for_plan(asked: ScheduleOptions, unverified: bool) -> None:
    """A plan or a program has no use for options of schedules.

    Raises:
        InputError: one was given.
    """
    asked.refuse_for_plan()
    if unverified:
        raise InputError("--unverified", "is for schedules: programs are not checked before")


# Running it, and what is told of it.


@dataclass(frozen=True, slots=True)
class _Shown:
    """How an answer is shown."""

    details: bool
    as_json: bool


def _run(work: Work, options: RunOptions, port: int, shown: _Shown, *, unverified: bool) -> int:
    from p2smt.runtime.arrays.rank_steps import ArrayJob
    from p2smt.runtime.job import Job
    from p2smt.runtime.schedules.schedule_job import ScheduleJob
    from p2smt.runtime.transfers.transfer_job import TransferJob

    match work:
        case Job():
            return _run_programs(work, options, port, shown)
        case ScheduleJob():
            return _run_schedule(work, options, port, shown, unverified=unverified)
        case ArrayJob():
            return _run_arrays(work, options, port, shown)
        case TransferJob():
            return _run_transfer(work, options, port, shown)
        case _:
            assert_never(work)


def _run_programs(job: Job, options: RunOptions, port: int, shown: _Shown) -> int:
    from p2smt.report.run_tables import run_data, run_screen, run_tables
    from p2smt.runtime.ranks.on_ranks import run_job

    result = run_job(job, options, port=port)
    if result is None:
        return OK
    tables = run_tables if shown.details else run_screen
    tell_tables(shown.as_json, lambda: run_data(result, options), lambda: tables(result, options))
    return OK if result.verified else REFUTED


def _run_schedule(
    job: ScheduleJob, options: RunOptions, port: int, shown: _Shown, *, unverified: bool
) -> int:
    from p2smt.report.run_tables import schedule_run_data, schedule_run_lines
    from p2smt.runtime.ranks.run_schedule import run_schedule

    result = run_schedule(job, options, port=port, unverified=unverified)
    if result is None:
        return OK
    tell(
        shown.as_json,
        lambda: schedule_run_data(result, options),
        lambda: _shortened(schedule_run_lines(result, options), shown.details),
    )
    return OK if result.verified else REFUTED


def _run_arrays(job: ArrayJob, options: RunOptions, port: int, shown: _Shown) -> int:
    from p2smt.report.run_tables import array_run_data, array_run_lines
    from p2smt.runtime.ranks.run_arrays import run_arrays

    result = run_arrays(job, options, port=port)
    if result is None:
        return OK
    tell(
        shown.as_json,
        lambda: array_run_data(result, options),
        lambda: _shortened(array_run_lines(result, options), shown.details),
    )
    return OK if result.verified else REFUTED


def _run_transfer(job: TransferJob, options: RunOptions, port: int, shown: _Shown) -> int:
    from p2smt.report.run_tables import transfer_run_data, transfer_run_lines
    from p2smt.runtime.ranks.run_transfer import run_transfer

    result = run_transfer(job, options, port=port)
    if result is None:
        return OK
    tell(
        shown.as_json,
        lambda: transfer_run_data(result, options),
        lambda: _shortened(transfer_run_lines(result, options), shown.details),
    )
    return OK if result.verified else REFUTED


def _shortened(lines: Iterable[str], details: bool) -> list[str]:
    from p2smt.report.screen import fitted, full_width
    from p2smt.report.text import MAX_MESSAGE, one_line

    if details:
        return [one_line(line, 2000) for line in lines]
    return fitted(full_width(one_line(line, MAX_MESSAGE) for line in lines))
