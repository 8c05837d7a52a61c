"""Tuner files of NCCL's example plugin and of RCCL, which reads nearly the same.

Facts: NVIDIA/nccl 2.30.7, plugins/tuner/example/plugin.c; ROCm/rocm-systems at 22af4d53,
projects/rccl/src/plugin/tuner/csv_tuner.cc.  Columns: collective, smallest and largest bytes,
algorithm, protocol, channels, nodes, ranks, and two that may be left out: calls in the group,
whether buffers are registered.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from p2smt.interop.tuners.c_text import (
    LINE_BYTES,
    as_bytes,
    buffered_lines,
    columns,
    integer,
    is_number,
    unsigned,
)
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

NEEDED, MOST = 8, 10
"""Columns of a row."""
_NAMES: tuple[tuple[int, str, tuple[str, ...], str], ...] = (
    (0, "collective", COLLECTIVES, "allreduce"),
    (3, "algorithm", ALGORITHMS, "ring"),
    (4, "protocol", PROTOCOLS, "simple"),
)
"""Columns of names: what they are, which there are, and what NCCL's plugin makes of another."""
_NUMBERS = {1: "smallest size", 2: "largest size", 5: "channels", 6: "nodes", 7: "ranks"}
_NUMBERS |= {8: "calls in a group", 9: "registered"}


def read_nccl(text: str) -> RulesRead:
    """The rules as NCCL's example plugin reads them."""
    rules, faults = list[TunerRule](), list[FileFault]()
    for line, piece, cut in buffered_lines(as_bytes(text)):
        faults += _cut(line, piece, cut)
        if not piece or piece.startswith("#"):
            continue
        words = columns(piece, MOST)
        if len(words) < NEEDED:
            faults += _too_few(line, piece, words)
            continue
        faults += [*_shifted(line, piece), *_misread(line, words)]
        if piece[0] in " \t" and words[0].startswith("#"):
            faults.append(FileFault("unknown-name", line, "an indented # starts a row here"))
        names = [word if word in known else other for word, known, other in _words(words)]
        for (_, what, _, _), name, (word, _, _) in zip(_NAMES, names, _words(words), strict=True):
            if name != word:
                said = f"{what} {word[:40]!r} is none, and becomes {name}"
                faults.append(FileFault("unknown-name", line, said))
        rules.append(_rule(line, words, names))
    return RulesRead(tuple(rules), tuple(faults))


def read_rccl(text: str) -> RulesRead:
    """The rules as RCCL reads them: rows that it does not understand are skipped."""
    rules, faults = list[TunerRule](), list[FileFault]()
    for line, piece, cut in buffered_lines(as_bytes(text).partition("\0")[0]):
        faults += _cut(line, piece, cut)
        piece = piece.removesuffix("\r")
        if piece.strip(" \t")[:1] in ("", "#"):
            continue
        words = columns(piece, MOST)
        if "" in words or len(words) < NEEDED:
            faults += _too_few(line, piece, words)
            continue
        faults += [*_shifted(line, piece), *_misread(line, words)]
        wrong = [word for word, known, _ in _words(words) if word not in known]
        for word in wrong:
            said = f"{word[:40]!r} is no name, and the row is skipped"
            faults.append(FileFault("unknown-name", line, said))
        if not wrong:
            rules.append(_rule(line, words, [word for word, _, _ in _words(words)]))
    return RulesRead(tuple(rules), tuple(faults))


def _words(words: Sequence[str]) -> list[tuple[str, Sequence[str], str]]:
    return [(words[place], known, other) for place, _, known, other in _NAMES]


def _rule(line: int, words: Sequence[str], names: Sequence[str]) -> TunerRule:
    collective, algorithm, protocol = names
    grouped, registered = (integer(words[n]) if len(words) > n else -1 for n in (8, 9))
    return TunerRule(
        line,
        collective,
        (unsigned(words[1]), unsigned(words[2])),
        algorithm,
        protocol,
        integer(words[5]),
        _span(words[6]),
        _span(words[7]),
        grouped,
        registered,
    )


def _span(word: str) -> NumberSpan:
    value = integer(word)
    return ANY if value == -1 else (value, value)


