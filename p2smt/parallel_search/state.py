"""The state of a search over cubes: what is open, what was closed and how, the best so far."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import NamedTuple

from p2smt.errors import EncodingBug, InputError
from p2smt.parallel_search.best import NOTHING, BestMembers, joined_digest
from p2smt.parallel_search.engine import Record, Recorded, VerdictCounts
from p2smt.parallel_search.subproblem import (
    Closure,
    Member,
    SearchKind,
    Space,
    Subproblem,
    SubproblemVerdict,
    TieBounded,
)

COORDINATOR = "coordinator"
"""Who closed a cube by its formula alone, in :attr:`Closure.worker`."""


class SearchState:
    """What a search knows; everything is recorded before it counts.

    An interrupt may come between any two lines.  So what was closed is noted in one step, by
    which it counts and is not open any more (``closed``); all else follows from that.
    """

    def __init__(self, space: Space, top: int, record: Record | None) -> None:
        self._space, self._record = space, record
        self.best = BestMembers(space, top)
        self.frontier = Frontier(space)
        self.closed: dict[Subproblem, Closure] = {}
        self.splits = 0
        self.worked, self.busy_s = 0, 0.0

    def open_roots(self) -> None:
        """Start with the first cubes, and with what an earlier run has left of them."""
        resumed = self._record.resumed if self._record else None
        if resumed is None:
            for cube in self._space.roots():
                self.frontier.add(cube)
        else:
            self._resume(resumed)

    def offer(self, members: Iterable[Member]) -> None:
        """Take members that a worker found, those that are among the best."""
        for member in self.best.offer(members):
            if self._record:
                self._record.incumbent(member)

    def close(self, closure: Closure) -> None:
        """Close an open cube for good.

        Raises:
            EncodingBug: the closure, or a member of it, does not say what it may.
        """
        self.offer(closure.best)
        closure = self._completed(closure)
        check_closure(self._space, closure, self.best.cutoff)
        if self._record:
            self._record.closed(closure)
        self.busy_s, self.worked = self.busy_s + closure.seconds, self.worked + 1
        self._note(closure)

    def give_up(self, cube: Subproblem, deaths: int) -> None:
        """Close an open cube without proof, as so many workers died at it."""
        self.close(Closure(cube, SubproblemVerdict.UNKNOWN, worker=COORDINATOR, deaths=deaths))

    def split(self, cube: Subproblem, seconds: float = 0.0, worker: str = "") -> bool:
        """Replace an open cube by all its children; whether it has any.

        A worker had it for so many seconds.
        """
        children = self._space.split(cube)
        if children:
            if self._record:
                self._record.split(cube, children, seconds, worker)
            self._replace(cube, children)
        return bool(children)

    def first(self) -> OpenSubproblem | None:
        """The first cube that waits, once those are closed that cannot have a best member."""
        while (found := self.frontier.first()) is not None:
            cutoff = self.best.cutoff
            optimises = self._space.skeleton is SearchKind.OPTIMISE
            if not optimises or cutoff is None or not found.beyond(cutoff):
                break
            self._bounded(found.cube, found.bound)
        return found

    def blocked(self) -> bool:
        """Whether a cube that was not closed by a proof may have a member that counts."""
        if self._space.skeleton is not SearchKind.OPTIMISE or self.best.cutoff is None:
            return bool(self._open_bounds())
        worst = self.best.cutoff.value
        return any(b <= worst for b in self._open_bounds())

    def decided(self) -> bool:
        """Whether a member answers a decision."""
        return self._space.skeleton is SearchKind.DECIDE and bool(self.best.members)

    def bound(self) -> int | None:
        """Ticks that no member of an optimisation is below, if there may be one."""
        if self._space.skeleton is not SearchKind.OPTIMISE:
            return None
        values = [*(m.value for m in self.best.members[:1]), *self._open_bounds()]
        return min(values, default=None)

    def open_subproblems(self) -> tuple[Subproblem, ...]:
        """Those that are not closed, in the order of their paths."""
        return tuple(sorted(cube for cube in self.frontier.bounds if cube not in self.closed))

    def unknown_subproblems(self) -> tuple[Subproblem, ...]:
        """Those that were closed without proof, in the order of their paths."""
        return tuple(sorted(closure.cube for closure in self._with(SubproblemVerdict.UNKNOWN)))

    def given_up(self) -> tuple[tuple[Subproblem, int], ...]:
        """Those of them at which workers died, each with how many."""
        unknown = self._with(SubproblemVerdict.UNKNOWN)
        return tuple(sorted((one.cube, one.deaths) for one in unknown if one.deaths))

    def counts(self) -> VerdictCounts:
        """Closed cubes by verdict."""
        found = Counter(closure.verdict for closure in self.closed.values())
        return tuple((verdict, found[verdict]) for verdict in SubproblemVerdict if found[verdict])

    def count(self) -> int:
        """Members that were listed."""
        return sum(closure.count or 0 for closure in self._with(SubproblemVerdict.LISTED))

    def digest(self) -> str:
        """The digest of the members that were listed."""
        return joined_digest(c.digest or NOTHING for c in self._with(SubproblemVerdict.LISTED))

    def _with(self, verdict: SubproblemVerdict) -> list[Closure]:
        return [closure for closure in self.closed.values() if closure.verdict is verdict]

    def _open_bounds(self) -> list[int]:
        """Bounds of cubes that no proof has closed."""
        still = [b for cube, b in self.frontier.bounds.items() if cube not in self.closed]
        return [*still, *(closure.bound or 0 for closure in self._with(SubproblemVerdict.UNKNOWN))]

    def _bounded(self, cube: Subproblem, bound: int) -> None:
        by_formula = bound == self._space.bound(cube)
        verdict = SubproblemVerdict.BOUNDED
        self.close(Closure(cube, verdict, bound, by_formula=by_formula, worker=COORDINATOR))
        self.worked -= 1  # nobody worked on it

    def _completed(self, closure: Closure) -> Closure:
        """An unknown cube with the best bound that is known of it."""
        known = self.frontier.bounds.get(closure.cube)
        if closure.verdict is not SubproblemVerdict.UNKNOWN or known is None:
            return closure
        if closure.bound is not None and closure.bound >= known:
            return closure
        by_formula = known == self._space.bound(closure.cube)
        return replace(closure, bound=known, by_formula=by_formula)

    def _note(self, closure: Closure) -> None:
        self.closed[closure.cube] = closure
        self.frontier.remove(closure.cube)

    def _replace(self, cube: Subproblem, children: tuple[Subproblem, ...]) -> None:
        at_least = self.frontier.bounds.get(cube)
        for child in children:
            self.frontier.add(child, at_least)
        self.frontier.remove(cube)
        self.splits += 1

    def _resume(self, recorded: Recorded) -> None:
        """Go down from the roots as far as the record does."""
        closures = _proofs_last(recorded.closures)
        found = [member for closure in closures.values() for member in closure.best]
        self.best.offer([*recorded.members, *found])
        splits, cubes = dict(recorded.splits), list(self._space.roots())
        for cube in cubes:
            self.frontier.add(cube)
        while cubes:
            cube = cubes.pop()
            if cube in closures and self._still_closed(closures[cube], cube in splits):
                self._note(self._completed(closures[cube]))
            elif cube in splits:
                cubes += self._split_again(cube, splits[cube])

    def _still_closed(self, closure: Closure, was_split: bool) -> bool:
        """Whether a recorded closure counts: what it rests on is here, and nothing says more.

        A cube that was given up after deaths is tried again: what its workers died of may be gone.
        """
        if closure.verdict is SubproblemVerdict.UNKNOWN and (was_split or closure.deaths):
            return False
        if closure.verdict is SubproblemVerdict.BOUNDED and not bound_suffices(
            closure, self.best.cutoff
        ):
            return False
        try:
            check_closure(self._space, closure, self.best.cutoff)
        except EncodingBug as error:
            given = f"a record of cube {'/'.join(closure.cube.path)[:80]}"
            remedy = "it was changed since it was written: search without it"
            raise InputError(given, f"says of it that {error.args[0]}", remedy) from None
        return True

    def _split_again(
        self, cube: Subproblem, children: tuple[Subproblem, ...]
    ) -> tuple[Subproblem, ...]:
        if tuple(children) != self._space.split(cube):
            raise InputError(
                f"a record that splits {cube.path} into {len(children)} parts",
                "they must be the parts that this search splits it into",
            )
        self._replace(cube, tuple(children))
        return tuple(children)


def _proofs_last(closures: Iterable[Closure]) -> dict[Subproblem, Closure]:
    """One closure by cube: the first that is a proof, else any."""
    found: dict[Subproblem, Closure] = {}
    for closure in closures:
        known = found.get(closure.cube)
        if known is None or known.verdict is SubproblemVerdict.UNKNOWN:
            found[closure.cube] = closure
    return found


# Which closures a search accepts from its workers: those whose verdict says what was asked.


_EMPTY, _SOLVED, _UNKNOWN = (
    SubproblemVerdict.EMPTY,
    SubproblemVerdict.SOLVED,
    SubproblemVerdict.UNKNOWN,
)
VERDICTS: Mapping[SearchKind, frozenset[SubproblemVerdict]] = {
    SearchKind.ENUMERATE: frozenset({_EMPTY, SubproblemVerdict.LISTED, _UNKNOWN}),
    SearchKind.OPTIMISE: frozenset({_EMPTY, _SOLVED, SubproblemVerdict.BOUNDED, _UNKNOWN}),
    SearchKind.DECIDE: frozenset({_EMPTY, _SOLVED, _UNKNOWN}),
}


def check_closure(space: Space, closure: Closure, cutoff: Member | None) -> None:
    """Hold a closure against what it may say; its members are checked apart.

    Raises:
        EncodingBug: it says something else.
    """
    reason = _refusal(space.skeleton, closure, cutoff)
    if reason:
        raise EncodingBug(f"a closed cube {reason}", space.description(), repr(closure))


def bound_suffices(closure: Closure, cutoff: Member | None) -> bool:
    """Whether a bounded cube's bound keeps it from the best, ties left to whoever closed it."""
    return cutoff is not None and closure.bound is not None and closure.bound >= cutoff.value


