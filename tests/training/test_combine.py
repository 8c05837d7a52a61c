"""How seconds of calls become the time of an iteration: arrays, monotony, and what is hidden."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from p2smt.training.efficiency import Efficiency, Framework, TrainingRun
from p2smt.training.formulas.quantities import quantities, with_seconds
from p2smt.training.formulas.stages import StrategyColumns
from p2smt.training.pipeline import StrategyWork, axis_requests, combine, stage_times, work
from p2smt.training.strategy import Batch, Strategy
from p2smt.training.transformer import Transformer
from tests.strategies.draws import Draws, draws
from tests.strategies.trainings import efficiencies, training_runs
from tests.training.devices import SMALL_DEVICE

prices = st.sampled_from([0.0, 1e-5, 1e-3, 0.1])


def work_of(run: TrainingRun, efficiency: Efficiency, *strategies: Strategy) -> StrategyWork:
    columns = StrategyColumns.of(strategies or (run.strategy,))
    return work(run.model, run.batch, columns, SMALL_DEVICE, efficiency)


def names(done: StrategyWork) -> list[str]:
    return [one.column.name for one in done.requests]


@st.composite
def priced_runs(
    draw: st.DrawFn,
) -> tuple[TrainingRun, Efficiency, dict[str, float]]:
    run, efficiency = draw(training_runs()), draw(efficiencies())
    requests = axis_requests(run.model, run.batch, run.strategy, efficiency.framework)
    return run, efficiency, {one.name: draw(prices) for one in requests}


@given(priced_runs(), draws())
def test_no_price_makes_an_iteration_shorter(
    priced: tuple[TrainingRun, Efficiency, dict[str, float]], data: Draws
) -> None:
    run, efficiency, call_s = priced
    done = work_of(run, efficiency)
    dearer = {name: seconds + data.draw(prices) for name, seconds in call_s.items()}
    assert combine(done, dearer)[0] >= combine(done, call_s)[0] * (1 - 1e-12)


@given(priced_runs(), st.integers(2, 3))
def test_arrays_of_strategies_are_strategies_one_by_one(
    priced: tuple[TrainingRun, Efficiency, dict[str, float]], many: int
) -> None:
    """Those of one model and batch: with other ZeRO stages, and with their layers split evenly."""
    run, efficiency, call_s = priced
    strategies = [
        replace(run.strategy, zero=zero, split=run.strategy.split if zero else ())
        for zero in range(many)
    ]
    together = work_of(run, efficiency, *strategies)
    everything = dict.fromkeys(names(together), 1e-3) | call_s
    found = combine(together, everything)
    for row, strategy in enumerate(strategies):
        alone = work_of(run, efficiency, strategy)
        assert found[row] == pytest.approx(combine(alone, everything)[0])
        assert together.memory_bytes[row] == pytest.approx(alone.memory_bytes[0])
        taken = together.take(np.array([row]))
        assert combine(taken, everything)[0] == pytest.approx(found[row])
        assert taken.memory_bytes[0] == together.memory_bytes[row]


@given(priced_runs())
def test_arrays_of_prices_are_prices_one_by_one(
    priced: tuple[TrainingRun, Efficiency, dict[str, float]],
) -> None:
    run, efficiency, call_s = priced
    done, factors = work_of(run, efficiency), np.array([0.0, 0.5, 3.0])
    found = combine(done, {name: seconds * factors for name, seconds in call_s.items()})
    for at, factor in enumerate(factors):
        one = combine(done, {name: seconds * factor for name, seconds in call_s.items()})
        assert np.broadcast_to(found, (3,))[at] == pytest.approx(one[0])


@given(priced_runs())
def test_what_is_seen_and_what_is_hidden_make_the_whole(
    priced: tuple[TrainingRun, Efficiency, dict[str, float]],
) -> None:
    run, efficiency, call_s = priced
    times = stage_times(work_of(run, efficiency), call_s)
    for time in (*times.repeated, *times.once):
        total = time.request.column.calls * call_s[time.request.column.name]
        assert time.total_s == pytest.approx(total[:, : time.total_s.shape[1]])
        assert (time.visible_s >= -1e-15).all()
        assert (time.visible_s <= time.total_s + 1e-15).all()


@given(priced_runs())
def test_a_second_of_work_hides_one_of_communication(
    priced: tuple[TrainingRun, Efficiency, dict[str, float]],
) -> None:
    """Of all axes together, on each stage; in the backward pass its own and the last reduction."""
    run, efficiency, call_s = priced
    times = stage_times(work_of(run, efficiency), call_s)
    work_s = times.work.compute_s * (1 + 1e-9) + 1e-12
    hidden = sum((time.hidden_s for time in times.repeated), np.zeros(1))
    assert (hidden <= work_s).all()
    last = sum((time.hidden_s for time in times.once), np.zeros(1))
    assert ((hidden + last)[..., :1] <= work_s[:, :1]).all()


def test_axes_do_not_hide_under_the_same_work() -> None:
    """Slow products and attention are hidden in full by tp and cp: dp has what is left."""
    strategy = Strategy(tp=2, cp=2, dp=2, sequence_parallel=True, zero=2)
    done = work_of(replace(RUN, strategy=strategy), EVERYTHING)

    def hidden_s(*slow: str) -> float:
        prices = {name: float(name.startswith(slow)) for name in names(done)}
        times = stage_times(done, prices)
        return float(sum(time.hidden_s[0, 0] for time in times.repeated))

    own = hidden_s("tp", "cp")
    left = 1 - own / done.compute_s[0, 0]
    assert 0 < left < 1
    assert hidden_s("dp layer", "dp ends") == pytest.approx(done.backward_s[0, 0])
    everything = hidden_s("tp", "cp", "dp layer", "dp ends")
    assert everything == pytest.approx(own + left * done.backward_s[0, 0])


@given(priced_runs())
def test_nothing_overlaps_but_what_a_framework_overlaps(
    priced: tuple[TrainingRun, Efficiency, dict[str, float]],
) -> None:
    run, efficiency, call_s = priced
    framework = replace(
        efficiency.framework, tp_hidden=False, pp_hidden=0.0, dp_hidden=False, fetch_hidden=False
    )
    times = stage_times(work_of(run, replace(efficiency, framework=framework)), call_s)
    always = {"tp inputs again", "cp forward", "cp backward"}
    for time in (*times.repeated, *times.once):
        if time.request.column.name not in always:
            assert time.visible_s == pytest.approx(time.total_s)


RUN = TrainingRun(
    Transformer("small", 4, 16, 4, 4, 64, False, 64, 4), Batch(16, 8), Strategy(dp=4, zero=3)
)
EVERYTHING = Efficiency("all", "any", Framework("all", True, 0.5, True, True, 4), 1.0, 0.0, 1, 0.0)


def test_a_price_that_is_missing_is_an_error() -> None:
    """Not a call that takes no time."""
    with pytest.raises(KeyError, match="dp layer scatter"):
        combine(work_of(RUN, EVERYTHING), {})


def seen_of(run: TrainingRun, call_s: float) -> tuple[StrategyWork, float]:
    """Its work on one stage, and the seconds of communication seen in an iteration."""
    done = work_of(run, EVERYTHING)
    seconds = combine(done, dict.fromkeys(names(done), call_s))[0]
    idle = combine(done, dict.fromkeys(names(done), 0.0))[0]
    return done, seconds - idle


def test_first_gather_and_last_scatter_of_zero_3_hide_under_nothing() -> None:
    _, seen = seen_of(RUN, 1e-9)
    assert seen == pytest.approx(2e-9)


def test_fetches_of_zero_3_share_what_they_hide_under() -> None:
    """Of 4 micro-batches with 2 gathers and a scatter of 4 layers and of both ends."""
    done, seen = seen_of(RUN, 1.0)
    calls = 4 * (3 * 4 + 2 * 2)
    assert seen == pytest.approx(calls - 4 * done.compute_s[0, 0])


def test_gradients_of_the_first_layer_hide_under_nothing() -> None:
    run = replace(RUN, strategy=Strategy(dp=4, zero=0))
    _, seen = seen_of(run, 1e-9)
    assert seen == pytest.approx(1e-9 / 4)
    done, seen = seen_of(run, 1.0)
    assert seen == pytest.approx(1.0 - done.backward_s[0, 0])


def test_shards_of_gradients_cost_a_reduction_for_each_micro_batch() -> None:
    """Of 4 micro-batches with 4 layers and both ends; parameters are gathered once."""
    run = replace(RUN, strategy=Strategy(dp=4, zero=2))
    _, seen = seen_of(run, 1e-9)
    assert seen == pytest.approx(1e-9 + 1e-9 / 4)  # the last scatter, the first layer's part
    done, seen = seen_of(run, 1.0)
    gathered = 1.0 - (done.compute_s - done.backward_s)[0, 0]
    assert seen == pytest.approx(4 * (4 + 2) - 4 * done.backward_s[0, 0] + gathered)


def test_parts_of_collectives_beside_products() -> None:
    """One of t parts is seen where the products take longer."""
    run = replace(RUN, strategy=Strategy(tp=4, sequence_parallel=True))
    done, seen = seen_of(run, 1e-9)
    again = "tp inputs again"  # beside a product as a whole
    calls = sum(16 * one.column.calls[0, 0] for one in done.requests if one.column.name != again)
    assert seen == pytest.approx(calls * 1e-9 / 4)


def test_half_of_the_sends_hides_under_chunks() -> None:
    batch = Batch(16, 64)
    interleaved = TrainingRun(RUN.model, batch, Strategy(pp=2, vpp=2))
    _, seen = seen_of(interleaved, 1e-9)
    assert seen == pytest.approx(16 * 4 * 0.5e-9 + 4 * 0.5e-9 / 2)  # and the bubble's
    plain = TrainingRun(RUN.model, batch, Strategy(pp=2))
    _, seen = seen_of(plain, 1e-9)
    assert seen == pytest.approx((16 + 1) * 2e-9)


def test_blocks_of_attention_hide_those_that_arrive() -> None:
    """All but one of 4 blocks; keys and values once forward and twice backward in each layer."""
    run = replace(RUN, strategy=Strategy(cp=4))
    done, columns = work_of(run, EVERYTHING), StrategyColumns.of([run.strategy])
    counted = quantities(run.model, run.batch, columns, EVERYTHING.framework)
    timed = with_seconds(counted, columns, SMALL_DEVICE, EVERYTHING)
    core_s = sum(timed.of_strategy(f"attention_{way}s")[0] for way in ("", "backward_"))
    for call_s, seen in ((1e-9, 0.0), (1.0, 16 * 4 * (3 - core_s * 3 / 4))):
        prices = {name: call_s if name.startswith("cp") else 0.0 for name in names(done)}
        idle = combine(done, dict.fromkeys(names(done), 0.0))[0]
        assert combine(done, prices)[0] - idle == pytest.approx(seen, abs=1e-12)
