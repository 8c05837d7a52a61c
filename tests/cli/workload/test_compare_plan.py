"""`plan --compare`: what is run now beside the best, on matrices and on hosts; and bad input."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.cli.tools import H100, RACKS, SMALL, TINY, Outcome, assert_one_error, cli
from tests.cli.workload.test_answer_files import MIXTURE
from tests.cli.workload.test_launch_files import SCRIPT
from tests.schemas.tools import complaints

LESS = ("--max-cp", "1", "--fix", "vpp=1", "--recompute", "none,full")
YOURS = "tp=4,pp=2,zero=0"
SLOW = H100.replace("989", "2")
JOB = "n[1-5]"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two nodes, racks of named hosts, a model and a launch script."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SLURM_JOB_NODELIST", raising=False)
    Path("tiny.yaml").write_text(TINY + H100)
    Path("racks.yaml").write_text(RACKS + SLOW)
    Path("small.yaml").write_text(SMALL)
    Path("run.sh").write_text(SCRIPT)


def plan(*more: str, topology: str = "tiny.yaml", batch: str = "16") -> list[str]:
    trained = ("-m", "small.yaml", "--global-batch", batch, "--seq", "1024")
    return ["plan", "-t", topology, *trained, *LESS, *more]


def on_hosts(*more: str, batch: str = "60..64", job: str = JOB) -> list[str]:
    return plan("--hosts", job, "--zero", "0", *more, topology="racks.yaml", batch=batch)


def shown(words: list[str]) -> list[str]:
    """The lines of the first screen."""
    found = cli(*words)
    assert found.code == 0, found
    lines = found.out.splitlines()
    assert len(lines) <= 20
    assert max(map(len, lines)) <= 80
    return lines


def printed(words: list[str], schema: str = "plan-training") -> Any:
    found: Outcome = cli(*words, "--json")
    data = found.json()
    assert complaints(schema, data) == []
    return data["comparison"]


def test_the_gain_comes_first_and_its_parts_sum_up() -> None:
    data, lines = printed(plan("--compare", YOURS)), shown(plan("--compare", YOURS))
    assert lines[0].startswith(f"gain     {data['gain']:.1%} more tokens/s, ")
    assert lines[1].startswith("sure     ")
    assert data["gain"] == pytest.approx(data["gain_order"] + data["gain_degrees"])
    assert data["gain_range"][0] <= data["gain"] <= data["gain_range"][1]
    rates = [data[name]["tokens_per_s"] for name in ("yours", "ordered", "best")]
    assert rates == sorted(rates)
    assert data["gain"] == pytest.approx(rates[2] / rates[0] - 1)
    for name in ("yours", "ordered", "best"):
        assert sum(data[name]["parts"].values()) == pytest.approx(data[name]["iteration_s"])
    (rate,) = [line for line in lines if line.startswith("tokens/s")]
    assert f"{rates[0]:,.0f}" in rate
    assert f"{rates[2]:,.0f}" in rate
    gains = [one["gain"] for one in data["changes"]]
    assert gains == sorted(gains, reverse=True)
    assert min(gains) > 0
    (change,) = [line for line in lines if line.startswith("change")]
    assert f"{data['changes'][0]['change']}: " in change


def test_a_page_says_of_what_the_range_of_the_gain_is() -> None:
    """Of links, as the screen does; of two files it is of the errors of both."""
    words = plan("--compare", YOURS)
    Path("answer.json").write_text(cli(*words, "--json").out)
    low, high = printed(words)["gain_range"]
    assert cli("report", "answer.json", "-o", "page.html").code == 0
    ends = f"{low:+.1%} to {high:+.1%}"
    assert f"{ends}, links slow or fast for both" in Path("page.html").read_text()
    assert f"{ends.replace('+', '')}, links slow or fast" in " ".join(
        " ".join(shown(words)).split()
    )
    for name, strategy in (("a", YOURS), ("b", "tp=2,pp=2,zero=0")):
        job = ("-m", "small.yaml", "-t", "tiny.yaml", "--global-batch", "16", "--seq", "1024")
        Path(f"{name}.json").write_text(cli("estimate", *job, "-s", strategy, "--json").out)
    assert cli("report", "a.json", "b.json", "-o", "two.html").code == 0
    assert "errors of both apart" in Path("two.html").read_text()


def test_yours_is_what_estimate_says_and_the_best_what_plan_says() -> None:
    data = printed(plan("--compare", YOURS))
    run = ("-t", "tiny.yaml", "-m", "small.yaml", "--global-batch", "16", "--seq", "1024")
    said = cli("estimate", *run, "-s", data["strategy"], "--json").json()
    for name in ("iteration_s", "range_s", "memory_bytes", "matrix", "tokens_per_s", "parts"):
        assert data["yours"][name] == said[name], name
    alone = cli(*plan("--json")).json()
    assert data["best"]["iteration_s"] == alone["best"]["iteration_s"]
    assert "comparison" not in alone
    one = data["changes"][0]
    changed = cli("estimate", *run, "-s", one["strategy"], "--json").json()
    assert (one["iteration_s"], one["memory_bytes"], True) == (
        *(changed["iteration_s"], changed["memory_bytes"], changed["fits"]),
    )


def test_the_best_itself_gains_nothing() -> None:
    cli(*plan("--pick", "fastest", "-o", "plan.json"))
    lines = shown([*plan("--compare", "plan.json")[:3], *LESS, "--compare", "plan.json"])
    assert lines[0].startswith("gain     0.0%: yours is as fast as the best found, ")
    assert any(line.startswith("change   none alone is faster") for line in lines)


def test_details_have_every_part_and_change() -> None:
    told = cli(*plan("--compare", YOURS, "--details")).out
    data = printed(plan("--compare", YOURS))
    assert "side by side" in told
    assert all(one["change"] in told for one in data["changes"])
    assert f"yours: {data['strategy']}" in told
    assert "\nrun      " in told


def test_on_hosts_yours_is_launched_as_they_are_listed() -> None:
    words = on_hosts("--compare", "tp=2,pp=1,dp=4", job="n1,n2,n3,n4,n5")
    data, lines = printed(words, "plan-hosts"), shown(words)
    assert data["yours"]["host_order"] == ["n1", "n2", "n3", "n4"]
    assert data["yours"]["idle"] == ["n5"]
    assert data["ordered_status"] == "optimal"
    assert data["gain"] == pytest.approx(data["gain_order"] + data["gain_degrees"])
    assert data["gain_order"] > 0  # replicas under one rack after the other
    assert any(line.startswith("yours    tp=2,dp=4; ranks tp-cp-dp-pp, ") for line in lines)
    run = ("-t", "racks.yaml", "-m", "small.yaml", "--seq", "1024", "--hosts", "n1,n2,n3,n4")
    batch = str(data["yours"]["global_batch"])
    said = cli("estimate", *run, "-s", data["strategy"], "--global-batch", batch, "--json").json()
    assert data["yours"]["iteration_s"] == said["iteration_s"]
    listed = on_hosts("--compare", "tp=2,pp=1,dp=4", job="n1,n3,n5,n2,n4")
    assert printed(listed, "plan-hosts")["gain_order"] < data["gain_order"]


def test_a_gain_by_more_devices_is_told_of_a_device_too() -> None:
    words = on_hosts("--compare", "tp=2,pp=1,dp=2", job="n1,n2,n3,n4,n5")
    data, lines = printed(words, "plan-hosts"), shown(words)
    yours, best = data["yours"], data["best"]
    assert yours["devices"] == 4 < best["devices"]
    rates = [one["tokens_per_s"] / one["devices"] for one in (yours, best)]
    assert data["gain_per_device"] == pytest.approx(rates[1] / rates[0] - 1)
    assert data["gain_per_device"] < data["gain"]
    said = " ".join(" ".join(lines[:4]).split())
    assert "degrees and devices" in said
    assert f"by {best['devices']} devices in place of 4: a device trains on " in said
    (devices,) = [line.split() for line in lines if line.startswith("devices")]
    assert devices[1] == "4"
    assert printed(plan("--compare", YOURS))["gain_per_device"] is None


def test_what_a_text_leaves_open_is_said_beside_it() -> None:
    words = plan("--compare", "tp=4,pp=2,zero=0")
    assert printed(words)["assumed"] == ["mbs=1", "sp=0", "recompute=none"]
    assert "assumed: mbs=1, sp=0, recompute=none" in " ".join(" ".join(shown(words)).split())
    told = plan("--compare", "tp=1,pp=8,mbs=1,recompute=none")
    assert printed(told)["assumed"] == []  # one replica shards nothing, one device splits nothing
    assert "assumed" not in "".join(line for line in shown(told) if line.startswith("yours"))
    assert printed(["plan", "-t", "tiny.yaml", *LESS, "--compare", "run.sh"])["assumed"] == []


def test_of_a_mixture_experts_may_be_whole_and_it_is_said() -> None:
    Path("mixed.yaml").write_text(MIXTURE)
    words = ["plan", "-t", "tiny.yaml", "-m", "mixed.yaml", "--global-batch", "16", "--seq", "1024"]
    data = printed([*words, "--compare", "tp=2,pp=1,mbs=1,sp=1,zero=0,recompute=none", *LESS])
    assert data["assumed"] == ["ep=1", "etp=1"]
    assert data["yours"] is not None
    told = printed([*words, "--compare", "tp=2,pp=1,mbs=1,sp=1,zero=0,recompute=none,ep=2", *LESS])
    assert told["assumed"] == ["etp=1"]


def test_where_experts_are_not_cut_the_default_of_megatron_is_named() -> None:
    """Of a strategy's text, by compare and by estimate alike; what says etp, or has tp=1, is not
    told so."""
    Path("mixed.yaml").write_text(MIXTURE)
    job = ["-t", "tiny.yaml", "-m", "mixed.yaml", "--global-batch", "16", "--seq", "1024"]
    default = "Megatron-LM's default is tp: etp=2"
    open_, told, single = "tp=2,pp=1,sp=1", "tp=2,pp=1,sp=1,etp=1", "tp=1,pp=1"
    for text, said in ((open_, True), (told, False), (single, False)):
        found = cli("estimate", *job, "-s", text)
        assert (found.code, default in found.err) == (0, said)
        compared = " ".join(" ".join(shown(["plan", *job, "--compare", text, *LESS])).split())
        assert (f"etp=1 ({default})" in compared) == said


def test_how_sure_it_is_reads_as_words() -> None:
    data, lines = printed(plan("--compare", YOURS)), shown(plan("--compare", YOURS))
    (sure,) = [line for line in lines if line.startswith("sure")]
    wanted = "no: the best may take up to " if data["inside_error"] else "yes: the best takes "
    assert sure.startswith(f"sure     {wanted}")


def test_another_rank_order_lies_otherwise() -> None:
    words = on_hosts("--compare", "tp=2,pp=2,dp=2", job="n1,n3,n2,n4", batch="64")
    usual = printed(words, "plan-hosts")
    other = printed([*words, "--launched", "tp-cp-ep-pp-dp"], "plan-hosts")
    assert (usual["launched"], other["launched"]) == ("tp-cp-dp-pp", "tp-cp-pp-dp")
    assert usual["yours"]["host_order"] == ["n1", "n3", "n2", "n4"]
    assert other["yours"]["host_order"] == ["n1", "n2", "n3", "n4"]  # pp from host to host
    assert other["yours"]["iteration_s"] != usual["yours"]["iteration_s"]


def test_another_dropout_is_said_on_the_first_screen() -> None:
    """The best trains as yours does, unless it is told otherwise."""
    words = ["plan", "-t", "tiny.yaml", *LESS, "--compare", "run.sh", "--dropout", "0"]
    data = cli(*words, "--json").json()
    assert data["comparison"]["unsearched"] == ["dropout"]
    assert "dropout" not in data["best"]["strategy"]
    assert (
        "caution  dropout=1 (best: 0) of yours: not searched for, part of the gain"
        in cli(*words).out
    )


def test_a_launch_script_tells_the_training_too() -> None:
    words = ["plan", "-t", "tiny.yaml", *LESS, "--compare", "run.sh"]
    found = cli(*words, "--json")
    data = found.json()
    assert "left to the environment: TP=2" in found.err
    assert (data["global_batch"], data["sequence"]) == (16, 1024)
    said = cli("estimate", "run.sh", "-t", "tiny.yaml", "--json").json()
    assert data["comparison"]["yours"]["iteration_s"] == said["iteration_s"]
    assert data["comparison"]["unsearched"] == []
    assert data["best"]["strategy"].endswith(",dropout=1")
    one = cli(*words, "--set", "TP=1", "--json").json()["comparison"]
    assert one["strategy"].startswith("tp=1,pp=1,dp=8")
    smaller = cli(*words, "--global-batch", "8", "--json").json()
    assert smaller["global_batch"] == 8
    assert smaller["comparison"]["yours"]["global_batch"] == 16


def test_plans_and_what_commands_print_are_read() -> None:
    cli(*plan("-o", "plan.json"))
    run = ("-t", "tiny.yaml", "-m", "small.yaml", "--global-batch", "16", "--seq", "1024")
    placed = ("--placement", "[[1,2],[1,1],[1,1],[2,2]]")
    said = cli("estimate", *run, "-s", YOURS, *placed, "--json")
    Path("said.json").write_text(said.out)
    own = printed(["plan", "-t", "tiny.yaml", *LESS, "--compare", "said.json"])
    assert own["yours"]["iteration_s"] == said.json()["iteration_s"]
    assert own["yours"]["matrix"] == [[1, 2], [1, 1], [1, 1], [2, 2]]
    assert own["gain_order"] > 0
    planned = printed(["plan", "-t", "tiny.yaml", *LESS, "--compare", "plan.json"])
    assert planned["yours"]["strategy"] == cli(*plan("--json")).json()["recommended"]["strategy"]


def test_a_plan_on_hosts_lies_as_its_file_says() -> None:
    made = cli(*on_hosts("-o", "plan.json", "--json"))
    Path("said.json").write_text(made.out)
    best = made.json()["best"]
    for file in ("plan.json", "said.json"):
        words = ["plan", "-t", "racks.yaml", "--hosts", "n5,n4,n3,n2,n1", *LESS, "--zero", "0"]
        lines = shown([*words, "--compare", file])
        assert any(line.endswith("ranks as its file has them") for line in lines)
        data = printed([*words, "--compare", file], "plan-hosts")
        assert data["yours"]["host_order"] == best["host_order"]
        assert data["yours"]["iteration_s"] == best["iteration_s"]
    words[words.index("--hosts") + 1] = "n[1-4]"
    fewer = cli(*words, "--compare", "plan.json")
    assert fewer.code == 2
    assert "other hosts or levels" in fewer.err
    assert "takes 10 devices, and there are 8" in fewer.err


def test_other_launchers_are_read() -> None:
    Path("job.toml").write_text(
        "[model]\nname = 'llama3'\n[training]\nlocal_batch_size = 2\nseq_len = 1024\n"
        "[parallelism]\ntensor_parallel_degree = 2\n[activation_checkpoint]\nmode = 'full'\n"
    )
    Path("ds.json").write_text(
        json.dumps({"train_micro_batch_size_per_gpu": 2, "bf16": {"enabled": True}})
    )
    for file, strategy in (("job.toml", "tp=2,pp=1,dp=4"), ("ds.json", "tp=1,pp=1,dp=8")):
        words = ["plan", "-t", "tiny.yaml", "-m", "small.yaml", "--seq", "1024", *LESS]
        assert printed([*words, "--compare", file])["strategy"].startswith(strategy)


def test_yours_that_cannot_run_is_said_with_the_rule() -> None:
    lines = shown(plan("--compare", "tp=2,mbs=3"))
    assert "yours cannot run: " in lines[0]
    assert "rule batch" in " ".join(lines)
    data = printed(plan("--compare", "tp=2,mbs=3"))
    assert data["yours"] is None
    assert "rule batch" in data["broken"]
    assert data["gain"] is None
    assert data["best"] is not None
    assert {one["change"].split()[0] for one in data["changes"]} == {"mbs"}
    tight = plan("--compare", "tp=1,pp=1,mbs=2", "--memory", "300MB")
    lines = shown(tight)
    assert lines[0].startswith("gain     yours does not fit: ")
    assert any(line.startswith("change   that makes it run: ") for line in lines)
    assert printed(tight)["yours"]["fits"] is False


def test_what_all_strategies_have_in_common_is_as_in_yours() -> None:
    data = cli(*plan("--compare", f"{YOURS},dtype=fp16,flash=0", "--json")).json()
    assert data["best"]["degrees"]["dtype"] == "fp16"
    assert data["best"]["degrees"]["flash"] is False
    assert data["comparison"]["unsearched"] == []


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (plan("--compare", "run.txt"), "is no file"),
        (plan("--compare", "tp=2,oops=1"), "is no key"),
        (plan("--compare", "tp=3"), "does not divide the 8 devices"),
        (plan("--compare", "tp=2,dp=2"), "takes 4 devices, and there are 8"),
        (plan("--compare", YOURS, "--launched", "tp-pp"), "each of tp, cp, dp, pp once"),
        (plan("--compare", YOURS, "--set", "TP=2"), "tells what a launch file leaves open"),
        (plan("--launched", "tp-cp-dp-pp"), "tells what --compare leaves open"),
        (plan("--set", "TP=2"), "tells what --compare leaves open"),
        (plan("--compare", YOURS, "--prices", "programs"), "prices of programs"),
        (["plan", "-t", "tiny.yaml", "--compare", YOURS], "model, global batch and sequence"),
        (["plan", "--compare", "run.sh", "-t", "tiny.yaml", "--seq", "2048"], "1,024 tokens"),
        (["plan", "--compare", "run.sh"], "topology"),
        (on_hosts("--compare", "tp=2,dp=9"), "takes 18 devices, and there are 10"),
        (on_hosts("--compare", "tp=1,dp=3"), "no whole hosts of 2"),
    ],
)
def test_bad_input(words: list[str], told: str) -> None:
    found = cli(*words)
    assert_one_error(found)
    assert told in found.err


def test_what_is_written_is_named_where_it_is_not_the_best() -> None:
    wide = ("--within", "30%", "--compare", YOURS)
    usual = cli(*plan(*wide, "-o", "p.json")).out
    said = " ".join(usual[usual.index("plan written") :].split())
    assert re.fullmatch(
        r"plan written to p\.json: nearest to a measured run, [a-z]+=\S+; --pick fastest writes "
        r"the best",
        said,
    )
    picked = cli(*plan(*wide, "-o", "p.json", "--pick", "fastest")).out
    assert picked.endswith("plan written to p.json\n")


def test_the_fastest_of_another_batch_is_told_with_its_rate() -> None:
    words = on_hosts("--within", "30%", "--top", "9", batch="20..64")
    listed = cli(*words, "--json").json()["top"]
    batches = [one["global_batch"] for one in listed]
    other = next(at for at, batch in enumerate(batches) if batch != batches[0])
    beside = rf"; batch of {batches[0]},\s+{listed[0]['tokens_per_s']:,.0f}\s+tokens/s"
    assert re.search(beside, cli(*words, "--pick", str(other + 1)).out)
    assert not re.search(beside, cli(*words, "--pick", "2").out)


def test_of_a_launcher_only_valid_changes_are_looked_at() -> None:
    """Five stages have none of four layers, which a launcher cannot say anything of."""
    words = on_hosts("--compare", "dp=10", "--launcher", "torchtitan")
    changes = printed(words, "plan-hosts")["changes"]
    assert all("pp=1," in one["strategy"] or "pp=2," in one["strategy"] for one in changes)


def test_where_runs_do_not_tell_strategies_apart_it_is_said() -> None:
    said = "this order is assumed"
    for more in ((), ("--compare", "dp=10")):
        words = on_hosts("--launcher", "torchtitan", *more)
        assert said in re.sub(r"\s+", " ", cli(*words).out)
    assert said not in re.sub(r"\s+", " ", cli(*on_hosts("--launcher", "megatron")).out)
