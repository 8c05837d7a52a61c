"""`--measured`: what one's own cluster reaches of the model, in times, bands and words."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from p2smt.training.measured.anchor import ONE_RUN_SPREAD
from tests.cli.tools import H100, SMALL, TINY, assert_one_error, cli
from tests.schemas.tools import complaints

TRAINED = ("-m", "small.yaml", "--global-batch", "16", "--seq", "1024")
SCENE = (*TRAINED, "-t", "tiny.yaml")
FEW = ("--max-vpp", "1", "--recompute", "none", "--zero", "0,1", "--max-cp", "1", "--max-mbs", "2")
RUN = "tp=2,pp=2"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two nodes of four devices, the same with slow links, and a model that is small enough."""
    tiny = TINY + H100
    (tmp_path / "tiny.yaml").write_text(tiny)
    slow = tiny.replace(" 10 GB/s", " 5 GB/s").replace("100 GB/s", "50 GB/s")
    (tmp_path / "slow.yaml").write_text(slow)
    (tmp_path / "small.yaml").write_text(SMALL)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def answered(*words: str) -> dict[str, Any]:
    done = cli(*words, "--json")
    assert done.code == 0, done
    assert complaints("plan-training" if words[0] == "plan" else words[0], done.json()) == []
    return done.json()


def seconds(strategy: str, topology: str = "tiny.yaml") -> float:
    found = answered("estimate", *TRAINED, "-t", topology, "-s", strategy)["iteration_s"]
    assert isinstance(found, float)
    return found


def told(strategy: str, seconds: float) -> tuple[str, str]:
    return "--measured", f"{strategy}: {seconds * 1e6!r}us"


def test_by_one_run_the_best_is_scaled_as_by_hand() -> None:
    plain = answered("plan", *SCENE, *FEW)
    found = answered("plan", *SCENE, *FEW, "--measured", f"{RUN}: 12ms, 100MB")
    assert found["objective_s"] == plain["objective_s"]
    anchor, model_s = found["anchor"], seconds(RUN)
    assert anchor["reached"] == pytest.approx(model_s / 0.012)
    scaled_s = plain["objective_s"] * 0.012 / model_s
    assert anchor["scaled_s"] == pytest.approx(scaled_s)
    ends = [scaled_s * math.exp(-ONE_RUN_SPREAD), scaled_s * math.exp(ONE_RUN_SPREAD)]
    assert anchor["scaled_range_s"] == pytest.approx(ends)
    (row,) = anchor["runs"]
    assert (row["measured_s"], row["measured_bytes"]) == (0.012, 1e8)
    assert row["predicted_s"] == pytest.approx(model_s)
    assert row["strategy"].startswith("tp=2,pp=2,dp=2")


def test_slow_links_that_three_runs_tell_are_searched_with() -> None:
    strategies = ("tp=2,pp=2", "tp=8", "tp=1,zero=1")
    asked = [word for one in strategies for word in told(one, seconds(one, "slow.yaml"))]
    found = answered("plan", *SCENE, *FEW, *asked)
    assert found["anchor"]["links"] == pytest.approx(0.5)
    assert found["anchor"]["reached"] == pytest.approx(1, rel=1e-6)
    there = answered("plan", *TRAINED, "-t", "slow.yaml", *FEW)
    assert found["objective_s"] == pytest.approx(there["objective_s"])
    assert found["best"]["strategy"] == there["best"]["strategy"]
    one = answered("estimate", *SCENE, "-s", RUN, *asked)
    assert one["iteration_s"] == pytest.approx(seconds(RUN, "slow.yaml"))


def test_of_named_hosts_those_of_the_job_had_the_run(folder: Path) -> None:
    """Two of the hosts of four, as listed: the same as on a topology of these two."""
    tiny = (folder / "tiny.yaml").read_text()
    (folder / "two.yaml").write_text(tiny + 'hosts: "n[1-2]"\n')
    (folder / "four.yaml").write_text(tiny.replace("size: 2", "size: 4") + 'hosts: "n[1-4]"\n')
    asked = (*TRAINED, "-s", "tp=4", "--measured", f"{RUN}: 12ms")
    expected = answered("estimate", *asked, "-t", "two.yaml")["anchor"]
    found = answered("estimate", *asked, "-t", "four.yaml", "--hosts", "n[2,4]")["anchor"]
    assert found["runs"][0]["strategy"] == expected["runs"][0]["strategy"]
    assert found["reached"] == pytest.approx(expected["reached"])


