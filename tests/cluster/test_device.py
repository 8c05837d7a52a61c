"""Devices: read with their units, refused where wrong, kept by all that is made of a topology."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import takewhile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from p2smt.calibration.build import calibrate
from p2smt.cluster.file import (
    dump_topology,
    load_topology,
    parse_topology,
    preset_names,
    preset_text,
    topology_from_data,
)
from p2smt.cluster.link import DTYPES, Device
from p2smt.cluster.trimmed import trimmed
from p2smt.collectives.names import RequestKind
from p2smt.cost.scene import Scene
from p2smt.errors import InputError
from p2smt.parallelism.placement import Placement
from p2smt.units import exact_flops, format_flops, parse_flops
from tests.calibration.fixtures import ALL, START, TRUTH, made_samples
from tests.cli.tools import cli
from tests.cluster.texts import GOOD
from tests.interop.clusters.texts import TREE

H100 = Device("h100", (("bf16", 989e12), ("fp16", 989e12)), 3.35e12, 80 * 2**30)
BLOCK = """\
device:
  name: h100
  peak: {bf16: 989 TFLOP/s, fp16: 0.989 PFLOP/s}
  memory_bandwidth: 3.35 TB/s
  memory: 80 GiB
"""
PEAKS = st.dictionaries(st.sampled_from(DTYPES), st.floats(1, 4e18), min_size=1)
DEVICES = st.builds(
    Device,
    st.text("abc-x0123", min_size=1, max_size=8),
    PEAKS.map(lambda found: tuple(found.items())),
    st.floats(1, 1e17),
    st.integers(1, 2**60),
)


def test_a_device_is_read_with_its_units() -> None:
    found = parse_topology(GOOD + BLOCK, "small.yaml")
    assert found.device == H100
    assert found.known_device.peak_flops("bf16") == 989e12


@given(DEVICES)
def test_a_device_reads_back(device: Device) -> None:
    topology = replace(parse_topology(GOOD, "small.yaml"), device=device)
    assert topology_from_data(dump_topology(topology), "data").device == device


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("989 TFLOP/s", "989 TB/s", r"device\.peak\.bf16: value '989 TB/s'.*989 TFLOP/s"),
        ("989 TFLOP/s", "'989'", "not a non-negative decimal number with a unit"),
        ("989 TFLOP/s", "0 TFLOP/s", "less than one FLOP/s"),
        ("989 TFLOP/s", "5000 PFLOP/s", "2\\^62 or more"),
        ("bf16:", "int8:", "peaks .*int8.*name each of bf16, fp16, fp8, fp4"),
        ("{bf16: 989 TFLOP/s, fp16: 0.989 PFLOP/s}", "{}", "one at least"),
        ("3.35 TB/s", "3.35 TB", "device.memory_bandwidth: .*is not a non-negative"),
        ("80 GiB", "80 GiB/s", "device.memory: .*is not a non-negative"),
        ("  memory: 80 GiB\n", "", "device.memory: this key is missing"),
        ("  memory: 80 GiB\n", "  memory: 80 GiB\n  ram: 1 GiB\n", "unknown key 'ram' in device"),
        ("name: h100", "name: ''", "device.name.*must not be empty"),
    ],
)
def test_a_bad_device_is_one_clear_error(old: str, new: str, message: str) -> None:
    assert old in BLOCK
    with pytest.raises(InputError, match=message):
        parse_topology(GOOD + BLOCK.replace(old, new, 1), "small.yaml")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"name": ""}, "without a name"),
        ({"peaks": ()}, "one at least"),
        ({"peaks": (("bf16", 1.0), ("bf16", 2.0))}, "at most once"),
        ({"peaks": (("bf16", math.inf),)}, "are 1 FLOP/s, 1 B/s and 1 B or more"),
        ({"peaks": (("bf16", 0.0),)}, "are 1 FLOP/s, 1 B/s and 1 B or more"),
        ({"memory_bandwidth_bytes_per_s": -1.0}, "are 1 FLOP/s, 1 B/s and 1 B or more"),
        ({"memory_bandwidth_bytes_per_s": math.nan}, "are 1 FLOP/s, 1 B/s and 1 B or more"),
        ({"memory_bytes": 0}, "are 1 FLOP/s, 1 B/s and 1 B or more"),
    ],
)
def test_no_device_is_made_of_bad_values(change: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        replace(H100, **change)  # type: ignore[arg-type]


def test_a_peak_that_is_not_given_is_an_error() -> None:
    with pytest.raises(InputError, match="device v100: gives no peak of bf16, but of fp16"):
        load_topology("dgx2").known_device.peak_flops("bf16")


def test_a_topology_without_a_device_says_so() -> None:
    with pytest.raises(InputError, match="topology small: does not say what a device can do"):
        _ = parse_topology(GOOD, "small.yaml").known_device


@pytest.mark.parametrize("name", preset_names())
def test_every_number_of_a_presets_device_has_a_source_beside_it(name: str) -> None:
    lines = preset_text(name).splitlines()
    block = [*takewhile(lambda line: line.startswith(" "), lines[lines.index("device:") + 1 :])]
    assert [line.split(":")[0].strip() for line in block] == [
        *("name", "peak", "memory_bandwidth", "memory")
    ]
    assert all("  # " in line for line in block[1:])


# TFLOP/s of bf16, fp16 and, without sparsity, fp8 and fp4; TB/s, GB as it is sold
PUBLISHED: dict[str, tuple[float, dict[str, float], float, tuple[int, ...]]] = {
    "v100": (125, {}, 0.9, (16, 32)),
    "a100": (312, {}, 0, (40, 80)),  # its bandwidth is that of the one or the other memory
    "h100": (989, {"fp8": 1979}, 3.35, (80,)),
    "h200": (989, {"fp8": 1979}, 4.8, (141,)),
    "b200": (2250, {"fp8": 4500, "fp4": 9000}, 7.7, (180,)),
    "gb200": (2500, {"fp8": 5000, "fp4": 10000}, 8, (186,)),
    "gb300": (2500, {"fp8": 5000, "fp4": 15000}, 8, (279,)),
    "b300": (2250, {"fp8": 4500, "fp4": 13500}, 8, (268,)),
    "h800": (989, {"fp8": 1979}, 3.35, (80,)),
    "mi325x": (1307, {"fp8": 2615}, 6, (256,)),
    "mi355x": (2517, {"fp8": 5033, "fp4": 10066}, 8, (268,)),
    "mi300x": (1307, {"fp8": 2615}, 5.3, (192,)),
    "tpu-v5p": (459, {}, 2.765, (95,)),
}


@pytest.mark.parametrize("name", preset_names())
def test_devices_of_presets_are_near_what_is_sold(name: str) -> None:
    device = load_topology(name).known_device
    peak, low, rate, sold = PUBLISHED[device.name]
    if device.name == "a100":
        rate = {40: 1.555, 80: 2.039}[round(device.memory_bytes / 2**30)]
    peaks = dict(device.peaks)
    assert peaks.keys() - {"bf16", "fp16"} == low.keys()
    assert {"bf16", "fp16"} & peaks.keys()
    for dtype, flops in peaks.items():
        assert flops == pytest.approx(low.get(dtype, peak) * 1e12, rel=1e-3)
    assert device.memory_bandwidth_bytes_per_s == pytest.approx(rate * 1e12, rel=0.01)
    assert any(device.memory_bytes == pytest.approx(size * 2**30, rel=0.01) for size in sold)


def test_what_is_made_of_a_topology_keeps_its_device() -> None:
    preset = load_topology("dgx-h100:4")
    assert preset.device is not None
    made = [
        preset.with_outermost(2),
        preset.under("none"),
        preset.nominal(),
        preset.cheapest(),
        preset.with_bandwidth_factor(0, 0.5),
        trimmed(preset, {"gpu": 4}),
    ]
    assert [topology.device for topology in made] == [preset.device] * len(made)


def test_a_calibration_keeps_the_device() -> None:
    found = calibrate(replace(START, device=H100), made_samples(TRUTH, ALL))
    assert found.topology.device == H100


def test_an_import_has_the_device_of_its_nodes(tmp_path: Path) -> None:
    tree, made = tmp_path / "topology.conf", tmp_path / "made.yaml"
    tree.write_text(TREE)
    found = cli("topology", "import", str(tree), "--node", "dgx-h100", "-o", str(made))
    assert found.code == 0, found.err
    assert load_topology(str(made)).device == load_topology("dgx-h100").device


def test_times_and_hashes_do_not_depend_on_the_device() -> None:
    """Equal only with the same device, so that a cache never mistakes one for another."""
    preset = load_topology("dgx-h100")
    bare = replace(preset, device=None)
    assert hash(bare) == hash(preset)
    assert bare != preset
    placement = Placement(((2, 8),))
    times = [
        Scene.of(one, placement, [0]).fixed_time(RequestKind.ALL_REDUCE, 2**24)
        for one in (preset, bare)
    ]
    assert times[0] == times[1]


def test_show_prints_the_device() -> None:
    line = "device: a100, bf16 312 TFLOP/s, fp16 312 TFLOP/s, memory 80 GiB at 2.039 TB/s"
    assert line in cli("topology", "show", "dgx-a100").out


@given(st.floats(1, 4e18))
def test_speeds_of_arithmetic_read_back(value: float) -> None:
    assert parse_flops(exact_flops(value)) == value


@pytest.mark.parametrize(
    ("text", "flops"),
    [
        ("989 TFLOP/s", 989e12),
        ("2.25 PFLOP/s", 2.25e15),
        ("1e15FLOP/s", 1e15),
        (" 312GFLOP/s ", 312e9),
    ],
)
def test_speeds_of_arithmetic(text: str, flops: float) -> None:
    assert parse_flops(text) == flops


@pytest.mark.parametrize(
    "text", ["989", "989 TFLOPS", "989 TiFLOP/s", "-1 TFLOP/s", "1 TFLOP", "", None, 989, "x" * 99]
)
def test_what_is_no_speed_of_arithmetic(text: object) -> None:
    with pytest.raises(InputError, match="with a unit"):
        parse_flops(text)


def test_speeds_of_arithmetic_for_people() -> None:
    assert (format_flops(989e12), format_flops(1.2345e9)) == ("989 TFLOP/s", "1.234 GFLOP/s")
