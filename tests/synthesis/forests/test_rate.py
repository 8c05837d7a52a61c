"""Rates of forests: known ones as fractions, and all cuts of small random fabrics."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from p2smt import result
from p2smt.cluster.file import load_topology
from p2smt.fabric.fabric import Capacity, Fabric, FabricEdge
from p2smt.interop.fabrics import read_fabric
from p2smt.problems.packing import PackingProblem, PackingShares
from p2smt.result import Result, SearchLimits
from p2smt.schedules.verify.report import Verdict
from p2smt.solvers.ask import ask_packing
from p2smt.synthesis.certificate.certificate import BoundedCollective
from p2smt.synthesis.forests import packing
from p2smt.synthesis.forests.network import ForestGround, failures_of, ground_of_fabric
from p2smt.synthesis.forests.network import ground_of_levels as ground_of_topology
from p2smt.synthesis.forests.pieces import in_pieces
from p2smt.synthesis.forests.throughput import Throughput, throughput
from tests.cli.tools import RACKS
from tests.refusals import refusal
from tests.synthesis.forests.adding_up import assert_spans, greatest_load
from tests.synthesis.late import Clock

OWN = BoundedCollective


def forest(
    fabric: str, collective: BoundedCollective = OWN.ALL_GATHER, without: str = ""
) -> Throughput:
    """The forest of a named fabric."""
    return grown(ground(fabric, collective, without), collective)


def ground(
    fabric: str, collective: BoundedCollective = OWN.ALL_GATHER, without: str = ""
) -> ForestGround:
    """Its ground, with the first rank as the root where there is one."""
    failed = failures_of([without] if without else [])
    return ground_of_fabric(read_fabric(fabric), 0 if collective.rooted else None, failed)


def grown(where: ForestGround, collective: BoundedCollective) -> Throughput:
    """The forest, which adds up."""
    found = throughput(where, collective, SearchLimits())
    assert found is not None
    assert_spans(found.claim)
    assert greatest_load(found.claim) <= found.claim.time
    return found


@pytest.mark.parametrize(
    ("fabric", "without", "time"),
    [
        ("dgx-a100", "", "7/300"),
        ("dgx-a100:2", "", "3/65"),
        ("dgx-a100:3", "", "2/25"),
        ("dgx-a100:4", "", "3/25"),
        ("dgx2", "", "1/10"),
        ("mi250", "", "7/150"),
        ("mi250:2", "", "15/166"),
        ("torus:4x4", "", "15/4"),
        ("torus:8x8", "", "63/4"),
        ("mi250", "link 0-4, link 13-15", "7/100"),
        ("torus:4x4", "link 0-1, link 5-6, link 10-14", "5"),
        ("dgx-a100:2", "card 0, card 1", "4/75"),
    ],
)
def test_known_rates(fabric: str, without: str, time: str) -> None:
    """Seconds a GB, or rounds a chunk."""
    found = forest(fabric, without=without)
    unit = 10**9 if found.claim.network.measured else 1
    assert found.claim.time * unit == Fraction(time)
    assert found.claim.optimal


@pytest.mark.parametrize("collective", [OWN.REDUCE_SCATTER, OWN.ALL_REDUCE])
@pytest.mark.parametrize("fabric", ["dgx-a100:2", "dgx-a100:4", "torus:4x4", "dgx1", "mi250"])
def test_sums_take_as_long_and_both_take_twice_as_long(
    fabric: str, collective: BoundedCollective
) -> None:
    found, gathered = forest(fabric, collective), forest(fabric)
    assert found.claim.optimal
    assert found.claim.time == gathered.claim.time * (2 if collective is OWN.ALL_REDUCE else 1)


@pytest.mark.parametrize(
    ("fabric", "without", "time"),
    [("dgx1", "link 0-4", "28/275"), ("torus:4x4", "link 0-1", "240/31")],
)
def test_an_all_reduce_whose_roots_are_not_alike(fabric: str, without: str, time: str) -> None:
    found = forest(fabric, OWN.ALL_REDUCE, without)
    unit = 10**9 if found.claim.network.measured else 1
    assert found.claim.time * unit == found.claim.bound * unit == Fraction(time)
    assert found.claim.time < 2 * forest(fabric, without=without).claim.time


def test_an_all_reduce_whose_bound_is_open_tells_its_gap() -> None:
    """Roots need not be alike: that without a card has less, and others more."""
    found = forest("dgx-a100:2", OWN.ALL_REDUCE, "card 3")
    assert found.claim.time < 2 * forest("dgx-a100:2", without="card 3").claim.time
    assert not found.claim.optimal
    assert 0 < found.gap < Fraction(1, 10)


@pytest.mark.parametrize("asked", [1, 2, 3])
def test_time_that_ends_as_trees_are_added_leaves_a_forest(
    asked: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last trees have no weights then."""
    clock, told = Clock(), list[int]()

    def ask(problem: PackingProblem, limits: SearchLimits) -> Result[PackingShares]:
        found = ask_packing(problem, limits)
        told.append(len(problem.columns))
        if len(told) == asked:
            clock.now += limits.time_limit_s or 0.0
        return found

    monkeypatch.setattr(f"{result.__name__}.time", clock)
    monkeypatch.setattr(packing, "ask_packing", ask)
    found = throughput(ground("mi250"), OWN.ALL_REDUCE, SearchLimits(3600.0))
    assert len(told) == asked
    assert found is not None
    assert_spans(found.claim)
    assert greatest_load(found.claim) <= found.claim.time
    assert found.claim.bound <= found.claim.time


