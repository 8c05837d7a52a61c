"""Certificates made to deceive: none proves more than is true, and none breaks the check."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import p2smt
from p2smt.errors import InputError
from p2smt.fabric.fabric_file import load_fabric
from p2smt.result import SearchLimits
from p2smt.solvers.ask import ask_prices
from p2smt.synthesis.bounds import bounded, flow_problem, groups_of
from p2smt.synthesis.certificate.certificate import ScheduleCertificate
from p2smt.synthesis.certificate.check import CertificateReport, check_certificate
from tests.strategies.draws import Draws, draws
from tests.synthesis.capacity_maps import maps_of

Data = dict[str, Any]
SWAP = {"ranks": [1, 0], "edges": [1, 0]}


def two(**changed: Any) -> Data:
    """Two ranks with an edge each way.  All-to-all takes 1 round a chunk, and so it is claimed.

    ``changed``: entries of the prices, of ``fabric``, or of the whole.
    """
    prices = {"pair": None, "capacities": [[0, 0, "1/2"]], "shares": [], "cuts": []}
    whole: Data = {
        "schema_version": 1,
        "kind": "schedule-certificate",
        "bound_kind": "flow",
        "collective": "all-to-all",
        "root": None,
        "steps": 1,
        "bound": "1",
        "fabric": {
            "name": "mesh:2",
            "ranks": 2,
            "capacities": ["1", "1"],
            "edges": [[0, 1, [0]], [1, 0, [1]]],
        },
        "generators": [SWAP],
        "prices": {**prices, "partitions": []},
    }
    for key in [key for key in changed if key in whole["prices"]]:
        whole["prices"][key] = changed.pop(key)
    whole["fabric"].update(changed.pop("fabric", {}))
    return {**whole, **changed}


def report(data: Data) -> CertificateReport:
    return check_certificate(ScheduleCertificate.of_text(json.dumps(data)))


def proved(data: Data) -> Fraction:
    """What a certificate proves; 0: nothing, or it cannot be read."""
    try:
        return report(data).proved or Fraction(0)
    except InputError:
        return Fraction(0)


def cut(price: str, *ranks: int) -> Data:
    return {"ranks": list(ranks), "price": price}


def parts(price: str, *ranks: list[int]) -> Data:
    return {"parts": list(ranks), "price": price}


def test_the_honest_one_is_accepted() -> None:
    assert report(two()).valid
    assert report(two(cuts=[cut("1/4", 0), cut("1/4", 1)])).valid


def test_a_cut_named_twice_on_one_side_is_refused() -> None:
    cuts = [cut("1/4", 1), cut("1/4", 0), cut("1/4", 0)]
    found = report(two(cuts=cuts, bound="5/4"))
    assert found.faults == (
        "generator 1 takes edge 0 to one of another cost: it does not keep the crossings",
    )
    assert not report(two(cuts=[cut("1/2", 0)], bound="3/2")).valid


def test_a_cut_in_two_pieces_is_worth_no_more() -> None:
    pieces = [cut("1/8", 0), cut("1/8", 0), cut("1/8", 1), cut("1/8", 1)]
    assert proved(two(cuts=pieces)) == 1


def reduced(**changed: Any) -> Data:
    """An all-reduce of two ranks: 1 round a chunk."""
    shares = [[0, 1, 0, None, "1/2"]]
    capacities = [[0, None, "1/2"]]
    return two(
        **{
            "collective": "all-reduce",
            "steps": None,
            "capacities": capacities,
            "shares": shares,
            **changed,
        }
    )


@pytest.mark.parametrize(
    "whole",
    [
        [parts("1/2", [0], [1])] * 2,
        [parts("1/4", [0], [1]), parts("1/4", [1], [0]), parts("1/4", [1], [0])],
        [parts("1/2", [0], [1], [])],
        [parts("1/2", [0], [1], [0])],
        [parts("1/2", [0])],
        [parts("1/2", [0, 1])],
        [parts("1/2", [])],
    ],
)
def test_partitions_named_twice_or_badly_prove_no_more(whole: list[Data]) -> None:
    for shares in ([], [[0, 1, 0, None, "1/2"]], [[0, 1, 0, None, "1/4"]]):
        assert proved(reduced(partitions=whole, shares=shares)) <= 1
    assert proved(reduced(partitions=whole, bound_kind="gossip", shares=[], generators=[])) <= 1
    assert proved(two(partitions=whole)) == 0


def test_the_honest_all_reduce_is_accepted() -> None:
    assert report(reduced()).valid
    assert proved(reduced(shares=[], partitions=[parts("1/2", [0], [1])])) == 1


@pytest.mark.parametrize(
    "changed",
    [
        {"capacities": []},
        {"capacities": [[0, 0, "1"]]},
        {"capacities": [[0, 0, "1/2"], [0, 0, "1/2"]]},
        {"capacities": [[0, 0, "1/2"], [1, 0, "1/2"]]},
        {"capacities": [[0, None, "1/2"]]},
        {"capacities": [[0, 1, "1/2"]]},
        {"capacities": [[2, 0, "1/2"]]},
        {"capacities": [[-1, 0, "1/2"]]},
        {"capacities": [[0, 0, "-1/2"]]},
        {"capacities": [[0, 0, "3/2"]], "cuts": [cut("-1", 0), cut("-1", 1)]},
        {"capacities": [[0, 0, "1/2 "]]},
        {"capacities": [[0, 0, "\u0661/2"]]},
        {"capacities": [[0, 0, "1/2\n"]]},
        {"capacities": [[False, 0, "1/2"]]},
        {"cuts": [cut("1", 0), cut("1", 1)]},
        {"cuts": [cut("1/4", 0, 0), cut("1/4", 1)]},
        {"pair": [0, 1]},
        {"steps": None},
        {"steps": 2},
        {"root": 0},
        {"collective": "broadcast"},
        {"bound_kind": "degree"},
        {"bound_kind": "gossip"},
        {"bound_kind": "distance"},
        {"capacities": [[0, None, "1/2"]], "steps": None, "bound_kind": "cut"},
    ],
)
def test_prices_that_break_a_rule_prove_nothing(changed: Data) -> None:
    assert proved(two(**changed)) == 0


@pytest.mark.parametrize(
    "generator",
    [
        {"ranks": [1, 0], "edges": [0, 1]},
        {"ranks": [0, 1], "edges": [1, 0]},
        {"ranks": [0, 0], "edges": [0, 0]},
        {"ranks": [1], "edges": [1, 0]},
        {"ranks": [1, 0, 1], "edges": [1, 0]},
        {"ranks": [1, 0], "edges": [1]},
        {"ranks": [], "edges": []},
    ],
)
def test_a_generator_that_is_no_symmetry_proves_nothing(generator: Data) -> None:
    assert proved(two(generators=[generator])) == 0
    assert proved(two(generators=[SWAP, generator])) == 0


def test_generators_keep_bandwidths() -> None:
    """Of bandwidths 1 and 2 the truth is 1; the price of one is none of the other."""
    data = two(fabric={"capacities": ["1", "2"]})
    for price in ("1/3", "1/2", "1"):
        data["prices"]["capacities"] = [[0, 0, price]]
        assert proved(data) == 0
    data["generators"] = []
    for k, best in ((0, 1), (1, Fraction(1, 2))):
        data["prices"]["capacities"] = [[k, 0, str(1 / Fraction(data["fabric"]["capacities"][k]))]]
        assert proved(data) == best


def test_generators_keep_shared_capacities() -> None:
    """Two edges share a capacity with a third: to swap one of them for it is no symmetry."""
    edges = [[0, 1, [0]], [1, 0, [0]], [0, 1, [1]], [1, 0, [1, 2]]]
    data = two(fabric={"capacities": ["1", "1", "1"], "edges": edges}, bound="0")
    for images in ([1, 0, 3, 2], [3, 2, 1, 0], [2, 3, 0, 1]):
        ranks = [0, 1] if images[0] == 2 else [1, 0]
        data["generators"] = [{"ranks": ranks, "edges": images}]
        assert "bandwidth" in report(data).faults[0]


@pytest.mark.parametrize("collective", ["broadcast", "reduce", "scatter", "gather"])
def test_generators_keep_the_root(collective: str) -> None:
    for root in (0, 1):
        found = report(two(collective=collective, root=root))
        assert found.faults == ("generator 1 does not take what is asked for to itself",)
    assert proved(two(collective=collective, root=2)) == 0


def test_shares_are_for_what_is_asked_and_make_up_the_cost() -> None:
    honest = reduced()
    assert proved(honest) == 1
    for shares in (
        [],
        [[0, 1, 0, None, "1"]],
        [[0, 1, 0, None, "1/2"], [1, 0, 1, None, "1/2"]],
        [[0, 1, 0, None, "1/2"], [0, 1, 0, None, "1/2"]],
        [[0, 0, 0, None, "1/2"]],
        [[0, 1, 0, 0, "1/2"]],
        [[0, 1, 0, None, "1/2"], [1, 0, 0, None, "1/2"]],
    ):
        assert proved(reduced(shares=shares)) == 0
    assert proved(reduced(shares=[[1, 0, 0, None, "1/2"]])) == 0  # pays where it need not go


@pytest.mark.parametrize("key", ["steps", "root", "bound", "generators", "prices", "fabric"])
def test_every_key_is_there_once(key: str) -> None:
    data = two()
    text = json.dumps(data)
    twice = text[:-1] + f', "{key}": {json.dumps(data.pop(key))}}}'
    for bad in (json.dumps(data), twice):
        with pytest.raises(InputError):
            ScheduleCertificate.of_text(bad)


def test_a_nested_key_twice_is_refused() -> None:
    text = json.dumps(two())
    for old in ('"price": ', '"capacities": ', '"ranks": ', '"edges": '):
        bad = json.dumps(two(cuts=[cut("1/4", 0)])).replace(old, f"{old}0, {old}")
        with pytest.raises(InputError, match="has a key twice"):
            ScheduleCertificate.of_text(bad)
    assert ScheduleCertificate.of_text(text)


def test_no_ranks_or_one_prove_nothing() -> None:
    alone = two(fabric={"ranks": 1, "edges": []}, capacities=[[0, 0, "1"]], generators=[])
    assert report(alone).faults == (
        "the bound 1 is claimed, and 0 is proved",
        "nothing is proved: every schedule has that much",
    )
    alone["fabric"]["ranks"] = 0
    with pytest.raises(InputError, match="ranks: must be at least 1"):
        ScheduleCertificate.of_text(json.dumps(alone))


def test_what_cannot_be_reached_proves_nothing() -> None:
    edge = {"capacities": ["1"], "edges": [[0, 1, [0]]]}
    one_way = two(fabric=edge, capacities=[[0, 0, "1"]], generators=[])
    assert report(one_way).faults == ("rank 0 cannot be reached from rank 1 in time",)


def _huge() -> Iterator[Data]:
    long, small = "9" * 3999, "1/1" + "0" * 3990
    yield two(bound=long)
    yield two(capacities=[[0, 0, long]])
    yield two(capacities=[[0, 0, small]])
    yield two(cuts=[cut(small, 0), cut(f"1/{long[:3900]}", 1)])
    yield reduced(shares=[[0, 1, 0, None, long], [1, 0, 0, None, small]])
    odd = [[0, 0, "1/1" + "0" * 3989 + "1"], [1, 0, "1/1" + "0" * 3987 + "7"]]
    yield two(generators=[], capacities=odd)
    yield two(generators=[], fabric={"capacities": [long, small]})


@pytest.mark.parametrize("data", list(_huge()))
def test_huge_numbers_prove_nothing_and_break_nothing(data: Data) -> None:
    found = report(data)
    assert not found.valid
    assert all(len(fault) < 400 for fault in found.faults)


def test_a_long_bound_is_rounded_down() -> None:
    """The truth is what the slower direction takes: one round over its bandwidth."""
    rate = Fraction(10**1900 + 1, 10**1900)
    rates, prices = {"capacities": [str(rate), "1"]}, [[0, 0, str(1 / rate)]]
    found = report(two(generators=[], fabric=rates, capacities=prices, bound="1/2"))
    assert found.valid
    assert found.proved is not None
    assert Fraction(1) - Fraction(2, 10**12) < found.proved < 1 / rate


def test_values_are_held_to_the_rules_of_files() -> None:
    claim = ScheduleCertificate.of_text(json.dumps(two()))
    assert p2smt.verify(claim).valid
    prices = replace(claim.prices, capacities=((0, 0, Fraction(3, 2)), (1, 0, Fraction(-1, 2))))
    with pytest.raises(InputError, match="must be a text such as 7/24"):
        p2smt.verify(replace(claim, generators=(), prices=prices))


@settings(max_examples=60, deadline=None)
@given(draws())
def test_no_cuts_and_generators_prove_more_than_the_best(data: Draws) -> None:
    """Of all-to-all the flows that the linear program finds are schedules: it has the truth."""
    name, steps = data.draw(st.sampled_from([("mesh:2", 1), ("mesh:3", 1), ("ring:4", 2)]))
    fabric = load_fabric(name)
    groups = groups_of(bounded("all-to-all"), fabric.ranks, 0)
    best = ask_prices(flow_problem(fabric, groups, [], steps), SearchLimits()).value
    assert best is not None
    maps = [one for one in maps_of(fabric) if one.ranks != tuple(range(fabric.ranks))]
    chosen = data.draw(st.lists(st.sampled_from(maps), max_size=2))
    count, each = len(fabric.capacities), Fraction(1, len(fabric.capacities))
    first = data.draw(st.sets(st.integers(0, fabric.ranks - 1), min_size=1, max_size=2))
    images = sorted(_images(frozenset(first), [one.ranks for one in chosen]), key=sorted)
    again = data.draw(st.lists(st.sampled_from(images), max_size=3))
    price = str(each / data.draw(st.sampled_from([2, 4])))
    cuts = [cut(price, *ranks) for ranks in (*images, *again)]
    whole = two(cuts=cuts, bound="0", steps=steps)
    whole["fabric"] = {
        "name": name,
        "ranks": fabric.ranks,
        "capacities": ["1"] * count,
        "edges": [[e.source, e.target, list(e.loads)] for e in fabric.edges],
    }
    whole["generators"] = [{"ranks": m.ranks, "edges": m.edges} for m in chosen]
    firsts = _firsts(count, [one.edges for one in chosen])
    whole["prices"]["capacities"] = [[k, s, str(each)] for k in firsts for s in range(steps)]
    assert float(proved(whole)) <= best.value + 1e-9


def _images(ranks: frozenset[int], maps: list[tuple[int, ...]]) -> set[frozenset[int]]:
    """What maps of ranks and their products make of a set."""
    found, frontier = {ranks}, [ranks]
    while frontier:
        at = frontier.pop()
        new = {frozenset(one[rank] for rank in at) for one in maps} - found
        found |= new
        frontier += new
    return found


def _firsts(count: int, images: list[tuple[int, ...]]) -> list[int]:
    """The first capacity of every orbit, where capacity k is that of edge k."""
    return [
        k for k in range(count) if k == min(min(one) for one in _images(frozenset([k]), images))
    ]
