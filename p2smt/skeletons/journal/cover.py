"""Whether the closed cubes of a journal are the whole space: a partition, counted exactly."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

from p2smt.errors import InputError
from p2smt.skeletons.cube import Closure, Cube, CubeVerdict
from p2smt.skeletons.journal.remade import Share
from p2smt.skeletons.journal.tree import CubeTree, shown


@dataclass(frozen=True, slots=True)
class CubeCover:
    """The closed cubes that are taken, none a part of another, and the cubes that are open.

    A closed cube stands for its parts, closed or not; one without a proof that was split does not.

    Attributes:
        leaves: closed cubes, in order.
        open: cubes without a verdict, in order.
        counted: the share of all leaves together.
        whole: that of the space.
        faults: where cubes and shares do not fit, in words.
    """

    leaves: tuple[Closure, ...]
    open: tuple[Cube, ...]
    counted: Fraction
    whole: Fraction
    faults: tuple[str, ...]

    @property
    def complete(self) -> bool:
        """Whether every part of the space is in exactly one leaf."""
        return not self.open and not self.faults and self.counted == self.whole


def cover_of(tree: CubeTree, share: Share) -> CubeCover:
    """The cover that a journal's cubes make, counted by ``share``."""
    leaves, unclosed = _leaves(tree)
    try:
        whole = share(Cube())
        counted = sum((share(leaf.cube) for leaf in leaves), Fraction(0))
        faults = tuple(_faults(tree, leaves, share))
    except InputError as error:
        return CubeCover(leaves, unclosed, Fraction(0), Fraction(0), (f"no such cube: {error}",))
    if not faults and not unclosed and counted != whole:
        faults = (f"the closed cubes hold {counted} of {whole}",)
    return CubeCover(leaves, unclosed, counted, whole, faults)


def _leaves(tree: CubeTree) -> tuple[tuple[Closure, ...], tuple[Cube, ...]]:
    """Closed cubes from the roots down, and open ones."""
    leaves, unclosed = dict[Cube, Closure](), set[Cube]()
    waiting, seen = list(tree.roots), set[Cube]()
    while waiting:
        cube = waiting.pop()
        if cube in seen:  # on record twice: the shares tell
            continue
        seen.add(cube)
        closure = tree.closed.get(cube)
        proved = closure is not None and closure.verdict is not CubeVerdict.UNKNOWN
        if cube in tree.splits and not proved:
            waiting += tree.splits[cube]
        elif closure is not None:
            leaves[cube] = closure
        else:
            unclosed.add(cube)
    return tuple(leaves[cube] for cube in sorted(leaves)), tuple(sorted(unclosed))


def _faults(tree: CubeTree, leaves: tuple[Closure, ...], share: Share) -> Iterator[str]:
    """Cubes inside others, and cubes that do not add up to what they came of."""
    for one, other in pairwise(leaf.cube for leaf in leaves):  # parts come right after a whole
        if other.within(one):
            yield f"{shown(other)} is a part of {shown(one)}, which is closed as well"
    for cube, children in [(Cube(), tree.roots), *tree.splits.items()]:
        if any(not child.within(cube) for child in children):
            yield f"{shown(cube)} is split into what is no part of it"
        elif len(set(children)) < len(children):
            yield f"{shown(cube)} is split into a part that stands there twice"
        elif (found := sum(map(share, children), Fraction(0))) != share(cube):
            yield f"the parts of {shown(cube)} hold {found} of its {share(cube)}"
