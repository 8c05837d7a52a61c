"""The public functions on training runs: models, efficiencies, and the estimate of one run."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from p2smt.api.efficiencies import efficiency_of
from p2smt.cluster.allocation import check_stated
from p2smt.cluster.topology import Topology
from p2smt.errors import InputError
from p2smt.interop.model_config import read_config
from p2smt.interop.trainers.answer_reader import model_of_answer
from p2smt.parallelism.placement import Placement
from p2smt.training import model_file
from p2smt.training.efficiency import Efficiency, TrainingRun
from p2smt.training.iteration import predict, predict_on
from p2smt.training.memory_verdict import usable_bytes
from p2smt.training.on_hosts import in_order, listed_ranks
from p2smt.training.pipeline import default_experts, default_placement
from p2smt.training.prediction import RunEstimate
from p2smt.training.strategy import Batch, Strategy, spread_strategy
from p2smt.training.transformer import Transformer
from p2smt.training.validity import check

if TYPE_CHECKING:
    from p2smt.api.files import StrPath

CONFIG = ".json"


def read_model(name_or_path: StrPath) -> Transformer:
    """A model by its name, from a YAML file, a ``config.json`` of Hugging Face, or an answer.

    Answers are plan files of trainings, and what ``plan`` and ``estimate`` print as JSON.

    Raises:
        InputError: there is no such model or file, a key is missing, or the model has layers that
            are not known: sparse attention, gated delta nets, encoders.
    """
    text = os.fspath(name_or_path)
    if text.endswith(CONFIG):
        return model_of_answer(text) or read_config(text)
    return model_file.read_model(text)


def estimate(
    model: Transformer | StrPath,
    topology: Topology,
    strategy: Strategy | str,
    batch: Batch,
    efficiency: Efficiency | StrPath | None = None,
    *,
    placement: Placement | None = None,
    experts: Placement | None = None,
    memory: int | None = None,
    hosts: Sequence[str] | None = None,
) -> RunEstimate:
    """Time and memory of an iteration of one run.

    Args:
        model: sizes, or what :func:`read_model` reads.
        topology: with a ``device``.
        strategy: or its text, such as ``tp=8,pp=4,dp=2``; a text without dp fills the devices.
        batch: sequences of an iteration, and tokens of each.
        efficiency: or its name or file; None: Megatron's on the topology's device.
        placement: a matrix with rows for pp, dp, cp, tp; None: ranks in that order.
        experts: of a mixture, a matrix with rows for pp, ed, ep, et; None: ranks in that order.
        memory: bytes that a run may take on a device; None: all but a reserve, see
            :func:`~p2smt.training.memory_verdict.usable_bytes`.
        hosts: on a topology that names its hosts, those that have the ranks, in their order, of
            which the last may stay idle; None: all, in the order of the topology.

    Raises:
        InputError: the strategy breaks a rule, which is named, or something is not known.
    """
    trained = model if isinstance(model, Transformer) else read_model(model)
    devices = topology.devices
    chosen = (
        spread_strategy(strategy, devices, topology.device)
        if isinstance(strategy, str)
        else strategy
    )
    kinds = chosen.low_precision or not trained.seen(batch.tokens).dense
    constants = (
        efficiency
        if isinstance(efficiency, Efficiency)
        else efficiency_of(topology, efficiency, kinds=kinds)
    )
    check_stated(topology)
    run = TrainingRun(trained, batch, chosen)
    capacity = usable_bytes(topology.known_device.memory_bytes) if memory is None else memory
    if not in_order(topology, hosts, chosen.devices):
        if placement is not None or experts is not None:
            rule = "lays ranks on whole levels, and on these hosts they lie in the order listed"
            raise InputError("a placement", rule, "drop it, or list all hosts of a regular cluster")
        names = topology.hosts.names if hosts is None and topology.hosts else hosts or ()
        lie = listed_ranks(topology, names, chosen)
        said = predict_on(run, lie, constants)
        return RunEstimate(run, lie.topology, constants, None, said, capacity, on_hosts=lie)
    check(trained, batch, chosen, topology.devices)
    where = placement if placement is not None else default_placement(topology, chosen)
    if experts is None and trained.experts is not None:
        experts = default_experts(topology, chosen)
    found = predict(run, topology, constants, where, experts)
    return RunEstimate(run, topology, constants, where, found, capacity, experts)
