"""Folded placements: which pairs are consistent, their groups, and how many there are."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from p2smt.errors import InputError
from p2smt.parallelism.folded import (
    DP_OUTERMOST,
    HSDP,
    PP_OUTERMOST,
    FoldedAxes,
    FoldedPlacement,
    experts_numbered,
    in_rank_order,
    pair_count,
    pairs,
)
from p2smt.parallelism.matrices import factorisations
from p2smt.parallelism.matrix_count import matrix_count
from p2smt.parallelism.placement import (
    AxisRule,
    FixedEntry,
    IntArray,
    Matrix,
    Placement,
    parse_rule,
)
from p2smt.problems.placement import PlacementProblem
from tests.imports import ROOT
from tests.oracles.meshes import (
    DP_LAST,
    PP_LAST,
    Groups,
    megatron_groups,
    megatron_refuses,
    mesh_groups,
)
from tests.oracles.mixture_plans import numbered_once
from tests.oracles.placements import all_matrices, all_rows, valid_matrices
from tests.strategies.placements import folded_sizes, rules
from tests.tiers import but_the_first, examples_of

LEVELS = [(2, 4), (3, 4), (2, 6), (4, 4), (2, 2, 4)]
PLACES = [(0, 0), (1, 1), (2, 2), (3, 3), (0, 1), (1, 3)]
"""Where pp stands among the rows of attention and of experts."""


def sorted_groups(groups: IntArray) -> Groups:
    return sorted(sorted(group) for group in groups.tolist())


def every_matrix(levels: Sequence[int], count: int = 4) -> Iterator[Matrix]:
    """Every matrix with so many rows, whatever their sizes."""
    for columns in product(*(factorisations(size, count) for size in levels)):
        yield tuple(zip(*columns, strict=True))


def pipelines(matrix: Matrix, pp: int) -> frozenset[tuple[int, ...]]:
    """The devices of every pipeline in the order of its stages, from the digits of each device.

    Digits of a device, innermost level and last row fastest; a stage is pp's digits, outermost
    level first.
    """
    cells = [(j, i) for j in range(len(matrix[0])) for i in range(len(matrix))]
    found: dict[tuple[int, ...], list[tuple[tuple[int, ...], int]]] = {}
    for device in range(math.prod(map(math.prod, matrix))):
        left, digits = device, dict.fromkeys(cells, 0)
        for j, i in reversed(cells):
            left, digits[j, i] = divmod(left, matrix[i][j])
        others = tuple(digit for (_, i), digit in digits.items() if i != pp)
        stage = tuple(digit for (_, i), digit in digits.items() if i == pp)
        found.setdefault(others, []).append((stage, device))
    return frozenset(tuple(device for _, device in sorted(one)) for one in found.values())


def axes_with(pp: tuple[int, int]) -> FoldedAxes:
    """Axes with pp at these places; the other names differ."""
    sides = [[f"{side}{i}" for i in range(3)] for side in "ax"]
    for names, place in zip(sides, pp, strict=True):
        names.insert(place, "pp")
    return FoldedAxes(tuple(sides[0]), tuple(sides[1]))


@pytest.mark.parametrize("places", PLACES)
@pytest.mark.parametrize("levels", but_the_first(*LEVELS))
def test_a_pair_is_consistent_where_all_pipelines_are_the_same(
    levels: tuple[int, ...], places: tuple[int, int]
) -> None:
    """Every pair of 4-row matrices: refused if and only if some pipeline or stage differs."""
    axes = axes_with(places)
    matrices = [(Placement(m), [pipelines(m, p) for p in places]) for m in every_matrix(levels)]
    consistent = 0
    for (attention, (mine, _)), (experts, (_, theirs)) in product(matrices, repeat=2):
        try:
            FoldedPlacement(attention, experts, axes)
        except InputError:
            assert mine != theirs, (attention, experts)
        else:
            assert mine == theirs, (attention, experts)
            consistent += 1
    assert 0 < consistent < len(matrices) ** 2


@pytest.mark.parametrize("levels", but_the_first(*LEVELS))
def test_with_pp_outermost_equal_rows_suffice(levels: tuple[int, ...]) -> None:
    matrices = [(matrix[0], pipelines(matrix, 0)) for matrix in every_matrix(levels)]
    for (row, mine), (other, theirs) in product(matrices, repeat=2):
        assert (mine == theirs) is (row == other)


@pytest.mark.parametrize(
    ("attention", "experts", "axes", "words"),
    [
        ("[[2,1],[1,2],[1,2]]", "[[2,1],[1,2],[1,2],[1,1]]", PP_OUTERMOST, "must be pp, dp, cp"),
        ("[[2,1],[1,4],[1,1],[1,1]]", "[[4,1],[1,2],[1,1],[1,1]]", PP_OUTERMOST, "same levels"),
        ("[[2,1],[1,4],[1,1],[1,1]]", "[[1,2],[2,2],[1,1],[1,1]]", PP_OUTERMOST, "same row of pp"),
        (
            "[[1,1],[1,2],[2,2],[1,1]]",
            "[[1,2],[1,2],[2,1],[1,1]]",
            DP_OUTERMOST,
            "not 1 and 2 ways",
        ),
        ("[[1],[2],[1],[1],[2]]", "[[1],[1],[1],[4],[1]]", HSDP, "dpr must have one size"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(
    attention: str, experts: str, axes: FoldedAxes, words: str
) -> None:
    first, second = (Placement(tuple(map(tuple, json.loads(one)))) for one in (attention, experts))
    with pytest.raises(InputError, match=words) as error:
        FoldedPlacement(first, second, axes)
    assert str(error.value).startswith(f"attention {attention} with experts {experts}: ")


def test_axes_need_pp_and_each_name_once() -> None:
    for names in (("dp", "cp", "tp"), ("pp", "dp", "dp")):
        with pytest.raises(InputError, match="each name once"):
            FoldedAxes(names)
        with pytest.raises(InputError, match="each name once"):
            FoldedAxes(experts=names)


MEGATRON_LEVELS = [(2, 4), (8,), (3, 4), (4, 4), (2, 2, 4), (2, 12)]


def degrees_of(devices: int) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Sizes of (pp, dp, cp, tp) and of (pp, ed, ep, et) on so many devices."""
    for attention, experts in product(factorisations(devices, 4), repeat=2):
        if attention[0] == experts[0]:
            yield attention, experts


