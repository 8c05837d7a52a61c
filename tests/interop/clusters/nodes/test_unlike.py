"""Nodes whose GPUs are not all alike, contradictions, and boards that nothing tells."""

from __future__ import annotations

from typing import Any

import pytest

from p2smt.errors import InputError
from p2smt.interop.clusters.nodes.gpu_models import CHIPS, MODELS, gpu_model, model_of_product
from p2smt.interop.clusters.nodes.node_facts import Told
from tests.interop.clusters.nodes.reading import inner, lost, read
from tests.interop.clusters.nodes.texts import (
    alike,
    bus,
    cells_of,
    cpu,
    devices,
    gpu,
    input_file,
    matrix,
    meshed,
    pci,
    rocm,
    system,
)

NV4 = ("gpu", 2, "switch", 1, 56.25, "nvlink3")


def joined(count: int, *links: tuple[int, int, int]) -> list[list[str]]:
    """Cells of GPUs of which some pairs have NVLinks."""
    pairs = [[0] * count for _ in range(count)]
    for i, j, n in links:
        pairs[i][j] = pairs[j][i] = n
    return cells_of(pairs, "PHB")


@pytest.mark.parametrize(
    ("cells", "levels", "said"),
    [
        (joined(3, (0, 1, 4)), [NV4], "GPU2 is not linked as most are: left out"),
        (joined(3, (0, 2, 4)), [NV4], "CUDA_VISIBLE_DEVICES=0,2"),
        (
            joined(5, (1, 2, 4), (3, 4, 4)),
            [("island", 2, "switch", 2, 31.508, "pcie"), NV4],
            "CUDA_VISIBLE_DEVICES=1,2,3,4",
        ),
        (
            joined(4, (0, 2, 4), (1, 3, 4)),
            [("island", 2, "switch", 2, 31.508, "pcie"), NV4],
            "brought together; CUDA_VISIBLE_DEVICES=0,2,1,3",
        ),
        (
            joined(6, (0, 1, 4), (2, 3, 4), (4, 5, 2)),
            [("island", 2, "switch", 2, 31.508, "pcie"), NV4],
            "GPU4, GPU5 are not linked as most are",
        ),
        (
            joined(8, (0, 1, 4)),
            [("gpu", 8, "switch", 1, 31.508, "pcie")],
            "links of GPU0, GPU1 are left out: most GPUs have none",
        ),
    ],
)
def test_links_of_some(cells: list[list[str]], levels: list[tuple[object, ...]], said: str) -> None:
    text, told = matrix(cells), Told("rtx3090")
    assert inner(text, told) == levels
    assert said in lost(text, told)
    assert "repair" not in lost(text, told)


def test_cards_keep_their_place_beside_those_that_are_left() -> None:
    """The card is near GPU 2, which is left out, and far from the others."""
    cells = [[*row, "PIX" if i == 2 else "SYS"] for i, row in enumerate(joined(3, (0, 1, 4)))]
    text = matrix([*cells, ["SYS", "SYS", "PIX", "X"]], ["mlx5_0"])
    assert inner(text, Told("rtx3090")) == [NV4]
    assert "far from all" not in lost(text, Told("rtx3090"))


@pytest.mark.parametrize(
    ("text", "gpu", "what"),
    [
        (meshed([[0, 1], [1, 0]], "xgmi", gcn="908"), "mi250x", r"gcn 908 \(mi100\): contra"),
        (meshed([[0, 1], [1, 0]], "xgmi", gcn="906"), "mi300x", r"gcn 906 \(mi50\)"),
        (meshed([[0, 1], [1, 0]], "xgmi", gcn="gfx942"), "mi250x", r"gcn gfx942 \(mi300x\)"),
        (input_file(device="0x20b0"), "h100", r"device 0x20b0 \(a100\)"),
        (input_file(device="0x740f"), "mi250x", r"device 0x740f \(mi210\)"),
        (devices(["h0"], 8, "NVIDIA H200"), "h100", r"NVIDIA H200 \(h200\)"),
        (meshed([[0, 1], [1, 0]], sm=80), "v100", r"sm 80 \(a100\)"),
    ],
)
def test_a_model_that_the_file_contradicts(text: str, gpu: str, what: str) -> None:
    with pytest.raises(InputError, match=rf"--gpu {gpu}, and the file says .*{what}"):
        read(text, Told(gpu))


