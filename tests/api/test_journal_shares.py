"""Counts of cubes, against the cubes and spaces themselves."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest

from p2smt.api.efficiencies import efficiency_of
from p2smt.api.journal_shares import matrix_share, sizes_of, strategy_share
from p2smt.api.workload import read_model
from p2smt.cluster.file import load_topology
from p2smt.errors import InputError
from p2smt.parallel_search.subproblem import Subproblem
from p2smt.parallelism.placement import AxisRule
from p2smt.search.spaces.matrix_subproblems import MatrixSubproblems
from p2smt.training.axis_sizes import possible_sizes
from p2smt.training.search.candidates import Candidates
from p2smt.training.search.choices import Choices
from p2smt.training.search.question import PlanQuestion, SpaceLimits
from p2smt.training.search.strategies import space_of
from p2smt.training.strategy import AXES, Batch
from tests.tiers import but_the_first

NAMES, LEVELS, SIZES = ("tp", "dp", "pp"), (4, 2, 6), (6, 2, 4)
RULES = (AxisRule(0, 0, False), AxisRule(1, 1, True))


@pytest.mark.parametrize("rules", [(), RULES])
def test_parts_of_a_cube_share_what_it_has(rules: tuple[AxisRule, ...]) -> None:
    cubes = MatrixSubproblems(NAMES, LEVELS, SIZES, rules)
    share, waiting = matrix_share(NAMES, LEVELS, SIZES, rules), [Subproblem()]
    while waiting:
        cube = waiting.pop()
        assert share(cube) == len(list(cubes.matrices(cube)))
        children = cubes.split(cube)
        assert not children or sum(map(share, children)) == share(cube)
        waiting += children
    assert share(Subproblem()) >= 1


@pytest.mark.parametrize(
    "path",
    [
        ("dp:1,2,1",),
        ("tp:1,1,06",),
        ("tp:1,1, 6",),
        ("tp: 1,1,6",),
        ("tp:1,1,6,",),
        ("tp:1,1,+6",),
        ("tp:1,1,\u0666",),
        ("tp:1,1",),
        ("tp",),
        ("",),
        ("tp:1,1,6", "pp:4,1,1"),
        ("tp:1,1,6", "dp:2,1,1", "pp:2,2,1", "x:1"),
    ],
)
def test_a_cube_has_one_name(path: tuple[str, ...]) -> None:
    with pytest.raises(InputError):
        matrix_share(NAMES, LEVELS, SIZES)(Subproblem(path))


def question(**changes: object) -> PlanQuestion:
    rack = load_topology("dgx-h100:4")
    model, batch = read_model("llama-3-8b"), Batch(sequences=96, tokens=8192)
    return replace(PlanQuestion(model, batch, rack, efficiency_of(rack)), **changes)  # type: ignore[arg-type]


QUESTIONS: tuple[dict[str, object], ...] = (
    {"batch": Batch(sequences=48, tokens=4096)},
    {},
    {"fixed": (("tp", 4),)},
    {"fixed": (("vpp", 4), ("micro_batch", 3))},
    {"fixed": (("sequence_parallel", True), ("zero", 2))},
    {"fixed": (("dp", 2), ("recompute", None))},
    {"space": SpaceLimits(tp=2, cp=4, pp=8, vpp=2, micro_batch=1)},
    {"space": SpaceLimits(sequence_parallel=(True,), cp=16, vpp=None)},
    {"topology": load_topology("dgx-h100:6"), "batch": Batch(sequences=36, tokens=3072)},
)


@pytest.mark.parametrize("changes", but_the_first(*QUESTIONS))
def test_sizes_of_axes_are_those_of_the_space(changes: dict[str, object]) -> None:
    fixed = tuple(pair for pair in changes.get("fixed", ()) if pair[1] is not None)  # type: ignore[attr-defined]
    asked = question(**{**changes, "fixed": fixed})
    candidates = Candidates.of(asked, space_of(asked, Choices.of(asked)))
    assert possible_sizes(asked) == set(map(tuple, candidates.sizes.tolist()))


def test_strategies_are_counted_by_sizes_and_matrices() -> None:
    asked = question(fixed=(("tp", 4),), rules=(AxisRule(AXES.index("tp"), 0, True),))
    share = strategy_share(asked)
    candidates = Candidates.of(asked, space_of(asked, Choices.of(asked)))
    assert share(Subproblem()) == sum(candidates.placements) > 0
    for sizes, many in zip(candidates.sizes.tolist(), candidates.placements, strict=True):
        text = ",".join(f"{axis}={size}" for axis, size in zip(AXES, sizes, strict=True))
        cubes = MatrixSubproblems(AXES, asked.topology.sizes, tuple(sizes), asked.rules, (text,))
        assert share(Subproblem((text,))) == many
        parts = cubes.split(Subproblem((text,)))
        assert not parts or sum(map(share, parts), Fraction(0)) == many


@pytest.mark.parametrize(
    "text", ["", "pp=1", "pp=1,dp=8,cp=1,tp=04", "dp=8,pp=1,cp=1,tp=4", "pp=1,dp=8,cp=1,tp=4,x=1"]
)
def test_sizes_are_written_in_one_way(text: str) -> None:
    assert sizes_of("pp=1,dp=8,cp=1,tp=4") == (1, 8, 1, 4)
    with pytest.raises(InputError):
        sizes_of(text)


def test_sizes_of_no_strategy_are_refused() -> None:
    share = strategy_share(question())
    with pytest.raises(InputError, match="no valid strategy"):
        share(Subproblem(("pp=1,dp=32,cp=1,tp=3",)))
