"""Gathers the pages of the site: those of docs/ and the studies, with what they link to.

A page of ``docs/`` becomes one at the root of the site; all else keeps its place below the
repository.  A link to a page leads to the page, one to code or data to a copy as text, and one to
a folder without a page to the list of its files.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
ALONE = ("CHANGELOG.md", "CONTRIBUTING.md")
MOST_BYTES = 200_000
"""Of a file of code or data that is copied; a link to a larger one is left out."""
PICTURES = (".svg", ".png")
LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)\s#]*)(#[^)\s]*)?\)")
FENCE = re.compile(r"(^```.*?^```)", re.M | re.S)
FOREIGN = re.compile(r"[a-z]+:")


def pages() -> Iterator[Path]:
    """The Markdown files that become pages."""
    yield from sorted(p for p in (ROOT / "docs").rglob("*.md") if "site" not in p.parts[-2:-1])
    studies = sorted((ROOT / "experiments").rglob("*.md"))
    yield from (path for path in studies if not path.name.endswith(".in.md"))
    yield from (ROOT / name for name in ALONE)


def place(path: Path) -> Path:
    """Where a page stands below the site's sources."""
    inside = path.relative_to(ROOT)
    return inside.relative_to("docs") if inside.parts[0] == "docs" else inside


def stage(target: Path) -> None:
    """Write all pages below a folder, with the pictures, code and data that they link to.

    Raises:
        LookupError: a link of a page leads nowhere.
    """
    shutil.rmtree(target, ignore_errors=True)
    known = {path: place(path) for path in pages()}
    known[ROOT / "README.md"] = Path("index.md")
    for path, where in known.items():
        if path != ROOT / "README.md":
            text = _Staged(path, where, known, target).text()
            _write(target / where, text)


class _Staged:
    """A page with its links as the site has them."""

    def __init__(self, path: Path, where: Path, known: dict[Path, Path], target: Path) -> None:
        self.path, self.where, self.known, self.target = path, where, known, target

    def text(self) -> str:
        """Links in blocks of code stay as they are."""
        parts = FENCE.split(self.path.read_text(encoding="utf-8"))
        parts[::2] = (LINK.sub(self._link, part) for part in parts[::2])
        return "".join(parts)

    def _link(self, found: re.Match[str]) -> str:
        picture, words, target, anchor = found[1], found[2], found[3], found[4] or ""
        if not target or FOREIGN.match(target):
            return found[0]
        file = (self.path.parent / target).resolve()
        if not file.exists():
            raise LookupError(f"{self.path.relative_to(ROOT)}: {target} leads nowhere")
        where = self._there(file)
        if where is None:
            return words
        return f"{picture}[{words}]({self._relative(where)}{anchor})"

    def _relative(self, where: Path) -> str:
        return Path(os.path.relpath(where, self.where.parent)).as_posix()

    def _there(self, file: Path) -> Path | None:
        """Where the site has a file or folder; it is copied there first."""
        page = file / "README.md" if file.is_dir() else file
        if page in self.known:
            return self.known[page]
        if file.is_dir():
            return self._listed(file)
        if file.stat().st_size > MOST_BYTES and file.suffix not in PICTURES:
            return None
        where = place(file) if file.suffix in PICTURES else self._source(file)
        (self.target / where).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, self.target / where)
        return where

    def _listed(self, folder: Path) -> Path:
        names = sorted(p.name + "/" * p.is_dir() for p in folder.iterdir() if p.name[0] not in "._")
        where = Path("source") / folder.relative_to(ROOT) / "files.txt"
        _write(self.target / where, "".join(f"{name}\n" for name in names))
        return where

    @staticmethod
    def _source(file: Path) -> Path:
        return Path("source") / f"{file.relative_to(ROOT)}.txt"


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
