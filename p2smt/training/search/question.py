"""What `plan` asks: a model on a cluster, the space of strategies, and what restricts it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from math import prod
from types import MappingProxyType
from typing import Any

from p2smt.cluster.topology import Topology
from p2smt.errors import InputError
from p2smt.parallelism.folded import PP_OUTERMOST
from p2smt.parallelism.placement import AxisRule, FixedEntry
from p2smt.training.efficiency import Efficiency
from p2smt.training.megatron_rules import given_violations, modules_in
from p2smt.training.memory_verdict import usable_bytes
from p2smt.training.strategy import (
    AXES,
    DISPATCHERS,
    MAX_DEGREE,
    MODULES,
    OPTIMIZER_BYTES,
    Batch,
    Recompute,
    Strategy,
    field_of,
    is_whole,
    key_of,
)
from p2smt.training.transformer import Transformer
from p2smt.training.validity import InvalidStrategy

SEARCHED = ("tp", "pp", "dp", "cp", "vpp", "micro_batch", "sequence_parallel", "zero", "recompute")
"""Fields of a strategy that the search chooses, and that ``fixed`` may name; ``recompute`` stands
for modules that are computed again one by one, too."""
MIXTURE_SEARCHED = ("ep", "etp", "dispatcher", "overlap")
"""Those of mixtures of experts besides."""
COPIES = "dp_replicate"
"""Copies of what ZeRO shards (HSDP): searched for where a launcher has them as a degree of its own,
or where they are asked for."""
COPYING = ("torchtitan",)
"""Launchers that have: dp_replicate beside dp_shard."""
FieldValue = int | bool | str | Recompute | tuple[str, ...]
"""The value of a field; a tuple: modules that are computed again."""
Again = Recompute | tuple[str, ...]
"""What is computed again: a kind, or modules one by one."""
MAX_TOP = 1000
MAX_TIE = 0.1
Lacks = Callable[[Strategy, Transformer], tuple[str, ...]]
"""What a launcher lacks to run a strategy of a model, in words; empty: nothing."""
LARGEST_CP = 32
LARGEST_VPP = 10
"""Chunks a stage, at most, unless more are asked for: those of published runs have up to 7
(experiments/training_runs/runs.csv), and each chunk more is more sends and shorter kernels."""
LARGEST_MICRO_BATCH = 16
STAGES = (0, 1, 2, 3)
"""Of ZeRO."""
LARGEST = ("tp", "cp", "pp", "vpp", "micro_batch", "ep", "etp", COPIES)
"""Fields that have a largest value; the others have choices."""
LARGEST_OF_MIXTURES: Mapping[str, int] = MappingProxyType(
    {"cp": 8, "vpp": 8, "micro_batch": 8, "etp": 8}
)
"""The same of mixtures of experts, whose spaces are larger: published runs have less
(experiments/training_runs/mixtures.csv)."""
STAGES_OF_MIXTURES = (0, 1)
"""Stages of ZeRO that mixtures are searched with unless more are asked for: published runs shard
the optimizer, and few of them gradients or parameters."""
MODULES_AGAIN: tuple[tuple[str, ...], ...] = (
    ("layernorm", "moe_act"),
    ("mla_up_proj",),
    ("mlp", "mla_up_proj"),
    ("layernorm", "mla_up_proj", "moe_act"),
    ("core_attn", "layernorm", "moe", "moe_act"),
)
"""Sets of modules that published runs of mixtures compute again."""
_OPTIONS: Mapping[str, str] = MappingProxyType(
    {
        **{name: f"--max-{key_of(name).replace('_', '-')}" for name in LARGEST},
        "zero": "--zero",
        "recompute": "--recompute",
        "dispatcher": "--dispatcher",
        "overlap": "--overlap",
    }
)

_GIVEN = ("flash", "dtype", "dropout", "optimizer_bytes", "imbalance")
"""Fields that are the same in all strategies, each by an option of its own."""


def searched_field(key: str, given: str) -> str:
    """The field that a key such as ``mbs`` fixes.

    Raises:
        InputError: no strategy has the key, or the search does not choose it; names ``given``.
    """
    field = field_of(key, given)
    if field in (*SEARCHED, *MIXTURE_SEARCHED, COPIES):
        return field
    if field == "split":
        rule, remedy = "layers are split evenly by plan", "estimate takes a given split"
    elif field in _GIVEN:
        rule, remedy = "is not searched for", f"give --{key.replace('_', '-')}"
    else:
        rule, remedy = "is not searched for", f"estimate --strategy takes {key}"
    raise InputError(given, rule, remedy)


def searched_fields(model: Transformer) -> tuple[str, ...]:
    """The fields that a search chooses for a model."""
    return (*SEARCHED, *MIXTURE_SEARCHED) if model.experts else SEARCHED


def searched_axes(model: Transformer) -> tuple[str, ...]:
    """Names of the rows that rules are on: of a mixture those of both its matrices."""
    return PP_OUTERMOST.rows if model.experts else AXES


def value_of(strategy: Strategy, name: str) -> FieldValue:
    """The value of a searched field."""
    found: FieldValue = strategy.modules if name == "recompute" else ()
    return found or getattr(strategy, name)


class Prices(Enum):
    """What a request costs on a placement."""

    COLLECTIVES = "collectives"
    """A single collective, as the topology's library runs it."""
    PROGRAMS = "programs"
    """The best reduction program for it."""


