"""Symbolic costs: with numbers put in they are the numeric model, and what is equal is merged."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from p2smt.cluster.file import load_topology
from p2smt.cluster.topology import Algorithm, Level, Link, LinkKind, Piece, Topology
from p2smt.collectives.names import Collective, RequestKind
from p2smt.cost.scene import Scene
from p2smt.cost.symbolic.form import (
    ChosenCell,
    CostForm,
    LinkNumbers,
    SymbolicCost,
    SymbolicStep,
    SymbolicWay,
    decimal,
    exact,
    merged_maxima,
)
from p2smt.cost.symbolic.steps import (
    numbers_of,
    step_ways,
    symbolic_fixed,
    symbolic_program,
    symbolic_step,
)
from p2smt.errors import InputError, TooLarge
from p2smt.parallelism.placement import Placement
from p2smt.programs.program import Program, groupings, parse_program
from tests.strategies.draws import Draws, draws
from tests.strategies.libraries import library_cases
from tests.strategies.topologies import Case, cases

LINEAR = (Algorithm.RING, Algorithm.HALVING_DOUBLING, Algorithm.DIRECT)
HIERARCHICAL = "reduce-scatter inside l1; all-reduce parallel l1 in root; all-gather inside l1"


def numbered(case: Case) -> Topology:
    """The case's cluster with linear algorithms, where every first protocol has a latency."""
    levels = tuple(
        replace(level, link=replace(level.link, measured=(), pieces=(_late(level.link.pieces))))
        for level in case.topology.levels
    )
    return replace(case.topology, levels=levels, algorithms=LINEAR, overrides=())


def _late(pieces: tuple[Piece, ...]) -> tuple[Piece, ...]:
    return tuple(replace(piece, latency_s=piece.latency_s or 1.0) for piece in pieces)


@given(cases(), st.sampled_from(Collective), draws())
def test_numbers_put_in_give_the_numeric_model(
    case: Case, collective: Collective, data: Draws
) -> None:
    scene = Scene.of(numbered(case), case.placement, case.axes)
    depth = scene.hierarchy.depth
    if depth == 0:
        return
    grouping = data.draw(st.sampled_from(list(groupings(depth))))
    payload = data.draw(st.sampled_from([1, 1000, 2**20]))
    ways = step_ways(scene.topology, scene.digits, grouping, collective)
    numbers = LinkNumbers.of(scene.topology)
    found = SymbolicStep("", ways).seconds(numbers, Fraction(payload))
    expected = scene.step_time(collective, grouping, payload).seconds
    assert float(found) == pytest.approx(expected, rel=1e-13)


def two_levels(outer: int, inner: int, ports: int = 1) -> Topology:
    """Switches whose numbers are powers of two, so that floats are exact."""
    pieces = (Piece("", 2.0**-16, 2.0**33),), (Piece("", 2.0**-20, 2.0**37),)
    levels = (
        Level("l1", outer, Link(LinkKind.SWITCH, pieces[0], ports=ports)),
        Level("l2", inner, Link(LinkKind.SWITCH, pieces[1])),
    )
    return Topology("pair", levels, algorithms=(Algorithm.RING,))


def scene_of(outer: int, inner: int, ports: int = 1) -> Scene:
    return Scene.of(two_levels(outer, inner, ports), Placement(((outer, inner),)), [0])


def priced(text: str, scene: Scene, rows: tuple[int, ...]) -> tuple[SymbolicCost, Program]:
    program = parse_program(text)
    return symbolic_program(scene, program, rows), program


@pytest.mark.parametrize("ports", [1, 2, 8])
def test_on_powers_of_two_it_is_equal_to_the_last_bit(ports: int) -> None:
    scene, rows = scene_of(4, 8, ports), (32, 4, 32)
    cost, program = priced(HIERARCHICAL, scene, rows)
    times = scene.program_times(program, rows, 2**30)
    numbers = LinkNumbers.of(scene.topology)
    assert cost.seconds(numbers, Fraction(2**30)) == sum(Fraction(t.seconds) for t in times)
    form = cost.form()
    assert form is not None
    assert form.seconds(numbers, Fraction(2**30)) == cost.seconds(numbers, Fraction(2**30))


