"""Builds the documentation as a site that needs no server and no network: ``make docs``.

Usage: python -m docs.site.build [FOLDER]
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import yaml

from docs.site import links, reference
from docs.site.stage import ROOT, stage

HERE = Path(__file__).parent
SETTING = HERE / "mkdocs.yml"
STYLE = "site.css"
VENDORED = "iframe-worker.js"
MARK = "generated:"
"""In the navigation: all pages of the reference below that folder."""


def build(folder: Path) -> Path:
    """Stage, generate, build strictly, check the links; returns the folder of the site.

    Raises:
        RuntimeError: a page or a link is wrong; it says which.
    """
    sources = folder / "sources"
    stage(sources)
    for name, text in reference.everything().items():
        (sources / name).parent.mkdir(parents=True, exist_ok=True)
        (sources / name).write_text(text, encoding="utf-8")
    (sources / "files").mkdir()
    shutil.copyfile(HERE / "vendor" / VENDORED, sources / "files" / VENDORED)
    shutil.copyfile(HERE / STYLE, sources / "files" / STYLE)
    (folder / "mkdocs.yml").write_text(setting(sources), encoding="utf-8")
    _zensical(folder)
    (folder / "site" / "404.html").unlink()  # of a server: its links begin at the root
    if wrong := [*links.complaints(folder / "site")]:
        raise RuntimeError("\n".join(wrong))
    return folder / "site"


def setting(sources: Path) -> str:
    """What Zensical is told, with the pages of the reference in the navigation.

    Raises:
        RuntimeError: a page has no place in the navigation, or a place no page.
    """
    told = yaml.safe_load(SETTING.read_text(encoding="utf-8"))
    told["nav"] = [*_filled(told["nav"], sources)]
    told["plugins"][-1]["mkdocstrings"]["handlers"]["python"]["paths"] = [str(ROOT)]
    there = {path.relative_to(sources).as_posix() for path in sources.rglob("*.md")}
    placed = [*_placed(told["nav"])]
    if wrong := sorted(there.symmetric_difference(placed)):
        raise RuntimeError(f"pages without a place in {SETTING}, or places without: {wrong}")
    return yaml.safe_dump(told, sort_keys=False)


def _filled(nav: Sequence[Any], sources: Path) -> Iterator[Any]:
    for entry in nav:
        if isinstance(entry, dict):
            yield {
                name: [*_filled(inner, sources)] if isinstance(inner, list) else inner
                for name, inner in entry.items()
            }
        elif entry.startswith(MARK):
            below = sources / entry.removeprefix(MARK)
            pages = sorted(p for p in below.rglob("*.md") if p.parent == below or _deep(entry))
            yield from (path.relative_to(sources).as_posix() for path in pages)
        else:
            yield entry


def _deep(entry: str) -> bool:
    return entry.startswith(f"{MARK}experiments/")


def _placed(nav: Sequence[Any]) -> Iterator[str]:
    for entry in nav:
        if isinstance(entry, dict):
            for inner in entry.values():
                yield from _placed(inner) if isinstance(inner, list) else [inner]
        else:
            yield entry


def _zensical(folder: Path) -> None:
    """Run it; what it warns of is an error.

    Raises:
        RuntimeError: it failed.
    """
    command = [str(Path(sys.executable).with_name("zensical")), "build", "--clean", "--strict"]
    found = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    env = {**os.environ, "PYTHONPATH": found}  # of the extension that docs.site has
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, check=False)
    if done.returncode or not (folder / "site" / "index.html").is_file():
        raise RuntimeError(done.stdout + done.stderr)


if __name__ == "__main__":
    chosen = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "build" / "docs"
    try:
        print(build(chosen) / "index.html")
    except (LookupError, RuntimeError) as error:
        sys.exit(f"docs: {error}")
