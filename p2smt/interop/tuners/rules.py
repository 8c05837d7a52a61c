"""Rules of NCCL's family of tuner files, what a library makes of them, and what is wrong with them.

A library takes the first rule that matches and whose algorithm with protocol is possible there; an
impossible one falls to the next.  A ring with the protocol simple is always possible.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from p2smt.interop.tuners.choices import (
    LARGEST_BYTES,
    Comm,
    FileFault,
    FileVerdict,
    LibraryCall,
    representatives,
    tabulated,
)

COLLECTIVES = ("broadcast", "reduce", "allgather", "reducescatter", "allreduce")
ALGORITHMS = ("tree", "ring", "collnet_direct", "collnet_chain", "nvls", "nvls_tree", "pat")
PROTOCOLS = ("ll", "ll128", "simple")
ALWAYS = ("ring", "simple")
"""What every communicator can run."""
ANY = (-(2**63), 2**63)
"""A span that every number is in."""
OWN = 0
"""Channels: as many as the library itself would take."""
_UNNAMED = 1_000_003
"""A number that stands for all that a file does not name."""
_SHOWN = 4

NumberSpan = tuple[int, int]


@dataclass(frozen=True, slots=True)
class TunerRule:
    """A row as the library has read it; spans are closed.

    sizes: of the whole vector or of its part per rank; ranks: of all, or per node (see
    :class:`Dialect`).  chunk: bytes of a chunk, 0: not said.
    """

    line: int
    collective: str
    sizes: NumberSpan
    algorithm: str
    protocol: str
    channels: int
    nodes: NumberSpan
    ranks: NumberSpan
    grouped: int = -1
    registered: int = -1
    chunk: int = 0

    @property
    def pair(self) -> tuple[str, str]:
        """Algorithm and protocol."""
        return self.algorithm, self.protocol


@dataclass(frozen=True, slots=True)
class RulesRead:
    """The rules of a file and what reading it shows; ``refused``: the library does not start."""

    rules: tuple[TunerRule, ...]
    faults: tuple[FileFault, ...]
    refused: bool = False


@dataclass(frozen=True, slots=True)
class Dialect:
    """How one library reads and uses such files.

    per_rank: sizes are parts of one rank, and ranks those of a node.  channels: how many a rule's
    number makes, by that number.  unmatched: how many are taken where no rule matches.
    """

    name: str
    read: Callable[[str], RulesRead]
    per_rank: bool
    channels: Callable[[int], int]
    unmatched: int


@dataclass(frozen=True, slots=True)
class TunerQuestion:
    """A call: what a library asks its tuner.

    grouped: how many calls are in the group.  registered: whether buffers are.
    """

    collective: str
    comm: Comm
    size: int
    grouped: int = 1
    registered: int = 0


def _within(span: NumberSpan, value: int) -> bool:
    return span[0] <= value <= span[1]


def matching(
    dialect: Dialect, rules: Iterable[TunerRule], asked: TunerQuestion
) -> Iterator[TunerRule]:
    """The rules that match a call, in their order."""
    comm = asked.comm
    size = asked.size // comm.ranks if dialect.per_rank else asked.size
    ranks = comm.per_node if dialect.per_rank else comm.ranks
    for rule in rules:
        if (
            rule.collective == asked.collective
            and _within(rule.sizes, size)
            and _within(rule.nodes, comm.nodes)
            and _within(rule.ranks, ranks)
            and rule.grouped in (-1, asked.grouped)
            and rule.registered in (-1, asked.registered)
        ):
            yield rule


def chosen(
    dialect: Dialect,
    rules: Iterable[TunerRule],
    asked: TunerQuestion,
    possible: Callable[[str, str], bool] = lambda _algorithm, _protocol: True,
) -> tuple[tuple[str, str] | None, int]:
    """What a library takes: algorithm with protocol (None: its own), and channels (0: its own)."""
    for rule in matching(dialect, rules, asked):
        if possible(*rule.pair):
            return rule.pair, dialect.channels(rule.channels)
    return None, dialect.unmatched


def judge(dialect: Dialect, text: str, comms: Sequence[Comm]) -> FileVerdict:
    """What a library makes of a file for these communicators; of none, those that it names."""
    read = dialect.read(text)
    if read.refused:
        return FileVerdict(dialect.name, read.faults, (), tabulated((), (), (), _nothing))
    asked = tuple(comms) or _named(dialect, read.rules)
    faults = (*read.faults, *_holes(dialect, read.rules, asked), *_dead(read.rules))
    table = tabulated(
        COLLECTIVES,
        asked,
        [edge for comm in asked for edge in _edges(dialect, read.rules, comm)],
        lambda collective, comm, size: _call(
            dialect, read.rules, TunerQuestion(collective, comm, size)
        ),
    )
    ordered = sorted(faults, key=lambda fault: fault.line or 10**9)
    return FileVerdict(dialect.name, tuple(ordered), tuple(_notes(dialect, read.rules)), table)


def _nothing(_collective: str, _comm: Comm, _size: int) -> None:
    return None


def _call(dialect: Dialect, rules: Sequence[TunerRule], asked: TunerQuestion) -> LibraryCall | None:
    pair, channels = chosen(dialect, rules, asked)
    numbers = () if channels == OWN else (("channels", channels),)
    if pair is None:
        return LibraryCall("", "", numbers) if numbers else None
    return LibraryCall(*pair, numbers)


def _edges(dialect: Dialect, rules: Iterable[TunerRule], comm: Comm) -> Iterator[int]:
    """The sizes from which on some rule begins or ends to match."""
    unit = comm.ranks if dialect.per_rank else 1
    for rule in rules:
        yield rule.sizes[0] * unit
        yield (rule.sizes[1] + 1) * unit


def _named(dialect: Dialect, rules: Sequence[TunerRule]) -> tuple[Comm, ...]:
    """The communicators that a file tells apart, and where it names none, one for all."""
    found: dict[Comm, None] = {}
    for rule in rules:
        nodes = rule.nodes[0] if rule.nodes[0] == rule.nodes[1] else 1
        least = 1 if dialect.per_rank else nodes
        ranks = rule.ranks[0] if rule.ranks[0] == rule.ranks[1] else max(2, least)
        each, over = (ranks, 0) if dialect.per_rank else divmod(ranks, max(1, nodes))
        if nodes > 0 and each > 0 and not over and nodes * each > 1:
            found[Comm(nodes, each)] = None
    every = [comm for comm in found if any(_names(rule, comm, dialect) for rule in rules)]
    return tuple(sorted(every)) or (Comm(1, 2),)


def _names(rule: TunerRule, comm: Comm, dialect: Dialect) -> bool:
    ranks = comm.per_node if dialect.per_rank else comm.ranks
    return rule.nodes == (comm.nodes,) * 2 or rule.ranks == (ranks,) * 2


# Faults of what the rules say together.


def _holes(
    dialect: Dialect, rules: Sequence[TunerRule], comms: Iterable[Comm]
) -> Iterator[FileFault]:
    """Sizes that have one channel, where that is neither asked for nor the library's own."""
    for comm in comms:
        intervals = representatives(_edges(dialect, rules, comm))
        for collective in COLLECTIVES:
            runs: list[tuple[tuple[str, int, str], int, int]] = []
            for first, last in intervals:
                hole = _hole(dialect, rules, TunerQuestion(collective, comm, first))
                if hole is not None and runs and runs[-1][0] == hole and runs[-1][2] == first - 1:
                    runs[-1] = (hole, runs[-1][1], last)
                elif hole is not None:
                    runs.append((hole, first, last))
            for (name, line, what), first, last in runs:
                if name == "gap" and last == LARGEST_BYTES and first > 0:
                    name = "top"
                where = f"{collective} of {size_range(first, last)} on {comm}"
                yield FileFault(name, line, f"{where} {what}")


