"""What `plan` asks: a model on a cluster, the space of strategies, and what restricts it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from math import prod
from types import MappingProxyType
from typing import Any

from p2smt.cluster.topology import Topology
from p2smt.errors import InputError
from p2smt.parallelism.placement import AxisRule, FixedEntry
from p2smt.training.efficiency import Efficiency
from p2smt.training.memory_verdict import usable_bytes
from p2smt.training.strategy import (
    AXES,
    DTYPES,
    MAX_DEGREE,
    Batch,
    Recompute,
    Strategy,
    field_of,
    key_of,
)
from p2smt.training.transformer import Transformer

SEARCHED = ("tp", "pp", "dp", "cp", "vpp", "micro_batch", "sequence_parallel", "zero", "recompute")
"""Fields of a strategy that the search chooses, and that ``fixed`` may name."""
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
LARGEST = ("tp", "cp", "pp", "vpp", "micro_batch")
"""Fields that have a largest value; the others have choices."""
_OPTIONS: Mapping[str, str] = MappingProxyType(
    {
        **{name: f"--max-{key_of(name)}" for name in LARGEST},
        "zero": "--zero",
        "recompute": "--recompute",
    }
)


def searched_field(key: str, given: str) -> str:
    """The field that a key such as ``mbs`` fixes.

    Raises:
        InputError: no strategy has the key, or the search does not choose it; names ``given``.
    """
    field = field_of(key, given)
    if field in SEARCHED:
        return field
    if field == "split":
        rule, remedy = "layers are split evenly by plan", "estimate takes a given split"
    else:
        rule, remedy = "is not searched for", f"give --{key}"
    raise InputError(given, rule, remedy)


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
    keeps no scores.
    """

    tp: int | None = None
    cp: int | None = None
    pp: int | None = None
    vpp: int | None = None
    micro_batch: int | None = None
    recompute: tuple[Recompute, ...] | None = None
    zero: tuple[int, ...] | None = None
    sequence_parallel: tuple[bool, ...] | None = None

    def __post_init__(self) -> None:
        for key in LARGEST:
            value = getattr(self, key)
            if value is not None:
                check_degree(f"largest {key_of(key)} {value}", value)
        if () in (self.recompute, self.zero, self.sequence_parallel):
            raise InputError("a space without a choice", "needs one of each kind at least")
        if unknown := set(self.zero or ()) - set(STAGES):
            raise InputError(f"ZeRO stage {min(unknown)}", "is none of 0, 1, 2, 3")

    def check_fixed(self, name: str, value: int | bool | Recompute) -> None:
        """Raise InputError if a value that is fixed lies outside a limit that is given."""
        limit = getattr(self, name, None)
        if limit is None:
            return
        if isinstance(limit, tuple):
            inside, words = value in limit, f"be one of {', '.join(map(value_text, limit))}"
        else:
            inside, words = value <= limit, f"be at most {limit}"
        if not inside:
            option = f" ({_OPTIONS[name]})" if name in _OPTIONS else ""
            rule = f"{key_of(name)} is limited, too: it must {words}{option}"
            given = f"fixed {key_of(name)}={value_text(value)}"
            raise InputError(given, rule, "drop one of them, or let them agree")


def value_text(value: object) -> str:
    """A value of a field as users write it."""
    if isinstance(value, Recompute):
        return value.value
    return str(int(value)) if isinstance(value, bool) else str(value)


