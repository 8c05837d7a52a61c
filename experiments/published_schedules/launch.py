"""Runs a program of a clone; started by the Python that has what the clone needs.

python launch.py FOLDERS PACKAGE SCRIPT [ARGUMENT ..]

PACKAGE, if not empty, stands for itself in FOLDERS (joined by ``:``) without its ``__init__``:
MSCCL++'s needs a GPU's libraries, and its language does not.  SCRIPT ``-c`` runs the code in the
argument behind it.
"""

from __future__ import annotations

import runpy
import sys
from types import ModuleType


def launch(folders: list[str], package: str, script: str, arguments: list[str]) -> None:
    """Run a script, or code, as ``python`` would."""
    if package:
        stand_in = ModuleType(package)
        stand_in.__path__ = [f"{folder}/{package}" for folder in folders]
        sys.modules[package] = stand_in
    sys.argv = [script, *arguments]
    if script == "-c":
        exec(compile(arguments[0], "-c", "exec"), {"__name__": "__main__"})
    else:
        runpy.run_path(script, run_name="__main__")


if __name__ == "__main__":
    launch(sys.argv[1].split(":"), sys.argv[2], sys.argv[3], sys.argv[4:])
