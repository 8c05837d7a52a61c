"""docs/api.md: its pieces run in order, print what is shown, and are typed."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

import pytest

import p2smt
from p2smt.cluster.library import registry
from p2smt.cluster.library.model import Added
from tests.calibration.fixtures import INSIDE, TRUTH, made_samples, printed
from tests.interpreter import python
from tests.pages import complaints

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
PIECES = re.findall(r"```python\n(.*?)```\n\n```text\n(.*?)```", PAGE, re.DOTALL)

# Types of what others return, and functions that need what a test has not: they are named in
# signatures and in the text.
UNSHOWN = {
    *("measure", "find_repair", "verify_family", "preset_names", "Request"),
    *("Measurements", "Calibration", "Alternative", "Solution", "Program", "Schedule"),
    *("Report", "ParametricReport", "ProgramList", "Verdict", "Status", "Solver"),
    *("AxisRule", "FixedEntry", "ParallelismAxis", "Topology", "Level", "Link", "LinkKind"),
    *(
        "Piece",
        "Collective",
        "RequestKind",
        "Dispatch",
        "EncodingBug",
        "ExecutionError",
        "BackendError",
    ),
    "PlannedOnHosts",
    # docs/launchers/jobs.md
    "OrderedHosts",
    *("Exported", "PlanExport", "RunResult", "ScheduleResult", "Runnable"),
    *("TooLarge", "reduce_scatter", "all_gather", "all_to_all", "dispatch"),
    *("ArrayType", "Layout", "Mesh", "RedistributionPlan"),
    # docs/redistribution-training.md and docs/redistribution-jax.md run these
    *("torch_function", "TensorFunction", "backward_plan", "read_redistribution"),
    *("shard_map_text", "LeastSet"),
    # docs/bounds.md
    *("ScheduleCertificate", "CertificateReport", "distance_bound"),
    # docs/synthesis.md
    *("ScheduleFrontier", "PieceSchedule"),
    # of training runs
    *("Device", "Efficiency", "Framework", "Planned", "PlanAnswer", "Prediction", "Prices"),
    *("RunEstimate", "Strategy", "TrainingPlan", "Transformer"),
}


def test_the_pieces_print_what_is_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(registry, "ADDED", Added({}, {}))
    sizes = tuple(2**i for i in range(12, 33, 2))
    Path("run.txt").write_text(printed(made_samples(TRUTH, INSIDE, sizes=sizes), 8, 1))
    assert len(PIECES) == PAGE.count("```python")
    names: dict[str, object] = {}
    for code, shown in PIECES:
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            exec(compile(code, "api.md", "exec"), names)
        assert out.getvalue() == shown


@pytest.mark.exhaustive
def test_the_pieces_are_typed(tmp_path: Path) -> None:
    assert not complaints((code for code, _ in PIECES), tmp_path)


def test_every_public_name_is_shown_or_is_known_not_to_be() -> None:
    shown = {name for name in p2smt.__all__ if f"p2smt.{name}" in PAGE}
    assert set(p2smt.__all__) - shown == UNSHOWN


def test_importing_loads_nothing_heavy() -> None:
    code = "import p2smt, sys; print([m for m in sys.argv[1:] if m in sys.modules])"
    heavy = ("pydantic", "numpy", "torch", "z3", "ortools", "scipy", "rich", "typer", "yaml")
    assert python("-c", code, *heavy).strip() == "[]"