@pytest.mark.parametrize(
    ("gcn", "model", "rate"),
    [
        ("906", "mi50", 46.0),
        ("908", "mi100", 46.0),
        ("gfx908:sramecc+:xnack-", "mi100", 46.0),
        ("910", "mi210", 50.0),
        ("90a", "mi250x", 50.0),
        ("942", "mi325x", 64.0),
        ("gfx950", "mi355x", 76.8),
    ],
)
def test_chips_of_amd(gcn: str, model: str, rate: float) -> None:
    """The model that is told is one of the chip that the file names."""
    text = meshed([[0, 1], [1, 0]], "xgmi", gcn=gcn)
    expected = [("gpu", 2, "full-mesh", 1, rate, "xgmi")]
    assert inner(text) == inner(text, Told(model)) == expected


@pytest.mark.parametrize(
    ("device", "told", "said"),
    [
        ("0x2330", {"sm": 80}, "device 0x2330 is h100, and the GPU is said to be sm_80: h100"),
        (
            "0x20b0",
            {"gcn": "90a"},
            "device 0x20b0, gcn 90a is a100, and the GPU is said to be gfx90a",
        ),
        ("0x2330", {"sm": 90}, ""),
        ("0x738c", {"gcn": "908"}, ""),
        ("0x9999", {"sm": 80}, ""),
    ],
)
def test_a_file_that_contradicts_itself(device: str, told: dict[str, Any], said: str) -> None:
    gpus = [pci(bus(i), "0x030200", gpu(i, **told), device=device) for i in range(2)]
    found = lost(system(cpu(0, "".join(gpus))))
    assert said in found
    assert bool(said) == ("is said to be" in found)


def test_a_chip_that_is_not_known_is_named() -> None:
    text = meshed([[0, 1], [1, 0]], "xgmi", gcn="1100")
    with pytest.raises(InputError, match="2 GPUs: are gcn 1100, which p2smt does not know"):
        read(text)


@pytest.mark.parametrize(
    ("gpu", "cpus", "presets"),
    [
        ("v100", 4, "--node aws-p3dn or azure-ndv2 or dgx1-v100 instead"),
        ("p100", 4, "instead$"),
        ("h100", 2, "instead$"),
        ("a100", 2, "instead$"),
        ("gh200", 2, "instead$"),
        ("mi250x", 4, "rocm-smi|nvidia-smi topo -m"),
    ],
)
def test_boards_of_which_nothing_tells_a_switch(gpu: str, cpus: int, presets: str) -> None:
    """8 V100 are a cube mesh, 4 H100 a mesh or half of a board."""
    with pytest.raises(InputError, match=presets):
        read(input_file(cpus), Told(gpu))


def test_hosts_whose_board_is_not_told_are_hosts_all_the_same() -> None:
    found = read(devices(["a", "b"], 8, "Tesla V100-SXM2-32GB"))
    assert (found.inside, found.devices) == (None, 8)
    assert "the links between them are not told" in "".join(found.lost)


