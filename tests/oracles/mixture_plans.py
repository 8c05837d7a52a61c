"""Plain enumeration of strategies of mixtures on all their pairs of placements."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product
from typing import Any

import numpy as np

from p2smt.parallelism.placement import IntArray, Matrix, Placement
from p2smt.training.efficiency import TrainingRun
from p2smt.training.formulas.stages import StrategyColumns
from p2smt.training.iteration import dispatch_seconds
from p2smt.training.pipeline import axis_requests, call_seconds, combine, is_of_experts, work
from p2smt.training.prediction import DISPATCH_REQUEST
from p2smt.training.search.question import Again, PlanQuestion
from p2smt.training.strategy import Recompute, Strategy
from p2smt.training.transformer import Transformer
from tests.oracles.placements import all_matrices, obeys
from tests.oracles.plans import Enumerated
from tests.oracles.strategies import RULES_IN_WORDS, is_divided, with_copies_of_shards

Pair = tuple[Matrix, Matrix]
SWITCHES = ("sequence_parallel", "zero", "again", "dispatcher", "overlap")


def _splits_layers(model: Transformer, one: Strategy) -> bool:
    """Layers in equal chunks; or with both ends, or with what MTP predicts besides."""
    chunks, ends = one.pp * one.vpp, model.layers + 2
    if model.layers % chunks == 0 or ends % chunks == 0:
        return True
    each, rest = divmod(ends + model.mtp, chunks)
    return model.mtp > 0 and rest == 0 and each + each >= model.mtp + 2


def _experts_run(model: Transformer, one: Strategy) -> bool:
    """What is asked of the axes of experts, of sequence parallelism and of overlap."""
    experts = model.experts
    assert experts is not None
    beside = "moe" not in one.modules and one.recompute is not Recompute.FULL and model.mtp <= 1
    return all(
        (
            one.ep * (experts.count // one.ep) == experts.count,
            one.etp * (experts.width // one.etp) == experts.width,
            one.pp * one.ed * one.ep * one.etp == one.devices,
            one.sequence_parallel or one.tp < 2,
            experts.shared_width % one.tp == 0,
            one.graphs != "partial" or one.recompute is not Recompute.FULL,
            one.graphs != "full" or one.ep == 1 or one.dispatcher == "flex",
            not one.overlap or (beside and one.ep >= 2 and not one.vpp == 1 < one.pp),
        )
    )


def runs(question: PlanQuestion, one: Strategy) -> bool:
    """Whether a strategy with an even split can run, rule by rule."""
    rest = (rule for name, rule in RULES_IN_WORDS.items() if name != "layers")
    if one.devices != question.topology.devices or not _splits_layers(question.model, one):
        return False
    obeyed = all(rule(question.model, question.batch, one) for rule in rest)
    return obeyed and _experts_run(question.model, one)


def all_mixtures(
    question: PlanQuestion, most: Mapping[str, int], again: tuple[Again, ...]
) -> Iterator[Strategy]:
    """Every strategy by trying all numbers up to the largest, and ``again``.

    Where tokens are not moved, they are moved in one way.
    """
    space, fixed = question.space, dict(question.fixed)
    tried: dict[str, list[Any]] = {name: list(range(1, n + 1)) for name, n in most.items()}
    tried["sequence_parallel"] = [one for one in (False, True) if _in(space.sequence_parallel, one)]
    tried["zero"] = sorted(set(space.zero or (0, 1)))
    tried["again"] = list(dict.fromkeys(again))
    tried["dispatcher"] = [one for one in ("alltoall", "flex") if _in(space.dispatcher, one)]
    tried["overlap"] = [one for one in (False, True) if _in(space.overlap, one)]
    tried |= {("again" if name == "recompute" else name): [fixed[name]] for name in fixed}
    tried["dp"] = tried.get("dp", list(range(1, question.topology.devices + 1)))
    devices = question.topology.devices
    for pp, dp, cp, tp in product(*(tried[name] for name in ("pp", "dp", "cp", "tp"))):
        if pp * dp * cp * tp != devices:
            continue
        for values in product(*(tried[n] for n in ("vpp", "micro_batch", "ep", "etp", *SWITCHES))):
            if dp * cp * tp % (values[2] * values[3]):
                continue
            found = _strategy(question, (pp, dp, cp, tp), values)
            idle = found.ep == 1 and found.dispatcher != tried["dispatcher"][0]
            if not idle and runs(question, found):
                yield from with_copies_of_shards(question, found)


def _in(allowed: tuple[Any, ...] | None, one: object) -> bool:
    return allowed is None or one in allowed


def _strategy(question: PlanQuestion, sizes: tuple[int, ...], values: tuple[Any, ...]) -> Strategy:
    pp, dp, cp, tp = sizes
    vpp, micro_batch, ep, etp, sequence_parallel, zero, again, dispatcher, overlap = values
    modules = () if isinstance(again, Recompute) else again
    return Strategy(
        *(tp, pp, dp, cp, vpp, micro_batch, sequence_parallel, zero),
        recompute=Recompute.NONE if modules else again,
        modules=modules,
        flash=question.flash,
        dtype=question.dtype,
        ep=ep,
        etp=etp,
        dispatcher=dispatcher,
        overlap=overlap,
        graphs=question.graphs,
        fp8_attention=question.fp8_attention,
    )


class Prices:
    """Seconds of requests on single matrices, each found once."""

    def __init__(self, question: PlanQuestion) -> None:
        self.question = question
        self.known: dict[tuple[object, ...], float] = {}

    def of_pairs(self, run: TrainingRun, pairs: list[Pair]) -> list[float]:
        """Seconds of an iteration on each pair: all its requests priced there, then combined."""
        question = self.question
        columns = StrategyColumns.of((run.strategy,))
        device = question.topology.known_device
        done = work(run.model, run.batch, columns, device, question.efficiency)
        names = [one.column.name for one in done.requests]
        prices = {name: np.zeros(len(pairs)) for name in names}
        asked = axis_requests(
            *(run.model, run.batch, run.strategy, question.efficiency.framework),
            question.efficiency,
        )
        for at, pair in enumerate(pairs):
            for one in asked:
                prices[one.name][at] = self._seconds(run, one, pair[is_of_experts(one.axes)])
        found = combine(done.take(np.zeros(len(pairs), dtype=np.int64)), prices)
        return [float(seconds) for seconds in found]

    def _seconds(self, run: TrainingRun, one: Any, matrix: Matrix) -> float:
        way = run.strategy.dispatcher, run.strategy.dp_replicate
        key = (one.name, one.kind, one.payload_bytes, one.axes, matrix, way)
        if key not in self.known:
            where, topology = Placement(matrix), self.question.topology
            self.known[key] = (
                dispatch_seconds(run, topology, self.question.efficiency, one, where)
                if one.name == DISPATCH_REQUEST
                else call_seconds(topology, run.strategy, one, where)
            )
        return self.known[key]


def pairs_of(question: PlanQuestion, strategy: Strategy) -> list[Pair]:
    """Every pair of matrices with the same row of pp that obeys the rules, the rows of attention
    before those of experts; with a launcher, those whose ranks are numbered once."""
    levels = question.topology.sizes
    copies = strategy.dp_replicate
    every = all_matrices(levels, strategy.expert_sizes)
    experts = [other for other in every if is_divided(other[1], copies)]
    return [
        (mine, other)
        for mine in all_matrices(levels, strategy.sizes)
        if is_divided(mine[1], copies)
        for other in experts
        if mine[0] == other[0] and all(obeys((*mine, *other[1:]), rule) for rule in question.rules)
        if not question.launcher or numbered_once(mine, other)
    ]


def numbered_once(attention: Matrix, experts: Matrix) -> bool:
    """Whether experts have the groups that the ranks of attention have, read row-major over their
    axes: device by device."""
    return has_numbers(*(Placement(one).rank_tensor() for one in (attention, experts)))


def has_numbers(devices: IntArray, theirs: IntArray) -> bool:
    """The same of the devices of both, as arrays over their axes."""
    read = devices.ravel().reshape(theirs.shape)
    return all(_groups(read, axis) == _groups(theirs, axis) for axis in range(theirs.ndim))


def _groups(devices: IntArray, axis: int) -> set[frozenset[int]]:
    lines = np.moveaxis(devices, axis, -1).reshape(-1, devices.shape[axis])
    return set(map(frozenset, lines.tolist()))


def enumerated_mixtures(
    question: PlanQuestion, most: Mapping[str, int], again: tuple[Again, ...]
) -> Enumerated:
    """All that there is, one after the other; matrices are those of both as one."""
    times: dict[Strategy, tuple[float, Matrix]] = {}
    memory: dict[Strategy, float] = {}
    prices, device = Prices(question), question.topology.known_device
    counts = {"strategies": 0, "too_large": 0, "lacking": 0, "unplaced": 0, "placements": 0}
    known: dict[tuple[tuple[int, ...], ...], list[Pair]] = {}
    for strategy in all_mixtures(question, most, again):
        counts["strategies"] += 1
        run = TrainingRun(question.model, question.batch, strategy)
        sizes = strategy.sizes, strategy.expert_sizes, (strategy.dp_replicate,)
        pairs = known[sizes] = known.get(sizes) or pairs_of(question, strategy)
        counts["placements"] += len(pairs)
        done = work(
            *(run.model, run.batch, StrategyColumns.of((strategy,)), device, question.efficiency)
        )
        memory[strategy] = round(float(done.memory_bytes[0]))
        if done.memory_bytes[0] > question.capacity_bytes:
            counts["too_large"] += 1
        elif not pairs:
            counts["unplaced"] += 1
        elif question.lacks is not None and question.lacks(strategy, question.model):
            counts["lacking"] += 1
        else:
            seconds = prices.of_pairs(run, pairs)
            least = min(range(len(pairs)), key=seconds.__getitem__)
            mine, other = pairs[least]
            times[strategy] = seconds[least], (*mine, *other[1:])
    return Enumerated(times, memory=memory, **counts)
