"""Schedules that only copy, at random and solved, and what checks what becomes of them."""

from __future__ import annotations

from functools import cache
from random import Random

from p2smt.fabric.fabric import Fabric
from p2smt.fabric.fabric_file import load_fabric
from p2smt.problems.schedule import DisseminationProblem, StepSends, SumSchedule
from p2smt.schedules.model import Buffer, Schedule
from p2smt.schedules.verify.report import Verdict
from p2smt.schedules.verify.verify import verify
from p2smt.synthesis.reversal import reversed_sums, sums_of
from p2smt.synthesis.schedule_replay import disseminate, dissemination_problem, spreads
from tests.synthesis.lowering.sums import edges_of

TURNED = {"reduce_scatter": "allgather", "reduce": "broadcast", "gather": "scatter"}
"""What is turned round in time for each collective that is made so."""


def right(schedule: Schedule) -> None:
    """Right in every interleaving, also if a connection holds one message, and nothing idle.

    Out of place the caller's input stays as it is.
    """
    report = verify(schedule, fifo_depth=1)
    assert (report.verdict, report.violations, report.warnings) == (Verdict.VALID, (), ())
    assert report.unused == ()
    written = {span.buffer for step in schedule.steps for span in step.writes}
    assert schedule.in_place or Buffer.INPUT not in written


@cache
def solved(name: str, collective: str, point: tuple[int, int, int], root: int = 0) -> SumSchedule:
    """A schedule of (steps, rounds, chunks); for some collectives a reversed one, turned round."""
    fabric, (steps, rounds, chunks) = load_fabric(name), point
    back = TURNED.get(collective)
    asked = spreads(back or collective, fabric.ranks, chunks, root)
    problem = dissemination_problem(fabric.reversed() if back else fabric, asked, steps, rounds)
    found = disseminate(problem).value
    assert found is not None
    if back:
        return reversed_sums(problem, found, edges_of(fabric), adds=collective != "gather")
    return sums_of(problem, found)


def gossip(
    random: Random, fabric: Fabric, collective: str, chunks: int, root: int = 0
) -> tuple[DisseminationProblem, tuple[StepSends, ...]]:
    """Random messages until every goal is reached, among them second arrivals and useless ones."""
    asked = spreads(collective, fabric.ranks, chunks, root)
    held = {(c, chunk.root) for c, chunk in enumerate(asked)}
    goals = {(c, goal) for c, chunk in enumerate(asked) for goal in chunk.goals}
    steps: list[StepSends] = []
    while not goals <= held:
        able = [
            (c, e)
            for c in range(len(asked))
            for e, edge in enumerate(fabric.edges)
            if (c, edge.source) in held and random.random() < 0.3
        ]
        steps.append(StepSends(1 + len(able), tuple(able)))
        held |= {(c, fabric.edges[e].target) for c, e in able}
    rounds = sum(step.rounds for step in steps)
    return dissemination_problem(fabric, asked, len(steps), rounds), tuple(steps)
