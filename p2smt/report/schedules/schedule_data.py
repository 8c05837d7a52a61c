"""The verdict on a schedule as plain data for ``--json``, and as lines for people."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from typing import TYPE_CHECKING, cast

from p2smt.report.outputs.schedules import (
    CheckedInstance,
    CheckedSchedule,
    ConvertedFile,
    ConvertOutput,
    FoldedSchedule,
    InstanceViolation,
    InterleavedStep,
    RepairedStep,
    RepairOutput,
    ScheduleCostOutput,
    ScheduleStep,
    ScheduleViolation,
    VerifyCertificateOutput,
    VerifyFamilyOutput,
    VerifyScheduleOutput,
)
from p2smt.report.outputs.shape import range_data
from p2smt.report.text import no_time_line, one_line, printable
from p2smt.synthesis.certificate.check import (
    CertificateReport,
    checked_of,
    claim_words,
    scope_words,
)
from p2smt.units import counted, format_bytes, format_time, plain

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from p2smt.cost.accuracy import PriceRange
    from p2smt.schedules.cost.predict import ScheduleCost
    from p2smt.schedules.families.family import ParametricReport
    from p2smt.schedules.folded import Folded
    from p2smt.schedules.lower.lowered_request import ExportedFile, PlanExport
    from p2smt.schedules.model import Runnable, Schedule, Step
    from p2smt.schedules.verify.repair import RepairSearch
    from p2smt.schedules.verify.report import Report, Violation


# Violations, ways of contributions and steps of an interleaving that are printed.
_VIOLATIONS, _DETAILS, _STEPS = 3, 4, 40
_WIDTH, _COLUMNS = 2000, 100


def schedule_data(
    schedule: Schedule,
    report: Report,
    runs: Runnable,
    *,
    search: RepairSearch | None = None,
    cost: ScheduleCost | None = None,
    within: PriceRange | None = None,
    devices: Sequence[int] = (),
    notes: Sequence[str] | None = None,
    folded: tuple[Folded, str | None] | None = None,
) -> VerifyScheduleOutput:
    """The verdict; ``search``, ``cost``, ``notes`` and ``folded`` are left out where they are None.

    ``within``: the range of the cost.  ``folded``: of which ``schedule`` is the programs, and the
    fabric that it was held against.
    """
    return VerifyScheduleOutput(
        verdict=report.verdict,
        violations=[_violation(schedule, broken) for broken in report.violations],
        warnings=report.warnings,
        schedule=CheckedSchedule(
            name=schedule.name,
            format=schedule.form,
            collective=schedule.contract.collective,
            in_place=schedule.in_place,
            ranks=schedule.ranks,
            steps=len(schedule.steps) if folded is None else folded[0].steps,
        ),
        fifo_depth=report.fifo_depth,
        min_fifo_depth=report.min_depth,
        unused_messages=None if report.unused is None else len(report.unused),
        racy_chunks=report.races,
        races_harmless=report.harmless,
        reason=report.reason,
        memory_rule=report.memory_rule or None,
        runtime=runs.runtime,
        runnable=bool(runs),
        reasons=runs.reasons,
        fix=None if search is None else _repair_data(schedule, search),
        notes=notes,
        symmetry=None if folded is None else _folded_data(*folded),
        cost=None if cost is None else _cost_data(schedule, cost, within, devices),
    )


def _folded_data(told: Folded, fabric: str | None) -> FoldedSchedule:
    return FoldedSchedule(
        orbits=told.orbits,
        program_steps=len(told.programs.steps),
        generators=len(told.generators),
        order=len(told.group),
        fabric=fabric,
    )


def _violation(schedule: Schedule, broken: Violation) -> ScheduleViolation:
    steps = [_step(schedule.steps[number]) for number in broken.steps]
    return ScheduleViolation(
        kind=broken.kind,
        rank=broken.rank,
        chunk=broken.chunk,
        step=steps[0].step if steps else None,
        message=broken.message,
        steps=steps,
        details=broken.details,
        interleaving=[
            InterleavedStep(**vars(_step(schedule.steps[number])), part=part)
            for number, part in _entries(broken)
        ],
    )


def _entries(broken: Violation) -> Iterator[tuple[int, str]]:
    """The interleaving: step numbers, and which part of the step."""
    parts = broken.parts or ("",) * len(broken.order)
    yield from zip(broken.order, parts, strict=True)


def _step(step: Step) -> ScheduleStep:
    """A step, where its file has it."""
    block, (place, *inner) = step.in_file
    return ScheduleStep(
        rank=step.rank,
        block=block,
        step=place,
        inner=inner[0] if inner else None,
        kind=step.kind,
        line=step.line,
    )


def _repair_data(schedule: Schedule, search: RepairSearch) -> RepairOutput:
    """The repair, or how far the search went."""
    found = [
        RepairedStep(**vars(_step(schedule.steps[number])), change=change)
        for number, change in _changes(search)
    ]
    return RepairOutput(
        repair=found[0] if found else None,
        tried=search.tried,
        complete=search.complete,
        further=found[1:],
    )


def _changes(search: RepairSearch) -> tuple[tuple[int, str], ...]:
    """The steps that a repair changes, and how."""
    found = search.repair
    return () if found is None else ((found.step, found.change), *found.further)


def _cost_data(
    schedule: Schedule, cost: ScheduleCost, within: PriceRange | None, devices: Sequence[int]
) -> ScheduleCostOutput:
    """The predicted time, what limits it, and the bounds."""
    found = cost.bottleneck
    return ScheduleCostOutput(
        seconds=cost.time_s,
        bound_s=cost.bound_s,
        payload_bytes=cast(int, cost.payload_bytes),
        bottleneck=None if found is None else str(found.link),
        bottleneck_bytes=None if found is None else found.load_bytes,
        bottleneck_busy_share=cost.busy_share,
        critical_path=[_step(schedule.steps[number]) for number in cost.critical],
        approximate=cost.rough,
        devices=devices,
        **range_data(within),
    )


def wrapped(lines: Iterable[str]) -> Iterator[str]:
    """Lines for people, long ones broken and continued with more indentation."""
    for line in lines:
        start = " " * (len(line) - len(line.lstrip()))
        yield from textwrap.wrap(
            line,
            _COLUMNS,
            subsequent_indent=f"{start}    ",
            break_long_words=False,
            break_on_hyphens=False,
        )


def schedule_lines(
    schedule: Schedule, report: Report, folded: tuple[Folded, str | None] | None = None
) -> Iterator[str]:
    """The verdict for people, the verdict itself first; ``folded`` as above."""
    steps = len(schedule.steps) if folded is None else folded[0].steps
    yield f"{report.verdict.value}: {one_line(_what(schedule, steps))}{_claim(report)}"
    if folded is not None:
        yield _folded_line(*folded)
    causes = list(_by_cause(report.violations))
    for same in causes[:_VIOLATIONS]:
        yield from _violation_lines(schedule, same[0])
        if len(same) > 1:
            yield f"  {len(same) - 1} more chunks are wrong for the same reason"
    if len(causes) > _VIOLATIONS:
        more = sum(map(len, causes[_VIOLATIONS:]))
        yield f"and {more} more (all with --json)"
    if report.min_depth is not None:
        yield f"connections: checked with depth {report.fifo_depth}; {_depth(report)}"
    if report.memory_rule:
        yield f"memory rule: {report.memory_rule}"
    for warning in report.warnings:
        yield f"warning: {one_line(warning, _WIDTH)}"


def _folded_line(told: Folded, fabric: str | None) -> str:
    """What the verdict on a schedule that is told by orbits rests on."""
    programs, steps = counted(told.orbits, "program"), counted(len(told.programs.steps), "step")
    named = counted(len(told.generators), "symmetry", "symmetries")
    where = "" if fabric is None else f" and of fabric {printable(fabric)}"
    return f"by symmetry: {programs}, {steps}; {named} of the collective{where}, proved"


def runnable_lines(runs: Runnable) -> Iterator[str]:
    """Whether the runtime would run it, for people."""
    first = ", once it is converted" if runs.rewritten else ""
    yield f"runnable: {'yes' if runs else 'no'} ({runs.title}{first})"
    yield from (f"  {one_line(reason, _WIDTH)}" for reason in runs.reasons)


def _by_cause(violations: Sequence[Violation]) -> Iterable[list[Violation]]:
    """Violations of one kind that name the same steps, together."""
    causes: dict[object, list[Violation]] = {}
    for number, broken in enumerate(violations):
        key = (broken.kind, broken.steps) if broken.steps else number
        causes.setdefault(key, []).append(broken)
    return causes.values()


def _what(schedule: Schedule, steps: int) -> str:
    place = "in place" if schedule.in_place else "out of place"
    return (
        f"{schedule.contract.collective} {place}, {counted(schedule.ranks, 'rank')}, "
        f"{counted(steps, 'step')} ({', '.join(filter(None, (schedule.name, schedule.form)))})"
    )


def _claim(report: Report) -> str:
    if report.reason:
        return f": {report.reason}"
    if report.violations:
        return ""
    if report.races:
        return f"; {report.races} chunks are accessed in no certain order, proved harmless"
    return "; right in every interleaving"


def _depth(report: Report) -> str:
    least = report.min_depth
    if least is not None and least <= report.fifo_depth:
        return f"every step gets its turn from depth {least} on"
    return f"every step would get its turn from depth {least} on"


def _violation_lines(schedule: Schedule, broken: Violation) -> Iterator[str]:
    yield f"{broken.kind.value}: {one_line(broken.message, _WIDTH)}"
    for detail in broken.details[:_DETAILS]:
        yield f"  {one_line(detail, _WIDTH)}"
    if broken.order and broken.shortest is not None:
        length = "shortest" if broken.shortest else "short"
        yield f"  a {length} interleaving that shows it, {counted(len(broken.order), 'step')}:"
        shown = list(_entries(broken))[-_STEPS:]
        if len(shown) < len(broken.order):
            before = counted(len(broken.order) - len(shown), "step")
            yield f"    .. {before} before (all with --json)"
        for number, part in shown:
            yield f"    {schedule.steps[number]}{': ' * bool(part)}{part}"


def repair_lines(schedule: Schedule, search: RepairSearch) -> Iterator[str]:
    """The repair for people."""
    match [f"fix: {schedule.steps[number]}: {change}" for number, change in _changes(search)]:
        case [one]:
            yield f"{one}; with that the schedule is valid"
        case [_, *_] as several:
            yield from several
            yield f"with these {len(several)} changes the schedule is valid"
        case _ if search.complete:
            yield f"no change of one step makes it valid ({search.tried} tried)"
        case _:
            yield f"no fix found before the time limit ({search.tried} changes of one step tried)"


def cost_lines(schedule: Schedule, cost: ScheduleCost, within: PriceRange | None) -> Iterator[str]:
    """The predicted time for people, with its range."""
    time, payload = format_time(cost.time_s), format_bytes(cost.payload_bytes)
    about = "about " if cost.rough else ""
    yield f"predicted: {about}{time} for {payload} (lower bound {format_time(cost.bound_s)})"
    if within is not None:
        yield f"  range: {within.text}"
    if cost.bottleneck is not None:
        load, share = format_bytes(cost.bottleneck.load_bytes), 100 * cost.busy_share
        yield f"  bottleneck: {cost.bottleneck.link}, {load}, busy {plain(share)} % of the time"
    steps = counted(len(schedule.steps), "step")
    yield f"  critical path: {len(cost.critical)} of {steps}"


def family_data(found: ParametricReport) -> VerifyFamilyOutput:
    """The verdict on a symbolic schedule as data."""
    return VerifyFamilyOutput(
        verdict=found.verdict,
        claims=list(found.claims()),
        all_sizes=found.induction.proved,
        instances=[
            CheckedInstance(
                parameters=dict(instance.parameters),
                ranks=instance.ranks,
                verdict=instance.report.verdict,
                min_fifo_depth=instance.report.min_depth,
                violations=[
                    InstanceViolation(
                        kind=one.kind, rank=one.rank, chunk=one.chunk, message=one.message
                    )
                    for one in instance.report.violations
                ],
            )
            for instance in found.instances
        ],
    )


def family_lines(found: ParametricReport) -> Iterator[str]:
    """The verdict on a symbolic schedule for people."""
    sizes = f"{len(found.instances)} size{'s' * (len(found.instances) > 1)}"
    yield f"{found.verdict.value}: {sizes} checked, up to {found.upto}"
    yield from (f"  {one_line(claim, _WIDTH)}" for claim in found.claims())
    for broken in found.instances[-1].report.violations[:_VIOLATIONS]:
        where = found.instances[-1]
        yield f"{broken.kind.value} ({where}): {one_line(broken.message, _WIDTH)}"


# The verdict on the certificate of a bound, for people and for ``--json``.
# ``fabric``: the name of the fabric that the certificate was held against; None: none.


def certificate_lines(report: CertificateReport, fabric: str | None = None) -> Iterator[str]:
    """What is wrong, a line each; then the verdict."""
    yield from report.faults
    yield printable(f"{_verdict(report)}: {_certificate_claim(report, fabric)}")
    if not report.valid:
        return
    yield f"it holds {scope_words()}"
    yield printable(f"checked: {', '.join(_checked(report, fabric))}")
    for what in _not_checked(report, fabric):
        yield printable(f"not checked: {what}")


def certificate_data(
    report: CertificateReport, fabric: str | None = None
) -> VerifyCertificateOutput:
    """The verdict as data."""
    claim = report.claim
    return VerifyCertificateOutput(
        verdict="valid" if report.valid else "invalid",
        violations=report.faults,
        claim=_certificate_claim(report, fabric),
        collective=claim.collective,
        root=claim.root,
        fabric=claim.fabric.name,
        ranks=claim.fabric.ranks,
        steps=claim.steps,
        bound_kind=claim.kind,
        bound=str(claim.bound),
        proved=None if report.proved is None else str(report.proved),
        generators=len(claim.generators),
        checked=_checked(report, fabric),
        not_checked=_not_checked(report, fabric),
    )


def _verdict(report: CertificateReport) -> str:
    return "valid" if report.valid else "invalid"


def _certificate_claim(report: CertificateReport, fabric: str | None) -> str:
    """The claim; of a valid one about a fabric that was named, under that name."""
    return claim_words(report.claim, fabric if report.valid else None)


def _checked(report: CertificateReport, fabric: str | None) -> list[str]:
    if not report.valid:
        return []
    held, named = report.claim.fabric.name, []
    if fabric is not None:
        other = "" if held == fabric else f" (the file calls it {held[:60]!r})"
        named = [f"the fabric is {fabric}{other}"]
    return [*checked_of(report.claim), *named]


def _not_checked(report: CertificateReport, fabric: str | None) -> list[str]:
    if not report.valid or fabric is not None:
        return []
    name = report.claim.fabric.name
    return [f"that the fabric in the file is {name} (add --fabric)"]


# What `convert` says of the schedules that it made of a plan.


_SHOWN = 16
_FAR = 1.05


def export_lines(made: PlanExport) -> Iterator[str]:
    """A line for each file, and one for the time of all groups as exported."""
    for file in made.files:
        yield _file(file, made.groups, made.by_rank)
    yield _times(made)


def converted_data(
    rows: Sequence[tuple[str, int, int, int | None]],
    plan_s: float | None = None,
    lost: Sequence[str] = (),
) -> ConvertOutput:
    """Files with their steps, ranks and group as ``convert --json`` prints them."""
    files = [ConvertedFile(file=f, steps=n, ranks=r, group=g) for f, n, r, g in rows]
    return ConvertOutput(files=files, plan_s=plan_s, lost=lost)


def _file(file: ExportedFile, groups: int, by_rank: bool) -> str:
    schedule = file.content.schedule
    steps, ranks = counted(file.steps, "step"), counted(schedule.ranks, "rank")
    text = f"{steps} of {ranks} written to {file.path}"
    if file.group is None:
        what = "rank" if by_rank else "device"
        of_plan = " of the plan" if by_rank else ""
        return f"{text}: all {groups} groups, rank r is {what} r{of_plan}"
    devices = file.content.devices
    shown = " ".join(str(device) for device in devices[:_SHOWN])
    more = f" .. {devices[-1]}" if len(devices) > _SHOWN else ""
    what = "the plan's" if by_rank else "devices"
    return f"{text}: group {file.group} of {groups}, its ranks are {what} {shown}{more}"


def _times(made: PlanExport) -> str:
    """How the time compares with the plan's, and what differs if it is longer."""
    if made.plan_s is None:
        return no_time_line(made.unstated)
    plan = f"predicted: {format_time(made.plan_s)} in the plan"
    if made.exported_s is None:
        return f"{plan}; not predicted as exported ({made.means}): too many steps"
    exported = f"{format_time(made.exported_s)} as exported ({made.means})"
    times = made.exported_s / made.plan_s if made.plan_s else 1.0
    text = f"{plan}, {exported}: {times:.2f} times as long"
    return f"{text}; the plan counts on {', '.join(made.plan_means)}" if times > _FAR else text
