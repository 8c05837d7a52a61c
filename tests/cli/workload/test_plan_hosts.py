"""`plan --hosts`: what is told, written and exported of an answer on a job's hosts, and refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from p2smt.cluster.hostlist import parse_hostlist
from tests.cli.tools import H100, RACKS, SMALL, TINY, assert_one_error, cli
from tests.schemas.tools import complaints

REGULAR = RACKS.replace("n[2,4]", "n[2,4,6]").replace(", bandwidth: 5 GB/s}", "}")
LESS = ("--max-cp", "1", "--fix", "vpp=1", "--zero", "0", "--recompute", "none")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Racks of named hosts, unlike and alike, nodes without names, and a model."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SLURM_JOB_NODELIST", raising=False)
    slow = H100.replace("989", "2")  # so that several hosts are worth their uplinks
    (tmp_path / "racks.yaml").write_text(RACKS + slow)
    (tmp_path / "regular.yaml").write_text(REGULAR + slow)
    (tmp_path / "tiny.yaml").write_text(TINY + slow)
    (tmp_path / "small.yaml").write_text(SMALL)
    (tmp_path / "mixture.yaml").write_text(MIXTURE)
    return tmp_path


def plan(batch: str, *more: str, topology: str = "racks.yaml") -> list[str]:
    run = ["-m", "small.yaml", "-t", topology, "--global-batch", batch, "--seq", "1024"]
    return ["plan", *run, *LESS, *more]


MIXTURE = """
name: tiny-mixture
layers: 4
hidden: 512
heads: 8
kv_heads: 4
head_size: 64
gated: true
vocab: 8000
experts: {count: 4, active: 2, width: 512}
"""


def mixture(*more: str) -> list[str]:
    run = ["-m", "mixture.yaml", "-t", "racks.yaml", "--global-batch", "24", "--seq", "1024"]
    few = ("--dispatcher", "flex", "--max-mbs", "1", "--max-ep", "2", "--max-etp", "1")
    return ["plan", *run, *LESS, *few, *more]


def test_a_mixture_on_hosts_has_an_order_for_each_side() -> None:
    shown = cli(*mixture("--hosts", "n[1-3]", "--details"))
    data = cli(*mixture("--hosts", "n[1-3]", "--json")).json()
    assert complaints("plan-hosts", data) == []
    best = data["best"]
    assert data["tokens_per_s"] <= data["bound_tokens_per_s"] * (1 + 1e-8)
    assert sorted(best["host_order"]) == sorted(best["expert_hosts"])
    assert len(best["experts_inside"]) == 4
    assert best["experts_inside"][0] == best["inside"][0]
    assert shown.code == {"optimal": 0, "feasible": 3}[data["status"]]
    assert "the same of experts" in shown.out
    assert "experts inside each node" in shown.out
    nothing = cli(*mixture("--hosts", "n[1-3]", "--memory", "1MB"))
    assert nothing.code == 4
    assert "infeasible" in nothing.out


def test_the_screen_the_plan_and_its_hosts_agree() -> None:
    shown = cli(*plan("60..64", "--hosts", "n[1-5]", "-o", "plan.json"))
    assert shown.code == 0, shown
    lines = shown.out.splitlines()
    assert len(lines) <= 20
    assert max(map(len, lines)) <= 80
    (hosts,) = [line for line in lines if line.startswith("hosts")]
    data = cli(*plan("60..64", "--hosts", "n[1-5]", "--json")).json()
    assert complaints("plan-hosts", data) == []
    best = data["best"]
    assert data["status"] == "optimal"
    assert data["bound_tokens_per_s"] == pytest.approx(data["tokens_per_s"], rel=1e-8)
    assert hosts.startswith(f"hosts    {len(best['host_order'])} of 5")
    assert len(best["host_order"]) > 1
    assert sorted(best["host_order"] + best["idle"]) == ["n1", "n2", "n3", "n4", "n5"]
    assert cli("verify", "plan.json").code == 0
    listed = cli("export", "plan.json", "--to", "hostlist").out.strip()
    assert list(parse_hostlist(listed)) == best["host_order"]
    again = cli(
        *("estimate", "-m", "small.yaml", "-t", "racks.yaml", "-s", best["strategy"]),
        *("--hosts", ",".join(best["host_order"]), "--seq", "1024", "--json"),
        *("--global-batch", str(best["global_batch"])),
    ).json()
    assert again["tokens_per_s"] <= best["tokens_per_s"] * (1 + 1e-9)


def test_a_range_is_no_worse_than_any_batch_in_it() -> None:
    whole = cli(*plan("13..16", "--hosts", "n[1-3]", "--json")).json()
    each = [cli(*plan(str(batch), "--hosts", "n[1-3]", "--json")).json() for batch in range(13, 17)]
    rates = [one["tokens_per_s"] for one in each]
    assert whole["tokens_per_s"] == pytest.approx(max(rates), rel=1e-12)
    if whole["round"] is not None:
        assert whole["round"]["global_batch"] == 16
        assert whole["round"]["tokens_per_s"] == pytest.approx(rates[3], rel=1e-12)


def test_all_hosts_of_a_regular_cluster_take_no_less_by_hosts_than_by_matrices() -> None:
    matrix = cli(*plan("24", "--json", topology="regular.yaml")).json()
    hosts = cli(*plan("24", "--hosts", "all", "--json", topology="regular.yaml")).json()
    assert matrix["status"] == hosts["status"] == "optimal"
    assert hosts["tokens_per_s"] >= matrix["top"][0]["tokens_per_s"] * (1 - 1e-9)


def test_the_job_of_slurm(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLURM_JOB_NODELIST", "n[2,4]")
    job = cli(*plan("8", "--json"))
    assert job.json()["hosts"] == ["n2", "n4"]
    assert "those of $SLURM_JOB_NODELIST (2)" in job.err
    preset = cli(*plan("8", "--json", topology="tiny.yaml"))
    assert "best" in preset.json()
    assert preset.err == ""


def test_exit_codes() -> None:
    assert cli(*plan("8", "--hosts", "n[1-5]", "--time-limit", "0")).code == 3
    nothing = cli(*plan("8", "--hosts", "n[1-5]", "--memory", "1MB"))
    assert nothing.code == 4
    assert "infeasible" in nothing.out


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (plan("8", "--hosts", "n[1,9]"), "host 'n9'"),
        (plan("8", "--hosts", "n[1,1]"), "twice"),
        (plan("9..8", "--hosts", "n[1-2]"), "give 8..9"),
        (plan("8..x", "--hosts", "n[1-2]"), "--global-batch"),
        (plan("8..9", topology="tiny.yaml"), "is a range"),
        (plan("8", "--hosts", "n1", topology="tiny.yaml"), "names no hosts"),
        (plan("8", "--pick", "1"), "--pick"),
        (plan("8", "--within", "1%"), "--within"),
        (plan("8", "--top", "5"), "--top"),
        (plan("8", "--prices", "programs"), "prices of programs"),
        (plan("8", "--require", "tp within rack"), "rule on level rack"),
        (mixture("--hosts", "n[1-3]", "-o", "plan.json"), "two matrices"),
        (mixture("--hosts", "n[1-3]", "--require", "ep within rack"), "rule on level rack"),
        (mixture("--hosts", "n[1,9]"), "host 'n9'"),
        (mixture("--hosts", "n[1-3]", "--pick", "1"), "--pick"),
        (["estimate", *plan("8..9")[1:7], "--seq", "1024", "-s", "dp=2"], "is a range"),
    ],
)
def test_bad_input(words: list[str], told: str) -> None:
    outcome = cli(*words)
    assert_one_error(outcome)
    assert told in outcome.err
