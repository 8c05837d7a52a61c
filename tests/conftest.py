"""Settings of all tests: Hypothesis has no deadline, and finds the same examples in CI."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import settings

BENCH = Path(__file__).parent / "bench"

settings.register_profile("here", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True, print_blob=True)
settings.load_profile("ci" if os.environ.get("CI") else "here")


@pytest.hookimpl(tryfirst=True)  # before -m selects
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Benchmarks are slow tests."""
    for item in items:
        if item.path.is_relative_to(BENCH):
            item.add_marker(pytest.mark.slow)
