"""Packets publish their own words only, chunk by chunk."""

from __future__ import annotations

from dataclasses import replace

import pytest

from p2smt.collectives.contract import Contribution, Goal
from p2smt.schedules.model import Schedule
from p2smt.schedules.verify.contributions import RULE
from p2smt.schedules.verify.report import Kind, Verdict
from p2smt.schedules.verify.verify import verify
from tests.schedules.building import Blocks, at, custom
from tests.schedules.oracles.interleavings import explore
from tests.schedules.oracles.publication import with_signals

CHUNKS = 2


def schedule_of(blocks: Blocks, *goals: tuple[int, int, int, int], scratch: int = 4) -> Schedule:
    """Two ranks with two input chunks each; goals are (rank, chunk, rank, input chunk)."""
    return blocks.schedule("packets", custom((CHUNKS, CHUNKS), *goals), scratch)


def stored_before(kind: str) -> Schedule:
    """Rank 0 stores into rank 1's scratch and sends a packet; rank 1 then reads the store."""
    b = Blocks()
    packet, plain = at("s0", 1, packet=True), at("s1", 1)
    if kind == "in an earlier step":
        b.add(0, 0, "put", reads=(at("i0", 0),), writes=(plain,))
        b.add(0, 0, "ppkt", reads=(at("i1", 0),), writes=(packet,))
    else:
        b.add(0, 0, "respkt", reads=(at("i0", 0),), writes=(plain, packet))
    b.add(1, 0, "upkt", reads=(packet,), writes=(at("o0", 1),))
    b.copy(1, 0, "s1", "o1")
    return schedule_of(b, (1, 1, 0, 0))


@pytest.mark.parametrize("kind", ["in an earlier step", "in the same step"])
def test_a_plain_store_is_published_by_a_signal_and_not_by_a_packet(kind: str) -> None:
    schedule = stored_before(kind)
    (broken,) = verify(schedule).violations
    assert broken.kind is Kind.RACE
    assert "s[1] of rank 1" in broken.message
    assert "o[1] of rank 1" in broken.message
    assert verify(with_signals(schedule)).verdict is Verdict.VALID


def test_the_message_says_what_may_be_seen_instead() -> None:
    (broken,) = verify(stored_before("in an earlier step")).violations
    assert RULE in broken.message
    assert "uninitialised-data" in broken.message
    assert broken.steps == (3, 0)


def test_a_store_that_no_goal_depends_on_does_no_harm() -> None:
    schedule = stored_before("in an earlier step")
    other = tuple(Goal(1, 0, (Contribution(0, 1),)) for _ in range(1))
    report = verify(replace(schedule, contract=replace(schedule.contract, goals=other)))
    assert (report.verdict, report.races, report.harmless) == (Verdict.VALID, 1, True)


def test_the_end_of_a_rank_does_not_see_what_a_packet_came_after() -> None:
    b = Blocks()
    b.add(0, 0, "put", reads=(at("i0", 0),), writes=(at("o1", 1),))
    b.add(0, 0, "ppkt", reads=(at("i1", 0),), writes=(at("s0", 1, packet=True),))
    b.add(1, 0, "upkt", reads=(at("s0", 1, packet=True),), writes=(at("o0", 1),))
    schedule = schedule_of(b, (1, 1, 0, 0))
    assert verify(schedule).verdict is Verdict.INVALID
    assert verify(with_signals(schedule)).verdict is Verdict.VALID


def overwritten(sent: int, chunk: int) -> Schedule:
    """Rank 0 sends two chunks as packets; rank 1 sends the packet that it got of one of them back,
    and then rank 0's other block overwrites a chunk of the source."""
    b = Blocks()
    b.add(0, 0, "ppkt", count=2, reads=(at("i0", 0, 2),), writes=(at("s0", 1, 2, packet=True),))
    back = at(f"s{2 + sent}", 0, packet=True)
    b.add(1, 0, "rppkt", reads=(at(f"s{sent}", 1, packet=True),), writes=(back,))
    b.add(0, 1, "upkt", reads=(back,), writes=(at(f"i{chunk}", 0),))
    b.add(1, 1, "upkt", count=2, reads=(at("s0", 1, 2, packet=True),), writes=(at("o0", 1, 2),))
    return schedule_of(b, (1, 0, 0, 0), (1, 1, 0, 1))


def cut(schedule: Schedule) -> Schedule:
    """The same with the first operation as one for each chunk, side by side."""
    b = Blocks()
    for k in range(2):
        reads, writes = at(f"i{k}", 0), at(f"s{k}", 1, packet=True)
        b.add(0, 2 + k, "ppkt", reads=(reads,), writes=(writes,))
        unpacked = (at(f"s{k}", 1, packet=True),)
        b.add(1, 2 + k, "upkt", reads=unpacked, writes=(at(f"o{k}", 1),))
    others = [step for step in schedule.steps if step.count == 1]
    return replace(schedule, steps=(*b.steps, *(replace(s, index=0) for s in others)))


@pytest.mark.parametrize("chunk", [0, 1])
@pytest.mark.parametrize("sent", [0, 1])
def test_packet_k_orders_chunk_k_and_no_other(sent: int, chunk: int) -> None:
    """What went into a packet that was waited for has been read; other chunks need not have."""
    schedule = overwritten(sent, chunk)
    right = sent == chunk
    assert explore(cut(schedule)).right is right
    report = verify(schedule, effort=0 if right else None)
    assert report.verdict is (Verdict.VALID if right else Verdict.INVALID)
    assert report.races == (not right)


