"""Why a runtime would refuse an MSCCL XML file, whatever the file means.

Sources: microsoft/msccl, src/include/msccl.h and src/graph/topo.cc; ROCm/rccl,
src/include/msccl/msccl_struct.h and src/misc/msccl/msccl_parser.cc.  Both hold ``s`` to the most
steps, so that a ``nop`` counts, although it is folded into the step after it.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from p2smt.interop.msccl.findings import by_subject
from p2smt.interop.msccl.parse import parse_msccl
from p2smt.schedules.model import Buffer

if TYPE_CHECKING:
    from collections.abc import Iterator

    from p2smt.interop.msccl.elements import RawAlgo, RawBlock, RawGpu, RawStep
    from p2smt.interop.msccl.findings import Finding


@dataclass(frozen=True, slots=True)
class RuntimeLimits:
    """The tables of a runtime.

    steps: per block.  blocks: per gpu.  blocks_of_channel: per channel of a gpu.
    count: the most chunks in a step.
    wants_uses: whether it needs ``outofplace``, ``minBytes`` and ``maxBytes``.
    """

    steps: int
    blocks: int
    blocks_of_channel: int = 32
    count: int = 71
    wants_uses: bool = False


MSCCL = RuntimeLimits(steps=256, blocks=216)
RCCL = RuntimeLimits(steps=64, blocks=1024, wants_uses=True)
"""It has room for 32 blocks on each channel, of which every version has at least 32."""


def refusals(algo: RawAlgo, limits: RuntimeLimits = MSCCL) -> tuple[str, ...]:
    """Why the runtime does not run a file; one text per subject, none if it does."""
    return by_subject(_findings(algo, limits))


def msccl_refusals(text: str, source: str) -> tuple[str, ...]:
    """Why MSCCL would not run a text; InputError as from ``parse_msccl``."""
    return refusals(parse_msccl(text, source), MSCCL)


def rccl_refusals(text: str, source: str) -> tuple[str, ...]:
    """Why RCCL would not run a text; InputError as from ``parse_msccl``."""
    return refusals(parse_msccl(text, source), RCCL)


def _findings(algo: RawAlgo, limits: RuntimeLimits) -> Iterator[Finding]:
    yield from _attributes(algo, limits)
    for gpu in algo.gpus.values():
        yield from _blocks(algo, gpu, limits)
        for block in gpu.blocks.values():
            if len(block.steps) > limits.steps:
                yield f"the runtime runs at most {limits.steps} steps per block", block.line
            yield from _nops(block)
            for step in block.steps:
                if step.count > limits.count:
                    text = f"the runtime handles at most {limits.count} chunks in a step"
                    yield text, step.line
                yield from _places(gpu, step)


def _attributes(algo: RawAlgo, limits: RuntimeLimits) -> Iterator[Finding]:
    """Those of the first line without which the runtime does not read on."""
    missing = [] if algo.collective is not None else ["coll"]
    if limits.wants_uses:
        missing += [] if algo.out_of_place is not None else ["outofplace"]
        missing += [] if algo.sized else ["minBytes and maxBytes"]
    for name in missing:
        yield f"the runtime needs {name}", algo.line


def _blocks(algo: RawAlgo, gpu: RawGpu, limits: RuntimeLimits) -> Iterator[Finding]:
    """How many blocks a gpu has, how they are numbered, and on which channels they are."""
    blocks = gpu.blocks.values()
    if len(blocks) > limits.blocks:
        yield f"the runtime runs at most {limits.blocks} blocks per gpu", gpu.line
    if blocks and max(gpu.blocks) >= len(blocks):
        yield "the runtime refuses a gpu whose blocks are not numbered 0, 1, ..", gpu.line
    channels = Counter(block.channel for block in blocks)
    if channels and max(channels.values()) > limits.blocks_of_channel:
        most = limits.blocks_of_channel
        yield f"the runtime runs at most {most} blocks per channel", gpu.line
    for block in blocks:
        if algo.channels is not None and block.channel >= algo.channels:
            yield f"the runtime connects channels below nchannels={algo.channels} only", block.line


def _nops(block: RawBlock) -> Iterator[Finding]:
    """Those that the runtime cannot fold into the next step."""
    pending = False
    for step in block.steps:
        if step.kind == "nop":
            pending = pending or step.wait is not None
            continue
        if pending and step.wait is None:
            text = "the runtime refuses a step that waits for nothing after a nop that does"
            yield text, step.line
        pending = False


def _places(gpu: RawGpu, step: RawStep) -> Iterator[Finding]:
    """Places whose first chunk is not among those declared; of ``rrc`` they are not looked at."""
    for place in (step.source, step.target):
        if place is None or step.kind == "rrc":
            continue
        declared = gpu.chunks[(Buffer.INPUT, Buffer.OUTPUT, Buffer.SCRATCH).index(place.buffer)]
        if not 0 <= place.start < declared:
            name = f"{place.buffer.value}_chunks"
            yield f"the runtime refuses a place beyond {name} of its gpu", step.line
