"""The verdict on a plan file as plain data for ``--json``, and in lines for people."""

from __future__ import annotations

from collections.abc import Iterator
from typing import assert_never

from p2smt.plans.check.check_plan import LINKS_OF_PLAN, OPTIMALITY, Note, PlanReport
from p2smt.plans.solution import Alternative, PlanProof, ProofStatus, rank_hosts
from p2smt.programs.program import bases_of, basis_text
from p2smt.programs.semantics import Violation
from p2smt.report.outputs.solve import PlanViolation, ProofOfPlan, VerifyPlanOutput
from p2smt.report.solution_data import alternative_data
from p2smt.report.text import no_time_line, one_line
from p2smt.units import counted, format_time


def report_data(report: PlanReport, proof: PlanProof | None = None) -> VerifyPlanOutput:
    """The verdict as data; what is misstated is a violation with a kind of its own.

    Where the bandwidth of uplinks is not stated there are no times: they are null.
    """
    settled, known = _settled(proof), not report.unstated
    violations = [_violation(n, broken) for n, broken in report.violations]
    violations += [_note(note) for note in report.notes]
    return VerifyPlanOutput(
        verdict="valid" if report.valid else "invalid",
        violations=violations,
        objective_s=report.objective_s if known else None,
        seconds=report.seconds if known else None,
        checked=[*report.checked, *settled],
        not_checked=[what for what in report.not_checked if what not in settled],
        checked_on=report.checked_on,
        proof=None if proof is None else _proof_data(proof, known),
    )


def _settled(proof: PlanProof | None) -> list[str]:
    """What a proof has checked besides."""
    optimality = [OPTIMALITY] * (proof is not None and proof.settled)
    return optimality + [LINKS_OF_PLAN] * (proof is not None and proof.links_settled)


def _proof_data(proof: PlanProof, known: bool) -> ProofOfPlan:
    better, topology = proof.better, proof.solution.problem.topology
    bounded = known and (proof.on_hosts or not proof.listed)
    return ProofOfPlan(
        status=proof.status,
        basis=bases_of(proof.solution.bases),
        objective_s=proof.objective_s if known else None,
        bound_s=proof.bound_s if bounded else None,
        better=None if better is None else alternative_data(proof.solution.problem, better),
        better_hosts=None if better is None else rank_hosts(topology, better.ranks),
        false=proof.false,
        unsettled=proof.unsettled,
        weaker=proof.weaker,
    )


def report_lines(report: PlanReport, proof: PlanProof | None = None) -> Iterator[str]:
    """What is wrong, a line each; then the verdict, what was checked, and what was not."""
    data = report_data(report, proof)
    for broken in data.violations:
        yield f"{broken.kind}: {_where(broken)}{one_line(broken.message, 2000)}"
    on, count = ", ".join(dict.fromkeys(report.checked_on)), len(report.checked_on)
    yield f"{data.verdict}: {counted(count, 'request')}, checked on {on}"
    links = [what for what in _settled(proof) if what != OPTIMALITY]  # that has a line of its own
    yield f"checked: {', '.join([*report.checked, *links])}"
    open_ = [what for what in data.not_checked if proof is None or what != OPTIMALITY]
    yield from (f"{what}: not checked" for what in open_)
    if report.unstated:
        yield no_time_line(report.unstated)
    if proof is not None:
        yield from _untimed_lines(proof) if report.unstated else _proof_lines(proof)
        yield from (f"  weaker than proved: {text}" for text in proof.weaker)


def _proof_lines(proof: PlanProof) -> Iterator[str]:
    """What solving again says; a better plan with its placement and programs."""
    own = format_time(proof.objective_s)
    match proof.status:
        case ProofStatus.PROVED:
            yield f"{OPTIMALITY}: proved, no {_others(proof)} takes less than {own}"
            yield from (
                f"  programs {basis_text(bases)}" for bases in [proof.solution.bases] if bases
            )
        case ProofStatus.OPEN:
            yield f"{OPTIMALITY}: open, {_why_open(proof)}; this one takes {own}"
        case ProofStatus.REFUTED if proof.better is None:
            yield from _false_lines(proof)
        case ProofStatus.REFUTED:
            yield from _better_lines(proof, proof.better)
        case _:
            assert_never(proof.status)


