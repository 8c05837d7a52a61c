"""What a GPU can do by itself, where a file of a node or its user names the model."""

from __future__ import annotations

import pytest

from p2smt.interop.clusters.facts import InsideFacts
from p2smt.interop.clusters.nodes.gpu_models import MODELS, device_of, gpu_model
from p2smt.interop.clusters.nodes.node_facts import Told
from tests.interop.clusters.nodes.reading import read
from tests.interop.clusters.nodes.texts import alike, devices, matrix

TOPO = matrix(alike(8, "NV18"))


def inside(text: str, told: Told) -> InsideFacts:
    found = read(text, told).inside
    assert found is not None
    return found


def test_a_model_that_is_told_has_its_device() -> None:
    found = inside(TOPO, Told(gpu="h200"))
    assert found.device is not None
    assert (found.device.name, found.device.memory_bytes >> 30) == ("h200", 140)


def test_a_model_that_is_named_has_its_device() -> None:
    found = inside(devices(["a", "b"], 8), Told())
    assert found.device == device_of(gpu_model("h100"))


def test_a_model_that_its_links_suggest_has_none() -> None:
    """18 links of a GPU are those of H100 and B200 alike."""
    assert inside(TOPO, Told()).device is None


@pytest.mark.parametrize("name", ["a100", "v100"])
def test_a_model_of_several_memories_has_none(name: str) -> None:
    assert device_of(gpu_model(name)) is None


def test_devices_have_the_names_of_their_models() -> None:
    found = {model.name: device_of(model) for model in MODELS}
    known = {name: device for name, device in found.items() if device is not None}
    assert known.keys() == {"b200", "gb200", "gb300", "h100", "h200", "mi300x"}
    assert all(device.name == name for name, device in known.items())
