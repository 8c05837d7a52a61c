"""Measured runs as the model predicts them: on their hardware, in the default placement."""

from __future__ import annotations

from functools import lru_cache

from p2smt.cluster.topology import Topology
from p2smt.workload.efficiencies.hardware import topology_of
from p2smt.workload.efficiency import Efficiency, Framework
from p2smt.workload.formulas.columns import StrategyColumns
from p2smt.workload.iteration import predict
from p2smt.workload.measured.run import MeasuredRun
from p2smt.workload.prediction import Prediction
from p2smt.workload.run import TrainingRun
from p2smt.workload.timing.combine import combine
from p2smt.workload.timing.prices import call_seconds, default_placement
from p2smt.workload.timing.request_columns import axis_requests
from p2smt.workload.timing.work import work

_KEPT = 4096


def prediction_of(run: MeasuredRun, efficiency: Efficiency) -> Prediction:
    """Time and memory of a run under an efficiency.

    Raises:
        InputError: the hardware is not known, or the strategy does not fit on its devices.
    """
    return predict(run.training, _topology(run), efficiency)


def step_s(run: MeasuredRun, efficiency: Efficiency) -> float:
    """Seconds of an iteration of a run; its prices are kept for other efficiencies.

    Raises:
        InputError: as of :func:`prediction_of`.
    """
    topology = _topology(run)
    columns = StrategyColumns.of((run.training.strategy,))
    training = run.training
    done = work(training.model, training.batch, columns, topology.known_device, efficiency)
    prices = _prices(training, run.hardware, efficiency.framework)
    return float(combine(done, dict(prices))[0])


@lru_cache(_KEPT)
def _prices(
    training: TrainingRun, hardware: str, framework: Framework
) -> tuple[tuple[str, float], ...]:
    """Seconds of a call of each request, by its name: they do not depend on the efficiency."""
    topology, strategy = topology_of(hardware, training.strategy.devices), training.strategy
    placement = default_placement(topology, strategy)
    requests = axis_requests(training.model, training.batch, strategy, framework)
    return tuple((one.name, call_seconds(topology, strategy, one, placement)) for one in requests)


def _topology(run: MeasuredRun) -> Topology:
    return topology_of(run.hardware, run.training.strategy.devices)
