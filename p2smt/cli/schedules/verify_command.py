"""`p2smt verify`: of plans, certificates, journals, programs and schedules."""

from __future__ import annotations

import json as json_module
from dataclasses import replace
from typing import TYPE_CHECKING

import typer

from p2smt.cli import given
from p2smt.cli import option_groups as o
from p2smt.cli.codes import INTERRUPTED, NOT_SETTLED, OK, REFUTED
from p2smt.cli.output import note, tell
from p2smt.cli.parameters import Text, argument, flag, opened, option, part
from p2smt.cli.schedules.schedule_options import ScheduleOptions
from p2smt.cli.schedules.size_options import priced_under
from p2smt.cli.schedules.tuner_files import tuner_text, verify_tuner
from p2smt.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from p2smt.cluster.topology import Topology
    from p2smt.cost.accuracy import PriceRange
    from p2smt.plans.check.check_plan import PlanReport
    from p2smt.plans.file_model import AnyPlan
    from p2smt.plans.solution import PlanProof, ProofStatus
    from p2smt.report.outputs.shape import Output
    from p2smt.resharding.redistribution_plan import RedistributionPlan
    from p2smt.resharding.search import RedistributionProof
    from p2smt.schedules.cost.predict import ScheduleCost
    from p2smt.schedules.families.family import ParametricReport
    from p2smt.schedules.folded import Folded
    from p2smt.schedules.model import Runnable, Schedule
    from p2smt.schedules.verify.repair import RepairSearch
    from p2smt.schedules.verify.report import Report, Verdict

_REPAIR_S = 60.0
_SAMPLE_S = 300.0
"""Wall seconds in which a sample is solved again, unless others are given: z3 may take for ever."""


@opened
def verify(
    *,
    file: Text = argument(
        "FILE",
        "A plan, a certificate (of crossings, of a bound on schedules), the journal of a search, "
        "a schedule (MSCCL XML, MSCCL++ JSON, or YAML), or a file for a library: nccl-tuner, "
        "rccl-tuner, ncclx-tuner, ompi-tuned, ompi-han, mpich, mpich-ch4.",
    ),
    asked: ScheduleOptions,
    program: Text = option("TEXT", "A program instead of FILE; with --levels or --topology."),
    levels: Text = o.LEVELS,
    kind: Text = o.KIND,
    algorithm: Text = option("NAME", "Of a program: ring (default), tree or direct."),
    prove: bool = flag("Plans: solve again, to settle that none is better."),
    sample: Text = option("N", "Journals: solve so many verdicts again (default 5)."),
    every: bool = flag("Journals: solve every verdict again.", "--all"),
    fabric: Text = option(
        "NAME",
        "Certificates of bounds on schedules, and schedules with `symmetry`: whether they are "
        "about this fabric.",
    ),
    as_format: Text = option(
        "NAME",
        "Files for libraries: who reads it, such as nccl-tuner; default: as it looks.",
        "--as",
    ),
    comms: Text = option(
        "NxR,..", "Files for libraries: the job's communicators, nodes x ranks per node."
    ),
    how: o.SearchOptions = part("time_limit"),
    shown: o.ShownOptions,
) -> int:
    """Check a plan, a program, the journal of a search, or a schedule in every interleaving.

    Of a file that tells a library which algorithm to run: what it really makes the library do.
    """
    if (file is None) == (program is None):
        raise InputError("verify", "takes either a file or --program", "give one of them")
    if file is not None and any(option is not None for option in (levels, kind, algorithm)):
        rule = "are for --program"
        raise InputError("--levels, --kind and --algorithm", rule, "drop them, or the file")
    if file is not None and (text := tuner_text(file, as_format)) is not None:
        _refuse_proof(prove)
        _refuse_fabric(fabric)
        asked.refuse("a file for a library", "drop them")
        return verify_tuner(file, text, as_format, comms, shown)
    if as_format is not None or comms is not None:
        raise InputError("--as and --comms", "are for files that libraries read", "drop them")
    if file is not None and is_journal_file(file):
        asked.refuse("a journal", "drop them")
        _refuse_proof(prove)
        _refuse_fabric(fabric)
        return verify_journal_file(file, shown, sample, every, how)
    if every or sample is not None:
        name = "--all" if every else "--sample"
        raise InputError(name, "is for journals of searches", "drop it")
    if file is not None:
        return _verify_file(file, asked, prove, shown, fabric, how)
    _refuse_proof(prove)
    _refuse_fabric(fabric)
    asked.refuse_for_program(how.time_limit)
    return verify_program(program or "", levels, kind, algorithm, asked, shown)