@dataclass(frozen=True, slots=True)
class PlanQuestion:
    """Which strategy and placement trains ``model`` with ``batch`` on ``topology`` fastest?

    ``fixed``: values of fields of a strategy (``SEARCHED``), each once, and within the limits that
    ``space`` gives.  ``rules`` hold for the
    placement; their axes are indices into :data:`~p2smt.training.strategy.AXES`.  ``memory_bytes``:
    what a strategy may take; None: what the device has less a reserve, see
    :func:`~p2smt.training.memory_verdict.usable_bytes`.  ``within``: strategies that take at most
    so much longer than the best are told apart from the others (0.05: five per cent).  ``top``: how
    many strategies to list, each on its best placement.  ``tie``: strategies whose times differ by
    less, relatively, count as equal, and the plainest is named (0: only those of one time).
    ``lacks``: what the launcher in use lacks; None: any will do.
    """

    model: Transformer
    batch: Batch
    topology: Topology
    efficiency: Efficiency
    space: SpaceLimits = field(default_factory=SpaceLimits)
    fixed: tuple[tuple[str, int | bool | Recompute], ...] = ()
    rules: tuple[AxisRule | FixedEntry, ...] = ()
    memory_bytes: int | None = None
    within: float = 0.05
    top: int = 3
    prices: Prices = Prices.COLLECTIVES
    flash: bool = True
    dtype: str = "bf16"
    lacks: Lacks | None = field(default=None, compare=False)
    launcher: str = ""
    tie: float = 1e-6

    def __post_init__(self) -> None:
        self.model.check_searched(self.batch.tokens)
        if self.dtype not in DTYPES:
            raise InputError(f"dtype {self.dtype[:40]!r}", f"must be one of {', '.join(DTYPES)}")
        names = [name for name, _ in self.fixed]
        for name, value in self.fixed:
            if name not in SEARCHED:
                remedy = f"fix some of {', '.join(SEARCHED)}"
                raise InputError(f"fixed {name[:40]!r}", "is nothing that is searched", remedy)
            if names.count(name) > 1:
                raise InputError(f"fixed {name}", "is given twice", "keep one of them")
            check_value(name, value)
            self.space.check_fixed(name, value)
        for rule in self.rules:
            check_rule(rule, len(self.topology.levels))
        check_entries(self.rules, self.topology.names, dict(self.fixed))
        if not 0 <= self.within <= 10:
            raise InputError(f"within {self.within}", "must be from 0 to 10 (0.05: 5 %)")
        if not 0 <= self.tie <= MAX_TIE:
            raise InputError(f"tie {self.tie}", f"must be from 0 to {MAX_TIE}")
        if not (isinstance(self.top, int) and 1 <= self.top <= MAX_TOP):
            raise InputError(f"top {self.top}", f"must be 1 to {MAX_TOP}")
        if self.memory_bytes is not None and self.memory_bytes < 1:
            raise InputError(f"memory {self.memory_bytes} B", "must be positive")

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
    def recomputes(self) -> tuple[Recompute, ...]:
        """The kinds of recomputation that are looked at."""
        if self.space.recompute is not None:
            return self.space.recompute
        useless = {Recompute.SELECTIVE} if self.flash else set()
        return tuple(kind for kind in Recompute if kind not in useless)


# What a question fixes, and its rules, checked before anything is searched.


def check_value(name: str, value: object) -> None:
    """Raise InputError unless a searched field of a strategy may have a value."""
    given = f"fixed {name}={str(value)[:40]!r}"
    if name == "recompute":
        if not isinstance(value, Recompute):
            raise InputError(given, "must be a Recompute", "give Recompute.FULL, say")
    elif name == "sequence_parallel":
        if value not in (0, 1):
            raise InputError(given, "must be True or False")
    elif name == "zero":
        if not (_is_whole(value) and value in (0, 1, 2, 3)):
            raise InputError(given, "ZeRO has stages 0 to 3")
    else:
        check_degree(given, value)


def check_degree(given: str, value: object) -> None:
    """Raise InputError unless a value may be a degree, or the largest one."""
    if not (_is_whole(value) and 1 <= value <= MAX_DEGREE):  # type: ignore[operator]
        raise InputError(given, f"must be a whole number, at least 1 and at most {MAX_DEGREE}")


def check_rule(rule: AxisRule | FixedEntry, levels: int) -> None:
    """Raise InputError unless a rule is on an axis of strategies and on one of the levels."""
    for what, index, many in (("axis", rule.axis, len(AXES)), ("level", rule.level, levels)):
        if not (_is_whole(index) and 0 <= index < many):
            raise InputError(f"rule {rule}", f"its {what} must be an index from 0 to {many - 1}")
    if isinstance(rule, FixedEntry):
        check_degree(f"rule {rule}: value {rule.value}", rule.value)


def check_entries(
    rules: Sequence[AxisRule | FixedEntry], levels: Sequence[str], sizes: Mapping[str, Any]
) -> None:
    """Raise InputError if fixed entries contradict each other, or the fixed sizes of their axes."""
    entries: dict[str, dict[str, int]] = {}
    for rule in rules:
        if isinstance(rule, FixedEntry):
            axis, level = AXES[rule.axis], levels[rule.level]
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


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
