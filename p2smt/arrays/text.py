"""The written form of meshes and layouts: ``dp=4,tp=8`` and ``S(dp),R;P(tp,max)``.

One entry per dimension, ``R`` or ``S(axes, major first)``; then for each partial axis ``;P(axis)``
or ``;P(axis,reduction)``.  A sub-axis is written as Shardy does: ``tp:(2)4``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from p2smt.arrays.element import ReduceOp
from p2smt.arrays.layout import Layout
from p2smt.arrays.mesh import Mesh, SubAxis
from p2smt.errors import InputError
from p2smt.units import parse_count

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
