"""`compare`: what it prints, its exit code, and what it refuses."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.tools import RACKS, TINY, assert_one_error, cli

REQUESTS = ("-a", "dp=2,pp=2,tp=2", "--reduce", "dp=64MiB", "--send", "pp=1MiB")
ON_RACKS = ("compare", "-t", "racks.yaml", "--hosts", "n[1-4]", *REQUESTS)
ON_TINY = ("compare", "-t", "tiny.yaml", "-a", "dp=2,tp=4", "--reduce", "tp=1GiB")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SLURM_JOB_NODELIST", raising=False)
    (tmp_path / "racks.yaml").write_text(RACKS)
    (tmp_path / "tiny.yaml").write_text(TINY)


def test_a_preset_is_compared_with_its_best_matrix() -> None:
    outcome = cli(*ON_TINY)
    assert outcome.code == 0
    assert outcome.out.startswith("best order proved: ")
    data = cli(*ON_TINY, "--json").json()
    names = [one["name"] for one in data["orders"]]
    assert names == ["default", "tp-cp-ep-dp-pp"]
    assert [one["gap"] for one in data["orders"]] == [0, 0]
    assert data["status"] == "optimal"
    assert data["best"]["objective_s"] == data["objective_s"]


def test_orders_on_the_command_line_are_named_as_given() -> None:
    outcome = cli(*ON_TINY, "dp-tp", "mine=[0,4,1,5,2,6,3,7]", "[[2,1],[1,4]]", "--json")
    orders = outcome.json()["orders"]
    assert [one["name"] for one in orders] == ["dp-tp", "mine", "[[2,1],[1,4]]"]
    assert orders[0]["gap"] > 0
    assert orders[2]["gap"] == 0
    assert orders[2]["matrix"] == [[2, 1], [1, 4]]


def test_hosts_are_compared_with_the_best_order() -> None:
    outcome = cli(*ON_RACKS, "--json")
    data = outcome.json()
    assert outcome.code == (0 if data["status"] == "optimal" else 3)
    assert data["idle"] == []
    assert sorted(set(data["best"]["hosts"])) == ["n1", "n2", "n3", "n4"]
    assert min(one["gap"] for one in data["orders"]) >= 0
    text = cli(*ON_RACKS).out
    for name in ("best", "listed", "alphabetical", "sorted by leaf", "sorted, axes exchanged"):
        assert f"\n{name} " in text
    assert "rack crossings" in text


@pytest.mark.parametrize(
    ("command", "short"),
    [
        (ON_RACKS, {"sorted by leaf": "sorted", "sorted, axes exchanged": "exchanged"}),
        (
            ("compare", "-t", "dgx-h100:4", "-a", "dp=2,pp=2,tp=8", "--reduce", "dp=1MiB"),
            {"axes exchanged": "exchanged"},
        ),
    ],
)
def test_every_order_that_is_printed_can_be_given(
    command: tuple[str, ...], short: dict[str, str]
) -> None:
    orders = cli(*command, "--json").json()["orders"]
    names = [one["name"] for one in orders]
    assert set(short) <= set(names)
    typed = [*names, *short.values()]
    given = cli(*command, *typed, "--json").json()["orders"]
    seconds = {one["name"]: one["objective_s"] for one in given}
    assert list(seconds) == typed
    assert all(seconds[one["name"]] == one["objective_s"] for one in orders)
    assert all(seconds[printed] == seconds[name] for printed, name in short.items())
    refused = cli(*command, "nothing")
    assert_one_error(refused)
    listed = ", ".join(short.get(name, name) for name in names)
    assert refused.err.rstrip().endswith(f"the standard orders are {listed}")


def test_some_order_of_hosts_costs_more_than_the_best() -> None:
    data = cli(*ON_RACKS, "n1,n2,n3,n4", "n1,n3,n2,n4", "--json").json()
    assert max(one["gap"] for one in data["orders"]) > 0.1


def test_a_time_limit_is_no_proof() -> None:
    deep = (
        "-a",
        "dp=4,tp=8,pp=4",
        "--reduce",
        "dp=1GiB",
        "--reduce",
        "tp=1GiB",
        "--send",
        "pp=1MiB",
    )
    outcome = cli("compare", "-t", "dgx-h100:16", *deep, "--time-limit", "0.0001", "--json")
    assert outcome.code in (0, 3)
    data = outcome.json()
    assert (outcome.code == 0) == (data["status"] == "optimal")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((*ON_TINY, "alphabetical"), "is none that is known"),
        ((*ON_TINY, "--hosts", "n1"), "names no hosts"),
        ((*ON_TINY, "tp-xx"), "'xx' is no axis"),
        ((*ON_TINY, "[0,1,2]"), "must hold each launched rank 0..7 once"),
        ((*ON_TINY, "[[1,1],[1,1]]"), "matrix|sizes|product"),
        ((*ON_TINY, "default", "default"), "is named twice"),
        ((*ON_TINY, "x.npy"), "cannot be read"),
        ((*ON_TINY, "--time-limit", "never"), "time limit"),
        ((*ON_RACKS, "n1,n2"), "2 hosts"),
        ((*ON_RACKS, "n1,n2,n3,n9"), "n9"),
        ((*ON_RACKS, "[[2,1,1],[1,2,1],[1,1,2]]"), "equal numbers of hosts"),
        (("compare", "default"), "topology: is missing"),
        (("compare", "-t", "tiny.yaml", "-a", "dp=2,tp=4"), "requests"),
        (("compare", "-t", "tiny.yaml", "-a", "dp=2,tp=2", "--reduce", "dp=1GiB"), "8"),
    ],
)
def test_bad_comparisons_are_refused(arguments: tuple[str, ...], message: str) -> None:
    outcome = cli(*arguments)
    assert_one_error(outcome)
    assert any(part in outcome.err for part in message.split("|")), outcome.err
