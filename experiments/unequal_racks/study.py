"""Rank orders on a test cluster of unequal racks: predicted, then measured with real Gloo ranks.

    python -m experiments.unequal_racks.study

Six nodes in racks of three, two and one; the uplink of a rack has the rate of one node.  Rank r of
an order is started on the order's host r.  Every round measures all orders, in an order of its own,
each with new processes: first both requests with a small payload, which connects the ranks, then
each once.  The all-reduce of each group is also timed while the other group is idle.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from experiments.testbed.network import cluster
from experiments.testbed.ranks import cluster_data, fleet_of, run
from experiments.testbed.script import ended
from experiments.testbed.spec import Node, parse_rate
from experiments.testbed.written import about, results
from experiments.unequal_racks.cases import (
    DIGITS,
    Order,
    alone_s,
    every_order,
    groups,
    network,
    orders,
    predicted_s,
    question,
    solved,
)
from experiments.unequal_racks.summary import summary
from p2smt.collectives.names import DIRECT, RequestKind
from p2smt.cost.algorithms import Operation
from p2smt.parallelism.placement import IntArray
from p2smt.parallelism.request import Problem
from p2smt.report.progress import counted
from p2smt.runtime.job import Job, JobRequest, JobStep, ordered
from p2smt.units import parse_bytes

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results.json"
PACKAGES = ("p2smt", "ortools", "numpy", "torch")
SMALL_BYTES = 2**16
"""Of the requests that connect the ranks, and of those whose results are checked."""


def study(
    problem: Problem, found: Sequence[Order], nodes: Sequence[Node], how: Mapping[str, int]
) -> dict[str, Any]:
    """Check and time the orders on a cluster's nodes; times in seconds by order."""
    node = {one.host: one for one in nodes}
    fleets = [fleet_of([node[host] for host in order.hosts]) for order in found]
    small = job(problem, SMALL_BYTES)
    verified = all(run(small, fleet, repeat=0).verified for fleet in fleets)
    timed = measured_job(problem)
    times: list[list[list[float]]] = [[] for _ in found]
    choose = random.Random(how["seed"])
    for _ in counted(range(how["repeat"]), "rounds"):
        for number in choose.sample(range(len(found)), len(found)):
            result = run(timed, fleets[number], 1, ("program",))
            taken = [one.total.samples[0] for one in result.requests[len(small.requests) :]]
            times[number].append([round(seconds, 6) for seconds in taken])
    return {"verified": verified, "orders": list(map(_order_data, found, times))}


def _order_data(order: Order, rounds: Sequence[Sequence[float]]) -> dict[str, Any]:
    """An order with its times: per request, and per group that all-reduces alone."""
    by_request = [list(times) for times in zip(*rounds, strict=True)]
    return {
        "name": order.name,
        "hosts": list(order.hosts),
        "times_s": by_request[:2],
        "alone_times_s": by_request[2:],
    }


def job(problem: Problem, payload_bytes: int) -> Job:
    """Both requests of the problem; the ranks of the job are those of the axes."""
    reduced, sent = groups(problem)
    both = [
        _request(RequestKind.ALL_REDUCE, DIRECT[RequestKind.ALL_REDUCE], reduced, payload_bytes),
        _request(RequestKind.SEND, RequestKind.SEND, sent, payload_bytes),
    ]
    return Job(reduced.size, tuple(both))


def measured_job(problem: Problem) -> Job:
    """Both requests small, both as asked, then the all-reduce of one group after the other."""
    payload, (reduced, _) = problem.requests[0].payload_bytes, groups(problem)
    kind = RequestKind.ALL_REDUCE
    alone = [_request(kind, DIRECT[kind], row[None], payload) for row in reduced]
    requests = (*job(problem, SMALL_BYTES).requests, *job(problem, payload).requests, *alone)
    return Job(reduced.size, requests)


def _request(kind: RequestKind, operation: Operation, members: IntArray, size: int) -> JobRequest:
    who = ordered(members.tolist())
    return JobRequest(kind.value, kind, who, (JobStep(kind.value, operation, who),), size)


def predicted(problem: Problem, data: Mapping[str, Any]) -> dict[str, Any]:
    """An order's data with what is predicted of it."""
    return {
        "name": data["name"],
        "hosts": data["hosts"],
        "predicted_s": predicted_s(problem, data["hosts"]),
        "times_s": data["times_s"],
        "alone_predicted_s": alone_s(problem, data["hosts"]),
        "alone_times_s": data["alone_times_s"],
    }


def parsed(arguments: Sequence[str]) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rate", default="50mbit", help="rate of every link (default 50mbit)")
    parser.add_argument("--payload", default="8MiB", help="bytes per rank (default 8MiB)")
    parser.add_argument("--repeat", type=int, default=7, help="rounds (default 7)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=RESULTS)
    return parser.parse_args(arguments)


def main(arguments: Sequence[str]) -> None:
    """Run the study and write its JSON."""
    given = parsed(arguments)
    spec = network(parse_rate(given.rate, "--rate"))
    problem = question(spec, parse_bytes(given.payload, "--payload"))
    solution = solved(problem)
    with cluster(spec) as nodes:
        how = {"repeat": given.repeat, "seed": given.seed}
        measured = study(problem, orders(problem, solution), nodes, how)
    found = [predicted(problem, one) for one in measured["orders"]]
    data = {
        "header": about.header(given.seed, PACKAGES, HERE),
        "cluster": cluster_data(spec, 1),
        "axes": [[axis.name, axis.size] for axis in problem.axes],
        "requests": [[r.kind.value, *r.axes, r.payload_bytes] for r in problem.requests],
        "repeat": given.repeat,
        "verified": measured["verified"],
        "verified_with_bytes": SMALL_BYTES,
        "solved": {
            "status": solution.status.value,
            "objective_s": results.rounded(solution.alternatives[0].objective_s, DIGITS),
            "bound_s": results.rounded(solution.bound_s, DIGITS),
        },
        "every_order": every_order(problem),
        "orders": found,
    }
    results.write(given.out, {**data, "summary": summary(data)})
    if not measured["verified"]:
        sys.exit("some rank had a wrong result")


if __name__ == "__main__":
    sys.exit(ended(main, sys.argv[1:]))
