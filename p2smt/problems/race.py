"""Whether a schedule can go wrong, as problems: races, and claims about all whole numbers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from p2smt.errors import InputError

# Can accesses in no certain order make one output chunk wrong?  The question as plain integers.
# Frozen input and answer of :mod:`p2smt.encodings.race.z3`.  A *node* is something that happens in
# a schedule and takes time: a step, or the start or the end of a rank.  An *access* is one read or
# one write that a node does on a cell of memory that is accessed in no certain order.


Pairs = tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class Access:
    """A read or a write by a node.  The reads of a position come before the node's writes of it."""

    node: int
    write: bool
    position: int


@dataclass(frozen=True, slots=True)
class Sum:
    """A multiset: ``parts`` (part, how often) plus ``reads`` (what a read sees, how often)."""

    parts: Pairs = ()
    reads: Pairs = ()


@dataclass(frozen=True, slots=True)
class Source:
    """What a read may see: what a write leaves; without a write, what was there before any."""

    write: int | None
    value: Sum


@dataclass(frozen=True, slots=True)
class Read:
    """It sees the last of its sources before it.  Sources are all writes that can be that."""

    access: int
    sources: tuple[Source, ...]


@dataclass(frozen=True, slots=True)
class Counting:
    """A counter: every await takes one and needs one to be there when its node starts.

    Posts add one when their node is done.  A node may occur several times.  While a question is
    made, nodes are the steps of its schedule.
    """

    initial: int
    posts: tuple[int, ...]
    awaits: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Packet:
    """A node that starts only after one of these writes."""

    node: int
    writes: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Prefix:
    """What is executed until the chunk is final: at most ``at_most`` by weight.

    weights: of groups of steps that are executed together or not at all.
    group_of: the group of each node.
    closed: pairs (a, b): if group b is executed then so is group a.
    needs: nodes that write the chunk.  All are executed, or ``end`` is, which reads it.
    """

    weights: tuple[int, ...]
    group_of: tuple[int, ...]
    closed: Pairs
    needs: tuple[int, ...]
    end: int | None
    at_most: int


@dataclass(frozen=True, slots=True)
class RaceProblem:
    """Is there an order of the accesses in which ``value`` is not ``wanted``?

    before: for each node, as a bit mask, the nodes that are done before it starts in every order;
        transitively closed.
    """

    before: tuple[int, ...]
    accesses: tuple[Access, ...]
    reads: tuple[Read, ...]
    value: Sum
    wanted: Pairs
    counters: tuple[Counting, ...] = ()
    packets: tuple[Packet, ...] = ()
    prefix: Prefix | None = None

    def __post_init__(self) -> None:
        _in_range("node", self._nodes(), len(self.before))
        _in_range("access", self._accesses(), len(self.accesses))
        values = [self.value, *(s.value for read in self.reads for s in read.sources)]
        _in_range("read", [r for value in values for r, _ in value.reads], len(self.reads))
        for node, mask in enumerate(self.before):
            if mask >> node & 1:
                raise InputError(f"node {node} before itself", "the order must have no cycle")

    def _nodes(self) -> Iterator[int]:
        yield from (access.node for access in self.accesses)
        yield from (packet.node for packet in self.packets)
        for counter in self.counters:
            yield from (*counter.posts, *counter.awaits)
        yield from (mask.bit_length() - 1 for mask in self.before if mask)

    def _accesses(self) -> Iterator[int]:
        yield from (write for packet in self.packets for write in packet.writes)
        for read in self.reads:
            yield read.access
            yield from (s.write for s in read.sources if s.write is not None)

    @property
    def cap(self) -> int:
        """Counts from here on are all the same: too many."""
        return 1 + max((count for _, count in self.wanted), default=0)


def _in_range(what: str, numbers: Iterator[int] | Sequence[int], count: int) -> None:
    for number in numbers:
        if not 0 <= number < count:
            raise InputError(f"{what} {number}", f"there are {count}", "number them from 0")


@dataclass(frozen=True, slots=True)
class RaceAnswer:
    """An order in which the chunk is wrong: the pairs of points that matter, first one first.

    Points: accesses by number, then the starts of the nodes, then their ends ("done").
    """

    before: Pairs


# Whole-number terms, and claims about them: the frozen input of a proof for all sizes.


class Operator(StrEnum):
    """What a term does with its parts; the value is how it is written, or called in messages."""

    NUMBER = "int"
    NAME = "name"
    NEGATE = "neg"
    NOT = "not"
    IF = "if"
    MIN = "min"
    MAX = "max"
    LOG2 = "log2"
    OR = "or"
    AND = "and"
    LESS = "<"
    AT_MOST = "<="
    MORE = ">"
    AT_LEAST = ">="
    EQUAL = "=="
    UNEQUAL = "!="
    XOR = "xor"
    PLUS = "+"
    MINUS = "-"
    TIMES = "*"
    FLOOR = "//"
    MOD = "mod"
    POWER = "^"


# Looked up once: in Python 3.11 a member takes seven times as long as a comparison of texts.
_NUMBER, _NAME = Operator.NUMBER, Operator.NAME

COMPARISONS = (
    *(Operator.LESS, Operator.AT_MOST, Operator.MORE, Operator.AT_LEAST),
    *(Operator.EQUAL, Operator.UNEQUAL),
)


@dataclass(frozen=True, slots=True)
class Term:
    """An expression over whole numbers; truth is 1 or 0.

    args: its parts: none of NUMBER (``value``) and NAME (``name``); one of NEGATE, NOT and
        LOG2; condition, then, else of IF; at least one of MIN, MAX, AND and OR; two of others.
    """

    op: Operator
    args: tuple[Term, ...] = ()
    value: int = 0
    name: str = ""

    def names(self) -> Iterator[str]:
        """The names in it, each as often as it occurs."""
        if self.op is _NAME:
            yield self.name
        for part in self.args:
            yield from part.names()


def whole(value: int) -> Term:
    """The term of a number."""
    return Term(_NUMBER, value=value)


def named(name: str) -> Term:
    """The term of a name."""
    return Term(_NAME, name=name)


def infix(op: Operator, left: Term, right: Term) -> Term:
    """The term of an operator between two terms."""
    return Term(op, (left, right))


def both(parts: tuple[Term, ...]) -> Term:
    """The conjunction; of nothing it is true."""
    return Term(Operator.AND, parts) if parts else whole(1)


def substituted(term: Term, values: dict[str, Term]) -> Term:
    """The term with names replaced by terms, all at once."""
    if term.args:
        return Term(term.op, tuple(substituted(part, values) for part in term.args))
    return values.get(term.name, term) if term.op is _NAME else term


@dataclass(frozen=True, slots=True)
class Claim:
    """``conclusion`` holds for all whole numbers for which all ``given`` hold.

    size: the name of the number of ranks, at least 1 by ``given``: "mod" is by it alone.
    """

    title: str
    size: str
    given: tuple[Term, ...]
    conclusion: Term
