"""A `solve` is read in few files; :mod:`tests.search.solve.modules_of_solve` measures it."""

from __future__ import annotations

import subprocess
import sys

from tests.search.solve.modules_of_solve import ROOT

MOST_MODULES = 51


def test_one_solve_runs_functions_of_few_modules() -> None:
    """In a process of its own, which has cached nothing."""
    run = [sys.executable, "-m", "tests.search.solve.modules_of_solve"]
    found = subprocess.run(run, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    assert {"p2smt/search/joint.py", "encodings/program/cpsat.py"} <= set(found)
    assert "p2smt/search/crossings/least.py" not in found
    assert len(found) <= MOST_MODULES, found
