"""Prices under a library that can be counted by hand, one for each thing a library does."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest

import p2smt
from p2smt.cluster.file import load_topology, parse_topology
from p2smt.cluster.library.model import Library
from p2smt.cluster.library.registry import library_of, register_library
from p2smt.cluster.topology import CALL_NAMES, Algorithm, Level, Link, LinkKind, Piece, Topology
from p2smt.collectives.names import Collective, RequestKind
from p2smt.cost.bounds import regular_model
from p2smt.cost.loads.footprint import digits_of
from p2smt.cost.scene import Scene
from p2smt.cost.step_time import CHUNK_COUNTS, StepTime, Way, best_chunks
from p2smt.parallelism.placement import Placement
from p2smt.programs.program import Grouping, parse_program

GB = 10**9
THREE = "reduce-scatter inside node; all-reduce parallel node in root; all-gather inside node"
THREE_ROWS = (16, 2, 16)
WHOLE, NODES = ((2, 8),), ((2, 1), (1, 8))


def cluster(library: str, near: LinkKind = LinkKind.SWITCH, cards: int = 8) -> Topology:
    """Two nodes of 8 at 100 GB/s a device (a link of a mesh), 8 cards of 10 GB/s."""
    reduces = 2 if near is LinkKind.SWITCH else 0
    inner = Link(near, (Piece("simple", 0, 100e9),), in_switch_members=reduces, fabric="nvlink4")
    outer = Link(LinkKind.SWITCH, (Piece("simple", 0, 10e9),), ports=cards, fabric="infiniband")
    levels = (Level("node", 2, outer), Level("gpu", 8, inner))
    return Topology("t", levels).under(library)


def ways(
    topology: Topology, matrix: tuple[tuple[int, ...], ...], kind: Collective
) -> dict[tuple[str, str], Way]:
    """The ways to run a collective along the first axis, by algorithm and protocol."""
    digits = digits_of(Placement(matrix), [0])
    model = regular_model(topology, digits, Grouping(0, sum(map(bool, digits))), kind)
    return {(way.algorithm, way.protocol): way for way in model.ways}


def wire_s(topology: Topology, matrix: tuple[tuple[int, ...], ...], algorithm: str) -> float:
    """Seconds of an all-reduce of 1 GB on its worst link, by the simple protocol."""
    found = ways(topology, matrix, Collective.ALL_REDUCE)[algorithm, "simple"]
    return found.seconds_per_byte * GB


def without_across() -> Library:
    """NCCL whose calls cost the same across nodes."""
    library = replace(library_of("nccl-2.30"), name="nccl-near", calls_across=())
    register_library(library)
    return library


def calling(seconds: float) -> Topology:
    """Calls that cost so much; links, hops and nodes that cost nothing to speak of."""
    found = cluster(without_across().name)
    levels = tuple(
        replace(level, link=replace(level.link, hops=(("any", 0.0),))) for level in found.levels
    )
    return replace(found, levels=levels, calls=tuple((name, seconds) for name in CALL_NAMES))


def test_three_calls_cost_three() -> None:
    scene = Scene.of(calling(1.0), Placement(WHOLE), (0,))
    steps = scene.program_times(parse_program(THREE), THREE_ROWS, 1024)
    assert sum(step.call_s for step in steps) == 3.0
    assert sum(step.seconds for step in steps) == pytest.approx(3.0, rel=1e-5)


def test_spanning_nodes_costs_each_call_again() -> None:
    """Of three calls the one in the middle spans nodes; of two across nodes both do."""
    library = replace(without_across(), name="nccl-far", calls_across=(("infiniband", 5.0),))
    register_library(library)
    topology = calling(1.0).under(library.name)
    two = "reduce-scatter inside root; all-gather inside root"
    for text, rows, calls in ((THREE, THREE_ROWS, [1, 6, 1]), (two, (16, 1), [6, 6])):
        for payload in (1024, 2**30):
            scene = Scene.of(topology, Placement(WHOLE), (0,))
            steps = scene.program_times(parse_program(text), rows, payload)
            assert [step.call_s for step in steps] == calls
    slower = replace(topology, call_factor=3.0)
    steps = Scene.of(slower, Placement(WHOLE), (0,)).program_times(
        parse_program(THREE), THREE_ROWS, 1024
    )
    assert [step.call_s for step in steps] == [3, 18, 3]


def test_filling_a_pipeline_costs_what_is_in_flight_at_most() -> None:
    """sqrt(8 w A), and no more than A for each of 8 chunks; of one round between nodes nothing."""
    found = ways(cluster("nccl-2.30"), WHOLE, Collective.ALL_REDUCE)["tree", "simple"]
    stage = found.stage_s
    assert stage > 0
    for wire in (0.0, stage / 8, 2 * stage, 8 * stage, 1000 * stage):
        filled = found.seconds(wire / found.seconds_per_byte) - found.seconds(0) - wire
        assert filled == pytest.approx(min(math.sqrt(8 * wire * stage), 8 * stage), abs=1e-12)
    many = replace(found, in_flight=math.inf)
    assert many.seconds(2**34) > found.seconds(2**34)
    for count, chunks in ((2, 0), (3, 1), (4, 1), (5, 2), (16, 3)):
        alone = cluster("nccl-2.30").with_outermost(count)
        one = ways(alone, ((count, 1), (1, 8)), Collective.ALL_REDUCE)["tree", "simple"]
        assert (one.filling, one.stage_s > 0) == (chunks, chunks > 0), count


def test_more_rounds_fill_a_pipeline_for_longer() -> None:
    """Of 8 members a node two chunks a round of doubling: 2, 3, 8 and 16 nodes."""
    for count, chunks in ((2, 2), (3, 4), (8, 6), (16, 8)):
        topology = cluster("nccl-2.30").with_outermost(count)
        for algorithm in ("tree", "nvls-tree"):
            one = ways(topology, ((count, 8),), Collective.ALL_REDUCE)[algorithm, "simple"]
            assert (one.filling, one.in_flight) == (chunks, 8 * chunks / 2), (count, algorithm)


def limited(name: str, **limits: Any) -> Library:
    """NCCL with other limits of what leaves a node, or of a call."""
    library = replace(library_of("nccl-2.30"), name=name, **limits)
    register_library(library)
    return library


def faster_cards(topology: Topology, factor: float) -> Topology:
    return topology.with_bandwidth_factor(0, factor)


def exchange_s(topology: Topology) -> float:
    """Seconds of an all-to-all of 1 GB on its worst link."""
    digits = digits_of(Placement(WHOLE), [0])
    model = regular_model(topology, digits, Grouping(0, 2), RequestKind.ALL_TO_ALL)
    return next(way for way in model.ways if way.protocol == "simple").seconds_per_byte * GB


def test_an_exchange_sends_so_much_whatever_the_cards_carry() -> None:
    """Half of a member's 1 GB goes to the other node: over cards of 10 GB/s, at most 8 of them, or
    what the link was measured to reach."""
    topology = cluster(limited("nccl-exchange", exchange_rate=8e9).name)
    assert exchange_s(topology) == pytest.approx(0.5 / 8)
    assert exchange_s(faster_cards(topology, 10)) == pytest.approx(0.5 / 8)
    assert exchange_s(faster_cards(topology, 0.5)) == pytest.approx(0.5 / 5)
    shared = cluster("nccl-exchange", cards=4)  # two members a card
    assert exchange_s(shared) == pytest.approx(1 / 10)
    measured = replace(topology.levels[0].link, efficiency=(("all-to-all", 0.9),))
    levels = (replace(topology.levels[0], link=measured), topology.levels[1])
    assert exchange_s(replace(topology, levels=levels)) == pytest.approx(0.5 / 9)


def test_switches_hand_over_so_much_whatever_the_cards_carry() -> None:
    """Two nodes hand over 1 GB each way, at 40 GB/s a node, where its cards carry 80."""
    topology = cluster(limited("nccl-handover", handover_rate=40e9).name)
    assert wire_s(topology, WHOLE, "nvls-tree") == pytest.approx(1 / 40)
    assert wire_s(faster_cards(topology, 10), WHOLE, "nvls-tree") == pytest.approx(1 / 40)
    assert wire_s(cluster("nccl-2.30"), WHOLE, "nvls-tree") == pytest.approx(1 / 80)
    assert wire_s(cluster("nccl-handover", cards=2), WHOLE, "nvls-tree") == pytest.approx(1 / 20)


def test_two_children_share_a_card() -> None:
    """Of four nodes one has two children in a tree, of three none; of devices with cards of their
    own, and before Hopper, nothing of it was measured.  A ring has no children."""
    known, names = library_of("nccl-2.30").protocols, []
    for part in (1.0, 0.5):
        protocols = tuple((name, replace(one, two_children=part)) for name, one in known)
        names.append(limited(f"nccl-children-{part}", protocols=protocols).name)
    for nodes, cards, fabric, part in (
        (4, 4, "nvlink4", 0.5),
        (3, 4, "nvlink4", 1.0),
        (4, 8, "nvlink4", 1.0),
        (4, 4, "nvlink3", 1.0),
    ):
        found = []
        for name in names:
            one = cluster(name, cards=cards).with_outermost(nodes)
            inner = replace(one.levels[1], link=replace(one.levels[1].link, fabric=fabric))
            found.append(replace(one, levels=(one.levels[0], inner)))
        trees, rings = (
            [wire_s(one, ((nodes, 8),), name) for one in found] for name in ("tree", "ring")
        )
        assert trees[1] == pytest.approx(trees[0] / part), (nodes, cards, fabric)
        assert rings[1] == rings[0]


FOUR_CARDS = """
name: five-nodes
library: nccl-2.20
levels:
  - name: node
    size: 5
    link: {kind: switch, ports: 4, bandwidth: 400 Gb/s, latency: 14 us, fabric: roce}
  - name: gpu
    size: 8
    link: {kind: switch, bandwidth: 450 GB/s, latency: 3.4 us, fabric: nvlink4}
