"""MSCCL++ JSON to an execution plan with line numbers, with every id looked up.

Ids inside operations index the lists of their thread block, which index those of the gpu:
channels count per type, every entry of ``connected_to`` being one; switch channels count every
entry of ``rank_groups``; remote buffers are one list.  As in the executor, the k-th channel of a
type from rank a to rank b is joined to the k-th one from b to a.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, TypeVar

from p2smt.interop.mscclpp.checked_json import load_json
from p2smt.interop.mscclpp.execution_plan import (
    Channel,
    ExecutionPlan,
    Gpu,
    Op,
    Operand,
    ThreadBlock,
    letters,
)
from p2smt.schedules.model import Buffer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from p2smt.errors import InputError
    from p2smt.interop.mscclpp.checked_json import JsonValue

T = TypeVar("T")

MAX_RANKS = 4096
MAX_SPAN = 1 << 20
KINDS = ("memory", "port", "switch")

_OLDER_KEYS = ("chunkGroups", "inputChunks", "outputChunks", "scratchChunks")


@dataclass(frozen=True, slots=True)
class _Lists:
    """What ids stand for: channels by kind, switch groups, remote buffers by kind of access."""

    rank: int
    channels: dict[str, list[Channel]]
    groups: list[tuple[Buffer, tuple[int, ...]]]
    buffers: dict[str, list[_Remote]]
    semaphores: int


@dataclass(frozen=True, slots=True)
class _Remote:
    """A buffer of another rank, and the kinds of channel that reach it."""

    rank: int
    buffer: Buffer
    access: tuple[str, ...]


def parse_mscclpp(text: str, source: str) -> ExecutionPlan:
    """The plan in an MSCCL++ JSON text; ``source`` names it in messages.

    Raises:
        InputError: the text is not JSON; a key is missing, of the wrong type, or out of range; an
            id stands for nothing; or an operation has other operands than it takes.
    """
    plan = _plan(load_json(text, source))
    for op in plan.operations():
        letters(op)
    return plan


def _plan(value: JsonValue) -> ExecutionPlan:
    gpus = value.items("gpus")
    _refuse_older(gpus)
    if not 1 <= len(gpus) <= MAX_RANKS:
        rule = f"has {len(gpus)} entries, not 1 to {MAX_RANKS}"
        raise value.at("gpus").error(rule, "list every rank once")
    protocol = value.word("protocol", "Simple")
    if protocol not in ("Simple", "LL"):
        raise value.at("protocol").error(f"{protocol[:40]!r} is not Simple or LL", "pick one")
    return ExecutionPlan(
        value,
        value.word("name", "")[:200],
        value.word("collective"),
        protocol,
        value.flag("inplace", False),
        value.flag("reuse_resources", False),
        value.flag("use_double_scratch_buffer", False),
        value.number("buffer_alignment", 16, low=1, high=1 << 20),
        tuple(_gpu(gpu, rank, len(gpus)) for rank, gpu in enumerate(gpus)),
    )


def _refuse_older(gpus: Sequence[JsonValue]) -> None:
    """The dialect of versions before 0.8.0 (August 2025) has other operations and other keys.

    Source: microsoft/mscclpp, src/executor/execution_plan.cc of v0.7.0 and of v0.8.0.
    """
    for gpu in gpus:
        key = next((key for key in _OLDER_KEYS if gpu.has(key)), None)
        if key is not None:
            rule = f"the key {key!r} is of the plans of MSCCL++ before 0.8.0, which are not read"
            raise gpu.error(rule, "make the plan again with the language of MSCCL++ 0.8.0 or newer")


def _gpu(value: JsonValue, rank: int, ranks: int) -> Gpu:
    if value.at("id").integer() != rank:
        raise value.at("id").error(f"must be {rank}, the place in the list", "sort by rank")
    names = ("input_chunks", "output_chunks", "scratch_chunks")
    sizes = [value.number(name, 0, high=MAX_SPAN) for name in names]
    semaphores = tuple(
        entry.number("init_value", 0, high=1 << 20)
        for entry in value.items("semaphores", optional=True)
    )
    lists = _gpu_lists(value, rank, ranks, len(semaphores))
    blocks = value.items("threadblocks", optional=True)
    made = tuple(_block(block, number, lists) for number, block in enumerate(blocks))
    in_chunks, out_chunks, scratch = sizes
    return Gpu(rank, (in_chunks, out_chunks, scratch), semaphores, made)


def _gpu_lists(value: JsonValue, rank: int, ranks: int, semaphores: int) -> _Lists:
    lists = _Lists(rank, {"memory": [], "port": []}, [], {"any": []}, semaphores)
    seen: Counter[tuple[str, int]] = Counter()
    for entry in value.items("channels", optional=True):
        kind = _kind(entry, "channel_type", KINDS)
        if kind == "switch":
            buffer = _buffer(entry, "buff" if entry.has("buff") else "buffer_type")
            groups = entry.items("rank_groups")
            lists.groups.extend((buffer, _group(group, rank, ranks)) for group in groups)
            continue
        for item in entry.items("connected_to"):
            peer = _peer(item, rank, ranks)
            lists.channels[kind].append(Channel(kind, rank, peer, seen[kind, peer]))
            seen[kind, peer] += 1
    for entry in value.items("remote_buffers", optional=True):
        access = tuple(item.text() for item in entry.items("access_channel_types"))
        peer = _peer(entry.at("rank"), rank, ranks)
        lists.buffers["any"].append(_Remote(peer, _buffer(entry, "type"), access))
    return lists


def _peer(value: JsonValue, rank: int, ranks: int) -> int:
    peer = value.integer(0, ranks - 1)
    if peer == rank:
        raise value.error(f"rank {rank} is joined to itself", "name another rank")
    return peer


def _group(value: JsonValue, rank: int, ranks: int) -> tuple[int, ...]:
    members = tuple(member.integer(0, ranks - 1) for member in value.items("ranks"))
    if rank not in members or len(set(members)) < len(members):
        raise value.error("a switch group must hold its own rank, and no rank twice", "correct it")
    return members


def _kind(value: JsonValue, key: str, known: Sequence[str]) -> str:
    kind = value.word(key)
    if kind not in known:
        raise value.at(key).error(f"{kind[:40]!r} is not one of {', '.join(known)}", "pick one")
    return kind


def _buffer(value: JsonValue, key: str) -> Buffer:
    return Buffer(_kind(value, key, [buffer.value for buffer in Buffer]))


def _block(value: JsonValue, number: int, gpu: _Lists) -> ThreadBlock:
    if value.at("id").integer() != number:
        raise value.at("id").error(f"must be {number}, the place in the list", "sort the blocks")
    lists = _block_lists(value, gpu)
    ops = tuple(_op(op, lists, nested=False) for op in value.items("ops"))
    return ThreadBlock(ops, tuple(chain.from_iterable((op, *op.inner) for op in ops)))


def _block_lists(value: JsonValue, gpu: _Lists) -> _Lists:
    channels: dict[str, list[Channel]] = {"memory": [], "port": []}
    lists = _Lists(gpu.rank, channels, [], {"memory": [], "port": []}, gpu.semaphores)
    for entry in value.items("channels", optional=True):
        kind = _kind(entry, "channel_type", KINDS)
        for item in entry.items("channel_ids"):
            if kind == "switch":
                lists.groups.append(_picked(item, gpu.groups, "switch channel"))
            else:
                channels[kind].append(_picked(item, gpu.channels[kind], f"{kind} channel"))
    for entry in value.items("remote_buffer_refs", optional=True):
        kind = _kind(entry, "access_channel_type", ("memory", "port"))
        for item in entry.items("remote_buffer_ids"):
            remote = _picked(item, gpu.buffers["any"], "remote buffer")
            if kind not in remote.access:
                raise item.error(f"that remote buffer is not open to {kind} access", "list it")
            lists.buffers[kind].append(remote)
    return lists


def _picked(item: JsonValue, known: Sequence[T], what: str) -> T:
    number = item.integer()
    if number >= len(known):
        raise _no_such(item, number, len(known), what)
    return known[number]


def _no_such(item: JsonValue, number: int, known: int, what: str) -> InputError:
    there = f"the {what}s here are 0 to {known - 1}" if known else f"there is no {what} here"
    return item.error(f"{what} {number} does not exist", there)


def _op(value: JsonValue, lists: _Lists, *, nested: bool) -> Op:
    name = value.word("name")
    kind = _kind(value, "channel_type", (*KINDS, "none")) if value.has("channel_type") else "none"
    channels = lists.channels.get(kind, [])
    ids = value.items("channel_ids", optional=True) if kind in lists.channels else []
    semaphores = value.items("semaphore_ids", optional=True)
    op = Op(
        name,
        value,
        tuple(_operand(item, lists, kind) for item in value.items("src_buff", optional=True)),
        tuple(_operand(item, lists, kind) for item in value.items("dst_buff", optional=True)),
        kind,
        tuple(_picked(item, channels, f"{kind} channel") for item in ids),
        tuple(_picked(item, range(lists.semaphores), "semaphore") for item in semaphores),
        _barrier(value) if name == "barrier" else None,
        _part(value),
        reduce_op=value.word("reduce_op", "sum"),
    )
    return _pipeline(op, value, lists, nested=nested) if name == "pipeline" else op


def _barrier(value: JsonValue) -> tuple[int, int]:
    return value.at("barrier_id").integer(), value.at("num_threadblocks").integer(low=1)


def _part(value: JsonValue) -> tuple[int, int]:
    if not value.has("tbg_info"):
        return (0, 1)
    info = value.at("tbg_info")
    size = info.at("tbg_size").integer(low=1, high=1024)
    return info.at("tb_id").integer(0, size - 1), size


def _operand(value: JsonValue, lists: _Lists, kind: str) -> Operand:
    index = value.at("index").integer(0, MAX_SPAN)
    size = value.at("size").integer(1, MAX_SPAN)
    if value.has("switch_channel_id"):
        item = value.at("switch_channel_id")
        group_buffer, ranks = _picked(item, lists.groups, "switch channel")
        return Operand("switch", ranks, group_buffer, index, size)
    if value.has("buffer_id"):
        known = lists.buffers.get(kind, [])
        remote = _picked(value.at("buffer_id"), known, f"remote buffer for {kind} access")
        return Operand("remote", (remote.rank,), remote.buffer, index, size)
    return Operand("local", (lists.rank,), _buffer(value, "type"), index, size)


def _pipeline(op: Op, value: JsonValue, lists: _Lists, *, nested: bool) -> Op:
    if nested:
        raise value.error("is a pipeline in a pipeline", "the runtime unrolls one level")
    context = value.at("iter_context")
    unit = context.at("unit_size").integer(low=1)
    chunks = context.at("num_chunks").integer(0, MAX_SPAN)
    inner = tuple(_op(item, lists, nested=True) for item in value.items("ops"))
    return Op(op.name, value, unit=unit, chunks=chunks, inner=inner)
