"""Random valid strategies, and how each trainer's oracle is asked."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import pairwise

from hypothesis import strategies as st

from p2smt.interop.exported import Exported
from p2smt.interop.trainers.deepspeed import DEEPSPEED
from p2smt.interop.trainers.megatron import MEGATRON
from p2smt.interop.trainers.megatron_bridge import MEGATRON_BRIDGE
from p2smt.interop.trainers.megatron_model import model_options
from p2smt.interop.trainers.torchtitan import TORCHTITAN
from p2smt.interop.trainers.trainer import Trainer
from p2smt.training.strategy import Batch, Recompute, Strategy
from p2smt.training.transformer import Transformer
from p2smt.training.validity import violations
from tests.interop.trainers import bridge_rules, deepspeed_rules, megatron_rules, titan_rules
from tests.interop.trainers.started import Mixture, Started, asked, mixture_of, sizes_of
from tests.interop.trainers.titan_rules import Configuration

LLAMA_70B = Transformer("llama-3-70b", 80, 8192, 64, 8, 28672, True, 128256, 128)
QWEN_SMALL = Transformer("qwen3-1.7b", 28, 2048, 16, 8, 6144, True, 151936, 128, tied=True)
PLAIN = Transformer("plain", 22, 768, 12, 12, 3072, False, 50257, 64, tied=True)
ODD = Transformer("odd", 30, 1000, 16, 4, 2560, True, 97, 96)
MODELS = (LLAMA_70B, QWEN_SMALL, PLAIN, ODD)
Run = tuple[Transformer, Batch, Strategy]


def _megatron(model: Transformer, strategy: Strategy, written: Exported) -> Started:
    text = " ".join(written.notes)
    connections = "1" if "needs CUDA_DEVICE_MAX_CONNECTIONS=1" in text else None
    found = megatron_rules.start(written.text, strategy.devices, connections)
    padding = found.sizes is not None and 0 <= found.sizes[6] - model.vocab < strategy.tp
    return replace(found, sizes=_with_vocab(found, model.vocab)) if padding else found


def _with_vocab(found: Started, vocab: int) -> tuple[int, ...]:
    assert found.sizes is not None
    return (*found.sizes[:6], vocab, *found.sizes[7:])


def _bridge(model: Transformer, strategy: Strategy, written: Exported) -> Started:
    connections = "1" if "unset, or more than 1" not in " ".join(written.notes) else None
    own = list(model_options(model, strategy))  # a recipe has the model whole, and its windows
    found = bridge_rules.start(written.text, own, strategy.devices, connections)
    return replace(found, sizes=_with_vocab(found, model.vocab))


def _torchtitan(model: Transformer, strategy: Strategy, written: Exported) -> Started:
    own: Mapping[str, Configuration] = {}
    text, notes = written.text, " ".join(written.notes)
    if "a configuration of yours with" in notes:
        flex = 'moe_comm_backend "deepep"' in notes or 'moe_comm_backend "hybridep"' in notes
        mixture = mixture_of(model, Strategy(), (model.layers,))
        mixture = replace(mixture, dispatcher="flex" if flex else "alltoall")
        own = {"mine": Configuration(sizes_of(model), 10**9, mixture)}
        text = "--module own --config mine\n" + text
    return titan_rules.start(text, strategy.devices, own)


def _deepspeed(model: Transformer, strategy: Strategy, written: Exported) -> Started:
    found = deepspeed_rules.start(written.text, written.notes, strategy.devices, model)
    return replace(found, mixture=own_mixture(model, found))


def own_mixture(model: Transformer, found: Started) -> Mixture:
    """That of the user's own model, whose experts nothing spreads."""
    plain = Strategy(*found.degrees[3:], *found.degrees[:3])
    return mixture_of(model, plain, found.chunks)


Oracle = Callable[[Transformer, Strategy, Exported], Started]
ORACLES: tuple[tuple[Trainer, Oracle], ...] = (
    (MEGATRON, _megatron),
    (MEGATRON_BRIDGE, _bridge),
    (TORCHTITAN, _torchtitan),
    (DEEPSPEED, _deepspeed),
)
ORACLE_OF = {trainer.name: oracle for trainer, oracle in ORACLES}


