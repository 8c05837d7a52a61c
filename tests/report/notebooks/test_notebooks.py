"""The notebooks of examples/ run as a user would run them, and answers show themselves there."""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

from tests.imports import ROOT
from tests.interpreter import ran
from tests.pages import blocks, with_programs
from tests.tiers import but_the_first

FOLDER = ROOT / "examples" / "notebooks"
RUN = """
import sys
import nbformat
from jupyter_client.manager import AsyncKernelManager
from nbclient import NotebookClient

read = nbformat.read(sys.argv[1], 4)
# Sockets in a folder of their own: ports may be taken between their choice and their use.
kernel = AsyncKernelManager(kernel_name="python3", transport="ipc", ip=sys.argv[2] + "/k")
NotebookClient(read, km=kernel, timeout=600).execute()
nbformat.write(read, sys.argv[1])
"""
SAYS = {
    "write_a_collective": (
        "schedule\n",
        "3/2 rounds a chunk; valid: True",
        "invalid",
        "never received",
    ),
    "train_a_model": ("tokens a second; sign certain: ", "page written to gain.html", "valid: 3"),
}
SHOWS = {
    "write_a_collective": ("Valid: every interleaving", "<table", "payload_bytes"),
    "train_a_model": ("Levels, outermost first", "What else would do", "iteration_s"),
}


def notebook(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def outputs(cells: list[Any]) -> list[Any]:
    return [one for cell in cells for one in cell.get("outputs", [])]


def words(value: Any) -> str:
    """A text of a notebook: one, or its lines."""
    return "".join(value)


def test_every_notebook_is_tried() -> None:
    assert {path.stem for path in FOLDER.iterdir()} == set(SAYS) == set(SHOWS)


@pytest.mark.parametrize("name", SAYS)
def test_a_notebook_is_kept_without_what_a_run_left(name: str) -> None:
    found = notebook(FOLDER / f"{name}.ipynb")
    assert outputs(found["cells"]) == []
    assert {cell.get("execution_count") for cell in found["cells"]} == {None}
    assert words(found["cells"][0]["source"]).startswith("# ")


@pytest.mark.slow
@pytest.mark.parametrize("name", but_the_first(*SAYS))
def test_a_notebook_runs(name: str, tmp_path: Path) -> None:
    for one in ("nbclient", "ipykernel"):
        pytest.importorskip(one, reason=f"{one} is not installed")
    path = Path(shutil.copy(FOLDER / f"{name}.ipynb", tmp_path))
    with tempfile.TemporaryDirectory() as short:  # names of sockets are
        own = {"JUPYTER_RUNTIME_DIR": short, "IPYTHONDIR": short}
        done = ran(
            *(sys.executable, "-c", RUN, str(path), short),
            folder=tmp_path,
            environment={**with_programs(tmp_path), **own},
        )
    assert done.returncode == 0, done.stderr[-3000:]
    found = outputs(notebook(path)["cells"])
    assert [one for one in found if one.get("name") == "stderr"] == []
    said = "".join(words(one.get("text", "")) for one in found)
    html = "".join(words(one.get("data", {}).get("text/html", "")) for one in found)
    assert [one for one in SAYS[name] if one not in said] == []
    assert [one for one in SHOWS[name] if one not in html] == []
    assert html.count('<div class="p2smt">') == {"write_a_collective": 1, "train_a_model": 2}[name]


def test_the_page_prints_what_it_shows(tmp_path: Path) -> None:
    page = ROOT / "docs" / "notebooks.md"
    (program,), (shown,) = (blocks(page, language) for language in ("python", "text"))
    done = ran(sys.executable, "-c", program, folder=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == shown
