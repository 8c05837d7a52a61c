"""What frameworks call the axes of a plan."""

from __future__ import annotations

from collections.abc import Mapping

from p2smt.errors import InputError
from p2smt.interop.launchers.places import PlacedPlan
from p2smt.interop.meshes.tensor import axis_order


def roles_of(plan: PlacedPlan, known: Mapping[str, str], framework: str) -> tuple[str, ...]:
    """What each axis of the plan is to a framework, in the order of the axes.

    known: the framework's names by those that an axis may have.

    Raises:
        InputError: an axis has a name that stands for nothing there, or two stand for the same.
    """
    found: list[str] = []
    for axis in plan.problem.axes:
        role = known.get(axis.name.lower())
        if role is None:
            rule = f"is no axis of {framework}: it has {', '.join(dict.fromkeys(known.values()))}"
            remedy = "name the axes of the plan so"
            raise InputError(f"{plan.source}: axis {axis.name}", rule, remedy)
        if role in found:
            rule = f"is a second {role} axis, of which {framework} has one"
            raise InputError(f"{plan.source}: axis {axis.name}", rule, "merge the two in the plan")
        found.append(role)
    return tuple(found)


def ordered_axes(plan: PlacedPlan, framework: str) -> tuple[int, ...]:
    """The axes (indices, outermost first) over which the launched ranks are row-major.

    Raises:
        InputError: they are so over no order of axes, which the framework needs.
    """
    order = axis_order(plan)
    if order is None:
        rule = (
            f"{framework} numbers ranks row-major over the axes, and these are launched otherwise"
        )
        remedy = "launch them as the plan has them (--to slurm or rankfile)"
        raise InputError(plan.source, rule, remedy)
    return order
