"""What the reader makes of operations: their data, their order, their counters."""

from __future__ import annotations

import json

import pytest

from p2smt.errors import InputError
from p2smt.interop.mscclpp.read import read_mscclpp
from p2smt.schedules.model import Buffer, Sizes, Span, StepRef
from p2smt.schedules.verify.verify import verify
from tests.interop.mscclpp.plans import (
    NOP,
    Data,
    all_gather,
    far,
    group,
    lonely,
    move,
    near,
    op,
    over,
    pair,
    pipeline,
    plan,
    read,
    steps,
)

SIGNAL = "memory channel 0->1 #0"


def _refs(*indices: int, block: int = 0) -> tuple[StepRef, ...]:
    return tuple(StepRef(block, index) for index in indices)


def test_a_small_plan_is_valid_in_every_interleaving() -> None:
    schedule = read(all_gather())
    assert (schedule.name, schedule.form, schedule.in_place) == ("small", "mscclpp-json", True)
    assert schedule.contract.collective == "allgather"
    assert schedule.sizes == (Sizes(1, 2, 0), Sizes(1, 2, 0))
    assert verify(schedule).verdict == "valid"


def test_without_the_nop_before_its_signal_a_put_races() -> None:
    data = all_gather()
    ops = data["gpus"][0]["threadblocks"][0]["ops"]
    del ops[4]
    assert [step["name"] for step in ops[3:5]] == ["put", "signal"]
    assert verify(read(data)).verdict != "valid"


def test_a_relaxed_signal_does_not_publish_the_data() -> None:
    data = all_gather()
    data["gpus"][0]["threadblocks"][0]["ops"][5]["name"] = "rlxsignal"
    assert verify(read(data)).verdict != "valid"


def test_a_step_knows_its_line() -> None:
    text = json.dumps(all_gather(), indent=1)
    found = read_mscclpp(text, "plan.json").steps
    lines = text.split("\n")
    for step in found:
        assert lines[(step.line or 0) - 1].strip() == "{"
        assert f'"{step.kind}"' in lines[step.line or 0]


def test_threads_of_a_list_are_independent_and_those_of_two_operations_are_not() -> None:
    found = steps(pair([over("signal", 0, 1), over("wait", 0, 1), NOP, over("signal", 1)]))
    assert [step.posts for step in found[:2]] == [(SIGNAL,), ("memory channel 0->1 #1",)]
    assert found[0].after is None
    assert found[1].after == ()
    assert found[2].awaits == ("memory channel 1->0 #0",)
    assert found[2].after == _refs(0)
    assert found[3].after == _refs(1)
    assert found[4].kind == "nop"
    assert set(found[4].after or ()) == set(_refs(2, 3))
    assert found[5].after is None


def test_relaxed_is_said_of_memory_channels_only() -> None:
    found = steps(pair([over("rlxsignal", 0), over("rlxwait", 0, kind="port")]))
    assert [step.relaxed for step in found] == [True, False]


def test_data_of_one_lane_is_in_order_and_beside_single_threads() -> None:
    copy = move("copy", [near("i", 0)], [near("s", 0)])
    put = move("put", [near("s", 0)], [far(0, 0)])
    found = steps(pair([copy, over("signal", 0), put, NOP]))
    assert found[0].after is None
    assert found[1].after == ()
    assert found[2].after == _refs(0)
    assert set(found[3].after or ()) == set(_refs(1, 2))


def test_plain_data_and_packets_are_cut_differently_and_so_in_no_order() -> None:
    plain = move("copy", [near("i", 0)], [near("o", 1)])
    packet = move("cpkt", [near("o", 1)], [near("s", 0)])
    found = steps(lonely([plain, packet], protocol="LL", inplace=False))
    assert found[1].after == ()
    assert found[1].writes == (Span(0, Buffer.SCRATCH, 0, 1, packet=True),)


