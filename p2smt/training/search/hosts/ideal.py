"""What no order of hosts can beat: the same number of hosts under one switch that nothing slows.

Uplinks only add to what the links under that switch take, and an iteration grows with every price.
So strategies on one such switch, each on its best matrix inside the nodes, are a bound for every
choice and order of that many hosts.  Batches may differ, so times are those of a sequence.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product

import numpy as np

from p2smt.cluster.link import Link, Piece
from p2smt.cluster.topology import Topology
from p2smt.errors import InputError
from p2smt.parallelism.matrices import divisors
from p2smt.parallelism.placement import AxisRule, FixedEntry, IntArray, Matrix
from p2smt.result import StopWatch
from p2smt.search.allocation.cell_grids import CellGrid
from p2smt.training.efficiency import TrainingRun
from p2smt.training.formulas.stages import StrategyColumns
from p2smt.training.pipeline import work
from p2smt.training.search.bounds_table import BoundsTable
from p2smt.training.search.candidates import Candidates, Seconds
from p2smt.training.search.choices import Choices
from p2smt.training.search.contradiction import contradiction
from p2smt.training.search.pairs import placed_candidates
from p2smt.training.search.plan import shortfall
from p2smt.training.search.plan_answer import Shortfall
from p2smt.training.search.prices import PlacedCandidates, SceneCache
from p2smt.training.search.question import PlanQuestion
from p2smt.training.search.strategies import space_between
from p2smt.training.strategy import AXES, Batch, Strategy


def one_leaf(topology: Topology, nodes: int) -> Topology:
    """So many nodes of a topology under one switch, with the least latency of all networks."""
    at = topology.node_level
    links = [level.link for level in topology.levels[: at + 1]]
    level = replace(topology.levels[at], size=nodes, link=_quickest(links))
    return replace(topology, levels=(level, *topology.levels[at + 1 :]), hosts=None)


def _quickest(links: list[Link]) -> Link:
    """The last of some links, as quick as the quickest of them for each protocol."""
    own, others = links[-1], links[:-1]

    def quick(piece: Piece) -> Piece:
        every = (one for link in others for one in link.pieces if one.name == piece.name)
        return replace(piece, latency_s=min([piece.latency_s, *(one.latency_s for one in every)]))

    hops = dict(own.hops)
    for name, hop in (pair for link in others for pair in link.hops):
        hops[name] = min(hop, hops.get(name, hop))
    return replace(own, pieces=tuple(map(quick, own.pieces)), hops=tuple(hops.items()))


@dataclass(frozen=True, slots=True)
class Ideal:
    """The strategies that fill so many hosts, fit into memory and run, each with its batch.

    ``rows``: those, in the order of ``free_s``, their least seconds of a sequence where
    communication costs nothing.
    """

    nodes: int
    question: PlanQuestion
    candidates: Candidates
    priced: PlacedCandidates
    rows: IntArray
    free_s: Seconds

    @staticmethod
    def of(
        question: PlanQuestion, batches: tuple[int, int], nodes: int, watch: StopWatch
    ) -> Ideal | None:
        """None: no strategy with these batches fills so many hosts."""
        topology = one_leaf(question.topology, nodes)
        inner = replace(question, topology=topology, rules=_inner_rules(question))
        columns = space_between(inner, Choices.of(inner), *batches)
        if columns is None:
            return None
        candidates = Candidates.of(inner, columns)
        fits = candidates.work.memory_bytes <= inner.capacity_bytes
        rows = np.flatnonzero(fits & (candidates.placements[candidates.block] > 0))
        free_s = candidates.computing_s() / _sequences(columns)
        rows = rows[np.argsort(free_s[rows], kind="stable")]
        priced = placed_candidates(candidates, SceneCache(topology), watch)
        return Ideal(nodes, inner, candidates, priced, rows, free_s[rows])

    def sequences(self, row: int) -> int:
        """The global batch of a row."""
        return int(_sequences(self.candidates.columns)[row])

    def run(self, row: int) -> TrainingRun:
        """A row as a training."""
        batch = Batch(self.sequences(row), self.question.batch.tokens)
        return TrainingRun(self.question.model, batch, self.strategy(row))

    def strategy(self, row: int) -> Strategy:
        """The strategy of a row."""
        return self.candidates.columns.strategy(row)

    def runs(self, row: int) -> bool:
        """Whether the launcher in use can run it."""
        lacks = self.question.lacks
        return lacks is None or not lacks(self.strategy(row), self.question.model)

    def least_s(self, rows: IntArray) -> Seconds:
        """A bound on the seconds of a sequence of each row: each request is best off alone."""
        return np.asarray(self.priced.least_s(rows) / _sequences(self.candidates.columns)[rows])

    def insides(
        self, row: int, most_s: float = math.inf
    ) -> Iterator[tuple[float, tuple[CellGrid, ...]]]:
        """Of each matrix inside the nodes, or pair of them, the least seconds of a sequence, if
        these are at most so many, and the grids of cells."""
        placed = self.priced.placed(int(self.candidates.block[row]))
        seconds, places = self.priced.every(row)
        for at in np.flatnonzero(seconds <= most_s * self.sequences(row)).tolist():
            yield float(seconds[at]) / self.sequences(row), _grids(placed.matrix(places[at]))


def nearest_to_fitting(
    question: PlanQuestion, batches: tuple[int, int], nodes: int, watch: StopWatch
) -> Shortfall | None:
    """What comes nearest to fitting where nothing runs, on the most hosts, up to so many, that some
    strategy fills; None: some fit, and nothing places or launches them.

    Raises:
        InputError: no strategy is valid on any number of hosts; names what is contradictory.
    """
    for many in range(nodes, 0, -1):
        ideal = Ideal.of(question, batches, many, watch)
        if ideal is not None:
            return None if len(ideal.rows) else shortfall(BoundsTable.of(ideal.candidates))
    asked = replace(question, topology=one_leaf(question.topology, nodes))
    raise contradiction(asked, Choices.of(asked), batches)


def _grids(rows: Matrix) -> tuple[CellGrid, ...]:
    """The grid of a matrix, or of each of two whose rows these are; the outermost level is that of
    the nodes."""
    many = len(AXES)
    sides = (rows[:many], (rows[0], *rows[many:])) if len(rows) > many else (rows,)
    return tuple(
        CellGrid(tuple(row[1:] for row in side), tuple(row[0] for row in side)) for side in sides
    )


def _sequences(columns: StrategyColumns) -> IntArray:
    assert columns.sequences is not None
    return columns.sequences


def _inner_rules(question: PlanQuestion) -> tuple[AxisRule | FixedEntry, ...]:
    """The rules on the levels of one leaf.

    Raises:
        InputError: one is on a switch outside the nodes.
    """
    node, found = question.topology.node_level, []
    for rule in question.rules:
        at_node = isinstance(rule, AxisRule) and rule.level == node
        if rule.level <= node and not at_node:
            given = f"rule on level {question.topology.names[rule.level]}"
            text = "on named hosts rules speak of nodes and what is inside them"
            raise InputError(given, text, "leave it out")
        found.append(replace(rule, level=rule.level - node))
    return tuple(found)


def device_seconds(question: PlanQuestion) -> float:
    """Seconds that a sequence takes of all devices together at least, however many there are.

    One stage and free communication: more stages, a bubble, or what is computed again only add, and
    so do more experts on a device.
    """
    choices = Choices.of(question)
    most = {name: choices.most(name) for name in ("tp", "cp", "micro_batch")}
    model = question.model
    tps = [n for n in divisors(model.ffn or model.heads) if n <= most["tp"]]
    cps = [n for n in range(1, most["cp"] + 1) if question.batch.tokens % n == 0]
    ep, etps = 1, [1]
    if model.experts:
        ep = max(n for n in divisors(model.experts.count) if n <= choices.most("ep"))
        etps = [n for n in divisors(model.experts.width) if n <= choices.most("etp")]
    grid = product(tps, cps, range(1, most["micro_batch"] + 1), (False, True), etps)
    usual = Strategy(
        flash=question.flash,
        dtype=question.dtype,
        graphs=question.graphs,
        fp8_attention=question.fp8_attention,
        dropout=question.dropout,
        ep=ep,
    )
    columns = StrategyColumns.of(
        [
            replace(
                usual, tp=tp, cp=cp, micro_batch=mbs, sequence_parallel=sp, dp=ep * etp, etp=etp
            )
            for tp, cp, mbs, sp, etp in grid
            if (tp > 1 or not sp) and question.batch.tokens % (cp * (tp if sp else 1)) == 0
        ]
    )
    columns = replace(columns, sequences=columns.micro_batch * columns.dp)
    device = question.topology.known_device
    done = work(model, question.batch, columns, device, question.efficiency)
    each = done.compute_s[:, 0] * columns.tp * columns.cp / columns.micro_batch
    return float(each.min())
