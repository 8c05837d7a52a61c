"""How a training is spread over devices: degrees of parallelism and what goes with them."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from itertools import groupby
from math import inf, prod
from types import MappingProxyType
from typing import Any, TypeGuard

from p2smt.cluster.link import Device
from p2smt.errors import InputError
from p2smt.units import parse_count

AXES = ("pp", "dp", "cp", "tp")
"""Parallelism axes in Megatron's order, outermost first."""
EXPERT_AXES = ("pp", "ed", "ep", "et")
"""Those of experts over the same devices: data, expert and tensor parallelism of experts."""
SHARD_AXES = ("pp", "dpr", "dps", "cp", "tp")
"""``AXES`` where ZeRO's shards have copies: dp is copies, and ranks over which one is sharded."""
EXPERT_SHARD_AXES = ("pp", "edr", "eds", "ep", "et")
"""The same of ``EXPERT_AXES``."""
PEAK_OF = MappingProxyType(
    {"bf16": "bf16", "fp16": "fp16", "fp8": "fp8", "mxfp8": "fp8", "nvfp4": "fp4"}
)
"""Data types of matrix products, and the peak of a device that each has."""
DTYPES = tuple(PEAK_OF)
SIXTEEN = ("bf16", "fp16")
"""Data types that are not of low precision."""
MODULES = (*("layernorm", "core_attn", "mla_up_proj", "mlp", "moe", "moe_act", "shared_experts"),)
"""Modules that may be computed again one by one, as Megatron-LM names them."""
DISPATCHERS = ("alltoall", "flex")
"""How tokens go to experts: by an all-to-all, or once to each node or rack that needs them."""
KIND_FIELDS = (
    *("ep", "etp", "dispatcher", "overlap", "modules", "graphs"),
    *("fp8_attention", "fp8_params"),
)
"""Fields that the formulas of equal dense layers in 16 bits do not know."""
RARE_FIELDS = (
    *("recompute_layers", "dp_replicate", "shared_overlap", "mtp_chunk"),
    *("imbalance", "optimizer_bytes", "offload"),
)
"""Fields that few trainings have."""
MIXTURE_FIELDS = (*KIND_FIELDS, *RARE_FIELDS)
"""Fields that dense models in 16 bits mostly leave at their defaults: they stand in files only
where they are not."""
OPTIMIZER_BYTES = 12
"""Of a parameter: itself and two moments of Adam in fp32."""
LEAST_OPTIMIZER_BYTES = 4
"""The least that Megatron-LM's precision-aware optimizer keeps: what bf16 lacks of an fp32
parameter (2), and two moments in 8 bits."""
GRAPHS = ("none", "partial", "full")
"""Which kernels are launched as captured CUDA graphs."""


_SWITCHES = ("sequence_parallel", "flash", "overlap", "fp8_attention", "fp8_params", "dropout")


class Recompute(Enum):
    """What the backward pass computes again instead of keeping it (arXiv 2205.05198)."""

    NONE = "none"
    SELECTIVE = "selective"
    FULL = "full"


