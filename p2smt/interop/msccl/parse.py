"""MSCCL XML to checked elements with line numbers, in every dialect.

``<op>`` or ``<step>``; ``s`` or ``step`` for a step's number; ``buf`` and ``off`` where a step
names one place only; attributes in any order, unknown ones ignored.  What the type of a step does
not use (the source of ``r``) may be missing or anything.  Left out, ``send`` and ``recv`` are -1,
``chan`` and the chunk counts 0, ``cnt`` of a nop 0, ``depid`` -1, ``proto`` Simple.

The runtime counts steps in document order and only bounds ``s``; so a number that is not the
step's position is an error here: whoever wrote it meant another order than the one that runs.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from p2smt.errors import InputError, TooLarge
from p2smt.interop.msccl.checked_xml import MAX_NUMBER, walk
from p2smt.interop.msccl.elements import STEP_TYPES, RawAlgo, RawBlock, RawGpu, RawPlace, RawStep
from p2smt.schedules.model import Buffer

if TYPE_CHECKING:
    from p2smt.interop.msccl.checked_xml import XmlElement

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
_TYPES = tuple(STEP_TYPES)


def parse_msccl(text: str, source: str) -> RawAlgo:
    """The elements of an MSCCL XML text; ``source`` names it in messages.

    Raises:
        InputError: the text is not such a file, or larger than this module's limits.
    """
    collector = _Collector()
    walk(text, source, _INSIDE, collector.visit)
    algo = collector.found()
    if algo is None:
        raise InputError(source, "is empty", "write an <algo>")
    if len(algo.gpus) != algo.ranks:
        missing = next(rank for rank in range(algo.ranks) if rank not in algo.gpus)
        raise algo.error(f"ngpus is {algo.ranks}, but there is no gpu {missing}", "add it")
    return algo


class _Collector:
    """Collects elements for the record that was opened last; the next of its kind closes it.

    gpus and blocks have what is closed; copies and steps belong to what is open.
    """

    def __init__(self) -> None:
        self.algo: RawAlgo | None = None
        self.gpu: RawGpu | None = None
        self.block: RawBlock | None = None
        self.gpus: dict[int, RawGpu] = {}
        self.blocks: dict[int, RawBlock] = {}
        self.copies: list[RawStep] = []
        self.steps: list[RawStep] = []
        self.declared = self.moved = 0

    def found(self) -> RawAlgo | None:
        """The file, once all elements are visited; None if there was none."""
        self._close_gpu()
        return self.algo and replace(self.algo, gpus=self.gpus)

    def visit(self, element: XmlElement) -> None:
        match element.name:
            case "algo":
                self.algo = _algo(element)
            case "gpu":
                self._open_gpu(element)
            case "tb":
                self._open_block(element)
            case "copy":
                self._add(element, _copy(element), self.copies)
            case _:
                self._add(element, _step(element, len(self.steps)), self.steps)

    def _close_gpu(self) -> None:
        self._close_block()
        if self.gpu is not None:
            gpu = replace(self.gpu, copies=tuple(self.copies), blocks=self.blocks)
            self.gpus[gpu.rank] = gpu
            self.gpu, self.copies, self.blocks = None, [], {}

    def _close_block(self) -> None:
        if self.block is not None:
            self.blocks[self.block.number] = replace(self.block, steps=tuple(self.steps))
            self.block, self.steps = None, []

    def _open_gpu(self, element: XmlElement) -> None:
        assert self.algo is not None
        self._close_gpu()
        rank = element.integer("id", high=self.algo.ranks - 1)
        if rank in self.gpus:
            raise element.error(f"has id={rank} of the gpu on line {self.gpus[rank].line}", "")
        inputs, outputs, scratch = (element.integer(f"{name}_chunks", 0) for name in _BUFFERS)
        self.declared += inputs + outputs + scratch
        if self.declared > MAX_CHUNKS:
            error = element.error(f"is beyond {MAX_CHUNKS} chunks in all", "use fewer chunks")
            raise TooLarge(error.given, error.rule, error.remedy)
        self.gpu = RawGpu(element.line, rank, (inputs, outputs, scratch))

    def _open_block(self, element: XmlElement) -> None:
        self._close_block()
        number = element.integer("id", high=1_000_000)
        if number in self.blocks:
            first = self.blocks[number].line
            raise element.error(f"has id={number} of the block on line {first}", "number it anew")
        peers = [element.integer(name, -1, -MAX_NUMBER) for name in ("send", "recv")]
        channel = element.integer("chan", 0, -1)
        self.block = RawBlock(element.line, number, peers[0], peers[1], max(channel, 0))

    def _add(self, element: XmlElement, step: RawStep, steps: list[RawStep]) -> None:
        self.moved += min(step.count, MAX_CHUNKS)
        if self.moved > MAX_MOVED:
            error = element.error(f"is beyond {MAX_MOVED} chunks handled", "split the file")
            raise TooLarge(error.given, error.rule, error.remedy)
        steps.append(step)


def _algo(element: XmlElement) -> RawAlgo:
    return RawAlgo(
        element.source,
        element.line,
        " ".join(element.text("name", "").split())[:200],
        element.integer("ngpus", low=1, high=MAX_RANKS),
        element.text("coll", "") if element.has("coll") else None,
        element.word("proto", PROTOCOLS, "Simple"),
        element.integer("nchannels") if element.has("nchannels") else None,
        element.integer("nchunksperloop", low=1) if element.has("nchunksperloop") else None,
        element.flag("inplace"),
        element.flag("outofplace"),
        element.has("minBytes") and element.has("maxBytes"),
    )


def _copy(element: XmlElement) -> RawStep:
    source = RawPlace(Buffer.INPUT, element.integer("i_off", low=-MAX_NUMBER))
    target = RawPlace(Buffer.OUTPUT, element.integer("o_off", low=-MAX_NUMBER))
    return RawStep(element.line, "cpy", source, target, element.integer("cnt", 1))


def _step(element: XmlElement, position: int) -> RawStep:
    number = element.integer("s" if element.has("s") else "step", position)
    if number != position:
        rule = f"is step {position} of its block in document order, but its number is {number}"
        raise element.error(rule, "number the steps 0, 1, .. in the order in which they run")
    kind = element.word("type", _TYPES)
    does = STEP_TYPES[kind]
    # A single place stands for both ends, except where that would say nothing.
    short = element.has("buf") and not (does.reads and does.writes and not does.receives)
    block = element.integer("depid", -1, -MAX_NUMBER)
    return RawStep(
        element.line,
        kind,
        _place(element, "src", short) if does.reads else None,
        _place(element, "dst", short) if does.writes else None,
        0 if kind == "nop" else element.integer("cnt"),
        (block, element.integer("deps", low=-MAX_NUMBER)) if block >= 0 else None,
        element.flag("hasdep"),
    )


def _place(element: XmlElement, end: str, short: bool) -> RawPlace:
    buffer, offset = f"{end}buf", f"{end}off"
    if short and not element.has(buffer):
        buffer, offset = "buf", "off"
    start = element.integer(offset, low=-MAX_NUMBER)
    return RawPlace(_BUFFERS[element.word(buffer, _LETTERS)], start)
