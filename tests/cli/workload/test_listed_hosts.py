"""`estimate --hosts` and `cost --hosts`: ranks lie on the hosts in the order of these."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import p2smt
from p2smt.cluster.allocation import allocated
from p2smt.cluster.file import parse_topology
from p2smt.training.strategy import Batch
from tests.cli.tools import H100, RACKS, TINY, assert_one_error, cli
from tests.schemas.tools import complaints

MODEL = {"layers": 4, "hidden": 512, "heads": 8, "kv_heads": 4, "ffn": 1024, "vocab": 1000}
REGULAR = RACKS.replace("n[2,4]", "n[2,4,6]").replace(", bandwidth: 5 GB/s}", "}")
AXES = ("-a", "dp=4,tp=2", "--reduce", "dp=64MiB", "--send", "dp=1MiB*3")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two racks of named hosts, alike and unlike, and a model; the commands run outside any job."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SLURM_JOB_NODELIST", raising=False)
    (tmp_path / "racks.yaml").write_text(RACKS + H100)
    (tmp_path / "regular.yaml").write_text(REGULAR + H100)
    (tmp_path / "tiny.yaml").write_text(TINY + H100)
    (tmp_path / "small.yaml").write_text(json.dumps({**MODEL, "gated": True}))
    return tmp_path


def estimate(strategy: str, *more: str, topology: str = "racks.yaml") -> list[str]:
    run = ["-m", "small.yaml", "-t", topology, "-s", strategy, "--global-batch", "24"]
    return ["estimate", *run, "--seq", "1024", *more]


def test_the_order_of_the_hosts_decides() -> None:
    """Rings on two racks cross each uplink once, alternating ones at every host."""
    near, far = (
        cli(*estimate("dp=8", "--hosts", text, "--json")).json()
        for text in ("n1,n3,n2,n4", "n1,n2,n3,n4")
    )
    assert near["iteration_s"] < far["iteration_s"]
    assert near["host_order"] == ["n1", "n3", "n2", "n4"]
    assert near["idle"] == []
    assert near["inside"] == [[1], [2], [1], [1]]
    assert complaints("estimate", near) == []


def test_hosts_that_are_left_over_stay_idle() -> None:
    found = cli(*estimate("tp=2,pp=2,dp=1", "--hosts", "n[4,1-3]"))
    assert "hosts    2 of 4, idle: n[2-3]" in found.out.splitlines()
    assert "4 devices of racks" in found.out


@pytest.mark.parametrize(("vpp", "part"), [(1, 0.5), (2, 1.0)])
def test_chunks_send_back_to_the_first_stage(vpp: int, part: float) -> None:
    """Of two lines that go against each other an uplink carries half as much as of two that go the
    same way; not where each has a way back.  The plan's check says the same."""
    strategy = f"pp=2,dp=2,tp=2,vpp={vpp}"
    along, against = (
        cli(*estimate(strategy, "--hosts", hosts, "--json", topology="regular.yaml")).json()
        for hosts in ("n1,n3,n2,n4", "n1,n2,n4,n3")
    )
    times = [
        next(one["call_s"] for one in found["requests"] if one["name"] == "pp send")
        for found in (along, against)
    ]
    assert times[1] == pytest.approx(part * times[0], rel=0.1)
    one = estimate(strategy, "--hosts", "n1,n2,n4,n3", "-o", "plan.json", topology="regular.yaml")
    assert cli(*one).code == 0
    assert cli("verify", "plan.json").out.startswith("valid")


def test_what_if_keeps_the_hosts_in_their_order() -> None:
    hosts = ("--hosts", "n4,n1,n3")
    changes = ("memory=40GB", "batch=48", "hosts=2", "hosts=4", "rack*2")
    asked = [word for change in changes for word in ("--what-if", change)]
    found = cli(*estimate("tp=2", *hosts, *asked, "--json")).json()
    rows = dict(zip(changes, found["what_if"], strict=True))
    assert rows["memory=40GB"]["iteration_s"] == found["iteration_s"]
    for change, listed in (("hosts=2", "n4,n1"), ("hosts=4", "n4,n1,n3,n5")):
        then = cli(*estimate("tp=2", "--hosts", listed, "--json")).json()
        assert rows[change]["iteration_s"] == pytest.approx(then["iteration_s"], rel=1e-12)
        assert rows[change]["best"] == then["strategy"]
    assert rows["rack*2"]["iteration_s"] < found["iteration_s"]
    more = [word if word != "24" else "48" for word in estimate("tp=2", *hosts, "--json")]
    assert rows["batch=48"]["iteration_s"] == pytest.approx(cli(*more).json()["iteration_s"])


