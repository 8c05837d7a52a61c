"""Classes of errors: what measured payloads say of those between them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from p2smt.cluster.error_class import MAX_ERROR, Basis, ErrorClass, kept_error

BOUNDS = (0, 2**16, 2**20, 2**26, 2**62)
"""Classes of payloads: above one bound, up to the next."""
OPEN_FROM = 2**26
"""A measurement this large says what larger payloads take: bandwidth alone decides."""

Errors = Sequence[tuple[int, float]]
"""Payloads in bytes, with abs(predicted / measured - 1)."""


def error_classes(operation: str, seen: Errors, unseen: Errors) -> Iterator[ErrorClass]:
    """The classes of an operation, smallest first, from where to where it was measured.

    Of each, the error is the larger of what measurements keep to that the constants were fitted to
    (``seen``), and of those that a fit without them predicted (``unseen``).
    """
    sizes = sorted({size for size, _ in (*seen, *unseen)})
    for above, most in pairwise(BOUNDS):
        here = [size for size in sizes if above < size <= most]
        if here:
            error, basis = max(_kept(seen, here), _kept(unseen, here, Basis.LEFT_OUT), key=_first)
            first = above if any(size <= above for size in sizes) else here[0]
            yield ErrorClass(operation, error, basis, first, _last(sizes, here[-1], most))


def _first(found: tuple[float, Basis]) -> float:
    return found[0]


def _kept(
    errors: Errors, sizes: Sequence[int], basis: Basis = Basis.IN_SAMPLE
) -> tuple[float, Basis]:
    """What errors at these sizes keep to, to two digits; below all where there is none."""
    found = [error for size, error in errors if size in sizes]
    return (float(f"{min(kept_error(found), MAX_ERROR):.2g}") if found else -1.0, basis)


def _last(sizes: Sequence[int], largest: int, most: int) -> int | None:
    """Where a class ends whose largest payload is given: at the next one, or where nothing is."""
    if sizes[-1] > most:
        return most
    return None if largest >= OPEN_FROM else largest
