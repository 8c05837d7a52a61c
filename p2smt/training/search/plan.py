"""The function `plan`: the best strategies of a question with a proof, and those near the best."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import cast

import numpy as np

from p2smt.cluster.allocation import check_stated
from p2smt.cluster.topology import check_even
from p2smt.cluster.trimmed import even_part
from p2smt.errors import InputError, OutOfTimeError
from p2smt.parallel_search.coordinate import given_up_words
from p2smt.parallel_search.engine import SearchOutcome
from p2smt.parallel_search.parallel_options import SearchTerms, Spread, run_spread
from p2smt.parallel_search.shared_table import new_table, shared_table
from p2smt.parallel_search.subproblem import keep
from p2smt.parallelism.placement import BoolArray, IntArray
from p2smt.result import SAME, SearchLimits, SolveStats, Status, StopWatch
from p2smt.training.iteration import estimate_range
from p2smt.training.measured.prediction_errors import iteration_range
from p2smt.training.search.bounds_table import AlikeRows, BoundsTable, Closed, alike
from p2smt.training.search.branch import (
    CollectiveTiming,
    StrategyTiming,
    close,
    exact,
    learn_usual,
    planned,
    runnable,
)
from p2smt.training.search.cache import PlanCache
from p2smt.training.search.candidates import Candidates
from p2smt.training.search.choices import Choices
from p2smt.training.search.contradiction import placing_rules
from p2smt.training.search.copies import row_names
from p2smt.training.search.known import (
    FAR,
    ever_nearer,
    most_known,
    nearest,
    outside,
    value_word,
)
from p2smt.training.search.pairs import placed_candidates
from p2smt.training.search.plan_answer import (
    NearRun,
    NearStrategies,
    PlanAnswer,
    PlannedStrategy,
    Shortfall,
    StrategyRun,
    StrategyTime,
)
from p2smt.training.search.prices import SceneCache
from p2smt.training.search.program_timing import ProgramTiming
from p2smt.training.search.question import (
    COPIES,
    MIXTURE_SEARCHED,
    SEARCHED,
    FieldValue,
    PlanQuestion,
    Prices,
    SpaceLimits,
    value_of,
    value_text,
)
from p2smt.training.search.strategies import space_of
from p2smt.training.search.subproblems import (
    PatientCache,
    PlanSpace,
    member_parts,
    scale_of,
)
from p2smt.training.strategy import Strategy, key_of
from p2smt.units import format_gigabytes


def plan(
    question: PlanQuestion,
    limits: SearchLimits | None = None,
    measured: Sequence[StrategyRun] = (),
    spread: Spread | None = None,
) -> PlanAnswer:
    """The strategies and placements of least time per iteration, with a proof.

    Args:
        question: model, batch, topology, efficiency, the space and what restricts it.
        limits: the wall-clock limit; a proved answer does not depend on it.
        measured: strategies of measured runs: the near-optimal one that is nearest to them is
            named, and how the best one lies outside of them.

        spread: search part by part, in several processes or with a journal; the answer is the same.
            None: in one piece.

    Raises:
        InputError: no strategy is valid, the topology names no device, it is uneven, or nobody
            stated the bandwidth of its uplinks.
        EncodingBug: an answer does not take the time that the prediction says.

    On KeyboardInterrupt the best answer so far is returned, ``interrupted`` set.
    """
    check_even(question.topology)
    check_stated(question.topology)
    watch, choices = StopWatch.start(limits or SearchLimits()), Choices.of(question)
    candidates = Candidates.of(question, space_of(question, choices))
    singles = CollectiveTiming(placed_candidates(candidates, SceneCache(question.topology), watch))
    bounds_table = BoundsTable.of(candidates)
    if spread is None:
        timing, interrupted = _search(bounds_table, singles, watch)
        given_up = ""
    else:
        wide = WidePlan(bounds_table, singles, spread, tuple(measured)).search(watch)
        timing, interrupted, given_up = wide.timing, wide.interrupted, wide.given_up
    interrupted |= _learn_usual(bounds_table, timing, measured, watch)
    found = verdict(bounds_table, timing, measured)
    if given_up and not found.reason:
        found = replace(found, reason=given_up)
    counters = (("prices", len(timing.pricing.shared_cache)), ("axis sizes", len(candidates.sizes)))
    stats = SolveStats("branch and bound", watch.elapsed_s(), 1, counters)
    return replace(found, space=choices.text(), stats=stats, interrupted=interrupted)


def _learn_usual(
    bounds_table: BoundsTable,
    timing: StrategyTiming,
    measured: Sequence[StrategyRun],
    watch: StopWatch,
) -> bool:
    """Know of the usual placements whether they are as good; whether it was interrupted."""
    try:
        learn_usual(bounds_table, timing, listed_rows(bounds_table, measured), watch)
    except KeyboardInterrupt:
        return True
    return False


def _search(
    bounds_table: BoundsTable, singles: CollectiveTiming, watch: StopWatch
) -> tuple[StrategyTiming, bool]:
    """Close the strategies; how they were timed, and whether it was interrupted.

    With programs no strategy takes longer than with single collectives, whose best ones are where
    that search starts.
    """
    question, timing = bounds_table.candidates.question, cast(StrategyTiming, singles)
    try:
        if question.prices is Prices.PROGRAMS:
            from p2smt.training.search.program_timing import ProgramTiming

            _reach(bounds_table, singles, watch)
            timing = ProgramTiming.of(singles.pricing)
            best = np.array(
                [one.row for one in bounds_table.places()[: question.top]], dtype=np.int64
            )
            timing.settle(bounds_table, best, np.inf, watch)
        _close(bounds_table, timing, watch)
    except OutOfTimeError:
        pass
    except KeyboardInterrupt:
        return timing, True
    return timing, False


def _reach(bounds_table: BoundsTable, singles: CollectiveTiming, watch: StopWatch) -> None:
    """Time strategies with single collectives, on a ledger of its own: its bounds hold there only.

    What it timed can be reached with programs, even if it was broken off.
    """
    first = BoundsTable.of(bounds_table.candidates)
    try:
        _close(first, singles, watch)
    finally:
        bounds_table.reach(first)


def _close(bounds_table: BoundsTable, timing: StrategyTiming, watch: StopWatch) -> None:
    """First what may be among the best, then what may be near the best one."""
    question = bounds_table.candidates.question
    for within in (0.0, question.within):
        close(bounds_table, timing, within, question.top, watch)


# The ordinary answer of a plan by a search over cubes.
# Members come back as texts; those that are listed are timed again here by the ordinary path, so
# placement and programs are the ones that a search in one piece names.


SCALE = "a tick is tick_s seconds of an iteration, a power of two: times are whole numbers of ticks"
_FIRST = 8
"""So many strategies, those of the least bounds, set the first cutoff."""
CUBE_RULE = "sizes of {axes}, then rows of the parallelism {matrix} in this order"


@dataclass(frozen=True, slots=True)
class ParallelSearched:
    """How strategies were timed, whether the search was interrupted, and what it gave up on."""

    timing: StrategyTiming
    interrupted: bool = False
    given_up: str = ""


@dataclass(frozen=True, slots=True)
class WidePlan:
    """A search for strategies as the options of ``spread`` say, on the candidates of a ledger.

    ``measured``: as :func:`p2smt.training.search.plan.plan` takes it.
    """

    bounds_table: BoundsTable
    singles: CollectiveTiming
    spread: Spread
    measured: tuple[StrategyRun, ...] = ()

    def search(self, watch: StopWatch) -> ParallelSearched:
        """Fill the ledger.

        A few strategies are timed before any part is given out: they are the answer where the
        search is cut short before a part is closed.
        """
        first = BoundsTable.of(self.bounds_table.candidates)
        try:
            self._time_first(first, watch)
            outcome, timing = self._searched(first, watch)
        except OutOfTimeError:
            return self._first_only(first)
        except KeyboardInterrupt:
            return replace(self._first_only(first), interrupted=True)
        return ParallelSearched(timing, outcome.interrupted, given_up_words(outcome.given_up))

    def _first_only(self, first: BoundsTable) -> ParallelSearched:
        """What there is without any part: the times with single collectives can be reached."""
        self.bounds_table.reach(first)
        return ParallelSearched(self.singles)

    def _searched(
        self, first: BoundsTable, watch: StopWatch
    ) -> tuple[SearchOutcome, StrategyTiming]:
        question = self._question
        tick_s, ceiling_s = scale_of(self.bounds_table), self._reached_s(first)
        ceiling = None if math.isinf(ceiling_s) else int(ceiling_s / tick_s)
        space = PlanSpace(question, tick_s, ceiling)
        keep(space, PlanCache.of(question, self.bounds_table.candidates))
        matrix = "matrices" if question.model.experts else "matrix"
        cubes = CUBE_RULE.format(axes=", ".join(row_names(question)), matrix=matrix)
        asked = SearchTerms("plan", question.top, SCALE, cubes, tick_s)
        with nullcontext() if self.spread.scheduler else new_table() as table:
            outcome = run_spread(space, asked, self.spread, watch, table)
            _fill(self.bounds_table, space, outcome)
            found = np.flatnonzero(np.isfinite(self.bounds_table.time_s))
            if not outcome.status.settled:
                self._add(first)
            return outcome, self._retimed(table, found)

    def _add(self, first: BoundsTable) -> None:
        """Take the times of strategies that the search has not come to, or had them slower."""
        faster = np.flatnonzero(first.time_s < self.bounds_table.time_s)
        self.bounds_table.time_s[faster] = first.time_s[faster]
        self.bounds_table.place[faster] = first.place[faster]

    @property
    def _question(self) -> PlanQuestion:
        return self.bounds_table.candidates.question

    def _time_first(self, first: BoundsTable, watch: StopWatch) -> None:
        """Time a few strategies with single collectives: what the others reach is for the workers.

        Raises:
            OutOfTimeError: the watch expired.
        """
        rows = runnable(first, first.open_rows(math.inf)[: max(_FIRST, self._question.top)])
        if len(rows):
            self.singles.settle(first, rows, math.inf, watch)

    def _reached_s(self, first: BoundsTable) -> float:
        """With programs, a cutoff that single collectives reach; else infinite."""
        question = self._question
        if question.prices is Prices.COLLECTIVES:
            return math.inf
        return first.cutoff_s(question.within, question.top)

    def _retimed(self, table: str | None, found: IntArray) -> StrategyTiming:
        """Time those that were found and the answer lists anew: by the ordinary path, to the end.

        Programs that a worker has told are not sought again.
        """
        watch = StopWatch.start(SearchLimits())
        singles = placed_candidates(
            self.bounds_table.candidates, self.singles.pricing.shared_cache, watch
        )
        timing: StrategyTiming = CollectiveTiming(singles)
        if self._question.prices is Prices.PROGRAMS:
            timing = _with_told(ProgramTiming.of(singles), table)
        rows = np.array(listed_rows(self.bounds_table, self.measured), dtype=np.int64)
        rows = rows[np.isin(rows, found) & (self.bounds_table.place[rows] < 0)]
        if not len(rows):
            return timing
        low_s = self.bounds_table.low_s[rows].copy()
        self.bounds_table.time_s[rows] = np.inf
        timing.settle(self.bounds_table, rows, np.inf, watch)
        self.bounds_table.low_s[rows] = np.minimum(self.bounds_table.low_s[rows], low_s)
        return timing


def _with_told(timing: ProgramTiming, table: str | None) -> ProgramTiming:
    """A timing that has the programs of a table, each checked here."""
    told = None if table is None else shared_table(table)
    return replace(timing, programs=PatientCache(timing.programs.answers, table=told, checks=True))


def _fill(bounds_table: BoundsTable, space: PlanSpace, outcome: SearchOutcome) -> None:
    """Put what a search found and proved into a ledger."""
    found: dict[int, float] = {}
    for member in outcome.best:
        row = space.row_of(member_parts(member)[0])
        seconds = member.value * space.tick_s
        found[row] = min(seconds, found.get(row, math.inf))
    rows = np.array(sorted(found), dtype=np.int64)
    bounds_table.time_s[rows] = [found[row] for row in rows.tolist()]
    question = bounds_table.candidates.question
    cutoff_s = bounds_table.cutoff_s(question.within, question.top)
    if space.ceiling is not None:
        cutoff_s = min(cutoff_s, (space.ceiling + 1) * space.tick_s)
    _bar(bounds_table, rows, cutoff_s)
    proved = outcome.status in (Status.OPTIMAL, Status.INFEASIBLE)
    bound_s = 0.0 if outcome.bound is None else outcome.bound * space.tick_s
    still = bounds_table.closed == Closed.OPEN
    least_s = float(np.nextafter(cutoff_s, np.inf)) if proved else bound_s
    bounds_table.low_s[still] = np.maximum(bounds_table.low_s[still], least_s)
    low_s = bounds_table.time_s[rows] if proved else np.maximum(bounds_table.low_s[rows], bound_s)
    bounds_table.low_s[rows] = low_s
    bounds_table.closed[rows] = Closed.EVALUATED


def _bar(bounds_table: BoundsTable, found: IntArray, cutoff_s: float) -> None:
    """Mark those that the launcher cannot run, of those that communication alone rules out."""
    rows = bounds_table.open_rows(cutoff_s)
    runnable(bounds_table, np.setdiff1d(rows, found))


# Strategies side by side: what they have in common, and in what they differ.


def common(
    strategies: Sequence[Strategy], names: Sequence[str] = SEARCHED
) -> tuple[tuple[str, str], ...]:
    """The fields that have one value in all strategies, with it, in words."""
    return tuple((name, found[0]) for name, found in _values(strategies, names) if len(found) == 1)


def differing(
    strategies: Sequence[Strategy], names: Sequence[str] = SEARCHED
) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """The fields that have several values, with them, in words."""
    return tuple((name, found) for name, found in _values(strategies, names) if len(found) > 1)


def _values(
    strategies: Sequence[Strategy], names: Sequence[str]
) -> list[tuple[str, tuple[str, ...]]]:
    """The values of each field, ascending."""
    found = []
    for name in names:
        values = {value_of(strategy, name) for strategy in strategies}
        ordered = sorted(values, key=_order)
        found.append((name, tuple(map(value_word, ordered))))
    return found


def _order(value: FieldValue) -> tuple[int, str]:
    """Numbers by size, others by their words."""
    return (int(value), "") if isinstance(value, int) else (0, value_word(value))


# Why no strategy can run: what lacks, and what would help.


_MOST = 64
"""Times as many devices, at most, that are tried."""


def shortfall(bounds_table: BoundsTable) -> Shortfall | None:
    """The strategy that comes nearest to fitting, where some can be placed but do not fit."""
    rows = np.flatnonzero((bounds_table.closed == Closed.TOO_LARGE) & _placeable(bounds_table))
    if not len(rows):
        return None
    question, needed = bounds_table.candidates.question, bounds_table.candidates.work.memory_bytes
    least = int(rows[needed[rows].argmin()])
    strategy = bounds_table.candidates.columns.strategy(least)
    helps = tuple(_helps(question))
    return Shortfall(strategy, int(np.ceil(needed[least])), question.capacity_bytes, helps)


def reason(bounds_table: BoundsTable) -> str:
    """Why nothing can run, in words."""
    question, closed = bounds_table.candidates.question, bounds_table.closed
    counts = {kind: int((closed == kind).sum()) for kind in Closed}
    texts = []
    placeable = _placeable(bounds_table)
    if not placeable.any():
        ruled = placing_rules(question, bounds_table.candidates.sizes)
        return f"none of {len(placeable):,} strategies has a placement under the rules: {ruled}"
    if large := int(((closed == Closed.TOO_LARGE) & placeable).sum()):
        capacity = format_gigabytes(question.capacity_bytes)
        texts.append(f"{large:,} strategies need more than {capacity} a device")
    if unplaced := int((~placeable).sum()):
        texts.append(f"{unplaced:,} have no placement under the rules")
    if counts[Closed.LACKING]:
        lacking = f"{question.launcher} runs none of {counts[Closed.LACKING]:,}"
        texts.append(f"{lacking}: {_lack(bounds_table)}")
    return "; ".join(texts)


def _placeable(bounds_table: BoundsTable) -> BoolArray:
    """Which strategies have a placement under the rules, be they too large or not."""
    candidates = bounds_table.candidates
    return np.asarray(candidates.placements[candidates.block] > 0, dtype=np.bool_)


def _lack(bounds_table: BoundsTable) -> str:
    """What the launcher lacks most often."""
    question, columns = bounds_table.candidates.question, bounds_table.candidates.columns
    found: Counter[str] = Counter()
    if question.lacks is not None:
        for row in np.flatnonzero(bounds_table.closed == Closed.LACKING).tolist():
            found.update(question.lacks(columns.strategy(row), question.model))
    return found.most_common(1)[0][0] if found else ""


def _helps(question: PlanQuestion) -> Iterator[str]:
    """What would make some strategy fit, in words; each is tried."""
    for name, value in question.fixed:
        rest = tuple(pair for pair in question.fixed if pair[0] != name)
        if (found := _fitting(replace(question, fixed=rest))) is not None:
            yield f"another {key_of(name)} than {value_text(value)}: {_words(found)} fits"
    if question.space != SpaceLimits() and _fitting(question) is None:
        wide = replace(question, space=SpaceLimits())
        if (found := _fitting(wide)) is not None:
            yield f"a larger space: {_words(found)} fits"
    part = even_part(question.topology)
    if part and (found := _fitting(replace(question, topology=part.topology))) is not None:
        yield f"--use {part.use} ({part.words}): {_words(found)} fits"
    times = 2
    while times <= _MOST:
        if (found := _fitting_on(question, times)) is not None:
            yield f"{times} times as many devices: {_words(found)} fits"
            return
        times *= 2


def _fitting_on(question: PlanQuestion, times: int) -> Strategy | None:
    """A strategy that fits on so many times as many devices."""
    try:
        outermost = question.topology.levels[0].size * times
        return _fitting(replace(question, topology=question.topology.with_outermost(outermost)))
    except InputError:
        return None


def _fitting(question: PlanQuestion) -> Strategy | None:
    """The strategy of a question that takes least memory of those with a placement, if it fits."""
    try:
        columns = space_of(question, Choices.of(question))
    except InputError:
        return None
    candidates = Candidates.of(question, columns)
    placeable = candidates.placements[candidates.block] > 0
    needed = np.where(placeable, candidates.work.memory_bytes, np.inf)
    least = int(needed.argmin())
    return columns.strategy(least) if needed[least] <= question.capacity_bytes else None


def _words(strategy: Strategy) -> str:
    """A strategy by the fields that differ from the plainest one."""
    plain, shown = Strategy(), []
    for name in (*SEARCHED, *MIXTURE_SEARCHED, COPIES):
        value = value_of(strategy, name)
        if value != value_of(plain, name):
            shown.append(f"{key_of(name)}={value_text(value)}")
    return ",".join(shown) or "one device"


# What a finished or broken-off search says: status, bound, the best, and those near the best.


def verdict(
    bounds_table: BoundsTable, timing: StrategyTiming, measured: Sequence[StrategyRun]
) -> PlanAnswer:
    """The answer that a ledger gives, without the space in words and statistics."""
    question = bounds_table.candidates.question
    counts = bounds_table.counts(bounds_table.cutoff_s(question.within, question.top))
    ranked = bounds_table.ranked()
    if not ranked:
        status = Status.UNKNOWN if counts.open else Status.INFEASIBLE
        bound_s = 0.0 if counts.open else float(np.inf)
        missing = None if counts.open else shortfall(bounds_table)
        why = "" if counts.open else reason(bounds_table)
        return PlanAnswer(
            question, status, (), status, bound_s, counts, (), shortfall=missing, reason=why
        )
    best_s = bounds_table.least_s()
    bound_s = min(best_s, _least_s(bounds_table))
    proved = bound_s >= best_s * (1 - SAME)
    top = bounds_table.places()[: question.top]
    listed = tuple(_place(bounds_table, timing, one) for one in top)
    near = _near(bounds_table, timing, ranked, measured, proved=proved)
    return PlanAnswer(
        question,
        Status.OPTIMAL if proved else Status.FEASIBLE,
        listed,
        Status.COMPLETE if _ordered(bounds_table, top) else Status.TRUNCATED,
        bound_s,
        counts,
        (),
        near=near,
        measured=_measured(listed[0], measured),
        outside=outside(listed[0].strategy, measured),
        recommended=_recommended(bounds_table, timing, listed[0], measured),
    )


def listed_rows(bounds_table: BoundsTable, measured: Sequence[StrategyRun]) -> list[int]:
    """The rows whose placements the verdict may name: the best ones, and those near measured runs.

    Which of these depends on the range of the best one's time, which is not known before its place.
    """
    question = bounds_table.candidates.question
    rows = [one.row for one in bounds_table.places()[: question.top]]
    near = _near_rows(bounds_table, bounds_table.ranked()) if rows else []
    if measured and near:
        strategies = [bounds_table.candidates.columns.strategy(row) for row in near]
        rows += [near[at] for at in ever_nearer(strategies, measured) if near[at] not in rows]
    return rows


def _near_rows(bounds_table: BoundsTable, ranked: Sequence[int]) -> list[int]:
    """Of rows that were timed those near the best one."""
    limit_s = _near_s(bounds_table)
    return [row for row in ranked if bounds_table.time_s[row] <= limit_s]


def _near_s(bounds_table: BoundsTable) -> float:
    """What takes more, in seconds, is not near the best one."""
    return bounds_table.least_s() * (1 + bounds_table.candidates.question.within) * (1 + SAME)


def _measured(best: PlannedStrategy, measured: Sequence[StrategyRun]) -> NearRun | None:
    """The measured run that the best strategy is nearest to, however far it is."""
    if not measured:
        return None
    _, run, apart = nearest([best.strategy], measured)
    return NearRun(best, measured[run], apart)


def _recommended(
    bounds_table: BoundsTable,
    timing: StrategyTiming,
    best: PlannedStrategy,
    measured: Sequence[StrategyRun],
) -> NearRun | None:
    """Of those near the best one, whose times lie in the range of its time, the one nearest to a
    measured run, the best one if none is nearer; of several the fastest.  Where runs had every
    value of some of them, it is one of these.  None if no run is like any of them: then none is
    better known than the best.
    """
    if not measured:
        return None
    estimate = best.estimate(bounds_table.candidates.question)
    within = iteration_range(estimate, estimate_range(estimate), shared_zero=True)
    high_s = within.high_s * (1 + SAME)
    near = _near_rows(bounds_table, bounds_table.ranked())
    placed = bounds_table.place >= 0  # a search in parts places those that may be it
    rows = [row for row in near if bounds_table.time_s[row] <= high_s and placed[row]]
    strategies = [bounds_table.candidates.columns.strategy(row) for row in rows]
    at, run, apart = most_known([best.strategy, *strategies], measured)
    if apart > FAR:
        return None
    found = best if at == 0 else planned(bounds_table, timing, rows[at - 1])
    return NearRun(found, measured[run], apart)


def _place(bounds_table: BoundsTable, timing: StrategyTiming, one: AlikeRows) -> PlannedStrategy:
    """A strategy with those that are alike."""
    others = tuple(map(bounds_table.candidates.columns.strategy, one.others))
    return replace(planned(bounds_table, timing, one.row), alike=others)


def _least_s(bounds_table: BoundsTable) -> float:
    """What no strategy that can run beats, in seconds."""
    alive = (bounds_table.closed == Closed.OPEN) | (bounds_table.closed == Closed.EVALUATED)
    return float(bounds_table.low_s[alive].min())


def _ordered(bounds_table: BoundsTable, top: Sequence[AlikeRows]) -> bool:
    """Whether no other strategy can take one of these places, and each has its least time."""
    limit_s = bounds_table.top_s(len(top))
    return all(exact(bounds_table, one.row) for one in top) and not _unsettled(
        bounds_table, limit_s
    )


def _unsettled(bounds_table: BoundsTable, limit_s: float) -> bool:
    """Whether a strategy may take less than the limit, but that is not known."""
    alive = (bounds_table.closed == Closed.OPEN) | (bounds_table.closed == Closed.EVALUATED)
    inexact = bounds_table.low_s < bounds_table.time_s * (1 - SAME)
    return bool((alive & inexact & (bounds_table.low_s < limit_s)).any())


def _near(
    bounds_table: BoundsTable,
    timing: StrategyTiming,
    ranked: Sequence[int],
    measured: Sequence[StrategyRun],
    *,
    proved: bool,
) -> NearStrategies:
    question, limit_s = bounds_table.candidates.question, _near_s(bounds_table)
    rows = _near_rows(bounds_table, ranked)
    strategies = [bounds_table.candidates.columns.strategy(row) for row in rows]
    times = bounds_table.time_s[rows].tolist()
    all_known = proved and not _unsettled(bounds_table, limit_s)
    found = None
    if measured:
        at, run, apart = nearest(strategies, measured)
        if apart <= FAR and bounds_table.place[rows[at]] >= 0:
            found = NearRun(planned(bounds_table, timing, rows[at]), measured[run], apart)
    return NearStrategies(
        question.within,
        Status.COMPLETE if all_known else Status.TRUNCATED,
        tuple(StrategyTime(*pair) for pair in zip(strategies, times, strict=True)),
        common(strategies, question.searched),
        differing(strategies, question.searched),
        found,
        len(alike(rows, bounds_table.time_s, bounds_table.family)),
    )
