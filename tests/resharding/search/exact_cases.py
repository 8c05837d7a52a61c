"""Random small redistributions on random small clusters, and ends written as options write them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from hypothesis import assume
from hypothesis import strategies as st

from p2smt.cluster.file import load_topology
from p2smt.cluster.topology import Link, Topology
from p2smt.cost.link_bounds import bare_links
from p2smt.errors import InputError
from p2smt.resharding.endpoints import Ends, ends_of
from p2smt.resharding.step_prices import StepPrices
from p2smt.resharding.steps import MemoryLimit
from p2smt.resharding.types import ArrayType, ElementType, Mesh, Uneven, parse_layout, parse_mesh

CLUSTERS = ("azure-ndv4", "dgx-h100", "dgx1-v100", "mi300x", "gcp-a3-mega", "tpu-v5p", "aws-p4d")
MESHES = ("a=2,b=4", "a=4,b=2", "a=8", "a=2,b=2,c=2", "a=2,b=3", "a=6", "a=3,b=2")


@dataclass(frozen=True, slots=True)
class Case:
    """A question to the search."""

    ends: tuple[Ends, ...]
    topology: Topology
    memory: MemoryLimit
    max_steps: int | None

    @property
    def prices(self) -> tuple[StepPrices, ...]:
        """Of each of the ends, made anew: prices are no plain value that could be written down."""
        return tuple(StepPrices(self.topology, one.frame) for one in self.ends)


def ends_between(
    mesh: Mesh,
    shape: tuple[int, ...],
    layouts: Sequence[str],
    other: Mesh | None = None,
    uneven: Uneven = Uneven.REFUSE,
) -> tuple[Ends, ...]:
    """The ends of a redistribution of bf16 from one layout to another."""
    meshes = (mesh, other or mesh)
    source, target = (
        ArrayType(one, shape, ElementType.BF16, parse_layout(text, one), uneven)
        for one, text in zip(meshes, layouts, strict=True)
    )
    return ends_of(source, target)


def cluster(name: str, nodes: int, each: int) -> Topology:
    """So many nodes with so many devices, joined as a preset's."""
    whole = load_topology(name)
    sizes = [nodes, *[1] * (len(whole.levels) - 2), each][-len(whole.levels) :]
    levels = tuple(
        replace(level, size=size, whole=0, link=_sized(level.link, size))
        for level, size in zip(whole.levels, sizes, strict=True)
    )
    return replace(whole, levels=levels)


def _sized(link: Link, size: int) -> Link:
    return replace(link, torus=(size,)) if link.torus else link


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Meshes of 6 or 8 devices in any order, 1 or 2 dimensions, both kinds of caps, any prices."""
    text = draw(st.sampled_from(MESHES))
    count = parse_mesh(text).size
    order = draw(st.one_of(st.just(list(range(count))), st.permutations(range(count))))
    mesh = parse_mesh(text, order)
    other = mesh
    if count == 6 and draw(st.booleans()):
        other = parse_mesh(text, draw(st.permutations(range(count))))
    uneven = draw(st.sampled_from([Uneven.REFUSE, Uneven.REFUSE, Uneven.NESTED]))
    sizes = [24, 13, 17, 3, 2, 10**6 + 1] if uneven is Uneven.NESTED else [24, 48, 1200]
    shape = tuple(draw(st.lists(st.sampled_from(sizes), min_size=1, max_size=2)))
    layouts = [draw(_layouts(mesh, len(shape), partial)) for partial in (True, False)]
    try:
        ends = ends_between(mesh, shape, layouts, other, uneven)
        topology = draw(_clusters(count))
    except InputError:
        assume(False)
    for one in ends:
        StepPrices(topology, one.frame)
    memory = draw(_caps(ends[0]))
    return Case(ends, topology, memory, draw(st.sampled_from([None, None, 1, 2, 3])))


@st.composite
def _clusters(draw: st.DrawFn, devices: int) -> Topology:
    nodes = draw(st.sampled_from([n for n in range(2, devices + 1) if devices % n == 0]))
    found = cluster(draw(st.sampled_from(CLUSTERS)), nodes, devices // nodes)
    return draw(st.sampled_from([found, found.nominal(), bare_links(found)]))


@st.composite
def _layouts(draw: st.DrawFn, mesh: Mesh, dims: int, partial: bool) -> str:
    parts: list[str] = []
    for axis in mesh.axes:
        halves = [f"{axis.name}:(1)2", f"{axis.name}:(2){axis.size // 2}"]
        cut = axis.size > 3 and axis.size % 2 == 0 and draw(st.booleans())
        parts += halves if cut else [axis.name]
    lists: list[list[str]] = [[] for _ in range(dims)]
    sums = ""
    for part in draw(st.permutations(parts)):
        where = draw(st.integers(-2 if partial else -1, dims - 1))
        if where >= 0:
            lists[where].append(part)
        sums += f";P({part})" * (where == -2)
    return ",".join(f"S({','.join(some)})" if some else "R" for some in lists) + sums


@st.composite
def _caps(draw: st.DrawFn, ends: Ends) -> MemoryLimit:
    of_steps = draw(st.booleans())
    times = draw(st.sampled_from([0.9, 1, 1, 2, 3] if not of_steps else [1.5, 2, 2.5, 3, 3.5, 5]))
    keep = of_steps and draw(st.booleans())
    return MemoryLimit(int(ends.states_limit_bytes * times), of_steps, keep)
