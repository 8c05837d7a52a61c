"""A plan with every kind of restriction."""

from __future__ import annotations

import pytest

from tests.cli.tools import cli
from tests.plans.tampering import RESTRICTED, Plan


@pytest.fixture(scope="session")
def restricted(tiny: str) -> Plan:
    data = cli("solve", "-t", tiny, *RESTRICTED, "--json").json()
    assert data["status"] == "optimal"
    assert isinstance(data["plan"], dict)
    return data["plan"]
