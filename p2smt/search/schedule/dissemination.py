"""Schedules of collectives that only copy, over a fabric."""

from __future__ import annotations

from p2smt.cluster.fabric.fabric import Fabric
from p2smt.collectives.contract import RULES, MadeOf
from p2smt.errors import EncodingBug, InputError
from p2smt.problems.schedule import ChunkRoute, DisseminationProblem, StepSends
from p2smt.result import Result, SearchLimits
from p2smt.search.schedule.replay import broken_rule
from p2smt.solvers.ask import ask
from p2smt.solvers.questions import Witness
from p2smt.solvers.solver import Solver


def spreads(collective: str, ranks: int, chunks: int, root: int = 0) -> tuple[ChunkRoute, ...]:
    """The chunks of a collective that only copies, ``chunks`` a rank, pair or in all.

    All-gather: ``chunks`` of each rank.  All-to-all, scatter, gather: of each pair of ranks that
    sends.  Broadcast: in all.

    Raises:
        InputError: the collective adds, or is none that is known.
    """
    rule, every = RULES.get(collective), range(ranks)
    if rule is None or rule.source not in (MadeOf.OWNER, MadeOf.ROOT):
        known = [n for n, r in RULES.items() if r.source in (MadeOf.OWNER, MadeOf.ROOT)]
        raise InputError(f"collective {collective[:40]!r}", f"is none of {', '.join(known)}")
    roots = [root] if rule.source is MadeOf.ROOT else list(every)
    goals = [root] if rule.at_root else list(every)
    apart = rule.input_parts or rule.at_root
    found = []
    for origin in roots:
        targets = tuple(goal for goal in goals if goal != origin)
        for part in [(goal,) for goal in targets] if apart else [targets]:
            found += [ChunkRoute(origin, part)] * chunks
    return tuple(found)


def dissemination_problem(
    fabric: Fabric, chunks: tuple[ChunkRoute, ...], steps: int, rounds: int
) -> DisseminationProblem:
    """The question whether chunks reach their goals over a fabric in so many steps and rounds."""
    return DisseminationProblem(
        fabric.ranks,
        fabric.edge_rows,
        fabric.bandwidths,
        chunks,
        steps,
        rounds,
    )


def disseminate(
    problem: DisseminationProblem,
    limits: SearchLimits | None = None,
    solver: Solver = Solver.CPSAT,
) -> Result[tuple[StepSends, ...]]:
    """A schedule, replayed: FEASIBLE; INFEASIBLE: there is none with the symmetries; UNKNOWN.

    Raises:
        TooLarge: the problem exceeds a limit of the encoding.
        EncodingBug: the solver's schedule breaks a rule.
    """
    found = ask(problem, Witness(), solver, limits or SearchLimits())
    if found.value is not None and (broken := broken_rule(problem, found.value)):
        raise EncodingBug(broken, problem, found.value)
    return found
