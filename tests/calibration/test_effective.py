"""Calibration under a library: made-up constants are found again, and nothing else is claimed."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

import numpy as np
import pytest

from p2smt.calibration.build import Calibration, calibrate, doubts, useless
from p2smt.calibration.effective import LEAST_S, Constant, Quantity, fit_constants, with_constants
from p2smt.calibration.samples import Predictor, Sample, predicted_s
from p2smt.calibration.table_errors import disagreements
from p2smt.cluster.file import load_topology, parse_topology
from p2smt.cluster.topology import Algorithm, Topology
from p2smt.collectives.names import Collective, RequestKind
from p2smt.cost.algorithms import Operation
from p2smt.errors import InputError
from p2smt.programs.program import Grouping
from p2smt.report.calibration import calibration_data
from p2smt.report.outputs.shape import json_of
from tests.calibration.fixtures import ALL, INSIDE

SIZES = tuple(2**i for i in range(6, 33, 2))
PARTS = ((("any", 0.93), ("ring", 0.93)), (("any", 0.83), ("nvls", 0.66)))


def reaching(topology: Topology, parts: tuple[tuple[tuple[str, float], ...], ...]) -> Topology:
    """The topology with these efficiencies, whatever presets are fitted to."""
    levels = zip(topology.levels, parts, strict=True)
    found = (replace(lv, link=replace(lv.link, efficiency=part)) for lv, part in levels)
    return replace(topology, levels=tuple(found))


NODES = reaching(load_topology("dgx-h100:4").under("nccl-2.20"), PARTS)
MESH = load_topology("mi300x:2").under("rccl")
TRUE = {
    Constant(Quantity.EFFICIENCY, "nvls", 1): 0.7,
    Constant(Quantity.EFFICIENCY, "tree", 0): 0.6,
    Constant(Quantity.EFFICIENCY, "ring", 0): 0.8,
    Constant(Quantity.HOP, "tree-ll", 0): 9e-6,
    Constant(Quantity.HOP, "nvls-simple", 1): 6e-6,
    Constant(Quantity.CALL, "all-reduce"): 15e-6,
}


def table(
    truth: Topology,
    where: Grouping = ALL,
    nodes: int | None = None,
    operation: Operation = Collective.ALL_REDUCE,
    noise: float = 0.0,
    factor: float = 1.0,
) -> list[Sample]:
    """The model's own times as one table; ``noise`` is the standard deviation of their log."""
    plain = [Sample(operation, where, size, 1.0, outermost=nodes) for size in SIZES]
    times = factor * Predictor.of(truth, plain).seconds(truth)
    times *= np.exp(noise * np.random.default_rng(1).standard_normal(len(times)))
    name = f"{operation.value}-{where.outer}-{nodes or 'all'}"
    return [
        replace(s, seconds=float(t), source=f"{name}.txt:{line}")
        for line, (s, t) in enumerate(zip(plain, times, strict=True))
    ]


def test_what_cannot_have_run_by_the_algorithms_named_is_kept_as_notes() -> None:
    samples = [*table(NODES, INSIDE), *table(NODES)]
    (note,) = calibrate(NODES, samples, (Algorithm.NVLS,)).notes
    assert note.startswith("by ring, as nccl-2.20 cannot run it by nvls: all-reduce (all-reduce-0-")
    assert calibrate(NODES, samples).notes == ()


def three_tables(truth: Topology, noise: float = 0.0) -> list[Sample]:
    """One node, two nodes and all."""
    return [
        *table(truth, INSIDE, noise=noise),
        *table(truth, nodes=2, noise=noise),
        *table(truth, noise=noise),
    ]


def found_values(found: Calibration) -> dict[Constant, float]:
    return {one.constant: one.value for one in found.constants if one.fitted}


@lru_cache
def recovered() -> Calibration:
    """A fit to three tables of the true constants."""
    return calibrate(NODES, three_tables(with_constants(NODES, TRUE)))


