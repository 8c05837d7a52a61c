"""The names of systems: what published measurements are of, as the model sees it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from p2smt.cluster.file import load_topology, parse_topology
from p2smt.cost.accuracy import most_in_node, outermost_crossed, system_name

ROCE = "kind: switch, fabric: roce, bandwidth: 50 GB/s, latency: 1 us"
NVLINK = "kind: switch, fabric: nvlink4, bandwidth: 450 GB/s, latency: 1 us"
LEAVES = parse_topology(
    f"""
name: leaves
library: nccl-2.30
levels:
  - {{name: leaf, size: 2, link: {{{ROCE}, ports: 4}}}}
  - {{name: node, size: 4, link: {{{ROCE}, ports: 8}}}}
  - {{name: gpu, size: 8, link: {{{NVLINK}}}}}
""",
    "leaves",
)


@pytest.mark.parametrize(
    ("preset", "level", "name"),
    [
        ("dgx-h100:4", 0, "8 x nvlink4 switch 450 GB/s, infiniband 400 GB/s"),
        ("dgx-h100:64", 1, "8 x nvlink4 switch 450 GB/s"),
        ("gcp-a3-ultra:2", 0, "8 x nvlink4 switch 450 GB/s, roce 400 GB/s"),
        ("mi300x:2", 0, "8 x xgmi full-mesh 64 GB/s, infiniband 400 GB/s"),
        ("gb300-nvl72:2", 1, "72 x nvlink5 switch 900 GB/s"),
    ],
)
def test_systems_of_presets(preset: str, level: int, name: str) -> None:
    assert system_name(load_topology(preset), level) == name


def test_switches_above_switches_are_another_system() -> None:
    one = "8 x nvlink4 switch 450 GB/s, roce 400 GB/s"
    assert system_name(LEAVES, 1) == one
    assert system_name(LEAVES, 0) == f"{one}, roce 200 GB/s"
    assert system_name(LEAVES.with_outermost(1), 1) == one


def test_other_hardware_has_another_name() -> None:
    h100 = load_topology("dgx-h100:2")
    node, gpu = h100.levels
    cards = replace(node, link=replace(node.link, ports=1))
    more = replace(gpu, size=16)
    names = {
        system_name(replace(h100, levels=levels), 0)
        for levels in ((node, gpu), (cards, gpu), (node, more))
    }
    assert len(names) == 3


def test_links_without_a_fabric_have_none() -> None:
    h100 = load_topology("dgx-h100:2")
    node, gpu = h100.levels
    bare = replace(h100, levels=(node, replace(gpu, link=replace(gpu.link, fabric=""))))
    assert system_name(bare, 0) == system_name(bare, 1) == ""


@pytest.mark.parametrize(
    ("groups", "level"),
    [
        ([[0], [63]], None),
        ([[0, 7], [8, 15]], 2),
        ([[0, 7], [8, 16]], 1),
        ([[24, 31], [31, 32]], 0),
    ],
)
def test_the_outermost_level_that_groups_cross(groups: list[list[int]], level: int | None) -> None:
    assert outermost_crossed(LEAVES, np.array(groups)) == level


def test_groups_of_a_part_of_a_node_are_named_apart() -> None:
    """Nobody published a table of groups that share the links and cards of their nodes."""
    pairs = np.arange(16).reshape(2, 4, 2).transpose(1, 0, 2).reshape(4, 4)
    topology = load_topology("dgx-h100:2")
    assert most_in_node(topology, pairs) == 2
    assert most_in_node(topology, np.arange(16).reshape(1, 16)) == 8
    assert system_name(topology, 0, 2) == f"2 of {system_name(topology, 0)}"
    assert system_name(topology, 0, 8) == system_name(topology, 0)
