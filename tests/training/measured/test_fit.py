"""Fits of one constant: known constants are found again, and a group judges itself by others."""

from __future__ import annotations

from dataclasses import replace

import pytest

from p2smt.errors import InputError
from p2smt.training.efficiency import Efficiency
from p2smt.training.measured.efficiency_fit import STEP, errors_of, fit, fits, mean_error
from p2smt.training.measured.measured_runs import MeasuredRun, parse_runs
from p2smt.training.measured.prediction_errors import error_of_other_models
from tests.training.measured.csv_rows import text_of


def predicted_s(run: MeasuredRun, efficiency: Efficiency) -> float:
    """A model of one term that computes and one that does not."""
    return run.training.model.layers * (1 / efficiency.fraction + 0.5)


def runs_of(*parts: tuple[str, int, float]) -> tuple[MeasuredRun, ...]:
    """Runs of (group, layers, fraction at which the model meets them)."""
    rows = [
        {"group": group, "layers": str(layers), "step_s": str(layers * (1 / part + 0.5))}
        for group, layers, part in parts
    ]
    return parse_runs(text_of(*rows), "runs.csv").runs


def test_a_constant_is_found_again() -> None:
    runs = runs_of(("k22-a", 4, 0.625), ("k22-b", 8, 0.625), ("k22-c", 2, 0.625))
    found = fit(runs, "a100", predicted_s)
    assert found.efficiency.fraction == pytest.approx(0.625, abs=STEP)
    assert found.efficiency.name == "megatron-a100"
    assert found.efficiency.runs == 3
    assert found.efficiency.error < 0.002
    assert found.groups == ("k22-a", "k22-b", "k22-c")


def test_a_group_is_judged_by_the_others() -> None:
    parts = [("k22-a", 4, 0.4), ("k22-b", 4, 0.8), ("k22-b", 5, 0.8)]
    found = fit(runs_of(*parts), "a100", predicted_s)
    fractions = [round(one.left_out_fraction, 3) for one in found.runs]
    assert fractions == pytest.approx([0.8, 0.4, 0.4], abs=STEP)
    assert found.efficiency.fraction == pytest.approx(0.8, abs=STEP)  # most runs say so
    short, long = (1 / 0.8 + 0.5), (1 / 0.4 + 0.5)
    expected = [short / long - 1, long / short - 1, long / short - 1]
    assert found.errors == pytest.approx(expected, abs=0.01)
    assert found.efficiency.error == pytest.approx(mean_error(found.errors))


def test_the_fit_has_the_least_mean_error() -> None:
    runs = runs_of(("k22-a", 4, 0.5), ("k22-b", 6, 0.55), ("k22-c", 7, 0.7), ("k22-c", 3, 0.6))
    efficiency = fit(runs, "a100", predicted_s).efficiency

    def error(fraction: float) -> float:
        other = Efficiency("x", "a100", efficiency.framework, fraction, 0, 0, 0)
        return mean_error(errors_of(runs, other, predicted_s))

    least = min(error(step / 1000) for step in range(300, 900))
    assert error(efficiency.fraction) == pytest.approx(least, abs=5e-4)


def test_frameworks_and_devices_are_apart() -> None:
    rows = [
        {"group": group, "hardware": hardware}
        for hardware in ("a100-80", "a100-40", "h100")
        for group in ("k22-a", "mpt-a", "mpt-b")
    ]
    found = fits(parse_runs(text_of(*rows), "runs.csv").runs, predicted_s)
    assert [one.efficiency.name for one in found] == ["fsdp-a100", "fsdp-h100"]
    assert [one.efficiency.runs for one in found] == [4, 2]


def test_of_one_group_each_run_is_judged_by_the_others() -> None:
    parts = [("k22-a", 4, 0.5), ("k22-a", 5, 0.8), ("k22-a", 6, 0.8)]
    found = fit(runs_of(*parts), "a100", predicted_s)
    assert found.runs[0].left_out_fraction == pytest.approx(0.8, abs=STEP)
    assert found.efficiency.fraction == pytest.approx(0.8, abs=STEP)  # most runs say so
    assert found.errors[0] == pytest.approx((1 / 0.8 + 0.5) / (1 / 0.5 + 0.5) - 1, abs=0.01)
    assert found.efficiency.error == pytest.approx(
        max(mean_error(found.errors), error_of_other_models())
    )
    assert "one group" in found.cannot_tell
    (alone,) = fits(runs_of(*parts), predicted_s)
    assert alone == found


def test_of_one_run_nothing_is_left_out() -> None:
    found = fit(runs_of(("k22-a", 4, 0.5)), "a100", predicted_s)
    assert found.efficiency.fraction == pytest.approx(0.5, abs=STEP)
    assert found.errors == [found.efficiency.error] == [error_of_other_models()]
    assert "one run" in found.cannot_tell


def test_no_run_is_not_enough() -> None:
    with pytest.raises(InputError, match="no run that counts"):
        fits((), predicted_s)


def test_unknown_hardware_is_refused() -> None:
    (run,) = parse_runs(text_of({}), "runs.csv").runs
    runs = [replace(run, hardware="h10")]
    with pytest.raises(InputError, match="did you mean 'h100'"):
        fits(runs, predicted_s)
