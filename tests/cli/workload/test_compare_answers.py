"""`p2smt compare a.json b.json`: two answers side by side, the gain first."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cli.tools import H100, RACKS, SMALL, TINY, assert_one_error, cli

TRAINED = ("-m", "small.yaml", "-t", "tiny.yaml", "--seq", "1024")
REQUESTS = ("--reduce", "dp=1GiB", "--reduce", "tp=64MiB*8")
MOVED = ("redistribute", "-t", "tiny.yaml", "-m", "dp=2,tp=4", "--shape", "4096,4096")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Clusters and a model."""
    (tmp_path / "tiny.yaml").write_text(TINY + H100)
    (tmp_path / "hosts.yaml").write_text(RACKS + H100)
    (tmp_path / "small.yaml").write_text(SMALL)
    monkeypatch.chdir(tmp_path)


def saved(name: str, *words: str) -> dict[str, Any]:
    """What a command prints as JSON, which is left in a file."""
    found = cli(*words, "--json")
    assert found.code == 0, found.err
    Path(name).write_text(found.out)
    return found.json()


def estimated(name: str, strategy: str, batch: str = "16", *more: str) -> dict[str, Any]:
    return saved(name, "estimate", *TRAINED, "--global-batch", batch, "-s", strategy, *more)


def shown(*files: str) -> list[str]:
    found = cli("compare", *files)
    assert found.code == 0, found.err
    lines = found.out.splitlines()
    assert len(lines) <= 20
    assert all(len(line) <= 80 for line in lines), lines
    return lines


def cells(lines: list[str]) -> dict[str, list[str]]:
    """The table by its labels."""
    rows = (re.split(r"\s{2,}", line.strip()) for line in lines)
    return {label: values for label, *values in rows if len(values) == 2}


def test_two_estimates_side_by_side() -> None:
    first, second = estimated("a.json", "tp=4"), estimated("b.json", "zero=1")
    lines = shown("a.json", "b.json")
    data = cli("compare", "a.json", "b.json", "--json").json()
    assert data["gain"] == pytest.approx(first["iteration_s"] / second["iteration_s"] - 1)
    low, high = data["gain_range"]
    assert low == pytest.approx(first["range_s"][0] / second["range_s"][1] - 1)
    assert high == pytest.approx(first["range_s"][1] / second["range_s"][0] - 1)
    said = f"gain {100 * data['gain']:+.1f} %, {100 * low:+.1f} to {100 * high:+.0f} in tokens/s"
    assert lines[0] == f"{said}: b.json instead of a.json"
    assert lines[1] == "how sure: it may not show, as the ranges overlap"
    table = cells(lines)
    assert table["run"] == ["tp=4,dp=2", "dp=8,zero=1"]
    assert set(table) >= {"time", "range", "compute", "dp", "tp", "optimizer", "memory a device"}


def test_a_larger_batch_is_compared_by_its_tokens() -> None:
    first, second = estimated("a.json", "tp=2"), estimated("b.json", "tp=2", "32")
    lines = shown("a.json", "b.json")
    data = cli("compare", "a.json", "b.json", "--json").json()
    assert data["gain"] == pytest.approx(second["tokens_per_s"] / first["tokens_per_s"] - 1)
    assert data["unlike"] == ["batch"]
    assert "they do not ask alike: batch differ" in lines
    assert cells(lines)["batch"] == ["16 x 1,024 tokens", "32 x 1,024 tokens"]


def test_a_plan_file_has_the_range_of_what_was_printed() -> None:
    printed = estimated("a.json", "tp=2,pp=2", "16", "-o", "a.plan.json")
    data = cli("compare", "a.json", "a.plan.json", "--json").json()
    assert data["second"]["range_s"] == pytest.approx(printed["range_s"])
    assert data["second"]["memory_bytes"] == printed["memory_bytes"]
    assert (data["gain"], data["gain_range"], data["unlike"]) == (0, [0, 0], [])


def test_a_plan_is_compared_by_its_strategy_to_run() -> None:
    estimated("a.json", "tp=4")
    plan = saved("p.json", "plan", *TRAINED, "--global-batch", "16", "--pick", "2")
    data = cli("compare", "a.json", "p.json", "--json").json()
    assert data["second"]["answer"] == plan["recommended"]["strategy"]
    assert data["second"]["seconds"] == plan["recommended"]["iteration_s"]


def test_plans_on_hosts_have_the_batch_of_their_best() -> None:
    asked = (
        "-m",
        "small.yaml",
        "--seq",
        "1024",
        "-t",
        "hosts.yaml",
        "--max-cp",
        "1",
        "--zero",
        "0",
    )
    plan = saved("h.json", "plan", *asked, "--global-batch", "12..16", "--hosts", "all")
    saved("e.json", "plan", *asked, "--global-batch", "16", "--hosts", "all")
    data = cli("compare", "e.json", "h.json", "--json").json()
    run = plan.get("recommended") or plan["best"]
    assert data["second"]["seconds"] == run["iteration_s"]
    assert data["second"]["asked"]["batch"].startswith(f"{run['global_batch']} x")
    shown("e.json", "h.json")


