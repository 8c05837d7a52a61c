"""`p2smt crossings --sufficient` and `p2smt verify` of its certificate."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from p2smt.plans.crossings.least_set import SymbolicSetting
from p2smt.report.crossings.least_set import least_set_answer, least_set_lines
from p2smt.result import Status
from p2smt.search.crossings.least import least_set
from tests.cli.tools import cli

ASKED = ("crossings", "--factors", "2,3", "--sufficient")


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("sets") / "set.json"
    done = cli(*ASKED, "-o", str(path))
    assert (done.code, done.err) == (0, "")
    return path


def test_the_set_is_shown_with_its_proof() -> None:
    done = cli(*ASKED, "--cost-per-call", "0")
    assert done.code == 0
    assert "proved: 2 of 61 programs of at most 5 instructions" in done.out
    assert "   2 alpha_l1 + 8 alpha_l2 + n max(5/3 beta_l1, 5/3 beta_l2)" in done.out.splitlines()


def test_latex_and_json() -> None:
    assert r"\frac{5}{3} \beta_{\mathrm{l1}}" in cli(*ASKED, "--latex").out
    data = cli(*ASKED, "--json").json()
    assert (data["status"], len(data["members"]), data["programs"]) == ("optimal", 3, 61)
    assert data["sufficient"] == [one["programs"][0] for one in data["members"]]
    assert {one["program"] for one in data["cells"]} <= set(data["sufficient"])
    assert cli("crossings", "--factors", "6", "--sufficient", "--json").json()["cells"] == []


def test_a_certificate_is_verified(certificate: Path) -> None:
    done = cli("verify", str(certificate))
    assert done.code == 0
    assert "3 of 61 listed programs of at most 5 instructions" in done.out
    assert "not checked: every program of at most 5 instructions is listed" in done.out
    again = cli("verify", str(certificate), "--prove").out
    assert "3 of 61 programs of at most 5 instructions" in again
    assert "not checked" not in again


def test_a_larger_length_is_said_not_to_be_checked(tmp_path: Path) -> None:
    """Without a solver nothing tells that a list of short programs is not one of longer ones."""
    path, asked = tmp_path / "set.json", ("crossings", "--factors", "2,3", "--length", "3")
    assert cli(*asked, "--sufficient", "-o", str(path)).code == 0
    data = {**json.loads(path.read_text()), "max_length": 4}
    path.write_text(json.dumps(data))
    found = cli("verify", str(path), "--json").json()
    assert (found["verdict"], found["max_length"]) == ("valid", 4)
    assert found["not_checked"] == ["every program of at most 4 instructions is listed"]
    assert "listed programs" in cli("verify", str(path)).out
    assert cli("verify", str(path), "--prove").code == 1


def test_a_tampered_certificate_is_refuted(certificate: Path, tmp_path: Path) -> None:
    data = json.loads(certificate.read_text())
    data["exclusions"][0]["cases"][0]["weights"] = ["0"]
    path = tmp_path / "wrong.json"
    path.write_text(json.dumps(data))
    done = cli("verify", str(path), "--details")
    assert done.code == 1
    assert done.out.splitlines()[-1] == "invalid"
    assert cli("verify", str(path), "--json").json()["verdict"] == "invalid"


def test_a_program_that_is_missing_is_found_by_a_new_list(
    certificate: Path, tmp_path: Path
) -> None:
    data = json.loads(certificate.read_text())
    several = next(one for one in data["costs"] if len(one["programs"]) > 1)
    several["programs"].pop()
    path = tmp_path / "less.json"
    path.write_text(json.dumps(data))
    assert cli("verify", str(path)).code == 0
    done = cli("verify", str(path), "--prove")
    assert done.code == 1
    assert "not those that there are" in done.out


def test_costs_that_are_open_are_counted_and_some_are_shown() -> None:
    found = least_set(SymbolicSetting((2, 3), (1, 1)))
    cut = replace(found, status=Status.UNKNOWN, open=tuple(range(len(found.costs))))
    lines = list(least_set_lines(cut))
    assert [line.startswith("open: ") for line in lines[-8:]] == [False, *[True] * 6, False]
    assert lines[-1] == f"and {len(found.costs) - 6} more (all with --json)"
    assert len(least_set_answer(cut, None).open) == len(found.costs)
    few = list(least_set_lines(replace(cut, open=(0, 1))))
    assert few[-1] == f"open: {found.costs[1].programs[0]}"


def test_no_time_settles_nothing(tmp_path: Path) -> None:
    path = tmp_path / "set.json"
    done = cli(*ASKED, "--time-limit", "0.0001", "-o", str(path))
    assert done.code == 3
    assert "no certificate is written" in done.err
    assert not path.exists()


@pytest.mark.parametrize(
    ("options", "rule"),
    [
        ((), "take either"),
        (("--factors", "1,8"), "at least 2"),
        (("--factors", "4,8", "--ports", "1"), "are for 1 levels"),
        (("--factors", "4,8", "--ports", "3,1"), "spread evenly"),
        (("--factors", "4,8", "--cost-per-call", "-1"), "is an unknown of --sufficient, or 0"),
        (("--factors", "4,8", "--kind", "send"), "must be one of"),
        (("--factors", "4,x"), "size"),
        (("--factors", "4,8", "-o", "/nowhere/set.json"), "existing folder"),
    ],
)
def test_bad_input_is_one_line(options: tuple[str, ...], rule: str) -> None:
    done = cli("crossings", "--sufficient", *options)
    assert (done.code, done.out) == (2, "")
    assert rule in done.err
    assert len(done.err.splitlines()) == 1
