"""NCCL's topology XML: what is read, and what is refused."""

from __future__ import annotations

import pytest

from p2smt.errors import InputError
from p2smt.interop.clusters.nodes import nccl_xml as xml_tree
from p2smt.interop.clusters.nodes.nccl_xml import is_nccl_xml, parse_nccl_xml
from p2smt.interop.clusters.nodes.node_facts import BusPath, Told
from p2smt.interop.clusters.nodes.reduce import facts_of_node
from tests.interop.clusters.nodes.reading import inner, levels, lost
from tests.interop.clusters.nodes.texts import (
    CUBE,
    bus,
    cpu,
    dump,
    gpu,
    input_file,
    link,
    meshed,
    net,
    pci,
    switched,
    system,
)

GPU = "0x030200"


def test_a_full_dump_with_nvswitches() -> None:
    assert levels(switched()) == [
        ("node", 1, "switch", 8, 25.0, "infiniband"),
        ("gpu", 8, "switch", 1, 300.0, "nvlink3"),
    ]
    assert lost(switched()) == ""


@pytest.mark.parametrize(
    ("sm", "counts", "level"),
    [
        (70, (6,), ("gpu", 8, "switch", 1, 150.0, "nvlink2")),
        (90, (5, 5, 4, 4), ("gpu", 8, "switch", 1, 450.0, "nvlink4")),
        (100, (18,), ("gpu", 8, "switch", 1, 900.0, "nvlink5")),
    ],
)
def test_the_generation_is_that_of_the_gpu(
    sm: int, counts: tuple[int, ...], level: tuple[object, ...]
) -> None:
    assert inner(switched(counts=counts, sm=sm)) == [level]


def test_ports_of_cards_and_their_rates() -> None:
    two = levels(switched(ports=2, speed=100000))[0]
    assert two == ("node", 1, "switch", 16, 12.5, "infiniband")
    slow = switched(ports=2)  # 2 x 25 GB/s behind 31.5 GB/s of PCIe
    assert levels(slow)[0] == ("node", 1, "switch", 16, 15.754, "infiniband")
    assert "ports of 25 GB/s share a PCIe link: 15.75 GB/s each is counted" in lost(slow)


def test_slower_ports_are_left_out_where_the_others_spread_evenly() -> None:
    mixed = switched(4, ports=2, speed=100000).replace(
        'speed="100000" port="2"', 'speed="25000" port="2"'
    )
    assert levels(mixed)[0] == ("node", 1, "switch", 4, 12.5, "infiniband")
    assert "slower network cards are left out: mlx5_1, mlx5_3, mlx5_5, mlx5_7" in lost(mixed)
    one = switched(4, speed=100000).replace('speed="100000"', 'speed="25000"', 1)
    assert levels(one)[0] == ("node", 1, "switch", 4, 3.125, "infiniband")
    assert "ports have 3.125 GB/s to 12.5 GB/s: all are given the least" in lost(one)


def test_fewest_links_to_switches_count_for_all() -> None:
    links = [link(bus(160), 12)] * 7 + [link(bus(160), 11)]
    assert inner(dump(links)) == [("gpu", 8, "switch", 1, 275.0, "nvlink3")]
    assert "GPUs have 11 to 12 links to the switches: all are given the fewest" in lost(dump(links))


def test_a_gpu_without_the_links_of_others_is_refused() -> None:
    with pytest.raises(InputError, match=r"f: 0000:13:00.0: has no link to the NVSwitches"):
        inner(dump([link(bus(160), 12)] * 3 + [""]))


def test_an_input_file_has_no_nvlinks() -> None:
    with pytest.raises(InputError, match=r"tells neither which GPUs it has nor .* --gpu h100"):
        levels(input_file())
    known = input_file(device="0x20b0")
    assert inner(known) == [("gpu", 8, "switch", 1, 300.0, "nvlink3")]
    assert "those of a100 are filled in, 12 links each, to switches" in lost(known)
    assert inner(input_file(), Told("h100")) == [("gpu", 8, "switch", 1, 450.0, "nvlink4")]
    assert inner(input_file(), Told("mi300x")) == [("gpu", 8, "full-mesh", 1, 64.0, "xgmi")]


def test_what_is_told_goes_before_the_file() -> None:
    assert inner(switched(), Told("h100"))[0][4:] == (300.0, "nvlink4")
    assert "it has a100, not h100 as told" in lost(switched(), Told("h100"))


