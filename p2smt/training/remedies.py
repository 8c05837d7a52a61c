"""What would make a run fit into memory: the fewest changes of its strategy that do."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

from p2smt.training.formulas.stages import StrategyColumns
from p2smt.training.pipeline import work
from p2smt.training.prediction import RunEstimate
from p2smt.training.strategy import Recompute, Strategy, recompute_text
from p2smt.training.validity import violations
from p2smt.units import format_gigabytes

MOST = 3
DOUBLINGS = 3
"""An axis is tried with up to 2 to this power times its degree."""
_LESS = (Recompute.NONE, Recompute.SELECTIVE, Recompute.FULL)
_AXES = ("tp", "pp", "cp")


@dataclass(frozen=True, slots=True)
class _Change:
    """Another strategy on as many devices, how it differs in words, and in how many keys."""

    strategy: Strategy
    words: tuple[str, ...]


def remedies(found: RunEstimate) -> tuple[str, ...]:
    """Changes of the strategy after which it fits, fewest first; else that which lacks least.

    More recomputation, more ZeRO, sequence parallelism, micro-batches of one sequence, and more of
    one axis in place of dp are tried, one by one and together.
    """
    run = found.run
    tried = [
        one
        for one in _changes(run.strategy)
        if not violations(run.model, run.batch, one.strategy, found.topology.installed)
    ]
    if not tried:
        return ()
    columns = StrategyColumns.of([one.strategy for one in tried])
    sizes = work(
        run.model, run.batch, columns, found.topology.known_device, found.efficiency
    ).memory_bytes
    rows = list(zip(tried, sizes.tolist(), strict=True))
    fitting = [row for row in rows if row[1] <= found.capacity_bytes]
    if fitting:
        fitting.sort(key=lambda row: (len(row[0].words), row[1]))
        return tuple(
            f"{_words(one)} fits: {format_gigabytes(size)}" for one, size in fitting[:MOST]
        )
    one, size = min(rows, key=lambda row: row[1])
    lacking = f"{_words(one)} takes {format_gigabytes(size)}, which still lacks"
    return (
        f"{lacking} {format_gigabytes(size - found.capacity_bytes)}",
        "more devices, or a smaller model",
    )


def _words(change: _Change) -> str:
    return ",".join(change.words)


def _changes(strategy: Strategy) -> Iterator[_Change]:
    """Every strategy that differs in some of these keys, with the new values."""
    kinds = [kind for kind in _LESS[_LESS.index(strategy.recompute) :] if _saves(strategy, kind)]
    switches = {strategy.sequence_parallel, True}
    batches = {strategy.micro_batch, 1}
    more = [(kind, 0) for kind in kinds]
    if strategy.recompute_layers:
        more.append((strategy.recompute, strategy.recompute_layers))
    choices = product(more, range(strategy.zero, 4), switches, batches, _spreads(strategy))
    for (kind, layers), zero, sequence_parallel, micro_batch, spread in choices:
        spread_out = replace(strategy, **spread)
        alone = spread_out.dp * spread_out.cp == 1
        if alone and zero > strategy.zero:
            continue  # nothing to shard over: the stages are one
        changed = replace(
            spread_out,
            recompute=kind,
            recompute_layers=layers,
            modules=() if kind is not strategy.recompute else strategy.modules,
            zero=0 if alone else zero,
            sequence_parallel=sequence_parallel,
            micro_batch=micro_batch,
        )
        if words := _differences(strategy, changed):
            yield _Change(changed, words)


def _saves(strategy: Strategy, kind: Recompute) -> bool:
    """Whether it is as it was, or may save something: fused attention keeps no scores."""
    return kind is strategy.recompute or not (strategy.flash and kind is Recompute.SELECTIVE)


def _spreads(strategy: Strategy) -> Iterator[dict[str, Any]]:
    """The degrees, and those with more of one axis and as much less of dp."""
    yield {}
    for axis, power in product(_AXES, range(1, DOUBLINGS + 1)):
        times = 2**power
        if strategy.dp % times == 0 and not strategy.split:
            yield {axis: getattr(strategy, axis) * times, "dp": strategy.dp // times}


def _differences(old: Strategy, new: Strategy) -> tuple[str, ...]:
    words = [f"{axis}={getattr(new, axis)}" for axis in (*_AXES, "dp") if _differ(old, new, axis)]
    if new.zero != old.zero:
        words.append(f"zero={new.zero}")
    if recompute_text(new) != recompute_text(old):
        words.append(f"recompute={recompute_text(new)}")
    if new.sequence_parallel != old.sequence_parallel:
        words.append("sp=1")
    if new.micro_batch != old.micro_batch:
        words.append(f"mbs={new.micro_batch}")
    return tuple(words)


def _differ(old: Strategy, new: Strategy, field: str) -> bool:
    return bool(getattr(old, field) != getattr(new, field))
