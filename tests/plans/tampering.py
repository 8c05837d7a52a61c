"""Ways to change a plan, and the plan that is changed: one with every kind of restriction."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Sequence
from pathlib import Path
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
    return lambda plan: _holder(plan, path).__setitem__(path[-1], to)


def scale(*path: str | int, by: float) -> Change:
    """Multiply the number at a path."""
    return lambda plan: put(*path, to=_at(plan, path) * by)(plan)


def more(*path: str | int, by: float) -> Change:
    """Add to the number at a path."""
    return lambda plan: put(*path, to=_at(plan, path) + by)(plan)


def drop(*path: str | int) -> Change:
    """Take a key or an entry out."""
    return lambda plan: _holder(plan, path).__delitem__(path[-1])


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
        entries = _at(plan, path)
        entries[0], entries[1] = entries[1], entries[0]

    return change


def _at(plan: Plan, path: Sequence[str | int]) -> Any:
    """What stands at a path."""
    found: Any = plan
    for key in path:
        found = found[key]
    return found


def _holder(plan: Plan, path: Sequence[str | int]) -> Any:
    """The mapping or list that holds what stands at a path."""
    return _at(plan, path[:-1])


def written(plan: Plan, folder: Path) -> str:
    """A plan as the file ``plan.json``: its path."""
    path = folder / "plan.json"
    path.write_text(json.dumps(plan))
    return str(path)


def changed(plan: Plan, change: Change, folder: Path) -> str:
    """A plan that is not as it was, as the file ``plan.json``: its path."""
    other = copy.deepcopy(plan)
    change(other)
    assert json.dumps(other) != json.dumps(plan)
    return written(other, folder)
