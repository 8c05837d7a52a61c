"""Renews the answers of README.md and their pictures.

Usage: python docs/readme.py
"""

from __future__ import annotations

import contextlib
import difflib
import importlib.util
import io
import json
import re
import shlex
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from p2smt.cli import run

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "README.md"
PICTURES = Path(__file__).parent / "figures" / "readme.py"
BLOCK = re.compile(
    r"```console\n\$ p2smt (.*?)\n(.*?)```(?:\n\n!\[[^\]]*\]\(docs/figures/(\w+)\.svg\))?", re.S
)
"""A command, the lines chosen of its answer, and the picture below, if there is one."""
MOST_LINES = 8


def page(text: str) -> str:
    """The page with what its commands print now: of each the lines most like those chosen."""
    return BLOCK.sub(lambda found: _renewed(found, printed(found[1])), text)


def _renewed(found: re.Match[str], lines: Sequence[str]) -> str:
    shown = "".join(f"{line}\n" for line in alike(found[2].splitlines(), lines))
    return found[0].replace(f"\n{found[2]}```", f"\n{shown}```")


def alike(chosen: Sequence[str], lines: Sequence[str]) -> Iterator[str]:
    """For each chosen line the most similar one among those printed after the last."""
    at = 0
    for line in chosen:
        place = max(range(at, len(lines)), key=lambda i: _likeness(line, lines[i]))
        yield lines[place]
        at = place + 1


def _likeness(first: str, second: str) -> float:
    return difflib.SequenceMatcher(None, first, second).ratio()


def printed(command: str) -> list[str]:
    """The lines that a command prints where the repository's examples are."""
    return [line.rstrip() for line in _said(shlex.split(command)).splitlines()]


def answer(command: str) -> Any:
    """The same as JSON."""
    return json.loads(_said([*shlex.split(command), "--json"]))


def _said(words: Sequence[str]) -> str:
    """What it prints in a folder of its own, so that it leaves nothing behind."""
    out = io.StringIO()
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        Path("examples").symlink_to(ROOT / "examples")
        with contextlib.redirect_stdout(out):
            run(list(words))
    return out.getvalue()


def pictures() -> Any:
    """The module that draws them, which needs matplotlib to draw."""
    spec = importlib.util.spec_from_file_location("readme_pictures", PICTURES)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def main() -> None:
    """Renew page and pictures."""
    text = page(PAGE.read_text(encoding="utf-8"))
    drawn = pictures()
    for command, _, name in BLOCK.findall(text):
        if name:
            drawn.draw(name, answer(command))
    PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
