"""Fields of a strategy that few trainings have: what each changes, and how it is read back."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from p2smt.api.workload import estimate
from p2smt.cluster.file import load_topology
from p2smt.parallelism.folded import with_copies
from p2smt.parallelism.placement import Matrix, Placement
from p2smt.plans.training.file_model import TrainingBlock
from p2smt.training.efficiencies.efficiency_files import read_efficiency
from p2smt.training.efficiency import Efficiency, TrainingRun
from p2smt.training.formulas.quantities import Quantities, quantities, with_seconds
from p2smt.training.formulas.stages import Stages, StrategyColumns
from p2smt.training.iteration import predict
from p2smt.training.pipeline import StrategyWork, work
from p2smt.training.plan_block import run_of, training_data
from p2smt.training.prediction import Prediction
from p2smt.training.strategy import Batch, parse_strategy
from p2smt.training.transformer import Experts, LayerKind, LayerRun, Mlp, Transformer
from tests.refusals import refusal
from tests.training.search.test_plan import cluster

BRIDGE, MEGATRON = map(read_efficiency, ("megatron-bridge-h100", "megatron-h100"))
DENSE = Transformer("dense", 8, 256, 8, 4, 512, True, 1000, 32)
MIXED = Transformer(
    *("mixed", 8, 256, 8, 4, 512, True, 1000, 32),
    experts=Experts(8, 2, 128, shared_width=128),
    order=(LayerRun(2, (LayerKind(),)), LayerRun(6, (LayerKind(mlp=Mlp.EXPERTS),))),
)
BATCH = Batch(64, 512)
H100 = load_topology("dgx-h100:1")
BOTH = pytest.mark.parametrize(
    ("model", "efficiency"), [(DENSE, MEGATRON), (DENSE, BRIDGE), (MIXED, BRIDGE)]
)


def done(model: Transformer, text: str, efficiency: Efficiency) -> StrategyWork:
    """The work of a strategy on an H100."""
    columns = StrategyColumns.of((parse_strategy(text),))
    return work(model, BATCH, columns, H100.known_device, efficiency)


def predicted(model: Transformer, text: str, efficiency: Efficiency) -> Prediction:
    """What an iteration takes on 8 GPUs."""
    return predict(TrainingRun(model, BATCH, parse_strategy(text)), H100, efficiency)


def of_columns(model: Transformer, text: str) -> Quantities:
    """What a strategy counts, before any seconds."""
    columns = StrategyColumns.of((parse_strategy(text),))
    return quantities(model, BATCH, columns, BRIDGE.framework, BRIDGE)


FIELDS = [
    "dp=8,recompute=full:2",
    "dp=8,zero=1,dp_replicate=2,optimizer_bytes=8",
    "dp=8,offload=0.25",
]


@pytest.mark.parametrize("text", FIELDS)
def test_plan_files_keep_the_fields(text: str) -> None:
    found = estimate(DENSE, H100, text, BATCH, "megatron-h100")
    kept = TrainingBlock.model_validate(training_data(found))
    assert run_of(kept, "plan").strategy == parse_strategy(text)


@pytest.mark.parametrize(
    "text", [*FIELDS, "dp=8,ep=2,shared_overlap=1,imbalance=1.25", "pp=2,dp=4,split=8/0m"]
)
def test_columns_keep_the_fields(text: str) -> None:
    columns = StrategyColumns.of((parse_strategy("dp=8"), parse_strategy(text)))
    assert columns.take(np.array([1])).strategy(0) == parse_strategy(text)


# Whole layers of each chunk from its first, computed again.


@BOTH
def test_time_and_memory_of_layers_computed_again_lie_between(
    model: Transformer, efficiency: Efficiency
) -> None:
    """All layers by their number are as full; of alike layers each adds as much."""
    texts = ["none", *(f"full:{count}" for count in range(1, 9)), "full"]
    found = [done(model, f"dp=8,zero=1,recompute={text}", efficiency) for text in texts]
    seconds = [float(one.backward_s[0, 0]) for one in found]
    kept = [float(one.memory_parts[3][0, 0]) for one in found]
    assert seconds[-1] == pytest.approx(seconds[-2], rel=1e-12)
    assert kept[-1] == pytest.approx(kept[-2], rel=1e-12)
    steps = np.diff(seconds[:-1])
    assert (steps > 0).all()
    assert (np.diff(kept[1:-1]) < 0).all()
    alike = slice(None) if model is DENSE else slice(2, None)
    if efficiency.layers is None:
        assert steps[alike] == pytest.approx(steps[alike][0])


def test_the_first_layers_are_computed_again_by_their_kind() -> None:
    """Two dense layers, then six with experts: two again are the dense ones alone."""
    plain, two, full = (
        predicted(MIXED, f"dp=8,zero=1,ep=4,recompute={text}", BRIDGE)
        for text in ("none", "full:2", "full")
    )
    calls = [
        {one.request.name: one.request.calls for one in found.requests}["ep dispatch"]
        for found in (plain, two, full)
    ]
    assert calls[0] == calls[1] == calls[2] * 4 // 6


# Copies of what ZeRO shards.


@pytest.mark.parametrize("zero", [1, 2, 3])
@pytest.mark.parametrize("text", ["dp=8", "cp=2,dp=4", "dp=4,tp=2,sp=1"])
def test_a_copy_holds_what_a_run_on_its_devices_alone_does(zero: int, text: str) -> None:
    """Parameters, gradients, optimizer: those of half of dp, for experts and for all else."""
    copies = done(MIXED, f"{text},ep=2,zero={zero},dp_replicate=2", BRIDGE)
    half = text.replace("dp=8", "dp=4") if "dp=8" in text else text.replace("dp=4", "dp=2")
    alone = done(MIXED, f"{half},ep=2,zero={zero}", BRIDGE)
    for one, other in zip(copies.memory_parts[:3], alone.memory_parts[:3], strict=True):
        assert one == pytest.approx(other)
    assert copies.optimizer_s == pytest.approx(alone.optimizer_s)


@BOTH
def test_shards_are_moved_among_their_ranks_and_added_up_over_copies(
    model: Transformer, efficiency: Efficiency
) -> None:
    plain, copied = (
        {one.request.name: one.request for one in predicted(model, text, efficiency).requests}
        for text in ("dp=8,zero=1", "dp=8,zero=1,dp_replicate=4")
    )
    assert set(copied) - set(plain) >= {"dp copies"}
    for name in ("dp gradients scatter", "dp parameters gather"):
        assert plain[name].axes == ("dp",)
        assert copied[name] == replace(plain[name], axes=("dps",))
    gradient = copied["dp gradients scatter"].payload_bytes
    assert copied["dp copies"].axes == ("dpr",)
    assert copied["dp copies"].payload_bytes == pytest.approx(gradient / 2, abs=1)
    if model.experts:
        whole = copied["experts gradients scatter"].payload_bytes
        assert copied["experts copies"].payload_bytes == pytest.approx(whole / 2, abs=1)


def test_an_expert_that_each_copy_has_once_is_not_sharded() -> None:
    """ep of half of dp and two copies: a copy has each expert once, so its shard is all of it."""
    found = {
        one.request.name
        for one in predicted(MIXED, "dp=8,ep=4,zero=1,dp_replicate=2", BRIDGE).requests
    }
    assert {"dp gradients scatter", "dp copies", "experts copies"} <= found
    assert not found & {"experts gradients scatter", "experts parameters gather"}


def test_shards_within_a_node_are_faster_over_slow_links() -> None:
    topology = load_topology("dgx-h100:16")
    model, batch = replace(DENSE, hidden=2048, ffn=8192, vocab=32000), Batch(1024, 512)
    seconds = [
        predict(TrainingRun(model, batch, parse_strategy(text)), topology, MEGATRON)
        for text in ("dp=128,zero=3", "dp=128,zero=3,dp_replicate=16")
    ]
    assert seconds[1].time.iteration_s < seconds[0].time.iteration_s
    assert seconds[1].memory.optimizer == pytest.approx(16 * seconds[0].memory.optimizer, rel=0.01)


@pytest.mark.parametrize(
    ("matrix", "copies"),
    [
        (((2, 1), (2, 2), (1, 2), (1, 2)), 2),
        (((1, 2), (4, 2), (1, 1), (1, 2)), 4),
        (((1, 2), (4, 2), (1, 1), (1, 2)), 2),
        (((1, 1), (2, 4), (1, 1), (2, 1)), 4),
        (((1, 1), (2, 4), (1, 1), (2, 1)), 8),
    ],
)
def test_copies_are_the_outer_part_of_dp(matrix: Matrix, copies: int) -> None:
    """Megatron-LM cuts the ranks of dp, in their order, into so many parts."""
    placement = Placement(matrix)
    pp, dp, cp, tp = placement.axis_sizes
    ranks = placement.rank_tensor().reshape(pp, copies, dp // copies, cp, tp)
    assert np.array_equal(with_copies(placement, copies).rank_tensor(), ranks)


def test_parts_of_dp_that_make_no_copies_are_refused() -> None:
    placement = Placement(((1, 1), (3, 4), (1, 1), (1, 1)))
    assert "do not multiply" in refusal(with_copies, placement, 2)
    strategy = parse_strategy("dp=12,zero=1,dp_replicate=2")
    run = TrainingRun(DENSE, Batch(48, 512), strategy)
    topology = cluster((3, 4), (1e9, 1e10))
    assert "do not multiply" in refusal(predict, run, topology, MEGATRON, placement)


# Moments in fewer bytes, activations on the host.


@BOTH
def test_low_precision_moments_take_a_part_of_the_optimizer(
    model: Transformer, efficiency: Efficiency
) -> None:
    whole, less = (
        done(model, f"dp=8,zero=1{text}", efficiency) for text in ("", ",optimizer_bytes=8")
    )
    assert less.memory_parts[2] == pytest.approx(whole.memory_parts[2] * 8 / 12)
    assert less.optimizer_s == pytest.approx(whole.optimizer_s * (4 + 2 * 8 + 2) / 30)
    for at in (0, 1, 3):
        assert less.memory_parts[at] == pytest.approx(whole.memory_parts[at])


@BOTH
def test_layers_on_the_host_leave_two_on_the_device(
    model: Transformer, efficiency: Efficiency
) -> None:
    """As many bytes less as the layers that are away, but for one that computes and the next."""
    kept = [
        float(done(model, f"dp=8,zero=1,offload={part}", efficiency).memory_parts[3][0, 0])
        for part in (0, 0.125, 0.25, 0.5, 0.75)
    ]
    assert kept[0] == pytest.approx(kept[1])
    if model is DENSE:
        layer = kept[2] - kept[3]
        assert kept[0] == pytest.approx(kept[2])
        assert kept[3] - kept[4] == pytest.approx(layer)
    assert (np.diff(kept) <= 0).all()
    assert kept[4] < kept[0]


# Routing that is not balanced, and tokens beside shared experts.


def test_the_busiest_rank_does_as_much_more_as_it_has_tokens() -> None:
    """Tokens of experts, their products and activations grow; nothing else does."""
    balanced, busy = (
        of_columns(MIXED, f"dp=8,ep=4,zero=1{text}") for text in ("", ",imbalance=1.5")
    )
    for name in ("routed", "expert_up_flops", "expert_down_flops", "act_moved"):
        assert busy.of_strategy(name) == pytest.approx(1.5 * balanced.of_strategy(name)), name
    for name in ("shared_up_flops", "up_flops", "stage_experts", "optimizer_bytes"):
        assert busy.of_stage(name) == pytest.approx(balanced.of_stage(name)), name
    assert (busy.of_stage("activation_bytes") > balanced.of_stage("activation_bytes")).all()
    sent = [
        {one.request.name: one.request for one in predicted(MIXED, text, BRIDGE).requests}
        for text in ("dp=8,ep=4,zero=1", "dp=8,ep=4,zero=1,imbalance=1.5")
    ]
    assert sent[1]["ep dispatch"].payload_bytes == 1.5 * sent[0]["ep dispatch"].payload_bytes
    assert sent[1]["dp gradients scatter"] == sent[0]["dp gradients scatter"]


def test_a_rank_has_all_tokens_of_its_group_at_most() -> None:
    routed = [
        of_columns(MIXED, f"dp=8,ep={ep},imbalance={x}").of_strategy("routed")[0]
        for ep, x in ((1, 1), (1, 3), (2, 2), (2, 3), (4, 3))
    ]
    assert np.divide(routed, routed[0]).tolist() == [1, 1, 2, 2, 3]


def test_imbalance_does_not_count_as_work_of_the_model() -> None:
    even, busy = (
        predicted(MIXED, f"dp=8,ep=4,zero=1{text}", BRIDGE) for text in ("", ",imbalance=2")
    )
    assert busy.model_flops == even.model_flops
    assert busy.time.iteration_s > even.time.iteration_s
    assert busy.utilization < even.utilization


@pytest.mark.parametrize(
    ("text", "ranks", "layers"),
    [("dp=8,ep=4,zero=1", 8, 6), ("pp=2,vpp=2,dp=4,ep=4,zero=1", 4, 4)],
)
def test_dispatch_hides_under_shared_experts_and_no_further(
    text: str, ranks: int, layers: int
) -> None:
    """At most as long as their products, forward and backward, take; sends have more to hide
    under."""
    model = replace(MIXED, hidden=2048, experts=Experts(8, 2, 128, shared_width=512))
    plain, beside = (
        predict(TrainingRun(model, BATCH, parse_strategy(more)), H100, BRIDGE)
        for more in (text, f"{text},shared_overlap=1")
    )
    (dispatch,) = (one for one in beside.requests if one.request.name == "ep dispatch")
    counted = of_columns(model, text)
    columns = StrategyColumns.of((parse_strategy(text),))
    timed = with_seconds(counted, columns, H100.known_device, BRIDGE)
    shared_s = sum(timed.of_strategy(f"shared_{way}_s")[0] for way in ("up", "down"))
    micro_batches = BATCH.sequences / ranks
    assert dispatch.hidden_s == pytest.approx(micro_batches * layers * 3 * shared_s)
    assert dispatch.visible_s > 0
    if ranks < 8:
        return
    assert plain.time.iteration_s - beside.time.iteration_s == pytest.approx(dispatch.hidden_s)


# Layers of multi-token prediction in a chunk of their own.


def test_multi_token_prediction_lies_where_it_is_said() -> None:
    strategy = parse_strategy("pp=4,dp=2,split=4/4/0m/0")
    columns = StrategyColumns.of((strategy,))
    stages = Stages.of_kinds(replace(MIXED, mtp=1), columns, np.array([8]))
    assert stages.kinds["nt"].tolist() == [[0, 0, 1, 0]]
    assert stages.layers.tolist() == [[4, 4, 1, 0]]
    assert stages.kinds["nx"].tolist() == [[2, 4, 1, 0]]


def test_a_stage_of_its_own_has_the_logits_twice() -> None:
    """The layer's loss has logits where the layer lies: their matrix and their time."""
    model = replace(MIXED, mtp=1)
    last, own = (of_columns(model, f"pp=4,dp=2,split={text}") for text in ("4/4/0/0m", "4/4/0m/0"))
    logits = model.vocab * model.hidden
    before, after = (one.of_stage("stage_parameters")[0] for one in (last, own))
    assert after[2] - before[2] == pytest.approx(before[3] - after[3] + logits)
    assert after[3] == pytest.approx(logits)
    seconds = [
        with_seconds(one, StrategyColumns.of((parse_strategy(text),)), H100.known_device, BRIDGE)
        for one, text in ((last, "pp=4,dp=2,split=4/4/0/0m"), (own, "pp=4,dp=2,split=4/4/0m/0"))
    ]
    logits_s = seconds[0].of_strategy("logits_s")[0]
    for found in seconds:
        device_s = found.of_stage("device_forward_s")[0]
        assert device_s[3] >= logits_s
    assert seconds[1].of_stage("device_forward_s")[0][2] > logits_s