def test_cards_of_an_input_file_have_no_rate() -> None:
    told = Told("a100", nic_bytes_per_s=25e9)
    assert levels(input_file(), told)[0] == ("node", 1, "switch", 8, 25.0, "infiniband")
    assert "the rate of 8 network card ports is not told" in lost(input_file(), Told("a100"))
    many = Told("a100", nic_ports=4, nic_bytes_per_s=12.5e9, nic_fabric="roce")
    assert levels(input_file(), many)[0] == ("node", 1, "switch", 4, 12.5, "roce")
    with pytest.raises(InputError, match="3 network card ports: must spread evenly over its 8"):
        levels(input_file(), Told("a100", nic_ports=3))


def test_gpus_on_pcie_alone() -> None:
    assert inner(input_file(), Told("l4")) == [
        ("numa", 4, "switch", 1, 16.0, "pcie"),
        ("gpu", 2, "switch", 1, 31.508, "pcie"),
    ]
    assert "what joins NUMA nodes is not told: 16 GB/s" in lost(input_file(), Told("l4"))


def two_switches(each: tuple[int, ...] = (2, 2), **about: str) -> str:
    """Two CPUs with a PCIe switch for each of these numbers of GPUs."""
    cpus, number = [], 0
    for c in range(2):
        inside = ""
        for s, count in enumerate(each):
            some = "".join(pci(bus(number + i), GPU, gpu(number + i)) for i in range(count))
            inside += pci(f"ffff:f{c}:0{s}.0", "0x060400", some, link_speed="8.0 GT/s PCIe")
            number += count
        cpus.append(cpu(c, inside, **about))
    return system(*cpus)


def test_pcie_switches_under_numa_nodes() -> None:
    intel = two_switches(vendor="GenuineIntel", familyid="6", modelid="143")
    assert inner(intel) == [
        ("numa", 2, "switch", 1, 22.0, "pcie"),
        ("switch", 2, "switch", 1, 15.754, "pcie"),
        ("gpu", 2, "switch", 1, 31.508, "pcie"),
    ]


def test_unequal_pcie_switches_are_no_level() -> None:
    uneven = two_switches((3, 1))
    assert [level[:2] for level in inner(uneven)] == [("numa", 2), ("gpu", 4)]
    assert "PCIe switches hold 3, 1, 3, 1 GPUs: that level is left out" in lost(uneven)


def test_gpus_numbered_across_numa_nodes_are_one_level() -> None:
    crossed = system(
        *(
            cpu(c, "".join(pci(bus(2 * i + c), GPU, gpu(2 * i + c)) for i in range(2)))
            for c in range(2)
        )
    )
    assert [level[:2] for level in inner(crossed)] == [("gpu", 4)]
    assert "not numbered by their NUMA nodes: that level is left out" in lost(crossed)


def test_an_unequal_mesh_becomes_two_levels() -> None:
    assert inner(meshed(CUBE, sm=70)) == [
        ("half", 2, "switch", 4, 37.5, "nvlink2"),
        ("gpu", 4, "switch", 1, 100.0, "nvlink2"),
    ]
    assert "modelled as 2 parts of 4 GPUs" in lost(meshed(CUBE, sm=70))


def test_links_must_be_the_same_both_ways() -> None:
    pairs = [list(row) for row in CUBE]
    pairs[0][1] = 2
    with pytest.raises(InputError, match=r"has 1 links to 0000:10:00\.0, which has 2 back"):
        inner(meshed(pairs, sm=70))


def test_amd_has_xgmi() -> None:
    mesh = meshed([[int(i != j) for j in range(8)] for i in range(8)], name="xgmi")
    with pytest.raises(InputError, match="--gpu mi300x"):
        inner(mesh)
    known = mesh.replace("<gpu ", '<gpu gcn="942" ')
    assert inner(known) == [("gpu", 8, "full-mesh", 1, 64.0, "xgmi")]


def test_gpus_come_as_the_file_numbers_them() -> None:
    one = cpu(0, pci(bus(1), GPU, gpu(0)) + pci(bus(0), GPU, gpu(1)))
    found = parse_nccl_xml(system(one), "f")
    assert [gpu.name for gpu in found.gpus] == [bus(1), bus(0)]
    bare = parse_nccl_xml(system(cpu(0, pci(bus(1), GPU) + pci(bus(0), GPU))), "f")
    assert [gpu.name for gpu in bare.gpus] == [bus(0), bus(1)]


