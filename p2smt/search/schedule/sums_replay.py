"""Replays schedules of sums, counting contributions: what a solver says of one is not believed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from p2smt.collectives.contract import RULES, MadeOf
from p2smt.errors import InputError
from p2smt.problems.edge_ways import EdgeRow
from p2smt.problems.sums import Arrival, SumSchedule, SumStep


@dataclass(frozen=True, slots=True)
class SumDemand:
    """A chunk: the ranks whose inputs it adds up, and those that must end with the sum."""

    inputs: tuple[int, ...]
    goals: tuple[int, ...]


def sum_demands(collective: str, ranks: int, chunks: int, root: int = 0) -> tuple[SumDemand, ...]:
    """What a collective asks of its chunks, ``chunks`` a rank, pair or in all, in their order.

    All-reduce, reduce, broadcast: in all.  All-gather, reduce-scatter: of each rank in turn, whose
    own they are.  All-to-all, scatter, gather: of each pair of different ranks in turn.  A rank
    whose input is the whole result does not end with it again.

    Raises:
        InputError: the collective is unknown, or no such question.
    """
    every = tuple(range(ranks))
    match RULES.get(collective):
        case rule if rule is None or rule.source in (MadeOf.BEFORE, MadeOf.BEFORE_IN_RING):
            known = [n for n, r in RULES.items() if "before" not in r.source.value]
            raise InputError(f"collective {collective[:40]!r}", f"is none of {', '.join(known)}")
        case rule if rule.source is MadeOf.SUM and rule.input_parts:
            once = [SumDemand(every, (owner,)) for owner in every]
        case rule if rule.source is MadeOf.SUM:
            once = [SumDemand(every, (root,) if rule.at_root else every)]
        case rule:
            froms = (root,) if rule.source is MadeOf.ROOT else every
            goals = (root,) if rule.at_root else every
            parted = rule.input_parts or rule.at_root
            once = []
            for origin in froms:
                others = tuple(goal for goal in goals if goal != origin)
                ends = [(goal,) for goal in others] if parted else [others]
                once += [SumDemand((origin,), end) for end in ends]
    return tuple(one for one in once for _ in range(chunks))


def broken_sum_rule(
    schedule: SumSchedule,
    edges: Sequence[EdgeRow],
    capacities: Sequence[Fraction],
    demands: Sequence[SumDemand],
    messages: int = 1,
) -> str | None:
    """The first rule that a schedule breaks, in words; None if it does what is asked.

    ``messages``: of a chunk over an edge in a step, at most.
    """
    held = _Values(edges, demands)
    for number, step in enumerate(schedule.steps):
        wrong = (
            _overloaded(step, edges, capacities)
            or _misnamed(step, edges, len(demands), messages)
            or held.broken_by(number, step)
        )
        if wrong:
            return f"step {number + 1}: {wrong}"
    return _wrong_results(schedule, held, demands)


class _Values:
    """What every value holds: how often each rank's input, by (chunk, rank, part)."""

    def __init__(self, edges: Sequence[EdgeRow], demands: Sequence[SumDemand]) -> None:
        self._edges = edges
        self._held: dict[tuple[int, int, Arrival | None], Counter[int]] = {
            (c, rank, None): Counter([rank])
            for c, demand in enumerate(demands)
            for rank in demand.inputs
        }

    def total(self, chunk: int, rank: int, parts: Sequence[Arrival | None]) -> Counter[int] | str:
        """The sum of parts, or what is wrong with it, in words."""
        if not parts:
            return "has no parts"
        total: Counter[int] = Counter()
        for part in parts:
            if (chunk, rank, part) not in self._held:
                return f"adds {part or 'an own input'}, which is not there"
            total += self._held[chunk, rank, part]
        twice = [origin for origin, count in sorted(total.items()) if count > 1]
        return f"has the input of rank {twice[0]} twice" if twice else total

    def broken_by(self, number: int, step: SumStep) -> str | None:
        """What is wrong with a step's messages, which arrive when all are made."""
        arrived: dict[tuple[int, int, Arrival | None], Counter[int]] = {}
        for send in step.sends:
            source, target, _ = self._edges[send.edge]
            total = self.total(send.chunk, source, send.parts)
            if isinstance(total, str):
                return f"chunk {send.chunk} over edge {send.edge} {total}"
            arrived[send.chunk, target, Arrival(number, send.edge, send.slot)] = total
        self._held |= arrived
        return None


def _misnamed(step: SumStep, edges: Sequence[EdgeRow], chunks: int, messages: int) -> str | None:
    """A message of no chunk, edge or slot, or not in order: sorted, and none twice."""
    names = [(send.chunk, send.edge, send.slot) for send in step.sends]
    for chunk, edge, slot in names:
        if not (0 <= chunk < chunks and 0 <= edge < len(edges) and 0 <= slot < messages):
            return f"there is no message {slot} of chunk {chunk} over edge {edge}"
    return None if names == sorted(set(names)) else "its messages are not in order, each once"


def _overloaded(
    step: SumStep, edges: Sequence[EdgeRow], capacities: Sequence[Fraction]
) -> str | None:
    """No rounds, or the first capacity that carries more than it can in them."""
    if step.rounds < 1:
        return f"it has {step.rounds} rounds"
    known = range(len(edges))
    loads = Counter(k for send in step.sends if send.edge in known for k in edges[send.edge][2])
    for k, load in sorted(loads.items()):
        if load > capacities[k] * step.rounds:
            return f"capacity {k} carries {load} chunks in {step.rounds} rounds"
    return None


def _wrong_results(
    schedule: SumSchedule, held: _Values, demands: Sequence[SumDemand]
) -> str | None:
    """Results that are not those asked for, in order, or not the sum of all inputs."""
    asked = [(c, goal) for c, demand in enumerate(demands) for goal in sorted(demand.goals)]
    given = [(result.chunk, result.rank) for result in schedule.results]
    if given != asked:
        other = sorted(Counter(given) - Counter(asked)) + sorted(Counter(asked) - Counter(given))
        return f"its results are not those asked for, in order: {(other or given)[:1]}"
    for result in schedule.results:
        total = held.total(result.chunk, result.rank, result.parts)
        where = f"the result of chunk {result.chunk} at rank {result.rank}"
        if isinstance(total, str):
            return f"{where} {total}"
        if missing := sorted(set(demands[result.chunk].inputs) - set(total)):
            return f"{where} lacks the input of rank {missing[0]}"
    return None
