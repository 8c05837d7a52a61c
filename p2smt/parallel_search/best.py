"""The best members so far: those that are sought, checked when they come in."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence

from p2smt.errors import EncodingBug, InputError
from p2smt.parallel_search.subproblem import Member, OwnCutoff, Space


class BestMembers:
    """The members that are sought, in order, each once; all were made again from their witness.

    They are at most ``top``, unless the space has a cutoff of its own.
    """

    def __init__(self, space: Space, top: int) -> None:
        self._space, self._top = space, top
        self._members: list[Member] = []
        self._cutoff = cutoff_of(space, (), top)

    @property
    def members(self) -> tuple[Member, ...]:
        """In order, best first."""
        return tuple(self._members)

    @property
    def cutoff(self) -> Member | None:
        """What members must precede, or be, to be sought: the worst of ``top``, or the space's."""
        return self._cutoff

    @property
    def told(self) -> tuple[Member, ...]:
        """What a worker needs to know of them."""
        if isinstance(self._space, OwnCutoff):
            return () if self._cutoff is None else (self._cutoff,)
        return self.members

    def offer(self, members: Iterable[Member]) -> tuple[Member, ...]:
        """Take those members that are new and sought, all at once; which they were, in order.

        Raises:
            EncodingBug: the space makes another member, or none, of a witness.
        """
        new = set(members).difference(self._members)
        for member in sorted(new):
            check_member(self._space, member)
        taken = sought(sorted(new), self._cutoff)
        if not taken:
            return ()
        # the cutoff changes last: an interrupt leaves one that is too late, never one too early
        known = sorted([*self._members, *taken])
        cutoff = cutoff_of(self._space, known, self._top)
        self._members = sought(known, cutoff)
        self._cutoff = cutoff
        return tuple(sought(taken, cutoff))


def cutoff_of(space: Space, members: Sequence[Member], top: int) -> Member | None:
    """What members must precede, or be, to be sought, given some in order; None: all are."""
    if isinstance(space, OwnCutoff):
        return space.cutoff_of(members, top)
    return members[top - 1] if len(members) >= top else None


def sought(members: Sequence[Member], cutoff: Member | None) -> list[Member]:
    """Those of some members that are not after a cutoff."""
    return [one for one in members if cutoff is None or one <= cutoff]


def check_member(space: Space, member: Member) -> None:
    """Hold a member against what the space makes of its witness.

    Raises:
        EncodingBug: they differ.
    """
    try:
        again: object = space.member(member.witness)
    except InputError as error:
        again = str(error)
    if again != member:
        reason = "a worker's member is not what its witness stands for"
        raise EncodingBug(reason, space.description(), [repr(member), repr(again)])


# A digest of a set of members, whatever the order and the parts in which they are met.
# The sum of the members' SHA-256 as numbers, modulo 2^256: digests of disjoint sets add up, so the
# digest of a space does not depend on how it was cut.  It guards against slips, not against
# forgers.


_RANGE = 1 << 256
NOTHING = "0" * 64
"""The digest of no member."""


def digest_of(witnesses: Iterable[str]) -> str:
    """The digest of members by their witnesses, each given once."""
    return _text(sum(int.from_bytes(hashlib.sha256(w.encode()).digest(), "big") for w in witnesses))


def joined_digest(digests: Iterable[str]) -> str:
    """The digest of the union of disjoint sets, from theirs."""
    return _text(sum(int(digest, 16) for digest in digests))


def _text(total: int) -> str:
    return f"{total % _RANGE:064x}"
