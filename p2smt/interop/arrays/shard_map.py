"""The module of a plan: its mesh, what one device does, and the function of the whole array.

API: jax 0.10 (``jax.shard_map``, ``jax.lax``).  ``check_vma=False``, as JAX cannot tell that a
gathered or permuted block is the same on some devices.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from p2smt.errors import InputError
from p2smt.interop.exported import Exported
from p2smt.interop.meshes.arrays import comment_name
from p2smt.resharding.redistribution_plan import PlannedStep, RedistributionPlan
from p2smt.resharding.states import ArrayState, Frame
from p2smt.resharding.steps import ArrayStep, StepKind
from p2smt.resharding.types import ElementType, ReduceOp, SubAxis, layout_text, mesh_text

_JAX_NAMES = {
    ElementType.F64: "float64",
    ElementType.F32: "float32",
    ElementType.F16: "float16",
    ElementType.BF16: "bfloat16",
    ElementType.I64: "int64",
    ElementType.I32: "int32",
    ElementType.I16: "int16",
    ElementType.I8: "int8",
    ElementType.U8: "uint8",
    ElementType.BOOL: "bool",
}


def write_shard_map(plan: RedistributionPlan, source: str) -> Exported:
    """The module of :func:`shard_map_text`, and how it is called."""
    note = "redistribute(x) takes an array that is sharded as NamedSharding(mesh(), SOURCE)"
    return Exported(shard_map_text(plan, source), (note,))


def shard_map_text(plan: RedistributionPlan, source: str = "a plan") -> str:
    """A Python module with ``redistribute(x)`` for arrays of the plan's source type.

    ``source`` names the plan in its first lines.  Partial values, for which JAX has no type, are
    stacked along a first dimension of the array, one entry for each value of the partial axes.

    Raises:
        InputError: blocks of several shapes (``nested``), which JAX arrays do not have.
    """
    if plan.frame.nested:
        rule = "JAX has blocks of one shape only"
        raise InputError("a plan of nested uneven dimensions", rule, "plan it with --uneven padded")
    names, parts = DigitNames.of(plan.frame), parts_of(plan)
    constants = f"{_constants(plan, names, parts)}\n{_orders(plan)}"
    sections = [f"{_head(plan, source)}\n{constants}", MESH]
    sections += [_local(names, part, _local_name(parts, part)) for part in parts]
    sections += [MAPPED, *([RENUMBERED] if len(parts) > 1 else [])]
    sections.append(_whole(parts))
    if _padding(plan):
        sections.append(PADDED)
    return "\n\n\n".join(section.strip("\n") for section in sections) + "\n"


def _head(plan: RedistributionPlan, source: str) -> str:
    kind = f"{plan.source.element.value}[{','.join(map(str, plan.source.shape))}]"
    ends = (layout_text(end.layout, end.mesh) for end in (plan.source, plan.target))
    first = f"{kind} from {' to '.join(ends)} on {mesh_text(plan.source.mesh)}"
    lines = textwrap.wrap(f"Redistributes {first}.", 96)
    lines.append(f"Written by p2smt from {comment_name(source)}.")
    partial = PARTIAL if plan.start.partial else ""
    return HEAD.format(first="\n".join(lines), partial=partial)


def _constants(plan: RedistributionPlan, names: DigitNames, parts: tuple[PlanPart, ...]) -> str:
    frame = plan.frame
    digits = ", ".join(frame.names([digit]) for digit in range(len(frame.digits)))
    comment = f"  # {digits}" if digits != ", ".join(names.names) else ""
    lines = [
        f"AXES = {names.all_text()}{comment}",
        f"SIZES = {_tuple(frame.sizes)}",
        f"SHAPE = {_tuple(_shape(plan, plan.start))}",
        f'DTYPE = "{_JAX_NAMES[frame.element]}"',
        f"SOURCE = {names.spec(parts[0].start)}",
        f"TARGET = {names.spec(parts[-1].end)}",
    ]
    for number, part in enumerate(parts[1:], start=1):
        lines += [
            f"BETWEEN_{number} = {names.spec(part.start)}",
            f"SHAPE_{number} = {_tuple(_shape(plan, part.start))}",
        ]
    padding = _padding(plan)
    if padding:
        lines += [f"UNPADDED = {_tuple(plan.source.shape)}", f"PADDING = ({padding})"]
    lines += _pairs(plan)
    return "\n".join(lines)


def _shape(plan: RedistributionPlan, state: ArrayState) -> tuple[int, ...]:
    """The global shape, with the dimension of partial values."""
    stacked = (plan.frame.ways(state.partial),) if state.partial else ()
    return (*stacked, *plan.frame.shape)


def _padding(plan: RedistributionPlan) -> str:
    """What each dimension has more than the array; empty if none has."""
    more = [new - old for new, old in zip(plan.frame.shape, plan.source.shape, strict=True)]
    return "".join(f"(0, {count}), " for count in more).rstrip() if any(more) else ""


def _pairs(plan: RedistributionPlan) -> Iterator[str]:
    """The messages of each permute, (from, to) as mesh positions."""
    for number, planned in enumerate(plan.steps, start=1):
        if planned.step.kind is StepKind.PERMUTE:
            pairs = position_pairs(plan.frame, planned)
            entries = (f"({source}, {target})" for source, target in pairs)
            yield from _listed(f"PAIRS_{number}", entries)


def _listed(name: str, entries: Iterable[str]) -> list[str]:
    """The lines of a tuple."""
    text = ", ".join(entries) + ","
    lines = textwrap.wrap(text, 96, initial_indent="    ", subsequent_indent="    ")
    return [f"{name} = (", *lines, ")"]


def _orders(plan: RedistributionPlan) -> str:
    """The device of each mesh position, for each order of devices."""
    orders = []
    for order in plan.frame.orders:
        plain = order == tuple(range(len(order)))
        orders.append(f"range({len(order)})" if plain else str(list(order)))
    if len(orders) == 1 and orders[0].startswith("range"):
        return f"ORDERS = ({orders[0]},)"
    return "\n".join(_listed("ORDERS", orders))


def _local_name(parts: tuple[PlanPart, ...], part: PlanPart) -> str:
    return "local" if len(parts) == 1 else f"local_{parts.index(part) + 1}"


def _local(names: DigitNames, part: PlanPart, name: str) -> str:
    body = ["x = x[0]"] if part.start.partial else []
    for number, planned in enumerate(part.steps, start=part.first):
        body.append(f"# {planned.step.text(names.frame)}")
        body += step_lines(planned.step, names, f"PAIRS_{number}")
    body.append("return x[None]" if part.end.partial else "return x")
    doc = '"""What one device does to its block."""'
    return "\n".join([f"def {name}(x):", f"    {doc}", *(f"    {line}" for line in body)])


def _whole(parts: tuple[PlanPart, ...]) -> str:
    """The function of the whole array, part after part."""
    lines, given = [], "SOURCE"
    for number, part in enumerate(parts, start=1):
        result = "P(AXES)" if part.moves_on else "TARGET"
        how = f"{_local_name(parts, part)}, {part.start.order}, {given}, {result}"
        lines.append(f"x = mapped({how})(x)")
        if part.moves_on:
            given = f"BETWEEN_{number}"
            lines.append(f"x = renumbered(x, {part.end.order}, {given}, SHAPE_{number})")
    lines[-1] = lines[-1].replace("x = ", "return ", 1)
    note = NOT_INSIDE_JIT if len(parts) > 1 else INSIDE_JIT
    return WHOLE.format(note=note, lines="\n    ".join(lines))


def _tuple(numbers: tuple[int, ...]) -> str:
    return f"({', '.join(map(str, numbers))}{',' if len(numbers) == 1 else ''})"


# Each step of a plan as lines of Python on ``x``, the local array of one device.
# Where blocks do not follow each other in one dimension, ``packed`` brings the digits of a group to
# the front of the array, and ``unpacked`` brings them back to where the destination has them.  All
# sizes are known, so both are one reshape, transpose, reshape.


Lists = Sequence[Sequence[int]]
"""Digits of each dimension, major first."""


def step_lines(step: ArrayStep, names: DigitNames, pairs: str) -> list[str]:
    """The lines of a step; ``pairs`` is the name of the messages of a permute."""
    match step.kind:
        case StepKind.SLICE:
            return _slice(step, names)
        case StepKind.ALL_GATHER:
            return _all_gather(step, names)
        case StepKind.ALL_TO_ALL:
            return _all_to_all(step, names)
        case StepKind.PERMUTE:
            return [f"x = lax.ppermute(x, {names.all_text()}, {pairs})"]
        case StepKind.REDUCE_SCATTER:
            return _reduce_scatter(step, names)
        case StepKind.ALL_REDUCE:
            return _all_reduce(step, names)


def _slice(step: ArrayStep, names: DigitNames) -> list[str]:
    """A dimension's part is that of its new digits, the first most significant."""
    found = []
    shape = names.frame.local_shape(step.after)
    for dim, digits in _some(step.gained):
        first = f"lax.axis_index({names.tuple_text(digits)}) * {shape[dim]}"
        found.append(f"x = lax.dynamic_slice_in_dim(x, {first}, {shape[dim]}, axis={dim})")
    return found