@pytest.mark.parametrize("command", ["plan", "estimate"])
def test_the_screen_says_it_in_twenty_lines(command: str) -> None:
    strategy = FEW if command == "plan" else ("-s", "tp=2")
    asked = ("--measured", f"{RUN}: 12ms, 100MB", "--what-if", "node*2", "--what-if", "batch=32")
    done = cli(command, *SCENE, *strategy, *asked)
    lines = done.out.splitlines()
    assert done.code == 0
    assert len(lines) <= 20
    assert max(map(len, lines)) <= 80
    (at,) = (n for n, line in enumerate(lines) if line.startswith("measured your cluster reaches"))
    assert at < 10
    text = " ".join(line.strip() for line in lines)
    assert "; scaled: best " in text or "; scaled: this one " in text
    assert "tp=2,pp=2,dp=2: 12 ms (model " in text
    assert "0.1 GB (model " in text
    assert "published groups worse" in text


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("tp=2", "write it like"),
        ("tp=2:", "write it like"),
        (": 3s", "KEY=VALUE"),
        ("tp=2: soon", "soon"),
        ("tp=2: 12ms, much", "much"),
        ("tp=2: -3s", "-3s"),
        ("tp=3: 12ms", "does not divide the 8 devices"),
        ("tp=1,mbs=4: 12ms", "dp * mbs must divide"),
        ("tp=2,dp=8: 12ms", "8"),
        (f"{RUN}: 12s", "--force"),
        (f"{RUN}: 12us", "--force"),
        (f"{RUN}: 12ms, 4KB", "--force"),
    ],
)
@pytest.mark.parametrize("command", ["plan", "estimate"])
def test_bad_measurements_are_one_line(command: str, text: str, said: str) -> None:
    strategy = () if command == "plan" else ("-s", "tp=2")
    done = cli(command, *SCENE, *strategy, "--measured", text)
    assert_one_error(done)
    assert said in done.err


def test_force_takes_what_is_far_off_and_only_that() -> None:
    words = ("estimate", *SCENE, "-s", "tp=2")
    found = answered(*words, "--measured", f"{RUN}: 12s, 4KB", "--force")["anchor"]
    assert found["reached"] == pytest.approx(seconds(RUN) / 12)
    assert_one_error(cli(*words, "--measured", "tp=3: 12ms", "--force"))
    assert_one_error(cli(*words, "--force"))


# Runs that files tell.


SCRIPT = """GPUS=8
torchrun --nproc-per-node $GPUS pretrain_gpt.py --num-layers 4 --hidden-size 512 \\
    --ffn-hidden-size 1024 --num-attention-heads 8 --group-query-attention \\
    --num-query-groups 4 --swiglu \\
    --untie-embeddings-and-output-weights --vocab-size 1000 --make-vocab-size-divisible-by 1 \\
    --seq-length 1024 --micro-batch-size 1 --global-batch-size $BATCH --bf16 \\
    --attention-dropout 0 --hidden-dropout 0 --tensor-model-parallel-size 2 \\
    --pipeline-model-parallel-size ${PP}
"""
LEFT = ("--set", "BATCH=16", "--set", "PP=2")


@pytest.fixture
def script(folder: Path) -> Path:
    """What starts the run of ``RUN``."""
    (folder / "run.sh").write_text(SCRIPT)
    return folder / "run.sh"


@pytest.mark.usefixtures("script")
def test_a_run_that_a_script_starts_anchors_as_its_strategy() -> None:
    expected = answered("estimate", *SCENE, "-s", "tp=4", "--measured", f"{RUN}: 12ms, 100MB")
    found = answered("estimate", *SCENE, "-s", "tp=4", "--measured", "run.sh: 12ms, 100MB", *LEFT)
    assert found["anchor"] == expected["anchor"]
    itself = answered("estimate", "run.sh", "-t", "tiny.yaml", *LEFT, "--measured", "run.sh: 12ms")
    assert itself["anchor"]["scaled_s"] == pytest.approx(0.012)


@pytest.mark.usefixtures("script")
@pytest.mark.parametrize("beside", [(), ("--compare", "run.sh"), ("--compare", "tp=2")])
def test_plan_takes_what_such_a_script_leaves_open(beside: tuple[str, ...]) -> None:
    told = ("--measured", "run.sh: 12ms", *LEFT)
    found = answered("plan", *SCENE, *FEW, *told, *beside)["anchor"]
    expected = answered("plan", *SCENE, *FEW, "--measured", f"{RUN}: 12ms")["anchor"]
    assert found["runs"] == expected["runs"]


def test_a_run_of_an_answer_anchors_on_its_own_placement(folder: Path) -> None:
    asked = (*SCENE, "-s", "tp=2,dp=4", "--placement", "[[1,1],[1,4],[1,1],[2,1]]")
    found = cli("estimate", *asked, "--json")
    (folder / "a.json").write_text(found.out)
    measured = answered("plan", *SCENE, *FEW, "--measured", "a.json: 12ms")
    (row,) = measured["anchor"]["runs"]
    assert row["predicted_s"] == pytest.approx(found.json()["iteration_s"])
    assert row["predicted_s"] != pytest.approx(seconds("tp=2,dp=4"))


@pytest.mark.usefixtures("script")
@pytest.mark.parametrize(
    ("words", "rule"),
    [
        (("--measured", "run.sh: 12ms"), "does not say BATCH, PP; give --set BATCH=.. --set PP=.."),
        (
            ("--measured", "run.sh: 12ms", *LEFT[2:], "--set", "BATCH=32"),
            "has batches of 32 x 1,024",
        ),
        (("--measured", "other.sh: 12ms"), "other.sh is neither a strategy nor a file"),
        (("--measured", "run.sh"), "is not STRATEGY: TIME"),
        (("--measured", "tiny.yaml: 12ms"), "is no launch of"),
        (LEFT, "--set: tells what a launch script leaves open"),
    ],
)
def test_files_that_are_not_measured_runs_are_one_line(words: tuple[str, ...], rule: str) -> None:
    found = cli("estimate", *SCENE, "-s", "tp=4", *words)
    assert_one_error(found)
    assert rule in found.err
