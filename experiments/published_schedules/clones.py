"""Clones of the repositories: files and whole trees at a commit, by git alone."""

from __future__ import annotations

import io
import subprocess
import tarfile
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING

from p2smt.errors import InputError

if TYPE_CHECKING:
    from experiments.published_schedules.sources import Repository


@dataclass(frozen=True, slots=True)
class Clone:
    """A repository and where its clone (with or without a work tree) is."""

    repository: Repository
    folder: Path

    def paths(self) -> list[str]:
        """The schedule files at the commit, in order."""
        every = self._git("ls-tree", "-r", "-z", "--name-only", self.repository.commit)
        names = every.decode("utf-8", "replace").split("\0")
        return sorted(
            name for name in names if any(fnmatchcase(name, one) for one in self.repository.files)
        )

    def content(self, path: str) -> bytes | None:
        """A file at the commit; None: the clone does not have it (some stores leave files out)."""
        try:
            return self._git("show", f"{self.repository.commit}:{path}")
        except InputError:
            return None

    def extract(self, folder: Path) -> None:
        """Write the whole tree of the commit into a folder."""
        packed = self._git("archive", "--format=tar", self.repository.commit)
        with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
            archive.extractall(folder, filter="data")

    def _git(self, *arguments: str) -> bytes:
        command = ["git", "-C", str(self.folder), *arguments]
        done = subprocess.run(command, capture_output=True, check=False)
        if done.returncode != 0:
            said = done.stderr.decode("utf-8", "replace").strip().splitlines() or ["git failed"]
            rule = f"git {arguments[0]} fails: {said[-1][:200]}"
            raise InputError(f"clone {str(self.folder)!r}", rule, "fetch the commit of the study")
        return done.stdout


def clone_of(repository: Repository, clones: Path) -> Clone | None:
    """The clone of a repository below a folder, under OWNER+NAME, OWNER/NAME or NAME."""
    owner, name = repository.name.split("/")
    for place in (f"{owner}+{name}", f"{owner}/{name}", name):
        if (clones / place).is_dir():
            return Clone(repository, clones / place)
    return None
