"""Groups in which nothing but the identity leaves a rank where it is.

They are grown by one symmetry at a time that commutes with all before: such are found by random
products, also where the group of all symmetries is far too large to list.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Sequence

from p2smt.cluster.fabric.fabric import Fabric
from p2smt.cluster.fabric.maps.generators import fabric_symmetries
from p2smt.cluster.fabric.maps.named import named_symmetry
from p2smt.cluster.fabric.maps.search import Effort
from p2smt.cluster.fabric.maps.symmetry import FabricSymmetry
from p2smt.result import StopWatch

RESTARTS = 6
TRIES = 60
_MIXING = 60

RankImage = tuple[int, ...]


def commuting_group(
    fabric: Fabric,
    generators: Sequence[FabricSymmetry],
    fixed: Sequence[int] = (),
    watch: StopWatch | None = None,
) -> tuple[FabricSymmetry, ...]:
    """Generators of a group that commutes, of symmetries that leave ``fixed`` where they are.

    Of all elements but the identity, none leaves another rank where it is.  The largest of some
    that were grown at random from a fixed seed; there may be larger ones.  Of the edges, only what
    follows from the ranks is looked at.  When the time of ``watch`` is over, what was grown.
    """
    best: tuple[FabricSymmetry, ...] = ()
    most = 1
    for seed in range(RESTARTS):
        effort = Effort(watch=watch)
        if effort.over:
            break
        found, order = _grown(fabric, generators, fixed, random.Random(seed), effort)
        if order > most:
            best, most = found, order
        if most == fabric.ranks - len(fixed):
            break
    return best


def _grown(
    fabric: Fabric,
    generators: Sequence[FabricSymmetry],
    fixed: Sequence[int],
    drawn: random.Random,
    effort: Effort,
) -> tuple[tuple[FabricSymmetry, ...], int]:
    """A group that commutes, and its order: grown by one of those drawn until none fits."""
    chosen: list[FabricSymmetry] = []
    order, candidates = 1, tuple(generators)
    while candidates and not effort.over:
        known = [one.ranks for one in chosen]
        larger = []
        for image in _drawn([one.ranks for one in candidates], fixed, drawn):
            if (size := _free_order([*known, image], fixed)) is not None and size > order:
                larger.append((image, size))
        if not larger:
            break
        image, order = drawn.choice(larger)
        chosen.append(named_symmetry(fabric, image))
        candidates = fabric_symmetries(
            fabric, commuting=chosen, fixed=fixed, effort=Effort(watch=effort.watch)
        )
    return tuple(chosen), order


def _drawn(
    images: Sequence[RankImage], fixed: Sequence[int], drawn: random.Random
) -> Iterator[RankImage]:
    """Powers of the images, and of random products of them, that move all ranks alike."""
    for image in images:
        yield from _even_powers(image, fixed)
    pool = [*images] * (1 + 10 // len(images))
    for number in range(_MIXING + TRIES):
        a, b = drawn.sample(range(len(pool)), 2)
        pool[a] = tuple([pool[a][rank] for rank in pool[b]])
        if number >= _MIXING:
            yield from _even_powers(pool[a], fixed)


def _even_powers(image: RankImage, fixed: Sequence[int]) -> Iterator[RankImage]:
    """The powers in which all cycles but those of the fixed are equally long, one a length."""
    lengths = set(_cycle_lengths(image, fixed))
    for length in range(2, math.gcd(*lengths) + 1):
        if all(n % length == 0 for n in lengths):
            exponent = math.lcm(*(n // length for n in lengths))
            if all(math.gcd(n, exponent) == n // length for n in lengths):
                yield _power(image, exponent)


def _power(image: RankImage, exponent: int) -> RankImage:
    """Where a permutation takes everything that is done so often, by squaring."""
    found = tuple(range(len(image)))
    while exponent:
        if exponent & 1:
            found = tuple([image[rank] for rank in found])
        image, exponent = tuple([image[rank] for rank in image]), exponent >> 1
    return found


def _cycle_lengths(image: Sequence[int], fixed: Sequence[int]) -> Iterator[int]:
    seen = set(fixed)
    for start in range(len(image)):
        length, at = 0, start
        while at not in seen:
            seen.add(at)
            at, length = image[at], length + 1
        if length:
            yield length


def _free_order(images: Sequence[RankImage], fixed: Sequence[int]) -> int | None:
    """The order of a group of ranks, if none but the identity leaves one that is not fixed."""
    elements = [tuple(range(len(images[0])))]
    known = set(elements)
    for element in elements:
        for image in images:
            product = tuple([image[rank] for rank in element])
            if product not in known:
                still = sum(a == b for a, b in enumerate(product))
                if still > len(fixed) or len(elements) > len(product):
                    return None
                known.add(product)
                elements.append(product)
    return len(elements)