def _refuse_fabric(fabric: Text, remedy: str = "drop it") -> None:
    """Only certificates of bounds on schedules, and schedules with symmetries, are about one."""
    if fabric is not None:
        rule = "goes with the certificate of a bound on schedules, and schedules with `symmetry`"
        raise InputError("--fabric", rule, remedy)


def _refuse_proof(prove: bool) -> None:
    if prove:
        raise InputError("--prove", "is for plans: only they claim to be the best", "drop it")


def _verify_file(
    file: str,
    asked: ScheduleOptions,
    prove: bool,
    shown: o.ShownOptions,
    fabric: Text,
    how: o.SearchOptions,
) -> int:
    from p2smt.interop.schedule_files import folded_schedule, schedule_text

    text = schedule_text(file)
    if text is None:
        return _verify_json(file, asked, prove, shown, fabric, how)
    _refuse_proof(prove)
    if not asked.needs_steps and (told := folded_schedule(text, file, asked.reading())):
        return verify_folded(told, asked.depth(), fabric, shown)
    _refuse_fabric(fabric, "drop it; of a file with `symmetry` drop --cost, --fix and the like")
    return (verify_schedule if asked.upto is None else check_family)(text, file, asked, how, shown)


def _verify_json(
    file: str,
    asked: ScheduleOptions,
    prove: bool,
    shown: o.ShownOptions,
    fabric: Text,
    how: o.SearchOptions,
) -> int:
    """Check a plan, or what proves something: they are told apart by their keys."""
    from p2smt.api.files import is_size_certificate
    from p2smt.interop.schedule_files import require_json
    from p2smt.plans.crossings.least_set_file import is_least_set
    from p2smt.resharding.plan_file import is_redistribution
    from p2smt.transfer.plan_file import is_transfer

    require_json(file)
    if how.time_limit is not None and not prove:
        raise InputError("--time-limit", "of a plan goes with --prove", "add that, or drop it")
    if is_size_certificate(file):
        remedy = "drop them; --fabric and --topology name what it is about"
        replace(asked, topology=None).refuse("a proof about payloads", remedy)
        _refuse_proof(prove)
        return verify_sized(file, shown, fabric, asked.topology)
    if (proof := _checker_of_proof(file)) is not None:
        asked.refuse("a proof about schedules", "drop them; --fabric names what it is about")
        _refuse_proof(prove)
        return proof(file, shown, fabric)
    asked.refuse_for_plan()
    _refuse_fabric(fabric)
    if is_least_set(file):
        return verify_least_set(file, shown, prove, how)
    if is_redistribution(file):
        return verify_redistribution(file, shown, prove, how)
    if is_transfer(file):
        _refuse_proof(prove)
        return verify_transfer(file, shown)
    return verify_plan(file, shown, prove, how)


def _checker_of_proof(file: str) -> Callable[[str, o.ShownOptions, Text], int] | None:
    """What checks a file that proves something of schedules; None: another one."""
    from p2smt.api.files import is_certificate, is_forest_file

    if is_certificate(file):
        return verify_certificate
    return verify_forest if is_forest_file(file) else None


def _tell(
    shown: o.ShownOptions,
    data: Callable[[], Output],
    lines: Callable[[], Iterable[str]],
    below: Sequence[str] = (),
    written: Sequence[str] = (),
    whole: Callable[[Iterable[str]], Iterable[str]] = iter,
) -> None:
    """Print what a check says, what stays ``below``, and files; ``whole``: how all is laid."""
    from p2smt.report.screens.check_screen import checked_screen

    def told() -> Iterable[str]:
        said = lines()
        if shown.details:
            return [*whole([*said, *below]), *written]
        return checked_screen(said, below, written)

    tell(shown.json, data, told)


