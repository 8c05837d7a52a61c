"""Shared memory in which every rank of a machine notes what it is doing."""

from __future__ import annotations

import mmap

_WIDTH = 160


class Board:
    """One line of text per rank; made before the ranks are forked, and readable afterwards."""

    def __init__(self, ranks: int) -> None:
        self._memory = mmap.mmap(-1, max(1, ranks) * _WIDTH)

    def write(self, index: int, text: str) -> None:
        """Replace a line."""
        data = text.encode("utf-8", "replace")[:_WIDTH]
        self._memory[index * _WIDTH : (index + 1) * _WIDTH] = data.ljust(_WIDTH, b"\0")

    def read(self, index: int) -> str:
        """The line as it stands."""
        data = self._memory[index * _WIDTH : (index + 1) * _WIDTH]
        return data.rstrip(b"\0").decode("utf-8", "ignore")
