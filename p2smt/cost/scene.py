"""Times of whole programs and requests on a placement: footprints, payloads, step times."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from p2smt.cluster.topology import Algorithm, Topology, check_even
from p2smt.collectives.dispatch import AnyKind, Dispatch
from p2smt.collectives.names import DIRECT, ProgramOperation, RequestKind
from p2smt.cost.bounds import priced_bound_s, regular_model, relevant_digits, send_model
from p2smt.cost.link_bounds import link_bound_s
from p2smt.cost.loads.footprint import Digits, digits_of
from p2smt.cost.step_time import StepCostModel, StepTime
from p2smt.parallelism.placement import Placement
from p2smt.parallelism.request import Request
from p2smt.programs.program import Grouping, Hierarchy, Program
from p2smt.result import SAME


def step_payloads(
    payload_rows: Sequence[int], rows: int, payload_bytes: int, chunks: int = 1
) -> tuple[float, ...]:
    """Bytes per device that each step works on, for one of so many equal chunks."""
    return tuple(payload_bytes * count / rows / chunks for count in payload_rows)


@dataclass(frozen=True, slots=True)
class Scene:
    """Where a request runs: the topology and, per level, the digits of the request's axes.

    Two placements with the same scene give a request the same times.
    """

    topology: Topology
    digits: tuple[Digits, ...]

    @staticmethod
    def of(topology: Topology, placement: Placement, axes: Sequence[int]) -> Scene:
        """The scene of the axes with these indices.

        Raises:
            InputError: the topology is uneven, so no matrix says where its ranks lie.
        """
        check_even(topology)
        return Scene(topology, relevant_digits(topology, digits_of(placement, axes)))

    @property
    def hierarchy(self) -> Hierarchy:
        """The synthesis hierarchy: merged factors by level name."""
        factors = []
        for digits in self.digits:
            total = 1
            for size, _ in digits:
                total *= size
            factors.append(total)
        return Hierarchy.of(self.topology.names, factors)

    def step_time(
        self, collective: ProgramOperation, grouping: Grouping, payload_bytes: float
    ) -> StepTime:
        """Time of one instruction on all groups at once."""
        return self.step_model(collective, grouping).time(payload_bytes)

    def step_model(self, collective: ProgramOperation, grouping: Grouping) -> StepCostModel:
        """The ways to run one instruction on all groups at once, and who chooses among them."""
        return regular_model(self.topology, self.digits, grouping, collective)

    def program_times(
        self,
        program: Program,
        payload_rows: Sequence[int],
        payload_bytes: int,
        chunks: int = 1,
    ) -> tuple[StepTime, ...]:
        """Time of each step for one of so many chunks; ``payload_rows`` of the k rows are a
        step's payload."""
        hierarchy = self.hierarchy
        payloads = step_payloads(payload_rows, hierarchy.size, payload_bytes, chunks)
        return tuple(
            self.step_time(i.collective, hierarchy.grouping(i), payload)
            for i, payload in zip(program.instructions, payloads, strict=True)
        )

    def fixed_time(self, kind: AnyKind, payload_bytes: int) -> StepTime:
        """Time of an all-to-all, a dispatch or a send, or of the others' single collective."""
        return self.fixed_model(kind).time(payload_bytes)

    def fixed_model(self, kind: AnyKind) -> StepCostModel:
        """The ways to run it, and who chooses among them."""
        whole = Grouping(0, self.hierarchy.depth)
        if isinstance(kind, Dispatch):
            return regular_model(self.topology, self.digits, whole, kind)
        if kind is RequestKind.SEND:
            return send_model(self.topology, self.digits, RequestKind.SEND)
        operation = DIRECT.get(kind, RequestKind.ALL_TO_ALL)
        return regular_model(self.topology, self.digits, whole, operation)

    def least_s(self, request: Request) -> float:
        """Least time of one execution that any program can have, as the model prices it.

        That of an all-to-all is exact.
        """
        if request.kind.has_exchanges:
            return self._least_exchange_s(request.payload_bytes)
        return priced_bound_s(self.topology, self.digits, request.kind, request.payload_bytes)

    def _least_exchange_s(self, payload_bytes: int) -> float:
        """The least time of all-to-alls that cross every level once, in whatever order."""
        depth = self.hierarchy.depth
        least = [0.0]
        for inner in range(1, depth + 1):
            last = (
                before
                + self.step_time(
                    RequestKind.ALL_TO_ALL, Grouping(outer, inner), payload_bytes
                ).seconds
                for outer, before in enumerate(least)
            )
            least.append(min(last))
        return least[-1]

    def physical_bound_s(self, request: Request) -> float:
        """Least time of one execution that the links of the scene allow."""
        return link_bound_s(self.topology, self.digits, request.kind, request.payload_bytes)


# What naming an algorithm would give: a library does not always choose the cheapest that it has.
# Where a program is faster than the single collective, and that collective by another algorithm of
# the same library is as fast, the gain is the library's choice and not the program's.


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


@dataclass(frozen=True, slots=True)
class NamedWay:
    """A way to run a single collective that its library has and does not choose.

    ``chosen`` and ``cheapest`` are times of one execution; ``settings`` are the variables that name
    the cheapest way, as in ``NCCL_ALGO=Ring``, and empty where the library takes none.
    ``behind``: by which part longer than its choice the library estimates that way; None: it does
    not choose by an estimate.  ``known``: whether tables of both algorithms have the cheapest
    faster, too; None: no table has both.
    """

    chosen: StepTime
    cheapest: StepTime
    settings: str
    behind: float | None = None
    known: bool | None = None


def cheapest_single(scene: Scene, kind: AnyKind, payload_bytes: int) -> StepTime:
    """The single collective by the cheapest way that the library has, whatever it chooses."""
    return replace(scene, topology=scene.topology.cheapest()).fixed_time(kind, payload_bytes)


def named_way(scene: Scene, kind: AnyKind, payload_bytes: int) -> NamedWay | None:
    """The cheapest way, where the library's rule takes a slower one; else None."""
    if not scene.topology.library_name or not kind.has_programs or scene.hierarchy.size == 1:
        return None
    chosen = scene.fixed_time(kind, payload_bytes)
    cheapest = cheapest_single(scene, kind, payload_bytes)
    if cheapest.seconds >= chosen.seconds * (1 - SAME):
        return None
    rule = scene.fixed_model(kind).chooser
    behind = rule.behind(cheapest.algorithm, payload_bytes) if rule else None
    return NamedWay(chosen, cheapest, _settings(scene, kind, cheapest), behind)


def _settings(scene: Scene, kind: AnyKind, cheapest: StepTime) -> str:
    """The protocol is named only where the library would take another with this algorithm.

    It is never named alone: the library might then take another algorithm.
    """
    known = {algorithm.value: algorithm for algorithm in ALGORITHMS}
    algorithm, protocol = known.get(cheapest.algorithm), PROTOCOLS.get(cheapest.protocol)
    if scene.topology.known_library.vendor not in NAMED_BY or not (algorithm and protocol):
        return ""
    named = f"NCCL_ALGO={ALGORITHMS[algorithm]}"
    by_itself = _only(scene, algorithm).fixed_time(kind, int(cheapest.payload_bytes))
    same = by_itself.protocol == cheapest.protocol
    return named if same else f"{named} NCCL_PROTO={protocol}"


def _only(scene: Scene, algorithm: Algorithm) -> Scene:
    """The same place where the library may use one algorithm alone, and chooses its protocol."""
    topology: Topology = scene.topology.running((algorithm,))
    return replace(scene, topology=topology)
