"""What a command loads: start-up is most of what a short command costs."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.cli.test_options import EVERY
from tests.imports import ROOT
from tests.interpreter import assert_silent

ELSEWHERE = ("pandas", "torch", "matplotlib", "scipy", "sympy", "jax", "distributed", "z3")
"""Libraries of other commands; pandas is one of OR-Tools', for methods that nothing here calls."""
OF_FILES = ("pydantic", "yaml", "p2smt.cluster.file", "p2smt.plans.file_model")
OF_FEW = (
    "p2smt.search.explain.explain",
    "p2smt.search.spaces.solve_space",
    "p2smt.search.sensitivity",
)
OTHERS = (
    *("p2smt.cli.schedules", "p2smt.cli.training", "p2smt.cli.topology_command"),
    "p2smt.runtime",
)
SOLVE = ("solve", "-t", "dgx-a100:2", "--axes", "dp=2,tp=8", "--reduce", "dp=1MiB")
TABLE = ("crossings", "--factors", "2,2", "--length", "2")
SCHEDULE = ("verify", "tests/record/files/shared/ring.xml")
OF_SCHEDULES = ("p2smt.api.files", "p2smt.calibration", "p2smt.interop.exports", "p2smt.transfer")
TRAINED = ("-m", "llama-3-8b", "-t", "dgx-h100:1", "--global-batch", "64", "--seq", "4096")
OF_TRAINING = ("p2smt.report.training.estimate_data", "p2smt.training.present.comparison")


@pytest.mark.parametrize(
    ("arguments", "unused"),
    [
        (TABLE, (*ELSEWHERE, *OF_FILES, *OTHERS)),
        (
            ("placements", "--levels", "2,2", "--axes", "4"),
            (*ELSEWHERE, *OF_FILES, *OTHERS, "rich.console", "p2smt.problems.schedule"),
        ),
        (SOLVE, (*ELSEWHERE, *OF_FEW, *OTHERS, "p2smt.plans.file_model")),
        (("solve", "--help"), (*ELSEWHERE, *OF_FILES, *OTHERS, "numpy", "ortools", "rich.table")),
        (SCHEDULE, (*ELSEWHERE, "p2smt.plans.file_model", *OF_SCHEDULES)),
        (("plan", *TRAINED), (*ELSEWHERE, *OF_TRAINING)),
        (("estimate", *TRAINED, "--strategy", "tp=8"), (*ELSEWHERE, *OF_TRAINING)),
    ],
    ids=["crossings", "placements", "solve", "help", "verify", "plan", "estimate"],
)
def test_a_command_loads_what_it_needs(arguments: tuple[str, ...], unused: tuple[str, ...]) -> None:
    code = (
        "import sys; from p2smt.cli import run; "
        f"assert run({list(arguments)}) == 0; "
        f"print([name for name in {unused} if name in sys.modules], file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "[]\n")


def test_parameters_are_texts_or_flags() -> None:
    """They are taken as given (``p2smt.cli.app``): another type would be a text."""
    for path, parameter in EVERY:
        assert parameter.type_descriptor.annotation in (str, list[str], bool), path


def test_pandas_is_there_once_it_is_used() -> None:
    """Series of variables are what OR-Tools has it for; who uses them finds them whole."""
    assert_silent(
        "import sys\n"
        "from p2smt.encodings.cpsat_library import load_cpsat\n"
        "load_cpsat()\n"
        "assert 'pandas' not in sys.modules\n"
        "from ortools.sat.python import cp_model\n"
        "model = cp_model.CpModel()\n"
        "x = model.new_int_var(2, 2, 'x')\n"
        "import pandas\n"
        "made = model.new_int_var_series('a', pandas.RangeIndex(3), 0, 5)\n"
        "assert type(made) is pandas.Series and len(made) == 3\n"
        "solver = cp_model.CpSolver()\n"
        "solver.solve(model)\n"
        "assert solver.value(x) == 2 and len(solver.values(made)) == 3\n"
    )


@pytest.mark.parametrize("first", ["pandas", "ortools.sat.python.cp_model"])
def test_what_is_loaded_already_stays(first: str) -> None:
    assert_silent(
        f"import sys, {first}\n"
        f"before = sys.modules[{first!r}], sys.modules['pandas']\n"
        "from p2smt.encodings.cpsat_library import load_cpsat\n"
        "load_cpsat()\n"
        f"assert before == (sys.modules[{first!r}], sys.modules['pandas'])\n"
    )
