"""Small MSCCL++ execution plans as plain data, for tests to change and to read."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from p2smt.interop.mscclpp.read import read_mscclpp
from p2smt.interop.reading import Reading

if TYPE_CHECKING:
    from p2smt.schedules.model import Schedule, Step

Data = dict[str, Any]


def near(buffer: str, index: int, size: int = 1) -> Data:
    """Chunks of an own buffer."""
    return {"type": buffer, "index": index, "size": size}


def far(number: int, index: int, size: int = 1) -> Data:
    """Chunks of a remote buffer."""
    return {"buffer_id": number, "index": index, "size": size}


def group(number: int, index: int, size: int = 1) -> Data:
    """Chunks of a buffer of all ranks of a switch channel."""
    return {"switch_channel_id": number, "index": index, "size": size}


def op(name: str, **keys: object) -> Data:
    """An operation."""
    return {"name": name, **keys}


def move(name: str, sources: list[Data], targets: list[Data], **keys: object) -> Data:
    """An operation on data, over memory channels unless told otherwise."""
    return {
        "name": name,
        "src_buff": sources,
        "dst_buff": targets,
        "channel_type": "memory",
        **keys,
    }


def over(name: str, *ids: int, kind: str = "memory") -> Data:
    """A signal, a wait or a flush."""
    return {"name": name, "channel_ids": list(ids), "channel_type": kind}


NOP = op("nop")


def block(ops: list[Data], *, memory: int = 0, port: int = 0, buffers: int = 0) -> Data:
    """A thread block that uses the first so many channels, and remote buffers by both kinds."""
    channels = [
        {"channel_type": kind, "channel_ids": list(range(count))}
        for kind, count in (("memory", memory), ("port", port))
        if count
    ]
    kinds = ["memory", *(["port"] if port else [])]
    refs = [
        {"access_channel_type": kind, "remote_buffer_ids": list(range(buffers))} for kind in kinds
    ]
    return {"id": 0, "ops": ops, "channels": channels, "remote_buffer_refs": refs}


def gpu(
    rank: int,
    blocks: list[Data],
    *,
    sizes: tuple[int, int, int] = (1, 2, 0),
    memory: tuple[int, ...] = (),
    port: tuple[int, ...] = (),
    remote: tuple[tuple[int, str], ...] = (),
    semaphores: tuple[int, ...] = (),
) -> Data:
    """A gpu; ``memory`` and ``port`` are the peers that its channels connect to."""
    return {
        "id": rank,
        "input_chunks": sizes[0],
        "output_chunks": sizes[1],
        "scratch_chunks": sizes[2],
        "threadblocks": [{**one, "id": number} for number, one in enumerate(blocks)],
        "channels": [
            {"channel_type": kind, "connected_to": list(peers)}
            for kind, peers in (("memory", memory), ("port", port))
            if peers
        ],
        "remote_buffers": [
            {"rank": peer, "type": buffer, "access_channel_types": ["memory", "port"]}
            for peer, buffer in remote
        ],
        "semaphores": [{"init_value": value} for value in semaphores],
    }


def plan(gpus: list[Data], *, collective: str = "allgather", **keys: object) -> Data:
    """A plan."""
    return {
        "name": "small",
        "collective": collective,
        "protocol": "Simple",
        "inplace": True,
        "gpus": gpus,
        **keys,
    }


def all_gather() -> Data:
    """Two ranks put their chunk to each other after a handshake."""

    def ops(rank: int) -> list[Data]:
        put = move("put", [near("o", rank)], [far(0, rank)])
        shake = [over("rlxsignal", 0), over("rlxwait", 0), NOP]
        return [*shake, put, NOP, over("signal", 0), over("wait", 0), NOP]

    return plan(
        [
            gpu(r, [block(ops(r), memory=1, buffers=1)], memory=(1 - r,), remote=((1 - r, "o"),))
            for r in (0, 1)
        ]
    )


def lonely(ops: list[Data], *more: list[Data], **keys: Any) -> Data:
    """One rank's all-reduce with the operations in a block each; nothing need be done."""
    sizes = keys.pop("sizes", (4, 4, 4))
    semaphores = keys.pop("semaphores", ())
    blocks = [block(found) for found in (ops, *more)]
    alone = gpu(0, blocks, sizes=sizes, semaphores=semaphores)
    return plan([alone], collective="allreduce", **keys)


def pair(ops: list[Data], *, collective: str = "allreduce", **keys: object) -> Data:
    """Two ranks with two channels of each kind; rank 0 has the operations, rank 1 none."""
    remote = ((1, "i"), (1, "o"), (1, "s"))
    first = block(ops, memory=2, port=2, buffers=3)
    return plan(
        [
            gpu(0, [first], sizes=(4, 4, 4), memory=(1, 1), port=(1, 1), remote=remote),
            gpu(1, [], sizes=(4, 4, 4), memory=(0, 0), port=(0, 0)),
        ],
        collective=collective,
        **keys,
    )


def read(data: Data, **keys: Any) -> Schedule:
    """The schedule of a plan."""
    return read_mscclpp(json.dumps(data, indent=1), "plan.json", Reading(**keys))


def steps(data: Data, **keys: Any) -> tuple[Step, ...]:
    """The steps of a plan."""
    return read(data, **keys).steps


def pipeline(ops: list[Data], chunks: int = 1, unit: int = 1 << 20) -> Data:
    """Operations that run unit by unit through ``chunks`` chunks; ``unit`` in bytes."""
    return op("pipeline", iter_context={"unit_size": unit, "num_chunks": chunks}, ops=ops)
