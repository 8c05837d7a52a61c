"""MSCCL XML to checked elements with line numbers, in every dialect.

``<op>`` or ``<step>``; ``s`` or ``step`` for a step's number; ``buf`` and ``off`` where a step
names one place only; attributes in any order, unknown ones ignored.  What the type of a step does
not use (the source of ``r``) may be missing or anything.  Left out, ``send`` and ``recv`` are -1,
``chan`` and the chunk counts 0, ``cnt`` of a nop 0, ``depid`` -1, ``proto`` Simple.

The runtime counts steps in document order and only bounds ``s``; so a number that is not the
step's position is an error here: whoever wrote it meant another order than the one that runs.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple
from xml.sax.handler import ContentHandler

from p2smt.errors import InputError, TooLarge, did_you_mean
from p2smt.interop.safe_xml import error_at, feed_xml
from p2smt.schedules.model import Buffer

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from xml.sax.xmlreader import AttributesImpl

    from p2smt.errors import InputError
    from p2smt.schedules.model import Buffer


# XML elements one after the other, safely, with their line numbers.
# A document type, entities and anything external are refused, the nesting is fixed by a table, and
# the text and the number of elements are bounded: a hostile file costs no more than reading it.


MAX_CHARACTERS = 64 * 1024 * 1024
MAX_ELEMENTS = 1_000_000
MAX_NUMBER = 2**31 - 1
"""Largest number that the runtime holds in an attribute."""

_WHOLE = re.compile(r"-?[0-9]{1,10}")


@dataclass(frozen=True, slots=True)
class XmlElement:
    """The start of an element: its attributes, and the line it is on."""

    name: str
    attributes: Mapping[str, str]
    line: int
    source: str

    def error(self, rule: str, remedy: str) -> InputError:
        """An error about this element; it names the file and the line."""
        return error_at(self.source, self.line, f"<{self.name}> {rule}", remedy)

    def has(self, name: str) -> bool:
        """Whether the attribute is there."""
        return name in self.attributes

    def text(self, name: str, default: str | None = None) -> str:
        """An attribute as it is, or the default where it is missing and there is one."""
        found = self.attributes.get(name, default)
        if found is None:
            raise self.error(f"lacks the attribute {name!r}", "add it")
        return found

    def integer(
        self, name: str, default: int | None = None, low: int = 0, high: int = MAX_NUMBER
    ) -> int:
        """An attribute as a whole number between two bounds."""
        text = self.attributes.get(name)
        if text is None and default is not None:
            return default
        number = None if text is None else _whole(text)
        if number is None or not low <= number <= high:
            shown = f"{name}={_shown(self.text(name))}"
            raise self.error(f"has {shown}, not a whole number from {low} to {high}", "correct it")
        return number

    def flag(self, name: str) -> bool | None:
        """An attribute that is 0 or 1; None where it is missing."""
        return bool(self.integer(name, high=1)) if name in self.attributes else None

    def word(self, name: str, known: tuple[str, ...], default: str | None = None) -> str:
        """An attribute that must be one of some words."""
        text = self.text(name, default)
        if text not in known:
            rule = f"has {name}={_shown(text)}, not one of {', '.join(known)}"
            raise self.error(rule, did_you_mean(text, known) or "pick one")
        return text


def walk(
    text: str,
    source: str,
    inside: Mapping[str, tuple[str, ...]],
    visit: Callable[[XmlElement], None],
) -> None:
    """Visits the elements of an XML document in document order.

    inside: by an element's name, which ones it may hold; under "", what the document may be.

    Raises:
        InputError: the text is not XML, is too large, or has what is refused.
    """
    feed_xml(text, source, MAX_CHARACTERS, lambda line: _Handler(line, source, inside, visit))


class _Handler(ContentHandler):
    """Checks where elements may be, and hands them out."""

    def __init__(
        self,
        line: Callable[[], int],
        source: str,
        inside: Mapping[str, tuple[str, ...]],
        visit: Callable[[XmlElement], None],
    ) -> None:
        super().__init__()
        self._line, self._source, self._inside, self._visit = line, source, inside, visit
        self._open = [""]
        self._count = 0

    def startElement(self, name: str, attrs: AttributesImpl) -> None:  # noqa: N802
        element = XmlElement(name, dict(attrs.items()), self._line(), self._source)
        known = self._inside[self._open[-1]]
        if name not in known:
            raise self._misplaced(name[:60], known)
        self._count += 1
        if self._count > MAX_ELEMENTS:
            raise element.error(f"is beyond {MAX_ELEMENTS} elements", "split the file")
        self._open.append(name)
        self._visit(element)

    def endElement(self, name: str) -> None:  # noqa: ARG002, N802
        self._open.pop()

    def characters(self, content: str) -> None:
        if content.strip():
            rule = f"text {_shown(content.strip())} between elements"
            raise error_at(self._source, self._line(), rule, "remove it")

    def _misplaced(self, name: str, known: tuple[str, ...]) -> InputError:
        there = f"<{self._open[-1]}>" if self._open[-1] else "the file"
        rule = f"{there} holds <{name}>"
        expected = " and ".join(f"<{word}>" for word in known) or "nothing"
        remedy = did_you_mean(name, known) or f"{expected} may be there"
        return error_at(self._source, self._line(), rule, remedy)


@lru_cache(maxsize=4096)
def _whole(text: str) -> int | None:
    return int(text) if _WHOLE.fullmatch(text) else None


def _shown(text: str) -> str:
    return ascii(text if len(text) <= 40 else text[:40] + "..")


# What an MSCCL XML file holds: algorithm, gpus, thread blocks, steps; and the types of steps.


class StepType(NamedTuple):
    """What a type of step does; ``adds``: its destination is also a source."""

    receives: bool = False
    reads: bool = False
    writes: bool = False
    sends: bool = False
    adds: bool = False


STEP_TYPES = {
    "s": StepType(reads=True, sends=True),
    "r": StepType(receives=True, writes=True),
    "rcs": StepType(receives=True, writes=True, sends=True),
    "rrc": StepType(receives=True, reads=True, writes=True),
    "rrs": StepType(receives=True, reads=True, sends=True),
    "rrcs": StepType(receives=True, reads=True, writes=True, sends=True),
    "cpy": StepType(reads=True, writes=True),
    "re": StepType(reads=True, writes=True, adds=True),
    "nop": StepType(),
}
"""The types of steps."""


class RawPlace(NamedTuple):
    """A chunk of a buffer of the gpu itself, as a step names it."""

    buffer: Buffer
    start: int


@dataclass(frozen=True, slots=True)
class RawStep:
    """A step: what it reads and stores (None: its type does not), its block and step to wait for.

    announced: ``hasdep``; None where it is missing.
    """

    line: int
    kind: str
    source: RawPlace | None
    target: RawPlace | None
    count: int
    wait: tuple[int, int] | None = None
    announced: bool | None = None


@dataclass(frozen=True, slots=True)
class RawBlock:
    """A thread block."""

    line: int
    number: int
    send: int
    receive: int
    channel: int
    steps: tuple[RawStep, ...] = ()


@dataclass(frozen=True, slots=True)
class RawGpu:
    """A gpu: chunks of input, output and scratch; copies made before its blocks run.

    blocks: by number, in document order.
    """

    line: int
    rank: int
    chunks: tuple[int, int, int]
    copies: tuple[RawStep, ...] = ()
    blocks: Mapping[int, RawBlock] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RawAlgo:
    """The file; None: the attribute is missing.

    collective: as written, known or not.
    counted: whether ``ngpus`` is missing, and the gpus were counted.
    beside: lines of text before and after the document, with the first that is no blank.
    sized: whether it says which sizes it is for (``minBytes`` and ``maxBytes``).
    gpus: by rank, in document order.
    """

    source: str
    line: int
    name: str
    ranks: int
    collective: str | None
    protocol: str
    channels: int | None
    chunks: int | None
    in_place: bool | None
    out_of_place: bool | None
    sized: bool = False
    counted: bool = False
    beside: tuple[tuple[str, int], ...] = ()
    gpus: Mapping[int, RawGpu] = field(default_factory=dict)

    def error(self, rule: str, remedy: str, line: int | None = None) -> InputError:
        """An error about a line, that of the algorithm if none is given."""
        return error_at(self.source, line or self.line, rule, remedy)


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
_BEGINS, _END = re.compile(r"^[ \t]*<algo\s", re.MULTILINE), "</algo>"
_AGAIN = re.compile(r"</algo>\s*(?:<\?xml[^>]{0,200}>\s*)?<algo(?=\s)")


def parse_msccl(text: str, source: str) -> RawAlgo:
    """The elements of an MSCCL XML text; ``source`` names it in messages.

    Raises:
        InputError: the text is not such a file, or larger than this module's limits.
    """
    document, beside = _document(text, source)
    collector = _Collector()
    walk(document, source, _INSIDE, collector.visit)
    algo = collector.found()
    if algo is None:
        raise InputError(source, "is empty", "write an <algo>")
    algo = replace(algo, beside=beside)
    if algo.counted:
        algo = replace(algo, ranks=max(algo.gpus, default=0) + 1)
    if len(algo.gpus) != algo.ranks:
        missing = next(rank for rank in range(algo.ranks) if rank not in algo.gpus)
        raise algo.error(f"ngpus is {algo.ranks}, but there is no gpu {missing}", "add it")
    return algo


def begins_late(text: str) -> bool:
    """Whether an ``<algo>`` begins a line after others, which are no XML."""
    return text.lstrip()[:1] not in ("<", "{") and _BEGINS.search(text) is not None


def _document(text: str, source: str) -> tuple[str, tuple[tuple[str, int], ...]]:
    """The document in what a generator printed, on its own lines, and the text beside it.

    Generators that check what they made print what they find before or after it.

    Raises:
        InputError: there is a second document.
    """
    if again := _AGAIN.search(text):
        line = text.count("\n", 0, again.end()) + 1
        raise error_at(source, line, "a second <algo> begins", "give each a file of its own")
    found = _BEGINS.search(text) if begins_late(text) else None
    start, end = found.start() if found else 0, text.rfind(_END) + len(_END)
    if end < len(_END) or not text[end:].strip() or re.search(r"<[?!/\w]|-->", text[end:]):
        end = len(text)
    parts = ((text[:start], 1), (text[end:], text.count("\n", 0, end) + 1))
    return "\n" * text.count("\n", 0, start) + text[start:end], tuple(
        (part.strip().split("\n")[0].strip(), line + _blank_lines(part))
        for part, line in parts
        if part.strip()
    )


def _blank_lines(text: str) -> int:
    return text.count("\n", 0, len(text) - len(text.lstrip()))


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
        element.integer("ngpus", MAX_RANKS, low=1, high=MAX_RANKS),
        element.text("coll", "") if element.has("coll") else None,
        element.word("proto", PROTOCOLS, "Simple"),
        element.integer("nchannels") if element.has("nchannels") else None,
        element.integer("nchunksperloop", low=1) if element.has("nchunksperloop") else None,
        element.flag("inplace"),
        element.flag("outofplace"),
        element.has("minBytes") and element.has("maxBytes"),
        not element.has("ngpus"),
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
