"""MSCCL++ plans that are refused, each in one line, and what is only warned of."""

from __future__ import annotations

from typing import Any

import pytest

from p2smt.errors import InputError
from p2smt.interop.mscclpp import read as mscclpp_reader
from p2smt.schedules.verify.verify import verify
from tests.interop.mscclpp.plans import (
    NOP,
    Data,
    all_gather,
    far,
    lonely,
    move,
    near,
    op,
    over,
    pair,
    pipeline,
    read,
    steps,
)


@pytest.mark.parametrize(
    ("change", "part"),
    [
        ({"gpus": []}, "has 0 entries"),
        ({"gpus": 3}, "gpus: must be a list, not a number"),
        ({"protocol": "LL9"}, "'LL9' is not Simple or LL"),
        ({"inplace": "yes"}, "inplace: must be true or false"),
        ({"collective": 1}, "collective: must be text"),
    ],
)
def test_wrong_plans(change: Data, part: str) -> None:
    with pytest.raises(InputError, match=part) as caught:
        read({**all_gather(), **change})
    assert str(caught.value).startswith("plan.json, line ")


_COPY = move("copy", [near("i", 0)], [near("s", 0)])


@pytest.mark.parametrize(
    ("found", "part"),
    [
        (op("dance"), "'dance' is not an operation"),
        ({}, "'name' is missing"),
        (over("signal", 7), r"channel_ids\[0\]: memory channel 7 does not exist"),
        (over("signal", 0, kind="none"), "signal does not run over none channels"),
        (over("flush", 0), "flush does not run over memory channels"),
        (over("signal", 0, kind="radio"), "'radio' is not one of"),
        (move("put", [near("i", 0)], [far(9, 0)]), "remote buffer for memory access 9 does not"),
        (move("put", [near("i", 0)], [near("o", 0)]), r"dst_buff\[0\] of put must be remote"),
        (move("put", [near("i", 0), near("i", 1)], [far(0, 0)]), "2 sources and 1 destinations"),
        (move("copy", [], [near("o", 0)]), "copy has 0 entries in src_buff, not 1"),
        (move("copy", [near("i", 0)] * 2, [near("o", 0)]), "2 entries in src_buff, not 1"),
        (move("copy", [near("x", 0)], [near("o", 0)]), "'x' is not one of i, o, s"),
        (move("copy", [near("i", -1)], [near("o", 0)]), "-1 is not between 0"),
        (move("copy", [near("i", 0, 0)], [near("o", 0)]), "0 is not between 1"),
        (move("copy", [near("i", 0, 1 << 70)], [near("o", 0)]), "the number is not between"),
        (move("upkt", [near("i", 0)], [near("o", 0)]), "packets, which are only in scratch"),
        (move("get", [far(0, 0)], [near("o", 0)], channel_type="port"), "does not run over port"),
        (
            move("put", [near("i", 0)], [far(0, 0)], channel_type="port"),
            "put has 0 channel_ids for 1 transfers",
        ),
        (op("sem_acquire", semaphore_ids=[0]), "semaphore 0 does not exist"),
        (op("barrier", num_threadblocks=1), "'barrier_id' is missing"),
        (op("barrier", barrier_id=0, num_threadblocks=0), "0 is not between 1"),
        (pipeline([pipeline([])]), "pipeline in a pipeline"),
        (pipeline([], unit=0), "0 is not between 1"),
        ({**_COPY, "tbg_info": {"tb_id": 2, "tbg_size": 2}}, "2 is not between 0 and 1"),
    ],
)
def test_wrong_operations(found: Data, part: str) -> None:
    with pytest.raises(InputError, match=part) as caught:
        steps(pair([NOP, found]))
    message = str(caught.value)
    assert "gpus[0].threadblocks[0].ops[1]" in message
    assert "\n" not in message


def _set(data: Data, keys: list[Any], value: object) -> Data:
    inner: Any = data
    for key in keys[:-1]:
        inner = inner[key]
    inner[keys[-1]] = value
    return data


@pytest.mark.parametrize(
    ("keys", "value", "part"),
    [
        (["id"], 1, "must be 0, the place in the list"),
        (["input_chunks"], 3, "input_chunks differ between ranks: 3 and 4"),
        (["channels", 0, "connected_to", 0], 0, "rank 0 is joined to itself"),
        (["channels", 0, "connected_to", 0], 2, "2 is not between 0 and 1"),
        (["remote_buffers", 0, "rank"], 5, "5 is not between 0 and 1"),
        (["remote_buffers", 0, "access_channel_types"], [], "not open to memory access"),
        (["threadblocks", 0, "id"], 4, "must be 0, the place"),
        (["threadblocks", 0, "channels", 0, "channel_ids", 0], 8, "memory channel 8 does not"),
    ],
)
def test_wrong_gpus(keys: list[Any], value: object, part: str) -> None:
    with pytest.raises(InputError, match=part):
        read(_set(pair([NOP]), ["gpus", 0, *keys], value))


def test_a_channel_to_another_rank_than_the_buffer_is_refused() -> None:
    put = move("put", [near("i", 0)], [far(0, 0)], channel_ids=[0], channel_type="port")
    data = pair([put])
    data["gpus"].append({**data["gpus"][1], "id": 2})
    data["gpus"][0]["remote_buffers"][0]["rank"] = 2
    with pytest.raises(InputError, match="writes to rank 2 over a channel to 1"):
        read(data)


def test_out_of_bounds_is_left_to_the_checker() -> None:
    report = verify(read(lonely([move("copy", [near("i", 9)], [near("o", 0)])])))
    assert [violation.kind for violation in report.violations] == ["out-of-bounds"]


def test_limits_on_size(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match="more than 524288 chunks"):
        read(lonely([], sizes=(1 << 20, 1 << 20, 0)))
    with pytest.raises(InputError, match="more than 8388608 scratch chunks"):
        read(lonely([pipeline([NOP])], sizes=(1, 1, 1 << 20)), iterations=9)
    with pytest.raises(InputError, match="0 iterations"):
        read(lonely([]), iterations=0)
    with pytest.raises(InputError, match="too finely"):
        read(lonely([pipeline([_COPY], unit=u) for u in (1009, 1013)]))
    monkeypatch.setattr(mscclpp_reader, "MAX_STEPS", 50)
    with pytest.raises(InputError, match="more than 50 steps"):
        read(lonely([pipeline([_COPY], chunks=1 << 20)]))


def test_warnings_name_differences_of_the_runtime() -> None:
    get = move("get", [far(0, 1)], [near("s", 0)])
    pws = move("pws", [near("i", 0)], [far(0, 0)])
    least = move("re", [near("i", 0), near("s", 0)], [near("o", 0)], reduce_op="max")
    text = " ".join(read(pair([get, pws, least, over("flush", 0, kind="port")])).warnings)
    for part in ("exchanges source", "sends no signal", "'max'", "flush"):
        assert part in text
    assert read(all_gather()).warnings == ()
