"""What naming an algorithm gives, where the library's own rule takes a slower one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

import p2smt
from p2smt.cluster.file import load_topology
from p2smt.cluster.library.registry import register_library
from p2smt.cluster.topology import Algorithm, Topology
from p2smt.cluster.trimmed import trimmed
from p2smt.collectives.names import RequestKind
from p2smt.cost import accuracy
from p2smt.cost.accuracy import SIZE_CLASSES, PriceBasis
from p2smt.cost.scene import Scene, cheapest_single, named_way
from p2smt.parallelism.placement import Placement
from p2smt.parallelism.request import Objective, Problem
from p2smt.plans.ranges import range_of_step
from p2smt.plans.solution import ProgramGain, Solution
from p2smt.report.costs.request_table import choice_lines
from p2smt.report.outputs.shape import json_of
from p2smt.report.solution_data import solution_data
from p2smt.search.gain import single_of
from tests.cli.tools import cli
from tests.search.solve.test_without_proof import text_of

SIZES = tuple(2**n for n in range(10, 34))
ALL_REDUCE = RequestKind.ALL_REDUCE


def scene(topology: Topology) -> Scene:
    """All devices of two levels in one group."""
    return Scene.of(topology, Placement((topology.sizes,)), (0,))


def chosen_otherwise(topology: Topology, *, same_algorithm: bool = False) -> list[int]:
    """Sizes at which the library takes another algorithm than the cheapest, or only another
    protocol."""
    here = scene(topology)
    return [
        size
        for size in SIZES
        if (way := named_way(here, ALL_REDUCE, size))
        and (way.chosen.algorithm == way.cheapest.algorithm) is same_algorithm
    ]


@pytest.mark.parametrize(
    ("preset", "same_algorithm"),
    [("gcp-a3-mega:4", False), ("mi300x:2", False), ("dgx-a100:2", False), ("dgx-b200:4", True)],
)
def test_what_is_named_is_what_then_runs(preset: str, same_algorithm: bool) -> None:
    """By its algorithm alone, or with the protocol where the rule would take another.

    A protocol alone would leave the library free to take another algorithm.
    """
    topology = load_topology(preset)
    here = scene(topology)
    sizes = chosen_otherwise(topology, same_algorithm=same_algorithm)
    assert sizes
    for size in sizes:
        way = named_way(here, ALL_REDUCE, size)
        assert way is not None
        assert way.chosen == here.fixed_time(ALL_REDUCE, size)
        assert way.cheapest == cheapest_single(here, ALL_REDUCE, size)
        assert way.cheapest.seconds < way.chosen.seconds
        only = topology.running((Algorithm(way.cheapest.algorithm),))
        by_rule = replace(here, topology=only).fixed_time(ALL_REDUCE, size)
        algorithm = way.cheapest.algorithm.replace("-", "")
        assert way.settings.lower().split()[0] == f"nccl_algo={algorithm}"
        assert ("NCCL_PROTO=" in way.settings) == (by_rule.protocol != way.cheapest.protocol)
        if "NCCL_PROTO=" not in way.settings:
            assert by_rule.seconds == way.cheapest.seconds


def test_where_the_rule_takes_the_cheapest_nothing_is_named() -> None:
    here = scene(load_topology("dgx-h100:2"))
    for size in SIZES:
        chosen, cheapest = (
            here.fixed_time(ALL_REDUCE, size),
            cheapest_single(here, ALL_REDUCE, size),
        )
        assert (named_way(here, ALL_REDUCE, size) is None) == (
            cheapest.seconds >= chosen.seconds * (1 - 1e-9)
        )


def test_only_libraries_that_take_variables_have_settings() -> None:
    topology = load_topology("gcp-a3-mega:4")
    size = chosen_otherwise(topology)[0]
    other = replace(topology.known_library, name="vendorless", vendor="example")
    register_library(other)
    way = named_way(scene(topology.under("vendorless")), ALL_REDUCE, size)
    assert way is not None
    assert way.settings == ""


@pytest.mark.parametrize("name", ["none", "gloo"])
def test_without_a_choice_nothing_is_named(name: str) -> None:
    topology = load_topology("dgx-h100:2").under(name)
    assert [named_way(scene(topology), ALL_REDUCE, size) for size in SIZES] == [None] * len(SIZES)
    cheapest = load_topology("mi300x:2").cheapest()
    assert chosen_otherwise(cheapest) == []


Ranges = Callable[[float], None]


@pytest.fixture
def ranges(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Ranges:
    """Make measured times of every system at most so many times the predicted ones."""

    def published(high: float) -> None:
        fabrics = "xgmi infiniband nvlink4 fastrak"
        rows = [
            f'{{system: {system}, library: {library}, collective: "*", size_class: {size}, '
            f"count: 9, low: 1, high: {high}}}"
            for system, library in ((fabrics, "nccl"), (fabrics, "rccl"), ('"*"', '"*"'))
            for size, _ in SIZE_CLASSES
        ]
        file = tmp_path / f"{high}.yaml"
        file.write_text(f"blind: [{', '.join(rows)}]")
        monkeypatch.setattr(accuracy, "ACCURACY_FILE", file)

    return published


def test_the_part_that_is_the_library_s_choice() -> None:
    half = ProgramGain(10.0, 7.5, 5.0)
    assert (half.over_singles, half.part_by_choice) == (1.0, 0.5)
    assert half.by_choice == pytest.approx(1 / 3)
    more = ProgramGain(10.0, 4.0, 5.0)
    assert (more.part_by_choice, more.by_choice) == (1.0, 1.5)
    assert list(choice_lines(ProgramGain(10.0, 10.0, 5.0, advised=True))) == []


def named_gain(preset: str) -> tuple[Problem, Solution, ProgramGain]:
    """The first size at which a program gains what naming an algorithm gives, at least in part."""
    topology = load_topology(preset)
    for size in chosen_otherwise(topology):
        axes = p2smt.parse_axes(f"dp={topology.devices}")
        problem = Problem(topology, axes, (p2smt.reduce(f"dp={size}B"),))
        found = p2smt.solve(problem, top=1)
        assert found.gain is not None
        if found.gain.programs is not None and found.gain.programs.named:
            return problem, found, found.gain.programs
    raise AssertionError(f"{preset}: no program gains what could be named")


@pytest.mark.parametrize("preset", ["mi300x:2", "gcp-a3-mega:4"])
def test_an_answer_names_what_its_programs_do_not_gain(preset: str, ranges: Ranges) -> None:
    """A program gains where the rule takes a slower algorithm than the library has."""
    ranges(1.0)
    problem, found, gain = named_gain(preset)
    assert found.best is not None
    assert found.best.matrix is not None
    (request,), (answer,) = problem.requests, found.best.requests
    placement, size = Placement(found.best.matrix), request.payload_bytes
    here = scene(problem.topology)
    assert answer.program is not None
    assert len(answer.program) > 1
    assert gain.singles_s == answer.single_s == here.fixed_time(ALL_REDUCE, size).seconds
    assert gain.named_s == cheapest_single(here, ALL_REDUCE, size).seconds < gain.singles_s
    single = single_of(problem, placement, request)
    assert single.gain_of(answer.seconds) == gain
    assert single.gain_of(answer.single_s) is None
    (line,) = choice_lines(gain)
    assert "(NCCL_ALGO=" in line
    assert line.endswith("; by the model only: no table has both algorithms")
    assert f": its rule chooses {here.fixed_time(ALL_REDUCE, size).algorithm} " in line
    assert line in " ".join(text_of(found).split())
    data = json_of(solution_data(found))
    assert data["program_gain"] == gain.over_singles > 0
    assert data["gain_by_choice"] == gain.by_choice > 0
    (named,) = data["named_algorithms"]
    assert named["request"] == str(request)
    assert named["seconds"] == gain.named_s
    assert named["settings"].startswith("NCCL_ALGO=")
    assert data["naming_advised"] is True


def test_what_ranges_reach_is_no_advice(ranges: Ranges) -> None:
    """The numbers stand in the JSON, but nobody is told to override the library's choice."""
    _, _, gain = named_gain("gcp-a3-mega:4")
    (way,) = (way for _, way in gain.named)
    for above, advised in ((0.99, True), (1.01, False)):
        ranges(1 + above * (way.chosen.seconds / way.cheapest.seconds - 1))
        _, found, again = named_gain("gcp-a3-mega:4")
        assert again.named == gain.named
        assert again.advised is advised
        assert bool(list(choice_lines(again))) is advised
        assert json_of(solution_data(found))["naming_advised"] is advised
        assert ("NCCL_ALGO" in text_of(found)) is advised


