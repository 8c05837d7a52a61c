"""Each rule of the semantics is tripped and named: step, group, device and chunk."""

from __future__ import annotations

import numpy as np
import pytest

from p2smt.collectives.demand import demand_of
from p2smt.collectives.names import RequestKind
from p2smt.programs.semantics import Step, ViolationKind, run
from tests.oracles.semantics import AG, AR, BC, RED, RS, K
from tests.programs.test_semantics import ALL, GATHER, SCATTER, agrees, step

PAIRS = ([0, 1], [2, 3])
HALVED = step(RS, *PAIRS)
SUMMED = step(AR, *PAIRS)
ROOTED = step(RED, *PAIRS)
WHOLE = [0, 1, 2, 3]

# request, devices, steps: kind, step, group, rank, chunk
Expected = tuple[ViolationKind, int, tuple[int, ...], int | None, int | None]
BROKEN: dict[str, tuple[RequestKind, int, list[Step], Expected]] = {
    "group of one": (ALL, 2, [step(AR, [0], [1])], (K.GROUP_SHAPE, 1, (0,), None, None)),
    "out of order": (ALL, 4, [step(AR, [0, 1], [3, 2])], (K.GROUP_SHAPE, 1, (3, 2), None, None)),
    "unknown device": (ALL, 2, [step(AR, [0, 2])], (K.GROUP_SHAPE, 1, (0, 2), None, None)),
    "negative device": (ALL, 2, [step(AR, [-1, 0])], (K.GROUP_SHAPE, 1, (-1, 0), None, None)),
    "two groups": (ALL, 3, [step(AR, [0, 1], [1, 2])], (K.GROUP_SHAPE, 1, (1, 2), 1, None)),
    "no group": (
        ALL,
        2,
        [Step(AR, np.empty((0, 2), dtype=np.int64))],
        (K.GROUP_SHAPE, 1, (), None, None),
    ),
    "sum of shards": (ALL, 4, [HALVED, step(AR, WHOLE)], (K.ROWS_DIFFER, 2, (0, 1, 2, 3), 1, 0)),
    "scatter shards": (ALL, 4, [HALVED, HALVED], (K.ROWS_DIFFER, 2, (0, 1), 1, 0)),
    "reduce shards": (ALL, 4, [HALVED, ROOTED], (K.ROWS_DIFFER, 2, (0, 1), 1, 0)),
    "sum of one": (ALL, 4, [ROOTED, step(AR, [0, 2], [1, 3])], (K.NO_ROWS, 2, (1, 3), None, None)),
    "scatter none": (ALL, 4, [ROOTED, step(RS, [1, 3])], (K.NO_ROWS, 2, (1, 3), None, None)),
    "reduce none": (ALL, 4, [ROOTED, step(RED, [1, 3])], (K.NO_ROWS, 2, (1, 3), None, None)),
    "gather none": (ALL, 4, [ROOTED, step(AG, [2, 3])], (K.NO_ROWS, 2, (2, 3), 3, None)),
    "sum twice": (ALL, 4, [SUMMED, step(AR, WHOLE)], (K.DOUBLED, 2, (0, 1, 2, 3), 1, 0)),
    "sum again": (ALL, 4, [step(AR, [2, 3]), SUMMED], (K.DOUBLED, 2, (2, 3), 3, 0)),
    "scatter twice": (ALL, 4, [SUMMED, HALVED], (K.DOUBLED, 2, (0, 1), 1, 0)),
    "reduce twice": (ALL, 4, [SUMMED, ROOTED], (K.DOUBLED, 2, (0, 1), 1, 0)),
    "later chunk": (
        ALL,
        4,
        [HALVED, step(AR, [1, 3]), step(AR, [0, 2], [1, 3])],
        (K.DOUBLED, 3, (1, 3), 3, 2),
    ),
    "halves of three": (ALL, 3, [step(RS, [0, 1])], (K.NOT_DIVISIBLE, 1, (0, 1), None, None)),
    "gather too early": (ALL, 4, [step(AG, *PAIRS)], (K.ROWS_OVERLAP, 1, (0, 1), 1, 0)),
    "gather twice": (
        GATHER,
        4,
        [step(AG, [2, 3]), step(AG, *PAIRS)],
        (K.ROWS_OVERLAP, 2, (2, 3), 3, 2),
    ),
    "gather 2 and 1": (
        GATHER,
        4,
        [step(AG, [0, 1]), step(AG, [1, 2])],
        (K.COUNTS_DIFFER, 2, (1, 2), 2, None),
    ),
    "broadcast loses": (ALL, 4, [step(BC, *PAIRS)], (K.NOT_CONTAINED, 1, (0, 1), 1, 0)),
    "broadcast loses a chunk": (
        ALL,
        4,
        [HALVED, step(BC, [0, 2], [1, 3])],
        (K.NOT_CONTAINED, 2, (0, 2), 2, 0),
    ),
    "broadcast gains nothing": (
        ALL,
        4,
        [SUMMED, step(BC, *PAIRS)],
        (K.NOT_CONTAINED, 2, (0, 1), 1, None),
    ),
    "broadcast nothing": (
        ALL,
        4,
        [ROOTED, step(BC, [1, 3])],
        (K.NOT_CONTAINED, 2, (1, 3), 3, None),
    ),
    "after the goal": (ALL, 4, [step(AR, WHOLE), SUMMED], (K.AFTER_GOAL, 2, (), None, None)),
    "nothing done": (ALL, 2, [], (K.GOAL_MISSED, 0, (), 0, 0)),
    "half summed": (ALL, 4, [step(AR, [0, 1])], (K.GOAL_MISSED, 1, (), 0, 0)),
    "not gathered": (GATHER, 4, [step(AG, *PAIRS)], (K.GOAL_MISSED, 1, (), 0, 2)),
    "not scattered": (SCATTER, 4, [step(AR, WHOLE)], (K.GOAL_MISSED, 1, (), None, None)),
    "half scattered": (SCATTER, 4, [HALVED], (K.GOAL_MISSED, 1, (), None, None)),
}


@pytest.mark.parametrize("case", BROKEN)
def test_broken_rules_are_named(case: str) -> None:
    kind, devices, steps, expected = BROKEN[case]
    found = run(demand_of(kind), devices, steps).violation
    assert found is not None
    assert (found.kind, found.step, found.group, found.rank, found.chunk) == expected
    assert f"step {found.step}" in found.message
    if found.kind is not K.GROUP_SHAPE:
        agrees(kind, devices, steps)


def test_every_rule_is_tripped() -> None:
    others = {
        ViolationKind.UNEVEN_SLICES,  # tests/programs/test_parts.py
        ViolationKind.UNEVEN_BLOCKS,  # tests/programs/test_exchanges.py
    }
    assert {expected[0] for *_, expected in BROKEN.values()} == set(ViolationKind) - others
