"""The check of certificates: what was changed is refused, and prices never prove too much."""

from __future__ import annotations

import json
from collections.abc import Iterator
from fractions import Fraction
from functools import cache
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from p2smt.errors import InputError
from p2smt.fabric.fabric_file import load_fabric
from p2smt.problems.flow import FlowPrices, FlowWay, flow_orbits
from p2smt.report.outputs.certificate import ScheduleCertificateModel
from p2smt.result import SearchLimits
from p2smt.solvers.ask import ask_prices
from p2smt.synthesis.bounds import (
    ExactPrices,
    distance_bound,
    exact_prices,
    flow_problem,
    groups_of,
    rate_bound,
)
from p2smt.synthesis.certificate.certificate import BoundKind, ScheduleCertificate
from p2smt.synthesis.certificate.check import check_certificate, claim_words
from tests.refusals import refusal
from tests.strategies.draws import Draws, draws, shuffles
from tests.synthesis.capacity_maps import maps_of
from tests.synthesis.test_bounds import two_pairs

Data = dict[str, Any]
Ways = tuple[FlowWay, ...]


@cache
def written(name: str) -> str:
    """The text of a certificate by the kind of its bound."""
    dgx1 = load_fabric("dgx1")
    maps = tuple(one for one in maps_of(dgx1) if one.ranks != tuple(range(8)))[:2]
    made = {
        "distance": lambda: distance_bound(dgx1, "all-gather"),
        "degree": lambda: rate_bound(dgx1, "all-gather", None, symmetries=maps),
        "cut": lambda: rate_bound(two_pairs(), "all-gather", None),
        "gossip": lambda: rate_bound(dgx1, "all-reduce", None, symmetries=maps),
        "flow": lambda: rate_bound(dgx1, "all-reduce", 3, symmetries=maps),
        "gather": lambda: rate_bound(dgx1, "all-gather", 2, symmetries=maps),
        "pairs": lambda: rate_bound(dgx1, "all-to-all", 2, symmetries=maps),
        "plain": lambda: rate_bound(load_fabric("ring:4"), "broadcast", 3),
    }
    return made[name]().certificate.text()


KINDS = ("distance", "degree", "cut", "gossip", "flow", "gather", "pairs", "plain")


def refused(data: Data) -> bool:
    """Whether a certificate is unreadable, or proves no such bound."""
    try:
        return not check_certificate(ScheduleCertificate.of_text(json.dumps(data))).valid
    except InputError:
        return True


def priced(data: Data) -> Iterator[tuple[Any, int | str]]:
    """Where each price of a certificate stands."""
    prices = data["prices"]
    for row in (*prices["capacities"], *prices["shares"]):
        yield row, len(row) - 1
    for row in (*prices["cuts"], *prices["partitions"]):
        yield row, "price"


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_written_is_accepted(kind: str) -> None:
    data = json.loads(written(kind))
    assert not refused(data)
    assert ScheduleCertificateModel.model_validate_json(written(kind))
    assert data["bound"] in claim_words(ScheduleCertificate.of_text(written(kind)))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("factor", [Fraction(0), Fraction(99, 100), Fraction(101, 100)])
def test_a_changed_price_is_refused(kind: str, factor: Fraction) -> None:
    data = json.loads(written(kind))
    places = list(priced(data))
    assert places or kind == "distance"
    for row, key in places:
        before = row[key]
        row[key] = str(Fraction(before) * factor)
        assert refused(data), (row, before)
        row[key] = before


@pytest.mark.parametrize("kind", KINDS)
def test_a_price_that_is_left_out_or_added_is_refused(kind: str) -> None:
    for name in ("capacities", "shares", "cuts", "partitions"):
        whole = json.loads(written(kind))
        rows = whole["prices"][name]
        for n in range(len(rows)):
            row = rows.pop(n)
            assert refused(whole), (name, row)
            rows.insert(n, row)
        if rows:
            rows.append(rows[0])
            assert refused(whole)


