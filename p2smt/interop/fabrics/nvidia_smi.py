"""The matrix that `nvidia-smi topo -m` prints, as a fabric of NVLinks.

``NV#`` joins a pair of GPUs by # NVLinks.  The same number over all pairs is a switch: the links of
a GPU lead there.  Different numbers are links between the pairs.  How fast one link is, the matrix
does not say: it is asked for.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from fractions import Fraction

from p2smt.cluster.fabric.wiring import Switch, Wire, WiredNodes
from p2smt.errors import InputError

_GPU = re.compile(r"GPU(\d+)")
_LINKS = re.compile(r"NV(\d{1,3})")


def is_nvidia_smi(text: str) -> bool:
    """Whether a text has the head of such a matrix."""
    return _head(text.splitlines()) is not None


def wiring_of_smi(text: str, link_bandwidth: Fraction | None, source: str) -> WiredNodes:
    """The wiring of the GPUs by NVLink; ``link_bandwidth``: bytes per second of one, each way.

    Raises:
        InputError: rows are missing or short, no NVLink is there, the matrix is not symmetric, or
            nobody said how fast a link is.
    """
    links = _matrix(text, source)
    if not any(map(any, links)):
        rule = "shows no NVLink (NV#) between GPUs"
        raise InputError(source, rule, "describe the links in a fabric file")
    if link_bandwidth is None:
        rule = "says how many NVLinks join two GPUs, not how fast one is"
        raise InputError(source, rule, "add --link-bandwidth, such as --link-bandwidth 25GB/s")
    ranks = len(links)
    numbers = {links[a][b] for a in range(ranks) for b in range(ranks) if a != b}
    if len(numbers) == 1 and ranks > 2:
        rate = numbers.pop() * link_bandwidth
        return WiredNodes(source, ranks, switches=(Switch("nvswitch", tuple(range(ranks)), rate),))
    wires = (
        Wire(a, b, links[a][b] * link_bandwidth)
        for a in range(ranks)
        for b in range(ranks)
        if links[a][b]
    )
    return WiredNodes(source, ranks, tuple(wires))


def _head(lines: Sequence[str]) -> tuple[int, list[str]] | None:
    """The line with the names of the columns, and these names."""
    for at, line in enumerate(lines):
        words = line.split("CPU Affinity")[0].replace("'", " ").split()
        names = words[next((n for n, word in enumerate(words) if word == "GPU0"), len(words)) :]
        if len(names) > 1 and _GPU.fullmatch(names[1]):
            return at, names
    return None


def _matrix(text: str, source: str) -> list[list[int]]:
    """How many NVLinks join each pair of GPUs, in the order of the columns."""
    lines = text.splitlines()
    head = _head(lines)
    if head is None:
        raise InputError(source, "has no line with the columns GPU0, GPU1, ..")
    at, names = head
    gpus = [name for name in names if _GPU.fullmatch(name)]
    if len(set(gpus)) < len(gpus):
        raise InputError(f"{source}: the line of columns", "names a GPU twice", "save it again")
    wanted, cells = frozenset(gpus), dict[str, dict[str, str]]()
    for line in lines[at + 1 :]:
        name, *row = line.split() or [""]
        if name in wanted and name not in cells:
            cells[name] = dict(zip(names, row, strict=False))
    for name in gpus:
        if wanted - cells.get(name, {}).keys():
            raise InputError(
                f"{source}: row {name}", "is missing or short", "save the whole output"
            )
    found = [[_number(cells[a][b]) for b in gpus] for a in gpus]
    for n, numbers in enumerate(found):
        for other, links in enumerate(numbers[:n]):
            if links != found[other][n]:
                rule = f"has {links} NVLinks one way and {found[other][n]} the other"
                given = f"{source}: {gpus[n]} and {gpus[other]}"
                raise InputError(given, rule, "save the whole output")
    return found


def _number(cell: str) -> int:
    links = _LINKS.fullmatch(cell)
    return int(links[1]) if links else 0