def test_where_positions_differ_only_equal_positions_are_in_order() -> None:
    first = move("copy", [near("i", 0, 2)], [near("s", 0, 2)])
    shifted = move("copy", [near("s", 1, 2)], [near("o", 0, 2)])
    found = steps(lonely([first, shifted, NOP], inplace=False))
    assert [step.count for step in found] == [1, 1, 1, 1, 0]
    assert [step.after for step in found[1:4]] == [(), _refs(0), _refs(1)]
    aligned = move("copy", [near("s", 0, 2)], [near("o", 0, 2)])
    whole = steps(lonely([first, aligned], inplace=False))
    assert [step.count for step in whole] == [2, 2]
    assert whole[1].after is None


def test_in_place_input_and_output_are_one_memory_for_that() -> None:
    ops = [
        move("copy", [near("i", 0, 2)], [near("s", 0, 2)]),
        move("copy", [near("s", 2, 2)], [near("o", 1, 2)]),
    ]
    assert [step.count for step in steps(lonely(ops))] == [1, 1, 1, 1]
    assert [step.count for step in steps(lonely(ops, inplace=False))] == [2, 2]


def test_several_pairs_are_several_steps() -> None:
    put = move("put", [near("i", 0), near("i", 1)], [far(0, 2), far(1, 3)])
    found = steps(pair([put]))
    assert [(s.reads, s.writes) for s in found] == [
        ((Span(0, Buffer.INPUT, 0, 1),), (Span(1, Buffer.INPUT, 2, 1),)),
        ((Span(0, Buffer.INPUT, 1, 1),), (Span(1, Buffer.OUTPUT, 3, 1),)),
    ]
    assert found[1].after is None


def test_a_port_put_runs_beside_its_block() -> None:
    put = move("put", [near("i", 0)], [far(0, 0)], channel_ids=[1], channel_type="port")
    ops = [NOP, put, NOP, over("signal", 1, kind="port"), over("flush", 1, kind="port"), NOP]
    found = steps(pair(ops))
    proxy = [step for step in found if step.background]
    assert [step.kind for step in proxy] == ["put", "signal"]
    assert {step.block for step in proxy} == {1}
    assert proxy[0].after == _refs(0)
    assert proxy[1].after == (StepRef(0, 1), StepRef(1, 0))
    assert proxy[1].posts == ("port channel 0->1 #1",)
    flush = next(step for step in found if step.kind == "flush")
    assert flush.after == (StepRef(0, 1), StepRef(1, 1))
    nops = [step for step in found if step.kind == "nop"]
    assert nops[1].after is None


def test_pushes_of_different_threads_in_one_segment_are_unordered() -> None:
    put = move("put", [near("i", 0), near("i", 1)], [far(0, 0), far(0, 1)], channel_type="port")
    found = steps(pair([{**put, "channel_ids": [0, 1]}, over("signal", 1, kind="port")]))
    proxy = {step.block: [s for s in found if s.block == step.block] for step in found}
    assert [step.kind for step in proxy[2]] == ["put", "signal"]
    assert proxy[2][1].after == ()


def test_put_with_signal_and_flush() -> None:
    pwsf = move("pwsf", [near("i", 0)], [far(0, 0)], channel_ids=[0], channel_type="port")
    push, nop = (steps(pair([pwsf, NOP]))[k] for k in (2, 1))
    assert (push.kind, push.posts, push.background) == ("pwsf", ("port channel 0->1 #0",), True)
    flush = steps(pair([pwsf, NOP]))[0]
    assert (flush.kind, flush.after) == ("flush", (StepRef(1, 0),))
    assert nop.after is None


def test_channels_pair_by_their_number_between_two_ranks() -> None:
    def ops(*ids: int) -> list[Data]:
        return [over("signal", *ids), over("wait", *ids)]

    gpus = [{**pair(ops(0, 1))["gpus"][0], "id": rank, "remote_buffers": []} for rank in range(3)]
    peers = ([1, 2, 1], [0, 0, 2], [0, 1])
    lists = ([0, 2], [1, 0], [0, 1])
    for one, to, ids in zip(gpus, peers, lists, strict=True):
        one["channels"] = [{"channel_type": "memory", "connected_to": to}]
        one["threadblocks"][0]["channels"] = [{"channel_type": "memory", "channel_ids": ids}]
        one["threadblocks"][0] = {**one["threadblocks"][0], "remote_buffer_refs": []}
    posts = [step.posts[0] for step in steps(plan(json.loads(json.dumps(gpus)))) if step.posts]
    assert posts == [
        "memory channel 0->1 #0",
        "memory channel 0->1 #1",
        "memory channel 1->0 #1",
        "memory channel 1->0 #0",
        "memory channel 2->0 #0",
        "memory channel 2->1 #0",
    ]


