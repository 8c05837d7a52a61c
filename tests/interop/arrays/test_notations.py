"""Layouts as frameworks write them: each is read as what it says of every device's elements."""

from __future__ import annotations

import math
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from p2smt.interop.arrays.notations import read_layout
from p2smt.resharding.types import Layout, Mesh, SubAxis, layout_text, parse_layout, parse_mesh
from tests.cli.tools import assert_one_error, cli
from tests.interop.arrays.shardy_text import sharding_text
from tests.refusals import refusal
from tests.tiers import examples_of

DOCS = Path(__file__).parents[3] / "docs"


def ours(text: str, mesh: str, dimensions: int) -> str:
    """The layout of a text in our notation."""
    made = parse_mesh(mesh)
    return layout_text(read_layout(text, made, dimensions)[0], made)


@pytest.mark.parametrize(
    ("text", "mesh", "dimensions", "layout"),
    [
        # DTensor: an entry for each axis of the mesh
        ("Shard(0)", "x=4", 2, "S(x),R"),
        ("Shard(1)", "x=4", 2, "R,S(x)"),
        ("S(1)", "x=4", 2, "R,S(x)"),
        ("[Shard(0), Replicate()]", "x=2,y=2", 1, "S(x)"),
        ("[Shard(0), Replicate()]", "x=2,y=2", 3, "S(x),R,R"),
        ("(Replicate(), Shard(dim=0))", "x=2,y=2", 2, "S(y),R"),
        ("(Shard(dim=0),)", "x=4", 1, "S(x)"),
        ("[Shard(0), Shard(0)]", "x=2,y=2", 2, "S(x,y),R"),
        ("[Shard(1), Shard(0)]", "x=2,y=2", 2, "S(y),S(x)"),
        ("Shard(-1)", "x=4", 2, "R,S(x)"),
        ("[S(0), R]", "x=2,y=2", 2, "S(x),R"),
        ("[R]", "x=4", 2, "R,R"),
        ("(Replicate(), Partial())", "x=2,y=2", 1, "R;P(y)"),
        ("(Partial(sum), Shard(0))", "x=2,y=2", 1, "S(y);P(x)"),
        ("[Partial('max'), Partial(reduce_op='max')]", "x=2,y=2", 1, "R;P(x,max);P(y,max)"),
        ("[P(avg), R]", "x=2,y=2", 1, "R;P(x,avg)"),
        ("[torch.distributed.tensor.Shard(0), dt.Replicate()]", "x=2,y=2", 1, "S(x)"),
        ("_Partial()", "x=4", 1, "R;P(x)"),
        ("S(0)R", "x=2,y=2", 2, "S(x),R"),
        ("RS(1)", "x=2,y=2", 2, "R,S(y)"),
        ("Replicate()Shard(dim=0)", "x=2,y=2", 1, "S(y)"),
        ("placements=[Shard(0), Replicate()]", "x=2,y=2", 1, "S(x)"),
        ("DTensorSpec(mesh=DeviceMesh([0, 1]), placements=(Shard(dim=1),))", "x=2", 2, "R,S(x)"),
        ("DTensor(a=(1), placements=(Partial(sum), R), b=[2])", "x=2,y=2", 1, "R;P(x)"),
        # JAX: an entry for each dimension
        ("('x', None)", "x=4", 2, "S(x),R"),
        ("[None, 'x']", "x=4", 2, "R,S(x)"),
        ("(('y', 'x'), None)", "x=2,y=2", 2, "S(y,x),R"),
        ("('x',)", "x=4", 2, "S(x),R"),
        ("P('x', None)", "x=4", 2, "S(x),R"),
        ("P(None, 'x')", "x=4", 2, "R,S(x)"),
        ('P("x")', "x=4", 3, "S(x),R,R"),
        ("P()", "x=4", 2, "R,R"),
        ("P(x,None)", "x=4", 2, "S(x),R"),
        ("P(('y', 'x'), None,)", "x=2,y=2", 2, "S(y,x),R"),
        ("PartitionSpec(('x',), 'y')", "x=2,y=2", 2, "S(x),S(y)"),
        ("jax.sharding.PartitionSpec('x')", "x=4", 1, "S(x)"),
        ("NamedSharding(mesh, P(None, 'y'))", "x=2,y=2", 2, "R,S(y)"),
        ("NamedSharding(mesh=Mesh('x': 2), spec=P('x',), memory_kind=device)", "x=2", 1, "S(x)"),
        ("P('x', unreduced={'y'})", "x=2,y=2", 1, "S(x);P(y)"),
        # GSPMD: tiles of each dimension
        ("{devices=[4,1]<=[4]}", "x=4", 2, "S(x),R"),
        ("{devices=[1,4]<=[4]}", "x=2,y=2", 2, "R,S(x,y)"),
        ("{devices=[2,2]<=[4]}", "x=2,y=2", 2, "S(x),S(y)"),
        ("{devices=[2,2]<=[2,2]T(1,0)}", "x=2,y=2", 2, "S(y),S(x)"),
        ("{devices=[2,1,2]<=[4] last_tile_dim_replicate}", "x=2,y=2", 2, "S(x),R"),
        ("{devices=[2,2]<=[2,2]T(1,0) last_tile_dim_replicate}", "x=2,y=2", 1, "S(y)"),
        ("{devices=[2,2]0,2,1,3 last_tile_dims={replicated}}", "x=2,y=2", 1, "S(y)"),
        ("{devices=[2,2]0,2,1,3}", "x=4", 2, "S(x:(2)2),S(x:(1)2)"),
        ("{replicated}", "x=4", 2, "R,R"),
        ("devices=[4,1]<=[4]", "x=4", 2, "S(x),R"),
        ("sharding={devices=[1,4]<=[4]}", "x=4", 2, "R,S(x)"),
        ("f32[2,4]{1,0} dot(a, b), sharding={devices=[4,1]<=[4]}", "x=4", 2, "S(x),R"),
        ('mhlo.sharding = "{devices=[4,1]<=[4]}"', "x=4", 2, "S(x),R"),
        ("sharding={replicated}", "x=4", 2, "R,R"),
        # Shardy
        ('[{"x"}, {}]', "x=4", 2, "S(x),R"),
        ('[{}, {"x":(2)2, "y"}]', "x=4,y=2", 2, "R,S(x:(2)2,y)"),
        ('#sdy.sharding<@m, [{"x"}], unreduced={"y"}>', "x=2,y=2", 1, "S(x);P(y)"),
        # ours
        ("S(x),R;P(y)", "x=2,y=2", 2, "S(x),R;P(y)"),
        ("R", "x=4", 1, "R"),
    ],
)
def test_a_notation_is_read(text: str, mesh: str, dimensions: int, layout: str) -> None:
    assert ours(text, mesh, dimensions) == layout
    assert ours(f" {text} ", mesh, dimensions) == layout


