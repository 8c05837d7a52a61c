"""Redistributions measured on eight Gloo ranks of this machine: ``measured.json``.

    python -m experiments.redistribution.measured [ROUNDS]

First the machine is calibrated, and the plans are made on what comes of it.  Then four ways take
turns in one run: our plan, the plans of DTensor's greedy and graph planners run by the same
executor, and DTensor's ``redistribute`` as it is, which on CPUs replaces every all-to-all by an
all-gather.  The time of a run is that of its slowest rank; every result is compared.
"""

from __future__ import annotations

import os
import platform
import statistics
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from experiments.redistribution.measured_ranks import Question, Way, measure_cases
from experiments.testbed.script import ended
from experiments.testbed.written import results
from p2smt.api.calibrate import calibrate, measure
from p2smt.cluster.file import topology_from_data
from p2smt.cluster.topology import Topology
from p2smt.errors import InputError
from p2smt.interop.arrays.peers.peer_replay import first_inside
from p2smt.interop.arrays.peers.torch_planner import TorchPlanner, torch_moves
from p2smt.report.progress import counted
from p2smt.resharding.endpoints import ends_of
from p2smt.resharding.search import solve_redistribution
from p2smt.resharding.states import ArrayState, Frame
from p2smt.resharding.step_prices import StepPrices
from p2smt.resharding.steps import ArrayStep, StepKind
from p2smt.resharding.types import ArrayType, ElementType, parse_layout, parse_mesh
from p2smt.result import SearchLimits
from p2smt.runtime.arrays.rank_steps import ArrayJob, array_job
from p2smt.runtime.payload import RunOptions

RESULTS = Path(__file__).resolve().parent / "measured.json"
PAGE = RESULTS.with_name("measured.md")
RANKS = 8
CASES = (
    ("a=2,b=4", (2048, 2048), "S(a),S(b)", "S(b),S(a)"),
    ("a=2,b=4", (2048, 2048), "S(a,b),R", "R,S(a,b)"),
    ("a=2,b=4", (2048, 2048), "S(a,b),R", "S(b),R"),
    ("a=2,b=2,c=2", (2048, 2048), "S(c),S(a)", "S(b,c),R"),
    ("a=2,b=2,c=2", (2048, 2048), "S(a,c),S(b)", "S(b,c),S(a)"),
    ("a=2,b=4", (2048, 2048), "R,R;P(a);P(b)", "S(a,b),R"),
    ("a=2,b=4", (2048, 2048), "S(b),R;P(a)", "R,S(b)"),
)
"""Mesh, shape, from, to; the last two reduce."""
GUESS = {
    "name": "this-machine",
    "library": "none",
    "levels": [
        {
            "name": "process",
            "size": RANKS,
            "link": {"kind": "switch", "bandwidth": "1 GB/s", "latency": "100 us"},
        }
    ],
}


def calibrated() -> Topology:
    """This machine, fitted to Gloo's collectives on its ranks."""
    guess = topology_from_data(GUESS, "this machine")
    found = measure(guess, RunOptions(repeat=5, time_limit_s=900.0))
    assert found is not None
    return calibrate(found, allow_above_nominal=True).topology


def question(case: tuple[str, tuple[int, ...], str, str], topology: Topology) -> Question:
    """The ways of a case, planned."""
    mesh_text, shape, first, last = case
    mesh = parse_mesh(mesh_text)
    source, target = (
        ArrayType(mesh, shape, ElementType.F32, parse_layout(text, mesh)) for text in (first, last)
    )
    plan = solve_redistribution(source, target, topology, limits=SearchLimits(60.0, workers=2))
    ways = [Way("ours", array_job(plan), [one.step.text(plan.frame) for one in plan.steps])]
    for which in TorchPlanner:
        moves = torch_moves(source, target, which, devices_per_host=RANKS)
        ends, path = first_inside(ends_of(source, target), moves)
        if path.outside:
            raise InputError(f"{first} to {last} by {which.value}", path.outside)
        job = _job(topology, ends.frame, ends.source, path.steps)
        ways.append(Way(which.value, job, [step.text(ends.frame) for step in path.steps]))
    return Question(source, target, tuple(ways))


def _job(
    topology: Topology, frame: Frame, start: ArrayState, steps: Sequence[ArrayStep]
) -> ArrayJob:
    prices, sources = StepPrices(topology, frame), []
    for step in steps:
        permutes = step.kind is StepKind.PERMUTE
        found = prices.messages(step.before, step.after)[0].tolist() if permutes else []
        sources.append(tuple(found))
    seconds = tuple(prices.step(step).seconds for step in steps)
    return ArrayJob(frame, start, tuple(steps), tuple(sources), seconds)


