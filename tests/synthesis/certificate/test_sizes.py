"""Certificates of payloads: every number in them counts."""

from __future__ import annotations

import json
import pathlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from p2smt.api.files import verify_sizes
from p2smt.errors import InputError
from p2smt.fabric.fabric_file import load_fabric
from p2smt.report.schedules.size_data import size_report_lines
from p2smt.synthesis.certificate.sizes import (
    SizeCertificate,
    TimeLine,
    check_sizes,
    corners_of,
    lower_envelope,
)
from tests.synthesis.sizes.made import gathered

Path = tuple[str | int, ...]
_LINES = st.lists(st.tuples(st.integers(0, 30), st.integers(1, 30)), min_size=1, max_size=8)


def lines(pairs: list[tuple[int, int]]) -> list[TimeLine]:
    return [TimeLine(n, Fraction(a), Fraction(b, 7)) for n, (a, b) in enumerate(pairs)]


@given(_LINES, _LINES, st.integers(1, 50), st.integers(0, 50), st.lists(st.integers(0, 100)))
def test_envelopes_are_least_and_their_ratio_is_largest_at_corners(
    above: list[tuple[int, int]],
    below: list[tuple[int, int]],
    low: int,
    more: int,
    parts: list[int],
) -> None:
    """At every payload the piece's line is the least; no ratio is above that of some corner."""
    ends = Fraction(low), Fraction(low + more)
    one, other = (lower_envelope(lines(pairs), *ends) for pairs in (above, below))
    most = max(corner.ratio for corner in corners_of(one, other))
    for part in (0, 100, *parts):
        payload = ends[0] + more * Fraction(part, 100)
        values = []
        for pieces, pairs in ((one, above), (other, below)):
            held = [
                piece.line.at(payload) for piece in pieces if piece.low <= payload <= piece.high
            ]
            values.append(min(line.at(payload) for line in lines(pairs)))
            assert set(held) == {values[-1]}
        assert values[0] / values[1] <= most
    assert one[0].low == ends[0]
    assert one[-1].high == ends[1]


@pytest.mark.parametrize("most_steps", [2, 6])
def test_the_honest_one_is_accepted_as_written(most_steps: int) -> None:
    claim = gathered(most_steps).certificate
    assert claim is not None
    read = SizeCertificate.of_text(claim.text())
    assert read == claim
    assert check_sizes(read).valid


def test_steps_beyond_the_last_bound_cost_one_more() -> None:
    """With bounds for two steps and for any number: three or more take three latencies."""
    claim = gathered(2).certificate
    assert claim is not None
    two, more = (one.certificate.bound for one in claim.bounds)
    for payload in (Fraction(claim.low), Fraction(2**20), Fraction(claim.high)):
        per_rate = claim.beta_s * payload
        times = 2 * claim.alpha_s + per_rate * two, 3 * claim.alpha_s + per_rate * more
        assert claim.corner_at(payload).bound_s == min(times)
    assert claim.corner_at(Fraction(claim.high)).bound_s == times[1]


def test_the_seconds_of_a_byte_are_those_of_the_fabric(tmp_path: pathlib.Path) -> None:
    claim, path = gathered(2).certificate, tmp_path / "sizes.json"
    assert claim is not None
    other = replace(claim, beta_s=2 * claim.beta_s)
    path.write_text(other.proving(corners_of(other.times(), other.least_times())).text())
    assert verify_sizes(path).valid
    words = "beta_s is not what the unit of the fabric makes of a byte"
    assert verify_sizes(path, load_fabric("dgx1")).faults == (words,)


def numbers(data: Any, at: Path = ()) -> Iterator[Path]:
    """Where its fractions stand."""
    if isinstance(data, dict | list):
        inner = data.items() if isinstance(data, dict) else enumerate(data)
        for key, value in inner:
            yield from numbers(value, (*at, key))
    elif isinstance(data, str) and data[:1].isdigit():
        yield at


def test_one_changed_fraction_is_refused() -> None:
    """Each that the file has, a little larger: bounds, prices, capacities, times and ratio."""
    claim = gathered(2).certificate
    assert claim is not None
    places = list(numbers(claim.data()))
    assert {place[0] for place in places} == {
        *("alpha_s", "beta_s", "least_steps", "bounds", "corners", "ratio")
    }
    for place in places:
        data = claim.data()
        inner: Any = data
        for key in place[:-1]:
            inner = inner[key]
        inner[place[-1]] = str(Fraction(inner[place[-1]]) * Fraction(1001, 1000))
        assert not check_sizes(SizeCertificate.of_text(json.dumps(data))).valid, place


