"""Payloads in parts: what brute force finds, certificates changed in one number, runs, screens."""

from __future__ import annotations

import copy
import json
import shlex
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from itertools import combinations, combinations_with_replacement
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from p2smt.cluster.topology import Algorithm, Level, Link, LinkKind, Piece, Topology
from p2smt.collectives.names import RequestKind
from p2smt.cost.scene import Scene
from p2smt.cost.step_time import StepTime
from p2smt.parallelism.placement import ParallelismAxis, Placement
from p2smt.parallelism.request import Problem, Request
from p2smt.plans.check.check_split import end_s, overlaps
from p2smt.plans.solution import PayloadSplit, Solution
from p2smt.programs.program import Hierarchy, Program
from p2smt.search.program_synthesis import Task
from p2smt.search.solve import solve
from p2smt.search.split import as_early_as_can_be
from tests.cli.tools import Outcome, assert_one_error, cli
from tests.oracles.programs import all_programs
from tests.tiers import examples_of

MIB = 2**20
CUBE = """
name: cube
library: none
algorithms: [ring]
levels:
  - {name: plane, size: 4, link: {kind: ring, bandwidth: 1600 GB/s, latency: 1 us}}
  - {name: line, size: 4, link: {kind: ring, bandwidth: 400 GB/s, latency: 1 us}}
  - {name: chip, size: 4, link: {kind: ring, bandwidth: 100 GB/s, latency: 1 us}}
"""
GRID = """
name: grid
library: none
algorithms: [ring]
levels:
  - {name: line, size: 2, link: {kind: ring, bandwidth: 20 GB/s, latency: 1 us}}
  - {name: chip, size: 4, link: {kind: ring, bandwidth: 10 GB/s, latency: 1 us}}
"""
SOLVE = "solve -t grid.yaml --axes dp=8 --reduce dp=1MiB --split"


def levels(*rates: tuple[int, float, float]) -> Topology:
    """Ring levels of size, bandwidth in B/s and latency in s, outermost first."""
    made = (
        Level(f"l{j}", size, Link(LinkKind.RING, (Piece("simple", latency, rate),)))
        for j, (size, rate, latency) in enumerate(rates)
    )
    return Topology("levels", tuple(made), algorithms=(Algorithm.RING,))


def solved(
    topology: Topology, payload: int, pipeline: int | None = 1
) -> tuple[Solution, PayloadSplit]:
    request = Request(RequestKind.ALL_REDUCE, ("dp",), payload, 1)
    axes = (ParallelismAxis("dp", topology.devices),)
    found = solve(Problem(topology, axes, (request,), pipeline=pipeline), top=1, split=True)
    assert found.splits is not None
    (split,) = found.splits
    return found, split


TORUS = levels((4, 1600e9, 1e-6), (4, 400e9, 1e-6), (4, 100e9, 1e-6))


def test_on_a_cube_three_rotations_have_a_third_each() -> None:
    """18 hops and a third of what one order sends; volume prices are even."""
    found, split = solved(TORUS, MIB)
    assert [part.share for part in split.parts] == [Fraction(1, 3)] * 3
    assert len({str(part.answer.program) for part in split.parts}) == 3
    assert split.prices == (Fraction(1, 3),) * 3
    assert split.seconds == pytest.approx(18e-6 + 21 / 64 * MIB / 1e11, rel=1e-5)
    assert split.least_s == pytest.approx(18e-6)
    assert not split.by_bytes
    assert found.best is not None
    assert found.best.objective_s > 1.3 * split.seconds


# Against brute force. -----------------------------------------------------------------------


def every_program(sizes: tuple[int, int], length: int) -> list[tuple[Program, tuple[int, ...]]]:
    """Valid all-reduces with the rows that each step works on, by trying all instructions."""
    hierarchy = Hierarchy.of(["l0", "l1"], sizes)
    task = Task(RequestKind.ALL_REDUCE, hierarchy, length)
    problem = task.problem()
    found = all_programs(problem)
    return [(task.program(problem, indices), rows) for indices, rows in found.items()]


def all_orders(first: int, second: int) -> Iterator[tuple[int, ...]]:
    """Every order in which the steps of two parts can be given their turn."""
    for places in combinations(range(first + second), first):
        yield tuple(0 if at in places else 1 for at in range(first + second))


def in_turn(steps: Sequence[Sequence[StepTime]], turns: Sequence[int]) -> float:
    """The end of the last step, where steps take links in this order."""
    free: dict[int, float] = {}
    ready, done, end = [0.0] * len(steps), [0] * len(steps), 0.0
    for part in turns:
        step = steps[part][done[part]]
        used = [j for j, wire_s in enumerate(step.level_wire_s) if wire_s]
        start = max([ready[part], *(free.get(j, 0.0) for j in used)])
        free.update({j: start + step.level_wire_s[j] for j in used})
        ready[part], done[part] = start + step.seconds, done[part] + 1
        end = max(end, ready[part])
    return end


