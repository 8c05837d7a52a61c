"""The text of one step in a schedule file, as a template whose numbers are expressions.

    VERB [CHUNKS + CHUNKS ..] [from PEER] [into CHUNKS, CHUNKS ..] [to PEER] [count N]
    [await NAMES] [post NAMES] [barrier NAME] [wait for STEPS] [after STEPS | after nothing]
    [relaxed] [background] [lane NAME] [as NAME]

    CHUNKS  [packet] BUFFER[FIRST] or BUFFER[FIRST..LAST], then @RANK if another rank's
    PEER    RANK or FROM -> TO, then channel N
    STEPS   BLOCK.INDEX, BLOCK.INDEX ..
    NAMES   up, ready[3, t], "any text"

docs/schedule-file.md explains it.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from p2smt.errors import InputError, did_you_mean
from p2smt.problems.race import Term, named, whole
from p2smt.schedules.language.expression import TokenStream, take_atom, take_term
from p2smt.schedules.model import Buffer

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


RANK = named("rank")
_BUFFERS = {buffer.value: buffer for buffer in Buffer}
_VERB = re.compile(r"\s*([A-Za-z]+(?:-[A-Za-z]+)*)(?=\s|$)")
_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True, slots=True)
class SpanText:
    """Chunks ``first`` to ``last`` of a buffer of ``rank``."""

    buffer: Buffer
    first: Term
    last: Term
    rank: Term = RANK
    packet: bool = False


@dataclass(frozen=True, slots=True)
class PeerText:
    """A connection."""

    source: Term
    target: Term
    channel: Term


@dataclass(frozen=True, slots=True)
class NameText:
    """A name, with numbers in brackets behind it if there are ``places``."""

    text: str
    places: tuple[Term, ...] = ()


RefText = tuple[Term, Term]


@dataclass(slots=True)
class StepText:
    """A step whose numbers are still expressions; fields as in ``Step``."""

    kind: str
    reads: tuple[SpanText, ...] = ()
    writes: tuple[SpanText, ...] = ()
    receive: PeerText | None = None
    send: PeerText | None = None
    count: Term | None = None
    waits: tuple[RefText, ...] = ()
    after: tuple[RefText, ...] | None = None
    posts: tuple[NameText, ...] = ()
    awaits: tuple[NameText, ...] = ()
    relaxed: bool = False
    barrier: NameText | None = None
    background: bool = False
    lane: str | None = None

    @property
    def actions(self) -> DataActions:
        """What it does to data."""
        receives, sends = self.receive is not None, self.send is not None
        return DataActions(len(self.reads), receives, bool(self.writes), sends)


def parse_step(text: str) -> StepText:
    """The step that a text describes.

    Raises:
        InputError: the text is no step, or the verb does not go with the clauses.
    """
    verb, rest = _verb(text)
    tokens = TokenStream(rest, CLAUSES)
    step = StepText(verb)
    if tokens.peek() and (tokens.peek() not in CLAUSES or tokens.peek() == "packet"):
        step.reads = _spans(tokens, "+")
    given: set[str] = set()
    while tokens.peek():
        _clause(tokens, step, given)
    named_verb = verb if verb not in CONTROLS else "nop"
    if not fits(named_verb, step.actions):
        raise InputError(f"{text[:120]!r}", f"{verb!r} does not go with these clauses", needs(verb))
    return step


def _verb(text: str) -> tuple[str, str]:
    found = _VERB.match(text)
    verb = found.group(1) if found else ""
    if found and verb in VERBS:
        return verb, text[found.end() :]
    if verb in CONTROLS:
        return verb, text
    remedy = did_you_mean(verb, (*VERBS, *CONTROLS)) or "such as send, receive, copy, reduce"
    raise InputError(f"step {text[:120]!r}", "must begin with a verb", remedy)


def _clause(tokens: TokenStream, step: StepText, given: set[str]) -> None:
    word = tokens.peek()
    if word not in _TAKE:
        raise tokens.error("expected a clause", f"such as {', '.join(sorted(_TAKE))}")
    if word in given:
        raise tokens.error("this clause is given twice", "keep one of them")
    given.add(tokens.take())
    _TAKE[word](tokens, step)


def _from(tokens: TokenStream, step: StepText) -> None:
    step.receive = _peer(tokens, receives=True)


def _to(tokens: TokenStream, step: StepText) -> None:
    step.send = _peer(tokens, receives=False)


def _into(tokens: TokenStream, step: StepText) -> None:
    step.writes = _spans(tokens, ",")


def _count(tokens: TokenStream, step: StepText) -> None:
    step.count = take_term(tokens)


def _wait(tokens: TokenStream, step: StepText) -> None:
    tokens.expect("for")
    step.waits = _refs(tokens)


def _after(tokens: TokenStream, step: StepText) -> None:
    step.after = () if tokens.accept("nothing") else _refs(tokens)


def _post(tokens: TokenStream, step: StepText) -> None:
    step.posts = _names(tokens)


def _await(tokens: TokenStream, step: StepText) -> None:
    step.awaits = _names(tokens)


def _barrier(tokens: TokenStream, step: StepText) -> None:
    step.barrier = take_name(tokens)


def _relaxed(_tokens: TokenStream, step: StepText) -> None:
    step.relaxed = True


def _background(_tokens: TokenStream, step: StepText) -> None:
    step.background = True


def _lane(tokens: TokenStream, step: StepText) -> None:
    step.lane = take_name(tokens, places=False).text


def _as(tokens: TokenStream, step: StepText) -> None:
    step.kind = take_name(tokens, places=False).text


_TAKE: Mapping[str, Callable[[TokenStream, StepText], None]] = {
    "from": _from,
    "into": _into,
    "to": _to,
    "count": _count,
    "wait": _wait,
    "after": _after,
    "post": _post,
    "await": _await,
    "barrier": _barrier,
    "relaxed": _relaxed,
    "background": _background,
    "lane": _lane,
    "as": _as,
}


def _spans(tokens: TokenStream, between: str) -> tuple[SpanText, ...]:
    spans = [take_span(tokens)]
    while tokens.accept(between):
        spans.append(take_span(tokens))
    return tuple(spans)


def take_span(tokens: TokenStream) -> SpanText:
    """Chunks of a buffer, as in ``i[0..3]@2``.

    Raises:
        InputError: something else comes next.
    """
    packet = tokens.accept("packet")
    buffer = _BUFFERS.get(tokens.peek())
    if buffer is None:
        raise tokens.error("expected chunks", "such as i[0], o[2..3] or s[0]@1")
    tokens.take()
    tokens.expect("[")
    first = take_term(tokens)
    last = take_term(tokens) if tokens.accept("..") else first
    tokens.expect("]")
    rank = take_atom(tokens) if tokens.accept("@") else RANK
    return SpanText(buffer, first, last, rank, packet)


def _peer(tokens: TokenStream, *, receives: bool) -> PeerText:
    one = take_term(tokens)
    source, target = (one, RANK) if receives else (RANK, one)
    if tokens.accept("->"):
        source, target = one, take_term(tokens)
    channel = take_term(tokens) if tokens.accept("channel") else whole(0)
    return PeerText(source, target, channel)


def _refs(tokens: TokenStream) -> tuple[RefText, ...]:
    refs = [_ref(tokens)]
    while tokens.accept(","):
        refs.append(_ref(tokens))
    return tuple(refs)


def _ref(tokens: TokenStream) -> RefText:
    block = take_atom(tokens)
    tokens.expect(".")
    return block, take_atom(tokens)


def _names(tokens: TokenStream) -> tuple[NameText, ...]:
    names = [take_name(tokens)]
    while tokens.accept(","):
        names.append(take_name(tokens))
    return tuple(names)


def take_name(tokens: TokenStream, *, places: bool = True) -> NameText:
    """A word, a word with numbers in brackets, or a quoted text.

    Raises:
        InputError: something else comes next.
    """
    word = tokens.peek()
    if word.startswith('"'):
        try:
            return NameText(str(json.loads(tokens.take())))
        except ValueError:
            raise tokens.error("is not a quoted text", "quote it as JSON does") from None
    if not _WORD.fullmatch(word):
        raise tokens.error("expected a name", 'a word, or "any text" in quotes')
    tokens.take()
    if not places or not tokens.accept("["):
        return NameText(word)
    numbers = [take_term(tokens)]
    while tokens.accept(","):
        numbers.append(take_term(tokens))
    tokens.expect("]")
    return NameText(word, tuple(numbers))


# The verbs of a step in a schedule file, and which fields each goes with.
# A step's meaning is in its clauses; the verb names it and must agree with them, so that a
# forgotten clause is found when the file is read.


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
