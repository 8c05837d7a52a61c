"""How a stream is counted, and how samples of a counter are judged, without any network."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator, Sequence
from typing import cast

import pytest

from experiments.testbed import stream
from tests.experiments.testbed.counters import PACKET_BYTES, Sample, burst_bytes, too_fast


class Arrivals:
    """A socket and a clock: chunks of so many bytes that arrive at these times, then the end."""

    def __init__(self, chunks: Sequence[tuple[float, int]]) -> None:
        self._left: Iterator[tuple[float, int]] = iter(chunks)
        self._now_s = 0.0

    def recv_into(self, _: bytearray) -> int:
        self._now_s, count = next(self._left, (self._now_s, 0))
        return count

    def monotonic(self) -> float:
        return self._now_s


@pytest.mark.parametrize(
    ("chunks", "bytes_per_s"),
    [
        ([(0.5, 7), (1.0, 100), (1.5, 30), (3.0, 50), (3.1, 9)], 40.0),
        ([(0.5, 7), (2.0, 100), (3.1, 9)], 0.0),
        ([(0.5, 7)], 0.0),
        ([], 0.0),
    ],
)
def test_a_rate_is_what_follows_the_first_arrival_in_the_window(
    chunks: Sequence[tuple[float, int]], bytes_per_s: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    arrivals = Arrivals(chunks)
    monkeypatch.setattr(time, "monotonic", arrivals.monotonic)
    found = stream._arriving_bytes_per_s(cast(socket.socket, arrivals), 1.0, 3.0)
    monkeypatch.undo()
    assert found == bytes_per_s


def test_more_than_a_bucket_lets_through_is_found() -> None:
    rate = 12.5e6
    most = int(0.3 * rate + burst_bytes(rate) + PACKET_BYTES)
    start, end = Sample(1.0, 500, 1.1), Sample(1.2, 500 + most, 1.3)
    middle = Sample(1.15, 500, 1.16)
    assert too_fast([start, end], rate) == []
    assert too_fast([start, middle, end], rate) == [(middle, end)]
    assert too_fast([start, Sample(1.2, 501 + most, 1.3)], rate) != []
