"""Layouts as frameworks write them, for whoever has one in hand.

Here a layout lists tensor dimensions, ``S(x),R``, as JAX, GSPMD and Shardy do; DTensor lists mesh
axes, so that its ``[Shard(0), Replicate()]`` has an entry for each of two axes of a mesh, whatever
number of dimensions the array has.  Every notation is told from ours by its first characters, or
by a number where ours has the name of an axis.  What stands around it is passed over: the DTensor
or spec whose placements they are, the operation of HLO whose sharding it is.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from p2smt.errors import InputError
from p2smt.interop.arrays.shardy import parse_sharding
from p2smt.resharding.endpoints import prime_factors
from p2smt.resharding.states import joined
from p2smt.resharding.types import (
    Layout,
    Mesh,
    ReduceOp,
    SubAxis,
    layout_text,
    parse_layout,
    parse_part,
)

_Parts = tuple[SubAxis, ...]


@dataclass(frozen=True, slots=True)
class Notation:
    """How a framework writes layouts.

    lists: what its entries are of.  sign: how its texts begin, after blanks.  read: text, mesh and
    number of tensor dimensions to the layout; InputError if it is malformed.
    """

    name: str
    lists: str
    sign: re.Pattern[str]
    read: Callable[[str, Mesh, int], Layout]


def read_layout(text: str, mesh: Mesh, dimensions: int) -> tuple[Layout, str]:
    """The layout of a text in our notation or a framework's, and what is to be said of the latter.

    Raises:
        InputError: the text is of no such form, or does not fit the mesh or the dimensions.
    """
    plain = text.strip()
    found = next((one for one in NOTATIONS if one.sign.match(plain)), None)
    if found is None:
        return parse_layout(text, mesh), ""
    layout = found.read(plain, mesh, dimensions)
    layout.check(mesh)
    ours = f"here '{layout_text(layout, mesh)}', which lists tensor dimensions"
    return layout, f"{plain[:120]} is {found.name}, which lists {found.lists}: {ours}"


def _refused(text: str, rule: str, remedy: str) -> InputError:
    return InputError(f"layout {text[:80]!r}", rule, remedy)


def _entries(text: str) -> list[str]:
    """What stands between commas outside brackets; one behind the last comma may be missing."""
    found, depth = [""], 0
    for letter in text:
        depth += (letter in "([{") - (letter in ")]}")
        if letter == "," and depth == 0:
            found.append("")
        else:
            found[-1] += letter
    entries = [entry.strip() for entry in found]
    return entries if entries[-1] else entries[:-1]


def _inside(text: str, start: int) -> str:
    """What stands behind an opening bracket, up to the one that closes it."""
    depth = 1
    for place in range(start, len(text)):
        depth += (text[place] in "([{") - (text[place] in ")]}")
        if not depth:
            return text[start:place]
    return text[start:]


# DTensor: an entry for each axis of the mesh; of several axes of one dimension the first is major.


_TORCH_FORM = "write one Shard(dim), Replicate() or Partial() for each axis of the mesh"
_PLACEMENT = re.compile(
    r"(?:\w+\.)*(?:(?:Shard|S)\((?:dim\s*=\s*)?(?P<dim>-?\d{1,3})\)|(?P<whole>Replicate\(\)|R)|"
    r"(?:_?Partial|P)\((?:reduce_op\s*=\s*)?[\"']?(?P<op>\w*)[\"']?\))"
)
_RUN = re.compile(rf"(?:{_PLACEMENT.pattern})+".replace("?P<", "?P<_"))
"""Placements one after the other, as a DTensorSpec prints them: ``S(0)R``."""
_PLACEMENTS = re.compile(r"\bplacements\s*=\s*[(\[]")


def _torch(text: str, mesh: Mesh, dimensions: int) -> Layout:
    whole = re.match(r"[(\[]", text) if text[0] + text[-1] in ("[]", "()") else None
    found = _PLACEMENTS.search(text) or whole
    inside = _inside(text, found.end()) if found else text
    entries, count = _entries(inside), len(mesh.axes)
    if len(entries) == 1 and _RUN.fullmatch(inside):
        entries = [one[0] for one in _PLACEMENT.finditer(inside)]
    if "_StridedShard" in text:
        rule = "a strided shard has another order of axes than the mesh"
        raise _refused(text, rule, "write it in the order of the shards, such as 'S(tp,dp),R'")
    if len(entries) != count:
        rule = f"DTensor's has an entry for each axis of the mesh: {count}, not {len(entries)}"
        raise _refused(text, rule, _TORCH_FORM)
    dims: list[_Parts] = [()] * dimensions
    partial: list[tuple[SubAxis, ReduceOp]] = []
    for axis, entry in enumerate(entries):
        part, match = SubAxis(axis, 1, mesh.sizes[axis]), _PLACEMENT.fullmatch(entry)
        if match is None:
            raise _refused(text, f"entry {entry[:40]!r} is no placement of DTensor", _TORCH_FORM)
        if match["dim"] is not None:
            dim = int(match["dim"])
            if not -dimensions <= dim < dimensions:
                rule = f"{entry} shards a dimension that an array of {dimensions} does not have"
                raise _refused(text, rule, "in DTensor the number is a tensor dimension, from 0")
            dims[dim] = (*dims[dim], part)
        elif match["whole"] is None:
            partial.append((part, ReduceOp.parse(match["op"] or "sum")))
    ops = {op for _, op in partial}
    if len(ops) > 1:
        raise _refused(text, "partial values of one array have one reduction", "reduce one first")
    return Layout(tuple(dims), tuple(part for part, _ in partial), *ops)


# JAX: an entry for each dimension; those left out at the end are whole.


_JAX_FORM = "write P('x', None), P(('x', 'y')) or P('x', unreduced={'y'})"


def _jax(text: str, mesh: Mesh, dimensions: int) -> Layout:
    start = re.search(r"\b(?:P|PartitionSpec)\(|^[(\[]", text)
    if start is None or text[-1] not in ")]":
        raise _refused(text, "is no PartitionSpec", _JAX_FORM)
    inside = _inside(text, start.end())
    dims: list[_Parts] = []
    partial: _Parts = ()
    for entry in _entries(inside):
        if entry.replace(" ", "").startswith("unreduced="):
            partial = _names(entry.partition("=")[2].strip(), text, mesh)
        else:
            dims.append(() if entry == "None" else _names(entry, text, mesh))
    if len(dims) > dimensions:
        rule = f"has {len(dims)} entries, and the array {dimensions} dimensions"
        raise _refused(text, rule, _JAX_FORM)
    return Layout((*dims, *[()] * (dimensions - len(dims))), partial)


def _names(entry: str, text: str, mesh: Mesh) -> _Parts:
    inside = entry[1:-1] if entry[:1] + entry[-1:] in ("()", "[]", "{}") else entry
    return tuple(parse_part(name.strip("'\""), text, mesh) for name in _entries(inside))


# GSPMD: how many tiles each dimension has, and which device has which, by position in the mesh.


_GSPMD_FORM = "write {devices=[4,1]<=[4]} with one number of tiles for each dimension"
_SHARDING = re.compile(r"^.*sharding\s*=\s*[\"']?(?=\{)|[\"']$")
_TILES = re.compile(
    r"\{devices=\[(?P<tiles>[\d,]+)\](?:<=\[(?P<iota>[\d,]+)\](?:T\((?P<turn>[\d,]+)\))?|"
    r"(?P<ids>[\d,]+))\s*(?P<last>last_tile_dim_replicate|last_tile_dims=\{replicated\})?\}"
)


def _gspmd(text: str, mesh: Mesh, dimensions: int) -> Layout:
    text = _SHARDING.sub("", text)
    text = text if text.startswith("{") else f"{{{text}}}"
    if text.replace(" ", "") == "{replicated}":
        return Layout(((),) * dimensions)
    match = _TILES.fullmatch(text)
    if match is None:
        raise _refused(text, "is no sharding in tiles of the whole mesh", _GSPMD_FORM)
    tiles = _numbers(match["tiles"])
    if len(tiles) != dimensions + bool(match["last"]):
        rule = f"has tiles of {len(tiles) - bool(match['last'])} dimensions, the array {dimensions}"
        raise _refused(text, rule, _GSPMD_FORM)
    ids = _tile_devices(match, math.prod(tiles))
    if sorted(ids) != list(range(mesh.size)):
        rule = f"its devices are not 0 to {mesh.size - 1}, the positions in the mesh"
        raise _refused(text, rule, "give the mesh that it is for")
    place = np.empty((mesh.size, len(tiles)), dtype=np.int64)
    place[ids] = np.indices(tiles).reshape(len(tiles), -1).T
    dims = [_parts(place[:, dim], mesh) for dim in range(dimensions)]
    if None in dims:
        rule = "its tiles are not those of whole factors of the mesh's axes"
        raise _refused(text, rule, "give a mesh with an axis for each factor")
    return Layout(tuple(dim for dim in dims if dim is not None))


def _numbers(text: str) -> list[int]:
    return [int(word[:9]) for word in text.split(",") if word]


def _tile_devices(match: re.Match[str], count: int) -> list[int]:
    """The device of each tile, row-major; empty where the numbers do not fit each other."""
    if match["ids"]:
        found = _numbers(match["ids"])
        return found if len(found) == count else []
    sizes = _numbers(match["iota"])
    turn = _numbers(match["turn"]) if match["turn"] else list(range(len(sizes)))
    if math.prod(sizes) != count or count > 1 << 24 or sorted(turn) != list(range(len(sizes))):
        return []
    ids: list[int] = np.arange(count).reshape(sizes).transpose(turn).ravel().tolist()
    return ids


def _parts(tile: np.ndarray, mesh: Mesh) -> _Parts | None:
    """The parts of axes, major first, that number the tiles of a dimension; None: none do.

    A tile is a sum of strides of digits.  As every tile has equally many devices, sums that count
    from 0 without a gap are those of a mixed radix: strides in falling order are its digits.
    """
    digits = [
        SubAxis(axis, math.prod(primes[:k]), prime)
        for axis, size in enumerate(mesh.sizes)
        for primes in [prime_factors(size)]
        for k, prime in enumerate(primes)
    ]
    positions, total = np.arange(mesh.size), np.zeros_like(tile)
    strides: list[tuple[int, SubAxis]] = []
    for digit in digits:
        below = math.prod(mesh.sizes[digit.axis :]) // (digit.before * digit.size)
        stride = int(tile[below] - tile[0])
        total = total + positions // below % digit.size * stride
        strides += [(stride, digit)] if stride else []
    if not np.array_equal(total, tile):
        return None
    return joined([digit for _, digit in sorted(strides, reverse=True)])


def _shardy(text: str, mesh: Mesh, _: int) -> Layout:
    name = re.match(r"(?:#sdy\.sharding)?<@(?P<name>[\w.$-]+)", text)
    if name is None:
        return parse_sharding(f"<@mesh, {text}>", {"mesh": mesh})[1]
    return parse_sharding(text, {name["name"]: mesh})[1]


_DIMENSIONS = "tensor dimensions"
NOTATIONS = (
    Notation(
        "JAX's",
        _DIMENSIONS,
        re.compile(r"[\[(]\s*(?:[\[(]\s*)?(?:[\"']|None\b)"),
        _jax,
    ),
    Notation(
        "DTensor's",
        "mesh axes",
        re.compile(
            r"[\[(](?!\s*\{)|.*\b_?(?:StridedShard|Shard|Replicate|Partial)\b|.*(?:\b|R)S\(\s*-?\d"
        ),
        _torch,
    ),
    Notation(
        "JAX's",
        _DIMENSIONS,
        re.compile(r"(?:[\w.]*NamedSharding\(.*)?[\w.]*\b(?:P|PartitionSpec)\("),
        _jax,
    ),
    Notation(
        *("GSPMD's", "tiles of tensor dimensions"),
        *(re.compile(r"\{|devices=\[|.*\bsharding\s*=\s*[\"']?\{"), _gspmd),
    ),
    Notation("Shardy's", _DIMENSIONS, re.compile(r"\[\s*\{|<@|#sdy"), _shardy),
)
"""The notations that are read; the first whose sign a text has."""
