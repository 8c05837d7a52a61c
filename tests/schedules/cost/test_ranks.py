"""Where the ranks of a schedule lie: devices by hand, and times as of a schedule on other ranks."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from p2smt.cluster.file import load_topology
from p2smt.errors import InputError
from p2smt.schedules.classics import classic
from p2smt.schedules.cost.predict import schedule_cost
from p2smt.schedules.cost.ranks import devices_of, where_words
from tests.cli.tools import assert_one_error, cli
from tests.schemas.tools import complaints

PODS = load_topology("dgx-a100:4")


@pytest.mark.parametrize(
    ("text", "ranks", "devices", "words"),
    [
        (None, 4, (0, 1, 2, 3), "4 ranks on node 0 alone"),
        ("node=1", 4, (0, 8, 16, 24), "1 rank on each of 4 nodes"),
        ("node=2", 4, (0, 1, 8, 9), "2 ranks on each of 2 nodes"),
        ("node=2", 3, (0, 1, 8), "up to 2 ranks on each of 2 nodes"),
        ("node=2", 2, (0, 1), "2 ranks on node 0 alone"),
        ("gpu=1", 3, (0, 1, 2), "3 ranks on node 0 alone"),
        (" [9, 8] ", 2, (9, 8), "2 ranks on node 1 alone"),
        ("31", 1, (31,), "1 rank on node 3 alone"),
    ],
)
def test_devices_of_ranks(
    text: str | None, ranks: int, devices: tuple[int, ...], words: str
) -> None:
    assert devices_of(text, PODS, ranks) == devices
    assert where_words(PODS, devices) == words


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("node=1", "5 ranks need 5 of node"),
        ("node=9", "a node has 8 devices"),
        ("node=6", "asks for 6 ranks on each node, and the schedule has 5; give node=5 or fewer"),
        ("node=0", "node=0"),
        ("node", "node=1"),
        ("rack=1", "levels are node, gpu"),
        ("0,1", "has 5 ranks"),
        ("0,1,2,3,32", "has 32 devices"),
        ("0,1,2,3,3", "two ranks lie on one device"),
        ("", "node=1"),
    ],
)
def test_what_cannot_be_is_refused(text: str, said: str) -> None:
    with pytest.raises(InputError) as error:
        devices_of(text, PODS, 5)
    assert said in str(error.value)


@given(st.permutations(range(8)))
def test_inside_a_node_of_like_devices_the_order_is_the_same(order: list[int]) -> None:
    schedule = classic("ring-all-reduce", 4)
    inside = schedule_cost(schedule, PODS, 1e6)
    moved = schedule_cost(schedule, PODS, 1e6, devices=[8 + one for one in order[:4]])
    assert moved.time_s == pytest.approx(inside.time_s)


def test_a_ring_over_nodes_goes_over_their_cards() -> None:
    schedule = classic("ring-all-reduce", 4)
    spread = schedule_cost(schedule, PODS, 1e6, devices=devices_of("node=1", PODS, 4))
    inside = schedule_cost(schedule, PODS, 1e6)
    assert spread.time_s > 2 * inside.time_s
    assert {load.link.level for load in spread.links} >= {"node"}
    assert {load.link.level for load in inside.links} == {"gpu"}


@pytest.fixture
def ring(tmp_path: Path) -> str:
    path = str(tmp_path / "ring.yaml")
    assert cli("classics", "ring-all-reduce", "--ranks", "4", "-o", path).code == 0
    return path


def test_the_command_says_where_ranks_lie(ring: str) -> None:
    words = ("verify", ring, "--cost", "1MiB", "-t", "dgx-a100:4")
    first = cli(*words)
    assert "4 ranks on node 0 alone; --ranks-on says otherwise" in first.out
    spread = cli(*words, "--ranks-on", "node=1")
    assert "1 rank on each of 4 nodes\n" in spread.out
    data = cli(*words, "--ranks-on", "node=1", "--json").json()
    assert complaints("verify-schedule", data) == []
    assert data["cost"]["devices"] == [0, 8, 16, 24]
    found = schedule_cost(classic("ring-all-reduce", 4), PODS, 2**20, devices=(0, 8, 16, 24))
    assert data["cost"]["seconds"] == pytest.approx(found.time_s, rel=0.05)


def test_ranks_lie_on_the_used_part_of_each_node(ring: str) -> None:
    words = ("verify", ring, "--cost", "1MiB", "-t", "dgx-a100:2")
    part = cli(*words, "--use", "gpu=2", "--json").json()["cost"]
    whole = cli(*words, "--ranks-on", "node=2", "--json").json()["cost"]
    assert (part["devices"], whole["devices"]) == ([0, 1, 2, 3], [0, 1, 8, 9])
    assert part["seconds"] == pytest.approx(whole["seconds"])
    done = cli(*words, "--use", "gpu=2", "--ranks-on", "node=3")
    assert done.code == 2
    assert "a node has 2 devices; give 2 or fewer" in done.err


def test_where_ranks_lie_is_of_a_time(ring: str) -> None:
    assert_one_error(cli("verify", ring, "--ranks-on", "node=1"))
    assert_one_error(cli("verify", ring, "--use", "gpu=2"))
    done = cli("verify", ring, "--cost", "1MiB", "-t", "dgx-a100:4", "--ranks-on", "0,1,2,2")
    assert_one_error(done)
    assert_one_error(cli("verify", "--program", "single", "--levels", "2,2", "--ranks-on", "0,1"))
