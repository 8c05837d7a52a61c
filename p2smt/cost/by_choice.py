"""What naming an algorithm would give: a library does not always choose the cheapest that it has.

Where a program is faster than the single collective, and that collective by another algorithm of
the same library is as fast, the gain is the library's choice and not the program's.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from p2smt.cluster.topology import Algorithm, Topology
from p2smt.collectives.names import RequestKind
from p2smt.cost.library.registry import library_of
from p2smt.cost.scene import Scene
from p2smt.cost.step_time import StepTime

NAMED_BY = ("NVIDIA", "AMD")
"""Vendors whose libraries take NCCL_ALGO and NCCL_PROTO."""
ALGORITHMS = {
    Algorithm.RING: "Ring",
    Algorithm.TREE: "Tree",
    Algorithm.NVLS: "NVLS",
    Algorithm.NVLS_TREE: "NVLSTree",
    Algorithm.PAT: "PAT",
}
PROTOCOLS = {"ll": "LL", "ll128": "LL128", "simple": "Simple"}
_SAME = 1e-9


@dataclass(frozen=True, slots=True)
class NamedWay:
    """A way to run a single collective that its library has and does not choose.

    ``chosen`` and ``cheapest`` are times of one execution; ``settings`` are the variables that name
    the cheapest way, as in ``NCCL_ALGO=Ring``, and empty where the library takes none.
    """

    chosen: StepTime
    cheapest: StepTime
    settings: str


def cheapest_single(scene: Scene, kind: RequestKind, payload_bytes: int) -> StepTime:
    """The single collective by the cheapest way that the library has, whatever it chooses."""
    return replace(scene, topology=scene.topology.cheapest()).fixed_time(kind, payload_bytes)


def named_way(scene: Scene, kind: RequestKind, payload_bytes: int) -> NamedWay | None:
    """The cheapest way, where the library's rule takes a slower one; else None."""
    if not scene.topology.library or not kind.has_programs or scene.hierarchy.size == 1:
        return None
    chosen = scene.fixed_time(kind, payload_bytes)
    cheapest = cheapest_single(scene, kind, payload_bytes)
    if cheapest.seconds >= chosen.seconds * (1 - _SAME):
        return None
    return NamedWay(chosen, cheapest, _settings(scene, kind, cheapest))


def _settings(scene: Scene, kind: RequestKind, cheapest: StepTime) -> str:
    """The protocol is named only where the library would take another with this algorithm.

    It is never named alone: the library might then take another algorithm.
    """
    known = {algorithm.value: algorithm for algorithm in ALGORITHMS}
    algorithm, protocol = known.get(cheapest.algorithm), PROTOCOLS.get(cheapest.protocol)
    if library_of(scene.topology.library).vendor not in NAMED_BY or not (algorithm and protocol):
        return ""
    named = f"NCCL_ALGO={ALGORITHMS[algorithm]}"
    by_itself = _only(scene, algorithm).fixed_time(kind, int(cheapest.payload_bytes))
    same = by_itself.protocol == cheapest.protocol
    return named if same else f"{named} NCCL_PROTO={protocol}"


def _only(scene: Scene, algorithm: Algorithm) -> Scene:
    """The same place where the library may use one algorithm alone, and chooses its protocol."""
    topology: Topology = scene.topology.running((algorithm,))
    return replace(scene, topology=topology)
