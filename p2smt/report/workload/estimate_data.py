"""`estimate --json`, and what of it `plan --json` says of each strategy."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from p2smt.api.efficiencies import efficiency_notes, is_default
from p2smt.cluster.topology import Topology
from p2smt.report.workload.parts import time_parts
from p2smt.workload.efficiency import Efficiency
from p2smt.workload.estimated import RunEstimate
from p2smt.workload.prediction import MemoryParts, Prediction
from p2smt.workload.strategy import AXES, Strategy
from p2smt.workload.strategy_text import strategy_text
from p2smt.workload.transformer import Transformer


def estimate_data(found: RunEstimate) -> dict[str, Any]:
    """The fields that tools rely on."""
    batch = found.run.batch
    return {
        "model": model_data(found.run.model),
        "topology": found.topology.name,
        "devices": found.topology.devices,
        "global_batch": batch.sequences,
        "sequence": batch.tokens,
        **efficiency_data(found.topology, found.efficiency),
        **strategy_data(found.run.strategy),
        "axes": list(AXES),
        "matrix": found.placement and [list(row) for row in found.placement.matrix],
        **figures_data(found),
    }


def efficiency_data(
    topology: Topology, efficiency: Efficiency, launcher: str = ""
) -> dict[str, Any]:
    """An efficiency, whether nobody asked for another, and what is odd about it."""
    return {
        "efficiency": asdict(efficiency),
        "efficiency_default": is_default(topology, efficiency, launcher),
        "efficiency_notes": list(efficiency_notes(topology, efficiency, launcher)),
    }


def model_data(model: Transformer) -> dict[str, Any]:
    """A model's sizes and its number of parameters."""
    return {**asdict(model), "parameters": model.parameters}


def strategy_data(strategy: Strategy) -> dict[str, Any]:
    """A strategy as its text, and its degrees by name."""
    return {"strategy": strategy_text(strategy), "degrees": degrees_data(strategy)}


def degrees_data(strategy: Strategy) -> dict[str, Any]:
    """The fields of a strategy, under the keys of its text."""
    return {
        "tp": strategy.tp,
        "pp": strategy.pp,
        "dp": strategy.dp,
        "cp": strategy.cp,
        "vpp": strategy.vpp,
        "mbs": strategy.micro_batch,
        "sp": strategy.sequence_parallel,
        "zero": strategy.zero,
        "recompute": strategy.recompute.value,
        "flash": strategy.flash,
        "dtype": strategy.dtype,
        "split": list(strategy.split) or None,
    }


def figures_data(found: RunEstimate) -> dict[str, Any]:
    """Time and memory with their parts, and rates."""
    return {
        "iteration_s": found.iteration_s,
        **parts_data(found.prediction),
        "memory_bytes": found.prediction.memory.total,
        "memory": memory_data(found.prediction.memory),
        "capacity_bytes": found.capacity_bytes,
        "fits": found.fits,
        "tokens_per_s": found.tokens_per_s,
        "tflops_per_device": found.prediction.device_flops_per_s / 1e12,
        "mfu": found.prediction.utilization,
        "requests": requests_data(found.prediction),
    }


def parts_data(prediction: Prediction) -> dict[str, Any]:
    """Seconds of each part, which sum to the iteration; and those hidden, by axis."""
    parts = time_parts(prediction)
    hidden = {part.name: part.hidden_s for part in parts if part.hidden_s > 0}
    return {"parts": {part.name: part.seconds for part in parts}, "hidden": hidden}


def memory_data(memory: MemoryParts) -> dict[str, int]:
    """Bytes by what they hold, on the stage that needs most."""
    return {
        "parameters": memory.parameters,
        "gradients": memory.gradients,
        "optimizer": memory.optimizer,
        "activations": memory.activations,
        "stage": memory.stage,
    }


def requests_data(prediction: Prediction) -> list[dict[str, Any]]:
    """What a device asks of each axis in an iteration."""
    return [
        {
            "name": one.request.name,
            "kind": one.request.kind.value,
            "axes": list(one.request.axes),
            "bytes": one.request.payload_bytes,
            "times": one.request.calls,
            "cover": one.request.cover.value,
            "call_s": one.call_s,
            "visible_s": one.visible_s,
            "hidden_s": one.hidden_s,
        }
        for one in prediction.requests
    ]
