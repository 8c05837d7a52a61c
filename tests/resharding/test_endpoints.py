"""Source and destination on common digits: cuts, orders of primes, padding, refusals."""

from __future__ import annotations

from dataclasses import replace

import pytest

from p2smt.errors import InputError
from p2smt.resharding.endpoints import MAX_SPLITS, ends_of, orders_left_out, with_shape
from p2smt.resharding.states import ArrayState
from p2smt.resharding.types import ArrayType, ElementType, Uneven
from tests.resharding.types import all_ends, array_type, first_ends


def cuts(mesh: str, source: str = "R", target: str = "R") -> list[tuple[tuple[int, int], ...]]:
    """(before, size) of each digit, for each order of primes."""
    found = all_ends(mesh, (1440,), source, target)
    return [tuple((d.before, d.size) for d in ends.frame.digits) for ends in found]


def test_axes_are_cut_into_primes_in_every_order() -> None:
    assert cuts("a=8") == [((1, 2), (2, 2), (4, 2))]
    assert cuts("a=6") == [((1, 2), (2, 3)), ((1, 3), (3, 2))]
    assert cuts("a=5") == [((1, 5),)]
    assert len(cuts("a=12")) == 3
    assert len(cuts("a=6,b=6")) == 4
    assert cuts("a=1,b=2") == [((1, 2),)]


def test_sub_axes_say_where_to_cut() -> None:
    assert cuts("a=6", "S(a:(1)3)") == [((1, 3), (3, 2))]
    assert cuts("a=6", "S(a:(2)3)") == [((1, 2), (2, 3))]
    assert cuts("a=12", "S(a:(1)6)") == [((1, 2), (2, 3), (6, 2)), ((1, 3), (3, 2), (6, 2))]
    assert cuts("a=12", "S(a:(1)2)", "S(a:(6)2)") == [((1, 2), (2, 3), (6, 2))]


@pytest.mark.parametrize(
    ("source", "target"),
    [("S(a:(1)2)", "S(a:(1)3)"), ("S(a:(2)3)", "S(a:(3)2)"), ("S(a:(3)2)", "S(a:(1)2)")],
)
def test_sub_axes_that_cannot_coexist_are_refused(source: str, target: str) -> None:
    with pytest.raises(InputError, match="axis a of 6 cannot be cut after 2 and after 3 both"):
        all_ends("a=6", (6,), source, target)


def test_cuts_may_be_given() -> None:
    """At the factors of levels, and where types name sub-axes."""
    whole = all_ends("a=16,b=4", (64,), "R", "R", splits=((2, 8), (4,)))
    assert [one.frame.sizes for one in whole] == [(2, 8, 4)]
    named = all_ends("a=16,b=4", (64,), "S(a:(4)4)", "R", splits=((2, 8), (4,)))
    assert named[0].frame.sizes == (2, 2, 4, 4)
    ones = all_ends("a=16,b=4", (64,), "R", "R", splits=((1, 16), (4, 1)))
    assert ones[0].frame.sizes == (16, 4)
    with pytest.raises(InputError, match="cannot be cut"):
        all_ends("a=16,b=9", (144,), "S(b:(1)3)", "R", splits=((3, 5), (9,)))


def test_so_many_orders_of_primes_and_no_more() -> None:
    assert len(all_ends("a=30,b=30", (900,), "R", "R")) == MAX_SPLITS


def test_orders_that_are_not_tried_are_counted() -> None:
    def left_out(mesh: str, source: str = "R", target: str = "R") -> int:
        return orders_left_out(array_type(mesh, (900,), source), array_type(mesh, (900,), target))

    assert left_out("a=30,b=30") == 6 * 6 - MAX_SPLITS
    assert left_out("a=30,b=30", "S(a:(1)2)") == 0
    assert left_out("a=4096,b=6") == 0
    assert left_out("a=900,b=6") == 90 * 2 - MAX_SPLITS
    kinds = [array_type("a=30,b=30", (900,), "R")] * 2
    assert orders_left_out(kinds[0], kinds[1], ((30,), (30,))) == 0


def test_large_axes_are_cut_at_once() -> None:
    assert [one.frame.sizes for one in all_ends("a=4096", (4096,), "R", "S(a)")] == [(2,) * 12]
    assert len(all_ends("a=243,b=16", (486,), "R", "R")) == 1
    assert len(all_ends("a=1536", (1536,), "R", "R")) == 10