def entry(case: tuple[str, tuple[int, ...], str, str], asked: Question, times: Any) -> Any:
    """What is written of a case: medians, their ratios to ours, predictions, steps."""
    mesh, shape, first, last = case
    medians = {name: statistics.median(samples) for name, samples in times.items()}
    return {
        "mesh": mesh,
        "shape": list(shape),
        "from": first,
        "to": last,
        "seconds": {name: results.rounded(value, 4) for name, value in medians.items()},
        "ratio": {n: results.rounded(v / medians["ours"], 4) for n, v in medians.items()},
        "predicted_s": {w.name: results.rounded(sum(w.job.predicted_s), 4) for w in asked.ways},
        "steps": {way.name: way.steps for way in asked.ways},
    }


def summary(entries: Sequence[Any]) -> dict[str, Any]:
    """Geometric means over the cases, with and without those that reduce."""
    moved = [one for one in entries if ";P" not in one["from"]]
    groups = {"moves": moved, "all": entries}
    return {
        label: {
            name: results.rounded(statistics.geometric_mean(e["ratio"][name] for e in group), 4)
            for name in entries[0]["ratio"]
        }
        for label, group in groups.items()
    }


def page(data: dict[str, Any]) -> str:
    """The results as a page."""
    header, names = data["header"], ("greedy", "graph", "redistribute")
    lines = [
        "# Redistributions on eight Gloo ranks",
        "",
        f"Measured, medians of {header['rounds']} rounds in which four ways take turns, on a",
        f"machine of {header['cores']} cores with a load of {header['load']:g}, its own included:",
        "read the large ratios only. Ratios are the other way's time over that of our plan, which",
        "was made on links calibrated in the same run. *greedy* and *graph* are the plans of",
        "DTensor's planners (torch 2.13), run by the same executor with a real all-to-all;",
        "*redistribute* is DTensor itself, which on CPUs replaces every all-to-all by an",
        "all-gather. Every result was compared bit for bit. 2048 x 2048 float32.",
        "",
        "| mesh | from | to | ours | plan | greedy | graph | redistribute |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for one in data["cases"]:
        steps = "; ".join(step.split()[0] for step in one["steps"]["ours"])
        ratios = " | ".join(f"{one['ratio'][name]:.2f}" for name in names)
        milliseconds = f"{1e3 * one['seconds']['ours']:.1f} ms"
        ends = f"`{one['from']}` | `{one['to']}`"
        lines.append(f"| `{one['mesh']}` | {ends} | {milliseconds} | {steps} | {ratios} |")
    for label, what in (("moves", "without a reduction"), ("all", "all cases")):
        ratios = " | ".join(f"{data['ratios'][label][name]:.2f}" for name in names)
        lines.append(f"| geometric mean | {what} | | | | {ratios} |")
    lines += [
        "",
        f"Below 1 the other way is faster. Greedy and graph have the same steps in {alike(data)}",
        "of the cases: what differs between them there is noise. Predicted times and all steps",
        "are in [measured.json](measured.json).",
        "",
        "`python -m experiments.redistribution.measured` measures again (minutes).",
    ]
    return "\n".join(lines) + "\n"


def alike(data: dict[str, Any]) -> int:
    """In how many cases DTensor's planners have the same plan."""
    return sum(one["steps"]["greedy"] == one["steps"]["graph"] for one in data["cases"])


def main(given: Sequence[str]) -> None:
    """Calibrate, plan, measure, write."""
    rounds = int(given[0]) if given else 15
    topology = calibrated()
    asked = [question(case, topology) for case in counted(CASES, "plans")]
    measured = measure_cases(asked, RANKS, rounds)
    entries = [
        entry(case, one, times) for case, one, times in zip(CASES, asked, measured, strict=True)
    ]
    (piece,) = topology.levels[0].link.pieces
    header = {
        "rounds": rounds,
        "ranks": RANKS,
        "cores": os.cpu_count(),
        "load": results.rounded(os.getloadavg()[0], 2),
        "platform": platform.platform(),
        "latency_s": results.rounded(piece.latency_s, 4),
        "bandwidth_bytes_per_s": results.rounded(piece.bandwidth_bytes_per_s, 4),
    }
    results.write(RESULTS, {"header": header, "ratios": summary(entries), "cases": entries})
    PAGE.write_text(page(results.read(RESULTS)), encoding="utf-8")
    for label, ratios in summary(entries).items():
        sys.stdout.write(f"{label}: {ratios}\n")


if __name__ == "__main__":
    sys.exit(ended(main, sys.argv[1:]))