def _code(valid: bool, proof: ProofStatus | None) -> int:
    """The exit code of a check, and of the proof that none is better, if one was sought."""
    if proof is None:
        return OK if valid else REFUTED
    from p2smt.plans.solution import ProofStatus

    match proof:
        case ProofStatus.PROVED:
            return OK
        case ProofStatus.REFUTED:
            return REFUTED
        case ProofStatus.OPEN:
            return NOT_SETTLED


# Plans.


def verify_plan(file: str, shown: o.ShownOptions, prove: bool, how: o.SearchOptions) -> int:
    """Check a plan file: meaning, times, restrictions; and whether it is the best, if asked."""
    from p2smt.plans.file import read_plan
    from p2smt.plans.file_model import PlanModel
    from p2smt.report.plan_data import report_data, report_lines
    from p2smt.search.split import with_splits
    from p2smt.training.training_plan import check_training_plan

    plan, source = read_plan(file), f"plan {file[:200]!r}"
    report = with_splits(plan, source, check_training_plan(plan, source))
    proof = _proof(plan, source, report, how) if prove and report.valid else None
    if proof is not None and isinstance(plan, PlanModel) and plan.training is not None:
        of_hosts = "the order of hosts for these requests, whose sum is not the iteration"
        what = "proved are the programs on this matrix"
        if plan.hosts is not None:
            what = f"sought is {of_hosts}"
        note(f"{what}; of strategies `p2smt plan` proves the best")
    _tell(shown, lambda: report_data(report, proof), lambda: report_lines(report, proof))
    if proof is not None and proof.solution.interrupted:
        return INTERRUPTED
    return _code(report.valid, None if proof is None else proof.status)


def _proof(plan: AnyPlan, source: str, report: PlanReport, how: o.SearchOptions) -> PlanProof:
    """The proof under the plan's limits, or under another time limit."""
    from p2smt.cli.guide.progress import tell_times
    from p2smt.plans.file_model import PlanModel
    from p2smt.search.prove import prove, stated_limits

    limits = stated_limits(plan.limits) if isinstance(plan, PlanModel) else None
    if limits is not None and how.time_limit is not None:
        limits = replace(limits, time_limit_s=how.limits().time_limit_s)
    return prove(plan, source, limits=limits, report=report, progress=tell_times)


def verify_redistribution(
    file: str, shown: o.ShownOptions, prove: bool, how: o.SearchOptions
) -> int:
    """Check a plan: rules, meaning, memory, times; and whether it is the fastest, if asked."""
    from p2smt.report.resharding_data import checked_plan_data, checked_plan_lines
    from p2smt.resharding.plan_check import check_redistribution
    from p2smt.resharding.plan_file import read_redistribution

    report = check_redistribution(read_redistribution(file), f"plan {file[:200]!r}")
    proof = None
    if prove and report.valid and report.plan is not None:
        proof = _fastest(report.plan, how)
    _tell(
        shown, lambda: checked_plan_data(report, proof), lambda: checked_plan_lines(report, proof)
    )
    return _code(report.valid, None if proof is None else proof.status)


def _fastest(plan: RedistributionPlan, how: o.SearchOptions) -> RedistributionProof:
    """The proof under the plan's limits, or under another time limit."""
    from p2smt.resharding.search import prove_redistribution

    limits = plan.limits
    if how.time_limit is not None:
        limits = replace(limits, time_limit_s=how.limits().time_limit_s)
    return prove_redistribution(plan, limits)


def verify_transfer(file: str, shown: o.ShownOptions) -> int:
    """Check a plan: every element's way, times, and the bound, by fractions alone."""
    from p2smt.report.transfers.data import checked_transfer_data
    from p2smt.report.transfers.screens import checked_transfer_lines
    from p2smt.transfer.check import check_transfer
    from p2smt.transfer.plan_file import read_transfer

    report = check_transfer(read_transfer(file), f"plan {file[:200]!r}")
    _tell(shown, lambda: checked_transfer_data(report), lambda: checked_transfer_lines(report))
    return OK if report.valid else REFUTED


# Certificates and journals.


def verify_certificate(file: str, shown: o.ShownOptions, fabric: Text) -> int:
    """Derive a bound again by fractions alone; ``fabric``: whether it is about that one."""
    from p2smt.api.files import verify_bound
    from p2smt.fabric.fabric_file import load_fabric
    from p2smt.report.schedules.schedule_data import certificate_data, certificate_lines

    known = None if fabric is None else load_fabric(fabric)
    report, name = verify_bound(file, known), None if known is None else known.name
    _tell(shown, lambda: certificate_data(report, name), lambda: certificate_lines(report, name))
    return OK if report.valid else REFUTED


