"""Packs what a machine without a network needs for this check: ``make gpu-bundle``.

    python -m experiments.gpu_check.bundle FOLDER

The folder holds the modules of the product that run, found by importing them, the cases, and a
README.md with the command.  There, torch and numpy are all that must be installed.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from experiments.testbed.script import only_argument

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).resolve().parent
MODULES = (
    *("experiments.gpu_check.gpu_check", "experiments.gpu_check.one_rank"),
    *("experiments.gpu_check.table", "p2smt.runtime.ranks.node", "p2smt.runtime.ranks.worker"),
)
"""What is started there; everything else is imported by these."""

MOST_BYTES = 40 << 20
_LIST = """
import importlib, json, sys
for name in sys.argv[1:]:
    importlib.import_module(name)
found = [m.__file__ for n, m in sys.modules.items() if n.split(".")[0] in ("p2smt", "experiments")]
print(json.dumps([file for file in found if file]))
"""
TITLE = "# A check on GPUs, packed\n"
"""The first line of README.md, by which a folder is known as a bundle."""
README = f"""{TITLE}
Needs Linux, Python 3.11 or newer with torch (a CUDA build) and numpy, one GPU, no network.
In this folder:

    python -m experiments.gpu_check.gpu_check

It ends within nine minutes, prints its tables, and writes results.json and results.md to $OUT, or
to experiments/gpu_check/results here.  `--device cpu --backend gloo` tries it without a GPU.
"""


def files() -> list[Path]:
    """The modules that run, and the cases."""
    command = [sys.executable, "-c", _LIST, *MODULES]
    done = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    return sorted(
        {Path(name).resolve() for name in json.loads(done.stdout)} | {HERE / "cases.json"}
    )


def pack(folder: Path) -> int:
    """Write the folder anew; its size in bytes.

    Raises:
        ValueError: it is something else already, or larger than it may be.
    """
    if folder.exists() and not is_bundle(folder):
        raise ValueError(f"{folder}: is there already and is no bundle; name another folder")
    packed = files()
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "README.md").write_text(README, encoding="utf-8")
    for file in packed:
        target = folder / file.relative_to(ROOT)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, target)
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    if size > MOST_BYTES:
        raise ValueError(f"{folder}: {size} bytes, at most {MOST_BYTES} may be packed")
    return size


def is_bundle(folder: Path) -> bool:
    """Whether the folder was packed here; a checkout has the same modules and cases."""
    readme = folder / "README.md"
    return readme.is_file() and readme.read_bytes().startswith(TITLE.encode())


def main(arguments: Sequence[str]) -> int:
    """Pack, and say what was packed."""
    try:
        folder = Path(only_argument(arguments, "the folder to write"))
        size = pack(folder)
    except (ValueError, OSError) as error:
        print(f"bundle: error: {error}", file=sys.stderr)
        return 2
    print(f"{folder}: {size / 1e6:.1f} MB; its README.md has the command")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
