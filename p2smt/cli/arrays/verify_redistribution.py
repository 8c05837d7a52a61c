"""`p2smt verify` and `p2smt cost` of a redistribution's plan."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from p2smt.resharding.plan import RedistributionPlan
    from p2smt.resharding.search import RedistributionProof


def verify_redistribution(
    file: str, json: bool, prove: bool = False, time_limit: str | None = None
) -> int:
    """Check a plan: rules, meaning, memory, times; and whether it is the fastest, if asked."""
    from p2smt.cli.output import print_json
    from p2smt.report.resharding_data import checked_plan_data, checked_plan_lines
    from p2smt.resharding.check import check_redistribution
    from p2smt.resharding.plan_file import read_redistribution

    report = check_redistribution(read_redistribution(file), f"plan {file[:200]!r}")
    proof = None
    if prove and report.valid and report.plan is not None:
        proof = _proof(report.plan, time_limit)
    if json:
        print_json(checked_plan_data(report, proof))
    else:
        typer.echo("\n".join(checked_plan_lines(report, proof)))
    return _code(report.valid, proof)


def _proof(plan: RedistributionPlan, time_limit: str | None) -> RedistributionProof:
    """The proof under the plan's limits, or under another time limit."""
    from dataclasses import replace

    from p2smt.cli import given
    from p2smt.resharding.search import prove_redistribution

    limits = plan.limits
    if time_limit is not None:
        seconds = given.limits_of(time_limit, "0").time_limit_s
        limits = replace(limits, time_limit_s=seconds)
    return prove_redistribution(plan, limits)


def _code(valid: bool, proof: RedistributionProof | None) -> int:
    from p2smt.cli.codes import NOT_SETTLED, OK, REFUTED

    if proof is None:
        return OK if valid else REFUTED
    from p2smt.plans.solution import ProofStatus

    match proof.status:
        case ProofStatus.PROVED:
            return OK
        case ProofStatus.REFUTED:
            return REFUTED
        case ProofStatus.OPEN:
            return NOT_SETTLED


def cost_redistribution(file: str, json: bool) -> int:
    """The verdict on a plan, and of a valid one its steps, as `redistribute` shows them."""
    from p2smt.cli.codes import OK, REFUTED
    from p2smt.cli.output import print_json
    from p2smt.report.resharding_data import checked_plan_lines, plan_cost_data
    from p2smt.report.resharding_tables import headline, steps_table
    from p2smt.report.tables import show
    from p2smt.resharding.check import check_redistribution
    from p2smt.resharding.plan_file import read_redistribution

    report = check_redistribution(read_redistribution(file), f"plan {file[:200]!r}")
    plan = report.plan
    if json:
        print_json(plan_cost_data(report))
    else:
        typer.echo("\n".join(checked_plan_lines(report)))
        if report.valid and plan is not None:
            show("", "the file says " + "\n".join(headline(plan)), "", steps_table(plan))
    return OK if report.valid else REFUTED
