"""What libraries run: choices known from their sources' rules and from measured tables."""

from __future__ import annotations

import pickle
from dataclasses import replace

import pytest

from p2smt.cluster.library.model import Formula, LibraryRun
from p2smt.cluster.library.registry import library_of
from p2smt.cluster.topology import Algorithm
from p2smt.cost.library.channels import (
    Channels,
    GroupShape,
    nvls_channels,
    plain_tree,
    ring_channels,
    search,
)
from p2smt.cost.library.tuner import chooser, estimate, ways_of
from tests.cost.library.shapes import a100, b200, h100, mi300x

KIB, MIB, GIB = 2**10, 2**20, 2**30


def chosen(
    library: str,
    operation: str,
    shape: GroupShape,
    payload: float,
    allowed: tuple[Algorithm, ...] | None = None,
) -> str:
    found = chooser(library_of(library), operation, shape, allowed)
    way = found.ways[found.pick(payload)]
    return f"{way.algorithm.value if way.algorithm else 'p2p'} {way.protocol}"


@pytest.mark.parametrize(
    ("library", "operation", "shape", "payload", "way"),
    [
        ("nccl-2.20", "all-reduce", h100(1), 1 * KIB, "ring ll"),
        ("nccl-2.20", "all-reduce", h100(1), 64 * MIB, "nvls simple"),
        ("nccl-2.20", "all-reduce", h100(1), 8 * GIB, "nvls simple"),
        # measured tables of H200 and B200 show NVLS from 5 and from 6 GPUs on
        ("nccl-2.20", "all-reduce", h100(1, 4), 8 * GIB, "ring simple"),
        ("nccl-2.20", "all-reduce", h100(1, 5), 8 * GIB, "nvls simple"),
        ("nccl-2.20", "all-reduce", b200(1, 5), 8 * GIB, "ring simple"),
        ("nccl-2.20", "all-reduce", b200(1, 6), 8 * GIB, "nvls simple"),
        ("nccl-2.20", "all-reduce", h100(2), 64 * KIB, "tree ll"),
        ("nccl-2.20", "all-reduce", h100(2), 1 * GIB, "nvls-tree simple"),
        ("nccl-2.20", "all-reduce", h100(4), 8 * GIB, "ring simple"),
        ("nccl-2.30", "all-reduce", h100(1), 8 * GIB, "nvls simple"),
        ("nccl-2.30", "all-reduce", h100(2), 1 * GIB, "nvls-tree simple"),
        ("nccl-2.30", "all-reduce", h100(4), 8 * GIB, "ring simple"),
        # of two GPUs a node NVLS counts one channel as lost, and trees by one device are slower
        ("nccl-2.30", "all-reduce", b200(2, 2), 64 * MIB, "ring simple"),
        ("nccl-2.12", "all-reduce", h100(2), 1 * GIB, "ring simple"),
        ("nccl-2.12", "all-reduce", a100(1), 1 * GIB, "ring simple"),
        ("nccl-2.12", "all-reduce", a100(1), 1 * KIB, "ring ll"),
        ("nccl-2.12", "all-reduce", a100(4), 64 * KIB, "tree ll"),
        ("nccl-2.12", "all-reduce", a100(4), 4 * MIB, "tree ll128"),
        ("nccl-2.20", "all-reduce", a100(1), 1 * GIB, "ring simple"),
        ("nccl-2.20", "all-reduce", a100(2), 64 * KIB, "tree ll"),
        ("nccl-2.20", "reduce", h100(2), 1 * KIB, "ring ll"),
        ("nccl-2.20", "broadcast", h100(1), 8 * GIB, "ring simple"),
        ("nccl-2.30", "all-gather", h100(8, 1), 1 * MIB, "pat simple"),
        ("nccl-2.30", "all-gather", h100(8, 1), 8 * GIB, "ring simple"),
        ("nccl-2.20", "all-gather", h100(8, 1), 1 * MIB, "ring ll128"),
        # from peer to peer: LL up to 16 KiB to each, inside a node only; never before 2.14
        ("nccl-2.20", "send", h100(1), 16 * KIB, "p2p ll"),
        ("nccl-2.20", "send", h100(1), 16 * KIB + 1, "p2p simple-1"),
        ("nccl-2.30", "send", h100(1), 512 * KIB + 1, "p2p simple-4"),
        ("nccl-2.30", "send", h100(1), 2**28 + 1, "p2p simple"),
        ("nccl-2.20", "send", h100(2), 1 * KIB, "p2p simple"),
        ("nccl-2.20", "all-to-all", h100(1), 8 * 16 * KIB, "p2p ll"),
        ("nccl-2.20", "all-to-all", h100(1), 8 * 16 * KIB + 1, "p2p simple"),
        ("nccl-2.20", "all-to-all", h100(2), 16 * KIB, "p2p simple"),
        ("nccl-2.12", "send", h100(1), 1 * KIB, "p2p simple"),
        # all-pairs kernels for 8 GPUs only, up to 16 MiB
        ("rccl", "all-reduce", mi300x(1), 512 * KIB, "direct ll"),
        ("rccl", "all-reduce", mi300x(1), 16 * MIB, "direct simple"),
        ("rccl", "all-reduce", mi300x(1), 16 * MIB + 1, "ring simple"),
        ("rccl", "all-reduce", mi300x(1, 4), 64 * KIB, "ring ll"),
        ("rccl", "all-reduce", mi300x(2), 64 * KIB, "tree ll"),
        ("rccl", "all-reduce", mi300x(2), 8 * GIB, "ring simple"),
        ("gloo", "all-reduce", a100(2), 1 * KIB, "ring simple"),
        ("gloo", "broadcast", a100(2), 1 * GIB, "binomial simple"),
        ("gloo", "reduce", a100(2), 1 * GIB, "scatter-gather simple"),
        ("gloo", "send", a100(1), 1 * KIB, "p2p simple"),
    ],
)
def test_known_choices(
    library: str, operation: str, shape: GroupShape, payload: float, way: str
) -> None:
    assert chosen(library, operation, shape, payload) == way


