"""Reads an MSCCL++ JSON execution plan as a schedule.

Faithful to the runtime's execution kernel: see actions for what an operation does, thread_order
for what is in order and what is not (a ``nop`` is a block-wide synchronisation, and without one
different threads of a block run apart), and grid for how chunks are cut where a plan has pipelines
or thread block groups.

Choices:

- A pipeline runs ``iterations`` times per chunk, for a message whose chunks are as many units
  long.  Scratch with reuse_resources holds 64 MiB; it wraps around only if that many iterations
  exceed it, as in the runtime, so that a wrap is checked by asking for enough iterations.
- Where the kernel looks at one size of several, that one counts for all operands.
- ``get`` takes its offsets, and ``flush`` its channels, from the fields the format means; memory
  ``pws`` sends no signal, as in the kernel.  Warnings name where runtimes are known to differ.
- Packets: a thread blocked on a packet holds up its later data operations, not its later signals.
- Every reduction counts as a sum.
- The root of rooted collectives is the caller's to say: the format does not.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from p2smt.collectives.contract import contract
from p2smt.collectives.names import COLLECTIVES, collective_named
from p2smt.errors import InputError, TooLarge
from p2smt.interop.mscclpp.actions import Kernel
from p2smt.interop.mscclpp.execution_plan import semaphore_counter
from p2smt.interop.mscclpp.grid import grid_of, wrap_bytes
from p2smt.interop.mscclpp.parse import parse_mscclpp
from p2smt.interop.mscclpp.thread_order import RankSteps
from p2smt.interop.reading import AS_IT_STANDS
from p2smt.schedules.model import Schedule

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from p2smt.collectives.contract import Contract
    from p2smt.interop.mscclpp.actions import Action
    from p2smt.interop.mscclpp.execution_plan import Channel, ExecutionPlan, Gpu, Op, ThreadBlock
    from p2smt.interop.mscclpp.grid import Grid
    from p2smt.interop.reading import Reading
    from p2smt.schedules.model import Step


FORMAT = "mscclpp-json"
MAX_STEPS = 1_000_000
MAX_CHUNKS = 1 << 19
MAX_SCRATCH = 1 << 23
MAX_ACCESSES = 1 << 24
MAX_ITERATIONS = 4096


def read_mscclpp(text: str, source: str, reading: Reading = AS_IT_STANDS) -> Schedule:
    """The schedule in an MSCCL++ JSON execution plan; ``source`` names the file in messages.

    Raises:
        InputError: the text is not such a plan, names what does not exist, or is too large.
    """
    iterations = 3 if reading.iterations is None else reading.iterations
    if not 1 <= iterations <= MAX_ITERATIONS:
        rule = f"must be from 1 to {MAX_ITERATIONS}"
        raise InputError(f"{iterations} iterations", rule, "3 shows most pipelines' races")
    plan = parse_mscclpp(text, source)
    if reading.iterations is not None and not any(op.unit for op in plan.operations()):
        rule = f"{iterations} iterations are asked for, and it has no pipeline"
        raise plan.value.error(rule, "drop --iterations")
    grid = grid_of(plan, iterations)
    sizes = grid.sizes(plan)
    _check_size(plan, [max(s.input, s.output) for s in sizes], [s.scratch for s in sizes])
    goal = _contract(plan, grid, reading)
    return Schedule(
        plan.name,
        goal,
        sizes,
        tuple(_steps(plan, grid)),
        FORMAT,
        plan.protocol,
        tuple(_initial(plan.gpus)),
        warnings_of(plan, grid, iterations),
        refusals(plan),
    )


def _initial(gpus: Iterable[Gpu]) -> Iterator[tuple[str, int]]:
    for gpu in gpus:
        for number, value in enumerate(gpu.semaphores):
            if value:
                yield semaphore_counter(gpu.rank, number), value


def _check_size(plan: ExecutionPlan, chunks: list[int], scratch: list[int]) -> None:
    given = f"{plan.value.source}: {plan.name or 'the plan'}"
    if max(chunks) * len(chunks) > MAX_CHUNKS:
        rule = f"has more than {MAX_CHUNKS} chunks over all ranks"
        raise TooLarge(given, rule, "use fewer chunks, ranks or iterations")
    if sum(scratch) > MAX_SCRATCH:
        rule = f"has more than {MAX_SCRATCH} scratch chunks over all ranks"
        raise TooLarge(given, rule, "use less scratch, or fewer iterations")


def _contract(plan: ExecutionPlan, grid: Grid, reading: Reading) -> Contract:
    """The contract, in units; the number of chunks must be the same on every rank."""
    given = reading.collective or plan.collective
    name = collective_named(given)
    if name is None:
        where = plan.value.at("collective") if reading.collective is None else plan.value
        known = ", ".join(COLLECTIVES)
        raise where.error(
            f"collective {given[:40]!r} has no contract", f"name one of {known} with --collective"
        )
    place = 1 if name in ("reduce_scatter", "scatter") else 0
    key = ("input_chunks", "output_chunks")[place]
    counts = {gpu.sizes[place] for gpu in plan.gpus}
    chunks, ranks = min(counts), len(plan.gpus)
    if len(counts) > 1:
        rule = f"{key} differ between ranks: {min(counts)} and {max(counts)}"
        raise plan.value.at("gpus").error(rule, "give the same number everywhere")
    if name == "alltoall" and chunks % ranks:
        rule = f"{chunks} {key} are not a multiple of {ranks} ranks"
        raise plan.value.at("gpus").error(rule, "an all-to-all sends as many to each rank")
    chunks //= ranks if name == "alltoall" else 1
    if chunks < 1:
        rule = f"{key} must be at least 1 for {name}"
        raise plan.value.at("gpus").error(rule, "give the number of chunks")
    root = reading.root_of(name)
    return contract(name, ranks, chunks * grid.per_chunk, in_place=plan.in_place, root=root)


def _steps(plan: ExecutionPlan, grid: Grid) -> Iterator[Step]:
    budget = _Budget(plan.value.source)
    for gpu in plan.gpus:
        ops = [{op.barrier[0] for op in b.operations if op.barrier} for b in gpu.blocks]
        kernel = Kernel(gpu, grid, Counter(number for block in ops for number in block))
        made = RankSteps(gpu.rank, len(gpu.blocks), plan.in_place)
        for number, block in enumerate(gpu.blocks):
            made.add_block(number, budget.spent(kernel.block(block)))
        yield from made.all_steps()


class _Budget:
    """Counts steps and chunks accessed, so that no file costs more than the limits."""

    def __init__(self, source: str) -> None:
        self.source, self.steps, self.accesses = source, 0, 0

    def spent(self, actions: Iterable[Action]) -> Iterator[Action]:
        """The actions, until they are too many."""
        for action in actions:
            count = getattr(action, "count", 0)
            spans = len(getattr(action, "reads", ())) + len(getattr(action, "writes", ()))
            self.steps += 1
            self.accesses += count * spans
            if self.steps > MAX_STEPS or self.accesses > MAX_ACCESSES:
                given = f"{self.source}, line {action.line}"
                rule = f"more than {MAX_STEPS} steps or {MAX_ACCESSES} chunks accessed up to here"
                raise TooLarge(given, rule, "ask for fewer iterations, or use fewer chunks")
            yield action


# What a reader notices about an MSCCL++ plan that is not about correctness.
# Why the runtime would not run it: limits are those of the runtime's execution_common.hpp.  What to
# know besides: where its execution kernel does not do what the format means.


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
