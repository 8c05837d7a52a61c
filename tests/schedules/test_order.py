"""Questions about a partial order, against plain reachability."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from p2smt.schedules.order import happens_before as order
from p2smt.schedules.order.happens_before import Nodes, order_of

Edges = list[tuple[int, int]]


@st.composite
def graphs(draw: st.DrawFn) -> tuple[int, Edges]:
    """Acyclic graphs: every edge goes up in a shuffled numbering."""
    total = draw(st.integers(1, 14))
    rank = draw(st.permutations(range(total)))
    pairs = [(a, b) for a in range(total) for b in range(total) if rank[a] < rank[b]]
    edges = draw(st.lists(st.sampled_from(pairs), max_size=30)) if pairs else []
    return total, edges


def reachable(edges: Edges) -> set[tuple[int, int]]:
    """All pairs joined by a path, by repeated joining."""
    found = set(edges)
    while True:
        more = {(a, d) for a, b in found for c, d in edges if b == c} - found
        if not more:
            return found
        found |= more


@given(graphs(), st.sampled_from([1, 7, 1 << 20]))
def test_before_is_reachability(graph: tuple[int, Edges], table: int) -> None:
    total, edges = graph
    pairs = [(a, b) for a in range(total) for b in range(total) if a != b]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(order, "_TABLE", table)
        made = order_of(total, edges)
        answers = made.before(pairs)
    paths = reachable(edges)
    assert [bool(answer) for answer in answers] == [pair in paths for pair in pairs]


def test_no_questions_no_answers() -> None:
    made = order_of(3, [(0, 1)])
    assert made.before([]).tolist() == []


def test_a_cycle_has_no_order() -> None:
    for total, edges in ((3, [(0, 1), (1, 2), (2, 1)]), (1, [(0, 0)])):
        with pytest.raises(ValueError, match="before themselves"):
            order_of(total, edges)


def test_every_node_is_of_one_kind() -> None:
    nodes = Nodes(steps=3, ranks=2, meetings=1, readers=(2,))
    other = [nodes.meeting(0), nodes.reading(0)]
    assert [*range(3), *nodes.starts, *nodes.ends, *other] == list(range(nodes.total))
    for node in range(nodes.total):
        kinds = (nodes.is_step(node), nodes.is_start(node), nodes.is_end(node), node in other)
        assert sum(kinds) == 1
        assert (node in nodes.accessing) is (node not in other)


def test_starts_and_ends_know_their_rank() -> None:
    nodes = Nodes(steps=3, ranks=2, meetings=0)
    for rank in range(2):
        assert nodes.rank(nodes.start(rank)) == nodes.rank(nodes.end(rank)) == rank
        assert nodes.is_start(nodes.start(rank))
        assert nodes.is_end(nodes.end(rank))
