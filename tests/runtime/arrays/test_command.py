"""`p2smt run` with the plan of a redistribution: what is printed, refused, found and lost."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest

from p2smt.cluster.file import parse_topology
from p2smt.resharding.endpoints import ends_of
from p2smt.resharding.plan_file import redistribution_text
from p2smt.resharding.redistribution_plan import RedistributionPlan
from p2smt.resharding.states import ArrayState
from p2smt.resharding.step_prices import StepPrices
from p2smt.resharding.steps import MemoryLimit
from p2smt.resharding.types import ArrayType, ElementType, parse_layout, parse_mesh
from p2smt.result import SearchLimits, SolveStats, Status
from tests.cli.tools import assert_one_error, cli
from tests.resharding.planning import planned
from tests.runtime.arrays.tools import through
from tests.runtime.processes import ENDLESS, PAIRS, started

STEPS = (
    ("reduce-scatter", ArrayState(((1,), (0,)))),
    ("permute", ArrayState(((0,), (1,)))),
    ("all-gather", ArrayState(((0,), ()))),
)


@pytest.fixture
def plan(tmp_path: Path) -> Path:
    """P(a) of four ranks reduced, moved and gathered."""
    mesh = parse_mesh("a=2,b=2")
    first, last = (
        ArrayType(mesh, (64, 32), ElementType.F32, parse_layout(text, mesh))
        for text in ("S(b),R;P(a)", "S(a),R")
    )
    topology = parse_topology(PAIRS, "pairs")
    ends = ends_of(first, last)[0]
    prices = StepPrices(topology, ends.frame)
    made = RedistributionPlan(
        topology,
        first,
        last,
        ends.frame,
        ends.source,
        tuple(planned(prices, step) for step in through(ends, *STEPS)),
        MemoryLimit(ends.states_limit_bytes),
        Status.FEASIBLE,
        0.0,
        0.0,
        None,
        False,
        SearchLimits(),
        SolveStats("by hand"),
    )
    path = tmp_path / "plan.json"
    path.write_text(redistribution_text(made))
    return path


def _turned(plan: Path) -> str:
    """The same plan with two sources of its permute exchanged."""
    data = json.loads(plan.read_text())
    sources = data["steps"][1]["sources"]
    data["steps"][1]["sources"] = [*sources[2:], *sources[:2]]
    plan.write_text(json.dumps(data))
    return str(plan)


def test_reference(plan: Path) -> None:
    outcome = cli("run", str(plan), "--backend", "reference", "--ranks", "4")
    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.out == (
        "verified: 4 ranks, reference, 64x32 f32 on a=2,b=2\nS(b),R;P(a) to S(a),R: 3 steps\n"
    )


def test_a_wrong_plan(plan: Path) -> None:
    outcome = cli("run", _turned(plan), "--backend", "reference")
    assert outcome.code == 1
    assert outcome.out.startswith("WRONG RESULT: 4 ranks, reference")
    assert "rank 0: its block is wrong\n" in outcome.out


@pytest.mark.slow
@pytest.mark.cluster
def test_gloo(plan: Path) -> None:
    outcome = cli("run", str(plan), "--repeat", "2", "--json")
    assert (outcome.code, outcome.err) == (0, "")
    data = outcome.json()  # the text of such a run is in docs/redistribution-training.md
    assert (data["verified"], data["float_checked"], data["repetitions_checked"]) == (True, True, 2)
    assert [step["kind"] for step in data["steps"]] == [kind for kind, _ in STEPS]
    assert all(len(step["samples_s"]) == 2 for step in data["steps"])
    assert data["memory_bytes"] == data["predicted_bytes"] == (4096 + 2048 + 4096)
    assert data["predicted_s"] == pytest.approx(sum(s["predicted_s"] for s in data["steps"]))


@pytest.mark.exhaustive
@pytest.mark.cluster
def test_a_wrong_plan_on_ranks(plan: Path) -> None:
    outcome = cli("run", _turned(plan), "--repeat", "0")
    assert outcome.code == 1
    assert "elements are wrong, the first at (" in outcome.out


@pytest.mark.exhaustive
@pytest.mark.slow
@pytest.mark.cluster
def test_a_rank_that_dies_between_steps(plan: Path) -> None:
    with started("run", str(plan), *ENDLESS) as running:
        running.wait_until_busy()
        os.kill(running.ranks()[2], signal.SIGKILL)
        outcome = running.outcome()
        assert_one_error(outcome, 6)
        assert outcome.err.startswith("p2smt: error: rank 2: was killed by SIGKILL during ")
        running.assert_nothing_left()


@pytest.mark.parametrize(
    ("options", "rule"),
    [
        (("--dtype", "int64"), "takes none of them"),
        (("--payload", "1KiB"), "takes none of them"),
        (("--pipeline", "2"), "takes none of them"),
        (("--topology", "dgx-a100"), "takes none of them"),
        (("--axes", "dp=4"), "takes none of them"),
        (("--ranks", "3"), "there are 4 devices; start as many"),
        (("--unverified",), "is for schedules"),
    ],
)
def test_options_of_others_are_refused(plan: Path, options: tuple[str, ...], rule: str) -> None:
    outcome = cli("run", str(plan), *options)
    assert_one_error(outcome, 2)
    assert rule in outcome.err


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    outcome = cli("run", str(tmp_path / "nothing.json"))
    assert_one_error(outcome, 2)
    assert "does not exist; give a file that solve -o or redistribute -o wrote" in outcome.err


def test_a_plan_that_ends_elsewhere(plan: Path) -> None:
    data = json.loads(plan.read_text())
    data["steps"].pop()
    plan.write_text(json.dumps(data))
    outcome = cli("run", str(plan), "--backend", "reference")
    assert_one_error(outcome, 2)
    assert "the last step: does not end in the destination's layout" in outcome.err
