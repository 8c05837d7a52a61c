"""The public function that anchors the model on iterations of one's own cluster."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from p2smt.api.workload import estimate
from p2smt.cluster.topology import Topology
from p2smt.errors import InputError
from p2smt.interop.trainers.launches import read_launch
from p2smt.training.efficiency import Efficiency
from p2smt.training.measured.anchor import (
    ONE_RUN_SPREAD,
    Anchor,
    OwnRun,
    fit_anchor,
    with_host,
    with_links,
)
from p2smt.training.on_hosts import devices_on
from p2smt.training.prediction import RunEstimate
from p2smt.training.strategy import MAX_BATCH, Batch, spread_strategy, spread_text, with_given
from p2smt.training.transformer import Transformer
from p2smt.units import format_gigabytes, format_time, parse_bytes, parse_count, parse_time

SLIP = 20.0
"""Times, or bytes, that are so many times off are taken for a slip of the pen."""
MAX_RUNS = 100
_EXAMPLE = "write it like 'tp=4,pp=4: 31.2s, 71GB'"


def parse_measured(
    text: str,
    topology: Topology,
    given: Mapping[str, Any],
    model: Transformer,
    batch: Batch,
    settings: Mapping[str, str] = MappingProxyType({}),
    hosts: Sequence[str] | None = None,
    least_batch: int | None = None,
) -> OwnRun:
    """A measured run such as ``tp=4,pp=4: 31.2s, 71GB``, or ``run.sh: 31.2s``; the memory may be
    left out, and ``batch=1024`` may stand among the fields of a strategy.

    Args:
        text: strategy or file, as :func:`~p2smt.interop.trainers.launches.read_launch` reads it,
            time and memory.
        topology: all of its devices had the run, or those of ``hosts``.
        given: fields of every strategy that are said elsewhere.
        model: what was trained, with ``batch``.
        batch: of an iteration.
        settings: what files leave open.
        hosts: as of :func:`anchor`.
        least_batch: of a range that ends with ``batch``, one of which the run had; None: it had
            ``batch``.

    Raises:
        InputError: it is none, is of another model or batch, or says another value of such a field.
    """
    said, colon, figures = (part.strip() for part in text.rpartition(":"))
    what = f"--measured {text[:60]!r}"
    seconds, comma, memory = figures.partition(",")
    if not colon or not seconds.strip():
        raise InputError(what, "is not STRATEGY: TIME, or STRATEGY: TIME, MEMORY", _EXAMPLE)
    step_s = parse_time(seconds.strip(), what)
    memory_bytes = parse_bytes(memory.strip(), what) if comma else None
    devices = devices_on(topology, hosts)
    if not os.path.isfile(said):
        if said and "=" not in said:
            rule = f"{said[:40]} is neither a strategy nor a file"
            raise InputError(what, rule, _EXAMPLE)
        fields, own = _own_batch(said, what, least_batch or batch.sequences, batch)
        strategy = with_given(spread_strategy(fields, devices, topology.device), fields, given)
        return OwnRun(strategy, step_s, memory_bytes, batch=own)
    told = {"seq": str(batch.tokens), **settings}
    launch = read_launch(said, told, model=model, devices=devices)
    _check_batch(f"--measured {said[:60]}", launch.batch, least_batch or batch.sequences, batch)
    where, experts = launch.matrices_on(topology, hosts)
    strategy = with_given(launch.strategy, spread_text(launch.strategy), given)
    return OwnRun(strategy, step_s, memory_bytes, where, experts, launch.batch)


def _own_batch(said: str, what: str, least: int, batch: Batch) -> tuple[str, Batch]:
    """The fields of a strategy apart from ``batch=1024``, and that batch.

    Raises:
        InputError: it is not said where several are asked for, or is none of those.
    """
    parts = said.split(",")
    texts = [part for part in parts if part.partition("=")[0].strip() == "batch"]
    if not texts:
        if least < batch.sequences:
            rule = f"does not say which batch of {least:,} to {batch.sequences:,} it had"
            remedy = f"write it like 'tp=4,pp=4,batch={batch.sequences}: 31.2s'"
            raise InputError(what, rule, remedy)
        return said, batch
    parts.remove(texts[0])
    many = parse_count(texts[0].partition("=")[2].strip(), f"{what}: batch", MAX_BATCH)
    own = replace(batch, sequences=many)
    _check_batch(what, own, least, batch)
    return ",".join(parts), own


def _check_batch(what: str, own: Batch, least: int, batch: Batch) -> None:
    """Hold that a run had one of the batches that are asked for."""
    if own.tokens == batch.tokens and least <= own.sequences <= batch.sequences:
        return
    first = "" if least == batch.sequences else f"{least:,} to "
    one, other = (f"{each.sequences:,} x {each.tokens:,} tokens" for each in (own, batch))
    rule = f"has batches of {one}, and {first}{other} are asked for"
    raise InputError(what, rule, "measure the batch that is asked for")


def anchor(
    model: Transformer,
    topology: Topology,
    batch: Batch,
    runs: Sequence[OwnRun],
    efficiency: Efficiency,
    *,
    hosts: Sequence[str] | None = None,
    force: bool = False,
) -> Anchor:
    """What the cluster reaches of the model, by runs that were measured there.

    Args:
        model: what was trained, with ``batch``, on all devices of ``topology`` or of ``hosts``.
        topology: as for :func:`~p2smt.api.workload.estimate`.
        batch: of an iteration, where a run does not say its own.
        runs: their ranks lie in Megatron's order where they have no matrices.
        efficiency: the constants that are scaled.
        hosts: those that had the runs, as listed; None: all of the topology.
        force: take a time or a memory that is ``SLIP`` times off.

    Raises:
        InputError: there is none, a strategy cannot run, or a figure is far off.
    """
    if not 1 <= len(runs) <= MAX_RUNS:
        raise InputError(f"{len(runs)} measured runs", f"must be 1 to {MAX_RUNS}")

    def seconds(run: OwnRun, links: float, host_s: float) -> float:
        where, reached = with_links(topology, links), with_host(efficiency, host_s)
        return predicted(run, where, reached).iteration_s

    def predicted(run: OwnRun, where: Topology, constants: Efficiency) -> RunEstimate:
        laid = run.placement, run.experts
        asked = model, where, run.strategy, run.batch or batch, constants
        return estimate(*asked, placement=laid[0], experts=laid[1], hosts=hosts)

    found = [predicted(run, topology, efficiency) for run in runs]
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