@dataclass(frozen=True, slots=True)
class SpaceLimits:
    """The largest values that the search looks at, and the choices.

    None is the usual, which gives way to a value that is fixed; a limit does not.  Usual are:
    ``tp`` as many devices as a switch domain has; ``pp`` as many as there are layers, and two for
    embedding and logits, which may count as layers in an even split; ``cp``, ``vpp`` and
    ``micro_batch`` the constants of this module; ``zero`` and ``sequence_parallel`` all there are;
    ``recompute`` all that save memory, which is not ``selective`` where attention is fused and
    keeps no scores; of mixtures also ``MODULES_AGAIN``.  ``ep``: as many as there are experts.
    Mixtures have ``LARGEST_OF_MIXTURES`` and ``STAGES_OF_MIXTURES``; all stages where the launcher
    shards the optimizer with gradients alone.  ``dp_replicate``: 1, but of launchers in ``COPYING``
    as many as there are devices.
    """

    tp: int | None = None
    cp: int | None = None
    pp: int | None = None
    vpp: int | None = None
    micro_batch: int | None = None
    recompute: tuple[Again, ...] | None = None
    zero: tuple[int, ...] | None = None
    sequence_parallel: tuple[bool, ...] | None = None
    ep: int | None = None
    etp: int | None = None
    dispatcher: tuple[str, ...] | None = None
    overlap: tuple[bool, ...] | None = None
    dp_replicate: int | None = None

    def __post_init__(self) -> None:
        for key in LARGEST:
            value = getattr(self, key)
            if value is not None:
                check_degree(f"largest {key_of(key)} {value}", value)
        chosen = (self.zero, self.sequence_parallel, self.dispatcher, self.overlap)
        if () in (self.recompute, *chosen):
            raise InputError("a space without a choice", "needs one of each kind at least")
        if unknown := set(self.zero or ()) - set(STAGES):
            raise InputError(f"ZeRO stage {min(unknown)}", "is none of 0, 1, 2, 3")
        for name in self.dispatcher or ():
            check_value("dispatcher", name)
        for again in self.recompute or ():
            check_value("recompute", again)

    def check_fixed(self, name: str, value: FieldValue) -> None:
        """Raise InputError if a value that is fixed lies outside a limit that is given."""
        limit = getattr(self, name, None)
        if limit is None:
            return
        if isinstance(limit, tuple):
            inside, words = value in limit, f"be one of {', '.join(map(value_text, limit))}"
        else:
            inside, words = int(value) <= limit, f"be at most {limit}"  # type: ignore[arg-type]
        if not inside:
            option = f" ({_OPTIONS[name]})" if name in _OPTIONS else ""
            rule = f"{key_of(name)} is limited, too: it must {words}{option}"
            given = f"fixed {key_of(name)}={value_text(value)}"
            raise InputError(given, rule, "drop one of them, or let them agree")


def value_text(value: object) -> str:
    """A value of a field as users write it."""
    if isinstance(value, Recompute):
        return value.value
    if isinstance(value, tuple):
        return "+".join(value)
    return str(int(value)) if isinstance(value, bool) else str(value)


