"""Traces against what the Trace Event Format says of its fields."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from p2smt.collectives import contract as contracts
from p2smt.schedules.cost.predict import schedule_cost
from p2smt.schedules.cost.trace import Item, Json, cost_trace, order_trace
from p2smt.schedules.index import index_of
from p2smt.schedules.model import Schedule
from p2smt.schedules.verify.deadlock import local_order, run
from p2smt.schedules.verify.report import Kind, Violation
from p2smt.schedules.verify.verify import verify
from tests.schedules.building import Blocks, at
from tests.schedules.cost.test_predict import flat
from tests.schedules.small_schedules import SMALL, ring_all_reduce

FIELDS = {
    "X": {"name", "cat", "ph", "pid", "tid", "ts", "dur", "args"},
    "s": {"name", "cat", "ph", "pid", "tid", "ts", "id"},
    "f": {"name", "cat", "ph", "pid", "tid", "ts", "id", "bp"},
}
OPTIONAL = {"cname"}
NAMED = {"process_name": "name", "thread_name": "name", "process_sort_index": "sort_index"}
# Reserved colour names of the format (base/color_scheme in the trace viewer).
COLOURS = {"good", "bad", "terrible", "black", "grey", "white", "yellow", "olive"}


def events(trace: Json, phase: str) -> list[dict[str, Any]]:
    return [event for event in trace["traceEvents"] if event["ph"] == phase]


def some_order(schedule: Schedule) -> list[int]:
    index = index_of(schedule)
    return run(index, local_order(index), 8).order


def check_format(trace: Json) -> None:
    """Everything that the format asks for, and nothing else."""
    assert json.loads(json.dumps(trace, allow_nan=False)) == trace
    assert set(trace) == {"traceEvents", "displayTimeUnit", "otherData"}
    assert trace["displayTimeUnit"] in ("ms", "ns")
    for event in trace["traceEvents"]:
        assert isinstance(event["pid"], int)
        if event["ph"] == "M":
            assert set(event["args"]) == {NAMED[event["name"]]}
            assert ("tid" in event) == (event["name"] == "thread_name")
            continue
        assert FIELDS[event["ph"]] <= set(event) <= FIELDS[event["ph"]] | OPTIONAL
        assert isinstance(event["tid"], int)
        assert event["ts"] >= 0
        assert event.get("cname", "good") in COLOURS
    check_threads(trace)
    check_flows(trace)


def check_threads(trace: Json) -> None:
    """Threads are named, and their complete events do not overlap."""
    named = {(e["pid"], e["tid"]) for e in events(trace, "M") if e["name"] == "thread_name"}
    ends: dict[tuple[int, int], float] = {}
    for event in sorted(events(trace, "X"), key=lambda e: (e["ts"], e["dur"])):
        thread = event["pid"], event["tid"]
        assert thread in named
        assert event["dur"] >= 0
        assert event["ts"] >= ends.get(thread, 0.0) - 1e-9
        ends[thread] = event["ts"] + event["dur"]


def check_flows(trace: Json) -> None:
    """Each flow begins once and ends once, later, on slices of their threads."""
    begins = {event["id"]: event for event in events(trace, "s")}
    ends = {event["id"]: event for event in events(trace, "f")}
    assert len(begins) == len(events(trace, "s"))
    assert begins.keys() == ends.keys()
    slices = Counter((e["pid"], e["tid"], e["ts"]) for e in events(trace, "X"))
    for number, begin in begins.items():
        end = ends[number]
        assert (begin["name"], begin["cat"]) == (end["name"], end["cat"])
        assert begin["ts"] <= end["ts"]
        assert end["bp"] == "e"
        for event in (begin, end):
            assert slices[event["pid"], event["tid"], event["ts"]]


def traces(schedule: Schedule) -> Iterator[Json]:
    yield cost_trace(schedule, schedule_cost(schedule, flat(schedule.ranks), 1e6))
    yield order_trace(schedule, some_order(schedule))


@pytest.mark.parametrize("name", sorted(SMALL))
def test_traces_follow_the_format(name: str) -> None:
    schedule = SMALL[name]()
    for trace in traces(schedule):
        check_format(trace)
        assert len(events(trace, "X")) == len(schedule.steps)
        assert Counter(e["pid"] for e in events(trace, "X")) == Counter(
            step.rank for step in schedule.steps
        )


def test_every_message_and_signal_has_an_arrow() -> None:
    ring = ring_all_reduce(4)
    for trace in traces(ring):
        arrows = events(trace, "s")
        assert Counter(e["cat"] for e in arrows) == {"message": 4 * 6}
        assert all(e["name"].startswith(f"{e['pid']}->") for e in arrows)
        ends = {e["id"]: e for e in events(trace, "f")}
        assert all(ends[e["id"]]["pid"] == (e["pid"] + 1) % 4 for e in arrows)
    for trace in traces(SMALL["puts 3"]()):
        assert Counter(e["cat"] for e in events(trace, "s")) == {"signal": 6}


def test_predicted_times_are_in_microseconds() -> None:
    schedule = ring_all_reduce(3)
    cost = schedule_cost(schedule, flat(3), 3e6)
    trace = cost_trace(schedule, cost)
    for event, start, end in zip(events(trace, "X"), cost.starts_s, cost.finishes_s, strict=True):
        assert event["ts"] == pytest.approx(1e6 * start)
        assert event["ts"] + event["dur"] == pytest.approx(1e6 * end)
    assert trace["otherData"]["time_us"] == pytest.approx(1e6 * cost.time_s)
    assert trace["otherData"]["bottleneck"] == "gpu 0 in"
    critical = [n for n, e in enumerate(events(trace, "X")) if e["args"].get("critical")]
    assert critical == sorted(cost.critical)


def test_what_is_known_of_a_step_is_in_its_arguments() -> None:
    blocks = Blocks()
    blocks.send(0, 0, 1, "i0", count=2, line=7)
    blocks.receive("r", 1, 3, 0, "o0", count=2)
    schedule = blocks.schedule("two", contracts.contract("broadcast", 2, 2, in_place=True))
    sent, received = events(order_trace(schedule, (0, 1)), "X")
    assert sent["args"] == {
        "kind": "s",
        "block": 0,
        "step": 0,
        "line": 7,
        "chunks": 2,
        "reads": ["i[0..1] of rank 0"],
        "send": "0->1 channel 0",
    }
    assert received["args"]["writes"] == ["o[0..1] of rank 1"]
    assert (received["pid"], received["tid"]) == (1, 3)


def test_what_runs_beside_a_block_has_a_thread_of_its_own() -> None:
    blocks = Blocks()
    for chunk in range(2):
        put = {"reads": (at(f"i{chunk}", 0),), "writes": (at(f"o{chunk}", 1),)}
        blocks.add(0, 0, "put", **put, after=(), background=True)
    schedule = blocks.schedule("beside", contracts.contract("broadcast", 2, 2, in_place=False))
    trace = cost_trace(schedule, schedule_cost(schedule, flat(2), 2e6))
    check_format(trace)
    assert [event["tid"] for event in events(trace, "X")] == [0, 1]
    named = [e["args"]["name"] for e in events(trace, "M") if e["name"] == "thread_name"]
    assert named == ["block 0", "block 0, beside it"]


def test_an_interleaving_takes_one_microsecond_for_each_item() -> None:
    schedule = ring_all_reduce(2)
    order = some_order(schedule)
    trace = order_trace(schedule, order)
    assert [(e["ts"], e["dur"]) for e in events(trace, "X")] == [(k, 1) for k in range(len(order))]
    assert [e["pid"] for e in events(trace, "X")] == [schedule.steps[n].rank for n in order]


def test_phases_of_a_step_are_slices_of_their_own() -> None:
    schedule = ring_all_reduce(2)
    first, second, *rest = some_order(schedule)
    order: list[Item] = [(first, "read"), second, (first, "write"), *rest]
    trace = order_trace(schedule, order)
    check_format(trace)
    assert [e["name"] for e in events(trace, "X")][:3] == ["s read", "s", "s write"]
    sender = schedule.steps[first].rank
    (arrow,) = [e for e in events(trace, "s") if e["pid"] == sender and e["ts"] < 3]
    assert arrow["ts"] == 2, "the message is there after the last phase"


def test_the_steps_of_a_violation_are_marked() -> None:
    schedule = ring_all_reduce(2)
    violation = Violation(
        Kind.DOUBLED, "twice", (2, 0), rank=1, chunk=3, details=("came from rank 0",)
    )
    trace = order_trace(schedule, some_order(schedule), violation)
    check_format(trace)
    marked = {
        (e["pid"], e["args"]["step"]): (e["cname"], e["args"])
        for e in events(trace, "X")
        if "cname" in e
    }
    culprit, other = schedule.steps[2], schedule.steps[0]
    assert len(marked) == 2
    colour, args = marked[culprit.rank, culprit.index]
    assert colour == "terrible"
    assert (args["wrong"], args["message"]) == ("o[3] of rank 1", "twice")
    assert args["violation"] == "doubled-contribution"
    colour, args = marked[other.rank, other.index]
    assert (colour, args["wrong"]) == ("bad", "o[3] of rank 1")
    assert trace["otherData"]["message"] == "twice"
    assert trace["otherData"]["details"] == ["came from rank 0"]


def test_the_violations_of_a_check_can_be_shown() -> None:
    blocks = Blocks()
    blocks.send(0, 0, 1, "i0")
    blocks.receive("rrc", 1, 0, 0, "i0")  # adds to what is there, instead of replacing it
    schedule = blocks.schedule("sum", contracts.contract("broadcast", 2, 1, in_place=True))
    violations = verify(schedule).violations
    assert violations
    for violation in violations:
        trace = order_trace(schedule, violation.order or some_order(schedule), violation)
        check_format(trace)
        colours = [e["cname"] for e in events(trace, "X") if "cname" in e]
        assert "terrible" in colours


def test_messages_that_are_never_received_have_no_arrow() -> None:
    blocks = Blocks()
    for _ in range(2):
        blocks.send(0, 0, 1, "i0")
    blocks.receive("r", 1, 0, 0, "o0")
    schedule = blocks.schedule(
        "one too many", contracts.contract("broadcast", 2, 1, in_place=False)
    )
    trace = order_trace(schedule, (0, 2, 1))
    check_format(trace)
    assert [e["ts"] for e in events(trace, "s")] == [0]
