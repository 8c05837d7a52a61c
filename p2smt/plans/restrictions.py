"""The restrictions of a problem as data, each with its text, and back."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Literal, assert_never

from p2smt.cluster.topology import Algorithm
from p2smt.collectives.names import Form
from p2smt.cost.pipeline import chunk_counts
from p2smt.errors import InputError
from p2smt.parallelism.placement import AxisRule, FixedEntry
from p2smt.parallelism.request import Problem
from p2smt.plans.file_model import (
    AlgorithmsModel,
    AxisRuleModel,
    FixedEntryModel,
    ForbiddenFormModel,
    MaxLengthModel,
    PipelineModel,
    Restriction,
    StepLimitModel,
)

_Kind = Literal[
    "axis-rule",
    "fixed-entry",
    "max-length",
    "forbidden-form",
    "step-limit",
    "algorithms",
    "pipeline",
]
_ONCE = ("max-length", "algorithms", "pipeline")


def restriction_data(problem: Problem) -> list[dict[str, Any]]:
    """Every rule, entry and restriction of programs of a problem, as a plan file lists them."""
    return [{**data, "text": restriction_text(data)} for data in _data(problem)]


def _data(problem: Problem) -> list[dict[str, Any]]:
    axes, levels = problem.axis_names, problem.topology.names
    found: list[dict[str, Any]] = []
    for rule in problem.rules:
        at = {"axis": axes[rule.axis], "level": levels[rule.level]}
        if isinstance(rule, FixedEntry):
            found.append({"kind": "fixed-entry", **at, "entry": rule.value})
        else:
            found.append({"kind": "axis-rule", **at, "within": rule.inside})
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


def restricted(
    restrictions: Sequence[Restriction],
    axes: Sequence[str],
    levels: Sequence[str],
    source: str,
) -> dict[str, Any]:
    """What restrictions say, as fields of :class:`Problem`.

    Raises:
        InputError: an axis or level that there is not, a text that does not say what the data
            say, a restriction that can stand once and stands twice, or no length.
    """
    rules: list[AxisRule | FixedEntry] = []
    found: dict[str, Any] = {"rules": rules, "algorithms": None, "pipeline": 1}
    forms: list[Form] = []
    limits: list[tuple[str, int]] = []
    _check_once([one.kind for one in restrictions], source)
    for number, one in enumerate(restrictions):
        where = f"{source}: restrictions[{number}]"
        _check_text(one, where)
        match one:
            case AxisRuleModel():
                rules.append(AxisRule(*_indices(one, axes, levels, where), one.within))
            case FixedEntryModel():
                rules.append(FixedEntry(*_indices(one, axes, levels, where), one.entry))
            case MaxLengthModel():
                found["max_length"] = one.instructions
            case ForbiddenFormModel():
                forms.append(one.form)
            case StepLimitModel():
                limits.append((levels[_index("level", one.level, levels, where)], one.at_most))
            case AlgorithmsModel():
                found["algorithms"] = _algorithms(one.algorithms, where)
            case PipelineModel():
                found["pipeline"] = one.chunks
            case _:
                assert_never(one)
    return {
        **found,
        "rules": tuple(rules),
        "forbidden_forms": frozenset(forms),
        "step_limits": tuple(limits),
    }


def _check_once(kinds: Sequence[str], source: str) -> None:
    for kind in _ONCE:
        if kinds.count(kind) > 1:
            raise InputError(f"{source}: restrictions", f"have {kind} twice", "keep one")
    if "max-length" not in kinds:
        rule = "lack max-length, which every plan has"
        raise InputError(f"{source}: restrictions", rule, "solve again")


def _check_text(one: Restriction, where: str) -> None:
    wanted = restriction_text(one.model_dump(mode="json"))
    if one.text != wanted:
        rule = f"does not say what its data say: {wanted!r}"
        raise InputError(f"{where}.text {one.text[:60]!r}", rule, "correct one of the two")


def _algorithms(named: list[Algorithm], where: str) -> tuple[Algorithm, ...]:
    if len(set(named)) != len(named):
        raise InputError(f"{where}.algorithms", "name one twice", "give each once")
    return tuple(named)


def _indices(
    rule: AxisRuleModel | FixedEntryModel,
    axes: Sequence[str],
    levels: Sequence[str],
    where: str,
) -> tuple[int, int]:
    return _index("axis", rule.axis, axes, where), _index("level", rule.level, levels, where)


def _index(kind: str, name: str, names: Iterable[str], where: str) -> int:
    known = list(names)
    if name not in known:
        rule = f"there is no such {kind}"
        raise InputError(f"{where}.{kind} {name[:40]!r}", rule, f"use one of {', '.join(known)}")
    return known.index(name)
