"""Types of arrays: what they refuse, and element types."""

from __future__ import annotations

import pytest

from p2smt.errors import InputError
from p2smt.resharding.types import ElementType, ReduceOp, Uneven
from tests.resharding.types import array_type


def test_a_type_knows_its_shards_and_bytes() -> None:
    kind = array_type("dp=4,tp=8", (64, 32), "S(tp:(2)4,dp),R", element=ElementType.BF16)
    assert (kind.shards(0), kind.shards(1)) == (16, 1)
    assert kind.global_bytes == 64 * 32 * 2


@pytest.mark.parametrize(
    ("shape", "layout", "said"),
    [
        ((), "R", "without dimensions"),
        ((0, 4), "R,R", "empty array"),
        ((4, -4), "R,R", "empty array"),
        ((1,) * 9, ",".join("R" * 9), "more than 8 dimensions"),
        ((2**30, 2**30), "R,R", "2\\^53"),
        ((64,), "R,R", "layout of 2 dimensions: the array has 1"),
        ((64, 64), "R", "layout of 1 dimensions: the array has 2"),
        ((3, 64), "S(dp),R", "size 3: does not divide into 4 equal shards; choose --uneven"),
        ((64, 31), "S(dp),S(tp)", "size 31: does not divide into 8 equal shards"),
        ((64, 12), "R,S(tp)", "does not divide into 8 equal shards"),
    ],
)
def test_bad_types_are_refused_in_one_line(shape: tuple[int, ...], layout: str, said: str) -> None:
    with pytest.raises(InputError, match=said) as caught:
        array_type("dp=4,tp=8", shape, layout)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("uneven", [Uneven.PADDED, Uneven.NESTED])
def test_uneven_dimensions_need_a_rule(uneven: Uneven) -> None:
    assert array_type("dp=4,tp=8", (64, 12), "R,S(tp)", uneven).shards(1) == 8
    with pytest.raises(InputError, match="does not divide"):
        array_type("dp=4,tp=8", (64, 12), "R,S(tp)")


@pytest.mark.parametrize("uneven", [Uneven.PADDED, Uneven.NESTED])
@pytest.mark.parametrize("size", [1, 3, 7, 31])
def test_a_dimension_may_be_smaller_than_its_shards(uneven: Uneven, size: int) -> None:
    assert array_type("dp=4,tp=8", (64, size), "R,S(dp,tp)", uneven).shards(1) == 32


@pytest.mark.parametrize("element", list(ElementType))
def test_averages_need_floats(element: ElementType) -> None:
    for op in ReduceOp:
        text = f"R;P(dp,{op.value})"
        if op is ReduceOp.AVG and not element.floating:
            with pytest.raises(InputError, match=f"averages of {element.value}"):
                array_type("dp=4", (8,), text, element=element)
        else:
            array_type("dp=4", (8,), text, element=element)


def test_sizes_of_elements() -> None:
    sizes = {element.value: element.item_bytes for element in ElementType}
    assert sizes == {
        "f64": 8,
        "f32": 4,
        "f16": 2,
        "bf16": 2,
        "i64": 8,
        "i32": 4,
        "i16": 2,
        "i8": 1,
        "u8": 1,
        "bool": 1,
    }


@pytest.mark.parametrize(
    ("text", "element"),
    [
        ("bf16", ElementType.BF16),
        ("bfloat16", ElementType.BF16),
        ("float32", ElementType.F32),
        ("int8", ElementType.I8),
        ("uint8", ElementType.U8),
        ("bool", ElementType.BOOL),
        ("i1", ElementType.BOOL),
    ],
)
def test_frameworks_names_are_read(text: str, element: ElementType) -> None:
    assert ElementType.parse(text) is element


@pytest.mark.parametrize("text", ["", "f8", "F32", "complex64", "double"])
def test_other_names_are_refused(text: str) -> None:
    with pytest.raises(InputError, match="is none of f64"):
        ElementType.parse(text)
    with pytest.raises(InputError, match="is none of sum"):
        ReduceOp.parse(text)
