"""The numbers that an answer rests on, and the problem with one of them changed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from p2smt.cluster.topology import Algorithm, Link, Piece, Topology
from p2smt.cost.library.model import family_of
from p2smt.cost.library.registry import library_of
from p2smt.cost.library.ways import hop_s
from p2smt.parallelism.request import Problem
from p2smt.plans.explanation import ChangedNumber


def numbers_of(problem: Problem) -> Iterator[ChangedNumber]:
    """Bandwidths, latencies, the cost of calls where there is one, and payloads; both ways."""
    for grows in (False, True):
        for j, level in enumerate(problem.topology.levels):
            if level.size > 1:
                yield ChangedNumber("bandwidth", level.name, j, grows)
                yield ChangedNumber("latency", level.name, j, grows)
        if problem.topology.library:
            yield ChangedNumber("call", None, 0, grows)
        for r, request in enumerate(problem.requests):
            yield ChangedNumber("payload", str(request), r, grows)


def outward(number: ChangedNumber) -> bool:
    """Whether x grows: times do, but a bandwidth that grows makes them shrink."""
    return number.grows != (number.what == "bandwidth")


def changed(problem: Problem, number: ChangedNumber, times: float) -> Problem:
    """The problem with the number multiplied; a payload is rounded to whole bytes."""
    if number.what == "payload":
        requests = list(problem.requests)
        old = requests[number.index]
        requests[number.index] = replace(old, payload_bytes=changed_bytes(old.payload_bytes, times))
        return replace(problem, requests=tuple(requests))
    return replace(problem, topology=changed_topology(problem.topology, number, times))


def changed_bytes(payload_bytes: int, times: float) -> int:
    """A payload multiplied, in whole bytes."""
    return max(1, round(payload_bytes * times))


def changed_topology(topology: Topology, number: ChangedNumber, times: float) -> Topology:
    """The cluster with a bandwidth, a latency or the cost of calls multiplied."""
    match number.what:
        case "bandwidth":
            return topology.with_bandwidth_factor(number.index, times)
        case "latency":
            return with_latency_factor(topology, number.index, times)
        case "call":
            return topology.with_call_factor(times)
        case _:
            return topology


def with_latency_factor(topology: Topology, j: int, times: float) -> Topology:
    """The cluster with every latency and hop of one level multiplied, a library's too."""
    link, levels = topology.levels[j].link, list(topology.levels)
    slower = replace(
        link,
        pieces=_slower(link.pieces, times),
        measured=tuple((name, _slower(pieces, times)) for name, pieces in link.measured),
        hops=tuple((name, hop * times) for name, hop in (*link.hops, *_hops(topology, j, link))),
    )
    levels[j] = replace(levels[j], link=slower)
    return replace(topology, levels=tuple(levels))


def _slower(pieces: tuple[Piece, ...], times: float) -> tuple[Piece, ...]:
    return tuple(replace(piece, latency_s=piece.latency_s * times) for piece in pieces)


def _hops(topology: Topology, j: int, link: Link) -> Iterator[tuple[str, float]]:
    """A library's hops on a link, where the link has none of its own, under names of the link's."""
    if not topology.library:
        return
    library = library_of(topology.library)
    run = {run.algorithm for _, runs in library.runs for run in runs}
    families = {family_of(one) for one in (*Algorithm, None, *run)}
    protocols = {name for (_, _, name), _ in library.hops} | {one.name for one in library.protocols}
    for family in sorted(families):
        for protocol in sorted(protocols):
            if link.hop_of(protocol, family) is None:
                yield f"{family}-{protocol}", hop_s(topology, j, protocol, family)