@dataclass(frozen=True, slots=True)
class Strategy:
    """Degrees and switches of one training run.

    ``tp`` tensor, ``pp`` pipeline (1F1B, interleaved over ``vpp`` chunks a stage), ``dp`` data and
    ``cp`` context parallelism (ring attention); ``micro_batch`` sequences go through a pipeline at
    once; ``sequence_parallel``: activations between the matrices of tp are split over it, too;
    ``zero``: what dp and cp shard, by the stages of ZeRO: 1 optimizer, 2 also gradients, 3 also
    parameters;
    ``flash``: fused attention, which keeps no scores; ``dtype`` of parameters and activations.
    ``split``: layers of each of the pp * vpp chunks in the order of the model; empty: evenly.
    Of a mixture of experts, ``ep`` expert and ``etp`` expert tensor parallelism lie over the
    devices of dp, cp and tp; ``dispatcher`` moves tokens, beside computing if ``overlap``;
    ``modules`` are computed again one by one.  ``graphs``: which kernels are captured;
    ``fp8_attention``: the core of attention is in 8 bits; ``fp8_params``: parameters are kept and
    gathered in the low precision of ``dtype`` alone, not in 16 bits beside it.  ``dropout``: hidden
    states and attention are dropped out, and masks of it kept.  ``recompute_layers``: with full
    recomputation how many layers of each chunk, from its first, are computed again (0: all).
    ``dp_replicate``: ZeRO shards over the ranks of dp and cp that lie in one of so many parts of
    dp, and between the parts shards are copies (HSDP); ``shared_overlap``: tokens move beside the
    products of shared experts; ``mtp_chunk``: which chunk of ``split``, from 1, has the layers of
    multi-token prediction (0: the last); ``imbalance``: how many times the tokens of a balanced
    routing the busiest rank of ep has; ``optimizer_bytes`` of a parameter: itself and two moments
    of Adam; ``offload``: the part of the layers whose activations wait in the host's memory.
    """

    tp: int = 1
    pp: int = 1
    dp: int = 1
    cp: int = 1
    vpp: int = 1
    micro_batch: int = 1
    sequence_parallel: bool = False
    zero: int = 0
    recompute: Recompute = Recompute.NONE
    flash: bool = True
    dtype: str = "bf16"
    split: tuple[int, ...] = ()
    dropout: bool = False
    ep: int = 1
    etp: int = 1
    dispatcher: str = "alltoall"
    overlap: bool = False
    modules: tuple[str, ...] = ()
    graphs: str = "none"
    fp8_attention: bool = False
    fp8_params: bool = True
    recompute_layers: int = 0
    dp_replicate: int = 1
    shared_overlap: bool = False
    mtp_chunk: int = 0
    imbalance: float = 1.0
    optimizer_bytes: int = OPTIMIZER_BYTES
    offload: float = 0.0

    def __post_init__(self) -> None:
        for key in (*AXES, "vpp", "micro_batch", "ep", "etp", "dp_replicate"):
            if not is_whole(getattr(self, key)) or getattr(self, key) < 1:
                rule = "must be a whole number, at least 1"
                raise InputError(f"strategy {key}={getattr(self, key)!r:.40}", rule)
        if not is_whole(self.zero) or not 0 <= self.zero <= 3:
            raise InputError(f"strategy zero={self.zero!r:.40}", "ZeRO has stages 0 to 3")
        for key in _SWITCHES:
            if not isinstance(getattr(self, key), bool):
                raise InputError(f"strategy {key}={getattr(self, key)!r:.40}", "is yes or no")
        if not isinstance(self.recompute, Recompute):
            rule = f"must be one of {', '.join(kind.value for kind in Recompute)}"
            raise InputError(f"strategy recompute={self.recompute!r:.40}", rule)
        named = (("dtype", DTYPES), ("dispatcher", DISPATCHERS), ("graphs", GRAPHS))
        for key, known in named:
            if getattr(self, key) not in known:
                rule = f"must be one of {', '.join(known)}"
                raise InputError(f"strategy {key}={getattr(self, key)!r:.40}", rule)
        if not set(self.modules) <= set(MODULES) or len(set(self.modules)) < len(self.modules):
            rule = f"must be some of {', '.join(MODULES)}, each once"
            raise InputError(f"strategy recompute={'+'.join(self.modules)[:60]}", rule)
        in_order = tuple(name for name in MODULES if name in self.modules)
        object.__setattr__(self, "modules", in_order)
        if self.modules and self.recompute is not Recompute.NONE:
            rule = "computes more than these modules again: name modules, or one of the words"
            raise InputError(f"strategy recompute={self.recompute.value}", rule)
        if not (self.fp8_params or self.low_precision):
            rule = f"says how a dtype of low precision keeps parameters, which {self.dtype} is not"
            raise InputError("strategy fp8_params=0", rule, "give dtype=mxfp8, say, or drop it")
        if not is_whole(self.recompute_layers) or self.recompute_layers < 0:
            rule = "must be a whole number of layers of a chunk"
            raise InputError(f"strategy recompute=full:{self.recompute_layers!r:.40}", rule)
        if self.recompute_layers and self.recompute is not Recompute.FULL:
            rule = f"counts layers that are computed again whole, not {self.recompute.value}"
            given = f"strategy recompute_layers={self.recompute_layers}"
            raise InputError(given, rule, "write recompute=full:7")
        if not all(map(is_whole, self.split)):
            raise InputError(f"strategy split={self.split!r:.60}", "must hold whole numbers")
        self._check_rare()

    def _check_rare(self) -> None:
        """Raise InputError if a field that few trainings have lies outside of its range."""
        for key, holds, rule in (
            ("mtp_chunk", self._is_chunk, "is a chunk of a split that is given, from 1"),
            ("imbalance", lambda: 1 <= self.imbalance < inf, "must be 1 (balanced) or more"),
            ("optimizer_bytes", self._is_state, _STATE_RULE),
            ("offload", lambda: 0 <= self.offload <= 1, "must be a part, from 0 to 1"),
        ):
            if isinstance(getattr(self, key), bool) or not holds():
                raise InputError(f"strategy {key}={getattr(self, key)!r:.40}", rule)

    def _is_chunk(self) -> bool:
        return is_whole(self.mtp_chunk) and 0 <= self.mtp_chunk <= len(self.split)

    def _is_state(self) -> bool:
        least, most = LEAST_OPTIMIZER_BYTES, OPTIMIZER_BYTES
        return is_whole(self.optimizer_bytes) and least <= self.optimizer_bytes <= most

    @property
    def devices(self) -> int:
        """How many devices it takes."""
        return prod(self.sizes)

    @property
    def sizes(self) -> tuple[int, ...]:
        """Sizes of the axes in the order of ``AXES``."""
        return (self.pp, self.dp, self.cp, self.tp)

    @property
    def ed(self) -> int:
        """Data parallelism of experts: what ep and etp leave of dp, cp and tp."""
        return self.dp * self.cp * self.tp // (self.ep * self.etp)

    @property
    def expert_sizes(self) -> tuple[int, ...]:
        """Sizes of the axes in the order of ``EXPERT_AXES``."""
        return (self.pp, self.ed, self.ep, self.etp)

    @property
    def shard_sizes(self) -> tuple[int, ...]:
        """Sizes of the axes in the order of ``SHARD_AXES``."""
        copies = self.dp_replicate
        return (self.pp, copies, self.dp // copies, self.cp, self.tp)

    @property
    def expert_shard_sizes(self) -> tuple[int, ...]:
        """Sizes of the axes in the order of ``EXPERT_SHARD_AXES``."""
        copies = self.dp_replicate
        return (self.pp, copies, self.ed // copies, self.ep, self.etp)

    def rows(self, *, experts: bool = False) -> Mapping[str, int]:
        """The axes of a placement, outermost first, with their sizes, or those of one of experts.

        Where shards have copies, dp is these and the shards.
        """
        names: tuple[str, ...] = EXPERT_AXES if experts else AXES
        sizes = self.expert_sizes if experts else self.sizes
        if self.dp_replicate > 1:
            names = EXPERT_SHARD_AXES if experts else SHARD_AXES
            sizes = self.expert_shard_sizes if experts else self.shard_sizes
        return dict(zip(names, sizes, strict=True))

    @property
    def low_precision(self) -> bool:
        """Whether products are in 8 bits or fewer."""
        return self.dtype not in SIXTEEN

    @property
    def chunks(self) -> int:
        """Into how many parts the layers are cut."""
        return self.pp * self.vpp


_STATE_RULE = (
    f"must be a whole number from {LEAST_OPTIMIZER_BYTES} to {OPTIMIZER_BYTES}: parameter and "
    "moments, 12 in fp32, 8 with moments in 16 bits"
)


def is_whole(value: object) -> TypeGuard[int]:
    """Whether a value is a whole number."""
    return isinstance(value, int) and not isinstance(value, bool)


# What an iteration trains on.


MAX_BATCH = 10**9


@dataclass(frozen=True, slots=True)
class Batch:
    """``sequences`` of ``tokens`` each go through the model in an iteration (global batch)."""

    sequences: int
    tokens: int

    def __post_init__(self) -> None:
        for what, value in (("global batch", self.sequences), ("sequence length", self.tokens)):
            if not 1 <= value <= MAX_BATCH:
                raise InputError(f"{what} {value}", f"must be 1 to {MAX_BATCH}")


# Strategies as text, such as ``tp=8,pp=4,mbs=2,sp=1,recompute=selective``, and back.


MAX_DEGREE = 10**6
MAX_CHUNKS = 10**4
_EXAMPLE = "write it like tp=8,pp=4,dp=2"


@dataclass(frozen=True, slots=True)
class _Key:
    """What a key of the text sets: the field, how a value is read, and how it is written."""

    field: str
    read: Callable[[str, str], Any]
    write: Callable[[Any], str] = str


def _degree(text: str, given: str) -> int:
    try:
        return parse_count(text, given, MAX_DEGREE)
    except InputError:
        raise InputError(given, f"must be a whole number from 1 to {MAX_DEGREE}") from None


def _switch(text: str, given: str) -> bool:
    if text not in ("0", "1"):
        raise InputError(given, "must be 0 or 1")
    return text == "1"


def _zero(text: str, given: str) -> int:
    if text not in ("0", "1", "2", "3"):
        raise InputError(given, "ZeRO has stages 0 to 3", "write zero=1")
    return int(text)


def _number(text: str, given: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise InputError(given, "is no number", "write it like 1.3 or 0.5") from None


def _number_text(value: float) -> str:
    short = f"{value:g}"
    return short if float(short) == value else repr(value)


def _one_of(names: Sequence[str]) -> Callable[[str, str], str]:
    def read(text: str, given: str) -> str:
        if text not in names:
            raise InputError(given, f"must be one of {', '.join(names)}")
        return text

    return read


def _recompute(text: str, given: str) -> Recompute | int | tuple[str, ...]:
    """none, selective, full, layers of a chunk (``full:7``), or modules (``moe_act+layernorm``)."""
    if text.startswith("full:"):
        return _degree(text.removeprefix("full:").strip(), given)
    if text in MODULES or "+" in text:
        return tuple(_one_of(MODULES)(name.strip(), given) for name in text.split("+"))
    return Recompute(_one_of([*(kind.value for kind in Recompute), *MODULES])(text, given))


def _split(text: str, given: str) -> tuple[tuple[int, ...], int]:
    """Layers such as ``19/20*2/21m/0``: of each chunk in the order of the model.

    The second is the chunk, from 1, with ``m``: layers of multi-token prediction (0: none has it).
    """
    layers: list[int] = []
    ahead = 0
    for part in text.split("/"):
        count, star, times = part.partition("*")
        if count.strip().endswith("m"):
            if ahead or star:
                raise InputError(given, _ONE_CHUNK, "write m once, like 16/16/15m/0")
            count, ahead = count.strip().removesuffix("m"), len(layers) + 1
        layers += [_layers(count, given)] * (_degree(times, given) if star else 1)
        if len(layers) > MAX_CHUNKS:
            raise InputError(given, f"has more than {MAX_CHUNKS} chunks")
    return tuple(layers), ahead


_ONE_CHUNK = "has layers of multi-token prediction (m) twice, and they lie in one chunk together"


def _layers(text: str, given: str) -> int:
    if text.strip() == "0":
        return 0
    try:
        return parse_count(text, given, MAX_DEGREE)
    except InputError:
        remedy = "write layers of each chunk like 19/20/20/21 or 19/20*2/21"
        raise InputError(given, "holds what is no number of layers", remedy) from None


def split_text(strategy: Strategy) -> str:
    """Layers of each chunk; equal chunks that follow each other are written once."""
    chunks = enumerate(strategy.split, start=1)
    texts = (f"{layers}{'m' * (at == strategy.mtp_chunk)}" for at, layers in chunks)
    runs = [(text, len(list(alike))) for text, alike in groupby(texts)]
    return "/".join(f"{text}*{times}" if times > 1 else text for text, times in runs)


def _switch_text(value: bool) -> str:
    return str(int(value))


_KEYS: Mapping[str, _Key] = MappingProxyType(
    {
        "tp": _Key("tp", _degree),
        "pp": _Key("pp", _degree),
        "dp": _Key("dp", _degree),
        "cp": _Key("cp", _degree),
        "vpp": _Key("vpp", _degree),
        "mbs": _Key("micro_batch", _degree),
        "sp": _Key("sequence_parallel", _switch, _switch_text),
        "zero": _Key("zero", _zero),
        "recompute": _Key("recompute", _recompute),
        "flash": _Key("flash", _switch, _switch_text),
        "dtype": _Key("dtype", _one_of(DTYPES)),
        "split": _Key("split", _split),
        "ep": _Key("ep", _degree),
        "etp": _Key("etp", _degree),
        "dispatcher": _Key("dispatcher", _one_of(DISPATCHERS)),
        "overlap": _Key("overlap", _switch, _switch_text),
        "graphs": _Key("graphs", _one_of(GRAPHS)),
        "fp8_attention": _Key("fp8_attention", _switch, _switch_text),
        "fp8_params": _Key("fp8_params", _switch, _switch_text),
        "dropout": _Key("dropout", _switch, _switch_text),
        "dp_replicate": _Key("dp_replicate", _degree),
        "shared_overlap": _Key("shared_overlap", _switch, _switch_text),
        "imbalance": _Key("imbalance", _number, _number_text),
        "optimizer_bytes": _Key("optimizer_bytes", _degree),
        "offload": _Key("offload", _number, _number_text),
    }
)
KEYS = tuple(_KEYS)
"""Keys of the text, in the order in which a strategy is written."""
LEAST = ("tp", "pp", "dp", "cp", "vpp", "mbs", "sp", "zero", "recompute")
"""Keys that are always written."""
_HABITS = frozenset(("mbs", "sp", "zero", "recompute"))
"""Of these who writes a strategy down has habits, which defaults may not be."""


_CAPACITY = "drops tokens beyond a capacity, and every token goes to its experts here"
_REFUSED: Mapping[str, str] = MappingProxyType(
    {
        "cp_comm_type": "context parallelism is p2p (ring attention), no other kind",
        "schedule": "the schedule is 1F1B, interleaved where vpp > 1, no other",
        "capacity_factor": _CAPACITY,
        "moe_expert_capacity_factor": _CAPACITY,
    }
)
"""Names of what trainers have and no price is known of, and why none is taken."""


def parse_strategy(text: str) -> Strategy:
    """The strategy of a text; the order of its keys says nothing.

    Keys: ``tp``, ``pp``, ``dp``, ``cp`` (degrees), ``vpp`` (chunks a stage), ``mbs``
    (micro-batch), ``sp`` and ``flash`` (0 or 1), ``zero`` (0 to 3), ``recompute`` (none, selective,
    full, ``full:7`` for the first 7 layers of each chunk, or modules such as
    ``moe_act+layernorm``), ``dtype`` (bf16, fp16, fp8, mxfp8, nvfp4), ``split`` (layers of each
    chunk: ``19/20*2/21m/0``, m where multi-token prediction is), ``dp_replicate`` (copies of what
    ZeRO shards), ``optimizer_bytes`` (of a parameter), ``offload`` (part of the layers); of
    mixtures ``ep``, ``etp``, ``dispatcher`` (alltoall, flex), ``overlap``, ``shared_overlap``,
    ``imbalance``, ``graphs`` (none, partial, full), ``fp8_attention``, ``fp8_params``; and
    ``dropout``.  What is not given has the value that :class:`~p2smt.training.strategy.Strategy`
    gives it.

    Raises:
        InputError: a key that is not known or stands twice, or a value that is none of that key.
    """
    found: dict[str, Any] = {}
    names: set[str] = set()
    for part in text.split(","):
        name, equals, value = (one.strip() for one in part.partition("="))
        given = f"strategy {part.strip()[:40]!r}"
        if not equals or not name:
            raise InputError(given, "is not KEY=VALUE", _EXAMPLE)
        key = _key_of(name, given)
        if name in names:
            raise InputError(given, f"{name} is given twice", "give each key once")
        names.add(name)
        found |= _fields(key.field, key.read(value, given))
    return Strategy(**found)


def spread_strategy(text: str, devices: int, device: Device | None = None) -> Strategy:
    """The strategy of a text; without ``dp`` its replicas fill so many devices.

    Where the text says nothing of ``flash``, scores are kept on a ``device`` that has no kernels
    of fused attention.

    Raises:
        InputError: as of :func:`parse_strategy`, or no number of replicas fills them.
    """
    found, told = parse_strategy(text), _told(text)
    if device is not None and not device.fused_attention and "flash" not in told:
        found = replace(found, flash=False)
    if "dp" in told:
        return found
    dp, rest = divmod(devices, found.devices)
    if rest:
        given = f"strategy {text[:60]!r}"
        rule = f"its tp * pp * cp = {found.devices} does not divide the {devices} devices"
        raise InputError(given, rule, "choose other degrees, or other devices")
    return replace(found, dp=dp)


def with_given(strategy: Strategy, text: str, given: Mapping[str, Any]) -> Strategy:
    """A strategy, which ``text`` told, with fields that are given beside it.

    Raises:
        InputError: the text says another value of one of them.
    """
    told = _told(text)
    for name, value in given.items():
        key, own = key_of(name), getattr(strategy, name)
        if key in told and own != value:
            write = _KEYS[key].write
            rule = f"is {key}={write(value)} in an option beside it"
            remedy = "keep one of them, or let them agree"
            raise InputError(f"strategy {key}={write(own)}", rule, remedy)
    return replace(strategy, **given)


def _told(text: str) -> list[str]:
    """The keys of a text."""
    return [part.partition("=")[0].strip() for part in text.split(",")]


def assumed_parts(strategy: Strategy, text: str, mixture: bool = False) -> tuple[str, ...]:
    """What a text says nothing of and the time depends on, with the value that it has then.

    Such as ``mbs=1``; nothing of what the degrees leave without effect.  Of a ``mixture`` also how
    experts are cut, of which trainers have other defaults.
    """
    told = {*_told(text)}
    if strategy.tp == 1:
        told.add("sp")
    if strategy.dp * strategy.cp == 1:
        told.add("zero")
    parts = (part for part in strategy_text(strategy).split(","))
    found = tuple(part for part in parts if part.partition("=")[0] in _HABITS - told)
    cut = {"ep": strategy.ep, "etp": strategy.etp} if mixture else {}
    return (*found, *(f"{key}={value}" for key, value in cut.items() if key not in told))


def uncut_words(strategy: Strategy, assumed: Sequence[str]) -> str:
    """That Megatron-LM would cut experts, where it is assumed that they are not; empty: no more.

    Source: NVIDIA/Megatron-LM, ``megatron/training/arguments.py``: where
    ``expert_tensor_parallel_size`` is None it is ``tensor_model_parallel_size``.
    """
    if strategy.tp == 1 or "etp=1" not in assumed:
        return ""
    return f"Megatron-LM's default is tp: etp={strategy.tp}"


def spread_text(strategy: Strategy) -> str:
    """The text of a strategy without ``dp``, which so many devices as there are tell."""
    return ",".join(one for one in strategy_text(strategy).split(",") if one[:3] != "dp=")


def _fields(field: str, read: Any) -> dict[str, Any]:
    """What a value that was read sets: ``recompute`` may name modules, or count layers, ``split``
    also says where multi-token prediction is."""
    match field, read:
        case "recompute", tuple():
            return {"modules": read}
        case "recompute", int():
            return {field: Recompute.FULL, "recompute_layers": read}
        case "split", (layers, ahead):
            return {field: layers, "mtp_chunk": ahead}
        case _:
            return {field: read}


def parse_value(key: str, value: str, given: str) -> Any:
    """The value of one key, such as ``tp`` or ``recompute``.

    Raises:
        InputError: a key that is not known, or a value that is none of that key; names ``given``.
    """
    return _key_of(key, given).read(value, given)


def field_of(key: str, given: str) -> str:
    """The field of a strategy that a key sets.

    Raises:
        InputError: the key is not known; names ``given``.
    """
    return _key_of(key, given).field


def _key_of(name: str, given: str) -> _Key:
    if name in _REFUSED:
        raise InputError(given, _REFUSED[name], f"leave {name} out")
    if name not in _KEYS:
        near = difflib.get_close_matches(name, KEYS, 1)
        meant = f"did you mean {near[0]}?" if near else f"keys are {', '.join(KEYS)}"
        raise InputError(given, "is no key of a strategy", meant)
    return _KEYS[name]


def key_of(field: str) -> str:
    """The key of a field of a strategy, such as ``mbs`` of ``micro_batch``."""
    return next(name for name, key in _KEYS.items() if key.field == field)


def recompute_text(strategy: Strategy) -> str:
    """What a strategy computes again, as its text has it."""
    if strategy.recompute_layers:
        return f"full:{strategy.recompute_layers}"
    return "+".join(strategy.modules) or strategy.recompute.value


def value_text(strategy: Strategy, name: str) -> str:
    """The value of a key, or of a field that has none of its own, as the text has it."""
    if name == "split":
        return split_text(strategy) or "even"
    key = _KEYS.get(name)
    return str(getattr(strategy, name)) if key is None else key.write(getattr(strategy, key.field))


def strategy_text(strategy: Strategy) -> str:
    """The text of a strategy, which :func:`parse_strategy` reads back to the same.

    Keys besides the usual ones stand there where their value is not the default.
    """
    default = Strategy()
    parts = []
    for name, key in _KEYS.items():
        value = getattr(strategy, key.field)
        if name == "recompute":
            parts.append(f"recompute={recompute_text(strategy)}")
        elif name == "split":
            parts += [f"split={split_text(strategy)}"] if strategy.split else []
        elif name in LEAST or value != getattr(default, key.field):
            parts.append(f"{name}={key.write(value)}")
    return ",".join(parts)
