"""A proof for every number of ranks, by induction over the turns of loops, where there is one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from p2smt.result import SearchLimits, Status, StopWatch
from p2smt.schedules.families.claims import claims_of, needed_depth
from p2smt.schedules.families.lock_step import NoArgument, filler_of, lock_step
from p2smt.schedules.families.symbolic_memory import symbolic_memory_of
from p2smt.solvers.ask import ask
from p2smt.solvers.questions import Proof
from p2smt.solvers.solver import Solver

if TYPE_CHECKING:
    from p2smt.schedules.language.file import Symbolic


@dataclass(frozen=True, slots=True)
class Induction:
    """Whether a family is proved right for all its sizes.

    proved: a proof was found; otherwise nothing is known beyond single sizes.
    scope: the sizes, as in "all n >= 2".
    claims: how many claims the proof has.
    reason: why there is no proof.
    """

    proved: bool
    scope: str
    claims: int = 0
    reason: str = ""


def prove_all_sizes(
    symbolic: Symbolic, fifo_depth: int = 8, time_limit_s: float = 30.0
) -> Induction:
    """Looks for the inductive proof; the argument is in ``claims``.

    Raises:
        InputError: an invariant of the file cannot be parsed; names the line.
    """
    scope = _scope(symbolic)
    try:
        family = lock_step(symbolic)
        fill = filler_of(symbolic)
        space = symbolic_memory_of(symbolic.model.collective, family.size, family.scratch, fill)
        claims = claims_of(family, space)
    except NoArgument as error:
        return Induction(False, scope, reason=str(error))
    if fifo_depth < needed_depth(family):
        reason = f"the argument needs connections of depth {needed_depth(family)}"
        return Induction(False, scope, reason=reason)
    watch = StopWatch.start(SearchLimits(time_limit_s=time_limit_s))
    for claim in claims:
        if ask(claim, Proof(), Solver.Z3, watch.left()).status is not Status.COMPLETE:
            late = " within the time limit" if watch.expired() else ""
            return Induction(False, scope, reason=f"no proof of {claim.title}{late}")
    return Induction(True, scope, len(claims))


def _scope(symbolic: Symbolic) -> str:
    texts = []
    for name, spec in symbolic.free:
        most = "" if spec.at_most is None else f" up to {spec.at_most}"
        least = max(spec.at_least, int(name == symbolic.ranks.name))  # there is a rank
        texts.append(f"{name} >= {least}{most}")
    return f"all {', '.join(texts)}"
