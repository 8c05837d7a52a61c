"""Steps on packets get their turn chunk by chunk, as far as a thread's order of chunks allows."""

from __future__ import annotations

import pytest

from p2smt.schedules.model import Schedule
from p2smt.schedules.verify.report import Kind, Verdict
from p2smt.schedules.verify.verify import DEPENDS, verify
from tests.schedules.building import Blocks, at
from tests.schedules.oracles.interleavings import explore
from tests.schedules.oracles.publication import with_signals
from tests.schedules.verify.test_packets import schedule_of

UP, DOWN, ROUND = "up", "down", "round"


def chain(way: str, cut: str = "") -> Schedule:
    """A packet that goes to and fro between the ranks, from chunk to chunk: rank 0 passes both
    chunks on to rank 1, which passes them back to a neighbouring chunk.

    way: up (from chunk 0 to 1), down, or round and round.
    cut: "", "side by side" or "in sequence": a step for each chunk, in blocks of its own or not.
    """
    b = Blocks()
    first, last = {UP: (0, 2), DOWN: (2, 0), ROUND: (3, 3)}[way]
    back = 0 if way == DOWN else 1
    here = 1 if way == DOWN else 0

    def passed(rank: int, source: int, target: int) -> None:
        to = 1 - rank
        for k in range(2) if cut else (0,):
            count = 1 if cut else 2
            reads = at(f"s{source + k}", rank, count, packet=True)
            writes = at(f"s{target + k}", to, count, packet=True)
            block = 1 + k if cut == "side by side" else 1
            b.add(rank, block, "rppkt", count=count, reads=(reads,), writes=(writes,))

    b.add(0, 0, "ppkt", reads=(at("i0", 0),), writes=(at(f"s{first}", 0, packet=True),))
    passed(0, here, 0)
    passed(1, 0, here if way == ROUND else back)
    b.add(0, 3, "upkt", reads=(at(f"s{last}", 0, packet=True),), writes=(at("o0", 0),))
    return schedule_of(b, (0, 0, 0, 0))


@pytest.mark.parametrize(
    ("way", "verdict", "side_by_side", "in_sequence"),
    [
        (UP, Verdict.VALID, True, True),
        (DOWN, Verdict.UNKNOWN, True, False),
        (ROUND, Verdict.INVALID, False, False),
    ],
)
def test_progress_is_that_of_the_chunks(
    way: str, verdict: Verdict, *, side_by_side: bool, in_sequence: bool
) -> None:
    assert explore(chain(way, "side by side")).right is side_by_side
    assert explore(chain(way, "in sequence")).right is in_sequence
    assert verify(chain(way)).verdict is verdict


def test_why_it_is_unknown_is_said() -> None:
    assert verify(chain(DOWN)).reason == DEPENDS


def test_a_circle_of_every_chunk_is_a_deadlock() -> None:
    (broken,) = verify(chain(ROUND)).violations
    assert broken.kind is Kind.DEADLOCK
    assert verify(with_signals(chain(ROUND))).verdict is Verdict.INVALID


def test_a_signal_at_the_end_of_a_step_waits_for_all_of_its_chunks() -> None:
    """What a signal waits for is the whole step: beside packets it closes the circle."""
    assert verify(with_signals(chain(UP))).violations[0].kind is Kind.DEADLOCK
