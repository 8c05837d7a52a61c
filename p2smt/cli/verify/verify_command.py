"""`p2smt verify`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from p2smt.cli import options as o
from p2smt.cli.schedules import schedule_options as so

if TYPE_CHECKING:
    from p2smt.plans.check.plan import PlanReport
    from p2smt.plans.file_model import AnyPlan
    from p2smt.plans.solution import PlanProof


def verify(
    file: Annotated[
        str | None,
        typer.Argument(
            metavar="FILE",
            help="A plan, a certificate (of crossings, of a bound on schedules), the journal of a "
            "search, or a schedule: MSCCL XML, MSCCL++ JSON, or YAML.",
        ),
    ] = None,
    fifo_depth: so.DepthOption = None,
    collective: so.CollectiveOption = None,
    root: so.RootOption = None,
    out_of_place: so.OutOfPlaceOption = False,
    iterations: so.IterationsOption = None,
    fix: so.RepairOption = False,
    trace: so.TraceOption = None,
    cost: so.CostOption = None,
    topology: o.TopologyOption = None,
    sizes: so.SizesOption = None,
    upto: so.UptoOption = None,
    runtime: so.RuntimeOption = None,
    program: so.CheckedProgramOption = None,
    levels: o.LevelsOption = None,
    kind: o.KindOption = None,
    algorithm: so.LoweringOption = None,
    prove: Annotated[
        bool,
        typer.Option("--prove", help="Plans: solve again, to settle that none is better."),
    ] = False,
    sample: Annotated[
        str | None,
        typer.Option(
            "--sample", metavar="N", help="Journals: solve so many verdicts again (default 5)."
        ),
    ] = None,
    every: Annotated[
        bool, typer.Option("--all", help="Journals: solve every verdict again.")
    ] = False,
    fabric: Annotated[
        str | None,
        typer.Option(
            "--fabric",
            metavar="NAME",
            help="Certificates of bounds on schedules: whether they are about this fabric.",
        ),
    ] = None,
    time_limit: o.TimeOption = None,
    json: o.JsonOption = False,
) -> int:
    """Check a plan, a program, the journal of a search, or a schedule in every interleaving."""
    asked = so.ScheduleOptions(
        fifo_depth=fifo_depth,
        collective=collective,
        root=root,
        out_of_place=out_of_place,
        iterations=iterations,
        fix=fix,
        trace=trace,
        time_limit=time_limit,
        cost=cost,
        topology=topology,
        upto=upto,
        sizes=tuple(sizes or ()),
        runtime=runtime,
    )
    from p2smt.cli.verify.verify_journal import (
        is_journal_file,
        refuse_journal_options,
        verify_journal_file,
    )

    so.check_subject(file, program, levels, kind, algorithm)
    if file is not None and is_journal_file(file):
        asked.refuse_for_journal()
        _refuse_proof(prove)
        _refuse_fabric(fabric)
        return verify_journal_file(file, json, sample, every, time_limit)
    refuse_journal_options(sample, every)
    if file is not None:
        return _verify_file(file, asked, prove, json, fabric)
    _refuse_proof(prove)
    _refuse_fabric(fabric)
    from p2smt.cli.verify.verify_program import verify_program

    return verify_program(program or "", levels, kind, algorithm, asked, json)


def _refuse_fabric(fabric: str | None) -> None:
    """Only certificates of bounds on schedules are about a fabric."""
    from p2smt.errors import InputError

    if fabric is not None:
        raise InputError("--fabric", "goes with the certificate of a bound on schedules", "drop it")


def _verify_file(
    file: str, asked: so.ScheduleOptions, prove: bool, json: bool, fabric: str | None
) -> int:
    from dataclasses import replace

    from p2smt.api.files import is_certificate
    from p2smt.cli.arrays.verify_redistribution import verify_redistribution
    from p2smt.cli.verify.verify_certificate import verify_certificate
    from p2smt.cli.verify.verify_least_set import verify_least_set
    from p2smt.cli.verify.verify_schedule import check_family, verify_schedule
    from p2smt.errors import InputError
    from p2smt.interop.schedule_files import require_json, schedule_text
    from p2smt.plans.crossings.file import is_least_set
    from p2smt.resharding.plan_file import is_redistribution

    text = schedule_text(file)
    if text is None:
        require_json(file)
        if asked.time_limit is not None and not prove:
            raise InputError("--time-limit", "of a plan goes with --prove", "add that, or drop it")
        replace(asked, time_limit=None).refuse_for_plan()
        if is_certificate(file):
            _refuse_proof(prove)
            return verify_certificate(file, json, fabric)
        _refuse_fabric(fabric)
        if is_least_set(file):
            return verify_least_set(file, json, prove, asked.time_limit)
        if is_redistribution(file):
            return verify_redistribution(file, json, prove, asked.time_limit)
        return verify_plan(file, json, prove, asked.time_limit)
    _refuse_proof(prove)
    _refuse_fabric(fabric)
    return (verify_schedule if asked.upto is None else check_family)(text, file, asked, json)


def _refuse_proof(prove: bool) -> None:
    from p2smt.errors import InputError

    if prove:
        raise InputError("--prove", "is for plans: only they claim to be the best", "drop it")


def verify_plan(file: str, json: bool, prove: bool = False, time_limit: str | None = None) -> int:
    """Check a plan file: meaning, times, restrictions; and whether it is the best, if asked."""
    from p2smt.cli.output import note, print_json
    from p2smt.plans.file import read_plan
    from p2smt.plans.file_model import PlanModel
    from p2smt.report.plan_data import report_data, report_lines
    from p2smt.training.plan import check_training_plan

    plan, source = read_plan(file), f"plan {file[:200]!r}"
    report = check_training_plan(plan, source)
    proof = _proof(plan, source, report, time_limit) if prove and report.valid else None
    if proof is not None and isinstance(plan, PlanModel) and plan.training is not None:
        note("proved are the programs on this matrix; of strategies `p2smt plan` proves the best")
    if json:
        print_json(report_data(report, proof))
    else:
        typer.echo("\n".join(report_lines(report, proof)))
    return _code(report, proof)


def _proof(plan: AnyPlan, source: str, report: PlanReport, time_limit: str | None) -> PlanProof:
    """The proof under the plan's limits, or under another time limit."""
    from dataclasses import replace

    from p2smt.cli import given
    from p2smt.cli.solve.show import live
    from p2smt.plans.file_model import PlanModel
    from p2smt.search.prove import prove, stated_limits

    limits = stated_limits(plan.limits) if isinstance(plan, PlanModel) else None
    if limits is not None and time_limit is not None:
        seconds = given.limits_of(time_limit, "0").time_limit_s
        limits = replace(limits, time_limit_s=seconds)
    with live() as progress:
        return prove(plan, source, limits=limits, report=report, progress=progress)


def _code(report: PlanReport, proof: PlanProof | None) -> int:
    from p2smt.cli.codes import INTERRUPTED, NOT_SETTLED, OK, REFUTED

    if proof is None:
        return OK if report.valid else REFUTED
    from p2smt.plans.solution import ProofStatus

    if proof.solution.interrupted:
        return INTERRUPTED
    match proof.status:
        case ProofStatus.PROVED:
            return OK
        case ProofStatus.REFUTED:
            return REFUTED
        case ProofStatus.OPEN:
            return NOT_SETTLED
