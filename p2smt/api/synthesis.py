"""The public functions on schedules over fabrics: one question, and the frontier."""

from __future__ import annotations

from p2smt.fabric.fabric import Fabric
from p2smt.interop.fabrics import read_fabric
from p2smt.parallel_search.parallel_options import Spread
from p2smt.result import SearchLimits, StopWatch
from p2smt.solvers.ask import Solver, solver_of
from p2smt.synthesis import frontier as search_frontier
from p2smt.synthesis import synthesize as search_one
from p2smt.synthesis.frontier import ScheduleFrontier
from p2smt.synthesis.setting import (
    ScheduleSize,
    Synthesis,
    SynthesisSetting,
    Tell,
    synthesized_collective,
    tell_nobody,
)


def synthesize(
    fabric: Fabric | str,
    collective: str,
    *,
    steps: int,
    rounds: int,
    chunks: int,
    root: int = 0,
    symmetry: bool = True,
    messages: int = 1,
    limits: SearchLimits | None = None,
    solver: Solver | str = Solver.CPSAT,
    progress: Tell = tell_nobody,
    spread: Spread | None = None,
) -> Synthesis:
    """A schedule of so many steps, rounds and chunks, or a proof that there is none.

    Args:
        fabric: ranks, edges and capacities; or the name of one, such as ``dgx1``.
        collective: such as ``all-gather``.
        steps: one after the other; what a rank sends it held before the step.
        rounds: of all steps together; in a round a capacity of bandwidth b carries b chunks.
        chunks: per rank (all-gather, reduce-scatter), per pair (all-to-all, scatter, gather) or in
            all (all-reduce, broadcast, reduce).
        root: of the collectives that have one.
        symmetry: try schedules with symmetries first.
        messages: of an all-reduce, of a chunk over an edge in a step, at most.
        limits: wall-clock limit (of the making of the fabric too), seed, workers.
        solver: ``cpsat`` or ``z3``.
        progress: told what is tried.
        spread: search part by part, in several processes or with a journal, which goes with
            ``symmetry=False``; None: in one piece.

    Raises:
        InputError: what is asked cannot be.

    On KeyboardInterrupt what is known by then is returned, ``interrupted`` set.
    """
    watch = StopWatch.start(limits or SearchLimits())
    setting = _setting(fabric, collective, root, symmetry, messages)
    size = ScheduleSize(steps, rounds, chunks)
    return search_one.synthesize(setting, size, watch.left(), _solver(solver), progress, spread)


def synthesize_frontier(
    fabric: Fabric | str,
    collective: str,
    *,
    max_steps: int | None = None,
    max_chunks: int | None = None,
    root: int = 0,
    symmetry: bool = True,
    messages: int = 1,
    limits: SearchLimits | None = None,
    solver: Solver | str = Solver.CPSAT,
    progress: Tell = tell_nobody,
) -> ScheduleFrontier:
    """For every number of steps the fewest rounds a chunk that were found, with proof or gap.

    Args:
        max_steps: the most steps; None: 4 more than the fewest.
        max_chunks: as the collective counts them; None: 24 a rank, a pair, or from the root.

    The others are as for :func:`synthesize`.

    Raises:
        InputError: what is asked cannot be.
    """
    watch = StopWatch.start(limits or SearchLimits())
    setting = _setting(fabric, collective, root, symmetry, messages)
    return search_frontier.frontier(
        setting, max_steps, max_chunks, watch.left(), _solver(solver), progress
    )


def _setting(
    fabric: Fabric | str, collective: str, root: int, symmetry: bool, messages: int
) -> SynthesisSetting:
    found = read_fabric(fabric) if isinstance(fabric, str) else fabric
    return SynthesisSetting(found, synthesized_collective(collective), root, symmetry, messages)


def _solver(solver: Solver | str) -> Solver:
    return solver if isinstance(solver, Solver) else solver_of(solver)
