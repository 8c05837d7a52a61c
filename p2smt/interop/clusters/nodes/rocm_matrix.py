"""Reads what ``rocm-smi --showtopo`` prints: types of links, weights and NUMA nodes.

A link of type XGMI joins two GPUs directly where its weight is 15, or no weights are printed;
larger weights are of ways over other GPUs (ROCm/rocm-systems, amd-smi: each xGMI hop adds 15).
"""

from __future__ import annotations

import re

from p2smt.errors import InputError
from p2smt.interop.clusters.nodes.facts import MAX_GPUS, Accelerator, BusPath, NodeFacts

NAME = "rocm-smi --showtopo"
_TYPES, _WEIGHTS = "Link Type between two GPUs", "Weight between two GPUs"
_GPU = re.compile(r"GPU\d{1,4}")
_NUMA = re.compile(r"GPU ?\[?(\d{1,4})\]?\s*: \(Topology\) Numa Node: (\d{1,4})\s*")
_DIRECT = "15"
_KINDS = ("XGMI", "PCIE")


def is_rocm_matrix(text: str) -> bool:
    """Whether a text looks like one."""
    return _TYPES in text


def parse_rocm_matrix(text: str, source: str) -> NodeFacts:
    """The node in what ``rocm-smi --showtopo`` printed.

    Raises:
        InputError: a row or a cell of the types is missing, unknown, or differs from its mirror.
    """
    lines = [line[:4096] for line in text.split("\n")]
    names, types = _block(lines, _TYPES, source)
    weights = _block(lines, _WEIGHTS, source)[1] if _WEIGHTS in text else []
    numa = {int(f[1]): int(f[2]) for f in map(_NUMA.fullmatch, map(str.strip, lines)) if f}
    count = range(len(names))
    for i in count:
        for j in range(i):
            if types[i][j] not in _KINDS or types[i][j] != types[j][i]:
                given = f"{source}: {names[i]} to {names[j]}"
                rule = f"is {types[i][j][:20]}, and {types[j][i][:20]} the other way"
                raise InputError(given, rule, f"must be one of {', '.join(_KINDS)}, both ways")

    def linked(i: int, j: int) -> int:
        far = bool(weights) and weights[i][j] != _DIRECT
        return int(i != j and types[i][j] == "XGMI" and not far)

    return NodeFacts(
        source,
        tuple(Accelerator(name) for name in names),
        (),
        tuple(tuple(linked(i, j) for j in count) for i in count),
        (0,) * len(names),
        tuple(tuple(_near(numa, i, j) for j in count) for i in count),
        amd=True,
        lost=("how many xGMI links a pair of GPUs has is not told: one is counted",),
    )


def _near(numa: dict[int, int], i: int, j: int) -> BusPath | None:
    if i == j:
        return BusPath.PIX
    if i not in numa or j not in numa:
        return None
    return BusPath.NODE if numa[i] == numa[j] else BusPath.SYS


def _block(lines: list[str], title: str, source: str) -> tuple[tuple[str, ...], list[list[str]]]:
    """The names and the cells of the matrix under a title."""
    start = next((n for n, line in enumerate(lines) if title in line), len(lines))
    names = tuple(lines[start + 1].split()) if start + 1 < len(lines) else ()
    where = f"{source}, line {start + 2}"
    gpus = [name for name in names if _GPU.fullmatch(name)]
    if not 0 < len(names) <= MAX_GPUS or len(set(gpus)) != len(names):
        rule = f"must name 1 to {MAX_GPUS} GPUs, as GPU0, GPU1, .."
        raise InputError(where, rule, "give all that rocm-smi --showtopo prints")
    rows = [line.split() for line in lines[start + 2 : start + 2 + len(names)]]
    for number, name in enumerate(names):
        row = rows[number] if number < len(rows) else []
        if row[:1] != [name] or len(row) != len(names) + 1:
            given = f"{source}, line {start + 3 + number}: row {name}"
            rule = f"has {max(0, len(row) - 1)} cells for {len(names)} columns"
            raise InputError(given, rule, "give all that rocm-smi --showtopo prints")
    return names, [row[1:] for row in rows]
