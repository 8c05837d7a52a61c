"""Presets: the documented list loads, with nominal rates and a source beside every number."""

from __future__ import annotations

import pytest

from p2smt.cluster.file import (
    load_noting,
    load_topology,
    preset_names,
    preset_text,
    profiles,
)
from p2smt.cluster.file_model import TopologyModel, with_profile
from p2smt.cluster.topology import Algorithm
from p2smt.cost.requested_algorithms import check_topology
from p2smt.errors import InputError
from p2smt.files.yaml_text import load_yaml
from tests.refusals import refusal

EXPECTED_PRESETS = {
    "aws-p3dn": (2, 8),
    "aws-p4d": (2, 8),
    "aws-p5": (2, 8),
    "aws-p6-b200": (2, 8),
    "aws-p6-b300": (2, 8),
    "azure-ndv2": (2, 8),
    "azure-ndv4": (2, 8),
    "azure-ndv5": (2, 8),
    "dgx-a100": (2, 8),
    "dgx-b200": (2, 8),
    "dgx-b300": (2, 8),
    "dgx-h100": (2, 8),
    "dgx-h200": (2, 8),
    "dgx-h800": (2, 8),
    "dgx1-v100": (2, 2, 4),
    "dgx2": (2, 16),
    "gb200-nvl72": (2, 72),
    "gb300-nvl72": (2, 72),
    "gcp-a2-highgpu-16g": (2, 16),
    "gcp-a3-high": (2, 8),
    "gcp-a3-mega": (2, 8),
    "gcp-a3-ultra": (2, 8),
    "gcp-a4": (2, 8),
    "mi300x": (2, 8),
    "mi325x": (2, 8),
    "mi355x": (2, 8),
    "paper-gcp-a100": (2, 16),
    "paper-gcp-v100": (2, 8),
    "tpu-v5p": (2, 64),
}


def test_preset_names_are_as_documented() -> None:
    assert preset_names() == tuple(sorted(EXPECTED_PRESETS))


def test_unknown_preset_text() -> None:
    with pytest.raises(InputError, match="neither a preset"):
        preset_text("../pyproject")


@pytest.mark.parametrize("name", EXPECTED_PRESETS)
def test_presets_load(name: str) -> None:
    preset = load_topology(name)
    assert preset.name == name
    assert preset.sizes == EXPECTED_PRESETS[name]
    assert preset.description
    assert preset.sources
    assert load_topology(f"{name}:4").sizes == (4, *preset.sizes[1:])


@pytest.mark.parametrize("name", EXPECTED_PRESETS)
def test_every_number_of_a_preset_has_a_source_beside_it(name: str) -> None:
    """A line with a bandwidth carries a comment, or its link starts with one."""
    lines = preset_text(name).splitlines()
    assert all("#" in line for line in lines if "bandwidth:" in line or "ports:" in line)


@pytest.mark.parametrize("name", EXPECTED_PRESETS)
def test_presets_name_the_same_protocols_at_every_level(name: str) -> None:
    levels = load_topology(name).levels
    assert len({tuple(piece.name for piece in level.link.pieces) for level in levels}) == 1


@pytest.mark.parametrize("name", EXPECTED_PRESETS)
def test_faster_protocols_of_a_preset_carry_less(name: str) -> None:
    for level in load_topology(name).levels:
        pieces = level.link.pieces
        assert list(pieces) == sorted(pieces, key=lambda piece: -piece.latency_s)
        assert list(pieces) == sorted(pieces, key=lambda piece: -piece.bandwidth_bytes_per_s)


@pytest.mark.parametrize("name", EXPECTED_PRESETS)
def test_every_link_of_a_preset_says_its_fabric(name: str) -> None:
    preset = load_topology(name)
    assert all(level.link.fabric for level in preset.levels)
    assert preset.node_level == 0