@pytest.mark.parametrize("kind", KINDS)
def test_a_changed_capacity_is_refused_where_it_has_a_price(kind: str) -> None:
    data = json.loads(written(kind))
    maps, paid = data["generators"], {row[0] for row in data["prices"]["capacities"]}
    fabric = data["fabric"]
    for k, before in enumerate(fabric["capacities"]):
        on = [e for e, edge in enumerate(fabric["edges"]) if k in edge[2]]
        moved = any(one["edges"][e] != e for one in maps for e in on)
        if moved or k in paid:
            for rate in (Fraction(before) * 2, Fraction(before) / 2):
                fabric["capacities"][k] = str(rate)
                assert refused(data), k
        fabric["capacities"][k] = before


@pytest.mark.parametrize("kind", KINDS)
def test_other_steps_are_refused(kind: str) -> None:
    data = json.loads(written(kind))
    steps = data["steps"]
    others = {1, 2, 3, 4, None} - {steps}
    for other in others:
        assert refused({**data, "steps": other}), other


@pytest.mark.parametrize("kind", KINDS)
def test_a_higher_bound_is_refused_and_a_lower_one_proved(kind: str) -> None:
    data = json.loads(written(kind))
    bound = Fraction(data["bound"])
    assert refused({**data, "bound": str(bound + Fraction(1, 10**9))})
    assert not refused({**data, "bound": str(bound - Fraction(1, 10**9))})


@pytest.mark.parametrize("kind", ["flow", "gather", "pairs"])
def test_a_changed_generator_is_refused(kind: str) -> None:
    data = json.loads(written(kind))
    assert len(data["generators"]) == 2
    for one in data["generators"]:
        for images in (one["ranks"], one["edges"]):
            for n in range(1, len(images)):
                images[0], images[n] = images[n], images[0]
                assert refused(data)
                images[0], images[n] = images[n], images[0]
            images[0], before = images[1], images[0]
            assert refused(data)
            images[0] = before


def test_without_its_generators_a_proof_is_none() -> None:
    data = json.loads(written("gather"))
    for n in range(2):
        assert refused({**data, "generators": data["generators"][n : n + 1]})


