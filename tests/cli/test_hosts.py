"""`solve --hosts`: which hosts are taken, what is printed and written, and what is refused."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

import p2smt
from p2smt.cluster.file import parse_topology
from tests.cli.tools import RACKS, TINY, assert_one_error, cli

AXES = ("-a", "dp=2,pp=2,tp=2", "--reduce", "dp=64MiB", "--send", "pp=1MiB")
LISTED = ("n1", "n2", "n3", "n4")


@pytest.fixture
def racks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder with the topology, in which the command runs outside any job."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SLURM_JOB_NODELIST", raising=False)
    (tmp_path / "racks.yaml").write_text(RACKS)
    (tmp_path / "tiny.yaml").write_text(TINY)
    return tmp_path


def solve(*more: str) -> tuple[str, ...]:
    return ("solve", "-t", "racks.yaml", *AXES, *more)


@pytest.mark.usefixtures("racks")
def test_hosts_of_a_file_and_of_a_list_are_the_same() -> None:
    Path("hosts.txt").write_text("# of job 17\nn1\nn[2-3]\n\nn4  # the last\n")
    found = [cli(*solve("--hosts", text, "--json")) for text in ("hosts.txt", "n[1-4]")]
    first, second = (one.json() for one in found)
    for data in (first, second):
        data.pop("stats")
    assert first == second
    assert sorted(set(first["hosts"])) == list(LISTED)
    assert first["idle"] == []
    assert [first["hosts"].count(name) for name in LISTED] == [2, 2, 2, 2]
    assert found[0].code == (0 if first["status"] == "optimal" else 3)


@pytest.mark.usefixtures("racks")
def test_the_hosts_of_a_slurm_job(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLURM_JOB_NODELIST", "n[1,3-5]")
    outcome = cli(*solve("--json"))
    assert set(outcome.json()["hosts"]) == {"n1", "n3", "n4", "n5"}
    assert "those of $SLURM_JOB_NODELIST (4)" in outcome.err
    assert set(cli(*solve("--hosts", "n[1-4]", "--json")).json()["hosts"]) == set(LISTED)
    regular = cli("solve", "-t", "tiny.yaml", "-a", "dp=2,tp=4", "--reduce", "dp=1MiB", "--json")
    assert regular.json()["hosts"] is None


FEWER = "offers 1 of the 2 devices of a node; all 2 are taken: --use gpu=1 takes so many"


@pytest.mark.usefixtures("racks")
def test_fewer_devices_than_a_node_has_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """By a hostfile, by what mpirun takes, and by Slurm; and what is told helps."""
    Path("hosts.txt").write_text("n1 slots=1\nn2 slots=2\nn3 slots=1\nn4 slots=1\n")
    for text in ("hosts.txt", "n1:1,n2:1,n3:1,n4:1"):
        assert f"{FEWER}\n" in cli(*solve("--hosts", text)).err
    used = ("solve", "-t", "racks.yaml", "-a", "dp=4", "--reduce", "dp=1MiB", "--use", "gpu=1")
    found = cli(*used, "--hosts", "hosts.txt", "--json")
    assert (found.code, found.json()["hosts"].count("n1")) == (0, 1)
    assert "offers" not in found.err
    Path("hosts.txt").write_text("n1 slots=2\nn2 slots=8\nn3\nn4:4\n")
    assert "offers" not in cli(*solve("--hosts", "hosts.txt")).err
    monkeypatch.setenv("SLURM_JOB_NODELIST", "n[1-4]")
    assert "offers" not in cli(*solve()).err
    monkeypatch.setenv("SLURM_GPUS_ON_NODE", "1")
    assert f"$SLURM_GPUS_ON_NODE {FEWER}" in cli(*solve()).err


@pytest.mark.usefixtures("racks")
def test_without_hosts_all_that_there_are_count_and_one_stays_idle() -> None:
    data = cli(*solve("--json")).json()
    assert len(data["idle"]) == 1
    assert sorted([*set(data["hosts"]), *data["idle"]]) == ["n1", "n2", "n3", "n4", "n5"]
    shown = cli(*solve("--details"))
    assert f"idle: {data['idle'][0]}" in shown.out


@pytest.mark.usefixtures("racks")
def test_the_answer_stands_beside_the_orders_that_everyone_has() -> None:
    data = cli(*solve("--hosts", "n[1-4]", "--json")).json()
    names = [one["name"] for one in data["orders"]]
    assert names[:4] == ["listed", "alphabetical", "sorted by leaf", "sorted, axes exchanged"]
    best = data["objective_s"]
    for one in data["orders"]:
        assert one["objective_s"] >= best * (1 - 1e-9)
        assert one["gap"] == pytest.approx(one["objective_s"] / best - 1, abs=1e-9)
        assert set(one["hosts"]) == set(LISTED)
    listed, alphabetical = data["orders"][:2]
    assert {**listed, "name": ""} == {**alphabetical, "name": ""}
    text = cli(*solve("--hosts", "n[1-4]", "--details")).out
    assert "hosts in the order of their ranks" in text
    assert "sorted, axes exchanged" in text


@pytest.mark.usefixtures("racks")
def test_a_plan_on_hosts_is_valid_and_names_them() -> None:
    written = cli(*solve("--hosts", "n[1-4]", "-o", "plan.json", "--json")).json()
    plan = json.loads(Path("plan.json").read_text())
    assert plan["hosts"] == written["hosts"]
    del plan["answer"]
    assert plan == written["plan"]
    assert plan["objective_s"] == written["objective_s"]
    assert cli("verify", "plan.json").code == 0
    csv = cli("export", "plan.json", "--to", "csv").out.splitlines()[1:]
    assert [line.split(",")[1] for line in csv] == plan["hosts"]


@pytest.mark.usefixtures("racks")
def test_hosts_of_a_plan_that_are_not_those_of_its_ranks_are_found() -> None:
    cli(*solve("--hosts", "n[1-4]", "-o", "plan.json"))
    plan = json.loads(Path("plan.json").read_text())
    plan["hosts"] = [*plan["hosts"][2:], *plan["hosts"][:2]]
    Path("plan.json").write_text(json.dumps(plan))
    outcome = cli("verify", "plan.json")
    assert outcome.code == 1
    assert "hosts" in outcome.out


@pytest.mark.usefixtures("racks")
def test_uplinks_of_unknown_bandwidth_have_no_times() -> None:
    Path("racks.yaml").write_text(RACKS + "assumed: [rack]\n")
    outcome = cli(*solve("--hosts", "n[1-4]"))
    assert "the bandwidth of rack uplinks is not stated, so no time is told" in outcome.out
    assert "on a non-blocking tree every order is optimal in bandwidth" in outcome.out
    assert "from an oversubscription of" in outcome.out
    assert " ms" not in outcome.out
    data = cli(*solve("--hosts", "n[1-4]", "--json")).json()
    assert (data["objective_s"], data["bound_s"]) == (None, None)
    assert all(one["objective_s"] is None for one in data["orders"])
    crossed = [one["crossings"]["rack"] for one in data["orders"]]
    assert max(crossed) > min(crossed)
    for option in ("--sensitivity", "--explain", "--within=5%"):
        refused = cli(*solve("--hosts", "n[1-4]", option))
        assert_one_error(refused)
        assert "rack uplinks in racks: is not stated, so no time is told" in refused.err


@pytest.mark.usefixtures("racks")
def test_a_plan_on_such_uplinks_is_told_and_proved_no_time() -> None:
    Path("racks.yaml").write_text(RACKS + "assumed: [rack]\n")
    assert cli(*solve("--hosts", "n[1-4]", "-o", "plan.json")).code in (0, 3)
    unstated = "the bandwidth of rack uplinks is not stated, so no time is told"
    for command in (("verify",), ("verify", "--prove"), ("cost",)):
        outcome = cli(*command, "plan.json")
        assert (outcome.code, outcome.err) == (0, "")
        assert unstated in outcome.out
        assert not re.search(r"\d (us|ms|s)\b", outcome.out), outcome.out
    proved = cli("verify", "--prove", "--details", "plan.json").out
    assert "proved, no order of these hosts takes less time on uplinks that do not block" in proved
    assert "which loads them least is not settled" in proved
    data = cli("verify", "--prove", "plan.json", "--json").json()
    assert (data["objective_s"], data["seconds"]) == (None, None)
    assert (data["proof"]["objective_s"], data["proof"]["bound_s"]) == (None, None)
    assert cli("cost", "plan.json", "--json").json()["requests"] == []
    ran = cli("run", "plan.json", "--backend", "reference", "--payload", "8KiB")
    assert ran.code == 0
    assert "not predicted" in ran.out


@pytest.mark.usefixtures("racks")
def test_a_plan_on_such_uplinks_that_is_not_the_best_is_refuted_without_times() -> None:
    slow = RACKS.replace("bandwidth: 5 GB/s", "bandwidth: 10 GB/s") + "assumed: [rack]\n"
    Path("racks.yaml").write_text(slow)
    fixed = ("--hosts", "n[1-4]", "--fix", "tp=gpu:2", "-o", "plan.json")
    cli(*solve(*fixed))
    plan = json.loads(Path("plan.json").read_text())
    plan["restrictions"] = [r for r in plan["restrictions"] if r["kind"] != "fixed-entry"]
    plan["status"] = "feasible"
    Path("plan.json").write_text(json.dumps(plan))
    outcome = cli("verify", "--prove", "--details", "plan.json")
    assert outcome.code == 1
    assert "refuted, a better plan takes less time on uplinks that do not block" in outcome.out
    assert "  hosts n" in outcome.out
    assert not re.search(r"\d (us|ms|s)\b", outcome.out), outcome.out


@pytest.mark.usefixtures("racks")
def test_what_lies_around_the_answer() -> None:
    asked = ("--within", "10%", "--sensitivity", "--explain", "--compare", "mine=n4,n3,n2,n1")
    text = cli(*solve("--hosts", "n[1-5]", *asked, "--details")).out
    assert re.search(r"^mine  +\d", text, re.MULTILINE)
    assert "what binds the best order" in text
    assert "orders within 10 % of the best: 2 of the 30 looked at" in text
    assert "proved to stay the best in" in text
    data = cli(*solve("--hosts", "n[1-5]", *asked, "--json")).json()
    assert data["orders"][0]["name"] == data["compared_layout"]["name"] == "mine"
    assert data["orders"][0]["objective_s"] == data["compared_layout"]["objective_s"]
    assert data["near_orders"]["count"] == 2
    assert len(data["sensitivity"]) == 6
    for one, best in zip(data["binding"], data["alternatives"][0]["seconds"], strict=True):
        assert max(one["levels"].values()) <= one["seconds"] == best
    plain = cli(*solve("--hosts", "n[1-5]", "--json")).json()
    assert (plain["near_orders"], plain["binding"], plain["sensitivity"]) == (None, None, [])


@pytest.mark.usefixtures("racks")
def test_uplinks_that_cannot_block_are_told() -> None:
    line = "every order of the hosts is optimal in bandwidth"
    free = RACKS.replace("{name: rack, size: 2, link: {kind: switch, bandwidth: 1", "@")
    free = free.replace("@", "{name: rack, size: 2, link: {kind: switch, bandwidth: 3")
    Path("racks.yaml").write_text(free.replace(", bandwidth: 5 GB/s}", "}"))
    outcome = cli(*solve("--hosts", "n[1-4]", "--details"))
    assert line in outcome.out
    assert any(line in note for note in cli(*solve("--hosts", "n[1-4]", "--json")).json()["notes"])
    assert line in cli("compare", "-t", "racks.yaml", "--hosts", "n[1-4]", *AXES, "--details").out
    Path("racks.yaml").write_text(RACKS)
    assert line not in cli(*solve("--hosts", "n[1-4]")).out


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--hosts", "n[1-3],n9"), "host 'n9': is not in racks"),
        (("--hosts", "n[1-4],n2"), "names 'n2' twice"),
        (("--hosts", "n[1-3]"), "3 hosts"),
        (("--hosts", "n[1-999999999]"), "names more than"),
        (("--hosts", "n[1-"), "does not close"),
        (("--hosts", "n[4-1]"), "falls"),
        (("--hosts", ""), "empty"),
        (("--hosts", "host.txt"), "is neither a file nor a host of racks"),
        (("--hosts", "./host.txt"), "No such file"),
        (("--hosts", "."), "directory|regular file"),
        (("--hosts", "bytes.txt"), r"is not UTF-8 text \(byte 3\)"),
        (("--hosts", "odd.txt"), "line 2: .*has characters that no host has"),
        (("--hosts", "many.txt"), "names more than"),
        (("--hosts", "none.txt"), "names no host"),
        (("--top", "2"), "does not apply to a topology that names hosts"),
        (("--within", "5"), "lacks its %"),
        (("--compare", "[0]"), "must hold each launched rank 0..7 once"),
        (("--compare", "n1,n2,n3,n9"), "'n9'"),
        (("--pipeline", "4"), "does not apply"),
        (("--use", "node=2"), "give --hosts"),
    ],
)
def test_bad_hosts_are_refused(racks: Path, options: tuple[str, ...], message: str) -> None:
    (racks / "bytes.txt").write_bytes(b"n1\n\xff\xfe")
    (racks / "odd.txt").write_text("n1\nn2 + 8 slots\n")
    (racks / "many.txt").write_text("n[1-1000000]\n" * 3)
    (racks / "none.txt").write_text("# nothing\n")
    outcome = cli(*solve(*options))
    assert_one_error(outcome)
    assert re.search(message, outcome.err), outcome.err


@pytest.mark.usefixtures("racks")
@pytest.mark.parametrize(
    ("axes", "message"),
    [
        ("dp=3,tp=3", "must be a multiple of the 2 devices of a node"),
        ("dp=16,tp=2", "hosts"),
    ],
)
def test_axes_that_do_not_fill_nodes_are_refused(axes: str, message: str) -> None:
    outcome = cli("solve", "-t", "racks.yaml", "-a", axes, "--reduce", "dp=1GiB")
    assert_one_error(outcome)
    assert message in outcome.err


@pytest.mark.usefixtures("racks")
def test_hosts_of_a_topology_without_names_are_refused() -> None:
    outcome = cli(*("solve", "-t", "tiny.yaml", *AXES), "--hosts", "n[1-4]")
    assert_one_error(outcome)
    assert "names no hosts" in outcome.err


_MATRIX = ("--placement", "[[1,2,1],[2,1,1],[1,1,2]]")


@pytest.mark.usefixtures("racks")
@pytest.mark.parametrize(
    "command",
    [
        ("placements", "-a", "dp=2,pp=3,tp=2"),
        ("cost", *AXES, *_MATRIX),
        ("programs", *AXES[:4], *_MATRIX),
        ("run", *AXES, *_MATRIX),
    ],
)
def test_a_matrix_on_uneven_hosts_is_refused_with_what_places_ranks_there(
    command: tuple[str, ...],
) -> None:
    outcome = cli(*command, "-t", "racks.yaml")
    assert_one_error(outcome)
    assert "not spread evenly under equal uplinks, so no matrix fits it" in outcome.err
    assert "p2smt solve (solve_on_hosts) and p2smt compare" in outcome.err


@pytest.mark.parametrize("axes", ["dp=2,pp=2,tp=2", "dp=2,pp=3,tp=2"])
def test_solve_in_python_names_what_solves_on_uneven_hosts(axes: str) -> None:
    problem = p2smt.Problem(
        parse_topology(RACKS, "racks"), p2smt.parse_axes(axes), (p2smt.reduce("dp=1MiB"),)
    )
    with pytest.raises(p2smt.InputError, match="solve_on_hosts"):
        p2smt.solve(problem)


@pytest.mark.usefixtures("racks")
def test_a_cost_on_uplinks_of_unknown_bandwidth_is_not_told() -> None:
    even = RACKS.replace("size: 3", "size: 2").replace("n[1,3,5]", "n[1,3]")
    Path("racks.yaml").write_text(even.replace(", bandwidth: 5 GB/s", "") + "assumed: [rack]\n")
    outcome = cli("cost", *AXES, *_MATRIX, "-t", "racks.yaml")
    assert_one_error(outcome)
    assert "rack uplinks in racks: is not stated, so no time is told; give --uplink" in outcome.err