@pytest.mark.parametrize("name", EXPECTED_PRESETS)
def test_every_preset_names_a_library_that_can_run_on_it(name: str) -> None:
    preset = load_topology(name)
    assert "\nlibrary: " in preset_text(name)
    assert (preset.library is None) == (name == "tpu-v5p")
    if preset.library is not None:
        check_topology(preset, preset.library)
    assert not preset.fitted


@pytest.mark.parametrize("name", EXPECTED_PRESETS)
def test_in_switch_reduction_is_run_exactly_where_a_switch_has_it(name: str) -> None:
    preset = load_topology(name)
    has = any(level.link.in_switch_members for level in preset.levels)
    assert has == (Algorithm.IN_SWITCH in preset.algorithms)


@pytest.mark.parametrize(
    ("name", "node_gbit", "device_gbyte"),
    [
        ("gcp-a2-highgpu-16g", 100, 300),
        ("dgx2", 800, 150),
        ("dgx-a100", 1600, 300),
        ("aws-p4d", 400, 300),
        ("aws-p5", 3200, 450),
        ("aws-p6-b200", 3200, 900),
        ("dgx-b200", 3200, 900),
        ("gcp-a4", 3200, 900),
        ("azure-ndv5", 3200, 450),
        ("gcp-a3-high", 800, 450),
        ("gcp-a3-mega", 1600, 450),
        ("gb200-nvl72", 28800, 900),
        ("gb300-nvl72", 57600, 900),
        ("paper-gcp-a100", 64, 270),
    ],
)
def test_nominal_rates_of_presets(name: str, node_gbit: int, device_gbyte: int) -> None:
    outer, inner = (level.link for level in load_topology(name).levels)
    assert outer.ports * outer.bandwidth_bytes_per_s * 8 == node_gbit * 1e9
    assert inner.bandwidth_bytes_per_s == device_gbyte * 1e9


def test_the_name_of_a_fabric_is_told_as_such() -> None:
    with pytest.raises(InputError, match=r"is a fabric.*synthesize --fabric"):
        load_topology("dgx1:2")


PROFILES = ("azure-ndv4@sriov", "gcp-a3-mega@gke", "gcp-a4@gke-old", "mi300x@cx7")
"""Every profile of a preset."""


def test_profiles_are_presets_that_one_system_differs_from() -> None:
    """Each changes rates, hops or calls alone, says whose they are, and is named by its preset."""
    found = [one for name in preset_names() for one in profiles(name)]
    assert [name for name, _, _ in found] == list(PROFILES)
    for name, what, differs in found:
        preset, note = load_noting(name.partition("@")[0])
        mine, none = load_noting(f"{name}:4")
        assert (mine.name, mine.sizes) == (name, (4, *preset.sizes[1:]))
        assert (mine.levels[1:], mine.calls) != (preset.levels[1:], ()) or (
            mine.levels[0].link != preset.levels[0].link
        )
        assert [one.link.pieces for one in mine.levels] == [
            one.link.pieces for one in preset.levels
        ]
        assert what in mine.description
        assert mine.sources[-1].startswith("profile ")
        assert (differs in note, none) == (True, "")
    assert load_noting("dgx-b300")[1] == ""


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("mi300x@cx", "profile 'cx': is none of its profiles; did you mean 'cx7'"),
        ("mi300x@none", "profile 'none': is none of its profiles; @cx7"),
        ("dgx-b300@cx7:2", "profile 'cx7': is none of its profiles; leave it out"),
        ("mi300x-cx7", "did you mean 'mi300x@cx7'"),
    ],
)
def test_an_unknown_profile_is_one_line(name: str, message: str) -> None:
    assert message in refusal(load_topology, name)


def test_a_profile_names_levels_of_its_file() -> None:
    text = preset_text("mi300x").replace("      node: {efficiency", "      rack: {efficiency")
    model = TopologyModel.model_validate(load_yaml(text, "here"))
    assert "level 'rack': is none of the levels node, gpu" in refusal(
        with_profile, model, "cx7", "here"
    )