def test_the_page_says_what_is_read() -> None:
    page = (DOCS / "redistribution.md").read_text().partition("Layouts of frameworks are read")[2]
    rows = re.findall(r"^\| \w* ?\| (`.*`) \| `(.*?)`", page.partition("\n\nAxes")[0], re.MULTILINE)
    found = [(text, layout) for texts, layout in rows for text in re.findall("`(.*?)`", texts)]
    assert len(found) >= 8
    for text, layout in found:
        assert ours(text, "dp=4,tp=8", 2) == layout


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("Shard(0)", "DTensor's has an entry for each axis of the mesh: 2, not 1"),
        ("[Shard(0), Replicate(), Replicate()]", "each axis of the mesh: 2, not 3"),
        ("[Shard(2), Replicate()]", "Shard(2) shards a dimension that an array of 2 does not have"),
        ("[Shard(-3), Replicate()]", "an array of 2 does not have"),
        ("[Shard(x), Replicate()]", "entry 'Shard(x)' is no placement of DTensor"),
        ("[Shard(0), Maybe()]", "entry 'Maybe()' is no placement"),
        ("[Partial(sum), Partial(max)]", "partial values of one array have one reduction"),
        ("[Partial(median), R]", "is none of sum, avg"),
        ("(_StridedShard(dim=0, sf=2), Shard(dim=0))", "write it in the order of the shards"),
        ("P('x', None, 'y')", "has 3 entries, and the array 2 dimensions"),
        ("P('z')", "is none of the mesh's x, y"),
        ("P('x', 'x')", "an axis shards, or is partial, once at most"),
        ("P(P.UNCONSTRAINED)", "is neither an axis nor a sub-axis"),
        ("P('x'", "is no PartitionSpec"),
        ("{devices=[4]<=[4]}", "has tiles of 1 dimensions, the array 2"),
        ("{devices=[2,1]<=[2]}", "its devices are not 0 to 3"),
        ("{devices=[2,2]0,1,2,2}", "its devices are not 0 to 3"),
        ("{devices=[2,2]0,1,2}", "its devices are not 0 to 3"),
        ("{devices=[2,2]<=[2,2]T(1,1)}", "its devices are not 0 to 3"),
        ("{devices=[4,1]0,1,3,2}", "not those of whole factors of the mesh's axes"),
        ("{devices=[2,1,2]0,3,1,2 last_tile_dim_replicate}", "not those of whole factors"),
        ("{devices=[2,2]3,2,1,0}", "not those of whole factors of the mesh's axes"),
        ("{maximal device=0}", "is no sharding in tiles of the whole mesh"),
        ("{manual}", "is no sharding in tiles"),
        ('[{"x"}, {', "is no sdy.sharding"),
        ("S(x)R", "write one R or S(axis,..) per dimension"),
    ],
)
def test_what_a_notation_cannot_say_here_is_refused_in_a_line(text: str, said: str) -> None:
    shown = refusal(read_layout, text, parse_mesh("x=2,y=2"), 2)
    assert said in shown