@pytest.mark.parametrize("levels", but_the_first(*MEGATRON_LEVELS))
@pytest.mark.parametrize("order", [PP_LAST, DP_LAST])
def test_groups_are_megatrons(levels: tuple[int, ...], order: str) -> None:
    """Both its orders of ranks; where it refuses the degrees, so do the matrices."""
    axes, at, met, refused = PP_OUTERMOST, [0, 1, 2, 3], 0, 0
    if order == DP_LAST:
        axes, at = DP_OUTERMOST, [1, 0, 2, 3]
    for one, other in degrees_of(math.prod(levels)):
        attention = dict(zip(("pp", "dp", "cp", "tp"), one, strict=True))
        experts = dict(zip(("pp", "dp", "ep", "tp"), other, strict=True))
        first, second = ([side[i] for i in at] for side in (one, other))
        try:
            folded = in_rank_order(levels, first, second, axes)
        except InputError:
            assert megatron_refuses(order, attention, experts)
            refused += 1
            continue
        if folded is None:
            continue
        met += 1
        assert not megatron_refuses(order, attention, experts)
        for along in ("pp", "dp", "cp", "tp", "dp-cp", "tp-cp", "tp-pp", "tp-dp-cp"):
            found = folded.attention_groups(along.split("-"))
            assert sorted_groups(found) == megatron_groups(order, attention, along)
        for along in ("pp", "dp", "ep", "tp", "tp-ep", "tp-ep-pp", "ep-dp"):
            names = along.replace("dp", "ed").replace("tp", "et").split("-")
            found = folded.expert_groups(names)
            assert sorted_groups(found) == megatron_groups(order, experts, along)
    assert met
    assert bool(refused) is (order == DP_LAST)


@pytest.mark.parametrize("levels", [(2, 4), (2, 2, 2), (6, 2), (2, 6)])
def test_ranks_that_are_numbered_once_leave_experts_one_matrix_or_none(
    levels: tuple[int, ...],
) -> None:
    """Against every matrix of experts, device by device."""
    left = 0
    for attention, experts in degrees_of(math.prod(levels)):
        mine = np.array(list(all_matrices(levels, attention)), dtype=np.int64)
        at, found = experts_numbered(mine, experts)
        told = dict(zip(at.tolist(), map(as_rows, found), strict=True))
        theirs = list(all_matrices(levels, experts))
        for n, rows in enumerate(map(as_rows, mine)):
            wanted = [one for one in theirs if numbered_once(rows, one)]
            assert wanted == ([told[n]] if n in told else [])
            left += not wanted
    assert bool(left) is (math.prod(levels) == 12)


def as_rows(matrix: IntArray) -> Matrix:
    return tuple(map(tuple, matrix.tolist()))


def pieces(groups: Groups, count: int) -> Groups:
    """Each group cut into so many equal runs: instances of Megatron's distributed optimizer."""
    size = len(groups[0]) // count
    return sorted(one[i * size : (i + 1) * size] for one in groups for i in range(count))