def test_channels_are_those_that_nccl_logs() -> None:
    """Numbers and rates of channels as NCCL prints them; across nodes by its search's rules."""
    new, old = library_of("nccl-2.20").formula, library_of("nccl-2.12").formula
    newest = library_of("nccl-2.30").formula
    assert new is not None
    assert old is not None
    assert newest is not None
    assert ring_channels(new, a100(1)) == Channels(12, 20e9, 20e9)
    assert ring_channels(old, a100(1)) == Channels(12, 22e9, 22e9)
    assert ring_channels(new, a100(2)) == Channels(8, 24e9, 24e9)
    assert search(new, a100(2)).trees == Channels(8, 30e9, 24e9)
    assert ring_channels(new, h100(1)) == Channels(12, 30e9, 30e9)
    assert ring_channels(new, h100(2)) == Channels(8, 48e9, 48e9)
    assert nvls_channels(new, h100(1)) == Channels(8, 40e9, 60e9)
    assert nvls_channels(new, h100(2)) == Channels(8, 40e9, 48e9)
    assert ring_channels(newest, b200(1)) == Channels(16, 45e9, 45e9)
    assert ring_channels(newest, b200(2)) == Channels(8, 48e9, 48e9)


def formula_of(name: str) -> Formula:
    found = library_of(name).formula
    assert found is not None
    return found


NEWEST = formula_of("nccl-2.30")


