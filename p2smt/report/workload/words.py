"""Figures of training runs in words."""

from __future__ import annotations

from p2smt.api.efficiencies import efficiency_notes, is_default
from p2smt.cluster.topology import Topology
from p2smt.units import format_time
from p2smt.workload.batch import Batch
from p2smt.workload.efficiency import Efficiency
from p2smt.workload.transformer import Transformer


def teraflops(flops: float) -> str:
    """Flop/s as ``404 TFLOP/s``."""
    return f"{flops / 1e12:,.3g} TFLOP/s"


def model_words(model: Transformer) -> str:
    """A model with its size: ``llama-3-70b (70.6 billion parameters)``."""
    return f"{model.name} ({model.parameters / 1e9:,.3g} billion parameters)"


def batch_words(batch: Batch) -> str:
    """A batch: ``1,024 sequences of 8,192 tokens``."""
    plural = "s" * (batch.sequences != 1)
    return f"{batch.sequences:,} sequence{plural} of {batch.tokens:,} tokens"


def cluster_words(topology: Topology) -> str:
    """A cluster: ``64 devices of dgx-h100``."""
    return f"{topology.devices:,} device{'s' * (topology.devices != 1)} of {topology.name}"


def efficiency_lines(
    topology: Topology, efficiency: Efficiency, launcher: str = ""
) -> tuple[str, ...]:
    """What of the peak a framework reaches, how well that is known, and what is odd about it."""
    default = is_default(topology, efficiency, launcher)
    chosen = ", the default here: --efficiency takes another" if default else ""
    notes = efficiency_notes(topology, efficiency, launcher)
    return (
        f"efficiency {_efficiency_words(efficiency)}{chosen}",
        *(f"note: {text}" for text in notes),
    )


def _efficiency_words(efficiency: Efficiency) -> str:
    overhead = f" and {format_time(efficiency.layer_s)} a layer" if efficiency.layer_s else ""
    text = f"{efficiency.name}: {efficiency.fraction:.3g} of the peak{overhead}"
    if not efficiency.runs:
        return f"{text}, not fitted to measured runs"
    plural = "s" * (efficiency.runs != 1)
    fitted = f"fitted to {efficiency.runs} measured run{plural}"
    return f"{text}, {fitted}, {efficiency.error:.1%} off on runs left out"