def test_types_are_states_of_the_common_digits() -> None:
    ends = first_ends("a=4,b=6", (48, 48), "S(b:(2)3,a),R", "R,S(b)")
    assert ends.source == ArrayState(((3, 0, 1), ()))
    assert ends.target == ArrayState(((), (2, 3)))
    assert ends.states_limit_bytes == 48 * 48 * 4 // 6
    back = ends.frame.layout(ends.source)
    assert back == array_type("a=4,b=6", (48, 48), "S(b:(2)3,a),R").layout


def test_partial_values_are_kept_or_reduced_but_not_made() -> None:
    ends = first_ends("a=4,b=2", (8,), "R;P(b,max);P(a:(1)2,max)", "R;P(b,max)")
    assert ends.source.partial == (0, 2)
    assert ends.target.partial == (2,)
    assert ends.frame.op.value == "max"
    assert first_ends("a=2", (4,), "R;P(a,avg)", "R").frame.op.value == "avg"
    with pytest.raises(InputError, match=r"P\(a\).*no step makes partial values"):
        all_ends("a=2,b=2", (4,), "R;P(b)", "R;P(a);P(b)")
    with pytest.raises(InputError, match="no step makes partial values"):
        all_ends("a=2", (4,), "S(a)", "R;P(a)")
    with pytest.raises(InputError, match="max and sum"):
        all_ends("a=2,b=2", (4,), "R;P(b,max);P(a,max)", "R;P(b)")


def test_both_types_are_of_one_array() -> None:
    one = array_type("a=4", (8, 8), "S(a),R")
    for other, said in (
        (array_type("a=2,b=2", (8, 8), "S(a),R"), "mesh axes"),
        (array_type("b=4", (8, 8), "S(b),R"), "mesh axes"),
        (array_type("a=4", (8, 16), "S(a),R"), "shapes"),
        (array_type("a=4", (8, 8), "S(a),R", element=ElementType.F16), "dtypes"),
        (array_type("a=4", (8, 8), "S(a),R", Uneven.PADDED), "rules of uneven dimensions"),
    ):
        with pytest.raises(InputError, match=said):
            ends_of(one, other)


def test_other_devices_are_refused_and_another_order_is_not() -> None:
    one = array_type("a=4", (8,), "S(a)")
    turned = array_type("a=4", (8,), "R", devices=[3, 2, 1, 0])
    ends = ends_of(one, turned)[0]
    assert ends.frame.orders == ((0, 1, 2, 3), (3, 2, 1, 0))
    assert (ends.source.order, ends.target.order) == (0, 1)
    moved = array_type("a=4", (8,), "R", devices=[0, 1, 2, 4])
    with pytest.raises(InputError, match=r"on other devices.*--to-device-ids"):
        ends_of(one, moved)


def test_padded_shapes_divide_by_both_types() -> None:
    ends = first_ends("a=4,b=3", (10, 7), "S(a),R", "S(b),S(a)", Uneven.PADDED)
    assert ends.frame.shape == (12, 8)
    assert not ends.frame.nested
    even = first_ends("a=4,b=3", (12, 8), "S(a),R", "S(b),S(a)", Uneven.PADDED)
    assert even.frame.shape == (12, 8)


def test_nested_types_have_whole_axes_as_digits() -> None:
    found = all_ends("a=4,b=6", (10, 7), "S(a),R", "R,S(b)", Uneven.NESTED)
    assert [one.frame.sizes for one in found] == [(4, 6)]
    assert found[0].frame.nested
    even = all_ends("a=4,b=6", (24, 12), "S(a),R", "R,S(b)", Uneven.NESTED)
    assert [one.frame.nested for one in even] == [False, False]
    for source, target in (("S(a:(1)2),R", "R,S(b)"), ("S(a),R", "R,S(b:(1)3)")):
        with pytest.raises(InputError, match="whole axes only"):
            all_ends("a=4,b=6", (10, 7), source, target, Uneven.NESTED)


def test_a_type_of_another_shape() -> None:
    kind = array_type("a=4", (8, 8), "S(a),R")
    assert with_shape(kind, (4, 4)) == replace(kind, shape=(4, 4))
    with pytest.raises(InputError):
        with_shape(kind, (2, 2))
    assert isinstance(with_shape(kind, (4, 4)), ArrayType)
