"""Ten published training runs: axes, model, batch, cluster; and what a step of each exchanges.

Public facts with their sources; what a source does not say is in ``assumed``.  Bytes follow from
the model by the usual counts: per layer and microbatch, tensor parallelism all-reduces the
activations twice forward and twice backward (twice more where everything is recomputed), as
all-gathers and reduce-scatters with sequence parallelism; pipeline stages send them on; data
parallelism reduces the gradients of a device's parameters once per step.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from experiments.gains.asking import Ask
from experiments.gains.clusters import FOLDER
from p2smt.collectives.names import RequestKind
from p2smt.parallelism.request import Request

HALF = 2
"""Bytes of an activation, a parameter or, unless said, a gradient."""


@dataclass(frozen=True, slots=True)
class Transformer:
    """Shape of a decoder; ``ffn`` 0: four times ``hidden``; ``kv``: part of the heads with keys."""

    layers: int
    hidden: int
    vocabulary: int
    sequence: int
    ffn: int = 0
    gated: bool = False
    kv: float = 1.0

    @property
    def layer_parameters(self) -> float:
        """Weights of a layer."""
        matrices = 3 if self.gated else 2
        attention = 2 * self.hidden**2 * (1 + self.kv)
        return attention + matrices * self.hidden * (self.ffn or 4 * self.hidden)

    @property
    def parameters(self) -> float:
        """All weights, the embedding once."""
        return self.layers * self.layer_parameters + self.vocabulary * self.hidden


@dataclass(frozen=True, slots=True)
class TrainingRun:
    """A published run: axes outermost first, as its framework numbers ranks.

    ``batch`` and ``micro`` in sequences; ``recompute``: everything is computed again;
    ``stages_per_device``: interleaved pipeline; ``sharded``: gradients are scattered and parameters
    gathered (ZeRO, FSDP) instead of reduced; ``scattered``: stages send each device's part only.
    """

    name: str
    source: str
    cluster: str
    axes: tuple[tuple[str, int], ...]
    model: Transformer
    batch: int
    micro: int = 1
    recompute: bool = True
    sequence_parallel: bool = False
    stages_per_device: int = 1
    sharded: bool = False
    scattered: bool = False
    gradient_bytes: int = HALF
    assumed: str = ""
    sizes: dict[str, int] = field(init=False, hash=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "sizes", {"tp": 1, "pp": 1, "cp": 1, **dict(self.axes)})

    @property
    def microbatches(self) -> int:
        """Of a step, on each device."""
        return self.batch // (self.sizes["dp"] * self.micro)

    @property
    def activation_bytes(self) -> int:
        """Between two layers, of a microbatch."""
        tokens = self.micro * self.model.sequence // self.sizes["cp"]
        return tokens * self.model.hidden * HALF

    def ask(self) -> Ask:
        """The question."""
        axes = ",".join(f"{name}={size}" for name, size in self.axes)
        requests = (*self._data(), *self._tensor(), *self._context(), *self._stages())
        return Ask(self.cluster, axes, requests)

    def _data(self) -> tuple[Request, ...]:
        axes = ("dp", "cp") if self.sizes["cp"] > 1 else ("dp",)
        held = self.model.parameters / (self.sizes["tp"] * self.sizes["pp"])
        gradients = round(held * self.gradient_bytes)
        if not self.sharded:
            return (Request(RequestKind.ALL_REDUCE, axes, gradients),)
        return (
            Request(RequestKind.REDUCE_SCATTER, axes, gradients),
            Request(RequestKind.ALL_GATHER, axes, round(held * HALF)),
        )

    def _tensor(self) -> tuple[Request, ...]:
        times = (6 if self.recompute else 4) * self._layers_run
        if not self.sequence_parallel:
            return (Request(RequestKind.ALL_REDUCE, ("tp",), self.activation_bytes, times),)
        kinds = (RequestKind.ALL_GATHER, RequestKind.REDUCE_SCATTER)
        return tuple(Request(kind, ("tp",), self.activation_bytes, times) for kind in kinds)

    def _context(self) -> tuple[Request, ...]:
        """Keys and values, gathered forward, their gradients scattered backward."""
        if self.sizes["cp"] == 1:
            return ()
        tokens = self.micro * self.model.sequence
        size = round(2 * tokens * self.model.hidden * self.model.kv * HALF / self.sizes["tp"])
        kinds = (RequestKind.ALL_GATHER, RequestKind.REDUCE_SCATTER)
        return tuple(Request(kind, ("cp",), size, self._layers_run) for kind in kinds)

    def _stages(self) -> tuple[Request, ...]:
        """Activations forward, their gradients backward."""
        if self.sizes["pp"] == 1:
            return ()
        size = self.activation_bytes // (self.sizes["tp"] if self.scattered else 1)
        times = 2 * self.microbatches * self.stages_per_device
        return (Request(RequestKind.SEND, ("pp",), size, times),)

    @property
    def _layers_run(self) -> int:
        """Times that a device runs a layer forward in a step."""
        return -(-self.model.layers // self.sizes["pp"]) * self.microbatches


GPT3 = Transformer(96, 12288, 51200, 2048)
TURING = Transformer(105, 20480, 51200, 2048)
SC21 = "arXiv 2104.04473"
LLAMA = "arXiv 2407.21783, section 3.3 and table 4"


def llama(sequence: int) -> Transformer:
    """Llama 3 405B: 8 of 128 heads have keys and values."""
    return Transformer(126, 16384, 128256, sequence, 53248, gated=True, kv=8 / 128)


def llama_run(
    context: str, pods: int, axes: tuple[tuple[str, int], ...], model: Transformer, batch: int
) -> TrainingRun:
    """A stage of Llama 3's training, by the length of its sequences."""
    return TrainingRun(
        f"Llama 3 405B, {context}",
        LLAMA,
        f"{FOLDER}/llama3-pods.yaml:{pods}",
        axes,
        model,
        batch,
        recompute=False,
        sequence_parallel=True,
        sharded=True,
        scattered=True,
        gradient_bytes=4,
        assumed="microbatches of one sequence, one stage per device, 2048 GPUs in each pod",
    )


