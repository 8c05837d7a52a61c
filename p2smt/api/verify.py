"""One function that checks whatever is given."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import overload

from p2smt.api.files import StrPath, is_certificate, read_plan, verify_bound
from p2smt.cluster.topology import Topology
from p2smt.collectives.names import RequestKind
from p2smt.errors import InputError
from p2smt.files.yaml_text import read_text
from p2smt.interop import schedule_files
from p2smt.interop.reading import Reading
from p2smt.parallel_search.journal import is_journal
from p2smt.plans.check.check_plan import PlanReport
from p2smt.plans.file_model import AnyPlan, OldPlanModel, PlanModel
from p2smt.programs.program import Program
from p2smt.resharding.plan_check import RedistributionReport, check_redistribution
from p2smt.resharding.plan_file import RedistributionModel, is_redistribution, read_redistribution
from p2smt.schedules.families.family import ParametricReport, prove_family, prove_program
from p2smt.schedules.language.schedule_file import parse_symbolic
from p2smt.schedules.lower.assemble import Lowering
from p2smt.schedules.model import DEFAULT_DEPTH, Schedule
from p2smt.schedules.races.decide import DEFAULT_EFFORT
from p2smt.schedules.verify import verify as schedule_checks
from p2smt.schedules.verify.by_symmetry import verify_by_symmetry
from p2smt.schedules.verify.report import Report
from p2smt.synthesis.certificate.certificate import ScheduleCertificate
from p2smt.synthesis.certificate.check import CertificateReport
from p2smt.training.training_plan import check_training_plan
from p2smt.transfer.check import TransferReport, check_transfer
from p2smt.transfer.file_model import TransferModel
from p2smt.transfer.plan_file import is_transfer, read_transfer


@overload
def verify(subject: AnyPlan) -> PlanReport: ...
@overload
def verify(subject: RedistributionModel) -> RedistributionReport: ...
@overload
def verify(subject: TransferModel) -> TransferReport: ...
@overload
def verify(subject: ScheduleCertificate) -> CertificateReport: ...
@overload
def verify(
    subject: Schedule,
    *,
    fifo_depth: int = DEFAULT_DEPTH,
    time_limit_s: float | None = None,
    effort: int | None = DEFAULT_EFFORT,
) -> Report: ...
@overload
def verify(
    subject: StrPath,
    *,
    fifo_depth: int = DEFAULT_DEPTH,
    time_limit_s: float | None = None,
    effort: int | None = DEFAULT_EFFORT,
) -> PlanReport | RedistributionReport | TransferReport | CertificateReport | Report: ...
def verify(
    subject: AnyPlan
    | RedistributionModel
    | TransferModel
    | ScheduleCertificate
    | Schedule
    | StrPath,
    *,
    fifo_depth: int = DEFAULT_DEPTH,
    time_limit_s: float | None = None,
    effort: int | None = DEFAULT_EFFORT,
) -> PlanReport | RedistributionReport | TransferReport | CertificateReport | Report:
    """Check a plan, a bound, a schedule in every interleaving, or the file of one of these.

    Args:
        subject: what is checked, or the path of its file.
        fifo_depth: of a schedule, the messages that a connection holds before its sender waits.
        time_limit_s: of a schedule, wall seconds for trying and solving; None: no limit.
        effort: of a schedule, what the solver may spend, in its own units, the same on every
            machine; None: no limit.  Either limit reached, the verdict is unknown.

    Raises:
        InputError: the file cannot be read, or is neither plan nor schedule.
    """
    if isinstance(subject, PlanModel | OldPlanModel):
        return check_training_plan(subject, "plan")
    if isinstance(subject, TransferModel):
        return check_transfer(subject, "plan")
    if isinstance(subject, RedistributionModel):
        return check_redistribution(subject, "plan")
    if isinstance(subject, ScheduleCertificate):
        return verify_bound(subject)
    if isinstance(subject, Schedule):
        return schedule_checks.verify(subject, fifo_depth, time_limit_s, effort)
    path = os.fspath(subject)
    if is_journal(path):
        rule = "is of a search, and verify takes plans and schedules"
        raise InputError(f"journal {path[:200]!r}", rule, "give it to verify_journal")
    text = schedule_files.schedule_text(path)
    if text is None:
        schedule_files.require_json(path)
        if is_certificate(path):
            return verify_bound(path)
        if is_transfer(path):
            return check_transfer(read_transfer(path), f"plan {path[:200]!r}")
        if is_redistribution(path):
            return check_redistribution(read_redistribution(path), f"plan {path[:200]!r}")
        return check_training_plan(read_plan(path), f"plan {path[:200]!r}")
    if (told := schedule_files.folded_schedule(text, path, Reading())) is not None:
        return verify_by_symmetry(told, fifo_depth)
    schedule = schedule_files.read_schedule(text, path, Reading())
    return schedule_checks.verify(schedule, fifo_depth, time_limit_s, effort)


def verify_family(
    path: StrPath,
    upto: int,
    *,
    fifo_depth: int = DEFAULT_DEPTH,
    time_limit_s: float | None = None,
    effort: int | None = DEFAULT_EFFORT,
) -> ParametricReport:
    """Check a symbolic schedule file at every size up to so many ranks; seek a proof for all.

    Limits are for each size, as those of :func:`verify`.

    Raises:
        InputError: the file is no symbolic schedule, or no size is in the bound.
    """
    name = os.fspath(path)
    text = read_text(name, "schedule", schedule_files.MAX_BYTES)
    return prove_family(parse_symbolic(text, name), upto, fifo_depth, time_limit_s, effort)


def verify_program(
    program: Program,
    on: Topology | Sequence[int],
    *,
    kind: RequestKind = RequestKind.ALL_REDUCE,
    algorithm: str = "ring",
    fifo_depth: int = DEFAULT_DEPTH,
) -> ParametricReport:
    """Check a program over all devices, by its meaning and chunk by chunk.

    Args:
        program: as :func:`~p2smt.programs.program.parse_program` reads it.
        on: a cluster, or the sizes of levels named l1, l2, .., outermost first.
        kind: what it must do.
        algorithm: of the messages: ring, tree or direct.
        fifo_depth: messages that a connection holds.

    Raises:
        InputError: the program names a level that is not there, or its schedule is too large.
    """
    if not program.instructions:
        raise InputError("a program without instructions", "does nothing", "write one")
    sizes = on.sizes if isinstance(on, Topology) else tuple(on)
    names = on.names if isinstance(on, Topology) else [f"l{n + 1}" for n in range(len(sizes))]
    return prove_program(program, names, [sizes], kind, Lowering(algorithm), fifo_depth)
