"""What a dispatch loads: against every routing, drawn ones, each device by itself, other kinds."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from itertools import combinations, permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from p2smt.cluster.file import load_topology
from p2smt.cluster.topology import Level, Link, LinkKind, Piece, Topology
from p2smt.collectives.dispatch import Dispatch
from p2smt.collectives.names import RequestKind
from p2smt.cost.bounds import priced_bound_s, single_bound_s, single_time
from p2smt.cost.dispatch import START_S, reached
from p2smt.cost.link_bounds import link_bound_s
from p2smt.cost.loads.footprint import digits_of
from p2smt.cost.scene import Scene
from p2smt.cost.step_time import StepTime
from p2smt.errors import InputError
from p2smt.parallelism.placement import Placement
from tests.cost.dispatch_arrays import device_loads, dispatch_s
from tests.oracles.placements import all_matrices
from tests.strategies.topologies import Case, cases
from tests.tiers import examples_of

DEEPSEEK = Dispatch(256, 8, 8, 4)
MIB = 2**20


def routings(kind: Dispatch) -> list[tuple[int, ...]]:
    """Every set of experts that a token may go to, each alike."""
    each = kind.experts // kind.groups
    return [
        one
        for one in combinations(range(kind.experts), kind.active)
        if len({expert // each for expert in one}) <= kind.top_groups
    ]


def needed(routing: Iterable[int], kind: Dispatch, entities: int) -> int:
    """The entities, with equal parts of the experts in order, that have one of these."""
    return len({expert * entities // kind.experts for expert in routing})


SMALL = [
    (experts, active, entities)
    for experts in (1, 2, 4, 6, 12)
    for active in range(1, experts + 1)
    for entities in range(1, experts + 1)
    if experts % entities == 0
]


@pytest.mark.parametrize(("experts", "active", "entities"), SMALL)
def test_it_is_the_mean_over_every_routing(experts: int, active: int, entities: int) -> None:
    kind = Dispatch(experts, active)
    counted = [needed(one, kind, entities) for one in routings(kind)]
    assert float(reached(entities, kind)) == pytest.approx(np.mean(counted), rel=1e-12)


@pytest.mark.parametrize("top_groups", [1, 2, 3, 4])
@pytest.mark.parametrize("active", [1, 2, 3])
@pytest.mark.parametrize("entities", [1, 2, 4, 12])
def test_a_limit_on_groups_bounds_every_routing(
    top_groups: int, active: int, entities: int
) -> None:
    """What is taken is no less than the mean, and where the limit binds no less than any."""
    kind = Dispatch(12, active, 4, top_groups)
    counted = [needed(one, kind, entities) for one in routings(kind)]
    taken, free = float(reached(entities, kind)), float(reached(entities, Dispatch(12, active)))
    assert taken >= np.mean(counted) - 1e-12
    assert taken <= free
    if taken < free:
        assert taken == top_groups * max(1, entities // 4) >= max(counted)


def test_deepseek_reaches_four_nodes_of_eight() -> None:
    """Section 3.2.2 of the report: each token to at most 4 nodes; without a limit to 5.3."""
    assert float(reached(8, DEEPSEEK)) == 4
    assert float(reached(8, Dispatch(256, 8))) == pytest.approx(5.29, abs=0.01)


def test_drawn_routings_have_that_mean() -> None:
    """20,000 tokens of a fixed seed, drawn without any of the product's code."""
    random, kind = np.random.default_rng(7), Dispatch(64, 6)
    drawn = random.random((20_000, 64)).argsort(axis=1)[:, :6]
    for entities in (2, 4, 8, 16, 64):
        owners = drawn * entities // 64
        counted = np.array([len(set(row)) for row in owners.tolist()])
        error = 4 * counted.std() / math.sqrt(len(counted))
        assert abs(counted.mean() - float(reached(entities, kind))) <= error + 1e-12


def test_a_load_is_of_the_entities_but_its_own() -> None:
    kind = Dispatch(16, 2)
    rows = np.array([[2, 4], [1, 8], [8, 1]])
    loads = device_loads(rows, kind)
    spanned = np.array([[2, 8], [1, 8], [8, 8]])
    wanted = reached(spanned, kind) * (spanned - 1) / spanned
    assert loads == pytest.approx(wanted)
    assert device_loads(rows, replace(kind, imbalance=1.5)) == pytest.approx(1.5 * wanted)


