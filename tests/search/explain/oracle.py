"""Answers at any value of one number, by every matrix and every program: no search."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import strategies as st

from p2smt.cluster.topology import Algorithm, Level, Link, LinkKind, Piece, Topology
from p2smt.collectives.names import RequestKind
from p2smt.parallelism.placement import Matrix, ParallelismAxis
from p2smt.parallelism.request import Problem, Request
from p2smt.plans.explanation import ChangedNumber
from tests.search.solve.test_solve import LENGTH, brute_force

SAME = 1e-8


def problem_at(problem: Problem, number: ChangedNumber, factor: float) -> Problem:
    """The problem with one number multiplied (or divided, if it shrinks) by a factor."""
    times = factor if number.grows else 1 / factor
    if number.what == "payload":
        requests = list(problem.requests)
        one = requests[number.index]
        grown = replace(one, payload_bytes=max(1, round(one.payload_bytes * times)))
        requests[number.index] = grown
        return replace(problem, requests=tuple(requests))
    levels = list(problem.topology.levels)
    level = levels[number.index]
    rate, delay = (times, 1.0) if number.what == "bandwidth" else (1.0, times)
    pieces = tuple(
        Piece(p.name, p.latency_s * delay, p.bandwidth_bytes_per_s * rate)
        for p in level.link.pieces
    )
    levels[number.index] = replace(level, link=replace(level.link, pieces=pieces))
    return replace(problem, topology=replace(problem.topology, levels=tuple(levels)))


def behind(problem: Problem, matrix: Matrix) -> float:
    """By how much, relative, a matrix is slower than the best one."""
    found = brute_force(problem)
    ours = next(seconds for seconds, one in found if one == matrix)
    return ours / found[0][0] - 1


@st.composite
def ring_problems(draw: st.DrawFn) -> Problem:
    """Two levels of switches, rings, one or two protocols, two axes, one or two requests."""
    rates = st.sampled_from([1e9, 2e9, 5e9, 10e9, 50e9])
    protocols = draw(st.integers(1, 2))
    delays = st.sampled_from([1e-6, 3e-6, 2e-5, *([0.0] if protocols == 1 else [])])

    def link(ports: int) -> Link:
        pieces = tuple(Piece(f"p{n}", draw(delays), draw(rates)) for n in range(protocols))
        return Link(LinkKind.SWITCH, pieces, ports=ports)

    levels = (
        Level("node", draw(st.sampled_from([2, 4])), link(draw(st.sampled_from([1, 4])))),
        Level("gpu", 4, link(1)),
    )
    topology = Topology("rings", levels, algorithms=(Algorithm.RING,))
    first = draw(st.sampled_from([2, 4]))
    axes = (ParallelismAxis("dp", first), ParallelismAxis("tp", topology.devices // first))
    kinds = st.sampled_from([RequestKind.ALL_REDUCE, RequestKind.ALL_GATHER])
    sizes = st.sampled_from([2**20, 2**24, 2**28])  # rounding of payloads is far from flips
    requests = tuple(
        Request(draw(kinds), (axis.name,), draw(sizes), draw(st.integers(1, 3)))
        for axis in axes[: draw(st.integers(1, 2))]
    )
    return Problem(topology, axes, requests, draw(st.sampled_from(["sum", "sum", "max"])), LENGTH)
