"""A coordinator in a process of its own, with cubes that do not end by themselves.

python -m tests.parallel_search.dask.coordinator NOTES [--scheduler ADDRESS]
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from p2smt.parallel_search.engines.dask import DaskEngine
from p2smt.parallel_search.subproblem import SubproblemTask
from tests.imports import ROOT
from tests.parallel_search.dask.toy import WaitingSpace


@contextmanager
def coordinator(notes: Path, *options: str) -> Iterator[subprocess.Popen[bytes]]:
    """The process, killed at the end if it is still there."""
    command = [sys.executable, "-m", __name__, str(notes), *options]
    with subprocess.Popen(command, cwd=ROOT) as process:
        try:
            yield process
        finally:
            process.kill()


def main(notes: str, scheduler: str | None = None) -> None:
    """Hand out a cube for each worker, and wait."""
    space = WaitingSpace(2, 600.0, notes)
    with DaskEngine(space, processes=1, scheduler=scheduler) as engine:
        for cube in space.roots():
            engine.submit(SubproblemTask(cube))
        while True:
            engine.wait(1.0)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[3] if len(sys.argv) > 3 else None)
