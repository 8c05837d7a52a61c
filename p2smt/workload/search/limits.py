"""The space that a search looks at: what an option limits, and what is usual where none does."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from p2smt.errors import InputError
from p2smt.workload.search.checks import check_degree
from p2smt.workload.strategy import Recompute
from p2smt.workload.strategy_text import key_of

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
