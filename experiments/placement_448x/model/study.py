"""The modelled study: every placement of every split of a system, and every choice of axes.

    python -m experiments.placement_448x.model.study [--times] [NAME ..]

writes ``computed/NAME.json`` per system (:mod:`experiments.placement_448x.model.systems`;
default: all).
``cases`` lists axes, reduced axes, and each placement with the number of its scene; ``runs`` lists
each scene with each payload and choice of algorithms.  All of it is the same on every machine; what
it took is kept apart and renewed by ``--times``.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from typing import Any

from experiments.placement_448x.cases import Case, cases, matrices
from experiments.placement_448x.model.solving import LENGTH, LIBRARY, LIMITS, Run, Solver, choices
from experiments.placement_448x.model.systems import SYSTEMS, System, system
from experiments.placement_448x.store import HERE, computed_header, rounded
from experiments.testbed.script import ended
from experiments.testbed.written.results import write
from experiments.testbed.written.timings import Times, keep, taken
from p2smt.cluster.topology import Algorithm, Topology
from p2smt.cost.loads.footprint import Digits
from p2smt.cost.scene import Scene
from p2smt.parallelism.placement import Placement
from p2smt.report.progress import counted

SMALLER = (2**20, 2**25, 2**30)
"""Payloads besides the paper's, in bytes: 1 MiB, 32 MiB, 1 GiB."""

RUN = ("scene", "payload_bytes", "algorithm", "default_s", "best_s", "program", "pipelined_s",
       "chunks", "pipelined_program", "bound_s")  # fmt: skip
"""The columns of ``runs``; a program is a number in ``programs``."""

Scenes = dict[tuple[Digits, ...], int]


def paper_bytes(topology: Topology) -> int:
    """The paper's payload per device: 2^29 float32 for each node."""
    return 4 * 2**29 * topology.sizes[0]


def study(one: System, payloads: Sequence[int] = ()) -> tuple[dict[str, Any], Times]:
    """The results of one system, with all payloads or those given, and what they took."""
    topology, start = one.topology(), time.process_time()
    headline = paper_bytes(topology)
    scenes: Scenes = {}
    rows = [_case(topology, case, scenes) for case in cases(topology.devices)]
    solver = Solver(topology)
    runs = [
        (number, solver.run(digits, payload, algorithm))
        for payload in payloads or (*SMALLER, headline)
        for algorithm in choices(topology)
        for digits, number in scenes.items()
    ]
    proofs = [
        solver.prove(digits, run.payload_bytes, run.best_s)
        for digits, number in scenes.items()
        for n, run in runs
        if (n, run.payload_bytes, run.algorithm) == (number, headline, LIBRARY)
    ]
    found = {
        "header": computed_header(LIMITS.seed),
        "system": _system(one, topology, headline),
        "programs_per_scene": [proof.programs for proof in proofs],
        "cases": rows,
        "scenes": [_scene(topology, digits) for digits in scenes],
        **_runs(runs),
    }
    return found, {
        "study_cpu_s": round(time.process_time() - start, 2),
        "synthesis_cpu_s": [round(proof.cpu_s, 4) for proof in proofs],
    }


def _system(one: System, topology: Topology, headline: int) -> dict[str, Any]:
    return {
        "name": one.name,
        "label": one.label,
        "part": one.part,
        "levels": dict(zip(topology.names, topology.sizes, strict=True)),
        "kinds": {level.name: level.link.kind.value for level in topology.levels},
        "bytes_per_s": {
            level.name: level.link.nominal_bytes_per_s
            * level.link.ports
            * level.link.efficiency_of(Algorithm.RING.value)
            for level in topology.levels
        },
        "algorithms": [algorithm.value for algorithm in topology.algorithms],
        "length": LENGTH,
        "paper_payload_bytes": headline,
    }


def _case(topology: Topology, case: Case, scenes: Scenes) -> dict[str, Any]:
    """A case: each placement with the number of its scene, new ones being added."""
    found = []
    for matrix in matrices(topology.sizes, case.axes):
        digits = Scene.of(topology, Placement(matrix), case.reduced).digits
        found.append([matrix, scenes.setdefault(digits, len(scenes))])
    return {"axes": case.axes, "reduced": case.reduced, "placements": found}


def _scene(topology: Topology, digits: tuple[Digits, ...]) -> dict[str, Any]:
    hierarchy = Scene(topology, digits).hierarchy
    depths = [hierarchy.depth_of(name) for name in topology.names]
    factors, used = [], 0
    for depth in depths:
        factors.append(hierarchy.factors[depth - 1] if depth > used else 1)
        used = depth
    return {"factors": factors, "digits": digits}


def _runs(runs: Sequence[tuple[int, Run]]) -> dict[str, Any]:
    """The runs as rows of ``RUN``, and the programs that they name by number."""
    numbers: dict[str, int] = {}
    rows = []
    for scene, run in runs:
        cells = {name: getattr(run, name) for name in RUN[1:]}
        for name in ("program", "pipelined_program"):
            cells[name] = numbers.setdefault(cells[name], len(numbers))
        rows.append([scene, *(_cell(cells[name]) for name in RUN[1:])])
    return {"run_columns": RUN, "programs": list(numbers), "runs": rows}


def _cell(value: object) -> object:
    return rounded(value) if isinstance(value, float) else value


def main(arguments: Sequence[str]) -> None:
    """Study the systems of these names, or all; ``--times`` renews what that took, too."""
    names, anew = taken(arguments)
    for one in counted([system(name) for name in names] or SYSTEMS, "systems"):
        found, times = study(one)
        write(HERE / "computed" / f"{one.name}.json", found)
        keep(HERE, {one.name: times}, anew)
        print(f"{one.name}: {len(found['runs'])} runs, {times['study_cpu_s']} CPU s")


if __name__ == "__main__":
    sys.exit(ended(main, sys.argv[1:]))
