"""Regular fabrics, named by their sizes: all links go both ways, of bandwidth 1 without a unit."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from fractions import Fraction
from itertools import product
from math import prod

from p2smt.cluster.fabric.fabric import MAX_RANKS
from p2smt.cluster.fabric.wiring import Wire, WiredNodes
from p2smt.errors import InputError
from p2smt.result import StopWatch, timely

_Sizes = tuple[int, ...]


def ring(ranks: int, watch: StopWatch | None = None) -> WiredNodes:
    """Ranks in a circle, each linked to its two neighbours (2 ranks: one link)."""
    return _wired(f"ring:{ranks}", ranks, _neighbours((ranks,)), watch)


def torus(dims: _Sizes, watch: StopWatch | None = None) -> WiredNodes:
    """A grid of rings, the last dimension fastest; a dimension of 2 has one link, not two."""
    return _wired("torus:" + "x".join(map(str, dims)), prod(dims), _neighbours(dims), watch)


def cube(dims: int, watch: StopWatch | None = None) -> WiredNodes:
    """A hypercube: ranks whose numbers differ in one bit are linked."""
    return _wired(f"cube:{dims}", 2**dims, _neighbours((2,) * dims), watch)


def mesh(ranks: int, watch: StopWatch | None = None) -> WiredNodes:
    """All pairs are linked."""
    pairs = ((a, b) for a in range(ranks) for b in range(ranks) if a != b)
    return _wired(f"mesh:{ranks}", ranks, pairs, watch)


def _wired(
    name: str, ranks: int, pairs: Iterable[tuple[int, int]], watch: StopWatch | None
) -> WiredNodes:
    """``pairs`` ascending, none twice."""
    one = Fraction(1)
    wires = tuple([Wire(a, b, one) for a, b in timely(pairs, watch)])
    return WiredNodes(name, ranks, wires, measured=False)


def _neighbours(dims: _Sizes) -> list[tuple[int, int]]:
    """Ranks that differ by one, around, in one dimension: ascending, none twice."""
    return sorted(set(_steps(dims)))


def _steps(dims: _Sizes) -> Iterator[tuple[int, int]]:
    """A step forward and one back in every dimension, from every rank."""
    strides = [prod(dims[d + 1 :]) for d in range(len(dims))]
    for place in product(*map(range, dims)):
        at = sum(p * s for p, s in zip(place, strides, strict=True))
        for p, size, stride in zip(place, dims, strides, strict=True):
            for step in (1, -1):
                yield at, at + ((p + step) % size - p) * stride


_FAMILIES: Mapping[str, tuple[str, str, Callable[[_Sizes, StopWatch | None], WiredNodes]]] = {
    "ring": (r"\d+", "ring:N", lambda sizes, watch: ring(sizes[0], watch)),
    "torus": (r"\d+(?:x\d+){1,2}", "torus:AxB or torus:AxBxC", torus),
    "cube": (r"\d+", "cube:D", lambda sizes, watch: cube(sizes[0], watch)),
    "mesh": (r"\d+", "mesh:N", lambda sizes, watch: mesh(sizes[0], watch)),
}
FAMILIES = tuple(form for _, form, _ in _FAMILIES.values())
"""How the families are written."""


def family(text: str, watch: StopWatch | None = None) -> WiredNodes | None:
    """The regular fabric that a text such as ``torus:4x4`` names; None: it names no family.

    Raises:
        InputError: sizes that do not read, are below 2 (``cube``: 1), or make too many ranks.
        OutOfTimeError: the time of ``watch`` came.
    """
    name, _, rest = text.partition(":")
    if name not in _FAMILIES:
        return None
    pattern, form, make = _FAMILIES[name]
    if not re.fullmatch(pattern, rest, re.ASCII) or len(rest) > 20:
        raise InputError(f"fabric {text[:60]!r}", f"must read {form}", f"such as {_EXAMPLES[name]}")
    sizes = tuple(int(part) for part in rest.split("x"))
    least = 1 if name == "cube" else 2
    ranks = 2 ** min(sizes[0], 64) if name == "cube" else prod(sizes)
    if min(sizes) < least or ranks > MAX_RANKS:
        rule = f"must have sizes of {least} or more, and at most {MAX_RANKS} ranks"
        raise InputError(f"fabric {text[:60]!r}", rule, f"such as {_EXAMPLES[name]}")
    return make(sizes, watch)


_EXAMPLES = {"ring": "ring:8", "torus": "torus:4x4", "cube": "cube:3", "mesh": "mesh:4"}
