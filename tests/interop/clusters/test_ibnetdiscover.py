"""Switches, hosts and rates of uplinks in what ibnetdiscover prints."""

from __future__ import annotations

from collections import defaultdict

import pytest

from p2smt.cluster.topology import Topology
from p2smt.errors import InputError
from p2smt.interop.clusters.combine import ImportOptions, combined
from p2smt.interop.clusters.ibnetdiscover import IBNETDISCOVER, read_ibnetdiscover
from p2smt.interop.clusters.levels import parse_uplinks
from p2smt.interop.clusters.slurm import SLURM_CONF

Cable = tuple[str, str, str]
"""Two ends and a rate; hosts are ``NAME CARD``, switches one word."""


def printed(cables: list[Cable]) -> str:
    """What ibnetdiscover prints of cables: from both ends, hosts after switches."""
    ends: dict[str, list[tuple[int, str, str]]] = defaultdict(list)
    for one, other, _ in cables:
        ends[one], ends[other] = ends[one], ends[other]
    used = dict.fromkeys(ends, 0)
    for one, other, rate in cables:
        used[one] += 1
        used[other] += 1
        ends[one].append((used[other], other, rate))
        ends[other].append((used[one], one, rate))
    guid = {name: f"{i + 2560:016x}" for i, name in enumerate(ends)}
    text = "#\n# Topology file: generated on Wed Aug  6 2025\n#\n"
    for name, ports in sorted(ends.items(), key=lambda one: is_host(one[0])):
        kind = f'Ca\t{len(ports)} "H' if is_host(name) else 'Switch\t65 "S'
        text += f'\nvendid=0x2c9\n{kind}-{guid[name]}"\t\t# "{described(name)}" lid 7 lmc 0\n'
        for own, (port, other, rate) in enumerate(ports, start=1):
            far = "H" if is_host(other) else "S"
            suffix = f"({guid[other]})" if far == "H" else ""
            end = f'"{far}-{guid[other]}"[{port}]{suffix}'
            text += f'[{own}]\t{end} \t\t# "{described(other)}" lid 6 {rate}\n'
    return text


def is_host(name: str) -> bool:
    return " " in name


def described(name: str) -> str:
    return name if is_host(name) else f"MF0;{name}:MQM9700/U1"


def fat_tree(hosts: int, rails: int, pods: int, spines: int, cables: int = 2) -> list[Cable]:
    """Pods of so many hosts, each with a card on each of the pod's leaves; all to all spines."""
    found = []
    for p in range(pods):
        for r in range(rails):
            leaf = f"leaf{p}-{r}"
            found += [(f"n{p * hosts + h} mlx5_{r}", leaf, "4xNDR") for h in range(hosts)]
            found += [(leaf, f"spine{s}", "4xNDR") for s in range(spines) for _ in range(cables)]
    return found


def imported(text: str, *uplinks: str, node: str = "dgx-h100") -> tuple[Topology, str]:
    assert IBNETDISCOVER.recognises(text)
    assert not SLURM_CONF.recognises(text)
    facts = read_ibnetdiscover(text, "f")
    options = ImportOptions(node=node, rates=parse_uplinks(uplinks, []))
    found, said = combined([facts], options)
    return found, "\n".join(said)


def rate(topology: Topology, level: int = 0) -> float:
    return topology.levels[level].link.nominal_bytes_per_s / 1e9


@pytest.mark.parametrize(
    ("rails", "spines", "cables"), [(1, 1, 1), (1, 4, 2), (8, 4, 2), (8, 2, 1)]
)
def test_uplinks_are_counted_cable_by_cable(rails: int, spines: int, cables: int) -> None:
    """The leaves of the rails of a pod are one, with the uplinks of all."""
    found, said = imported(printed(fat_tree(4, rails, 3, spines, cables)))
    assert found.sizes == (3, 4, 8)
    assert rate(found) == rails * spines * cables * 50
    assert found.hosts is not None
    assert (found.hosts.assumed, found.hosts.uplinks) == ((), ())
    name = "leaf0-0" if rails == 1 else f"leaf0-0+{rails - 1}"
    assert found.hosts.switches[0][0] == name
    assert ("uplinks are those of the file's part" in said) == (rails == 1)


def test_unequal_uplinks_stay_so() -> None:
    """A cable that is missing, and one that runs at a quarter of its width."""
    cables = fat_tree(2, 1, 3, 2)
    cables.remove(("leaf1-0", "spine0", "4xNDR"))
    at = cables.index(("leaf2-0", "spine1", "4xNDR"))
    cables[at] = ("leaf2-0", "spine1", "1xNDR")
    found, _ = imported(printed(cables))
    assert found.hosts is not None
    rates = {one.entity: one.bandwidth_bytes_per_s / 1e9 for one in found.hosts.uplinks}
    assert (rate(found), rates) == (200, {1: 150, 2: 162.5})


