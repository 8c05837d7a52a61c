"""Runs the pairs of the measured study on a cluster's ranks: checks each, and times them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from experiments.placement_448x.measure.pairs import Pairs, is_single, pairs_of
from experiments.placement_448x.store import rounded
from experiments.testbed.ranks import run
from p2smt.cluster.topology import Topology
from p2smt.report.progress import counted
from p2smt.runtime.job import Job, JobRequest
from p2smt.runtime.ranks.on_ranks import Fleet

CHECKED_BYTES = 2**14 + 4

Times = list[list[list[float]]]
"""Seconds by entry and round."""


@dataclass(frozen=True, slots=True)
class Large:
    """What is timed with a larger payload; ``rows`` are (single all-reduce, model's choice)."""

    pairs: Pairs
    rows: tuple[tuple[int, int], ...]


def large_pairs(topology: Topology, payload_bytes: int) -> Large:
    """Per shape of group over several nodes and ranks: the single all-reduce, the model's choice.

    Shapes are numbers of members per level; of the pairs with one shape the first is taken.
    """
    found, rows = Pairs(), dict[tuple[int, ...], tuple[int, int]]()
    every = pairs_of(topology, payload_bytes)
    for factors, numbers in ((every.factors[own[0]], own) for _, p in every.cases for _, own in p):
        if factors in rows or factors[-1] == 1 or max(factors[:-1]) == 1:
            continue
        requests = [every.entries[n] for n in numbers]
        both = [next(filter(is_single, requests)), requests[0]]
        single, chosen = (found.add(factors, [request])[0] for request in both)
        rows[factors] = (single, chosen)
    return Large(found, tuple(rows.values()))


def check(requests: Sequence[JobRequest], fleet: Fleet) -> bool:
    """Whether every request gives the right results on every rank, with a small payload."""
    small = [replace(request, payload_bytes=CHECKED_BYTES) for request in requests]
    return run(_job(small), fleet, repeat=0).verified


def time_pairs(
    both: tuple[Pairs, Pairs], repeat: int, seed: int, fleet: Fleet
) -> tuple[Times, Times]:
    """Times of the entries of both, those of the second after the first.

    Every round starts new processes: where these run among the processors lasts as long as they
    do, and biases their times.
    """
    found: tuple[Times, Times] = ([[] for _ in both[0].entries], [[] for _ in both[1].entries])
    rounds = zip(*(pairs.rounds(repeat, seed) for pairs in both), strict=True)
    for first, second in counted(rounds, "rounds", repeat):
        turns = [(0, i) for i in first] + [(1, i) for i in second]
        job = _job([both[n].entries[i] for n, i in turns])
        here: dict[tuple[int, int], list[float]] = {}
        for turn, result in zip(turns, run(job, fleet, 1, ("program",)).requests, strict=True):
            here.setdefault(turn, []).extend(result.total.samples)
        for (n, i), samples in here.items():
            found[n][i].append(samples)
    return found


def _job(requests: Sequence[JobRequest]) -> Job:
    """Every request takes in every rank."""
    return Job(sum(map(len, requests[0].groups)), tuple(requests))


def entries_data(pairs: Pairs, times: Times) -> list[dict[str, Any]]:
    """What was timed, and how long it took."""
    return [
        {
            "program": request.name,
            "factors": factors,
            "groups": len(request.groups),
            "single": is_single(request),
            "predicted_s": rounded(request.predicted_s or 0.0, 6),
            "times_s": [[round(s, 6) for s in samples] for samples in rounds],
        }
        for request, factors, rounds in zip(pairs.entries, pairs.factors, times, strict=True)
    ]