def _untimed_lines(proof: PlanProof) -> Iterator[str]:
    """The same where nobody stated the bandwidth of uplinks, which are taken as non-blocking."""
    match proof.status:
        case ProofStatus.PROVED:
            what = f"no {_others(proof)} takes less time on uplinks that do not block"
            yield f"{OPTIMALITY}: proved, {what}; which loads them least is not settled"
        case ProofStatus.OPEN:
            yield f"{OPTIMALITY}: open, {_ended(proof)}"
        case ProofStatus.REFUTED if proof.better is None:
            yield from _false_lines(proof)
        case ProofStatus.REFUTED:
            what = "takes less time on uplinks that do not block"
            yield f"{OPTIMALITY}: refuted, a better plan {what}"
            yield f"  {_where_better(proof, proof.better)}"
        case _:
            assert_never(proof.status)


def _false_lines(proof: PlanProof) -> Iterator[str]:
    yield f"{OPTIMALITY}: refuted, what the plan claims beside its time is false"
    yield from (f"  {text}" for text in proof.false)


def _others(proof: PlanProof) -> str:
    """What was searched."""
    if not proof.on_hosts:
        return "placement matrix"
    allocation = proof.solution.allocation
    if allocation is None or not allocation.idle:
        return "order of these hosts"
    return f"choice and order of the {len(allocation.listed)} hosts listed"


def _ended(proof: PlanProof) -> str:
    return "it was interrupted" if proof.solution.interrupted else "the search ended at its limit"


def _why_open(proof: PlanProof) -> str:
    ended = _ended(proof)
    if proof.listed and not proof.on_hosts:
        how = "" if proof.solution.finished else f"{ended}: "
        return f"{how}nothing faster was found, but other rank orders were not tried"
    bound = f"no {_others(proof)} takes less than {format_time(proof.bound_s)}"
    if proof.bound_s <= 0:
        bound = "nothing is proved of its time"
    if proof.unsettled:
        return f"{bound}, but not settled: {', '.join(proof.unsettled)}"
    return f"{ended}; {bound}"


def _better_lines(proof: PlanProof, better: Alternative) -> Iterator[str]:
    less, own = format_time(better.objective_s), format_time(proof.objective_s)
    yield f"{OPTIMALITY}: refuted, a better plan takes {less}, this one {own}"
    yield f"  {_where_better(proof, better)}"
    for answer in better.requests:
        program = str(answer.program or "one step")
        yield f"  {answer.label}: {program} ({format_time(answer.total_s)})"


def _where_better(proof: PlanProof, better: Alternative) -> str:
    """Where the ranks of a better plan lie: a matrix, a rank list, or hosts in their order."""
    hosts = rank_hosts(proof.solution.problem.topology, better.ranks)
    if proof.on_hosts and hosts is not None:
        return f"hosts {one_line(','.join(dict.fromkeys(hosts)), 2000)}"
    return f"{'ranks' if better.matrix is None else 'placement'} {better.placement.text()}"


def _where(broken: PlanViolation) -> str:
    """The request, where the message does not begin with it."""
    number = broken.request
    named = number is None or broken.message.startswith(f"request {number}")
    return "" if named else f"request {number}: "


def _violation(request: int, broken: Violation) -> PlanViolation:
    return PlanViolation(
        kind=broken.kind.value,
        request=request + 1,
        step=broken.step,
        rank=broken.rank,
        chunk=broken.chunk,
        message=broken.message,
    )


def _note(note: Note) -> PlanViolation:
    request = None if note.request is None else note.request + 1
    return PlanViolation(
        kind=note.kind, request=request, step=None, rank=None, chunk=None, message=note.message
    )
