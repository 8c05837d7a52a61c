"""Reads the matrix that ``nvidia-smi topo -m`` prints.

Columns are GPUs, then network cards (by their names, or as NIC0.. with a legend below), then
affinities.  A cell says what joins two devices: NV# is a number of NVLinks, directly or through
NVSwitches, everything else what lies between them on PCIe.  Text before and after is passed over:
a prompt, the legend, quotes of a program that it stands in.  Tabs and spaces separate alike, and
the heading may be underlined.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from p2smt.errors import InputError
from p2smt.interop.clusters.nodes.facts import (
    MAX_CARDS,
    MAX_GPUS,
    Accelerator,
    BusPath,
    CardPort,
    NodeFacts,
)

NAME = "nvidia-smi topo -m"
MAX_LINE = 64 * 1024
_UNDERLINE = re.compile(r"\x1b\[[0-9;]{0,20}m")
_QUOTE = re.compile(r"^.*(?:'''|\"\"\")(?=\s*GPU\d)")
_GPU = re.compile(r"GPU\d{1,4}")
_DEVICE = re.compile(r"[A-Za-z][\w.:-]{0,63}", re.ASCII)
_LINKS = re.compile(r"NV([1-9]\d?)")
_LEGEND = re.compile(r"\s*(NIC\d{1,4}):\s*(\S{1,64})\s*")
_AFFINITY = ("CPU", "NUMA")
_NEAR = {**{near.name: near for near in BusPath}, "SOC": BusPath.SYS}  # SOC: before driver 384
_ITSELF = "X"


@dataclass(frozen=True, slots=True)
class _Matrix:
    """The cells as they stand: ``cells[i][j]`` of devices i and j."""

    names: tuple[str, ...]
    cells: tuple[tuple[str, ...], ...]


def is_topo_matrix(text: str) -> bool:
    """Whether a text looks like one."""
    return any(_heading(line) for line in _lines(text[:MAX_LINE]))


def parse_topo_matrix(text: str, source: str) -> NodeFacts:
    """The node in what ``nvidia-smi topo -m`` printed.

    Raises:
        InputError: a row or a cell is missing, unknown, or differs from its mirror image.
    """
    lines = _lines(text)
    start = next((n for n, line in enumerate(lines) if _heading(line)), None)
    if start is None:
        rule = "has no heading of GPUs (a line of GPU0, GPU1, ..)"
        raise InputError(source, rule, "give all that nvidia-smi topo -m prints")
    names = _heading(lines[start])
    _check_names(names, f"{source}, line {start + 1}")
    matrix = _Matrix(names, _cells(lines, start, names, source))
    _check_mirror(matrix, source)
    legend = {found[1]: found[2] for found in map(_LEGEND.fullmatch, lines) if found}
    return _facts(matrix, legend, source)


def _lines(text: str) -> list[str]:
    plain = (_UNDERLINE.sub("", line[:MAX_LINE]) for line in text.split("\n"))
    return [_QUOTE.sub("", line) if "GPU" in line else line for line in plain]


def _heading(line: str) -> tuple[str, ...]:
    """The devices that a heading names; nothing if the line is none."""
    words = line.split()
    if not words or not _GPU.fullmatch(words[0]):
        return ()
    end = next((i for i, word in enumerate(words) if word in _AFFINITY), len(words))
    names = tuple(words[:end])
    if len(names) > 1 and (names[1] == _ITSELF or _cell(names[1])):
        return ()
    return names if len(names) > 1 or end < len(words) or len(words) == 1 else ()


def _check_names(names: tuple[str, ...], where: str) -> None:
    if any("MIG" in name.upper() for name in names):
        rule = "lists slices of GPUs (MIG), which have no links to others"
        raise InputError(where, rule, "give the matrix of whole GPUs, with MIG off")
    if odd := [name for name in names if not _DEVICE.fullmatch(name)]:
        raise InputError(f"{where}: {odd[0][:40]!r}", "is no name of a device", "correct it")
    if len(set(names)) != len(names):
        raise InputError(where, "names a device twice", "give the matrix as it was printed")
    gpus = sum(bool(_GPU.fullmatch(name)) for name in names)
    if gpus > MAX_GPUS or len(names) - gpus > MAX_CARDS:
        rule = f"a node has at most {MAX_GPUS} GPUs and {MAX_CARDS} network cards"
        raise InputError(f"{where}: {len(names)} columns", rule)
    if any(not _GPU.fullmatch(name) for name in names[:gpus]):
        raise InputError(where, "must name GPUs before network cards", "give it as it was printed")


def _cell(word: str) -> bool:
    return word == _ITSELF or word in _NEAR or bool(_LINKS.fullmatch(word))


def _cells(
    lines: list[str], start: int, names: tuple[str, ...], source: str
) -> tuple[tuple[str, ...], ...]:
    """The rows in the order of the columns."""
    rows: dict[str, tuple[str, ...]] = {}
    for number, line in enumerate(lines[start + 1 :], start + 2):
        name, *words = line.split() or [""]
        if name not in names or len(rows) == len(names):
            continue
        where = f"{source}, line {number}: row {name}"
        if name in rows:
            raise InputError(where, "is there twice", "give one matrix")
        rows[name] = _row(words, names, names.index(name), where)
    if missing := [name for name in names if name not in rows]:
        rule = f"has no row {missing[0]}: the matrix is cut off"
        raise InputError(source, rule, "give all that nvidia-smi topo -m prints")
    return tuple(rows[name] for name in names)


def _row(words: list[str], names: tuple[str, ...], own: int, where: str) -> tuple[str, ...]:
    cells = words[: len(names)]
    known = next((i for i, word in enumerate(cells) if not _cell(word)), len(cells))
    if known < len(names):
        more = f" ({cells[known][:20]!r} is none)" if known < len(cells) else ""
        rule = f"has {known} cells for {len(names)} columns{more}"
        raise InputError(where, rule, "give all that nvidia-smi topo -m prints")
    if len(words) > len(names) and _cell(words[len(names)]):
        raise InputError(where, f"has more cells than {len(names)} columns", "correct it")
    for j, cell in enumerate(cells):
        if (cell == _ITSELF) != (j == own):
            rule = f"has {cell} in column {names[j]}: X stands for the device itself"
            raise InputError(where, rule, "a cell is missing: give the matrix as printed")
    return tuple(cells)


def _check_mirror(matrix: _Matrix, source: str) -> None:
    gpus = sum(bool(_GPU.fullmatch(name)) for name in matrix.names)
    for i, row in enumerate(matrix.cells):
        for j in range(i):
            if i >= gpus and _LINKS.fullmatch(row[j]):
                given = f"{source}: {matrix.names[i]} to {matrix.names[j]}"
                raise InputError(given, f"is {row[j]}: only GPUs have NVLinks", "correct it")
            if row[j] != matrix.cells[j][i]:
                one, other = matrix.names[i], matrix.names[j]
                rule = f"is {row[j]}, and {matrix.cells[j][i]} from {other} to {one}"
                raise InputError(f"{source}: {one} to {other}", rule, "correct one of them")


def _facts(matrix: _Matrix, legend: dict[str, str], source: str) -> NodeFacts:
    gpus = [name for name in matrix.names if _GPU.fullmatch(name)]
    cards = [legend.get(name, name) for name in matrix.names[len(gpus) :]]
    pairs = tuple(tuple(_count(cell) for cell in row[: len(gpus)]) for row in matrix.cells)
    return NodeFacts(
        source,
        tuple(Accelerator(name) for name in gpus),
        tuple(CardPort(name, name) for name in cards),
        pairs[: len(gpus)],
        (0,) * len(gpus),
        tuple(tuple(_nearness(cell) for cell in row) for row in matrix.cells),
    )


def _count(cell: str) -> int:
    found = _LINKS.fullmatch(cell)
    return int(found[1]) if found else 0


def _nearness(cell: str) -> BusPath | None:
    return BusPath.PIX if cell == _ITSELF else _NEAR.get(cell)
