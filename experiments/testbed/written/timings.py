"""How long a study took, apart from what it found: to find the same again changes no file.

``timings.json`` stands beside the results: a block for each machine and day, with the times by what
was timed.  A script that computes results again leaves the times that are there; with ``--times``
it puts its own in their place.  What has no time yet gets the new one.
"""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

FLAG = "--times"
NAME = "timings.json"
Row = dict[str, Any]
Times = dict[str, Any]
Blocks = list[dict[str, Any]]


def taken(arguments: Sequence[str]) -> tuple[list[str], bool]:
    """The other arguments of a script, and whether it is to renew the times."""
    return [one for one in arguments if one != FLAG], FLAG in arguments


def here_and_now() -> str:
    """The machine class and the day, such as ``2 cores, x86_64, Python 3.11.7, 2026-11-27``."""
    machine = f"{os.cpu_count()} cores, {platform.machine()}"
    return f"{machine}, Python {platform.python_version()}, {date.today().isoformat()}"


def read(folder: Path) -> dict[str, Times]:
    """The times by what was timed; none before the study ran."""
    return {key: times for block in _blocks(folder) for key, times in block["times"].items()}


def measured_on(folder: Path) -> str:
    """Where and when, of every block."""
    return "; ".join(block["on"] for block in _blocks(folder))


def keep(folder: Path, found: Mapping[str, Times], anew: bool, on: str = "") -> None:
    """Write times that are not there yet; ``anew``: all of these, in place of those that are.

    ``on``: where and when they were measured; here and now unless given.
    """
    on, known = on or here_and_now(), read(folder)
    new = {key: times for key, times in found.items() if anew or key not in known}
    blocks = [{**one, "times": _without(one["times"], new)} for one in _blocks(folder)]
    if on not in [one["on"] for one in blocks]:
        blocks.append({"on": on, "times": {}})
    for one in blocks:
        if one["on"] == on:
            one["times"] |= new
    (folder / NAME).write_text(_text([one for one in blocks if one["times"]]), encoding="utf-8")


@dataclass(frozen=True, slots=True)
class Timed:
    """Rows of a study's results: ``fields`` of them are times, ``key`` names a row."""

    folder: Path
    fields: Sequence[str]
    key: Callable[[Row], str]

    def joined(self, rows: Iterable[Row]) -> list[Row]:
        """The rows with their times."""
        times = read(self.folder)
        return [{**row, **times.get(self.key(row), {})} for row in rows]

    def apart(self, rows: Sequence[Row], anew: bool, on: str = "") -> list[Row]:
        """The rows without their times, which are kept by the rule of :func:`keep`."""
        found = {self.key(row): _only(row, self.fields) for row in rows}
        keep(self.folder, {key: times for key, times in found.items() if times}, anew, on)
        return [_without(row, self.fields) for row in rows]


def _only(row: Row, fields: Sequence[str]) -> Row:
    return {key: row[key] for key in fields if key in row}


def _without(row: Row, keys: Iterable[str]) -> Row:
    return {key: value for key, value in row.items() if key not in set(keys)}


def _blocks(folder: Path) -> Blocks:
    path = folder / NAME
    found: Blocks = json.loads(path.read_text(encoding="utf-8")) if path.exists() else []
    return found


def _text(blocks: Blocks) -> str:
    return "[\n" + ",\n".join(map(_block, blocks)) + "\n]\n"


def _block(block: dict[str, Any]) -> str:
    lines = [
        f"  {json.dumps(key)}: {json.dumps(times)}" for key, times in sorted(block["times"].items())
    ]
    return f'{{"on": {json.dumps(block["on"])}, "times": {{\n' + ",\n".join(lines) + "\n}}"