def verify_sized(file: str, shown: o.ShownOptions, fabric: Text, topology: Text) -> int:
    """Derive what is proved of payloads again by fractions alone; ``fabric``: as for a bound.

    ``topology``: whose latencies it must have; what is named as both is the fabric of its levels.
    """
    from p2smt.api.files import verify_sizes
    from p2smt.report.schedules.size_data import size_report_data, size_report_lines

    levels = None if topology is None else priced_under(topology, None)
    own = levels if fabric == topology else None
    known = None if fabric is None else o.FabricOptions().fabric(fabric, levels=own)
    report, held = verify_sizes(file, known, levels), (fabric, topology)
    _tell(shown, lambda: size_report_data(report, held), lambda: size_report_lines(report, held))
    return OK if report.valid else REFUTED


def verify_forest(file: str, shown: o.ShownOptions, fabric: Text) -> int:
    """Add up a forest again; ``fabric``: whether it grows there."""
    from p2smt.api import files
    from p2smt.report.schedules.forest_data import forest_data, forest_lines

    report = files.verify_forest(file, fabric)
    _tell(shown, lambda: forest_data(report, fabric), lambda: forest_lines(report, fabric))
    return OK if report.valid else REFUTED


def verify_least_set(file: str, shown: o.ShownOptions, prove: bool, how: o.SearchOptions) -> int:
    """Check a certificate by fractions alone; ``prove``: list the programs again, too."""
    from p2smt.plans.crossings.least_set_check import check_least_set
    from p2smt.plans.crossings.least_set_file import read_least_set
    from p2smt.report.crossings.least_set import certificate_data, certificate_lines

    report, complete, cut = check_least_set(read_least_set(file)), None, False
    if prove and report.valid:
        from p2smt.search.crossings.least import lists_every_program

        complete = lists_every_program(report.claim, how.limits())
        cut = complete is None
    if cut:
        note("the time limit came before the programs were listed")
    _tell(
        shown,
        lambda: certificate_data(report, complete),
        lambda: certificate_lines(report, complete),
    )
    if cut:
        return NOT_SETTLED
    return OK if report.valid and complete is not False else REFUTED


def is_journal_file(file: str) -> bool:
    """Whether a file is a journal by its name, or by how it starts."""
    from p2smt.parallel_search.journal import is_journal

    return file.endswith(".jsonl") or is_journal(file)


def verify_journal_file(
    file: str, shown: o.ShownOptions, sample: Text, every: bool, how: o.SearchOptions
) -> int:
    """Verify a journal; ``sample``, or ``every``: how many verdicts to solve again."""
    from p2smt.api.journals import verify_journal
    from p2smt.cli.guide.progress import tell_count
    from p2smt.report.journal_verdict import journal_data, journal_lines
    from p2smt.report.text import printable

    many, limits = sample_of(sample, every), how.limits()
    limit_s = _SAMPLE_S if how.time_limit is None and not every else limits.time_limit_s
    report = verify_journal(file, sample=many, time_limit_s=limit_s, told=tell_count)
    _tell(shown, lambda: journal_data(report), lambda: map(printable, journal_lines(report)))
    if report.proved:
        return OK
    return NOT_SETTLED if report.valid else REFUTED


def sample_of(sample: Text, every: bool) -> int | None:
    """How many verdicts --sample and --all ask for; None: all.

    Raises:
        InputError: both are given, or the number is none.
    """
    from p2smt.parallel_search.journal.journal_verification import DEFAULT_SAMPLE

    if every and sample is not None:
        raise InputError("--sample and --all", "ask for different numbers", "give one of them")
    if every:
        return None
    return DEFAULT_SAMPLE if sample is None else given.count_of(sample, "sample", 10**9, least=0)


# Programs and schedules.


