"""TorchTitan's rules on its options as they stand in its sources, written anew.

pytorch/torchtitan, commit b5bcd76c66d0acb1a08b176d9639425bc55e0b2a; files below ``torchtitan/``.
``pd`` is ``distributed/parallel_dims.py``, ``pp`` ``distributed/pipeline_parallel.py``, ``de``
``models/common/decoder.py``, ``tr`` ``trainer.py``, ``cf`` ``config/configs.py``.  ``ts`` is
``torch/distributed/pipelining/schedules.py`` of torch 2.13, ``tc``
``torch/distributed/tensor/experimental/_context_parallel/_attention.py``; ``td`` is
``models/common/token_dispatcher.py``, ``mt`` ``models/deepseek_v3/mtp.py``, ``ms``
``models/common/MOE_SHARDING.md``.
"""

from __future__ import annotations

import math
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import pairwise

from p2smt.training.strategy import Recompute
from tests.interop.trainers.started import Mixture, Refused, Started, require

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
    "parallelism.expert_parallel_degree": 1,  # cf 281
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


@dataclass(frozen=True, slots=True)
class Configuration:
    """A model: sizes as ``sizes_of`` has them, the longest sequence that its rotation takes.

    ``mixture``: all of it that the model says, its layers in one chunk; ``flex``: its attention is
    FlexAttention (models/common/config_utils.py 71-101).
    """

    sizes: tuple[int, ...]
    longest: int
    mixture: Mixture
    flex: bool = True


def _mixture(layers: str, **parts: object) -> Mixture:
    empty = Mixture((layers,), (), (), (), 0, 0, (1, 1, 1), "alltoall", False, ())
    return replace(empty, **parts)  # type: ignore[arg-type]


def _dense(longest: int, *sizes: int) -> Configuration:
    return Configuration(sizes, longest, _mixture("*-" * sizes[0]))