def test_the_hosts_of_a_job_and_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLURM_JOB_NODELIST", "n[1-3]")
    job = cli(*estimate("dp=6", "--json"))
    assert job.json()["host_order"] == ["n1", "n2", "n3"]
    assert "those of $SLURM_JOB_NODELIST (3)" in job.err
    every = cli(*estimate("dp=2,tp=4", "--hosts", "all", "--json"))
    assert every.json()["host_order"] == ["n1", "n3", "n5", "n2"]
    preset = cli(*estimate("dp=4,tp=2", "--json", topology="tiny.yaml"))
    assert "host_order" not in preset.json()
    assert preset.err == ""


def test_all_hosts_of_a_regular_cluster_are_a_matrix() -> None:
    """Listed as the topology has them they lie as without names; another order has its own time."""
    plain = cli(*estimate("pp=2,dp=6", "--json", topology="regular.yaml")).json()
    listed = estimate(
        "pp=2,dp=6", "--hosts", "n1,n3,n5,n2,n4,n6", "--json", topology="regular.yaml"
    )
    assert cli(*listed).json() == plain
    other = estimate("pp=2,dp=6", "--hosts", "n[1-6]", "--json", topology="regular.yaml")
    assert plain["matrix"] is not None
    assert cli(*other).json()["iteration_s"] > plain["iteration_s"]


def test_ranks_device_by_device_take_what_a_matrix_takes() -> None:
    """A regular cluster as a matrix, and as a list of its hosts: HSDP and mixtures, too."""
    topology = parse_topology(REGULAR + H100, "regular")
    hosts = topology.hosts
    assert hosts is not None
    part = allocated(topology, ["n1", "n3", "n2", "n4"])
    assert not part.uneven
    for strategy in ("dp=8", "tp=2,pp=2,dp=2", "dp=8,zero=3,dp_replicate=2", "cp=2,dp=4,zero=1"):
        batch = Batch(16, 1024)
        asked = "llama-3-8b", strategy, batch
        matrix = p2smt.estimate(asked[0], part, *asked[1:])
        ranks = p2smt.estimate(asked[0], topology, *asked[1:], hosts=["n1", "n3", "n2", "n4"])
        assert ranks.on_hosts is not None
        assert ranks.iteration_s == pytest.approx(matrix.iteration_s, rel=1e-12)
    batch = Batch(16, 1024)
    matrix = p2smt.estimate("mixtral-8x7b", part, "dp=8,ep=4,tp=1", batch)
    ranks = p2smt.estimate(
        "mixtral-8x7b", topology, "dp=8,ep=4,tp=1", batch, hosts=["n1", "n3", "n2", "n4"]
    )
    assert ranks.iteration_s == pytest.approx(matrix.iteration_s, rel=1e-12)


def test_a_plan_names_the_hosts_that_export_lists() -> None:
    assert cli(*estimate("dp=3,pp=2", "--hosts", "n3,n2,n1,n4", "-o", "plan.json")).code == 0
    assert cli("export", "plan.json", "--to", "hostlist").out == "n[3,2,1]\n"
    assert cli("verify", "plan.json").code == 0
    data = json.loads(Path("plan.json").read_text())
    data["training"]["prediction"]["iteration_s"] *= 0.9
    Path("plan.json").write_text(json.dumps(data))
    refuted = cli("verify", "plan.json")
    assert refuted.code == 1
    assert "iteration_s" in refuted.out


def test_costs_of_hosts_in_their_order_are_those_that_compare_has() -> None:
    hosts = ("--hosts", "n1,n2,n3,n4")
    found = cli("cost", "-t", "racks.yaml", *AXES, *hosts, "--json").json()
    beside = cli("compare", "listed", "-t", "racks.yaml", *AXES, *hosts, "--json").json()
    (listed,) = [one for one in beside["orders"] if one["name"] == "listed"]
    assert found["objective_s"] == pytest.approx(listed["objective_s"], rel=1e-12)
    text = cli("cost", "-t", "racks.yaml", *AXES, *hosts, "--details")
    assert "checked on devices" in text.out


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (estimate("dp=5", "--hosts", "n[1-3]"), "must fill whole hosts"),
        (estimate("dp=8", "--hosts", "n[1-3]"), "needs 4 hosts of 2 devices, and 3 are listed"),
        (estimate("dp=6", "--hosts", "n[1,9]"), "host 'n9'"),
        (estimate("dp=6", "--hosts", "n[1-3]", "--placement", "[[1],[6],[1],[1]]"), "evenly"),
        (estimate("dp=4,tp=2", "--hosts", "n1", topology="tiny.yaml"), "names no hosts"),
        (["cost", "-t", "racks.yaml", *AXES, "--hosts", "n[1-3]"], "need 4 hosts"),
        (["cost", "-t", "racks.yaml", *AXES, "--sizes", "1KiB"], "--sizes"),
        (["cost", "-t", "racks.yaml", *AXES, "--hosts", "all", "--symbolic"], "--symbolic"),
        (["cost", "-t", "racks.yaml", *AXES, "--hosts", "n1", "--placement", "[[8]]"], "--placem"),
    ],
)
def test_bad_input(words: list[str], told: str) -> None:
    outcome = cli(*words)
    assert_one_error(outcome)
    assert told in outcome.err
