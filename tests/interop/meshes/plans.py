"""Plans with programs of every class, as `solve -o` writes them."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from p2smt.cli.codes import NOT_SETTLED, OK
from p2smt.cluster.file_model import build_topology
from p2smt.collectives.demand import demand_of
from p2smt.collectives.names import RequestKind
from p2smt.cost.scene import Scene
from p2smt.errors import InputError
from p2smt.parallelism.placement import Placement
from p2smt.parallelism.rank_list import RankList
from p2smt.parallelism.request import Request
from p2smt.plans.file import read_plan
from p2smt.plans.file_model import AnyPlan, PlanModel
from p2smt.plans.problem import plan_problem
from p2smt.plans.rank_scene import RankScene, check_on_ranks
from p2smt.programs.check import check_program
from p2smt.programs.parts import UnevenSlicesError
from p2smt.programs.program import lower, parse_program
from tests.cli.tools import cli


def solved(folder: Path, topology: str, *options: str) -> str:
    """The plan of a search, as a file."""
    path = folder / "plan.json"
    made = cli("solve", "-t", topology, *options, "-o", str(path))
    assert made.code in (OK, NOT_SETTLED), made.err
    return str(path)


def programs_of(topology: str, axes: str, matrix: str, kind: str, along: str) -> list[str]:
    """Every program of a request up to a length, as `programs` lists them."""
    made = cli(
        *("programs", "-t", topology, "--axes", axes, "--placement", matrix, f"--{kind}", along),
        *("--length", "4", "--json"),
    )
    assert made.code == 0, made.err
    return [one["text"] for one in json.loads(made.out)["programs"]]


def with_programs(path: str, requests: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The plan with other requests: kind, axes, program (text) and chunks of each."""
    plan: dict[str, Any] = json.loads(Path(path).read_text())
    model = PlanModel.model_validate(plan, strict=False)
    topology = build_topology(model.topology, path)
    placement = Placement(tuple(map(tuple, plan["matrix"])))
    names = [axis["name"] for axis in plan["axes"]]
    blank = plan["requests"][0]
    plan["requests"] = []
    for asked in requests:
        kind = RequestKind(asked["kind"])
        axes = [names.index(name) for name in asked["axes"]]
        groups, scene = placement.groups(axes), Scene.of(topology, placement, axes)
        program = parse_program(asked["program"])
        checked = check_program(demand_of(kind), scene.hierarchy, program)
        assert checked.trace.violation is None
        shards = checked.trace.shards
        steps = []
        for one in program.instructions:
            lowered = lower(groups, scene.hierarchy.factors, scene.hierarchy.grouping(one))
            steps.append({**blank["steps"][0], "instruction": str(one), "groups": lowered.tolist()})
        plan["requests"].append(
            {
                **blank,
                "kind": kind.value,
                "axes": asked["axes"],
                "program": asked["program"],
                "chunks": asked.get("chunks", 1),
                "shards": None if shards is None else list(shards),
                "steps": steps,
            }
        )
    return plan


def ranks_of(plan: dict[str, Any]) -> int:
    """How many ranks a plan has."""
    return math.prod(axis["size"] for axis in plan["axes"])


THREE = """
name: three
library: none
algorithms: [ring]
levels:
  - {name: rack-row, size: 2, link: {kind: switch, bandwidth: 5 GB/s, latency: 20 us}}
  - {name: node, size: 2, link: {kind: switch, bandwidth: 10 GB/s, latency: 9 us, fabric: roce}}
  - {name: gpu, size: 3, link: {kind: switch, bandwidth: 100 GB/s, latency: 2 us}}
"""
"""Twelve devices on three levels."""

KINDS = {"reduce": "all-reduce", "reduce-scatter": "reduce-scatter", "all-gather": "all-gather"}
"""Options by which requests that have programs are given, and the kinds."""
MATRIX = [[2, 1, 3], [1, 2, 1]]


def three_levels(folder: Path) -> str:
    """A plan of dp=6, tp=2 on the twelve, dp both outside and inside tp."""
    topology = folder / "three.yaml"
    topology.write_text(THREE)
    fixed = ("--fix", "dp=rack-row:2", "--fix", "dp=gpu:3")
    return solved(folder, str(topology), "--axes", "dp=6,tp=2", "--reduce", "dp=1MiB", *fixed)


