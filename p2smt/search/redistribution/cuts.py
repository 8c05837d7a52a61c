"""Where the axes of a mesh may be cut: into primes, or only where the cluster's levels cut them."""

from __future__ import annotations

from enum import Enum

from p2smt.arrays.ends import Splits
from p2smt.arrays.mesh import Mesh
from p2smt.cluster.topology import Topology
from p2smt.cost.redistribution.level_cuts import level_splits
from p2smt.errors import InputError


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
    """What :func:`p2smt.arrays.ends.ends_of` takes for these cuts."""
    return None if cuts is Cuts.PRIMES else level_splits(topology, mesh)
