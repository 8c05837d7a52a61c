"""The dispatch of a mixture of experts: a kind of request that has numbers of its own.

Each rank of an expert-parallel group holds as many of the experts, in order, and some tokens, each
of which some experts process: copies of it go to the ranks that hold these, and the results come
back by the same ways (combine).  A token crosses a level once for each entity that needs it, and is
copied on from there: what DeepEP and HybridEP do, and Megatron calls the flex dispatcher.  So it is
no all-to-all of fewer bytes: on an outer level far fewer copies pass than further in.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from p2smt.collectives.names import RequestKind
from p2smt.errors import InputError

MAX_EXPERTS = 2**16
MAX_IMBALANCE = 1000.0


@dataclass(frozen=True, slots=True)
class Dispatch:
    """Tokens go to ``active`` of so many ``experts`` each.

    The experts are in ``groups`` of equal size, in order; those of a token are in at most
    ``top_groups`` of them (node-limited routing; one group: no limit).  ``imbalance``: the load of
    the slowest rank over that of an even one.

    Raises:
        InputError: the numbers contradict each other.
    """

    experts: int
    active: int
    groups: int = 1
    top_groups: int = 1
    imbalance: float = 1.0

    def __post_init__(self) -> None:
        if not 1 <= self.experts <= MAX_EXPERTS:
            raise InputError(f"{self.experts} experts", f"must be 1 to {MAX_EXPERTS}")
        if not 1 <= self.groups <= self.experts or self.experts % self.groups:
            rule = f"must divide {self.experts} experts"
            raise InputError(f"{self.groups} groups of experts", rule)
        if not 1 <= self.top_groups <= self.groups:
            rule = f"must be 1 to {self.groups}, the groups of experts"
            raise InputError(f"top_groups {self.top_groups}", rule)
        reached = self.top_groups * (self.experts // self.groups)
        if not 1 <= self.active <= reached:
            rule = f"must be 1 to {reached}, the experts that a token may go to"
            raise InputError(f"{self.active} active experts", rule)
        if not 1 <= self.imbalance <= MAX_IMBALANCE:  # not a number is refused, too
            rule = f"must be 1 (even) to {MAX_IMBALANCE:g}"
            raise InputError(f"imbalance {self.imbalance}", rule)

    @property
    def value(self) -> Literal["dispatch"]:
        """Its name, as those of other kinds."""
        return DISPATCH

    @property
    def has_programs(self) -> bool:
        """It is one fixed step."""
        return False

    @property
    def has_exchanges(self) -> bool:
        """No other exchanges do what it does."""
        return False

    def check_ranks(self, ranks: int) -> None:
        """Raise InputError unless so many ranks hold equal parts of the experts."""
        if self.experts % ranks:
            given = f"{self.experts} experts over {ranks} ranks"
            rule = "do not divide evenly: each rank holds as many of them"
            raise InputError(given, rule, f"give a multiple of {ranks}, or a smaller axis")

    def __str__(self) -> str:
        limit = f", {self.top_groups} of {self.groups} groups" if self.groups > 1 else ""
        uneven = f", imbalance {self.imbalance:g}" if self.imbalance > 1 else ""
        return f"to {self.active} of {self.experts} experts{limit}{uneven}"


DISPATCH: Final = "dispatch"
"""How files, options and tables call it."""

KindName = Literal["all-reduce", "reduce-scatter", "all-gather", "all-to-all", "send", "dispatch"]
"""The names of all kinds."""
AnyKind = RequestKind | Dispatch
"""What a user asks for along some axes."""
