"""Random tuner files, bad ones too, and questions about them, from a seed."""

from __future__ import annotations

import random

from p2smt.interop.tuners.choices import Comm
from p2smt.interop.tuners.rules import ALGORITHMS, COLLECTIVES, PROTOCOLS, TunerQuestion

_SIZES: tuple[str, ...] = ("0", "1", "1024", "65536", "1048576", "4294967295")
_SIZES += ("18446744073709551615", "64K", "1e9", "-1", " 4096", "99999999999999999999999")
_SIZES += ("+8", "x", "0x10", "2048 ")
_COUNTS = (
    "-1",
    "0",
    "1",
    "2",
    "4",
    "8",
    "16",
    "32",
    "4294967295",
    "2x",
    "*",
    " 8",
    "\t2",
    "-9999999999",
)
_ODD = ("#x", "", " ", "Ring", "allreduce ", "treee", "a" * 120, "é" * 30)
_LINES = (
    "",
    "#",
    "# note",
    "   ",
    "  # indented,0,1,ring,simple,0,-1,-1",
    "colltype,minbytes,maxbytes",
)
COMMS = tuple(Comm(*pair) for pair in ((1, 2), (1, 8), (2, 8), (4, 8), (4, 1), (2, 1), (1, 32)))


def random_file(seed: int) -> str:
    """A file of up to a dozen lines; a third of them odd."""
    draw = random.Random(seed)
    ends = draw.choice(("\n", "\n", "\r\n"))
    lines = [_line(draw) for _ in range(draw.randrange(1, 13))]
    return ends.join(lines) + draw.choice(("", ends))


def _line(draw: random.Random) -> str:
    if draw.random() < 0.1:
        return draw.choice(_LINES)
    low, high = ("0",) * 6 + _SIZES[:5], _SIZES[3:7]
    some = ("-1",) * 12 + _COUNTS[2:8]
    names = (COLLECTIVES[3:], low, high, ALGORITHMS, PROTOCOLS, _COUNTS, some, ("-1", *some))
    words = [draw.choice(one) for one in names]
    words += [draw.choice(("-1", "1", "2")) for _ in range(draw.choice((0, 0, 0, 1, 2, 3)))]
    while draw.random() < 0.2:
        words[draw.randrange(len(words))] = draw.choice((*_SIZES, *_COUNTS, *_ODD))
    if draw.random() < 0.05:
        words = words[: draw.randrange(9)]
    if draw.random() < 0.05:
        words.insert(0, "#" + "c" * draw.randrange(200, 300))
    return draw.choice((",", ",", ",", ", ", " , ", ",,")).join(words)


def random_questions(seed: int, count: int) -> list[tuple[TunerQuestion, frozenset[int]]]:
    """Calls with the pairs that are impossible for each; a ring with simple never is."""
    draw = random.Random(seed)
    edges = (0, 1, 8, 1024, 4096, 65536, 2**20, 2**32 - 1, 2**64 - 1, 10**9, 64)
    found = []
    for _ in range(count):
        size = max(0, min(2**64 - 1, draw.choice(edges) + draw.choice((-1, 0, 1))))
        where = draw.choice(COMMS)
        call = TunerQuestion(
            draw.choice(COLLECTIVES), where, size, draw.choice((1, 2)), draw.choice((0, 1))
        )
        part = draw.choice((0.0, 0.3))
        bad = frozenset(n for n in range(21) if n != number_of("ring", "simple"))
        found.append((call, frozenset(n for n in bad if draw.random() < part)))
    return found


def number_of(algorithm: str, protocol: str) -> int:
    """The number of a pair in the library's table of costs."""
    return ALGORITHMS.index(algorithm) * len(PROTOCOLS) + PROTOCOLS.index(protocol)
