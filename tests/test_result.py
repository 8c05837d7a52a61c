"""Items that are handed out as long as there is time."""

from __future__ import annotations

import pytest

from p2smt.errors import OutOfTimeError
from p2smt.result import LOOK_EVERY, SearchLimits, StopWatch, timely

LATE = StopWatch.start(SearchLimits(time_limit_s=0))
FREE = StopWatch.start(SearchLimits())


@pytest.mark.parametrize("count", [0, 1, LOOK_EVERY - 1, LOOK_EVERY, 2 * LOOK_EVERY + 1])
def test_with_time_all_items_come_in_their_order(count: int) -> None:
    assert list(timely(range(count), FREE)) == list(timely(range(count), None)) == [*range(count)]


def test_without_time_the_first_come_alone() -> None:
    assert list(timely(range(LOOK_EVERY - 1), LATE)) == [*range(LOOK_EVERY - 1)]
    came: list[int] = []
    with pytest.raises(OutOfTimeError):
        came.extend(timely(range(5 * LOOK_EVERY), LATE))
    assert came == [*range(LOOK_EVERY)]
