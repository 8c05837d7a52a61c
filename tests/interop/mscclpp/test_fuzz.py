"""Damaged plans: a schedule or one clear line, whatever is in the file."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from hypothesis import given, settings
from hypothesis import strategies as st

from p2smt.interop.mscclpp.read import read_mscclpp
from p2smt.interop.mscclpp.write import write_mscclpp
from p2smt.interop.reading import Reading
from p2smt.schedules.model import Schedule
from tests.interop.mscclpp.plans import NOP, all_gather, far, lonely, move, near, op, over, pair
from tests.refusals import found_or_refusal
from tests.strategies.draws import Draws, draws
from tests.tiers import examples_of

if TYPE_CHECKING:
    from collections.abc import Iterator

_COPY = move("copy", [near("i", 0)], [near("s", 0)])
_PLANS = (
    all_gather(),
    pair(
        [
            move("pwsf", [near("i", 0)], [far(0, 1)], channel_ids=[0], channel_type="port"),
            over("wait", 0, 1),
            NOP,
            move("rres", [near("i", 0), far(0, 0)], [near("i", 0), far(1, 0)]),
            {**_COPY, "tbg_info": {"tb_id": 0, "tbg_size": 2}},
        ]
    ),
    lonely(
        [
            op(
                "pipeline",
                iter_context={"unit_size": 1 << 20, "num_chunks": 1},
                ops=[_COPY, NOP, op("sem_release", semaphore_ids=[0])],
            ),
            op("barrier", barrier_id=0, num_threadblocks=1),
        ],
        semaphores=(1,),
        reuse_resources=True,
    ),
)
_VALUES = (
    st.none()
    | st.booleans()
    | st.integers(-3, 20)
    | st.sampled_from([2**31, 2**32, 2**64, -(2**64), 0.5, 1e300])
    | st.text(max_size=5)
    | st.sampled_from(["i", "o", "s", "memory", "port", "switch", "put", "nop", "LL", "glres"])
    | st.lists(st.integers(-1, 3), max_size=3)
    | st.dictionaries(st.sampled_from(["type", "index", "size", "name"]), st.integers(0, 3))
)


def _places(data: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    items = data.items() if isinstance(data, dict) else enumerate(data)
    for key, inner in items:
        yield (*path, key)
        if isinstance(inner, dict | list):
            yield from _places(inner, (*path, key))


def _read(text: str) -> Schedule | None:
    """The schedule, or nothing after one line about the file."""
    found, said = found_or_refusal(read_mscclpp, text, "fuzz.json", Reading(iterations=2))
    assert found or (said.startswith("fuzz.json") and len(said) < 1200)
    return found


@settings(max_examples=examples_of(300), deadline=None)
@given(st.sampled_from(_PLANS), draws())
def test_changed_values(plan: Any, draw: Draws) -> None:
    data = json.loads(json.dumps(plan))
    for _ in range(draw.draw(st.integers(1, 3))):
        path = draw.draw(st.sampled_from(list(_places(data))))
        inner = data
        for key in path[:-1]:
            inner = inner[key]
        if draw.draw(st.booleans()):
            inner[path[-1]] = draw.draw(_VALUES)
        else:
            del inner[path[-1]]
    schedule = _read(json.dumps(data))
    if schedule is not None:
        _consistent(schedule)


def _consistent(schedule: Schedule) -> None:
    """References lead to earlier steps of the rank, counts agree, and it can be written or not."""
    sizes: dict[tuple[int, int], int] = {}
    for step in schedule.steps:
        key = (step.rank, step.block)
        assert step.index == sizes.get(key, 0)
        sizes[key] = step.index + 1
        assert all(span.count == step.count for span in (*step.reads, *step.writes))
    for step in schedule.steps:
        for ref in step.after or ():
            assert ref.index < sizes[step.rank, ref.block]
            assert ref.block != step.block or ref.index < step.index
    text, _ = found_or_refusal(write_mscclpp, schedule)
    if text is not None:
        assert write_mscclpp(read_mscclpp(text, "again.json")) == text


@given(st.sampled_from(_PLANS), draws())
def test_cut_and_spliced_texts(plan: Any, draw: Draws) -> None:
    text = json.dumps(plan, indent=1)
    start = draw.draw(st.integers(0, len(text)))
    end = draw.draw(st.integers(start, len(text)))
    _read(text[:start] + draw.draw(st.text(max_size=4)) + text[end:])


@given(st.text(max_size=60) | st.text('{}[]",:\\01truefalsn', max_size=60))
def test_any_text(text: str) -> None:
    assert _read(text) is None
