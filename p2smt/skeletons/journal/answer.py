"""What the records of a journal prove: the answer, made again from them alone.

Bounds by formula are computed again; a verdict of a solver is taken as it stands.
"""

from __future__ import annotations

from dataclasses import dataclass

from p2smt.result import Status
from p2smt.skeletons.best import cutoff_of, sought
from p2smt.skeletons.cube import Closure, Cube, CubeVerdict, Member
from p2smt.skeletons.digest import joined_digest
from p2smt.skeletons.journal.agreement import lower_bound
from p2smt.skeletons.journal.cover import CubeCover
from p2smt.skeletons.journal.record import JournalHeader
from p2smt.skeletons.journal.tree import CubeTree, shown
from p2smt.skeletons.space import Skeleton, Space, TieBounded


@dataclass(frozen=True, slots=True)
class RecordedAnswer:
    """The answer, and what it rests on.

    Attributes:
        status: as a search has it; a proof only where no cube is left that could say otherwise.
        best: those of all members on record that are sought, in order.
        bound: ticks that no member costs less than; None: not known, or there is none.
        count: of an enumeration.
        digest: of an enumeration.
        cutoff: what members must not come after to be sought; None: all are.
        by_formula: cubes that a formula sets aside, computed again.
        verdicts: closures that are a solver's word.
        unsettled: cubes without a proof that could hold a better member.
        faults: what contradicts the formulas, or a member on record.
    """

    status: Status
    best: tuple[Member, ...]
    bound: int | None
    count: int | None
    digest: str | None
    cutoff: Member | None
    by_formula: tuple[Closure, ...]
    verdicts: tuple[Closure, ...]
    unsettled: tuple[Cube, ...]
    faults: tuple[str, ...]


def answer_of(
    header: JournalHeader, tree: CubeTree, cover: CubeCover, space: Space
) -> RecordedAnswer:
    """The answer that a journal's cubes and members make."""
    cutoff = cutoff_of(space, tree.members, header.top)
    best = tuple(sought(tree.members, cutoff))
    rest = _Rest(space, tree, header.skeleton, cutoff)
    for leaf in cover.leaves:
        rest.take(leaf)
    unsettled = (*rest.unsettled, *cover.open)
    listed = [leaf for leaf in cover.leaves if leaf.verdict is CubeVerdict.LISTED]
    lists, decides = header.skeleton is Skeleton.ENUMERATE, header.skeleton is Skeleton.DECIDE
    faults = list(rest.faults)
    if not unsettled and not lists and best:
        faults += _excluded(cover, best[0])
    return RecordedAnswer(
        _status(header.skeleton, bool(best), not unsettled and cover.complete),
        () if lists else best,
        None if lists or decides else _bound(space, cover, best),
        sum(leaf.count or 0 for leaf in listed) if lists else None,
        joined_digest(leaf.digest or "0" for leaf in listed) if lists else None,
        cutoff,
        tuple(rest.by_formula),
        tuple(rest.verdicts),
        unsettled,
        tuple(faults),
    )


class _Rest:
    """Leaves sorted by what they rest on."""

    def __init__(
        self, space: Space, tree: CubeTree, skeleton: Skeleton, cutoff: Member | None
    ) -> None:
        self._space, self._tree, self._cutoff = space, tree, cutoff
        self._optimises = skeleton is Skeleton.OPTIMISE
        self._lists = skeleton is Skeleton.ENUMERATE
        self.by_formula: list[Closure] = []
        self.verdicts: list[Closure] = []
        self.unsettled: list[Cube] = []
        self.faults: list[str] = []

    def take(self, leaf: Closure) -> None:
        """Sort a leaf in."""
        if leaf.by_formula and (again := self._space.bound(leaf.cube)) != leaf.bound:
            self._fault(leaf, f"has the bound {leaf.bound}, and {again} by the formula")
        match leaf.verdict:
            case CubeVerdict.BOUNDED:
                self._bounded(leaf)
            case CubeVerdict.UNKNOWN:
                self._unknown(leaf)
            case CubeVerdict.LISTED if not self._lists:
                self._fault(leaf, "is listed, which nobody asked for")
            case CubeVerdict.SOLVED if self._lists:
                self._fault(leaf, "is solved, and was to be listed")
            case _:
                self.verdicts.append(leaf)

    def _bounded(self, leaf: Closure) -> None:
        """Set aside by the formula's bound, by a solver's, or for no good reason."""
        cutoff = self._cutoff
        if cutoff is None or not self._optimises:
            self._fault(leaf, "is set aside, and nothing excludes it")
        elif self._beyond(leaf.cube, cutoff):
            self.by_formula.append(leaf)
        elif leaf.bound is not None and leaf.bound >= cutoff.value:
            self.verdicts.append(leaf)
        else:
            text = f"is set aside at {leaf.bound}, and what excludes it costs {cutoff.value}"
            self._fault(leaf, text)

    def _unknown(self, leaf: Closure) -> None:
        """Not closed by a proof; its bound may be one all the same."""
        cutoff = self._cutoff
        if cutoff is None or not self._optimises:
            self.unsettled.append(leaf.cube)
        elif self._beyond(leaf.cube, cutoff):
            self.by_formula.append(leaf)
        elif leaf.bound is not None and leaf.bound > cutoff.value:
            self.verdicts.append(leaf)
        else:
            self.unsettled.append(leaf.cube)

    def _beyond(self, cube: Cube, cutoff: Member) -> bool:
        """Whether a formula, of the cube or of one that was split into it, puts it after."""
        above = (Cube(cube.path[:depth]) for depth in range(len(cube.path)))
        for one in (cube, *(whole for whole in above if whole in self._tree.splits)):
            if self._space.bound(one) > cutoff.value:
                return True
        space = self._space
        if not isinstance(space, TieBounded) or self._space.bound(cube) != cutoff.value:
            return False
        return space.tie_bound(cube) > cutoff.tie

    def _fault(self, leaf: Closure, text: str) -> None:
        self.faults.append(f"{shown(leaf.cube)} {text}")


def _excluded(cover: CubeCover, best: Member) -> list[str]:
    """The best member must be in some leaf; a fault where all of them exclude it."""
    bounds = [lower_bound(leaf) for leaf in cover.leaves]
    if any(bound is None or bound <= best.value for bound in bounds):
        return []
    return [f"the member {best.witness[:120]!r} is better than all verdicts allow"]


def _bound(space: Space, cover: CubeCover, best: tuple[Member, ...]) -> int | None:
    """The least that a member may cost."""
    values = [one.value for one in best[:1]]
    values += [space.bound(cube) for cube in cover.open]
    for leaf in cover.leaves:
        if leaf.verdict is CubeVerdict.UNKNOWN:
            values.append(max(space.bound(leaf.cube), leaf.bound or 0))
    return min(values, default=None)


def _status(skeleton: Skeleton, found: bool, settled: bool) -> Status:
    match skeleton:
        case Skeleton.ENUMERATE:
            return Status.COMPLETE if settled else Status.TRUNCATED
        case Skeleton.DECIDE if found:
            return Status.OPTIMAL
        case _ if settled:
            return Status.OPTIMAL if found else Status.INFEASIBLE
        case _:
            return Status.FEASIBLE if found else Status.UNKNOWN
