"""The verbs of a step in a schedule file, and which fields each goes with.

A step's meaning is in its clauses; the verb names it and must agree with them, so that a
forgotten clause is found when the file is read.
"""

from __future__ import annotations

from typing import NamedTuple

CONTROLS = ("await", "post", "barrier", "wait")
CLAUSES = frozenset(
    {"from", "into", "to", "channel", "count", "wait", "after", "await", "post"}
    | {"barrier", "relaxed", "background", "lane", "as", "packet"}
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


class DataActions(NamedTuple):
    """What a step does to data: how many chunks it reads, and whether it does the rest."""

    reads: int
    receives: bool
    writes: bool
    sends: bool


def verb_of(actions: DataActions) -> str:
    """The verb of these actions, joined with hyphens."""
    if actions.receives:
        return _receiving(actions)
    if not actions.reads:
        return _without_sources(actions)
    sum_stored = actions.reads > 1 and not actions.sends
    parts = ["reduce"] * (actions.reads > 1)
    parts += ["copy"] * (actions.writes and not sum_stored) + ["send"] * actions.sends
    return "-".join(parts) if actions.writes or actions.sends else "read"


def _receiving(actions: DataActions) -> str:
    if not (actions.reads or actions.writes or actions.sends):
        return "drop"
    more = bool(actions.reads) or actions.sends
    parts = ["receive"] + ["reduce"] * bool(actions.reads)
    return "-".join(parts + ["copy"] * (actions.writes and more) + ["send"] * actions.sends)


def _without_sources(actions: DataActions) -> str:
    if not (actions.writes or actions.sends):
        return "nop"
    return "clear" + "-copy" * (actions.writes and actions.sends) + "-send" * actions.sends


_ACTIONS = [
    DataActions(n, r, w, s)
    for n in range(3)
    for r in (False, True)
    for w in (False, True)
    for s in (False, True)
]
VERBS = tuple(sorted({verb_of(actions) for actions in _ACTIONS} | set(_LONG)))


def fits(verb: str, actions: DataActions) -> bool:
    """Whether a step that does this may be called so."""
    return _LONG.get(verb, verb) == verb_of(actions)


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
