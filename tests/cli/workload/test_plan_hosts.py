"""`plan --hosts`: what is told, written and exported of an answer on a job's hosts, and refused."""

from __future__ import annotations

import json
import re
from itertools import combinations
from pathlib import Path

import pytest

from p2smt.cluster.hostlist import parse_hostlist
from tests.cli.tools import H100, RACKS, SMALL, TINY, assert_one_error, cli
from tests.schemas.tools import complaints

REGULAR = RACKS.replace("n[2,4]", "n[2,4,6]").replace(", bandwidth: 5 GB/s}", "}")
LEAVES = """
name: leaves
library: none
algorithms: [ring]
device: {name: h100, peak: {bf16: 989 TFLOP/s}, memory_bandwidth: 3.35 TB/s, memory: 81559 MiB}
levels:
  - {name: leaf, size: 2, link: {kind: switch, bandwidth: 200 GB/s, latency: 5 us, fabric: ib}}
  - name: node
    size: 2
    link: {kind: switch, ports: 8, bandwidth: 25 GB/s, latency: 5 us, fabric: ib}
  - {name: gpu, size: 8, link: {kind: switch, bandwidth: 450 GB/s, latency: 1 us, fabric: nvlink4}}
switches: [{name: a, hosts: "n[1-2]"}, {name: b, hosts: "n3"}]
""".replace("fabric: ib", "fabric: infiniband")
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


def test_the_plan_file_of_a_mixture_lists_the_ranks_of_its_experts() -> None:
    answer = cli(*mixture("--hosts", "n[1-3]", "-o", "plan.json", "--pick", "fastest", "--json"))
    plan = json.loads(Path("plan.json").read_text())
    ranks = plan["training"]["placement"]["expert_ranks"]
    assert complaints("plan", plan) == []
    assert sorted(ranks) == sorted(plan["ranks"])
    assert {one["matrix"] for one in plan["requests"]} <= {"attention", "experts"}
    assert plan["training"]["prediction"]["iteration_s"] == answer.json()["best"]["iteration_s"]
    for words in (["verify"], ["cost"], ["order", "--hosts", "n[1-3]"]):
        outcome = cli(words[0], "plan.json", *words[1:])
        assert outcome.code == 0, outcome
    back = cli(*mixture("--hosts", "n[1-3]", "--compare", "plan.json", "--json"))
    assert back.code == answer.code, back
    plan["training"]["placement"]["expert_ranks"] = [*ranks[1:], ranks[1]]
    Path("wrong.json").write_text(json.dumps(plan))
    outcome = cli("verify", "wrong.json")
    assert outcome.code == 2
    assert "each once" in outcome.err


@pytest.mark.parametrize("trainer", ["megatron", "torchtitan"])
@pytest.mark.parametrize("hosts", [("--hosts", "n[1-3]"), ("-t", "tiny.yaml")])
def test_what_a_launcher_is_planned_for_it_can_number(hosts: tuple[str, ...], trainer: str) -> None:
    """Whichever of the list is picked, of experts across nodes, too."""
    asked = ["--fix", "ep=2", "--launcher", trainer, "--require", "ep across node", *hosts]
    asked += ["--top", "3", "-o", "plan.json"]
    words = [one for one in mixture() if one != "racks.yaml"] if "-t" in hosts else mixture()
    if "-t" in hosts:
        words.remove("-t")
    for pick in ((), ("--pick", "fastest")):
        planned = cli(*words, *asked, *pick)
        assert planned.code in (0, 3), planned
        outcome = cli("export", "plan.json", "--to", f"{trainer}-options", "-o", "-")
        assert outcome.code == 0, outcome


def test_the_screen_the_plan_and_its_hosts_agree() -> None:
    shown = cli(*plan("60..64", "--hosts", "n[1-5]", "-o", "plan.json"))
    assert shown.code == 0, shown
    lines = shown.out.splitlines()
    assert len(lines) <= 20
    assert max(map(len, lines)) <= 80
    (hosts,) = [line for line in lines if line.startswith("hosts")]
    data = cli(*plan("60..64", "--hosts", "n[1-5]", "--json")).json()
    assert complaints("plan-hosts", data) == []
    best = data["recommended"]
    assert data["status"] == "optimal"
    assert data["bound_tokens_per_s"] == pytest.approx(data["tokens_per_s"], rel=1e-8)
    assert hosts.startswith(f"hosts    {len(best['host_order'])} of 5")
    assert len(best["host_order"]) > 1
    assert sorted(best["host_order"] + best["idle"]) == ["n1", "n2", "n3", "n4", "n5"]
    assert cli("verify", "plan.json").code == 0
    listed = cli("export", "plan.json", "--to", "hostlist").out.strip()
    assert list(parse_hostlist(listed)) == data["recommended"]["host_order"]
    again = cli(
        *("estimate", "-m", "small.yaml", "-t", "racks.yaml", "-s", best["strategy"]),
        *("--hosts", ",".join(best["host_order"]), "--seq", "1024", "--json"),
        *("--global-batch", str(best["global_batch"])),
    ).json()
    assert again["tokens_per_s"] <= data["best"]["tokens_per_s"] * (1 + 1e-9)


