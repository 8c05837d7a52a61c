"""`p2smt verify` of certificates of bounds on schedules."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

import p2smt
from p2smt.fabric.fabric import Fabric
from p2smt.fabric.fabric_file import load_fabric
from p2smt.synthesis.bounds import RateBound, distance_bound, rate_bound
from tests.cli.tools import cli
from tests.synthesis.capacity_maps import maps_of


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "cert.json"
    rate_bound(load_fabric("dgx1"), "all-reduce", 3).certificate.save(path)
    return path


def test_the_claim_is_said_in_words(file: Path) -> None:
    done = cli("verify", str(file), "--details")
    assert done.code == 0
    assert done.out.splitlines() == [
        "valid: all-reduce on dgx1 (8 ranks, 32 edges): every schedule of 3 steps has R/C of 1/2 "
        "or more, rounds a chunk in all, by flow",
        "it holds for every number of chunks and every schedule that does not mix chunks; switches "
        "that copy or add are outside",
        "checked: prices, bound",
        "not checked: that the fabric in the file is dgx1 (add --fabric)",
    ]


def test_a_distance_is_a_claim_about_steps(tmp_path: Path) -> None:
    path = tmp_path / "cert.json"
    distance_bound(load_fabric("torus:4x4"), "broadcast", 3).certificate.save(path)
    first = cli("verify", str(path), "--details").out.splitlines()[0]
    assert first == (
        "valid: broadcast with root 3 on torus:4x4 (16 ranks, 64 edges): every schedule has 4 "
        "steps or more, by distance"
    )


def test_a_fabric_is_held_against_the_one_that_is_named(file: Path) -> None:
    assert cli("verify", str(file), "--fabric", "dgx1").out.splitlines()[-1] == (
        "checked: prices, bound, the fabric is dgx1"
    )
    done = cli("verify", str(file), "--fabric", "cube:3", "--json")
    assert done.code == 1
    (fault,) = done.json()["violations"]
    assert fault == "the certificate is about another fabric than the one that is named"


def test_the_claim_is_about_the_fabric_that_was_named(file: Path) -> None:
    file.write_text(file.read_text().replace('"name": "dgx1"', '"name": "evil\\nvalid: all"'))
    lines = cli("verify", str(file), "--fabric", "dgx1", "--details").out.splitlines()
    assert lines[0].startswith("valid: all-reduce on dgx1 (8 ranks, 32 edges): ")
    assert lines[2:] == [
        "checked: prices, bound, the fabric is dgx1 (the file calls it 'evil\\nvalid: all')"
    ]
    lines = cli("verify", str(file), "--details").out.splitlines()
    assert len(lines) == 4
    assert lines[0].startswith("valid: all-reduce on evil\\nvalid: all (8 ranks, 32 edges): ")


@pytest.mark.parametrize(
    ("make", "checked"),
    [
        (lambda ring: distance_bound(ring, "all-gather"), "distance, bound"),
        (lambda ring: rate_bound(ring, "all-gather", None), "prices, bound"),
        (
            lambda ring: rate_bound(ring, "all-to-all", 2, symmetries=tuple(maps_of(ring))),
            "generators, prices, bound",
        ),
    ],
)
def test_what_is_not_there_was_not_checked(
    tmp_path: Path, make: Callable[[Fabric], RateBound], checked: str
) -> None:
    path = tmp_path / "cert.json"
    make(load_fabric("ring:4")).certificate.save(path)
    done = cli("verify", str(path), "--fabric", "ring:4")
    assert done.out.splitlines()[-1] == f"checked: {checked}, the fabric is ring:4"


@pytest.mark.parametrize("fabric", [(), ("--fabric", "dgx1")])
def test_a_broken_file_is_called_that(file: Path, fabric: tuple[str, ...]) -> None:
    deep = '{"a": ' * 60_000
    for text, message in (
        (file.read_text()[:500], "is not JSON (Expecting "),
        (deep, "is nested too deeply; give a plan, a certificate or a schedule"),
        ("", "is empty; name a plan, a certificate or a schedule"),
        ("[[[", "is neither a plan or certificate (JSON) nor a schedule ("),
    ):
        file.write_text(text)
        done = cli("verify", str(file), *fabric)
        assert (done.code, done.out, len(done.err.splitlines())) == (2, "", 1)
        assert message in done.err


def test_no_time_goes_with_a_bound(file: Path) -> None:
    for more in ((), ("-t", "dgx1-v100")):
        done = cli("cost", str(file), *more)
        assert (done.code, done.out) == (2, "")
        assert "is the certificate of a bound" in done.err
        assert "`p2smt verify FILE`" in done.err


def test_too_high_a_bound_is_refuted(file: Path) -> None:
    file.write_text(file.read_text().replace('"bound": "1/2"', '"bound": "7/12"'))
    done = cli("verify", str(file), "--json")
    data = done.json()
    assert (done.code, data["verdict"], data["proved"]) == (1, "invalid", "1/2")
    assert data["violations"] == ["the bound 7/12 is claimed, and 1/2 is proved"]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"bound": "1/2"', '"bound": 0.5', "fractions are written as texts"),
        ('"bound": "1/2"', '"bound": "1/0"', "must be a text such as 7/24"),
        ('"steps": 3', '"steps": -3', "must be a whole number below 4096"),
    ],
)
def test_an_unreadable_one_is_bad_input(file: Path, old: str, new: str, message: str) -> None:
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new))
    done = cli("verify", str(file))
    assert (done.code, done.out, len(done.err.splitlines())) == (2, "", 1)
    assert message in done.err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--prove",), "--prove"),
        (("--fix",), "takes no options of schedules"),
        (("--sample", "3"), "--sample"),
    ],
)
def test_options_of_others_are_refused(file: Path, words: tuple[str, ...], message: str) -> None:
    done = cli("verify", str(file), *words)
    assert done.code == 2
    assert message in done.err


def test_a_fabric_goes_with_certificates_alone(tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    path.write_text("{}")
    done = cli("verify", str(path), "--fabric", "dgx1")
    assert (done.code, "goes with the certificate of a bound" in done.err) == (2, True)


def test_the_function_checks_values_and_files(file: Path) -> None:
    claim = p2smt.ScheduleCertificate.load(file)
    assert p2smt.verify(claim) == p2smt.verify(file)
    assert p2smt.verify(claim).valid
    data = json.loads(claim.text())
    del data["root"]
    file.write_text(json.dumps(data))
    with pytest.raises(p2smt.InputError, match="must have the keys"):
        p2smt.verify(file)
