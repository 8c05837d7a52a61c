"""Every legal step between the states of small frames, on eight Gloo ranks."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.runtime.processes import free_port


@pytest.mark.slow
@pytest.mark.cluster
@pytest.mark.parametrize(
    "most",
    [
        pytest.param(60, marks=pytest.mark.exhaustive),
        pytest.param(None, marks=pytest.mark.evidence),
    ],
)
def test_steps_are_right_on_every_rank(most: int | None) -> None:
    line = [sys.executable, "-m", "tests.runtime.arrays.every_step", str(free_port())]
    line += [] if most is None else [str(most)]
    done = subprocess.run(line, capture_output=True, text=True, timeout=1800, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    right = int(done.stdout.split()[0])
    assert right > (5000 if most is None else 4 * most)
