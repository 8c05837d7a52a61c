"""Short ways to write types, states and ends in tests."""

from __future__ import annotations

from collections.abc import Sequence

from p2smt.resharding.endpoints import Ends, Splits, ends_of
from p2smt.resharding.types import ArrayType, ElementType, Uneven, parse_layout, parse_mesh


def array_type(
    mesh: str,
    shape: tuple[int, ...],
    layout: str,
    uneven: Uneven = Uneven.REFUSE,
    devices: Sequence[int] | None = None,
    element: ElementType = ElementType.F32,
) -> ArrayType:
    """The type of these texts."""
    made = parse_mesh(mesh, devices)
    return ArrayType(made, shape, element, parse_layout(layout, made), uneven)


def all_ends(
    mesh: str,
    shape: tuple[int, ...],
    source: str,
    target: str,
    uneven: Uneven = Uneven.REFUSE,
    splits: Splits | None = None,
) -> tuple[Ends, ...]:
    """The ends of these texts, one for each order of primes."""
    kinds = [array_type(mesh, shape, layout, uneven) for layout in (source, target)]
    return ends_of(kinds[0], kinds[1], splits)


def first_ends(
    mesh: str,
    shape: tuple[int, ...],
    source: str,
    target: str,
    uneven: Uneven = Uneven.REFUSE,
) -> Ends:
    """The first of them."""
    return all_ends(mesh, shape, source, target, uneven)[0]