def _cut(line: int, piece: str, cut: bool) -> Iterator[FileFault]:
    if cut:
        said = f"has over {LINE_BYTES} bytes: the rest, {piece[:40]!r}, is a line of its own"
        yield FileFault("long-line", line, said)


def _too_few(line: int, piece: str, words: Sequence[str]) -> Iterator[FileFault]:
    if piece.strip():
        said = f"{len([w for w in words if w])} columns, {NEEDED} are needed: the row is ignored"
        yield FileFault("counts", line, said)


def _shifted(line: int, piece: str) -> Iterator[FileFault]:
    if ",," in piece or piece.startswith(","):
        yield FileFault(
            "shifted-columns", line, "an empty column does not count: the next takes its place"
        )
    if len(piece.split(",")) > MOST and not piece.rstrip().endswith(",model-only"):
        yield FileFault("counts", line, f"columns after the {MOST}th are ignored")


def _misread(line: int, words: Sequence[str]) -> Iterator[FileFault]:
    """Numbers that C reads as others than people do."""
    for place, what in _NUMBERS.items():
        if place >= len(words):
            return
        word = words[place]
        value = unsigned(word) if place < 3 else integer(word)
        if not is_number(word):
            name = "wildcard" if word == "*" else "suffix"
            yield FileFault(name, line, f"{what} {word[:40]!r} is read as {value}")
        elif int(word) != value:
            yield FileFault("overflow", line, f"{what} {word[:40]} is read as {value}")


def _nccl_channels(number: int) -> int:
    return 1 if number == -1 else number


def _rccl_channels(number: int) -> int:
    return number if number >= 1 else OWN


NCCL = Dialect("nccl-tuner", read_nccl, per_rank=False, channels=_nccl_channels, unmatched=1)
RCCL = Dialect("rccl-tuner", read_rccl, per_rank=False, channels=_rccl_channels, unmatched=OWN)


def judge_nccl(text: str, comms: Sequence[Comm]) -> FileVerdict:
    """What NCCL's example plugin makes of a file."""
    return judge(NCCL, text, comms)


def judge_rccl(text: str, comms: Sequence[Comm]) -> FileVerdict:
    """What RCCL makes of a file."""
    return judge(RCCL, text, comms)


_ROW = re.compile(r"\s*[A-Za-z_]\w*\s*,[-+\s\d]+\w*\s*,[-+\s\d]+\w*\s*,\s*[A-Za-z_]\w*\s*,.*")


def looks_nccl(text: str) -> bool:
    """Whether some line begins as a row does: a name, two sizes, a name, and as many columns.

    A whole line: what a buffer makes a line of its own may begin anywhere in a long one.
    """
    return any(
        _ROW.fullmatch(line) is not None and len(columns(line, MOST)) >= NEEDED - 1
        for line in as_bytes(text).split("\n")
    )


# Tuner files of NCCLX (meta-pytorch/torchcomms at 59426ba4, comms/ncclx/meta/tuner).
#
# Columns: collective, interval of bytes per rank, algorithm, protocol, channels, intervals of nodes
# and of ranks per node, and one that may be left out: bytes of a chunk.  One bad row, and no
# communicator starts.


NCCLX_NEEDED, NCCLX_MOST = 7, 10
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
            rules.append(_interval_rule(line, split_row(row)))
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
    return found[:NCCLX_MOST]


def _interval_rule(line: int, words: Sequence[str]) -> TunerRule:
    if len(words) < NCCLX_NEEDED:
        raise _Bad(f"{len(words)} columns, {NCCLX_NEEDED} are needed")
    for word, known in zip(
        (words[0], *words[2:4]), (COLLECTIVES, ALGORITHMS, PROTOCOLS), strict=True
    ):
        if word not in known:
            raise _Bad(f"{word[:40]!r} is none of {', '.join(known)}")
    chunk = _whole(words[7], _LONG, 0) if len(words) > NCCLX_NEEDED else 0
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
        len(words) >= NCCLX_NEEDED and words[0].isidentifier() and words[2].lower() in ALGORITHMS
        for words in found
    )
