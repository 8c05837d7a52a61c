"""How a launcher numbers ranks: row-major over axes, named with the first varying fastest."""

from __future__ import annotations

from dataclasses import dataclass

from p2smt.cluster.topology import Topology
from p2smt.errors import InputError
from p2smt.parallelism.placement import IntArray, Placement, default_ranks
from p2smt.parallelism.rank_list import matrix_of
from p2smt.training.strategy import AXES, EXPERT_AXES, Strategy

_OF_EXPERTS = dict(zip(AXES, EXPERT_AXES, strict=True))
_EXPERT_ORDERS = (AXES, ("dp", "pp", "cp", "tp"))
"""Orders of which Megatron-LM's numbering of experts is known."""
EXAMPLE = "tp-cp-ep-dp-pp"


@dataclass(frozen=True, slots=True)
class LaunchOrder:
    """The axes of a strategy over which ranks are row-major, outermost first."""

    axes: tuple[str, ...] = AXES

    @property
    def text(self) -> str:
        """As Megatron-LM writes it, the fastest axis first: ``tp-cp-dp-pp``."""
        return "-".join(reversed(self.axes))

    def laid(self, devices: IntArray, strategy: Strategy) -> IntArray:
        """Devices in the order of launched ranks as an array of the sizes of ``AXES``."""
        return _laid(devices, self.axes, AXES, strategy.sizes)

    def check(self, strategy: Strategy) -> None:
        """Raise InputError if nobody says how experts are numbered in this order."""
        if strategy.ep * strategy.etp > 1 and self.axes not in _EXPERT_ORDERS:
            known = " and ".join("-".join(reversed(one)) for one in _EXPERT_ORDERS)
            rule = f"does not say how ranks of experts are numbered: {known} do"
            raise InputError(f"--launched {self.text}", rule)

    def placements(
        self, topology: Topology, strategy: Strategy
    ) -> tuple[Placement | None, Placement | None]:
        """The matrices of attention and of experts by which the devices in order have the ranks.

        None: no matrix expresses it.
        """
        theirs = tuple(_OF_EXPERTS[name] for name in self.axes)
        devices = default_ranks((strategy.devices,))
        found = [
            matrix_of(_laid(devices, order, names, sizes), topology.sizes)
            for order, names, sizes in (
                (self.axes, AXES, strategy.sizes),
                (theirs, EXPERT_AXES, strategy.expert_sizes),
            )
        ]
        where, experts = (None if matrix is None else Placement(matrix) for matrix in found)
        return where, experts


def _laid(
    devices: IntArray, order: tuple[str, ...], names: tuple[str, ...], sizes: tuple[int, ...]
) -> IntArray:
    size = dict(zip(names, sizes, strict=True))
    found = devices.reshape([size[name] for name in order])
    return found.transpose([order.index(name) for name in names])


def parse_order(text: str) -> LaunchOrder:
    """The order of a text such as ``tp-cp-ep-dp-pp``, which is Megatron-LM's, the fastest first.

    ``ep`` is no factor of the ranks beside the others, and may be left out.

    Raises:
        InputError: it does not name each of tp, cp, dp and pp once.
    """
    names = [name.strip() for name in text.split("-")]
    axes = tuple(name for name in reversed(names) if name != "ep")
    if sorted(axes) != sorted(AXES) or names.count("ep") > 1:
        rule = f"must name each of {', '.join(reversed(AXES))} once, the fastest first"
        raise InputError(f"--launched {text[:40]!r}", rule, f"write it like {EXAMPLE}")
    return LaunchOrder(axes)
