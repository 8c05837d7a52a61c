"""The best rate in so many steps: sizes between a bound and what is known, tried in turn.

What is known without a search (:mod:`.seeds`) comes first: no search begins above it.  Then, pass
after pass, each with longer slices: sizes that could meet the bound; chunks that a group moves
lie in orbits, so sums of whole orbits (:func:`orbit_sums`), few chunks first and in every class,
each just below the best, then half way to the bound as long as that finds a schedule; and the
rates between the bound and the best are halved, the size of fewest chunks in the middle half each
time.  That a size was not found in its slice says where a pass goes on, and nothing else: a later
pass asks it again.  Only a schedule, a bound, or a complete search closes a size.  So much effort
is spent in vain on each of the four.  Where there is a time limit, then GROWTH times as much,
again and again until it comes, and rates are also tried without symmetries, last in each pass: so
time finds what effort alone does, if it suffices for that.  No size has more than a part of the
time that is left.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial

from p2smt.problems.schedule import SumSchedule
from p2smt.result import StopWatch
from p2smt.solvers.ask import Solver
from p2smt.synthesis.bounds import RateBound
from p2smt.synthesis.group_order import ThresholdMemory
from p2smt.synthesis.seeds import SOLVED_TIME, Seed, add_seeds
from p2smt.synthesis.setting import (
    ScheduleSize,
    Synthesis,
    SynthesisSetting,
    SynthesisState,
    Tell,
    fewest_steps,
    least_rate,
    too_many_messages,
)
from p2smt.synthesis.symmetry_search import (
    FIRST_SLICE,
    GROWTH,
    ScheduleSearch,
    symmetry_search_of,
)
from p2smt.synthesis.synthesize import answered, seeded

MOST_CHUNKS = 24
"""Per rank, per pair, or from the root."""


@dataclass(frozen=True, slots=True)
class PointEffort:
    """First slices that the searches of a point may spend in vain, before any time limit counts.

    On the bound, on sums of few orbits, on sums of whole orbits, and on the rates between.
    ``timeless``: no more where there is one.
    """

    bound: int = 8
    few: int = 24
    orbits: int = 24
    between: int = 8
    timeless: bool = False


BRIEF = PointEffort(1, 0, 2, 0, timeless=True)
"""Of an all-gather that is only to be a part of an all-reduce."""
SIZE_SLICES = 3
"""A size has so many first slices when it is asked first (of few chunks twice as many: the wider
classes begin in the second turn), then GROWTH times as many as before in all, however long its
slices are by then: a size in vain keeps no other one waiting."""
CLOSE = Fraction(1, 100)
"""Rates that are no further apart, as a part of the larger, are not halved."""
PARTS = 2
"""A size has so small a part of the time that is left .."""
LEAST_S = 1.0
""".. but so many seconds, as long as there are any."""
MOST_POINTS = 1_000_000
"""Messages by chunk, edge and step of an all-reduce of as many chunks as ranks, halved:
of more no search is begun, which would take minutes a size."""
SEEDS_PART = 4
"""What is to be known before any search has so small a part of the time."""


def unsearched(setting: SynthesisSetting, steps: int) -> bool:
    """Whether no search of more than one chunk begins, for the many messages and edges."""
    points = steps * setting.fabric.ranks * len(setting.edges) // 2
    return too_many_messages(setting) or (setting.adds and points > MOST_POINTS)


@dataclass(frozen=True, slots=True)
class RateQuestion:
    """Rates of what, up to so many chunks, and how they are sought.

    ``memory``: of the groups, which are those of every size and number of steps.  By steps,
    ``seeds``: schedules that are known already; ``searches``: begun, which go on when asked again,
    with groups that are made as long as ``groups_watch`` lasts (None: that of the search).
    """

    setting: SynthesisSetting
    most_chunks: int
    solver: Solver
    tell: Tell
    memory: ThresholdMemory = field(default_factory=ThresholdMemory)
    effort: PointEffort = PointEffort()
    seeds: dict[int, Seed] = field(default_factory=dict)
    searches: dict[int, _Improving] = field(default_factory=dict)
    groups_watch: StopWatch | None = None


def make_seeds(question: RateQuestion, most_steps: int, watch: StopWatch) -> None:
    """Adds what is known of up to so many steps; all-gathers that are parts of it are sought."""

    def solve(setting: SynthesisSetting, most: int, known: Mapping[int, Seed]) -> Iterator[Seed]:
        asked = question.solver, question.tell
        part = RateQuestion(setting, MOST_CHUNKS, *asked, effort=BRIEF, seeds=dict(known))
        return _sought(part, most, watch.part(1 / SOLVED_TIME))

    most = most_steps, question.most_chunks
    add_seeds(question.seeds, question.setting, *most, solve, watch)


def _sought(question: RateQuestion, most_steps: int, watch: StopWatch) -> Iterator[Seed]:
    """What a search finds that is better than the seeds, for each number of steps."""
    setting, best = question.setting, None
    limit = least_rate(setting, None, watch, watch)
    for steps in range(int(fewest_steps(setting).value), most_steps + 1):
        seed = question.seeds.get(steps)
        rates = (best, None if seed is None else seed.size.rate)
        best = min((rate for rate in rates if rate is not None), default=None)
        bound = None if limit is None else least_rate(setting, steps, watch, watch)
        if limit is None or bound is None or best == limit.value:
            return
        search = _Improving(question, steps, bound.value, best, watch)
        search.run()
        if search.stopped:
            raise KeyboardInterrupt
        size, sums = search.schedule
        if size is not None and sums is not None:
            best = size.rate
            yield Seed(size, f"{size}", sums)


def best_rate(
    question: RateQuestion, steps: int, bound: RateBound, best: Fraction | None, watch: StopWatch
) -> Synthesis | None:
    """The best schedule found that is better than ``best``; without ``sums`` if none was found.

    None: no size was tried.  A search of so many steps that was begun goes on; on KeyboardInterrupt
    it is ``stopped``.  What is being checked then is lost: KeyboardInterrupt.
    """
    seed = question.seeds.get(steps)
    if seed is not None and best is not None and seed.size.rate >= best:
        seed = None
    known = best if seed is None else seed.size.rate
    search = question.searches.get(steps) or _Improving(question, steps, bound.value, known, watch)
    question.searches[steps] = search
    search.best, search.watch, search.found = known, watch, None
    try:
        search.run()
    except KeyboardInterrupt:
        search.stopped = True
    if search.found is not None and (seed is None or search.found[1].sums is not None):
        size, climb = search.found
        return answered(question.setting, size, bound, climb, watch)
    return None if seed is None else seeded(question.setting, seed, bound, watch)


@dataclass(slots=True)
class _SymmetrySearches:
    """The climbs of some sizes, and the first slices that they may spend in vain together.

    ``each``: those that one of them spends in a pass, at least.  ``least``: by chunks, the fewest
    rounds that were not asked in vain since they were last asked anew.
    """

    setting: SynthesisSetting
    slices: int
    each: int = SIZE_SLICES
    least: dict[int, int] = field(default_factory=dict)
    of: dict[ScheduleSize, ScheduleSearch] = field(default_factory=dict)


@dataclass(slots=True)
class _Improving:
    """Sizes one after the other; ``found``: the best, else the last tried.

    ``grown``: so many times its effort may be spent.  ``through``: more time finds nothing more.
    """

    question: RateQuestion
    steps: int
    bound: Fraction
    best: Fraction | None
    watch: StopWatch
    found: tuple[ScheduleSize, ScheduleSearch] | None = None
    stopped: bool = False
    grown: int = 1
    through: bool = False
    known: list[_SymmetrySearches] = field(default_factory=list)

    def run(self) -> None:
        """Pass after pass, until the bound is met, nothing is open, or enough was tried."""
        asked = self.question
        setting, effort = asked.setting, asked.effort
        if too_many_messages(setting):
            self.through = True
            return
        if not self.known:
            unsymmetric = replace(setting, symmetry=False)
            self.known = [
                _SymmetrySearches(unsymmetric, effort.between),
                _SymmetrySearches(setting, effort.bound),
                _SymmetrySearches(setting, effort.few, 2 * SIZE_SLICES),
                _SymmetrySearches(setting, effort.orbits, 1),
                _SymmetrySearches(setting, effort.between),
            ]
        plain, exact, few, orbits, between = self.known
        if self.best is None:
            self._each(plain, easy(self.steps, self.bound))
        if unsearched(setting, self.steps):
            self.through = not self.watch.expired()
            return
        whole = not (setting.adds or effort.timeless)
        sizes = tuple(meeting(self.steps, self.bound, asked.most_chunks))
        tried, again = sizes[:1], True
        while again and not self._ended():
            again = self._each(exact, tried)
            if setting.symmetry:
                again |= self._bisect(few, FEW)
                again |= self._bisect(orbits, SHARES if whole else ORBITS)
            again |= self._halve(between, self.watch)
            if self.grown > 1:
                again |= self._halve(plain, self.watch.part(1 / PARTS, LEAST_S))
            again |= tried != sizes
            tried = sizes
            if not again and self._may_grow():
                self.grown, again = self.grown * GROWTH, True
        self.through = not again

    @property
    def schedule(self) -> tuple[ScheduleSize | None, SumSchedule | None]:
        """The best that was found, and its size."""
        return (None, None) if self.found is None else (self.found[0], self.found[1].sums)

    def _each(self, climbs: _SymmetrySearches, sizes: Iterable[ScheduleSize]) -> bool:
        """A slice for each size that would be better than the best; whether there was one."""
        tried = False
        for size in sizes:
            if not self._ended() and not self._enough(climbs) and self._open(climbs, size):
                self._try(climbs, size, self.watch)
                tried = True
        return tried

    def _bisect(self, climbs: _SymmetrySearches, parts: Sequence[Fraction]) -> bool:
        """Fewer rounds for each sum of orbits, until some are in vain: a pass goes on above those.

        Where none has more to halve the next pass begins anew.  Whether there was a size to try.
        """
        tried = False
        for chunks in orbit_sums(self.question, parts):
            while not (self._ended() or self._enough(climbs)):
                size = self._fewer(climbs, chunks)
                if size is None:
                    break
                tried = True
                if not self._try(climbs, size, self.watch):
                    climbs.least[chunks] = size.rounds + 1
                    break
                climbs.least.setdefault(chunks, self.steps)
        if tried or not climbs.least or self._enough(climbs):
            return tried
        climbs.least.clear()
        return True

    def _fewer(self, climbs: _SymmetrySearches, chunks: int) -> ScheduleSize | None:
        """The open size of so many chunks to ask next: just below the best at first, then half."""
        most = math.ceil(self._high * chunks) - 1
        least = max(self.steps, math.ceil(self.bound * chunks), climbs.least.get(chunks, 0))
        first = (least + most + 1) // 2 if chunks in climbs.least else max(least, most)
        sizes = (ScheduleSize(self.steps, n, chunks) for n in range(first, most + 1))
        return next((size for size in sizes if self._open(climbs, size)), None)

    @property
    def _high(self) -> Fraction:
        """The best rate, or one that is easy to reach."""
        return self.best or easy(self.steps, self.bound)[-1].rate

    def _halve(self, climbs: _SymmetrySearches, watch: StopWatch) -> bool:
        """Halves the rates between bound and best; whether there was a size to try."""
        low, tried = self.bound, False
        while not (self._ended() or watch.expired() or self._enough(climbs)):
            high = self._high
            if high - low <= CLOSE * high:
                break
            size = halfway(
                *(self.steps, low, high, self.question.most_chunks),
                lambda one: self._open(climbs, one),
            )
            if size is None:
                break
            tried = True
            if not self._try(climbs, size, watch):
                low = size.rate
        return tried

    def _try(self, climbs: _SymmetrySearches, size: ScheduleSize, watch: StopWatch) -> bool:
        """Turns of a size until they spent its slices in vain; whether one found a schedule."""
        part = watch.part(1 / PARTS, LEAST_S)
        climb = climbs.of.get(size) or climbs.of.setdefault(size, self._climb(climbs.setting, size))
        before, least = climb.spent, climb.first_slice * climbs.each
        more = max(least, climb.first_slice * SIZE_SLICES, (GROWTH - 1) * before)
        most = min(more, self._share(climb) - before)

        def spent(effort: float) -> bool:
            return self._enough(climbs) or climb.spent - before >= effort

        while not (climb.over or spent(min(least, most)) or part.expired()):
            climb.turn(part, partial(spent, most))
        self.stopped = climb.interrupted
        if climb.sums is not None:
            self.found, self.best = (size, climb), size.rate
        elif self.found is None or self.found[1].sums is None:
            self.found = (size, climb)
        return climb.sums is not None

    def _climb(self, setting: SynthesisSetting, size: ScheduleSize) -> ScheduleSearch:
        def tell(doing: str) -> None:
            self.question.tell(SynthesisState(size, self.bound, self.best, doing))

        asked = self.question
        watch = asked.groups_watch or self.watch
        return symmetry_search_of(setting, size, asked.solver, tell, watch, asked.memory)

    def _ended(self) -> bool:
        return self.stopped or self.best == self.bound or self.watch.expired()

    def _enough(self, climbs: _SymmetrySearches) -> bool:
        """Whether all that may be spent is."""
        most = climbs.slices * FIRST_SLICE[self.question.solver] * self.grown
        return sum(climb.spent for climb in climbs.of.values()) >= most

    def _share(self, climb: ScheduleSearch) -> float:
        """What one size may spend as effort grows with time, before others had as much."""
        return SIZE_SLICES * climb.first_slice * self.grown if self.grown > 1 else math.inf

    def _had(self, climb: ScheduleSearch) -> bool:
        return climb.spent >= self._share(climb)

    def _may_grow(self) -> bool:
        """Whether something waits for more effort, and there is time for it."""
        timed = self.watch.remaining_s() is not None and not self.question.effort.timeless
        waits = (self._enough(one) or any(map(self._had, one.of.values())) for one in self.known)
        return timed and any(waits)

    def _open(self, climbs: _SymmetrySearches, size: ScheduleSize) -> bool:
        """Whether it is open, better than the best, and no refuted size has fewer chunks."""
        climb = climbs.of.get(size)
        over = climb is not None and (climb.over or self._had(climb))
        if over or (self.best is not None and size.rate >= self.best):
            return False
        every = (pair for one in self.known for pair in one.of.items())
        refuted = (one for one, climb in every if climb.refuted)
        return not any(one.rounds >= size.rounds and one.chunks <= size.chunks for one in refuted)


# Which rounds and chunks to try for so many steps, between a bound and the best rate known.


ORBITS = (Fraction(1), Fraction(3, 2), Fraction(2), Fraction(3))
"""Chunks of a size, in orbits of a group that moves every rank to every other."""
SHARES = tuple(map(Fraction, (1, 2, 3, 4, 6, 8, 12, 16, 24)))
"""Chunks of a rank or a pair, which a group moves with those of all others."""
FEW = (Fraction(1, 4), Fraction(1, 2))
"""Few enough to be asked in every class: others are asked in the narrowest first."""
MULTIPLES = 2
"""Of the least chunks at which a schedule could meet the bound, so many multiples are tried."""
EASY = 3
"""So many sizes of one chunk, each with twice the rounds of the one before."""


def orbit_sums(question: RateQuestion, parts: Sequence[Fraction]) -> Iterator[int]:
    """Numbers of chunks that are whole orbits, as the collective counts its chunks.

    The chunks of one rank are an orbit with those of all others; chunks that every rank adds are
    moved by themselves, in orbits of as many as there are ranks, of half, or of a quarter.
    """
    one = question.setting.fabric.ranks if question.setting.adds else 1
    for part in parts:
        if (part * one).denominator == 1 and part * one <= question.most_chunks:
            yield int(part * one)


def easy(steps: int, bound: Fraction) -> tuple[ScheduleSize, ...]:
    """Sizes of one chunk: the fewest rounds that the bound allows, twice as many, and so on."""
    least = max(steps, -(-bound.numerator // bound.denominator))
    return tuple(ScheduleSize(steps, least * 2**n, 1) for n in range(EASY))


def meeting(steps: int, bound: Fraction, most_chunks: int) -> Iterator[ScheduleSize]:
    """Sizes whose rate is the bound, the fewest chunks first."""
    least = -(-steps // bound.numerator)
    for times in range(least, least + MULTIPLES):
        if times * bound.denominator <= most_chunks:
            yield ScheduleSize(steps, times * bound.numerator, times * bound.denominator)


def halfway(
    steps: int,
    low: Fraction,
    high: Fraction,
    most_chunks: int,
    wanted: Callable[[ScheduleSize], bool] = lambda _: True,
) -> ScheduleSize | None:
    """The wanted size of fewest chunks whose rate is in the middle half between two rates.

    Where that has none, one anywhere between them, both left out; None: there is none either.
    """
    quarter = (high - low) / 4
    for least, most in ((low + quarter, high - quarter), (low, high)):
        sizes = (s for s in inside(steps, low, high, most_chunks) if least <= s.rate <= most)
        found = next((size for size in sizes if wanted(size)), None)
        if found is not None:
            return found
    return None


def inside(steps: int, low: Fraction, high: Fraction, most_chunks: int) -> Iterator[ScheduleSize]:
    """All sizes of a rate above ``low`` and below ``high``: fewest chunks, fewest rounds first."""
    for chunks in range(1, most_chunks + 1):
        rounds = max(steps, int(low * chunks) + 1)
        while rounds < high * chunks:
            yield ScheduleSize(steps, rounds, chunks)
            rounds += 1
