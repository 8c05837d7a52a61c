"""Reads a file of nccl-tests, what it prints or its ``-J`` report."""

from __future__ import annotations

import os
from dataclasses import dataclass

from p2smt.cluster.topology import MAX_DEVICES
from p2smt.collectives.names import Collective
from p2smt.errors import InputError
from p2smt.files.yaml_text import read_bytes
from p2smt.interop.nccl_tests.json_log import read_json_run
from p2smt.interop.nccl_tests.run import Run
from p2smt.interop.nccl_tests.text import read_text_tables

MAX_BYTES = 4 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Measured:
    """A table with what it takes to place it: collective, ranks, and ranks per host (or none)."""

    run: Run
    collective: Collective
    ranks: int
    per_host: int | None

    @property
    def hosts(self) -> int | None:
        """How many hosts took part, where the file tells."""
        return None if self.per_host is None else self.ranks // self.per_host


def read_nccl_tests(
    path: str, collective: Collective | None = None, ranks: int | None = None
) -> list[Measured]:
    """The tables of a file; ``collective`` and ``ranks`` stand in for what it does not tell.

    Raises:
        InputError: the file cannot be read, is too large, malformed, or leaves open what ran.
    """
    text = _text(path)
    is_json = text.lstrip("\ufeff \t\r\n").startswith("{")
    runs = read_json_run(text, path) if is_json else read_text_tables(text, path)
    return [_measured(run, collective, ranks) for run in runs if run.timings or run.wrong]


def _text(path: str) -> str:
    given = f"file {path!r}"
    if not os.path.isfile(path):
        raise InputError(given, "is not a regular file", "name the output of nccl-tests")
    raw = read_bytes(path, given, MAX_BYTES, "keep the tables only")
    return raw.decode("utf-8", errors="replace")  # names of hosts may be in any encoding


def _measured(run: Run, collective: Collective | None, given: int | None) -> Measured:
    what = run.collective(collective)
    ranks = run.ranks(what, given)
    if not 2 <= ranks <= MAX_DEVICES:
        rule = f"a collective needs 2 to {MAX_DEVICES} ranks"
        raise InputError(f"{run.where}: {ranks} ranks", rule, "measure on more devices")
    if not run.hosts or sum(run.hosts) != ranks:
        return Measured(run, what, ranks, None)
    if run.hosts[0] != run.hosts[-1]:
        rule = "hosts must have equally many ranks each"
        raise InputError(f"{run.where}: {run.hosts[0]} to {run.hosts[-1]} ranks", rule)
    return Measured(run, what, ranks, run.hosts[0])
