"""The verbs of a step in a schedule file, and which fields each goes with.

A step's meaning is in its clauses; the verb names it and must agree with them, so that a
forgotten clause is found when the file is read.
"""

from __future__ import annotations

from typing import NamedTuple

CONTROLS = ("await", "post", "barrier", "wait")
CLAUSES = frozenset(
    {"from", "into", "to", "channel", "count", "wait", "after", "await", "post"}
    | {"barrier", "relaxed", "background", "as", "packet"}
)
_LONG = {
    "s": "send",
    "r": "receive",
    "rcs": "receive-copy-send",
    "rrc": "receive-reduce-copy",
    "rrs": "receive-reduce-send",
    "rrcs": "receive-reduce-copy-send",
    "cpy": "copy",
    "re": "reduce",
    "put": "copy",
    "get": "copy",
}


class Shape(NamedTuple):
    """What a step does to data: how many chunks it reads, and whether it does the rest."""

    reads: int
    receives: bool
    writes: bool
    sends: bool


def verb_of(shape: Shape) -> str:
    """The verb of a shape: its actions, joined with hyphens."""
    if shape.receives:
        return _receiving(shape)
    if not shape.reads:
        return _without_sources(shape)
    sum_stored = shape.reads > 1 and not shape.sends
    parts = ["reduce"] * (shape.reads > 1)
    parts += ["copy"] * (shape.writes and not sum_stored) + ["send"] * shape.sends
    return "-".join(parts) if shape.writes or shape.sends else "read"


def _receiving(shape: Shape) -> str:
    if not (shape.reads or shape.writes or shape.sends):
        return "drop"
    more = bool(shape.reads) or shape.sends
    parts = ["receive"] + ["reduce"] * bool(shape.reads)
    return "-".join(parts + ["copy"] * (shape.writes and more) + ["send"] * shape.sends)


def _without_sources(shape: Shape) -> str:
    if not (shape.writes or shape.sends):
        return "nop"
    return "clear" + "-copy" * (shape.writes and shape.sends) + "-send" * shape.sends


_SHAPES = [
    Shape(n, r, w, s)
    for n in range(3)
    for r in (False, True)
    for w in (False, True)
    for s in (False, True)
]
VERBS = tuple(sorted({verb_of(shape) for shape in _SHAPES} | set(_LONG)))


def fits(verb: str, shape: Shape) -> bool:
    """Whether a step of this shape may be called so."""
    return _LONG.get(verb, verb) == verb_of(shape)


def needs(verb: str) -> str:
    """What the clauses of a verb look like, for people."""
    long = _LONG.get(verb, verb)
    if long in ("nop", "read", "drop") or long.startswith("clear"):
        return {"read": "read CHUNKS", "drop": "drop from RANK"}.get(long, long)
    receives, sends = long.startswith("receive"), long.endswith("send")
    summed = "CHUNKS" if receives else "CHUNKS + CHUNKS"
    sources = summed if "reduce" in long else "" if receives else "CHUNKS"
    stores = "copy" in long or long in ("receive", "reduce")
    words = [verb, sources, "from RANK" * receives, "into CHUNKS" * stores, "to RANK" * sends]
    return " ".join(word for word in words if word)
