"""A plan beside what other planners do with the same question, at the same prices."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from p2smt.cluster.topology import Topology
from p2smt.errors import InputError
from p2smt.files.yaml_text import read_text
from p2smt.interop.arrays.peers.peer_replay import PeerPath, first_inside
from p2smt.interop.arrays.shardy import SHARDING, parse_sharding, parse_shardy_mesh
from p2smt.resharding.endpoints import Ends, ends_of, with_shape
from p2smt.resharding.redistribution_plan import RedistributionPlan
from p2smt.resharding.states import joined, state_of
from p2smt.resharding.step_prices import StepPrices
from p2smt.resharding.steps import (
    KINDS,
    ArrayStep,
    MemoryLimit,
    StepKind,
    peak_bytes,
    peak_step_bytes,
    within,
)
from p2smt.resharding.types import ArrayType, ElementType, Layout, Mesh, Uneven

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
        yield _none("dtensor", "torch is not installed: pip install 'p2smt[torch]'")
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


# Sequences of collectives as Shardy emits them, read from MLIR.
# Either the output of ``sdy_opt --sdy-reshard-to-collectives``, or one of Shardy's own test files,
# where comments (``CHECK-NEXT``) hold what the pass must emit and the code is what it is given.
# Each operation says the type after it (``out_sharding``), so a sequence is a list of types.
#
# Read line by line, and each line from left to right: no pattern begins at a place from which
# another one has been tried, so that a hostile file costs no more than reading it.


_KINDS = {
    "all_slice": StepKind.SLICE,
    "all_gather": StepKind.ALL_GATHER,
    "all_to_all": StepKind.ALL_TO_ALL,
    "collective_permute": StepKind.PERMUTE,
    "reduce_scatter": StepKind.REDUCE_SCATTER,
    "all_reduce": StepKind.ALL_REDUCE,
}
_SPEC = re.compile(SHARDING[:-1])  # checks may leave the > out
_FUNCTION = re.compile(r"func\.func @(?P<name>[\w.$-]+)")
_LABEL, _MESH, _NO_AXES = "// CHECK-LABEL", "sdy.mesh @", "<[]"
_OP = re.compile(r"sdy\.(?P<op>\w+) ")
_AFTER = "out_sharding="
_OTHER_COMMENT = re.compile(r"\s*//(?! CHECK)")
_CHECK, _RESHARD = "// CHECK", "sdy.reshard "
_ASKED = re.compile(r"\s*%\S+ = sdy\.reshard %\S+ ")
_SOURCE = re.compile(r"sdy\.sharding\s*=\s*#sdy\.sharding(_per_value)?(<\[)?")
_TENSOR = re.compile(r"tensor<(?P<sizes>([0-9]{1,18}x){1,32})(?P<dtype>[A-Za-z]\w{0,15})>")


@dataclass(frozen=True, slots=True)
class ShardyCase:
    """A function: an array's types before and after, and the operations between.

    ``types[0]`` is what it starts from (name of the mesh and layout); ``types[k]`` holds after
    operation k.  ``asked`` is the type that the code asks for.
    """

    name: str
    shape: tuple[int, ...]
    element: ElementType
    meshes: tuple[Mesh, ...]
    types: tuple[Layout, ...]
    kinds: tuple[StepKind, ...]
    asked: tuple[Mesh, Layout]

    def array_types(self, shape: Sequence[int]) -> tuple[ArrayType, ArrayType]:
        """Source and destination, of an array of this shape."""
        first = ArrayType(self.meshes[0], tuple(shape), self.element, self.types[0])
        return first, ArrayType(self.asked[0], tuple(shape), self.element, self.asked[1])

    def path(self, ends: Sequence[Ends]) -> tuple[Ends, PeerPath]:
        """The steps, in the first frame that has all their types; each checked by its rule."""
        reasons = []
        for one in ends:
            try:
                return one, PeerPath(tuple(self._steps(one)))
            except InputError as error:
                reasons.append(str(error))
        return ends[0], PeerPath((), reasons[0])

    def _steps(self, ends: Ends) -> Iterator[ArrayStep]:
        state = ends.source
        for kind, mesh, layout in zip(self.kinds, self.meshes[1:], self.types[1:], strict=True):
            after = state_of(layout, ends.frame.digits, mesh, _order(ends, mesh))
            step = KINDS[kind](state, after)
            step.check(ends.frame)
            yield step
            state = after
        if state != ends.target:
            raise InputError("Shardy's sequence", "does not end in the type that was asked for")


def _order(ends: Ends, mesh: Mesh) -> int:
    if mesh.devices not in ends.frame.orders:
        raise InputError("Shardy's sequence", "has devices in an order that neither end has")
    return ends.frame.orders.index(mesh.devices)


@dataclass(frozen=True, slots=True)
class ShardyCases:
    """The functions of a file, and those that are no case, each with the reason."""

    cases: tuple[ShardyCase, ...]
    left_out: tuple[tuple[str, str], ...]


def read_shardy(text: str, source: str) -> ShardyCases:
    """All functions of an MLIR text, which ``source`` names.

    Raises:
        InputError: it has no function.
    """
    lines = text.split("\n")
    meshes = dict(
        parse_shardy_mesh(line)
        for line in lines
        if line.startswith(_MESH) and _NO_AXES not in line  # no axes: nothing to shard over
    )
    cases, left_out = [], []
    for name, body in _functions(lines):
        try:
            cases.append(_case(name, body, meshes))
        except InputError as error:
            left_out.append((name, str(error)))
    if not cases and not left_out:
        raise InputError(source, "has no func.func", "give MLIR of Shardy")
    return ShardyCases(tuple(cases), tuple(left_out))


def _functions(lines: Sequence[str]) -> Iterator[tuple[str, list[str]]]:
    """Name and lines of each function, without comments that check nothing.

    It ends where another one, its label (with the comments above that) or a mesh begins.
    """
    name, body = "", list[str]()
    for line in lines:
        begins = _FUNCTION.match(line)
        if begins or line.startswith((_LABEL, _MESH)):
            while line.startswith(_LABEL) and body and body[-1].startswith("//"):
                body.pop()
            if name:
                yield name, body
            name, body = begins["name"] if begins else "", []
        if name and not _OTHER_COMMENT.match(line):
            body.append(line)
    if name:
        yield name, body


def _case(name: str, body: Sequence[str], meshes: Mapping[str, Mesh]) -> ShardyCase:
    if any(map(_keeps, body)):
        raise InputError(name, "Shardy keeps its reshard as it is")
    tensor = next(filter(None, map(_TENSOR.search, body)), None)
    if tensor is None:
        raise InputError(name, "has no tensor<..> with sizes and a type of elements")
    shape = tuple(int(size) for size in tensor["sizes"].split("x")[:-1])
    ops = [op for line in body for op in _operations(line)]
    if unknown := [op for op, _ in ops if op not in _KINDS]:
        raise InputError(name, f"sdy.{unknown[0][:40]} is none of the six steps")
    found = [parse_sharding(after, meshes) for _, after in ops]
    asked = [to for line in body for to in _asked(line)]
    last = parse_sharding(asked[0], meshes) if asked else found[-1] if found else None
    if last is None:
        raise InputError(name, "nothing is resharded in it")
    first = _source(body, meshes, last[0], len(shape))
    return ShardyCase(
        name,
        shape,
        ElementType.parse(tensor["dtype"]),
        tuple(meshes[mesh] for mesh, _ in (first, *found)),
        tuple(layout for _, layout in (first, *found)),
        tuple(_KINDS[op] for op, _ in ops),
        (meshes[last[0]], last[1]),
    )


def _keeps(line: str) -> bool:
    """Whether a check wants a reshard to be left."""
    at = line.find(_CHECK)
    return at >= 0 and _RESHARD in line[at:]


def _operations(line: str) -> Iterator[tuple[str, str]]:
    """The operation of a line, if it says the type after it; with that type."""
    found = _OP.search(line)
    at = line.find(_AFTER, found.end()) if found else -1
    if found and at >= 0 and (after := _SPEC.match(line, at + len(_AFTER))):
        yield found["op"], f"{after[0]}>"


def _asked(line: str) -> Iterator[str]:
    """The type that the code of a line asks for, if it does."""
    found = _ASKED.match(line)
    if found and (to := _SPEC.match(line, found.end())):
        yield f"{to[0]}>"


def _source(
    body: Sequence[str], meshes: Mapping[str, Mesh], mesh: str, dims: int
) -> tuple[str, Layout]:
    """The type that the argument has: where none is written it is replicated."""
    for line in body:
        if found := _SOURCE.search(line):
            of = _SPEC.match(line, found.end())
            given = line[found.start() :][:80]
            if of is None:
                raise InputError(f"sharding {given!r}", "is no sdy.sharding", "write <@mesh, [..]>")
            return parse_sharding(f"{of[0]}>", meshes)
    return mesh, Layout(((),) * dims)
