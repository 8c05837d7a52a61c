"""`p2smt estimate`: what it prints, and bad input in one clear line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from p2smt.training.memory_verdict import FITS_PERCENT, USABLE_PERCENT
from p2smt.units import format_gigabytes
from tests.cli.tools import H100, SIX, TINY, assert_one_error, cli
from tests.schemas.tools import complaints

MODEL = {"layers": 4, "hidden": 512, "heads": 8, "kv_heads": 4, "ffn": 1024, "vocab": 1000}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two nodes of four devices, and a model small enough for them."""
    (tmp_path / "tiny.yaml").write_text(TINY + H100)
    (tmp_path / "bare.yaml").write_text(TINY)
    (tmp_path / "small.yaml").write_text(json.dumps({**MODEL, "gated": True}))
    monkeypatch.chdir(tmp_path)
    return tmp_path


GIVEN = {
    "model": "small.yaml",
    "topology": "tiny.yaml",
    "strategy": "tp=2,pp=2,dp=2,zero=1",
    "global-batch": "16",
    "seq": "1024",
}


def arguments(**changed: str | None) -> list[str]:
    """A good command with some options changed, added, or (None) left out."""
    options = GIVEN | {name.replace("_", "-"): text for name, text in changed.items()}
    pairs = [(f"--{name}", text) for name, text in options.items() if text is not None]
    return ["estimate", *(word for pair in pairs for word in pair)]


def estimated(**changed: str | None) -> dict[str, Any]:
    done = cli(*arguments(**changed), "--json")
    assert done.code == 0, done
    data = done.json()
    assert complaints("estimate", data) == []
    return data


@pytest.mark.usefixtures("folder")
def test_parts_sum_to_the_iteration_and_to_the_memory() -> None:
    data = estimated()
    assert sum(data["parts"].values()) == pytest.approx(data["iteration_s"], rel=1e-12)
    parts = {name: size for name, size in data["memory"].items() if name != "stage"}
    assert sum(parts.values()) == data["memory_bytes"]
    assert data["fits"] is True
    assert data["matrix"] == [[2, 1], [1, 2], [1, 1], [1, 2]]
    assert data["tokens_per_s"] * data["iteration_s"] == pytest.approx(16 * 1024)
    assert data["mfu"] == pytest.approx(data["tflops_per_device"] / 989)
    for axis, hidden in data["hidden"].items():
        mine = [one for one in data["requests"] if one["name"].split()[0] == axis]
        assert sum(one["hidden_s"] for one in mine) == pytest.approx(hidden)
        assert sum(one["visible_s"] for one in mine) == pytest.approx(data["parts"][axis])


@pytest.mark.usefixtures("folder")
def test_a_person_reads_the_same() -> None:
    done, screen = cli(*arguments(), "--details"), cli(*arguments())
    data = estimated()
    assert (done.code, screen.code, screen.err) == (0, 0, "")
    assert done.out.startswith(screen.out)
    assert screen.out.count("\n") <= 20 < done.out.count("\n")
    assert f"MFU {data['mfu']:.1%}" in screen.out
    assert data["range_why"].split(";")[0] in screen.out
    assert "fits: " in screen.out
    assert "strategy tp=2,pp=2,dp=2,cp=1" in done.out
    assert f"MFU {data['mfu']:.1%}" in done.out
    assert "fits into 73.6 GB" in done.out
    assert "efficiency megatron-h100: " in done.out
    assert "the default here" in done.out
    assert done.err == ""


@pytest.mark.usefixtures("folder")
def test_order_of_keys_says_nothing() -> None:
    one, other = estimated(), estimated(strategy="zero=1,dp=2,pp=2,tp=2")
    assert one == other


@pytest.mark.usefixtures("folder")
def test_what_does_not_fit_has_every_number_and_what_would_help() -> None:
    data = estimated(memory="10MB")
    assert (data["fits"], data["capacity_bytes"]) == (False, 10**7)
    assert data["iteration_s"] == estimated()["iteration_s"]
    done = cli(*arguments(memory="10MB"))
    assert done.code == 0
    assert "does not fit: " in done.out
    assert "still lacks" in done.out
    least = data["memory_bytes"] - 1
    assert " fits: " in cli(*arguments(memory=f"{least}B")).out