def _refusal(skeleton: SearchKind, closure: Closure, cutoff: Member | None) -> str:
    verdict, best = closure.verdict, closure.best
    if verdict not in VERDICTS[skeleton]:
        return f"has the verdict {verdict.value!r}, which no {skeleton.value} search knows"
    if best and verdict in (SubproblemVerdict.EMPTY, SubproblemVerdict.BOUNDED):
        return f"is called {verdict.value!r} and has members"
    if list(best) != sorted(set(best)):
        return "has members out of order"
    if best and closure.bound is not None and closure.bound > best[0].value:
        return "has a bound above its best member"
    match verdict:
        case SubproblemVerdict.SOLVED:
            return "" if best else "is called solved and has no member"
        case SubproblemVerdict.BOUNDED:
            fit = bound_suffices(closure, cutoff)
            return "" if fit else "has a bound below the members that are to exclude it"
        case SubproblemVerdict.LISTED:
            fit = closure.count is not None and closure.digest is not None
            return "" if fit and closure.count else "is called listed without count and digest"
        case _:
            return ""


# The cubes of a search that are not closed: waiting for a worker, or with one.


class OpenSubproblem(NamedTuple):
    """A cube, after what its members cannot precede; cubes are handed out in this order."""

    bound: int
    tie: tuple[int, ...]
    cube: Subproblem

    def beyond(self, cutoff: Member) -> bool:
        """Whether it is proved that no member of it precedes the cutoff."""
        return (self.bound, self.tie) > (cutoff.value, cutoff.tie)