def test_three_tiers() -> None:
    """Two pods of two leaves, their spines joined by cores."""
    cables: list[Cable] = []
    for p in range(2):
        for i in range(2):
            cables += [(f"n{p}{i}{h} HCA-1", f"leaf{p}{i}", "4xHDR") for h in range(2)]
            cables += [(f"leaf{p}{i}", f"spine{p}{s}", "4xHDR") for s in range(2)]
        cables += [(f"spine{p}{s}", f"core{c}", "4xHDR") for s in range(2) for c in range(1)]
    found, _ = imported(printed(cables), node="azure-ndv4")
    assert found.names[:3] == ("spine", "leaf", "node")
    assert (found.sizes[:3], rate(found, 0), rate(found, 1)) == ((2, 2, 2), 50, 50)
    assert found.hosts is not None
    assert found.hosts.names == tuple(f"n{i:03b}" for i in range(8))


@pytest.mark.parametrize(
    ("lane", "gbytes"),
    [("4xSDR", 1.25), ("4xQDR", 5), ("4xFDR", 7), ("4xEDR", 12.5), ("2xHDR", 12.5), ("4xXDR", 100)],
)
def test_rates_by_name(lane: str, gbytes: float) -> None:
    cables = [(one, other, lane) for one, other, _ in fat_tree(2, 1, 2, 1, 1)]
    assert rate(imported(printed(cables))[0]) == gbytes


def test_a_rate_that_is_not_known() -> None:
    with pytest.raises(InputError, match=r"f, line \d+: 4xZDR: is no known rate; .*NDR"):
        read_ibnetdiscover(printed(fat_tree(1, 1, 2, 1)).replace("4xNDR", "4xZDR"), "f")


def test_what_is_said_beside_the_file_goes_before_it() -> None:
    text = printed(fat_tree(2, 8, 2, 2))
    assert rate(imported(text, "leaf=300GB/s")[0]) == 300


def test_cards_without_a_host_and_hosts_of_another_kind() -> None:
    """Cards named by their maker, a SHARP node, and a manager with ports in two pods."""
    manager = [(f"ufm mlx5_{p}", f"leaf{p}-0", "4xNDR") for p in range(2)]
    text = printed([*fat_tree(3, 4, 2, 2), *manager])
    text = text.replace("n0 mlx5_1", "MT4129 ConnectX7   Mellanox Technologies")
    text = text.replace("n1 mlx5_1", "localhost mlx5_1")
    odd = printed([("x Aggregation Node", "leaf9", "4xNDR")]).replace("x Aggre", "Mellanox Aggre")
    found, said = imported(text + odd)
    assert found.sizes[:2] == (2, 3)
    assert found.hosts is not None
    assert found.hosts.left_out == ("ufm",)
    assert "2 ports of cards whose description names no host are left out" in said
    assert "hosts with another number of ports: 3 (n0, n1, ufm)" in said


def test_a_description_may_be_the_host_alone() -> None:
    cards = [(f"node-{i} -", f"leaf{i // 2}", "4xHDR") for i in range(4)]
    text = printed([*cards, ("MT4123 -", "leaf0", "4xHDR"), ("mlx5_0 -", "leaf1", "4xHDR")])
    facts = read_ibnetdiscover(text.replace(" -", ""), "f")
    assert facts.outside is not None
    assert [one.hosts for one in facts.outside.holders] == [
        ("node-0", "node-1"),
        ("node-2", "node-3"),
    ]
    assert "2 ports of cards whose description names no host are left out" in "".join(facts.lost)


def test_one_leaf_is_no_level() -> None:
    found, _ = imported(printed([(f"n{i} mlx5_0", "leaf", "4xNDR") for i in range(4)]))
    assert found.names == ("node", "gpu")


def test_a_leaf_whose_uplinks_are_cut_off() -> None:
    cables = [one for one in fat_tree(2, 1, 2, 2) if one[0] != "leaf1-0"]
    found, said = imported(printed(cables))
    assert found.sizes[:2] == (2, 2)
    assert "no uplinks in the file, taken as those of all nodes under it: leaf1-0" in said


@pytest.mark.parametrize("text", ['Switch 65 "S-0f"  # "x" lid 1\n', 'Switch 65 "S-0f"\n[1] "H-1"'])
def test_no_host(text: str) -> None:
    with pytest.raises(InputError, match="names no host at a port of a switch"):
        read_ibnetdiscover(text, "f")


def test_switches_without_a_description_go_by_their_number() -> None:
    text = printed(fat_tree(2, 1, 2, 1)).replace("MF0;leaf1-0:MQM9700/U1", "Quantum Mellanox")
    found, _ = imported(text)
    bare, _ = imported(text.replace('# "Quantum Mellanox"', ""))
    assert found.hosts is not None
    assert found.hosts == bare.hosts
    assert found.hosts.switches[0][1].startswith("S-0000")
