"""Short hand for steps, named as in the formats."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from p2smt.collectives.contract import Contract, Contribution, Goal
from p2smt.schedules.model import Buffer, Connection, Schedule, Sizes, Span, Step, StepRef


def at(text: str, rank: int, count: int = 1, *, packet: bool = False) -> Span:
    """``at("o2", 1)``: output chunk 2 of rank 1."""
    return Span(rank, Buffer(text[0]), int(text[1:]), count, packet)


def custom(inputs: Sequence[int], *goals: tuple[int, int, int, int]) -> Contract:
    """So many input chunks on each rank; goals are (rank, output chunk, rank, input chunk)."""
    starts = (tuple(Contribution(rank, c) for c in range(n)) for rank, n in enumerate(inputs))
    wanted = (Goal(rank, c, (Contribution(of, source),)) for rank, c, of, source in goals)
    return Contract("custom", tuple(starts), tuple(wanted))


class Blocks:
    """Collects the steps of a schedule; every method returns the reference of a new step."""

    def __init__(self) -> None:
        self.steps: list[Step] = []
        self._next: Counter[tuple[int, int]] = Counter()

    def add(self, rank: int, block: int, kind: str, **fields: Any) -> StepRef:
        """A step as given."""
        index = self._next[rank, block]
        self._next[rank, block] += 1
        self.steps.append(Step(rank, block, index, kind, **{"count": 1, **fields}))
        return StepRef(block, index)

    def send(
        self, rank: int, block: int, peer: int, source: str, channel: int = 0, **more: Any
    ) -> StepRef:
        """``s``."""
        way = Connection(rank, peer, channel)
        reads = (at(source, rank, more.get("count", 1)),)
        return self.add(rank, block, "s", reads=reads, send=way, **more)

    def receive(
        self,
        kind: str,
        rank: int,
        block: int,
        came: int,
        local: str,
        *,
        to: int | None = None,
        store: str | None = None,
        channel: int = 0,
        **more: Any,
    ) -> StepRef:
        """One of r, rrc, rcs, rrs, rrcs; ``store`` is where it stores, if not at ``local``."""
        here = (at(local, rank, more.get("count", 1)),)
        there = here if store is None else (at(store, rank, more.get("count", 1)),)
        fields: dict[str, Any] = {"receive": Connection(came, rank, channel)}
        if kind in ("rrc", "rrs", "rrcs"):
            fields["reads"] = here
        if kind != "rrs":
            fields["writes"] = there
        if kind in ("rcs", "rrs", "rrcs"):
            assert to is not None
            fields["send"] = Connection(rank, to, channel)
        return self.add(rank, block, kind, **fields, **more)

    def copy(self, rank: int, block: int, source: str, target: str, **more: Any) -> StepRef:
        """``cpy``."""
        count = more.get("count", 1)
        reads, writes = (at(source, rank, count),), (at(target, rank, count),)
        return self.add(rank, block, "cpy", reads=reads, writes=writes, **more)

    def reduce(self, rank: int, block: int, source: str, target: str, **more: Any) -> StepRef:
        """``re``."""
        count = more.get("count", 1)
        there = at(target, rank, count)
        reads = (there, at(source, rank, count))
        return self.add(rank, block, "re", reads=reads, writes=(there,), **more)

    def schedule(self, name: str, contract: Contract, scratch: int = 0, **more: Any) -> Schedule:
        """The schedule, with buffers as large as the contract needs."""
        outputs = [
            max((goal.chunk + 1 for goal in contract.goals if goal.rank == rank), default=1)
            for rank in range(contract.ranks)
        ]
        sizes = tuple(
            Sizes(len(given), max(output, len(given)) if contract.in_place else output, scratch)
            for given, output in zip(contract.starts, outputs, strict=True)
        )
        return Schedule(name, contract, sizes, tuple(self.steps), **more)
