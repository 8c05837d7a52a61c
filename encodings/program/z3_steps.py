"""Start, goal, preconditions and effects on symbolic state matrices: the paper's encoding (z3).

``SymbolicState.rows[d][r]`` is a bit-vector over the k contributors: bit c is set when row r of
device d holds the contribution of device c.  Every function speaks about the members of one
group, in device order, and is written from the definition of its collective (P2, state
matrices); :mod:`p2smt.encodings.program.z3` joins them to steps.

    C4 reducible      all-reduce, reduce-scatter, reduce: the same non-empty rows, at least
                      one, the contributors of each row pairwise disjoint
    C5 divisible      reduce-scatter: besides, their number divides by the group size
    C6 gatherable     all-gather: non-empty rows pairwise disjoint, the same positive number
    C7 broadcastable  broadcast: the first member strictly contains every other
    C8 effect         all-reduce, all-gather: all get the union; reduce: the first does, the
                      others become empty; broadcast: all get the first; reduce-scatter:
                      member i keeps the i-th run of the non-empty rows of the union

Which rows form the i-th run is decided by symbolic ranks: of T non-empty rows shared by n
members the row of rank q (q rows before it) belongs to member i when iT <= nq < (i+1)T.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import combinations, pairwise
from typing import TypeAlias

import z3

from p2smt.collectives.demand import Chunks, Demand, Givers
from p2smt.collectives.names import Collective

Rows: TypeAlias = tuple[z3.BitVecRef, ...]
Group: TypeAlias = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class SymbolicState:
    """State matrices of one moment, with what the constraints count in them.

    ``filled[d][r]``: the row is not empty; ``ranks[d][r]``: how many rows before it are not;
    ``totals[d]``: how many rows of the device are not.
    """

    rows: tuple[Rows, ...]
    filled: tuple[tuple[z3.BoolRef, ...], ...]
    ranks: tuple[Rows, ...]
    totals: Rows

    @staticmethod
    def named(name: str, devices: int) -> SymbolicState:
        """A state of fresh variables."""
        k = range(devices)
        return SymbolicState.of(
            [tuple(z3.BitVec(f"{name}_{d}_{r}", devices) for r in k) for d in k]
        )

    @staticmethod
    def of(rows: Sequence[Rows]) -> SymbolicState:
        """The state with these rows."""
        width = count_bits(len(rows))
        filled = tuple(tuple(row != 0 for row in device) for device in rows)
        counts = [_running_counts(flags, width) for flags in filled]
        ranks = tuple(tuple(count[:-1]) for count in counts)
        return SymbolicState(tuple(rows), filled, ranks, tuple(count[-1] for count in counts))


def count_bits(devices: int) -> int:
    """Bits for the products of a row count and a group size: at most the square of k."""
    return (devices * devices).bit_length()


def _running_counts(flags: Sequence[z3.BoolRef], width: int) -> list[z3.BitVecRef]:
    counts = [z3.BitVecVal(0, width)]
    for flag in flags:
        one = z3.If(flag, z3.BitVecVal(1, width), z3.BitVecVal(0, width))
        counts.append(counts[-1] + one)
    return counts


def most_rows(state: SymbolicState, devices: Sequence[int]) -> z3.BitVecRef:
    """The largest number of non-empty rows among these devices (C13)."""
    totals = [state.totals[d] for d in devices]
    return reduce(lambda a, b: z3.If(z3.ULT(a, b), b, a), totals)


def same_rows(left: Sequence[Rows], right: Sequence[Rows]) -> z3.BoolRef:
    """Row by row, the same contributors on each device."""
    pairs = zip(left, right, strict=True)
    return z3.And([a == b for rows, others in pairs for a, b in zip(rows, others, strict=True)])


def initial_rows(demand: Demand, k: int) -> list[Rows]:
    """C1: device d holds every row or row d, complete or with its own contribution."""

    def row(d: int, r: int) -> int:
        if demand.start.chunks is Chunks.OWN and r != d:
            return 0
        return 2**k - 1 if demand.start.givers is Givers.EVERY else 1 << d

    return [tuple(z3.BitVecVal(row(d, r), k) for r in range(k)) for d in range(k)]


def is_goal(demand: Demand, state: SymbolicState) -> z3.BoolRef:
    """C2: all ones, or one row on each device, complete, and each row somewhere."""
    full = 2 ** len(state.rows) - 1
    if demand.goal.chunks is not Chunks.ONE_EACH:
        return z3.And([row == full for device in state.rows for row in device])
    one = [total == 1 for total in state.totals]
    whole = [z3.Or(row == 0, row == full) for device in state.rows for row in device]
    every = [z3.Or(flags) for flags in zip(*state.filled, strict=True)]
    return z3.And(*one, *whole, *every)


def union(state: SymbolicState, group: Group) -> Rows:
    """Row by row, everything that some member holds."""
    columns = zip(*(state.rows[d] for d in group), strict=True)
    return tuple(reduce(lambda a, b: a | b, column) for column in columns)


def reducible(state: SymbolicState, group: Group) -> z3.BoolRef:
    """C4: the same non-empty rows, at least one, with pairwise disjoint contributors."""
    first = group[0]
    flags = [zip(state.filled[d], state.filled[e], strict=True) for d, e in pairwise(group)]
    same = [a == b for pairs in flags for a, b in pairs]
    return z3.And(z3.Or(state.filled[first]), *same, *_disjoint(state, group))


def _disjoint(state: SymbolicState, group: Group) -> list[z3.BoolRef]:
    """No contributor twice: each member against the union of those before it."""
    clauses, before = [], state.rows[group[0]]
    for d in group[1:]:
        clauses += [a & b == 0 for a, b in zip(before, state.rows[d], strict=True)]
        before = tuple(a | b for a, b in zip(before, state.rows[d], strict=True))
    return clauses


def divisible(state: SymbolicState, group: Group) -> z3.BoolRef:
    """C5: the number of non-empty rows is a multiple of the group size."""
    total, k = state.totals[group[0]], len(state.rows)
    return z3.Or([total == m for m in range(len(group), k + 1, len(group))])


def gatherable(state: SymbolicState, group: Group) -> z3.BoolRef:
    """C6: no non-empty row twice, and the same positive number of them for each member."""
    first = state.totals[group[0]]
    equal = [state.totals[d] == first for d in group[1:]]
    columns = zip(*(state.filled[d] for d in group), strict=True)
    apart = [z3.Not(z3.And(a, b)) for column in columns for a, b in combinations(column, 2)]
    return z3.And(first != 0, *equal, *apart)


def broadcastable(state: SymbolicState, group: Group) -> z3.BoolRef:
    """C7: every other member's rows lie within the first member's, and some row is smaller."""
    first, clauses = state.rows[group[0]], []
    for d in group[1:]:
        pairs = list(zip(first, state.rows[d], strict=True))
        clauses += [b & ~a == 0 for a, b in pairs]
        clauses.append(z3.Or([a != b for a, b in pairs]))
    return z3.And(clauses)


def precondition(collective: Collective, state: SymbolicState, group: Group) -> z3.BoolRef:
    """What a group must satisfy before this collective (C4 to C7)."""
    match collective:
        case Collective.ALL_REDUCE | Collective.REDUCE:
            return reducible(state, group)
        case Collective.REDUCE_SCATTER:
            return z3.And(reducible(state, group), divisible(state, group))
        case Collective.ALL_GATHER:
            return gatherable(state, group)
        case Collective.BROADCAST:
            return broadcastable(state, group)


def effect(collective: Collective, state: SymbolicState, group: Group) -> tuple[Rows, ...]:
    """C8: the members' rows after this collective."""
    joined = union(state, group)
    match collective:
        case Collective.ALL_REDUCE | Collective.ALL_GATHER:
            return (joined,) * len(group)
        case Collective.REDUCE:
            empty = tuple(z3.BitVecVal(0, len(joined)) for _ in joined)
            return (joined, *(empty,) * (len(group) - 1))
        case Collective.BROADCAST:
            return (state.rows[group[0]],) * len(group)
        case Collective.REDUCE_SCATTER:
            return tuple(_run(state, group, member, joined) for member in range(len(group)))


def _run(state: SymbolicState, group: Group, member: int, joined: Rows) -> Rows:
    """The rows of the union whose rank lies in this member's run, the others empty."""
    total, n = state.totals[group[0]], len(group)
    low, high = member * total, (member + 1) * total
    kept = [z3.And(z3.ULE(low, n * q), z3.ULT(n * q, high)) for q in state.ranks[group[0]]]
    return tuple(z3.If(keep, row, 0) for keep, row in zip(kept, joined, strict=True))
