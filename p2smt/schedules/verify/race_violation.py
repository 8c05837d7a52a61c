"""A race that does harm, in words: who clashes with whom, and the interleaving that shows it."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING

from p2smt.schedules.races.replay import ItemKind
from p2smt.schedules.verify.report import Kind, Violation
from p2smt.schedules.verify.wrong_values import classify

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from p2smt.schedules.index import Index
    from p2smt.schedules.order.happens_before import Nodes
    from p2smt.schedules.order.unordered_accesses import Race
    from p2smt.schedules.races.decide import Decision
    from p2smt.schedules.races.replay import OrderItem


def race_violation(
    index: Index, nodes: Nodes, races: Sequence[Race], usual: Sequence[int], decision: Decision
) -> Violation:
    """The violation that a decision shows; the clashing steps are its culprits.

    usual: a run that is right.
    """
    goal = next(g for g in index.schedule.contract.goals if (g.rank, g.chunk) == decision.goal)
    kind, what = classify(goal, dict(decision.got), untouched=False)
    race = _culprit(races, usual, decision)
    clash = (
        f"{nodes.name(index, race.first)} and {nodes.name(index, race.second)} access "
        f"{index.memory.name(race.cell)} in no certain order"
    )
    text = f"{clash}; so o[{goal.chunk}] of rank {goal.rank} {what} ({kind.value}) in some runs"
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
        details=() if entries else ("it goes wrong before any step needs to be done",),
        shortest=decision.minimal,
    )


def _culprit(races: Sequence[Race], usual: Sequence[int], decision: Decision) -> Race:
    """A race that did not go as in the usual run: of several, the one nearest to the end."""
    before = {node: k for k, node in enumerate(usual)}
    shown = {item.step: k for k, item in enumerate(decision.order)}
    now: dict[int, int] = {}
    for k, item in enumerate((*decision.order, *decision.rest)):
        now.setdefault(item.step, k)

    def weight(race: Race) -> tuple[bool, int]:
        early, late = sorted((race.first, race.second), key=lambda n: before.get(n, -1))
        nearest = max(shown.get(early, -1), shown.get(late, -1))
        return now.get(early, -1) > now.get(late, -1), nearest

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
