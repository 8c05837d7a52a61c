"""A picture (SVG) of a forest: its trees, the heaviest first, and how busy links are.

A tree stands on its head: the root above, below it the ranks that have its data after one message,
after two, and so on.  Of a forest with symmetries the trees of one root of each kind are drawn, and
a bar is for all links that are alike.  Messages over a link that is busy all the time are orange.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from html import escape

from p2smt.report.schedules.forest_data import depths_of, ends_of
from p2smt.report.schedules.space_time import drawn_text, opening
from p2smt.report.text import printable
from p2smt.synthesis.certificate.forest import (
    ForestClaim,
    Orbits,
    TreeNetwork,
    WeightedTree,
    arc_words,
    orbits_of,
    times_of_arcs,
)
from p2smt.units import counted, plain

MOST_TREES, MOST_LINKS = 6, 16
_WIDTH, _MARGIN, _TOP, _DEEP = 900, 16, 84, 46
_FEW_RANKS, _LABELLED = 40, 14
"""Of so many ranks two trees stand side by side; ranks so far apart have their numbers."""
_ROW, _BAR_LEFT, _BAR = 20, 430, 330
_FULL, _PART, _TRACK = "#D55E00", "#0072B2", "#eef1f4"


def forest_svg(claim: ForestClaim, title: str) -> str:
    """The forest as SVG.

    Raises:
        NoProof: its trees are none.
    """
    loads, trees = LinkLoads.of(claim), drawn_trees(claim)
    per_row = 2 if claim.network.ranks <= _FEW_RANKS and len(trees) > 1 else 1
    width = (_WIDTH - 2 * _MARGIN) / per_row
    top, body = _TOP, list[str]()
    for start in range(0, len(trees), per_row):
        row = trees[start : start + per_row]
        for at, (tree, adds) in enumerate(row):
            drawn = _TreeDrawing(claim, tree, adds, loads)
            body += drawn.lines(_MARGIN + at * width, top, width - 24)
        top += 62 + _DEEP * max(
            max(depths_of(claim, tree, adds=adds).values()) for tree, adds in row
        )
    every = len(claim.copying) + len(claim.adding)
    if every > len(trees):
        body.append(
            drawn_text(_MARGIN, top - 8, f"{counted(every - len(trees), 'lighter tree')} more", 11)
        )
    body += _bars(loads, top + 26)
    height = top + 60 + _ROW * min(MOST_LINKS, len(loads.shares))
    seen = "orange: over a link that is busy all the time; "
    seen += "trees of one root of each kind" if claim.symmetries else "every root has its own trees"
    head = [drawn_text(16, 24, printable(title), 14, True), drawn_text(16, 44, seen, 12)]
    return "\n".join([*opening(_WIDTH, height), *head, *body, "</svg>"]) + "\n"


def drawn_trees(claim: ForestClaim) -> list[tuple[WeightedTree, bool]]:
    """The heaviest trees, and whether each adds up; of both kinds where there are both."""
    kinds = [(claim.copying, False), (claim.adding, True)]
    several = sum(bool(trees) for trees, _ in kinds)
    found = []
    for trees, adds in kinds:
        heavy = sorted(trees, key=lambda one: (-one.weight, one.root))
        found += [(tree, adds) for tree in heavy[: MOST_TREES // several]]
    return found


@dataclass(frozen=True, slots=True)
class LinkLoads:
    """What part of the time links are busy, by the first of those that are alike."""

    network: TreeNetwork
    orbits: Orbits
    shares: Mapping[int, Fraction]

    @staticmethod
    def of(claim: ForestClaim) -> LinkLoads:
        """Those of a forest.

        Raises:
            NoProof: its trees are none.
        """
        orbits = orbits_of(claim.network, claim.symmetries, claim.root)
        times = times_of_arcs(claim, orbits)
        most = max(times.values(), default=Fraction(1))
        order = sorted(times, key=lambda arc: (-times[arc], arc))
        return LinkLoads(claim.network, orbits, {arc: times[arc] / most for arc in order})

    def of_way(self, way: Sequence[int]) -> Fraction:
        """That of the busiest link of a way."""
        firsts = (self.orbits.arcs[arc] for arc in way)
        return max((self.shares.get(arc, Fraction(0)) for arc in firsts), default=Fraction(0))

    def rows(self) -> Iterator[tuple[str, int, Fraction]]:
        """A link's name, how many are like it, and its share."""
        sizes = Counter(self.orbits.arcs)
        for arc, share in self.shares.items():
            yield printable(arc_words(self.network, arc)), sizes[arc], share


