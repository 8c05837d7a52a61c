"""Checks the built site: links lead to files and anchors, and no page asks another host."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

LOADS = {"script": "src", "img": "src", "iframe": "src", "source": "src", "link": "href"}
LOADING = {"stylesheet", "icon", "preload", "preconnect", "modulepreload", "manifest"}
"""What of ``link`` a browser fetches by itself."""


class _Page(HTMLParser):
    """The anchors of a page, its links, and what it loads."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.anchors, self.links, self.loads = set[str](), list[str](), list[str]()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Keep what matters of a tag."""
        given = {name: value or "" for name, value in attrs}
        self.anchors |= {given[key] for key in ("id", "name") if key in given}
        fetched = tag != "link" or LOADING & set(given.get("rel", "").split())
        if tag in LOADS and LOADS[tag] in given and fetched:
            self.loads.append(given[LOADS[tag]])
        if tag == "a" and "href" in given:
            self.links.append(given["href"])


@cache
def _read(path: Path) -> _Page:
    return _Page(path.read_text(encoding="utf-8"))


def complaints(site: Path) -> Iterator[str]:
    """What is wrong with the site in a folder, a line each."""
    for path in sorted(site.rglob("*.html")):
        page = _read(path)
        named = path.relative_to(site)
        for target in page.loads:
            if urlsplit(target).scheme not in ("", "data") or target.startswith("//"):
                yield f"{named}: loads {target}"
        for target in [*page.links, *page.loads]:
            if reason := _dead(path, target):
                yield f"{named}: {target} {reason}"


def _dead(page: Path, target: str) -> str:
    """Why a link leads nowhere; empty: it does not, or leads to another host."""
    parts = urlsplit(target)
    if parts.scheme or parts.netloc:
        return ""
    file = (page.parent / unquote(parts.path)).resolve() if parts.path else page
    file = file / "index.html" if file.is_dir() else file
    if not file.is_file():
        return "is not there"
    anchor = unquote(parts.fragment)
    if anchor and file.suffix == ".html" and anchor not in _read(file).anchors:
        return "has no such anchor"
    return ""