@pytest.mark.usefixtures("folder")
def test_the_verdict_on_memory_is_told_in_words_and_in_json() -> None:
    needed = estimated()["memory_bytes"]
    said = {
        "fits": (needed * USABLE_PERCENT // FITS_PERCENT + 1, True),
        "tight": (needed, True),
        "does not fit": (needed - 1, False),
    }
    for verdict, (given, fits) in said.items():
        data = estimated(memory=f"{given}B")
        assert (data["memory_verdict"], data["fits"]) == (verdict, fits)
        assert f"\nmemory   {verdict}: " in cli(*arguments(memory=f"{given}B")).out


@pytest.mark.usefixtures("folder")
def test_placement_and_efficiency_of_yours() -> None:
    usual, other = estimated(), estimated(placement="[[1,2],[2,1],[1,1],[1,2]]")
    assert other["matrix"] == [[1, 2], [2, 1], [1, 1], [1, 2]]
    assert other["parts"]["compute"] == usual["parts"]["compute"]
    fsdp = estimated(efficiency="fsdp-h100")
    assert (fsdp["efficiency"]["name"], fsdp["efficiency_default"]) == ("fsdp-h100", False)
    assert usual["efficiency_default"] is True
    assert "the default here" not in cli(*arguments(efficiency="fsdp-h100"), "--details").out


@pytest.mark.usefixtures("folder")
def test_an_efficiency_of_another_device_is_told() -> None:
    data = estimated(efficiency="megatron-a100")
    (told,) = data["efficiency_notes"]
    assert told == (
        "efficiency megatron-a100 is of a100, and the devices here are h100: times may be far off"
    )
    assert f"\nnote: {told}\n" in cli(*arguments(efficiency="megatron-a100"), "--details").out
    assert "constants are of a100" in cli(*arguments(efficiency="megatron-a100")).out
    assert estimated()["efficiency_notes"] == []
    assert "note: " not in cli(*arguments(efficiency="nemo-h100"), "--details").out


@pytest.mark.usefixtures("folder")
def test_a_split_of_any_kind() -> None:
    even = estimated(strategy="tp=4,pp=2")
    assert even["degrees"]["split"] is None
    same, other = (
        estimated(strategy="tp=4,pp=2,split=2*2"),
        estimated(strategy="tp=4,pp=2,split=1/3"),
    )
    assert same["iteration_s"] == pytest.approx(even["iteration_s"])
    assert other["degrees"]["split"] == [1, 3]
    assert other["iteration_s"] > even["iteration_s"]


@pytest.mark.usefixtures("folder")
def test_a_picture() -> None:
    assert cli(*arguments(svg="made.svg")).code == 0
    text = Path("made.svg").read_text()
    assert text.startswith("<svg ")
    assert text.count("<rect") > 8


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    "strategy", ["tp=2,pp=2,dp=2,zero=1", "dp=8,zero=3", "tp=2,dp=4,zero=1,dp_replicate=2"]
)
def test_a_plan_file(strategy: str) -> None:
    asked = arguments(strategy=strategy, output="made.json")
    assert cli(*asked).code == 0
    assert cli("verify", "made.json").code == 0
    block = json.loads(Path("made.json").read_text())["training"]
    assert block["prediction"]["iteration_s"] > 0
    assert cli("export", "made.json", "--to", "csv").code == 0


@pytest.mark.usefixtures("folder")
def test_a_plan_file_of_a_mixture_has_both_matrices() -> None:
    asked = {"model": "qwen3-30b-a3b", "topology": "dgx-h100:1", "output": "made.json"}
    strategy = "dp=8,ep=8,zero=1,recompute=full,dispatcher=flex"
    assert cli(*arguments(**asked, strategy=strategy)).code == 0
    found = json.loads(Path("made.json").read_text())
    assert set(found["training"]["placement"]) == {one["matrix"] for one in found["requests"]}
    assert cli("verify", "made.json").code == 0
    shown = cli("cost", "made.json", "--details").out
    assert "placement of experts\naxis  size  node  gpu\nep       8     1    8" in shown


NO_PLAN: list[tuple[dict[str, str | None], str]] = [
    (
        {"topology": "six.yaml", "strategy": "pp=4,dp=9", "global_batch": "144"},
        "no matrix expresses",
    ),
    ({"topology": "dgx-h100:1", "use": "gpu=1", "strategy": "dp=1"}, "take more devices"),
    ({"output": "made.xml"}, "name it .json"),
]