def test_semaphores_and_barriers() -> None:
    barrier = op("barrier", barrier_id=3, num_threadblocks=2)
    schedule = read(
        lonely(
            [op("sem_acquire", semaphore_ids=[1]), NOP, barrier],
            [barrier, op("sem_release", semaphore_ids=[1, 0])],
            semaphores=(0, 2),
        )
    )
    assert schedule.initial == (("semaphore 1 of rank 0", 2),)
    first, second = schedule.steps[2], schedule.steps[3]
    assert (first.barrier, second.barrier) == ("3", "3")
    assert schedule.steps[0].awaits == ("semaphore 1 of rank 0",)
    assert [step.posts[0][:11] for step in schedule.steps[4:]] == ["semaphore 1", "semaphore 0"]
    assert not any(violation.steps for violation in verify(schedule).violations)


def test_a_barrier_of_more_blocks_than_name_it_is_never_passed() -> None:
    report = verify(read(lonely([op("barrier", barrier_id=0, num_threadblocks=2)])))
    assert report.verdict == "invalid"
    assert "for 2 blocks, though 1 name it" in report.violations[0].message
    alone = lonely([op("barrier", barrier_id=0, num_threadblocks=1)])
    assert steps(alone)[0].barrier is None


def test_reductions_read_all_and_write_all() -> None:
    rres = move("rres", [near("i", 0), far(0, 0)], [near("o", 0), far(1, 2)])
    (found,) = steps(pair([rres]))
    assert [span.rank for span in found.reads] == [0, 1]
    assert [(span.rank, span.start) for span in found.writes] == [(0, 0), (1, 2)]


def test_packet_operands() -> None:
    respkt = move("respkt", [near("i", 0), near("s", 1)], [near("o", 0), far(2, 2)])
    (found,) = steps(pair([respkt], protocol="LL"))
    assert [span.packet for span in (*found.reads, *found.writes)] == [False, True, False, True]


def test_a_port_packet_read_waits_before_the_block_goes_on() -> None:
    rppkt = move("rppkt", [near("s", 0)], [far(2, 1)], channel_ids=[0], channel_type="port")
    wait, sync, push = steps(pair([rppkt], protocol="LL"))
    assert (wait.reads[0].packet, wait.writes) == (True, ())
    assert sync.after is None
    assert push.after == _refs(1)
    assert (push.reads[0].packet, push.writes[0].packet) == (False, True)


def test_scratch_with_packets_and_plain_data() -> None:
    packet = move("cpkt", [near("i", 0)], [near("s", 1)])
    apart = lonely([packet, move("copy", [near("i", 0)], [near("s", 1)])], protocol="LL")
    found = read(apart)
    assert found.sizes[0].scratch == 12
    assert found.steps[1].writes == (Span(0, Buffer.SCRATCH, 5, 1),)
    clash = lonely([packet, move("copy", [near("i", 0)], [near("s", 3)])], protocol="LL")
    with pytest.raises(InputError, match="both as packets and plainly"):
        read(clash)


def test_a_switch_operation_reads_and_writes_every_rank() -> None:
    data = pair([move("glres", [group(0, 1)], [group(0, 1)], channel_type="switch")])
    switch = {
        "channel_type": "switch",
        "buffer_type": "i",
        "rank_groups": [{"size": 2, "ranks": [0, 1]}],
    }
    data["gpus"][0]["channels"].append(switch)
    use = {"channel_type": "switch", "channel_ids": [0]}
    data["gpus"][0]["threadblocks"][0]["channels"].append(use)
    (found,) = steps(data)
    assert [str(span) for span in found.reads] == ["i[1] of rank 0", "i[1] of rank 1"]
    assert found.reads == found.writes


