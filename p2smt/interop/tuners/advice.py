"""Which file makes a plan's library choose as the plan counts on, and what that file would pin."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from p2smt.cluster.topology import Topology
from p2smt.collectives.names import Operation
from p2smt.cost.library.ways import library_choice
from p2smt.cost.loads.footprint_explicit import explicit_footprint
from p2smt.errors import InputError
from p2smt.interop.tuners.choices import Comm
from p2smt.interop.tuners.members import comm_of, plan_cluster
from p2smt.interop.tuners.mpi_writers import MPI_OPERATIONS, mpi_writer
from p2smt.interop.tuners.regions import OPERATIONS, Pair, pair_of
from p2smt.plans.file_model import AnyPlan, StepModel
from p2smt.units import format_bytes

_MOST_SHOWN = 2


@dataclass(frozen=True, slots=True)
class LibraryAdvice:
    """What makes a library choose as a plan counts on: in short, in whole, and the commands."""

    short: str
    words: str
    commands: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Family:
    """Libraries that read the same files: the collectives that these name, the formats with the
    usual names of such files, and those that are wanted beside them between nodes.

    complete: whether a file says what the library would take by itself, too.
    """

    operations: tuple[Operation, ...]
    files: tuple[tuple[str, str], ...]
    between: tuple[tuple[str, str], ...] = ()
    complete: bool = False


_OF_NCCL, _OF_MPI = tuple(OPERATIONS.values()), tuple(MPI_OPERATIONS.values())
_FAMILIES = {
    "nccl": _Family(_OF_NCCL, (("nccl-tuner", "nccl_tuner.conf"),), complete=True),
    "rccl": _Family(_OF_NCCL, (("rccl-tuner", "rccl_tuner.csv"),)),
    "openmpi-4": _Family(_OF_MPI, (("ompi-tuned", "rules.conf"),)),
    "openmpi": _Family(_OF_MPI, (("ompi-tuned", "rules.conf"),), (("ompi-han", "han.conf"),)),
    "mpich": _Family(_OF_MPI, (("mpich", "mpich.json"),), (("mpich-ch4", "ch4.json"),)),
}


@dataclass(frozen=True, slots=True)
class _Choice:
    """What a plan counts on for a collective, and what the library takes by itself."""

    told: Pair
    own: Pair
    call: str

    def __str__(self) -> str:
        return f"{_way(self.told)} for {self.call}"


def library_advice(plan: AnyPlan, path: str) -> LibraryAdvice | None:
    """The commands that write the file of a plan's library, and what it would pin.

    None: the library reads no file, or the plan has no collective that such a file could name.
    """
    source = f"plan {path[:200]!r}"
    topology = plan_cluster(plan, source)
    name = topology.library_name
    family = _FAMILIES.get(name) or _FAMILIES.get(name.partition("-")[0])
    if family is None:
        return None
    try:
        choices = [*dict.fromkeys(_choices(plan, topology, family, source))]
    except InputError:  # such as groups with more ranks on one node than on another
        return None
    if not choices:
        return None
    wanted = next((one for one in choices if one.told != one.own), None)
    between = family.between if _crossing(plan, topology) else ()
    commands = [_command(path, row, family, wanted) for row in (*family.files, *between)]
    return _advice(name, family, choices, tuple(commands))


def _command(path: str, row: tuple[str, str], family: _Family, wanted: _Choice | None) -> str:
    """What writes a file: with tables, where without them it would change nothing."""
    to, file = row
    tables = ""
    if wanted is not None or not family.complete:
        name, forced = _forced(to, wanted)
        tables = f" --measured own=own.txt --measured {name}={forced}.txt"
    return f"p2smt export {shlex.quote(os.path.basename(path))} --to {to}{tables} -o {file}"


def _forced(to: str, wanted: _Choice | None) -> tuple[str, str]:
    """How ``--measured`` names what is wanted, where the format has that name, and its table."""
    mpi = mpi_writer(to)
    if wanted is None:
        return "WAY", "forced"
    if mpi is None:
        return "/".join(wanted.told), "-".join(wanted.told)
    known = {name for of in MPI_OPERATIONS for name in mpi.algorithms(of, 2)}
    name = wanted.told[0]
    return (name, name) if name in known else ("WAY", "forced")


def _choices(plan: AnyPlan, topology: Topology, family: _Family, source: str) -> Iterator[_Choice]:
    """Those of the requests that take longest first."""
    named = {operation.value: operation for operation in family.operations}
    requests = sorted(plan.requests, key=lambda one: -one.times * (one.seconds or 0.0))
    for step in (step for request in requests for step in request.steps):
        operation = named.get(step.instruction.partition(" ")[0])
        group = max(step.groups, key=len, default=[])
        if operation is not None and len(group) > 1:
            yield _choice(step, topology, operation, group, source)


def _choice(
    step: StepModel, topology: Topology, operation: Operation, group: list[int], source: str
) -> _Choice:
    comm: Comm = comm_of(group, topology.devices_under(topology.node_level), source)
    ranks = np.array([group], dtype=np.int64)
    footprint = explicit_footprint(topology, ranks, topology.known_library.joins_nodes)
    found = library_choice(topology, footprint, operation)
    way = found.ways[found.pick(step.payload_bytes)]
    call = f"{operation.value} of {format_bytes(step.payload_bytes)} on {comm}"
    told = step.algorithm.replace("-", "_"), step.protocol
    between_peers = way.algorithm is None and step.algorithm == operation.value
    return _Choice(told, told if between_peers else pair_of(way), call)


def _crossing(plan: AnyPlan, topology: Topology) -> bool:
    under = topology.devices_under(topology.node_level)
    steps = (step for request in plan.requests for step in request.steps)
    return any(len({one // under for one in group}) > 1 for s in steps for group in s.groups)


def _way(pair: Pair) -> str:
    algorithm, protocol = pair
    name = algorithm.replace("_", "-")
    return name if protocol == "simple" else f"{name} {protocol}"


def _advice(
    library: str, family: _Family, choices: Sequence[_Choice], commands: tuple[str, ...]
) -> LibraryAdvice:
    """What the file pins, or why it changes nothing yet."""
    other = [one for one in choices if one.told != one.own]
    if other:
        first = other[0]
        return LibraryAdvice(
            f"{_way(first.told)}, not {library}'s own {_way(first.own)}, if measured",
            f"{library} by itself takes {_way(first.own)} where the plan counts on "
            f"{_listed(other)}: the file pins that if --measured tables show the gain",
            commands,
        )
    counts = f"what the plan counts on: {_listed(choices)}"
    pins = f"{library} is predicted to take by itself {counts}; the file "
    more = "pins that" if family.complete else "pins what --measured tables show to gain over it"
    return LibraryAdvice(f"as {library} chooses by itself", pins + more, commands)


def _listed(choices: Sequence[_Choice]) -> str:
    shown = "; ".join(map(str, choices[:_MOST_SHOWN]))
    more = len(choices) - _MOST_SHOWN
    return f"{shown} and {more} more" if more > 0 else shown