def every_program(folder: Path, most: int) -> list[dict[str, Any]]:
    """Requests along dp and along both axes, of every kind, with up to so many programs each.

    Programs run in one, two and three pieces by turns.
    """
    found = []
    for option, kind in KINDS.items():
        for along in ("dp", "dp+tp"):
            request = f"{along}=1MiB"
            given = str(folder / "three.yaml"), "dp=6,tp=2", json.dumps(MATRIX)
            texts = programs_of(*given, option, request)
            for i, text in enumerate(texts[:: -(-len(texts) // most)]):
                chunks = 1 + i % 3
                found.append(
                    {"kind": kind, "axes": along.split("+"), "program": text, "chunks": chunks}
                )
    return found


def rank_list_plan(
    folder: Path, ranks: Sequence[int], axes: Sequence[str], *, nodes: int, devices: int
) -> AnyPlan:
    """A plan without a matrix: the device of each rank, on nodes of so many devices."""
    path = folder / f"list{nodes}x{devices}-{len(axes)}.json"
    if not path.exists():
        topology = folder / "list.yaml"
        topology.write_text(LISTED.format(nodes=nodes, devices=devices))
        first = axes[0].partition("=")[0]
        given = ("--axes", ",".join(axes), "--reduce", f"{first}=1MiB")
        os.replace(solved(folder, str(topology), *given), path)
    plan = json.loads(path.read_text())
    plan["matrix"], plan["ranks"] = None, list(ranks)
    changed = folder / "listed.json"
    changed.write_text(json.dumps(plan))
    return read_plan(str(changed))


LISTED = """
name: listed
library: none
algorithms: [ring]
levels:
  - {{name: node, size: {nodes}, link: {{kind: switch, bandwidth: 10 GB/s, latency: 9 us}}}}
  - {{name: gpu, size: {devices}, link: {{kind: switch, bandwidth: 100 GB/s, latency: 2 us}}}}
"""


UNEVEN = """
name: uneven
library: none
algorithms: [ring]
levels:
  - {name: leaf, size: 3, link: {kind: switch, bandwidth: 5 GB/s, latency: 20 us, fabric: roce}}
  - {name: node, size: 3, link: {kind: switch, bandwidth: 50 GB/s, latency: 5 us, fabric: roce}}
  - {name: gpu, size: 2, link: {kind: switch, bandwidth: 300 GB/s, latency: 2 us}}
switches:
  - {name: leaf0, hosts: "n1,n3,n6"}
  - {name: leaf1, hosts: "n2,n4"}
  - {name: leaf2, hosts: "n5"}
"""
"""Three, two and one nodes of two devices under three leaves."""
REGULAR = UNEVEN.partition("switches:")[0]


def on_hosts(folder: Path, axes: str, most: int) -> dict[str, Any]:
    """A plan on the uneven nodes: up to so many programs of each kind along dp.

    They are those of a full tree that are valid here as well.
    """
    (folder / "uneven.yaml").write_text(UNEVEN)
    (folder / "full.yaml").write_text(REGULAR)
    path = solved(folder, str(folder / "uneven.yaml"), "--axes", axes, "--reduce", "dp=1MiB")
    plan: dict[str, Any] = json.loads(Path(path).read_text())
    problem, where = plan_problem(read_plan(path), path)
    assert isinstance(where, RankList)
    blank = plan["requests"][0]
    plan["requests"] = []
    for option, kind in KINDS.items():
        given = str(folder / "full.yaml"), "dp=18", "[[3,3,2]]", option, "dp=1MiB"
        request = Request(RequestKind(kind), ("dp",), 2**20)
        valid = []
        for text in programs_of(*given):
            made = _on_ranks(RankScene.of(problem, request, where), text)
            valid += [] if made is None else [{**blank, "kind": kind, "program": text, **made}]
        assert valid
        plan["requests"] += valid[:: -(-len(valid) // most)]
    return plan


def _on_ranks(scene: RankScene, text: str) -> dict[str, Any] | None:
    """Steps and shards of a program on a rank list; None: it is not valid there."""
    program = parse_program(text)
    try:
        trace = check_on_ranks(scene, program).trace
        groups = [scene.step_groups(one) for one in program.instructions]
    except (InputError, UnevenSlicesError):
        return None
    if trace.violation is not None:
        return None
    timed = scene.timed(program, trace.payload_rows)
    one = {"payload_bytes": 1.0, "seconds": 1.0, "algorithm": "ring", "protocol": "simple"}
    steps = [
        {"instruction": str(i), "groups": [list(g) for g in own], "bottleneck": None, **one}
        for i, own in zip(program.instructions, groups, strict=True)
    ]
    for step in steps:
        step["load_bytes"] = 1.0
    return {
        "steps": steps,
        "shards": None if trace.shards is None else list(trace.shards),
        "seconds": timed.seconds,
    }
