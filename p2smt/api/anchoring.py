"""The public function that anchors the model on iterations of one's own cluster."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from p2smt.api.workload import estimate
from p2smt.cluster.topology import Topology
from p2smt.errors import InputError
from p2smt.training.efficiency import Efficiency
from p2smt.training.measured.anchor import (
    ONE_RUN_SPREAD,
    Anchor,
    OwnRun,
    fit_anchor,
    with_host,
    with_links,
)
from p2smt.training.strategy import Batch, spread_strategy, with_given
from p2smt.training.transformer import Transformer
from p2smt.units import format_gigabytes, format_time, parse_bytes, parse_time

SLIP = 20.0
"""Times, or bytes, that are so many times off are taken for a slip of the pen."""
MAX_RUNS = 100
_EXAMPLE = "write it like 'tp=4,pp=4: 31.2s, 71GB'"


def parse_measured(text: str, devices: int, given: Mapping[str, Any]) -> OwnRun:
    """A measured run in a text such as ``tp=4,pp=4: 31.2s, 71GB``; the memory may be left out.

    ``given``: fields of every strategy that are said elsewhere.

    Raises:
        InputError: it is none, or says another value of such a field.
    """
    strategy, colon, figures = text.rpartition(":")
    what = f"--measured {text[:60]!r}"
    seconds, comma, memory = figures.partition(",")
    if not colon or not seconds.strip():
        raise InputError(what, "is not STRATEGY: TIME, or STRATEGY: TIME, MEMORY", _EXAMPLE)
    return OwnRun(
        with_given(spread_strategy(strategy, devices), strategy, given),
        parse_time(seconds.strip(), what),
        parse_bytes(memory.strip(), what) if comma else None,
    )


def anchor(
    model: Transformer,
    topology: Topology,
    batch: Batch,
    runs: Sequence[OwnRun],
    efficiency: Efficiency,
    *,
    force: bool = False,
) -> Anchor:
    """What the cluster reaches of the model, by runs that were measured there.

    Args:
        model: what was trained, with ``batch``, on all devices of ``topology``.
        topology: as for :func:`~p2smt.api.workload.estimate`.
        batch: of an iteration.
        runs: their ranks lie in Megatron's order.
        efficiency: the constants that are scaled.
        force: take a time or a memory that is ``SLIP`` times off.

    Raises:
        InputError: there is none, a strategy cannot run, or a figure is far off.
    """
    if not 1 <= len(runs) <= MAX_RUNS:
        raise InputError(f"{len(runs)} measured runs", f"must be 1 to {MAX_RUNS}")

    def seconds(run: OwnRun, links: float, host_s: float) -> float:
        where, reached = with_links(topology, links), with_host(efficiency, host_s)
        return estimate(model, where, run.strategy, batch, reached).iteration_s

    found = [estimate(model, topology, run.strategy, batch, efficiency) for run in runs]
    for run, said in zip(runs, found, strict=True):
        if not force:
            _check(run, said.iteration_s, said.prediction.memory.total)
    memory = [said.prediction.memory.total for said in found]
    return fit_anchor(runs, seconds, memory, ONE_RUN_SPREAD)


def _check(run: OwnRun, seconds: float, memory: int) -> None:
    """Hold that what was measured can be of the run.

    Raises:
        InputError: it is too far from what the model says.
    """
    remedy = "correct it, or take it with --force"
    degrees = ",".join(f"{name}={getattr(run.strategy, name)}" for name in ("tp", "pp", "dp"))
    if not seconds / SLIP <= run.step_s <= seconds * SLIP:
        given = f"{degrees}, measured {format_time(run.step_s)}"
        rule = f"is more than {SLIP:g} times off the {format_time(seconds)} of the model"
        raise InputError(given, rule, remedy)
    if run.memory_bytes is not None and not memory / SLIP <= run.memory_bytes <= memory * SLIP:
        given = f"{degrees}, measured {format_gigabytes(run.memory_bytes)}"
        rule = f"is more than {SLIP:g} times off the {format_gigabytes(memory)} of the model"
        raise InputError(given, rule, remedy)
