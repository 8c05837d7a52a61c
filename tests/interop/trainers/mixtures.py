"""Small models of every kind of layer, and random valid strategies of theirs."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import assume
from hypothesis import strategies as st

from p2smt.training.strategy import MODULES, Batch, Recompute, Strategy
from p2smt.training.transformer import (
    Attention,
    Experts,
    LatentAttention,
    LayerKind,
    LayerRun,
    Mamba,
    Mlp,
    Transformer,
)
from p2smt.training.validity import violations
from tests.interop.trainers.cases import LLAMA_70B, Run

DENSE, EXPERTS = LayerKind(), LayerKind(mlp=Mlp.EXPERTS)
WINDOW = LayerKind(Attention.WINDOW, Mlp.EXPERTS)
_SIZES = (64, 8, 4, 96, True, 1000, 16)
LATENT = Transformer(
    *("latent", 7, 64, 8, 8, 96, True, 1000, 16),
    experts=Experts(16, 2, 32, 64, groups=4, top_groups=2),
    mla=LatentAttention(32, 16, 8, 16, query_rank=48),
    order=(LayerRun(3, (DENSE,)), LayerRun(4, (EXPERTS,))),
    mtp=1,
)
WINDOWED = Transformer(
    *("windowed", 8, *_SIZES),
    experts=Experts(8, 4, 32, clamped=True),
    window=16,
    order=(LayerRun(4, (WINDOW, EXPERTS)),),
)
ALTERNATING = Transformer(
    *("alternating", 8, *_SIZES),
    experts=Experts(12, 1, 24, 36),
    tied=True,
    order=(LayerRun(4, (DENSE, EXPERTS)),),
)
CHUNKED = replace(WINDOWED, name="chunked", chunked=True)
ALIKE = Transformer(*("alike", 6, 64, 8, 4, 0, True, 1000, 16), experts=Experts(8, 2, 32))
_LETTERS = {
    "M": LayerKind(Attention.MAMBA, Mlp.NONE),
    "*": LayerKind(Attention.FULL, Mlp.NONE),
    "E": LayerKind(Attention.NONE, Mlp.EXPERTS),
    "-": LayerKind(Attention.NONE, Mlp.DENSE),
}
HYBRID = Transformer(
    *("hybrid", 12, 64, 8, 4, 96, False, 1000, 16),
    experts=Experts(8, 3, 32, 40, latent=32),
    mamba=Mamba(8, 16, 4, 32),
    order=LayerRun.of([_LETTERS[one] for one in "MEM*E-MEMEME"]),
    mtp=2,
)
LATENT_HYBRID = replace(
    LATENT,
    name="latent hybrid",
    layers=8,
    order=LayerRun.of([_LETTERS[one] for one in "*E*-*E*E"]),
)
DENSE_WINDOWS = Transformer(
    *("dense windows", 6, *_SIZES),
    window=16,
    order=(LayerRun(6, (replace(WINDOW, mlp=Mlp.DENSE),)),),
)
HYBRID_WINDOWS = replace(
    DENSE_WINDOWS,
    name="hybrid windows",
    order=LayerRun.of([LayerKind(Attention.WINDOW, Mlp.NONE), _LETTERS["-"]] * 3),
)
SMALL = (
    *(LATENT, WINDOWED, ALTERNATING, CHUNKED, ALIKE, HYBRID, LATENT_HYBRID, DENSE_WINDOWS),
    *(HYBRID_WINDOWS, LLAMA_70B),
)
TITANS = (LATENT, WINDOWED, ALTERNATING, ALIKE, DENSE_WINDOWS)
_MODULES = st.lists(st.sampled_from(MODULES), min_size=1, max_size=3, unique=True).map(tuple)


@st.composite
def mixture_runs(draw: st.DrawFn, likely: str = "") -> Run:
    """A valid strategy of one of the models and a batch; ``likely``: the trainer that runs most."""

    def pick(*values: int) -> int:
        return draw(st.sampled_from(values))

    def rarely() -> bool:
        return not likely and draw(st.integers(0, 3)) == 0

    titan = likely == "torchtitan"
    model = draw(st.sampled_from(TITANS if titan else SMALL))
    tp, pp, cp = pick(1, 2, 4), pick(1, 2, 4), pick(1, 1, 1, 2)
    if likely and (model.window or model.mamba):
        cp = 1
    vpp, dp, micro_batch = pick(1, 2, 3) if pp > 1 else 1, pick(1, 2, 4, 8), pick(1, 2)
    strategy = Strategy(
        *(tp, pp, dp, cp, vpp, micro_batch, tp > 1 and not rarely()),
        zero=pick(0, 1, 1, 2, 3) if dp * cp > 1 else 0,
        flash=not rarely(),
        dtype=draw(st.sampled_from(["bf16", "fp16", "fp8", "mxfp8", "nvfp4"])),
        graphs=draw(st.sampled_from(["none", "none", "partial", "full"])),
        fp8_attention=rarely(),
        dropout=rarely(),
    )
    if strategy.low_precision:
        strategy = replace(strategy, fp8_params=strategy.zero > 0 and not rarely())
    if model.experts:
        strategy = replace(
            strategy,
            ep=pick(1, 2, 4, 4, 8),
            etp=1 if likely else pick(1, 1, 2),
            dispatcher=draw(st.sampled_from(["alltoall", "flex"])),
            overlap=draw(st.booleans()),
        )
    again = draw(st.integers(0, 3))
    if again > 1:
        strategy = replace(strategy, recompute=draw(st.sampled_from(Recompute)))
    elif again:
        strategy = replace(strategy, modules=draw(_MODULES))
    batch = Batch(dp * micro_batch * pp * pick(1, 2), 16 * pick(1, 4))
    if titan:
        strategy, batch = _titan(model, strategy), Batch(batch.sequences, 256)
    assume(not violations(model, batch, strategy, strategy.devices))
    return model, batch, strategy


def _titan(model: Transformer, strategy: Strategy) -> Strategy:
    """The same, brought closer to what TorchTitan runs."""
    full = Recompute.FULL if strategy.recompute is Recompute.FULL else Recompute.NONE
    if model.mtp or model.tied:
        strategy = replace(strategy, pp=1, vpp=1, cp=1)
    found = replace(
        strategy,
        zero=2 + strategy.zero % 2 if strategy.dp * strategy.cp > 1 else 0,
        recompute=full,
        modules=(),
        dtype="bf16",
        fp8_params=True,
        dropout=False,
        graphs="none",
        overlap=False,
    )
    if not model.experts:
        return found
    if found.zero == 0:
        found = replace(found, ep=found.tp)
    cut = found.tp if found.ep == 1 else 1
    return replace(found, etp=cut, dispatcher="alltoall" if found.ep == 1 else found.dispatcher)