def test_the_one_to_run_is_picked_from_the_list() -> None:
    asked = ("30..32", "--hosts", "n[1-3]", "--within", "30%", "--top", "4")
    data = cli(*plan(*asked, "--json")).json()
    assert complaints("plan-hosts", data) == []
    rates = [one["tokens_per_s"] for one in data["top"]]
    assert len(rates) == 4
    assert rates == sorted(rates, reverse=True)
    assert rates[0] == data["tokens_per_s"]
    assert data["near_optimal"] == len(data["near_optimal_strategies"]) >= 4
    assert data["near_optimal_strategies"][-1]["tokens_per_s"] * 1.3 >= rates[0] * (1 - 1e-9)
    run = data["recommended"]
    assert run in data["top"] or data["recommended_number"] == 5
    assert run["global_batch"] / run["iteration_s"] * 1024 == pytest.approx(run["tokens_per_s"])
    picked = cli(*plan(*asked, "--pick", "2", "-o", "plan.json"))
    assert re.search(r"^why +picked: .* slower than the fastest", picked.out, re.MULTILINE)
    assert re.search(r"^near +\d+ strategies within 30 %", picked.out, re.MULTILINE)
    assert max(map(len, picked.out.splitlines())) <= 80
    listed = cli("export", "plan.json", "--to", "hostlist").out.strip()
    assert list(parse_hostlist(listed)) == data["top"][1]["host_order"]
    first = cli(*plan(*asked, "--pick", "fastest", "--json")).json()
    assert first["recommended"] == first["best"] == data["top"][0]


def test_a_measured_strategy_in_the_range_of_the_fastest_is_the_one_to_run() -> None:
    asked = ["plan", "-m", "llama-3-8b", "-t", "leaves.yaml", "--hosts", "all", "--seq", "8192"]
    asked += ["--global-batch", "120..128", "--max-vpp", "1", "--max-pp", "2", "--max-mbs", "4"]
    asked += ["--recompute", "none", "--json"]
    Path("leaves.yaml").write_text(LEAVES)
    data = cli(*asked).json()
    run, best = data["recommended"], data["best"]
    assert data["recommended_why"].startswith("nearest to a measured run")
    assert data["recommended_known"]["distance"] <= 2 < data["known"]["distance"]
    least = best["global_batch"] / best["range_s"][1]
    assert run["global_batch"] / run["iteration_s"] >= least * (1 - 1e-9)


CHANGES = ("rack*4", "node*2", "hosts=2", "memory=1GB", "batch=24")


def test_a_plan_under_each_change_is_the_plan_of_the_changed_question() -> None:
    asked = ("30..32", "--hosts", "n[1-3]")
    words = [word for change in CHANGES for word in ("--what-if", change)]
    data = cli(*plan(*asked, *words, "--json")).json()
    assert complaints("plan-hosts", data) == []
    rows = {row["change"]: row for row in data["what_if"]}
    text = Path("racks.yaml").read_text()
    for change, level in (("rack*4", "rack"), ("node*2", "node")):
        factor = int(change[-1])
        Path("changed.yaml").write_text(_faster(text, level, factor))
        there = cli(*plan(*asked, "--json", topology="changed.yaml")).json()
        assert rows[change]["tokens_per_s"] == pytest.approx(there["tokens_per_s"], rel=1e-9)
        gain = there["tokens_per_s"] / data["tokens_per_s"] - 1
        assert rows[change]["gain"] == pytest.approx(gain, rel=1e-9, abs=1e-12)
    pairs = [
        cli(*plan("30..32", "--hosts", ",".join(pair), "--json")).json()["tokens_per_s"]
        for pair in combinations(("n1", "n2", "n3"), 2)
    ]
    assert rows["hosts=2"]["tokens_per_s"] == pytest.approx(max(pairs), rel=1e-9)
    small = cli(*plan(*asked, "--memory", "1GB", "--json")).json()
    assert rows["memory=1GB"]["status"] in ("infeasible", small["status"])
    batch = cli(*plan("24", "--hosts", "n[1-3]", "--json")).json()
    assert rows["batch=24"]["tokens_per_s"] == pytest.approx(batch["tokens_per_s"], rel=1e-9)
    assert {row["status"] for row in data["what_if"]} <= {"optimal", "infeasible"}


def test_a_change_to_more_hosts_than_the_job_has_takes_any_that_there_are() -> None:
    data = cli(*plan("32", "--hosts", "n[1-2]", "--what-if", "hosts=5", "--json")).json()
    whole = cli(*plan("32", "--hosts", "all", "--json")).json()
    assert data["what_if"][0]["tokens_per_s"] == pytest.approx(whole["tokens_per_s"], rel=1e-9)


