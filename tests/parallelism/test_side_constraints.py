"""Side constraints as text."""

from __future__ import annotations

import pytest

from p2smt.errors import InputError
from p2smt.parallelism.placement import AxisRule, FixedEntry, parse_fix, parse_rule
from tests.oracles.placements import all_matrices, obeys

AXES, LEVELS = ("dp", "tp", "pp"), ("rack", "node", "gpu")


@pytest.mark.parametrize(
    ("text", "require", "rule"),
    [
        ("tp within node", True, AxisRule(1, 1, inside=True)),
        ("tp within node", False, AxisRule(1, 1, inside=False)),
        ("dp across rack", True, AxisRule(0, 0, inside=False)),
        ("dp across rack", False, AxisRule(0, 0, inside=True)),
        ("  pp \t within  gpu\n", True, AxisRule(2, 2, inside=True)),
    ],
)
def test_rules(text: str, require: bool, rule: AxisRule) -> None:
    assert parse_rule(text, require, AXES, LEVELS) == rule


def test_to_forbid_across_is_to_require_within() -> None:
    forbidden = parse_rule("dp across rack", False, AXES, LEVELS)
    assert forbidden == parse_rule("dp within rack", True, AXES, LEVELS)


def test_a_rule_and_its_opposite_split_the_matrices() -> None:
    within = parse_rule("tp within node", True, AXES[:2], LEVELS)
    across = parse_rule("tp across node", True, AXES[:2], LEVELS)
    for matrix in all_matrices((2, 2, 4), (4, 4)):
        assert obeys(matrix, within) == (matrix[1][0] == matrix[1][1] == 1)
        assert obeys(matrix, within) != obeys(matrix, across)


@pytest.mark.parametrize(
    ("text", "entries"),
    [
        ("pp=rack:2", (FixedEntry(2, 0, 2),)),
        ("pp=rack:2,node:1", (FixedEntry(2, 0, 2), FixedEntry(2, 1, 1))),
        (" dp = gpu : 8 , rack:1 ", (FixedEntry(0, 2, 8), FixedEntry(0, 0, 1))),
    ],
)
def test_fixed_entries(text: str, entries: tuple[FixedEntry, ...]) -> None:
    assert parse_fix(text, AXES, LEVELS) == entries


@pytest.mark.parametrize("text", ["", "tp", "tp within", "tp inside node", "tp within node rack"])
def test_another_form_of_rule_is_explained(text: str) -> None:
    with pytest.raises(InputError, match="AXIS within LEVEL") as error:
        parse_rule(text, True, AXES, LEVELS)
    assert all([error.value.given, error.value.rule, error.value.remedy])


@pytest.mark.parametrize(
    "text",
    [
        "",
        "pp",
        "pp=",
        "pp=rack",
        *("pp=rack:" + v for v in ("", "0", "-2", "x", "2,", "1.5", "\u00b2")),
    ],
)
def test_another_form_of_fix_is_explained(text: str) -> None:
    with pytest.raises(InputError, match="AXIS=LEVEL:N") as error:
        parse_fix(text, AXES, LEVELS)
    assert len(str(error.value)) < 300


def test_a_level_fixed_twice_is_rejected() -> None:
    with pytest.raises(InputError, match="level rack twice"):
        parse_fix("pp=rack:2,rack:2", AXES, LEVELS)


def test_unknown_names_come_with_the_known_ones() -> None:
    with pytest.raises(InputError, match=r"axis 'ep'.*use one of dp, tp, pp"):
        parse_rule("ep within node", True, AXES, LEVELS)
    with pytest.raises(InputError, match=r"level 'host'.*use one of rack, node, gpu"):
        parse_rule("tp within host", True, AXES, LEVELS)
    with pytest.raises(InputError, match=r"axis 'ep'.*use one of dp, tp, pp"):
        parse_fix("ep=rack:2", AXES, LEVELS)
    with pytest.raises(InputError, match=r"level 'host'.*use one of rack, node, gpu"):
        parse_fix("pp=host:2", AXES, LEVELS)
