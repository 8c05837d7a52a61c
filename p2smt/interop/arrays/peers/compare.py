"""A plan beside what other planners do with the same question, at the same prices."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from p2smt.arrays.array_type import ArrayType, Uneven
from p2smt.arrays.ends import Ends, ends_of, with_shape
from p2smt.arrays.frame import joined
from p2smt.arrays.layout import Layout
from p2smt.arrays.memory import MemoryLimit, peak_bytes, peak_step_bytes, within
from p2smt.arrays.mesh import Mesh
from p2smt.arrays.steps import ArrayStep
from p2smt.cluster.topology import Topology
from p2smt.cost.redistribution.prices import StepPrices
from p2smt.errors import InputError
from p2smt.files.yaml_text import read_text
from p2smt.interop.arrays.peers.replay import PeerPath, first_inside
from p2smt.interop.arrays.peers.shardy_file import ShardyCase, read_shardy
from p2smt.plans.redistribution.plan import RedistributionPlan

VARIANTS = (
    ("dtensor greedy", "GREEDY", False),
    ("dtensor graph", "GRAPH", False),
    ("dtensor greedy, flattened meshes", "GREEDY", True),
    ("dtensor graph, flattened meshes", "GRAPH", True),
)
"""DTensor's planners: name, member of ``TorchPlanner``, with every flattened mesh registered."""


DISORDERED = "torch 2.13 moves wrong data on a mesh whose devices do not increase"


@dataclass(frozen=True, slots=True)
class PeerRow:
    """What a peer does.  ``seconds`` and both peaks None: it has no plan of the six steps.

    ``peak_bytes`` is the largest single state, ``peak_step_bytes`` the cap on steps that its plan
    needs, ``over_cap`` whether it breaks the cap that ours keeps to, ``note`` why there is no plan,
    or what is to be known of it.
    """

    name: str
    seconds: float | None
    peak_bytes: int | None
    peak_step_bytes: int | None
    over_cap: bool
    steps: tuple[ArrayStep, ...]
    note: str


def compare_peers(
    plan: RedistributionPlan, names: Sequence[str], shardy_file: Path | None = None
) -> list[PeerRow]:
    """Rows of the named peers, of ``dtensor`` and ``shardy``; DTensor has four.

    ``shardy_file``: MLIR that Shardy emitted for this redistribution.

    Raises:
        InputError: no such peer, or a file that cannot be read.
    """
    asking: Mapping[str, Callable[[], Iterator[PeerRow]]] = {
        "dtensor": lambda: _dtensor(plan),
        "shardy": lambda: _shardy(plan, shardy_file),
    }
    if unknown := [name for name in names if name not in asking]:
        known = " and ".join(asking)
        raise InputError(f"peer {unknown[0][:40]!r}", f"is none of {known}", "name one of these")
    return [row for name in dict.fromkeys(names) for row in asking[name]()]


def priced_row(
    name: str, ends: Ends, path: PeerPath, prices: StepPrices, memory: MemoryLimit, note: str = ""
) -> PeerRow:
    """A peer's path with the time and the memory that it has here."""
    if path.outside:
        return PeerRow(name, None, None, None, False, path.steps, path.outside)
    seconds = sum(prices.step(step).seconds for step in path.steps)
    peak = peak_bytes(ends.frame, [ends.source, *(step.after for step in path.steps)])
    needed = peak_step_bytes(ends.frame, path.steps, memory.keep_source)
    needed = max(needed, ends.frame.local_bytes(ends.source))
    over = not within(ends.frame, ends.source, path.steps, memory)
    return PeerRow(name, seconds, peak, needed, over, path.steps, note)


def _none(name: str, note: str) -> PeerRow:
    return PeerRow(name, None, None, None, False, (), note)


def _dtensor(plan: RedistributionPlan) -> Iterator[PeerRow]:
    if find_spec("torch") is None:
        yield _none("dtensor", "torch is not installed: pip install torch==2.13.0")
        return
    source, target = plan.source, plan.target
    notes = []
    if any(list(end.mesh.devices) != sorted(end.mesh.devices) for end in (source, target)):
        notes.append(DISORDERED)
    if source.uneven is Uneven.PADDED and source.shape != plan.frame.shape:
        source, target = (with_shape(end, plan.frame.shape) for end in (source, target))
        notes.append("of the padded array")
    note = "; ".join(notes)
    for name, which, flattened in VARIANTS:
        yield dtensor_row(name, which, flattened, plan.topology, source, target, plan.memory, note)


def dtensor_row(
    name: str,
    which: str,
    flattened: bool,
    topology: Topology,
    source: ArrayType,
    target: ArrayType,
    memory: MemoryLimit,
    note: str = "",
    devices_per_host: int | None = None,
) -> PeerRow:
    """What one of DTensor's planners does; ``which`` is a member of ``TorchPlanner``.

    ``devices_per_host``: what its costs take a host to have; None: the devices of a node.
    """
    from p2smt.interop.arrays.peers.torch_planner import TorchPlanner, torch_moves

    host = devices_per_host or topology.devices_under(topology.node_level)
    asked = TorchPlanner[which]
    try:
        moves = torch_moves(source, target, asked, devices_per_host=host, flattened=flattened)
    except InputError as error:
        return _none(name, str(error))
    ends, path = first_inside(ends_of(source, target), moves)
    return priced_row(name, ends, path, StepPrices(topology, ends.frame), memory, note)


def _shardy(plan: RedistributionPlan, file: Path | None) -> Iterator[PeerRow]:
    if file is None:
        yield _none(
            "shardy", "has no package to run: give a file of sdy_opt --sdy-reshard-to-collectives"
        )
        return
    cases = read_shardy(read_text(str(file), "MLIR file"), str(file)).cases
    same = [case for case in cases if _asks_the_same(case, plan)]
    if not same:
        yield _none("shardy", f"{file.name} has no function with this mesh and these types")
    for case in same:
        ends, path = case.path(ends_of(plan.source, plan.target))
        prices = StepPrices(plan.topology, ends.frame)
        note = f"@{case.name}"
        if case.shape != plan.source.shape:
            note += f", there of an array of {','.join(map(str, case.shape))}"
        yield priced_row("shardy", ends, path, prices, plan.memory, note)


def _asks_the_same(case: ShardyCase, plan: RedistributionPlan) -> bool:
    theirs = _form(case.meshes[0], case.types[0]), _form(*case.asked)
    return theirs == tuple(_form(end.mesh, end.layout) for end in (plan.source, plan.target))


def _form(mesh: Mesh, layout: Layout) -> tuple[object, ...]:
    """A type in one form, however its sub-axes are written."""
    dims = tuple(joined(dim) for dim in layout.dims)
    return mesh, dims, joined(sorted(layout.partial)), layout.op
