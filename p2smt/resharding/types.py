"""A mesh of devices: named axes, which device stands where, and parts of axes.

Positions are numbered row-major over the axes, the first axis most significant, as in DTensor, JAX
and Shardy.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum

import numpy as np

from p2smt.errors import InputError
from p2smt.parallelism.placement import IntArray, ParallelismAxis
from p2smt.units import parse_count

MAX_DIMENSIONS = 8


@dataclass(frozen=True, slots=True)
class Mesh:
    """Axes, most significant first, and the device at each position.

    ``devices[p]`` is the device (rank) at mesh position p; ``Mesh.of`` numbers them in order.
    """

    axes: tuple[ParallelismAxis, ...]
    devices: tuple[int, ...]

    @staticmethod
    def of(axes: Sequence[tuple[str, int]], devices: Sequence[int] | None = None) -> Mesh:
        """The mesh of these (name, size) pairs; ``devices`` default to 0, 1, 2 and so on."""
        made = tuple(ParallelismAxis(name, size) for name, size in axes)
        count = math.prod(axis.size for axis in made)
        return Mesh(made, tuple(range(count)) if devices is None else tuple(devices))

    def __post_init__(self) -> None:
        names = [axis.name for axis in self.axes]
        twice = next((name for name, many in Counter(names).items() if many > 1), None)
        if not names:
            raise InputError("mesh", "needs at least one axis", "name one, such as dp=8")
        if twice is not None:
            raise InputError(f"mesh axis {twice}", "is given twice", "give each a name of its own")
        if len(self.devices) != self.size:
            raise InputError(
                f"{len(self.devices)} devices",
                f"the axes' product is {self.size}",
                "name one device for each mesh position",
            )
        if len(set(self.devices)) != self.size or min(self.devices) < 0:
            rule = "each position needs a device of its own, numbered from 0"
            raise InputError(f"devices {list(self.devices)[:20]}", rule)

    @property
    def size(self) -> int:
        """Number of positions."""
        return math.prod(axis.size for axis in self.axes)

    @property
    def sizes(self) -> tuple[int, ...]:
        """Size of each axis."""
        return tuple(axis.size for axis in self.axes)

    @property
    def in_order(self) -> bool:
        """Whether position p has device p."""
        return self.devices == tuple(range(self.size))

    def index(self, name: str) -> int:
        """Index of the axis of that name.

        Raises:
            InputError: no axis has it.
        """
        names = [axis.name for axis in self.axes]
        if name not in names:
            raise InputError(
                f"axis {name[:40]!r}",
                f"is none of the mesh's {', '.join(names)}",
                "name one of these; if --to is on another mesh, --to-mesh says which",
            )
        return names.index(name)

    def device_array(self) -> IntArray:
        """Device ids in an array whose shape is the axis sizes."""
        return np.array(self.devices, dtype=np.int64).reshape(self.sizes)


@dataclass(frozen=True, slots=True, order=True)
class SubAxis:
    """The part of an axis (by index) of ``size`` ways, below parts of ``before`` ways in all.

    Shardy writes ``axis:(before)size``; a whole axis has ``before`` 1 and the axis's size.
    """

    axis: int
    before: int
    size: int

    def text(self, mesh: Mesh) -> str:
        """``tp`` or ``tp:(2)4``."""
        axis = mesh.axes[self.axis]
        whole = self.before == 1 and self.size == axis.size
        return axis.name if whole else f"{axis.name}:({self.before}){self.size}"


def check_sub_axis(mesh: Mesh, part: SubAxis) -> None:
    """Raise InputError unless the part exists in its axis."""
    size = mesh.axes[part.axis].size
    if part.before < 1 or part.size < 1 or size % (part.before * part.size):
        name = mesh.axes[part.axis].name
        rule = f"axis {name} of {size} has no such part: the product must divide {size}"
        raise InputError(f"{name}:({part.before}){part.size}", rule, "choose another sub-axis")


# The type of a distributed array: mesh, global shape, element type and layout.


MAX_ELEMENTS = 2**53


class Uneven(Enum):
    """What holds where a dimension does not divide by its shards.

    REFUSE: it is an error.  PADDED: the array is padded at its end until every type of the
    redistribution divides it, and locals are those of the padded array.  NESTED: chunks of chunks,
    one mesh axis after the other, as DTensor's ``torch.chunk``; the last ones are shorter or empty.
    """

    REFUSE = "refuse"
    PADDED = "padded"
    NESTED = "nested"


@dataclass(frozen=True, slots=True)
class ArrayType:
    """An array of ``shape`` (global elements per dimension) that lies so on a mesh."""

    mesh: Mesh
    shape: tuple[int, ...]
    element: ElementType
    layout: Layout
    uneven: Uneven = Uneven.REFUSE

    def __post_init__(self) -> None:
        _check_shape(self.shape)
        if len(self.layout.dims) != len(self.shape):
            raise InputError(
                f"a layout of {len(self.layout.dims)} dimensions",
                f"the array has {len(self.shape)}",
                "give one entry per dimension, such as 'S(dp),R'",
            )
        self.layout.check(self.mesh)
        self._check_reduction()
        for dim, size in enumerate(self.shape):
            self._check_dimension(dim, size)

    def _check_reduction(self) -> None:
        averages = self.layout.partial and self.layout.op is ReduceOp.AVG
        if averages and not self.element.floating:
            rule = "an average of whole numbers is none of their type"
            raise InputError(f"partial averages of {self.element.value}", rule, "sum instead")

    def _check_dimension(self, dim: int, size: int) -> None:
        shards = self.shards(dim)
        if size % shards and self.uneven is Uneven.REFUSE:
            raise InputError(
                f"dimension {dim} of size {size}",
                f"does not divide into {shards} equal shards",
                "choose --uneven padded or --uneven nested",
            )

    def shards(self, dim: int) -> int:
        """How many ways a dimension is split."""
        return math.prod(part.size for part in self.layout.dims[dim])

    @property
    def global_bytes(self) -> int:
        """Bytes of the whole array."""
        return math.prod(self.shape) * self.element.item_bytes


def _check_shape(shape: tuple[int, ...]) -> None:
    given = f"shape {','.join(map(str, shape)) or '()'}"
    if not shape:
        rule = "an array without dimensions has nothing to shard"
        raise InputError(given, rule, "give at least one dimension")
    if len(shape) > MAX_DIMENSIONS:
        raise InputError(given, f"has more than {MAX_DIMENSIONS} dimensions")
    if min(shape) < 1:
        raise InputError(given, "an empty array has nothing to move", "give sizes of at least 1")
    if math.prod(shape) > MAX_ELEMENTS:
        raise InputError(given, "has more than 2^53 elements", "give a smaller array")


# Element types of arrays and the reductions of their partial values.


class ElementType(Enum):
    """Element types, by short names; frameworks' own names are read too."""

    F64 = "f64"
    F32 = "f32"
    F16 = "f16"
    BF16 = "bf16"
    I64 = "i64"
    I32 = "i32"
    I16 = "i16"
    I8 = "i8"
    U8 = "u8"
    BOOL = "bool"

    @property
    def item_bytes(self) -> int:
        """Size of an element in bytes."""
        digits = "".join(c for c in self.value if c.isdigit())
        return int(digits) // 8 if digits else 1

    @property
    def long_name(self) -> str:
        """The name that PyTorch, JAX and numpy have for it, such as ``bfloat16``."""
        return next((name for name, short in _LONG.items() if short == self.value), self.value)

    @property
    def floating(self) -> bool:
        """Whether sums of it are rounded, and averages are of the type."""
        return self in (ElementType.F64, ElementType.F32, ElementType.F16, ElementType.BF16)

    @staticmethod
    def parse(text: str) -> ElementType:
        """The type of a short name (``bf16``) or of a framework's (``bfloat16``, ``torch.int8``).

        Raises:
            InputError: no such type.
        """
        short = text.removeprefix("torch.")
        found = _LONG.get(short, short)
        for known in ElementType:
            if known.value == found:
                return known
        names = ", ".join(known.value for known in ElementType)
        raise InputError(f"dtype {text[:40]!r}", f"is none of {names}", "choose one of these")


