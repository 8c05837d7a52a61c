"""Mixtures, hybrids, windows and low precision: counted by hand, and beside the dense formulas."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pytest

import p2smt
from p2smt.cluster.file import load_topology
from p2smt.errors import InputError
from p2smt.training.efficiencies.efficiency_files import (
    default_efficiency,
    dump_efficiency,
    parse_efficiency,
    read_efficiency,
)
from p2smt.training.efficiency import Efficiency, LayerConstants, TrainingRun
from p2smt.training.formulas.quantities import quantities
from p2smt.training.formulas.stages import Stages, StrategyColumns, chunk_layers, splits_evenly
from p2smt.training.iteration import call_prices, predict
from p2smt.training.model_file import read_model
from p2smt.training.pipeline import combine, request_columns, work
from p2smt.training.prediction import DISPATCH_REQUEST
from p2smt.training.strategy import Batch, Recompute, Strategy, parse_strategy, strategy_text
from p2smt.training.transformer import Attention, Experts, LayerKind, LayerRun, Mlp, Transformer
from p2smt.training.validity import violations
from tests.cli.tools import cli

BRIDGE = read_efficiency("megatron-bridge-h100")
SMALL = Transformer(
    *("small", 4, 64, 8, 4, 96, True, 100, 8),
    experts=Experts(8, 2, 48, shared_width=32),
    order=(LayerRun(1, (LayerKind(),)), LayerRun(3, (LayerKind(mlp=Mlp.EXPERTS),))),
)
BATCH = Batch(64, 128)


def of_stage(model: Transformer, strategy: Strategy, name: str) -> list[float]:
    """A row's values by stage."""
    columns = StrategyColumns.of((strategy,))
    found = quantities(model, BATCH, columns, BRIDGE.framework, BRIDGE)
    return [float(value) for value in found.of_stage(name)[0]]