"""


@pytest.mark.parametrize(("algorithm", "measured_s"), [("ring", 11.0e-3), ("tree", 14.0e-3)])
def test_five_nodes_of_eight_h100_to_four_cards(algorithm: str, measured_s: float) -> None:
    """NVIDIA/nccl#1368: a GiB in 11.0 ms by ring, in 14.0 ms by tree."""
    topology = parse_topology(FOUR_CARDS, "four cards").running((Algorithm(algorithm),))
    scene = Scene(topology, digits_of(Placement(((5, 8),)), (0,)))
    found = scene.fixed_time(RequestKind.ALL_REDUCE, 2**30).seconds
    assert found == pytest.approx(measured_s, rel=0.03)


def test_members_beyond_one_board_wait_for_each_other_at_the_switches() -> None:
    """64 members: 56 more than eight, twice; of a ring nothing."""
    names = [limited(f"nccl-member-{n}", switch_member=n * 1e-6).name for n in (0, 2)]
    for members, more in ((8, 0.0), (64, 224e-6)):
        found = []
        for name in names:
            topology = cluster(name)
            levels = (topology.levels[0], replace(topology.levels[1], size=members))
            of = ways(replace(topology, levels=levels), ((2, members),), Collective.ALL_REDUCE)
            found.append((of["nvls-tree", "simple"].latency_s, of["ring", "simple"].latency_s))
        assert found[1][0] - found[0][0] == pytest.approx(more)
        assert found[1][1] == found[0][1]


