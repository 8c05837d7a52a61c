"""The verification of a journal: a path of its own, from the file's text to a verdict.

It uses nothing of the search that wrote the journal but the space, made again from the header, and
its formulas; the cover is counted by other code, members are made again from their witnesses, and
verdicts of solvers, of which a journal has the word only, are solved again as far as is asked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from p2smt.errors import InputError
from p2smt.result import SearchLimits, Status, StopWatch
from p2smt.skeletons.cube import Cube, CubeVerdict
from p2smt.skeletons.journal.again import SolvedAgain, solved_again, wrong_member
from p2smt.skeletons.journal.answer import RecordedAnswer, answer_of
from p2smt.skeletons.journal.cover import CubeCover, cover_of
from p2smt.skeletons.journal.record import JournalHeader, JournalText, canonical
from p2smt.skeletons.journal.remade import RemadeSpace
from p2smt.skeletons.journal.tree import CubeTree, shown
from p2smt.skeletons.space import Skeleton

DEFAULT_SAMPLE = 5


@dataclass(frozen=True, slots=True)
class JournalReport:
    """What holds of a journal.

    Attributes:
        header: of which search it is.
        torn: bytes of a last line that was not whole; they are left out.
        records: lines after the header.
        repeated: late and duplicate verdicts, which agree with the first.
        cover: the closed cubes against the space.
        answer: what the records prove; None where the cubes are none of the space.
        members: how many members are on record, each made again from its witness.
        again: verdicts solved again.
        faults: what is wrong, in words.
        counted: what the cover was counted in ("matrices").
        solver: which one solved again; "" where it has no name.
        another: whether that is another than the search had.
        exact: whether what was counted are the members.
    """

    header: JournalHeader
    torn: int
    records: int
    repeated: int
    cover: CubeCover
    answer: RecordedAnswer | None
    members: int
    again: SolvedAgain
    faults: tuple[str, ...]
    counted: str
    solver: str
    another: bool
    exact: bool

    @property
    def covered(self) -> bool:
        """Whether the answer is a proof as far as the records go: every cube closed by a proof.

        A decision that a member answers needs no cover.
        """
        if self.answer is None or self.faults or not self.answer.status.settled:
            return False
        return self.shown_by_member or self.cover.complete

    @property
    def shown_by_member(self) -> bool:
        """Whether a member by itself is the answer."""
        return self.answer is not None and _by_member(self.header, self.answer)

    @property
    def valid(self) -> bool:
        """Whether the cover is proved and no verdict solved again disagrees.

        It may rest on verdicts that were not solved again: see ``proved``.
        """
        return self.covered and not self.again.disagreements

    @property
    def unchecked(self) -> int:
        """Verdicts of solvers on which the answer rests and which were not solved again to an end:
        they are taken at their word."""
        if self.shown_by_member:
            return 0
        return self.again.verdicts - self.again.agreed - len(self.again.disagreements)

    @property
    def proved(self) -> bool:
        """Whether nothing in the answer is taken at its word: whoever wrote the file."""
        return self.valid and not self.unchecked

    @property
    def given_up(self) -> tuple[tuple[Cube, int], ...]:
        """Cubes at which workers died so often that they have no verdict, each with how often."""
        return tuple((leaf.cube, leaf.deaths) for leaf in self.cover.leaves if leaf.deaths)


def verify_records(
    text: JournalText,
    source: str,
    remade: RemadeSpace,
    *,
    sample: int | None = DEFAULT_SAMPLE,
    watch: StopWatch | None = None,
    told: Callable[[int, int], None] | None = None,
) -> JournalReport:
    """Verify what a journal has on record.

    Args:
        text: the journal.
        source: what messages call it.
        remade: the space that its header leads to.
        sample: how many verdicts of solvers to solve again, where the answer rests on them; None:
            all, in any case.
        watch: the time for that.
        told: is told how many of how many are done.

    Raises:
        InputError: it has no header, so nothing to be verified.
    """
    header = text.header
    if header is None:
        raise InputError(source, "has no header, and so nothing on record", "search first")
    tree = CubeTree.of(header.roots, text.entries, header.skeleton)
    cover = cover_of(tree, remade.share)
    answer, unanswerable = _answer(header, tree, cover, remade)
    faults = (*_faults(header, tree, cover, remade), *(answer.faults if answer else unanswerable))
    again = SolvedAgain(0, 0, 0, ())
    if answer is not None:
        needless = sample is not None and _by_member(header, answer)
        asked = 0 if faults or needless else sample
        again = solved_again(header, answer, remade, asked, watch or _forever(), told)
    return JournalReport(
        header,
        text.torn,
        len(text.entries),
        tree.repeated,
        cover,
        answer,
        len(tree.members),
        again,
        faults,
        remade.counted,
        remade.solver,
        remade.other is not None,
        remade.exact,
    )


def _by_member(header: JournalHeader, answer: RecordedAnswer) -> bool:
    return header.skeleton is Skeleton.DECIDE and answer.status is Status.OPTIMAL


def _forever() -> StopWatch:
    return StopWatch.start(SearchLimits())


def _answer(
    header: JournalHeader, tree: CubeTree, cover: CubeCover, remade: RemadeSpace
) -> tuple[RecordedAnswer | None, tuple[str, ...]]:
    """The answer; or none, and why: a cube is none of the space, so that it has no bound."""
    try:
        return answer_of(header, tree, cover, remade.space), ()
    except InputError as error:
        return None, (str(error),)


def _faults(
    header: JournalHeader, tree: CubeTree, cover: CubeCover, remade: RemadeSpace
) -> Iterator[str]:
    space = remade.space
    described = canonical(space.description()) == canonical(header.description)
    if space.skeleton is not header.skeleton or not described:
        yield "line 1: the space that is made of the description describes itself otherwise"
    yield from tree.faults
    yield from cover.faults
    if remade.exact and not cover.faults:
        yield from _miscounted(cover, remade)
    for member in tree.members:
        if fault := wrong_member(remade, member):
            yield fault


def _miscounted(cover: CubeCover, remade: RemadeSpace) -> Iterator[str]:
    """Cubes of which another number of members is on record than there is."""
    for leaf in cover.leaves:
        there = remade.share(leaf.cube)
        stated = 0 if leaf.verdict is CubeVerdict.EMPTY else leaf.count
        if stated is not None and stated != there:
            yield f"{shown(leaf.cube)} has {there} members, and {stated} on record"