@pytest.mark.parametrize("idle", ["", "n3"])
def test_a_plan_file_on_hosts_has_its_range(idle: str) -> None:
    """Its ranks are where the file has them, be all hosts filled or not."""
    hosts = ",".join(["n5", "n1", "n2", "n4", *filter(None, [idle])])
    asked = ("-m", "small.yaml", "-t", "hosts.yaml", "--seq", "1024", "--global-batch", "16")
    told = ("--hosts", hosts, "-s", "tp=2,dp=4")
    printed = saved("a.json", "estimate", *asked, *told, "-o", "a.plan.json")
    data = cli("compare", "a.json", "a.plan.json", "--json").json()
    assert data["second"]["range_s"] == pytest.approx(printed["range_s"])


def test_ranks_on_devices_that_a_host_lacks_are_refused() -> None:
    asked = ("-m", "small.yaml", "-t", "hosts.yaml", "--seq", "1024", "--global-batch", "16")
    saved("a.json", "estimate", *asked, "-s", "tp=2,dp=4", "-o", "p.json", "--hosts", "n[1-2,4-5]")
    data = json.loads(Path("p.json").read_text())
    data["hosts"] = data["hosts"][:1] * len(data["hosts"])
    Path("p.json").write_text(json.dumps(data))
    assert_one_error(cli("compare", "a.json", "p.json"))


def test_placements_by_what_their_requests_take() -> None:
    asked = ("solve", "-t", "tiny.yaml", "--axes", "dp=2,tp=4", *REQUESTS)
    best = saved("a.json", *asked)
    other = saved("b.json", *asked, "--fix", "tp=node:1", "-o", "b.plan.json")
    lines = shown("b.plan.json", "a.json")
    data = cli("compare", "b.plan.json", "a.json", "--json").json()
    assert data["gain"] == pytest.approx(other["objective_s"] / best["objective_s"] - 1)
    assert data["first"]["parts"].keys() == {"all-reduce dp 1 GiB", "all-reduce tp 64 MiB x 8"}
    for one in (data["first"], data["second"]):
        assert sum(one["parts"].values()) == pytest.approx(one["seconds"])
    assert cells(lines)["answer"] == ["[[2,1],[1,4]]", "[[1,2],[2,2]]"]


def test_redistributions_have_no_range() -> None:
    saved("a.json", *MOVED, "--from", "S(dp),R", "--to", "R,S(dp,tp)")
    saved("b.json", *MOVED, "--from", "S(dp),R", "--to", "R,S(tp)", "-o", "b.plan.json")
    assert "how sure: not known, as a file has no range" in shown("a.json", "b.plan.json")
    data = cli("compare", "b.plan.json", "b.json", "--json").json()
    assert (data["gain"], data["unlike"]) == (0, [])


def test_many_parts_and_differences_stay_on_a_screen() -> None:
    many = [f"--reduce=dp={size}MiB*{size}" for size in range(1, 20)]
    saved("a.json", "solve", "-t", "tiny.yaml", "--axes", "dp=2,tp=4", *many)
    saved("b.json", "solve", "-t", "tiny.yaml", "--use", "node=1", "--axes", "dp=4", *many[3:])
    lines = shown("a.json", "b.json")
    assert any(re.match(r"  \d+ others ", line) for line in lines)


@pytest.mark.parametrize(
    ("files", "rule"),
    [
        (("a.json", "s.json"), "is of a training, and s.json of a placement"),
        (("a.json",), "1 answers or orders: is not two"),
        (("a.json", "a.json", "a.json"), "3 answers or orders: is not two"),
        (("a.json", "default"), "file 'default': does not exist"),
        (("a.json", "a.json", "-t", "tiny.yaml"), "--topology: is of orders of ranks"),
        (("a.json", "a.json", "--axes", "dp=8"), "--axes: is of orders of ranks"),
        (("a.json", "other.json"), "holds no plan, estimate, placement or redistribution"),
        (("a.json", "list.json"), "is no answer: it has no schema_version"),
    ],
)
def test_what_cannot_be_compared_is_one_line(files: tuple[str, ...], rule: str) -> None:
    estimated("a.json", "tp=2")
    saved("s.json", "solve", "-t", "tiny.yaml", "--axes", "dp=8", "--reduce", "dp=1GiB")
    Path("other.json").write_text('{"schema_version": 1, "verdict": "valid"}')
    Path("list.json").write_text("[0, 1, 2, 3]")
    found = cli("compare", *files)
    assert_one_error(found)
    assert rule in found.err


CUTS: tuple[tuple[Callable[[dict[str, Any]], object], str], ...] = (
    (lambda data: data.pop("iteration_s"), "iteration_s: is no number"),
    (lambda data: data.update(iteration_s=0), "takes no time"),
    (lambda data: data.update(range_s=[1]), "range_s: must have two ends"),
    (lambda data: data.update(parts={"compute": "long"}), "compute: is no number"),
    (lambda data: data.update(strategy="tp=x"), "tp=x"),
    (lambda data: data.update(memory_bytes=None), "memory_bytes: is no number"),
)


@pytest.mark.parametrize(("cut", "rule"), CUTS)
def test_what_lacks_in_a_file_is_named(cut: Callable[[dict[str, Any]], object], rule: str) -> None:
    data = estimated("a.json", "tp=2")
    cut(data)
    Path("b.json").write_text(json.dumps(data))
    found = cli("compare", "a.json", "b.json")
    assert_one_error(found)
    assert rule in found.err
