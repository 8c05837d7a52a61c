"""Which strategies can run: one table of rules, for one strategy or for arrays of them.

Values are arrays of one length by the name of the field, with ``sequences`` where batches differ; a
rule says where they obey it.  What obeys a rule obeys it also with ``vpp``, ``micro_batch`` and the
switches at their least: a search may leave out whole families by that (a test holds it).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from p2smt.errors import InputError
from p2smt.training.formulas.stages import splits_evenly
from p2smt.training.megatron_rules import given_violations
from p2smt.training.strategy import (
    DISPATCHERS,
    Batch,
    Recompute,
    Strategy,
    key_of,
    recompute_text,
)
from p2smt.training.transformer import Transformer

FieldValues = Mapping[str, npt.NDArray[np.int64]]
"""Values of fields of strategies by name; switches are 0 or 1."""
_BoolArray = npt.NDArray[np.bool_]
FIELDS = ("tp", "pp", "dp", "cp", "vpp", "micro_batch", "sequence_parallel", "zero")
"""Fields that the rules read."""


@dataclass(frozen=True, slots=True)
class InvalidStrategy:
    """A rule that a strategy breaks: its name, what was given, the rule, and a remedy."""

    name: str
    given: str
    rule: str
    remedy: str

    def error(self) -> InputError:
        """The same as an error for the user, which names the rule."""
        return InputError(f"strategy {self.given}", f"{self.rule} (rule {self.name})", self.remedy)


@dataclass(frozen=True, slots=True)
class _Setting:
    """What strategies are judged for."""

    model: Transformer
    batch: Batch
    devices: int


@dataclass(frozen=True, slots=True)
class ValidityRule:
    """A rule by name; ``holds`` says for which of the strategies it does.

    ``fields`` are those it reads, ``sentence`` and ``remedy`` may name ``{layers}`` and the like.
    """

    name: str
    fields: tuple[str, ...]
    sentence: str
    remedy: str
    holds: Callable[[_Setting, FieldValues], _BoolArray]
    given: Callable[[_Setting, Strategy], str] | None = None
    """Says what was given; None: the fields with their numbers."""


def _divides(
    divisor: npt.NDArray[np.int64] | int, number: npt.NDArray[np.int64] | int
) -> _BoolArray:
    return np.asarray(np.remainder(number, divisor) == 0, dtype=np.bool_)


def _devices(setting: _Setting, values: FieldValues) -> _BoolArray:
    product = values["pp"] * values["dp"] * values["cp"] * values["tp"]
    return np.asarray(product == setting.devices, dtype=np.bool_)


def _heads(setting: _Setting, values: FieldValues) -> _BoolArray:
    return _divides(values["tp"], setting.model.heads)


def _kv_heads(setting: _Setting, values: FieldValues) -> _BoolArray:
    """Where several ranks share a head of keys and values, each keeps and computes it whole, which
    the formulas count.

    TransformerConfig of Megatron Core takes that from 0.16 on; before, num_query_groups % tp == 0.
    """
    tp, kv_heads = values["tp"], setting.model.kv_heads
    return _divides(tp, kv_heads) | _divides(kv_heads, tp)


def _ffn(setting: _Setting, values: FieldValues) -> _BoolArray:
    return _divides(values["tp"], setting.model.ffn)


def _mamba(setting: _Setting, values: FieldValues) -> _BoolArray:
    one = setting.model.mamba
    whole = math.gcd(one.heads, one.groups) if one else 0
    return _divides(values["tp"], whole)


def _sequence(setting: _Setting, values: FieldValues) -> _BoolArray:
    parts = np.where(values["cp"] > 1, 2 * values["cp"], 1)
    return _divides(parts, setting.batch.tokens)


def _sequence_parallel(setting: _Setting, values: FieldValues) -> _BoolArray:
    split = values["cp"] * np.where(values["sequence_parallel"] > 0, values["tp"], 1)
    return _divides(split, setting.batch.tokens)


def _sequences(setting: _Setting, values: FieldValues) -> npt.NDArray[np.int64] | int:
    """The global batch, or that of each strategy where they differ."""
    return values.get("sequences", setting.batch.sequences)


def _batch(setting: _Setting, values: FieldValues) -> _BoolArray:
    return _divides(values["dp"] * values["micro_batch"], _sequences(setting, values))


def _interleaving(_: _Setting, values: FieldValues) -> _BoolArray:
    return np.asarray((values["vpp"] == 1) | (values["pp"] > 1), dtype=np.bool_)


def _sequence_parallel_tp(_: _Setting, values: FieldValues) -> _BoolArray:
    return np.asarray((values["sequence_parallel"] == 0) | (values["tp"] > 1), dtype=np.bool_)


def _zero(_: _Setting, values: FieldValues) -> _BoolArray:
    return np.asarray((values["zero"] == 0) | (values["dp"] * values["cp"] > 1), dtype=np.bool_)


def _schedule(setting: _Setting, values: FieldValues) -> _BoolArray:
    sequences = values["pp"] * values["dp"] * values["micro_batch"]
    return _divides(np.where(values["vpp"] > 1, sequences, 1), _sequences(setting, values))


def _layers(setting: _Setting, values: FieldValues) -> _BoolArray:
    return splits_evenly(setting.model.layers, setting.model.mtp, values["pp"] * values["vpp"])


EVEN_SPLIT = "layers"
RULES: tuple[ValidityRule, ...] = (
    ValidityRule(
        "devices",
        ("pp", "dp", "cp", "tp"),
        "pp * dp * cp * tp must be the number of devices, {devices}",
        "change dp",
        _devices,
    ),
    ValidityRule(
        "heads", ("tp",), "tp must divide the {heads} heads", "take a divisor of them", _heads
    ),
    ValidityRule(
        "kv_heads",
        ("tp",),
        "tp must divide the {kv_heads} heads of keys and values, or be a multiple of them",
        "take a divisor or a multiple",
        _kv_heads,
    ),
    ValidityRule(
        "ffn",
        ("tp",),
        "tp must divide the width {ffn} of the MLP",
        "take a divisor of it",
        _ffn,
    ),
    ValidityRule(
        "mamba",
        ("tp",),
        "tp must divide the {mamba_heads} heads and the {groups} groups of Mamba-2",
        "take a divisor of both",
        _mamba,
    ),
    ValidityRule(
        "sequence",
        ("cp",),
        "2 cp must divide the {tokens} tokens of a sequence (a device has two parts of it)",
        "take a smaller cp, or sequences of another length",
        _sequence,
    ),
    ValidityRule(
        "sequence_parallel",
        ("cp", "tp", "sequence_parallel"),
        "cp, and cp * tp with sp=1, must divide the {tokens} tokens of a sequence",
        "take a smaller cp or tp, or sp=0",
        _sequence_parallel,
    ),
    ValidityRule(
        "sequence_parallel_tp",
        ("tp", "sequence_parallel"),
        "sequence parallelism (sp=1) splits over tp, which must be 2 or more",
        "take sp=0, or a larger tp",
        _sequence_parallel_tp,
    ),
    ValidityRule(
        "zero",
        ("dp", "cp", "zero"),
        "ZeRO (zero=1 to 3) shards over dp and cp, so dp * cp must be 2 or more",
        "take zero=0, or a larger dp or cp",
        _zero,
    ),
    ValidityRule(
        "batch",
        ("dp", "micro_batch"),
        "dp * mbs must divide the global batch of {sequences} sequences",
        "take another dp or mbs, or another batch",
        _batch,
    ),
    ValidityRule(
        "interleaving",
        ("pp", "vpp"),
        "several chunks a stage (vpp) need several stages (pp)",
        "take vpp=1",
        _interleaving,
    ),
    ValidityRule(
        "schedule",
        ("pp", "vpp", "dp", "micro_batch"),
        "with vpp > 1, pp must divide the number of micro-batches, {sequences} / (dp * mbs)",
        "take a smaller mbs, or vpp=1",
        _schedule,
    ),
    ValidityRule(
        EVEN_SPLIT,
        ("pp", "vpp"),
        "pp * vpp must divide the {layers} layers, or {layers} + 2 (embedding and logits counted)"
        "{ahead}",
        "give a split",
        _layers,
    ),
)
"""Every rule on degrees; the first that is broken is named first."""


def obey(model: Transformer, batch: Batch, values: FieldValues, devices: int) -> _BoolArray:
    """Which strategies of arrays obey every rule (their layers being split evenly)."""
    setting, found = _Setting(model, batch, devices), np.ones(len(values["tp"]), dtype=bool)
    for rule in RULES:
        found &= rule.holds(setting, values)
    return found


def violations(
    model: Transformer, batch: Batch, strategy: Strategy, devices: int
) -> tuple[InvalidStrategy, ...]:
    """The rules that a strategy breaks, in the order of the table."""
    values = {name: np.array([getattr(strategy, name)], dtype=np.int64) for name in FIELDS}
    setting = _Setting(model, batch, devices)
    rules = [rule for rule in RULES if not (strategy.split and rule.name == EVEN_SPLIT)]
    broken = [rule for rule in rules if not rule.holds(setting, values)[0]]
    found = tuple(_invalid(rule, setting, strategy) for rule in broken)
    found += _split(model, strategy) + tuple(_switch_violations(model, batch, strategy))
    return found or tuple(InvalidStrategy(*one) for one in given_violations(model, strategy))


def check(model: Transformer, batch: Batch, strategy: Strategy, devices: int) -> None:
    """Whether a strategy can run.

    Raises:
        InputError: it breaks a rule, which the error names.
    """
    for broken in violations(model, batch, strategy, devices):
        raise broken.error()


def broken_rules(
    model: Transformer, batch: Batch, values: FieldValues, devices: int
) -> Mapping[str, _BoolArray]:
    """Where strategies of arrays break each rule, by its name (their layers being split evenly)."""
    setting = _Setting(model, batch, devices)
    return {rule.name: ~rule.holds(setting, values) for rule in RULES}


def sentence_of(
    rule: ValidityRule, model: Transformer, batch: Batch, devices: int, sequences: str = ""
) -> str:
    """A rule in words, with the numbers of a model and a batch, or with so many ``sequences``."""
    return rule.sentence.format(
        devices=devices,
        heads=model.heads,
        kv_heads=model.kv_heads,
        ffn=model.ffn,
        layers=model.layers,
        ahead=f", or {model.layers} + {model.mtp} + 2 (MTP counted, too)" if model.mtp else "",
        tokens=batch.tokens,
        sequences=sequences or batch.sequences,
        experts=model.experts.count if model.experts else 0,
        width=model.experts.width if model.experts else 0,
        shared_width=model.experts.shared_width if model.experts else 0,
        mamba_heads=model.mamba.heads if model.mamba else 0,
        groups=model.mamba.groups if model.mamba else 0,
    )


def _invalid(rule: ValidityRule, setting: _Setting, strategy: Strategy) -> InvalidStrategy:
    given = rule.given(setting, strategy) if rule.given else _numbers(strategy, rule.fields)
    sentence = sentence_of(rule, setting.model, setting.batch, setting.devices)
    return InvalidStrategy(rule.name, given, sentence, rule.remedy)


def _numbers(strategy: Strategy, names: Sequence[str]) -> str:
    return ",".join(f"{key_of(name)}={int(getattr(strategy, name))}" for name in names)


def _split(model: Transformer, strategy: Strategy) -> tuple[InvalidStrategy, ...]:
    """What is wrong with the layers of each chunk, where they are given."""
    split = strategy.split
    if not split:
        return ()
    given, remedy = f"split={','.join(map(str, split))}"[:80], "leave it out for an even one"
    if len(split) != strategy.chunks:
        rule = f"must have one number for each of the pp * vpp = {strategy.chunks} chunks"
        return (InvalidStrategy("split", given, rule, remedy),)
    if min(split) < 0 or sum(split) != model.layers:
        rule = f"must be numbers from 0 whose sum is the {model.layers} layers"
        return (InvalidStrategy("split", given, rule, remedy),)
    return ()


# Rules on what goes with the degrees, above all in mixtures of experts.  Besides the fields by name
# they read ``full`` and ``moe``, whether layers or mixtures are computed again, and ``partial`` and
# ``captured``, whether graphs have some of the kernels or all; ``dispatcher`` is its place in
# ``DISPATCHERS``.


def _experts(setting: _Setting, values: FieldValues) -> _BoolArray:
    assert setting.model.experts
    return _divides(values["ep"], setting.model.experts.count)


def _width(setting: _Setting, values: FieldValues) -> _BoolArray:
    assert setting.model.experts
    return _divides(values["etp"], setting.model.experts.width)


def _shared_width(setting: _Setting, values: FieldValues) -> _BoolArray:
    assert setting.model.experts
    return _divides(values["tp"], setting.model.experts.shared_width)


def _captured_experts(_: _Setting, values: FieldValues) -> _BoolArray:
    moved = (values["ep"] > 1) & (values["dispatcher"] != DISPATCHERS.index("flex"))
    return np.asarray((values["captured"] == 0) | ~moved, dtype=np.bool_)


def _expert_ranks(_: _Setting, values: FieldValues) -> _BoolArray:
    ranks = values["dp"] * values["cp"] * values["tp"]
    return _divides(values["ep"] * values["etp"], ranks)


def _expert_sp(_: _Setting, values: FieldValues) -> _BoolArray:
    return np.asarray((values["tp"] == 1) | (values["sequence_parallel"] > 0), dtype=np.bool_)


def _without_overlap(values: FieldValues, wrong: npt.NDArray[np.bool_] | bool) -> _BoolArray:
    return np.asarray((values["overlap"] == 0) | np.logical_not(wrong), dtype=np.bool_)


GRAPH_RULE = ValidityRule(
    "graphs",
    ("recompute", "graphs"),
    "whole layers are computed again with no graphs, or with full ones",
    "take graphs=none",
    lambda _, values: np.asarray(values["full"] + values["partial"] < 2, dtype=np.bool_),
    lambda _, one: f"recompute={recompute_text(one)},graphs={one.graphs}",
)
MIXTURE_RULES: tuple[ValidityRule, ...] = (
    ValidityRule(
        "ep", ("ep",), "must divide the {experts} experts", "take a divisor of them", _experts
    ),
    ValidityRule(
        "etp", ("etp",), "must divide the width of an expert, {width}", "take etp=1", _width
    ),
    ValidityRule(
        "expert-ranks",
        ("ep", "etp", "dp", "cp", "tp"),
        "ep * etp must divide dp * cp * tp",
        "take fewer, or other degrees",
        _expert_ranks,
    ),
    ValidityRule(
        "expert-sp",
        ("tp", "sequence_parallel"),
        "experts with tp > 1 need sequence parallelism (moe_layer.py)",
        "add sp=1",
        _expert_sp,
    ),
    ValidityRule(
        "overlap",
        ("overlap", "ep"),
        "overlap=1 needs ep > 1",
        "take overlap=0",
        lambda _, values: _without_overlap(values, values["ep"] == 1),
    ),
    ValidityRule(
        "overlap",
        ("overlap", "pp", "vpp"),
        "overlap=1 needs vpp > 1 where pp > 1",
        "take overlap=0",
        lambda _, values: _without_overlap(values, (values["pp"] > 1) & (values["vpp"] == 1)),
    ),
    ValidityRule(
        "overlap",
        ("overlap", "recompute"),
        "overlap=1 allows neither full recomputation nor that of moe",
        "take overlap=0",
        lambda _, values: _without_overlap(values, (values["full"] + values["moe"]) > 0),
        lambda _, one: f"overlap=1,recompute={recompute_text(one)}",
    ),
    ValidityRule(
        "overlap",
        ("overlap",),
        "overlap=1 allows one layer of MTP at most",
        "take overlap=0",
        lambda setting, values: _without_overlap(values, setting.model.mtp > 1),
        lambda setting, _: f"overlap=1,mtp={setting.model.mtp}",
    ),
    ValidityRule(
        "shared-width",
        ("tp",),
        "tp must divide the width {shared_width} of shared experts",
        "take a divisor of it",
        _shared_width,
    ),
    GRAPH_RULE,
    ValidityRule(
        "graphs-experts",
        ("graphs", "dispatcher", "ep"),
        "a captured iteration needs as much room for any routing, which hybridep has alone",
        "take dispatcher=flex, or graphs=partial",
        _captured_experts,
        lambda _, one: f"graphs={one.graphs},dispatcher={one.dispatcher}",
    ),
)
"""Every rule of models with experts on what goes with the degrees."""


def switch_rules(model: Transformer) -> tuple[ValidityRule, ...]:
    """The rules of a model on what goes with the degrees of ``RULES``."""
    return MIXTURE_RULES if model.experts else (GRAPH_RULE,)


def obey_switch_rules(model: Transformer, batch: Batch, values: FieldValues) -> _BoolArray:
    """Which strategies of arrays obey every one of these."""
    found = np.ones(len(values["tp"]), dtype=bool)
    for broken in broken_switch_rules(model, batch, values):
        found &= ~broken
    return found


def broken_switch_rules(
    model: Transformer, batch: Batch, values: FieldValues
) -> tuple[_BoolArray, ...]:
    """Where strategies of arrays break each of these, in their order."""
    setting = _Setting(model, batch, 0)
    return tuple(~rule.holds(setting, values) for rule in switch_rules(model))


def obey_copies(model: Transformer, values: FieldValues) -> _BoolArray:
    """Which strategies of arrays can have their copies of shards (``dp_replicate``).

    The rules are those of :mod:`~p2smt.training.megatron_rules` on single strategies.
    """
    copies, sharded = values["dp_replicate"], values["dp"] * values["cp"]
    found = _divides(copies, values["dp"])
    if model.experts:
        ed = sharded * values["tp"] // (values["ep"] * values["etp"])
        found &= _divides(copies, ed)
    split = (values["zero"] > 0) & (sharded > copies)
    return np.asarray(found & ((copies == 1) | split), dtype=np.bool_)


def _switch_violations(
    model: Transformer, batch: Batch, strategy: Strategy
) -> Iterator[InvalidStrategy]:
    """Those that a strategy breaks, or one that has fields of mixtures without experts."""
    ep, etp = strategy.ep, strategy.etp
    of_mixtures = ep * etp > 1 or strategy.overlap or strategy.dispatcher != "alltoall"
    if model.experts is None and of_mixtures:
        rule = f"are of mixtures of experts, and {model.name[:40]} is none"
        yield InvalidStrategy("experts", f"ep={ep},etp={etp}", rule, "leave them out")
    numbers = {name: int(getattr(strategy, name)) for name in (*FIELDS, "ep", "etp", "overlap")}
    numbers |= {
        "dispatcher": DISPATCHERS.index(strategy.dispatcher),
        "full": int(strategy.recompute is Recompute.FULL),
        "moe": int("moe" in strategy.modules),
        "partial": int(strategy.graphs == "partial"),
        "captured": int(strategy.graphs == "full"),
    }
    values = {name: np.array([number], dtype=np.int64) for name, number in numbers.items()}
    setting = _Setting(model, batch, strategy.devices)
    for one in switch_rules(model):
        if not one.holds(setting, values)[0]:
            yield _invalid(one, setting, strategy)