def same_run(found: Started, run: Run) -> bool:
    """Whether that is what the strategy asks for, in all that the trainer is told."""
    wanted = asked(*run)
    told = replace(
        wanted,
        batch=(wanted.batch[0], None if found.batch[1] is None else wanted.batch[1]),
        flash=None if found.flash is None else wanted.flash,
        sizes=None if found.sizes is None else wanted.sizes,
        dropout=None if found.dropout is None else wanted.dropout,
        mixture=None if found.mixture is None else wanted.mixture,
    )
    return found == told


def _divisors(number: int, most: int = 16) -> list[int]:
    return [n for n in range(1, most + 1) if number % n == 0]


@st.composite
def runs(draw: st.DrawFn) -> Run:
    """A valid strategy of a model and a batch."""

    def pick(values: list[int]) -> int:
        return draw(st.sampled_from(values))

    model = draw(st.sampled_from(MODELS))
    tp = pick([n for n in _divisors(model.heads) if _fits(model, n)])
    chunks = pick([n for n in range(1, 41) if not model.layers % n or not (model.layers + 2) % n])
    pp = pick(_divisors(chunks, chunks))
    vpp = chunks // pp if pp > 1 else 1
    cp, micro_batch, dp = pick([1, 1, 2, 4]), pick([1, 2]), pick([1, 2, 8])
    sp = draw(st.booleans()) if tp > 1 else False
    rounds = pick([1, 2, 3]) * (pp if vpp > 1 else pick([1, pp]))
    batch = Batch(dp * micro_batch * rounds, pick([1, 2, 16]) * cp * tp * (2 if cp > 1 else 1))
    strategy = Strategy(
        *(tp, pp, dp, cp, vpp, micro_batch, sp),
        zero=pick([0, 1, 2, 3]) if dp * cp > 1 else 0,
        recompute=draw(st.sampled_from(Recompute)),
        flash=draw(st.sampled_from([True, True, False])),
        dtype=draw(st.sampled_from(["bf16", "bf16", "fp16", "fp8", "mxfp8", "nvfp4"])),
        dropout=draw(st.sampled_from([False, False, False, True])),
    )
    if strategy.low_precision:
        strategy = replace(strategy, fp8_params=draw(st.booleans()))
    layers = model.layers
    count = strategy.chunks
    if (layers % count and (layers + 2) % count) or draw(st.integers(0, 3)) == 0:
        strategy = replace(strategy, split=draw(splits(layers, count)))
    return model, batch, strategy


@st.composite
def easy_runs(draw: st.DrawFn, name: str) -> Run:
    """The same, brought closer to what a trainer can run."""
    model, batch, strategy = draw(runs())
    if name.startswith("megatron"):
        return model, batch, replace(strategy, flash=True)
    dtype = "bf16" if strategy.low_precision else strategy.dtype
    strategy = replace(strategy, dtype=dtype, fp8_params=True)
    full = Recompute.FULL if strategy.recompute is Recompute.FULL else Recompute.NONE
    strategy = replace(strategy, flash=True, recompute=full, split=())
    if name == "torchtitan":
        batch = Batch(batch.sequences, batch.tokens * (128 if strategy.cp > 1 else 1))
        gated = draw(st.sampled_from([LLAMA_70B, ODD]))
        sharded = replace(strategy, dtype="bf16", dropout=False)
        if strategy.dp * strategy.cp > 1:
            sharded = replace(sharded, zero=2 + strategy.zero % 2)
        fits = not violations(gated, batch, sharded, strategy.devices)
        return (gated if fits else model), batch, sharded
    strategy = replace(strategy, cp=1, vpp=1, sequence_parallel=False)
    if strategy.dp == 1:
        strategy = replace(strategy, zero=0)
    if strategy.pp > 1:
        strategy = replace(strategy, tp=1, zero=strategy.zero % 2)
    return model, batch, strategy


def _fits(model: Transformer, tp: int) -> bool:
    groups = model.kv_heads
    return model.ffn % tp == 0 and (groups % tp == 0 or tp % groups == 0)


@st.composite
def splits(draw: st.DrawFn, layers: int, chunks: int) -> tuple[int, ...]:
    """Any numbers of layers for the chunks, some of them none."""
    cuts = sorted(draw(st.lists(st.integers(0, layers), min_size=chunks - 1, max_size=chunks - 1)))
    bounds = [0, *cuts, layers]
    return tuple(after - before for before, after in pairwise(bounds))
