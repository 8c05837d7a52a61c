"""Which closures a search accepts from its workers: those whose verdict says what was asked."""

from __future__ import annotations

from collections.abc import Mapping

from p2smt.errors import EncodingBug
from p2smt.skeletons.cube import Closure, CubeVerdict, Member
from p2smt.skeletons.space import Skeleton, Space

_EMPTY, _SOLVED, _UNKNOWN = CubeVerdict.EMPTY, CubeVerdict.SOLVED, CubeVerdict.UNKNOWN
VERDICTS: Mapping[Skeleton, frozenset[CubeVerdict]] = {
    Skeleton.ENUMERATE: frozenset({_EMPTY, CubeVerdict.LISTED, _UNKNOWN}),
    Skeleton.OPTIMISE: frozenset({_EMPTY, _SOLVED, CubeVerdict.BOUNDED, _UNKNOWN}),
    Skeleton.DECIDE: frozenset({_EMPTY, _SOLVED, _UNKNOWN}),
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


def _refusal(skeleton: Skeleton, closure: Closure, cutoff: Member | None) -> str:
    verdict, best = closure.verdict, closure.best
    if verdict not in VERDICTS[skeleton]:
        return f"has the verdict {verdict.value!r}, which no {skeleton.value} search knows"
    if best and verdict in (CubeVerdict.EMPTY, CubeVerdict.BOUNDED):
        return f"is called {verdict.value!r} and has members"
    if list(best) != sorted(set(best)):
        return "has members out of order"
    if best and closure.bound is not None and closure.bound > best[0].value:
        return "has a bound above its best member"
    match verdict:
        case CubeVerdict.SOLVED:
            return "" if best else "is called solved and has no member"
        case CubeVerdict.BOUNDED:
            fit = bound_suffices(closure, cutoff)
            return "" if fit else "has a bound below the members that are to exclude it"
        case CubeVerdict.LISTED:
            fit = closure.count is not None and closure.digest is not None
            return "" if fit and closure.count else "is called listed without count and digest"
        case _:
            return ""