def verify_program(
    text: str,
    levels: Text,
    kind: Text,
    algorithm: Text,
    asked: ScheduleOptions,
    shown: o.ShownOptions,
) -> int:
    """Check a program over all devices, by its meaning and chunk by chunk."""
    from p2smt.programs.program import parse_program
    from p2smt.schedules.families.family import all_factors, prove_program
    from p2smt.schedules.lower.assemble import Lowering

    names, sizes = given.levels_of(asked.topology, levels, asked.use)
    choices = [sizes] if asked.upto is None else all_factors(len(names), asked.bound())
    if sizes not in choices:
        rule = f"is not among the sizes of at most {asked.upto} ranks"
        raise InputError(f"levels {','.join(map(str, sizes))}", rule, "raise --upto")
    found = prove_program(
        parse_program(text),
        names,
        choices,
        given.program_kind(kind),
        Lowering(algorithm or "ring"),
        asked.depth(),
    )
    return show_family(found, shown)


def verify_schedule(
    text: str, source: str, asked: ScheduleOptions, how: o.SearchOptions, shown: o.ShownOptions
) -> int:
    """Check a schedule in every interleaving."""
    from p2smt.cluster.allocation import unstated_levels
    from p2smt.interop.reading import NoKind
    from p2smt.interop.schedule_files import read_schedule, runnable, valid_as
    from p2smt.report.schedules.schedule_data import repair_lines, schedule_data, wrapped
    from p2smt.report.text import no_time_line, printable
    from p2smt.schedules.verify.verify import verify

    depth, limit_s = asked.depth(), how.limits().time_limit_s
    scene, wanted = asked.scene(), asked.wanted()
    try:
        schedule = read_schedule(text, source, asked.reading())
    except NoKind as error:
        others = valid_as(text, source, asked.reading(), None, depth)
        remedy = "; ".join((error.remedy, *(f"valid as {other}" for other in others)))
        raise InputError(error.given, error.rule, remedy) from None
    runs = runnable(schedule, wanted, text, source)
    report = verify(schedule, depth, limit_s)
    search = (
        _repair(schedule, report, _REPAIR_S if limit_s is None else limit_s) if asked.fix else None
    )
    untimed = () if scene is None else unstated_levels(scene[0])
    devices = asked.devices(scene, schedule.ranks)
    cost = None if untimed else _cost(schedule, report, scene, devices)
    within = _within(schedule, scene, devices, cost)
    traced = asked.trace is not None and _write_trace(asked.trace, schedule, report, cost)
    notes = [no_time_line(untimed)] if untimed else []
    if cost is not None and scene is not None and scene[0].library:
        notes.append(f"the price of a call of {scene[0].library_name} is not in the time")
    where = "" if cost is None or scene is None else _where(scene[0], devices, asked)
    if report.violations:
        others = valid_as(text, source, asked.reading(), schedule, depth)
        notes += [f"valid as {other}" for other in others]
    fixes = [] if search is None else [*repair_lines(schedule, search)]
    _tell(
        shown,
        lambda: schedule_data(
            *(schedule, report, runs),
            search=search,
            cost=cost,
            within=within,
            devices=devices,
            notes=notes or None,
        ),
        lambda: _lines(schedule, report, runs, (cost, within), where, asked=wanted is not None),
        [*fixes, *notes],
        [f"trace written to {printable(asked.trace or '')}"] * traced,
        wrapped,
    )
    return exit_code_of(report.verdict) or int(wanted is not None and not runs)


def verify_folded(told: Folded, depth: int, fabric: Text, shown: o.ShownOptions) -> int:
    """Check a schedule by the programs of its orbits; ``fabric``: and its symmetries there."""
    from p2smt.fabric.fabric_file import load_fabric
    from p2smt.report.schedules.schedule_data import schedule_data, schedule_lines, wrapped
    from p2smt.schedules.model import Runnable
    from p2smt.schedules.verify.by_symmetry import verify_by_symmetry

    known = None if fabric is None else load_fabric(fabric)
    report, name = verify_by_symmetry(told, depth, known), None if known is None else known.name
    _tell(
        shown,
        lambda: schedule_data(told.programs, report, Runnable(), folded=(told, name)),
        lambda: schedule_lines(told.programs, report, (told, name)),
        whole=wrapped,
    )
    return exit_code_of(report.verdict)