def test_a_generation_of_devices_makes_every_call_longer() -> None:
    """As its fabric tells, and not where calls were measured."""
    plain, longer = (
        limited(f"nccl-calls-{n}", calls_on=(("nvlink4", n * 1e-6),)).name for n in (0, 3)
    )
    found = [
        ways(cluster(name), WHOLE, Collective.ALL_REDUCE)["ring", "ll"].call_s
        for name in (plain, longer)
    ]
    assert found[1] - found[0] == pytest.approx(3e-6)
    measured = replace(cluster(longer), calls=(("all-reduce", 1e-6),))
    across = library_of(longer).across_s("infiniband")
    assert ways(measured, WHOLE, Collective.ALL_REDUCE)["ring", "ll"].call_s == 1e-6 + across


def test_a_ring_over_nodes_has_the_pace_of_the_network() -> None:
    """Its 28 steps inside cost as much more as the library says, those between nodes do not."""
    library = replace(library_of("nccl-2.30"), name="nccl-pace", ring_pace=2.5)
    register_library(library)
    for matrix, inside, pace in ((WHOLE, 28, 2.5), (((1, 8), (2, 1)), 14, 1.0)):
        ring = ways(cluster(library.name), matrix, Collective.ALL_REDUCE)["ring", "ll128"]
        near = library.hop_s("nvlink4", "ring", "ll128", across=False)
        far = library.hop_s("infiniband", "ring", "ll128", across=True)
        between = 2 if matrix is WHOLE else 0
        assert ring.latency_s == pytest.approx(inside * pace * near + between * far)
    tree = ways(cluster(library.name), WHOLE, Collective.ALL_REDUCE)["tree", "ll"]
    assert (
        tree.latency_s
        == ways(cluster("nccl-2.30"), WHOLE, Collective.ALL_REDUCE)["tree", "ll"].latency_s
    )