def test_the_bound_of_all_reduce_is_that_of_any_number_of_steps() -> None:
    found = forest("dgx-a100:2", OWN.ALL_REDUCE)
    assert found.claim.time * 25 * 10**9 / 16 == Fraction(15, 104)


LEVELS = """
name: two-level
levels:
  - {name: leaf, size: LEAVES,
     link: {kind: switch, fabric: infiniband, bandwidth: UPLINK, latency: 5 us}}
  - {name: node, size: HOSTS,
     link: {kind: switch, fabric: infiniband, ports: 8, bandwidth: 50 GB/s, latency: 5 us}}
  - {name: gpu, size: 8, link: {kind: switch, fabric: nvlink4, bandwidth: 450 GB/s, latency: 1 us}}
"""


def hierarchy(
    folder: Path, leaves: int, hosts: int, uplink: str, without: str = ""
) -> ForestGround:
    """Leaves of hosts of 8 devices, with so much bandwidth up from a leaf."""
    text = LEVELS.replace("LEAVES", str(leaves)).replace("HOSTS", str(hosts))
    path = folder / "levels.yaml"
    path.write_text(text.replace("UPLINK", uplink))
    failed = failures_of([without] if without else [])
    return ground_of_topology(load_topology(str(path)), None, failed)


@pytest.mark.parametrize(
    ("leaves", "hosts", "uplink", "without", "rate"),
    [
        (4, 4, "1600 GB/s", "", "1280/3"),
        (4, 4, "400 GB/s", "", "1280/3"),
        (4, 4, "100 GB/s", "", "400/3"),
        (4, 4, "1600 GB/s", "card 17", "1120/3"),
        (2, 2, "800 GB/s", "card 0", "14400/31"),
    ],
)
def test_two_levels(
    tmp_path: Path, leaves: int, hosts: int, uplink: str, without: str, rate: str
) -> None:
    found = grown(hierarchy(tmp_path, leaves, hosts, uplink, without), OWN.ALL_GATHER)
    assert found.claim.optimal
    assert found.rate == Fraction(rate) * 10**9


def test_hosts_that_do_not_fill_the_levels(tmp_path: Path) -> None:
    """Six ranks in a rack, four in another: over its 5 GB/s all that the six have must come."""
    path = tmp_path / "racks.yaml"
    path.write_text(RACKS)
    where = ground_of_topology(load_topology(str(path)), None, ())
    found = grown(where, OWN.ALL_GATHER)
    assert where.network.ranks == 10
    assert found.claim.optimal
    assert found.rate == Fraction(10 * 5, 6) * 10**9
    made = in_pieces(where, found, 2, SearchLimits())
    assert made is not None
    assert made.report.verdict is Verdict.VALID
    alone = refusal(ground_of_topology, load_topology(str(path)), None, failures_of(["card 1"]))
    assert "ranks 2, 3 of racks" in alone


@pytest.mark.exhaustive
def test_a_thousand_devices_of_which_one_lacks_its_card(tmp_path: Path) -> None:
    found = grown(hierarchy(tmp_path, 8, 16, "800 GB/s", "card 3"), OWN.ALL_GATHER)
    assert found.claim.optimal
    assert found.claim.time * 10**9 == Fraction(1016, 350)


