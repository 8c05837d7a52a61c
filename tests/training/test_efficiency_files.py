"""Efficiencies, frameworks and hardware by name."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from p2smt.errors import InputError
from p2smt.training.efficiencies import efficiency_files, frameworks
from p2smt.training.efficiencies import frameworks as hardware
from tests.refusals import refusal

NAMES = ("fsdp-a100", "fsdp-h100", "megatron-a100", "megatron-h100", "nemo-h100")


BY_KINDS = (
    "automodel-h100",
    *(f"megatron-bridge-{one}" for one in ("b200", "gb200", "gb300", "h100")),
)


def test_those_of_the_package_are_read() -> None:
    assert set(efficiency_files.efficiency_names()) == {*NAMES, *BY_KINDS}
    for name in BY_KINDS:
        found = efficiency_files.read_efficiency(name)
        assert found.layers is not None
        assert (found.name, name.endswith(found.device), found.fraction < 1) == (name, True, True)
    for name in NAMES:
        found = efficiency_files.read_efficiency(name)
        assert found.name == name
        assert name.endswith(found.device)
        assert 0.3 < found.fraction < 1
        assert found.runs >= 10
        assert 0 < found.error < 0.15


def test_megatron_on_h100_is_nemo() -> None:
    one, other = (
        efficiency_files.read_efficiency("megatron-h100"),
        efficiency_files.read_efficiency("nemo-h100"),
    )
    assert one.fraction == other.fraction
    assert one.framework.gradient_bytes == 4
    assert other.framework.gradient_bytes == 2


@pytest.mark.parametrize(
    ("preset", "name"), [("a100-40", "megatron-a100"), ("h100", "megatron-h100")]
)
def test_megatron_is_the_default(preset: str, name: str) -> None:
    device = hardware.topology_of(preset, 8).device
    assert device is not None
    assert efficiency_files.default_efficiency(device).name == name
    assert (
        efficiency_files.default_efficiency(replace(device, name="gaudi")).name == name
    )  # the likest


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    found = replace(
        efficiency_files.read_efficiency("nemo-h100"), name="ours", fraction=0.5125, layer_s=1e-4
    )
    path = tmp_path / "ours.yaml"
    path.write_text(efficiency_files.dump_efficiency(found, ("ours",)), encoding="utf-8")
    assert efficiency_files.read_efficiency(str(path)) == found


@pytest.mark.parametrize(
    ("key", "value", "part"),
    [
        ("fraction", "1.2", "a part from 1e-06 to 1"),
        ("fraction", "0", "a part from 1e-06 to 1"),
        ("fraction", "much", "must be a number"),
        ("fraction", "nan", "finite"),
        ("layer_s", "-1", "a time from 0 to"),
        ("framework", "nemoo", "did you mean 'nemo'"),
        ("runs", "many", "whole number"),
        ("colour", "red", "unknown key"),
    ],
)
def test_bad_files_are_refused(tmp_path: Path, key: str, value: str, part: str) -> None:
    data = {
        line.split(": ")[0]: line.split(": ")[1]
        for line in efficiency_files.dump_efficiency(
            efficiency_files.read_efficiency("nemo-h100")
        ).splitlines()
    }
    path = tmp_path / "ours.yaml"
    path.write_text("".join(f"{k}: {v}\n" for k, v in (data | {key: value}).items()))
    assert part in refusal(efficiency_files.read_efficiency, str(path))


def test_unknown_names_are_refused() -> None:
    with pytest.raises(InputError, match="did you mean 'nemo-h100'"):
        efficiency_files.read_efficiency("nemo-h10")
    with pytest.raises(InputError, match="cannot be read"):
        efficiency_files.read_efficiency("none.yaml")
    with pytest.raises(InputError, match="did you mean 'megatron'"):
        frameworks.framework("megatro")


def test_groups_of_published_runs_have_frameworks() -> None:
    assert frameworks.framework_of_group("dgxc-70b") == "nemo"
    assert frameworks.framework_of_group("sc21t2-zero-175b") == "deepspeed"
    assert frameworks.framework_of_group("ours") == ""


def test_bytes_of_gradients_follow_the_data_type() -> None:
    megatron = frameworks.framework("megatron")
    assert megatron.reduced_bytes("bf16") == 4
    assert megatron.reduced_bytes("fp16") == 2


@pytest.mark.parametrize(("devices", "sizes"), [(8, (1, 8)), (4, (1, 4)), (64, (8, 8))])
def test_topologies_have_the_devices_of_a_run(devices: int, sizes: tuple[int, ...]) -> None:
    assert hardware.topology_of("a100-80", devices).sizes == sizes


def test_the_small_a100_has_its_own_memory() -> None:
    small, large = (hardware.topology_of(name, 8).device for name in ("a100-40", "a100-80"))
    assert small is not None
    assert large is not None
    assert small.memory_bytes * 2 == large.memory_bytes
    assert small.memory_bandwidth_bytes_per_s < large.memory_bandwidth_bytes_per_s


def test_devices_that_fill_no_nodes_are_refused() -> None:
    with pytest.raises(InputError, match="multiple of 8"):
        hardware.topology_of("h100", 12)
