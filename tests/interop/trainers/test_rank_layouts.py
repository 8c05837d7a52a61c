"""Orders of ranks are taken where every group is the trainer's, and nowhere else."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import pytest

from p2smt.api.planning import trainer_options
from p2smt.api.workload import estimate
from p2smt.cluster.file import load_topology
from p2smt.errors import InputError
from p2smt.interop.trainers.megatron import MEGATRON
from p2smt.interop.trainers.megatron_bridge import MEGATRON_BRIDGE
from p2smt.interop.trainers.rank_layout import RankLayout
from p2smt.interop.trainers.torchtitan import TORCHTITAN
from p2smt.parallelism.folded import FoldedPlacement, pairs
from p2smt.parallelism.placement import IntArray, Placement
from p2smt.training.strategy import Batch, Strategy
from tests.interop.trainers.mixtures import ALIKE, LATENT
from tests.oracles.meshes import DP_LAST, PP_LAST, Groups, megatron_groups, megatron_refuses
from tests.refusals import refusal

DGX = load_topology("dgx-a100:2")
RACK = load_topology("gb200-nvl72:1")
SWAP = "--use-tp-pp-dp-mapping"
SPACES = [
    ((2, 4), Strategy(dp=2, tp=2, pp=2, ep=2, sequence_parallel=True)),
    ((2, 4), Strategy(dp=4, pp=2, ep=2)),
    ((2, 2, 4), Strategy(dp=4, cp=2, pp=2, ep=4)),
    ((2, 2, 4), Strategy(dp=4, tp=2, pp=2, ep=2, etp=2, sequence_parallel=True)),
    ((3, 4), Strategy(dp=6, pp=2, ep=2)),
]


def groups_of(devices: IntArray, launched: Sequence[int], axis: int) -> Groups:
    """Launched ranks of each group along an axis."""
    numbers = {device: rank for rank, device in enumerate(launched)}
    lines = np.moveaxis(devices, axis, -1).reshape(-1, devices.shape[axis])
    return sorted(sorted(numbers[one] for one in line) for line in lines.tolist())


def fits(order: str, folded: FoldedPlacement, launched: Sequence[int]) -> bool:
    """Whether Megatron in this order asserts nothing and has all groups."""
    one, other = folded.attention, folded.experts
    attention = dict(zip(("pp", "dp", "cp", "tp"), one.axis_sizes, strict=True))
    experts = dict(zip(("pp", "dp", "ep", "tp"), other.axis_sizes, strict=True))
    if megatron_refuses(order, attention, experts):
        return False
    return all(
        groups_of(where.rank_tensor(), launched, axis) == megatron_groups(order, degrees, name)
        for where, degrees in ((one, attention), (other, experts))
        for axis, name in enumerate(degrees)
    )


def launches(folded: FoldedPlacement) -> Iterator[IntArray]:
    """Devices in order, and as either matrix numbers its ranks, dp outermost as well."""
    ranks = folded.attention.rank_tensor()
    yield np.arange(ranks.size)
    for tensor in (ranks, folded.experts.rank_tensor()):
        yield tensor.ravel()
        yield tensor.transpose(1, 0, 2, 3).ravel()


@pytest.mark.parametrize(("levels", "strategy"), SPACES)
def test_megatron_is_told_the_order_that_has_all_groups(
    levels: tuple[int, ...], strategy: Strategy
) -> None:
    met = {PP_LAST: 0, DP_LAST: 0, "": 0}
    batch = Batch(48, 64)
    for found in pairs(levels, strategy.sizes, strategy.expert_sizes):
        for folded in found.placements():
            for launched in launches(folded):
                mine, theirs = folded.attention.rank_tensor(), folded.experts.rank_tensor()
                layout = RankLayout(DGX, launched, mine, theirs)
                order = next(
                    (one for one in (PP_LAST, DP_LAST) if fits(one, folded, launched.tolist())), ""
                )
                met[order] += 1
                if not order:
                    with pytest.raises(InputError, match="Megatron-LM numbers ranks of"):
                        MEGATRON.export(ALIKE, batch, strategy, layout=layout)
                    continue
                text = MEGATRON.export(ALIKE, batch, strategy, layout=layout).text
                assert (SWAP in text.splitlines()) == (order == DP_LAST)
    assert met[PP_LAST]
    assert met[""]
    assert bool(met[DP_LAST]) == (strategy.dp == strategy.ed)


def test_a_refusal_names_whose_ranks_lie_otherwise_and_what_helps() -> None:
    strategy = Strategy(dp=16, ep=2)
    batch = Batch(16, 64)
    across = Placement(((1, 1), (1, 8), (2, 1), (1, 1)))
    layout = RankLayout.of(DGX, strategy, None, across)
    assert refusal(MEGATRON.export, ALIKE, batch, strategy, None, layout) == (
        "ranks of pp=1,dp=16,cp=1,tp=1,ep=2,etp=1: Megatron-LM numbers ranks of experts by "
        "et-ep-ed-pp or et-ep-pp-ed (--use-tp-pp-dp-mapping), and theirs lie otherwise; plan "
        "with --launcher megatron, which keeps to its order"
    )
    crossed = Strategy(dp=2, tp=8, sequence_parallel=True)
    nodes = Placement(((1, 1), (1, 2), (1, 1), (2, 4)))
    found = RankLayout.of(DGX, crossed, nodes, Placement(((1, 1), (2, 8), (1, 1), (1, 1))))
    assert SWAP not in MEGATRON.export(ALIKE, batch, crossed, None, found).text
    ordered = RankLayout(DGX, np.arange(16), found.attention, found.experts)
    message = refusal(MEGATRON.export, ALIKE, batch, crossed, None, ordered)
    assert "ranks of attention by tp-cp-dp-pp" in message
    assert message.endswith("launch them as the plan has them, or --launched pp,dp,cp,tp")


def test_torchtitan_and_megatron_bridge_have_fewer_orders() -> None:
    """TorchTitan has one order; Megatron-FSDP takes no other in Megatron-Bridge."""
    strategy = Strategy(dp=8, pp=2, zero=3)
    batch = Batch(16, 64)
    outermost = Placement(((2, 1), (1, 8), (1, 1), (1, 1)))
    model = replace(ALIKE, experts=None, ffn=96)
    plain = RankLayout.of(DGX, strategy, outermost)
    swapped = replace(plain, launched=plain.attention.transpose(1, 0, 2, 3).ravel())
    for trainer, words in (
        (TORCHTITAN, "TorchTitan numbers ranks of attention over pp, dp, cp, tp, of experts"),
        (MEGATRON_BRIDGE, "Megatron-Bridge has no other order of ranks than pp outermost"),
    ):
        trainer.export(model, batch, strategy, None, plain)
        message = refusal(trainer.export, model, batch, strategy, None, swapped)
        assert words in message
        assert message.endswith("launch them as the plan has them, or --launched pp,dp,cp,tp")
    sharded = replace(strategy, zero=1)
    text = MEGATRON_BRIDGE.export(model, batch, sharded, None, swapped).text
    assert "cfg.dist.use_tp_pp_dp_mapping = True" in text.splitlines()


@pytest.mark.parametrize(
    ("topology", "graphs", "backend"),
    [(DGX, "none", "deepep"), (DGX, "full", "hybridep"), (RACK, "none", "hybridep")],
)
def test_only_hybridep_goes_over_the_nvlink_of_a_rack(
    topology: object, graphs: str, backend: str
) -> None:
    """Source: transformer_config.py, moe_flex_dispatcher_backend."""
    strategy = Strategy(dp=topology.devices, ep=8, dispatcher="flex", graphs=graphs)  # type: ignore[attr-defined]
    layout = RankLayout.of(topology, strategy, None)  # type: ignore[arg-type]
    batch = Batch(strategy.dp, 64)
    text = MEGATRON.export(LATENT, batch, strategy, None, layout).text
    assert f"--moe-flex-dispatcher-backend {backend}" in text.splitlines()
    assert math.prod(strategy.expert_sizes) == strategy.devices


def test_on_amd_flex_takes_a_build_for_rocm_and_hybridep_has_none() -> None:
    mi355x = load_topology("mi355x")
    strategy = Strategy(dp=16, ep=8, dispatcher="flex")
    batch, layout = Batch(16, 64), RankLayout.of(mi355x, strategy, None)
    for trainer in (MEGATRON, MEGATRON_BRIDGE):
        notes = trainer.export(LATENT, batch, strategy, None, layout).notes
        assert any("flex on AMD needs a DeepEP for ROCm" in text for text in notes)
        plain = replace(strategy, dispatcher="alltoall")
        assert not any("AMD" in text for text in trainer.export(LATENT, batch, plain).notes)
        captured = replace(strategy, graphs="full")
        message = refusal(trainer.export, LATENT, batch, captured, None, layout)
        assert "needs HybridEP, which runs on CUDA alone" in message
        assert trainer.export(LATENT, batch, captured, None, RankLayout.of(DGX, captured, None))


def test_options_of_a_run_know_its_devices_and_whether_its_ranks_lie_so() -> None:
    batch, strategy = Batch(144, 64), Strategy(dp=16, ep=8, dispatcher="flex", graphs="full")
    run = estimate(LATENT, load_topology("mi355x"), strategy, batch)
    assert all(one.lacks for one in trainer_options(LATENT, batch, strategy, None, run))
    assert not all(one.lacks for one in trainer_options(LATENT, batch, strategy))
    racks = Strategy(dp=RACK.devices, ep=8, dispatcher="flex")
    run = estimate(LATENT, RACK, racks, batch)
    megatron = trainer_options(LATENT, batch, racks, None, run)[0]
    assert (megatron.format, megatron.placed) == ("megatron-options", True)
    assert "hybridep" in megatron.text
    spread = Strategy(dp=16, ep=8)
    apart = Placement(((1, 1), (1, 2), (2, 4), (1, 1)))
    run = estimate(LATENT, load_topology("mi355x"), spread, batch, experts=apart)
    assert not trainer_options(LATENT, batch, spread, None, run)[0].placed
