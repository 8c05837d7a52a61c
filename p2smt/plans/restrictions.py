"""The restrictions of a problem as data, each with its text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, assert_never

from p2smt.parallelism.placement import AxisRule, FixedEntry
from p2smt.parallelism.request import Problem

_Kind = Literal[
    "axis-rule",
    "fixed-entry",
    "max-length",
    "forbidden-form",
    "step-limit",
    "algorithms",
    "pipeline",
]


def restriction_data(problem: Problem) -> list[dict[str, Any]]:
    """Every rule, entry and restriction of programs of a problem, as a plan file lists them."""
    return [{**data, "text": restriction_text(data)} for data in _data(problem)]


def _data(problem: Problem) -> list[dict[str, Any]]:
    axes, levels = problem.axis_names, problem.topology.names
    found = [_rule_data(rule, axes, levels) for rule in problem.rules]
    found.append({"kind": "max-length", "instructions": problem.max_length})
    forms = sorted(form.value for form in problem.forbidden_forms)
    found += [{"kind": "forbidden-form", "form": form} for form in forms]
    found += [{"kind": "step-limit", "level": at, "at_most": n} for at, n in problem.step_limits]
    if problem.algorithms is not None:
        names = [algorithm.value for algorithm in problem.algorithms]
        found.append({"kind": "algorithms", "algorithms": names})
    if problem.pipeline != 1:
        found.append({"kind": "pipeline", "chunks": problem.pipeline})
    return found


def _rule_data(
    rule: AxisRule | FixedEntry, axes: Sequence[str], levels: Sequence[str]
) -> dict[str, Any]:
    at = {"axis": axes[rule.axis], "level": levels[rule.level]}
    if isinstance(rule, FixedEntry):
        return {"kind": "fixed-entry", **at, "entry": rule.value}
    return {"kind": "axis-rule", **at, "within": rule.inside}


def rule_text(rule: AxisRule | FixedEntry, axes: Sequence[str], levels: Sequence[str]) -> str:
    """A rule on axes and levels of these names, as ``--require`` and ``--fix`` take it."""
    return restriction_text(_rule_data(rule, axes, levels))


def restriction_text(data: dict[str, Any]) -> str:
    """A restriction in words; rules read as ``--require`` and ``--fix`` take them."""
    kind: _Kind = data["kind"]
    match kind:
        case "axis-rule":
            return f"{data['axis']} {'within' if data['within'] else 'across'} {data['level']}"
        case "fixed-entry":
            return f"{data['axis']}={data['level']}:{data['entry']}"
        case "max-length":
            return f"programs of at most {_counted(data['instructions'], 'instruction')}"
        case "forbidden-form":
            return f"no {data['form']}"
        case "step-limit":
            return f"at most {_counted(data['at_most'], 'step')} across {data['level']}"
        case "algorithms":
            return f"collectives run by {' or '.join(data['algorithms'])}"
        case "pipeline":
            from p2smt.cost.step_time import chunk_counts  # lists of placements do without

            counts = " or ".join(map(str, chunk_counts(data["chunks"], steps=2)))
            return f"programs of several steps in {counts} chunk{'s' * (data['chunks'] != 1)}"
        case _:
            assert_never(kind)


def conflict_text(restrictions: Sequence[str], what: str = "restriction") -> str:
    """Restrictions (at least one) that leave no answer, as a clause."""
    if len(restrictions) == 1:
        return f"nothing obeys the {what} {restrictions[0]}"
    return f"these {what}s exclude each other: {'; '.join(restrictions)}"


def _counted(count: int, what: str) -> str:
    return f"{count} {what}{'s' * (count != 1)}"
