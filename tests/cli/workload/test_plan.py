"""`p2smt plan`: its answer against `estimate`, its files, its exit codes, and bad input."""

from __future__ import annotations

import json
import math
import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from p2smt.cli.codes import BAD_INPUT, INFEASIBLE, NOT_SETTLED
from p2smt.training.efficiencies.efficiency_files import read_efficiency
from p2smt.training.measured.measured_runs import searched_strategies
from p2smt.training.measured.prediction_errors import fit_error
from p2smt.training.search.known import distance
from p2smt.training.strategy import parse_strategy
from tests.cli.tools import H100, SMALL, TINY, assert_one_error, cli


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two nodes of four devices, and a model small enough for them."""
    (tmp_path / "tiny.yaml").write_text(TINY + H100)
    (tmp_path / "bare.yaml").write_text(TINY)
    (tmp_path / "small.yaml").write_text(SMALL)
    monkeypatch.chdir(tmp_path)
    return tmp_path


GIVEN = ("--model", "small.yaml", "--global-batch", "16", "--seq", "1024")
SCENE = (*GIVEN, "-t", "tiny.yaml")


@cache
def _planned(*more: str) -> str:
    done = cli("plan", *SCENE, *more, "--json")
    assert done.err == ""
    return done.out


def planned(*more: str) -> dict[str, Any]:
    """The answer as data; its files are in the folder of the test that asked first."""
    found = json.loads(_planned(*more))
    assert isinstance(found, dict)
    return found


def estimated(strategy: str, matrix: list[list[int]]) -> dict[str, Any]:
    done = cli(
        *("estimate", *SCENE, "--strategy", strategy, "--placement", json.dumps(matrix), "--json")
    )
    assert done.code == 0, done.err
    return done.json()


@pytest.mark.usefixtures("folder")
def test_every_figure_is_that_of_estimate() -> None:
    data = planned()
    assert data["status"] == "optimal"
    assert data["proof"].startswith("optimal in the model: ")
    assert data["objective_s"] == data["top"][0]["iteration_s"]
    assert data["bound_s"] == pytest.approx(data["objective_s"], rel=1e-6)
    assert len(data["top"]) == 3
    for one in data["top"]:
        again = estimated(one["strategy"], one["matrix"])
        same = ("strategy", "parts", "hidden", "memory", "fits", "mfu", "requests", "matrix")
        assert {key: again[key] for key in same} == {key: one[key] for key in same}


@pytest.mark.usefixtures("folder")
def test_a_plan_says_the_limit_that_was_given() -> None:
    assert cli("plan", *SCENE, "--time-limit", "100", "-o", "limited.json").code == 0
    limits = json.loads(Path("limited.json").read_text())["limits"]
    assert limits["time_limit_s"] == 100
    assert cli("plan", *SCENE, "-o", "free.json").code == 0
    assert json.loads(Path("free.json").read_text())["limits"] == {**limits, "time_limit_s": None}


@pytest.mark.usefixtures("folder")
def test_counts_and_the_near_optimal_set_agree() -> None:
    data = planned("--within", "20%")
    counts = data["counts"]
    ways = ("too_large", "lacking", "unplaced", "bounded", "evaluated", "open")
    assert sum(counts[way] for way in ways) == counts["strategies"] == data["strategies"]
    near, best_s = data["near_optimal_strategies"], data["objective_s"]
    assert data["near_optimal"] == len(near) >= 3
    assert all(best_s * (1 - 1e-9) <= one["iteration_s"] <= best_s * 1.2001 for one in near)
    for key, value in data["common"].items():
        words = {"yes": "1", "no": "0"}.get(value, value)
        assert all(f"{key}={words}" in one["strategy"].split(",") for one in near)
    assert not set(data["common"]) & set(data["varies"])
    assert data["nearest"]["strategy"] in {one["strategy"] for one in near}
    assert data["nearest"]["run"].startswith(("llama", "nemotron", "gpt", "mpt", "qwen"))


@pytest.mark.usefixtures("folder")
def test_fixed_keys_rules_and_launchers_hold() -> None:
    data = planned(
        *("--fix", "tp=2", "--fix", "zero=1", "--require", "tp within node", "--max-pp", "2"),
        *("--launcher", "megatron", "--recompute", "none", "--top", "50"),
    )
    assert data["top"]
    for one in data["top"]:
        degrees, tp = one["degrees"], one["matrix"][data["axes"].index("tp")]
        assert (degrees["tp"], degrees["zero"], degrees["recompute"]) == (2, 1, "none")
        assert degrees["pp"] <= 2
        assert tp == [1, 2]
    spaces = {one["name"]: one["values"] for one in data["space"]}
    assert (spaces["tp"], spaces["recompute"]) == ("2", "none")
    assert next(one for one in data["options"] if one["trainer"] == "megatron")["lacks"] == []


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--fix", "tp=4", "--max-tp", "2"), "fixed tp=4: .* at most 2 .--max-tp.; drop one"),
        (("--fix", "cp=64", "--max-cp", "32"), "fixed cp=64: .* at most 32 .--max-cp"),
        (("--fix", "zero=1", "--zero", "0,2"), "fixed zero=1: .* one of 0, 2 .--zero"),
        (("--fix", "recompute=full", "--recompute", "none"), "full: .* one of none .--recompute"),
        (("--fix", "sp=1", "--fix", "tp=1"), "tp=1, sp=1: .*rule sequence_parallel_tp.; change"),
        (("--fix", "vpp=2", "--fix", "pp=1"), "pp=1, vpp=2: .*rule interleaving.; change"),
        (
            ("--zero", "1,2", "--fix", "tp=2", "--fix", "pp=4"),
            "zero of 1, 2: .*rules devices, zero",
        ),
        (("--fix", "tp=2", "--fix", "tp=gpu:1,node:1"), "fixed tp=gpu:1,node:1: .*tp=2 is fixed"),
    ],
)
def test_contradictions_are_refused_in_a_line(options: tuple[str, ...], words: str) -> None:
    done = cli("plan", *SCENE, *options, "-o", "new.json")
    assert (done.code, done.out, done.err.count("\n")) == (2, "", 1)
    assert re.search(words, done.err)
    assert not Path("new.json").exists()


@pytest.mark.usefixtures("folder")
def test_times_are_those_of_the_launcher_or_it_is_told() -> None:
    few = ("--fix", "tp=2", "--fix", "pp=1", "--recompute", "none", "--top", "1")
    megatron, titan, speed, asked = (
        planned(*few, *more)
        for more in (
            ("--launcher", "megatron"),
            ("--launcher", "torchtitan"),
            ("--launcher", "deepspeed"),
            ("--launcher", "torchtitan", "--efficiency", "megatron-h100"),
        )
    )
    found = [one["efficiency"]["name"] for one in (megatron, titan, speed, asked)]
    assert found == ["megatron-h100", "fsdp-h100", "megatron-h100", "megatron-h100"]
    default = [one["efficiency_default"] for one in (megatron, titan, speed, asked)]
    assert default == [True, True, True, False]
    assert megatron["efficiency_notes"] == titan["efficiency_notes"] == []
    assert speed["efficiency_notes"] == [
        "times are those of megatron-core, not of DeepSpeed, of which no runs on h100 were fitted: "
        "what overlaps may differ"
    ]
    assert asked["efficiency_notes"] == [
        "times are those of megatron-core, not of TorchTitan: what overlaps may differ"
    ]
    assert megatron["untold"] is None
    assert titan["untold"].startswith("the runs of fsdp-h100 do not tell strategies apart: ")
    told = " ".join(cli("plan", *SCENE, *few, "--launcher", "torchtitan").out.split())
    assert f"caution {titan['untold']}; this order is assumed" in told
    for more, label in (((), "caution"), (("--details",), "note:")):
        told = cli("plan", *SCENE, *few, "--launcher", "deepspeed", *more).out
        assert f"{label} {speed['efficiency_notes'][0]}" in " ".join(told.split())


@pytest.mark.usefixtures("folder")
def test_options_overlap_what_the_time_assumes() -> None:
    few = ("--fix", "tp=2", "--fix", "sp=1", "--launcher", "megatron")
    for name, overlaps in (("megatron-h100", True), ("megatron-a100", False)):
        done = cli("plan", *SCENE, *few, "--efficiency", name, "-o", "plan.json", "--details")
        assert ("  --tp-comm-overlap" in done.out.splitlines()) == overlaps
        given = ("plan.json", "--to", "megatron-options", "-o", "options.txt")
        assert cli("export", *given).code == 0
        assert ("--tp-comm-overlap" in Path("options.txt").read_text().splitlines()) == overlaps


@pytest.mark.usefixtures("folder")
def test_an_entry_of_the_matrix_can_be_fixed() -> None:
    data = planned("--fix", "tp=node:2", "--fix", "tp=4")
    assert all(one["matrix"][3] == [2, 2] for one in data["top"])


@pytest.mark.usefixtures("folder")
def test_a_person_reads_the_same() -> None:
    done, screen, data = cli("plan", *SCENE, "--details"), cli("plan", *SCENE), planned()
    assert (done.code, done.err) == (screen.code, screen.err) == (0, "")
    assert done.out.startswith(screen.out)
    assert screen.out.count("\n") <= 20 < done.out.count("\n")
    for text in (
        f"{data['near_optimal']:,} strategies within 5 % of the fastest",
        "no measured run is like it",
        f"MFU {data['recommended']['mfu']:.1%}",
    ):
        assert text in screen.out
    for text in (
        data["proof"],
        f"near-optimal: {data['near_optimal']:,} strategies lie within 5 % of the best",
        "outside everything measured: ",
        f"best: {data['recommended']['strategy']}",
        "options of ",
        "the default here",
    ):
        assert text in done.out
    assert done.out.endswith("\n")


KNOWN = ("--model", "llama-3-8b", "-t", "dgx-h100:2", "--global-batch", "128", "--seq", "8192")
FEW = ("--max-tp", "2", "--max-pp", "2", "--max-cp", "2", "--max-mbs", "1", "--within", "20%")


@cache
def recommended(*more: str) -> dict[str, Any]:
    """What is said of a question whose fastest answer is not the nearest to a measured run."""
    done = cli("plan", *KNOWN, *FEW, *more, "--json")
    assert done.code == 0, done.err
    return done.json()


def apart(strategy: str, efficiency: str) -> float:
    """How far the nearest run is."""
    runs, mine = searched_strategies(read_efficiency(efficiency)), parse_strategy(strategy)
    return min(round(distance(mine, run.strategy), 9) for run in runs)


def alike(best: dict[str, Any]) -> float:
    """Up to where a strategy is as fast by the same constants, in seconds: links are known well."""
    spread = fit_error(read_efficiency("megatron-h100"), "h100").spread
    low, high = best["range_s"]
    assert low < best["iteration_s"] * math.exp(-5 * spread), "of no run: a wide range"
    assert high > best["iteration_s"] * math.exp(5 * spread)
    return float(best["iteration_s"] * math.exp(spread))


def test_what_to_run_is_the_nearest_to_a_measured_run_in_the_range_of_the_best() -> None:
    data = recommended()
    near, run = data["near_optimal_strategies"], data["recommended"]
    inside = [one for one in near if one["iteration_s"] <= alike(data["top"][0])]
    assert 1 < len(inside) < len(near)
    far = [apart(one["strategy"], "megatron-h100") for one in inside]
    assert run["strategy"] == inside[far.index(min(far))]["strategy"]
    assert run["known"]["distance"] == min(far) == 0
    assert run["known"]["error"] < 0.05
    assert data["best"]["strategy"] == data["top"][0]["strategy"] != run["strategy"]
    assert data["best"]["known"]["outside"] == ["zero=3: measured is 1"]
    assert data["best"]["known"]["error"] is None
    nearer = [one for one in near if apart(one["strategy"], "megatron-h100") == 0]
    assert [one["strategy"] for one in nearer] == [run["strategy"]]


def test_beyond_the_range_of_the_best_nothing_is_recommended() -> None:
    """One is the same as a measured run, and so much slower that the model tells it."""
    few = ("tp=4", "mbs=1", "sp=1", "recompute=none")
    fixed = [word for value in few for word in ("--fix", value)]
    given = ("--model", "llama-3.1-70b", "-t", "dgx-h100:64", *("--global-batch", "1024"))
    done = cli("plan", *given, "--seq", "8192", "--memory", "80.5GB", *fixed, "--json")
    data = done.json()
    near, high_s = data["near_optimal_strategies"], alike(data["top"][0])
    far = {one["strategy"]: apart(one["strategy"], "megatron-h100") for one in near}
    inside = [one["strategy"] for one in near if one["iteration_s"] <= high_s]
    assert min(far.values()) == 0 < min(far[one] for one in inside)
    run = data["recommended"]
    assert far[run["strategy"]] == min(far[one] for one in inside) == 1
    assert run["iteration_s"] < data["nearest"]["iteration_s"]
    assert run["known"]["outside"] == []
    assert data["best"]["known"]["outside"] == [
        "vpp=8: measured are 1 to 7",
        "zero=2: measured is 1",
    ]


def test_files_and_options_are_of_the_strategy_that_is_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    data = recommended()
    listed = [one["strategy"] for one in data["top"]]
    number = data["recommended_number"]
    assert number > 1
    assert (*listed, data["recommended"]["strategy"])[number - 1] == data["recommended"]["strategy"]
    for pick, at in (((), number), (("--pick", "fastest"), 1), (("--pick", "2"), 2)):
        done = cli("plan", *KNOWN, *FEW, *pick, "-o", "picked.json", "--json")
        taken = done.json()
        assert taken["best"]["strategy"] == listed[0]
        assert taken["recommended_number"] == at
        assert (taken["recommended_why"] == "picked") == bool(pick)
        strategy = parse_strategy(taken["recommended"]["strategy"])
        assert pick == () or taken["recommended"]["strategy"] == listed[at - 1]
        written = json.loads(Path("picked.json").read_text())["training"]["strategy"]
        assert (written["dp"], written["cp"], written["zero"]) == (
            *(strategy.dp, strategy.cp, strategy.zero),
        )
        text = next(one["text"] for one in taken["options"] if one["trainer"] == "megatron")
        assert f"--context-parallel-size {strategy.cp}\n" in text
    assert cli("verify", "picked.json").code == 0
    refused = cli("plan", *KNOWN, *FEW, "--pick", "4", "-o", "none.json")
    assert_one_error(refused)
    assert "--pick 4: is not listed: there are 3; pick one of these" in refused.err
    assert not Path("none.json").exists()


@pytest.mark.parametrize(
    ("pick", "why"),
    [
        ((), "nearest to a measured run: 0.0% slower than the fastest, in its range"),
        (("--pick", "fastest"), "picked: the model's fastest"),
        (("--pick", "2"), "picked: 0.0% slower than the fastest, in its range"),
    ],
)
def test_the_screen_says_why_it_is_this_one_and_what_the_fastest_is(
    pick: tuple[str, ...], why: str
) -> None:
    lines = cli("plan", *KNOWN, *FEW, *pick).out.splitlines()
    assert f"why      {why}" in lines
    beside = [line for line in lines if line.startswith("fastest")]
    assert (beside == []) == (pick == ("--pick", "fastest"))
    assert all(line.endswith(": dp=16,zero=3") for line in beside)
    assert any("zero=3: no run like it; range may not hold" in line for line in lines)
    assert sum(line[9:11] == " *" or line[9:10] == "*" for line in lines) == 1


@pytest.mark.usefixtures("folder")
def test_files_are_written_and_taken() -> None:
    done = cli("plan", *SCENE, "--fix", "tp=2", "-o", "plan.json", "--svg", "plan.svg")
    assert done.code == 0, done.err
    assert done.out.endswith("plan written to plan.json\npicture written to plan.svg\n")
    assert Path("plan.svg").read_text().startswith("<svg ")
    assert cli("verify", "plan.json").code == 0
    plan = json.loads(Path("plan.json").read_text())
    plan["training"]["prediction"]["memory"]["activations"] += 1
    Path("wrong.json").write_text(json.dumps(plan))
    assert cli("verify", "wrong.json").code == 1


@pytest.mark.usefixtures("folder")
def test_programs_are_never_slower() -> None:
    plain, programs = planned("--fix", "pp=1"), planned("--fix", "pp=1", "--prices", "programs")
    assert programs["objective_s"] <= plain["objective_s"] * (1 + 1e-9)
    assert programs["objective_s"] <= plain["best"]["iteration_s"] * (1 + 1e-9)
    best = programs["best"]
    assert best["iteration_s"] == pytest.approx(programs["objective_s"])
    assert best["iteration_s"] <= best["collectives_s"] * (1 + 1e-12)


@pytest.mark.usefixtures("folder")
def test_what_fits_nowhere_says_by_how_much_and_what_would_help() -> None:
    done = cli("plan", *SCENE, "--memory", "10MB", "--json")
    data = done.json()
    assert (done.code, data["status"]) == (INFEASIBLE, "infeasible")
    assert data["best"] is None
    short = data["shortfall"]
    assert short["missing_bytes"] == short["bytes_needed"] - 10_000_000 > 0
    assert any("times as many devices" in text for text in short["help"])
    shown = cli("plan", *SCENE, "--memory", "10MB")
    assert shown.code == INFEASIBLE
    assert "what would help: " in shown.out
    assert " GB" in shown.out


@pytest.mark.usefixtures("folder")
def test_a_limit_is_never_a_proof() -> None:
    done = cli("plan", *SCENE, "--time-limit", "0.000001", "--json")
    assert done.code == NOT_SETTLED
    assert done.json()["status"] in ("unknown", "feasible")
    assert "optimal in the model" not in done.json()["proof"]


BAD = [
    (("--topology", "tiny.yaml"), "model, global batch and sequence length: are missing"),
    (SCENE[2:], "model: is missing"),
    (GIVEN, "topology: is missing"),
    ((*GIVEN[:4], "-t", "tiny.yaml"), "sequence length: is missing"),
    ((*GIVEN[:2], *GIVEN[4:], "-t", "tiny.yaml"), "global batch: is missing"),
    ((*GIVEN, "-t", "bare.yaml"), "device"),
    ((*SCENE, "--fix", "tp"), "is not KEY=VALUE"),
    ((*SCENE, "--fix", "ttp=2"), "did you mean tp?"),
    ((*SCENE, "--fix", "tp=2", "--fix", "tp=4"), "given twice"),
    ((*SCENE, "--fix", "tp=3"), "tp=3"),
    ((*SCENE, "--fix", "zero=4"), "ZeRO has stages 0 to 3"),
    ((*SCENE, "--fix", "flash=0"), "--flash"),
    ((*SCENE, "--fix", "dropout=1"), "--dropout"),
    ((*SCENE, "--fix", "tp=rack:2"), "rack"),
    ((*SCENE, "--require", "tp within nod"), "nod"),
    ((*SCENE, "--require", "ep within node"), "ep"),
    ((*SCENE, "--within", "7"), "lacks its %; write 7%"),
    ((*SCENE, "--within", "0"), "lacks its %; write 0%"),
    ((*SCENE, "--within", "1001%"), "from 0% to 1000%; write it like 5%"),
    ((*SCENE, "--within", "wide"), "from 0% to 1000%; write it like 5%"),
    ((*SCENE, "--top", "0"), "--top"),
    ((*SCENE, "--pick", "0"), "--pick '0': must be fastest, or a number of the list, from 1 to 4"),
    ((*SCENE, "--pick", "5"), "list more with --top"),
    ((*SCENE, "--pick", "first"), "--pick"),
    ((*SCENE, "--pick", "٣"), "--pick"),
    ((*SCENE, "--prices", "money"), "collectives, programs"),
    ((*SCENE, "--launcher", "none"), "megatron, megatron-bridge, torchtitan, deepspeed"),
    ((*SCENE, "--max-tp", "0"), "--max-tp"),
    ((*SCENE, "--max-mbs", "x"), "--max-mbs"),
    ((*SCENE, "--recompute", "some"), "none, selective, full"),
    ((*SCENE, "--recompute", "full,full"), "twice"),
    ((*SCENE, "--zero", "1,5"), "ZeRO has stages 0 to 3"),
    ((*SCENE, "--flash", "2"), "must be 0 or 1"),
    ((*SCENE, "--dropout", ""), "must be 0 or 1"),
    ((*SCENE, "--dtype", "fp8"), "bf16, fp16"),
    ((*SCENE, "--memory", "80"), "--memory"),
    ((*SCENE, "--efficiency", "none"), "none"),
    ((*SCENE, "--svg", "plan.png"), "must be named .svg"),
    ((*SCENE, "-o", "nowhere/plan.json"), "is not a file in an existing folder"),
    ((*SCENE, "-o", "plan.yaml"), "name it .json"),
    ((*SCENE, "--time-limit", "soon"), "time limit"),
]


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(("arguments", "part"), BAD, ids=str)
def test_bad_input_is_one_line(arguments: tuple[str, ...], part: str) -> None:
    done = cli("plan", *arguments)
    assert_one_error(done, BAD_INPUT)
    assert part in done.err


@pytest.mark.usefixtures("folder")
def test_one_device_is_answered_and_has_no_plan_file() -> None:
    one = ("plan", *GIVEN, "-t", "tiny.yaml", "--use", "gpu=1", "--use", "node=1")
    done = cli(*one, "--details")
    assert done.code == 0, done.err
    assert "communication of an iteration: none" in done.out
    refused = cli(*one, "-o", "plan.json")
    assert (refused.code, refused.out) == (BAD_INPUT, "")
    assert "one device sends nothing" in refused.err


@pytest.mark.usefixtures("folder")
def test_a_batch_that_nothing_divides() -> None:
    """dp must divide the batch; one sequence leaves dp=1, and pp without interleaving."""
    done = cli(
        "plan", *GIVEN[:2], "--global-batch", "1", "--seq", "1021", "-t", "tiny.yaml", "--json"
    )
    assert done.code == 0
    assert done.json()["best"]["degrees"]["dp"] == 1


@pytest.mark.usefixtures("folder")
def test_a_factor_of_a_node_that_no_replicas_take_is_said() -> None:
    """Three times as many replicas as divide the batch: pp has the three, or nothing is valid."""
    Path("six.yaml").write_text(TINY.replace("name: gpu, size: 4", "name: gpu, size: 6") + H100)
    asked = ("plan", *GIVEN, "-t", "six.yaml")
    done = cli(*asked)
    assert "run      pp=6,dp=2,zero=1" in done.out.splitlines()
    part = "--use gpu=4 has none: 4 of each 6"
    assert done.err == f"note: pp=6: a factor 3 of 6 must lie somewhere; {part}\n"
    refused = cli(*asked, "--max-pp", "2")
    assert_one_error(refused, BAD_INPUT)
    assert refused.err.rstrip().endswith("; --use gpu=4 makes it valid: 4 of each 6")
    replicas = cli("plan", *GIVEN[:2], "--global-batch", "48", *GIVEN[4:], "-t", "six.yaml")
    assert (replicas.code, replicas.err) == (0, "")
    low = cli(*asked, "--dtype", "fp8")
    assert_one_error(low, BAD_INPUT)
    assert "--use" not in low.err