@pytest.mark.parametrize(("outer", "inner"), [(2, 8), (4, 8), (3, 5)])
def test_flat_and_hierarchical_have_their_closed_forms(outer: int, inner: int) -> None:
    scene, total = scene_of(outer, inner), outer * inner
    flat, _ = priced("all-reduce inside root", scene, (total,))
    edge = Fraction(2 * (total - 1), total)
    latency = (Fraction(2 * (outer - 1)), Fraction(2 * (total - outer)))
    assert flat.form() == CostForm(1, latency, ((edge, edge),))
    nested, _ = priced(HIERARCHICAL, scene, (total, outer, total))
    across = Fraction(2 * (outer - 1), outer)
    inside = Fraction(2 * (inner - 1), inner)
    form = nested.form()
    assert form is not None
    assert form.latency == (Fraction(2 * (outer - 1)), Fraction(2 * (inner - 1)))
    assert set(form.maxima) == {(0, inside), (across, across / inner)}


def test_several_protocols_are_the_least_of_them() -> None:
    base = two_levels(2, 2)
    fast, wide = Piece("ll", 1.0, 2.0), Piece("simple", 3.0, 4.0)
    links = tuple(
        replace(level, link=replace(level.link, pieces=(wide, fast))) for level in base.levels
    )
    scene = Scene.of(replace(base, levels=links), Placement(((2, 2),)), [0])
    cost, _ = priced("all-reduce inside root", scene, (4,))
    assert cost.form() is None
    thirds = (Fraction(2, 3), Fraction(4, 3))  # of the first protocol's latency
    assert [form.latency for form in cost.forms()] == [(2, 4), thirds]
    numbers = LinkNumbers.of(scene.topology)
    for payload in (1, 10, 1000):
        expected = min(form.seconds(numbers, Fraction(payload)) for form in cost.forms())
        assert cost.seconds(numbers, Fraction(payload)) == expected


def test_an_all_to_all_is_linear_and_a_group_of_one_costs_nothing() -> None:
    cost = symbolic_fixed(scene_of(2, 2), RequestKind.ALL_TO_ALL)
    assert [len(step.ways) for step in cost.steps] == [1]
    one = Scene.of(two_levels(2, 2), Placement(((1, 1), (2, 2))), [0])
    silent = symbolic_fixed(one, RequestKind.ALL_TO_ALL)
    assert silent.seconds(LinkNumbers.of(one.topology), Fraction(5)) == 0
    assert silent.form() == CostForm(0, (Fraction(0), Fraction(0)), ())


def test_a_tree_has_a_root_and_no_linear_form() -> None:
    scene, program = scene_of(2, 2), parse_program("all-reduce inside root")
    scene = replace(scene, topology=replace(scene.topology, algorithms=(Algorithm.TREE,)))
    cost = symbolic_program(scene, program, (4,))
    numbers = LinkNumbers.of(scene.topology)
    with pytest.raises(InputError, match="square root"):
        cost.seconds(numbers, Fraction(2**20))
    (step,) = scene.program_times(program, (4,), 2**20)
    assert float(cost.value(numbers, Fraction(2**20))) == pytest.approx(step.seconds, rel=1e-15)


def test_what_a_library_chooses_by_the_payload_has_no_least_of_forms() -> None:
    scene = Scene.of(load_topology("azure-ndv4"), Placement(((2, 8),)), [0])
    cost = symbolic_program(scene, parse_program("all-reduce inside root"), (16,))
    assert cost.chosen
    with pytest.raises(InputError, match="chooses by the payload"):
        cost.forms()
    assert all(len(cell.forms) == 1 for cell in cost.cells())


