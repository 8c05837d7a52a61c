"""What is asked of a transfer: two layouts, the devices of their ranks, and at which rates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from p2smt.cluster.allocation import check_stated
from p2smt.cluster.topology import Topology
from p2smt.errors import InputError
from p2smt.result import SearchLimits
from p2smt.transfer.classes import TransferMoves, check_devices, find_moves
from p2smt.transfer.layouts import WeightLayout
from p2smt.transfer.ports import PortMap, check_places


@dataclass(frozen=True)
class TransferQuestion:
    """Two layouts of the same tensors, the devices of their ranks, and the bytes of an element.

    ``nominal``: ports pass what their links are said to, not what sends were measured to reach.
    ``relay``: devices may pass on for others of their nodes what they neither hold nor need.
    ``memory_bytes``: the most that a device stages at once, beside both copies of the weights.

    Raises:
        InputError: devices are too few, named twice, or none of the cluster's; nobody stated the
            bandwidth of a level between them.
    """

    topology: Topology
    before: WeightLayout
    after: WeightLayout
    sources: Sequence[int]
    targets: Sequence[int]
    item_bytes: int
    nominal: bool = False
    memory_bytes: int | None = None
    limits: SearchLimits = field(default_factory=SearchLimits)
    relay: bool = False

    def __post_init__(self) -> None:
        if self.item_bytes < 1:
            raise InputError(f"elements of {self.item_bytes} bytes", "must have 1 or more")
        for layout, devices, what in (
            (self.before, self.sources, "source"),
            (self.after, self.targets, "target"),
        ):
            check_devices(layout, devices, what)
            check_places(self.topology, devices, what)
        check_stated(self.topology, self._crossed())

    def _crossed(self) -> Sequence[str]:
        """The levels of which the devices lie in several entities."""
        used = np.array([*self.sources, *self.targets])
        return [
            level.name
            for j, level in enumerate(self.topology.levels)
            if len(np.unique(used // self.topology.devices_under(j))) > 1
        ]

    @cached_property
    def ports(self) -> PortMap:
        """The ports, at the rates that are asked for."""
        return PortMap(self.topology, "nominal" if self.nominal else "send", self.relay)

    @cached_property
    def moves(self) -> TransferMoves:
        """The classes."""
        return find_moves(self.before, self.after, self.sources, self.targets)