_LONG = {
    **{f"float{bits}": f"f{bits}" for bits in (16, 32, 64)},
    **{f"int{bits}": f"i{bits}" for bits in (8, 16, 32, 64)},
    "bfloat16": "bf16",
    "uint8": "u8",
    "bool": "bool",
    "i1": "bool",
    "ui8": "u8",
}


class ReduceOp(Enum):
    """How partial values make the whole one."""

    SUM = "sum"
    AVG = "avg"
    PRODUCT = "product"
    MIN = "min"
    MAX = "max"

    @staticmethod
    def parse(text: str) -> ReduceOp:
        """The reduction of that name.

        Raises:
            InputError: no such reduction.
        """
        for known in ReduceOp:
            if known.value == text:
                return known
        names = ", ".join(known.value for known in ReduceOp)
        raise InputError(f"reduction {text[:40]!r}", f"is none of {names}", "choose one of these")


# How an array lies on a mesh: shard, replicate and partial, as frameworks write it.
# A dimension has an ordered list of axes or sub-axes, major first; axes that no dimension has are
# replicated; partial axes hold contributions that are still to be reduced.


@dataclass(frozen=True, slots=True)
class Layout:
    """``dims[i]`` shards dimension i; ``partial`` axes are to be reduced by ``op``."""

    dims: tuple[tuple[SubAxis, ...], ...]
    partial: tuple[SubAxis, ...] = ()
    op: ReduceOp = ReduceOp.SUM

    def parts(self) -> Iterator[SubAxis]:
        """Every sub-axis that shards or is partial."""
        for dim in self.dims:
            yield from dim
        yield from self.partial

    def check(self, mesh: Mesh) -> None:
        """Raise InputError unless every part exists and is used once at most."""
        seen: list[SubAxis] = []
        for part in self.parts():
            check_sub_axis(mesh, part)
            for other in seen:
                if other.axis == part.axis and _overlap(other, part):
                    both = f"{other.text(mesh)} and {part.text(mesh)}"
                    rule = "an axis shards, or is partial, once at most"
                    raise InputError(both, rule, "drop one of them")
            seen.append(part)


