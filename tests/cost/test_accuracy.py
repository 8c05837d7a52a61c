"""The range of a price: which row counts, how ranges sum, and what the committed rows are of."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from p2smt.cluster.error_class import MAX_ERROR, Basis, ErrorClass, kept_error
from p2smt.cluster.file import load_topology, preset_names
from p2smt.cluster.topology import Topology
from p2smt.cost import accuracy
from p2smt.cost.accuracy import (
    ANY,
    SIZE_CLASSES,
    PriceBasis,
    PricedStep,
    PriceRange,
    largest,
    price_range,
    read_blind,
    size_class,
    summed,
    system_name,
)
from p2smt.errors import InputError
from p2smt.units import format_time_range
from tests.refusals import refusal

H100 = load_topology("dgx-h100:4").under("nccl-2.30")
SYSTEM = system_name(H100, 0)
MIB = 2**20


def row(system: str, library: str, collective: str, size: str, low: float, high: float) -> str:
    return (
        f'  - {{system: "{system}", library: "{library}", basis: fitted, collective: '
        f'"{collective}", size_class: {size}, count: 9, low: {low}, median: 1, high: {high}}}\n'
    )


ROWS = (
    row(SYSTEM, "nccl-2.30", "all-reduce", "to 64 MiB", 0.9, 1.1)
    + row(SYSTEM, "nccl-2.30", "all-reduce", "above", 0.8, 1.2).replace("9,", "3,")
    + row(ANY, "nccl-2.30", "all-reduce", "to 64 MiB", 0.5, 1.5)
    + row(ANY, ANY, "all-reduce", "above", 0.6, 1.6)
    + row(ANY, "nccl-2.30", ANY, "above", 0.7, 1.7)
    + row(ANY, ANY, ANY, "above", 0.4, 1.4)
)


@pytest.fixture
def rows(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    file = tmp_path / "accuracy.yaml"
    file.write_text(f"blind:\n{ROWS}nccl-2.30: what other keys hold does not count\n")
    monkeypatch.setattr(accuracy, "ACCURACY_FILE", file)


def priced(
    size: int, topology: Topology = H100, operation: str = "all-reduce", level: int = 0
) -> PriceRange:
    return price_range(topology, PricedStep(operation, size, 10.0, level, 8))


GLOO = H100.under("gloo")


@pytest.mark.usefixtures("rows")
@pytest.mark.parametrize(
    ("size", "topology", "operation", "ends", "basis"),
    [
        (2 * MIB, H100, "all-reduce", (9, 11), PriceBasis.FITTED),
        (64 * MIB, H100, "all-reduce", (6, 16), PriceBasis.FITTED),  # few cells: widened
        (2 * MIB, H100.under("nccl-2.20"), "all-reduce", (4, 17), PriceBasis.LIKE),  # no row at all
        (64 * MIB, H100.under("nccl-2.20"), "all-reduce", (6, 16), PriceBasis.LIKE),
        (64 * MIB, H100, "all-gather", (7, 17), PriceBasis.LIKE),
        (64 * MIB, GLOO, "all-gather", (4, 14), PriceBasis.ASSUMED),
        (2 * MIB, H100.cheapest(), "all-reduce", (9, 11), PriceBasis.LIKE),
    ],
)
def test_the_nearest_row_counts(
    size: int,
    topology: Topology,
    operation: str,
    ends: tuple[int, int],
    basis: PriceBasis,
) -> None:
    found = priced(size, topology, operation)
    assert (found.low_s, found.high_s) == pytest.approx(ends)
    assert found.basis is basis


def test_classes_of_payloads_end_below_their_bounds() -> None:
    found = [
        size_class(n) for n in (1, 2**16 - 1, 2**16, 2**20 - 1, 2**20, 2**26 - 1, 2**26, 2**60)
    ]
    names = [name for name, _ in SIZE_CLASSES]
    assert found == [name for name in names for _ in range(2)]


def test_short_forms() -> None:
    one = PriceRange(880e-6, 700e-6, 1.1e-3, PriceBasis.ASSUMED, "no table of this fabric")
    assert one.text == "0.7 to 1.1 ms: assumed, no table of this fabric"
    assert replace(one, basis=PriceBasis.FITTED, why="").text == "0.7 to 1.1 ms: fitted here"
    assert format_time_range(0.0991, 0.1009) == "99 to 100 ms"
    assert format_time_range(1.751e-3, 1.784e-3) == "1.75 to 1.78 ms"
    assert format_time_range(950.0, 1234.0) == "950 to 1200 s"
    assert format_time_range(0.0, 1e-10) == "0 to 0.1 ns"
    assert format_time_range(46.59e-3, 52.9e-3) == "47 to 53 ms"
    assert format_time_range(46.59e-3, 52.9e-3, 46.59e-3) == "46 to 53 ms"
    assert format_time_range(40e-3, 52.4e-3, 52.4e-3) == "40 to 53 ms"
    assert format_time_range(9.96e-3, 10.01e-3, 9.96e-3) == "9.9 to 10 ms"


ranges = st.builds(
    lambda seconds, low, high, basis: PriceRange(seconds, low * seconds, high * seconds, basis),
    st.floats(1e-9, 1e3),
    st.floats(0.1, 1),
    st.floats(1, 10),
    st.sampled_from(PriceBasis),
)


@given(st.lists(ranges, min_size=1))
def test_low_sums_with_low_and_high_with_high(parts: list[PriceRange]) -> None:
    whole, top = summed(parts), largest(parts)
    assert whole is not None
    assert top is not None
    assert whole.low_s == pytest.approx(sum(one.low_s for one in parts))
    assert whole.high_s == pytest.approx(sum(one.high_s for one in parts))
    assert whole.low_s <= whole.seconds * (1 + 1e-9)
    order = list(PriceBasis)
    assert order.index(whole.basis) == max(order.index(one.basis) for one in parts)
    assert top.seconds == max(one.seconds for one in parts)
    assert top.basis in {one.basis for one in parts if one.seconds == top.seconds}
    assert top.high_s == max(one.high_s for one in parts)


def test_nothing_sums_to_nothing() -> None:
    assert summed([]) is largest([]) is None


@given(st.floats(0, MAX_ERROR))
def test_an_error_is_a_range_around_the_prediction(error: float) -> None:
    """Measured times that far off lie in it, as long as they are at most tenfold."""
    low, high = ErrorClass("send", error, Basis.IN_SAMPLE).ratios
    assert low == 1 / (1 + error) <= 1 <= high <= 10 + 1e-9
    if error < 0.9:
        assert 1 - 1 / high == pytest.approx(error)


def test_four_of_five_keep_to_an_error() -> None:
    assert kept_error([0.5, 0.1, 0.4, 0.2, 0.3]) == 0.4
    assert kept_error([0.1, 0.2]) == 0.2
    assert [kept_error([float(n) for n in range(1, many + 1)]) for many in (10, 15, 35)] == [
        8,
        12,
        28,
    ]


def test_what_is_committed_is_of_systems_that_presets_describe() -> None:
    """Each can be asked for, and any system has a row in each class of payloads."""
    found = read_blind(accuracy.ACCURACY_FILE.read_text(), "accuracy.yaml")
    described = {
        system_name(topology, level)
        for name in preset_names()
        for topology in [load_topology(name)]
        for level in range(len(topology.levels))
    }
    own = {system for system, _, _, _ in found.ends if system != ANY}
    assert own
    whole = {system for system in own if " of " not in system}
    parts = {system.split(" of ")[-1].partition(",")[0] for system in own - whole}
    assert whole <= described
    assert parts <= {system.partition(",")[0] for system in described}
    assert {size for *any_, size in found.ends if any_ == [ANY, ANY, ANY]} == dict(
        SIZE_CLASSES
    ).keys()
    assert {"nccl", "rccl"} <= found.fabrics.keys()


def test_what_nobody_measured_is_not_fitted() -> None:
    """No table has an A100 cluster on InfiniBand, RCCL on NVLink, or Gloo; an AWS P5 has one."""
    for name, library, basis in (
        ("dgx-a100:4", "", PriceBasis.LIKE),
        ("dgx-a100:4", "rccl", PriceBasis.ASSUMED),
        ("dgx-a100:4", "gloo", PriceBasis.ASSUMED),
        ("dgx-a100:4", "none", PriceBasis.ASSUMED),
        ("aws-p5:2", "", PriceBasis.FITTED),
    ):
        topology = load_topology(name)
        assert priced(2**30, topology.under(library) if library else topology).basis is basis


GOOD = "system: a, library: b, collective: c, size_class: above, count: 9, low: 0.5, high: 1.5"


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("- 1", "no list of rows"),
        ("nccl: 1", "no list of rows"),
        ("blind: 1", "no list of rows"),
        ("blind: []", "no list of rows"),
        ("blind: [1]", "needs system"),
        (f"blind: [{{{GOOD.replace('system: a, ', '')}}}]", "needs system"),
        (f"blind: [{{{GOOD.replace('0.5', 'big')}}}]", "numbers"),
        (f"blind: [{{{GOOD.replace('0.5', '0')}}}]", "not positive"),
        (f"blind: [{{{GOOD.replace('0.5', '1.6')}}}]", "above its high"),
        (f"blind: [{{{GOOD.replace('1.5', 'nan')}}}]", "above its high"),
        (f"blind: [{{{GOOD.replace('above', 'large')}}}]", "no such class"),
        (f"blind: [{{{GOOD}}}]\nboth: [{{system: a}}]", "both: a row needs"),
    ],
)
def test_bad_files_are_refused_with_one_line(text: str, rule: str) -> None:
    assert rule in refusal(read_blind, text, "accuracy.yaml")


def test_no_class_has_an_impossible_error() -> None:
    with pytest.raises(InputError, match="from 0 to 10"):
        ErrorClass("send", MAX_ERROR + 1, Basis.IN_SAMPLE)