@given(library_cases(), st.sampled_from(Collective), draws())
def test_numbers_put_in_give_a_library_on_both_sides_of_each_choice(
    case: Case, collective: Collective, data: Draws
) -> None:
    scene = Scene.of(case.topology, case.placement, case.axes)
    if not scene.hierarchy.depth:
        return
    grouping = data.draw(st.sampled_from(list(groupings(scene.hierarchy.depth))))
    step = symbolic_step(scene.topology, scene.digits, grouping, collective)
    numbers, beside = numbers_of(scene.topology), Fraction(1, 2**40)
    bounds = [cell.high for cell in step.choice if cell.high is not None]
    sizes = [bound * part for bound in bounds for part in (1 - beside, 1 + beside)]
    sizes += [bound for bound in bounds if math.frexp(bound)[0] == 0.5]  # corrections jump there
    for size in (1.0, 1000.0, 2.0**20, 2.0**34, *map(float, sizes)):
        expected = scene.step_time(collective, grouping, size).seconds
        assert float(step.value(numbers, Fraction(size))) == pytest.approx(expected, rel=1e-12)


def test_a_protocol_with_a_latency_beside_a_first_without_one_is_refused() -> None:
    base = two_levels(2, 2)
    pieces = (Piece("a", 0.0, 1.0), Piece("b", 1.0, 2.0))
    links = tuple(replace(one, link=replace(one.link, pieces=pieces)) for one in base.levels)
    scene = Scene.of(replace(base, levels=links), Placement(((2, 2),)), [0])
    with pytest.raises(InputError, match="none to measure it by"):
        priced("all-reduce inside root", scene, (4,))


def test_sends_that_meet_at_several_levels_are_refused() -> None:
    with pytest.raises(InputError, match="different levels"):
        symbolic_fixed(scene_of(2, 2), RequestKind.SEND)


def test_too_many_combinations_are_refused() -> None:
    zeros = (Fraction(0),)
    ways = tuple(SymbolicWay(str(n), "", zeros, (Fraction(n),)) for n in range(9))
    cost = SymbolicCost(("l1",), (SymbolicStep("", ways),) * 4)
    with pytest.raises(TooLarge, match="6561 choices"):
        cost.forms()


def test_proportional_terms_are_added_up() -> None:
    half, one, two = Fraction(1, 2), Fraction(1), Fraction(2)
    found = merged_maxima([(one, two), (half, one), (one, one), (Fraction(0), Fraction(0))])
    assert set(found) == {(Fraction(3, 2), Fraction(3)), (one, one)}
    assert merged_maxima([(one, one), (half, one), (one, two)]) == found


@given(st.integers(1, 2000), st.integers(1, 2000))
def test_a_small_fraction_is_read_back(numerator: int, denominator: int) -> None:
    assert exact(numerator / denominator) == Fraction(numerator, denominator)


def test_a_float_that_is_no_small_fraction_is_refused() -> None:
    with pytest.raises(InputError, match="denominator too large"):
        exact(2**0.5)
    assert exact(0.0) == 0


def test_decimals_are_what_a_file_says() -> None:
    assert decimal(3e-6) == Fraction(3, 10**6)


def test_negative_numbers_are_refused() -> None:
    with pytest.raises(InputError, match="must not be negative"):
        LinkNumbers(Fraction(-1), (), ())


def test_a_program_has_a_cell_for_a_bound_at_which_its_steps_go_different_ways() -> None:
    """At 8 one step still takes its first way, another already its second."""
    zero, bound = Fraction(0), Fraction(8)
    ways = tuple(SymbolicWay(str(n), "", (zero,), (Fraction(n),)) for n in (1, 2))
    steps = [
        SymbolicStep("", ways, (ChosenCell(zero, bound, 0, below), ChosenCell(bound, None, 1)))
        for below in (True, False)
    ]
    numbers = LinkNumbers(zero, (zero,), (Fraction(1),))
    for both, loads, ends in (
        ((steps[0], steps[1]), (2, 3, 4), [(8, True), (8, False), (None, False)]),
        ((steps[0], steps[0]), (2, 4, 4), [(8, True), (None, False)]),
        ((steps[1], steps[1]), (2, 2, 4), [(8, False), (None, False)]),
    ):
        cost = SymbolicCost(("l1",), both)
        assert [(cell.high, cell.below) for cell in cost.cells()] == ends
        for at, load in zip((7, 8, 9), loads, strict=True):
            assert cost.seconds(numbers, Fraction(at)) == load * at
            cells = [one for one in cost.cells() if one.high is None or at <= one.high]
            cell = next(one for one in cells if at != one.high or not one.below)
            assert cell.forms[0].seconds(numbers, Fraction(at)) == load * at