def _overlap(one: SubAxis, other: SubAxis) -> bool:
    """Whether two parts of an axis share ways: each is an interval of the axis's factors."""
    return one.before < other.before * other.size and other.before < one.before * one.size


# The written form of meshes and layouts: ``dp=4,tp=8`` and ``S(dp),R;P(tp,max)``.
# One entry per dimension, ``R`` or ``S(axes, major first)``; then for each partial axis
# ``;P(axis)`` or ``;P(axis,reduction)``.  A sub-axis is written as Shardy does: ``tp:(2)4``.


_PART = re.compile(
    r"(?P<name>[A-Za-z][A-Za-z0-9_]*)(:\((?P<before>[0-9]{1,9})\)(?P<size>[0-9]{1,9}))?"
)
_DIMENSION = re.compile(r"R|S\((?P<axes>[^()]*(?:\([0-9]*\)[^()]*)*)\)")
_FORM = "write one R or S(axis,..) per dimension and ;P(axis) per partial axis: 'S(dp),R;P(tp)'"


def parse_mesh(text: str, devices: Sequence[int] | None = None) -> Mesh:
    """The mesh of a text such as ``dp=4,tp=8``.

    Raises:
        InputError: it is no list of names and sizes, or an axis is named twice.
    """
    axes = []
    for part in text.split(","):
        name, equals, size = part.strip().partition("=")
        if not equals:
            raise InputError(
                f"mesh {text[:80]!r}", "needs NAME=SIZE for each axis", "write dp=4,tp=8"
            )
        axes.append((name.strip(), parse_count(size.strip(), f"size of mesh axis {name[:40]}")))
    return Mesh.of(axes, devices)