def four_cards(nodes: int, local: int = 8) -> GroupShape:
    """8 H100 with 4 x 400 Gb/s."""
    cards = -(-local // 2)
    shape = replace(h100(nodes, local), node_bytes_per_s=50e9 * cards, cards=cards)
    return replace(shape, card_devices=2)


def v100(nodes: int, local: int = 16) -> GroupShape:
    """DGX-2: 6 NVLinks of 25 GB/s per GPU, 8 x 100 Gb/s."""
    cards = -(-local // 2)
    shape = replace(a100(nodes, local), inside="nvlink2", device_bytes_per_s=150e9, cards=cards)
    return replace(shape, node_bytes_per_s=12.5e9 * cards, card_devices=2, cpu="intel")


def test_rings_leave_a_node_by_its_cards() -> None:
    """Each card carries as wide a channel as it goes, which is split for few; narrower ones for
    one V100, which both receives and sends by its card; never more than the links inside carry."""
    assert ring_channels(NEWEST, h100(2, 2)) == Channels(4, 24e9, 24e9)
    assert ring_channels(NEWEST, h100(2, 5)) == Channels(5, 48e9, 48e9)
    assert ring_channels(NEWEST, four_cards(2)) == Channels(8, 24e9, 24e9)
    assert ring_channels(NEWEST, v100(2)) == Channels(8, 12e9, 12e9)
    assert ring_channels(NEWEST, v100(2, 1)) == Channels(1, 10e9, 10e9)
    narrow = replace(h100(2), device_bytes_per_s=300e9)
    assert ring_channels(NEWEST, narrow) == Channels(5, 48e9, 48e9)


def test_trees_are_wider_inside_as_far_as_links_go() -> None:
    assert search(NEWEST, a100(1, 2)).trees == Channels(12, 40e9, 40e9)
    assert search(NEWEST, a100(2, 1)).trees == Channels(1, 48e9, 24e9)
    assert search(NEWEST, a100(2, 6)).trees == Channels(6, 48e9, 24e9)
    assert search(NEWEST, v100(2)).trees == Channels(8, 15e9, 12e9)
    assert search(NEWEST, v100(2, 12)).trees == Channels(6, 20e9, 12e9)
    assert search(NEWEST, b200(2)).trees == Channels(8, 96e9, 48e9)


def test_nvls_has_a_channel_for_each_card() -> None:
    assert nvls_channels(NEWEST, b200(2)) == Channels(8, 48e9, 48e9)
    assert nvls_channels(NEWEST, four_cards(2)) == Channels(4, 48e9, 48e9)
    assert nvls_channels(NEWEST, four_cards(2, 2)).count == 1
    assert estimate(NEWEST, Algorithm.NVLS_TREE, "simple", "all-reduce", four_cards(2, 2)) is None
    assert nvls_channels(NEWEST, h100(1, 6)) == Channels(6, 50e9, 60e9)


def per_byte(shape: GroupShape, algorithm: Algorithm, protocol: str = "simple") -> float:
    found = estimate(NEWEST, algorithm, protocol, "all-reduce", shape)
    assert found is not None
    return found.seconds_per_byte


def test_a_tree_that_passes_one_device_is_slower() -> None:
    """From Hopper on, but where devices share cards or a Grace; up to Ampere for one GPU a node."""
    assert plain_tree(NEWEST, h100(2))
    assert plain_tree(NEWEST, b200(4, 2))
    assert not plain_tree(NEWEST, h100(1))
    assert not plain_tree(NEWEST, a100(2))
    assert not plain_tree(NEWEST, four_cards(2))
    assert plain_tree(NEWEST, four_cards(2, 3))
    assert not plain_tree(NEWEST, replace(b200(2), cpu="arm"))
    assert plain_tree(NEWEST, a100(2, 1))
    assert plain_tree(NEWEST, replace(b200(2, 1), cpu="arm"))
    shared = replace(b200(2), cpu="arm")
    ratio = per_byte(b200(2), Algorithm.TREE) / per_byte(shared, Algorithm.TREE)
    assert ratio == pytest.approx(1 / 0.85)


def test_processors_of_the_hosts_count() -> None:
    """A ring's step inside is 1 us at least, 2 us with AMD's; LL is slower there across nodes."""
    intel, amd = replace(a100(2), cpu="intel"), replace(a100(2), cpu="amd")
    steps = [estimate(NEWEST, Algorithm.RING, "ll", "all-reduce", one) for one in (intel, amd)]
    assert steps[0] is not None
    assert steps[1] is not None
    assert steps[1].latency_s - steps[0].latency_s == pytest.approx((30 - 2) * 1e-6)
    assert per_byte(intel, Algorithm.RING, "ll") == pytest.approx(30 / 16 / 39e9)
    assert per_byte(amd, Algorithm.RING, "ll") == pytest.approx(30 / 16 / 22.5e9)
    assert per_byte(replace(h100(1), cpu="amd"), Algorithm.RING, "ll") == per_byte(
        replace(h100(1), cpu="intel"), Algorithm.RING, "ll"
    )
    nvls = [
        estimate(NEWEST, Algorithm.NVLS_TREE, "simple", "all-reduce", replace(b200(2), cpu=cpu))
        for cpu in ("intel", "arm")
    ]
    assert nvls[0] is not None
    assert nvls[1] is not None
    assert nvls[0].factors
    assert not nvls[1].factors


def test_ll128_wants_the_cards_near() -> None:
    def runs(shape: GroupShape) -> bool:
        return estimate(NEWEST, Algorithm.RING, "ll128", "all-reduce", shape) is not None

    assert runs(a100(2))
    assert runs(a100(2, 1))
    assert not runs(a100(2, 3))
    assert runs(v100(2, 2))
    assert not runs(v100(2, 3))
    assert runs(v100(1, 3))
    assert runs(h100(2, 3))
    assert not runs(replace(a100(2), outside="gvnic"))
    assert not runs(replace(a100(1), inside="pcie"))


def test_wide_rings_are_served_by_more_channels() -> None:
    assert search(NEWEST, h100(2)).served == 16
    assert search(NEWEST, h100(2, 5)).served == 20
    assert search(NEWEST, h100(2, 4)).served == 16
    assert search(NEWEST, h100(1)).served == 24
    assert search(NEWEST, a100(2)).served == 16


def test_estimates_by_hand() -> None:
    """NCCL 2.30 on 8 H100: ring LL 6.6 + 14 x 0.6 us and 141 GB/s of bus bandwidth; NVLS 25 us."""
    found = chooser(library_of("nccl-2.30"), "all-reduce", h100(1))
    times = {
        f"{found.ways[i].algorithm} {found.ways[i].protocol}": one for i, one in found.estimates
    }
    ring, nvls = times["Algorithm.RING ll"], times["Algorithm.NVLS simple"]
    assert ring.latency_s == pytest.approx(6.6e-6 + 14 * 0.6e-6)
    assert 1 / ring.seconds_per_byte == pytest.approx(141e9 * 8 / 14)
    assert nvls.latency_s == pytest.approx(25e-6)
    assert 1 / nvls.seconds_per_byte == pytest.approx(8 * 40e9 * 0.85 * 7 / 8 * 2 * 8 / 14)


def test_the_plateau_of_a_ring_across_nodes() -> None:
    """From 64 bytes per channel (16 of them) and rank on, 1.4 times the latency."""
    found = chooser(library_of("nccl-2.20"), "all-reduce", h100(2), (Algorithm.RING,))
    (ring,) = (one for i, one in found.estimates if found.ways[i].protocol == "simple")
    start = 64 * 16 * 16
    wire = ring.seconds_per_byte
    assert ring.seconds(start - 1) == pytest.approx(ring.latency_s + (start - 1) * wire)
    assert ring.seconds(start) == pytest.approx(1.4 * ring.latency_s + start * wire)


def test_corrections_start_at_64_bytes_and_end() -> None:
    found = chooser(library_of("nccl-2.20"), "all-reduce", h100(2), (Algorithm.TREE,))
    (tree,) = (one for i, one in found.estimates if found.ways[i].protocol == "simple")
    assert tree.factors[:8] == (0.9,) * 7 + (0.8,)
    assert tree.seconds(63) == pytest.approx(tree.latency_s + 63 * tree.seconds_per_byte)
    assert tree.seconds(64) == pytest.approx(tree.latency_s + 64 * tree.seconds_per_byte / 0.9)
    last = 64 * 2 ** len(tree.factors)
    assert tree.seconds(last) == pytest.approx(tree.latency_s + last * tree.seconds_per_byte)


def test_a_driver_that_reports_latency_moves_the_choice_to_trees() -> None:
    """With 75 us per hop NCCL keeps trees for larger messages than on InfiniBand."""
    sizes = [2**k for k in range(16, 31)]
    near = [chosen("nccl-2.12", "all-reduce", h100(4), size) for size in sizes]
    far = [chosen("nccl-2.12", "all-reduce", h100(4, fabric="efa"), size) for size in sizes]
    assert sum("tree" in way for way in far) > sum("tree" in way for way in near)


def test_before_2_18_what_a_driver_reports_stands_for_the_hop() -> None:
    """A ring of 2 x 8 with Simple: 8.4 us, 26 hops inside and 4 between, of 28 us or of 75 us."""
    formula = library_of("nccl-2.12").formula
    assert formula is not None
    for fabric, hop in (("infiniband", 28e-6), ("efa", 75e-6)):
        shape = replace(a100(2), outside=fabric)
        found = estimate(formula, Algorithm.RING, "simple", "all-reduce", shape)
        assert found is not None
        assert found.latency_s == pytest.approx(8.4e-6 + 26 * 3.4e-6 + 4 * hop)


def test_nvls_needs_three_members_in_a_node_before_nccl_2_30() -> None:
    """ncclNvlsInit of 2.20 to 2.27 returns for two, that of 2.30 for one."""
    for size in (8 * MIB, 64 * MIB, 8 * GIB):
        assert "nvls" not in chosen("nccl-2.20", "all-reduce", h100(2, 2), size)
    runs = {name: library_of(name).runs_of("all-reduce") for name in ("nccl-2.20", "nccl-2.30")}
    least = {
        name: [run.fits_node(2) for run in found if run.in_switch] for name, found in runs.items()
    }
    assert least == {"nccl-2.20": [False, False], "nccl-2.30": [True, True]}


@pytest.mark.parametrize("library", ["nccl-2.20", "nccl-2.30"])
def test_nvls_scatters_and_gathers_for_at_most_32_in_a_node(library: str) -> None:
    """It reduces for any number of them."""
    for operation in ("all-reduce", "reduce-scatter", "all-gather"):
        for local in (32, 72):
            ways = ways_of(library_of(library), operation, b200(1, local))
            nvls = any(way.algorithm is Algorithm.NVLS for way in ways)
            assert nvls == (operation == "all-reduce" or local == 32)


def test_restricted_to_rings() -> None:
    """NCCL_ALGO=Ring."""
    only = (Algorithm.RING,)
    assert chosen("nccl-2.20", "all-reduce", h100(2), 64 * KIB, only) == "ring ll"
    assert chosen("nccl-2.20", "all-reduce", h100(1), 8 * GIB, only) == "ring simple"
    assert chosen("rccl", "all-reduce", mi300x(1), 64 * KIB, only) == "ring ll"


def test_where_nothing_allowed_can_run_a_ring_does() -> None:
    only = (Algorithm.NVLS,)
    assert chosen("nccl-2.20", "all-reduce", h100(2), 1 * GIB, only) == "ring simple"
    assert chosen("nccl-2.20", "broadcast", h100(1), 1 * KIB, only) == "ring ll"
    assert chosen("gloo", "broadcast", h100(1), 1 * KIB, only) == "binomial simple"


def test_nvls_needs_a_switch_that_reduces() -> None:
    library = library_of("nccl-2.20")
    without = replace(h100(1), in_switch=False)
    found = {way.algorithm for way in ways_of(library, "all-reduce", without)}
    assert found == {Algorithm.TREE, Algorithm.RING}
    single = {way.algorithm for way in ways_of(library, "all-reduce", h100(2, 1))}
    assert Algorithm.NVLS_TREE not in single


def test_ways_without_a_rule_are_the_first_that_can_run() -> None:
    library = replace(
        library_of("gloo"),
        runs=(
            (
                "all-reduce",
                (
                    LibraryRun(Algorithm.DIRECT, ("simple",), least_members=4),
                    LibraryRun(Algorithm.RING, ("simple",)),
                ),
            ),
        ),
    )
    small = chooser(library, "all-reduce", a100(1, 2))
    large = chooser(library, "all-reduce", a100(1, 4))
    assert small.ways[small.pick(1)].algorithm is Algorithm.RING
    assert large.ways[large.pick(1)].algorithm is Algorithm.DIRECT


@pytest.mark.parametrize("name", ["nccl-2.12", "nccl-2.20", "nccl-2.30", "rccl", "gloo"])
def test_every_operation_on_every_shape_has_a_choice(name: str) -> None:
    for operation, _ in library_of(name).runs:
        for shape in (h100(1, 2), h100(2, 1), h100(3), mi300x(1, 2), a100(128), b200(1, 72)):
            found = chooser(library_of(name), operation, shape)
            for payload in (1, 63, 64, 4 * KIB, 3 * MIB, 2**40):
                assert 0 <= found.pick(payload) < len(found.ways)


def test_a_chooser_can_be_sent_to_another_process() -> None:
    found = chooser(library_of("nccl-2.30"), "all-reduce", h100(2))
    assert pickle.loads(pickle.dumps(found)) == found