def _hole(
    dialect: Dialect, rules: Sequence[TunerRule], asked: TunerQuestion
) -> tuple[str, int, str] | None:
    """The fault of one call, its line, and what it is."""
    if dialect.unmatched == OWN:
        return None
    last = None
    for rule in matching(dialect, rules, asked):
        if rule.channels < 0:
            said = f"is told {rule.channels} channels, of which -1 is one: 0 leaves them to NCCL"
            return "one-channel", rule.line, said
        if rule.pair == ALWAYS:
            return None
        last = rule
    if last is None:
        return "gap", 0, "matches no row, and gets one channel"
    pair = " ".join(last.pair)
    what = f"gets one channel where {pair} is impossible, since no row is left: add ring,simple,0"
    return "one-channel", last.line, what


def size_range(first: int, last: int) -> str:
    """Sizes in words, to the byte."""
    if last == LARGEST_BYTES:
        return "every size" if first == 0 else f"{first} B and more"
    return f"{first} B" if first == last else f"{first} to {last} B"


_Box = tuple[NumberSpan, ...]
_DOMAIN: _Box = ((0, LARGEST_BYTES), (1, 2**31), (1, 2**31), (1, 2**31), (0, 1))
"""What calls can have: size, nodes, ranks, calls in a group, whether buffers are registered."""


