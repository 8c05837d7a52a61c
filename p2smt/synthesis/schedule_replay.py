"""What a solver says of a schedule, run again without one: chunks that are copied, and sums."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from fractions import Fraction

from p2smt.collectives.contract import RULES, MadeOf
from p2smt.errors import EncodingBug, InputError
from p2smt.fabric.fabric import Fabric
from p2smt.problems.schedule import (
    AllReduceProblem,
    Arrival,
    ChunkRoute,
    ChunkSent,
    ChunkThere,
    DisseminationProblem,
    EdgeRow,
    ScheduleClass,
    ScheduleSymmetry,
    StepSends,
    SumSchedule,
    SumStep,
)
from p2smt.result import Result, SearchLimits
from p2smt.solvers.ask import Solver, Witness, ask

# Schedules of collectives that only copy, over a fabric.


def spreads(collective: str, ranks: int, chunks: int, root: int = 0) -> tuple[ChunkRoute, ...]:
    """The chunks of a collective that only copies, ``chunks`` a rank, pair or in all.

    All-gather: ``chunks`` of each rank.  All-to-all, scatter, gather: of each pair of ranks that
    sends.  Broadcast: in all.

    Raises:
        InputError: the collective adds, or is none that is known.
    """
    rule, every = RULES.get(collective), range(ranks)
    if rule is None or rule.source not in (MadeOf.OWNER, MadeOf.ROOT):
        known = [n for n, r in RULES.items() if r.source in (MadeOf.OWNER, MadeOf.ROOT)]
        raise InputError(f"collective {collective[:40]!r}", f"is none of {', '.join(known)}")
    roots = [root] if rule.source is MadeOf.ROOT else list(every)
    goals = [root] if rule.at_root else list(every)
    apart = rule.input_parts or rule.at_root
    found = []
    for origin in roots:
        targets = tuple(goal for goal in goals if goal != origin)
        for part in [(goal,) for goal in targets] if apart else [targets]:
            found += [ChunkRoute(origin, part)] * chunks
    return tuple(found)


def dissemination_problem(
    fabric: Fabric, chunks: tuple[ChunkRoute, ...], steps: int, rounds: int
) -> DisseminationProblem:
    """The question whether chunks reach their goals over a fabric in so many steps and rounds."""
    return DisseminationProblem(
        fabric.ranks,
        fabric.edge_rows,
        fabric.bandwidths,
        chunks,
        steps,
        rounds,
    )


def disseminate(
    problem: DisseminationProblem,
    limits: SearchLimits | None = None,
    solver: Solver = Solver.CPSAT,
) -> Result[tuple[StepSends, ...]]:
    """A schedule, replayed: FEASIBLE; INFEASIBLE: there is none with the symmetries; UNKNOWN.

    Raises:
        TooLarge: the problem exceeds a limit of the encoding.
        EncodingBug: the solver's schedule breaks a rule.
    """
    found = ask(problem, Witness(), solver, limits or SearchLimits())
    if found.value is not None and (broken := broken_rule(problem, found.value)):
        raise EncodingBug(broken, problem, found.value)
    return found


# Replays messages step by step: what a solver says of a schedule is not believed.


def broken_rule(problem: DisseminationProblem, steps: Sequence[StepSends]) -> str | None:
    """The first rule that a schedule breaks, in words; None if it answers the problem."""
    if len(steps) != problem.steps or sum(step.rounds for step in steps) != problem.rounds:
        return f"it has {len(steps)} steps and {sum(step.rounds for step in steps)} rounds"
    after: list[set[tuple[int, int]]] = []
    held = {(c, chunk.root) for c, chunk in enumerate(problem.chunks)}
    for number, step in enumerate(steps, start=1):
        if step.rounds < 1:
            return f"step {number} has {step.rounds} rounds"
        arrived = Counter((c, problem.edges[e][1]) for c, e in step.sends)
        for c, e in step.sends:
            if (c, problem.edges[e][0]) not in held:
                return f"step {number}: chunk {c} is not where edge {e} begins"
        for (c, rank), times in arrived.items():
            if times > 1 or (c, rank) in held:
                return f"step {number}: chunk {c} comes to rank {rank} a second time"
        if too_much := _overloaded(problem, step):
            return f"step {number}: {too_much}"
        held = held | set(arrived)
        after.append(held)
    for c, chunk in enumerate(problem.chunks):
        for goal in chunk.goals:
            if (c, goal) not in held:
                return f"chunk {c} does not come to rank {goal}"
    return _decided_otherwise(problem, after)


def _decided_otherwise(
    problem: DisseminationProblem, after: Sequence[AbstractSet[tuple[int, int]]]
) -> str | None:
    """What is not as the problem has it decided; ``after``: what is held after each step."""

    def true(one: ChunkThere) -> bool:
        return ((one.chunk, one.rank) in after[one.steps - 1]) is one.there

    for one in problem.decided:
        if not true(one):
            return f"chunk {one.chunk} at rank {one.rank} is decided otherwise"
    for wrong in problem.excluded:
        if all(map(true, wrong)):
            return f"chunk {wrong[0].chunk} is as was excluded"
    return None


def _overloaded(problem: DisseminationProblem, step: StepSends) -> str | None:
    """The first capacity that carries more than it can in the rounds of a step."""
    loads = Counter(k for _, e in step.sends for k in problem.edges[e][2])
    for k, load in sorted(loads.items()):
        if load > problem.capacities[k] * step.rounds:
            return f"capacity {k} carries {load} chunks in {step.rounds} rounds"
    return None


# Replays schedules of sums, counting contributions: what a solver says of one is not believed.


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
            _overloaded_by_sums(step, edges, capacities)
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
            if len(parts) == 1:
                return self._held[chunk, rank, part]
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


def _overloaded_by_sums(
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


# Schedules of all-reduces over a fabric.


def all_reduce_problem(
    fabric: Fabric,
    chunks: int,
    steps: int,
    rounds: int,
    family: ScheduleClass = ScheduleClass.PARTIAL_SUMS,
    messages: int = 1,
    symmetries: tuple[ScheduleSymmetry, ...] = (),
) -> AllReduceProblem:
    """The question whether chunks can be added over all ranks in so many steps and rounds."""
    return AllReduceProblem(
        fabric.ranks,
        fabric.edge_rows,
        fabric.bandwidths,
        chunks,
        steps,
        rounds,
        family,
        messages,
        symmetries,
    )


def all_reduce(
    problem: AllReduceProblem,
    limits: SearchLimits | None = None,
    solver: Solver = Solver.CPSAT,
) -> Result[SumSchedule]:
    """A schedule, replayed: FEASIBLE; INFEASIBLE: its class has none with the symmetries; UNKNOWN.

    Raises:
        InputError: z3 is asked for another class than that of partial sums.
        TooLarge: the problem exceeds a limit of the encoding.
        EncodingBug: the solver's schedule breaks a rule.
    """
    found = ask(problem, Witness(), solver, limits or SearchLimits())
    if found.value is not None and (broken := broken_answer(problem, found.value)):
        raise EncodingBug(broken, problem, found.value)
    return found


def broken_answer(problem: AllReduceProblem, schedule: SumSchedule) -> str | None:
    """The first rule that a schedule breaks, in words; None if it answers the problem."""
    steps, rounds = len(schedule.steps), sum(step.rounds for step in schedule.steps)
    if (steps, rounds) != (problem.steps, problem.rounds):
        return f"it has {steps} steps and {rounds} rounds"
    demands = sum_demands("allreduce", problem.ranks, problem.chunks)
    if otherwise := _sums_decided_otherwise(problem, schedule):
        return otherwise
    once = problem.family is not ScheduleClass.PARTIAL_SUMS
    messages = 1 if once else problem.messages
    return broken_sum_rule(schedule, problem.edges, problem.capacities, demands, messages)


def _sums_decided_otherwise(problem: AllReduceProblem, schedule: SumSchedule) -> str | None:
    """What is not as the problem has it decided."""
    sent = {(s.chunk, s.edge, n) for n, step in enumerate(schedule.steps) for s in step.sends}

    def true(one: ChunkSent) -> bool:
        return ((one.chunk, one.edge, one.step) in sent) is one.sent

    for one in problem.decided:
        if not true(one):
            where = f"over edge {one.edge} in step {one.step + 1}"
            return f"chunk {one.chunk} {where} is decided otherwise"
    for wrong in problem.excluded:
        if all(map(true, wrong)):
            return f"chunk {wrong[0].chunk} is as was excluded"
    return None