@pytest.mark.parametrize("levels", but_the_first(*MEGATRON_LEVELS))
def test_groups_are_those_of_torchtitans_meshes(levels: tuple[int, ...]) -> None:
    """Its dense mesh, what it flattens and its sparse one; Megatron's partial optimizers alike."""
    met = 0
    for pp, dpr, dps, cp, tp in factorisations(math.prod(levels), 5):
        for eds, ep in factorisations(dps * cp * tp, 2):
            folded = in_rank_order(levels, (pp, dpr, dps, cp, tp), (pp, dpr, eds, ep, 1), HSDP)
            if folded is None:
                continue
            met += 1
            dense = (("pp", pp), ("dpr", dpr), ("dps", dps), ("cp", cp), ("tp", tp))
            for along in ("pp", "dpr", "dps", "cp", "tp", "dps cp", "dpr dps", "dpr dps cp"):
                found = folded.attention_groups(along.split())
                assert sorted_groups(found) == mesh_groups(dense, along.split())
            flat = (("pp", pp), ("dp_replicate", dpr), ("fsdp", dps * cp), ("tp", tp))
            found = folded.attention_groups(("dps", "cp"))
            assert sorted_groups(found) == mesh_groups(flat, ["fsdp"])
            sparse = (("pp", pp), ("dpr", dpr), ("eds", eds), ("ep", ep))
            for name, _ in sparse:
                assert sorted_groups(folded.expert_groups([name])) == mesh_groups(sparse, [name])
            experts = {"dp": dpr * eds, "ep": ep, "pp": pp}
            parts = pieces(megatron_groups(PP_LAST, experts, "dp"), dpr)
            assert sorted_groups(folded.expert_groups(["eds"])) == parts
            attention = {"dp": dpr * dps, "cp": cp, "tp": tp, "pp": pp}
            parts = pieces(megatron_groups(PP_LAST, attention, "dp-cp"), dpr)
            assert sorted_groups(folded.attention_groups(["dps", "cp"])) == parts
    assert met


def test_stages_come_in_order_in_both_matrices() -> None:
    folded = in_rank_order((2, 4), (4, 1, 1, 2), (4, 1, 2, 1))
    assert folded is not None
    for placement in (folded.attention, folded.experts):
        lines = placement.rank_tensor().reshape(4, -1).T
        assert lines.tolist() == [[0, 2, 4, 6], [1, 3, 5, 7]]
    assert in_rank_order((3, 4), (1, 4, 1, 3), (1, 4, 1, 3)) is None


def test_unknown_axes_and_sizes_that_do_not_fit_are_refused() -> None:
    folded = in_rank_order((2, 4), (2, 2, 1, 2), (2, 1, 4, 1))
    assert folded is not None
    folded.check((2, 4), (2, 2, 1, 2), (2, 1, 4, 1))
    with pytest.raises(InputError, match="axis 'ep': must be one of pp, dp, cp, tp"):
        folded.attention_groups(["ep"])
    with pytest.raises(InputError, match="axis 'dp': must be one of pp, ed, ep, et"):
        folded.expert_groups(["dp"])
    with pytest.raises(InputError, match="axis sizes"):
        folded.check((2, 4), (2, 2, 1, 2), (2, 2, 2, 1))
    for attention, experts in (
        ((2, 2), (2, 8)),
        ((8, 1), (4, 2)),
        ((0, 8), (0, 8)),
        ((8,), (8, 1)),
    ):
        with pytest.raises(InputError, match=r"number of devices|must be one size"):
            pair_count((2, 4), attention, experts)
    for rule in (AxisRule(4, 0, inside=True), FixedEntry(0, 2, 1), FixedEntry(-1, 0, 1)):
        with pytest.raises(InputError, match="must be on rows 0 to 3"):
            list(pairs((2, 4), (2, 4), (2, 2, 2), [rule]))