def test_chunks_pay_their_calls() -> None:
    """M chunks of three steps take M + 2 calls: one chunk is best until bytes outweigh them."""

    def chunks_of(topology: Topology, payload: int) -> int:
        scene = Scene.of(topology, Placement(WHOLE), (0,))

        def steps(count: int) -> tuple[StepTime, ...]:
            return scene.program_times(parse_program(THREE), THREE_ROWS, payload, count)

        return best_chunks(CHUNK_COUNTS, steps).chunks

    mib = 2**20
    assert [chunks_of(calling(1.0), size) for size in (1024, mib, 2**30)] == [1, 1, 1]
    assert chunks_of(calling(0.0), mib) == 64
    assert 1 < chunks_of(calling(1e-3), 2**30) < 64
    preset = p2smt.load_topology("dgx-h100:2")
    assert chunks_of(preset, mib) == 1
    assert chunks_of(preset, 16 * mib) < chunks_of(calling(0.0), 16 * mib)


def test_a_tree_between_two_nodes_sends_each_byte_once() -> None:
    """Over eight cards of 10 GB/s 1 GB in 12.5 ms; a ring sends 2 x 15/16 of it."""
    found = ways(cluster("nccl-2.30"), WHOLE, Collective.ALL_REDUCE)
    tree, ring = (found[name, "simple"].level_s_per_byte for name in ("tree", "ring"))
    assert (tree[0] * GB, ring[0] * GB) == pytest.approx((1 / 80, 2 * 15 / 16 / 80))
    chain = 2 * 7 / 8 + 1 / 8  # to the next and back, and what the head of an eighth sends out
    assert (tree[1] * GB, ring[1] * GB) == pytest.approx((chain / 100, 2 * 15 / 16 / 100))


