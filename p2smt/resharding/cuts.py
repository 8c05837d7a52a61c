"""Where the axes of a mesh may be cut: into primes, or only where the cluster's levels cut them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from p2smt.cluster.topology import Topology
from p2smt.errors import InputError
from p2smt.resharding.endpoints import Splits
from p2smt.resharding.steps import ArrayStep
from p2smt.resharding.time_left import level_splits
from p2smt.resharding.types import Mesh
from p2smt.result import SolveStats, Status


class Cuts(Enum):
    """PRIMES: anywhere.  LEVELS: at the factors by which the levels split the axes."""

    PRIMES = "primes"
    LEVELS = "levels"

    @staticmethod
    def parse(text: str) -> Cuts:
        """The cuts of that name.

        Raises:
            InputError: there are none.
        """
        for known in Cuts:
            if known.value == text:
                return known
        raise InputError(f"cuts {text[:40]!r}", "are neither primes nor levels", "choose one")


def splits_of(cuts: Cuts, topology: Topology, mesh: Mesh) -> Splits | None:
    """What :func:`p2smt.resharding.endpoints.ends_of` takes for these cuts."""
    return None if cuts is Cuts.PRIMES else level_splits(topology, mesh)


# What a search for a redistribution returns.


@dataclass(frozen=True, slots=True)
class PathResult:
    """The fastest steps found, in the frame of one of the ends that were given (``ends``: which).

    OPTIMAL: no plan under the cap is faster (of any length, or of at most as many steps as were
    asked for); INFEASIBLE: none keeps to the cap.  ``bound_s`` holds whatever the status.
    """

    status: Status
    ends: int
    steps: tuple[ArrayStep, ...]
    seconds: float | None
    bound_s: float
    stats: SolveStats
