"""Every example of the help runs as printed, in a folder that has the files it names.

Those files are made by the commands of ``BEFORE``, or stand in for what a user has: a launch
script, tables of nccl-tests, what a scheduler says.
"""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType

import pytest

from p2smt.cli.guide.headings import EXAMPLES
from tests.cli.tools import cli
from tests.imports import ROOT
from tests.pages import ABORTED, ATTEMPTS, with_programs
from tests.transfer.files import cut

TABLES = "tests/interop/nccl_tests/nccl_tables"
OWN: Mapping[str, str] = MappingProxyType(
    {
        "train.sh": "docs/tutorial/launch.sh",
        "one.txt": f"{TABLES}/aws-p5-1n8g-batch-allreduce.txt",
        "two.txt": f"{TABLES}/issue309-h100-2n16g-allreduce.txt",
        "runs.csv": "experiments/training_runs/runs.csv",
        "examples/lost_dependency.xml": "examples/lost_dependency.xml",
    }
)
"""Files that a user has, and those of the repository that stand in for them."""
LEAVES = "".join(f"SwitchName=leaf{n} Nodes=n[{8 * n + 1:02}-{8 * n + 8:02}]\n" for n in range(4))
NODES = [
    {"metadata": {"name": f"n{at}", "labels": {"fabric.topograph.run/tier-0": f"leaf{at // 3}"}}}
    for at in range(6)
]
TEXTS: Mapping[str, str] = MappingProxyType(
    {
        "topology.conf": LEAVES + "SwitchName=spine Switches=leaf[0-3]\n",
        "nodes.json": json.dumps({"kind": "List", "items": NODES}),
        "job.txt": "".join(f"n{at:02}\n" for at in (3, 9, 17, 25, 1, 30)),
        "before.json": json.dumps(cut(32, 64, 0)),
        "after.json": json.dumps(cut(16, 64, 1)),
    }
)
_SOLVE = "p2smt solve -t dgx-a100:4 --axes dp=8,tp=4 --reduce dp=1GiB"
_PLAN = "p2smt plan -m llama-3-8b -t dgx-h100:4 --global-batch 256 --seq 8192 --max-cp 1"
_IMPORT = "p2smt topology import topology.conf --node dgx-h100 --uplink leaf=400GB/s"
_SYNTHESIZE = EXAMPLES["synthesize"][0]
BEFORE: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "compare": (f"{_SOLVE} -o own.json", f"{_SOLVE} --fix tp=gpu:4 -o other.json"),
        "run": (f"{_SOLVE} -o plan.json", _SYNTHESIZE),
        "verify": (f"{_SOLVE} -o plan.json",),
        "convert": (f"{_SOLVE} -o plan.json", _SYNTHESIZE),
        "export": (f"{_PLAN} -o plan.json",),
        "order": (f"{_PLAN} -o plan.json", f"{_IMPORT} -o cluster.yaml"),
        "topology show": (f"{_IMPORT} -o cluster.yaml",),
        "topology export": (f"{_IMPORT} -o cluster.yaml",),
        "topology check": (f"{_IMPORT} -o cluster.yaml",),
        "report": (
            f"{_PLAN} -o plan.json",
            f"{_PLAN} --fix tp=8 -o today.json",
            f"{_PLAN} -o better.json",
        ),
        "show": (f"{_PLAN} -o plan.json", EXAMPLES["classics"][1]),
    }
)
"""What is run before the examples of a command."""
CODES: Mapping[str, set[int]] = MappingProxyType(
    {
        "verify": {0, 1},  # the second finds a fault
        "topology detect": {0, 5},  # where there is no GPU it says so
    }
)
QUICK = (
    *("solve", "models", "placements", "programs", "cost", "classics", "docs", "schema"),
    *(f"topology {part}" for part in ("list", "show", "check", "fabric", "import", "export")),
)
"""Commands whose examples are run every day: they take parts of a second."""
Runs = Callable[[str], int]
"""A command's exit code; what fails says so in lines, never with a traceback."""


@pytest.mark.parametrize("name", QUICK)
def test_quick_examples_run(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def inside(command: str) -> int:
        done = cli(*shlex.split(command)[1:])
        print(f"$ {command}\n{done.out[-1500:]}{done.err[-1500:]}")  # for who reads a failure
        return done.code

    monkeypatch.chdir(tmp_path)
    _run_all(name, tmp_path, inside)


@pytest.mark.slow
@pytest.mark.exhaustive
@pytest.mark.parametrize("name", EXAMPLES)
def test_examples_run_in_a_shell_as_printed(name: str, tmp_path: Path) -> None:
    environment = with_programs(tmp_path)
    _run_all(name, tmp_path, lambda command: _in_shell(command, tmp_path, environment))


def _run_all(name: str, folder: Path, runs: Runs) -> None:
    """The examples of a command, in a folder with what they need; they write what they name."""
    for own, path in OWN.items():
        (folder / own).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / path, folder / own)
    for own, text in TEXTS.items():
        (folder / own).write_text(text)
    for command in BEFORE.get(name, ()):
        assert runs(command) == 0, command
    for command in EXAMPLES[name]:
        before = {one.name for one in folder.iterdir()}
        assert runs(command) in CODES.get(name, {0}), command
        made = {one.name for one in folder.iterdir()} - before
        assert {_asked(one) for one in made} <= set(command.split())


def _asked(name: str) -> str:
    """The name that was given: files of which a command writes several are numbered."""
    return re.sub(r"([-.]\d+)+(?=\.)", "", name)


def _in_shell(command: str, folder: Path, environment: dict[str, str]) -> int:
    for _ in range(ATTEMPTS):
        done = subprocess.run(
            ["bash", "-c", command],
            cwd=folder,
            env=environment,
            timeout=600,
            capture_output=True,
            text=True,
            check=False,
        )
        if ABORTED not in done.stderr:
            break
    print(f"$ {command}\n{done.stdout[-1500:]}{done.stderr[-1500:]}")
    assert "Traceback" not in done.stderr
    return done.returncode


def test_what_is_named_has_examples() -> None:
    assert {*BEFORE, *CODES, *QUICK} <= set(EXAMPLES)
