"""What the programs of a clone generate, and what their own checks say of it."""

from __future__ import annotations

import os
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from experiments.published_schedules.sources import Program, Repository

LAUNCH = Path(__file__).with_name("launch.py")
LIMIT_S = 300
_ALGO = re.compile(r"^<algo .*?^</algo>", re.S | re.M)
_OWN_CHECK = re.compile(r"^\s*[^#\n]*\bCheck\(\)", re.M)


@dataclass(frozen=True, slots=True)
class Generated:
    """What a program printed.

    schedules: the texts of schedules in it, in order.
    own_check: passed, refused or none, by the generator's own check of the program.
    failure: why there are no schedules, in one line; empty if there are some.
    """

    schedules: tuple[str, ...]
    own_check: str
    failure: str = ""


def generate(python: str, tree: Path, repository: Repository, program: Program) -> Generated:
    """Run a program in an extracted tree.

    The language of MSCCL++ has no check of its own; that of MSCCLang is asked for by ``Check()``,
    and prints each chunk that it finds wrong.
    """
    folders = ":".join(str(tree / one) for one in repository.imports)
    script = ["-c", program.code] if program.code else [program.path, *program.arguments.split()]
    command = [python, "-P", str(LAUNCH), folders, repository.bare, *script]
    kept = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    kept["PYTHONPATH"] = folders
    kept["PYTHONHASHSEED"] = "0"  # msccl-tools goes through sets: its schedules depend on it
    try:
        done = subprocess.run(
            command, cwd=tree, env=kept, capture_output=True, text=True, timeout=LIMIT_S
        )
    except subprocess.TimeoutExpired:
        return Generated((), "none", f"does not end within {LIMIT_S} s")
    source = (tree / program.path).read_text(encoding="utf-8")
    return read_output(source, done.stdout, done.stderr, done.returncode)


def read_output(source: str, printed: str, errors: str, code: int) -> Generated:
    """What a program with this source said."""
    texts = _schedules(printed)
    asked = bool(_OWN_CHECK.search(source))
    beside = _ALGO.sub("", printed) if texts else printed
    refused = asked and "is incorrect" in beside
    own = "refused" if refused else "passed" if asked and code == 0 else "none"
    if texts:
        return Generated(tuple(texts), own)
    last = (errors.strip() or printed.strip() or "nothing is printed").splitlines()[-1]
    return Generated((), "none", f"does not run: {last[:160]}")


def _schedules(printed: str) -> list[str]:
    """XML documents among other lines, or one JSON object."""
    text = printed.strip()
    if text.startswith("{"):
        return [text]
    return _ALGO.findall(text)
