"""All scenes that a request could meet, as the rows of a placement cost table.

The time of a request depends on a placement only through the digits of its axes at each
level, and on their strides only where positions matter
(:func:`p2smt.cost.alpha_beta.relevant_digits`). Each such combination is one row of the cost table
that goes into the placement encodings; some of them belong to no whole matrix, which does no harm.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

from p2smt.cluster.topology import LinkKind, Topology
from p2smt.cost.alpha_beta import relevant_digits
from p2smt.cost.footprint import Digits
from p2smt.cost.scene import Scene
from p2smt.errors import TooLarge
from p2smt.parallelism.placement import Placement
from p2smt.problems.placement import LevelTerm

MAX_SCENES = 50_000
TermValues = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class SceneTable:
    """Terms of a request's cost table, and the scene of each combination of their values."""

    terms: tuple[LevelTerm, ...]
    scenes: Mapping[TermValues, Scene]

    def values(self, placement: Placement) -> TermValues:
        """The row of the table that a placement falls into."""
        return tuple(
            math.prod(placement.matrix[i][term.level] for i in term.axes) for term in self.terms
        )


def scene_table(topology: Topology, axes: Sequence[int], chosen: Sequence[int]) -> SceneTable:
    """The table of the chosen axes (indices, ascending); ``axes`` are all axis sizes."""
    exact = _position_levels(topology)
    terms = _terms(exact, len(axes), chosen)
    scenes: dict[TermValues, Scene] = {}
    for columns in _columns(topology, axes, chosen, exact):
        values = tuple(v for column in columns for v in column.values)
        digits = relevant_digits(topology, [column.digits for column in columns])
        scenes.setdefault(values, Scene(topology, digits))
        if len(scenes) > MAX_SCENES:
            raise TooLarge(
                f"a request on axes of sizes {[axes[i] for i in chosen]}",
                f"has more than {MAX_SCENES} ways to lie on the levels",
                "fix some entries with --fix or --require",
            )
    return SceneTable(terms, scenes)


def _position_levels(topology: Topology) -> list[bool]:
    """Levels where the positions of the members matter, not only their number."""
    found, below_ports = [], False
    for j, level in enumerate(topology.levels):
        found.append(below_ports or level.link.kind is not LinkKind.SWITCH)
        below_ports |= 1 < level.link.ports < topology.devices_under(j)
    return found


def _terms(exact: Sequence[bool], axes: int, chosen: Sequence[int]) -> tuple[LevelTerm, ...]:
    terms = []
    for j, positions in enumerate(exact):
        if not positions:
            terms.append(LevelTerm(j, tuple(chosen)))
            continue
        for i in chosen:
            terms.append(LevelTerm(j, (i,)))
            if i + 1 < axes:
                terms.append(LevelTerm(j, tuple(range(i + 1, axes))))
    return tuple(terms)


@dataclass(frozen=True, slots=True)
class _Column:
    """One level of a scene: values of its terms, and the digits they stand for."""

    values: TermValues
    digits: Digits


def _columns(
    topology: Topology, axes: Sequence[int], chosen: Sequence[int], exact: Sequence[bool]
) -> Iterator[tuple[_Column, ...]]:
    """Every way to split the chosen axes over the levels."""
    sizes = topology.sizes

    def extend(j: int, left: tuple[int, ...]) -> Iterator[tuple[_Column, ...]]:
        if j == len(sizes):
            if math.prod(left) == 1:
                yield ()
            return
        seen: set[tuple[TermValues, TermValues]] = set()
        for entries in product(*(_divisors(math.gcd(n, sizes[j])) for n in left)):
            if sizes[j] % math.prod(entries):
                continue
            rest = tuple(n // e for n, e in zip(left, entries, strict=True))
            if math.prod(sizes[j + 1 :]) % math.prod(rest):
                continue
            for column in _level_columns(sizes[j], len(axes), chosen, entries, exact[j]):
                if (column.values, rest) not in seen:
                    seen.add((column.values, rest))
                    for more in extend(j + 1, rest):
                        yield (column, *more)

    return extend(0, tuple(axes[i] for i in chosen))


def _level_columns(
    size: int, axes: int, chosen: Sequence[int], entries: Sequence[int], exact: bool
) -> Iterator[_Column]:
    """The columns with these entries: one, or one per way the other axes lie in between."""
    merged = math.prod(entries)
    if not exact:
        yield _Column((merged,), ((merged, 1),) if merged > 1 else ())
        return
    for gaps in _gaps(size // merged, axes, chosen):
        values: list[int] = []
        digits: list[tuple[int, int]] = []
        suffix = 1
        for i, entry, gap in reversed(list(zip(chosen, entries, gaps, strict=True))):
            stride = suffix * gap
            values = [entry, *([stride] if i + 1 < axes else []), *values]
            suffix = stride * entry
            digits = [(entry, stride), *digits]
        yield _Column(tuple(values), _merged(digits))


def _gaps(free: int, axes: int, chosen: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """Products of the other axes' entries just after each chosen axis; the rest lies before."""
    after = [
        (i + 1 < axes and (n + 1 == len(chosen) or chosen[n + 1] > i + 1))
        for n, i in enumerate(chosen)
    ]
    before = chosen[0] > 0
    for gaps in product(*(_divisors(free) if open_ else (1,) for open_ in after)):
        used = math.prod(gaps)
        if free % used == 0 and (before or used == free):
            yield gaps


def _merged(digits: Sequence[tuple[int, int]]) -> Digits:
    """Digits as :func:`p2smt.cost.footprint.digits_of` gives them."""
    found: list[tuple[int, int]] = []
    for size, stride in digits:
        if found and found[-1][1] == size * stride:
            found[-1] = (found[-1][0] * size, stride)
        elif size > 1:
            found.append((size, stride))
    return tuple(found)


def _divisors(n: int) -> list[int]:
    small = [d for d in range(1, math.isqrt(n) + 1) if n % d == 0]
    return sorted({*small, *(n // d for d in small)})
