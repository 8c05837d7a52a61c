"""MSCCL XML to checked records with line numbers, in every dialect.

``<op>`` or ``<step>``; ``s`` or ``step`` for a step's number; ``buf`` and ``off`` where a step
names one place only; attributes in any order, unknown ones ignored.  What the type of a step does
not use (the source of ``r``) may be missing or anything.  Left out, ``send`` and ``recv`` are -1,
``chan`` and the chunk counts 0, ``cnt`` of a nop 0, ``depid`` -1, ``proto`` Simple.

The runtime counts steps in document order and only bounds ``s``; so a number that is not the
step's position is an error here: whoever wrote it meant another order than the one that runs.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from p2smt.collectives.names import CUSTOM, MSCCL_NAMES
from p2smt.errors import InputError, TooLarge
from p2smt.interop.msccl.elements import MAX_NUMBER, error_at, walk
from p2smt.schedules.model import Buffer

if TYPE_CHECKING:
    from p2smt.interop.msccl.elements import Element

MAX_RANKS = 4096
MAX_CHUNKS = 1 << 22
"""Most chunks declared, over all buffers of all gpus."""
MAX_MOVED = 1 << 24
"""Most chunks that all steps handle together."""

PROTOCOLS = ("Simple", "LL", "LL128")

_BUFFERS = {buffer.value: buffer for buffer in Buffer}
_LETTERS = tuple(_BUFFERS)
_INSIDE = {
    "": ("algo",),
    "algo": ("gpu",),
    "gpu": ("tb", "copy"),
    "tb": ("step", "op"),
    **dict.fromkeys(("copy", "step", "op"), ()),
}


class Form(NamedTuple):
    """What a type of step does; ``adds``: its destination is also a source."""

    receives: bool = False
    reads: bool = False
    writes: bool = False
    sends: bool = False
    adds: bool = False


FORMS = {
    "s": Form(reads=True, sends=True),
    "r": Form(receives=True, writes=True),
    "rcs": Form(receives=True, writes=True, sends=True),
    "rrc": Form(receives=True, reads=True, writes=True),
    "rrs": Form(receives=True, reads=True, sends=True),
    "rrcs": Form(receives=True, reads=True, writes=True, sends=True),
    "cpy": Form(reads=True, writes=True),
    "re": Form(reads=True, writes=True, adds=True),
    "nop": Form(),
}
"""The types of steps."""

_TYPES = tuple(FORMS)


class Place(NamedTuple):
    """A chunk of a buffer of the gpu itself."""

    buffer: Buffer
    start: int


@dataclass(frozen=True, slots=True)
class RawStep:
    """A step: what it reads and stores (None: its type does not), its block and step to wait for.

    announced: ``hasdep``; None where it is missing.
    """

    line: int
    kind: str
    source: Place | None
    target: Place | None
    count: int
    wait: tuple[int, int] | None = None
    announced: bool | None = None


@dataclass(slots=True)
class RawBlock:
    """A thread block."""

    line: int
    number: int
    send: int
    receive: int
    channel: int
    steps: list[RawStep] = field(default_factory=list)


@dataclass(slots=True)
class RawGpu:
    """A gpu: chunks of input, output and scratch; copies made before its blocks run."""

    line: int
    rank: int
    chunks: tuple[int, int, int]
    copies: list[RawStep] = field(default_factory=list)
    blocks: dict[int, RawBlock] = field(default_factory=dict)


@dataclass(slots=True)
class RawAlgo:
    """The file; None: the attribute is missing."""

    source: str
    line: int
    name: str
    ranks: int
    collective: str
    protocol: str
    channels: int | None
    chunks: int | None
    in_place: bool | None
    out_of_place: bool | None
    gpus: dict[int, RawGpu] = field(default_factory=dict)

    def error(self, rule: str, remedy: str, line: int | None = None) -> InputError:
        """An error about a line, that of the algorithm if none is given."""
        return error_at(self.source, line or self.line, rule, remedy)


def parse_msccl(text: str, source: str) -> RawAlgo:
    """The records in an MSCCL XML text; ``source`` names it in messages.

    Raises:
        InputError: the text is not such a file, or larger than this module's limits.
    """
    collector = _Collector()
    walk(text, source, _INSIDE, collector.visit)
    algo = collector.algo
    if algo is None:
        raise InputError(source, "is empty", "write an <algo>")
    if len(algo.gpus) != algo.ranks:
        missing = next(rank for rank in range(algo.ranks) if rank not in algo.gpus)
        raise algo.error(f"ngpus is {algo.ranks}, but there is no gpu {missing}", "add it")
    return algo


class _Collector:
    """Puts elements into the record that was opened last."""

    def __init__(self) -> None:
        self.algo: RawAlgo | None = None
        self.gpu: RawGpu
        self.block: RawBlock
        self.declared = self.moved = 0

    def visit(self, element: Element) -> None:
        match element.name:
            case "algo":
                self.algo = _algo(element)
            case "gpu":
                self._add_gpu(element)
            case "tb":
                self._add_block(element)
            case "copy":
                self._count(element, step := _copy(element))
                self.gpu.copies.append(step)
            case _:
                self._count(element, step := _step(element, len(self.block.steps)))
                self.block.steps.append(step)

    def _add_gpu(self, element: Element) -> None:
        assert self.algo is not None
        rank = element.integer("id", high=self.algo.ranks - 1)
        if rank in self.algo.gpus:
            raise element.error(f"has id={rank} of the gpu on line {self.algo.gpus[rank].line}", "")
        inputs, outputs, scratch = (element.integer(f"{name}_chunks", 0) for name in _BUFFERS)
        self.declared += inputs + outputs + scratch
        if self.declared > MAX_CHUNKS:
            error = element.error(f"is beyond {MAX_CHUNKS} chunks in all", "use fewer chunks")
            raise TooLarge(error.given, error.rule, error.remedy)
        self.gpu = RawGpu(element.line, rank, (inputs, outputs, scratch))
        self.algo.gpus[rank] = self.gpu

    def _add_block(self, element: Element) -> None:
        number = element.integer("id", high=1_000_000)
        if number in self.gpu.blocks:
            first = self.gpu.blocks[number].line
            raise element.error(f"has id={number} of the block on line {first}", "number it anew")
        peers = [element.integer(name, -1, -MAX_NUMBER) for name in ("send", "recv")]
        channel = element.integer("chan", 0, -1)
        self.block = RawBlock(element.line, number, peers[0], peers[1], max(channel, 0))
        self.gpu.blocks[number] = self.block

    def _count(self, element: Element, step: RawStep) -> None:
        self.moved += min(step.count, MAX_CHUNKS)
        if self.moved > MAX_MOVED:
            error = element.error(f"is beyond {MAX_MOVED} chunks handled", "split the file")
            raise TooLarge(error.given, error.rule, error.remedy)


def _algo(element: Element) -> RawAlgo:
    return RawAlgo(
        element.source,
        element.line,
        " ".join(element.text("name", "").split())[:200],
        element.integer("ngpus", low=1, high=MAX_RANKS),
        element.word("coll", (*MSCCL_NAMES, CUSTOM)),
        element.word("proto", PROTOCOLS, "Simple"),
        element.integer("nchannels") if element.has("nchannels") else None,
        element.integer("nchunksperloop", low=1) if element.has("nchunksperloop") else None,
        element.flag("inplace"),
        element.flag("outofplace"),
    )


def _copy(element: Element) -> RawStep:
    source = Place(Buffer.INPUT, element.integer("i_off", low=-MAX_NUMBER))
    target = Place(Buffer.OUTPUT, element.integer("o_off", low=-MAX_NUMBER))
    return RawStep(element.line, "cpy", source, target, element.integer("cnt", 1))


def _step(element: Element, position: int) -> RawStep:
    number = element.integer("s" if element.has("s") else "step", position)
    if number != position:
        rule = f"is step {position} of its block in document order, but its number is {number}"
        raise element.error(rule, "number the steps 0, 1, .. in the order in which they run")
    kind = element.word("type", _TYPES)
    form = FORMS[kind]
    # A single place stands for both ends, except where that would say nothing.
    short = element.has("buf") and not (form.reads and form.writes and not form.receives)
    block = element.integer("depid", -1, -MAX_NUMBER)
    return RawStep(
        element.line,
        kind,
        _place(element, "src", short) if form.reads else None,
        _place(element, "dst", short) if form.writes else None,
        0 if kind == "nop" else element.integer("cnt"),
        (block, element.integer("deps", low=-MAX_NUMBER)) if block >= 0 else None,
        element.flag("hasdep"),
    )


def _place(element: Element, end: str, short: bool) -> Place:
    buffer, offset = f"{end}buf", f"{end}off"
    if short and not element.has(buffer):
        buffer, offset = "buf", "off"
    start = element.integer(offset, low=-MAX_NUMBER)
    return Place(_BUFFERS[element.word(buffer, _LETTERS)], start)