@pytest.mark.parametrize(("changed", "part"), NO_PLAN, ids=["six", "one device", "a name"])
def test_what_has_no_plan_file(folder: Path, changed: dict[str, str | None], part: str) -> None:
    """One device sends nothing, and on six times six devices no matrix has the order of ranks."""
    (folder / "six.yaml").write_text(SIX + H100)
    done = cli(*arguments(**{"output": "made.json", **changed}))
    assert (done.code, done.out) == (2, "")
    assert part in done.err.splitlines()[-1]
    assert not list(folder.glob("made*"))


BAD: list[tuple[dict[str, str | None], str]] = [
    ({"model": None}, "model: is missing"),
    ({"topology": None}, "topology: is missing"),
    ({"strategy": None}, "strategy: is missing"),
    ({"strategy": "dp=8,sp=1"}, "(rule sequence_parallel_tp); take sp=0, or a larger tp"),
    ({"strategy": "tp=4,pp=2,zero=1"}, "(rule zero); take zero=0, or a larger dp or cp"),
    ({"strategy": "dp=8,vpp=2"}, "(rule interleaving); take vpp=1"),
    ({"global_batch": None}, "global batch: is missing"),
    ({"seq": None}, "sequence length: is missing"),
    ({"global_batch": "0"}, "--global-batch"),
    ({"global_batch": "many"}, "--global-batch"),
    ({"seq": "-1"}, "--seq"),
    ({"model": "llama-3-71b"}, "llama-3-7"),
    ({"model": "none.yaml"}, "none.yaml"),
    ({"model": "none.json"}, "none.json"),
    ({"topology": "bare.yaml"}, "device"),
    ({"efficiency": "megatron-h10"}, "megatron-h100"),
    ({"memory": "80"}, "--memory"),
    ({"svg": "made.png"}, "must be named .svg"),
    ({"placement": "[[1,2],[2,2]]"}, "matrix"),
    ({"placement": "[[1,4],[2,1],[1,1],[1,1]]"}, "matrix"),
    # degrees that do not divide
    ({"strategy": "dp=4"}, "(rule devices)"),
    ({"strategy": "tp=2,pp=2,dp=4"}, "(rule devices)"),
    ({"strategy": "dp=8", "global_batch": "12"}, "(rule batch)"),
    ({"strategy": "pp=8"}, "(rule layers)"),
    ({"strategy": "cp=8", "seq": "1000"}, "(rule sequence)"),
    ({"strategy": "tp=4,dp=2,vpp=2"}, "(rule interleaving)"),
    ({"strategy": "tp=2,pp=4,vpp=1,split=1/1/1/2"}, "layers"),
    ({"strategy": "tp=2,pp=4,vpp=1,split=2/2"}, "chunks"),
    # keys
    ({"strategy": "tp=2,tp=4"}, "given twice"),
    ({"strategy": "tpp=2"}, "did you mean"),
    ({"strategy": "epp=2"}, "is no key of a strategy"),
    ({"strategy": "dp=8,ep=2"}, "are of mixtures of experts"),
]


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(("changed", "part"), BAD, ids=str)
def test_bad_input_is_one_line(changed: dict[str, str | None], part: str) -> None:
    done = cli(*arguments(**changed))
    assert_one_error(done)
    assert part in done.err


@pytest.mark.usefixtures("folder")
def test_heads_that_do_not_divide() -> None:
    Path("odd.yaml").write_text(
        json.dumps({**MODEL, "gated": 0, "heads": 6, "kv_heads": 6, "head_size": 64})
    )
    assert "(rule heads)" in cli(*arguments(model="odd.yaml", strategy="tp=4,dp=2")).err


@pytest.mark.usefixtures("folder")
def test_the_first_screen_says_of_what_memory_is_a_part() -> None:
    """What a run may take is less than a device has, and what is given is neither."""
    needed = format_gigabytes(estimated()["memory_bytes"])
    usual = f"memory   fits: {needed} of 73.6 GB usable (92 % of 80 GB)"
    assert usual in cli(*arguments()).out.splitlines()
    tight, least = (f"{estimated()['memory_bytes'] + more}B" for more in (1, -(10**7)))
    shown = cli(*arguments(memory=tight)).out
    assert f"memory   tight: {needed} of {needed} usable (as given), may run out" in shown
    assert "usable (as given), 0.01 GB over" in cli(*arguments(memory=least)).out


