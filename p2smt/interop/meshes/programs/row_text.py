"""Which rows of the payload each member of a group takes, as an expression over its place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from p2smt.errors import InputError
from p2smt.parallelism.placement import IntArray

MAX_TABLE = 2**20
"""Most numbers in a table of rows."""


@dataclass(frozen=True, slots=True)
class RowChoice:
    """``count`` rows from ``first`` (an expression) on, ``step`` apart; or as tables have it.

    Tables are listed by a variable, ``by``: ``firsts`` has the first of these rows, ``table`` every
    row, in the order in which they lie in what is sent.  Both are empty where ``first`` says it.
    ``ragged``: some take fewer than ``count``.
    """

    count: int
    first: str = "0"
    step: int = 1
    table: tuple[tuple[int, ...], ...] = ()
    firsts: tuple[int, ...] = ()
    by: str = "place"
    ragged: bool = False


@dataclass(frozen=True, slots=True)
class MemberListing:
    """How members are listed in tables: by the variable ``by``, whose value is ``index``.

    ``digits`` are other variables of theirs, which expressions may use.
    """

    by: str
    index: IntArray
    digits: Mapping[str, IntArray]


def row_choice(rows: Sequence[IntArray | None], listing: MemberListing) -> RowChoice:
    """The choice that gives member i ``rows[i]``; None: it takes no part, and any will do.

    Raises:
        InputError: a table would be too long.
    """
    taking = np.array([i for i, own in enumerate(rows) if own is not None], dtype=np.int64)
    chosen = [own for own in rows if own is not None]
    count = max(map(len, chosen))
    ragged = any(len(own) != count for own in chosen)
    step = int(chosen[0][1] - chosen[0][0]) if len(chosen[0]) > 1 else 1
    wanted = step * np.arange(count)
    if not ragged and step > 0 and all((own - own[0] == wanted).all() for own in chosen):
        first = np.array([own[0] for own in chosen], dtype=np.int64)
        return _from_firsts(first, taking, RowChoice(count, step=step), listing)
    if len(rows) * count > MAX_TABLE:
        rule = "its ranks hold rows in more ways than can be written down"
        raise InputError("a program", rule, "export a smaller plan")
    table: list[tuple[int, ...]] = [tuple(range(count))] * len(rows)
    for at, own in zip(listing.index[taking].tolist(), chosen, strict=True):
        table[at] = tuple(own.tolist())
    return RowChoice(count, table=tuple(table), by=listing.by, ragged=ragged)


def _from_firsts(
    first: IntArray, taking: IntArray, found: RowChoice, listing: MemberListing
) -> RowChoice:
    """Rows told by the first of each member: by an expression, or by a table."""
    text = affine(first, {name: values[taking] for name, values in listing.digits.items()})
    if text is not None:
        return replace(found, first=text)
    firsts = np.zeros(len(listing.index), dtype=np.int64)
    firsts[listing.index[taking]] = first
    return replace(found, firsts=tuple(firsts.tolist()), by=listing.by)


def affine(values: IntArray, variables: Mapping[str, IntArray]) -> str | None:
    """``2 * a + b`` for values that are such a sum; None: they are not."""
    names = [name for name, found in variables.items() if found.any()]
    columns = np.stack([np.ones(len(values)), *(variables[name] for name in names)], axis=1)
    solved = np.rint(np.linalg.lstsq(columns, values.astype(float), rcond=None)[0])
    factors = solved.astype(np.int64)
    if (columns.astype(np.int64) @ factors != values).any() or (factors < 0).any():
        return None
    return sum_text(int(factors[0]), dict(zip(names, factors[1:].tolist(), strict=True)))


def sum_text(constant: int, factors: Mapping[str, int]) -> str:
    """A sum of multiples of variables and a constant, without what is 0."""
    parts = [
        name if factor == 1 else f"{factor} * {name}" for name, factor in factors.items() if factor
    ]
    if constant or not parts:
        parts.append(str(constant))
    return " + ".join(parts)
