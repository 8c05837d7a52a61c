"""A plan file of a redistribution: written, read, checked; and every edit of it is caught."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from p2smt.errors import InputError
from p2smt.files.validation import validated
from p2smt.resharding.endpoints import ends_of
from p2smt.resharding.plan_check import check_redistribution, redistribution_plan
from p2smt.resharding.plan_file import (
    RedistributionModel,
    is_redistribution,
    read_redistribution,
    redistribution_plan_data,
    redistribution_text,
)
from p2smt.resharding.redistribution_plan import RedistributionPlan
from p2smt.resharding.steps import MemoryLimit, Permute, step_bytes
from p2smt.resharding.types import Uneven
from tests.resharding.planning import array_type, best_plan, plan_of

MESH = "a=2,b=4"
TURNED = [4, 5, 6, 7, 0, 1, 2, 3]


@cache
def plans() -> dict[str, RedistributionPlan]:
    even = (64, 64)
    swap = array_type(MESH, even, "S(a),S(b)"), array_type(MESH, even, "S(b),S(a)")
    reduce = array_type(MESH, even, "R,S(a);P(b:(2)2)"), array_type(MESH, even, "S(a),R")
    turned = array_type(MESH, even, "S(a),R"), array_type(MESH, even, "R,S(a)", TURNED)
    padded = (
        array_type(MESH, (30, 18), "S(a),S(b:(1)2)", uneven=Uneven.PADDED),
        array_type(MESH, (30, 18), "S(b:(1)2),S(a)", uneven=Uneven.PADDED),
    )
    nested = (
        array_type(MESH, (31, 7), "S(b),R", uneven=Uneven.NESTED),
        array_type(MESH, (31, 7), "R,S(a)", uneven=Uneven.NESTED),
    )
    return {
        "swap": best_plan(*swap),
        "reduce": best_plan(*reduce),
        "turned": best_plan(*turned),
        "padded": best_plan(*padded),
        "nested": best_plan(*nested),
        "nothing": best_plan(swap[0], swap[0]),
        "by steps": best_plan(*reduce, memory=MemoryLimit(2**14, True, True)),
    }


NAMES = ("swap", "reduce", "turned", "padded", "nested", "nothing", "by steps")


@cache
def data_of(name: str) -> dict[str, Any]:
    """The file of a plan; not to be changed."""
    return redistribution_plan_data(plans()[name])


def test_plans_have_their_names() -> None:
    assert (*plans(),) == NAMES


def model_of(data: dict[str, Any]) -> RedistributionModel:
    return validated(RedistributionModel, json.loads(json.dumps(data)), "plan")


@pytest.mark.parametrize("name", NAMES)
def test_a_plan_is_read_back_and_is_valid(name: str, tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    path.write_text(redistribution_text(plans()[name]))
    model = read_redistribution(str(path))
    report = check_redistribution(model, "plan")
    assert report.notes == ()
    assert report.valid
    assert report.plan == plans()[name] == redistribution_plan(model, "plan")
    assert is_redistribution(str(path))


def test_other_files_are_none(tmp_path: Path) -> None:
    for text in ('{"schema_version": 2}', "[1]", "no json", '{"kind": "other"}'):
        path = tmp_path / "other"
        path.write_text(text)
        assert not is_redistribution(str(path))
        with pytest.raises(InputError):
            read_redistribution(str(path))
    assert not is_redistribution(str(tmp_path / "missing"))


def caught(data: dict[str, Any]) -> bool:
    """Whether a file is refused, or found wrong."""
    try:
        return not check_redistribution(model_of(data), "plan").valid
    except InputError:
        return True


def leaves(data: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The paths of all numbers and texts of a file."""
    if isinstance(data, dict):
        for key, value in data.items():
            yield from leaves(value, (*path, key))
    elif isinstance(data, list):
        for number, value in enumerate(data):
            yield from leaves(value, (*path, number))
    else:
        yield path


def edited(data: dict[str, Any], path: tuple[Any, ...], change: Callable[[Any], Any]) -> Any:
    found = copy.deepcopy(data)
    place: Any = found
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = change(place[path[-1]])
    return found