@pytest.mark.parametrize(
    "name", ["deepseek-v3", "gpt-oss-20b", "mixtral-8x7b", "llama-4-maverick", "nemotron-3-nano"]
)
def test_devices_hold_all_parameters_together(name: str) -> None:
    """Of pp stages without tp: all stages' matrices, and each stage's experts on ep devices."""
    model = replace(read_model(name), mtp=0)
    layers = model.layers
    split = (layers // 2, layers - layers // 2)
    strategy = Strategy(pp=2, dp=4, ep=4, split=split, dtype="fp8")
    rest = sum(of_stage(model, strategy, "stage_parameters"))
    experts = 4 * sum(of_stage(model, strategy, "stage_experts"))
    assert rest + experts == pytest.approx(model.parameters, rel=1e-12)


def test_tensor_parallelism_divides_what_it_may() -> None:
    """Routers are whole on each rank of tp, experts are divided by etp."""
    whole = Strategy(dp=8, ep=2, zero=1)
    divided = Strategy(dp=4, tp=2, ep=2, etp=2, zero=1, sequence_parallel=True)
    (all_,) = of_stage(SMALL, whole, "stage_parameters")
    (half,) = of_stage(SMALL, divided, "stage_parameters")
    routers = 3 * 64 * 8
    assert half == pytest.approx((all_ - routers) / 2 + routers)
    (experts,), (part,) = (of_stage(SMALL, one, "stage_experts") for one in (whole, divided))
    assert part == pytest.approx(experts / 2)
    assert experts == 3 * (8 / 2) * 3 * 64 * 48


def test_tokens_of_experts_do_not_shrink_with_ep() -> None:
    tokens = [of_stage(SMALL, Strategy(dp=8, ep=ep), "routed")[0] for ep in (1, 2, 8)]
    assert tokens == [2 * 128.0] * 3


DENSE = Transformer("dense", 8, 256, 8, 4, 512, True, 1000, 32)
AS_DENSE = Efficiency(
    *("x", "h100", BRIDGE.framework, 0.6, 1e-4, 0, 0.0),
    LayerConstants(0.6, (), 0.6, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0),
)
STRATEGIES = [
    "dp=8",
    "tp=2,pp=2,dp=2,sp=1,zero=1",
    "tp=2,pp=2,dp=2,vpp=2,sp=1,recompute=full",
    "tp=4,cp=2",
    "dp=8,zero=3",
    "pp=8,mbs=2",
]


@pytest.mark.parametrize("text", STRATEGIES)
def test_a_dense_model_takes_what_the_dense_formulas_say(text: str) -> None:
    """The same constants: computing, calls and bytes agree; the dense formulas count what fused
    attention reads and writes besides, and a loss that is not fused: of few words here."""
    strategy, topology = parse_strategy(text), load_topology("dgx-h100:1")
    batch = Batch(64, 2048)
    plain = replace(AS_DENSE, layers=None)
    model = replace(DENSE, head_size=128, vocab=128)
    kinds = predict(TrainingRun(model, batch, strategy), topology, AS_DENSE)
    dense = predict(TrainingRun(model, batch, strategy), topology, plain)
    assert kinds.time.compute_s == pytest.approx(dense.time.compute_s, rel=0.05)
    assert kinds.time.optimizer_s == pytest.approx(dense.time.optimizer_s)
    assert kinds.model_flops == pytest.approx(dense.model_flops)
    one = {r.request.name: r.request for r in kinds.requests if r.request.axes != ("ed",)}
    other = {r.request.name: r.request for r in dense.requests}
    shared = {name for name in one if name in other and not name.startswith("dp layer")}
    assert len(shared) >= len(other) - 2
    for name in shared:
        assert (one[name].calls, one[name].axes) == (other[name].calls, other[name].axes), name
        assert one[name].payload_bytes == pytest.approx(other[name].payload_bytes, abs=1), name


@pytest.mark.parametrize("text", [*STRATEGIES, "dp=8,flash=0,dropout=1", "dp=8,flash=0"])
def test_a_dense_model_keeps_what_the_dense_formulas_say(text: str) -> None:
    columns = StrategyColumns.of((parse_strategy(text),))
    plain = replace(AS_DENSE, layers=None)
    one, two = (
        quantities(DENSE, Batch(64, 2048), columns, BRIDGE.framework, efficiency)
        for efficiency in (AS_DENSE, plain)
    )
    for name in ("parameter_bytes", "gradient_bytes", "optimizer_bytes", "activation_bytes"):
        many = [found.of_stage(name)[0].max() for found in (one, two)]
        assert many[0] == pytest.approx(many[1], rel=1e-12), name


def test_parameters_in_low_precision() -> None:
    """Of layers twice 33/32 bytes (as they are, and transposed), and 2 more where they are kept in
    16 bits as well; embedding and logits stay in 16 bits."""
    ends = 2 * 100 * 64
    (layers,) = (
        rest + experts - ends
        for rest, experts in zip(
            of_stage(SMALL, Strategy(), "stage_parameters"),
            of_stage(SMALL, Strategy(), "stage_experts"),
            strict=True,
        )
    )
    for more, each in (("bf16", 2), ("mxfp8", 2.0625), ("nvfp4", 1.125)):
        (found,) = of_stage(SMALL, Strategy(dtype=more), "parameter_bytes")
        assert found == pytest.approx(each * layers + 2 * ends), more
    (found,) = of_stage(SMALL, Strategy(dtype="mxfp8", fp8_params=False), "parameter_bytes")
    assert found == pytest.approx(4.0625 * layers + 2 * ends)
    with pytest.raises(InputError, match="fp8_params=0: says how a dtype of low precision"):
        Strategy(fp8_params=False)


def test_what_mixtures_keep_besides() -> None:
    """Tokens of 128: unfused scores, masks of dropout, an activation that no gate is fused with."""
    plain = Strategy()
    for gated, kept in ((True, 2 * 2 + 2), (False, 2 + 2 + 2)):
        model = replace(SMALL, gated=gated)
        (mixture,) = of_stage(model, plain, "mixture_kept_bytes")
        norms = 128 * 64 * 4
        shared = (2 * (1 + gated) + 2) * 32 * 128
        tokens = 2 * 2 * 128 * 64 + 12 * 8 * 128
        assert mixture == pytest.approx(norms + shared + tokens + kept * 48 * 2 * 128)
    fused, unfused, dropped = (
        of_stage(SMALL, one, "attention_kept_bytes")[0]
        for one in (plain, Strategy(flash=False), Strategy(flash=False, dropout=True))
    )
    assert unfused - fused == pytest.approx(8 * 128 * (2 * 128 - 4))
    assert dropped - unfused == pytest.approx(8 * 128 * 3 * 128 + 128 * 64)


def test_later_tokens_keep_a_softmax_and_an_embedding() -> None:
    model, strategy = replace(SMALL, mtp=1), Strategy(pp=2, dp=1, split=(2, 2))
    without = of_stage(replace(model, mtp=0), strategy, "loss_bytes")
    more = of_stage(model, strategy, "loss_bytes")[1] - without[1]
    assert more == pytest.approx(128 * (4 * 64 + 4 * 100))
    parts = ("stage_parameters", "stage_experts", "optimizer_bytes")
    (_, rest), (_, experts), (_, optimizer) = (of_stage(model, strategy, name) for name in parts)
    assert optimizer == pytest.approx(12 * (rest + experts + 100 * 64))


def test_one_expert_for_all_is_a_dense_model() -> None:
    """E = r = 1, no shared experts: but for the router, and tokens put in order and back."""
    mixture = replace(DENSE, ffn=0, experts=Experts(1, 1, 512))
    strategy, topology = parse_strategy("dp=8,zero=1"), load_topology("dgx-h100:1")
    batch = Batch(64, 2048)
    one = predict(TrainingRun(mixture, batch, strategy), topology, AS_DENSE)
    two = predict(TrainingRun(DENSE, batch, strategy), topology, AS_DENSE)
    assert one.memory.optimizer == pytest.approx(two.memory.optimizer, rel=0.01)
    moved = 8 * 2048 * 256 * 8 + 12 * 2048 * 8  # a micro-batch's layers, forward
    device = topology.known_device
    more_s = 3 * 8 * moved / (device.memory_bandwidth_bytes_per_s * 0.6)
    assert one.time.compute_s - two.time.compute_s == pytest.approx(more_s, rel=0.02)


# Which stages have which layers.


def test_layers_of_stages_are_those_of_their_chunks() -> None:
    model = read_model("deepseek-v3")
    strategy = Strategy(pp=4, vpp=2, split=(6, 8, 8, 8, 8, 8, 8, 7))
    found = Stages.of_kinds(model, StrategyColumns.of((strategy,)), np.array([16]))
    assert found.index[0].tolist() == [0, 1, 3]  # the second stage stands for the third
    assert found.weight[0].tolist() == [1, 2, 1]
    assert found.layers[0].tolist() == [14, 16, 16]  # a layer of MTP is on the last one
    assert found.kinds["nd"][0].tolist() == [3, 0, 0]
    assert found.kinds["nx"][0].tolist() == [11, 16, 16]
    assert found.kinds["nt"][0].tolist() == [0, 0, 1]
    hybrid = read_model("nemotron-3-nano")
    stages = Stages.of_kinds(hybrid, StrategyColumns.of((Strategy(pp=2),)), np.array([16]))
    text = "MEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEMEM*EMEMEMEME"
    halves = text[:26], text[26:]
    for name, letter in (("nm", "M"), ("nf", "*"), ("nx", "E")):
        assert stages.kinds[name][0].tolist() == [half.count(letter) for half in halves]


@pytest.mark.parametrize(
    ("layers", "pp", "vpp", "ahead", "expected"),
    [
        (61, 4, 4, 1, (*(4,) * 15, 1)),
        (61, 16, 1, 1, (*(4,) * 15, 1)),
        (61, 8, 1, 1, (*(8,) * 7, 5)),
        (61, 8, 4, 1, (1, *(2,) * 30, 0)),
        (60, 8, 2, 2, (*(4,) * 15, 0)),
        (60, 4, 1, 1, (15,) * 4),
        (58, 4, 1, 1, (14, 15, 15, 14)),
    ],
)
def test_even_splits_count_what_predicts_later_tokens(
    layers: int, pp: int, vpp: int, ahead: int, expected: tuple[int, ...]
) -> None:
    strategy = Strategy(pp=pp, vpp=vpp)
    assert sum(expected) == layers
    assert chunk_layers(layers, strategy, ahead) == expected


def test_the_rule_of_layers_is_whether_they_split() -> None:
    for layers, ahead, pp in product(range(1, 25), range(4), range(1, 30)):
        try:
            chunks = chunk_layers(layers, Strategy(pp=pp), ahead)
        except InputError:
            chunks = ()
        assert bool(splits_evenly(layers, ahead, np.array(pp))) == bool(chunks), (layers, ahead, pp)
        assert not chunks or (sum(chunks) == layers and len(chunks) == pp and min(chunks) >= 0)


# Tokens on their way.


@pytest.mark.parametrize("ep", [8, 16, 64])
def test_a_flexible_dispatch_is_no_slower_than_an_all_to_all(ep: int) -> None:
    """Once to each node that needs a token is no more than once for each expert."""
    model = replace(SMALL, experts=Experts(64, 8, 48))
    topology, batch = load_topology("dgx-h100:8"), Batch(64, 4096)
    prices = []
    for dispatcher in ("alltoall", "flex"):
        strategy = Strategy(dp=64, ep=ep, zero=1, dispatcher=dispatcher)
        found = call_prices(TrainingRun(model, batch, strategy), topology, BRIDGE, None)
        prices.append(found[DISPATCH_REQUEST])
    assert prices[1] <= prices[0]


def test_time_grows_with_every_price() -> None:
    strategy = parse_strategy("tp=2,pp=2,dp=4,vpp=2,sp=1,zero=1,ep=4,overlap=1,split=1*4")
    topology = load_topology("dgx-h100:2")
    run = TrainingRun(SMALL, BATCH, strategy)
    prices = call_prices(run, topology, BRIDGE, None)
    columns = StrategyColumns.of((strategy,))
    done = work(SMALL, BATCH, columns, topology.known_device, BRIDGE)
    before = float(combine(done, prices)[0])
    for name, seconds in prices.items():
        dearer = prices | {name: 3 * seconds + 1e-3}
        assert float(combine(done, dearer)[0]) >= before, name


# Rules, texts and constants.


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("dp=16,ep=3", "ep"),
        ("dp=16,etp=5", "etp"),
        ("dp=2,pp=8,ep=8", "expert-ranks"),
        ("tp=2,dp=8,ep=2", "expert-sp"),
        ("dp=16,overlap=1", "overlap"),
        ("dp=8,pp=2,ep=2,overlap=1,zero=1", "overlap"),
        ("dp=16,ep=2,overlap=1,recompute=full", "overlap"),
        ("dp=16,ep=2,overlap=1,recompute=moe", "overlap"),
        ("dp=16,ep=2,graphs=partial,recompute=full", "graphs"),
    ],
)
def test_what_cannot_run_is_named_by_its_rule(text: str, rule: str) -> None:
    found = violations(SMALL, BATCH, parse_strategy(text), 16)
    assert rule in [one.name for one in found]


