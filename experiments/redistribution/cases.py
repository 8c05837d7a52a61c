"""The cases: pairs of types that frameworks' own tests have, and random ones."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from experiments.redistribution.clusters import cluster_of
from p2smt.errors import InputError
from p2smt.interop.arrays.peers.compare_peers import ShardyCase
from p2smt.resharding.types import (
    ArrayType,
    ElementType,
    Layout,
    Mesh,
    SubAxis,
    Uneven,
    parse_layout,
    parse_mesh,
)

SQUARE, CUBE = (8192, 8192), (1024, 512, 512)
MEBIBYTE = 2**20
SEED = 1

THREE_AXES = (
    # of test_redistribute_shard_dim_multi_dim_mesh, then of test_ordered_redistribute
    ("S(a,b,c),R,R", "R,S(a,b,c),R"),
    ("S(a,c),S(b),R", "S(b,c),S(a),R"),
    ("S(a),S(b),S(c)", "S(c),S(b),S(a)"),
    ("S(b,c),S(a),R", "S(b,c),R,R"),
    ("S(c),S(a),R", "S(b,c),R,R"),
    ("S(a,b),S(c),R", "S(a),S(b),S(c)"),
    ("S(a,b,c),R,R", "S(b,c),R,R"),
    ("S(b,a,c),R,R", "S(b,c),R,R"),
    ("S(b,a,c),R,R", "S(a,b),R,R"),
    ("S(a,b),R,R", "S(c),S(b),R"),
)
"""Pairs of pytorch's test/distributed/tensor/test_redistribute.py (0133e92a) with three axes."""

UNEVEN_GATHERS = ((10, 5), (9, 5), (3, 5), (1, 3))
"""Shapes of test_redistribute_uneven_sharding there: from S(0),S(0) and S(0),S(1) to R,R on 2x2."""

UNEVEN_MOVES = ((8, 5), (5, 8), (5, 5))
"""Uneven shapes of test_redistribute_shard_dim_change there, on 4 devices and on 2x2.

Of the last one the pairs on 2x2 are left out: they need more memory than source and destination.
"""

LARGE = (
    ("dgx-h100:16", "a=16,b=8", SQUARE, "S(a,b),R", "R,S(a,b)", None),
    ("dgx-h100:16", "a=16,b=8", SQUARE, "S(a),S(b)", "S(b),S(a)", None),
    ("dgx-h100:16", "a=16,b=8", SQUARE, "S(a),R;P(b)", "R,S(b)", None),
    ("dgx-h100:512", "a=8,b=8,c=8,d=8", (2**16, 2**16), "S(a,b),S(c,d)", "S(c,d),S(a,b)", 4),
    ("dgx-h100:512", "a=8,b=8,c=8,d=8", (2**16, 2**16), "S(a,b,c,d),R", "R,S(a,b,c,d)", 4),
    ("dgx-h100:512", "a=8,b=8,c=8,d=8", (2**16, 2**16), "R,R;P(a);P(d)", "S(a,d),R", 4),
    (
        *("dgx-h100:512", "a=8,b=8,c=8,d=8", (1024, 1024, 256, 256)),
        *("S(a),S(b),S(c),S(d)", "S(d),S(c),S(b),S(a)", 4),
    ),
    (
        *("dgx-h100:512", "a=8,b=8,c=8,d=8", (1024, 1024, 256, 256)),
        *("S(a,b),S(c),S(d),R", "R,S(a),S(b,c),S(d)", 4),
    ),
)
"""Cluster, mesh, shape, from, to, most steps: 7 digits, and 12 on 4,096 devices."""


@dataclass(frozen=True, slots=True)
class Case:
    """A redistribution on a cluster; ``shardy``: what Shardy emits for it."""

    group: str
    name: str
    cluster: str
    source: ArrayType
    target: ArrayType
    max_steps: int | None = None
    shardy: ShardyCase | None = None


