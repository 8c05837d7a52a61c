"""Solver verdicts of a journal, solved again: some of them or all."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

from p2smt.errors import InputError
from p2smt.result import StopWatch
from p2smt.skeletons.cube import Closure, CubeVerdict, Member, OverBudget
from p2smt.skeletons.journal.agreement import contradicts, place
from p2smt.skeletons.journal.answer import RecordedAnswer
from p2smt.skeletons.journal.record import SEEDS, JournalHeader
from p2smt.skeletons.journal.remade import RemadeSpace
from p2smt.skeletons.journal.tree import shown
from p2smt.skeletons.space import CubeTask, OwnCutoff, Skeleton


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
    remade: RemadeSpace,
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
    remade: RemadeSpace
    watch: StopWatch

    def again(self, claim: Closure, left: int) -> Closure | None:
        """A second answer on the claim's cube, one of ``left``; None: there is none in time."""
        space = self.remade.other or self.remade.space
        if self.watch.expired():
            return None
        remaining_s = self.watch.remaining_s()
        task = CubeTask(
            claim.cube,
            self.header.top,
            self._known(claim),
            deadline_s=None if remaining_s is None else remaining_s / left,
            seed=(claim.seed + 1) % SEEDS,
        )
        found = space.close(task, _NobodyElse())
        if isinstance(found, OverBudget) or found.verdict is CubeVerdict.UNKNOWN:
            return None
        return found

    def _known(self, claim: Closure) -> tuple[Member, ...]:
        """Members before which it must prove that there is nothing else.

        They are members whatever becomes of the verdicts, so that the proof is one.
        """
        if self.header.skeleton is not Skeleton.OPTIMISE or claim.verdict is CubeVerdict.EMPTY:
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
        if self.header.skeleton is not Skeleton.OPTIMISE:
            return False
        known = {place(one) for one in self.answer.best}
        cutoff = self.answer.cutoff
        return place(member) not in known and (cutoff is None or place(member) < place(cutoff))


def wrong_member(remade: RemadeSpace, member: Member) -> str:
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
        case CubeVerdict.SOLVED:
            return f"{verdict} with {claim.best[0].value}"
        case CubeVerdict.LISTED:
            return f"{verdict} with {claim.count} members, digest {(claim.digest or '')[:8]}"
        case CubeVerdict.EMPTY:
            return verdict
        case CubeVerdict.BOUNDED | CubeVerdict.UNKNOWN:
            return f"{verdict} at {claim.bound}"
