"""Files of lines: ranks, hosts, or the table that `p2smt export --to csv` writes.

0                     n02                 rank,host,local_rank
2                     n01                 0,n02,0
1                     n[03-04]            1,n02,1
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from p2smt.cluster.nodes.host_file import content_lines, hosts_in
from p2smt.cluster.topology import MAX_DEVICES
from p2smt.errors import InputError
from p2smt.parallelism.placement import IntArray

HEADER = ("rank", "host", "local_rank")
_WHOLE = re.compile(r"[0-9]{1,9}")


def parse_lines(text: str, source: str) -> IntArray | tuple[str, ...] | list[tuple[str, int]]:
    """The launched rank of each rank, or hosts, or host and local rank of each rank.

    Empty lines, and what follows a #, are skipped.

    Raises:
        InputError: there is nothing, too much, or a line of another kind; names its number.
    """
    lines = list(content_lines(text))
    if not lines:
        raise InputError(source, "is empty", "write a rank or a host a line")
    if len(lines) > MAX_DEVICES:
        raise InputError(source, f"has more than {MAX_DEVICES} lines", "a line is a rank or a host")
    if tuple(part.strip() for part in lines[0][1].split(",")) == HEADER:
        return _table(lines[1:], source)
    words = [(n, word) for n, line in lines for word in line.replace(",", " ").split()]
    if not words:
        raise InputError(source, "has no word", "write a rank or a host a line")
    if all(_WHOLE.fullmatch(word) for _, word in words):
        return _ranks(words, source)
    return hosts_in(lines, source)


def _ranks(words: Sequence[tuple[int, str]], source: str) -> IntArray:
    numbers = [int(word) for _, word in words]
    if len(numbers) > MAX_DEVICES or max(numbers) >= MAX_DEVICES:
        rule = f"must hold at most {MAX_DEVICES} ranks, from 0"
        raise InputError(source, rule, "write each launched rank once, row-major over the axes")
    return np.array(numbers, dtype=np.int64)


def _table(lines: Sequence[tuple[int, str]], source: str) -> list[tuple[str, int]]:
    """Host and local rank by rank."""
    found: dict[int, tuple[str, int]] = {}
    for number, line in lines:
        parts = [part.strip() for part in line.split(",")]
        if len(parts) != len(HEADER) or not all(_WHOLE.fullmatch(parts[i]) for i in (0, 2)):
            rule, remedy = f"is not {','.join(HEADER)}", "write it like 0,n01,0"
            raise InputError(f"{source}: line {number}", rule, remedy)
        rank = int(parts[0])
        if rank in found:
            given = f"{source}: line {number}"
            raise InputError(given, f"has rank {rank} again", "give each rank one line")
        found[rank] = (parts[1], int(parts[2]))
    if not found:
        raise InputError(source, "has no line after its heading", "write one like 0,n01,0")
    if sorted(found) != list(range(len(found))):
        rule = f"must have each rank 0..{len(found) - 1} once"
        raise InputError(source, rule, "write all that p2smt export --to csv does")
    return [found[rank] for rank in range(len(found))]
