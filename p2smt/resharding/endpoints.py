"""Source and destination of a redistribution on common digits.

Each axis is cut where a type names a sub-axis, and further into primes (or not), so that both types
are states of one :class:`p2smt.resharding.states.Frame`.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from p2smt.errors import InputError
from p2smt.resharding.states import ArrayState, Frame, state_of
from p2smt.resharding.types import ArrayType, Mesh, SubAxis, Uneven

MAX_SPLITS = 24
"""At most so many orders of the primes of the axes are tried."""

Splits = tuple[tuple[int, ...], ...]
"""Per mesh axis the factors into which it is cut, most significant first."""


@dataclass(frozen=True, slots=True)
class Ends:
    """Where a redistribution starts and where it ends, as states of one frame."""

    frame: Frame
    source: ArrayState
    target: ArrayState

    @property
    def states_limit_bytes(self) -> int:
        """The larger of source and destination: what paths in normal form never exceed."""
        return max(map(self.frame.local_bytes, (self.source, self.target)))


def ends_of(source: ArrayType, target: ArrayType, splits: Splits | None = None) -> tuple[Ends, ...]:
    """The ends on common digits: one for each order of an axis's primes that could matter.

    ``splits``: cut the axes into these factors only, and where the types name sub-axes; None:
    into primes.

    Raises:
        InputError: the types are not of one array on one set of devices; sub-axes of both cannot
            coexist; or no rule covers an uneven dimension.
    """
    check_same_array(source, target)
    nested = _nested(source, target)
    if nested:
        _check_whole_axes(source, target)
        cuts: list[Splits] = [tuple((size,) for size in source.mesh.sizes)]
    else:
        cuts = list(itertools.islice(_splits(source, target, splits), MAX_SPLITS))
    return tuple(_ends(source, target, split, nested) for split in cuts)


def orders_left_out(source: ArrayType, target: ArrayType, splits: Splits | None = None) -> int:
    """How many orders of the primes :func:`ends_of` does not try: no proof is about these."""
    if splits is not None or _nested(source, target):
        return 0
    parts = [*source.layout.parts(), *target.layout.parts()]
    ways = [
        _count_orders(prime_factors(factor))
        for axis in range(len(source.mesh.axes))
        for factor in _factors(_cuts(source.mesh, axis, parts))
    ]
    return max(0, math.prod(ways) - MAX_SPLITS)


def _count_orders(primes: Sequence[int]) -> int:
    same = (math.factorial(primes.count(prime)) for prime in set(primes))
    return math.factorial(len(primes)) // math.prod(same)


def _nested(source: ArrayType, target: ArrayType) -> bool:
    return source.uneven is Uneven.NESTED and (_uneven(source) or _uneven(target))


def check_same_array(source: ArrayType, target: ArrayType) -> None:
    """Raise InputError unless both are types of one array on one set of devices."""
    for what, one, other in (
        ("mesh axes", source.mesh.axes, target.mesh.axes),
        ("shapes", source.shape, target.shape),
        ("dtypes", source.element, target.element),
        ("rules of uneven dimensions", source.uneven, target.uneven),
    ):
        if one != other:
            raise InputError(f"source and destination of two {what}", "must have the same", "")
    if set(source.mesh.devices) != set(target.mesh.devices):
        raise InputError(
            "a destination on other devices",
            "is not planned: both types must lie on the same devices",
            "another order of the same devices is --to-device-ids",
        )
    ops = {kind.layout.op for kind in (source, target) if kind.layout.partial}
    if len(ops) > 1:
        names = " and ".join(sorted(op.value for op in ops))
        raise InputError(
            f"partial values by {names}", "partial values of one array have one reduction"
        )


def _uneven(kind: ArrayType) -> bool:
    return any(size % kind.shards(dim) for dim, size in enumerate(kind.shape))


def _check_whole_axes(source: ArrayType, target: ArrayType) -> None:
    for kind in (source, target):
        for part in kind.layout.parts():
            if part.size != kind.mesh.axes[part.axis].size:
                rule = "nested uneven dimensions are sharded by whole axes only"
                raise InputError(f"sub-axis {part.text(kind.mesh)}", rule, "choose --uneven padded")


def _ends(source: ArrayType, target: ArrayType, splits: Splits, nested: bool) -> Ends:
    digits = _digits(splits)
    orders = tuple(dict.fromkeys((source.mesh.devices, target.mesh.devices)))
    op = (source if source.layout.partial else target).layout.op
    shape = _padded_shape(source, target) if source.uneven is Uneven.PADDED else source.shape
    frame = Frame(source.mesh, digits, orders, shape, source.element, op, nested)
    first = state_of(source.layout, digits, source.mesh)
    last = state_of(target.layout, digits, source.mesh, len(orders) - 1)
    if not set(last.partial) <= set(first.partial):
        new = frame.names([digit for digit in last.partial if digit not in first.partial])
        rule = (
            "the destination is partial there and the source is not; no step makes partial values"
        )
        raise InputError(f"P({new})", rule, "drop it from the destination")
    return Ends(frame, first, last)


def _padded_shape(source: ArrayType, target: ArrayType) -> tuple[int, ...]:
    """Each dimension rounded up to a multiple of both types' shards."""
    found = []
    for dim, size in enumerate(source.shape):
        multiple = math.lcm(source.shards(dim), target.shards(dim))
        found.append(-(-size // multiple) * multiple)
    return tuple(found)


def _digits(splits: Splits) -> tuple[SubAxis, ...]:
    found = []
    for axis, factors in enumerate(splits):
        before = 1
        for size in factors:
            if size > 1:
                found.append(SubAxis(axis, before, size))
            before *= size
    return tuple(found)


def _splits(source: ArrayType, target: ArrayType, given: Splits | None) -> Iterator[Splits]:
    """Every way to cut the axes: products of the ways of each."""
    ways = []
    for axis in range(len(source.mesh.axes)):
        cuts = _cuts(source.mesh, axis, [*source.layout.parts(), *target.layout.parts()])
        if given is None:
            ways.append(list(_prime_orders(cuts)))
        else:
            marks = itertools.accumulate(given[axis], initial=1, func=lambda a, b: a * b)
            ways.append([_factors(_chain(source.mesh, axis, {*cuts, *marks}))])
    yield from itertools.product(*ways)


def _cuts(mesh: Mesh, axis: int, parts: Sequence[SubAxis]) -> list[int]:
    """Where an axis must be cut, as products of its more significant parts; ascending."""
    marks = {1, mesh.sizes[axis]}
    for part in parts:
        if part.axis == axis:
            marks |= {part.before, part.before * part.size}
    return _chain(mesh, axis, marks)


def _chain(mesh: Mesh, axis: int, marks: set[int]) -> list[int]:
    found = sorted(marks)
    for low, high in itertools.pairwise(found):
        if high % low:
            name, size = mesh.axes[axis].name, mesh.sizes[axis]
            rule = f"axis {name} of {size} cannot be cut after {low} and after {high} both"
            raise InputError(f"sub-axes of {name}", rule, "choose parts that divide each other")
    return found


def _factors(cuts: Sequence[int]) -> tuple[int, ...]:
    return tuple(high // low for low, high in itertools.pairwise(cuts))


def _prime_orders(cuts: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """Every order of the primes between cuts; at most as many as are tried."""
    between = [
        list(itertools.islice(_orders(tuple(prime_factors(factor))), MAX_SPLITS))
        for factor in _factors(cuts)
    ]
    for choice in itertools.islice(itertools.product(*between), MAX_SPLITS):
        yield tuple(itertools.chain.from_iterable(choice))


def _orders(primes: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    """Every order of these numbers once, ascending."""
    if not primes:
        yield ()
    for first in sorted(set(primes)):
        at = primes.index(first)
        for rest in _orders(primes[:at] + primes[at + 1 :]):
            yield (first, *rest)


def prime_factors(number: int) -> list[int]:
    """The primes of which a number is the product, ascending."""
    found, prime = [], 2
    while number > 1:
        while number % prime == 0:
            found.append(prime)
            number //= prime
        prime += 1 if prime * prime <= number else number - prime
    return found


def with_shape(kind: ArrayType, shape: tuple[int, ...]) -> ArrayType:
    """The same type of an array of another shape."""
    return replace(kind, shape=shape)
