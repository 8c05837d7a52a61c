"""How many modules one `solve` runs functions of: those that a reader of it has to open.

``python -m tests.search.solve.modules_of_solve`` lists them.
"""

from __future__ import annotations

import inspect
import os
import sys
from pathlib import Path
from types import CodeType, FrameType

ROOT = Path(__file__).resolve().parents[3]
ASKED = "dp=8,tp=4", ("dp=1GiB", "tp=64MiB*128")
"""The question of docs/development.md: axes and reductions, on dgx-a100:4."""


def modules_run() -> set[str]:
    """The files of p2smt and encodings with a function that runs from entry to return of ``solve``.

    In a process that has asked nothing before.  Bodies of modules and classes are no functions, and
    what dataclasses generate has no file.
    """
    import p2smt
    from p2smt.search.solve import solve

    topology = p2smt.load_topology("dgx-a100:4")
    axes, requests = p2smt.parse_axes(ASKED[0]), tuple(map(p2smt.reduce, ASKED[1]))
    codes: set[CodeType] = set()

    def note(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code.co_flags & inspect.CO_OPTIMIZED:
            codes.add(frame.f_code)

    problem = p2smt.Problem(topology, axes, requests)
    sys.setprofile(note)
    try:
        solve(problem)
    finally:
        sys.setprofile(None)
    homes = (ROOT / "p2smt", ROOT / "encodings")
    files = {Path(os.path.realpath(code.co_filename)) for code in codes}
    return {
        file.relative_to(ROOT).as_posix() for file in files if any(map(file.is_relative_to, homes))
    }


if __name__ == "__main__":
    sys.stdout.write("".join(f"{name}\n" for name in sorted(modules_run())))
