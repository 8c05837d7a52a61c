"""TorchTitan's rules on its options as they stand in its sources, written anew.

pytorch/torchtitan, commit b5bcd76c66d0acb1a08b176d9639425bc55e0b2a; files below ``torchtitan/``.
``pd`` is ``distributed/parallel_dims.py``, ``pp`` ``distributed/pipeline_parallel.py``, ``de``
``models/common/decoder.py``, ``tr`` ``trainer.py``, ``cf`` ``config/configs.py``.  ``ts`` is
``torch/distributed/pipelining/schedules.py`` of torch 2.13, ``tc``
``torch/distributed/tensor/experimental/_context_parallel/_attention.py``.
"""

from __future__ import annotations

import math
import shlex
from collections.abc import Mapping

from p2smt.training.strategy import Recompute
from tests.interop.trainers.started import Refused, Started, require

# section.name: its default; cf names the line
OPTIONS: Mapping[str, object] = {
    "training.num_tokens_per_microbatch_per_dp_rank": 16384,  # cf 36
    "training.num_tokens_per_train_step": -1,  # cf 42
    "training.max_context_length": 2048,  # cf 51
    "training.dtype": "float32",  # cf 87
    "training.mixed_precision_param": "bfloat16",  # cf 94
    "training.disable_cuda_graphs": False,  # cf 75
    "parallelism.data_parallel_replicate_degree": 1,  # cf 122
    "parallelism.data_parallel_shard_degree": -1,  # cf 133
    "parallelism.fsdp_reshard_after_forward": "default",  # cf 145
    "parallelism.tensor_parallel_degree": 1,  # cf 166
    "parallelism.enable_sequence_parallel": True,  # cf 169
    "parallelism.pipeline_parallel_degree": 1,  # cf 180
    "parallelism.pipeline_parallel_first_stage_less_layers": 1,  # cf 197
    "parallelism.pipeline_parallel_last_stage_less_layers": 1,  # cf 203
    "parallelism.pipeline_parallel_layers_per_stage": None,  # cf 209
    "parallelism.pipeline_parallel_schedule": "1F1B",  # cf 216
    "parallelism.num_pp_microbatches": 1,  # cf 232
    "parallelism.context_parallel_degree": 1,  # cf 239
}
CHOICES = {
    "training.dtype": ("bfloat16", "float32"),
    "training.mixed_precision_param": ("bfloat16", "float32"),
    "parallelism.fsdp_reshard_after_forward": ("default", "always", "never"),
}
# distributed/activation_checkpoint.py 332-337; a subcommand stands last, and chooses for good
SUBCOMMANDS = {
    "activation-checkpoint:none": Recompute.NONE,
    "activation-checkpoint:full": Recompute.FULL,
}


def _ffn(hidden: int, multiple: int, factor: float) -> int:
    """models/common/feed_forward.py 18-31."""
    return math.ceil(int(factor * int(8 * hidden / 3)) / multiple) * multiple