@pytest.mark.exhaustive
def test_true_constants_are_recovered() -> None:
    samples, found = three_tables(with_constants(NODES, TRUE)), recovered()
    values = found_values(found)
    for constant, value in TRUE.items():
        assert values[constant] == pytest.approx(value, rel=0.05), constant
    predicted = Predictor.of(found.topology, samples).seconds(found.topology)
    np.testing.assert_allclose(predicted, [s.seconds for s in samples], rtol=0.03)
    assert found.topology.library == NODES.library
    assert found.topology.calibrated
    assert found.unexplained == ()


@pytest.mark.exhaustive
def test_noise_moves_constants_little() -> None:
    found = found_values(calibrate(NODES, three_tables(with_constants(NODES, TRUE), 0.05)))
    rates = {c: v for c, v in TRUE.items() if c.quantity is Quantity.EFFICIENCY}
    for constant, value in rates.items():
        assert found[constant] == pytest.approx(value, rel=0.1), constant


@pytest.mark.exhaustive
def test_a_few_rows_that_nothing_explains_do_not_bend_the_fit() -> None:
    truth = with_constants(NODES, TRUE)
    samples = three_tables(truth)
    spiked = [replace(s, seconds=4 * s.seconds) if i % 9 == 2 else s for i, s in enumerate(samples)]
    found = calibrate(NODES, spiked)
    assert found_values(found)[Constant(Quantity.EFFICIENCY, "nvls", 1)] == pytest.approx(
        0.7, rel=0.05
    )
    spikes = {i for i in range(len(samples)) if i % 9 == 2}
    assert {spiked.index(sample) for sample, _ in found.unexplained} == spikes


def test_what_no_time_touches_is_kept_and_said_to_be() -> None:
    found = calibrate(NODES, table(with_constants(NODES, TRUE), INSIDE))
    assert found.topology.levels[0] == NODES.levels[0]
    assert {one.constant.level for one in found.constants} <= {1, None}


def test_constants_that_act_alike_are_not_both_fitted() -> None:
    """Of one size alone nothing can tell a call from its hops."""
    same = [replace(s, payload_bytes=8) for s in table(with_constants(NODES, TRUE), INSIDE)]
    same = [replace(s, seconds=same[0].seconds) for s in same]
    found = fit_constants(NODES, same)
    kept = [one for one in found.constants if not one.fitted]
    assert len(found.constants) - len(kept) == 1
    assert kept
    known = dict(NODES.calls) | {one.constant.name: one.value for one in kept}
    for name, seconds in found.topology.calls:
        assert name in known or seconds > 0
    assert predicted_s(found.topology, same[0]) == pytest.approx(same[0].seconds, rel=0.02)


@pytest.mark.exhaustive
def test_no_time_below_ten_nanoseconds_is_fitted() -> None:
    fast = replace(NODES, calls=(("all-reduce", 0.0),))
    truth = with_constants(fast, {Constant(Quantity.HOP, "tree-ll", 0): 1e-9})
    found = calibrate(NODES, [*table(truth, nodes=2), *table(truth)])
    times = [
        one.value
        for one in found.constants
        if one.fitted and one.constant.quantity is not Quantity.EFFICIENCY
    ]
    assert min(times, default=1.0) > LEAST_S


def test_each_table_is_also_predicted_without_it() -> None:
    found = recovered()
    assert [one.times for one in found.tables] == [len(SIZES)] * 3
    assert all(one.median_error < 0.03 for one in found.tables)
    left_out = found.tables[1].left_out_error  # two nodes, from one and four
    assert left_out == pytest.approx(0, abs=0.1)
    assert not useless(found.tables)


def test_one_table_has_nothing_to_be_predicted_from() -> None:
    (one,) = calibrate(NODES, table(NODES)).tables
    assert one.left_out_error is None


def test_a_table_that_contradicts_the_others_is_named() -> None:
    odd = [replace(sample, source="odd.txt:1") for sample in table(NODES, INSIDE, factor=5.0)]
    found = calibrate(NODES, [*table(NODES, INSIDE), *odd])
    assert useless(found.tables)
    assert any("odd.txt" in line for line in doubts(found))


