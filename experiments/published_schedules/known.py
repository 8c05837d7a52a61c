"""The wrong schedules told as bugs: what ``known.yaml`` says beside the rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import yaml

from experiments.published_schedules.store import HERE


@dataclass(frozen=True, slots=True)
class Bug:
    """A bug as it would be reported upstream.

    title: of the report.
    repository: owner/name.
    paths: of the rows that show it; the first is told in full.
    rests_on: what the verdict assumes beyond the text of the file.
    cause: where it comes from.
    remedy: what would mend it, and whether that was tried.
    """

    title: str
    repository: str
    paths: tuple[str, ...]
    rests_on: str
    cause: str
    remedy: str


def _bug(entry: dict[str, Any]) -> Bug:
    return Bug(**{**entry, "paths": tuple(entry["paths"])})


_DATA = yaml.safe_load((HERE / "known.yaml").read_text(encoding="utf-8"))
BUGS = tuple(map(_bug, _DATA["bugs"]))
DOES_NOT_RUN: str = _DATA["does_not_run"]
"""What is said of all programs together that end before they print a schedule."""
