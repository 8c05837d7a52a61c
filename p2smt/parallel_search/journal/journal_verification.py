"""The verification of a journal: a path of its own, from the file's text to a verdict.

It uses nothing of the search that wrote the journal but the space, made again from the header, and
its formulas; the cover is counted by other code, members are made again from their witnesses, and
verdicts of solvers, of which a journal has the word only, are solved again as far as is asked.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

from p2smt.errors import InputError
from p2smt.parallel_search.best import cutoff_of, joined_digest, sought
from p2smt.parallel_search.journal.record import SEEDS, JournalHeader, JournalText, canonical
from p2smt.parallel_search.journal.tree import (
    RebuiltSpace,
    Share,
    SubproblemTree,
    contradicts,
    lower_bound,
    place,
    shown,
)
from p2smt.parallel_search.subproblem import (
    Closure,
    Member,
    OverBudget,
    OwnCutoff,
    SearchKind,
    Space,
    Subproblem,
    SubproblemTask,
    SubproblemVerdict,
    TieBounded,
)
from p2smt.result import SearchLimits, Status, StopWatch

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
    cover: SubproblemCoverage
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
    def given_up(self) -> tuple[tuple[Subproblem, int], ...]:
        """Cubes at which workers died so often that they have no verdict, each with how often."""
        return tuple((leaf.cube, leaf.deaths) for leaf in self.cover.leaves if leaf.deaths)


def verify_records(
    text: JournalText,
    source: str,
    remade: RebuiltSpace,
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
    tree = SubproblemTree.of(header.roots, text.entries, header.skeleton)
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
    return header.skeleton is SearchKind.DECIDE and answer.status is Status.OPTIMAL


def _forever() -> StopWatch:
    return StopWatch.start(SearchLimits())


def _answer(
    header: JournalHeader, tree: SubproblemTree, cover: SubproblemCoverage, remade: RebuiltSpace
) -> tuple[RecordedAnswer | None, tuple[str, ...]]:
    """The answer; or none, and why: a cube is none of the space, so that it has no bound."""
    try:
        return answer_of(header, tree, cover, remade.space), ()
    except InputError as error:
        return None, (str(error),)


def _faults(
    header: JournalHeader, tree: SubproblemTree, cover: SubproblemCoverage, remade: RebuiltSpace
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


def _miscounted(cover: SubproblemCoverage, remade: RebuiltSpace) -> Iterator[str]:
    """Cubes of which another number of members is on record than there is."""
    for leaf in cover.leaves:
        there = remade.share(leaf.cube)
        stated = 0 if leaf.verdict is SubproblemVerdict.EMPTY else leaf.count
        if stated is not None and stated != there:
            yield f"{shown(leaf.cube)} has {there} members, and {stated} on record"


# Solver verdicts of a journal, solved again: some of them or all.


@dataclass(frozen=True, slots=True)
class SolvedAgain:
    """What came of it: of ``verdicts`` so many were ``tried``.

    unsettled: for how many no answer came in time.
    disagreements: in words.
    """

    verdicts: int
    tried: int
    unsettled: int
    disagreements: tuple[str, ...]

    @property
    def agreed(self) -> int:
        """How many were answered again, with nothing against the verdict."""
        return self.tried - self.unsettled - len(self.disagreements)


@dataclass(frozen=True, slots=True)
class _NobodyElse:
    """Signals of a solve that is part of no search."""

    def stopped(self) -> bool:
        return False

    def cutoff(self) -> Member | None:
        return None


def solved_again(
    header: JournalHeader,
    answer: RecordedAnswer,
    remade: RebuiltSpace,
    sample: int | None,
    watch: StopWatch,
    told: Callable[[int, int], None] | None = None,
) -> SolvedAgain:
    """Solve ``sample`` of an answer's verdicts again, or all of them (None).

    Which ones is drawn by the question's digest, so the same command tries the same.  Each gets
    an equal part of the time that ``watch`` leaves.  ``told``: is told how many of how many are
    done.
    """
    verdicts = answer.verdicts
    count = len(verdicts) if sample is None else min(sample, len(verdicts))
    chosen = random.Random(header.digest()).sample(range(len(verdicts)), count)
    asking = _Asking(header, answer, remade, watch)
    answers: list[tuple[Closure, Closure | None]] = []
    for done, number in enumerate(sorted(chosen)):
        if told is not None:
            told(done, count)
        answers.append((verdicts[number], asking.again(verdicts[number], count - done)))
    settled = [(claim, second) for claim, second in answers if second is not None]
    faults = ((claim, asking.disagreement(claim, second)) for claim, second in settled)
    found = tuple(f"{shown(claim.cube)}: {fault}" for claim, fault in faults if fault)
    return SolvedAgain(len(verdicts), count, count - len(settled), found)


@dataclass(frozen=True, slots=True)
class _Asking:
    header: JournalHeader
    answer: RecordedAnswer
    remade: RebuiltSpace
    watch: StopWatch

    def again(self, claim: Closure, left: int) -> Closure | None:
        """A second answer on the claim's cube, one of ``left``; None: there is none in time."""
        space = self.remade.other or self.remade.space
        if self.watch.expired():
            return None
        remaining_s = self.watch.remaining_s()
        task = SubproblemTask(
            claim.cube,
            self.header.top,
            self._known(claim),
            deadline_s=None if remaining_s is None else remaining_s / left,
            seed=(claim.seed + 1) % SEEDS,
        )
        found = space.close(task, _NobodyElse())
        if isinstance(found, OverBudget) or found.verdict is SubproblemVerdict.UNKNOWN:
            return None
        return found

    def _known(self, claim: Closure) -> tuple[Member, ...]:
        """Members before which it must prove that there is nothing else.

        They are members whatever becomes of the verdicts, so that the proof is one.
        """
        if (
            self.header.skeleton is not SearchKind.OPTIMISE
            or claim.verdict is SubproblemVerdict.EMPTY
        ):
            return ()
        top, cutoff = self.header.top, self.answer.cutoff
        if isinstance(self.remade.space, OwnCutoff):
            return () if cutoff is None else (cutoff,)
        full = [some for some in (claim.best, self.answer.best) if len(some) == top]
        return full[0] if full else ()

    def disagreement(self, claim: Closure, again: Closure) -> str:
        """What a second answer has against the first, in words; "": nothing."""
        skeleton = self.header.skeleton
        for member in again.best:
            if fault := wrong_member(self.remade, member):
                return fault
        if contradicts(claim, again, skeleton) or contradicts(again, claim, skeleton):
            return f"{_words(claim)} on record, {_words(again)} when solved again"
        missed = [one for one in again.best if self._belongs(one)]
        return f"{missed[0].witness[:120]!r} is better than the answer" if missed else ""

    def _belongs(self, member: Member) -> bool:
        """Whether a member should be in the answer and is not."""
        if self.header.skeleton is not SearchKind.OPTIMISE:
            return False
        known = {place(one) for one in self.answer.best}
        cutoff = self.answer.cutoff
        return place(member) not in known and (cutoff is None or place(member) < place(cutoff))