@dataclass(frozen=True, slots=True)
class PlanQuestion:
    """Which strategy and placement trains ``model`` with ``batch`` on ``topology`` fastest?

    ``fixed``: values of fields of a strategy (``SEARCHED``), each once, and within the limits that
    ``space`` gives.  ``rules`` hold for the placement; their axes are indices into ``axes``.
    ``graphs``, ``fp8_attention``, ``dropout``, ``optimizer_bytes`` and ``imbalance`` are those of
    every strategy.  ``memory_bytes``: what a strategy may take; None: what the device has less a
    reserve, see :func:`~p2smt.training.memory_verdict.usable_bytes`.  ``within``: strategies that
    take at most so much longer than the best are told apart from the others (0.05: five per cent).
    ``top``: how many strategies to list, each on its best placement.  ``tie``: strategies whose
    times differ by less, relatively, count as equal, and the plainest is named (0: only those of
    one time).  ``lacks``: what the launcher in use lacks; None: any will do.
    """

    model: Transformer
    batch: Batch
    topology: Topology
    efficiency: Efficiency
    space: SpaceLimits = field(default_factory=SpaceLimits)
    fixed: tuple[tuple[str, FieldValue], ...] = ()
    rules: tuple[AxisRule | FixedEntry, ...] = ()
    memory_bytes: int | None = None
    within: float = 0.05
    top: int = 3
    prices: Prices = Prices.COLLECTIVES
    flash: bool = True
    dtype: str = "bf16"
    optimizer_bytes: int = OPTIMIZER_BYTES
    imbalance: float = 1.0
    lacks: Lacks | None = field(default=None, compare=False)
    launcher: str = ""
    tie: float = 1e-6
    graphs: str = "none"
    fp8_attention: bool = False
    dropout: bool = False

    def __post_init__(self) -> None:
        self._check_model()
        self._check_given()
        names = [name for name, _ in self.fixed]
        for name, value in self.fixed:
            if name not in self.searched:
                remedy = f"fix some of {', '.join(self.searched)}"
                raise InputError(f"fixed {name[:40]!r}", "is nothing that is searched", remedy)
            if names.count(name) > 1:
                raise InputError(f"fixed {name}", "is given twice", "keep one of them")
            check_value(name, value)
            self.space.check_fixed(name, value)
        for rule in self.rules:
            check_rule(rule, self.axes, len(self.topology.levels))
        sizes = {"et" if name == "etp" else name: value for name, value in self.fixed}
        check_entries(self.rules, self.axes, self.topology.names, sizes)
        if not 0 <= self.within <= 10:
            raise InputError(f"within {self.within}", "must be from 0 to 10 (0.05: 5 %)")
        if not 0 <= self.tie <= MAX_TIE:
            raise InputError(f"tie {self.tie}", f"must be from 0 to {MAX_TIE}")
        if not (isinstance(self.top, int) and 1 <= self.top <= MAX_TOP):
            raise InputError(f"top {self.top}", f"must be 1 to {MAX_TOP}")
        if self.memory_bytes is not None and self.memory_bytes < 1:
            raise InputError(f"memory {self.memory_bytes} B", "must be positive")

    def _check_given(self) -> None:
        """Raise InputError if no strategy can have what is given to all."""
        whole = 0 in (self.space.zero or ()) or dict(self.fixed).get("zero") == 0
        given = Strategy(
            zero=int(not whole),
            flash=self.flash,
            dtype=self.dtype,
            graphs=self.graphs,
            fp8_attention=self.fp8_attention,
            dropout=self.dropout,
            optimizer_bytes=self.optimizer_bytes,
            imbalance=self.imbalance,
        )
        for broken in given_violations(self.model, given):
            raise InvalidStrategy(*broken).error()

    @property
    def capacity_bytes(self) -> int:
        """Bytes that a strategy may take on a device."""
        if self.memory_bytes is not None:
            return self.memory_bytes
        return usable_bytes(self.topology.known_device.memory_bytes)

    @property
    def free_bytes(self) -> int:
        """Bytes of a device that are kept free; 0 where ``memory_bytes`` says what there is."""
        return (
            0
            if self.memory_bytes is not None
            else self.topology.known_device.memory_bytes - self.capacity_bytes
        )

    @property
    def most_copies(self) -> int:
        """The most copies of shards that are looked at."""
        fixed = dict(self.fixed).get(COPIES)
        if isinstance(fixed, int):
            return fixed
        usual = self.topology.devices if self.launcher in COPYING else 1
        return self.space.dp_replicate or usual

    @property
    def copied(self) -> bool:
        """Whether copies of shards are searched for."""
        return self.most_copies > 1

    @property
    def numbered_once(self) -> bool:
        """Whether ranks of experts are those of attention: trainers number their ranks once."""
        return bool(self.launcher) and self.model.experts is not None

    @property
    def searched(self) -> tuple[str, ...]:
        """The fields of a strategy that are chosen."""
        asked = self.copied or COPIES in dict(self.fixed)
        return (*searched_fields(self.model), *((COPIES,) if asked else ()))

    @property
    def axes(self) -> tuple[str, ...]:
        """Names of the rows that ``rules`` are on: of a mixture those of both its matrices."""
        return searched_axes(self.model)

    @property
    def recomputes(self) -> tuple[Again, ...]:
        """What is computed again, and the ways that are looked at."""
        if self.space.recompute is not None:
            return self.space.recompute
        useless = {Recompute.SELECTIVE} if self.flash else set()
        kinds = tuple(kind for kind in Recompute if kind not in useless)
        if not self.model.experts:
            return kinds
        has = modules_of(self.model)
        usable = (modules_in_order(has.intersection(which)) for which in MODULES_AGAIN)
        return tuple(dict.fromkeys((Recompute.NONE, *filter(None, usable), *kinds)))

    def _check_model(self) -> None:
        """What is asked of dense models that only mixtures have, and the reverse."""
        limits = [name for name in MIXTURE_SEARCHED if getattr(self.space, name) is not None]
        fixed = [name for name, _ in self.fixed if name in MIXTURE_SEARCHED]
        if self.model.experts is None and (limits or fixed):
            given = ", ".join(key_of(name) for name in dict.fromkeys((*fixed, *limits)))
            rule = f"is of mixtures of experts, and {self.model.name[:40]} is none"
            raise InputError(given, rule, "leave it out")
        if self.model.experts and self.prices is Prices.PROGRAMS:
            rule = "are searched with a single collective for each request"
            raise InputError("prices of programs", f"mixtures of experts {rule}", "drop --prices")
        chosen = [value for name, value in self.fixed if name == "recompute"]
        has = modules_of(self.model)
        for again in (*(self.space.recompute or ()), *chosen):
            if isinstance(again, tuple) and not set(again) <= has:
                missing = next(name for name in again if name not in has)
                rule = f"{self.model.name[:40]} has no {missing} to compute again one by one"
                raise InputError(f"recompute={'+'.join(again)[:60]}", rule, "leave it out")


