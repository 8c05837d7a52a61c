"""Runs the commands and the piece of redistribution.md; writes what they print, and the picture."""

from __future__ import annotations

import contextlib
import io
import re
import shlex
import tempfile
from collections.abc import Callable
from pathlib import Path

from p2smt.cli import run

PAGE = Path(__file__).parent / "redistribution.md"
PICTURE = Path(__file__).parent / "figures" / "redistribution.svg"


def page(text: str) -> str:
    """The page with what its commands and its piece print now."""
    (cluster,) = re.findall(r"```yaml\n(.*?)```", text, re.S)
    (code,) = re.findall(r"```python\n(.*?)```", text, re.S)
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        Path("cluster.yaml").write_text(cluster)
        text = re.sub(r"```console\n\$ p2smt (.*?)\n(.*?)```", _command, text, flags=re.S)
        PICTURE.write_bytes(Path("blocks.svg").read_bytes())
        shown = _printed(lambda: exec(compile(code, PAGE.name, "exec"), {}))
    return re.sub(r"```text\n(.*?)```", lambda _: f"```text\n{shown}```", text, flags=re.S)


def _command(found: re.Match[str]) -> str:
    shown = _printed(lambda: run(shlex.split(found[1])))
    return f"```console\n$ p2smt {found[1]}\n{shown}```"


def _printed(what: Callable[[], object]) -> str:
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        what()
    return out.getvalue()


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
