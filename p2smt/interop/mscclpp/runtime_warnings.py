"""What a reader notices about an MSCCL++ plan that is not about correctness.

Why the runtime would not run it: limits are those of the runtime's execution_common.hpp.  What to
know besides: where its execution kernel does not do what the format means.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from p2smt.interop.mscclpp.grid import wrap_bytes
from p2smt.interop.mscclpp.parse import parse_mscclpp

if TYPE_CHECKING:
    from collections.abc import Iterator

    from p2smt.interop.mscclpp.execution_plan import Channel, ExecutionPlan, Gpu, Op, ThreadBlock
    from p2smt.interop.mscclpp.grid import Grid

MAX_OPERATIONS = 64
MAX_CHANNELS = 16
MAX_CHANNELS_OF_OP = 8
MAX_OPERANDS = 10
MAX_BARRIERS = 16
MAX_SEMAPHORES = 16
MOST = 40


def warnings_of(plan: ExecutionPlan, grid: Grid, iterations: int) -> tuple[str, ...]:
    """Warnings, each once, in the order of the file."""
    return _each_once(_all(plan, grid, iterations))


def refusals(plan: ExecutionPlan) -> tuple[str, ...]:
    """Why the runtime does not run a plan, each reason once; none if it does."""
    return _each_once(_beyond(plan))


def mscclpp_refusals(text: str, source: str) -> tuple[str, ...]:
    """Why MSCCL++ would not run a text; InputError as from ``parse_mscclpp``."""
    return refusals(parse_mscclpp(text, source))


def _each_once(texts: Iterator[str]) -> tuple[str, ...]:
    found: dict[str, None] = {}
    for text in texts:
        found[text] = None
        if len(found) > MOST:
            break
    shown = list(found)[:MOST]
    return (*shown, "and more") if len(found) > MOST else tuple(shown)


def _beyond(plan: ExecutionPlan) -> Iterator[str]:
    for gpu in plan.gpus:
        for number, block in enumerate(gpu.blocks):
            yield from _block(f"gpu {gpu.rank} thread block {number}", block)
            for op in block.operations:
                yield from _room(op)


def _all(plan: ExecutionPlan, grid: Grid, iterations: int) -> Iterator[str]:
    yield from _units(plan, grid, iterations)
    for gpu in plan.gpus:
        yield from _gpu(gpu)
        for block in gpu.blocks:
            for op in block.operations:
                yield from _op(op, plan.protocol)


def _units(plan: ExecutionPlan, grid: Grid, iterations: int) -> Iterator[str]:
    ops = list(plan.operations())
    if grid.per_chunk > 1:
        count = grid.per_chunk
        yield f"indices of chunks count units: {count} of them are one chunk of the file"
    if any(op.unit for op in ops):
        yield f"pipelines are checked for {iterations} units per chunk"
        scratch = max(gpu.sizes[2] for gpu in plan.gpus)
        if plan.reuse and scratch and min(grid.strides) == grid.per_chunk:
            size = wrap_bytes(plan, scratch)
            units = size // min(op.unit for op in ops if op.unit)
            yield (
                f"chunks of more than {size} bytes wrap around the scratch buffer, which is not "
                f"checked with fewer than {units + 1} units per chunk"
            )
    if any(op.part[1] > 1 for op in ops):
        yield "thread block groups are checked for sizes that they divide evenly"


def _gpu(gpu: Gpu) -> Iterator[str]:
    users: dict[Channel, int] = {}
    for number, block in enumerate(gpu.blocks):
        for op in block.operations:
            for channel in op.channels if op.kind == "port" and "wait" not in op.name else ():
                if users.setdefault(channel, number) != number:
                    yield (
                        f"gpu {gpu.rank}: thread blocks {users[channel]} and {number} use one "
                        f"port channel to rank {channel.peer}; their requests count as unordered"
                    )


def _block(where: str, block: ThreadBlock) -> Iterator[str]:
    count = len(block.operations)
    if count > MAX_OPERATIONS:
        yield f"{where} has {count} operations; the runtime has room for {MAX_OPERATIONS}"
    for kind in ("memory", "port"):
        used = {c for op in block.operations if op.kind == kind for c in op.channels}
        if len(used) > MAX_CHANNELS:
            count = len(used)
            yield f"{where} uses {count} {kind} channels; the runtime has room for {MAX_CHANNELS}"


def _room(op: Op) -> Iterator[str]:
    where = f"line {op.value.line}: {op.name}"
    if len(op.semaphores) > MAX_SEMAPHORES:
        yield f"{where} has {len(op.semaphores)} semaphores; the runtime has room for 16"
    if len(op.channels) > MAX_CHANNELS_OF_OP:
        yield f"{where} has {len(op.channels)} channels; the runtime has room for 8"
    if max(len(op.sources), len(op.targets)) > MAX_OPERANDS:
        yield f"{where} has more operands than the runtime has room for ({MAX_OPERANDS})"
    if op.barrier and op.barrier[0] >= MAX_BARRIERS:
        yield f"{where} {op.barrier[0]}: the runtime has {MAX_BARRIERS} barriers"


def _op(op: Op, protocol: str) -> Iterator[str]:
    where = f"line {op.value.line}: {op.name}"
    if op.reduce_op != "sum":
        yield f"{where} with {op.reduce_op[:20]!r} is checked as a sum; the kernel only adds"
    sizes = {operand.size for operand in (*op.sources, *op.targets)}
    if len(sizes) > 1:
        yield f"{where} names several sizes; those that the kernel looks at count"
    yield from _kernel(op, where, protocol)


def _kernel(op: Op, where: str, protocol: str) -> Iterator[str]:
    """Where the kernel differs from what the format means."""
    if op.name == "get" and any(
        a.index != b.index for a, b in zip(op.sources, op.targets, strict=False)
    ):
        yield f"{where} has different indices; the kernel exchanges source and destination offset"
    if op.name in ("put", "ppkt") and len({operand.buffer for operand in op.sources}) > 1:
        yield f"{where} has several source buffers; the kernel takes all from the first one"
    if op.name in ("pws", "pwsf") and op.kind == "memory":
        yield f"{where} sends no signal over memory channels"
    if op.name == "flush":
        yield "flush is checked as waiting for its channels; some kernels skip it"
    if op.name.endswith("pkt") and protocol != "LL":
        yield f"{where} needs twice the scratch, which the executor sets aside for LL only"