@dataclass(frozen=True, slots=True)
class _TreeDrawing:
    claim: ForestClaim
    tree: WeightedTree
    adds: bool
    loads: LinkLoads

    def lines(self, left: float, top: float, width: float) -> Iterator[str]:
        """Messages, then ranks over them."""
        depths = depths_of(self.claim, self.tree, adds=self.adds)
        ways = {ends_of(self.claim.network, w, adds=self.adds): w for w in self.tree.ways}
        across = self._across(depths, ways)
        leaves = max(across.values()) + 1
        x = {rank: left + width * (at + 0.5) / leaves for rank, at in across.items()}
        y = {rank: top + 26 + _DEEP * depth for rank, depth in depths.items()}
        word = "adds up to" if self.adds else "copies from"
        words = f"{word} rank {self.tree.root}: {self.tree.weight} of its data"
        yield drawn_text(left, top, words, 12, True)
        for (before, rank), way in ways.items():
            share = self.loads.of_way(way)
            ends = f"x1='{x[before]:.1f}' y1='{y[before]}' x2='{x[rank]:.1f}' y2='{y[rank]}'"
            look = f"stroke='{_FULL if share == 1 else _PART}' stroke-width='1.2'"
            told = f"<title>{escape(self._told(before, rank, way))}</title>"
            yield f"<line {ends} {look}>{told}</line>"
        radius = min(9.0, max(1.0, 0.42 * width / leaves))
        for rank in depths:
            place = f"cx='{x[rank]:.1f}' cy='{y[rank]}' r='{radius:.1f}' fill='#ffffff'"
            yield f"<circle {place} stroke='#222222'><title>rank {rank}</title></circle>"
            if width / leaves >= _LABELLED:
                yield drawn_text(x[rank] - 2.9 * len(str(rank)), y[rank] + 3.5, str(rank), 10)

    def _told(self, before: int, rank: int, way: Sequence[int]) -> str:
        net, ends = self.claim.network, (rank, before) if self.adds else (before, rank)
        over = [arc for arc in way if net.arcs[arc][2] is not None]
        share = plain(100 * float(self.loads.of_way(way)), 3)
        names = ", ".join(printable(arc_words(net, arc)) for arc in over)
        return f"rank {ends[0]} to {ends[1]} over {names}: busy {share} % of the time"

    def _across(
        self, depths: Mapping[int, int], ways: Mapping[tuple[int, int], Sequence[int]]
    ) -> dict[int, float]:
        """Leaves side by side, every other rank over the middle of those below it."""
        below = defaultdict[int, list[int]](list)
        for before, rank in sorted(ways):
            below[before].append(rank)
        order, left = list[int](), [self.tree.root]
        while left:
            order.append(left.pop())
            left += reversed(below[order[-1]])
        found, leaves = dict[int, float](), 0
        for rank in order:
            if not below[rank]:
                found[rank], leaves = float(leaves), leaves + 1
        for rank in sorted(depths, key=lambda one: -depths[one]):
            if below[rank]:
                places = [found[one] for one in below[rank]]
                found[rank] = (min(places) + max(places)) / 2
        return found


def _bars(loads: LinkLoads, top: int) -> Iterator[str]:
    """The busiest links."""
    rows = list(loads.rows())
    yield drawn_text(_MARGIN, top, "how much of the time links are busy", 12, True)
    for at, (name, alike, share) in enumerate(rows[:MOST_LINKS]):
        y = top + 12 + _ROW * at
        words = name if len(name) <= 44 else f"{name[:42]}.."
        words += f", {counted(alike, 'link')} alike" if alike > 1 else ""
        yield drawn_text(_MARGIN, y + 11, words, 11)
        full = f"height='12' y='{y + 1}' x='{_BAR_LEFT}'"
        yield f"<rect {full} width='{_BAR}' fill='{_TRACK}'/>"
        colour = _FULL if share == 1 else _PART
        yield f"<rect {full} width='{_BAR * float(share):.1f}' fill='{colour}'/>"
        yield drawn_text(_BAR_LEFT + _BAR + 8, y + 11, f"{plain(100 * float(share), 3)} %", 11)
    if len(rows) > MOST_LINKS:
        y = top + 23 + _ROW * MOST_LINKS
        least = plain(100 * float(rows[-1][2]), 3)
        yield drawn_text(_MARGIN, y, f"{len(rows) - MOST_LINKS} more, from {least} % on", 11)