def _all_gather(step: ArrayStep, names: DigitNames) -> list[str]:
    some = _some(step.lost)
    if len(some) == 1:
        dim, digits = some[0]
        return [f"x = lax.all_gather(x, {names.tuple_text(digits)}, axis={dim}, tiled=True)"]
    return [
        f"x = lax.all_gather(x, {names.tuple_text(step.moved)}, axis=0, tiled=False)",
        _unpacked(step, names),
    ]


def _all_to_all(step: ArrayStep, names: DigitNames) -> list[str]:
    lost, gained = _some(step.lost), _some(step.gained)
    if len(lost) == len(gained) == 1 and lost[0][1] == gained[0][1]:
        where = f"split_axis={gained[0][0]}, concat_axis={lost[0][0]}"
        group = names.tuple_text(gained[0][1])
        return [f"x = lax.all_to_all(x, {group}, {where}, tiled=True)"]
    return [_packed(step, names), _exchanged(step, names), _unpacked(step, names)]


def _exchanged(step: ArrayStep, names: DigitNames) -> str:
    group = names.tuple_text(step.moved)
    return f"x = lax.all_to_all(x, {group}, split_axis=0, concat_axis=0, tiled=True)"


def _reduce_scatter(step: ArrayStep, names: DigitNames) -> list[str]:
    """JAX scatters sums; of other reductions the parts are exchanged and reduced here."""
    op, some = names.frame.op, _some(step.gained)
    if op not in (ReduceOp.SUM, ReduceOp.AVG):
        return [_packed(step, names), _exchanged(step, names), _reduced_line(op)]
    if len(some) == 1:
        dim, digits = some[0]
        how = f"{names.tuple_text(digits)}, scatter_dimension={dim}, tiled=True"
        return [f"x = {_whole_sum(f'lax.psum_scatter(x, {how})', step, names)}"]
    how = f"{names.tuple_text(step.moved)}, scatter_dimension=0, tiled=False"
    return [_packed(step, names), f"x = {_whole_sum(f'lax.psum_scatter(x, {how})', step, names)}"]


