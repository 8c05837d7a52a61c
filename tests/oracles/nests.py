"""Every nest of a request by brute force: each tiling, each block split or joined, each order.

Written from what a nest is; what a step costs is asked for.  A step over a block, the levels from
one to another (left out), works on the whole vector divided by the factors scattered then.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from itertools import combinations, pairwise, product

from p2smt.collectives.names import Collective, RequestKind

Block = tuple[int, int]
Price = Callable[[Collective, Block, int], float]
"""Of a collective on the groups of a block, working on so many rows."""


def tilings(depth: int) -> Iterator[tuple[Block, ...]]:
    """Every way to cut the levels into blocks of neighbours, outermost first."""
    for n in range(depth):
        for cuts in combinations(range(1, depth), n):
            yield tuple(pairwise((0, *cuts, depth)))


def least_nest(kind: RequestKind, factors: Sequence[int], length: int, price: Price) -> float:
    """The least time of all nests of at most so many steps."""
    rows = math.prod(factors)

    def size(block: Block) -> int:
        return math.prod(factors[slice(*block)])

    @cache
    def down(blocks: frozenset[tuple[Block, bool]], left: int) -> float:
        """The least for these blocks in any order: scattered (True), or joined."""
        least = math.inf if blocks else 0.0
        for one in blocks:
            block, split = one
            step = Collective.REDUCE_SCATTER if split else Collective.ALL_REDUCE
            rest = down(blocks - {one}, left // size(block) if split else left)
            least = min(least, price(step, block, left) + rest)
        return least

    @cache
    def up(blocks: frozenset[Block]) -> float:
        """The least for gathers of these blocks, which are scattered, in any order."""
        left, least = rows // math.prod(map(size, blocks)), math.inf if blocks else 0.0
        for block in blocks:
            gathered = price(Collective.ALL_GATHER, block, left * size(block))
            least = min(least, gathered + up(blocks - {block}))
        return least

    least = math.inf
    for blocks in tilings(len(factors)):
        if kind is RequestKind.ALL_REDUCE:
            for split in product((True, False), repeat=len(blocks)):
                scattered = [b for b, is_split in zip(blocks, split, strict=True) if is_split]
                if len(blocks) + len(scattered) <= length:
                    first = down(frozenset(zip(blocks, split, strict=True)), rows)
                    least = min(least, first + up(frozenset(scattered)))
        elif len(blocks) <= length:
            scatter = kind is RequestKind.REDUCE_SCATTER
            found = (
                down(frozenset((b, True) for b in blocks), rows)
                if scatter
                else up(frozenset(blocks))
            )
            least = min(least, found)
    return least


_STEPS = {
    Collective.REDUCE_SCATTER: ("whole", "part"),
    Collective.ALL_REDUCE: ("whole", "done"),
    Collective.ALL_GATHER: ("part", "done"),
}
_WAYS = {
    RequestKind.ALL_REDUCE: ("whole", "done"),
    RequestKind.REDUCE_SCATTER: ("whole", "part"),
    RequestKind.ALL_GATHER: ("part", "done"),
}


def least_limited_nest(
    kind: RequestKind, factors: Sequence[int], length: int, price: Price, limits: Sequence[int]
) -> float:
    """The least time of all nests, gathers over any blocks, step by step; inf: there is none.

    ``limits``: of each level, how many steps may cross it: their block starts there or outside.
    """
    levels = len(factors)
    start, goal = ((stage,) * levels for stage in _WAYS[kind])

    def rows(stages: tuple[str, ...]) -> int:
        held = (n for n, stage in zip(factors, stages, strict=True) if stage != "part")
        return math.prod(held)

    @cache
    def rest(stages: tuple[str, ...], allowed: tuple[int, ...], left: int) -> float:
        if stages == goal:
            return 0.0
        least = math.inf
        for a, b in combinations(range(levels + 1), 2):
            fewer = tuple(n - (a <= level) for level, n in enumerate(allowed))
            if not left or min(fewer) < 0:
                continue
            for step, (before, after) in _STEPS.items():
                if all(stage == before for stage in stages[a:b]):
                    then = (*stages[:a], *(after,) * (b - a), *stages[b:])
                    held = rows(then if step is Collective.ALL_GATHER else stages)
                    least = min(least, price(step, (a, b), held) + rest(then, fewer, left - 1))
        return least

    return rest(start, tuple(limits), length)
