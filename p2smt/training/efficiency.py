"""How much of a device's peak a framework reaches: constants fitted to measured runs."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

from p2smt.errors import InputError
from p2smt.training.strategy import Batch, Strategy
from p2smt.training.transformer import Transformer

MAX_ELEMENT_BYTES = 8
MIN_PART, MAX_LAYER_S, MAX_MOVED = 1e-6, 1e6, 1e6
"""What bounds the constants, so that no time is infinite."""


@dataclass(frozen=True, slots=True)
class Framework:
    """What a framework overlaps: facts of its code, not fitted.

    ``tp_hidden``: collectives of tp run beside the matrix products, by parts.
    ``pp_hidden``: the part of sends between stages that interleaving hides.
    ``dp_hidden``: reductions of gradients run during the backward pass.
    ``fetch_hidden``: parameters of ZeRO-3 are gathered while layers compute.
    ``gradient_bytes``: bytes of a gradient's element as it is reduced, where training is in bf16;
    ``gradient_bytes_fp16`` where it is in fp16.
    ``loss_bytes``: bytes of an element of the logits at the peak of its cross-entropy: logits in 16
    bits and their softmax in fp32; a fused kernel that does not work in place takes 4 more.
    ``attention``: rate of its fused attention, as a part of what matrix products reach.
    """

    name: str
    tp_hidden: bool
    pp_hidden: float
    dp_hidden: bool
    fetch_hidden: bool
    gradient_bytes: int
    gradient_bytes_fp16: int = 2
    attention: float = 1.0
    loss_bytes: int = 6

    def __post_init__(self) -> None:
        whose = f"framework {self.name[:40]}"
        if not 0 <= self.pp_hidden <= 1:
            raise InputError(f"{whose}: pp_hidden {self.pp_hidden}", "must be a part, from 0 to 1")
        if not MIN_PART <= self.attention <= 1:
            rule = f"must be a part of the products' rate, from {MIN_PART:g} to 1"
            raise InputError(f"{whose}: attention {self.attention}", rule)
        for key in ("gradient_bytes", "gradient_bytes_fp16"):
            if getattr(self, key) not in range(1, MAX_ELEMENT_BYTES + 1):
                rule = f"must be a whole number from 1 to {MAX_ELEMENT_BYTES}"
                raise InputError(f"{whose}: {key} {getattr(self, key)}", rule)

    def reduced_bytes(self, dtype: str) -> int:
        """Bytes of a gradient's element as it is reduced in training of a data type."""
        return self.gradient_bytes_fp16 if dtype == "fp16" else self.gradient_bytes


@dataclass(frozen=True, slots=True)
class LayerConstants:
    """Constants of layers of all kinds, fitted to runs of mixtures and of low precision together.

    ``low``: parts of the peaks of fp8 and fp4 that products reach, by that peak's name, where they
    are not the efficiency's own.  ``memory``: part of the memory's bandwidth; ``core``: part of the
    peak of 16 bits that the core of attention reaches.  ``edge``: starting and writing the outputs
    of a product takes as long as so many of its inner elements, in 16 bits.  ``quantised``: bytes
    that quantising moves for an element of a product's input, forward; twice that backward.
    ``state_bytes``: bytes that the scan of Mamba-2 moves for an element of its heads, forward.
    ``host_*_s``: launches of kernels, forward and backward: of an attention, a dense MLP, Mamba-2,
    a mixture, and more for each expert on a device.  ``dispatch``: part of a library's rate that
    tokens reach on their way; ``hides``: part of a stage's computing under which they may move.
    """

    core: float = 0.43
    low: tuple[tuple[str, float], ...] = ()
    memory: float = 0.6
    edge: float = 249.7
    quantised: float = 4.247
    state_bytes: float = 57.08
    host_attention_s: float = 1.792e-3
    host_mlp_s: float = 2.071e-3
    host_mamba_s: float = 6.246e-3
    host_experts_s: float = 1.752e-3
    host_expert_s: float = 0.279e-3
    dispatch: float = 1.0
    hides: float = 0.6923

    def __post_init__(self) -> None:
        parts = (self.core, self.memory, self.dispatch, *(one for _, one in self.low))
        if not all(MIN_PART <= part <= 1 for part in parts) or not 0 <= self.hides <= 1:
            given = f"constants of layers {(*parts, self.hides)}"
            raise InputError(given, f"are parts from {MIN_PART:g} to 1")
        hosts = (self.host_attention_s, self.host_mlp_s, self.host_mamba_s, self.host_experts_s)
        if not all(0 <= host <= MAX_LAYER_S for host in (*hosts, self.host_expert_s)):
            raise InputError(f"host seconds {hosts}", f"are from 0 to {MAX_LAYER_S:g} s")
        moved = (self.edge, self.quantised, self.state_bytes)
        if not all(0 <= one <= MAX_MOVED for one in moved):
            rule = f"are from 0 to {MAX_MOVED:g}"
            raise InputError(f"edge, quantised and state_bytes {moved}", rule)


@dataclass(frozen=True, slots=True)
class Efficiency:
    """The part of the peak that matrix products reach by a framework on a device.

    ``fraction`` multiplies peak and memory bandwidth; ``layer_s`` is spent in each layer besides
    (launches of kernels), forward and backward together.  ``runs``: how many measured runs it was
    fitted to; ``error``: their mean relative error where the group of each was left out.
    ``layers``: constants of a fit by kinds of layers; None: of dense models in 16 bits alone.
    """

    name: str
    device: str
    framework: Framework
    fraction: float
    layer_s: float
    runs: int
    error: float
    layers: LayerConstants | None = None

    def __post_init__(self) -> None:
        whose = f"efficiency {self.name[:40]}"
        if not MIN_PART <= self.fraction <= 1 or not 0 <= self.layer_s <= MAX_LAYER_S:
            given = f"{whose}: {self.fraction} of the peak, {self.layer_s} s"
            rule = f"must be a part from {MIN_PART:g} to 1, and a time from 0 to {MAX_LAYER_S:g} s"
            raise InputError(given, rule)
        if self.runs < 0 or not 0 <= self.error < inf:
            given = f"{whose}: {self.runs} runs, error {self.error}"
            raise InputError(given, "must be a count and a finite error, neither negative")

    def fraction_of(self, peak: str) -> float:
        """The part of a peak, by its name, that products reach; unknown: that of 16 bits."""
        return dict(self.layers.low if self.layers else ()).get(peak, self.fraction)


# A training run as it is asked about: what is trained, on what, and how it is spread.


@dataclass(frozen=True, slots=True)
class TrainingRun:
    """A model, the batch of an iteration, and a strategy."""

    model: Transformer
    batch: Batch
    strategy: Strategy