_SAME_TYPE = ".astype(x.dtype)"


def _whole_sum(total: str, step: ArrayStep, names: DigitNames) -> str:
    """A sum in the element type (JAX counts booleans as integers), or the average."""
    if names.frame.op is ReduceOp.AVG:
        return f"{total} / {names.frame.ways(step.reduced)}"
    return total + _SAME_TYPE


def _reduced_line(op: ReduceOp) -> str:
    if op is ReduceOp.PRODUCT:
        return "x = x.prod(axis=0, dtype=x.dtype)"
    return f"x = x.{op.value}(axis=0)"


def _all_reduce(step: ArrayStep, names: DigitNames) -> list[str]:
    group = names.tuple_text(step.reduced)
    match names.frame.op:
        case ReduceOp.SUM | ReduceOp.AVG:
            return [f"x = {_whole_sum(f'lax.psum(x, {group})', step, names)}"]
        case ReduceOp.MAX | ReduceOp.MIN as op:
            return [f"x = lax.p{op.value}(x, {group}){_SAME_TYPE}"]
        case ReduceOp.PRODUCT as op:  # JAX has none: this needs the memory of a gather
            return [f"x = lax.all_gather(x, {group}, axis=0, tiled=False)", _reduced_line(op)]


def _packed(step: ArrayStep, names: DigitNames) -> str:
    """Cut by the gained digits, which come to the front as one dimension: each member's part."""
    frame, lists, small = names.frame, step.gained, _cut(step, names)
    cut = [(*(frame.digits[d].size for d in digits), size) for digits, size in _with(lists, small)]
    places = _places(lists)
    rest = [number for number, (_, digit) in enumerate(places) if digit is None]
    front = [number for d in step.moved for number, (_, e) in enumerate(places) if d == e]
    sizes = [size for dim in cut for size in dim]
    return _rearranged(sizes, [*front, *rest], [frame.ways(step.moved), *small])


