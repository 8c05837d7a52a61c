"""Calibrated topologies: levels from the inside outwards, own pieces, and the file."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from p2smt.calibration.build import Calibration, calibrate, calibrated_yaml
from p2smt.calibration.fit import Lines
from p2smt.calibration.fit_rows import make_row, make_table
from p2smt.calibration.samples import Sample, predicted_s, usages
from p2smt.cluster.file import dump_topology, load_topology, parse_topology
from p2smt.cluster.topology import Algorithm, Topology
from p2smt.collectives.names import Collective, RequestKind
from p2smt.cost.algorithms import Operation
from p2smt.errors import InputError
from p2smt.files.yaml_text import dump_yaml
from p2smt.programs.program import Grouping
from tests.calibration.fixtures import ALL, INSIDE, START, TRUTH, made_samples
from tests.tiers import examples_of

EVERY = [*made_samples(TRUTH, INSIDE), *made_samples(TRUTH, ALL)]


def pieces(topology: Topology, level: int) -> list[tuple[str, float, float]]:
    found = topology.levels[level].link.pieces
    return [(p.name, p.latency_s, p.bandwidth_bytes_per_s) for p in found]


def assert_same_pieces(found: Topology, truth: Topology) -> None:
    for level in range(len(truth.levels)):
        ours, theirs = pieces(found, level), pieces(truth, level)
        assert [p[0] for p in ours] == [p[0] for p in theirs]
        np.testing.assert_allclose([p[1:] for p in ours], [p[1:] for p in theirs], rtol=1e-3)


def test_both_levels_are_recovered_through_ports_and_names() -> None:
    found = calibrate(START, EVERY)
    assert_same_pieces(found.topology, TRUTH)
    assert found.topology.algorithms == (Algorithm.RING,)
    assert found.topology.calibrated
    assert found.topology.levels[0].link.ports == 4
    assert [level.collectives[0].max_error < 1e-4 for level in found.levels] == [True, True]


def test_fewer_nodes_than_the_topology_has_join_in() -> None:
    two = made_samples(TRUTH, ALL, outermost=2)
    found = calibrate(START, [*made_samples(TRUTH, INSIDE), *two])
    np.testing.assert_allclose(
        [predicted_s(found.topology, s) for s in EVERY], [s.seconds for s in EVERY], rtol=1e-3
    )


def test_a_level_without_measurements_keeps_its_link() -> None:
    found = calibrate(START, made_samples(TRUTH, INSIDE))
    assert found.topology.levels[0] == START.levels[0]
    assert found.levels[0].link is None
    assert found.levels[1].link is not None


def test_collectives_that_agree_share_the_link() -> None:
    gathers = made_samples(TRUTH, INSIDE, Collective.ALL_GATHER)
    found = calibrate(START, [*made_samples(TRUTH, INSIDE), *gathers])
    assert found.topology.levels[1].link.measured == ()
    assert [fit.own for fit in found.levels[1].collectives] == [False, False]


@pytest.mark.exhaustive
def test_a_deviating_collective_gets_pieces_of_its_own() -> None:
    slow = [
        replace(s, seconds=3 * s.seconds)
        for s in made_samples(TRUTH, INSIDE, Collective.REDUCE_SCATTER)
    ]
    samples = [
        *made_samples(TRUTH, INSIDE),
        *made_samples(TRUTH, INSIDE, Collective.ALL_GATHER),
        *made_samples(TRUTH, INSIDE, Collective.BROADCAST),
        *slow,
    ]
    found = calibrate(START, samples)
    ((collective, own),) = found.topology.levels[1].link.measured
    assert collective is Collective.REDUCE_SCATTER
    assert own[0].latency_s == pytest.approx(12e-6, rel=1e-3)
    assert pieces(found.topology, 1)[0][1] == pytest.approx(4e-6, rel=1e-3)
    assert all(fit.max_error < 1e-3 for fit in found.levels[1].collectives)


@pytest.mark.parametrize("operation", [RequestKind.ALL_TO_ALL, RequestKind.SEND])
def test_exchanges_and_sends_are_fitted_too(operation: Operation) -> None:
    found = calibrate(START, made_samples(TRUTH, INSIDE, operation))
    (fit,) = found.levels[1].collectives
    assert (fit.operation, fit.own) == (operation, False)
    assert fit.max_error < 1e-3


def test_own_pieces_of_other_collectives_stay() -> None:
    before = calibrate(START, made_samples(TRUTH, INSIDE)).topology
    inner = before.levels[1]
    measured = ((Collective.ALL_GATHER, inner.link.pieces),)
    start = replace(
        before,
        levels=(before.levels[0], replace(inner, link=replace(inner.link, measured=measured))),
    )
    found = calibrate(start, made_samples(TRUTH, INSIDE))
    assert found.topology.levels[1].link.measured == measured


@pytest.mark.exhaustive
def test_several_algorithms_are_fitted_together() -> None:
    both = (Algorithm.RING, Algorithm.TREE)
    truth = replace(TRUTH, algorithms=both)
    samples = [*made_samples(truth, INSIDE), *made_samples(truth, ALL)]
    found = calibrate(START, samples, both)
    assert found.topology.algorithms == both
    assert all(level.collectives[0].median_error < 0.01 for level in found.levels)


@pytest.mark.parametrize("algorithms", [["ring"], ["tree"], ["ring", "tree", "direct"]])
@pytest.mark.parametrize("preset", ["dgx-a100:4", "gcp-a2-highgpu-16g:2", "mi300x:2", "dgx1-v100"])
@pytest.mark.parametrize("collective", list(Collective))
def test_rows_predict_what_the_cost_model_does(
    algorithms: list[str], preset: str, collective: Collective
) -> None:
    """The table of a fit by the textbook, filled with the true pieces, gives the model's times."""
    topology = replace(
        load_topology(preset).nominal(), algorithms=tuple(map(Algorithm, algorithms))
    )
    depth = len(topology.levels)
    for grouping in (Grouping(0, depth), Grouping(1, depth), Grouping(0, 1, master=True)):
        samples = made_samples(topology, grouping, collective, sizes=[64, 2**20, 2**30])
        level = usages(topology, samples[0])[0].level
        own = topology.levels[level].link.pieces
        table = make_table([make_row(topology, s) for s in samples], [p.name for p in own])
        lines = Lines(
            np.array([p.latency_s for p in own]),
            np.array([1 / p.bandwidth_bytes_per_s for p in own]),
            0.0,
        )
        np.testing.assert_allclose(lines.predict(table), [s.seconds for s in samples], rtol=1e-9)


