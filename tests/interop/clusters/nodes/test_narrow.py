"""Matrices from terminals that were too narrow: rows broken, or with a tab less where they were."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from p2smt.errors import InputError
from p2smt.interop.clusters.nodes.node_facts import parse_rocm_matrix
from p2smt.interop.clusters.nodes.topo_matrix import is_topo_matrix, parse_topo_matrix
from tests.interop.clusters.nodes.texts import alike, cells_of, matrix, rocm, with_cards

CARDS = with_cards(
    alike(4, "NV12"),
    [
        ["PXB", "PXB", "NODE", "NODE"],
        ["NODE", "NODE", "PXB", "PXB"],
        ["SYS", "SYS", "SYS", "SYS"],
        ["NODE", "NODE", "PHB", "PIX"],
    ],
)
NAMES = ["mlx5_0", "mlx5_1", "mlx5_9", "mlx5_10"]
WHOLE = matrix(CARDS, NAMES, tail="\t0-31,64-95\t0\t\tN/A")
PAIRS = matrix(cells_of([[0, 1, 12], [1, 0, 4], [12, 4, 0]]), tail="\t20-31\t0\t\tN/A")
SAID = "cells that ran together, or rows that were broken, are parted by the number of columns"


def same(text: str, whole: str = WHOLE) -> None:
    found, expected = parse_topo_matrix(text, "f"), parse_topo_matrix(whole, "f")
    assert (found.pairs, found.near, found.ports) == (expected.pairs, expected.near, expected.ports)
    assert found.lost == (SAID,)


def without_tab(whole: str, column: int) -> str:
    """The rows, and the heading, without the tab behind a column."""
    lines = []
    for line in whole.split("\n"):
        parts = line.split("\t")
        if len(parts) > column + 1:
            parts[column : column + 2] = [parts[column].strip() + parts[column + 1].strip()]
        lines.append("\t".join(parts))
    return "\n".join(lines)


@pytest.mark.parametrize("column", range(1, 9))
def test_a_tab_that_was_lost(column: int) -> None:
    """Also between the last cell and the affinity, where a number may run into another."""
    same(without_tab(WHOLE, column))


@pytest.mark.parametrize("column", range(1, 4))
def test_a_number_of_links_before_an_affinity(column: int) -> None:
    """NV1220-31 is NV12, and NV420-31 is NV4: as the mirror image has it."""
    same(without_tab(PAIRS, column), PAIRS)


@given(st.integers(18, 90))
def test_rows_that_a_window_breaks(width: int) -> None:
    """Each line goes on below, a cell may be cut in two; tabs are blanks there."""
    lines = []
    for line in WHOLE.expandtabs(8).partition("\n\n")[0].split("\n"):
        plain = line.rstrip()
        lines += [plain[i : i + width] for i in range(0, len(plain), width)] or [""]
    broken = "\n".join(lines)
    found, expected = parse_topo_matrix(broken, "f"), parse_topo_matrix(WHOLE, "f")
    assert (found.pairs, found.near) == (expected.pairs, expected.near)


@pytest.mark.parametrize("mark", ["> ", "| ", ">> "])
def test_quoted(mark: str) -> None:
    quoted = "\n".join(mark + line.replace("\t", " | ") for line in WHOLE.split("\n"))
    found = parse_topo_matrix(quoted, "f")
    assert found.pairs == parse_topo_matrix(WHOLE, "f").pairs
    assert found.lost == ()


def test_names_of_rows_before_their_first_cell() -> None:
    text = WHOLE.replace("\n\t", "\n")
    for name in ("GPU0", "GPU1", "GPU2", "GPU3", *NAMES):
        text = text.replace(f"\n{name}\t", f"\n{name}").replace(f"\n{name} X", f"\n{name}X")
    assert parse_topo_matrix(text, "f").pairs == parse_topo_matrix(WHOLE, "f").pairs


@pytest.mark.parametrize(
    "mark",
    [
        "2026-05-01T10:00:{:02d}.123456789Z ",
        "[pod/probe-x7k2p/main] ",
        "gpu-node-01: ",
        "[1,0]<stdout>: ",
        "[prterun-n1-1@1,0]<stdout>:",
        "Mon Jul 22 10:00:{:02d} 2026<stdout>:",
        "worker-0  | ",
        "run.log:{:d}:",
        "{:d} ",
        "+",
    ],
)
def test_what_launchers_put_before_each_line(mark: str) -> None:
    """As of a log of nccl-tests; also before what rocm-smi prints, and with bars between cells."""
    lines = WHOLE.split("\n")
    for text in (WHOLE, WHOLE.replace("\t", " \u2502 ")):
        marked = "\n".join(mark.format(n) + line for n, line in enumerate(text.split("\n")))
        assert is_topo_matrix(marked)
        found = parse_topo_matrix(marked, "f")
        assert (found.pairs, found.near, found.lost) == (*_parsed(lines), ())
    types = [["0" if i == j else "XGMI" for j in range(4)] for i in range(4)]
    plain = rocm(types)
    marked = "\n".join(mark.format(n) + line for n, line in enumerate(plain.split("\n")))
    assert parse_rocm_matrix(marked, "f") == parse_rocm_matrix(plain, "f")


def _parsed(lines: list[str]) -> tuple[object, object]:
    found = parse_topo_matrix("\n".join(lines), "f")
    return found.pairs, found.near


def test_a_matrix_that_is_whole_says_nothing() -> None:
    assert parse_topo_matrix(WHOLE, "f").lost == ()


@pytest.mark.parametrize(
    ("old", "new", "what"),
    [
        ("GPU1\tNV12\t X \tNV12", "GPU1\tNV12\t X \tNV", "row GPU1: has 2 cells for 8 columns"),
        ("GPU1\tNV12\t X \tNV12", "GPU1\tNV12 NV12", "a narrow window breaks rows"),
        ("GPU1\tNV12\t X \tNV12", "GPU1\tX NV12NV12", "X stands for the device|narrow window"),
    ],
)
def test_cells_that_are_missing_are_missed(old: str, new: str, what: str) -> None:
    assert old in WHOLE
    with pytest.raises(InputError, match=what):
        parse_topo_matrix(WHOLE.replace(old, new), "f")


def glued(whole: str) -> str:
    """The heading and the rows without a single tab."""
    head, *rest = whole.partition("\n\n")
    return head.replace("\t", "") + "".join(rest)


def test_every_tab_that_was_lost() -> None:
    same(glued(WHOLE))
    same(glued(PAIRS), PAIRS)


@pytest.mark.parametrize("gap", ["", "\t"])
def test_breaks_of_lines_that_were_lost(gap: str) -> None:
    """Then it is no matrix that was cut off."""
    text = WHOLE.partition("\n\n")[0].replace("\n", gap).replace("\t", gap)
    with pytest.raises(InputError, match=r"breaks of lines were lost.*a row on a line"):
        parse_topo_matrix(text, "f")