def wrong_member(remade: RebuiltSpace, member: Member) -> str:
    """Why a member is not what its witness makes, in words; "": it is."""
    given = f"the member {member.witness[:120]!r}"
    try:
        again = remade.space.member(member.witness)
    except InputError as error:
        return f"{given} is none of this space ({error})"
    if again == member:
        return ""
    if again.value != member.value:
        return f"{given} costs {again.value} ticks, not {member.value}"
    return f"{given} has another place among its equals"


def _words(claim: Closure) -> str:
    verdict = claim.verdict.value
    match claim.verdict:
        case SubproblemVerdict.SOLVED:
            return f"{verdict} with {claim.best[0].value}"
        case SubproblemVerdict.LISTED:
            return f"{verdict} with {claim.count} members, digest {(claim.digest or '')[:8]}"
        case SubproblemVerdict.EMPTY:
            return verdict
        case SubproblemVerdict.BOUNDED | SubproblemVerdict.UNKNOWN:
            return f"{verdict} at {claim.bound}"


# What the records of a journal prove: the answer, made again from them alone.
# Bounds by formula are computed again; a verdict of a solver is taken as it stands.


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
    unsettled: tuple[Subproblem, ...]
    faults: tuple[str, ...]


def answer_of(
    header: JournalHeader, tree: SubproblemTree, cover: SubproblemCoverage, space: Space
) -> RecordedAnswer:
    """The answer that a journal's cubes and members make."""
    cutoff = cutoff_of(space, tree.members, header.top)
    best = tuple(sought(tree.members, cutoff))
    rest = _Rest(space, tree, header.skeleton, cutoff)
    for leaf in cover.leaves:
        rest.take(leaf)
    unsettled = (*rest.unsettled, *cover.open)
    listed = [leaf for leaf in cover.leaves if leaf.verdict is SubproblemVerdict.LISTED]
    lists, decides = header.skeleton is SearchKind.ENUMERATE, header.skeleton is SearchKind.DECIDE
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
        self, space: Space, tree: SubproblemTree, skeleton: SearchKind, cutoff: Member | None
    ) -> None:
        self._space, self._tree, self._cutoff = space, tree, cutoff
        self._optimises = skeleton is SearchKind.OPTIMISE
        self._lists = skeleton is SearchKind.ENUMERATE
        self.by_formula: list[Closure] = []
        self.verdicts: list[Closure] = []
        self.unsettled: list[Subproblem] = []
        self.faults: list[str] = []

    def take(self, leaf: Closure) -> None:
        """Sort a leaf in."""
        if leaf.by_formula and (again := self._space.bound(leaf.cube)) != leaf.bound:
            self._fault(leaf, f"has the bound {leaf.bound}, and {again} by the formula")
        match leaf.verdict:
            case SubproblemVerdict.BOUNDED:
                self._bounded(leaf)
            case SubproblemVerdict.UNKNOWN:
                self._unknown(leaf)
            case SubproblemVerdict.LISTED if not self._lists:
                self._fault(leaf, "is listed, which nobody asked for")
            case SubproblemVerdict.SOLVED if self._lists:
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

    def _beyond(self, cube: Subproblem, cutoff: Member) -> bool:
        """Whether a formula, of the cube or of one that was split into it, puts it after."""
        above = (Subproblem(cube.path[:depth]) for depth in range(len(cube.path)))
        for one in (cube, *(whole for whole in above if whole in self._tree.splits)):
            if self._space.bound(one) > cutoff.value:
                return True
        space = self._space
        if not isinstance(space, TieBounded) or self._space.bound(cube) != cutoff.value:
            return False
        return space.tie_bound(cube) > cutoff.tie

    def _fault(self, leaf: Closure, text: str) -> None:
        self.faults.append(f"{shown(leaf.cube)} {text}")


