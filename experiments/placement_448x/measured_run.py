"""Runs the pairs of the measured study on a cluster's ranks: checks each, and times them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from experiments.placement_448x.measured_pairs import Choice, Pairs, is_single, pairs_of
from experiments.placement_448x.store import rounded
from experiments.programs_on_testbed.study import run
from p2smt.runtime.job import Job, JobRequest
from p2smt.runtime.launch import Fleet
from p2smt.topology import Topology

CHECKED_BYTES = 2**14 + 4

Times = list[list[float]]
"""Seconds by entry, in the order in which they were measured."""


def large_pairs(topology: Topology, payload_bytes: int) -> Pairs:
    """Per shape of group over several nodes and ranks: the single all-reduce, the model's choice.

    Shapes are numbers of members per level; of the pairs with one shape the first is taken.
    """
    found, seen = Pairs(), set()
    every = pairs_of(topology, payload_bytes, Choice())
    for _, rows in every.cases:
        for _, numbers in rows:
            factors = every.factors[numbers[0]]
            if factors in seen or factors[-1] == 1 or max(factors[:-1]) == 1:
                continue
            seen.add(factors)
            requests = [every.entries[n] for n in numbers]
            found.add(factors, [next(filter(is_single, requests)), requests[0]])
    return found


def check(pairs: Pairs, fleet: Fleet) -> bool:
    """Whether every entry gives the right results on every rank, with a small payload."""
    small = [replace(request, payload_bytes=CHECKED_BYTES) for request in pairs.entries]
    return run(_job(small), fleet, repeat=0).verified


def time_pairs(
    both: tuple[Pairs, Pairs], repeat: int, seed: int, fleet: Fleet
) -> tuple[Times, Times]:
    """Times of the entries of both, those of the second after the first.

    Every round has processes of its own: how they fall on the processors lasts as long as they.
    """
    found: tuple[Times, Times] = ([[] for _ in both[0].entries], [[] for _ in both[1].entries])
    for first, second in zip(*(pairs.rounds(repeat, seed) for pairs in both), strict=True):
        turns = [(0, i) for i in first] + [(1, i) for i in second]
        job = _job([both[n].entries[i] for n, i in turns])
        results = run(job, fleet, 1, ("program",)).requests
        for (n, i), result in zip(turns, results, strict=True):
            found[n][i] += result.total.samples
    return found


def _job(requests: Sequence[JobRequest]) -> Job:
    """Every request takes in every rank."""
    return Job(sum(map(len, requests[0].groups)), tuple(requests))


def entries_data(pairs: Pairs, times: Sequence[Sequence[float]]) -> list[dict[str, Any]]:
    """What was timed, and how long it took."""
    return [
        {
            "program": request.name,
            "factors": factors,
            "groups": len(request.groups),
            "single": is_single(request),
            "predicted_s": rounded(request.predicted_s or 0.0, 6),
            "times_s": [round(s, 6) for s in samples],
        }
        for request, factors, samples in zip(pairs.entries, pairs.factors, times, strict=True)
    ]
