"""What a calibration says of its own errors: classes by operation and payload, and their basis."""

from __future__ import annotations

from dataclasses import replace

import pytest

from p2smt.calibration.build import calibrate, calibrated_yaml
from p2smt.calibration.samples import Sample
from p2smt.calibration.table_errors import error_classes
from p2smt.cluster.error_class import Basis, ErrorClass
from p2smt.cluster.file import load_topology, parse_topology
from p2smt.cluster.topology import Topology
from p2smt.collectives.names import Collective
from tests.calibration.fixtures import ALL, INSIDE, START, TRUTH, made_samples

KIB, MIB = 2**10, 2**20
SEEN, OUT = Basis.IN_SAMPLE, Basis.LEFT_OUT


def classes(*sizes: int) -> list[tuple[int, int | None]]:
    """From where to where the classes hold, of measurements at these sizes."""
    found = error_classes("send", [(size, 0.1) for size in sizes], [])
    return [(one.least_bytes, one.most_bytes) for one in found]


def test_a_class_holds_where_something_was_measured() -> None:
    assert classes(8, KIB) == [(8, KIB)]
    assert classes(8, 64 * KIB, MIB) == [(8, 64 * KIB), (64 * KIB, MIB)]
    assert classes(8, 2 * MIB) == [(8, 64 * KIB), (MIB, 2 * MIB)]
    assert classes(32 * MIB, 64 * MIB) == [(32 * MIB, None)]
    assert classes(32 * MIB, 128 * MIB) == [(32 * MIB, 64 * MIB), (64 * MIB, None)]
    assert classes() == []


def test_four_of_five_keep_to_the_error() -> None:
    cells = [(n, error) for n, error in enumerate((0.5, 0.1, 0.2, 0.3, 0.4), start=1)]
    (found,) = error_classes("all-reduce", cells, [])
    assert found == ErrorClass("all-reduce", 0.4, SEEN, 1, 5)
    (found,) = error_classes("all-reduce", cells[:2], [])
    assert found.error == 0.5


def test_the_larger_error_counts_and_says_what_it_was_found_on() -> None:
    (out,) = error_classes("send", [(8, 0.1)], [(8, 0.123)])
    assert (out.error, out.basis) == (0.12, OUT)
    (seen,) = error_classes("send", [(8, 0.2)], [(8, 0.1)])
    assert (seen.error, seen.basis) == (0.2, SEEN)
    (far,) = error_classes("send", [(8, 0.2)], [(8, 99.0)])
    assert far.error == 10.0


H100 = load_topology("dgx-h100:4")


def spoiled(samples: list[Sample], factor: float, source: str) -> list[Sample]:
    """The times of one table, longer by a factor."""
    return [
        replace(one, seconds=factor * one.seconds, source=f"{source}:{n}")
        for n, one in enumerate(samples)
    ]


def of_two_tables(topology: Topology) -> Topology:
    """Fitted to two tables that differ by a fifth."""
    truth = TRUTH if topology is START else topology
    one = made_samples(truth, ALL)
    found = calibrate(topology, [*spoiled(one, 1.0, "a.txt"), *spoiled(one, 1.2, "b.txt")])
    return found.topology


@pytest.mark.exhaustive
@pytest.mark.parametrize("topology", [START, H100], ids=["pieces", "library"])
def test_a_calibration_keeps_the_error_of_tables_left_out(topology: Topology) -> None:
    fitted = of_two_tables(topology)
    assert {level for level, _ in fitted.errors} == {"node"}
    assert {one.operation for _, one in fitted.errors} == {"all-reduce"}
    assert {one.basis for _, one in fitted.errors} == {OUT}
    large = next(one for _, one in fitted.errors if one.holds("all-reduce", 2**30))
    assert large.error == pytest.approx(0.2, abs=0.04)
    assert parse_topology(calibrated_yaml_of(fitted), "again") == fitted


def calibrated_yaml_of(fitted: Topology) -> str:
    """The file of a calibration that found this topology."""
    found = calibrate(START, made_samples(TRUTH, ALL))
    return calibrated_yaml(replace(found, topology=fitted), "today")


def test_a_single_table_is_in_sample() -> None:
    found = calibrate(START, spoiled(made_samples(TRUTH, INSIDE), 1.0, "a.txt")).topology
    assert {level for level, _ in found.errors} == {"gpu"}
    assert {one.basis for _, one in found.errors} == {SEEN}
    assert all(one.error < 0.05 for _, one in found.errors)


def test_operations_and_levels_have_errors_of_their_own() -> None:
    gathers = made_samples(TRUTH, INSIDE, Collective.ALL_GATHER)
    every = [*made_samples(TRUTH, ALL), *made_samples(TRUTH, INSIDE), *gathers]
    found = calibrate(START, every).topology
    assert {(level, one.operation) for level, one in found.errors} == {
        ("node", "all-reduce"),
        ("gpu", "all-reduce"),
        ("gpu", "all-gather"),
    }


def test_errors_are_of_what_was_fitted() -> None:
    """Another library, other algorithms or nominal rates were not measured."""
    fitted = of_two_tables(H100)
    assert fitted.under(fitted.known_library).errors == fitted.errors
    assert fitted.with_outermost(8).errors == fitted.errors
    for other in (
        fitted.under("nccl-2.20"),
        fitted.under("none"),
        fitted.cheapest(),
        fitted.running(fitted.algorithms),
        fitted.nominal(),
    ):
        assert other.errors == ()
