"""Device lists of nccl-tests and what rocm-smi --showtopo prints."""

from __future__ import annotations

import pytest

from p2smt.errors import InputError
from p2smt.interop.clusters.combine import ImportOptions, combined
from p2smt.interop.clusters.levels import parse_uplinks
from p2smt.interop.clusters.nodes.gpu_models import MODELS, model_of_product
from p2smt.interop.clusters.nodes.node_facts import Told
from tests.interop.clusters.nodes.reading import inner, levels, lost, read
from tests.interop.clusters.nodes.texts import devices, rocm

LIST = devices(["h1", "h0"], 8)
MESH = [["0" if i == j else "XGMI" for j in range(8)] for i in range(8)]


def test_hosts_by_rank_and_the_board_of_their_gpus() -> None:
    found = read(LIST)
    assert found.outside is not None
    assert found.outside.loose == ("h1", "h0")
    assert found.devices == 8
    assert inner(LIST) == [("gpu", 8, "switch", 1, 450.0, "nvlink4")]
    assert found.inside is not None
    assert found.inside.assumed
    assert "those of h100 are filled in" in lost(LIST)
    assert "network cards are not told" in lost(LIST)


def test_ports_may_be_told() -> None:
    told = Told(nic_ports=8, nic_bytes_per_s=50e9)
    assert levels(LIST, told)[0] == ("node", 1, "switch", 8, 50.0, "infiniband")
    one = Told(nic_bytes_per_s=50e9)
    assert levels(LIST, one)[0][3] == 1
    assert "a node is given one port" in lost(LIST, one)


@pytest.mark.parametrize("host", ["h1", ""])
@pytest.mark.parametrize("product", ["AMD Instinct MI300X", "NVIDIA GB300", "NVIDIA B200"])
def test_one_host_needs_no_rate_of_its_cards(product: str, host: str) -> None:
    """With a name and without: what leaves it is left out, and may be given."""
    text = devices(["h1"], 4, product).replace(
        " on         h1", f" on         {host}" if host else ""
    )
    facts = read(text)
    assert (facts.outside is not None) == bool(host)
    found, said = combined([facts], ImportOptions())
    assert (found.names, found.hosts) == (("gpu",), None)
    assert said[-1] == "the level node is left out, as what leaves a node is not told"
    assert any("whose name the topology does not hold" in one for one in said) == bool(host)
    told = ImportOptions(rates=parse_uplinks(["node=400GB/s"], []))
    assert combined([facts], told)[0].names == ("node", "gpu")


def test_several_hosts_need_the_rate_of_their_cards() -> None:
    with pytest.raises(InputError, match="how fast the network cards of a node are; give --nic"):
        combined([read(LIST)], ImportOptions())
    assert combined([read(LIST)], ImportOptions(only=("h0",)))[0].names == ("gpu",)


def test_gpus_that_are_not_known_tell_their_number_only() -> None:
    text = devices(["a", "b"], 4, "NVIDIA Graphics Device")
    found = read(text)
    assert (found.inside, found.devices) == (None, 4)
    assert "4 GPUs of a host are NVIDIA Graphics Device" in lost(text)
    assert inner(text, Told("gb200")) == [("gpu", 4, "switch", 1, 900.0, "nvlink5")]
    assert "NVLink of such hosts spans a rack" in lost(text, Told("gb200"))


