"""What `plan` asks: a model on a cluster, the space of strategies, and what restricts it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum

from p2smt.cluster.device import Device
from p2smt.cluster.topology import Topology
from p2smt.errors import InputError
from p2smt.parallelism.placement import AxisRule, FixedEntry
from p2smt.workload.batch import Batch
from p2smt.workload.efficiency import Efficiency
from p2smt.workload.search.checks import check_entries, check_rule, check_value
from p2smt.workload.search.limits import SpaceLimits
from p2smt.workload.strategy import Recompute, Strategy
from p2smt.workload.strategy_text import field_of
from p2smt.workload.transformer import Transformer

SEARCHED = ("tp", "pp", "dp", "cp", "vpp", "micro_batch", "sequence_parallel", "zero", "recompute")
"""Fields of a strategy that the search chooses, and that ``fixed`` may name."""
MAX_TOP = 1000
MAX_TIE = 0.1
RESERVE_BYTES = 5 * 10**9
"""Memory that a strategy leaves free, unless it is told how much there is: CUDA's context and
NCCL's buffers lie outside of the framework's allocator (3.4 GB in the large job of
github.com/pytorch/pytorch/issues/71616: 39.59 GiB, of which 36.19 are the allocator's and 0.22
free), and the allocator's own blocks are never all in use."""
RESERVE_PART = 8
"""At most one part in so many of a device's memory is left free."""
Lacks = Callable[[Strategy, Transformer], tuple[str, ...]]
"""What a launcher lacks to run a strategy of a model, in words; empty: nothing."""


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


def usable_bytes(device: Device, reserve_bytes: int = RESERVE_BYTES) -> int:
    """Bytes that a training may take on a device: all but a reserve, of small devices a part."""
    return device.memory_bytes - min(reserve_bytes, device.memory_bytes // RESERVE_PART)


class Prices(Enum):
    """What a request costs on a placement."""

    COLLECTIVES = "collectives"
    """A single collective, as the topology's library runs it."""
    PROGRAMS = "programs"
    """The best reduction program for it."""


@dataclass(frozen=True, slots=True)
class PlanQuestion:
    """Which strategy and placement trains ``model`` with ``batch`` on ``topology`` fastest?

    ``fixed``: values of fields of a strategy (``SEARCHED``), each once, and within the limits that
    ``space`` gives.  ``rules`` hold for the
    placement; their axes are indices into :data:`~p2smt.workload.strategy.AXES`.  ``memory_bytes``:
    what a strategy may take; None: what the device has less ``reserve_bytes``, see
    :func:`usable_bytes`.  ``within``: strategies that take at most so much longer than the best
    are told apart from the others (0.05: five per cent).  ``top``: how many strategies to list,
    each on its best placement.  ``tie``: strategies whose times differ by less, relatively, count
    as equal, and the plainest is named (0: only those of one time).  ``lacks``: what the launcher
    in use lacks; None: any will do.
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
    reserve_bytes: int = RESERVE_BYTES
    tie: float = 1e-6

    def __post_init__(self) -> None:
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
        if self.reserve_bytes < 0:
            raise InputError(f"reserve {self.reserve_bytes} B", "must not be negative")

    @property
    def capacity_bytes(self) -> int:
        """Bytes that a strategy may take on a device."""
        if self.memory_bytes is not None:
            return self.memory_bytes
        return usable_bytes(self.topology.known_device, self.reserve_bytes)

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