@pytest.mark.usefixtures("folder")
def test_mfu_in_low_precision_says_of_which_peak() -> None:
    device = H100.replace("peak: {", "peak: {fp8: 1979 TFLOP/s, ")
    Path("low.yaml").write_text(TINY + device)
    low = cli(*arguments(topology="low.yaml", strategy="tp=2,dp=4,zero=1,dtype=fp8")).out
    assert any(
        line.startswith("rate") and line.endswith(" of the fp8 peak") for line in low.split("\n")
    )
    assert "peak" not in cli(*arguments()).out


SIXES = TINY.replace("name: gpu, size: 4", "name: gpu, size: 6") + H100
HINT = "--use gpu=4 makes it valid: 4 of each 6"


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("strategy", ["tp=2", "tp=2,dp=6", "tp=8"])
def test_the_part_of_a_node_that_makes_a_strategy_valid_is_named(strategy: str) -> None:
    """Six devices of a node leave three times as many replicas as divide the batch."""
    Path("six.yaml").write_text(SIXES)
    done = cli(*arguments(topology="six.yaml", strategy=strategy))
    assert_one_error(done)
    assert done.err.rstrip().endswith(HINT)
    even = strategy.partition(",")[0]
    assert cli(*arguments(topology="six.yaml", strategy=even, use="gpu=4")).code == 0


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(("strategy", "batch"), [("tp=5", "16"), ("tp=2,zero=9", "16")])
def test_no_part_is_named_that_is_no_help(strategy: str, batch: str) -> None:
    Path("six.yaml").write_text(SIXES)
    done = cli(*arguments(topology="six.yaml", strategy=strategy, global_batch=batch))
    assert_one_error(done)
    assert "--use" not in done.err
    low = cli(*arguments(topology="six.yaml", strategy="tp=2,dtype=fp8", global_batch="24"))
    assert_one_error(low)
    assert "--use" not in low.err


@pytest.mark.usefixtures("folder")
def test_what_the_strategy_says_no_option_says_otherwise() -> None:
    """Equal values pass, however they are written."""
    own = {"strategy": "tp=2,dp=4,zero=1,optimizer_bytes=8", "optimizer_bytes": "08"}
    said = estimated(**own)
    assert said == estimated(strategy=own["strategy"])
    refused = cli(*arguments(**own | {"optimizer_bytes": "12"}))
    assert_one_error(refused)
    assert "strategy optimizer_bytes=8: is optimizer_bytes=12 in an option beside" in refused.err
    measured = ("--measured", f"{own['strategy']}: 1s", "--optimizer-bytes", "12", "--force")
    refused = cli(*arguments(), *measured)
    assert_one_error(refused)
    assert "strategy optimizer_bytes=8: is optimizer_bytes=12" in refused.err


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("details", [(), ("--details",)])
def test_files_that_are_written_are_named(details: tuple[str, ...]) -> None:
    files = ("-o", "plan.json", "--svg", "parts.svg")
    alone, done = cli(*arguments(), *details), cli(*arguments(), *files, *details)
    said = "plan written to plan.json\npicture written to parts.svg\n"
    assert (done.code, done.err) == (0, "")
    assert done.out.endswith(("\n\n" if details else "\n") + said)
    assert alone.out == done.out.removesuffix("\n" * bool(details) + said)
    gained = cli(*arguments(), *files, *details, "--what-if", "batch=32")
    assert gained.out.endswith(said)
    assert "\n\n\n" not in gained.out
    if not details:
        assert gained.out.count("\n") <= 20
    assert Path("plan.json").exists()
    assert "written" not in cli(*arguments(), *files, "--json").out


CONFIG = {
    "model_type": "llama",
    "num_hidden_layers": 4,
    "hidden_size": 512,
    "num_attention_heads": 8,
    "num_key_value_heads": 4,
    "intermediate_size": 1024,
    "vocab_size": 1000,
    "max_position_embeddings": 2048,
}


@pytest.mark.usefixtures("folder")
def test_a_config_file_is_read() -> None:
    Path("config.json").write_text(json.dumps(CONFIG))
    data = estimated(model="config.json")
    mine = {key: value for key, value in data["model"].items() if key in MODEL}
    assert mine == MODEL
    assert data["iteration_s"] == estimated()["iteration_s"]


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("command", ["estimate", "plan"])
def test_a_default_that_a_config_file_leaves_to_its_class_is_said(command: str) -> None:
    sizes = {key: size for key, size in CONFIG.items() if key != "vocab_size"}
    text = {**sizes, "model_type": "gemma3_text", "head_dim": 64}
    Path("config.json").write_text(json.dumps({"model_type": "gemma3", "text_config": text}))
    strategy = GIVEN["strategy"] if command == "estimate" else None
    done = cli(command, *arguments(model="config.json", strategy=strategy)[1:])
    assert done.code == 0
    taken = "config.json leaves vocab_size out: 262208 is taken, the default of Gemma3TextConfig"
    assert done.err == f"note: {taken}\n"


