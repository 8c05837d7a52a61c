"""Brute force for strategies: every field tried, rules in words of its own, every placement."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from itertools import product
from math import prod
from typing import Any

from p2smt.parallelism.placement import AxisRule, FixedEntry, Matrix
from p2smt.training.search.question import PlanQuestion
from p2smt.training.strategy import Batch, Recompute, Strategy
from p2smt.training.transformer import Transformer
from tests.oracles.placements import all_matrices, obeys


def _shares_heads(model: Transformer, _: Batch, one: Strategy) -> bool:
    return max(one.tp, model.kv_heads) % min(one.tp, model.kv_heads) == 0


def _halves(_: Transformer, batch: Batch, one: Strategy) -> bool:
    return one.cp == 1 or (batch.tokens % one.cp == 0 and (batch.tokens // one.cp) % 2 == 0)


def _splits_tokens(_: Transformer, batch: Batch, one: Strategy) -> bool:
    ranks = one.cp * one.tp if one.sequence_parallel else one.cp
    return batch.tokens / ranks == batch.tokens // ranks


def _fills_pipelines(_: Transformer, batch: Batch, one: Strategy) -> bool:
    per_pipeline, rest = divmod(batch.sequences, one.dp)
    micro_batches, left = divmod(per_pipeline, one.micro_batch)
    return one.vpp == 1 or (rest == left == 0 and micro_batches % one.pp == 0)


def _splits_states(model: Transformer, _: Batch, one: Strategy) -> bool:
    sizes = () if model.mamba is None else (model.mamba.heads, model.mamba.groups)
    return not any(size % one.tp for size in sizes)


def _splits_layers(model: Transformer, _: Batch, one: Strategy) -> bool:
    return any(n % (one.pp * one.vpp) == 0 for n in (model.layers, model.layers + 2))


RULES_IN_WORDS: Mapping[str, Callable[[Transformer, Batch, Strategy], bool]] = {
    "heads": lambda model, _, one: model.heads / one.tp == model.heads // one.tp,
    "kv_heads": _shares_heads,
    "ffn": lambda model, _, one: model.ffn / one.tp == model.ffn // one.tp,
    "mamba": _splits_states,
    "sequence": _halves,
    "sequence_parallel": _splits_tokens,
    "sequence_parallel_tp": lambda _, __, one: one.tp >= 2 or not one.sequence_parallel,
    "zero": lambda _, __, one: one.zero == 0 or max(one.dp, one.cp) >= 2,
    "batch": lambda _, batch, one: batch.sequences % (one.dp * one.micro_batch) == 0,
    "interleaving": lambda _, __, one: one.vpp == 1 or one.pp >= 2,
    "schedule": _fills_pipelines,
    "layers": _splits_layers,
}
"""Every rule on strategies with an even split but that on the number of devices, by its name."""


def runs(model: Transformer, batch: Batch, strategy: Strategy, devices: int) -> bool:
    """Whether a strategy with an even split can run, rule by rule."""
    rules = RULES_IN_WORDS.values()
    return strategy.devices == devices and all(holds(model, batch, strategy) for holds in rules)


def all_strategies(question: PlanQuestion, most_tp: int) -> Iterator[Strategy]:
    """Every strategy of a question, by trying all numbers; ``most_tp`` is the largest tp."""
    devices, space = question.topology.devices, question.space
    most = {
        "tp": most_tp,
        "pp": space.pp or devices,
        "dp": devices,
        "cp": space.cp or 32,
        "vpp": space.vpp or 10,
        "micro_batch": space.micro_batch or 16,
    }
    tried: dict[str, list[Any]] = {name: list(range(1, n + 1)) for name, n in most.items()}
    tried["sequence_parallel"] = [
        one for one in (False, True) if one in (space.sequence_parallel or (False, True))
    ]
    tried["zero"] = sorted(set(space.zero or range(4)))
    kinds = ["none", "full"] if question.flash else ["none", "selective", "full"]
    tried["recompute"] = list(dict.fromkeys(space.recompute or map(Recompute, kinds)))
    tried |= {name: [value] for name, value in question.fixed}
    for tp, pp, dp, cp in product(*(tried[name] for name in ("tp", "pp", "dp", "cp"))):
        if tp * pp * dp * cp != devices:
            continue
        names = ("vpp", "micro_batch", "sequence_parallel", "zero", "recompute")
        for values in product(*(tried[name] for name in names)):
            named = dict(zip(names, values, strict=True))
            found = Strategy(
                *(tp, pp, dp, cp),
                **named,
                flash=question.flash,
                dtype=question.dtype,
                graphs=question.graphs,
            )
            cut = found.graphs == "partial" and found.recompute is Recompute.FULL
            if not cut and runs(question.model, question.batch, found, devices):
                yield from with_copies_of_shards(question, found)


def with_copies_of_shards(question: PlanQuestion, one: Strategy) -> Iterator[Strategy]:
    """The strategy with as many copies of shards as are asked for, where it can have them."""
    fixed = dict(question.fixed).get("dp_replicate")
    most = fixed if isinstance(fixed, int) else question.space.dp_replicate or 1
    for copies in range(1, most + 1):
        each, rest = divmod(one.dp, copies)
        whole = rest == 0 and (question.model.experts is None or one.ed % copies == 0)
        shards = copies == 1 or (one.zero > 0 and each * one.cp > 1)
        if whole and shards and fixed in (None, copies):
            yield replace(one, dp_replicate=copies)


def is_divided(row: tuple[int, ...], copies: int) -> bool:
    """Whether a row is copies times shards so that no shard is outside of a copy."""
    parts = [[n for n in range(1, size + 1) if size % n == 0] for size in row]
    for outer in product(*parts):
        inner = [size // n for size, n in zip(row, outer, strict=True)]
        held = all(
            outer[later] == 1 or inner[level] == 1
            for later in range(len(row))
            for level in range(later)
        )
        if prod(outer) == copies and held:
            return True
    return False


def placements_of(
    question: PlanQuestion, strategy: Strategy, rules: tuple[AxisRule | FixedEntry, ...]
) -> list[Matrix]:
    """Every matrix of a strategy's axes under the rules."""
    levels = question.topology.sizes
    return [
        matrix
        for matrix in all_matrices(levels, strategy.sizes)
        if all(obeys(matrix, rule) for rule in rules)
        and is_divided(matrix[1], strategy.dp_replicate)
    ]
