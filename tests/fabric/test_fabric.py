"""Fabrics of links, switches and network cards."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from p2smt.cluster.file import parse_topology
from p2smt.errors import InputError
from p2smt.fabric.fabric import Capacity, Fabric, FabricEdge, unit_of
from p2smt.fabric.fabric_file import fabric_names, fabric_of_levels, load_fabric, parse_wiring
from p2smt.fabric.wiring import NetworkPort, Switch, Wire, WiredNodes, edge_count, fabric_of

GIGA = 10**9


def _leaving(fabric: Fabric, rank: int) -> Fraction:
    """Units that leave a rank over links or ports that nothing else loads first."""
    numbers = {e.loads[0] for e in fabric.edges if e.source == rank}
    return sum((fabric.capacities[n].bandwidth for n in numbers), Fraction(0))


def test_a_dgx1_has_six_links_a_gpu() -> None:
    fabric = load_fabric("dgx1")
    assert fabric.ranks == 8
    assert fabric.unit == 25 * GIGA
    assert [_leaving(fabric, rank) for rank in range(8)] == [6] * 8
    assert all(len({e.target for e in fabric.edges if e.source == rank}) == 4 for rank in range(8))


@pytest.mark.parametrize("name", fabric_names())
def test_presets_are_symmetric_and_connected(name: str) -> None:
    for nodes in (1, 2, 3):
        fabric = load_fabric(f"{name}:{nodes}")
        ways = Counter((edge.source, edge.target) for edge in fabric.edges)
        assert ways == Counter((edge.source, edge.target) for edge in fabric.reversed().edges)
        assert len(fabric.reached(fabric.ranks - 1)) == fabric.ranks
        assert all(capacity.bandwidth.denominator == 1 for capacity in fabric.capacities)


def test_ranks_that_share_a_card_share_its_capacity() -> None:
    fabric = load_fabric("dgx1:2")
    across = [e for e in fabric.edges if e.source // 8 != e.target // 8]
    assert len(across) == 2 * 8 * 8
    loads = {(e.source, e.target): e.loads for e in across}
    assert loads[0, 8] == loads[1, 9] != loads[2, 8]
    names = [fabric.capacities[n].name for n in loads[0, 8]]
    assert names == ["node 0 card 0 out", "node 1 card 0 in"]


def test_a_switch_loads_the_port_out_and_the_port_in() -> None:
    fabric = load_fabric("dgx2")
    assert len(fabric.edges) == 16 * 15
    for edge in fabric.edges:
        names = [fabric.capacities[n].name for n in edge.loads]
        assert names == [f"{edge.source}->nvswitch", f"nvswitch->{edge.target}"]


def test_two_cards_are_two_ways() -> None:
    ports = "[{ranks: [0], bandwidth: 1}, {ranks: [0], bandwidth: 2}]"
    text = f"{{name: t, ranks: 1, nodes: 2, network: {{ports: {ports}}}}}"
    fabric = fabric_of(parse_wiring(text, "t"))
    assert Counter((e.source, e.target) for e in fabric.edges) == {(0, 1): 4, (1, 0): 4}
    assert fabric.unit is None


def test_turned_twice_is_itself() -> None:
    fabric = load_fabric("dgx1:2")
    assert fabric.reversed() != fabric
    assert fabric.reversed().reversed() == fabric


@given(st.lists(st.fractions(min_value=1, max_value=50), min_size=1, max_size=5))
def test_the_unit_divides_every_bandwidth_and_is_the_greatest(rates: list[Fraction]) -> None:
    try:
        unit = unit_of(rates)
    except InputError:
        return
    multiples = [rate / unit for rate in rates]
    assert all(m.denominator == 1 for m in multiples)
    for larger in range(2, 5):
        assert any((m / larger).denominator != 1 for m in multiples)


def test_very_uneven_bandwidths_ask_for_a_unit() -> None:
    links = "[{ranks: [0, 1], bandwidth: 25.001 GB/s}, {ranks: [1, 2], bandwidth: 3 GB/s}]"
    wiring = parse_wiring(f"{{name: t, ranks: 3, links: {links}}}", "t")
    with pytest.raises(InputError, match="--unit"):
        fabric_of(wiring)
    fabric = fabric_of(wiring, Fraction(3 * GIGA))
    assert [capacity.bandwidth for capacity in fabric.capacities] == [
        *([Fraction(25001, 3000)] * 2),
        *([Fraction(1)] * 2),
    ]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{name: t, ranks: 3, links: [{ranks: [0, 1], bandwidth: 1}]}", "no way"),
        ("{name: t, ranks: 2, links: [{ranks: [0, 1], bandwidth: 1, one_way: true}]}", "no way"),
        ("{name: t, ranks: 2, links: [{ranks: [0, 2], bandwidth: 1}]}", "rank 2"),
        ("{name: t, ranks: 2, links: [{ranks: [0, 0], bandwidth: 1}]}", "to itself"),
        ("{name: t, ranks: 2, links: [{ranks: [0, 1], bandwidth: 0}]}", "bandwidth"),
        ("{name: t, ranks: 2, links: [{ranks: [0, 1], bandwidth: -1 GB/s}]}", "bandwidth"),
        ("{name: t, ranks: 2, links: [{ranks: [0, 1], bandwidth: 25}], nodes: 2}", "network"),
        (
            "{name: t, ranks: 2, links: [{ranks: [0, 1], bandwidth: 1}, "
            "{ranks: [1, 0], bandwidth: 1}]}",
            "twice",
        ),
        (
            "{name: t, ranks: 3, links: [{ranks: [0, 1], bandwidth: 1}, "
            "{ranks: [1, 2], bandwidth: 1 GB/s}]}",
            "with a unit",
        ),
        ("{name: t, ranks: 2, link: []}", "unknown key"),
        ("[]", "mapping"),
    ],
)
def test_bad_files_are_refused(text: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        fabric_of(parse_wiring(text, "t"))


def test_edges_name_ranks_and_capacities_that_are_there() -> None:
    one = (Capacity("a", Fraction(1)),)
    for edge in (FabricEdge(0, 2, (0,)), FabricEdge(0, 1, (1,)), FabricEdge(0, 1, ())):
        with pytest.raises(InputError):
            Fabric("t", 2, one, (edge,))
    with pytest.raises(InputError, match="positive"):
        Capacity("a", Fraction(0))


LEVELS = """
name: levels
levels:
  - {name: node, size: 2, link: {kind: switch, ports: 2, bandwidth: 10 GB/s, latency: 1 us}}
  - {name: gpu, size: 4, link: {kind: %s, bandwidth: 50 GB/s, latency: 1 us}}