@pytest.mark.usefixtures("folder")
def test_a_window_as_long_as_the_sequences_is_none() -> None:
    changed = {"model_type": "mistral", "sliding_window": 1024}
    Path("config.json").write_text(json.dumps(CONFIG | changed))
    assert estimated(model="config.json")["iteration_s"] == estimated()["iteration_s"]
    done = cli("plan", *arguments(model="config.json", strategy=None)[1:])
    assert (done.code, done.err) == (0, "")
    longer = cli(*arguments(model="config.json", seq="1040"))
    assert (longer.code, longer.err) == (0, "")
    searched = cli("plan", *arguments(model="config.json", seq="1040", strategy=None)[1:])
    assert (searched.code, searched.err) == (0, "")


@pytest.mark.usefixtures("folder")
def test_a_device_that_was_not_fitted_is_answered_by_the_nearest() -> None:
    """With a wider range, and what it rests on; its memory rests on types alone."""
    Path("new.yaml").write_text((TINY + H100).replace("name: h100", "name: x1000"))
    here, there = estimated(), estimated(topology="new.yaml")
    assert there["efficiency"]["name"] == here["efficiency"]["name"] == "megatron-h100"
    assert there["efficiency_default"] is True
    assert there["memory"] == here["memory"]
    assert there["range_why"].startswith("constants are of h100")
    assert here["range_why"].startswith("constants of 25 runs on h100")
    (low, high), (least, most) = there["range_s"], here["range_s"]
    assert low < least < here["iteration_s"] == there["iteration_s"] < most < high
    assert high / low > 1.05 * most / least  # the range of these links is wide, too
    assert (there["basis"], there["known"]["error"]) == ("assumed", None)
    asked = estimated(topology="new.yaml", efficiency="megatron-a100")
    assert asked["efficiency"]["name"] == "megatron-a100"
    shown = cli(*arguments(topology="new.yaml"))
    assert (shown.code, shown.err) == (0, "")
    assert "constants are of h100" in shown.out


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("changed", "part"),
    [
        ({"model_type": "whatever"}, "whatever"),
        ({"num_hidden_layers": None}, "num_hidden_layers"),
        ({"model_type": "mixtral", "num_local_experts": 8}, "expert"),
        ({"index_topk": 2048}, "sparse"),
    ],
    ids=str,
)
def test_configs_that_are_refused(changed: dict[str, Any], part: str) -> None:
    config = {key: value for key, value in {**CONFIG, **changed}.items() if value is not None}
    Path("config.json").write_text(json.dumps(config))
    done = cli(*arguments(model="config.json"))
    assert_one_error(done)
    assert part in done.err


SEVEN_BILLIONS = {"layers": 32, "hidden": 4096, "heads": 32, "kv_heads": 32, "ffn": 11008}


def test_v100_keep_scores(folder: Path) -> None:
    """8 V100 of 32 GB and 7 billion parameters: out of memory with ZeRO-2, but not with ZeRO-3
    (hiyouga/LLaMA-Factory, 1221); FlashAttention, which keeps less, has no kernels for them."""
    model = {**SEVEN_BILLIONS, "vocab": 32000, "gated": True}
    (folder / "seven.yaml").write_text(json.dumps(model))
    asked = ["-m", "seven.yaml", "-t", "dgx1-v100:1", "--global-batch", "8", "--seq", "1024"]
    for zero, verdict in ((2, "does not fit"), (3, "fits")):
        shown = cli("estimate", *asked, "-s", f"dp=8,zero={zero},dtype=fp16").out
        assert f"\nmemory   {verdict}: " in shown
        assert "flash=0: FlashAttention has no kernels for v100" in shown
    fused = cli("estimate", *asked, "-s", "dp=8,zero=2,dtype=fp16,flash=1")
    assert "FlashAttention" not in fused.out
    for flash, kept in (("0", True), ("1", False), (None, True)):
        options = [] if flash is None else ["--flash", flash]
        found = cli("plan", *asked, "--dtype", "fp16", "--fix", "pp=1", *options)
        assert ("flash=0" in found.out.splitlines()[0]) == kept