def test_levels_and_their_fabric_have_one_rate() -> None:
    for name in ("azure-ndv4:2", "aws-p3dn:2", "gcp-a2-highgpu-16g:2", "aws-p4d:2"):
        by_level = grown(ground_of_topology(load_topology(name), None, ()), OWN.ALL_GATHER)
        assert by_level.claim.time == forest(name).claim.time, name


# All cuts of small fabrics.


@st.composite
def linked(draw: st.DrawFn) -> Fabric:
    """Four to eight ranks, links of different bandwidth; a ring holds them together."""
    ranks = draw(st.integers(4, 8))
    pairs = {(r, (r + 1) % ranks) for r in range(ranks)}
    every = [(a, b) for a in range(ranks) for b in range(ranks) if a != b]
    pairs |= set(draw(st.lists(st.sampled_from(every), max_size=12)))
    rates = [draw(st.integers(1, 4)) for _ in pairs]
    links = sorted(pairs)
    return Fabric(
        "random",
        ranks,
        tuple(Capacity(f"{a}->{b}", Fraction(r)) for (a, b), r in zip(links, rates, strict=True)),
        tuple(FabricEdge(a, b, (k,)) for k, (a, b) in enumerate(links)),
    )


def slowest(fabric: Fabric, roots: set[int]) -> Fraction:
    """The greatest time of any cut."""
    found = Fraction(0)
    for size in range(1, fabric.ranks):
        for inside in combinations(range(fabric.ranks), size):
            room = sum(
                (
                    fabric.capacities[e.loads[0]].bandwidth
                    for e in fabric.edges
                    if e.source in inside and e.target not in inside
                ),
                Fraction(0),
            )
            found = max(found, len(roots & set(inside)) / room)
    return found


@settings(max_examples=40, deadline=None)
@given(linked())
def test_no_cut_is_narrower(fabric: Fabric) -> None:
    gathered = grown(ground_of_fabric(fabric, None, ()), OWN.ALL_GATHER)
    assert gathered.claim.time == slowest(fabric, set(range(fabric.ranks)))
    sent = grown(ground_of_fabric(fabric, 2, ()), OWN.BROADCAST)
    assert sent.claim.time == slowest(fabric, {2})
    added = grown(ground_of_fabric(fabric, 2, ()), OWN.REDUCE)
    assert added.claim.time == slowest(fabric.reversed(), {2})


@settings(max_examples=10, deadline=None)
@given(linked())
def test_symmetries_change_no_rate(fabric: Fabric) -> None:
    doubled = Fabric(
        "twice",
        2 * fabric.ranks,
        (
            *(c for c in fabric.capacities for _ in range(2)),
            Capacity("there", Fraction(3)),
            Capacity("back", Fraction(3)),
        ),
        tuple(
            sorted(
                [
                    FabricEdge(
                        e.source + half * fabric.ranks,
                        e.target + half * fabric.ranks,
                        (2 * k + half,),
                    )
                    for k, e in enumerate(fabric.edges)
                    for half in range(2)
                ]
                + [
                    FabricEdge(0, fabric.ranks, (2 * len(fabric.capacities),)),
                    FabricEdge(fabric.ranks, 0, (2 * len(fabric.capacities) + 1,)),
                ]
            )
        ),
    )
    where = ground_of_fabric(doubled, None, ())
    assert where.symmetries
    found = grown(where, OWN.ALL_GATHER)
    plain = grown(ForestGround(where.network, (), None), OWN.ALL_GATHER)
    assert found.claim.time == plain.claim.time == found.claim.bound


# What is refused.


@pytest.mark.parametrize(
    ("fabric", "without", "words"),
    [
        ("ring:4", "link 0-1, link 2-3", ("ranks 1, 2 of ring:4", "cut off")),
        ("ring:4", "link 0-2", ("link 0-2", "is not there", "link 0-1")),
        ("ring:4", "card 1", ("card 1", "has no cards")),
        ("ring:4", "rank 1", ("rank 1", "must be a link or a card")),
        ("mi250:2", "card 32", ("card 32", "has 32 cards")),
    ],
)
def test_failures_that_are_refused(fabric: str, without: str, words: tuple[str, ...]) -> None:
    text = refusal(lambda: ground(fabric, without=without))
    for word in words:
        assert word in text