RUNS = (
    TrainingRun(
        "Megatron-LM 8.3B",
        "arXiv 1909.08053, section 5.1",
        "dgx2:32",
        (("dp", 64), ("tp", 8)),
        Transformer(72, 3072, 51200, 1024),
        batch=512,
        micro=8,
    ),
    TrainingRun(
        "Megatron-LM 7.5B",
        f"{SC21}, table 1; Megatron-LM, sc21/run_table_1.sh",
        "dgx-a100:16",
        (("dp", 32), ("tp", 4)),
        Transformer(36, 4096, 51200, 2048),
        batch=512,
        micro=16,
    ),
    TrainingRun(
        "GPT-3 175B, Megatron-LM",
        f"{SC21}, table 2",
        "dgx-a100:48",
        (("pp", 12), ("dp", 4), ("tp", 8)),
        GPT3,
        batch=1536,
        scattered=True,
        assumed="tp 8 of the 96 model-parallel GPUs",
    ),
    TrainingRun(
        "Turing-NLG 530B",
        f"{SC21}, table 2; arXiv 2201.11990",
        "dgx-a100:280",
        (("pp", 35), ("dp", 8), ("tp", 8)),
        TURING,
        batch=2240,
        scattered=True,
    ),
    TrainingRun(
        "OPT-175B",
        "arXiv 2205.01068, section 2.4",
        "azure-ndv4:124",
        (("dp", 124), ("tp", 8)),
        Transformer(96, 12288, 50272, 2048),
        batch=992,
        micro=8,
        sharded=True,
        assumed="tp 8, 8 sequences per group; parameters gathered once a step",
    ),
    TrainingRun(
        "BLOOM 176B",
        "arXiv 2211.05100, section 3.4",
        f"{FOLDER}/jean-zay.yaml",
        (("pp", 12), ("dp", 8), ("tp", 4)),
        Transformer(70, 14336, 250880, 2048),
        batch=2048,
        micro=2,
        sharded=True,
        assumed="bfloat16 gradients",
    ),
    TrainingRun(
        "GLM-130B",
        "arXiv 2210.02414, section 2.3",
        "dgx-a100:96",
        (("pp", 8), ("dp", 24), ("tp", 4)),
        Transformer(70, 12288, 150528, 2048, 32768, gated=True),
        batch=4224,
        assumed="microbatches of one sequence, gradients reduced in float16",
    ),
    TrainingRun(
        "Falcon-180B",
        "huggingface.co/tiiuae/falcon-180B (model card); arXiv 2311.16867",
        "aws-p4d:512",
        (("pp", 8), ("dp", 64), ("tp", 8)),
        Transformer(80, 14848, 65024, 2048, kv=8 / 232),
        batch=2048,
        recompute=False,
        sharded=True,
        assumed="microbatches of one sequence, nothing recomputed; order of the axes",
    ),
    llama_run("8 Ki tokens", 4, (("dp", 64), ("pp", 16), ("tp", 8)), llama(8192), batch=2048),
    llama_run(
        "128 Ki tokens", 8, (("dp", 8), ("pp", 16), ("cp", 16), ("tp", 8)), llama(131072), batch=128
    ),
)
