"""Times of whole programs and requests on a placement: footprints, payloads, step times."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from p2smt.cluster.nodes.even import check_even
from p2smt.cluster.topology import Topology
from p2smt.collectives.names import DIRECT, Collective, RequestKind
from p2smt.cost.alpha_beta import regular_model, relevant_digits, send_model
from p2smt.cost.loads.footprint import Digits, digits_of
from p2smt.cost.step_time import StepTime
from p2smt.parallelism.placement import Placement
from p2smt.programs.program import Grouping, Hierarchy, Program


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
        self, collective: Collective, grouping: Grouping, payload_bytes: float
    ) -> StepTime:
        """Time of one instruction on all groups at once."""
        return regular_model(self.topology, self.digits, grouping, collective).time(payload_bytes)

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

    def fixed_time(self, kind: RequestKind, payload_bytes: int) -> StepTime:
        """Time of an all-to-all or a send, or of the single collective of other requests."""
        whole = Grouping(0, self.hierarchy.depth)
        if kind is RequestKind.SEND:
            return send_model(self.topology, self.digits, RequestKind.SEND).time(payload_bytes)
        operation = DIRECT.get(kind, RequestKind.ALL_TO_ALL)
        model = regular_model(self.topology, self.digits, whole, operation)
        return model.time(payload_bytes)
