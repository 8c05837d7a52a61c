"""Outputs say what it rests on that no program is missed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from p2smt.cluster.file import parse_topology
from p2smt.collectives.names import RequestKind
from p2smt.parallelism.placement import ParallelismAxis
from p2smt.parallelism.request import Problem, Request
from p2smt.programs.program import (
    ProofBasis,
    bases_to,
    basis_names,
    basis_text,
    proof_bases,
    proof_basis,
)
from tests.cli.tools import TINY, cli

THEOREM, EXACT = "small-model theorem", "exact search on the real sizes"
ALL_SIZES = f"complete for all sizes ({THEOREM})"
ASKED = ("--axes", "dp=8", "--reduce", "dp=1MiB")
THREE = """
name: three
levels:
  - {name: pod, size: 2, link: {kind: switch, bandwidth: 10 GB/s, latency: 10 us}}
  - {name: node, size: 2, link: {kind: switch, bandwidth: 50 GB/s, latency: 5 us}}
  - {name: gpu, size: 2, link: {kind: switch, bandwidth: 100 GB/s, latency: 2 us}}
"""


@pytest.fixture
def tiny(tmp_path: Path) -> str:
    path = tmp_path / "tiny.yaml"
    path.write_text(TINY)
    return str(path)


@pytest.mark.parametrize(
    ("levels", "longest"), [(1, 16), (2, 16), (3, 6), (4, 6), (5, 6), (6, 5), (8, 5)]
)
def test_the_theorem_reaches_as_far_as_it_is_proved(levels: int, longest: int) -> None:
    assert proof_basis(levels, longest) is ProofBasis.SMALL_MODEL
    assert longest == 16 or proof_basis(levels, longest + 1) is ProofBasis.REAL_SIZES
    assert proof_basis(levels, longest, "cpsat") is ProofBasis.SMALL_MODEL
    assert proof_basis(levels, longest, "z3") is ProofBasis.REAL_SIZES


@pytest.mark.parametrize(
    ("length", "names", "text"),
    [
        (5, [THEOREM], ALL_SIZES),
        (7, [THEOREM, EXACT], "complete: theorem to 2 levels, exact search beyond"),
    ],
)
def test_requests_of_few_levels_may_have_another_basis(
    length: int, names: list[str], text: str
) -> None:
    found = bases_to(3, length)
    assert (basis_names(found), basis_text(found)) == (names, text)


def test_what_has_no_programs_has_no_basis() -> None:
    axes = (ParallelismAxis("dp", 8),)
    problem = Problem(
        parse_topology(THREE, "three"), axes, (Request(RequestKind.ALL_TO_ALL, ("dp",), 1024),)
    )
    assert proof_bases(problem, "cpsat") == {}


@pytest.mark.parametrize(
    ("arguments", "basis", "text"),
    [
        (("--length", "2"), THEOREM, ALL_SIZES),
        (("--top", "1"), THEOREM, ALL_SIZES),
        (
            ("--length", "2", "--solver", "z3"),
            EXACT,
            "complete for these sizes (exact search)",
        ),
    ],
)
def test_programs(arguments: tuple[str, ...], basis: str, text: str) -> None:
    asked = ("programs", "--factors", "2,2", *arguments)
    assert cli(*asked, "--json").json()["basis"] == [basis]
    assert f"\nprograms {text}\n" in cli(*asked).out


def test_a_list_that_was_cut_short_has_no_basis() -> None:
    asked = ("programs", "--factors", "2,2", "--limit", "1")
    assert cli(*asked, "--json").json()["basis"] == []
    assert "for all sizes" not in cli(*asked).out


def test_solve_its_plan_and_the_proof(tiny: str, tmp_path: Path) -> None:
    plan = str(tmp_path / "plan.json")
    solved = cli("solve", "-t", tiny, *ASKED, "-o", plan, "--details")
    assert f"\nchecked on devices; programs {ALL_SIZES}\n" in solved.out
    data = cli("solve", "-t", tiny, *ASKED, "--json").json()
    assert data["basis"] == data["plan"]["basis"] == [THEOREM]
    proved = cli("verify", plan, "--prove").out
    assert ": proved, no placement matrix takes less than" in proved
    assert proved.endswith(f"\n  programs {ALL_SIZES}\n")
    assert cli("verify", plan, "--prove", "--json").json()["proof"]["basis"] == [THEOREM]


def test_a_plan_that_does_not_say_is_read(tiny: str, tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    cli("solve", "-t", tiny, *ASKED, "-o", str(path))
    plan = json.loads(path.read_text())
    del plan["basis"]
    path.write_text(json.dumps(plan))
    assert cli("verify", str(path)).code == 0


def test_a_plan_that_says_another_is_refused(tiny: str, tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    cli("solve", "-t", tiny, *ASKED, "-o", str(path))
    plan = json.loads(path.read_text())
    path.write_text(json.dumps(plan | {"basis": [EXACT]}))
    found = cli("verify", str(path), "--details")
    assert found.code == 1
    assert found.out.startswith(f"bound: basis says {EXACT}; it is {THEOREM}\n")


def test_longer_programs_over_three_levels_are_searched_exactly(tmp_path: Path) -> None:
    path = tmp_path / "three.yaml"
    path.write_text(THREE)
    asked = ("solve", "-t", str(path), *ASKED, "--length", "7")
    assert cli(*asked, "--json").json()["basis"] == [THEOREM, EXACT]
    assert (
        "; programs complete: theorem to 2 levels, exact search beyond\n"
        in cli(*asked, "--details").out
    )


def test_sends_alone_have_no_programs(tiny: str) -> None:
    asked = ("solve", "-t", tiny, "--axes", "dp=8", "--all-to-all", "dp=1MiB")
    assert cli(*asked, "--json").json()["basis"] == []
    assert "programs complete" not in cli(*asked).out
