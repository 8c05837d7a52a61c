"""Sequences of collectives as Shardy emits them, read from MLIR.

Either the output of ``sdy_opt --sdy-reshard-to-collectives``, or one of Shardy's own test files,
where comments (``CHECK-NEXT``) hold what the pass must emit and the code is what it is given.  Each
operation says the type after it (``out_sharding``), so a sequence is a list of types.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from p2smt.arrays.array_type import ArrayType
from p2smt.arrays.element import ElementType
from p2smt.arrays.ends import Ends, ends_of
from p2smt.arrays.frame import state_of
from p2smt.arrays.layout import Layout
from p2smt.arrays.mesh import Mesh
from p2smt.arrays.steps import KINDS, ArrayStep, StepKind
from p2smt.errors import InputError
from p2smt.interop.arrays.peers.replay import PeerPath
from p2smt.interop.arrays.shardy import SHARDING, parse_sharding, parse_shardy_mesh

_KINDS = {
    "all_slice": StepKind.SLICE,
    "all_gather": StepKind.ALL_GATHER,
    "all_to_all": StepKind.ALL_TO_ALL,
    "collective_permute": StepKind.PERMUTE,
    "reduce_scatter": StepKind.REDUCE_SCATTER,
    "all_reduce": StepKind.ALL_REDUCE,
}
_SPEC = re.sub(r"\?P<\w+>", "", SHARDING)
_FUNCTION = re.compile(r"^func\.func @(?P<name>[\w.$-]+)", re.MULTILINE)
_MESH = re.compile(r"^sdy\.mesh @\S+ = <\[.*$", re.MULTILINE)
_OP = re.compile(rf"sdy\.(?P<op>\w+) .*?out_sharding=(?P<after>{_SPEC[:-1]})(>|$)", re.MULTILINE)
_OTHER_COMMENT = re.compile(r"^\s*//(?! CHECK).*$", re.MULTILINE)
_KEPT = re.compile(r"// CHECK\S*.*sdy\.reshard ")
_RESHARD = re.compile(rf"^\s*%\S+ = sdy\.reshard %\S+ (?P<to>{_SPEC})", re.MULTILINE)
_SOURCE = re.compile(
    rf"sdy\.sharding\s*=\s*#sdy\.sharding(_per_value)?(<\[)?(?P<of>{_SPEC})", re.MULTILINE
)
_TENSOR = re.compile(r"tensor<(?P<sizes>(\d+x)+)(?P<dtype>\w+)>")
_LATER = re.compile(r"\n(//[^\n]*\n)*// CHECK-LABEL|\nsdy\.mesh")


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
    meshes = {}
    for line in _MESH.findall(text):
        if "<[]" not in line:  # no axes: there is nothing to shard over
            name, mesh = parse_shardy_mesh(line)
            meshes[name] = mesh
    starts = list(_FUNCTION.finditer(text))
    if not starts:
        raise InputError(source, "has no func.func", "give MLIR of Shardy")
    cases, left_out = [], []
    for match, end in zip(starts, [*(m.start() for m in starts[1:]), len(text)], strict=True):
        body = _OTHER_COMMENT.sub("", _LATER.split(text[match.start() : end])[0])
        try:
            cases.append(_case(match["name"], body, meshes))
        except InputError as error:
            left_out.append((match["name"], str(error)))
    return ShardyCases(tuple(cases), tuple(left_out))


def _case(name: str, body: str, meshes: Mapping[str, Mesh]) -> ShardyCase:
    tensor, asked = _TENSOR.search(body), _RESHARD.search(body)
    if tensor is None or _KEPT.search(body):
        raise InputError(name, "Shardy keeps its reshard as it is")
    shape = tuple(int(size) for size in tensor["sizes"].split("x")[:-1])
    ops = list(_OP.finditer(body))
    if unknown := [op["op"] for op in ops if op["op"] not in _KINDS]:
        raise InputError(name, f"sdy.{unknown[0]} is none of the six steps")
    found = [parse_sharding(f"{op['after']}>", meshes) for op in ops]  # checks may leave the > out
    last = parse_sharding(asked["to"], meshes) if asked else found[-1] if found else None
    if last is None:
        raise InputError(name, "nothing is resharded in it")
    first = _source(body, meshes, last[0], len(shape))
    return ShardyCase(
        name,
        shape,
        ElementType.parse(tensor["dtype"]),
        tuple(meshes[mesh] for mesh, _ in (first, *found)),
        tuple(layout for _, layout in (first, *found)),
        tuple(_KINDS[op["op"]] for op in ops),
        (meshes[last[0]], last[1]),
    )


def _source(body: str, meshes: Mapping[str, Mesh], mesh: str, dims: int) -> tuple[str, Layout]:
    """The type that the argument has: where none is written it is replicated."""
    match = _SOURCE.search(body)
    return parse_sharding(match["of"], meshes) if match else (mesh, Layout(((),) * dims))


def ends_of_case(case: ShardyCase, shape: Sequence[int]) -> tuple[Ends, ...]:
    """The ends of a case for an array of this shape.

    Raises:
        InputError: the mesh before and after is not one, but for the order of devices.
    """
    return ends_of(*case.array_types(shape))
