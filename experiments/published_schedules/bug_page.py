"""The page of bugs: every wrong schedule as a report to its authors would tell it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from experiments.published_schedules.known import BUGS, DOES_NOT_RUN, Bug
from experiments.published_schedules.sources import REPOSITORIES, Repository

if TYPE_CHECKING:
    from collections.abc import Sequence

    from experiments.published_schedules.store import Row

_MOST_LINES = 26
_STUDY = (
    "in the folder of p2smt, with that clone in CLONES; what the file does not say is in the study",
    "python -m experiments.published_schedules.study CLONES PYTHON",
)
HEAD = """# Wrong schedules, as reports to their authors

Written by `python -m experiments.published_schedules.page` from the rows of the study; the table of
all schedules is in [README.md](README.md). Steps are named by rank, thread block, step and line of
the file that was verified. "Rests on" says what the verdict assumes beyond the file.
"""


def bug_page(rows: Sequence[Row]) -> str:
    """The page."""
    told = [_report(number, bug, rows) for number, bug in enumerate(BUGS, 1)]
    return "\n".join([HEAD, *told, _not_running(rows)])


def untold(rows: Sequence[Row]) -> list[str]:
    """Wrong schedules that no report is about."""
    known = {(bug.repository, path) for bug in BUGS for path in bug.paths}
    wrong = [row for row in rows if row["verdict"] == "invalid"]
    keys = [(row["repository"], row["path"]) for row in wrong]
    return [f"{name} {path}" for name, path in keys if (name, path) not in known]


def _report(number: int, bug: Bug, rows: Sequence[Row]) -> str:
    repository = next(one for one in REPOSITORIES if one.name == bug.repository)
    shown = [_row(bug, path, rows) for path in bug.paths]
    return "\n".join(
        (
            f"## {number}. {bug.title}\n",
            f"Repository: [{bug.repository}]({repository.url}) at `{repository.commit[:12]}`  ",
            *(f"Schedule: `{path}`  " for path in bug.paths),
            *_own_check(shown),
            f"Rests on: {bug.rests_on}.\n",
            "**What goes wrong**\n",
            "```text",
            *_shortened(shown[0]["lines"]),
            "```\n",
            "**How to reproduce**\n",
            "```sh",
            *_commands(repository, shown[0]),
            "```\n",
            f"**Suggested cause.** {bug.cause}\n",
            f"**Suggested remedy.** {bug.remedy}\n",
        )
    )


def _row(bug: Bug, path: str, rows: Sequence[Row]) -> Row:
    key = (bug.repository, path)
    return next(row for row in rows if (row["repository"], row["path"]) == key)


def _own_check(rows: Sequence[Row]) -> list[str]:
    words = {"passed": "passes it", "refused": "refuses it, and prints the XML all the same"}
    said = {words[row["own_check"]] for row in rows if row.get("own_check") in words}
    return [f"The generator's own check {one}.  " for one in sorted(said)]


def _shortened(lines: Sequence[str]) -> list[str]:
    if len(lines) <= _MOST_LINES:
        return list(lines)
    return [*lines[:_MOST_LINES], f".. {len(lines) - _MOST_LINES} more lines"]


def _commands(repository: Repository, row: Row) -> list[str]:
    folder = repository.name.split("/")[1]
    start = [f"git clone {repository.url} && cd {folder} && git checkout {repository.commit}"]
    if not row["program"]:
        return [*start, f"p2smt verify {row['path']}"]
    program = next(one for one in repository.programs if row["path"].startswith(one.name))
    if program.code or program.custom:
        return [*start, f"# {_STUDY[0]}", _STUDY[1]]
    form = "json" if repository.bare else "xml"
    paths = ":".join(repository.imports)
    return [*start, f"PYTHONPATH={paths} python {row['path']} > x.{form}", f"p2smt verify x.{form}"]


def _not_running(rows: Sequence[Row]) -> str:
    broken = [row for row in rows if row["program"] and row["verdict"] == "unreadable"]
    lines = [f"| {row['repository']} | `{row['path']}` | {row['reason']} |" for row in broken]
    head = ("| repository | command | what happens |", "|---|---|---|")
    return "\n".join(("## Programs that do not run\n", f"{DOES_NOT_RUN}\n", *head, *lines, ""))
