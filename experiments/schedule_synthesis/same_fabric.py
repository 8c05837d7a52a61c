"""Whether both tools are asked about the same fabric: what edges may carry together in a round."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from fractions import Fraction
from pathlib import Path

from p2smt.errors import ExecutionError
from p2smt.fabric.fabric import Fabric
from p2smt.interop.fabrics import read_fabric

Limits = dict[frozenset[tuple[int, int]], Fraction]

_DUMP = """
import argparse, sys
from msccl.cli.known_topologies import KnownTopologies
from msccl.serialization import MSCCLEncoder

parser = argparse.ArgumentParser()
known = KnownTopologies(parser)
print(MSCCLEncoder().encode(known.create(parser.parse_args(sys.argv[1:]))))
"""
"""Run by the Python of msccl-tools: the topology of its command line, as its own JSON."""


def peer_fabric(python: str, environment: Mapping[str, str], topology: Sequence[str]) -> Fabric:
    """What msccl-tools means by a topology, read as any of its files.

    Raises:
        ExecutionError: msccl-tools does not run.
    """
    command = [python, "-c", _DUMP, *topology]
    done = subprocess.run(command, env=dict(environment), capture_output=True, text=True)
    if done.returncode != 0:
        raise ExecutionError(f"msccl-tools does not run: {done.stderr.strip()[-200:]}")
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "topology.json"
        file.write_text(done.stdout, encoding="utf-8")
        return read_fabric(str(file))


def limits(fabric: Fabric) -> Limits:
    """Chunks a round by the edges that share them, without limits that others imply."""
    shared: Limits = {}
    for number, capacity in enumerate(fabric.capacities):
        edges = frozenset((e.source, e.target) for e in fabric.edges if number in e.loads)
        if edges:
            shared[edges] = min(capacity.bandwidth, shared.get(edges, capacity.bandwidth))
    return {
        edges: most
        for edges, most in shared.items()
        if not any(edges < wider and most >= least for wider, least in shared.items())
    }


def renumbering(ours: Limits, theirs: Limits, ranks: int) -> tuple[int, ...] | None:
    """Their number of each of our ranks, such that the limits are the same; None: there is none."""
    mine, other = _pairs(ours), _pairs(theirs)

    def extended(chosen: tuple[int, ...]) -> tuple[int, ...] | None:
        if len(chosen) == ranks:
            return chosen if _renumbered(ours, chosen) == theirs else None
        for rank in range(ranks):
            if rank not in chosen and _fits(mine, other, (*chosen, rank)):
                found = extended((*chosen, rank))
                if found is not None:
                    return found
        return None

    return extended(())


Pairs = dict[tuple[int, int], list[Fraction]]


def _pairs(shared: Limits) -> Pairs:
    """Of each edge the limits on it, ascending."""
    found: Pairs = {}
    for edges, most in shared.items():
        for edge in edges:
            found.setdefault(edge, []).append(most)
    return {edge: sorted(values) for edge, values in found.items()}


def _fits(mine: Pairs, other: Pairs, chosen: tuple[int, ...]) -> bool:
    """Whether the last rank chosen has the edges to and from the others that ours has."""
    new = len(chosen) - 1
    return all(
        mine.get(pair) == other.get((chosen[pair[0]], chosen[pair[1]]))
        for rank in range(new)
        for pair in ((rank, new), (new, rank))
    )


def _renumbered(shared: Limits, numbers: tuple[int, ...]) -> Limits:
    return {
        frozenset((numbers[source], numbers[target]) for source, target in edges): most
        for edges, most in shared.items()
    }
