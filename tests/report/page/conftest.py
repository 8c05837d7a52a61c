"""A folder with a file of every kind, and a browser; both are made once."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.report.page.browser import Browser, chromium
from tests.report.page.inputs import write_inputs


@pytest.fixture(scope="session")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder."""
    folder, before = tmp_path_factory.mktemp("pages"), Path.cwd()
    listed = os.environ.pop("SLURM_JOB_NODELIST", None)
    try:
        os.chdir(folder)
        write_inputs(folder)
    finally:
        os.chdir(before)
        if listed is not None:
            os.environ["SLURM_JOB_NODELIST"] = listed
    return folder


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """The browser."""
    with chromium() as found:
        yield found
