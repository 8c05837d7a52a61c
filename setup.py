"""The description on a package index: the README, whose links there would lead nowhere, as text."""

from __future__ import annotations

import re
from pathlib import Path

from setuptools import setup

LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)\s]+)\)")


def description(text: str) -> str:
    """Links to other hosts stay; pages of docs/ are named as `p2smt docs` shows them."""
    return re.sub(r"\n{3,}", "\n\n", LINK.sub(_as_text, text))


def _as_text(found: re.Match[str]) -> str:
    picture, words, target = found.groups()
    if picture:
        return ""
    if re.match(r"https?://", target):
        return found[0]
    page = re.fullmatch(r"docs/(.+)\.md", target)
    return f"{words} (`p2smt docs {page[1]}`)" if page else words


if __name__ == "__main__":
    readme = Path(__file__).with_name("README.md").read_text(encoding="utf-8")
    setup(long_description=description(readme), long_description_content_type="text/markdown")
