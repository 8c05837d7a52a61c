"""`p2smt.api.run.run` with the plan of a redistribution."""

from __future__ import annotations

import pytest

from p2smt.api.run import run
from p2smt.errors import InputError
from p2smt.runtime.payload import RunOptions
from tests.resharding.planning import array_type, best_plan


def test_a_plan_as_a_value() -> None:
    plan = best_plan(
        array_type("a=2,b=4", (8, 8), "S(a),R;P(b)"), array_type("a=2,b=4", (8, 8), "R,S(a)")
    )
    result = run(plan, RunOptions(backend="reference"))
    assert result is not None
    assert result.verified
    assert result.predicted_bytes == plan.peak_step_bytes
    assert sum(result.job.predicted_s) == pytest.approx(plan.objective_s)
    with pytest.raises(InputError, match="chunks: is not for a redistribution"):
        run(plan, RunOptions(backend="reference"), chunks=2)  # type: ignore[call-overload]