def of_two_clusters(factor: float) -> Calibration:
    """A fit to a table and one of the same groups whose times are longer by a factor."""
    other = [replace(one, source=f"other.txt:{n}") for n, one in enumerate(table(NODES, INSIDE))]
    longer = [replace(one, seconds=factor * one.seconds) for one in other]
    return calibrate(NODES, [*table(NODES, INSIDE), *longer])


@pytest.mark.parametrize(("factor", "said"), [(1.05, False), (1.25, True)])
def test_tables_of_the_same_groups_that_disagree_are_warned_of(factor: float, said: bool) -> None:
    """By more than either is off by; the fit lies between them."""
    found = of_two_clusters(factor)
    lines = [line for line in doubts(found) if "the same groups differ" in line]
    assert bool(lines) is said
    if said:
        ((first, second),) = [(one.first, one.second) for one in disagreements(found.tables)]
        assert "the same groups differ by 25 % (median of 14 sizes)" in lines[0]
        assert first.source in lines[0]
        assert second.source == "other.txt"
        assert max(first.median_error, second.median_error) < 0.25
    others = [*table(NODES, INSIDE), *table(NODES, factor=2.0)]
    assert not list(disagreements(calibrate(NODES, others).tables)), "of other groups"


def test_each_time_has_what_is_predicted_for_it() -> None:
    """Also by the fit that did not see it."""
    found = of_two_clusters(1.25)
    data = json_of(calibration_data(found))
    for one, fit in zip(data["tables"], found.tables, strict=True):
        assert one["left_out"] is True
        assert len(one["rows"]) == one["times"] == len(SIZES)
        rows = [(row["measured_s"], row["predicted_s"], row["left_out_s"]) for row in one["rows"]]
        errors = [max(m / s, s / m) - 1 for m, _, s in rows]
        assert float(np.median(errors)) == pytest.approx(one["left_out_error"])
        errors = [max(m / s, s / m) - 1 for m, s, _ in rows]
        assert float(np.median(errors)) == pytest.approx(fit.median_error)
    (alone,) = json_of(calibration_data(calibrate(NODES, table(NODES))))["tables"]
    assert alone["left_out"] is False
    assert {row["left_out_s"] for row in alone["rows"]} == {None}


def test_a_table_of_few_sizes_is_warned_of() -> None:
    short = [replace(sample, source="few.txt:1") for sample in table(NODES, INSIDE)[-3:]]
    assert "few.txt, all-reduce: 3 message sizes tell" in "".join(doubts(calibrate(NODES, short)))
    assert not list(doubts(calibrate(NODES, table(NODES, INSIDE)[-4:])))
    with pytest.raises(InputError, match="1 message size: a fit needs at least 2"):
        calibrate(NODES, short[:1])


@pytest.mark.parametrize("where", [INSIDE, ALL])
def test_times_faster_than_the_hardware_are_refused(where: Grouping) -> None:
    fast = table(NODES, where, factor=0.4)
    with pytest.raises(InputError, match=r"above the link's nominal .*--allow-above-nominal"):
        calibrate(NODES, fast)


def test_rates_above_nominal_can_be_allowed() -> None:
    fast = table(NODES, INSIDE, factor=0.5)
    found = calibrate(NODES, fast, allow_above_nominal=True)
    link, before = found.topology.levels[1].link, NODES.levels[1].link
    raised = before.bandwidth_bytes_per_s * dict(before.efficiency)["nvls"] / 0.5
    assert link.bandwidth_bytes_per_s == pytest.approx(raised, rel=0.05)
    assert all(part <= 1 for _, part in link.efficiency)
    large = fast[-1]
    assert predicted_s(found.topology, large) == pytest.approx(large.seconds, rel=0.1)