def test_a_dense_model_has_no_experts_to_spread() -> None:
    (found,) = violations(DENSE, BATCH, parse_strategy("dp=16,ep=2"), 16)
    assert found.name == "experts"
    assert violations(SMALL, BATCH, parse_strategy("dp=16,ep=8,overlap=1"), 16) == ()


@pytest.mark.parametrize(
    "text",
    [
        "tp=1,pp=1,dp=64,cp=1,vpp=1,mbs=1,sp=0,zero=1,recompute=layernorm+moe_act,dtype=mxfp8,"
        "ep=64",
        "tp=2,pp=4,dp=8,cp=1,vpp=1,mbs=1,sp=1,zero=1,recompute=none,ep=8,etp=2,dispatcher=flex,"
        "overlap=1,graphs=partial,fp8_attention=1",
    ],
)
def test_strategies_of_mixtures_are_read_back(text: str) -> None:
    strategy = parse_strategy(text)
    assert strategy_text(strategy) == text
    columns = StrategyColumns.of((strategy, Strategy()))
    assert columns.strategy(0) == strategy
    assert columns.take(np.array([1])).strategy(0) == Strategy()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("recompute=moe_act+all", "must be one of"),
        ("recompute=moe_act+moe_act", "each once"),
        ("dispatcher=deepep", "must be one of alltoall, flex"),
        ("dtype=fp4", "must be one of bf16"),
        ("graphs=1", "must be one of none"),
    ],
)
def test_what_is_no_strategy_is_one_clear_error(text: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        parse_strategy(f"dp=2,{text}")
    with pytest.raises(InputError, match="name modules, or one of the words"):
        Strategy(modules=("moe",), recompute=Recompute.FULL)


@pytest.mark.parametrize("name", ["megatron-bridge-gb200", "automodel-h100"])
def test_constants_by_kinds_read_back(name: str) -> None:
    one = read_efficiency(name)
    assert one.layers is not None
    assert parse_efficiency(dump_efficiency(one), "it") == one


def test_a_device_without_runs_takes_the_likest_one() -> None:
    named = {
        "dgx-h100:1": "megatron-bridge-h100",
        "gb300-nvl72:1": "megatron-bridge-gb300",
        "mi300x:1": "megatron-bridge-h100",
        "dgx-a100:1": "megatron-bridge-h100",
    }
    for text, name in named.items():
        assert default_efficiency(load_topology(text).known_device, kinds=True).name == name
    assert default_efficiency(load_topology("dgx-h100:1").known_device).name == "megatron-h100"


def test_low_precision_needs_a_device_that_has_it() -> None:
    topology = load_topology("dgx-a100:1")
    with pytest.raises(InputError, match="gives no peak of fp8"):
        p2smt.estimate("llama-3-8b", topology, "dp=8,zero=3,dtype=fp8", Batch(64, 4096))
    faster, slower = (
        p2smt.estimate("llama-3-8b", load_topology("dgx-h100:1"), text, Batch(64, 4096), BRIDGE)
        for text in ("dp=8,zero=1,dtype=fp8", "dp=8,zero=1,dtype=bf16")
    )
    assert faster.iteration_s < slower.iteration_s


def test_a_window_is_faster_than_full_attention() -> None:
    topology, batch = load_topology("dgx-h100:1"), Batch(8, 32_768)
    windowed = read_model("mistral-7b-v0.1")
    full = replace(windowed, window=0, order=())
    one, other = (
        p2smt.estimate(model, topology, "dp=8,zero=1", batch, BRIDGE) for model in (windowed, full)
    )
    assert one.iteration_s < other.iteration_s
    assert {kind.attention for kind in windowed.kinds()} == {Attention.WINDOW}


def test_a_plan_in_low_precision_is_proved_kept_and_verified(tmp_path: Path) -> None:
    model = "layers: 8\nhidden: 1024\nheads: 8\nkv_heads: 8\nffn: 4096\ngated: true\nvocab: 32000\n"
    (tmp_path / "small.yaml").write_text(model)
    path = str(tmp_path / "plan.json")
    asked = ("--global-batch", "64", "--seq", "2048", "--max-mbs", "2", "--max-vpp", "2")
    done = cli(
        *("plan", "--model", str(tmp_path / "small.yaml"), "-t", "dgx-h100:1", *asked),
        *("--dtype", "fp8", "-o", path),
    )
    assert (done.code, done.err) == (0, "")
    assert "optimal in the model" in done.out
    assert "dtype=fp8" in done.out
    checked = cli("verify", path)
    assert checked.code == 0
    kept = json.loads(Path(path).read_text())
    kept["training"]["efficiency"]["layers"]["core"] /= 2
    Path(path).write_text(json.dumps(kept))
    assert cli("verify", path).code == 1


def test_a_dense_model_sends_nothing_along_axes_of_experts() -> None:
    columns = StrategyColumns.of((parse_strategy("dp=8,zero=1,dtype=fp8"),))
    found = quantities(DENSE, Batch(64, 2048), columns, BRIDGE.framework, BRIDGE)
    axes = {axis for one in request_columns(found, columns) for axis in one.axes}
    assert axes == {"pp", "dp", "dpr", "cp", "tp"}