def test_the_trap_is_named_where_entries_are_of_mesh_axes() -> None:
    """The command translates what is not ours, and says nothing of what is."""
    common = ("redistribute", "-t", "dgx-a100:1", "--nominal", "--mesh", "x=4,y=2")
    asked = (*common, "--shape", "8,8", "--dtype", "f32")
    torch = cli(*asked, "--from", "[Shard(1), Shard(0)]", "--to", "P('x', None)")
    mine = cli(*asked, "--from", "S(y),S(x)", "--to", "S(x),R")
    assert (torch.code, mine.code) == (0, 0)
    assert torch.out == mine.out
    assert "[Shard(1), Shard(0)] is DTensor's, which lists mesh axes: here 'S(y),S(x)'" in torch.err
    assert "P('x', None) is JAX's, which lists tensor dimensions: here 'S(x),R'" in torch.err
    assert "lists" not in mine.err
    assert_one_error(cli(*asked, "--from", "Shard(0)", "--to", "R,R"))


# Against index maps of our own: which tile of each dimension every position of the mesh has.

MESHES = [(2,), (4,), (6,), (2, 2), (2, 3), (4, 2), (3, 2, 2)]


def tiles_of(layout: Layout, mesh: Mesh) -> list[list[int]]:
    """By dimension the tile of every position, from the meaning of sub-axes alone."""
    coordinates = np.indices(mesh.sizes).reshape(len(mesh.sizes), -1)
    found = []
    for dim in layout.dims:
        tile = np.zeros(mesh.size, dtype=int)
        for part in dim:
            below = mesh.sizes[part.axis] // (part.before * part.size)
            tile = tile * part.size + coordinates[part.axis] // below % part.size
        found.append(tile.tolist())
    return found


@st.composite
def layouts(draw: st.DrawFn) -> tuple[Mesh, Layout]:
    """A mesh, and a layout of whole axes in any order over one to three dimensions."""
    sizes = draw(st.sampled_from(MESHES))
    mesh = parse_mesh(",".join(f"a{n}={size}" for n, size in enumerate(sizes)))
    order = draw(st.permutations(range(len(sizes))))
    places = draw(st.lists(st.integers(-1, 2), min_size=len(sizes), max_size=len(sizes)))
    dims = tuple(
        tuple(SubAxis(axis, 1, sizes[axis]) for axis in order if places[axis] == dim)
        for dim in range(1 + max(0, *places))
    )
    return mesh, Layout(dims)


@settings(max_examples=examples_of(200), deadline=None)
@given(layouts())
def test_tiles_are_those_that_each_device_has(case: tuple[Mesh, Layout]) -> None:
    """A list of devices by tile, replicas in the last dimension, as GSPMD has it."""
    mesh, layout = case
    tiles = tiles_of(layout, mesh)
    counts = [math.prod(part.size for part in dim) for dim in layout.dims]
    copies = mesh.size // math.prod(counts)
    order = sorted(range(mesh.size), key=lambda p: ([tile[p] for tile in tiles], p))
    shape = ",".join(map(str, [*counts, copies]))
    text = f"{{devices=[{shape}]{','.join(map(str, order))} last_tile_dim_replicate}}"
    found, _ = read_layout(text, mesh, len(counts))
    assert tiles_of(found, mesh) == tiles


@settings(max_examples=examples_of(200), deadline=None)
@given(layouts())
def test_notations_of_one_layout_are_one(case: tuple[Mesh, Layout]) -> None:
    mesh, layout = case
    names = [axis.name for axis in mesh.axes]
    spec = ", ".join(str(tuple(names[p.axis] for p in dim)) for dim in layout.dims)
    shardy = sharding_text("m", layout, mesh)
    for text in (f"P({spec})", shardy, layout_text(layout, mesh)):
        assert read_layout(text, mesh, len(layout.dims))[0] == layout
    in_order = all(list(dim) == sorted(dim) for dim in layout.dims)
    owner = {part.axis: dim for dim, parts in enumerate(layout.dims) for part in parts}
    each = [f"Shard({owner[n]})" if n in owner else "Replicate()" for n in range(len(names))]
    torch = read_layout(f"[{', '.join(each)}]", mesh, len(layout.dims))[0]
    assert (torch == layout) == in_order
    assert [sorted(dim) for dim in torch.dims] == [sorted(dim) for dim in layout.dims]


def test_our_own_notation_is_never_taken_for_another() -> None:
    mesh = parse_mesh("S=2,R=2,P=2")
    for text in ("S(S),R", "S(P),S(R)", "R;P(P)", "S(R,S);P(P,max)"):
        count = len(parse_layout(text, mesh).dims)
        assert read_layout(text, mesh, count) == (parse_layout(text, mesh), "")
