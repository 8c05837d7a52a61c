"""Plans with a dispatch: there and back, held to their numbers, run, and what takes none."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, get_args

import pytest

from p2smt.collectives.dispatch import DISPATCH, Dispatch, KindName
from p2smt.collectives.names import RequestKind
from p2smt.plans.check.check_plan import check_plan
from p2smt.plans.file import read_plan
from p2smt.plans.problem import plan_problem
from tests.cli.tools import RACKS, TINY, cli
from tests.plans.tampering import Change, changed, drop, put, scale
from tests.refusals import refusal

TEXT = "ep=96KiB*2,experts=32,active=4,groups=4,top_groups=2,imbalance=1.25"
KIND = Dispatch(32, 4, 4, 2, 1.25)
AXES = ("--axes", "dp=2,ep=4")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("dispatch")
    (found / "tiny.yaml").write_text(TINY)
    asked = ("--reduce", "dp=1MiB", "--dispatch", TEXT)
    made = cli("solve", "-t", str(found / "tiny.yaml"), *AXES, *asked, "-o", str(found / "a.json"))
    assert made.code == 0, made.err
    return found


@pytest.fixture(scope="module")
def data(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "a.json").read_text())
    return found


def test_the_names_are_those_of_all_kinds() -> None:
    assert set(get_args(KindName)) == {*(kind.value for kind in RequestKind), DISPATCH}


def test_the_problem_comes_back(folder: Path, data: dict[str, Any]) -> None:
    plan = read_plan(str(folder / "a.json"))
    problem, _ = plan_problem(plan, "plan")
    assert [request.kind for request in problem.requests] == [RequestKind.ALL_REDUCE, KIND]
    assert (problem.requests[1].payload_bytes, problem.requests[1].times) == (96 * 1024, 2)
    numbers = {"experts": 32, "active": 4, "groups": 4, "top_groups": 2, "imbalance": 1.25}
    assert [one.get("dispatch") for one in data["requests"]] == [None, numbers]
    assert "dispatch" not in data["requests"][0], "files of other kinds are as they were"
    report = check_plan(plan, "plan")
    assert report.valid, report
    assert report.checked_on[1] == "one fixed step"


WRONG: dict[str, tuple[Change, str]] = {
    "its bytes": (scale("requests", 1, "bytes", by=2), "seconds says"),
    "its time": (scale("requests", 1, "seconds", by=0.5), "request 2 seconds says"),
    "its load": (scale("requests", 1, "steps", 0, "load_bytes", by=2), "load_bytes says"),
    "more experts": (put("requests", 1, "dispatch", "experts", to=64), "seconds says"),
    "fewer groups": (put("requests", 1, "dispatch", "top_groups", to=1), "seconds says"),
    "even": (put("requests", 1, "dispatch", "imbalance", to=1.0), "seconds says"),
    "its groups": (put("requests", 1, "steps", 0, "groups", to=[[0, 1, 2, 3]]), "groups of"),
    "its way": (put("requests", 1, "steps", 0, "algorithm", to="ring"), "is not that of the cost"),
    "a bound": (put("requests", 1, "physical_bound_s", to=0.0), "physical_bound_s says 0"),
    "a program": (put("requests", 1, "program", to="all-reduce inside root"), "no program"),
}


@pytest.mark.parametrize("what", WRONG)
def test_a_wrong_number_is_found(data: dict[str, Any], tmp_path: Path, what: str) -> None:
    change, text = WRONG[what]
    report = check_plan(read_plan(changed(data, change, tmp_path)), "plan")
    said = [note.message for note in report.notes]
    said += [str(broken.message) for _, broken in report.violations]
    assert not report.valid
    assert any(text in one for one in said), said


MALFORMED: dict[str, tuple[Change, str]] = {
    "no numbers": (drop("requests", 1, "dispatch"), "in requests of kind dispatch"),
    "another kind's": (
        put("requests", 0, "dispatch", to={"experts": 8, "active": 2}),
        "in requests of kind dispatch, and in no others",
    ),
    "an unknown kind": (put("requests", 1, "kind", to="gather"), "must be"),
    "too many active": (put("requests", 1, "dispatch", "active", to=17), "17 active experts"),
    "no divisor": (put("requests", 1, "dispatch", "experts", to=36), "do not divide evenly"),
    "an unknown number": (put("requests", 1, "dispatch", "tokens", to=3), "tokens"),
    "a text": (put("requests", 1, "dispatch", "experts", to="32"), "must be a whole number"),
}


@pytest.mark.parametrize("what", MALFORMED)
def test_a_malformed_request_is_refused(data: dict[str, Any], tmp_path: Path, what: str) -> None:
    change, text = MALFORMED[what]
    if what == "no divisor":
        change = put("requests", 1, "dispatch", to={"experts": 30, "active": 2})
    path = changed(data, change, tmp_path)
    said = refusal(lambda: plan_problem(read_plan(path), path))
    assert text in said


def test_numbers_that_contradict_are_refused_where_they_stand(
    data: dict[str, Any], tmp_path: Path
) -> None:
    path = changed(data, put("requests", 1, "dispatch", "active", to=17), tmp_path)
    assert "requests[1]: 17 active experts: must be 1 to 16" in refusal(read_plan, path)


def test_the_slowest_rank_holds_its_tokens_and_the_copies_for_its_experts(
    data: dict[str, Any],
) -> None:
    """4 of 32 experts on 4 ranks, in 2 of 4 groups: a token needs at most 2, and so does a rank."""
    assert data["requests"][1]["peak_bytes"] == 96 * 1024 * (1 + 1.25 * 2)


@pytest.mark.parametrize("command", ["verify", "cost"])
def test_commands_take_it(folder: Path, command: str) -> None:
    found = cli(command, str(folder / "a.json"))
    assert found.code == 0, found.err
    assert "valid: 2 requests" in found.out


@pytest.mark.parametrize(
    ("args", "text"),
    [
        (("export", "--to", "python"), "request 2: a dispatch to 4 of 32 experts"),
        (("export", "--to", "jax"), "request 2: a dispatch to 4 of 32 experts"),
        (("convert", "--request", "2"), "is no schedule"),
    ],
)
def test_what_takes_none_says_so(
    folder: Path, tmp_path: Path, args: tuple[str, ...], text: str
) -> None:
    """By name, with exit code 2, and nothing is written."""
    command, *options = args
    target = tmp_path / "out.yaml"
    to = [str(target)] if command == "convert" else ["-o", str(target)]
    found = cli(command, str(folder / "a.json"), *to, *options)
    assert found.code == 2
    assert text in found.err
    assert not target.exists()


def test_symbols_take_none(folder: Path) -> None:
    where = ("-t", str(folder / "tiny.yaml"), *AXES, "--placement", "[[2,1],[1,4]]")
    found = cli("cost", *where, "--dispatch", TEXT, "--symbolic")
    assert (found.code, found.err.count("\n")) == (2, 1)
    assert "has no symbolic cost" in found.err


def test_sizes_of_a_dispatch(folder: Path) -> None:
    where = ("-t", str(folder / "tiny.yaml"), *AXES, "--placement", "[[2,1],[1,4]]")
    found = cli("cost", *where, "--dispatch", "ep,experts=8,active=2", "--sizes", "1KiB..4KiB")
    assert found.code == 0, found.err
    without = cli("cost", *where, "--dispatch", "ep,experts=8,active=2")
    assert (without.code, "has no size" in without.err) == (2, True)


def test_hosts_take_none(tmp_path: Path) -> None:
    cluster = tmp_path / "racks.yaml"
    cluster.write_text(RACKS)
    found = cli("solve", "-t", str(cluster), "--axes", "dp=5,ep=2", "--dispatch", TEXT)
    assert (found.code, found.err.count("\n")) == (2, 1)
    assert "is not placed on named hosts" in found.err


@pytest.mark.parametrize("changes", [(), ("--payload", "4KiB")])
def test_it_runs_on_the_reference(folder: Path, changes: tuple[str, ...]) -> None:
    found = cli("run", str(folder / "a.json"), "--backend", "reference", *changes, "--json")
    assert found.code == 0, found.err
    told = json.loads(found.out)
    assert told["verified"]
    assert told["requests"][1]["kind"] == DISPATCH