def changed(change: Callable[[dict[str, Any]], object]) -> dict[str, Any]:
    claim = gathered(6).certificate
    assert claim is not None
    data: dict[str, Any] = json.loads(claim.text())
    change(data)
    return data


def put(data: dict[str, Any], bound: int, certificate: object) -> None:
    data["bounds"][bound]["certificate"] = certificate


def renamed(data: dict[str, Any]) -> object:
    return data["bounds"][1]["certificate"]["fabric"] | {"name": "other"}


def alter(data: dict[str, Any], **changes: object) -> None:
    put(data, 1, data["bounds"][1]["certificate"] | changes)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda d: d["schedules"].append([2, 2, 2]), "it is below the bounds"),
        (lambda d: d["schedules"].append([1, 9, 1]), "it is below the bounds"),
        (lambda d: d["schedules"].pop(), "the corners are not those"),
        (lambda d: d["bounds"].pop(0), "bound 1 must be for 2 steps"),
        (lambda d: d["bounds"].pop(), "must be for any number of steps"),
        (lambda d: d["bounds"][0].update(certificate=d["least_steps"]), "is one on steps"),
        (lambda d: d.update(least_steps=d["bounds"][-1]["certificate"]), "no bound by distance"),
        (lambda d: d.update(to_bytes=2**31), "the corners are not those"),
        (lambda d: d["bounds"][0]["certificate"].update(bound="1"), "and more is proved"),
        (lambda d: d["bounds"][0]["certificate"].update(bound="2"), "is claimed, and 3/2 is"),
        (lambda d: put(d, 1, d["bounds"][0]["certificate"]), "bound 2 is proved for 2 steps"),
        (lambda d: put(d, -1, d["bounds"][0]["certificate"]), "bound 3 is proved for 2 steps"),
        (lambda d: alter(d, collective="reduce-scatter"), "bound 2 is about another question"),
        (lambda d: alter(d, collective="broadcast", root=0), "bound 2 is about another question"),
        (lambda d: alter(d, fabric=renamed(d)), "bound 2 is about another question"),
        (lambda d: d["corners"].pop(), "the corners are not those"),
        (lambda d: d.update(ratio="2"), "the ratio is not the largest"),
    ],
)
def test_what_is_false_is_said(change: Callable[[dict[str, Any]], object], words: str) -> None:
    report = check_sizes(SizeCertificate.of_text(json.dumps(changed(change))))
    assert not report.valid
    assert words in report.faults[0]


def test_a_ratio_of_any_length_is_shown() -> None:
    data = changed(lambda d: d.update(ratio="9" * 400))
    report = check_sizes(SizeCertificate.of_text(json.dumps(data)))
    *_, verdict = size_report_lines(report)
    assert verdict.endswith("at most 10^400 times the least time")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda d: d.update(kind="plan"), "kind"),
        (lambda d: d.update(schema_version=2), "schema_version"),
        (lambda d: d.update(beta_s="0"), "beta_s above 0"),
        (lambda d: d.update(alpha_s="9" * 400), "must be at most 1000000000 seconds"),
        (lambda d: d.update(beta_s="9" * 400), "must be at most 1000000000 seconds"),
        (lambda d: d.update(schedules=[]), "needs a schedule"),
        (lambda d: d.update(bounds=[]), "a bound"),
        (lambda d: d.update(schedules=[[3, 2, 1]]), "a round a step"),
        (lambda d: d.update(from_bytes=0), "must be 1 or more"),
        (lambda d: d.update(from_bytes=2**40), "at most to_bytes"),
        (lambda d: d.update(alpha_s=1), "must be a text such as 7/24"),
        (lambda d: d.update(more=1), "and no other"),
    ],
)
def test_what_is_no_certificate_is_refused(
    change: Callable[[dict[str, Any]], object], words: str
) -> None:
    with pytest.raises(InputError, match=words):
        SizeCertificate.of_text(json.dumps(changed(change)))
