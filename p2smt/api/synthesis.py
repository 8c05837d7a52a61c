"""The public functions on schedules over fabrics: one question, frontier, payloads, forests."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction

from p2smt.cluster.file import load_topology
from p2smt.cluster.topology import Topology, check_even
from p2smt.errors import InputError
from p2smt.fabric.fabric import Fabric
from p2smt.fabric.fabric_file import fabric_of_levels
from p2smt.interop.fabrics import read_fabric
from p2smt.parallel_search.parallel_options import Spread
from p2smt.result import SearchLimits, StopWatch
from p2smt.schedules.cost.against import step_s
from p2smt.solvers.ask import Solver, solver_of
from p2smt.synthesis import frontier as search_frontier
from p2smt.synthesis import synthesize as search_one
from p2smt.synthesis.best_rate import RateQuestion
from p2smt.synthesis.by_size import RoundPrices, SizedSchedules, SizeSearch
from p2smt.synthesis.forests.network import (
    ForestGround,
    failures_of,
    ground_of_fabric,
    ground_of_levels,
)
from p2smt.synthesis.forests.pieces import PieceSchedule, in_pieces
from p2smt.synthesis.forests.throughput import Throughput, forest_collective, throughput
from p2smt.synthesis.frontier import ScheduleFrontier, most_chunks_of, steps_of
from p2smt.synthesis.setting import (
    ScheduleSize,
    Synthesis,
    SynthesisSetting,
    Tell,
    synthesized_collective,
    tell_nobody,
)


def synthesize(
    fabric: Fabric | str,
    collective: str,
    *,
    steps: int,
    rounds: int,
    chunks: int,
    root: int = 0,
    symmetry: bool = True,
    messages: int = 1,
    limits: SearchLimits | None = None,
    solver: Solver | str = Solver.CPSAT,
    progress: Tell = tell_nobody,
    spread: Spread | None = None,
) -> Synthesis:
    """A schedule of so many steps, rounds and chunks, or a proof that there is none.

    Args:
        fabric: ranks, edges and capacities; or the name of one, such as ``dgx1``.
        collective: such as ``all-gather``.
        steps: one after the other; what a rank sends it held before the step.
        rounds: of all steps together; in a round a capacity of bandwidth b carries b chunks.
        chunks: per rank (all-gather, reduce-scatter), per pair (all-to-all, scatter, gather) or in
            all (all-reduce, broadcast, reduce).
        root: of the collectives that have one.
        symmetry: try schedules with symmetries first.
        messages: of an all-reduce, of a chunk over an edge in a step, at most.
        limits: wall-clock limit (of the making of the fabric too), seed, workers.
        solver: ``cpsat`` or ``z3``.
        progress: told what is tried.
        spread: search part by part, in several processes or with a journal, which goes with
            ``symmetry=False``; None: in one piece.

    Raises:
        InputError: what is asked cannot be.

    On KeyboardInterrupt what is known by then is returned, ``interrupted`` set.
    """
    watch = StopWatch.start(limits or SearchLimits())
    setting = _setting(fabric, collective, root, symmetry, messages)
    size = ScheduleSize(steps, rounds, chunks)
    return search_one.synthesize(setting, size, watch.left(), _solver(solver), progress, spread)


def synthesize_frontier(
    fabric: Fabric | str,
    collective: str,
    *,
    max_steps: int | None = None,
    max_chunks: int | None = None,
    root: int = 0,
    symmetry: bool = True,
    messages: int = 1,
    limits: SearchLimits | None = None,
    solver: Solver | str = Solver.CPSAT,
    progress: Tell = tell_nobody,
) -> ScheduleFrontier:
    """For every number of steps the fewest rounds a chunk that were found, with proof or gap.

    Stopped (KeyboardInterrupt) or out of time it has of more steps only what needs no search.

    Args:
        max_steps: the most steps; None: 4 more than the fewest.
        max_chunks: as the collective counts them; None: 24 a rank, a pair, or from the root.

    The others are as for :func:`synthesize`.

    Raises:
        InputError: what is asked cannot be.
    """
    watch = StopWatch.start(limits or SearchLimits())
    setting = _setting(fabric, collective, root, symmetry, messages)
    return search_frontier.frontier(
        setting, max_steps, max_chunks, watch.left(), _solver(solver), progress
    )


def synthesize_by_size(
    topology: Topology | str,
    collective: str,
    low: int,
    high: int | None = None,
    *,
    fabric: Fabric | str | None = None,
    max_steps: int | None = None,
    max_chunks: int | None = None,
    root: int = 0,
    symmetry: bool = True,
    messages: int = 1,
    limits: SearchLimits | None = None,
    solver: Solver | str = Solver.CPSAT,
    progress: Tell = tell_nobody,
) -> SizedSchedules:
    """The best schedules of payloads, and how far from the least time of the model they are.

    ``pieces`` of the answer says which schedule is for which payloads, ``certificate`` has what is
    proved: a schedule of S steps, R rounds and C chunks takes alpha S + beta n R/C for n bytes.

    Args:
        topology: whose latency is alpha; or the name of one, such as ``dgx-a100:2``.
        low: bytes of the whole vector per device, the least ..
        high: .. and the most; None: that one payload.
        fabric: None: the topology's own.

    The others are as for :func:`synthesize_frontier`.

    Raises:
        InputError: what is asked cannot be, or fabric and topology do not fit.
    """
    watch = StopWatch.start(limits or SearchLimits())
    levels = load_topology(topology) if isinstance(topology, str) else topology
    if fabric is None:
        fabric = topology if isinstance(topology, str) else fabric_of_levels(topology)
    setting = _setting(fabric, collective, root, symmetry, messages)
    ends, most = (low, low if high is None else high), (max_steps, max_chunks)
    return size_search(setting, levels, ends, most, _solver(solver), watch, progress).run()


def size_search(
    setting: SynthesisSetting,
    topology: Topology,
    ends: tuple[int, int],
    most: tuple[int | None, int | None],
    solver: Solver,
    watch: StopWatch,
    progress: Tell = tell_nobody,
) -> SizeSearch:
    """The search between two payloads; ``most``: steps and chunks.

    Raises:
        InputError: fabric and topology do not fit, one has no prices, or too few are allowed.
    """
    check_even(topology)
    if setting.fabric.ranks != topology.devices:
        given = f"fabric {setting.fabric.name[:60]} of {setting.fabric.ranks} ranks"
        rule = f"is not on {topology.name[:60]}, which has {topology.devices} devices"
        raise InputError(given, rule, "give both as many")
    if not 1 <= ends[0] <= ends[1]:
        raise InputError(f"payloads {ends[0]} to {ends[1]}", "must be of a byte or more, ascending")
    chunks = most_chunks_of(setting, most[1])
    question = RateQuestion(setting, chunks, solver, progress, groups_watch=watch)
    prices = RoundPrices.of(setting, Fraction(repr(step_s(topology))))
    return SizeSearch(question, prices, *ends, steps_of(setting, most[0])[-1], watch)


def throughput_forest(
    network: Fabric | Topology | str,
    collective: str,
    *,
    root: int = 0,
    without: Iterable[str] = (),
    height: int | None = None,
    limits: SearchLimits | None = None,
) -> Throughput | None:
    """The greatest throughput of a collective that trees carry, with trees that have it.

    ``rate`` of the answer: bytes a second of the whole result (chunks a round where links have no
    rates); ``claim``: the trees with their weights and the bound, whose ``text()`` ``verify`` adds
    up.  None: the time came before a forest.

    Args:
        network: a fabric, or its name; a topology of up to 1,024 devices.
        collective: such as ``all-gather``.
        root: of a broadcast or reduce.
        without: what has failed, such as ``link 0-4`` or ``card 3``.
        height: of trees, in messages, at most; the bound is that of trees of any height.
        limits: wall-clock limit.

    Raises:
        InputError: what is asked cannot be, failures cut ranks off, or some rank is more messages
            away.
    """
    if height is not None and height < 1:
        raise InputError(f"trees of height {height}", "must be of 1 message or more")
    asked, failed = forest_collective(synthesized_collective(collective)), failures_of(without)
    at = root if asked.rooted else None
    if isinstance(network, Topology):
        ground = ground_of_levels(network, at, failed)
    else:
        fabric = read_fabric(network) if isinstance(network, str) else network
        ground = ground_of_fabric(fabric, at, failed)
    return throughput(ground, asked, limits or SearchLimits(), height)


def forest_schedule(
    found: Throughput, pieces: int, limits: SearchLimits | None = None
) -> PieceSchedule | None:
    """A forest as a schedule that was verified; ``pieces``: of each root's data.

    None: the time came before there was one.

    Raises:
        InputError: there are no pieces, or too many messages.
    """
    if pieces < 1:
        raise InputError(f"{pieces} pieces", "must be 1 or more")
    claim = found.claim
    ground = ForestGround(claim.network, claim.symmetries, claim.root)
    return in_pieces(ground, found, pieces, limits or SearchLimits())


def _setting(
    fabric: Fabric | str, collective: str, root: int, symmetry: bool, messages: int
) -> SynthesisSetting:
    found = read_fabric(fabric) if isinstance(fabric, str) else fabric
    return SynthesisSetting(found, synthesized_collective(collective), root, symmetry, messages)


def _solver(solver: Solver | str) -> Solver:
    return solver if isinstance(solver, Solver) else solver_of(solver)
