"""The throughput of a collective and its forest, for people and for ``--json``."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING

from rich.console import Group, RenderableType

from p2smt.report.outputs.schedules import VerifyForestOutput
from p2smt.report.outputs.synthesize import (
    ForestSchedule,
    ForestTree,
    SynthesisFiles,
    SynthesizeThroughputOutput,
)
from p2smt.report.schedules.synthesis_data import OUTSIDE, verdict_words
from p2smt.report.tables import table
from p2smt.report.text import printable
from p2smt.synthesis.certificate.forest import (
    ForestClaim,
    ForestReport,
    TreeNetwork,
    WeightedTree,
    binding,
)
from p2smt.units import counted, format_time, plain

if TYPE_CHECKING:
    from p2smt.synthesis.certificate.certificate import BoundedCollective
    from p2smt.synthesis.forests.pieces import PieceSchedule
    from p2smt.synthesis.forests.throughput import Throughput

_GIGA = 10**9
_BOUND_ARCS = 3
UNSETTLED = "the time limit came before a forest was found"


def throughput_data(
    fabric: str,
    collective: BoundedCollective,
    found: Throughput | None,
    made: PieceSchedule | None,
    files: Mapping[str, str],
) -> SynthesizeThroughputOutput:
    """The answer; ``files``: what was written, by kind."""
    claim = None if found is None else found.claim
    trees = [] if claim is None else [*_trees(claim, adds=False), *_trees(claim, adds=True)]
    return SynthesizeThroughputOutput(
        fabric=fabric[:200] if claim is None else claim.network.name,
        ranks=None if claim is None else claim.network.ranks,
        collective=collective.value,
        root=None if claim is None else claim.root,
        status="unknown" if claim is None else "optimal" if claim.optimal else "gap",
        without=[] if claim is None else claim.network.without,
        measured=None if claim is None else claim.network.measured,
        time=None if claim is None else str(claim.time),
        bound=None if claim is None else str(claim.bound),
        throughput=None if found is None else str(found.rate),
        gap=None if found is None else str(found.gap),
        binding=[] if claim is None else list(binding(claim)),
        symmetries=0 if claim is None else len(claim.symmetries),
        flows=0 if found is None else found.flows,
        height=None if found is None else found.height,
        trees=trees,
        schedule=None if made is None else _schedule(made),
        files=SynthesisFiles(
            output=files.get("output"),
            certificate=files.get("certificate"),
            svg=files.get("svg"),
        ),
        outside=OUTSIDE,
        wall_s=0.0 if found is None else found.wall_s,
    )


def _trees(claim: ForestClaim, *, adds: bool) -> Iterator[ForestTree]:
    for tree in claim.adding if adds else claim.copying:
        yield ForestTree(
            root=tree.root,
            weight=str(tree.weight),
            height=height_of(claim, tree, adds=adds),
            adds=adds,
        )


def _schedule(made: PieceSchedule) -> ForestSchedule:
    return ForestSchedule(
        pieces=made.pieces,
        steps=made.size.steps,
        rounds=made.size.rounds,
        chunks=made.size.chunks,
        time=str(made.time),
        verdict=made.report.verdict,
    )


def height_of(claim: ForestClaim, tree: WeightedTree, *, adds: bool) -> int:
    """Of how many messages the longest way of a tree is."""
    return max(depths_of(claim, tree, adds=adds).values())


def depths_of(claim: ForestClaim, tree: WeightedTree, *, adds: bool) -> dict[int, int]:
    """By rank, from the root outwards, how many messages lie between them."""
    after = defaultdict[int, list[int]](list)
    for way in tree.ways:
        before, rank = ends_of(claim.network, way, adds=adds)
        after[before].append(rank)
    found, frontier = {tree.root: 0}, [tree.root]
    for at in frontier:
        for rank in sorted(after[at]):
            found[rank] = found[at] + 1
            frontier.append(rank)
    return found


def ends_of(net: TreeNetwork, way: Sequence[int], *, adds: bool) -> tuple[int, int]:
    """The ranks of a way, the one that is nearer to the root first."""
    first, last = net.arcs[way[0]], net.arcs[way[-1]]
    return (first[1], last[0]) if adds else (first[0], last[1])


# For people.


def throughput_tables(
    fabric: str,
    collective: BoundedCollective,
    found: Throughput | None,
    made: PieceSchedule | None,
    pieces: int | None,
) -> RenderableType:
    """The rate, what binds it, the trees, the schedule."""
    if found is None:
        return Group(f"unknown: {UNSETTLED}", printable(f"{collective} on {fabric}"))
    lines = [*_lines(found)]
    if made is not None:
        lines += _schedule_lines(found, made)
    elif pieces is not None:
        lines.append("no schedule: the time limit came before one was made")
    lines.append(f"in {format_time(found.wall_s)}")
    return Group(*lines, "", _tree_table(found.claim))


def _lines(found: Throughput) -> Iterator[str]:
    claim = found.claim
    word = "optimal" if claim.optimal else f"gap {plain(100 * float(found.gap), 2)} %"
    yield f"{word}: {rate_words(claim, found.rate)}"
    yield _subject(claim)
    yield f"takes {time_words(claim, claim.time)}"
    if claim.optimal:
        yield f"no schedule that mixes no chunks is faster: {_cut(claim)}"
    else:
        kind = "none" if found.height is None else "none of any height"
        yield f"{kind} takes less than {time_words(claim, claim.bound)}: {_cut(claim)}"
    yield OUTSIDE


def _subject(claim: ForestClaim) -> str:
    root = "" if claim.root is None else f" of root {claim.root}"
    name = printable(_left(claim, claim.network.name))
    return f"{claim.collective}{root} on {name}, {counted(claim.network.ranks, 'rank')}"


def _left(claim: ForestClaim, name: str) -> str:
    """A network by its name, and what it lacks."""
    failed = ", ".join(claim.network.without)
    return f"{name} without {failed}" if failed else name


def rate_words(claim: ForestClaim, rate: Fraction) -> str:
    """Such as ``346.7 GB/s (1040/3)``."""
    if not claim.network.measured:
        return f"{rate} chunks a round ({plain(float(rate), 4)})"
    giga = rate / _GIGA
    return f"{plain(float(giga), 4)} GB/s" + ("" if giga.denominator == 1 else f" ({giga})")


def time_words(claim: ForestClaim, time: Fraction) -> str:
    """Such as ``3/65 s for a GB of each rank``."""
    measured, ranks = claim.network.measured, claim.network.ranks
    taken = f"{time * _GIGA} s" if measured else f"{time} rounds"
    if claim.adding and claim.copying:
        return f"{taken} for {ranks} {'GB' if measured else 'chunks'}"
    of_each = "" if claim.root is not None else " of each rank"
    return f"{taken} for a {'GB' if measured else 'chunk'}{of_each}"


def _cut(claim: ForestClaim) -> str:
    """What binds."""
    every = [*binding(claim)]
    names = ", ".join(every[:_BOUND_ARCS]) + (" .." if len(every) > _BOUND_ARCS else "")
    ranks = sum(1 for vertex in claim.parts[0] if vertex < claim.network.ranks)
    way = "enters" if claim.copying else "leaves"
    parts = "" if len(claim.parts) == 1 else f" (one of {len(claim.parts)} parts)"
    return printable(f"what {way} {counted(ranks, 'rank')}{parts}: {names}")


def _schedule_lines(found: Throughput, made: PieceSchedule) -> Iterator[str]:
    over = plain(float(made.time / found.claim.time), 3)
    size = made.size
    yield (
        f"schedule: {counted(made.pieces, 'piece')} of each root's data, {size.steps} steps, "
        f"{size.rounds} rounds: {over} of the forest's time"
    )
    yield verdict_words(made.report)


def _tree_table(claim: ForestClaim) -> RenderableType:
    rows = []
    for adds, trees in ((False, claim.copying), (True, claim.adding)):
        alike = Counter((t.root, t.weight, height_of(claim, t, adds=adds)) for t in trees)
        for (root, weight, height), count in alike.items():
            kind = "adds up" if adds else "copies"
            rows.append([str(root), kind, str(count), str(weight), str(height)])
    title = "trees" + (" of one root of each kind" if claim.symmetries else "")
    return table(title, [">root", "", ">trees", ">weight", ">height"], rows)


# The verdict on a forest file.


def forest_lines(report: ForestReport, fabric: str | None = None) -> Iterator[str]:
    """What is wrong; then the verdict."""
    claim = report.claim
    yield from map(printable, report.faults)
    verdict = "valid" if report.valid else "invalid"
    yield printable(f"{verdict}: {claim_words(claim)}")
    if not report.valid:
        return
    yield printable(f"bound by {_cut(claim)}")
    held = "" if fabric is None else f", the network is that of {_left(claim, fabric)}"
    yield printable(f"checked: symmetries, trees, loads, bound{held}")
    if fabric is None:
        yield printable(
            f"not checked: that the network is {_left(claim, claim.network.name)} (add --fabric)"
        )


def claim_words(claim: ForestClaim) -> str:
    """What a forest file says, in a sentence."""
    trees = len(claim.copying) + len(claim.adding)
    proof = (
        "and none is faster" if claim.optimal else f"none below {time_words(claim, claim.bound)}"
    )
    return (
        f"{_subject(claim)}: {counted(trees, 'tree')} {'takes' if trees == 1 else 'take'} "
        f"{time_words(claim, claim.time)}, {proof}"
    )


def forest_data(report: ForestReport, fabric: str | None = None) -> VerifyForestOutput:
    """The verdict as data."""
    claim = report.claim
    return VerifyForestOutput(
        verdict="valid" if report.valid else "invalid",
        violations=report.faults,
        claim=claim_words(claim),
        collective=claim.collective,
        root=claim.root,
        fabric=claim.network.name,
        ranks=claim.network.ranks,
        time=str(claim.time),
        bound=str(claim.bound),
        optimal=claim.optimal,
        trees=len(claim.copying) + len(claim.adding),
        symmetries=len(claim.symmetries),
        compared=fabric,
    )