# Beside an all-to-all of a copy for each expert ---------------------------------------------


ROUTED = st.builds(
    lambda ranks, each, active, imbalance: (ranks, each, active, imbalance),
    *(st.just(0), st.integers(1, 4), st.integers(1, 6), st.sampled_from([1.0, 1.3])),
)


def kind_on(ranks: int, each: int, active: int, imbalance: float = 1.0) -> Dispatch:
    """A kind with so many experts on each of these ranks."""
    experts = ranks * each
    return Dispatch(experts, min(active, experts), imbalance=imbalance)


def step(topology: Topology, case: Case, kind: Dispatch | RequestKind, payload: int) -> StepTime:
    return Scene.of(topology, case.placement, case.axes).fixed_time(kind, payload)


@settings(max_examples=examples_of(300))
@given(cases(), ROUTED)
def test_no_level_moves_more_than_in_an_all_to_all(
    case: Case, numbers: tuple[int, int, int, float]
) -> None:
    """By ports of switches link by link; by what enters an entity at every level."""
    members = math.prod(case.placement.factors(case.axes))
    kind = kind_on(members, numbers[1], numbers[2])
    rows = np.array(case.placement.factors(case.axes))
    spanned = np.cumprod(rows)
    assert (device_loads(rows, kind) <= kind.active * (spanned - 1) / spanned * (1 + 1e-12)).all()
    ours = step(case.topology, case, kind, 1).level_s_per_byte
    theirs = step(case.topology.nominal(), case, RequestKind.ALL_TO_ALL, 1).level_s_per_byte
    for j, level in enumerate(case.topology.levels):
        alone = all(count == 1 for count in rows[:j])
        if level.link.kind is LinkKind.SWITCH or alone:
            assert ours[j] <= kind.active * theirs[j] * (1 + 1e-9)


@settings(max_examples=examples_of(300))
@given(cases(), ROUTED, st.integers(1, 10**6))
def test_bounds_and_prices(case: Case, numbers: tuple[int, int, int, float], payload: int) -> None:
    """The price is its own bound, no link allows less, and ranks one by one say the same."""
    topology, digits = case.topology, digits_of(case.placement, case.axes)
    kind = kind_on(math.prod(case.placement.factors(case.axes)), *numbers[1:])
    price = step(topology, case, kind, payload).seconds
    assert priced_bound_s(topology, digits, kind, payload) == pytest.approx(price, rel=1e-12)
    links = link_bound_s(topology, digits, kind, payload)
    assert links <= price * (1 + 1e-9)
    ranks = case.placement.rank_tensor()
    alone = single_time(topology, ranks, case.axes, kind, payload)
    assert alone.seconds == pytest.approx(price, rel=1e-9)
    assert single_bound_s(topology, ranks, case.axes, kind, payload) <= price * (1 + 1e-9)


@settings(max_examples=examples_of(200))
@given(cases(), st.integers(1, 3), st.integers(1, 5), st.integers(1, 10**6))
def test_time_grows_with_every_number(case: Case, each: int, active: int, payload: int) -> None:
    members = math.prod(case.placement.factors(case.axes))
    kind = kind_on(2 * members, each, active)
    base = step(case.topology, case, kind, payload).seconds
    more = [(kind, payload + 1), (replace(kind, imbalance=1.1), payload)]
    if kind.active < kind.experts:
        more.append((replace(kind, active=kind.active + 1), payload))
    if kind.active <= members * each:  # of fewer experts a token finds its own in more entities
        more.append((replace(kind, experts=members * each), payload))
    for other, size in more:
        assert step(case.topology, case, other, size).seconds >= base * (1 - 1e-12)
    faster = case.topology.with_bandwidth_factor(0, 2.0)
    assert step(faster, case, kind, payload).seconds <= base * (1 + 1e-12)


@pytest.mark.parametrize("top_groups", [1, 2, 3, 4])
def test_fewer_groups_cost_no_more(top_groups: int) -> None:
    rows, topology = np.array([8, 1]), load_topology("dgx-h100:8")
    kinds = [Dispatch(64, 4, 8, n) for n in (top_groups, top_groups + 1)]
    fewer, more = (float(dispatch_s(topology, rows, MIB, kind)) for kind in kinds)
    assert fewer <= more