@pytest.mark.parametrize("factor", [0.5, 4.0])
def test_what_is_measured_here_stands_against_the_rates_of_the_file(factor: float) -> None:
    other = table(NODES, INSIDE, factor=factor)
    found = calibrate(NODES, other, here=True)
    assert found.tables[0].median_error < 0.1
    assert not list(doubts(found))
    allowed = calibrate(NODES, other, allow_above_nominal=True)
    assert bool(list(doubts(allowed))) == (factor > 1)


def test_a_choice_stays_while_rates_above_nominal_are_sought() -> None:
    """Else a point of the search would have another choice than the nominal links."""
    samples = table(NODES, INSIDE)
    predictor = Predictor.of(NODES, samples)
    point = with_constants(NODES, {Constant(Quantity.EFFICIENCY, "nvls", 1): 20.0})
    free, held = predictor.steps(point), predictor.steps(point, predictor.choosers(NODES))
    ran = [(step.algorithm, step.protocol) for step in predictor.steps(NODES)]
    assert [(step.algorithm, step.protocol) for step in held] == ran
    assert [(step.algorithm, step.protocol) for step in free] != ran


def test_no_constants_are_no_calibration() -> None:
    assert with_constants(NODES, {}) == NODES
    assert not with_constants(NODES, {}).calibrated


def test_a_raised_rate_leaves_other_algorithms_their_speed() -> None:
    fast = table(NODES, INSIDE, factor=0.5)
    found = calibrate(NODES, fast, allow_above_nominal=True).topology
    send = Sample(RequestKind.SEND, INSIDE, 2**30, 1.0)
    assert predicted_s(found, send) == pytest.approx(predicted_s(NODES, send), rel=0.02)


@pytest.mark.parametrize("kind", [RequestKind.SEND, RequestKind.ALL_TO_ALL])
def test_an_all_reduce_over_a_mesh_makes_no_other_link_faster(kind: Operation) -> None:
    """It uses all links of a device, a send one."""
    measured = table(MESH, INSIDE)
    found = calibrate(MESH, measured).topology
    for size in (2**20, 2**26, 2**32):
        other = Sample(kind, INSIDE, size, 1.0)
        assert predicted_s(found, other) >= 0.99 * predicted_s(MESH, other)


@pytest.mark.exhaustive
def test_exchanges_have_an_efficiency_of_their_own() -> None:
    true = {
        Constant(Quantity.EFFICIENCY, "all-to-all", 0): 0.5,
        Constant(Quantity.EFFICIENCY, "tree", 0): 0.6,
    }
    truth = with_constants(NODES, true)
    exchanges = table(truth, operation=RequestKind.ALL_TO_ALL)
    samples = [*table(truth, INSIDE), *table(truth, nodes=2), *table(truth, nodes=4), *exchanges]
    values = found_values(calibrate(NODES, samples))
    assert values[Constant(Quantity.EFFICIENCY, "all-to-all", 0)] == pytest.approx(0.5, rel=0.03)
    assert values[Constant(Quantity.EFFICIENCY, "tree", 0)] == pytest.approx(0.6, rel=0.05)


def test_a_library_with_one_algorithm_for_each_operation_has_efficiencies_of_operations() -> None:
    gloo = parse_topology(
        """
name: cluster
library: gloo
levels:
  - {name: node, size: 4, link: {kind: switch, fabric: ethernet, bandwidth: 1 GB/s, latency: 50 us}}
  - {name: gpu, size: 4, link: {kind: switch, bandwidth: 4 GB/s, latency: 20 us}}
""",
        "cluster",
    )
    true = {
        Constant(Quantity.EFFICIENCY, "all-reduce", 0): 0.9,
        Constant(Quantity.EFFICIENCY, "reduce-scatter", 0): 0.45,
    }
    truth = with_constants(gloo, true)
    samples = [
        *table(truth),
        *table(truth, operation=Collective.REDUCE_SCATTER),
    ]
    values = found_values(calibrate(gloo, samples))
    for constant, value in true.items():
        assert values[constant] == pytest.approx(value, rel=0.05), constant