@pytest.mark.parametrize("members", [2, 4, 8])
def test_the_switch_moves_n_and_a_part_more(members: int) -> None:
    """n(1 + 1/p) by NVLS where a ring moves 2n(p - 1)/p; reduce-scatter and all-gather n."""
    topology, matrix = cluster("nccl-2.30"), ((1, members), (2, 8 // members))
    assert wire_s(topology, matrix, "nvls") == pytest.approx((1 + 1 / members) / 100)
    assert wire_s(topology, matrix, "ring") == pytest.approx(2 * (1 - 1 / members) / 100)
    for kind in (Collective.REDUCE_SCATTER, Collective.ALL_GATHER):
        found = ways(topology, matrix, kind)["nvls", "simple"]
        assert found.seconds_per_byte == pytest.approx(1 / 100e9)
    for kind in (Collective.REDUCE, Collective.BROADCAST):
        assert {name for name, _ in ways(topology, matrix, kind)} == {"ring"}


def test_an_all_reduce_waits_twice_for_the_switch() -> None:
    """Until all have scattered, and for the result; who only scatters or gathers once."""
    found, hop = cluster("nccl-2.30"), 3e-6
    inner = replace(found.levels[1].link, hops=(("any", hop),))
    topology = replace(found, levels=(found.levels[0], replace(found.levels[1], link=inner)))
    for kind, steps in ((Collective.ALL_REDUCE, 2), (Collective.ALL_GATHER, 1)):
        nvls = ways(topology, ((1, 8), (2, 1)), kind)["nvls", "simple"]
        assert nvls.latency_s == pytest.approx(steps * hop)


@pytest.mark.parametrize("library", ["nccl-2.20", "nccl-2.30"])
def test_small_messages_are_faster_by_a_ring_than_through_the_switch(library: str) -> None:
    """Measured on 8 H100 up to 64 KiB (NVIDIA/nccl, 1259); large ones are not."""
    topology = load_topology("dgx-h100:1").under(library)
    found = ways(topology, ((1, 8),), Collective.ALL_REDUCE)
    ring, nvls = found["ring", "ll"], found["nvls", "simple"]
    for exponent in range(7, 17):
        assert ring.seconds(2**exponent) < nvls.seconds(2**exponent)
    assert nvls.seconds(2**28) < found["ring", "simple"].seconds(2**28)


def test_nvls_takes_its_own_part_of_the_links() -> None:
    topology = cluster("nccl-2.30")
    inner = replace(topology.levels[1].link, efficiency=(("nvls", 0.5), ("any", 0.8)))
    slower = replace(topology, levels=(topology.levels[0], replace(topology.levels[1], link=inner)))
    matrix = ((1, 8), (2, 1))
    assert wire_s(slower, matrix, "nvls") == pytest.approx(9 / 8 / 50)
    assert wire_s(slower, matrix, "ring") == pytest.approx(14 / 8 / 80)


def test_rings_use_every_link_of_a_mesh() -> None:
    """Eight devices, seven links each at 100 GB/s: 2 x 7/8 of n over seven rings at once.

    On two nodes the part of a ring between the devices of one goes on outside: eight at once.
    """
    topology = cluster("rccl", LinkKind.FULL_MESH)
    assert wire_s(topology, ((1, 8), (2, 1)), "ring") == pytest.approx(2 * 7 / 8 / 7 / 100)
    both = ways(topology, WHOLE, Collective.ALL_REDUCE)["ring", "simple"]
    assert both.level_s_per_byte[1] * GB == pytest.approx(2 * 15 / 16 / 8 / 100)


def test_messages_from_peer_to_peer() -> None:
    """LL up to 16 KiB to a peer inside a node; over the network never."""
    topology, inside = cluster("nccl-2.30"), ((1, 8), (2, 1))

    def protocol(matrix: tuple[tuple[int, ...], ...], kind: RequestKind, payload: int) -> str:
        return Scene.of(topology, Placement(matrix), (0,)).fixed_time(kind, payload).protocol

    kib = 2**10
    for kind, parts in ((RequestKind.SEND, 1), (RequestKind.ALL_TO_ALL, 8)):
        assert protocol(inside, kind, 16 * kib * parts) == "ll"
        assert protocol(inside, kind, 16 * kib * parts + 1).startswith("simple")
    for kind in (RequestKind.SEND, RequestKind.ALL_TO_ALL):
        assert protocol(NODES, kind, kib).startswith("simple")
        assert protocol(WHOLE, kind, kib).startswith("simple")


def test_an_all_to_all_pays_a_hop_for_eight_peers() -> None:
    """16 ranks: seven peers inside the node, eight outside; of 32 in four nodes 24 are."""
    library = library_of("nccl-2.30")
    far = library.hop_s("infiniband", "p2p", "simple", across=True)
    near = library.hop_s("nvlink4", "p2p", "simple", across=False)
    call = library.call_s("all-to-all") + library.across_s("infiniband")
    for nodes, batches in ((2, 1), (4, 3)):
        topology = cluster("nccl-2.30").with_outermost(nodes)
        scene = Scene.of(topology, Placement(((nodes, 8),)), (0,))
        time = scene.fixed_time(RequestKind.ALL_TO_ALL, 0)
        assert time.seconds == pytest.approx(call + near + batches * far)


def test_gloo_sends_to_all_peers_at_once() -> None:
    """Its all-to-all posts every message before it waits: one hop at each level, however many."""
    library = library_of("gloo")
    far = library.hop_s("infiniband", "p2p", "simple", across=True)
    near = library.hop_s("nvlink4", "p2p", "simple", across=False)
    topology = cluster("gloo").with_outermost(4)
    time = Scene.of(topology, Placement(((4, 8),)), (0,)).fixed_time(RequestKind.ALL_TO_ALL, 0)
    assert time.seconds == pytest.approx(library.call_s("all-to-all") + near + far)


@pytest.mark.parametrize(
    ("own", "expected"),
    [(None, 141e9), (500e9, 141e9), (200e9, 100e9)],
    ids=["links", "cap", "own"],
)
def test_what_a_device_sends_over_a_mesh_is_flags_too(own: float | None, expected: float) -> None:
    """LL sends as many flags as data, and NCCL's cap on it is per GPU: over seven links of 100 GB/s
    (half of them data) 141 GB/s, and half of what its links together carry."""
    mesh = cluster("nccl-2.30", LinkKind.FULL_MESH)
    node, gpu = mesh.levels
    inner = replace(gpu.link, device_bandwidth_bytes_per_s=own)
    topology = replace(mesh, levels=(node, replace(gpu, link=inner)))
    way = ways(topology, ((1, 8), (2, 1)), Collective.ALL_REDUCE)["ring", "ll"]
    assert 1 / way.seconds_per_byte == pytest.approx(expected / (2 * 7 / 8))


def test_hops_of_a_fabric_count_in_small_messages() -> None:
    small = 1024
    infiniband, efa = (
        Scene.of(replaced, Placement(NODES), (0,)).fixed_time(RequestKind.ALL_REDUCE, small)
        for replaced in (with_fabric(name) for name in ("infiniband", "efa"))
    )
    assert efa.seconds > 4 * infiniband.seconds


def with_fabric(fabric: str) -> Topology:
    found = cluster("nccl-2.30")
    outer = replace(found.levels[0].link, fabric=fabric)
    return replace(found, levels=(replace(found.levels[0], link=outer), found.levels[1]))


def test_where_links_cannot_carry_the_choice_a_ring_runs() -> None:
    """Nodes in a ring, without a switch between them: no tree, no tree of switches, no PAT."""
    found = cluster("nccl-2.30", cards=1)
    outer = replace(found.levels[0].link, kind=LinkKind.RING)
    topology = replace(found, levels=(replace(found.levels[0], link=outer), found.levels[1]))
    for kind in Collective:
        assert {name for name, _ in ways(topology, WHOLE, kind)} == {Algorithm.RING.value}
    gloo = topology.under("gloo")
    assert {name for name, _ in ways(gloo, WHOLE, Collective.BROADCAST)} == {"ring"}
