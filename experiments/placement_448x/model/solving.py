"""One scene of the study: the single all-reduce, the best program, and the best pipelined one.

A request's time depends on its placement through its scene only (:class:`p2smt.cost.scene.Scene`),
so each scene is solved once per payload and choice of algorithms.  The optimum comes twice: the
solver proves it, and the complete list of programs, each checked and costed, must agree.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace

from experiments.placement_448x.model.times import Times
from p2smt.cluster.topology import Algorithm, Topology
from p2smt.collectives.names import RequestKind
from p2smt.cost.link_bounds import link_bound_s
from p2smt.cost.loads.footprint import Digits
from p2smt.cost.scene import Scene
from p2smt.result import SearchLimits, Status
from p2smt.search.program_synthesis import Found, Priced, Task, best_program
from p2smt.search.programs_pipelined import Catalogs, SoughtProgram, best_pipelined

KIND = RequestKind.ALL_REDUCE
LENGTH = 5
LIMITS = SearchLimits(seed=0, workers=1)
RING, TREE, LIBRARY, TEXTBOOK = "ring", "tree", "library", "textbook"
"""Choices of algorithms: a library restricted to rings, or to trees (NCCL_ALGO=Ring, =Tree; what
has no tree runs as a ring); its own choice; and the textbook's costs: no library, nominal rates, no
cost of a call, the fastest of ring and tree."""


@dataclass(frozen=True, slots=True)
class Run(Times):
    """One scene with one payload and choice of algorithms."""

    payload_bytes: int
    algorithm: str


@dataclass(frozen=True, slots=True)
class Proof:
    """The solver's search for one scene: CPU seconds, and how many programs there are."""

    programs: int
    cpu_s: float


def choices(topology: Topology) -> dict[str, Topology]:
    """The cluster with each choice of algorithms that it has; without a library it is its own."""
    found = {RING: topology.running((Algorithm.RING,)), LIBRARY: topology}
    if topology.library and Algorithm.TREE in topology.known_algorithms:
        found[TREE] = topology.running((Algorithm.TREE,))
    if topology.library:
        found[TEXTBOOK] = topology.nominal()
    return found


@dataclass(slots=True)
class Solver:
    """Solves scenes of one cluster; lists of programs are shared by all of them."""

    topology: Topology
    length: int = LENGTH
    listings: Catalogs = field(default_factory=Catalogs)

    def run(self, digits: tuple[Digits, ...], payload_bytes: int, algorithm: str) -> Run:
        """Default, best and best pipelined time."""
        scene = Scene(choices(self.topology)[algorithm], digits)
        best = self._listed(scene, payload_bytes, 1)
        pipelined = self._listed(scene, payload_bytes, None)
        return Run(
            scene.fixed_time(KIND, payload_bytes).seconds,
            best.seconds,
            str(best.program),
            pipelined.seconds,
            pipelined.chunks,
            str(pipelined.program),
            link_bound_s(scene.topology, digits, KIND, payload_bytes),
            payload_bytes,
            algorithm,
        )

    def task(self, scene: Scene) -> Task:
        """The synthesis that a scene asks for."""
        return Task(KIND, scene.hierarchy, self.length)

    def _listed(self, scene: Scene, payload_bytes: int, pipeline: int | None) -> Priced:
        sought = SoughtProgram(self.task(scene), scene, payload_bytes, pipeline, self.listings)
        return optimum(best_pipelined(sought, LIMITS))

    def proved(self, digits: tuple[Digits, ...], payload_bytes: int) -> Priced:
        """The best program by the solver, with its proof."""
        scene = Scene(self.topology, digits)
        return optimum(best_program(self.task(scene), scene, payload_bytes, LIMITS))

    def prove(self, digits: tuple[Digits, ...], payload_bytes: int, listed_s: float) -> Proof:
        """Have the solver find the optimum with its proof; it must be the list's."""
        start = time.process_time()
        best = self.proved(digits, payload_bytes)
        cpu_s = time.process_time() - start
        if abs(best.seconds - listed_s) > 1e-9 * listed_s:
            raise RuntimeError(f"{digits}: {best.seconds} s proved, {listed_s} s listed")
        _, programs = self.listings.of(self.task(Scene(self.topology, digits)), LIMITS)
        return Proof(len(programs), cpu_s)


def optimum(found: Found) -> Priced:
    """The program of a search that ended with a proof.

    Raises:
        RuntimeError: it did not.
    """
    if found.status is not Status.OPTIMAL or found.best is None:
        raise RuntimeError(f"a best program is {found.status.value}, not proved")
    return found.best


def longer(solver: Solver, length: int) -> Solver:
    """The same for programs up to another length."""
    return replace(solver, length=length, listings=Catalogs())
