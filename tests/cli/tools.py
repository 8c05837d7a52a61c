"""Runs the command line inside the test's process, and reads what it printed."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from p2smt.cli import run

EXIT_CODES = {0, 1, 2, 3, 4, 5, 6, 130, 143}
"""The documented ones; 70, an error of p2smt itself, is not among them."""

TINY = """
name: tiny
library: none
algorithms: [ring]
levels:
  - {name: node, size: 2, link: {kind: switch, bandwidth: 10 GB/s, latency: 10 us}}
  - {name: gpu, size: 4, link: {kind: switch, bandwidth: 100 GB/s, latency: 2 us}}
"""

# A hop inside a node takes longer than one between nodes.
INVERTED = """
name: inverted
library: none
algorithms: [ring]
levels:
  - {name: l1, size: 2, link: {kind: switch, bandwidth: 5 GB/s, latency: 0.5 us}}
  - {name: l2, size: 4, link: {kind: switch, bandwidth: 100 GB/s, latency: 20 us}}
"""

# What a device can do by itself, at the end of a topology file.
H100 = """
device:
  name: h100
  peak: {bf16: 989 TFLOP/s, fp16: 989 TFLOP/s}
  memory_bandwidth: 3350 GB/s
  memory: 80 GB
"""

# Levels that no matrix of four axes in order fits.
SIX = """
name: six
library: none
levels:
  - {name: node, size: 6, link: {kind: switch, bandwidth: 10 GB/s, latency: 10 us}}
  - {name: gpu, size: 6, link: {kind: switch, bandwidth: 100 GB/s, latency: 2 us}}
"""

# A model that is small enough for either.
SMALL = """
layers: 4
hidden: 512
heads: 8
kv_heads: 4
ffn: 1024
gated: true
vocab: 1000
"""

# Five nodes of two under unequal racks, named across them.
RACKS = """
name: racks
library: none
algorithms: [ring]
levels:
  - {name: rack, size: 2, link: {kind: switch, bandwidth: 10 GB/s, latency: 10 us, fabric: roce}}
  - {name: node, size: 3, link: {kind: switch, bandwidth: 10 GB/s, latency: 10 us, fabric: roce}}
  - {name: gpu, size: 2, link: {kind: switch, bandwidth: 100 GB/s, latency: 2 us, fabric: nvlink4}}
switches:
  - {name: rack0, hosts: "n[1,3,5]"}
  - {name: rack1, hosts: "n[2,4]", bandwidth: 5 GB/s}
"""

# One request of every kind on it.
EVERY_KIND = (
    *("--axes", "dp=2,tp=4", "--reduce", "tp=1GiB", "--reduce-scatter", "tp=1GiB"),
    *("--all-gather", "dp+tp=8MiB*3", "--all-to-all", "tp=1MiB", "--send", "dp=1MiB"),
    *("--fix", "tp=node:2"),
)

# Many placements and long lists of programs: a search of at least several seconds.
DEEP = """
name: deep
library: none
levels:
  - {name: pod, size: 4, link: {kind: switch, bandwidth: 5 GB/s, latency: 20 us}}
  - {name: rack, size: 4, link: {kind: switch, bandwidth: 12 GB/s, latency: 10 us}}
  - {name: node, size: 4, link: {kind: ring, bandwidth: 25 GB/s, latency: 5 us}}
  - {name: gpu, size: 8, link: {kind: switch, bandwidth: 300 GB/s, latency: 3 us}}
"""
DEEP_REQUESTS = (
    *("--axes", "dp=8,tp=8,pp=8", "--reduce", "dp=1GiB", "--reduce", "tp=64MiB*10"),
    *("--reduce-scatter", "dp+tp=1GiB", "--send", "pp=1MiB", "--top", "1000"),
)


@dataclass(frozen=True)
class Outcome:
    """Exit code, stdout and stderr of one command."""

    code: int
    out: str
    err: str

    def json(self) -> dict[str, Any]:
        """The one JSON object on stdout; nothing else may be there."""
        assert self.out.endswith("\n")
        assert self.out.count("\n") == 1, self.out
        data = json.loads(self.out, parse_constant=_no_constant)
        assert isinstance(data, dict)
        assert data["schema_version"] == 1
        return data


def _no_constant(text: str) -> None:
    raise AssertionError(f"{text} is not JSON")


def cli(*arguments: str) -> Outcome:
    """Run one command in this process."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = run(list(arguments))
    return Outcome(code, out.getvalue(), err.getvalue())


def command(*arguments: str) -> list[str]:
    """The same command for a process of its own."""
    return [sys.executable, "-m", "p2smt.cli", *arguments]


def process(*arguments: str, cwd: Path | None = None, **environment: str) -> Outcome:
    """Run one command in a process of its own."""
    done = subprocess.run(
        command(*arguments),
        cwd=cwd,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    return Outcome(done.returncode, done.stdout, done.stderr)


def assert_one_error(outcome: Outcome, code: int = 2) -> None:
    """Exit code ``code``, one short printable line on stderr, on stdout the error or nothing."""
    assert outcome.code == code, outcome
    if outcome.out:
        error = outcome.json()["error"]
        words = [error["given"], error["rule"], error["remedy"]]
        assert list(error) == ["given", "rule", "remedy"]
        assert "".join(words).isprintable()
    assert outcome.err.startswith("p2smt: error: "), outcome.err
    assert outcome.err.endswith("\n")
    line = outcome.err[:-1]
    assert line.isprintable(), line
    assert len(line) < 600