# models/llama3/__init__.py, models/qwen3/__init__.py and their config_registry.py; sizes as of a
# model: layers, hidden, ffn, heads, kv_heads, head size, vocabulary, gated, tied; then the longest
# sequence that the rotary embedding takes
CONFIGURATIONS: Mapping[tuple[str, str], tuple[tuple[int, ...], int]] = {
    ("llama3", "llama3_8b"): (
        (32, 4096, _ffn(4096, 1024, 1.3), 32, 8, 4096 // 32, 128256, 1, 0),
        131072,
    ),
    ("llama3", "llama3_70b"): (
        (80, 8192, _ffn(8192, 4096, 1.3), 64, 8, 8192 // 64, 128256, 1, 0),
        131072,
    ),
    ("qwen3", "qwen3_0_6b"): ((28, 1024, 3072, 16, 8, 128, 151936, 1, 1), 40960),
    ("qwen3", "qwen3_1_7b"): ((28, 2048, 6144, 16, 8, 128, 151936, 1, 1), 40960),
    ("qwen3", "qwen3_14b"): ((40, 5120, 17408, 40, 8, 128, 151936, 1, 0), 40960),
    ("qwen3", "qwen3_32b"): ((64, 5120, 25600, 64, 8, 128, 151936, 1, 0), 40960),
}


class _Options:
    """The options of a text as config/manager.py and tyro read them."""

    def __init__(self, text: str) -> None:
        self.named: dict[str, str] = {}
        self.given: dict[str, object] = {}
        self.recompute: Recompute | None = None
        words = shlex.split(text, comments=True)
        while words:
            self._read(words.pop(0), words)

    def _read(self, word: str, rest: list[str]) -> None:
        require(self.recompute is None, f"tyro: {word} after a subcommand")
        if word in SUBCOMMANDS:
            self.recompute = SUBCOMMANDS[word]
            return
        name = word.removeprefix("--")
        if name in ("module", "config"):
            self.named[name] = rest.pop(0)
            return
        section, _, option = name.partition(".")
        positive = f"{section}.{option.removeprefix('no_')}"
        if isinstance(OPTIONS.get(positive), bool):
            self.given[positive] = positive == name
            return
        require(word.startswith("--") and name in OPTIONS, f"tyro: unrecognized {word}")
        require(name not in self.given and bool(rest), f"tyro: {word} twice or without a value")
        self.given[name] = rest.pop(0)

    def number(self, name: str) -> int:
        value = self.given.get(name, OPTIONS[name])
        try:
            return int(str(value))
        except ValueError:
            raise Refused(f"tyro: {name}: {value}") from None

    def switch(self, name: str) -> bool:
        return bool(self.given.get(name, OPTIONS[name]))

    def word(self, name: str) -> str:
        value = str(self.given.get(name, OPTIONS[name]))
        require(value in CHOICES.get(name, (value,)), f"tyro: {name}: {value}")
        return value


def start(text: str, ranks: int, own: Mapping[str, tuple[int, ...]]) -> Started:
    """What TorchTitan would run on so many ranks.

    own: sizes of the user's own configurations, of its module ``own``.

    Raises:
        Refused: it would not.
    """
    options = _Options(text)
    require(set(options.named) == {"module", "config"}, "config/manager.py 84-91")
    sizes, longest = _configuration(options.named["module"], options.named["config"], own)
    pp, replicas, shards, cp, tp = _degrees(options, ranks)
    micro_batches, chunks = _pipeline(options, pp, sizes[0])
    _check_model(options, sizes, longest, (pp, cp, tp))
    sp = options.switch("parallelism.enable_sequence_parallel")
    tokens = options.number("training.num_tokens_per_microbatch_per_dp_rank")
    context = options.number("training.max_context_length")
    require(tokens > 0 and context > 0, "cf 54-63")
    divisor = (tp if sp else 1) * (2 * cp if cp > 1 else 1)
    require(tokens % divisor == 0, "tr 296-308")
    require(cp == 1 or tokens % (cp * 128) == 0, "tc 1224-1229")
    step = options.number("training.num_tokens_per_train_step")
    round_tokens = tokens * micro_batches * replicas * shards
    require(step % round_tokens == 0, "tr 420-425")
    require(tokens % context == 0 and step % context == 0, "sequences that are cut")
    accumulated = step // round_tokens
    require(pp == 1 or accumulated == 1, "no strategy: a pipeline is filled several times")
    require(options.recompute is not None, "no word on recomputation")
    return Started(
        degrees=(pp, replicas * shards, cp, tp),
        chunks=chunks,
        micro_batch=tokens // context,
        micro_batches=micro_batches * accumulated,
        batch=(step // context, context),
        sequence_parallel=sp and tp > 1,
        zero=_zero(options, replicas, shards, cp, pp),
        recompute=options.recompute or Recompute.NONE,
        flash=True,  # models/common/config_utils.py 71-101: no attention that keeps scores
        dtype=_dtype(options),
        sizes=sizes,
    )


def _configuration(
    module: str, config: str, own: Mapping[str, tuple[int, ...]]
) -> tuple[tuple[int, ...], int]:
    if module == "own" and config in own:
        sizes = own[config]
        require(sizes[7] == 1, "models/common/feed_forward.py 34-60: its MLPs are gated")
        return sizes, 10**9
    require((module, config) in CONFIGURATIONS, "config/manager.py: no such configuration")
    return CONFIGURATIONS[module, config]


def _degrees(options: _Options, ranks: int) -> tuple[int, int, int, int, int]:
    names = (
        *("pipeline_parallel", "data_parallel_replicate", "data_parallel_shard"),
        *("context_parallel", "tensor_parallel"),
    )
    pp, replicas, shards, cp, tp = (options.number(f"parallelism.{n}_degree") for n in names)
    require(min(pp, replicas, cp, tp) >= 1 and (shards == -1 or shards >= 1), "pd 174-177")
    if shards == -1:
        shards = ranks // (replicas * cp * tp * pp)
    require(shards >= 1 and replicas * shards * cp * tp * pp == ranks, "pd 180-185")
    return pp, replicas, shards, cp, tp


def _pipeline(options: _Options, pp: int, layers: int) -> tuple[int, tuple[int, ...]]:
    """Micro-batches of a pipeline, and the layers of its chunks in the order of the model."""
    count = options.number("parallelism.num_pp_microbatches")
    require(count > 0, "tr 124-128")
    if pp == 1:
        return 1, (layers,)
    require(options.switch("training.disable_cuda_graphs"), "tr 171-176")
    schedule = options.word("parallelism.pipeline_parallel_schedule").lower()  # ts 3620-3622
    require(schedule in ("1f1b", "interleaved1f1b"), "no strategy: another schedule")
    less = [
        options.number(f"parallelism.pipeline_parallel_{end}_stage_less_layers")
        for end in ("first", "last")
    ]
    whole = layers + sum(less)
    if options.given.get("parallelism.pipeline_parallel_layers_per_stage") is None:
        stages = pp * (1 if schedule == "1f1b" else 2)  # pp 263-267
    else:
        most = options.number("parallelism.pipeline_parallel_layers_per_stage")
        require(most > 0, "pp 222: a division")
        stages = math.ceil(whole / most)  # pp 222-224
        require(stages % pp == 0, "pp 233-240")
        require(schedule != "1f1b" or stages == pp, "pp 244-250")
        require(schedule == "1f1b" or stages >= 2 * pp, "pp 252-257")
    if schedule == "1f1b":
        require(count >= stages, "ts 1020-1024")
    else:
        require(count % max(1, count // pp) == 0, "ts 2935-2942")
    return count, _chunks(whole, stages, less)


def _chunks(whole: int, stages: int, less: list[int]) -> tuple[int, ...]:
    """pp 391-455: the first stages have one more where they are uneven."""
    require(stages <= whole, "pp 392-395")
    each, more = divmod(whole, stages)
    require(max(less) <= each, "pp 411-418")
    counts = [each + (stage < more) for stage in range(stages)]
    counts[0] -= less[0]
    counts[-1] -= less[1]
    return tuple(counts)


def _check_model(
    options: _Options, sizes: tuple[int, ...], longest: int, degrees: tuple[int, int, int]
) -> None:
    pp, _, tp = degrees
    _, _, ffn, heads, kv_heads, _, vocab, _, tied = sizes
    require(not tied or pp == 1, "de 168-171")
    require(heads % tp == 0 and kv_heads % tp == 0, "de 185-199")
    require(ffn % tp == 0, "models/common: w1 and w3 are cut by tp")
    parts = math.ceil(vocab / tp)
    require(tp == 1 or vocab - parts * (tp - 1) > 0, "components/loss.py 130-143")
    require(options.number("training.max_context_length") <= longest, "de 217-225")


def _zero(options: _Options, replicas: int, shards: int, cp: int, pp: int) -> int:
    """distributed/fsdp.py 28-60 (shards over dp_shard and cp), 105-135."""
    kept = options.word("parallelism.fsdp_reshard_after_forward")
    if shards * cp == 1:
        return 0
    require(replicas == 1, "no strategy: sharded in part")
    return 3 if kept == "always" or (kept == "default" and pp == 1) else 2


def _dtype(options: _Options) -> str:
    """cf 87-100: masters in float32, products in bfloat16."""
    words = (options.word("training.dtype"), options.word("training.mixed_precision_param"))
    return "bf16" if words == ("float32", "bfloat16") else "other"