class Frontier:
    """Open cubes by bound.

    A cube is in ``bounds`` until it is closed or its children are there, so that an interrupt at
    any moment finds too many cubes, never too few.
    """

    def __init__(self, space: Space) -> None:
        self._space = space
        self._waiting: list[OpenSubproblem] = []
        self.bounds: dict[Subproblem, int] = {}
        self.away: set[Subproblem] = set()

    def __contains__(self, cube: Subproblem) -> bool:
        return cube in self.bounds

    def add(self, cube: Subproblem, at_least: int | None = None) -> None:
        """Open a cube whose bound, by what is known of its parent, is at least so many ticks."""
        formula = self._space.bound(cube)
        bound = formula if at_least is None else max(formula, at_least)
        tie: tuple[int, ...] = ()
        if bound == formula and isinstance(self._space, TieBounded):
            tie = self._space.tie_bound(cube)
        self.bounds[cube] = bound
        heapq.heappush(self._waiting, OpenSubproblem(bound, tie, cube))

    def again(self, cube: Subproblem, bound: int | None = None) -> None:
        """Let a cube wait again that a worker did not close, its bound perhaps raised."""
        self.away.discard(cube)
        if cube in self.bounds:
            self.add(cube, self.bounds[cube] if bound is None else max(bound, self.bounds[cube]))

    def first(self) -> OpenSubproblem | None:
        """The first cube that waits."""
        while self._waiting:
            found = self._waiting[0]
            if found.cube in self.bounds and found.cube not in self.away:
                return found
            heapq.heappop(self._waiting)
        return None

    def take(self, found: OpenSubproblem) -> None:
        """The first cube that waits goes to a worker."""
        heapq.heappop(self._waiting)
        self.away.add(found.cube)

    def remove(self, cube: Subproblem) -> None:
        """It is closed, or its children are here."""
        self.bounds.pop(cube, None)
        self.away.discard(cube)
