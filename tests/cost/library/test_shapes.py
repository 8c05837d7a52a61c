"""What a rule of choice sees of a group on a preset: rates, cards and processors."""

from __future__ import annotations

import pytest

from p2smt.cluster.file import load_topology, parse_topology, topology_from_data
from p2smt.cluster.file_model import dump_topology
from p2smt.cluster.topology import Topology
from p2smt.cluster.trimmed import trimmed
from p2smt.cost.library.channels import GroupShape
from p2smt.cost.library.ways import group_shape
from p2smt.cost.loads.footprint import digits_of, regular_footprint
from p2smt.errors import InputError
from p2smt.parallelism.placement import Placement
from p2smt.programs.program import Grouping


def shape_of(spec: str, **uses: int) -> GroupShape:
    """The group of all devices that are used."""
    topology = trimmed(load_topology(spec), uses)
    digits = digits_of(Placement((topology.sizes,)), (0,))
    grouping = Grouping(0, sum(1 for level in digits if level))
    return group_shape(topology, regular_footprint(topology, digits, grouping))


@pytest.mark.parametrize(
    ("spec", "uses", "links", "card_devices", "cards"),
    [
        ("dgx-h100:2", {}, 450e9, 1, 8),
        ("gcp-a3-high:2", {}, 450e9, 2, 4),
        ("gcp-a3-high:2", {"gpu": 4}, 450e9, 2, 2),
        ("gb200-nvl72:2", {"gpu": 4}, 900e9, 1, 4),
        ("dgx2:2", {}, 150e9, 2, 8),
        # six NVLinks of a GPU: two to the other half, four to its own, a third of them for two
        ("dgx1-v100:2", {}, 150e9, 2, 4),
        ("dgx1-v100:2", {"half": 1}, 100e9, 2, 2),
        ("dgx1-v100:1", {"half": 1, "gpu": 2}, 100e9 / 3, 2, 1),
    ],
)
def test_links_and_cards_of_a_group(
    spec: str, uses: dict[str, int], links: float, card_devices: int, cards: int
) -> None:
    found = shape_of(spec, **uses)
    assert found.device_bytes_per_s == pytest.approx(links)
    assert (found.card_devices, found.cards) == (card_devices, cards)


def test_a_slower_level_inside_a_node_is_what_a_group_across_it_has() -> None:
    pairs = parse_topology(
        """
name: pairs
levels:
  - {name: node, size: 2, link: {kind: switch, fabric: roce, bandwidth: 12 GB/s, latency: 1 us}}
  - {name: pair, size: 2, link: {kind: switch, fabric: pcie, bandwidth: 16 GB/s, latency: 1 us}}
  - {name: gpu, size: 2, link: {kind: switch, fabric: nvlink3, bandwidth: 50 GB/s, latency: 1 us}}
""",
        "here",
    )
    digits = digits_of(Placement((pairs.sizes,)), (0,))
    found = group_shape(pairs, regular_footprint(pairs, digits, Grouping(0, 3)))
    assert found.device_bytes_per_s == 8e9
    assert found.inside == "pcie"


@pytest.mark.parametrize(
    ("spec", "cpu"), [("dgx-a100", "amd"), ("dgx-h100", "intel"), ("gb300-nvl72", "arm")]
)
def test_processors_of_presets(spec: str, cpu: str) -> None:
    topology = load_topology(spec)
    assert (topology.cpu, shape_of(spec).cpu) == (cpu, cpu)
    assert topology_from_data(dump_topology(topology), "again") == topology


def test_only_known_processors() -> None:
    levels = load_topology("dgx-a100").levels
    with pytest.raises(InputError, match="cpu 'vax'"):
        Topology("some", levels, cpu="vax")
    data = dump_topology(load_topology("dgx-a100")) | {"cpu": "vax"}
    with pytest.raises(InputError, match="cpu"):
        topology_from_data(data, "here")
