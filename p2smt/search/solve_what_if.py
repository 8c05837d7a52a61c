"""What another bandwidth, or other hosts, would gain an answer of `solve`: each solved anew."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import prod

from p2smt.cluster.changed_cluster import HOSTS, ClusterChange, parse_changes
from p2smt.cost.accuracy import PriceRange
from p2smt.errors import InputError
from p2smt.parallelism.request import Problem
from p2smt.plans.ranges import range_of
from p2smt.plans.solution import Alternative, Solution
from p2smt.result import Status


@dataclass(frozen=True, slots=True)
class SolvedChange:
    """A change and the best answer then; ``best`` None with the ``reason`` where there is none.

    ``where``: the host and the device there of each rank.  ``within``: the range of its time.
    ``gain``: how much longer the answer of now takes, from
    ``low`` to ``high`` where links are as fast, or as slow, as they may be, alike in both.
    """

    change: str
    status: Status
    best: Alternative | None = None
    within: PriceRange | None = None
    gain: float | None = None
    low: float | None = None
    high: float | None = None
    reason: str = ""
    where: tuple[tuple[str, int], ...] = ()


def solved_changes(texts: Sequence[str], problem: Problem) -> tuple[ClusterChange, ...]:
    """The changes of texts, for a problem whose axes say how many devices are used.

    Where hosts are named, ``hosts=30`` leaves the cluster as it is: an answer chooses its hosts.

    Raises:
        InputError: one names no level, or asks for other numbers of unnamed nodes.
    """
    topology = problem.topology
    if topology.hosts is None:
        return parse_changes(texts, topology, ())
    found = parse_changes(texts, topology, (HOSTS,), even=False)
    return tuple(
        one if one.hosts is None else replace(one, topologies=(topology,)) for one in found
    )


def solve_what_if(
    now: Solution,
    problem: Problem,
    changes: Sequence[ClusterChange],
    again: Callable[[Problem], Solution],
) -> Iterator[SolvedChange]:
    """The answer under each change; ``again`` solves a problem as ``now`` was found.

    A search that is interrupted ends them all.
    """
    for change in changes:
        if reason := _too_few(problem, change):
            yield SolvedChange(change.text, Status.INFEASIBLE, reason=reason)
            continue
        try:
            found = again(replace(problem, topology=change.topologies[0]))
        except InputError as error:
            yield SolvedChange(change.text, Status.INFEASIBLE, reason=str(error))
            continue
        except KeyboardInterrupt:
            return
        if found.interrupted:
            return
        yield _answer(now, change.text, found)


def _too_few(problem: Problem, change: ClusterChange) -> str:
    """Why so many hosts do not hold the ranks; empty where they do."""
    topology, ranks = problem.topology, prod(problem.axis_sizes)
    needed = -(-ranks // topology.devices_under(topology.node_level))
    if change.hosts is None or change.hosts >= needed:
        return ""
    return f"{ranks:,} ranks need {needed} hosts"


def _answer(now: Solution, change: str, found: Solution) -> SolvedChange:
    if found.best is None:
        reason = "no placement obeys the restrictions"
        return SolvedChange(change, found.status, reason=reason)
    within = range_of(found.problem, found.best)
    where = found.best.devices_by_host(found.problem.topology)
    if now.best is None or not _seconds(found):
        return SolvedChange(change, found.status, found.best, within, where=where)
    gains = [a / b - 1 for a, b in zip(_ends(now), _ends(found), strict=True)]
    ends = min(gains), max(gains)
    return SolvedChange(change, found.status, found.best, within, gains[0], *ends, where=where)


def _seconds(found: Solution) -> float:
    return found.best.objective_s if found.best else 0.0


def _ends(found: Solution) -> tuple[float, float, float]:
    """Seconds as said, and with links as fast and as slow as they may be."""
    within = range_of(found.problem, found.best) if found.best else None
    said = _seconds(found)
    return (said, said, said) if within is None else (said, within.low_s, within.high_s)