def _case(
    group: str,
    name: str,
    cluster: str,
    mesh: Mesh,
    shape: Sequence[int],
    ends: Sequence[Layout],
    uneven: Uneven = Uneven.REFUSE,
) -> Case:
    source, target = (ArrayType(mesh, tuple(shape), ElementType.BF16, end, uneven) for end in ends)
    return Case(group, name, cluster, source, target)


def _pair(
    group: str, cluster: str, mesh: Mesh, shape: Sequence[int], source: str, target: str
) -> Case:
    ends = [parse_layout(text, mesh) for text in (source, target)]
    return _case(group, f"{source} to {target}", cluster, mesh, shape, ends)


def uneven_cases(group: str) -> Iterator[Case]:
    """Pytorch's arrays that do not divide, some smaller than their shards."""
    gathers = (("S(a,b),R", "R,R"), ("S(a),S(b)", "R,R"))
    lines = (("S(a),R", "R,S(a)"), ("R,S(a)", "S(a),R"))
    squares = (("S(a),S(b)", "S(a,b),R"), ("S(a),S(b)", "S(b),S(a)"), ("S(a,b),R", "R,S(a,b)"))
    for mesh_text, shapes, pairs in (
        ("a=2,b=2", UNEVEN_GATHERS, gathers),
        ("a=4", UNEVEN_MOVES, lines),
        ("a=2,b=2", UNEVEN_MOVES[:-1], squares),
    ):
        mesh = parse_mesh(mesh_text)
        for shape, texts in itertools.product(shapes, pairs):
            name = f"{shape[0]} x {shape[1]}, {texts[0]} to {texts[1]} on {mesh_text}"
            ends = [parse_layout(text, mesh) for text in texts]
            cluster = cluster_of("azure-ndv4", mesh.size)
            yield _case(group, name, cluster, mesh, shape, ends, Uneven.NESTED)


def two_axes(group: str, cluster: str, mesh_text: str) -> Iterator[Case]:
    """The 135 pairs of pytorch's test_multi_dim_mesh, without R,R as source."""
    mesh = parse_mesh(mesh_text)
    sources = [letters for letters in itertools.product("R01P", repeat=2) if set(letters) != {"R"}]
    for source, target in itertools.product(sources, itertools.product("R01", repeat=2)):
        yield _pair(group, cluster, mesh, SQUARE, _layout(mesh, source), _layout(mesh, target))


def _layout(mesh: Mesh, letters: Sequence[str]) -> str:
    """The layout of DTensor's placements: per axis R, P or the dimension that it shards."""
    dims: list[list[str]] = [[], []]
    partial = ""
    for axis, letter in zip(mesh.axes, letters, strict=True):
        if letter == "P":
            partial += f";P({axis.name})"
        elif letter != "R":
            dims[int(letter)].append(axis.name)
    return ",".join(f"S({','.join(dim)})" if dim else "R" for dim in dims) + partial


def three_axes(group: str, cluster: str, mesh_text: str) -> Iterator[Case]:
    """Pytorch's ten pairs, then twenty random ones."""
    mesh = parse_mesh(mesh_text)
    for source, target in THREE_AXES:
        yield _pair(group, cluster, mesh, CUBE, source, target)
    draw = random.Random(SEED)
    for number in range(20):
        ends = _random_ends(draw, mesh, len(CUBE))
        yield _case(group, f"random {number}", cluster, mesh, CUBE, ends)


def _random_ends(draw: random.Random, mesh: Mesh, dims: int) -> list[Layout]:
    """Two different layouts of whole axes; the source may be partial."""
    while True:
        ends = [_random_layout(draw, mesh, dims, partial) for partial in (True, False)]
        if ends[0] != ends[1]:
            return ends