"""


def test_levels_of_switches_load_the_ports_on_the_way() -> None:
    fabric = fabric_of_levels(parse_topology(LEVELS % "switch", "t"))
    assert (fabric.ranks, len(fabric.edges)) == (8, 8 * 7)
    assert fabric.unit == 10 * GIGA
    loads = {
        (e.source, e.target): {fabric.capacities[n].name for n in e.loads} for e in fabric.edges
    }
    assert loads[0, 1] == {"gpu 0 port 0 out", "gpu 1 port 0 in"}
    assert loads[1, 6] == {
        *("node 0 port 0 out", "node 1 port 1 in"),
        *("gpu 1 port 0 out", "gpu 6 port 0 in"),
    }


@pytest.mark.parametrize("spec", ["dgx1:2", "azure-ndv4:3", "tpu-v5p:1", "torus:2x3"])
def test_the_name_of_a_fabric_makes_it_again(spec: str) -> None:
    fabric = load_fabric(spec)
    assert load_fabric(fabric.name) == fabric


def test_rings_join_neighbours_only() -> None:
    fabric = fabric_of_levels(parse_topology(LEVELS % "ring", "t"))
    inside = {(e.source, e.target) for e in fabric.edges if e.source < 4 and e.target < 4}
    assert inside == {(a, (a + s) % 4) for a in range(4) for s in (1, 3)}
    across = [e for e in fabric.edges if (e.source, e.target) == (1, 6)]
    assert [fabric.capacities[n].name for n in across[0].loads] == [
        *("node 0 port 0 out", "node 1 port 1 in"),
    ]


@pytest.mark.parametrize(("nodes", "what"), [(900, "7200 ranks"), (128, "4161536 edges")])
def test_too_many_nodes_are_refused_before_anything_is_made(nodes: int, what: str) -> None:
    """Two cards a rank, and 7,200 ranks: both would take minutes to make."""
    ports = tuple(NetworkPort((r,), Fraction(1)) for r in range(8) for _ in range(2))
    wiring = WiredNodes("many", 8, ports=ports, nodes=nodes, measured=False)
    with pytest.raises(InputError, match=f"^{what}: a fabric has"):
        fabric_of(wiring)


@given(st.integers(1, 3), st.lists(st.sets(st.integers(0, 2), min_size=2), max_size=2))
def test_edges_are_counted_before_they_are_made(nodes: int, switches: list[set[int]]) -> None:
    one = Fraction(1)
    wires = tuple(Wire(a, (a + 1) % 3, one) for a in range(3))
    made = tuple(Switch(f"s{n}", tuple(sorted(r)), one) for n, r in enumerate(switches))
    ports = (NetworkPort((0, 1), one), NetworkPort((2,), one))
    wiring = WiredNodes("few", 3, wires, made, ports, nodes, measured=False)
    assert edge_count(wiring) == len(fabric_of(wiring).edges)