@pytest.mark.parametrize(
    "text",
    [
        LIST.replace("#  Rank", "[1,0]<stdout>: #  Rank"),
        LIST.replace("#  Rank", "0: #  Rank"),
        LIST + LIST,
        LIST.replace("Group  0 ", ""),
    ],
)
def test_however_it_was_copied(text: str) -> None:
    assert inner(text) == inner(LIST)
    assert read(text).outside == read(LIST).outside


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("# size time algbw busbw\n", "has no list of devices"),
        (LIST.replace("#  Rank  3", "# rank  3"), "lists 15 of 16 or more"),
        (LIST.replace("#\n", "#  ...\n"), "lists 16 of 16 or more ranks; give the whole list"),
        ("#  Rank 71 Group 0 Pid 1 on n device 3 [0x1] X\n# Rank ", "lists 1 of 72 or more"),
        (LIST.replace("Rank 15 Group  0 Pid 106 on         h0", "Rank 15 Group  0 on h9"), "h9"),
        (LIST.replace("device  7", "device  6"), "device 6 of h1: has two ranks"),
        (LIST.replace("HBM3", "HBM2", 1), "all hosts must have the same GPUs"),
        (LIST.replace("Group  0", "Group  1", 1), "several groups at once"),
    ],
)
def test_lists_that_are_not_whole_or_alike(text: str, what: str) -> None:
    with pytest.raises(InputError, match=what) as caught:
        read(text)
    assert str(caught.value).startswith("f")


@pytest.mark.parametrize(
    ("product", "model"),
    [
        ("NVIDIA H100 80GB HBM3", "h100"),
        ("NVIDIA H100 PCIe", "h100-pcie"),
        ("NVIDIA H100 NVL", "h100-nvl"),
        ("NVIDIA H200", "h200"),
        ("NVIDIA H20", "h20"),
        ("NVIDIA A100-SXM4-80GB", "a100"),
        ("NVIDIA A100-PCIE-40GB", "a100-pcie"),
        ("NVIDIA A100 80GB PCIe", "a100-pcie"),
        ("Tesla V100-SXM2-32GB", "v100"),
        ("NVIDIA B200", "b200"),
        ("NVIDIA GB200", "gb200"),
        ("NVIDIA GB300", "gb300"),
        ("NVIDIA L40S", "l40s"),
        ("AMD Instinct MI300X", "mi300x"),
        ("NVIDIA Graphics Device", ""),
    ],
)
def test_models_of_products(product: str, model: str) -> None:
    assert model_of_product(product) == model


def test_models_stand_once() -> None:
    assert len({model.name for model in MODELS}) == len(MODELS)
    numbers = [device for model in MODELS for device in model.devices]
    assert len(set(numbers)) == len(numbers)


def test_rocm_meshes() -> None:
    with pytest.raises(InputError, match="--gpu mi300x"):
        inner(rocm(MESH))
    assert inner(rocm(MESH), Told("mi300x")) == [("gpu", 8, "full-mesh", 1, 64.0, "xgmi")]


def test_rocm_ways_over_other_gpus_are_no_links() -> None:
    far = [
        [0 if i == j else 15 if i // 2 == j // 2 or i % 2 == j % 2 else 30 for j in range(4)]
        for i in range(4)
    ]
    small = [row[:4] for row in MESH[:4]]
    assert inner(rocm(small, far), Told("mi250x")) == [
        ("half", 2, "switch", 2, 50.0, "xgmi"),
        ("gpu", 2, "full-mesh", 1, 50.0, "xgmi"),
    ]


def test_rocm_pcie() -> None:
    cells = [["0" if i == j else "PCIE" for j in range(4)] for i in range(4)]
    assert [level[:2] for level in inner(rocm(cells), Told("mi300x"))] == [
        ("numa", 2),
        ("gpu", 2),
    ]


@pytest.mark.parametrize(
    ("text", "what"),
    [
        (rocm(MESH).replace("GPU3   XGMI", "GPU3   ", 1), "row GPU3: has 7 cells for 8 columns"),
        (rocm(MESH).replace("GPU3   XGMI", "GPU3   ABC", 1), "GPU3 to GPU0: is ABC, and XGMI"),
        (rocm(MESH)[:300], "cells for|must name 1 to 128"),
        ("Link Type between two GPUs", "must name 1 to 128 GPUs"),
        ("Link Type between two GPUs\nGPU0 GPU0\n", "must name 1 to 128 GPUs"),
    ],
)
def test_rocm_malformed(text: str, what: str) -> None:
    with pytest.raises(InputError, match=what):
        read(text)
