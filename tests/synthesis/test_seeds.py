"""What is known before any search: right by the replay, and no better than the bounds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from math import ceil

import pytest

import p2smt
from p2smt.collectives.contract import RULES
from p2smt.fabric.fabric import Fabric
from p2smt.fabric.fabric_file import fabric_names, load_fabric
from p2smt.fabric.wiring import NetworkPort, Switch, WiredNodes, fabric_of
from p2smt.problems.schedule import SumSchedule
from p2smt.result import SearchLimits, StopWatch
from p2smt.schedules.classics import CLASSICS
from p2smt.schedules.language.schedule_text import dump_schedule
from p2smt.solvers.ask import Solver
from p2smt.synthesis.best_rate import PointEffort, RateQuestion, best_rate
from p2smt.synthesis.classics_in_steps import classics_in_steps, in_steps
from p2smt.synthesis.frontier import ScheduleFrontier
from p2smt.synthesis.group_order import ladder, level_shifts
from p2smt.synthesis.schedule_replay import broken_sum_rule, sum_demands
from p2smt.synthesis.seeds import (
    Gather,
    Seed,
    Solve,
    add_seeds,
    earliest,
    part_of,
    product_of,
    staggered,
)
from p2smt.synthesis.setting import (
    ScheduleSize,
    SynthesisSetting,
    SynthesisState,
    broken_synthesis,
    fewest_steps,
    least_rate,
    too_many_messages,
)
from tests.tiers import but_the_first

AT_LEISURE = 10**6
"""Rounds of a step in which everything goes."""


def two_nodes(ranks: int = 2) -> Fabric:
    """Two nodes of a switch, with a card for each rank."""
    every = tuple(range(ranks))
    cards = tuple(NetworkPort((rank,), Fraction(1)) for rank in every)
    switch = Switch("switch", every, Fraction(3))
    return fabric_of(WiredNodes("pairs", ranks, (), (switch,), cards, 2, measured=False))


def leisurely(sums: SumSchedule) -> SumSchedule:
    """With rounds in which everything goes."""
    return replace(sums, steps=tuple(replace(step, rounds=AT_LEISURE) for step in sums.steps))


def broken(setting: SynthesisSetting, chunks: int, sums: SumSchedule) -> str | None:
    demands = sum_demands(setting.collective, setting.fabric.ranks, chunks, setting.root)
    return broken_sum_rule(leisurely(sums), setting.edges, setting.fabric.bandwidths, demands)


def examples() -> Iterator[tuple[str, int]]:
    for name, one in CLASSICS.items():
        for at in range(len(one.examples)):
            yield name, at


@pytest.mark.parametrize(("name", "at"), [*examples()])
def test_every_classic_in_steps_is_right_where_all_ranks_are_linked(name: str, at: int) -> None:
    ranks, given = CLASSICS[name].examples[at]
    root = int(str(given.get("root", 0)))
    collective = CLASSICS[name].collective
    setting = SynthesisSetting(load_fabric(f"mesh:{ranks}"), collective, root)
    chunks, sums = in_steps(setting, CLASSICS[name].function(ranks, **given))
    assert broken(setting, chunks, sums) is None


@pytest.mark.parametrize(
    ("name", "steps"),
    [
        ("one-shot-all-reduce", 1),
        ("two-shot-all-reduce", 2),
        ("recursive-doubling-all-reduce", 3),
        ("halving-doubling-all-reduce", 6),
        ("ring-all-reduce", 14),
        ("bruck-all-gather", 3),
        ("pairwise-all-to-all", 1),
    ],
)
def test_classics_have_the_steps_that_they_are_known_for(name: str, steps: int) -> None:
    setting = SynthesisSetting(load_fabric("mesh:8"), CLASSICS[name].collective)
    _, sums = in_steps(setting, CLASSICS[name].function(8))
    assert len(sums.steps) == steps


def test_a_classic_without_its_links_is_left_out() -> None:
    """On a ring of five nothing goes but the rings."""
    setting = SynthesisSetting(load_fabric("ring:5"), "allreduce")
    assert {name.split()[0] for name, _, _ in classics_in_steps(setting)} == {"ring-all-reduce"}


@pytest.mark.parametrize("collective", ["allgather", "allreduce", "alltoall", "reduce_scatter"])
def test_copies_that_begin_later_are_right(collective: str) -> None:
    setting = SynthesisSetting(load_fabric("ring:4"), collective)
    found = p2smt.synthesize("ring:4", collective, steps=3, rounds=6, chunks=2)
    assert found.sums is not None
    copies = staggered(found.sums, 2, [0, 0, 1, 3])
    assert len(copies.steps) == 6
    assert broken(setting, 8, copies) is None


def direct(ranks: int, fabric: Fabric) -> Gather:
    number = {(e.source, e.target): n for n, e in enumerate(fabric.edges)}
    pairs = ((a, b) for a in range(ranks) for b in range(ranks) if a != b)
    return Gather(1, (tuple((a, number[a, b]) for a, b in pairs),), "direct")


@pytest.mark.parametrize("early", [False, True])
def test_rails_then_nodes_gather_everything(early: bool) -> None:
    fabric = two_nodes(3)
    rail, node = part_of(fabric, range(0, 6, 3)), part_of(fabric, range(3))
    assert rail is not None
    assert node is not None
    made = product_of(fabric, (rail, direct(2, rail)), (node, direct(3, node)))
    assert made is not None
    made = earliest(fabric, made) if early else made
    assert [len(step) for step in made.steps] == ([6 + 12, 12] if early else [6, 24])
    held = {(rank, rank) for rank in range(6)}
    for step in made.steps:
        ends = [(chunk, fabric.edges[e]) for chunk, e in step]
        assert {(chunk, edge.source) for chunk, edge in ends} <= held
        held |= {(chunk, edge.target) for chunk, edge in ends}
    assert len(held) == 36


def seeds_of(
    setting: SynthesisSetting,
    most_steps: int,
    most_chunks: int,
    solve: Solve = lambda *_: (),
    watch: StopWatch | None = None,
) -> dict[int, Seed]:
    """All that is known, if no all-gathers are searched for."""
    known = dict[int, Seed]()
    watch = watch or StopWatch.start(SearchLimits())
    add_seeds(known, setting, most_steps, most_chunks, solve, watch)
    return known


@pytest.mark.parametrize("name", ["ring:4", "mesh:4", "torus:2x3", "pairs"])
@pytest.mark.parametrize(
    "collective", [n for n in RULES if n not in ("sendrecv", "gather", "scatter")]
)
def test_seeds_are_right_and_not_below_the_bound(name: str, collective: str) -> None:
    fabric = two_nodes() if name == "pairs" else load_fabric(name)
    setting, watch = SynthesisSetting(fabric, collective), StopWatch.start(SearchLimits())
    seeds = seeds_of(setting, 6, 24 * fabric.ranks)
    rates = [seed.size.rate for _, seed in sorted(seeds.items())]
    assert rates == sorted(set(rates), reverse=True)
    for steps, seed in seeds.items():
        assert seed.size.steps == steps
        assert broken_synthesis(setting, seed.size, seed.sums) is None
        bound = least_rate(setting, steps, watch, watch)
        assert bound is not None
        assert seed.size.rate >= bound.value


def test_without_time_one_seed_is_made_in_any_case() -> None:
    def nobody(*_asked: object) -> Sequence[Seed]:
        raise AssertionError

    setting = SynthesisSetting(load_fabric("mesh:4"), "allreduce")
    late = StopWatch.start(SearchLimits(0.0))
    assert len(seeds_of(setting, 4, 24, nobody, late)) == 1
    assert len(seeds_of(setting, 4, 24)) > 1


def test_a_stop_keeps_what_was_made() -> None:
    """Classics are, when a search of all-gathers is stopped; what is put together is not."""

    def stopped(*_: object) -> Sequence[Seed]:
        raise KeyboardInterrupt

    setting, known = SynthesisSetting(load_fabric("cube:3"), "allreduce"), dict[int, Seed]()
    with pytest.raises(KeyboardInterrupt):
        add_seeds(known, setting, 6, 192, stopped, StopWatch.start(SearchLimits()))
    assert known
    assert known.items() <= seeds_of(setting, 6, 192).items()


@pytest.mark.parametrize(("ranks", "many"), [(387, False), (388, True)])
def test_all_pairs_of_ranks_send_something_in_an_all_gather(ranks: int, many: bool) -> None:
    fabric = load_fabric(f"ring:{ranks}")
    assert too_many_messages(SynthesisSetting(fabric, "allgather")) == many
    assert not too_many_messages(SynthesisSetting(fabric, "broadcast"))


def test_no_schedule_is_sought_of_too_many_messages() -> None:
    def nothing(state: SynthesisState) -> None:
        raise AssertionError(state)

    setting = SynthesisSetting(load_fabric("ring:400"), "reduce_scatter")
    question = RateQuestion(setting, 24, Solver.CPSAT, nothing)
    watch = StopWatch.start(SearchLimits())
    least = fewest_steps(setting)
    assert best_rate(question, int(least.value), least, None, watch) is None


def test_pipelines_share_the_links_of_other_phases() -> None:
    """Two nodes of two: the all-reduce in three phases gains by pieces."""
    seeds = seeds_of(SynthesisSetting(two_nodes(), "allreduce"), 8, 96)
    assert any("pipelined" in seed.origin for seed in seeds.values())


# The frontier is never above what is known without it.


DIRECT = {
    ("ring:4", "all-reduce"): [(2, 2, 2), (3, 3, 4)],
    ("ring:5", "all-reduce"): [(2, 2, 1)],
    ("mesh:4", "all-reduce"): [(2, 2, 4)],
    ("pairs", "all-reduce"): [(1, 2, 1), (2, 4, 4), (3, 3, 4)],
    ("dgx1", "all-gather"): [(2, 3, 2), (3, 7, 6)],
    ("dgx1", "all-reduce"): [(2, 2, 2), (3, 3, 6), (4, 4, 12), (6, 7, 24)],
    ("dgx-a100:2", "all-reduce"): [(1, 8, 1), (2, 16, 16), (3, 10, 16), (4, 4, 16)],
    ("dgx-h100:2", "all-reduce"): [(1, 8, 1), (2, 16, 16), (3, 10, 16), (4, 4, 16), (6, 6, 32)],
    ("dgx2", "all-reduce"): [(2, 30, 16)],
    ("torus:2x4", "all-reduce"): [(3, 12, 12), (3, 26, 24), (4, 4, 6)],
}
"""Sizes that a question with just these numbers finds; no search reads them."""
MOST_STEPS = {("dgx-h100:2", "all-reduce"): 6}
"""Where a question finds a schedule of more steps than a frontier looks at by itself."""


def never_loses(name: str, collective: str, found: ScheduleFrontier) -> None:
    best = {point.steps: point.best for point in found.points}
    rates = [rate for rate in best.values() if rate is not None]
    assert rates == sorted(rates, reverse=True)
    asked = [ScheduleSize(*size) for size in DIRECT.get((name, collective), [])]
    for _, chunks, sums in classics_in_steps(found.setting):
        asked.append(ScheduleSize(len(sums.steps), rounds_of(found.setting.fabric, sums), chunks))
    for size in asked:
        known = [rate for steps, rate in best.items() if steps <= size.steps]
        if size.steps in best or (rates and size.steps > max(best)):
            assert known[-1] is not None
            assert known[-1] <= size.rate


def rounds_of(fabric: Fabric, sums: SumSchedule) -> int:
    """The rounds that the fullest capacity of each step needs, counted one by one."""
    total = 0
    for step in sums.steps:
        need = [Fraction(0)] * len(fabric.capacities)
        for send in step.sends:
            for k in fabric.edges[send.edge].loads:
                need[k] += 1 / fabric.capacities[k].bandwidth
        total += max(1, max(-(-one.numerator // one.denominator) for one in need))
    return total


@pytest.mark.parametrize(
    ("name", "collective"),
    [
        ("ring:4", "all-reduce"),
        ("pairs", "all-reduce"),
        ("pairs", "all-gather"),
        ("mesh:4", "all-to-all"),
        ("ring:4", "broadcast"),
    ],
)
def test_a_frontier_is_never_above_what_is_known(name: str, collective: str) -> None:
    """Of schedules of fewer steps, classics and questions; and the same again byte for byte."""
    fabric = two_nodes() if name == "pairs" else load_fabric(name)
    found, again = (p2smt.synthesize_frontier(fabric, collective, max_steps=3) for _ in range(2))
    never_loses(name, collective, found)
    assert [written(found), written(again)] == [written(found)] * 2


@pytest.mark.parametrize(("ranks", "steps"), [(4, 2), (5, 3)])
def test_with_time_a_point_is_sought_as_without_and_then_further(ranks: int, steps: int) -> None:
    """Sizes, groups and classes in the same order, and the same found among them."""
    setting = SynthesisSetting(load_fabric(f"ring:{ranks}"), "allreduce")
    free = StopWatch.start(SearchLimits())
    bound = least_rate(setting, steps, free, free)
    assert bound is not None

    def asked(watch: StopWatch, most: int | None) -> tuple[list[SynthesisState], Fraction | None]:
        told: list[SynthesisState] = []

        def tell(state: SynthesisState) -> None:
            if len(told) == most:
                raise KeyboardInterrupt
            told.append(state)

        effort = PointEffort(0, 0, 1, 1)
        question = RateQuestion(setting, 24 * ranks, Solver.CPSAT, tell, effort=effort)
        found = best_rate(question, steps, bound, None, watch)
        return told, None if found is None or found.sums is None else found.rate

    without = asked(free, None)
    assert len(without[0]) > 10
    assert asked(StopWatch.start(SearchLimits(3600)), len(without[0])) == without


@pytest.mark.parametrize(("name", "steps"), [("ring:4", 2), ("ring:5", 3)])
def test_a_number_of_chunks_begins_just_below_the_best_rate_and_halves(
    name: str, steps: int
) -> None:
    """As long as that finds schedules; then the next number of chunks has its turn."""
    setting = SynthesisSetting(load_fabric(name), "allreduce")
    free, told = StopWatch.start(SearchLimits()), list[SynthesisState]()
    bound = least_rate(setting, steps, free, free)
    assert bound is not None
    effort = PointEffort(0, 0, 8, 0)
    question = RateQuestion(setting, 100, Solver.CPSAT, told.append, effort=effort)
    best_rate(question, steps, bound, Fraction(10), free)
    asked = list(dict.fromkeys((state.size, state.best) for state in told))
    assert len(asked) > 5
    begun = set[int]()
    for size, best in asked:
        assert best is not None
        most = ceil(best * size.chunks) - 1
        least = max(steps, ceil(bound.value * size.chunks))
        assert size.rounds == ((least + most + 1) // 2 if size.chunks in begun else most)
        begun.add(size.chunks)


def written(found: ScheduleFrontier) -> list[str]:
    """All that a frontier says, but for the seconds that it took."""
    points = [f"{point.steps} {point.bound.value} {point.best}" for point in found.points]
    made = [dump_schedule(one.schedule) for one in found.schedules if one.schedule is not None]
    assert len(made) == len(found.schedules)
    return [*points, *made, found.ending.value]


@pytest.mark.exhaustive
def test_a_size_in_vain_leaves_effort_for_the_others() -> None:
    """Over a torus of eight the first numbers of chunks have no schedule near the bound."""
    never_loses(
        *("torus:2x4", "all-reduce"),
        p2smt.synthesize_frontier("torus:2x4", "all-reduce", max_steps=4),
    )


@pytest.mark.evidence
@pytest.mark.parametrize("collective", ["all-gather", "all-reduce"])
@pytest.mark.parametrize("nodes", ["", ":2"])
@pytest.mark.parametrize("fabric", fabric_names())
def test_a_frontier_over_one_and_two_nodes_is_never_above_what_is_known(
    fabric: str, nodes: str, collective: str
) -> None:
    name = fabric + nodes
    steps = MOST_STEPS.get((name, collective))
    found, again = (p2smt.synthesize_frontier(name, collective, max_steps=steps) for _ in range(2))
    never_loses(name, collective, found)
    assert written(found) == written(again)


@pytest.mark.parametrize("name", but_the_first("dgx-h100:6", "dgx-h100:8"))
def test_shifts_of_nodes_and_of_their_ranks_are_found(name: str) -> None:
    """The shifts of nodes and of GPUs; and with digits that are primes."""
    (nodes, gpus), primes = level_shifts(load_fabric(name), 1024)
    assert nodes.ranks[0] == 8
    assert gpus.ranks[:8] == (1, 2, 3, 4, 5, 6, 7, 0)
    assert len(primes) > 2


@pytest.mark.exhaustive
def test_all_reduces_over_six_nodes_have_groups_as_large_as_the_ranks() -> None:
    """And more of each order; the group of all symmetries is too large to list."""
    fabric = load_fabric("dgx-h100:6")
    orders = [group.order for group, _ in ladder(fabric, "allreduce", fabric.ranks)]
    assert orders.count(fabric.ranks) > 1
    assert orders[0] == 2 * fabric.ranks


@pytest.mark.exhaustive
def test_an_all_reduce_of_128_ranks_is_made_without_a_search() -> None:
    """Within a fifth of what no number of steps is below, 15/64."""
    setting = SynthesisSetting(load_fabric("dgx-h100:16"), "allreduce")
    seed = seeds_of(setting, 7, 24 * 128)[7]
    assert seed.size.rate == Fraction(9, 32)
    assert broken_synthesis(setting, seed.size, seed.sums) is None