def _faster(text: str, level: str, factor: int) -> str:
    """The file with the bandwidth of a level, and of its uplinks where they have their own."""

    def times(found: re.Match[str]) -> str:
        return f"{found[1]}{float(found[2]) * factor:g} GB/s"

    lines = text.splitlines()
    own = [f"name: {level},"] + (["hosts:"] if level == "rack" else [])
    return "\n".join(
        re.sub(r"(bandwidth: )([0-9.]+) GB/s", times, line)
        if any(word in line for word in own)
        else line
        for line in lines
    )


def test_a_plan_on_unlike_racks_is_exported_for_its_trainer() -> None:
    """Racks of one and of two hosts: places of the larger one are missing in the other."""
    made = cli(*plan("60..64", "--hosts", "n[1-2,4]", "-o", "plan.json", "--json")).json()
    assert len(made["best"]["host_order"]) == 3
    for launcher in ("megatron-options", "sbatch"):
        found = cli("export", "plan.json", "--to", launcher, "--hosts", "all")
        assert found.code == 0, found.err
        assert "--micro-batch-size" in found.out


def test_a_plan_is_no_schedule_whatever_its_cluster_is_called() -> None:
    """``gpus`` is a key of MSCCL++'s schedules."""
    Path("racks.yaml").write_text(
        Path("racks.yaml").read_text().replace("name: racks", "name: gpus")
    )
    assert cli(*plan("8", "--hosts", "n[1-2]", "-o", "plan.json")).code == 0
    assert cli("verify", "plan.json").code == 0


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
        (plan("8", "--pick", "9"), "--pick"),
        (plan("8", "--pick", "3", "--top", "3", "--within", "0%"), "is not listed: there are 1"),
        (plan("8", "--within", "1"), "lacks its %"),
        (plan("8", "--top", "0"), "--top"),
        (plan("8", "--what-if", "hosts=9"), "names 5"),
        (plan("8", "--what-if", "spine*2"), "names no level"),
        (plan("8", "--measured", "tp=2: 1s"), "must divide the global batch of 8"),
        (plan("8", "--processes", "2"), "--processes"),
        (plan("8", "--prices", "programs"), "prices of programs"),
        (plan("8", "--require", "tp within rack"), "rule on level rack"),
        (mixture("--hosts", "n[1-3]", "--require", "ep within rack"), "rule on level rack"),
        (mixture("--hosts", "n[1,9]"), "host 'n9'"),
        (mixture("--hosts", "n[1-3]", "--pick", "9"), "--pick"),
        (["estimate", *plan("8..9")[1:7], "--seq", "1024", "-s", "dp=2"], "is a range"),
    ],
)
def test_bad_input(words: list[str], told: str) -> None:
    outcome = cli(*words)
    assert_one_error(outcome)
    assert told in outcome.err


def test_where_no_strategy_is_valid_the_contradiction_is_told() -> None:
    """On no number of hosts: that is no matter of memory, and no proof is needed."""
    for more in (("--fix", "tp=3"), ("--fix", "mbs=7")):
        found = cli(*plan("12", "--hosts", "all", *more))
        assert_one_error(found)
        assert f"{more[1]}: no strategy is valid on 10 devices: " in found.err


def test_where_nothing_fits_it_is_told_what_comes_nearest() -> None:
    words = plan("12", "--hosts", "all", "--memory", "50MB")
    found, data = cli(*words), cli(*words, "--json").json()
    assert (found.code, data["status"]) == (4, "infeasible")
    assert data["proof"].endswith("fits into memory")
    nearest = data["shortfall"]["strategy"]
    assert nearest in re.sub(r"\s+", "", found.out)
    assert re.search(r"comes nearest,\s+and lacks", found.out)
    assert data["shortfall"]["missing_bytes"] > 0
    assert complaints("plan-hosts", data) == []


@pytest.mark.parametrize("batch", ["12..", "..12", ".."])
def test_a_range_has_two_ends(batch: str) -> None:
    found = cli(*plan(batch, "--hosts", "all"))
    assert_one_error(found)
    assert f"--global-batch {batch}: is a range without its ends" in found.err


def test_a_contradiction_names_the_whole_range_of_batches() -> None:
    """8 divides none of them."""
    done = cli(*plan("61..63", "--hosts", "n[1-4]", "--fix", "dp=2", "--fix", "mbs=4"))
    assert_one_error(done)
    assert "must divide the global batch of 61 to 63 sequences (rule batch" in done.err
    one = cli(*plan("63", "--hosts", "n[1-3]", "--fix", "dp=2", "--fix", "mbs=4"))
    assert_one_error(one)
    assert "must divide the global batch of 63 sequences (rule batch" in one.err
