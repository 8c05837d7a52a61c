"""Writes a schedule as an MSCCL++ JSON execution plan.

What can be written: one-sided steps that are each one operation of the runtime, or wait, do one
and then signal; counters between two ranks as channels, those of one rank as semaphores;
barriers; steps of a proxy.  The plan that is written, read again, is the same schedule up to
``nop`` steps and numbers of channels.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from p2smt.collectives.contract import contract
from p2smt.collectives.names import MSCCLPP_NAMES
from p2smt.errors import InputError
from p2smt.interop.mscclpp.block_layout import BlockLayout
from p2smt.interop.mscclpp.counters import counters_of
from p2smt.interop.mscclpp.operation_shapes import shape_of
from p2smt.interop.mscclpp.runtime_warnings import MAX_OPERATIONS
from p2smt.interop.mscclpp.simple_steps import in_blocks, simple_steps
from p2smt.schedules.model import Buffer

if TYPE_CHECKING:
    from collections.abc import Iterable

    from p2smt.interop.mscclpp.block_layout import Laid
    from p2smt.interop.mscclpp.counters import Counters
    from p2smt.interop.mscclpp.execution_plan import Channel
    from p2smt.schedules.model import Schedule, Span, Step

THREADS = 1024
ALIGNMENT = 16
_OPERATION = 6
"""Levels above an operation, which has a line to itself."""


def write_mscclpp(schedule: Schedule) -> str:
    """The schedule as an execution plan.

    Raises:
        InputError: it has something that the format cannot say; the first such step is named.
    """
    if _has_messages(schedule):
        from p2smt.schedules.lower.one_sided import one_sided  # of no use to a reader

        schedule = one_sided(schedule, MAX_OPERATIONS)
    _check_contract(schedule)
    counters = counters_of(schedule)
    packets = any(span.packet for step in schedule.steps for span in (*step.reads, *step.writes))
    plan = {
        "name": schedule.name,
        "collective": MSCCLPP_NAMES[schedule.contract.collective],
        "protocol": "LL" if packets else schedule.protocol,
        "inplace": schedule.in_place,
        "reuse_resources": False,
        "gpus": [_Gpu(schedule, rank, counters).written() for rank in range(schedule.ranks)],
        "num_threads_per_block": THREADS,
        "use_double_scratch_buffer": False,
        "buffer_alignment": ALIGNMENT,
        "min_message_size": 0,
        "max_message_size": 2**64 - 1,
    }
    return _text(plan, _OPERATION) + "\n"


def _has_messages(schedule: Schedule) -> bool:
    """Whether any step sends or receives, or waits for a step of another block."""
    return any(step.send or step.receive or step.waits for step in schedule.steps)


def _text(value: object, levels: int, indent: str = "") -> str:
    """JSON in which so many levels of lists and objects have a line for each entry."""
    if levels == 0 or not value or not isinstance(value, (dict, list)):
        return json.dumps(value, separators=(",", ":"))
    inner = indent + " "
    if isinstance(value, dict):
        found = [
            f"{json.dumps(key)}: {_text(entry, levels - 1, inner)}" for key, entry in value.items()
        ]
    else:
        found = [_text(entry, levels - 1, inner) for entry in value]
    opening, closing = "{}" if isinstance(value, dict) else "[]"
    lines = f",\n{inner}".join(found)
    return f"{opening}\n{inner}{lines}\n{indent}{closing}"


def _check_contract(schedule: Schedule) -> None:
    goal = schedule.contract
    given = f"{schedule.name or 'the schedule'}: {goal.collective}"
    if goal.collective not in MSCCLPP_NAMES:
        raise InputError(given, "has no name in MSCCL++", f"one of {', '.join(MSCCLPP_NAMES)}")
    size = (
        schedule.sizes[0].output
        if goal.collective in ("reduce_scatter", "scatter")
        else (schedule.sizes[0].input)
    )
    chunks = size // schedule.ranks if goal.collective == "alltoall" else size
    made = contract(goal.collective, schedule.ranks, chunks, in_place=goal.in_place)
    if made != goal:
        rule = "is not what a plan of that name and these buffer sizes means"
        raise InputError(given, rule, "use root 0 and full buffers")
    _check_scratch(schedule)


def _check_scratch(schedule: Schedule) -> None:
    """Packets in scratch take twice their place, so that plain data there would be elsewhere."""
    used: dict[tuple[int, bool], Step] = {}
    for step in schedule.steps:
        raw = step.background and any(span.packet for span in step.writes)
        for span in (*step.reads, *step.writes):
            if span.buffer is Buffer.SCRATCH:
                used.setdefault((span.rank, span.packet or raw), step)
    for (rank, packet), step in used.items():
        if not packet and (rank, True) in used:
            rule = f"uses scratch of rank {rank} plainly, which also holds packets"
            raise InputError(f"{step}", rule, "keep scratch for one of both")


@dataclass(slots=True)
class _Block:
    """Lists of a thread block that ids of its operations index."""

    channels: dict[str, list[int]] = field(default_factory=dict)
    buffers: dict[str, list[int]] = field(default_factory=dict)
    ops: list[dict[str, object]] = field(default_factory=list)


@dataclass(slots=True)
class _Gpu:
    """A gpu while it is written; ``remote`` has its remote buffers and how they are reached."""

    schedule: Schedule
    rank: int
    counters: Counters
    remote: dict[tuple[int, Buffer], list[str]] = field(default_factory=dict)
    barriers: dict[str, set[int]] = field(default_factory=dict)

    def written(self) -> dict[str, object]:
        """The gpu as plain data."""
        mine = [step for step in self.schedule.steps if step.rank == self.rank]
        simple = simple_steps(mine)
        for step in mine:
            if step.barrier is not None:
                self.barriers.setdefault(step.barrier, set()).add(step.block)
        blocks: list[dict[str, object]] = []
        for steps in in_blocks(simple).values():
            layout = BlockLayout(self.counters, simple, self.schedule.in_place)
            layout.add_all(steps)
            blocks.append(self._block(len(blocks), layout.done))
        size = self.schedule.sizes[self.rank]
        values = self.counters.values.get(self.rank, {})
        return {
            "id": self.rank,
            "input_chunks": size.input,
            "output_chunks": size.output,
            "scratch_chunks": size.scratch,
            "threadblocks": blocks,
            "channels": [
                {"channel_type": kind, "connected_to": peers}
                for kind in ("memory", "port")
                if (peers := self.counters.peers(self.rank, kind))
            ],
            "remote_buffers": [
                {"rank": rank, "type": buffer.value, "access_channel_types": kinds}
                for (rank, buffer), kinds in self.remote.items()
            ],
            "semaphores": [
                {"init_value": values.get(k, 0)} for k in range(max(values, default=-1) + 1)
            ],
        }

    def _block(self, number: int, laid: Iterable[Laid]) -> dict[str, object]:
        block = _Block()
        for op in laid:
            block.ops.append(self._op(block, op))
        return {
            "id": number,
            "ops": block.ops,
            "channels": [
                {"channel_type": kind, "channel_ids": ids} for kind, ids in block.channels.items()
            ],
            "remote_buffer_refs": [
                {"access_channel_type": kind, "remote_buffer_ids": ids}
                for kind, ids in block.buffers.items()
            ],
        }

    def _op(self, block: _Block, laid: Laid) -> dict[str, object]:
        op: dict[str, object] = {"name": laid.name}
        if laid.name == "barrier":
            op["barrier_id"] = _barrier_id(laid.steps[0].barrier or "", list(self.barriers))
            op["num_threadblocks"] = len(self.barriers[laid.steps[0].barrier or ""])
        elif laid.name.startswith("sem_"):
            names = [name for step in laid.steps for name in (*step.posts, *step.awaits)]
            op["semaphore_ids"] = [self.counters.semaphores[name] for name in names]
        elif laid.name != "nop":
            self._data(block, laid, op)
        return op

    def _data(self, block: _Block, laid: Laid, op: dict[str, object]) -> None:
        shapes = [shape_of(step) for step in laid.steps if step.reads or step.writes]
        sources = [span for shape in shapes for span in shape.sources]
        targets = [span for shape in shapes for span in shape.targets]
        far = any(span.rank != self.rank for span in (*sources, *targets))
        if shapes:
            op["src_buff"] = [self._operand(block, laid.kind, span) for span in sources]
            op["dst_buff"] = [self._operand(block, laid.kind, span) for span in targets]
        if laid.kind == "port" or not shapes:
            op["channel_ids"] = [self._channel(block, step) for step in laid.steps]
        if far or not shapes:
            op["channel_type"] = laid.kind
        if laid.name.startswith("r") and shapes and laid.name != "rppkt":
            op["reduce_op"] = "sum"

    def _operand(self, block: _Block, kind: str, span: Span) -> dict[str, object]:
        if span.rank == self.rank:
            return {"type": span.buffer.value, "index": span.start, "size": span.count}
        kinds = self.remote.setdefault((span.rank, span.buffer), [])
        if kind not in kinds:
            kinds.append(kind)
        place = list(self.remote).index((span.rank, span.buffer))
        known = block.buffers.setdefault(kind, [])
        return {"buffer_id": _id(known, place), "index": span.start, "size": span.count}

    def _channel(self, block: _Block, step: Step) -> int:
        channel = self._end(step)
        known = block.channels.setdefault(channel.kind, [])
        return _id(known, self.counters.place(channel))

    def _end(self, step: Step) -> Channel:
        """The channel of a signal, a wait, a transfer or a flush."""
        if step.background:
            return self.counters.proxies[step.rank, step.block]
        if step.posts:
            return self.counters.raised[step.posts[0]]
        if step.awaits:
            return self.counters.awaited[step.awaits[0]]
        proxies = self.counters.proxies
        pushes = {ref.block for ref in step.after or () if (step.rank, ref.block) in proxies}
        if len(pushes) != 1:
            raise InputError(f"{step}", "waits for transfers of several channels", "one step each")
        return proxies[step.rank, min(pushes)]


def _id(known: list[int], wanted: int) -> int:
    if wanted not in known:
        known.append(wanted)
    return known.index(wanted)


def _barrier_id(name: str, known: list[str]) -> int:
    if all(other.isdigit() and len(other) < 6 for other in known):
        return int(name)
    return known.index(name)