def changed(value: Any) -> Any:
    """Another value of the same type."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value + 1
    if isinstance(value, float):
        return value * 1.5 + 1e-6
    return f"{value}x"


# What another search would state; a topology is edited in the tests of topologies.
FREE = ("topology", "limits", "max_steps", "levels_only", "status")


@pytest.mark.parametrize("name", ["swap", "reduce", "turned", "nested", "by steps"])
def test_every_changed_number_and_text_is_caught(name: str) -> None:
    data = data_of(name)
    for path in leaves({key: value for key, value in data.items() if key not in FREE}):
        if path == ("memory", "keep_source") or (path[0] == "memory" and name == "by steps"):
            continue  # a larger cap, or one without the source: another question, kept as well
        assert caught(edited(data, path, changed)), path


@pytest.mark.parametrize("name", ["swap", "reduce", "turned", "padded", "nested"])
def test_dropped_doubled_and_swapped_steps_are_caught(name: str) -> None:
    data = data_of(name)
    steps = data["steps"]
    for number in range(len(steps)):
        assert caught(data | {"steps": steps[:number] + steps[number + 1 :]})
        assert caught(data | {"steps": [*steps[: number + 1], *steps[number:]]})
    if len(steps) > 1:
        assert caught(data | {"steps": steps[::-1]})


def notes_of(data: dict[str, Any]) -> list[tuple[str, int | None]]:
    report = check_redistribution(model_of(data), "plan")
    return [(note.kind, note.step) for note in report.notes]


def test_what_is_wrong_is_said() -> None:
    data = data_of("swap")
    step = next(n for n, one in enumerate(data["steps"]) if one["sources"])
    swapped = edited(data, ("steps", step, "sources"), lambda s: [s[1], s[0], *s[2:]])
    assert notes_of(swapped) == [("meaning", step + 1)]
    assert notes_of(data | {"peak_bytes": 1}) == [("memory", None)]
    assert notes_of(data | {"bound_s": 1.0}) == [("bound", None)]
    assert notes_of(data | {"bound_s": 0.0}) == [("bound", None)]
    assert notes_of(data | {"bound_s": 0.0, "status": "feasible"}) == []
    assert notes_of(data | {"physical_bound_s": data["objective_s"]}) == [("bound", None)]
    assert notes_of(data | {"physical_bound_s": 0.0}) == [("bound", None)]
    small = data | {"memory": data["memory"] | {"limit_bytes": 1}}
    assert notes_of(small) == [("memory", None)]
    slower = edited(data, ("steps", step, "seconds"), lambda s: s * 2)
    assert notes_of(slower) == [("cost", step + 1)]


def test_a_plan_keeps_to_the_restrictions_that_it_states() -> None:
    data = data_of("swap")  # b, the devices of a node, is cut in two
    count = len(data["steps"])
    assert count > 1
    assert notes_of(data | {"max_steps": count}) == []
    assert notes_of(data | {"max_steps": count - 1}) == [("rule", None)]
    assert notes_of(data | {"levels_only": True}) == [("rule", None)]
    assert notes_of(data_of("nested") | {"levels_only": True}) == []


def test_a_kept_source_counts_in_the_steps_after_the_first() -> None:
    plan = plans()["by steps"]
    every = [step["step_bytes"] for step in data_of("by steps")["steps"]]
    assert len(every) > 1
    assert max(every) == plan.peak_step_bytes == data_of("by steps")["peak_step_bytes"]
    alone = [step_bytes(plan.frame, step) for step in plan.array_steps]
    source = plan.frame.local_bytes(plan.start)
    assert every[1:] == [own + source for own in alone[1:]]


def test_another_choice_of_sources_is_right_and_has_its_own_time() -> None:
    """Block 0 lies on devices 0 to 3 and goes to 0, 1, 4 and 5: any of them may send it."""
    kinds = array_type(MESH, (64, 64), "S(a),R"), array_type(MESH, (64, 64), "S(b:(1)2),R")
    ends = ends_of(*kinds)[0]
    limit = MemoryLimit(ends.states_limit_bytes)
    data = redistribution_plan_data(plan_of(*kinds, [Permute(ends.source, ends.target)], limit))
    assert set(data["steps"][0]["sources"][:2]) == {0, 1}
    swapped = edited(data, ("steps", 0, "sources"), lambda s: [s[1], s[0], *s[2:]])
    assert notes_of(swapped) == []  # as many messages over each link
    twice = edited(data, ("steps", 0, "sources"), lambda s: [*s[:5], s[4], *s[6:]])
    assert {kind for kind, _ in notes_of(twice)} == {"cost", "bound"}  # slower than it says
    wrong = edited(data, ("steps", 0, "sources"), lambda s: [s[2], *s[1:]])
    assert notes_of(wrong) == [("meaning", 1)]


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("kind", "plan"),
        ("schema_version", 2),
        ("dtype", "f8"),
        ("source", "S(c),R"),
        ("target", "R,R,R"),
        ("devices", list(range(4))),
        ("devices", [*range(1, 9)]),
        ("digits", []),
        ("shape", []),
        ("status", "done"),
        ("uneven", "maybe"),
        ("objective_s", -1),
    ],
)
def test_bad_input_is_refused(key: str, value: Any) -> None:
    with pytest.raises(InputError):
        check_redistribution(model_of(data_of("swap") | {key: value}), "plan")


def test_sources_of_other_steps_and_too_few() -> None:
    for name in ("swap", "reduce"):
        data = data_of(name)
        for number, step in enumerate(data["steps"]):
            other = edited(data, ("steps", number, "sources"), lambda s: s[1:] or [0])
            with pytest.raises(InputError, match="sources"):
                check_redistribution(model_of(other), "plan")
            assert step["kind"]
