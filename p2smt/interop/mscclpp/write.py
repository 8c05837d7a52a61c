"""Writes a schedule as an MSCCL++ JSON execution plan.

What can be written: one-sided steps that are each one operation of the runtime, or wait, do one
and then signal; counters between two ranks as channels, those of one rank as semaphores;
barriers; steps of a proxy.  The plan that is written, read again, is the same schedule up to
``nop`` steps and numbers of channels.
"""

from __future__ import annotations

import json
import re
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from p2smt.collectives.contract import contract
from p2smt.collectives.names import MSCCLPP_NAMES
from p2smt.errors import InputError
from p2smt.interop.mscclpp.counters import counters_of, in_blocks, predecessors, simple_steps
from p2smt.interop.mscclpp.execution_plan import PAIRED, PATTERNS
from p2smt.interop.mscclpp.read import MAX_OPERATIONS
from p2smt.interop.mscclpp.thread_order import meet_apart
from p2smt.schedules.model import Buffer, StepRef

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

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
    least, most = schedule.payloads or (0, 2**64 - 1)
    if _has_messages(schedule):
        from p2smt.schedules.lower.one_sided import one_sided  # of no use to a reader

        schedule = one_sided(schedule, MAX_OPERATIONS)
    _check_contract(schedule)
    counters = counters_of(schedule)
    packets = any(span.packet for step in schedule.steps for span in (*step.reads, *step.writes))
    gpus = [_Gpu(schedule, rank, counters).written() for rank in range(schedule.ranks)]
    plan = {
        "name": schedule.name,
        "collective": MSCCLPP_NAMES[schedule.contract.collective],
        "protocol": "LL" if packets else schedule.protocol,
        "inplace": schedule.in_place,
        "reuse_resources": False,
        "gpus": list(map(asdict, gpus)),
        "num_threads_per_block": THREADS,
        "use_double_scratch_buffer": False,
        "buffer_alignment": ALIGNMENT,
        "min_message_size": least,
        "max_message_size": most,
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


# The format's objects, keys in its own words and in the order of the file.


@dataclass(frozen=True, slots=True)
class _GpuEntry:
    """A gpu: buffer sizes in chunks, its blocks, and what operations name by number."""

    id: int
    input_chunks: int
    output_chunks: int
    scratch_chunks: int
    threadblocks: list[_BlockEntry]
    channels: list[dict[str, object]]
    remote_buffers: list[dict[str, object]]
    semaphores: list[dict[str, int]]


@dataclass(frozen=True, slots=True)
class _BlockEntry:
    """A thread block; ids of its operations index its lists of channels and buffers."""

    id: int
    ops: list[dict[str, object]]
    channels: list[dict[str, object]]
    remote_buffer_refs: list[dict[str, object]]


@dataclass(frozen=True, slots=True)
class _OwnChunks:
    """Chunks of a buffer of the gpu itself."""

    type: str
    index: int
    size: int


@dataclass(frozen=True, slots=True)
class _RemoteChunks:
    """Chunks of a buffer that the block reaches by a channel."""

    buffer_id: int
    index: int
    size: int


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

    def written(self) -> _GpuEntry:
        """The gpu as the file has it."""
        mine = [step for step in self.schedule.steps if step.rank == self.rank]
        simple = simple_steps(mine)
        for step in mine:
            if step.barrier is not None:
                self.barriers.setdefault(step.barrier, set()).add(step.block)
        blocks: list[_BlockEntry] = []
        for steps in in_blocks(simple).values():
            layout = BlockLayout(self.counters, simple, self.schedule.in_place)
            layout.add_all(steps)
            blocks.append(self._block(len(blocks), layout.done))
        size = self.schedule.sizes[self.rank]
        values = self.counters.values.get(self.rank, {})
        return _GpuEntry(
            id=self.rank,
            input_chunks=size.input,
            output_chunks=size.output,
            scratch_chunks=size.scratch,
            threadblocks=blocks,
            channels=[
                {"channel_type": kind, "connected_to": peers}
                for kind in ("memory", "port")
                if (peers := self.counters.peers(self.rank, kind))
            ],
            remote_buffers=[
                {"rank": rank, "type": buffer.value, "access_channel_types": kinds}
                for (rank, buffer), kinds in self.remote.items()
            ],
            semaphores=[
                {"init_value": values.get(k, 0)} for k in range(max(values, default=-1) + 1)
            ],
        )

    def _block(self, number: int, laid: Iterable[Laid]) -> _BlockEntry:
        block = _Block()
        for op in laid:
            block.ops.append(self._op(block, op))
        return _BlockEntry(
            id=number,
            ops=block.ops,
            channels=[
                {"channel_type": kind, "channel_ids": ids} for kind, ids in block.channels.items()
            ],
            remote_buffer_refs=[
                {"access_channel_type": kind, "remote_buffer_ids": ids}
                for kind, ids in block.buffers.items()
            ],
        )

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
            op["src_buff"] = [asdict(self._operand(block, laid.kind, span)) for span in sources]
            op["dst_buff"] = [asdict(self._operand(block, laid.kind, span)) for span in targets]
        if laid.kind == "port" or not shapes:
            op["channel_ids"] = [self._channel(block, step) for step in laid.steps]
        if far or not shapes:
            op["channel_type"] = laid.kind
        if laid.name.startswith("r") and shapes and laid.name != "rppkt":
            op["reduce_op"] = "sum"

    def _operand(self, block: _Block, kind: str, span: Span) -> _OwnChunks | _RemoteChunks:
        if span.rank == self.rank:
            return _OwnChunks(span.buffer.value, span.start, span.count)
        kinds = self.remote.setdefault((span.rank, span.buffer), [])
        if kind not in kinds:
            kinds.append(kind)
        place = list(self.remote).index((span.rank, span.buffer))
        known = block.buffers.setdefault(kind, [])
        return _RemoteChunks(_id(known, place), span.start, span.count)

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


# Steps of a block laid out as operations, with neither more nor less order.
# The kernel's order is that of thread_order.  A step goes where the operations before it order
# what must come first, if need be behind a ``nop``; where that would order more than the schedule
# does, the step is refused, for what is written must not be right where the schedule is wrong.


MAX_LIST = 8
Key: TypeAlias = "tuple[str, int | str]"


@dataclass(slots=True)
class Laid:
    """An operation and the steps that it is made of: its channels, semaphores or transfers."""

    name: str
    kind: str = ""
    steps: list[Step] = field(default_factory=list)


@dataclass(slots=True)
class BlockLayout:
    """The operations of one block while they are made.

    segment: steps since the last synchronisation, and the thread or lane that does each.
    last: the last step of each thread or lane.  base: what the last synchronisation follows.
    pushed: steps of the proxy so far.  flushed: those that flush themselves, and the flush.
    """

    counters: Counters
    steps: Mapping[StepRef, Step]
    in_place: bool
    done: list[Laid] = field(default_factory=list)
    segment: dict[StepRef, Key] = field(default_factory=dict)
    last: dict[Key, StepRef] = field(default_factory=dict)
    base: tuple[StepRef, ...] = ()
    pushed: list[StepRef] = field(default_factory=list)
    flushed: dict[StepRef, StepRef] = field(default_factory=dict)

    def add_all(self, steps: Iterable[Step]) -> None:
        """Add the steps of the block in order."""
        steps = list(steps)
        self._pair_flushes(steps)
        for step in steps:
            name, kind = self._named(step)
            if name in ("nop", "barrier"):
                self._sync(step, name)
            else:
                self._add(step, name, kind)

    def _named(self, step: Step) -> tuple[str, str]:
        """The operation, and its kind of channel."""
        names = (*step.posts, *step.awaits)
        if step.background:
            return self._proxy_name(step), "port"
        if step.barrier is not None:
            return "barrier", ""
        if step.reads or step.writes:
            return shape_of(step).name, "memory"
        if names and names[0] in self.counters.semaphores:
            return ("sem_release" if step.posts else "sem_acquire"), ""
        if names:
            ends = self.counters.raised if step.posts else self.counters.awaited
            name = "signal" if step.posts else "wait"
            return ("rlx" + name if step.relaxed else name), ends[names[0]].kind
        flushes = any(self.steps[ref].background for ref in predecessors(step))
        return ("flush", "port") if flushes else ("nop", "")

    def _proxy_name(self, step: Step) -> str:
        if not step.writes:
            return "signal"
        name = shape_of(step).name
        if name == "put" and step.posts:
            return "pwsf" if _ref(step) in self.flushed else "pws"
        if name not in ("put", "ppkt") or step.posts:
            raise InputError(f"{step}", f"{name} does not run in the background", "use put")
        return name

    def _pair_flushes(self, steps: list[Step]) -> None:
        """Puts that flush themselves: the flush has the same thread's steps before it."""
        for step in steps:
            for ref in () if step.background else predecessors(step):
                push = self.steps[ref]
                if push.background and push.kind == "pwsf" and ref not in self.flushed:
                    before = [self._own(predecessors(s)) for s in (step, push)]
                    if before[0] == before[1]:
                        self.flushed[ref] = _ref(step)

    def _own(self, refs: Iterable[StepRef]) -> set[StepRef]:
        return {ref for ref in refs if not self.steps[ref].background}

    def _sync(self, step: Step, name: str) -> None:
        """A nop or barrier of the schedule: it must come after the whole segment."""
        self._require(step, [ref for ref in self.segment if not self.steps[ref].background])
        self._require(step, self.base)
        self.done.append(Laid(name, "", [step]))
        self.segment, self.last, self.base = {}, {}, (_ref(step),)

    def _require(self, step: Step, earlier: Iterable[StepRef]) -> None:
        for ref in earlier:
            if not self._before(step, ref):
                rule = f"need not come after {self.steps[ref]}, but would in a plan"
                raise InputError(f"{step}", rule, "order the two in the schedule")

    def _add(self, step: Step, name: str, kind: str) -> None:
        key = self._key(step, name, kind)
        if key is None:
            own = [ref for ref in self.segment if not self.steps[ref].background]
            self.done.append(Laid("nop"))
            self.base, self.segment, self.last = tuple(own) or self.base, {}, {}
            key = self._key(step, name, kind) or ("thread", 0)
        self._require(step, self.base)
        self._require(step, self._implied(step, key, name))
        self._place(step, name, kind, key)
        self.segment[_ref(step)] = key
        if step.background:
            self.pushed.append(_ref(step))
        else:
            self.last[key] = _ref(step)

    def _place(self, step: Step, name: str, kind: str, key: Key) -> None:
        if name == "flush" and _ref(step) in self.flushed.values():
            return
        if key[0] == "thread" and key[1]:
            self.done[-1].steps.append(step)
        else:
            self.done.append(Laid(name, kind, [step]))

    def _implied(self, step: Step, key: Key, name: str) -> list[StepRef]:
        """What the kernel puts before the step in its place, beside the last synchronisation."""
        found = [self.last[key]] if key in self.last else []
        if step.background or name == "flush":
            channels = {self.steps[ref].block for ref in predecessors(step) if self._is_push(ref)}
            channels |= {step.block} if step.background else set()
            found += [
                ref
                for ref in self.pushed
                if ref.block in channels and self.segment.get(ref, key) == key
            ]
        return found

    def _is_push(self, ref: StepRef) -> bool:
        return self.steps[ref].background

    def _key(self, step: Step, name: str, kind: str) -> Key | None:
        """A thread, or all of a lane, that comes after what the step must come after."""
        if not step.background and (step.reads or step.writes):
            lane: Key = ("lane", shape_of(step).lane)
            apart = any(
                meet_apart(step, self.steps[ref], in_place=self.in_place)
                for ref, other in self.segment.items()
                if other == lane
            )
            return lane if not apart and self._enough(step, lane) else None
        if name == "flush" and _ref(step) in self.flushed.values():
            push = next(p for p, flush in self.flushed.items() if flush == _ref(step))
            return self.segment.get(push)
        keys: list[Key] = [("thread", 0)]
        tail = self.done[-1] if self.done else Laid("")
        if (tail.name, tail.kind) == (name, kind) and len(tail.steps) < MAX_LIST:
            keys.append(("thread", len(tail.steps)))
        return next((key for key in reversed(keys) if self._suits(step, key)), None)

    def _suits(self, step: Step, key: Key) -> bool:
        late = key in self.last and not self._before(step, self.last[key])
        return not late and self._enough(step, key)

    def _enough(self, step: Step, key: Key) -> bool:
        """Whether all that must come before is in an earlier segment, or done by the same."""
        return all(self.segment.get(ref, key) == key for ref in predecessors(step))

    def _before(self, step: Step, earlier: StepRef) -> bool:
        """Whether an earlier step surely comes before this one, by the schedule."""
        todo, seen = [*predecessors(step)], set()
        while todo:
            ref = todo.pop()
            if ref == earlier:
                return True
            if ref not in seen and (ref.block != earlier.block or ref.index > earlier.index):
                seen.add(ref)
                todo += predecessors(self.steps[ref])
        return False


def _ref(step: Step) -> StepRef:
    return StepRef(step.block, step.index)


# Which operation of MSCCL++ does what a step does to data.


_NAMES = (
    *("copy", "get", "put", "ppkt", "rppkt", "cpkt", "upkt", "rre", "rres", "re", "res"),
    *("repkt", "respkt", "recpkt", "recspkt"),
)


@dataclass(frozen=True, slots=True)
class OperationShape:
    """An operation with its operands in the order that it takes them."""

    name: str
    sources: tuple[Span, ...]
    targets: tuple[Span, ...]

    @property
    def lane(self) -> str:
        """Which operations handle elements of the same size, thread by thread."""
        return "packet" if self.name.endswith("pkt") else "plain"


def shape_of(step: Step) -> OperationShape:
    """The operation for the reads and writes of a step.

    Raises:
        InputError: there is none.
    """
    sources, targets = _sorted(step, step.reads), _sorted(step, step.writes)
    reads = "".join(_letter(step, span) for span in sources)
    writes = "".join(_letter(step, span) for span in targets)
    name = next((name for name in _NAMES if _fits(name, reads, writes)), None)
    if name is None:
        raise _none(step)
    if any(span.packet and span.buffer is not Buffer.SCRATCH for span in (*sources, *targets)):
        raise InputError(f"{step}", "has packets outside scratch", "packets are only in scratch")
    if name in PAIRED:
        sources *= len(targets)
    return OperationShape(name, sources, targets)


def _fits(name: str, reads: str, writes: str) -> bool:
    """Whether an operation's pattern, which is also a regular expression, fits the letters."""
    sources, targets = PATTERNS[name]
    once = sources.rstrip("+") if name in PAIRED else sources
    many = targets if name != "get" else "L"
    return bool(re.fullmatch(once, reads) and re.fullmatch(many, writes))


def _none(step: Step) -> InputError:
    reads = " + ".join(map(str, step.reads)) or "nothing"
    writes = ", ".join(map(str, step.writes)) or "nowhere"
    rule = f"no MSCCL++ operation stores {reads[:200]} to {writes[:200]}"
    return InputError(f"{step}", rule, "split it into steps that are one operation each")


def _sorted(step: Step, spans: tuple[Span, ...]) -> tuple[Span, ...]:
    """Own plain spans first, then own packets, then those of others."""
    return tuple(sorted(spans, key=lambda span: "LlRr".index(_letter(step, span))))


def _letter(step: Step, span: Span) -> str:
    letter = "L" if span.rank == step.rank else "R"
    return letter.lower() if span.packet else letter