def _excluded(cover: SubproblemCoverage, best: Member) -> list[str]:
    """The best member must be in some leaf; a fault where all of them exclude it."""
    bounds = [lower_bound(leaf) for leaf in cover.leaves]
    if any(bound is None or bound <= best.value for bound in bounds):
        return []
    return [f"the member {best.witness[:120]!r} is better than all verdicts allow"]


def _bound(space: Space, cover: SubproblemCoverage, best: tuple[Member, ...]) -> int | None:
    """The least that a member may cost."""
    values = [one.value for one in best[:1]]
    values += [space.bound(cube) for cube in cover.open]
    for leaf in cover.leaves:
        if leaf.verdict is SubproblemVerdict.UNKNOWN:
            values.append(max(space.bound(leaf.cube), leaf.bound or 0))
    return min(values, default=None)


def _status(skeleton: SearchKind, found: bool, settled: bool) -> Status:
    match skeleton:
        case SearchKind.ENUMERATE:
            return Status.COMPLETE if settled else Status.TRUNCATED
        case SearchKind.DECIDE if found:
            return Status.OPTIMAL
        case _ if settled:
            return Status.OPTIMAL if found else Status.INFEASIBLE
        case _:
            return Status.FEASIBLE if found else Status.UNKNOWN


# Whether the closed cubes of a journal are the whole space: a partition, counted exactly.