def _dead(rules: Sequence[TunerRule]) -> Iterator[FileFault]:
    """Rows that no call can reach: their own numbers match nothing, or earlier rows take all."""
    boxes = [_box(rule) for rule in rules]
    for index, (rule, box) in enumerate(zip(rules, boxes, strict=True)):
        if box is None:
            yield _never(rule)
            continue
        left = [box]
        for earlier, taken in zip(rules[:index], boxes, strict=False):
            takes = earlier.collective == rule.collective and earlier.pair in (ALWAYS, rule.pair)
            if takes and taken is not None:
                left = [part for one in left for part in _without(one, taken)]
        if not left:
            yield FileFault("unreachable", rule.line, "earlier rows take all that it matches")


def _never(rule: TunerRule) -> FileFault:
    if rule.sizes[0] > rule.sizes[1]:
        return FileFault("unreachable", rule.line, "its smallest size is above its largest")
    numbers = (rule.nodes[1], rule.ranks[1])
    name = "unreachable" if min(numbers) > 0 else "wildcard"
    return FileFault(
        name, rule.line, f"nodes or ranks are {min(numbers)}, which no communicator has"
    )


def _box(rule: TunerRule) -> _Box | None:
    """What a rule matches; None: nothing."""
    flags = [ANY if value == -1 else (value, value) for value in (rule.grouped, rule.registered)]
    return _common((rule.sizes, rule.nodes, rule.ranks, *flags), _DOMAIN)


def _common(one: _Box, other: _Box) -> _Box | None:
    both = tuple((max(a[0], b[0]), min(a[1], b[1])) for a, b in zip(one, other, strict=True))
    return None if any(low > high for low, high in both) else both


def _without(box: _Box, taken: _Box) -> Iterator[_Box]:
    """Boxes that make up what is left of one without another."""
    shared = _common(box, taken)
    if shared is None:
        yield box
        return
    for side, (low, high) in enumerate(shared):
        first, last = box[side]
        if first < low:
            yield (*shared[:side], (first, low - 1), *box[side + 1 :])
        if high < last:
            yield (*shared[:side], (high + 1, last), *box[side + 1 :])


def _notes(dialect: Dialect, rules: Sequence[TunerRule]) -> Iterator[str]:
    """What is no fault and has to be known."""
    special = [rule.line for rule in rules if (rule.grouped, rule.registered) != (-1, -1)]
    if special:
        yield f"the table is of calls alone in a group, buffers not registered: {_shown(special)}"
    cut = [two.line for n, two in enumerate(rules) if any(_cut(one, two) for one in rules[:n])]
    if cut:
        yield f"an earlier row takes a part of what these match: {_shown(cut)}"
    other = Comm(_UNNAMED, _UNNAMED)
    if dialect.unmatched != OWN and not any(
        _within(rule.nodes, other.nodes) and _within(rule.ranks, other.ranks) for rule in rules
    ):
        yield "a communicator that the file does not name gets one channel for every call"


def _cut(one: TunerRule, two: TunerRule) -> bool:
    """Whether two rows of different ways have calls in common, of which the first takes a part."""
    mine, others = _box(one), _box(two)
    if one.collective != two.collective or one.pair == two.pair or mine is None or others is None:
        return False
    return one.pair == ALWAYS and _common(mine, others) is not None


def _shown(lines: Sequence[int]) -> str:
    more = f" and {len(lines) - _SHOWN} more" if len(lines) > _SHOWN else ""
    return f"line {', '.join(map(str, lines[:_SHOWN]))}{more}"
