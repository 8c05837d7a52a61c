"""Tuner files of NCCLX (meta-pytorch/torchcomms at 59426ba4, comms/ncclx/meta/tuner).

Columns: collective, interval of bytes per rank, algorithm, protocol, channels, intervals of nodes
and of ranks per node, and one that may be left out: bytes of a chunk.  One bad row, and no
communicator starts.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from p2smt.interop.tuners.c_text import as_bytes
from p2smt.interop.tuners.choices import Comm, FileFault, FileVerdict
from p2smt.interop.tuners.rules import (
    ALGORITHMS,
    ANY,
    COLLECTIVES,
    OWN,
    PROTOCOLS,
    Dialect,
    NumberSpan,
    RulesRead,
    TunerRule,
    judge,
)

NEEDED, MOST = 7, 10
_BLANK = " \t\r\n"
_WHOLE = re.compile(r"[ \t\n\v\f\r]*[+-]?[0-9]+")
_INT, _LONG = 2**31, 2**63


class _Bad(ValueError):
    """A column that the library refuses: the name of the fault, and what it is."""


def read_ncclx(text: str) -> RulesRead:
    """The rules as NCCLX reads them."""
    rules, faults = list[TunerRule](), list[FileFault]()
    for line, given in enumerate(as_bytes(text).split("\n"), 1):
        row = given.strip(_BLANK)
        if not row or row.startswith("#"):
            continue
        try:
            rules.append(_rule(line, split_row(row)))
        except _Bad as bad:
            faults.append(FileFault("aborts", line, f"{bad}: no communicator starts"))
    return RulesRead(tuple(rules), tuple(faults), refused=bool(faults))


def split_row(row: str) -> list[str]:
    """The columns of a row; commas in brackets part none."""
    found, start, depth = list[str](), 0, 0
    for index, sign in enumerate(f"{row},"):
        if index < len(row) and sign in "([":
            depth += 1
        elif index < len(row) and sign in ")]":
            depth = max(0, depth - 1)
        elif index == len(row) or (sign == "," and depth == 0):
            found.append(row[start:index].strip(_BLANK))
            start = index + 1
    return found[:MOST]


def _rule(line: int, words: Sequence[str]) -> TunerRule:
    if len(words) < NEEDED:
        raise _Bad(f"{len(words)} columns, {NEEDED} are needed")
    for word, known in zip(
        (words[0], *words[2:4]), (COLLECTIVES, ALGORITHMS, PROTOCOLS), strict=True
    ):
        if word not in known:
            raise _Bad(f"{word[:40]!r} is none of {', '.join(known)}")
    chunk = _whole(words[7], _LONG, 0) if len(words) > NEEDED else 0
    if chunk < 0:
        raise _Bad(f"chunk size {chunk} is below 0")
    return TunerRule(
        line,
        words[0],
        interval(words[1]),
        words[2],
        words[3],
        _whole(words[4], _INT, -1),
        interval(words[5]),
        interval(words[6]),
        chunk=chunk,
    )


def _whole(word: str, limit: int, empty: int) -> int:
    if not word:
        return empty
    if _WHOLE.fullmatch(word) is None or not -limit <= int(word) < limit:
        raise _Bad(f"{word[:40]!r} is no whole number that it can hold")
    return int(word)


def interval(word: str) -> NumberSpan:
    """The numbers of ``*``, ``8``, ``[1,4)``, ``(1,)`` and the like, as a closed span."""
    if word in ("", "*"):
        return ANY
    if word[0] not in "([":
        return (_whole(word, _LONG, 0),) * 2
    ends = word[1:-1].strip(_BLANK).split(",")
    if word[-1] not in ")]" or len(word) < 2 or len(ends) != 2:
        raise _Bad(f"{word[:40]!r} is no interval")
    low, high = (end.strip(_BLANK) for end in ends)
    first = _whole(low, _LONG, 0) if low else ANY[0]
    last = _whole(high, _LONG, 0) if high else ANY[1]
    if low and high and first > last:
        raise _Bad(f"{word[:40]!r} is empty")
    return first + (bool(low) and word[0] == "("), last - (bool(high) and word[-1] == ")")


def _channels(number: int) -> int:
    return OWN if number == -1 else number


NCCLX = Dialect("ncclx-tuner", read_ncclx, per_rank=True, channels=_channels, unmatched=OWN)


def judge_ncclx(text: str, comms: Sequence[Comm]) -> FileVerdict:
    """What NCCLX makes of a file."""
    return judge(NCCLX, text, comms)


def looks_ncclx(text: str) -> bool:
    """Whether some row has an algorithm where this format has it."""
    rows = (line.strip(_BLANK) for line in as_bytes(text).split("\n"))
    found = (split_row(row) for row in rows if "," in row and not row.startswith("#"))
    return any(
        len(words) >= NEEDED and words[0].isidentifier() and words[2].lower() in ALGORITHMS
        for words in found
    )
