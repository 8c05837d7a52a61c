"""Counts of bytes are compared exactly: a byte more in many is told."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.tools import cli
from tests.plans.tampering import FIRST, STEP, Change, Plan, changed, more, written

LARGE = ("--axes", "dp=2,tp=4", "--reduce", "tp=64GiB")

# What it is called: the change, and the beginning of its message.
CHANGED: dict[str, tuple[Change, str]] = {
    "peak": (more("peak_bytes", by=1), "peak_bytes says"),
    "less peak": (more("peak_bytes", by=-1), "peak_bytes says"),
    "peak of a request": (more(*FIRST, "peak_bytes", by=1), "request 1 peak_bytes says"),
    "payload": (more(*STEP, "payload_bytes", by=1), "request 1 step 1 payload_bytes says"),
    "part of a payload": (more(*STEP, "payload_bytes", by=0.1), "request 1 step 1 payload_bytes"),
    "load": (more(*STEP, "load_bytes", by=1), "request 1 step 1 load_bytes says"),
}


@pytest.fixture(scope="module")
def large(tiny: str) -> Plan:
    plan = cli("solve", "-t", tiny, *LARGE, "--json").json()["plan"]
    assert isinstance(plan, dict)
    return plan


@pytest.mark.parametrize("name", CHANGED)
def test_a_byte_is_told(large: Plan, tmp_path: Path, name: str) -> None:
    change, message = CHANGED[name]
    outcome = cli("verify", changed(large, change, tmp_path), "--json")
    assert outcome.code == 1
    assert any(one["message"].startswith(message) for one in outcome.json()["violations"])


def test_the_plan_itself_is_valid(large: Plan, tmp_path: Path) -> None:
    assert cli("verify", written(large, tmp_path)).code == 0
