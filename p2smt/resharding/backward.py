"""The redistribution of the gradient: planned by itself, since it is no mirror of the forward one.

The gradient of a sum over partial contributions is the same for each of them.  So where the source
is partial, its gradient is replicated, as in DTensor; and a partial destination has, unless it
comes in another layout, a replicated one.
"""

from __future__ import annotations

from dataclasses import replace

from p2smt.errors import InputError
from p2smt.resharding.cuts import Cuts
from p2smt.resharding.reachability import RedistributionAnswer, RedistributionQuestion
from p2smt.resharding.redistribution_plan import RedistributionPlan
from p2smt.resharding.search import find_redistribution, no_plan
from p2smt.resharding.types import ArrayType, ReduceOp
from p2smt.result import Status


def ends_in(plan: RedistributionPlan) -> ArrayType:
    """The plan's destination, adjacent parts of an axis written as one."""
    return replace(plan.target, layout=plan.frame.layout(plan.states[-1]))


def starts_in(plan: RedistributionPlan) -> ArrayType:
    """The plan's source, adjacent parts of an axis written as one."""
    return replace(plan.source, layout=plan.frame.layout(plan.start))


def without_partials(kind: ArrayType) -> ArrayType:
    """The type with every partial axis replicated."""
    return replace(kind, layout=replace(kind.layout, partial=(), op=ReduceOp.SUM))


def check_differentiable(kind: ArrayType) -> None:
    """Raise InputError unless gradients go back to a source: sums and moves of floats only."""
    if not kind.element.floating:
        rule = "has no gradient"
        raise InputError(f"an array of {kind.element.value}", rule, "use a floating dtype")
    if kind.layout.partial and kind.layout.op is not ReduceOp.SUM:
        given = f"autograd through partial values by {kind.layout.op.value}"
        raise InputError(given, "is for sums only", "detach the tensor, or reduce it first")


def backward_plan(
    plan: RedistributionPlan, gradient: ArrayType | None = None
) -> RedistributionPlan:
    """The fastest redistribution of the gradient, within the limits that the plan had.

    ``gradient``: the type in which it arrives; None: the plan's destination, without partials.
    Of no more steps than the plan was allowed, unless no plan of so few keeps to the cap: the
    gradient may need more than the array did.

    Raises:
        InputError: the plan has no gradient (:func:`check_differentiable`), ``gradient`` is of
            another array, or no plan keeps to the cap.
    """
    answer = backward_answer(plan, gradient)
    if answer.plan is None:
        raise no_plan(answer)
    return answer.plan


def backward_answer(
    plan: RedistributionPlan, gradient: ArrayType | None = None
) -> RedistributionAnswer:
    """What :func:`backward_plan` finds, or why it finds nothing.

    Raises:
        InputError: the plan has no gradient, or ``gradient`` is of another array.
    """
    check_differentiable(plan.source)
    given = without_partials(ends_in(plan)) if gradient is None else gradient
    question = _question(plan, given)
    answer = find_redistribution(question)
    if answer.status is Status.INFEASIBLE and question.max_steps is not None:
        answer = find_redistribution(replace(question, max_steps=None))
    return answer


def _question(plan: RedistributionPlan, gradient: ArrayType) -> RedistributionQuestion:
    return RedistributionQuestion(
        gradient,
        replace(without_partials(starts_in(plan)), element=gradient.element),
        plan.topology,
        memory_bytes=plan.memory.limit_bytes if plan.memory.of_steps else None,
        keep_source=plan.memory.keep_source,
        max_steps=plan.max_steps,
        cuts=Cuts.LEVELS if plan.levels_only else Cuts.PRIMES,
        limits=plan.limits,
    )
