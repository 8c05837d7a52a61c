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
