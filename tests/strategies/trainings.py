"""Small models, batches and strategies that fit them, for Hypothesis."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import strategies as st

from p2smt.training.efficiency import Efficiency, Framework, TrainingRun
from p2smt.training.strategy import Batch, Recompute, Strategy
from p2smt.training.transformer import Transformer


@st.composite
def training_runs(draw: st.DrawFn) -> TrainingRun:
    """A run that obeys every rule of strategies; its devices are as many as it takes."""
    strategy = draw(_strategies())
    model, batch = draw(_models(strategy)), draw(_batches(strategy))
    if draw(st.booleans()):
        strategy = replace(strategy, split=draw(_splits(model.layers, strategy.chunks)))
    if strategy.recompute is Recompute.FULL:
        most = max(strategy.split, default=-(-model.layers // strategy.chunks))
        strategy = replace(strategy, recompute_layers=draw(st.integers(0, min(2, most))))
    if strategy.zero and strategy.cp > 1 and draw(st.booleans()):
        strategy = replace(strategy, dp_replicate=strategy.dp)
    return TrainingRun(model, batch, strategy)


def efficiencies() -> st.SearchStrategy[Efficiency]:
    """Constants of frameworks that overlap anything, or nothing."""
    framework = st.builds(
        Framework,
        name=st.just("any"),
        tp_hidden=st.booleans(),
        pp_hidden=st.sampled_from([0.0, 0.5, 1.0]),
        dp_hidden=st.booleans(),
        fetch_hidden=st.booleans(),
        gradient_bytes=st.sampled_from([2, 4]),
        gradient_bytes_fp16=st.sampled_from([2, 4]),
        attention=st.sampled_from([0.7, 1.0]),
    )
    return st.builds(
        Efficiency,
        name=st.just("any"),
        device=st.just("any"),
        framework=framework,
        fraction=st.sampled_from([0.4, 1.0]),
        layer_s=st.sampled_from([0.0, 1e-4]),
        runs=st.just(1),
        error=st.just(0.0),
    )


@st.composite
def _strategies(draw: st.DrawFn) -> Strategy:
    few, pp = st.integers(1, 3), draw(st.integers(1, 4))
    tp, dp, cp = draw(st.sampled_from([1, 2, 4])), draw(few), draw(st.integers(1, 2))
    return Strategy(
        tp=tp,
        pp=pp,
        dp=dp,
        cp=cp,
        vpp=draw(few) if pp > 1 else 1,
        micro_batch=draw(few),
        sequence_parallel=draw(st.booleans()) if tp > 1 else False,
        zero=draw(st.integers(0, 3)) if dp * cp > 1 else 0,
        recompute=draw(st.sampled_from(list(Recompute))),
        flash=draw(st.booleans()),
        dtype=draw(st.sampled_from(["bf16", "fp16"])),
        dropout=draw(st.booleans()),
    )


@st.composite
def _models(draw: st.DrawFn, strategy: Strategy) -> Transformer:
    layers = draw(st.integers(1, 2)) * strategy.chunks
    if strategy.pp > 1 and layers > 2 and draw(st.booleans()):
        layers -= 2
    return Transformer(
        "small",
        layers=layers,
        hidden=draw(st.sampled_from([16, 24])),
        heads=draw(st.sampled_from([4, 8])),
        kv_heads=draw(st.sampled_from([1, 2, 4])),
        ffn=draw(st.sampled_from([32, 40])),
        gated=draw(st.booleans()),
        vocab=draw(st.sampled_from([64, 100])),
        head_size=draw(st.sampled_from([2, 5])),
        tied=draw(st.booleans()),
    )


@st.composite
def _batches(draw: st.DrawFn, strategy: Strategy) -> Batch:
    times = draw(st.integers(1, 3)) * (strategy.pp if strategy.vpp > 1 else 1)
    tokens = 2 * strategy.cp * strategy.tp * draw(st.integers(1, 3))
    return Batch(strategy.dp * strategy.micro_batch * times, tokens)


@st.composite
def _splits(draw: st.DrawFn, layers: int, chunks: int) -> tuple[int, ...]:
    ends = sorted(draw(st.integers(0, layers)) for _ in range(chunks - 1))
    return tuple(right - left for left, right in zip([0, *ends], [*ends, layers], strict=True))
