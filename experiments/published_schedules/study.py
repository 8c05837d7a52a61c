"""Verifies every schedule in clones of public repositories, and what their programs generate.

    python -m experiments.published_schedules.study [--times] CLONES [PYTHON]

CLONES is a folder of clones (OWNER+NAME, OWNER/NAME or NAME) that have the commits of
``sources.py``; rows of a repository without a clone stay as they are.  PYTHON runs the
repositories' own programs, and has what those import (README.md says what); without it their rows
stay as they are, too.  ``--times`` renews what reading and verifying took.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from experiments.published_schedules.clones import Clone, clone_of
from experiments.published_schedules.generated import generate
from experiments.published_schedules.judge import judged, unreadable
from experiments.published_schedules.sources import REPOSITORIES, Program, Repository
from experiments.published_schedules.store import Row, read, write
from experiments.testbed.script import ended
from experiments.testbed.written.timings import taken
from p2smt.errors import InputError
from p2smt.report.progress import counted


def file_rows(clone: Clone) -> Iterator[Row]:
    """A row for each schedule file of a clone."""
    for path in clone.paths():
        raw = clone.content(path)
        about = {"repository": clone.repository.name, "path": path, "program": False}
        if raw is None:
            yield about | unreadable("is not in the snapshot that was looked at")
        else:
            found = judged(raw.decode("utf-8", "replace"), runtime=clone.repository.runtime)
            yield about | found


def program_rows(clone: Clone, python: str) -> Iterator[Row]:
    """A row for each schedule that the programs of a clone generate."""
    if not clone.repository.programs:
        return
    with tempfile.TemporaryDirectory() as folder:
        clone.extract(Path(folder))
        for program in clone.repository.programs:
            yield from _generated_rows(clone.repository, program, python, Path(folder))


def _generated_rows(
    repository: Repository, program: Program, python: str, tree: Path
) -> Iterator[Row]:
    found = generate(python, tree, repository, program)
    about = {"repository": repository.name, "path": program.name, "program": True}
    if found.failure:
        yield about | unreadable(found.failure)
    for number, one in enumerate(found.schedules, 1):
        which = {} if len(found.schedules) == 1 else {"path": f"{program.name} ({number})"}
        verdict = judged(one, program.custom, repository.runtime)
        yield about | which | {"own_check": found.own_check} | verdict


def rows_of(repository: Repository, clones: Path, python: str | None, old: list[Row]) -> list[Row]:
    """The rows of a repository: new ones where they can be made, the old ones where not."""
    mine = [row for row in old if row["repository"] == repository.name]
    clone = clone_of(repository, clones)
    if clone is None:
        print(
            f"{repository.name}: no clone in {clones}; its rows stay as they are", file=sys.stderr
        )
        return mine
    rows = list(file_rows(clone))
    if python is None:
        return rows + [row for row in mine if row["program"]]
    return rows + list(program_rows(clone, python))


def main(arguments: Sequence[str]) -> None:
    """Judge everything, and store it.

    Raises:
        InputError: the arguments are not these, or a clone lacks its commit.
    """
    named, anew = taken(arguments)
    if len(named) not in (1, 2):
        raise InputError(f"{len(named)} arguments", "CLONES [PYTHON] is expected")
    clones, python = Path(named[0]), named[1] if len(named) == 2 else None
    if not clones.is_dir():
        raise InputError(f"folder {str(clones)!r}", "does not exist", "clone what sources.py lists")
    old, rows = read(), list[Row]()
    for repository in counted(REPOSITORIES, "repositories"):
        rows += rows_of(repository, clones, python, old)
    write(rows, anew)


if __name__ == "__main__":
    sys.exit(ended(main, sys.argv[1:]))