@dataclass(frozen=True, slots=True)
class SubproblemCoverage:
    """The closed cubes that are taken, none a part of another, and the cubes that are open.

    A closed cube stands for its parts, closed or not; one without a proof that was split does not.

    Attributes:
        leaves: closed cubes, in order.
        open: cubes without a verdict, in order.
        counted: the share of all leaves together.
        whole: that of the space.
        faults: where cubes and shares do not fit, in words.
    """

    leaves: tuple[Closure, ...]
    open: tuple[Subproblem, ...]
    counted: Fraction
    whole: Fraction
    faults: tuple[str, ...]

    @property
    def complete(self) -> bool:
        """Whether every part of the space is in exactly one leaf."""
        return not self.open and not self.faults and self.counted == self.whole


def cover_of(tree: SubproblemTree, share: Share) -> SubproblemCoverage:
    """The cover that a journal's cubes make, counted by ``share``."""
    leaves, unclosed = _leaves(tree)
    try:
        whole = share(Subproblem())
        counted = sum((share(leaf.cube) for leaf in leaves), Fraction(0))
        faults = tuple(_cover_faults(tree, leaves, share))
    except InputError as error:
        return SubproblemCoverage(
            leaves, unclosed, Fraction(0), Fraction(0), (f"no such cube: {error}",)
        )
    if not faults and not unclosed and counted != whole:
        faults = (f"the closed cubes hold {counted} of {whole}",)
    return SubproblemCoverage(leaves, unclosed, counted, whole, faults)


def _leaves(tree: SubproblemTree) -> tuple[tuple[Closure, ...], tuple[Subproblem, ...]]:
    """Closed cubes from the roots down, and open ones."""
    leaves, unclosed = dict[Subproblem, Closure](), set[Subproblem]()
    waiting, seen = list(tree.roots), set[Subproblem]()
    while waiting:
        cube = waiting.pop()
        if cube in seen:  # on record twice: the shares tell
            continue
        seen.add(cube)
        closure = tree.closed.get(cube)
        proved = closure is not None and closure.verdict is not SubproblemVerdict.UNKNOWN
        if cube in tree.splits and not proved:
            waiting += tree.splits[cube]
        elif closure is not None:
            leaves[cube] = closure
        else:
            unclosed.add(cube)
    return tuple(leaves[cube] for cube in sorted(leaves)), tuple(sorted(unclosed))


def _cover_faults(tree: SubproblemTree, leaves: tuple[Closure, ...], share: Share) -> Iterator[str]:
    """Cubes inside others, and cubes that do not add up to what they came of."""
    for one, other in pairwise(leaf.cube for leaf in leaves):  # parts come right after a whole
        if other.within(one):
            yield f"{shown(other)} is a part of {shown(one)}, which is closed as well"
    for cube, children in [(Subproblem(), tree.roots), *tree.splits.items()]:
        if any(not child.within(cube) for child in children):
            yield f"{shown(cube)} is split into what is no part of it"
        elif len(set(children)) < len(children):
            yield f"{shown(cube)} is split into a part that stands there twice"
        elif (found := sum(map(share, children), Fraction(0))) != share(cube):
            yield f"the parts of {shown(cube)} hold {found} of its {share(cube)}"
