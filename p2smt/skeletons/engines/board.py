"""What the coordinator tells its worker processes: memory that all see, and only it writes.

Without locks: a worker that is killed would leave one held.  What is read while it is written
fails its checksum, and counts as not yet there.

Layout: a byte that says to stop; then, from byte 8 on, number of the message, length of the text
and CRC-32 over both and the text (each 8 bytes), and the text, a member in JSON.
"""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import MutableSequence
from multiprocessing.context import BaseContext

from p2smt.skeletons.cube import Member

_HEAD = struct.Struct("<QQQ")
_AT = 8
_TEXT_AT = _AT + _HEAD.size
SIZE = 1 << 16
"""Bytes; a member that is too long for them is not told, which costs time only."""


def new_board(context: BaseContext) -> MutableSequence[int]:
    """Memory for a board, zero; it goes to a worker among the arguments of its process."""
    memory: MutableSequence[int] = context.RawArray("B", SIZE)
    return memory


class BoardWriter:
    """The coordinator's side."""

    def __init__(self, memory: MutableSequence[int]) -> None:
        self._memory, self._number = memory, 0

    def tell(self, cutoff: Member) -> None:
        """Write a new cutoff."""
        text = json.dumps([cutoff.value, cutoff.tie, cutoff.witness]).encode()
        if _TEXT_AT + len(text) <= SIZE:
            self._number += 1
            check = _check(self._number, text)
            message = _HEAD.pack(self._number, len(text), check) + text
            self._memory[_AT : _AT + len(message)] = message

    def stop(self) -> None:
        """Write that the search has ended."""
        self._memory[0] = 1


class BoardReader:
    """A worker's side: its signals."""

    def __init__(self, memory: MutableSequence[int]) -> None:
        self._memory, self._number = memory, 0
        self._cutoff: Member | None = None

    def stopped(self) -> bool:
        """Whether the search has ended."""
        return bool(self._memory[0])

    def cutoff(self) -> Member | None:
        """The last cutoff that was read whole."""
        number, length, check = _HEAD.unpack(bytes(self._memory[_AT:_TEXT_AT]))
        if number != self._number:
            text = bytes(self._memory[_TEXT_AT : _TEXT_AT + length])
            if _check(number, text) == check:
                value, tie, witness = json.loads(text)
                self._number, self._cutoff = number, Member(value, tuple(tie), witness)
        return self._cutoff


def _check(number: int, text: bytes) -> int:
    return zlib.crc32(text, zlib.crc32(struct.pack("<QQ", number, len(text))))