def _random_layout(draw: random.Random, mesh: Mesh, dims: int, partial: bool) -> Layout:
    places: list[list[SubAxis]] = [[] for _ in range(dims + 2)]
    axes = list(range(len(mesh.axes)))
    draw.shuffle(axes)
    for axis in axes:
        place = draw.randrange(dims + 1 + partial)
        places[place].append(SubAxis(axis, 1, mesh.sizes[axis]))
    return Layout(tuple(map(tuple, places[:dims])), tuple(sorted(places[dims + 1])))


def random_cases(group: str) -> Iterator[Case]:
    """Forty random pairs of four to six digits, from a quarter of a mebibyte on."""
    draw = random.Random(SEED)
    meshes = (
        "a=4,b=4",
        "a=2,b=8",
        "a=2,b=2,c=4",
        "a=4,b=8",
        "a=2,b=2,c=8",
        "a=8,b=8",
        "a=4,b=4,c=4",
    )
    for number in range(40):
        mesh = parse_mesh(draw.choice(meshes))
        dims = draw.choice((2, 3))
        shape = [mesh.size * 2 ** draw.randrange(3, 8) // 2 ** (dims - 2) for _ in range(dims)]
        cluster = cluster_of(draw.choice(("azure-ndv4", "dgx-h100")), mesh.size)
        ends = _random_ends(draw, mesh, dims)
        yield _case(group, f"random {number}", cluster, mesh, shape, ends)


def large_cases(group: str) -> Iterator[Case]:
    """Many digits: what planning takes."""
    for cluster, mesh_text, shape, source, target, most in LARGE:
        found = _pair(group, cluster, parse_mesh(mesh_text), shape, source, target)
        yield Case(group, found.name, cluster, found.source, found.target, most)


def shardy_cases(
    group: str, preset: str, cases: Sequence[ShardyCase], total_bytes: int
) -> Iterator[Case]:
    """Shardy's functions on a mesh of at least four devices that change something."""
    for one in cases:
        mesh = one.meshes[0]
        if mesh.size < 4 or not one.kinds:
            continue
        shape = _scaled(one, total_bytes)
        try:
            source, target = one.array_types(shape)
        except InputError:
            continue
        if source.mesh.axes == target.mesh.axes:
            cluster = cluster_of(preset, mesh.size)
            yield Case(group, one.name, cluster, source, target, shardy=one)


def _scaled(case: ShardyCase, total_bytes: int) -> list[int]:
    """The dimensions in about their proportions, so large in all, divided by every sharding."""
    elements = total_bytes / case.element.item_bytes
    for size in case.shape:
        elements /= size
    factor = elements ** (1 / len(case.shape))
    unit = case.meshes[0].size
    return [max(1, round(size * factor / unit)) * unit for size in case.shape]


def groups(shardy: Sequence[ShardyCase]) -> dict[str, list[Case]]:
    """All cases by group; those of Shardy only where its file is given."""
    found = {
        "dtensor 4x8": list(two_axes("dtensor 4x8", "azure-ndv4:4", "a=4,b=8")),
        "dtensor 8x8": list(two_axes("dtensor 8x8", "dgx-h100:8", "a=8,b=8")),
        "dtensor 2x2x8": list(three_axes("dtensor 2x2x8", "azure-ndv4:4", "a=2,b=2,c=8")),
        "dtensor 2x4x8": list(three_axes("dtensor 2x4x8", "dgx-h100:8", "a=2,b=4,c=8")),
        "dtensor uneven": list(uneven_cases("dtensor uneven")),
        "random": list(random_cases("random")),
        "large": list(large_cases("large")),
    }
    for preset in ("azure-ndv4", "dgx-h100") if shardy else ():
        group = f"shardy {preset}"
        found[group] = list(shardy_cases(group, preset, shardy, 256 * MEBIBYTE))
    if shardy:
        small = "shardy azure-ndv4 small"
        found[small] = list(shardy_cases(small, "azure-ndv4", shardy, MEBIBYTE // 4))
    return found
