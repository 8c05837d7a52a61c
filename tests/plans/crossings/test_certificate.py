"""Certificates of least sufficient sets: files come back whole, and what is changed is refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from copy import deepcopy
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from p2smt.errors import InputError
from p2smt.plans.crossings.least_set import SymbolicSetting
from p2smt.plans.crossings.least_set_check import check_least_set
from p2smt.plans.crossings.least_set_file import (
    is_least_set,
    least_set_from,
    least_set_model,
    least_set_text,
    read_least_set,
)
from p2smt.plans.crossings.proofs import broken
from p2smt.result import SearchLimits
from p2smt.search.crossings.least import least_set

Data = dict[str, Any]


@cache
def text() -> str:
    return least_set_text(least_set(SymbolicSetting((2, 3), (1, 1)), SearchLimits()))


def test_a_file_comes_back_whole(tmp_path: Path) -> None:
    path = tmp_path / "set.json"
    path.write_text(text())
    assert is_least_set(str(path))
    found = read_least_set(str(path))
    assert least_set_text(found) == text()
    assert check_least_set(found).valid


def test_only_what_is_proved_is_written() -> None:
    open_one = least_set(SymbolicSetting((2, 3), (1, 1)), SearchLimits(time_limit_s=0.0))
    with pytest.raises(InputError, match="none was found"):
        least_set_model(open_one)


def _weight(data: Data) -> None:
    data["exclusions"][0]["cases"][0]["weights"][0] = "1/2"


def _negative_share(data: Data) -> None:
    several = next(
        shares
        for one in data["exclusions"]
        for case in one["cases"]
        for shares in case["shares"]
        if "1" in shares
    )
    several[several.index("1")] = "2"


def _case_missing(data: Data) -> None:
    longest = max(data["exclusions"], key=lambda one: len(one["cases"]))
    longest["cases"].pop()


def _exclusion_missing(data: Data) -> None:
    data["exclusions"].pop()


def _cheaper(data: Data) -> None:
    data["costs"][data["members"][0]]["fixed"][0] = "0"


def _point(data: Data) -> None:
    data["needed"][0]["point"] = ["0"] * len(data["unknowns"])


def _short_point(data: Data) -> None:
    data["needed"][0]["point"].pop()


def _not_fewest(data: Data) -> None:
    excluded = data["exclusions"].pop()
    data["members"].append(excluded["excluded"])


def _by_outsider(data: Data) -> None:
    first, second = data["exclusions"][:2]
    first["by"] = [second["excluded"]] * len(first["by"])


def _twice(data: Data) -> None:
    cost = data["costs"][0]
    cost["programs"].append(cost["programs"][0])


def _same_cost(data: Data) -> None:
    first, second = data["costs"][:2]
    second.update(fixed=first["fixed"], maxima=first["maxima"])


def _too_long(data: Data) -> None:
    data["max_length"] = 1


def _other_ports(data: Data) -> None:
    data["ports"] = [3, 1]


def _case_shape(data: Data) -> None:
    data["exclusions"][0]["cases"][0]["shares"] = []


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        (_weight, "do not add up to 1"),
        (_negative_share, "do not add up to 1"),
        (_case_missing, "cases, and multipliers for"),
        (_exclusion_missing, "are not every cost, each once"),
        (_cheaper, "does not cost what the file says"),
        (_point, "other costs are least"),
        (_short_point, "is no point"),
        (_not_fewest, "are not the fewest"),
        (_by_outsider, "are no members"),
        (_twice, "stands twice"),
        (_same_cost, "a cost stands twice"),
        (_too_long, "is longer than 1"),
        (_other_ports, "does not cost what the file says"),
        (_case_shape, "a multiplier is missing"),
    ],
)
def test_what_is_tampered_with_is_refused(change: Callable[[Data], None], fault: str) -> None:
    data = json.loads(text())
    assert check_least_set(least_set_from(deepcopy(data), "set")).valid
    change(data)
    faults = check_least_set(least_set_from(data, "set")).faults
    assert any(fault in one for one in faults), faults


def test_multipliers_of_one_exclusion_do_not_serve_another() -> None:
    """Each cost with the multipliers of each other one: what passes is refuted by them in truth."""
    claim = least_set_from(json.loads(text()), "set")
    costs, point = [one.cost for one in claim.costs], tuple(map(Fraction, (1, 2, 3, 5, 7)))
    passed = 0
    for one in claim.exclusions:
        for other in claim.exclusions:
            if broken(costs[one.excluded], costs, other.refutation) is None:
                passed += 1
                least = min(costs[s].value(point) for s in other.refutation.by)
                assert costs[one.excluded].value(point) >= least
    assert len(claim.exclusions) <= passed < len(claim.exclusions) ** 2


@pytest.mark.parametrize(
    ("key", "value", "rule"),
    [
        ("costs", [], "at least 1"),
        ("factors", [1, 3], "at least 2"),
        ("extra", 1, "extra"),
        ("kind", "plan", "kind"),
    ],
)
def test_a_file_of_another_shape_is_bad_input(key: str, value: object, rule: str) -> None:
    with pytest.raises(InputError, match=rule):
        least_set_from({**json.loads(text()), key: value}, "set")


def test_a_program_that_is_not_valid_is_bad_input() -> None:
    data = json.loads(text())
    data["costs"][0]["programs"] = ["reduce-scatter inside root"]
    with pytest.raises(InputError, match="is not valid"):
        least_set_from(data, "set")
