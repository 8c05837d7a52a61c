"""Plans on named hosts under unequal switches, with programs, as tests need them."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import p2smt
from p2smt.cluster.file import parse_topology
from p2smt.collectives.demand import demand_of
from p2smt.cost.step_time import program_s
from p2smt.parallelism.rank_list import RankList
from p2smt.parallelism.request import Problem, Request
from p2smt.plans.file import plan_data
from p2smt.plans.rank_scene import RankScene, check_on_ranks
from p2smt.plans.solution import (
    Allocation,
    Alternative,
    RequestAnswer,
    Solution,
    objective,
    program_answer,
    rank_alternative,
)
from p2smt.programs.program import parse_program
from p2smt.result import SolveStats, Status

Plan = dict[str, Any]

MASTERS = "reduce inside leaf; all-reduce master leaf in root; broadcast inside leaf"
NODES = "reduce-scatter inside node; all-reduce parallel node in root; all-gather inside node"

RACKS = """
name: racks
library: none
algorithms: [ring]
levels:
  - {name: leaf, size: 3, link: {kind: switch, bandwidth: 1 GB/s, latency: 10 us, fabric: roce}}
  - {name: node, size: 3, link: {kind: switch, bandwidth: 1 GB/s, latency: 10 us, fabric: roce}}
switches:
  - {name: r0, hosts: "a[1-3]"}
  - {name: r1, hosts: "b[1-2]"}
  - {name: r2, hosts: "c1"}
"""
"""3, 2 and 1 nodes of one device; places 0 1 2, 3 4, 6 of the hull."""

LEAVES = """
name: leaves
library: none
levels:
  - {name: leaf, size: 3, link: {kind: switch, bandwidth: 10 GB/s, latency: 5 us, fabric: roce}}
  - {name: node, size: 7, link: {kind: switch, bandwidth: 10 GB/s, latency: 5 us, fabric: roce}}
  - {name: gpu, size: 2, link: {kind: switch, bandwidth: 200 GB/s, latency: 1 us, fabric: nvlink4}}
switches:
  - {name: l0, hosts: "n[1-5]"}
  - {name: l1, hosts: "n[6-12]", bandwidth: 5 GB/s}
  - {name: l2, hosts: "n[13-16]"}
"""
"""5, 7 and 4 nodes of two devices; the uplink of the second leaf is slower."""


def asked(text: str, axes: str, *requests: Request, **more: Any) -> Problem:
    return Problem(parse_topology(text, "test"), p2smt.parse_axes(axes), requests, **more)


def racks(**more: Any) -> Problem:
    """Six ranks on racks of 3, 2 and 1 nodes."""
    requests = (
        p2smt.reduce("dp+pp=6MiB*2"),
        p2smt.reduce("dp=3MiB"),
        p2smt.reduce_scatter("dp+pp=6MiB"),
        p2smt.send("pp=1MiB"),
        p2smt.all_to_all("dp=3MiB"),
    )
    return asked(RACKS, "dp=3,pp=2", *requests, **more)


def leaves(**more: Any) -> Problem:
    """32 ranks on leaves of 5, 7 and 4 nodes of two devices."""
    requests = (p2smt.reduce("dp+tp=32MiB"), p2smt.reduce("dp=16MiB"), p2smt.send("tp=1MiB"))
    return asked(LEAVES, "dp=16,tp=2", *requests, **more)


def by_devices(problem: Problem) -> RankList:
    """Ranks in the order of the devices that are there."""
    return RankList(tuple(sorted(problem.topology.places)), problem.axis_sizes)


def scattered(problem: Problem) -> RankList:
    """Hosts in an order that goes from leaf to leaf and back, each with its devices in order."""
    each = problem.topology.devices_under(problem.topology.node_level)
    nodes = sorted({device // each for device in problem.topology.places})
    order = [*nodes[::2], *reversed(nodes[1::2])]
    ranks = tuple(node * each + i for node in order for i in range(each))
    return RankList(ranks, problem.axis_sizes)


def with_program(problem: Problem, number: int, ranks: RankList, text: str) -> RequestAnswer:
    """The answer of a request with a program of these words."""
    request, program = problem.requests[number], parse_program(text)
    scene = RankScene.of(problem, request, ranks)
    checked = check_on_ranks(scene, program)
    trace = checked.trace
    assert trace.violation is None, trace
    assert demand_of(request.kind).has_programs
    timed = scene.timed(program, trace.payload_rows)
    assert timed.seconds == program_s(timed.steps, timed.chunks)
    return program_answer(scene.request, scene, program, checked, timed)


def solution(problem: Problem, ranks: RankList, *texts: str | None) -> Solution:
    """As a search would have it: the rank list, with the programs of its first requests."""
    single = rank_alternative(problem, ranks)
    answers = list(single.requests)
    for number, text in enumerate(texts):
        if text is not None:
            answers[number] = with_program(problem, number, ranks, text)
    seconds = tuple(answer.seconds for answer in answers)
    found = Alternative(None, tuple(answers), single.objective_s, Status.FEASIBLE, ranks)
    hosts = problem.topology.hosts
    assert hosts is not None
    inside = tuple((1,) for _ in problem.axes)
    programs_s = objective(problem, seconds) if any(texts) else None
    return Solution(
        problem,
        Status.FEASIBLE,
        (found,),
        single.objective_s / 2,
        0.0,
        Status.TRUNCATED,
        SolveStats("cpsat"),
        allocation=Allocation(problem.topology, hosts.names, (), inside, programs_s),
    )


def plan_of(problem: Problem, ranks: RankList, *texts: str | None) -> Plan:
    """The plan file of such a solution, as data."""
    found = solution(problem, ranks, *texts)
    return json.loads(json.dumps(plan_data(found, found.alternatives[0])))  # type: ignore[no-any-return]


def optimal(plan: Plan) -> Plan:
    """The plan as a proof would leave it."""
    return plan | {"status": "optimal", "bound_s": plan["objective_s"]}


def piped(problem: Problem, chunks: int | None) -> Problem:
    return replace(problem, pipeline=chunks)
