"""p2smt and msccl-tools on the same questions: whole processes, one after the other.

    python -m experiments.schedule_synthesis.compare [--times] MSCCL_TOOLS PYTHON [REPEAT]

MSCCL_TOOLS is a clone of microsoft/msccl-tools at the commit below; PYTHON runs it, and has what it
imports: the z3-solver of requirements.lock, lxml, igraph, argcomplete, humanfriendly, tabulate.
REPEAT is 5 unless given; a process that does not end in 15 minutes is not started again.
``--times`` renews what the processes took, too.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from experiments.schedule_synthesis.answers import LATE, our_answer, their_answer
from experiments.schedule_synthesis.processes import Ran, ran
from experiments.schedule_synthesis.questions import QUESTIONS, Question
from experiments.schedule_synthesis.same_fabric import limits, peer_fabric, renumbering
from experiments.schedule_synthesis.store import Row, write
from experiments.testbed.script import ended
from experiments.testbed.written.timings import taken
from p2smt.errors import InputError
from p2smt.interop.fabrics import read_fabric
from p2smt.report.progress import counted

COMMIT = "030a750fc56e03fb863ffe48268672d84d4cdc7b"
ROOT = Path(__file__).resolve().parents[2]
REPEAT, LIMIT_S = 5, 900.0
OURS, PLAIN, THEIRS = "p2smt", "p2smt, no symmetry", "msccl-tools"

Tool = tuple[str, list[str], dict[str, str], Callable[[Ran], tuple[str, str]]]


def tools(question: Question, clone: Path, python: str, output: str) -> list[Tool]:
    """Who is asked: a name, the command, its environment, and how its answer is read."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    ours, theirs = kept | {"PYTHONPATH": str(ROOT)}, kept | {"PYTHONPATH": str(clone)}
    auto = question.ours(sys.executable, output, symmetry="auto")
    plain = question.ours(sys.executable, output, symmetry="none")
    return [
        (OURS, auto, ours, our_answer),
        *([(PLAIN, plain, ours, our_answer)] if question.repeat_none else []),
        (THEIRS, question.theirs(python), theirs, their_answer),
    ]


def rows_of(question: Question, clone: Path, python: str, repeat: int) -> list[Row]:
    """A row for each tool: its answer, and the seconds of every run.  Runs take turns."""
    rows: dict[str, Row] = {}
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(repeat):
            for tool in tools(question, clone, python, str(Path(folder) / "found.yaml")):
                row = rows.setdefault(tool[0], _empty(question, tool[0]))
                if row["answer"] != LATE:
                    _measure(row, tool, Path(folder))
    return list(rows.values())


def _empty(question: Question, tool: str) -> Row:
    return {
        "title": question.title,
        "size": question.size,
        "exists": question.exists,
        "tool": tool,
        "answer": "",
        "reason": "",
        "cpu_s": [],
        "wall_s": [],
    }


def _measure(row: Row, tool: Tool, folder: Path) -> None:
    name, command, environment, answer_of = tool
    run = ran(command, environment, folder, LIMIT_S)
    answer, reason = answer_of(run)
    if row["answer"] not in ("", answer):
        answer = f"{row['answer']}, then {answer}"
    row.update(answer=answer, reason=reason)
    row["cpu_s"].append(round(run.cpu_s, 3))
    row["wall_s"].append(round(run.wall_s, 3))
    print(f"{row['title']} {row['size']} {name}: {answer} {run.cpu_s:.2f} s CPU", file=sys.stderr)


def checked_clone(path: str) -> Path:
    """The clone, if it is at the commit.

    Raises:
        InputError: it is none, or at another.
    """
    command = ["git", "-C", path, "rev-parse", "HEAD"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.stdout.strip() != COMMIT:
        rule = f"is not a clone of microsoft/msccl-tools at {COMMIT}"
        raise InputError(f"folder {path!r}", rule, "clone it, and check that commit out")
    return Path(path).resolve()


def require_same_fabric(question: Question, clone: Path, python: str) -> None:
    """Both tools must mean the same fabric, up to the numbers of ranks.

    Raises:
        InputError: they do not.
        ExecutionError: msccl-tools does not run.
    """
    environment = os.environ | {"PYTHONPATH": str(clone)}
    ours = read_fabric(question.fabric)
    theirs = limits(peer_fabric(python, environment, question.topology))
    if renumbering(limits(ours), theirs, ours.ranks) is None:
        rule = f"is not what msccl-tools means by {' '.join(question.topology)}"
        raise InputError(f"fabric {question.fabric}", rule)


def main(arguments: Sequence[str]) -> None:
    """Ask every question, and store the rows after each.

    Raises:
        InputError: the arguments are not these.
    """
    named, anew = taken(arguments)
    if len(named) not in (2, 3) or not (named[2:] or ["1"])[0].isdigit():
        raise InputError(f"{len(named)} arguments", "MSCCL_TOOLS PYTHON [REPEAT] is expected")
    clone, repeat = checked_clone(named[0]), int((named[2:] or [str(REPEAT)])[0])
    rows: list[Row] = []
    for question in QUESTIONS:
        require_same_fabric(question, clone, named[1])
    for question in counted(QUESTIONS, "questions"):
        rows += rows_of(question, clone, named[1], repeat)
        write(rows, anew)


if __name__ == "__main__":
    sys.exit(ended(main, sys.argv[1:]))