@pytest.mark.parametrize(("gpus", "model"), [(16, "v100"), (16, "a100"), (8, "h200"), (4, "gb200")])
def test_boards_with_switches(gpus: int, model: str) -> None:
    (level,) = inner(input_file(gpus // 2), Told(model))
    assert level[1:3] == (gpus, "switch")


def test_models_unlike_most_are_left_out() -> None:
    kinds = ["0x2204", "0x2204", "0x2684"]
    text = system(*(cpu(i, pci(bus(i), "0x030000", device=d)) for i, d in enumerate(kinds)))
    assert [level[1] for level in inner(text)] == [2]
    assert "0000:12:00.0 is rtx4090, unlike most: left out; CUDA_VISIBLE_DEVICES=0,1" in lost(text)
    assert inner(text, Told("rtx4090")) == []
    with pytest.raises(InputError, match="rtx3090 and rtx4090: GPUs of a node must be alike"):
        read(system(*(cpu(i, pci(bus(i), "0x030000", device=d)) for i, d in enumerate(kinds[1:]))))


@pytest.mark.parametrize(
    ("given", "model"),
    [
        ("3090", "rtx3090"),
        ("RTX-4090", "rtx4090"),
        ("GeForce RTX 5090", "rtx5090"),
        ("MI100", "mi100"),
        ("Instinct MI210", "mi210"),
        ("mi355x", "mi355x"),
        ("H200 NVL", "h200-nvl"),
        ("h100_nvl", "h100-nvl"),
        ("a6000-ada", "rtx6000-ada"),
        ("rtx-a6000", "a6000"),
        ("h100-sxm5", "h100"),
        ("A100-SXM4", "a100"),
        ("a10g", "a10"),
        ("mi250", "mi250x"),
        ("NVIDIA A100-SXM4-80GB", "a100"),
        ("NVIDIA-A100-80GB-PCIe", "a100-pcie"),
        ("NVIDIA-GeForce-RTX-3090", "rtx3090"),
        ("a100-80gb", "a100"),
        ("H100-SXM5-80GB", "h100"),
        ("v100-sxm2-32gb", "v100"),
        ("rtx-6000-blackwell", "rtx-pro-6000"),
        ("1080ti", "gtx1080ti"),
        ("gb10", "gb10"),
        ("l20", "l20"),
        ("mi308x", "mi308x"),
    ],
)
def test_spellings(given: str, model: str) -> None:
    assert gpu_model(given).name == model


@pytest.mark.parametrize("given", ["mi8", "h1", "gfx", "rtx9090", "", "b31"])
def test_guesses_have_the_number_given(given: str) -> None:
    with pytest.raises(InputError, match="is no model") as caught:
        gpu_model(given)
    assert "did you mean" not in str(caught.value)


@pytest.mark.parametrize(
    ("given", "guess"),
    [
        ("mi300", "mi300x"),
        ("mi325", "mi325x"),
        ("rtx4090d", "rtx4090"),
        ("rtx6000", "rtx6000-ada"),
        ("2080", "rtx2080ti"),
        ("gfx90a", "known are mi250x, mi210"),
        ("gfx908:sramecc+", "known are mi100"),
        ("b100", "known are gb300"),
        ("p41", "known are gb300"),
        ("titan-v", "known are gb300"),
    ],
)
def test_guesses_are_of_the_same_words(given: str, guess: str) -> None:
    """Another letter before the number is another GPU; a chip has the models that it is in."""
    with pytest.raises(InputError, match=f"is no model that p2smt knows; (did you mean ')?{guess}"):
        gpu_model(given)


def test_the_table() -> None:
    """Each name and each device is one model's, and found again; each chip is known."""
    assert len({m.name for m in MODELS}) == len(MODELS)
    numbers = [d for m in MODELS for d in m.devices]
    assert len(set(numbers)) == len(numbers)
    for model in MODELS:
        assert model.chip in CHIPS
        assert gpu_model(model.name.upper()) is model
        assert bool(model.links) == bool(model.fabric) == bool(model.link_bytes_per_s)


@pytest.mark.parametrize(
    ("product", "model"),
    [
        ("AMD Instinct MI100", "mi100"),
        ("AMD Instinct MI210", "mi210"),
        ("AMD Instinct MI355X OAM", "mi355x"),
        ("NVIDIA H200 NVL", "h200-nvl"),
        ("NVIDIA RTX 6000 Ada Generation", "rtx6000-ada"),
        ("NVIDIA GeForce RTX 5090", "rtx5090"),
        ("NVIDIA GH200 480GB", "gh200"),
        ("NVIDIA RTX A6000", "a6000"),
        ("Quadro P400", ""),
        ("NVIDIA H800 PCIe", "h800-pcie"),
        ("NVIDIA A800 80GB PCIe", "a800-pcie"),
        ("NVIDIA A100-PG509-200", "a100"),
        ("Tesla V100-DGXS-32GB", "v100"),
        ("Tesla V100-FHHL-16GB", "v100-pcie"),
        ("NVIDIA RTX A4500", "a4500"),
        ("NVIDIA GeForce RTX 3080 Ti", "rtx3080"),
        ("NVIDIA TITAN RTX", "titan-rtx"),
        ("NVIDIA GB10", "gb10"),
        ("AMD Instinct MI308X", "mi308x"),
    ],
)
def test_products(product: str, model: str) -> None:
    assert model_of_product(product) == model


def test_links_of_pcie_cards_are_not_said_to_be_counted() -> None:
    kinds = [["0" if c == "X" else "PCIE" for c in row] for row in alike(2, "PCIE")]
    assert "xGMI" not in lost(rocm(kinds), Told("mi100"))