def parse_layout(text: str, mesh: Mesh) -> Layout:
    """The layout of a text such as ``S(dp),R;P(tp,max)``.

    Raises:
        InputError: the text is of another form, names an unknown axis or one axis twice, or has
            several reductions.
    """
    shards, *partials = (part.strip() for part in text.split(";"))
    dims = tuple(_dimension(entry, text, mesh) for entry in _entries(shards, text))
    found = [_partial(entry, text, mesh) for entry in partials]
    ops = list(dict.fromkeys(op for _, op in found))
    if len(ops) > 1:
        names = " and ".join(op.value for op in ops)
        rule = "partial values of one array have one reduction"
        raise InputError(f"layout {text[:80]!r} with {names}", rule, "reduce one of them first")
    layout = Layout(dims, tuple(part for part, _ in found), ops[0] if ops else ReduceOp.SUM)
    layout.check(mesh)
    return layout


def _entries(text: str, whole: str) -> list[str]:
    """The entries of the dimensions: split at commas outside brackets."""
    entries, depth, start = [], 0, 0
    for place, letter in enumerate(text):
        depth += (letter == "(") - (letter == ")")
        if letter == "," and depth == 0:
            entries.append(text[start:place].strip())
            start = place + 1
    entries.append(text[start:].strip())
    if depth or not all(entries):
        raise InputError(f"layout {whole[:80]!r}", "has an empty entry or an open bracket", _FORM)
    return entries


def _dimension(entry: str, text: str, mesh: Mesh) -> tuple[SubAxis, ...]:
    match = _DIMENSION.fullmatch(entry)
    if match is None:
        raise InputError(f"layout {text[:80]!r}", f"entry {entry[:40]!r} is none", _FORM)
    if match["axes"] is None:
        return ()
    return tuple(parse_part(part.strip(), text, mesh) for part in match["axes"].split(","))


def _partial(entry: str, text: str, mesh: Mesh) -> tuple[SubAxis, ReduceOp]:
    match = re.fullmatch(r"P\((?P<axis>[^,]*?)(,(?P<op>[^,()]*))?\)", entry)
    if match is None:
        raise InputError(f"layout {text[:80]!r}", f"entry {entry[:40]!r} is no P(axis)", _FORM)
    op = ReduceOp.SUM if match["op"] is None else ReduceOp.parse(match["op"].strip())
    return parse_part(match["axis"].strip(), text, mesh), op


def parse_part(part: str, text: str, mesh: Mesh) -> SubAxis:
    """An axis ``tp`` or a sub-axis ``tp:(2)4`` of a layout that reads ``text``.

    Raises:
        InputError: it is neither, or the mesh has no such axis.
    """
    match = _PART.fullmatch(part)
    if match is None:
        rule = f"{part[:40]!r} is neither an axis nor a sub-axis such as tp:(2)4"
        raise InputError(f"layout {text[:80]!r}", rule, _FORM)
    axis = mesh.index(match["name"])
    if match["before"] is None:
        return SubAxis(axis, 1, mesh.axes[axis].size)
    return SubAxis(axis, int(match["before"]), int(match["size"]))


def layout_text(layout: Layout, mesh: Mesh) -> str:
    """The written form; :func:`parse_layout` reads it back."""
    dims = ",".join(
        f"S({','.join(part.text(mesh) for part in dim)})" if dim else "R" for dim in layout.dims
    )
    op = "" if layout.op is ReduceOp.SUM else f",{layout.op.value}"
    return dims + "".join(f";P({part.text(mesh)}{op})" for part in layout.partial)


def mesh_text(mesh: Mesh) -> str:
    """``dp=4,tp=8``; :func:`parse_mesh` reads it back."""
    return ",".join(f"{axis.name}={axis.size}" for axis in mesh.axes)