RATES = st.sampled_from([1.0, 2.0, 3.0, 5.0, 16.0])
LATENCIES = st.sampled_from([0.0, 1.0, 40.0])


@settings(max_examples=examples_of(8))
@given(st.sampled_from([(2, 2), (2, 4), (3, 2)]), RATES, RATES, LATENCIES, LATENCIES)
def test_no_split_that_is_tried_is_below_the_bound(
    sizes: tuple[int, int], outer: float, inner: float, far: float, near: float
) -> None:
    topology = levels((sizes[0], outer, far), (sizes[1], inner, near))
    payload, shares = 1200, (Fraction(1, 2), Fraction(1, 3), Fraction(1, 6))
    _, split = solved(topology, payload)
    placement = Placement((sizes,))
    scene = Scene.of(topology, placement, (0,))
    programs = every_program(sizes, 3)
    assert split.least_s is not None
    best = split.seconds
    for one, other in combinations_with_replacement(programs, 2):
        for share in shares:
            sizes_of = (int(payload * share), payload - int(payload * share))
            both = [
                scene.program_times(program, rows, part)
                for (program, rows), part in zip((one, other), sizes_of, strict=True)
            ]
            took = min(in_turn(both, turns) for turns in all_orders(*map(len, both)))
            assert took >= split.least_s * (1 - 1e-9)
            best = min(best, took)
    assert split.seconds <= best * 1.1


def by_hand(costs: Sequence[tuple[Fraction, Fraction]]) -> Fraction:
    """The most that prices y, 1 - y prove: at an end, or where two programs cost the same."""
    ends = {Fraction(0), Fraction(1)}
    for (a, b), (c, d) in combinations(costs, 2):
        if (slope := (a - b) - (c - d)) and 0 <= (y := (d - b) / slope) <= 1:
            ends.add(y)
    return max(min(y * a + (1 - y) * b for a, b in costs) for y in ends)


@settings(max_examples=examples_of(10))
@given(st.sampled_from([(2, 2), (2, 4), (3, 2)]), RATES, RATES)
def test_the_prices_prove_as_much_as_any(
    sizes: tuple[int, int], outer: float, inner: float
) -> None:
    topology = levels((sizes[0], outer, 0.0), (sizes[1], inner, 0.0))
    scene = Scene.of(topology, Placement((sizes,)), (0,))
    costs = set[tuple[Fraction, Fraction]]()
    for program, rows in every_program(sizes, 5):
        steps = scene.program_times(program, rows, 2**20)
        far, near = (
            sum((Fraction(step.level_wire_s[j]) for step in steps), Fraction(0)) for j in (0, 1)
        )
        costs.add((far, near))
    _, split = solved(topology, 2**20)
    assert split.least_s is not None
    most = float(by_hand(sorted(costs)))
    assert most * (1 - 2e-4) <= split.least_s <= most * (1 + 1e-9)


def test_steps_wait_for_links_and_for_the_step_before() -> None:
    """Two parts of two steps: 3 and 2 on the first level, then 2 and 3 on the second."""

    def step(level: int, wire_s: float) -> StepTime:
        rates = (wire_s, 0.0) if level == 0 else (0.0, wire_s)
        return StepTime(wire_s + 1, wire_s, "ring", "", level, 1.0, 1.0, rates)

    parts = [[step(0, 3), step(1, 2)], [step(0, 2), step(1, 3)]]
    starts = as_early_as_can_be(parts)
    assert not list(overlaps(parts, starts))
    assert starts == ((0.0, 4.0), (3.0, 6.0))
    assert end_s(parts, starts) == 10.0
    assert list(overlaps(parts, ((0.0, 4.0), (2.0, 6.0))))
    assert list(overlaps(parts, ((0.0, 3.0), (3.0, 6.0))))


def said(line: str) -> Outcome:
    return cli(*shlex.split(line))


# Files and runs. ----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def plan(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("split")
    (folder / "grid.yaml").write_text(GRID, encoding="utf-8")
    text = SOLVE.replace("grid.yaml", str(folder / "grid.yaml"))
    assert said(f"{text} -o {folder / 'plan.json'}").code == 0
    data: dict[str, Any] = json.loads((folder / "plan.json").read_text(encoding="utf-8"))
    assert data["splits"][0]["parts"]
    return data


def test_a_plan_keeps_its_split(plan: dict[str, Any], tmp_path: Path) -> None:
    file = tmp_path / "plan.json"
    file.write_text(json.dumps(plan), encoding="utf-8")
    checked = said(f"verify {file}")
    assert checked.code == 0
    assert "splits" in checked.out
    shown = said(f"show {file}")
    assert "in parts at once" in " ".join(shown.out.split())


