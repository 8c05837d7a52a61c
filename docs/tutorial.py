"""Runs the commands of the tutorials in a copy of their files, and writes what they print below.

python docs/tutorial.py
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

HERE = Path(__file__).resolve().parent
PAGE, MESH, FILES = HERE / "tutorial.md", HERE / "tutorial-mesh.md", HERE / "tutorial"
TOOLS = {"p2smt": "p2smt.cli", "torchrun": "torch.distributed.run"}
_BLOCK = re.compile(r"```console\n(.*?)```\n", re.DOTALL)
_LIMIT_S = 600


def page(text: str, chosen: Callable[[str], bool] = lambda _: True) -> str:
    """The page with what its commands print now; those that are not chosen stay as they are."""
    with tempfile.TemporaryDirectory() as folder:
        return run_in(Path(folder), text, chosen)


def run_in(folder: Path, text: str, chosen: Callable[[str], bool]) -> str:
    """The same in a folder that is there: it then has what the commands wrote.

    Raises:
        RuntimeError: a command failed.
    """
    shutil.copytree(FILES, folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__*__"))
    _tools(folder / ".tools")
    before: list[str] = []

    def block(found: re.Match[str]) -> str:
        parts = []
        for command, printed in commands(found[1]):
            shown = _run(folder, before, command) if chosen(command) else printed
            parts.append(f"$ {command}\n{shown}")
            if re.match(r"[A-Z]+=", command):
                before.append(command)
        return "```console\n" + "".join(parts) + "```\n"

    return _BLOCK.sub(block, text)


def commands(block: str) -> Iterator[tuple[str, str]]:
    """The commands of a console block, each with what it is said to print."""
    for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
        command, _, printed = part.partition("\n")
        yield command, printed


def _tools(folder: Path) -> None:
    """p2smt and torchrun of this Python, as commands."""
    folder.mkdir()
    for name, module in TOOLS.items():
        script = folder / name
        script.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m {module} "$@"\n')
        script.chmod(0o755)


def _run(folder: Path, before: list[str], command: str) -> str:
    """What a command prints after those that set variables, in the order of a terminal."""
    done = subprocess.run(
        ["bash", "-c", "\n".join([*before, command])],
        cwd=folder,
        env=os.environ | _environment(folder),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=_LIMIT_S,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"$ {command}\n{done.stdout}")
    return re.sub(r"[ \t]+$", "", done.stdout, flags=re.MULTILINE)


def _environment(folder: Path) -> dict[str, str]:
    paths = [str(HERE.parent), os.environ.get("PYTHONPATH", "")]
    return {
        "PATH": f"{folder / '.tools'}:{os.environ['PATH']}",
        "PYTHONPATH": os.pathsep.join(path for path in paths if path),
        "PYTHONUNBUFFERED": "1",
        "OMP_NUM_THREADS": "1",
    }


if __name__ == "__main__":
    for one in (PAGE, MESH):
        one.write_text(page(one.read_text(encoding="utf-8")), encoding="utf-8")
