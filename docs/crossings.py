"""Runs the commands of crossings.md; writes what they print, and the picture.

Usage: python docs/crossings.py
"""

from __future__ import annotations

import contextlib
import io
import re
import shlex
from pathlib import Path

from p2smt.cli import run

PAGE = Path(__file__).parent / "crossings.md"
PICTURE = Path(__file__).parent / "figures" / "crossings.svg"


def page(text: str) -> str:
    """The page with what its commands print now."""
    return re.sub(r"```console\n\$ p2smt (.*?)\n(.*?)```", _command, text, flags=re.S)


def _command(found: re.Match[str]) -> str:
    shown = printed(shlex.split(found[1]))
    return f"```console\n$ p2smt {found[1]}\n{shown}```"


def printed(arguments: list[str]) -> str:
    """What a command prints, without blanks at the ends of lines.

    Raises:
        SystemExit: it fails.
    """
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        code = run(arguments)
    if code:
        raise SystemExit(f"p2smt {shlex.join(arguments)} ended with {code}")
    return "".join(f"{line.rstrip()}\n" for line in out.getvalue().splitlines())


def draw(text: str) -> None:
    """The picture, by the command that the page names."""
    (command,) = re.findall(r"\(`p2smt (crossings [^`]*) --plot regions.svg`", text)
    printed([*shlex.split(command), "--plot", str(PICTURE)])


if __name__ == "__main__":
    before = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(page(before), encoding="utf-8")
    draw(before)
