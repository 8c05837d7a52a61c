"""Whether the plan of a redistribution in a file is the fastest: its question is solved again."""

from __future__ import annotations

from dataclasses import dataclass

from p2smt.errors import EncodingBug
from p2smt.plans.check.numbers import PROVED_WITHIN
from p2smt.plans.redistribution.plan import RedistributionPlan
from p2smt.plans.solution import ProofStatus
from p2smt.result import SearchLimits, Status
from p2smt.search.redistribution.cuts import Cuts
from p2smt.search.redistribution.question import RedistributionQuestion
from p2smt.search.redistribution.solve import find_redistribution


@dataclass(frozen=True, slots=True)
class RedistributionProof:
    """What solving again says: no plan takes less than ``bound_s``; ``better`` takes less than it.

    ``max_steps``: of plans of at most so many steps; None: of any length.
    """

    status: ProofStatus
    objective_s: float
    bound_s: float
    better: RedistributionPlan | None
    max_steps: int | None


def prove_redistribution(
    plan: RedistributionPlan, limits: SearchLimits | None = None
) -> RedistributionProof:
    """Solve the question of a valid plan again, under its own limits or others.

    Raises:
        EncodingBug: the search says that there is no plan, or that none is as fast as this one.
    """
    answer = find_redistribution(question_of(plan, limits))
    own_s, found = plan.objective_s, answer.plan
    most = plan.max_steps if found is None else found.max_steps
    within = most is None or len(plan.steps) <= most
    if within and (
        answer.status is Status.INFEASIBLE or answer.bound_s > own_s * (1 + PROVED_WITHIN)
    ):
        steps = [step.text(plan.frame) for step in plan.array_steps]
        raise EncodingBug("the search excludes a valid plan", steps, answer.bound_s)
    if found is not None and found.objective_s < own_s * (1 - PROVED_WITHIN):
        return RedistributionProof(ProofStatus.REFUTED, own_s, answer.bound_s, found, most)
    status = ProofStatus.PROVED if answer.status is Status.OPTIMAL else ProofStatus.OPEN
    return RedistributionProof(status, own_s, min(answer.bound_s, own_s), None, most)


def question_of(
    plan: RedistributionPlan, limits: SearchLimits | None = None
) -> RedistributionQuestion:
    """The question that a plan answers."""
    memory = plan.memory
    return RedistributionQuestion(
        plan.source,
        plan.target,
        plan.topology,
        memory.limit_bytes if memory.of_steps else None,
        memory.keep_source,
        plan.max_steps,
        Cuts.LEVELS if plan.levels_only else Cuts.PRIMES,
        limits or plan.limits,
    )
