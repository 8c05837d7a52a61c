"""An MSCCL++ execution plan with its indirections resolved, still in the plan's own chunks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from p2smt.schedules.model import Buffer

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from p2smt.interop.mscclpp.checked_json import JsonValue
    from p2smt.schedules.model import Buffer


@dataclass(frozen=True, slots=True)
class Channel:
    """One end of a channel: ``number`` counts those of its kind between the two ranks."""

    kind: str
    rank: int
    peer: int
    number: int

    def out(self) -> str:
        """The counter that this end raises."""
        return channel_counter(self.kind, self.rank, self.peer, self.number)

    def into(self) -> str:
        """The counter that this end waits for."""
        return channel_counter(self.kind, self.peer, self.rank, self.number)


def channel_counter(kind: str, source: int, target: int, number: int) -> str:
    """The counter of a channel in one direction."""
    return f"{kind} channel {source}->{target} #{number}"


def semaphore_counter(rank: int, number: int) -> str:
    """The counter of a semaphore of a rank."""
    return f"semaphore {number} of rank {rank}"


@dataclass(frozen=True, slots=True)
class Operand:
    """Chunks ``index .. index + size - 1`` of a buffer.

    where: "local", "remote", or "switch": the same chunks on every rank of a group.
    """

    where: str
    ranks: tuple[int, ...]
    buffer: Buffer
    index: int
    size: int


@dataclass(frozen=True, slots=True)
class Op:
    """An operation; what its kind does not use is empty.

    part: which part of how many of the data is this block's, in a thread block group.
    unit, chunks, inner: of a pipeline: bytes per iteration, chunks it runs over, operations.
    """

    name: str
    value: JsonValue
    sources: tuple[Operand, ...] = ()
    targets: tuple[Operand, ...] = ()
    kind: str = "none"
    channels: tuple[Channel, ...] = ()
    semaphores: tuple[int, ...] = ()
    barrier: tuple[int, int] | None = None
    part: tuple[int, int] = (0, 1)
    unit: int = 0
    chunks: int = 0
    inner: tuple[Op, ...] = ()
    reduce_op: str = "sum"


@dataclass(frozen=True, slots=True)
class ThreadBlock:
    """A thread block.

    nested: its operations as they are run, those of a pipeline inside it.
    operations: all of them in the order of the file, a pipeline before those inside it.
    """

    nested: tuple[Op, ...]
    operations: tuple[Op, ...]


@dataclass(frozen=True, slots=True)
class Gpu:
    """A rank: buffer sizes in chunks, initial values of semaphores, thread blocks."""

    rank: int
    sizes: tuple[int, int, int]
    semaphores: tuple[int, ...]
    blocks: tuple[ThreadBlock, ...]


@dataclass(frozen=True, slots=True)
class ExecutionPlan:
    """A whole file."""

    value: JsonValue
    name: str
    collective: str
    protocol: str
    in_place: bool
    reuse: bool
    double_scratch: bool
    alignment: int
    gpus: tuple[Gpu, ...]

    def operations(self) -> Iterator[Op]:
        """All operations of all gpus and blocks."""
        return (op for gpu in self.gpus for block in gpu.blocks for op in block.operations)


# What operands each operation takes, as the kernel reads them by position.
# A pattern has a word for the sources and one for the targets.  Letters: L here, R on another rank,
# S on every rank of a switch group; small ones hold packets; p is memory that holds packets but is
# moved as it is.  The last letter of a word may be repeated where a + follows it, or left out or
# repeated where a * follows.


PATTERNS = {
    "copy": ("L", "L"),
    "get": ("R+", "L+"),
    "put": ("L+", "R+"),
    "pws": ("L+", "R+"),
    "pwsf": ("L+", "R+"),
    "re": ("LL*", "L"),
    "res": ("LL*", "LR+"),
    "rre": ("LR+", "L"),
    "rres": ("LR+", "LR+"),
    "ppkt": ("L+", "r+"),
    "rppkt": ("l", "r+"),
    "cpkt": ("L", "l"),
    "upkt": ("l", "L"),
    "repkt": ("Ll*", "L"),
    "respkt": ("Ll*", "Lr+"),
    "recpkt": ("Ll*", "Ll"),
    "recspkt": ("Ll*", "Llr+"),
    "glres": ("S", "S"),
    "gstore": ("L", "S"),
    "gstorepkt": ("l", "s"),
}
PORT_PACKETS = ("p+", "r+")
PAIRED = ("get", "put", "pws", "pwsf", "ppkt")
CONTROL = (
    *("nop", "barrier", "signal", "wait", "rlxsignal", "rlxwait", "flush"),
    *("sem_acquire", "sem_release", "pipeline"),
)
_WHERE = {"L": "local", "R": "remote", "S": "switch", "P": "local"}


def pattern(op: Op) -> tuple[str, str]:
    """The pattern of an operation; InputError if there is no such operation."""
    if op.name == "ppkt" and op.kind == "port":
        return PORT_PACKETS
    if op.name in CONTROL:
        return "", ""
    if op.name not in PATTERNS:
        known = ", ".join((*CONTROL, *PATTERNS))
        raise op.value.at("name").error(f"{op.name[:40]!r} is not an operation", f"known: {known}")
    return PATTERNS[op.name]


def letters(op: Op) -> str:
    """The letter of each source, then of each target.

    Raises:
        InputError: the operands are not those that the operation takes.
    """
    sources, targets = pattern(op)
    if not (sources or op.sources or op.targets):
        return ""
    return _fitted(op, "src_buff", sources, op.sources) + _fitted(
        op, "dst_buff", targets, op.targets
    )


def _fitted(op: Op, key: str, word: str, operands: Sequence[Operand]) -> str:
    plain = word.rstrip("+*")
    least = len(plain) - word.endswith("*")
    most = len(operands) if word != plain else len(plain)
    if not least <= len(operands) <= most:
        wanted = f"{least}" if word == plain else f"{least} or more"
        rule = f"{op.name} has {len(operands)} entries in {key}, not {wanted}"
        raise op.value.error(rule, "the kernel reads them by position")
    found = plain[: len(operands)] + plain[-1:] * (len(operands) - len(plain))
    for place, (letter, operand) in enumerate(zip(found, operands, strict=True)):
        _check(op, f"{key}[{place}]", letter, operand)
    return found


def _check(op: Op, key: str, letter: str, operand: Operand) -> None:
    where = _WHERE[letter.upper()]
    if operand.where != where:
        rule = f"{key} of {op.name} must be {where}, not {operand.where}"
        raise op.value.error(rule, "give type, buffer_id or switch_channel_id accordingly")
    if letter in "lrsp" and operand.buffer is not Buffer.SCRATCH:
        rule = f"{key} of {op.name} holds packets, which are only in scratch"
        raise op.value.error(rule, "name a scratch buffer")