# Many placements at once --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("preset", "axes"),
    [
        ("dgx-h100:4", (2, 16)),
        ("gb200-nvl72:2", (9, 16)),
        ("mi300x:4", (4, 8)),
        ("tpu-v5p", (2, 4, 8)),
        ("azure-ndv2:4", (4, 8)),
    ],
)
@pytest.mark.parametrize("nominal", [False, True])
def test_every_placement_at_once(preset: str, axes: tuple[int, ...], nominal: bool) -> None:
    """The same prices as scene by scene, for every matrix of every axis."""
    found = load_topology(preset)
    topology = found.nominal() if nominal else found
    if math.prod(axes) != topology.devices:
        axes = (topology.devices // 8, 8)
    matrices = list(all_matrices(topology.sizes, axes))
    for axis, size in enumerate(axes):
        kind = Dispatch(2 * size, min(3, size), imbalance=1.25)
        rows = np.array([matrix[axis] for matrix in matrices])
        strides = np.array(
            [np.prod(np.array(matrix)[axis + 1 :], axis=0, dtype=int) for matrix in matrices]
        )
        payloads = np.arange(len(matrices)) * 1000 + MIB
        once = dispatch_s(topology, rows, payloads, kind, strides)
        each = [
            Scene.of(topology, Placement(matrix), (axis,)).fixed_time(kind, int(payload)).seconds
            for matrix, payload in zip(matrices, payloads, strict=True)
        ]
        assert once == pytest.approx(each, rel=1e-9)


@settings(max_examples=examples_of(300))
@given(cases(), ROUTED, st.integers(0, 10**6))
def test_one_placement_of_any_cluster(
    case: Case, numbers: tuple[int, int, int, float], payload: int
) -> None:
    """Rings, tori, meshes, ports and caps as in the price of a scene."""
    matrix, axis = np.array(case.placement.matrix), case.axes[0]
    kind = kind_on(int(np.prod(matrix[axis])), *numbers[1:])
    strides = np.prod(matrix[axis + 1 :], axis=0, dtype=int)
    found = float(dispatch_s(case.topology, matrix[axis], payload, kind, strides))
    price = Scene.of(case.topology, case.placement, (axis,)).fixed_time(kind, payload).seconds
    assert found == pytest.approx(price, rel=1e-9)


def test_known_numbers_on_two_levels() -> None:
    """2 nodes of 4 at 50 GB/s a card and 450 GB/s a GPU; 2 of 8 experts, one a rank; 9 MB.

    Between nodes d = 2 (1 - C(4,2) / C(8,2)) = 11/7, so 11/14 of 9 MB leave each card; inside
    d = 8 (1 - C(7,2) / C(8,2)) = 2, so 7/4 of 9 MB leave a GPU.
    """
    found = load_topology("dgx-h100:2").nominal()
    levels = (found.levels[0], replace(found.levels[1], size=4, whole=0))
    cards = replace(levels[0], link=replace(levels[0].link, ports=4))
    topology = replace(found, levels=(cards, levels[1]))
    seconds = dispatch_s(topology, np.array([2, 4]), 9e6, Dispatch(8, 2))
    assert float(seconds) == pytest.approx(20e-6 + max(11 / 14 * 9e6 / 50e9, 7 / 4 * 9e6 / 450e9))


def test_known_numbers_between_siblings() -> None:
    """A mesh of 4 inside 2 nodes, 2 of 8 experts: each sibling needs a quarter of all tokens.

    A rank holds those of two, its own and what came to it, so that each link has half of one's.
    """
    found = load_topology("dgx-h100:2").nominal()
    mesh = Link(LinkKind.FULL_MESH, (Piece("simple", 0.0, 1e9),))
    fast = Link(LinkKind.SWITCH, (Piece("simple", 0.0, 1e15),))
    levels = (Level("node", 2, fast), Level("gpu", 4, mesh))
    topology = replace(found, levels=levels)
    seconds = dispatch_s(topology, np.array([2, 4]), 1e9, Dispatch(8, 2))
    assert float(seconds) - START_S == pytest.approx(2 / 4)


def test_a_rank_alone_sends_nothing() -> None:
    topology = load_topology("dgx-h100:2")
    assert float(dispatch_s(topology, np.array([1, 1]), MIB, Dispatch(8, 2))) == 0
    both = float(dispatch_s(topology, np.array([1, 8]), 0, Dispatch(8, 2)))
    assert both == START_S


# Ranks in any order -------------------------------------------------------------------------


@pytest.mark.parametrize("order", list(permutations(range(6)))[::37])
def test_an_uneven_order_is_bounded_from_above(order: tuple[int, ...]) -> None:
    """Groups of 3 on 3 nodes of 2: what passes a node's uplink, by every routing of a token."""
    topology = replace(
        load_topology("dgx-h100:3").nominal(),
        levels=tuple(
            replace(level, size=size)
            for level, size in zip(load_topology("dgx-h100:3").levels, (3, 2), strict=True)
        ),
    )
    kind, ranks = Dispatch(6, 2), np.array(order).reshape(2, 3)
    found = single_time(topology, ranks, (1,), kind, MIB)
    into, out = np.zeros(3), np.zeros(3)
    for group in ranks.tolist():
        owner_node = [device // 2 for device in group]
        for routing in routings(kind):
            nodes = {owner_node[expert // 2] for expert in routing}
            for source in owner_node:
                for node in nodes - {source}:
                    into[node] += 1 / len(routings(kind))
                    out[source] += 1 / len(routings(kind))
    link = topology.levels[0].link
    node_s = max(into.max(), out.max()) * MIB / link.ports / link.nominal_bytes_per_s
    assert found.level_wire_s[0] >= node_s * (1 - 1e-9)


def test_known_numbers_of_uneven_groups() -> None:
    """Groups of 4 over 2 nodes, 3 of each on one; 2 of 4 experts; one card of 1 byte/s.

    A node needs a token by its 3 ranks surely, by its one with probability 1/2.  Of one group 3/2
    leave the node and 1 comes, of the other 1 leaves and 3/2 come: at most 3/2 + 3/2.
    """
    slow = Link(LinkKind.SWITCH, (Piece("simple", 0.0, 1.0),))
    fast = Link(LinkKind.SWITCH, (Piece("simple", 0.0, 1e15),))
    found = load_topology("dgx-h100:2").nominal()
    topology = replace(found, levels=(Level("node", 2, slow), Level("gpu", 4, fast)))
    ranks = np.array([[0, 1, 2, 4], [3, 5, 6, 7]])
    assert single_time(topology, ranks, (1,), Dispatch(4, 2), 1).wire_s == pytest.approx(3)


@pytest.mark.parametrize("preset", ["dgx-h100:4", "gb200-nvl72:2", "mi300x:4", "aws-p5:2"])
def test_of_one_expert_a_rank_it_is_an_all_to_all(preset: str) -> None:
    """One expert for each token: as many bytes, at the rates of the library, between nodes.

    A library's cap of exchanges over a network is of its own all-to-alls.
    """
    topology = load_topology(preset)
    library = replace(topology.known_library, exchange_rate=math.inf)
    topology = replace(topology, library=library)
    scene = Scene.of(topology, Placement((topology.sizes,)), (0,))
    ours = scene.fixed_time(Dispatch(topology.devices, 1), 2**30)
    theirs = scene.fixed_time(RequestKind.ALL_TO_ALL, 2**30)
    node = topology.node_level
    assert ours.level_wire_s[node] == pytest.approx(theirs.level_wire_s[node], rel=1e-9)


# Numbers that contradict each other ---------------------------------------------------------


@pytest.mark.parametrize(
    ("numbers", "text"),
    [
        ({"experts": 0}, "0 experts"),
        ({"experts": 2**17}, "131072 experts"),
        ({"active": 0}, "0 active"),
        ({"active": 9}, "9 active"),
        ({"groups": 3, "top_groups": 1}, "3 groups"),
        ({"groups": 4, "top_groups": 5}, "top_groups 5"),
        ({"groups": 4, "top_groups": 1, "active": 3}, "3 active"),
        ({"imbalance": 0.5}, "imbalance 0.5"),
        ({"imbalance": math.nan}, "imbalance nan"),
        ({"imbalance": math.inf}, "imbalance inf"),
    ],
)
def test_numbers_that_contradict(numbers: dict[str, float], text: str) -> None:
    with pytest.raises(InputError, match=text):
        Dispatch(**({"experts": 8, "active": 2} | numbers))  # type: ignore[arg-type]