@pytest.mark.parametrize("kind", KINDS)
def test_a_free_edge_more_is_refused(kind: str) -> None:
    """It can carry what the proof knows nothing of."""
    data = json.loads(written(kind))
    fabric, edges = data["fabric"], len(data["fabric"]["edges"])
    there = {tuple(edge[:2]) for edge in fabric["edges"]}
    pairs = [pair for pair in permutations(range(fabric["ranks"]), 2) if pair not in there]
    for cut in data["prices"]["cuts"]:
        pairs = [(a, b) for a, b in pairs if a not in cut["ranks"] and b in cut["ranks"]]
    source, target = data["prices"]["pair"] or pairs[0]
    fabric["edges"].append([source, target, [len(fabric["capacities"])]])
    fabric["capacities"].append("1")
    for one in data["generators"]:
        one["edges"].append(edges)
    assert refused(data)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"bound": 0.5}, "0.5: is no whole number; fractions are written as texts, such as 7/24"),
        ({"bound": "1/0"}, "bound '1/0': must be a text such as 7/24"),
        ({"bound": "-1/2"}, "must be a text such as 7/24"),
        ({"bound": "0.5"}, "must be a text such as 7/24"),
        ({"bound": 1}, "must be a text such as 7/24"),
        ({"steps": 0}, "steps: must be at least 1, or null"),
        ({"steps": True}, "steps True: must be a whole number below 4096"),
        ({"root": 0}, "root: must be null: all-reduce has none"),
        ({"collective": "broadcast"}, "root: must be a rank"),
        ({"collective": "sum"}, "collective: must be one of all-gather, "),
        ({"bound_kind": "guess"}, "bound_kind: must be one of distance, "),
        ({"schema_version": 2}, "schema_version: must be 1"),
        ({"kind": "plan"}, "kind: must be schedule-certificate"),
        ({"colour": 1}, "must have the keys schema_version, "),
        ({"generators": [{"ranks": [9] * 8, "edges": []}]}, "rank 9: must be a whole number"),
    ],
)
def test_unreadable_certificates_are_refused_in_a_line(change: Data, message: str) -> None:
    text = json.dumps({**json.loads(written("flow")), **change})
    assert message in refusal(ScheduleCertificate.of_text, text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "is not JSON"),
        ('{"a": 1, "a": 2}', "has a key twice"),
        ("[" * 100_000, "is nested too deeply"),
        ("[]", "must have the keys"),
        ('{"a": NaN}', "is no whole number"),
    ],
)
def test_texts_that_are_no_data_are_refused(text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        ScheduleCertificate.of_text(text)


def test_a_fabric_without_ways_or_with_bad_edges_is_refused() -> None:
    data = json.loads(written("plain"))
    for edge in ([0, 0, [0]], [0, 9, [0]], [0, 1, []], [0, 1, [0, 0]], [0, 1, [99]], [0, 1]):
        edges = [*data["fabric"]["edges"], edge]
        with pytest.raises(InputError):
            ScheduleCertificate.of_text(
                json.dumps({**data, "fabric": {**data["fabric"], "edges": edges}})
            )
    for rate in ("0", "-1", "1/0"):
        rates = [rate, *data["fabric"]["capacities"][1:]]
        assert refused({**data, "fabric": {**data["fabric"], "capacities": rates}})


def test_files_are_written_and_read(tmp_path: Path) -> None:
    claim = ScheduleCertificate.of_text(written("flow"))
    claim.save(tmp_path / "c.json")
    assert ScheduleCertificate.load(tmp_path / "c.json") == claim
    with pytest.raises(InputError, match="cannot be read"):
        ScheduleCertificate.load(tmp_path / "no.json")
    with pytest.raises(InputError, match="cannot be written"):
        claim.save(tmp_path / "no" / "c.json")


@settings(max_examples=20, deadline=None)
@given(draws())
def test_any_prices_prove_no_more_than_the_best(data: Draws) -> None:
    """Weak duality, and that every vector of floats becomes prices by the rules."""
    name, collective, steps = data.draw(
        st.sampled_from(
            [("ring:3", "all-reduce", 2), ("ring:4", "all-gather", 3), ("mesh:3", "all-to-all", 1)]
        )
    )
    fabric = load_fabric(name)
    claim = rate_bound(fabric, collective, steps).certificate
    groups = groups_of(claim.collective, fabric.ranks, 0)
    problem = flow_problem(fabric, groups, [], steps)
    orbits = flow_orbits(problem)
    capacities = [(k, s) for k in range(len(fabric.capacities)) for s in range(steps)]
    shares = [
        (w, e, s)
        for w, way in enumerate(orbits.ways)
        if way.group >= 0
        for e in range(len(fabric.edges))
        for s in range(steps)
    ]
    some = data.draw(shuffles())
    drawn = FlowPrices(
        0.0,
        tuple((at, some.choice([0.0, some.random()])) for at in capacities),
        tuple((at, some.choice([0.0, some.random()])) for at in shares),
        (),
    )
    exact = exact_prices(problem, orbits, drawn, 50)
    best = ask_prices(problem, SearchLimits()).value
    assert best is not None
    proved = _proved(claim, steps, exact, orbits.ways)
    assert 0 <= float(proved) <= best.value + 1e-9


def _proved(claim: ScheduleCertificate, steps: int, exact: ExactPrices, ways: Ways) -> Fraction:
    data = claim.data()
    data["bound_kind"], data["bound"], data["steps"] = "flow", "0", steps
    data["prices"] = {
        "pair": None,
        "capacities": [[k, s, str(p)] for (k, s), p in exact.capacities.items()],
        "shares": [
            [ways[w].source, ways[w].targets[0], e, s, str(p)]
            for (w, e, s), p in exact.shares.items()
        ],
        "cuts": [],
        "partitions": [],
    }
    report = check_certificate(ScheduleCertificate.of_text(json.dumps(data)))
    assert report.proved is not None, report.faults
    return report.proved


def test_the_kinds_are_all_tried() -> None:
    assert {json.loads(written(kind))["bound_kind"] for kind in KINDS} == set(BoundKind)
