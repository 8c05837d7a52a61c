"""Accesses that packets put in order without making one visible to the other.

The memory rule: *a packet publishes its own words only*.  It is one store, of data and flag; who
reads the flag has the data.  It is no release, and reading it is no acquire: what its writer stored
plainly, in an earlier step or in the same one, need not be visible then.  Two things are certain
beside its words: what they were computed from has been read, and its reader, which has waited, goes
on later than its writer got so far.  docs/schedules.md has the sources.

So a read or an overwriting of something written must be ordered by visible edges, or see packets
that were read there.  The overwriting of something read may be ordered by packets too, if they
were made from what was read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from p2smt.schedules.order.happens_before import ranks_of
from p2smt.schedules.order.unordered_accesses import (
    not_arrived,
    open_locally,
    open_questions,
    scan_run,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from p2smt.schedules.index import Index
    from p2smt.schedules.order.happens_before import Edge, Edges
    from p2smt.schedules.order.unordered_accesses import OrderQuestion, Race


def find_unpublished(
    index: Index, edges: Edges, run: Sequence[int], races: Sequence[Race]
) -> list[OrderQuestion]:
    """Pairs of accesses along a run that execution orders, but no publication.

    races: those that nothing orders, which are left out.
    """
    if not edges.packets:
        return []
    known = {(race.cell, race.first, race.second) for race in races}
    asked = [
        q
        for q in scan_run(index, edges, run).asked
        if q.earlier not in edges.nodes.starts and (q.cell, q.earlier, q.later) not in known
    ]
    asked = open_locally(asked, ranks_of(index, edges.nodes), edges.visible)
    written = [q for q in asked if not q.overwrites]
    written = open_questions(written, edges.visible, edges.nodes.total)
    read, sources, total = _dependencies(edges)
    overwritten = open_questions([q for q in asked if q.overwrites], read, total, sources)
    return [*not_arrived(index, written, edges.visible, edges.nodes.total), *overwritten]


def _dependencies(edges: Edges) -> tuple[list[Edge], Mapping[int, int], int]:
    """The order of reads: edges, the node of the reads of each packet writer, and how many nodes.

    Beside each node stands its *progress*: the moment in which it has waited for all that it waits
    for.  Progress follows every edge; what a packet was made from comes before its reader's.
    """
    total = edges.nodes.total
    step_of = {node: step for step, node in edges.have_read.items()}
    writers = list(dict.fromkeys(step_of.get(a, a) for a, _ in edges.packets))
    read = {step: 2 * total + k for k, step in enumerate(writers)}

    def found() -> Iterator[Edge]:
        yield from edges.visible
        yield from ((total + node, node) for node in range(total))
        for a, b in (*edges.visible, *edges.relaxed, *edges.packets):
            yield total + a, total + b
        yield from ((read[step_of.get(a, a)], total + b) for a, b in edges.packets)
        yield from ((node, step) for step, node in read.items())

    return list(found()), read, 2 * total + len(writers)
