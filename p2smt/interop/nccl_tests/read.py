"""Reads a file of nccl-tests, what it prints or its ``-J`` report."""

from __future__ import annotations

import os
from dataclasses import dataclass

from p2smt.cluster.topology import MAX_DEVICES
from p2smt.cost.algorithms import Operation
from p2smt.errors import InputError
from p2smt.files.yaml_text import read_bytes
from p2smt.interop.nccl_tests.elements import TimingTable
from p2smt.interop.nccl_tests.parse_json import parse_json
from p2smt.interop.nccl_tests.parse_text import parse_text
from p2smt.interop.nccl_tests.ranks import operation_of, per_host_of, ranks_of

MAX_BYTES = 4 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class RankedTable:
    """A table with what it takes to place it: operation, ranks, and ranks per host (or none)."""

    table: TimingTable
    operation: Operation
    ranks: int
    per_host: int | None

    @property
    def hosts(self) -> int | None:
        """How many hosts took part, where the file tells."""
        return None if self.per_host is None else self.ranks // self.per_host


def read_nccl_tests(
    path: str, operation: Operation | None = None, ranks: int | None = None
) -> list[RankedTable]:
    """The tables of a file; ``operation`` and ``ranks`` stand in for what it does not tell.

    Raises:
        InputError: the file cannot be read, is too large, malformed, or leaves open what ran.
    """
    text = _text(path)
    is_json = text.lstrip("\ufeff \t\r\n").startswith("{")
    tables = parse_json(text, path) if is_json else parse_text(text, path)
    return [_measured(table, operation, ranks) for table in tables if table.timings or table.wrong]


def _text(path: str) -> str:
    given = f"file {path!r}"
    if not os.path.isfile(path):
        raise InputError(given, "is not a regular file", "name the output of nccl-tests")
    raw = read_bytes(path, given, MAX_BYTES, "keep the tables only")
    return raw.decode("utf-8", errors="replace")  # names of hosts may be in any encoding


def _measured(table: TimingTable, given: Operation | None, ranks: int | None) -> RankedTable:
    what = operation_of(table, given)
    ranks = ranks_of(table, what, ranks)
    if not 2 <= ranks <= MAX_DEVICES:
        rule = f"a collective needs 2 to {MAX_DEVICES} ranks"
        raise InputError(f"{table.where}: {ranks} ranks", rule, "measure on more devices")
    return RankedTable(table, what, ranks, per_host_of(table, ranks))
