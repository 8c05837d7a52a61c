"""The text of generated modules, without JAX."""

from __future__ import annotations

import ast

import pytest

from p2smt.errors import InputError
from p2smt.interop.arrays.shard_map import DigitNames, parts_of, position_pairs, shard_map_text
from p2smt.resharding.steps import StepKind
from p2smt.resharding.types import Uneven
from tests.interop.arrays.shard_map.walks import walked


def test_each_step_has_its_operation() -> None:
    plan = walked("a=2,b=4", (8, 16), "S(a),R;P(b)", 5, 3)
    text = shard_map_text(plan)
    calls = {
        StepKind.SLICE: "lax.dynamic_slice_in_dim(",
        StepKind.ALL_GATHER: "lax.all_gather(",
        StepKind.ALL_TO_ALL: "lax.all_to_all(",
        StepKind.PERMUTE: "lax.ppermute(",
        StepKind.REDUCE_SCATTER: "lax.psum_scatter(",
        StepKind.ALL_REDUCE: "lax.psum(",
    }
    for kind, call in calls.items():
        assert (call in text) == any(step.kind is kind for step in plan.array_steps)


def test_a_name_of_a_file_does_not_end_the_text() -> None:
    plan = walked("a=2", (4,), "S(a)", 0, 0)
    text = shard_map_text(plan, 'a"""\nimport os\n"""\\')
    assert "import os" not in [ast.unparse(node) for node in ast.parse(text).body]


def test_names_of_digits_are_unique() -> None:
    plan = walked("a=4,a_1x2=2", (8,), "S(a:(1)2)", 0, 0)
    assert DigitNames.of(plan.frame).names == ("a_1x2_", "a_2x2", "a_1x2")


def test_partial_values_are_a_first_dimension() -> None:
    text = shard_map_text(walked("a=2,b=2", (4, 4), "S(a),R;P(b)", 0, 0))
    assert 'SOURCE = P(("b",), ("a",), None)' in text
    assert "SHAPE = (2, 4, 4)" in text


def test_padded_arrays_have_their_functions() -> None:
    text = shard_map_text(walked("a=2,b=4", (5, 6), "S(b),R", 0, 1, uneven=Uneven.PADDED))
    assert "PADDING = ((0, 3), (0, 0),)" in text
    assert "def padded(x):" in text
    assert "def padded(x):" not in shard_map_text(walked("a=2", (4,), "S(a)", 0, 0))


def test_blocks_of_several_shapes_are_refused() -> None:
    plan = walked("a=2,b=2", (5, 4), "S(a),R", 0, 0, uneven=Uneven.NESTED)
    with pytest.raises(InputError, match=r"JAX has blocks of one shape only.*--uneven padded"):
        shard_map_text(plan)


def test_messages_are_between_positions() -> None:
    """Each position sends once and receives once, whatever the devices' numbers are."""
    order = (3, 1, 0, 2)
    plan = walked("a=2,b=2", (4, 4), "S(a),S(b)", 3, 5, orders=(order, order))
    permutes = [planned for planned in plan.steps if planned.sources]
    assert permutes
    for planned in permutes:
        pairs = position_pairs(plan.frame, planned)
        assert [target for _, target in pairs] == [0, 1, 2, 3]
        for source, target in pairs:
            assert planned.sources[order[target]] == order[source]


def test_another_order_of_devices_begins_a_part() -> None:
    plans = (
        walked("a=4", (4,), "S(a)", 3, seed, orders=((0, 1, 2, 3), (3, 0, 2, 1)))
        for seed in range(9)
    )
    plan = next(plan for plan in plans if len(parts_of(plan)) > 1)
    text = shard_map_text(plan)
    assert "def local_2(x):" in text
    assert "x = renumbered(x, 1, BETWEEN_1, SHAPE_1)" in text
    assert sum(len(part.steps) for part in parts_of(plan)) == len(plan.steps)
