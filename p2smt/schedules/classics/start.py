"""What the generators share: checked sizes, and a builder for a collective."""

from __future__ import annotations

from p2smt.collectives.contract import contract
from p2smt.errors import InputError
from p2smt.schedules.construction.builder import Builder

MAX_RANKS = 4096
MAX_GOALS = 2**20


def start(
    collective: str, ranks: int, chunks: int = 1, *, in_place: bool = True, root: int = 0
) -> Builder:
    """A builder for a collective; ``chunks`` as in :func:`p2smt.collectives.contract.contract`.

    Raises:
        InputError: fewer than two ranks, no chunks, no such root, or a schedule too large.
    """
    check_ranks(ranks)
    check(chunks >= 1, f"{chunks} chunks", "must be at least 1")
    spread = collective in ("allgather", "reduce_scatter", "alltoall")
    size = ranks * chunks if spread else chunks
    text = f"{ranks} ranks with buffers of {size} chunks"
    check(ranks * size <= MAX_GOALS, text, f"are more than {MAX_GOALS} chunks in all")
    wanted = contract(collective, ranks, chunks, in_place=in_place, root=root)
    places = contract(collective, ranks, chunks, in_place=True, root=root).shift
    inputs = chunks if collective == "allgather" else size
    outputs = chunks if collective == "reduce_scatter" else size
    if collective == "alltoall":
        return Builder(wanted, inputs, outputs)
    return Builder(wanted, inputs, outputs, [abs(place) for place in places])


def check(condition: bool, given: str, rule: str, remedy: str = "") -> None:
    """Raise InputError unless a condition holds."""
    if not condition:
        raise InputError(given, rule, remedy)


def check_ranks(ranks: int) -> None:
    """Raise InputError unless there may be so many ranks."""
    check(2 <= ranks <= MAX_RANKS, f"{ranks} ranks", f"must be 2 to {MAX_RANKS}")


def check_power(ranks: int, algorithm: str) -> None:
    """Raise InputError unless the number of ranks is a power of two."""
    check_ranks(ranks)
    check(ranks & (ranks - 1) == 0, f"{ranks} ranks", f"{algorithm} needs a power of two")


def check_nodes(ranks: int, gpus: int) -> int:
    """The number of nodes; InputError unless each has so many gpus."""
    check_ranks(ranks)
    check(1 <= gpus <= ranks, f"{gpus} gpus per node", f"must be 1 to {ranks}")
    check(ranks % gpus == 0, f"{ranks} ranks", f"do not fill nodes of {gpus} gpus")
    return ranks // gpus


def rotated(ranks: int, root: int) -> list[int]:
    """All ranks in order, from the root on."""
    return [(root + i) % ranks for i in range(ranks)]
