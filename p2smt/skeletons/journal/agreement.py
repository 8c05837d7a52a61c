"""Whether two verdicts can both be true.

A verdict is a claim on a set of members; late and duplicate results bring several on the same
cube, or on a cube and a part of it.
"""

from __future__ import annotations

import math

from p2smt.skeletons.cube import Closure, CubeVerdict, Member
from p2smt.skeletons.space import Skeleton

_STRENGTH = {
    CubeVerdict.UNKNOWN: 0,
    CubeVerdict.BOUNDED: 1,
    CubeVerdict.SOLVED: 2,
    CubeVerdict.EMPTY: 2,
    CubeVerdict.LISTED: 2,
}


def lower_bound(claim: Closure) -> float | None:
    """What no member of the cube costs less than, in ticks, by its verdict; None: unknown."""
    match claim.verdict:
        case CubeVerdict.EMPTY:
            return math.inf
        case CubeVerdict.SOLVED:
            return claim.best[0].value
        case CubeVerdict.LISTED if claim.count == 0:
            return math.inf
        case _:
            return claim.bound


def stronger(one: Closure, other: Closure) -> Closure:
    """The one of two agreeing claims on a cube that says more; the first if they say the same."""
    return max(one, other, key=_strength)


def _strength(claim: Closure) -> tuple[int, float]:
    bound = lower_bound(claim)
    return _STRENGTH[claim.verdict], -math.inf if bound is None else bound


def contradicts(whole: Closure, part: Closure, skeleton: Skeleton) -> bool:
    """Whether a claim on a cube and one on a part of it, or on itself, cannot both be true."""
    if skeleton is Skeleton.DECIDE:  # a solved cube shows any of its members, not its best
        return (_empty(whole) and bool(part.best)) or (
            whole.cube == part.cube and _empty(part) and bool(whole.best)
        )
    return (
        any(_excludes(whole, member) for member in part.best)
        or (_empty(whole) and bool(part.count))
        or (whole.cube == part.cube and _differ(whole, part))
    )


def _excludes(claim: Closure, member: Member) -> bool:
    """Whether a member that is said to be in the cube cannot be in it."""
    if claim.verdict is CubeVerdict.SOLVED:
        return place(member) < place(claim.best[0])
    bound = lower_bound(claim)
    return bound is not None and member.value < bound


def place(member: Member) -> tuple[int, tuple[int, ...]]:
    """What members are compared by; several may share a place, and any of them will do."""
    return member.value, member.tie


def _empty(claim: Closure) -> bool:
    return lower_bound(claim) == math.inf


def _differ(one: Closure, other: Closure) -> bool:
    """Of the same cube: whether the members that both have in full are not the same."""
    if any(_excludes(other, member) for member in one.best) or (_empty(other) and one.count):
        return True
    if one.verdict is not other.verdict:
        return False
    if one.verdict is CubeVerdict.SOLVED:  # one may be cut short where a better cutoff was known
        return any(place(a) != place(b) for a, b in zip(one.best, other.best, strict=False))
    return one.verdict is CubeVerdict.LISTED and (one.count, one.digest) != (
        other.count,
        other.digest,
    )