# models/{llama3,qwen3,deepseek_v3,gpt_oss}/__init__.py and their config_registry.py; sizes as of a
# model: layers, hidden, ffn, heads, kv_heads, head size, vocabulary, gated, tied
CONFIGURATIONS: Mapping[tuple[str, str], Configuration] = {
    ("llama3", "llama3_8b"): _dense(
        131072, 32, 4096, _ffn(4096, 1024, 1.3), 32, 8, 4096 // 32, 128256, 1, 0
    ),
    ("llama3", "llama3_70b"): _dense(
        131072, 80, 8192, _ffn(8192, 4096, 1.3), 64, 8, 8192 // 64, 128256, 1, 0
    ),
    ("qwen3", "qwen3_0_6b"): _dense(40960, 28, 1024, 3072, 16, 8, 128, 151936, 1, 1),
    ("qwen3", "qwen3_1_7b"): _dense(40960, 28, 2048, 6144, 16, 8, 128, 151936, 1, 1),
    ("qwen3", "qwen3_14b"): _dense(40960, 40, 5120, 17408, 40, 8, 128, 151936, 1, 0),
    ("qwen3", "qwen3_32b"): _dense(40960, 64, 5120, 25600, 64, 8, 128, 151936, 1, 0),
    ("qwen3", "qwen3_30b_a3b"): Configuration(
        (48, 2048, 0, 32, 4, 128, 151936, 1, 0),
        40960,
        _mixture("*E" * 48, experts=(128, 8, 768, 0, 0, 0, 0, 0)),
    ),
    ("deepseek_v3", "deepseek_v3_16b"): Configuration(
        (27, 2048, 10944, 16, 16, 128 + 64, 102400, 1, 0),
        4 * 4096,
        _mixture(
            "+-" + "+E" * 26,
            experts=(64, 6, 1408, 2 * 1408, 0, 0, 0, 0),
            latent=(0, 512, 128, 64, 128),
        ),
    ),
    ("deepseek_v3", "deepseek_v3_671b"): Configuration(
        (61, 7168, 18432, 128, 128, 128 + 64, 129280, 1, 0),
        4 * 4096,
        _mixture(
            "+-" * 3 + "+E" * 58,
            experts=(256, 8, 2048, 2048, 0, 8, 4, 0),
            latent=(1536, 512, 128, 64, 128),
        ),
    ),
    ("gpt_oss", "gpt_oss_20b"): Configuration(
        (24, 2880, 0, 64, 8, 64, 201088, 1, 0),
        131072,
        _mixture("wE*E" * 12, experts=(32, 4, 2880, 0, 0, 0, 0, 1), window=128),
        flex=False,
    ),
    ("gpt_oss", "gpt_oss_120b"): Configuration(
        (36, 2880, 0, 64, 8, 64, 201088, 1, 0),
        131072,
        _mixture("wE*E" * 18, experts=(128, 4, 2880, 0, 0, 0, 0, 1), window=128),
        flex=False,
    ),
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


def start(text: str, ranks: int, own: Mapping[str, Configuration]) -> Started:
    """What TorchTitan would run on so many ranks.

    own: the user's own configurations, of its module ``own``.

    Raises:
        Refused: it would not.
    """
    options = _Options(text)
    require(set(options.named) == {"module", "config"}, "config/manager.py 84-91")
    known = _configuration(options.named["module"], options.named["config"], own)
    sizes = known.sizes
    pp, replicas, shards, cp, tp = _degrees(options, ranks)
    micro_batches, chunks = _pipeline(options, pp, sizes[0])
    _check_model(options, sizes, known.longest, (pp, cp, tp))
    require(cp == 1 or known.flex, "de 177-183")
    ep = _experts(options, known.mixture, shards * cp * tp, (pp, cp))
    cut = tp if ep == 1 else 1  # ms: tp cuts experts as it cuts other MLPs, or not at all
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
        zero=_zero(options, shards, cp, (pp, tp)),
        recompute=options.recompute or Recompute.NONE,
        flash=True,  # models/common/config_utils.py 71-101: no attention that keeps scores
        dtype=_dtype(options),
        sizes=sizes,
        copies=replicas if shards * cp > 1 else 1,
        mixture=replace(
            known.mixture,
            layers=_cut(known.mixture.layers[0], chunks),
            degrees=(ranks // (pp * ep * cut), ep, cut) if known.mixture.experts else (1, 1, 1),
            graphs=() if options.switch("training.disable_cuda_graphs") else ("full",),
        ),
    )


def _cut(letters: str, chunks: tuple[int, ...]) -> tuple[str, ...]:
    """Layers of two letters each."""
    ends = [2 * sum(chunks[:at]) for at in range(len(chunks) + 1)]
    return tuple(letters[start:end] for start, end in pairwise(ends))


def _experts(options: _Options, mixture: Mixture, ranks: int, degrees: tuple[int, int]) -> int:
    """ep, over the ranks of dp_shard, cp and tp."""
    ep, (pp, cp) = options.number("parallelism.expert_parallel_degree"), degrees
    require(ep >= 1 and ranks % ep == 0, "pd 187-192")
    require(not mixture.experts or mixture.experts[0] % ep == 0, "de 201-209")
    require(mixture.dispatcher == "alltoall" or ep > 1, "td 1225-1229")
    require(not mixture.ahead or pp == 1, "mt 198-201")
    require(not mixture.ahead or cp == 1, "mt 203-206")
    if not options.switch("training.disable_cuda_graphs"):
        require(pp == 1, "tr 171-176")
        require(ep == 1, "tr 181-202: its dispatcher waits for the host")
    return ep


def _configuration(module: str, config: str, own: Mapping[str, Configuration]) -> Configuration:
    if module == "own" and config in own:
        found = own[config]
        require(found.sizes[7] == 1, "models/common/feed_forward.py 34-60: its MLPs are gated")
        letters, parts = found.mixture.layers[0], found.mixture
        pairs = [letters[at : at + 2] for at in range(0, len(letters), 2)]
        require(
            len(pairs) == found.sizes[0]
            and all(one[0] in "*+w" and one[1:] in ("-", "E") for one in pairs),
            "models/common/decoder.py: a block is attention and an MLP",
        )
        require(not parts.chunked, "models/common/attention.py: no mask of chunks")
        require(not parts.experts or parts.experts[4] == 0, "models/common/moe.py: whole tokens")
        return found
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
    ffn, heads, kv_heads, vocab, tied = (sizes[at] for at in (2, 3, 4, 6, 8))
    require(not tied or pp == 1, "de 168-171")
    require(heads % tp == 0 and kv_heads % tp == 0, "de 185-199")
    require(ffn % tp == 0, "models/common: w1 and w3 are cut by tp")
    parts = math.ceil(vocab / tp)
    require(tp == 1 or vocab - parts * (tp - 1) > 0, "components/loss.py 130-143")
    require(options.number("training.max_context_length") <= longest, "de 217-225")


def _zero(options: _Options, shards: int, cp: int, degrees: tuple[int, int]) -> int:
    """distributed/fsdp.py 28-60 (shards over dp_shard and cp), 63-79 (experts), 105-135."""
    kept, (pp, tp) = options.word("parallelism.fsdp_reshard_after_forward"), degrees
    ep = options.number("parallelism.expert_parallel_degree")
    if shards * cp == 1:
        require(ep in (1, tp), "no strategy: experts are sharded, and nothing else")
        return 0
    return 3 if kept == "always" or (kept == "default" and pp == 1) else 2


def _dtype(options: _Options) -> str:
    """cf 87-100: masters in float32, products in bfloat16."""
    words = (options.word("training.dtype"), options.word("training.mixed_precision_param"))
    return "bf16" if words == ("float32", "bfloat16") else "other"