def test_thread_block_groups_share_the_data() -> None:
    copies = [
        [
            {
                **move("copy", [near("i", 0, 2)], [near("o", 2, 2)]),
                "tbg_info": {"tb_id": k, "tbg_size": 3},
            }
        ]
        for k in range(3)
    ]
    schedule = read(lonely(copies[0], *copies[1:]))
    assert schedule.sizes[0].input == 12
    assert [str(step.writes[0]) for step in schedule.steps] == [
        "o[6..7] of rank 0",
        "o[8..9] of rank 0",
        "o[10..11] of rank 0",
    ]


def test_a_pipeline_runs_unit_by_unit() -> None:
    copy = move("copy", [near("i", 1)], [near("s", 1)])
    schedule = read(lonely([pipeline([copy, NOP]), copy]), iterations=3)
    assert schedule.sizes[0] == Sizes(12, 12, 12)
    found = [step for step in schedule.steps if step.kind == "copy"]
    assert [str(step.reads[0]) for step in found] == [
        *(f"i[{k}] of rank 0" for k in (3, 4, 5)),
        "i[3..5] of rank 0",
    ]
    assert "pipelines are checked for 3 units per chunk" in schedule.warnings


def test_a_pipeline_over_more_chunks_than_its_operation_runs_on_past_the_end() -> None:
    copy = move("copy", [near("i", 0)], [near("s", 0)])
    found = steps(lonely([pipeline([copy], chunks=2)]), iterations=2)
    assert [step.reads[0].start for step in found] == [0, 1, 3]


def test_pipelines_of_different_units() -> None:
    copy = move("copy", [near("i", 0)], [near("s", 0)])
    one, two = pipeline([copy], unit=1024), pipeline([copy], unit=1536)
    found = steps(lonely([one], [two]), iterations=1)
    assert [step.count for step in found] == [2, 2, 2, 3, 3]


def test_scratch_wraps_around_where_the_runtime_does() -> None:
    copy = move("copy", [near("i", 1)], [near("s", 1)])
    data = lonely([pipeline([copy], unit=1 << 22)], reuse_resources=True)
    within = read(data, iterations=4)
    assert [step.writes[0].start for step in within.steps] == [4, 5, 6, 7]
    assert any("wrap around" in text and "5 units" in text for text in within.warnings)
    beyond = read(data, iterations=6)
    assert beyond.sizes[0] == Sizes(24, 24, 16)
    assert [step.writes[0].start for step in beyond.steps] == [4, 5, 6, 7, 4, 5]
    fixed = read({**data, "reuse_resources": False}, iterations=6)
    assert [step.writes[0].start for step in fixed.steps] == [6, 7, 8, 9, 10, 11]


def test_producer_without_back_pressure_is_wrong_only_where_scratch_wraps() -> None:
    def produce(acquire: list[Data]) -> Data:
        copy_in = move("copy", [near("i", 0)], [near("s", 0)])
        copy_out = move("copy", [near("s", 0)], [near("o", 0)])
        full, free = op("sem_release", semaphore_ids=[0]), op("sem_release", semaphore_ids=[1])
        taken = op("sem_acquire", semaphore_ids=[0])
        return lonely(
            [pipeline([*acquire, copy_in, NOP, full], unit=1 << 24)],
            [pipeline([taken, NOP, copy_out, NOP, free], unit=1 << 24)],
            sizes=(1, 1, 1),
            semaphores=(0, 4),
            reuse_resources=True,
            inplace=False,
        )

    waits = [op("sem_acquire", semaphore_ids=[1]), NOP]
    assert verify(read(produce([]), iterations=4)).verdict == "valid"
    assert verify(read(produce([]), iterations=5)).verdict != "valid"
    assert verify(read(produce(waits), iterations=5)).verdict == "valid"


def test_the_collective_and_its_variants() -> None:
    data = pair([], collective="Reduce-Scatter")
    for one in data["gpus"]:
        one["output_chunks"] = 2
    assert read(data).contract.collective == "reduce_scatter"
    assert read(data, collective="broadcast", root=1).contract.goals[0].parts[0].rank == 1
    assert len(read(pair([], collective="alltoall")).contract.goals) == 8
    with pytest.raises(InputError, match=r"'custom' has no contract.* with --collective"):
        read({**data, "collective": "custom"})