def test_no_and_impossible_samples_are_refused() -> None:
    with pytest.raises(InputError, match="no measurement"):
        calibrate(START, [])
    with pytest.raises(InputError, match="2 levels"):
        calibrate(START, [Sample(Collective.ALL_REDUCE, Grouping(0, 3), 8, 1.0)])
    with pytest.raises(InputError, match=r"level gpu, all-reduce: 3 message sizes"):
        calibrate(START, made_samples(TRUTH, INSIDE)[:3])


@pytest.mark.parametrize(
    ("payload", "seconds", "spread"),
    [
        (0, 1.0, 0.0),
        (2**62, 1.0, 0.0),
        (8, 0.0, 0.0),
        (8, 1e7, 0.0),
        (8, math.nan, 0.0),
        (8, 1.0, -1.0),
        (8, 1.0, math.nan),
    ],
)
def test_impossible_numbers_are_refused(payload: int, seconds: float, spread: float) -> None:
    with pytest.raises(InputError):
        Sample(Collective.ALL_REDUCE, ALL, payload, seconds, spread)


def test_the_file_reads_back_and_says_where_it_is_from() -> None:
    found = calibrate(START, EVERY, sources=("nccl-tests a.txt: all-reduce",))
    text = calibrated_yaml(found, "2026-01-31")
    assert parse_topology(text, "made") == found.topology
    head = [line for line in text.splitlines() if line.startswith("#")]
    assert head[0] == "# Fitted by p2smt calibrate on 2026-01-31, from"
    assert head[1] == "#   nccl-tests a.txt: all-reduce"
    assert any("level gpu, all-reduce by the link's pieces: median" in line for line in head)


@settings(max_examples=examples_of(25))
@given(st.text(min_size=1, max_size=40), st.text(max_size=200), st.lists(st.text(max_size=20)))
def test_any_text_survives_the_file(name: str, text: str, sources: list[str]) -> None:
    made = replace(TRUTH, name=name, description=text, sources=tuple(sources))
    written = dump_yaml(dump_topology(made))
    assert parse_topology(written, "made") == made
    calibration = Calibration(made, (), tuple(sources))
    assert parse_topology(calibrated_yaml(calibration, "today"), "made") == made


def test_presets_survive_the_file() -> None:
    for preset in ("aws-p5", "tpu-v5p", "mi300x"):
        topology = load_topology(preset)
        assert parse_topology(dump_yaml(dump_topology(topology)), "made") == topology
