"""Plan files: written whole or not at all, verified, and refused once anything is changed."""

from __future__ import annotations

import copy
import json
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cli.tools import EVERY_KIND, Outcome, assert_one_error, cli

Plan = dict[str, Any]


def verify(folder: Path, plan: object, *more: str) -> Outcome:
    path = folder / "plan.json"
    path.write_text(plan if isinstance(plan, str) else json.dumps(plan))
    return cli("verify", str(path), "--details", *more)


def without_answer(path: Path) -> object:
    """A plan file without what its search said beside it."""
    found = json.loads(path.read_text())
    del found["answer"]
    return found


def test_the_file_is_the_plan_of_the_answer(tiny: str, tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    outcome = cli("solve", "-t", tiny, *EVERY_KIND, "-o", str(path), "--json")
    assert without_answer(path) == outcome.json()["plan"]
    assert stat.S_IMODE(path.stat().st_mode) == 0o666 & ~_umask()
    assert cli("solve", "-t", tiny, *EVERY_KIND, "-o", str(path)).out.endswith(
        f"\nplan written to {path}\n"
    )
    assert [p.name for p in tmp_path.iterdir()] == ["plan.json"]


def _umask() -> int:
    mask = os.umask(0o022)
    os.umask(mask)
    return mask


def test_verify_says_valid(plan: Plan, tmp_path: Path) -> None:
    data = verify(tmp_path, plan, "--json").json()
    assert (data["verdict"], data["violations"]) == ("valid", [])
    assert data["objective_s"] == pytest.approx(plan["objective_s"])
    assert data["seconds"] == pytest.approx([r["seconds"] for r in plan["requests"]])
    text = (
        "valid: 5 requests, checked on devices, one fixed step\n"
        "checked: groups, meaning, ranks, times, memory, link-level bounds of requests, "
        "restrictions\n"
        "optimality: not checked\n"
        "link-level bound of the plan: not checked\n"
    )
    assert verify(tmp_path, plan) == Outcome(0, text, "")
    costs = cli("cost", str(tmp_path / "plan.json"), "--details").out
    assert costs.startswith(text)
    for request in plan["requests"]:
        assert all(step["instruction"] in costs for step in request["steps"])


def test_a_plan_maps_ranks_and_says_its_restrictions(plan: Plan, tmp_path: Path) -> None:
    assert sorted(plan["ranks"]) == list(range(len(plan["ranks"])))
    texts = [restriction["text"] for restriction in plan["restrictions"]]
    assert texts == ["tp=node:2", "programs of at most 5 instructions"]
    swapped = {**plan, "ranks": [plan["ranks"][1], plan["ranks"][0], *plan["ranks"][2:]]}
    outcome = verify(tmp_path, swapped)
    assert outcome.code == 1
    assert "ranks are not those of the matrix" in outcome.out


def test_an_infeasible_problem_writes_nothing(tiny: str, tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    more = ("--require", "tp within node", "-o", str(path))
    assert cli("solve", "-t", tiny, *EVERY_KIND, *more).code == 4
    assert not path.exists()


def test_a_failing_write_keeps_the_old_file_and_shows_the_answer(
    tiny: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    path = tmp_path / "plan.json"
    path.write_text("old")
    monkeypatch.setattr(os, "replace", fail)
    outcome = cli("solve", "-t", tiny, *EVERY_KIND, "-o", str(path), "--json")
    assert outcome.code == 2
    assert "No space left on device" in outcome.err
    assert outcome.json()["status"] == "optimal"
    assert path.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["plan.json"]


def test_an_interrupted_write_leaves_nothing(
    tiny: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(_: int) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupt)
    outcome = cli("solve", "-t", tiny, *EVERY_KIND, "-o", str(tmp_path / "plan.json"))
    assert outcome.code == 130
    assert list(tmp_path.iterdir()) == []


def test_what_is_no_regular_file_is_not_replaced(tiny: str, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert_one_error(cli("solve", "-t", tiny, *EVERY_KIND, "-o", str(tmp_path / "pipe")))
    assert stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode)
    assert_one_error(cli("solve", "-t", tiny, *EVERY_KIND, "-o", str(tmp_path)))


def test_a_folder_that_cannot_be_written_is_said_before_the_search(
    tiny: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "access", lambda *_: False)  # who runs tests as root may write all
    assert_one_error(cli("solve", "-t", tiny, *EVERY_KIND, "-o", str(tmp_path / "plan.json")))


def test_a_link_is_followed(tiny: str, tmp_path: Path) -> None:
    (tmp_path / "real.json").write_text("old")
    (tmp_path / "link.json").symlink_to("real.json")
    assert cli("solve", "-t", tiny, *EVERY_KIND, "-o", str(tmp_path / "link.json")).code == 0
    assert (tmp_path / "link.json").is_symlink()
    assert cli("verify", str(tmp_path / "real.json")).code == 0


def set_at(*path: str | int) -> Callable[[object], Callable[[Plan], None]]:
    """A change of the value at a path."""

    def to(value: object) -> Callable[[Plan], None]:
        def change(plan: Plan) -> None:
            at: Any = plan
            for key in path[:-1]:
                at = at[key]
            at[path[-1]] = value

        return change

    return to


FIRST = ("requests", 0)
STEP = (*FIRST, "steps", 0)
LIES: dict[str, Callable[[Plan], None]] = {
    "instruction": set_at(*STEP, "instruction")("all-reduce inside node"),
    "program": set_at(*FIRST, "program")("all-reduce inside root"),
    "unknown level": lambda p: _replace_program(p, "all-reduce inside rack"),
    "program and steps": lambda p: _replace_program(p, "all-reduce inside node"),
    "no steps": set_at(*FIRST, "steps")([]),
    "empty groups": set_at(*STEP, "groups")([]),
    "groups of nobody": set_at(*STEP, "groups")([[], []]),
    "ragged groups": set_at(*STEP, "groups")([[0, 1], [2, 3, 4], [5]]),
    "device out of range": set_at(*STEP, "groups")([[0, 1], [2, 99], [4, 5], [6, 7]]),
    "device twice": set_at(*STEP, "groups")([[0, 0], [1, 1], [4, 4], [5, 5]]),
    "groups of other instructions": set_at(*STEP, "groups")([[0, 4], [1, 5], [2, 6], [3, 7]]),
    "group missing": lambda p: p["requests"][0]["steps"][0]["groups"].pop(),
    "members swapped": lambda p: p["requests"][0]["steps"][0]["groups"][0].reverse(),
    "matrix": set_at("matrix")([[2, 1], [1, 4]]),
    "request cost": set_at(*FIRST, "seconds")(1e-9),
    "step cost": set_at(*STEP, "seconds")(1.0),
    "step load": set_at(*STEP, "load_bytes")(1.0),
    "payload": set_at(*STEP, "payload_bytes")(1.0),
    "bottleneck": set_at(*STEP, "bottleneck")("node"),
    "algorithm": set_at(*STEP, "algorithm")("magic"),
    "objective": set_at("objective_s")(1e-9),
    "single collective": set_at(*FIRST, "single_collective_s")(9.0),
    "link-level bound": set_at(*FIRST, "physical_bound_s")(0.0),
    "link-level bound of the plan": set_at("physical_bound_s")(1e9),
    "bound above the objective": set_at("bound_s")(1e9),
    "optimal without proof": set_at("bound_s")(0.0),
    "request optimal without proof": set_at(*FIRST, "bound_s")(0.0),
    "status of no plan": set_at("status")("infeasible"),
    "peak": set_at("peak_bytes")(1),
    "request peak": set_at(*FIRST, "peak_bytes")(1),
    "shards": set_at("requests", 1, "shards")([0, 1, 2, 3]),
    "shards of an all-reduce": set_at(*FIRST, "shards")([0, 1, 2, 3]),
    "bytes": set_at(*FIRST, "bytes")(4),
    "times": set_at(*FIRST, "times")(2),
    "fixed step": set_at("requests", 3, "steps", 0, "groups")([[0, 1], [2, 3]]),
    "fixed step named otherwise": set_at("requests", 3, "steps", 0, "instruction")("send"),
    "program of a send": set_at("requests", 4, "program")("all-reduce inside root"),
    "bandwidth": set_at("topology", "levels", 0, "link", "bandwidth")("1 TB/s"),
}


def _replace_program(plan: Plan, text: str) -> None:
    request = plan["requests"][0]
    request["program"], request["steps"] = text, request["steps"][:1]
    request["steps"][0]["instruction"] = text


@pytest.mark.parametrize("name", LIES)
def test_a_changed_plan_is_refuted(plan: Plan, tmp_path: Path, name: str) -> None:
    changed = copy.deepcopy(plan)
    LIES[name](changed)
    outcome = verify(tmp_path, changed, "--json")
    data = outcome.json()
    assert (outcome.code, outcome.err, data["verdict"]) == (1, "", "invalid")
    for broken in data["violations"]:
        assert set(broken) == {"kind", "request", "step", "rank", "chunk", "message"}
    assert data["violations"]
    lines = verify(tmp_path, changed).out.splitlines()
    closing = lines[len(data["violations"]) :]
    assert closing[0].startswith("invalid: 5 requests")
    assert len(closing) == 2 + len(data["not_checked"])


def test_a_violation_names_devices_of_the_cluster(plan: Plan, tmp_path: Path) -> None:
    """Steps that add the same data twice, in groups whose devices are not numbered 0, 1, .."""
    changed = copy.deepcopy(plan)
    step = changed["requests"][0]["steps"][1]
    changed["requests"][0]["steps"] = [step, copy.deepcopy(step)]
    changed["requests"][0]["program"] = "; ".join([step["instruction"]] * 2)
    (broken,) = verify(tmp_path, changed, "--json").json()["violations"]
    assert (broken["kind"], broken["request"], broken["step"]) == ("doubled-contribution", 1, 2)
    assert broken["rank"] in step["groups"][0]


BAD: dict[str, Callable[[Plan], None]] = {
    "missing key": lambda p: p.pop("matrix"),
    "missing key inside": lambda p: p["requests"][0].pop("steps"),
    "extra key": set_at("extra")(1),
    "extra key inside": set_at(*STEP, "extra")(1),
    "NaN": set_at(*FIRST, "seconds")(float("nan")),
    "infinity": set_at("objective_s")(float("inf")),
    "negative time": set_at("objective_s")(-1.0),
    "negative device": set_at(*STEP, "groups")([[-1, 0]]),
    "huge device": set_at(*STEP, "groups")([[10**30, 0]]),
    "fractional device": set_at(*STEP, "groups")([[0.5, 1]]),
    "true as a number": set_at("matrix")([[True, 2], [2, 2]]),
    "text as a number": set_at(*FIRST, "bytes")("1"),
    "huge bytes": set_at(*FIRST, "bytes")(10**30),
    "huge entry": set_at("matrix")([[10**30, 2], [2, 2]]),
    "huge axis": set_at("axes", 0, "size")(10**400),
    "zero entry": set_at("matrix")([[0, 2], [2, 2]]),
    "wrong products": set_at("matrix")([[2, 2], [2, 2]]),
    "empty matrix": set_at("matrix")([]),
    "ragged matrix": set_at("matrix")([[1, 2], [2]]),
    "unknown axis": set_at(*FIRST, "axes")(["zz"]),
    "no axis": set_at(*FIRST, "axes")([]),
    "unknown kind": set_at(*FIRST, "kind")("all-to-some"),
    "axis twice": set_at(*FIRST, "axes")(["tp", "tp"]),
    "program that is no program": set_at(*FIRST, "program")("\n\x1b[31m do it"),
    "unknown status": set_at("status")("great"),
    "unknown objective": set_at("objective")("mean"),
    "no requests": set_at("requests")([]),
    "list for a mapping": set_at("topology")([]),
    "bad topology": set_at("topology", "levels", 0, "size")(-1),
    "schema_version": set_at("schema_version")(3),
    "schema_version as text": set_at("schema_version")("1"),
    "schema_version missing": lambda p: p.pop("schema_version"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_malformed_plan_is_bad_input(plan: Plan, tmp_path: Path, name: str) -> None:
    changed = copy.deepcopy(plan)
    BAD[name](changed)
    assert_one_error(verify(tmp_path, changed))


@pytest.mark.parametrize(
    "text",
    [
        *("", " ", "null", "[]", "1", '"plan"', "{}", "{", "\x00", "nan", "[" * 100_000),
        '{"schema_version": 1, "schema_version": 1}',
        '{"schema_version": ' + "9" * 5000 + "}",
        '{"schema_version": 1, "matrix": ' + "[" * 90_000 + "]" * 90_000 + "}",
    ],
)
def test_text_that_is_no_plan(tmp_path: Path, text: str) -> None:
    assert_one_error(verify(tmp_path, text))


@pytest.mark.parametrize("end", [0.1, 0.5, 0.99])
def test_a_truncated_plan(plan: Plan, tmp_path: Path, end: float) -> None:
    text = json.dumps(plan)
    assert_one_error(verify(tmp_path, text[: int(len(text) * end)]))


def test_files_that_are_no_text(tmp_path: Path) -> None:
    (tmp_path / "binary").write_bytes(bytes(range(256)))
    os.mkfifo(tmp_path / "pipe")
    for name in ("binary", "pipe", ".", "missing", "missing/plan.json", "new\nline", "nul\0"):
        assert_one_error(cli("verify", str(tmp_path / name)))
    assert_one_error(cli("verify", ""))


@pytest.mark.parametrize(
    "option",
    [
        *(("--root", "0"), ("--iterations", "3"), ("--fix",), ("--trace", "x"), ("--cost", "1MiB")),
        *(("-t", "dgx-a100"), ("--set", "n=1"), ("--upto", "4"), ("--fifo-depth", "2")),
        *(("--collective", "allreduce"), ("--out-of-place",), ("--time-limit", "3")),
        *(("--kind", "all-reduce"), ("--levels", "2,4"), ("--algorithm", "ring")),
        ("--program", "all-reduce inside l1"),
    ],
    ids=" ".join,
)
def test_options_that_say_nothing_of_a_plan_are_refused(
    plan: Plan, tmp_path: Path, option: tuple[str, ...]
) -> None:
    assert_one_error(verify(tmp_path, plan, *option))
    if option[0] in ("--time-limit", "--program", "--levels", "--kind", "--algorithm"):
        return
    assert_one_error(verify(tmp_path, plan, "--prove", *option))


NO_PLANS = {
    "missing.xml": None,
    "ring.xml": "<algo/>",
    "schedule.yaml": "p2smt_schedule: 1",
    "other.json": '{"name": "x", "gpus": []}',
    "list.json": "[]",
    "text.json": "plan",
    "empty.json": "",
}


@pytest.mark.parametrize("command", [("cost",), ("run", "--backend", "reference")], ids=" ".join)
@pytest.mark.parametrize("name", NO_PLANS)
def test_what_is_no_plan_is_not_called_one(
    tmp_path: Path, name: str, command: tuple[str, ...]
) -> None:
    text = NO_PLANS[name]
    if text is not None:
        (tmp_path / name).write_text(text)
    outcome = cli(command[0], str(tmp_path / name), *command[1:])
    assert_one_error(outcome)
    assert name in outcome.err
    assert not outcome.err.startswith(f"p2smt: error: plan '{tmp_path / name}")


@pytest.mark.parametrize("command", [("verify",), ("cost",), ("run", "--backend", "reference")])
def test_messages_name_the_file(plan: Plan, tmp_path: Path, command: tuple[str, ...]) -> None:
    path = tmp_path / "mine.json"
    path.write_text(json.dumps({**plan, "matrix": [[2, 2], [2, 2]]}))
    outcome = cli(command[0], str(path), *command[1:])
    assert_one_error(outcome)
    assert "mine.json" in outcome.err
    assert "row products" in outcome.err