def test_what_lies_between_devices() -> None:
    text = switched(4)
    near = parse_nccl_xml(text, "f").near
    assert [near[0][j] for j in (1, 2, 4, 5)] == [
        BusPath.PHB,
        BusPath.SYS,
        BusPath.PIX,
        BusPath.PHB,
    ]


def test_of_several_hosts_the_first_is_read() -> None:
    hosts = [
        cpu(0, pci(bus(i), GPU, gpu(0, link(bus(160), 18), 100)), host_hash=f"0x{i}")
        for i in range(2)
    ]
    assert "of 2 hosts in the file the first is read" in lost(system(*hosts))
    assert len(parse_nccl_xml(system(*hosts), "f").gpus) == 1


def test_cards_far_from_gpus_are_left_out() -> None:
    far = cpu(1, pci(bus(200), "0x020000", net(9, 10000)))
    text = switched(4).replace("</system>", far + "</system>")
    assert levels(text)[0] == ("node", 1, "switch", 4, 25.0, "infiniband")
    assert "network cards far from all GPUs are left out: mlx5_9" in lost(text)


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("<system", "is not valid XML"),
        (switched()[:-20], "is not valid XML"),
        ("<system/>", "has no GPU"),
        (f"<system>{cpu(0, pci(bus(0), '0x020000'))}</system>", "has no GPU"),
        (system(cpu(0, pci("zz", GPU))), "line 3: <pci> has busid='zz'"),
        (system(cpu(0, pci(bus(0), GPU) * 2)), "two GPUs have one busid"),
        (switched().replace('count="2"', 'count="-2"', 1), "has count='-2', not a whole number"),
        (switched().replace('count="2"', 'count="99"', 1), "a GPU has at most 64 links"),
        (input_file().replace('link_width="16"', 'link_width="99"'), "at most 16 lanes"),
        (system(cpu(0, "<x>" * 40 + "</x>" * 40)), "nested deeper than 32"),
        (system(cpu(0, pci(bus(0), GPU, gpu(0)) * 200)), "two GPUs|at most"),
        ("<system>" + "<pci/>" * 20_001 + "</system>", "beyond 20000 elements"),
        ('<!DOCTYPE s [<!ENTITY a "b">]><system>&a;</system>', "an entity is refused"),
    ],
)
def test_malformed(text: str, what: str) -> None:
    with pytest.raises(InputError, match=what) as caught:
        parse_nccl_xml(text, "f")
    assert str(caught.value).startswith("f")
    assert len(str(caught.value)) < 300


def test_laughs_cost_nothing() -> None:
    names = [f"l{i}" for i in range(20)]
    entities = "".join(
        f'<!ENTITY {name} "{"&" + names[i - 1] + ";" if i else "ha"}&l0;">'
        for i, name in enumerate(names)
    )
    with pytest.raises(InputError, match="a document type or an entity is refused"):
        parse_nccl_xml(f"<!DOCTYPE s [{entities}]><system>&l19;</system>", "f")


def test_no_more_than_so_many_characters(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(xml_tree, "MAX_CHARACTERS", 100)
    with pytest.raises(InputError, match="is longer than 100 characters"):
        parse_nccl_xml(switched(), "f")


def test_recognised_by_its_root() -> None:
    assert is_nccl_xml('<?xml version="1.0"?>\n<!-- a\nb -->\n' + switched())
    assert not is_nccl_xml("<graphs/>")
    assert not is_nccl_xml("<!--" * 10_000)
    assert not is_nccl_xml("<!-- -->" * 5_000)
    assert is_nccl_xml("<!-- -->\n" * 5_000 + switched())


@pytest.mark.parametrize(
    ("told", "found"),
    [
        ('arch="x86_64" vendor="AuthenticAMD"', "amd"),
        ('arch="x86_64" vendor="GenuineIntel"', "intel"),
        ('arch="arm64"', "arm"),
        ('arch="x86_64" vendor="CentaurHauls"', ""),
        ("", ""),
    ],
)
def test_whose_processors_a_node_has(told: str, found: str) -> None:
    """By NCCL's own words for them, which it chooses by."""
    amd = 'arch="x86_64" vendor="AuthenticAMD"'
    text = switched()
    assert amd in text
    node = parse_nccl_xml(text.replace(amd, told), "node.xml")
    assert node.cpu == found
    inside = facts_of_node(node).inside
    assert inside is not None
    assert inside.cpu == found
