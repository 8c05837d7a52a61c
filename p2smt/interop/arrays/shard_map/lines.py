"""Each step of a plan as lines of Python on ``x``, the local array of one device.

Where blocks do not follow each other in one dimension, ``packed`` brings the digits of a group to
the front of the array, and ``unpacked`` brings them back to where the destination has them.  All
sizes are known, so both are one reshape, transpose, reshape.
"""

from __future__ import annotations

from collections.abc import Sequence

from p2smt.arrays.element import ReduceOp
from p2smt.arrays.steps import ArrayStep, StepKind
from p2smt.interop.arrays.shard_map.names import DigitNames

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
        return [f"x = {_whole(f'lax.psum_scatter(x, {how})', step, names)}"]
    how = f"{names.tuple_text(step.moved)}, scatter_dimension=0, tiled=False"
    return [_packed(step, names), f"x = {_whole(f'lax.psum_scatter(x, {how})', step, names)}"]


_SAME_TYPE = ".astype(x.dtype)"


def _whole(total: str, step: ArrayStep, names: DigitNames) -> str:
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
            return [f"x = {_whole(f'lax.psum(x, {group})', step, names)}"]
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
        return f"x = x.reshape({_listed(shape)})"
    moved = f"x.reshape({_listed(sizes)}).transpose({_listed(order)})"
    kept = [sizes[place] for place in order]
    return f"x = {moved}" if kept == list(shape) else f"x = {moved}.reshape({_listed(shape)})"


def _listed(numbers: Sequence[int]) -> str:
    return ", ".join(map(str, numbers))


def _some(lists: Lists) -> list[tuple[int, tuple[int, ...]]]:
    return [(dim, tuple(digits)) for dim, digits in enumerate(lists) if digits]


def _with(lists: Lists, shape: Sequence[int]) -> list[tuple[Sequence[int], int]]:
    return list(zip(lists, shape, strict=True))
