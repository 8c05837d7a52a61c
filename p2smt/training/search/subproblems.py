"""Strategies on their placements as a space: which pairs take an iteration the least time.

A cube is the sizes of the axes, then rows of the matrix in their order, of a mixture those of both.
A member is a strategy with a placement and, where they are asked for, programs; its value is the
time of an iteration.
Ticks are a power of two of a second so fine that every time of the space is a whole number of
them: comparing ticks is comparing times.

Which members are sought depends on the best ones: those near the best and those on the first
``top`` places, strategies that are alike on one place.  ``cutoff_of`` says so in ticks.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from p2smt.cluster.library.model import Library
from p2smt.cluster.library.registry import outside_package, register_library
from p2smt.collectives.demand import demand_of
from p2smt.cost.scene import Scene
from p2smt.errors import EncodingBug, InputError, OutOfTimeError
from p2smt.files.json_text import loads
from p2smt.files.plain import from_plain, to_plain
from p2smt.parallel_search.shared_table import SharedTable, shared_table
from p2smt.parallel_search.subproblem import (
    Closure,
    Member,
    OverBudget,
    SearchKind,
    Signals,
    Subproblem,
    SubproblemTask,
    SubproblemVerdict,
    forget,
    kept,
)
from p2smt.parallelism.folded import FoldedPlacement, experts_numbered
from p2smt.parallelism.placement import FixedEntry, IntArray, Matrix, Placement
from p2smt.plans.solution import RequestAnswer
from p2smt.programs.check import Checked, checked_once
from p2smt.programs.semantics import Trace
from p2smt.result import SAME, SearchLimits, Status, StopWatch
from p2smt.search.one_request import known_answer
from p2smt.search.placements import obeys
from p2smt.search.spaces.matrix_subproblems import MatrixRules, MatrixSubproblems, matrix_of
from p2smt.solvers.ask import stopping_when
from p2smt.training.search.bounds_table import ALIKE, BoundsTable, Closed, last_s
from p2smt.training.search.branch import CollectiveTiming, StrategyTiming, close, exact, sides_of
from p2smt.training.search.cache import PlanCache, ProgramTexts
from p2smt.training.search.candidates import Candidates, Seconds
from p2smt.training.search.copies import MANY, divides, joined_sizes, numbered_pairs, side_rules
from p2smt.training.search.prices import PlacedCandidates
from p2smt.training.search.program_timing import ProgramCache, ProgramTiming, SceneRequest, Sought
from p2smt.training.search.question import Lacks, PlanQuestion, Prices
from p2smt.training.strategy import (
    AXES,
    EXPERT_AXES,
    Batch,
    Strategy,
    parse_strategy,
    strategy_text,
)

_LAST = (2**62,)
"""A tie that comes after those of all members."""
_NO_MEMBER = 2**100
"""The bound of a cube without any member."""
_MANTISSA = 53


@dataclass(frozen=True, slots=True)
class PlanSpace:
    """The strategies of a question on their placements.

    One tick is ``tick_s`` seconds, a power of two.  ``ceiling``: ticks above which no member is
    sought, known beforehand; None: nothing is known.
    """

    question: PlanQuestion
    tick_s: float
    ceiling: int | None = None

    @property
    def skeleton(self) -> SearchKind:
        """The best ones are sought, and those near the best."""
        return SearchKind.OPTIMISE

    def description(self) -> Mapping[str, object]:
        """The question, by its launcher's name, and the scale; and the library, where not every
        process knows it."""
        named = replace(self, question=replace(self.question, lacks=None))
        library = outside_package(self.question.topology.library)
        return {**to_plain(named), "library": to_plain(library)}

    def roots(self) -> tuple[Subproblem, ...]:
        """A cube for all sizes of the axes that have a placement under the rules; or may have one,
        where a matrix of attention is known to leave experts none once it is looked at."""
        candidates = plan_cache(self).candidates
        return tuple(
            Subproblem((text,))
            for text, many in zip(plan_cache(self).blocks, candidates.placements, strict=True)
            if many or self.question.numbered_once
        )

    def split(self, cube: Subproblem) -> tuple[Subproblem, ...]:
        """One row more."""
        return self._cubes(cube).split(cube)

    def bound(self, cube: Subproblem) -> int:
        """The least time of its strategies if communication were free, in ticks."""
        shared_cache = plan_cache(self)
        rows = shared_cache.open_rows(self._block(cube))
        return self.ticks(float(shared_cache.known.low_s[rows].min())) if len(rows) else _NO_MEMBER

    def cutoff_of(self, members: Sequence[Member], top: int) -> Member | None:
        """What members must precede to be sought, given some; None: all are, so far."""
        limits_s = [math.inf if self.ceiling is None else self.ceiling * self.tick_s]
        if members:
            limits_s.append(self._limit_s(members, top))
        limit_s = min(limits_s)
        return None if math.isinf(limit_s) else Member(self.ticks(limit_s), _LAST, "")

    def close(self, task: SubproblemTask, signals: Signals) -> Closure | OverBudget:
        """Time the strategies of a cube on their best placements, as far as they matter."""
        shared_cache, cubes = plan_cache(self), self._cubes(task.cube)
        rows = shared_cache.open_rows(self._block(task.cube))
        if not len(rows) or cubes.empty(task.cube):
            return Closure(task.cube, SubproblemVerdict.EMPTY)
        deadline = SubproblemWatch.start(SearchLimits(task.deadline_s))
        may_split = task.budget_s is not None and bool(cubes.split(task.cube))
        limits = [one for one in (task.budget_s if may_split else None, task.deadline_s) if one]
        budget = SubproblemWatch(
            SearchLimits(min(limits, default=None)), deadline.started_s, signals.stopped
        )
        mine = shared_cache.candidates.under(rows, cubes.fixed(task.cube))
        told = self._told_s(task, signals)
        table = None if task.table is None else shared_table(task.table)
        search = PlanSubproblem.of(shared_cache, rows, mine, told, budget, deadline, table)
        try:
            with stopping_when(lambda _: signals.stopped()):
                search.close()
        except OutOfTimeError:
            members = self._members(search)
            if deadline.expired() or signals.stopped():
                forget(self)  # programs that were cut short are not for another search
            if may_split and not deadline.expired() and not signals.stopped():
                return OverBudget(task.cube, members)
            return self._closure(task.cube, SubproblemVerdict.UNKNOWN, search, members)
        return self._closed(task.cube, search)

    def member(self, witness: str) -> Member:
        """The strategy, placement and programs of a text, timed anew."""
        shared_cache = plan_cache(self)
        strategy, matrix, programs = _read(witness)
        row = self._row(shared_cache, witness)
        check_sides(matrix, self.question, strategy)
        if not obeys(matrix, self.question.rules):
            raise InputError(f"matrix {matrix}", "does not obey the rules of the question")
        if self.question.lacks is not None and self.question.lacks(strategy, self.question.model):
            raise InputError("a strategy", f"is none that {self.question.launcher} can run")
        if self.question.numbered_once and not _numbered_once(matrix, strategy):
            raise InputError(f"matrix {matrix}", f"is none as {self.question.launcher} numbers")
        return Member(self.ticks(shared_cache.seconds(row, matrix, programs)), (), witness)

    def ticks(self, seconds: float) -> int:
        """Seconds in ticks, rounded down; times of the space are whole numbers of them."""
        return _NO_MEMBER if math.isinf(seconds) else int(seconds / self.tick_s)

    def row_of(self, strategy: Strategy) -> int:
        """The row of a strategy among the candidates."""
        return plan_cache(self).row_of(strategy)

    def _cubes(self, cube: Subproblem) -> PlacementCubes:
        """How the cubes of the same axis sizes are cut."""
        placed = plan_cache(self).candidates.sizes[self._block(cube)].tolist()
        sizes, copies = joined_sizes(self.question, placed)
        levels, rules = self.question.topology.sizes, self.question.rules
        once = self.question.numbered_once
        return PlacementCubes(levels, sizes, rules, cube.path[0], copies, once)

    def _block(self, cube: Subproblem) -> int:
        found = plan_cache(self).blocks.get(cube.path[0]) if cube.path else None
        if found is None:
            raise InputError(f"cube {cube.path}", "has sizes of axes that no strategy has")
        return found

    def _row(self, shared_cache: PlanCache, witness: str) -> int:
        if witness not in shared_cache.rows:
            shared_cache.rows[witness] = shared_cache.row_of(_read(witness)[0])
        return shared_cache.rows[witness]

    def _limit_s(self, members: Sequence[Member], top: int) -> float:
        """As the ledger of a search has it: what is near, or takes one of the first places."""
        shared_cache = plan_cache(self)
        rows = np.array([self._row(shared_cache, one.witness) for one in members])
        times_s = np.array([one.value * self.tick_s for one in members])
        times_s, rows = _least_by_row(times_s, rows)
        near_s = float(times_s.min()) * (1 + self.question.within) * (1 + SAME)
        last = last_s(times_s, shared_cache.known.family[rows], top)
        return max(near_s, last * (1 + self.question.tie) * (1 + ALIKE) * (1 + SAME))

    def _told_s(self, task: SubproblemTask, signals: Signals) -> Callable[[], float]:
        """The cutoff of the whole search in seconds, as it is known at the moment."""
        known = task.known[-1:]
        if not known or known[0].tie != _LAST:
            found = self.cutoff_of(task.known, task.top)
            known = () if found is None else (found,)

        def told_s() -> float:
            now = signals.cutoff()
            limits = [one.value for one in (*known, *(() if now is None else (now,)))]
            return min(limits) * self.tick_s if limits else math.inf

        return told_s

    def _members(self, search: PlanSubproblem) -> tuple[Member, ...]:
        return tuple(sorted({self.member(_text(one)) for one in search.timed()}))

    def _closed(self, cube: Subproblem, search: PlanSubproblem) -> Closure:
        """What the ledger of a cube proves when all is closed."""
        members = self._members(search)
        if search.unproved():
            return self._closure(cube, SubproblemVerdict.UNKNOWN, search, members)
        if members:
            return self._closure(cube, SubproblemVerdict.SOLVED, search, members)
        if math.isinf(search.low_s()):
            return Closure(cube, SubproblemVerdict.EMPTY)
        return self._closure(cube, SubproblemVerdict.BOUNDED, search, ())

    def _closure(
        self,
        cube: Subproblem,
        verdict: SubproblemVerdict,
        search: PlanSubproblem,
        members: tuple[Member, ...],
    ) -> Closure:
        bound = min([self.ticks(search.low_s()), *(one.value for one in members)])
        return Closure(cube, verdict, max(bound, 0), members)


def scale_of(known: BoundsTable) -> float:
    """Seconds of a tick: the last binary digit of the least time there can be."""
    least_s = known.low_s[known.closed == Closed.OPEN].min(initial=math.inf)
    finite = math.isfinite(least_s) and least_s > 0
    return math.ldexp(1.0, math.frexp(float(least_s))[1] - _MANTISSA) if finite else 1.0


def plan_cache(space: PlanSpace) -> PlanCache:
    """The shelf of a space in this process: scenes, prices and programs are found once."""
    return kept(space, lambda: PlanCache.of(space.question))


def plan_space(data: Mapping[str, Any], lacks: Callable[[str, Batch], Lacks]) -> PlanSpace:
    """The space of a description; ``lacks`` makes what a launcher of a name lacks.

    Raises:
        InputError: it is none.
    """
    try:
        if data["library"] is not None:
            register_library(from_plain(Library, data["library"]))
        question = from_plain(PlanQuestion, data["question"])
        if question.launcher:
            question = replace(question, lacks=lacks(question.launcher, question.batch))
        return PlanSpace(question, float(data["tick_s"]), data["ceiling"])
    except (KeyError, TypeError, AttributeError):
        raise InputError("the description of a space", "is none of strategies") from None


def member_parts(member: Member) -> tuple[Strategy, Matrix]:
    """The strategy and the matrix of a member."""
    return _read(member.witness)[:2]


def check_sides(rows: Matrix, question: PlanQuestion, strategy: Strategy) -> None:
    """Raise InputError unless rows are those of a placement, or pair, of a strategy."""
    levels = question.topology.sizes
    if question.model.experts:
        FoldedPlacement.of_rows(rows).check(levels, strategy.sizes, strategy.expert_sizes)
    else:
        Placement(rows).check(levels, strategy.sizes)


def _numbered_once(rows: Matrix, strategy: Strategy) -> bool:
    """Whether experts have the ranks of attention in a pair with these rows."""
    every = np.array(rows, dtype=np.int64)
    _, theirs = experts_numbered(every[None, :MANY], strategy.expert_sizes)
    return len(theirs) == 1 and np.array_equal(theirs[0, 1:], every[MANY:])


def _text(one: TimedStrategy) -> str:
    matrix, experts = sides_of(one.matrix)
    parts = {
        "matrix": Placement(matrix).text(),
        "programs": one.programs,
        "strategy": strategy_text(one.strategy),
    }
    if experts is not None:
        parts["expert_matrix"] = Placement(experts).text()
    return json.dumps(parts, sort_keys=True, separators=(",", ":"))


def _read(witness: str) -> tuple[Strategy, Matrix, ProgramTexts]:
    given = f"member {witness[:60]!r}"
    try:
        parts = loads(witness)
        programs = dict(parts["programs"])
        rows = matrix_of(parts["matrix"])
        if "expert_matrix" in parts:
            rows = FoldedPlacement(
                Placement(rows), Placement(matrix_of(parts["expert_matrix"]))
            ).rows
        found = parse_strategy(parts["strategy"]), rows, programs
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(given, "is no strategy with matrix and programs") from None
    if not all(text is None or isinstance(text, str) for text in programs.values()):
        raise InputError(given, "has a program that is no text")
    return found


def _least_by_row(times_s: Seconds, rows: IntArray) -> tuple[Seconds, IntArray]:
    """The least time of each row, and the rows, each once."""
    order = np.lexsort((times_s, rows))
    _, first = np.unique(rows[order], return_index=True)
    chosen = order[first]
    return times_s[chosen], rows[chosen]


# Closing one cube: the ordinary branch and bound over its strategies and placements alone.


@dataclass(slots=True)
class SubproblemTable(BoundsTable):
    """A ledger of some strategies whose cutoff is also that of the whole search, in seconds."""

    ceiling_s: Callable[[], float] = field(default=lambda: np.inf)

    def cutoff_s(self, within: float, top: int) -> float:
        """Strategies that take more are neither near the best nor take one of the first places."""
        return min(BoundsTable.cutoff_s(self, within, top), self.ceiling_s())


@dataclass(frozen=True, slots=True)
class SubproblemWatch(StopWatch):
    """A watch that also runs out when the search is over."""

    stopped: Callable[[], bool] = field(default=lambda: False)

    def expired(self) -> bool:
        """Whether no time is left, or none is needed."""
        return self.stopped() or self.remaining_s() == 0.0


@dataclass(frozen=True, slots=True)
class TimedStrategy:
    """A strategy of a cube on its best placement there, by its row among all candidates."""

    row: int
    strategy: Strategy
    matrix: Matrix
    programs: ProgramTexts
    seconds: float


@dataclass(slots=True)
class PlanSubproblem:
    """The strategies of a block whose matrices obey more rules than those of the question.

    ``rows`` are theirs among all candidates.
    """

    shared_cache: PlanCache
    rows: IntArray
    bounds_table: SubproblemTable
    timing: StrategyTiming
    budget: SubproblemWatch
    deadline: StopWatch

    @staticmethod
    def of(
        shared_cache: PlanCache,
        rows: IntArray,
        candidates: Candidates,
        ceiling_s: Callable[[], float],
        budget: SubproblemWatch,
        deadline: StopWatch,
        table: SharedTable | None = None,
    ) -> PlanSubproblem:
        """Nothing timed so far; ``candidates`` are those rows, with the rules of the cube."""
        low_s = shared_cache.known.low_s[rows].copy()
        bounds_table = SubproblemTable(
            candidates, low_s, np.zeros(len(rows), int), ceiling_s=ceiling_s
        )
        singles = shared_cache.placed(candidates, budget)
        timing: StrategyTiming = CollectiveTiming(singles)
        if shared_cache.question.prices is Prices.PROGRAMS:
            timing = _with_programs(shared_cache, singles, deadline, table)
        return PlanSubproblem(shared_cache, rows, bounds_table, timing, budget, deadline)

    def close(self) -> None:
        """Close the strategies; those that may be among the best, then those near the best.

        Raises:
            OutOfTimeError: the budget or the deadline came first, or the search is over.
        """
        question = self.shared_cache.question
        for within in (0.0, question.within):
            close(self.bounds_table, self.timing, within, question.top, self.budget)

    def timed(self) -> list[TimedStrategy]:
        """Those that are not above the cutoff, in no order."""
        question, bounds_table = self.shared_cache.question, self.bounds_table
        cutoff_s = bounds_table.cutoff_s(question.within, question.top)
        within = np.isfinite(bounds_table.time_s) & (bounds_table.time_s <= cutoff_s)
        return [self._timed(row) for row in np.flatnonzero(within).tolist()]

    def unproved(self) -> bool:
        """Whether a strategy may be sought whose programs are not proved the best."""
        question, bounds_table = self.shared_cache.question, self.bounds_table
        cutoff_s = bounds_table.cutoff_s(question.within, question.top)
        evaluated = np.flatnonzero(bounds_table.closed == Closed.EVALUATED)
        near = evaluated[bounds_table.low_s[evaluated] <= cutoff_s].tolist()
        return not all(exact(bounds_table, row) for row in near)

    def low_s(self) -> float:
        """No strategy of the cube that can run takes less, in seconds; infinite: none can."""
        bounds_table = self.bounds_table
        alive = (bounds_table.closed == Closed.OPEN) | (bounds_table.closed == Closed.EVALUATED)
        return float(bounds_table.low_s[alive].min(initial=np.inf))

    def _timed(self, row: int) -> TimedStrategy:
        bounds_table, place = self.bounds_table, int(self.bounds_table.place[row])
        block = int(bounds_table.candidates.block[row])
        matrix = self.timing.pricing.placed(block).matrix(place)
        found = self.timing.answers(row, place)
        texts: ProgramTexts = {
            name: None if one.program is None else str(one.program) for name, one in found.items()
        }
        return TimedStrategy(
            int(self.rows[row]),
            bounds_table.candidates.columns.strategy(row),
            matrix,
            texts,
            float(bounds_table.time_s[row]),
        )


def _with_programs(
    shared_cache: PlanCache,
    singles: PlacedCandidates,
    deadline: StopWatch,
    table: SharedTable | None,
) -> ProgramTiming:
    """Programs are those of the process: what one cube finds, the next one knows."""
    programs = PatientCache(
        shared_cache.programs.answers, shared_cache.programs.kept, deadline, table
    )
    return ProgramTiming(singles.at(shared_cache.refined), singles.at(shared_cache.least), programs)


# The programs that a cube needs: found by this process, or by another one of this machine.
# What another process found is a text: its program is timed here again.  That no other one is
# better is believed, as it is of a closed cube.  What it was checked on is taken over as well,
# until a member with it is made again (:meth:`~p2smt.parallel_search.subproblem.Space.member`):
# then it is checked anew, by the worker that found the member and by the coordinator.


@dataclass(frozen=True, slots=True)
class PatientCache(ProgramCache):
    """Programs that only the deadline cuts short: they serve later cubes, a budget's end does not
    make them worse.

    ``table``: where the processes of a search on this machine tell each other what they found.
    ``checks``: whether what another one found is checked here before it is used.
    """

    deadline: StopWatch = field(default_factory=lambda: StopWatch.start(SearchLimits()))
    table: SharedTable | None = None
    checks: bool = False

    def turns(self, asked: Sequence[Sought]) -> Iterator[Sought]:
        """First those that no other process seeks at the moment."""
        left = list(asked)
        while left:
            free = (i for i, one in enumerate(left) if not self._sought_elsewhere(one))
            yield left.pop(next(free, 0))

    def seek(self, asked: SceneRequest, scene: Scene, watch: StopWatch) -> RequestAnswer:
        """As the base class does, once the budget allows it to begin; or what another one found."""
        if watch.expired():
            raise OutOfTimeError
        if self.table is None or not _shared(asked, scene):
            return ProgramCache.seek(self, asked, scene, self.deadline)

        def search() -> str | None:
            found = ProgramCache.seek(self, asked, scene, self.deadline)
            # what is not the best may have been cut short, by the deadline or the search's end
            return _answer_text(found) if found.status is Status.OPTIMAL else None

        def wait() -> None:
            if watch.expired():
                raise OutOfTimeError

        text = self.table.found_or_sought(_key(asked, scene), search, wait)
        found = self.known(asked) or (text and self._learnt(asked, scene, text))
        return found or ProgramCache.seek(self, asked, scene, self.deadline)

    def _learnt(self, asked: SceneRequest, scene: Scene, text: str) -> RequestAnswer | None:
        """The answer that another process told; None if it is none."""
        request = asked.as_request
        try:
            program, status, bound_s, checked = json.loads(text)
            check = None if self.checks else _checked(checked)
            found = known_answer(request, scene, program, Status(status), float(bound_s), check)
        except (ValueError, TypeError, InputError, EncodingBug):
            return None
        self.kept[asked.number, asked.kind, asked.payload_bytes] = found
        return found

    def _sought_elsewhere(self, one: Sought) -> bool:
        asked, scene = one
        if self.table is None or not _shared(asked, scene):
            return False
        return self.table.waits(_key(asked, scene))


def _shared(asked: SceneRequest, scene: Scene) -> bool:
    """Whether a request has a program: one fixed step is found sooner than looked up."""
    return asked.kind.has_programs and scene.hierarchy.size > 1


def _key(asked: SceneRequest, scene: Scene) -> str:
    return json.dumps([scene.digits, asked.kind.value, asked.payload_bytes])


def _answer_text(answer: RequestAnswer) -> str | None:
    """An answer with a program, for other processes."""
    if answer.program is None:
        return None
    checked = checked_once(demand_of(answer.request.kind), answer.hierarchy, answer.program)
    trace = checked.trace
    run = [trace.payload_rows, trace.peak_rows, trace.shards, checked.factors, checked.exact]
    return json.dumps([str(answer.program), answer.status.value, answer.bound_s, run])


def _checked(run: Any) -> Checked:
    """What a valid program was checked on.

    Raises:
        ValueError: that is not told.
    """
    match run:
        case [[*rows], int(peak), None | [*_] as shards, [*factors], bool(exact)]:
            ends = None if shards is None else tuple(map(int, shards))
            trace = Trace(None, tuple(map(int, rows)), peak, ends)
            return Checked(trace, tuple(map(int, factors)), exact)
        case _:
            raise ValueError(run)


# How the placements of axes of given sizes are cut: by rows of attention's matrix, then experts'.
#
# A pair of a mixture shares the row of pp, so once all rows of attention are given, those of
# experts are rows of a matrix over what pp leaves of each level.


_OWN = EXPERT_AXES[1:]
"""Rows that experts have for themselves."""


@dataclass(frozen=True, slots=True)
class PlacementCubes:
    """The placements of attention, and of a mixture those of experts with each, under rules.

    ``sizes`` are those of the rows of both, pp's once; ``rules`` count these rows.  A path is
    ``first``, the sizes as text, then rows: of a matrix the last row follows from the others.
    ``copies``: of shards, into which the rows of data parallelism must be divided.
    ``numbered_once``: experts have the ranks of attention, whose rows leave them one matrix.
    """

    levels: tuple[int, ...]
    sizes: tuple[int, ...]
    rules: MatrixRules
    first: str
    copies: int = 1
    numbered_once: bool = False

    def split(self, cube: Subproblem) -> tuple[Subproblem, ...]:
        """One row more; none where the rows left are determined."""
        if len(cube.path) < MANY or not self._mixture or self.numbered_once:
            return self._attention.split(cube)
        return self._experts(cube).split(cube)

    def fixed(self, cube: Subproblem) -> MatrixRules:
        """The rules, and those that fix the rows of a cube.

        Raises:
            InputError: a decision is no row of its axis, or the rows exceed a level.
        """
        rows = dict(enumerate(self._attention.rows(self._of_attention(cube))))
        if len(cube.path) > MANY and self._mixture:
            rows |= dict(enumerate(self._experts(cube).rows(cube), start=MANY))
        entries = [FixedEntry(i, j, n) for i, row in rows.items() for j, n in enumerate(row)]
        return (*self.rules, *entries)

    def empty(self, cube: Subproblem) -> bool:
        """Whether no placement of a cube obeys the rules."""
        attention = self._attention.matrices(self._of_attention(cube))
        if self.numbered_once:
            every = np.array(list(attention), dtype=np.int64).reshape(-1, MANY, len(self.levels))
            theirs = side_rules(self.rules, of_experts=True)
            return not len(numbered_pairs(every, self.sizes, theirs, self.copies))
        if not any(divides(rows[1], self.copies) for rows in attention):
            return True
        if not self._mixture:
            return False
        if len(cube.path) == 1:
            return all(self.empty(child) for child in self.split(cube))
        experts = self._experts(cube).matrices(cube)
        return not any(divides(rows[0], self.copies) for rows in experts)

    @property
    def _mixture(self) -> bool:
        return len(self.sizes) > MANY

    @property
    def _attention(self) -> MatrixSubproblems:
        rules = tuple(rule for rule in self.rules if rule.axis < MANY)
        return MatrixSubproblems(AXES, self.levels, self.sizes[:MANY], rules, (self.first,))

    def _of_attention(self, cube: Subproblem) -> Subproblem:
        """The decisions on attention alone."""
        return Subproblem(cube.path[:MANY]) if self._mixture else cube

    def _experts(self, cube: Subproblem) -> MatrixSubproblems:
        """The rows of experts beside the row of pp that a cube has."""
        stages = self._attention.rows(self._of_attention(cube))[0]
        left = tuple(size // ways for size, ways in zip(self.levels, stages, strict=True))
        rules = tuple(
            replace(rule, axis=rule.axis - MANY) for rule in self.rules if rule.axis >= MANY
        )
        return MatrixSubproblems(_OWN, left, self.sizes[MANY:], rules, cube.path[:MANY])
