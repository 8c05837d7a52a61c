"""Which type of MSCCL XML step does what a step of a schedule does, and with which peers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from p2smt.errors import InputError
from p2smt.interop.msccl.elements import STEP_TYPES, RawPlace, StepType

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from p2smt.schedules.model import Connection, Span, Step

_TYPES = {does: kind for kind, does in STEP_TYPES.items()}
_KEEP = "keep it as YAML"


def type_of(step: Step) -> str:
    """The type of an MSCCL XML step that does the same.

    Raises:
        InputError: there is none.
    """
    _check_order(step)
    _check_spans(step)
    adds = step.receive is None and len(step.reads) == 2 and bool(step.writes)
    if adds and step.writes[0] not in step.reads:
        raise InputError(str(step), "stores a sum beside both its sources", "copy, then reduce")
    does = StepType(
        step.receive is not None,
        bool(step.reads),
        bool(step.writes),
        step.send is not None,
        adds,
    )
    kind = _TYPES.get(does)
    if kind is None or len(step.reads) > 1 + adds or len(step.writes) > 1:
        rule = f"{_shape(step)}: no type of MSCCL XML step does that"
        raise InputError(str(step), rule, "split it into several steps")
    if step.count == 0 and kind != "nop":
        raise InputError(str(step), "moves no chunks: MSCCL XML ignores that", "remove it")
    return kind


def _shape(step: Step) -> str:
    parts = [
        *(["receives"] if step.receive is not None else []),
        *([f"reads {len(step.reads)} places"] if step.reads else []),
        *([f"stores to {len(step.writes)}"] if step.writes else []),
        *(["sends"] if step.send is not None else []),
    ]
    return ", ".join(parts)


def _check_order(step: Step) -> None:
    """MSCCL XML has program order and waits for steps, and nothing else."""
    unknown = {
        "an order other than that of its block": step.after is not None,
        "signals": bool(step.posts),
        "waits for signals": bool(step.awaits),
        "a barrier": step.barrier is not None,
        "a transfer beside its block": step.background,
    }
    for what, given in unknown.items():
        if given:
            raise InputError(str(step), f"has {what}, which MSCCL XML has not", _KEEP)


def _check_spans(step: Step) -> None:
    for span in (*step.reads, *step.writes):
        if span.rank != step.rank:
            raise InputError(str(step), f"uses {span}: MSCCL XML has no remote access", _KEEP)
        if span.packet:
            raise InputError(str(step), f"uses {span} as packets: MSCCL XML has none", _KEEP)
        if span.count != step.count:
            rule = f"handles {step.count} chunks, but {span} has {span.count}"
            raise InputError(str(step), rule, "MSCCL XML has one number for both")


def places_of(step: Step, kind: str) -> tuple[RawPlace | None, RawPlace | None]:
    """Source and target of a step of that type, None where it has none."""
    target = _place(step.writes[0]) if step.writes else None
    sources = list(step.reads)
    if kind == "re":
        sources.remove(step.writes[0])
    return _place(sources[0]) if sources else None, target


def _place(span: Span) -> RawPlace:
    return RawPlace(span.buffer, span.start)


def peers_of(steps: Sequence[Step]) -> tuple[int, int, int]:
    """The rank that a block sends to, the one it receives from (-1: none), and the channel.

    Raises:
        InputError: there are several, or a connection of other ranks.
    """
    sends = _only(steps, [step.send for step in steps], "sends on")
    receives = _only(steps, [step.receive for step in steps], "receives on")
    if sends and receives and sends.channel != receives.channel:
        rule = f"sends on {sends} and receives on {receives}"
        raise InputError(_name(steps), rule, "a block of MSCCL XML has one channel")
    either = sends or receives
    for connection, own in ((sends, 0), (receives, 1)):
        if connection and connection[own] != steps[0].rank:
            raise InputError(_name(steps), f"uses {connection}, not its own", "name its own rank")
    if either and either.channel < 0:
        raise InputError(_name(steps), f"uses {either}", "channels are numbered from 0")
    peers = (sends.target if sends else -1, receives.source if receives else -1)
    return (*peers, either.channel if either else 0)


def _only(
    steps: Sequence[Step], connections: Iterable[Connection | None], verb: str
) -> Connection | None:
    known = list(dict.fromkeys(connection for connection in connections if connection))
    if len(known) > 1:
        rule = f"{verb} {known[0]} and {known[1]}: a block of MSCCL XML has one peer for that"
        raise InputError(_name(steps), rule, "put them into blocks of their own")
    return known[0] if known else None


def _name(steps: Sequence[Step]) -> str:
    return f"rank {steps[0].rank} block {steps[0].block}"