@pytest.mark.parametrize("axes", [PP_OUTERMOST, DP_OUTERMOST, HSDP])
def test_rows_of_both_as_one_and_back(axes: FoldedAxes) -> None:
    sides = (8,) * len(axes.attention)
    attention = Placement(tuple((side // 4, 2) for side in sides))
    experts = Placement(attention.matrix[: len(axes.experts)])
    folded = FoldedPlacement(attention, experts, axes)
    assert len(folded.rows) == len(axes.rows) == len(sides) * 2 - 1
    assert FoldedPlacement.of_rows(folded.rows, axes) == folded
    assert len({folded, replace(folded)}) == 1
    with pytest.raises(InputError, match="must be those of"):
        FoldedPlacement.of_rows(folded.rows[1:], axes)


@st.composite
def ruled(draw: st.DrawFn) -> PlacementProblem:
    """Sizes of two matrices with rules that some pair obeys, mostly."""
    levels, axes, folded = draw(folded_sizes())
    question = PlacementProblem(levels, axes, folded=folded)
    witness = next(all_rows(question), None)
    found = draw(st.lists(rules(witness), max_size=3)) if witness else []
    return replace(question, rules=tuple(found))


@settings(max_examples=examples_of(200), deadline=None)
@given(ruled())
def test_pairs_are_those_of_brute_force(question: PlacementProblem) -> None:
    first = len(question.axes) - question.folded
    attention = question.axes[:first]
    assume(len(attention) > 1)
    asked = (question.levels, attention, attention[:1] + question.axes[first:], question.rules)
    found = []
    for row in pairs(*asked):
        assert len(row.attention)
        assert len(row.experts)
        for matrix, other in product(row.attention.tolist(), row.experts.tolist()):
            assert tuple(matrix[0]) == tuple(other[0]) == row.pp_row
            found.append(tuple(map(tuple, matrix + other[1:])))
    expected = [rows for rows, _ in valid_matrices(question)]
    assert sorted(found) == expected
    assert pair_count(*asked) == len(expected)


@pytest.mark.parametrize(
    "sizes", [((2, 4, 8), (4, 2, 2, 4), (4, 4, 4, 1)), ((6, 4), (2, 3, 2, 2), (2, 2, 6, 1))]
)
def test_counts_are_sums_of_products_of_the_formulas(
    sizes: tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]],
) -> None:
    levels, attention, experts = sizes
    stages = [
        row
        for row in product(*map(range, (n + 1 for n in levels)))
        if math.prod(row) == attention[0]
    ]
    parts = [
        matrix_count(levels, attention, rows=[row]) * matrix_count(levels, experts, rows=[row])
        for row in stages
    ]
    assert pair_count(levels, attention, experts) == sum(parts) > 4


SPACES = [
    (256, (32, 8), 2436, 67_368),
    (256, (4, 64), 2436, 40_258),
    (2048, (256, 8), 4600, 204_423),
    (2048, (8, 32, 8), 4600, 5_183_267),
    (16384, (2048, 8), 5808, 327_909),
    (16384, (8, 8, 32, 8), 5808, 296_720_524),
]


@pytest.mark.parametrize("space", but_the_first(*SPACES))
def test_pairs_of_every_strategy_of_a_large_model_are_counted(
    space: tuple[int, tuple[int, ...], int, int],
) -> None:
    """DeepSeek-V3: tp and et up to 8, cp up to 32, pp up to 64 stages, 256 experts."""
    devices, levels, degrees, count = space
    strategies = [
        (attention, experts)
        for attention, experts in degrees_of(devices)
        if max(attention[3], experts[3]) <= 8 and attention[2] <= 32
        if attention[0] <= 64 and experts[2] <= 256
    ]
    assert len(strategies) == degrees
    assert sum(pair_count(levels, *both) for both in strategies) == count


def test_a_rule_by_name_is_on_the_matrix_that_has_the_axis() -> None:
    levels, names = (2, 2, 4), ("rack", "node", "gpu")
    asked = (levels, (2, 2, 1, 4), (2, 1, 8, 1))
    for text, matrix, row in (("tp within node", 0, 3), ("ep within rack", 1, 2)):
        rule = parse_rule(text, True, PP_OUTERMOST.rows, names)
        level = names.index(text.split()[2])
        kept = [one for block in pairs(*asked, [rule]) for one in block.placements()]
        every = [one for block in pairs(*asked) for one in block.placements()]
        sides = [(one.attention, one.experts)[matrix].matrix[row] for one in every]
        assert kept == [
            one for one, side in zip(every, sides, strict=True) if max(side[: level + 1]) == 1
        ]
        assert 0 < len(kept) < len(every)


def test_a_rule_on_an_axis_that_both_have_is_on_both() -> None:
    rule = parse_rule("dpr across rack", True, HSDP.rows, ("rack", "gpu"))
    assert HSDP.in_both([rule]) == (AxisRule(1, 0, inside=False), AxisRule(5, 0, inside=False))
    stage = parse_rule("pp within rack", True, HSDP.rows, ("rack", "gpu"))
    assert HSDP.in_both([stage]) == (AxisRule(0, 0, inside=True),)


def test_listed_matrices_cannot_be_changed() -> None:
    row = next(pairs((2, 4), (2, 2, 1, 2), (2, 1, 4, 1)))
    for one in (row.attention, row.experts):
        with pytest.raises(ValueError, match="read-only"):
            one[0, 0, 0] = 7


def test_the_page_prints_what_it_shows(capsys: pytest.CaptureFixture[str]) -> None:
    page = (ROOT / "docs/encodings.md").read_text()
    ((code, shown),) = re.findall(r"```python\n(.*?)```\n\n```text\n(.*?)```", page, re.DOTALL)
    exec(compile(code, "encodings.md", "exec"), {})
    assert capsys.readouterr().out == shown