def test_what_nobody_measured_is_no_advice() -> None:
    """2 nodes of 16 A100, 1 MiB, of which no table tells: a ring by the rule, a tree by the model.

    The range of the rule's time alone would not reach that of the tree.
    """
    topology = load_topology("gcp-a2-highgpu-16g:2")
    problem = Problem(topology, p2smt.parse_axes("dp=32"), (p2smt.reduce("dp=1MiB"),))
    single = single_of(problem, Placement((topology.sizes,)), problem.requests[0])
    assert single.step.algorithm == "ring"
    assert single.way is not None
    assert single.way.cheapest.algorithm == "tree"
    chosen = range_of_step(topology, ALL_REDUCE.value, single.step, topology.sizes[1])
    assert chosen is not None
    assert chosen.basis is PriceBasis.ASSUMED
    assert single.way.cheapest.seconds < chosen.low_s
    assert not single.advised


@pytest.mark.parametrize("said", ["as published", "the reverse", "nothing"])
def test_tables_of_both_algorithms_are_more_than_the_model(
    said: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """3 NVL72 racks of 8 GPUs each: tables have the tree faster, which the rule leaves."""
    if said != "as published":
        written = accuracy.ACCURACY_FILE.read_text()
        none = written.partition(f"\n{accuracy.BOTH}:")[0]
        turned = written.replace("faster: tree, slower: ring", "faster: ring, slower: tree")
        (tmp_path / "a.yaml").write_text(none if said == "nothing" else turned)
        monkeypatch.setattr(accuracy, "ACCURACY_FILE", tmp_path / "a.yaml")
    topology = trimmed(load_topology("gb200-nvl72:3"), {"gpu": 8})
    request, named = p2smt.reduce("dp=16GiB"), (Algorithm.RING, Algorithm.TREE)
    problem = Problem(topology, p2smt.parse_axes("dp=24"), (request,), algorithms=named)
    single = single_of(problem, Placement((topology.sizes,)), request)
    assert single.way is not None
    assert (single.way.chosen.algorithm, single.way.cheapest.algorithm) == ("ring", "tree")
    assert single.advised is (said != "the reverse")
    known = {"as published": True, "nothing": None, "the reverse": False}[said]
    assert single.way.known is known
    gain = single.gain_of(single.way.cheapest.seconds)
    assert gain is not None
    assert [line.endswith("on such a system agree") for line in choice_lines(gain)] == {
        "as published": [True],
        "nothing": [False],
        "the reverse": [],
    }[said]


def test_a_single_collective_runs_by_the_algorithms_of_the_problem() -> None:
    problem, found, _ = named_gain("gcp-a3-mega:4")
    assert found.best is not None
    (request,), placement = problem.requests, Placement(found.best.matrix or ())
    ring = replace(problem, algorithms=(Algorithm.RING,))
    (answer,) = p2smt.solve(ring, top=1).alternatives[0].requests
    single = single_of(ring, placement, request)
    assert single.step.algorithm == "ring" != single_of(problem, placement, request).step.algorithm
    assert single.step.seconds == answer.single_s


def with_small(kind: str, objective: Objective) -> tuple[Solution, ProgramGain]:
    """The problem of named_gain with a second request, which decides nothing of the largest one."""
    problem, _, _ = named_gain("gcp-a3-mega:4")
    (large,) = problem.requests
    size = large.payload_bytes
    small = p2smt.reduce(f"dp={size}B") if kind == "same" else p2smt.reduce("dp=8B")
    large = replace(large, times=3)
    both = replace(problem, requests=(large, small), objective=objective)
    found = p2smt.solve(both, top=1)
    assert found.gain is not None
    assert found.gain.programs is not None
    return found, found.gain.programs


def test_only_what_lowers_the_largest_request_is_named() -> None:
    found, gain = with_small("same", "sum")
    assert [request for request, _ in gain.named] == list(found.problem.requests)
    found, largest = with_small("same", "max")
    assert largest.named == gain.named[:1]
    assert largest.named_s == 3 * largest.named[0][1].cheapest.seconds
    assert len(json_of(solution_data(found))["named_algorithms"]) == 1


def test_gains_of_several_requests_are_over_single_collectives(ranges: Ranges) -> None:
    """Also where only one of them has an algorithm to name."""
    ranges(1.0)
    found, gain = with_small("other", "sum")
    assert len(gain.named) == 1
    shown = " ".join(text_of(found).split())
    assert " over single collectives) by the library's own ring" in shown
    assert "over the single collective)" not in shown
    _, one, _ = named_gain("gcp-a3-mega:4")
    assert " over the single collective) by the" in " ".join(text_of(one).split())


def test_a_list_of_programs_names_it_too(ranges: Ranges) -> None:
    ranges(1.0)
    problem, found, gain = named_gain("mi300x:2")
    assert found.best is not None
    size, matrix = problem.requests[0].payload_bytes, found.best.placement.text()
    words = ("programs", "-t", "mi300x:2", "--axes", "dp=16", "--placement", matrix)
    asked = (*words, "--reduce", f"dp={size}B", "--top", "2")
    (line,) = choice_lines(gain)
    assert line in cli(*asked, "--details").out.splitlines()
    data = cli(*asked, "--json").json()
    assert data["single_collective_s"] == gain.singles_s
    assert data["program_gain"] == pytest.approx(gain.over_singles)
    assert data["gain_by_choice"] == gain.by_choice
    assert data["named_algorithm"]["settings"].startswith("NCCL_ALGO=")
