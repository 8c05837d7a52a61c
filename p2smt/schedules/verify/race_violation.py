"""A race that does harm, in words: who clashes with whom, and the interleaving that shows it."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING

from p2smt.schedules.races.replay import ItemKind
from p2smt.schedules.races.shown_flow import ShownFlow
from p2smt.schedules.verify.report import Kind, Violation
from p2smt.schedules.verify.values import classify

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from p2smt.schedules.index import Index
    from p2smt.schedules.order.happens_before import Nodes
    from p2smt.schedules.order.unordered_accesses import Race
    from p2smt.schedules.races.decide import Decision
    from p2smt.schedules.races.replay import OrderItem


# Steps of the way from a race to the output that are named.
_WAY = 5


def race_violation(
    index: Index, nodes: Nodes, races: Sequence[Race], usual: Sequence[int], decision: Decision
) -> Violation:
    """The violation that a decision shows; the clashing steps are its culprits.

    usual: a run that is right.
    """
    goal = next(g for g in index.schedule.contract.goals if (g.rank, g.chunk) == decision.goal)
    kind, what = classify(goal, dict(decision.got), untouched=False)
    flow = ShownFlow(index, nodes)
    flow.run((*decision.order, *decision.rest), (goal.rank, goal.chunk))
    ways = flow.way_to(index.memory.output_cell(goal.rank, goal.chunk))
    race = _culprit(races, usual, decision, ways)
    clash = (
        f"{nodes.name(index, race.first)} and {nodes.name(index, race.second)} access "
        f"{index.memory.name(race.cell)} in no certain order"
    )
    first = _first(flow, race)
    so = "so" if first is None else f"where {nodes.name(index, first)} comes first,"
    text = f"{clash}; {so} o[{goal.chunk}] of rank {goal.rank} {what} ({kind.value}) in some runs"
    steps = tuple(dict.fromkeys(n for n in (race.second, race.first) if nodes.is_step(n)))
    entries = list(_entries(index, nodes, decision))
    return Violation(
        Kind.RACE,
        text,
        steps,
        goal.rank,
        goal.chunk,
        order=tuple(step for step, _ in entries),
        parts=tuple(part for _, part in entries),
        details=tuple(_details(index, race, ways, shown=bool(entries))),
        shortest=decision.minimal,
    )


def _first(flow: ShownFlow, race: Race) -> int | None:
    """Of two steps that clash, the one whose accesses of the cell all come first, if there is."""
    order = [node for node, cell in flow.accesses if cell == race.cell]
    nodes = [node for node in order if node in (race.first, race.second)]
    if len(set(nodes)) < 2 or nodes != sorted(nodes, key=nodes.index):
        return None
    return nodes[0]


def _details(
    index: Index, race: Race, ways: Mapping[int, tuple[int, ...]], *, shown: bool
) -> Iterator[str]:
    """How what is wrong gets from the cell of the race to the output."""
    if not shown:
        yield "it goes wrong before any step needs to be done"
    steps = [str(index.schedule.steps[number]) for number in reversed(ways.get(race.cell, ()))]
    if steps:
        more = [f"{len(steps) - _WAY} more"] if len(steps) > _WAY else []
        way = ", ".join([*steps[:_WAY], *more])
        yield f"from {index.memory.name(race.cell)} it gets there by way of {way}"


def _culprit(
    races: Sequence[Race],
    usual: Sequence[int],
    decision: Decision,
    ways: Mapping[int, tuple[int, ...]],
) -> Race:
    """A race that did not go as in the usual run, on a cell that the wrong data came through: of
    several, the one nearest to the end."""
    before = {node: k for k, node in enumerate(usual)}
    shown = {item.step: k for k, item in enumerate(decision.order)}
    now: dict[int, int] = {}
    for k, item in enumerate((*decision.order, *decision.rest)):
        now.setdefault(item.step, k)

    def weight(race: Race) -> tuple[bool, bool, int]:
        early, late = sorted((race.first, race.second), key=lambda n: before.get(n, -1))
        nearest = max(shown.get(early, -1), shown.get(late, -1))
        turned = now.get(early, -1) > now.get(late, -1)
        return turned and race.cell in ways, turned, nearest

    return max(races, key=weight)


def _entries(index: Index, nodes: Nodes, decision: Decision) -> Iterator[tuple[int, str]]:
    """Steps in order, each once unless its reads and writes are apart."""
    groups = [
        (step, list(items))
        for step, items in groupby(decision.order, key=lambda item: item.step)
        if nodes.is_step(step)
    ]
    for step, items in groups:
        whole = len(items) == 1 and items[0].kind is ItemKind.STEP
        yield step, "" if whole else ", ".join(_part(index, item) for item in items)


def _part(index: Index, item: OrderItem) -> str:
    step = index.schedule.steps[item.step]
    if item.kind is ItemKind.STEP:
        return "the rest of it"
    reads = item.kind is ItemKind.READ
    span = (step.reads if reads else step.writes)[item.operand]
    cell = index.memory.cells(span)[item.position]
    return f"{'reads' if reads else 'writes'} {index.memory.name(cell)}"
