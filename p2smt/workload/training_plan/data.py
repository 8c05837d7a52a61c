"""The plan file of a training as plain data."""

from __future__ import annotations

from typing import Any

from p2smt.errors import InputError
from p2smt.plans.file import plan_data
from p2smt.workload.training_plan.block import training_data
from p2smt.workload.training_plan.plan import TrainingPlan


def training_plan_data(found: TrainingPlan) -> dict[str, Any]:
    """The plan file: that of the requests' programs, and the ``training`` block.

    Raises:
        InputError: on one device nothing is sent, so there is no plan.
    """
    solution = found.solution
    if solution is None or solution.best is None:
        rule = "has no plan file: a plan has requests, and here no device sends anything"
        raise InputError(f"a training on {found.estimate.topology.name}", rule, "take more devices")
    return plan_data(solution, solution.best) | {"training": training_data(found.estimate)}
