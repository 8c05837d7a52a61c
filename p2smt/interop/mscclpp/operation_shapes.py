"""Which operation of MSCCL++ does what a step does to data."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from p2smt.errors import InputError
from p2smt.interop.mscclpp.operands import PAIRED, PATTERNS
from p2smt.schedules.model import Buffer

if TYPE_CHECKING:
    from p2smt.schedules.model import Span, Step

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