def _cut(step: ArrayStep, names: DigitNames) -> tuple[int, ...]:
    """The local shape of a part that goes to one member."""
    shape = names.frame.local_shape(step.before)
    return tuple(size // names.frame.ways(new) for new, size in _with(step.gained, shape))


def _unpacked(step: ArrayStep, names: DigitNames) -> str:
    """The members' parts, along the first dimension, to where their digits were lost."""
    frame = names.frame
    small = _cut(step, names)
    sizes = [*(frame.digits[d].size for d in step.moved), *small]
    order: list[int] = []
    for dim, digits in enumerate(step.lost):
        order += [step.moved.index(digit) for digit in digits] + [len(step.moved) + dim]
    return _rearranged(sizes, order, frame.local_shape(step.after))


def _places(lists: Lists) -> list[tuple[int, int | None]]:
    """Of a cut array: the dimension and, of a new one, the digit that each of its axes is."""
    found: list[tuple[int, int | None]] = []
    for dim, digits in enumerate(lists):
        found += [(dim, digit) for digit in digits] + [(dim, None)]
    return found


def _rearranged(sizes: Sequence[int], order: Sequence[int], shape: Sequence[int]) -> str:
    if list(order) == sorted(order):
        return f"x = x.reshape({_numbers(shape)})"
    moved = f"x.reshape({_numbers(sizes)}).transpose({_numbers(order)})"
    kept = [sizes[place] for place in order]
    return f"x = {moved}" if kept == list(shape) else f"x = {moved}.reshape({_numbers(shape)})"


def _numbers(numbers: Sequence[int]) -> str:
    return ", ".join(map(str, numbers))


def _some(lists: Lists) -> list[tuple[int, tuple[int, ...]]]:
    return [(dim, tuple(digits)) for dim, digits in enumerate(lists) if digits]


def _with(lists: Lists, shape: Sequence[int]) -> list[tuple[Sequence[int], int]]:
    return list(zip(lists, shape, strict=True))


# The mesh of a generated function has an axis for each digit; here are their names.


@dataclass(frozen=True, slots=True)
class DigitNames:
    """The name of each digit, and the texts that have them."""

    frame: Frame
    names: tuple[str, ...]

    @staticmethod
    def of(frame: Frame) -> DigitNames:
        """Whole axes keep their names; ``tp:(2)4`` is ``tp_2x4``."""
        taken = [axis.name for axis in frame.mesh.axes]
        found: list[str] = []
        for digit in frame.digits:
            name = _name(frame, digit)
            while digit.size != frame.mesh.axes[digit.axis].size and name in (*taken, *found):
                name += "_"
            found.append(name)
        return DigitNames(frame, tuple(found))

    def tuple_text(self, digits: Sequence[int]) -> str:
        """``('dp', 'tp')``, for the collectives of JAX."""
        inner = ", ".join(f'"{self.names[digit]}"' for digit in digits)
        return f"({inner},)" if len(digits) == 1 else f"({inner})"

    def spec(self, state: ArrayState) -> str:
        """The ``PartitionSpec`` of the global array; partial values are along a first dimension."""
        lists = ([state.partial] if state.partial else []) + list(state.dims)
        return f"P({', '.join(self.tuple_text(dim) if dim else 'None' for dim in lists)})"

    def all_text(self) -> str:
        """Every axis, in the mesh's order."""
        return self.tuple_text(range(len(self.names)))


def _name(frame: Frame, digit: SubAxis) -> str:
    axis = frame.mesh.axes[digit.axis]
    return axis.name if digit.size == axis.size else f"{axis.name}_{digit.before}x{digit.size}"


# The steps of a plan that run on one order of devices.
# A ``shard_map`` has one mesh.  Where the destination has the devices in another order, a permute
# brings the blocks there; what follows runs on a mesh of that order.


@dataclass(frozen=True, slots=True)
class PlanPart:
    """Steps on the mesh whose positions have the devices of ``start.order``.

    ``first``: the number of its first step in the plan, from 1.  ``moves_on``: its last step is
    the permute to the other order; the blocks that it leaves are those of ``end`` on the mesh of
    ``end.order``.
    """

    start: ArrayState
    steps: tuple[PlannedStep, ...]
    end: ArrayState
    first: int = 1

    @property
    def moves_on(self) -> bool:
        """Whether the next part has another order of devices."""
        return self.start.order != self.end.order


def parts_of(plan: RedistributionPlan) -> tuple[PlanPart, ...]:
    """The parts, at least one."""
    return tuple(_parts(plan))


def _parts(plan: RedistributionPlan) -> Iterator[PlanPart]:
    start, steps, first = plan.start, list[PlannedStep](), 1
    for number, planned in enumerate(plan.steps, start=1):
        steps.append(planned)
        after = planned.step.after
        if after.order != start.order:
            yield PlanPart(start, tuple(steps), after, first)
            start, steps, first = after, [], number + 1
    end = steps[-1].step.after if steps else start
    yield PlanPart(start, tuple(steps), end, first)


def position_pairs(frame: Frame, planned: PlannedStep) -> tuple[tuple[int, int], ...]:
    """The messages of a permute as (from, to) positions on the mesh before it."""
    order = frame.orders[planned.step.before.order]
    place = {device: position for position, device in enumerate(order)}
    pairs = ((place[source], place[device]) for device, source in enumerate(planned.sources))
    return tuple(sorted(pairs, key=lambda pair: pair[1]))


# What the modules hold that depends on no plan.


HEAD = '''\
"""{first}

redistribute(x) takes an array that is sharded as NamedSharding(mesh(), SOURCE), or in an equivalent
way over the axes of another mesh of the same devices.{partial}
"""

import functools

import jax
import numpy as np
from jax import lax
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P
'''

PARTIAL = """
Partial values are stacked along a first dimension, an entry for each value of the partial axes."""

MESH = '''\
def mesh(order=0):
    """The devices in an order of the plan, by process and number; an axis for each digit."""
    devices = sorted(jax.devices(), key=lambda device: (device.process_index, device.id))
    if len(devices) != len(ORDERS[order]):
        raise RuntimeError(f"made for {len(ORDERS[order])} devices, not {len(devices)}")
    return Mesh(np.array([devices[i] for i in ORDERS[order]]).reshape(SIZES), AXES)
'''

MAPPED = '''\
@functools.cache
def mapped(function, order, given, result):
    """A function of one device's block as one of the whole array."""
    specs = {"in_specs": given, "out_specs": result, "check_vma": False}
    return jax.jit(jax.shard_map(function, mesh=mesh(order), **specs))
'''

RENUMBERED = '''\
def renumbered(x, order, spec, shape):
    """The blocks stay where they are; the mesh of another order says which they are."""
    blocks = [shard.data for shard in x.addressable_shards]
    sharding = NamedSharding(mesh(order), spec)
    return jax.make_array_from_single_device_arrays(shape, sharding, blocks)
'''

WHOLE = '''\
def redistribute(x):
    """The array `x` in the layout TARGET of the plan.

    {note}
    """
    if x.shape != SHAPE or x.dtype != DTYPE:
        raise ValueError(f"made for {{DTYPE}}{{list(SHAPE)}}, not {{x.dtype}}{{list(x.shape)}}")
    if not isinstance(x, jax.core.Tracer):
        if not x.sharding.is_equivalent_to(NamedSharding(mesh(), SOURCE), x.ndim):
            raise ValueError(f"x is sharded as {{x.sharding}}, not as {{SOURCE}} on mesh()")
    {lines}
'''

INSIDE_JIT = "It may be called inside jit, where XLA shards `x` as SOURCE first."

NOT_INSIDE_JIT = (
    "The result has the devices in another order, so this is no part of a jitted function."
)

PADDED = '''\
def padded(x):
    """An array of the planned shape, with zeros at the ends, so that blocks are of one shape."""
    return jax.numpy.pad(x, PADDING)


def unpadded(x):
    """The array without what `padded` added."""
    return x[tuple(slice(size) for size in UNPADDED)]
'''