def _less(text: str) -> str:
    return str(Fraction(text) - Fraction(1, 60))


def _moved(split: dict[str, Any]) -> None:
    split["parts"][0]["share"] = _less(split["parts"][0]["share"])


def _priced(split: dict[str, Any]) -> None:
    split["prices"][0]["price"] = str(Fraction(split["prices"][0]["price"]) + Fraction(1, 1000))


def _priced_otherwise(split: dict[str, Any]) -> None:
    for one, price in zip(split["prices"], ("1", "0"), strict=True):
        one["price"] = price


def _other_program(split: dict[str, Any]) -> None:
    part = split["parts"][0]["request"]
    part["program"], part["steps"] = "all-reduce inside root", part["steps"][:1]


MUTANTS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "a share": _moved,
    "a part left out": lambda split: split["parts"].pop(),
    "a price": _priced,
    "other prices": _priced_otherwise,
    "a level": lambda split: split["prices"][0].update(level="chip"),
    "the bound": lambda split: split.update(least_s=split["least_s"] * 1.001),
    "the time": lambda split: split.update(seconds=split["seconds"] * 0.999),
    "a start": lambda split: split["parts"][-1]["starts_s"].__setitem__(0, 0.0),
    "starts": lambda split: split["parts"][0]["starts_s"].pop(),
    "bytes": lambda split: split["parts"][0]["request"].update(bytes=1),
    "a program": _other_program,
    "a step": lambda split: split["parts"][0]["request"]["steps"][0].update(seconds=1e-9),
    "groups": lambda split: split["parts"][0]["request"]["steps"][0]["groups"][0].pop(),
    "times": lambda split: split["parts"][0]["request"].update(times=2),
    "the request": lambda split: split.update(request=1),
    "no prices": lambda split: split.update(prices=[]),
    "no bound": lambda split: split.update(least_s=None),
    "no parts": lambda split: split.update(parts=[]),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_a_split_changed_in_one_place_is_refused(
    name: str, plan: dict[str, Any], tmp_path: Path
) -> None:
    changed = copy.deepcopy(plan)
    MUTANTS[name](changed["splits"][0])
    file = tmp_path / "plan.json"
    file.write_text(json.dumps(changed), encoding="utf-8")
    outcome = said(f"verify {file}")
    assert outcome.code == 1, outcome
    assert "split" in outcome.out


@pytest.mark.parametrize("text", ["1/0", "-1/3", "0.5", "x", "1/" + "9" * 40, ""])
def test_what_is_no_fraction_is_one_line(text: str, plan: dict[str, Any], tmp_path: Path) -> None:
    changed = copy.deepcopy(plan)
    changed["splits"][0]["prices"][0]["price"] = text
    file = tmp_path / "plan.json"
    file.write_text(json.dumps(changed), encoding="utf-8")
    assert_one_error(said(f"verify {file}"))


def test_every_part_is_run_and_compared(plan: dict[str, Any], tmp_path: Path) -> None:
    file = tmp_path / "plan.json"
    file.write_text(json.dumps(plan), encoding="utf-8")
    outcome = said(f"run {file} --backend reference --payload 8KiB --details --json")
    assert outcome.code == 0
    sizes = [one["payload_bytes"] for one in json.loads(outcome.out)["requests"]]
    assert sizes[0] == sum(sizes[1:]) == 8192
    changed = copy.deepcopy(plan)
    changed["splits"][0]["parts"][0]["request"]["steps"].pop()
    file.write_text(json.dumps(changed), encoding="utf-8")
    assert said(f"run {file} --backend reference --payload 8KiB").code == 1


# Screens. -----------------------------------------------------------------------------------


def test_where_nothing_gains_that_is_said_with_its_prices() -> None:
    outcome = said(
        "solve -t dgx-h100:4 --nominal --axes dp=32 --reduce dp=1GiB --pipeline auto --split"
    )
    text = " ".join(outcome.out.split())
    assert "no split gains more than 7.9 % (prices node 2/125, gpu 123/125)" in text
    assert "0.21 % over one program in ever more chunks" in text


def test_named_hosts_have_no_splits(tmp_path: Path) -> None:
    (tmp_path / "grid.yaml").write_text(GRID + "hosts: [a, b]\n", encoding="utf-8")
    assert_one_error(said(SOLVE.replace("grid.yaml", str(tmp_path / "grid.yaml"))))


def test_what_has_no_programs_has_no_split(tmp_path: Path) -> None:
    (tmp_path / "grid.yaml").write_text(GRID, encoding="utf-8")
    text = SOLVE.replace("grid.yaml", str(tmp_path / "grid.yaml")).replace("--reduce", "--send")
    assert "no request of this answer has programs" in said(text).out