def modules_in_order(which: Collection[str]) -> tuple[str, ...]:
    """Modules in the order in which a strategy names them."""
    return tuple(name for name in MODULES if name in which)


def modules_of(model: Transformer) -> frozenset[str]:
    """The modules of a model that may be computed again one by one.

    Of a dense model none: its formulas know whole layers only.
    """
    return frozenset() if model.dense else modules_in(model)


# What a question fixes, and its rules, checked before anything is searched.


def check_value(name: str, value: object) -> None:
    """Raise InputError unless a searched field of a strategy may have a value."""
    given = f"fixed {name}={str(value)[:40]!r}"
    if name == "recompute":
        modules = isinstance(value, tuple) and value and set(value) <= set(MODULES)
        if not isinstance(value, Recompute) and not modules:
            raise InputError(given, "must be a Recompute, or modules", "give Recompute.FULL, say")
    elif name == "dispatcher":
        if value not in DISPATCHERS:
            raise InputError(given, f"must be one of {', '.join(DISPATCHERS)}")
    elif name in ("sequence_parallel", "overlap"):
        if value not in (0, 1):
            raise InputError(given, "must be True or False")
    elif name == "zero":
        if not (is_whole(value) and value in (0, 1, 2, 3)):
            raise InputError(given, "ZeRO has stages 0 to 3")
    else:
        check_degree(given, value)


def check_degree(given: str, value: object) -> None:
    """Raise InputError unless a value may be a degree, or the largest one."""
    if not (is_whole(value) and 1 <= value <= MAX_DEGREE):
        raise InputError(given, f"must be a whole number, at least 1 and at most {MAX_DEGREE}")


def check_rule(rule: AxisRule | FixedEntry, axes: Sequence[str], levels: int) -> None:
    """Raise InputError unless a rule is on one of the axes and on one of the levels."""
    for what, index, many in (("axis", rule.axis, len(axes)), ("level", rule.level, levels)):
        if not (is_whole(index) and 0 <= index < many):
            raise InputError(f"rule {rule}", f"its {what} must be an index from 0 to {many - 1}")
    if isinstance(rule, FixedEntry):
        check_degree(f"rule {rule}: value {rule.value}", rule.value)


def check_entries(
    rules: Sequence[AxisRule | FixedEntry],
    axes: Sequence[str],
    levels: Sequence[str],
    sizes: Mapping[str, Any],
) -> None:
    """Raise InputError if fixed entries contradict each other, or the fixed sizes of their axes."""
    entries: dict[str, dict[str, int]] = {}
    for rule in rules:
        if isinstance(rule, FixedEntry):
            axis, level = axes[rule.axis], levels[rule.level]
            if entries.setdefault(axis, {}).setdefault(level, rule.value) != rule.value:
                given = f"fixed {axis}={level}:{rule.value}"
                told = f"{axis}={level}:{entries[axis][level]} is fixed, too"
                raise InputError(given, told, "keep one of them")
    for name, found in entries.items():
        size, product = sizes.get(name), prod(found.values())
        if size is None or (size == product if len(found) == len(levels) else size % product == 0):
            continue
        text = ",".join(f"{level}:{value}" for level, value in found.items())
        words = f"parts of an axis at its levels multiply to its size, and {name}={size} is fixed"
        raise InputError(f"fixed {name}={text}", words, "keep one of them, or let them agree")