def check_family(
    text: str, source: str, asked: ScheduleOptions, how: o.SearchOptions, shown: o.ShownOptions
) -> int:
    """Check a symbolic schedule at every size up to a bound, and seek a proof for all."""
    from p2smt.interop.schedule_files import format_of
    from p2smt.schedules.families.family import prove_family
    from p2smt.schedules.language.schedule_file import parse_symbolic

    upto = asked.bound()
    found_format = format_of(text)
    if found_format is None or not found_format.symbolic:
        rule = "is for symbolic YAML schedules and for --program"
        raise InputError("--upto", rule, "drop it; this file has one size")
    asked.refuse_for_family()
    found = prove_family(
        parse_symbolic(text, source), upto, asked.depth(), how.limits().time_limit_s
    )
    return show_family(found, shown)


def show_family(found: ParametricReport, shown: o.ShownOptions) -> int:
    """Print what is known of a family of schedules; the exit code."""
    from p2smt.report.schedules.schedule_data import family_data, family_lines, wrapped

    _tell(shown, lambda: family_data(found), lambda: family_lines(found), whole=wrapped)
    return exit_code_of(found.verdict)


def _cost(
    schedule: Schedule,
    report: Report,
    scene: tuple[Topology, int] | None,
    devices: tuple[int, ...],
) -> ScheduleCost | None:
    """The predicted time on a topology of a payload, of a schedule that is not wrong."""
    from p2smt.schedules.cost.predict import schedule_cost

    if scene is None or report.violations:
        return None
    topology, payload = scene
    return schedule_cost(schedule, topology, payload, report.fifo_depth, devices=devices)


def _within(
    schedule: Schedule,
    scene: tuple[Topology, int] | None,
    devices: tuple[int, ...],
    cost: ScheduleCost | None,
) -> PriceRange | None:
    """The range of that time."""
    from p2smt.schedules.cost.predict import schedule_range

    if scene is None or cost is None:
        return None
    return schedule_range(schedule, scene[0], cost, devices)


def _where(topology: Topology, devices: tuple[int, ...], asked: ScheduleOptions) -> str:
    """Where the ranks lie that the time is of, and how to say otherwise."""
    from p2smt.schedules.cost.ranks import where_words

    several = topology.node_level > 0 or topology.sizes[0] > 1
    other = "; --ranks-on says otherwise" if asked.ranks_on is None and several else ""
    return f"  {where_words(topology, devices)}{other}"


def _repair(schedule: Schedule, report: Report, limit_s: float) -> RepairSearch | None:
    from p2smt.schedules.verify.repair import find_repair

    return find_repair(schedule, report, limit_s) if report.violations else None


def _lines(
    schedule: Schedule,
    report: Report,
    runs: Runnable,
    priced: tuple[ScheduleCost | None, PriceRange | None],
    where: str,
    *,
    asked: bool,
) -> list[str]:
    from p2smt.report.schedules import schedule_data as lines_of

    cost, within = priced
    return [
        *lines_of.schedule_lines(schedule, report),
        *(lines_of.runnable_lines(runs) if asked or not runs else ()),
        *(() if cost is None else lines_of.cost_lines(schedule, cost, within)),
        *([where] if where else []),
    ]


def _write_trace(path: str, schedule: Schedule, report: Report, cost: ScheduleCost | None) -> bool:
    """The predicted timeline, or the interleaving that shows the first violation, or any run.

    Returns whether there is one: a schedule that cannot be run at all has none.
    """
    from p2smt.files.write import write_atomically
    from p2smt.schedules.cost.trace import cost_trace, order_trace
    from p2smt.schedules.verify.verify import some_run

    if cost is not None:
        write_atomically(path, json_module.dumps(cost_trace(schedule, cost)))
        return True
    broken = report.violations[0] if report.violations else None
    order = broken.order if broken and broken.order else some_run(schedule, report.fifo_depth)
    if not order:
        typer.echo("no trace is written: the schedule cannot be run at all", err=True)
        return False
    write_atomically(path, json_module.dumps(order_trace(schedule, order, broken)))
    return True


def exit_code_of(verdict: Verdict) -> int:
    """The exit code of a verdict."""
    from p2smt.schedules.verify.report import Verdict

    match verdict:
        case Verdict.VALID:
            return OK
        case Verdict.INVALID:
            return REFUTED
        case Verdict.UNKNOWN:
            return NOT_SETTLED
