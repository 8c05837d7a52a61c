"""Constraint-solver-based synthesis of parallelism placements and reduction programs.

    import p2smt

    cluster = p2smt.load_topology("azure-ndv4:4")
    problem = p2smt.Problem(
        cluster,
        p2smt.parse_axes("dp=8,tp=4"),
        (p2smt.reduce("dp=1GiB"), p2smt.reduce("tp=64MiB*128")),
    )
    solution = p2smt.solve(problem)

Names are imported on first use, so that ``import p2smt`` is quick.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from p2smt.cluster.file import load_topology as load_topology
    from p2smt.cluster.topology import Level as Level
    from p2smt.cluster.topology import Link as Link
    from p2smt.cluster.topology import LinkKind as LinkKind
    from p2smt.cluster.topology import Piece as Piece
    from p2smt.cluster.topology import Topology as Topology
    from p2smt.errors import EncodingBug as EncodingBug
    from p2smt.errors import InputError as InputError
    from p2smt.parallelism.placement import ParallelismAxis as ParallelismAxis
    from p2smt.parallelism.placement import Placement as Placement
    from p2smt.parallelism.request import Problem as Problem
    from p2smt.parallelism.request import Request as Request
    from p2smt.parallelism.request import all_gather as all_gather
    from p2smt.parallelism.request import all_to_all as all_to_all
    from p2smt.parallelism.request import parse_axes as parse_axes
    from p2smt.parallelism.request import reduce as reduce
    from p2smt.parallelism.request import reduce_scatter as reduce_scatter
    from p2smt.parallelism.request import send as send
    from p2smt.plans.solution import Solution as Solution
    from p2smt.problems.placement import PlacementProblem as PlacementProblem
    from p2smt.programs.program import parse_program as parse_program
    from p2smt.result import SearchLimits as SearchLimits
    from p2smt.result import Status as Status
    from p2smt.search.placements import placements as placements
    from p2smt.search.solve import solve as solve

_HOMES = {
    "p2smt.search.placements": ("placements",),
    "p2smt.search.solve": ("solve",),
    "p2smt.errors": ("EncodingBug", "InputError"),
    "p2smt.parallelism.placement": ("ParallelismAxis", "Placement"),
    "p2smt.problems.placement": ("PlacementProblem",),
    "p2smt.programs.program": ("parse_program",),
    "p2smt.parallelism.request": (
        *("Problem", "Request", "parse_axes"),
        *("reduce", "reduce_scatter", "all_gather", "all_to_all", "send"),
    ),
    "p2smt.result": ("SearchLimits", "Status"),
    "p2smt.plans.solution": ("Solution",),
    "p2smt.cluster.topology": ("Level", "Link", "LinkKind", "Piece", "Topology"),
    "p2smt.cluster.file": ("load_topology",),
}
_HOME = {name: module for module, names in _HOMES.items() for name in names}
__all__ = list(_HOME)
__version__ = "0.1.0"


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME})


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'p2smt' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOME[name]), name)