def test_what_is_shown_names_whole_steps_and_their_chunks() -> None:
    schedule = overwritten(0, 1)
    (broken,) = verify(schedule).violations
    assert set(broken.order) | set(broken.steps) <= set(range(len(schedule.steps)))
    assert any("chunk" in part or "i[" in part for part in broken.parts)


def read_earlier(*, made_from: bool) -> Schedule:
    """Rank 0 reads i0 and then sends a packet, made from i0 or not; the answer overwrites i0."""
    b = Blocks()
    if not made_from:
        b.add(0, 0, "copy", reads=(at("i0", 0),), writes=(at("o0", 0),))
    source = "i0" if made_from else "i1"
    b.add(0, 0, "ppkt", reads=(at(source, 0),), writes=(at("s0", 1, packet=True),))
    back = at("s0", 0, packet=True)
    b.add(1, 0, "rppkt", reads=(at("s0", 1, packet=True),), writes=(back,))
    b.add(0, 1, "upkt", reads=(back,), writes=(at("i0", 0),))
    b.add(1, 1, "upkt", reads=(at("s0", 1, packet=True),), writes=(at("o0", 1),))
    goals = ((1, 0, 0, 0),) if made_from else ((0, 0, 0, 0), (1, 0, 0, 1))
    return schedule_of(b, *goals)


def test_only_what_a_packet_was_made_from_has_surely_been_read() -> None:
    assert verify(read_earlier(made_from=True)).verdict is Verdict.VALID
    (broken,) = verify(read_earlier(made_from=False)).violations
    assert RULE in broken.message
    assert "o[0] of rank 0" in broken.message


def test_packets_that_were_read_may_be_read_again() -> None:
    """As a port channel does that passes on packets which a block has waited for."""
    b = Blocks()
    target = at("s0", 1, packet=True)
    b.add(0, 0, "respkt", reads=(at("i0", 0),), writes=(target, at("s1", 1, packet=True)))
    b.add(1, 0, "rppkt", reads=(target,))
    b.add(1, 0, "put", reads=(at("s0", 1),), writes=(at("o0", 1),))
    assert verify(schedule_of(b, (1, 0, 0, 0)), effort=0).verdict is Verdict.VALID


def test_the_rule_is_named_only_where_there_are_packets() -> None:
    b = Blocks()
    b.copy(0, 0, "i0", "o0")
    assert verify(schedule_of(b, (0, 0, 0, 0))).memory_rule == ""
    assert verify(stored_before("in the same step")).memory_rule


def written_twice(*, counted: bool) -> Schedule:
    """A plain store, then one packet by two steps; its reader goes on to read the plain store.

    counted: whether one output chunk is the sum of the packet and the plain store.
    """
    b = Blocks()
    b.add(0, 0, "put", reads=(at("i0", 0),), writes=(at("s1", 1),))
    packet = at("s0", 1, packet=True)
    for _ in range(2):
        b.add(0, 0, "ppkt", reads=(at("i1", 0),), writes=(packet,))
    b.add(1, 0, "upkt", reads=(packet,), writes=(at("o0", 1),))
    read = (at("s1", 1), at("o0", 1)) if counted else (at("s1", 1),)
    b.add(1, 0, "re", reads=read, writes=(at("o1", 1),))
    schedule = schedule_of(b, (1, 0, 0, 1), (1, 1, 0, 0))
    both = Goal(1, 1, (Contribution(0, 0), Contribution(0, 1)))
    goals = (schedule.contract.goals[0], both if counted else schedule.contract.goals[1])
    return replace(schedule, contract=replace(schedule.contract, goals=goals))


@pytest.mark.parametrize("counted", [False, True])
def test_a_packet_with_several_writers_publishes_its_own_words_only(*, counted: bool) -> None:
    schedule = written_twice(counted=counted)
    assert explore(schedule).right, "in order of execution"
    report = verify(schedule)
    assert report.verdict is not Verdict.VALID
    assert not report.harmless
    assert "publish their own words only" in report.reason
    assert verify(with_signals(schedule)).verdict is Verdict.VALID


def test_a_further_packet_with_one_writer_changes_nothing() -> None:
    schedule = written_twice(counted=False)
    b = Blocks()
    other = at("s2", 1, packet=True)
    b.add(0, 0, "ppkt", reads=(at("i1", 0),), writes=(other,))
    b.add(1, 1, "upkt", reads=(other,), writes=(at("s3", 1),))
    first = replace(b.steps[0], index=3)
    more = replace(schedule, steps=(*schedule.steps, first, b.steps[1]))
    assert verify(more).verdict is not Verdict.VALID


def test_the_words_of_a_packet_are_those_of_one_of_its_writers() -> None:
    """Whoever wrote it, the reader has the data: that rests on nothing else."""
    schedule = written_twice(counted=False)
    own = replace(schedule, contract=replace(schedule.contract, goals=schedule.contract.goals[:1]))
    report = verify(own)
    assert (report.verdict, report.harmless) == (Verdict.VALID, True)
