"""Which rows ranks hold, and each rule by which a step cannot be carried out."""

from __future__ import annotations

from itertools import pairwise
from typing import Final

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from p2smt.collectives.names import Collective, RequestKind
from p2smt.cost.algorithms import Operation
from p2smt.errors import InputError
from p2smt.parallelism.request import MAX_CHUNKS
from p2smt.runtime.job import Groups, Job, JobRequest, JobStep, ordered
from p2smt.runtime.programs.regions import StepError, count, moves_of, rows, runs_of
from tests.runtime.tools import ALL, BLUE, GATHER, SCATTER, program_request, request, whole

AR, RS, AG, RED, BC = Collective
EXCHANGE: Final = RequestKind.ALL_TO_ALL


def step(collective: Operation, *groups: tuple[int, ...]) -> JobStep:
    return JobStep(collective.value, collective, groups)


def rows_after(kind: RequestKind, ranks: int, *steps: JobStep) -> list[list[int]]:
    """The rows that each rank ends with."""
    asked = request(kind, steps, whole(ranks))
    found = moves_of(asked, asked.steps, ranks)
    return [np.flatnonzero(own).tolist() for own in found.held]


@given(st.sets(st.integers(0, 40)))
def test_runs(chosen: set[int]) -> None:
    runs = runs_of(np.array(sorted(chosen), dtype=np.intp))
    assert list(rows(runs)) == sorted(chosen)
    assert count(runs) == len(chosen)
    assert all(a + length < b for (a, length), (b, _) in pairwise(runs))


def test_rows_of_each_collective() -> None:
    assert rows_after(ALL, 4, step(RS, (0, 1), (2, 3))) == [[0, 1], [2, 3], [0, 1], [2, 3]]
    strided = step(RS, (0, 2), (1, 3))
    assert rows_after(ALL, 4, strided, step(RS, (0, 1), (2, 3))) == [[0], [1], [2], [3]]
    assert rows_after(ALL, 4, step(RED, (0, 1), (2, 3))) == [[0, 1, 2, 3], [], [0, 1, 2, 3], []]
    assert rows_after(ALL, 4, step(RED, (0, 1)), step(BC, (0, 1)))[1] == [0, 1, 2, 3]
    assert rows_after(GATHER, 3, step(AG, (0, 2))) == [[0, 2], [1], [0, 2]]
    assert rows_after(GATHER, 3, step(BC, (0, 1)))[1] == [0, 1]


def test_a_broadcast_keeps_what_its_root_lacks() -> None:
    assert rows_after(GATHER, 2, step(BC, (0, 1))) == [[0], [0, 1]]


def test_parts_are_runs_of_what_is_left() -> None:
    asked = program_request(ALL, BLUE, (2, 2))
    first, across, gather = moves_of(asked, asked.steps, 4).steps
    assert [move.parts for move in first] == [(((0, 2),), ((2, 2),))] * 2
    assert [move.region for move in across] == [((0, 2),), ((2, 2),)]
    assert [move.region for move in gather] == [((0, 4),)] * 2


RULES = [
    (ALL, [step(RED, (0, 1)), step(AR, (0, 1))], 2, 1, "holds other rows than rank 0"),
    (ALL, [step(RED, (0, 1)), step(RED, (1, 2))], 2, 1, "holds nothing"),
    (ALL, [step(RED, (0, 1)), step(BC, (1, 2))], 2, 1, "holds nothing"),
    (ALL, [step(RS, (0, 1, 2))], 1, 0, "4 rows cannot be scattered evenly over 3 ranks"),
    (ALL, [step(AG, (0, 1))], 1, 1, "brings row 0, which another member brings too"),
    (ALL, [step(RED, (0, 1)), step(AG, (0, 1))], 2, 1, "brings 0 rows, rank 0 brings 4"),
    (GATHER, [step(AG, (0, 1)), step(AG, (0, 2))], 2, 2, "brings 1 rows, rank 0 brings 2"),
    (SCATTER, [step(RS, (0, 1)), step(AR, (0, 1))], 2, 1, "holds other rows than rank 0"),
    (EXCHANGE, [step(EXCHANGE, (1, 3))], 1, 1, "in a group of 2 ranks, the payload has 4 parts"),
    (EXCHANGE, [step(EXCHANGE, (0, 1))] * 2, 1, 0, "do not part the 4 ranks of the request evenly"),
    (EXCHANGE, [step(EXCHANGE, (0, 1, 2), (3,))] * 2, 1, 0, "do not part the 4 ranks"),
]


@pytest.mark.parametrize(("kind", "steps", "number", "rank", "text"), RULES)
def test_rules(kind: RequestKind, steps: list[JobStep], number: int, rank: int, text: str) -> None:
    with pytest.raises(StepError, match=text) as caught:
        rows_after(kind, 4, *steps)
    assert (caught.value.step, caught.value.rank) == (number, rank)
    assert str(caught.value).startswith(f"step {number}: rank {rank}: ")


# Jobs -------------------------------------------------------------------------------------


def test_groups_are_sorted() -> None:
    assert ordered([[3, 1], (2, 0)]) == ((1, 3), (0, 2))


@pytest.mark.parametrize(
    ("groups", "steps", "text"),
    [
        (((0, 1), (2,)), [], "its groups are not of one size"),
        ((), [], "its groups are not of one size"),
        (((0, 1), (1, 2)), [], "a rank is in two groups"),
        (((1, 0),), [], "not ascending"),
        (((0, 1),), [step(AR, (0, 1), (1, 2))], "step 1: a rank is in two groups"),
        (((0, 1),), [step(AR, (1, 0))], "step 1: a group's ranks are not ascending"),
        (((0, 1),), [step(AR, (0, 1)), step(AR)], "step 2: has no groups"),
        (((0, 1),), [step(AR, ())], "step 1: has no groups, or an empty one"),
    ],
)
def test_requests_are_checked(groups: Groups, steps: list[JobStep], text: str) -> None:
    with pytest.raises(InputError, match=text):
        request(ALL, steps, groups)


def test_shards_are_one_per_rank() -> None:
    with pytest.raises(InputError, match="names 3 shards, a group has 2 ranks"):
        request(SCATTER, [], ((0, 1),), shards=(0, 1, 2))


def test_ranks_and_chunks_are_in_range() -> None:
    fits: JobRequest = request(ALL, [step(AR, (0, 5))], ((0, 1),))
    assert Job(6, (fits,)).ranks == 6
    with pytest.raises(InputError, match="rank 5 is not among 0 to 4"):
        Job(5, (fits,))
    with pytest.raises(InputError, match=f"must be 1 to {MAX_CHUNKS}"):
        request(ALL, [], ((0, 1),), chunks=MAX_CHUNKS + 1)
