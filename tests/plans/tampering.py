"""Ways to change a plan, and the plan that is changed: one with every kind of restriction."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Plan = dict[str, Any]
Change = Callable[[Plan], object]

RESTRICTED = (
    *("--axes", "dp=2,tp=4", "--reduce", "tp=64MiB", "--reduce-scatter", "tp=1MiB"),
    *("--send", "dp=1MiB", "--require", "tp across node", "--fix", "tp=node:2", "--length", "3"),
    *("--forbid-form", "master", "--max-steps-at", "node=1", "--algorithm", "ring"),
    *("--pipeline", "4"),
)
RULE, ENTRY, LENGTH, FORM, STEPS, ALGORITHMS, PIPELINE = range(7)  # in its restrictions
FIRST, SECOND = ("requests", 0), ("requests", 1)
STEP = (*FIRST, "steps", 0)


def put(*path: str | int, to: object) -> Change:
    """Replace the value at a path."""

    def change(plan: Plan) -> None:
        at: Any = plan
        for key in path[:-1]:
            at = at[key]
        at[path[-1]] = to

    return change


def scale(*path: str | int, by: float) -> Change:
    """Multiply the number at a path."""

    def change(plan: Plan) -> None:
        at: Any = plan
        for key in path[:-1]:
            at = at[key]
        at[path[-1]] *= by

    return change


def more(*path: str | int, by: float) -> Change:
    """Add to the number at a path."""

    def change(plan: Plan) -> None:
        at: Any = plan
        for key in path[:-1]:
            at = at[key]
        at[path[-1]] += by

    return change


def drop(*path: str | int) -> Change:
    """Take a key or an entry out."""

    def change(plan: Plan) -> None:
        at: Any = plan
        for key in path[:-1]:
            at = at[key]
        del at[path[-1]]

    return change


def restrict(number: int, **more: object) -> Change:
    """Change a restriction, its text with it."""
    return lambda plan: plan["restrictions"][number].update(more)


def add(**data: object) -> Change:
    """One more restriction."""
    return lambda plan: plan["restrictions"].append(data)


def both(*changes: Change) -> Change:
    """One change after the other."""
    return lambda plan: [change(plan) for change in changes]


def swap(*path: str | int) -> Change:
    """Exchange the first two entries of the list at a path."""

    def change(plan: Plan) -> None:
        at: Any = plan
        for key in path:
            at = at[key]
        at[0], at[1] = at[1], at[0]

    return change
