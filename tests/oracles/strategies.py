"""Brute force for strategies: every field tried, rules in words of its own, every placement."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

from p2smt.parallelism.placement import AxisRule, FixedEntry, Matrix
from p2smt.workload.batch import Batch
from p2smt.workload.search.question import PlanQuestion
from p2smt.workload.strategy import Recompute, Strategy
from p2smt.workload.transformer import Transformer
from tests.oracles.placements import all_matrices, obeys


def runs(model: Transformer, batch: Batch, strategy: Strategy, devices: int) -> bool:
    """Whether a strategy with an even split can run, rule by rule."""
    tp, pp, dp, cp = strategy.tp, strategy.pp, strategy.dp, strategy.cp
    if tp * pp * dp * cp != devices:
        return False
    if model.heads / tp != model.heads // tp or model.ffn / tp != model.ffn // tp:
        return False
    if max(tp, model.kv_heads) % min(tp, model.kv_heads):
        return False
    if cp > 1 and batch.tokens % cp != 0:
        return False
    if cp > 1 and (batch.tokens // cp) % 2 != 0:
        return False
    if strategy.sequence_parallel and (batch.tokens // cp) % tp != 0:
        return False
    per_pipeline, rest = divmod(batch.sequences, dp)
    if rest or per_pipeline % strategy.micro_batch != 0:
        return False
    micro_batches = per_pipeline // strategy.micro_batch
    if strategy.vpp > 1 and (pp == 1 or micro_batches % pp != 0):
        return False
    return any(n % (pp * strategy.vpp) == 0 for n in (model.layers, model.layers + 2))


def all_strategies(question: PlanQuestion, most_tp: int) -> Iterator[Strategy]:
    """Every strategy of a question, by trying all numbers; ``most_tp`` is the largest tp."""
    devices, space = question.topology.devices, question.space
    most = {
        "tp": most_tp,
        "pp": space.pp or devices,
        "dp": devices,
        "cp": space.cp,
        "vpp": space.vpp or question.model.layers + 2,
        "micro_batch": space.micro_batch,
    }
    tried: dict[str, list[Any]] = {name: list(range(1, n + 1)) for name, n in most.items()}
    tried["sequence_parallel"] = sorted(set(space.sequence_parallel))
    tried["zero"] = sorted(set(space.zero))
    kinds = ["none", "full"] if question.flash else ["none", "selective", "full"]
    tried["recompute"] = list(dict.fromkeys(space.recompute or map(Recompute, kinds)))
    tried |= {name: [value] for name, value in question.fixed}
    for tp, pp, dp, cp in product(*(tried[name] for name in ("tp", "pp", "dp", "cp"))):
        if tp * pp * dp * cp != devices:
            continue
        switches = {
            "sequence_parallel": tried["sequence_parallel"][: None if tp > 1 else 1],
            "zero": tried["zero"][: None if dp * cp > 1 else 1],
        }
        rest = {**tried, **switches}
        names = ("vpp", "micro_batch", "sequence_parallel", "zero", "recompute")
        for values in product(*(rest[name] for name in names)):
            named = dict(zip(names, values, strict=True))
            found = Strategy(tp, pp, dp, cp, **named, flash=question.flash, dtype=question.dtype)
            if runs(question.model, question.batch, found, devices):
                yield found


def placements_of(
    question: PlanQuestion, strategy: Strategy, rules: tuple[AxisRule | FixedEntry, ...]
) -> list[Matrix]:
    """Every matrix of a strategy's axes under the rules."""
    levels = question.topology.sizes
    return [
        matrix
        for matrix in all_matrices(levels, strategy.sizes)
        if all(obeys(matrix, rule) for rule in rules)
    ]
