"""Whose turn it is: a file of what each property has been tried on, shared by processes.

The least-tried property is next.  A property rests for the round when it failed, was skipped, or
has no more values to try.
"""

from __future__ import annotations

import fcntl
import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path


@dataclass
class Tried:
    """What a property has been tried on, in all rounds; ``rests``: why no more in this one;
    ``by``: the process that tries it, negative while it waits.
    """

    examples: int = 0
    seconds: float = 0.0
    rests: str = ""
    unwritable: str = ""
    by: int = 0

    @property
    def each_s(self) -> float:
        """Seconds per example."""
        return self.seconds / max(1, self.examples)


@dataclass(frozen=True)
class Turns:
    """The counts in a folder; ``most``: a property that was tried so often is left alone."""

    folder: Path
    most: int | None = None

    @contextmanager
    def table(self) -> Iterator[dict[str, Tried]]:
        """The counts, for this process alone; written back at the end."""
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self.folder / "counts.json"
        with (self.folder / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            known = json.loads(path.read_text()) if path.exists() else {}
            table = {name: Tried(**fields) for name, fields in known.items()}
            yield table
            text = json.dumps({name: asdict(table[name]) for name in sorted(table)}, indent=0)
            path.with_suffix(".new").write_text(text)
            path.with_suffix(".new").replace(path)

    def begin(self) -> None:
        """A new round: all may be tried."""
        with self.table() as table:
            for tried in table.values():
                tried.rests, tried.unwritable, tried.by = "", "", 0

    def take(self, names: Iterable[str], process: int) -> str | None:
        """The property that is next, kept for this process; None if all rest."""
        with self.table() as table:
            free = [
                (tried.examples, name)
                for name in names
                if not (tried := table.setdefault(name, Tried())).rests
                and not tried.by
                and (self.most is None or tried.examples < self.most)
            ]
            if not free:
                return None
            _, name = min(free)
            table[name].by = -process
            return name

    def start(self, name: str, process: int) -> None:
        """The process tries it from now on."""
        with self.table() as table:
            table[name].by = process

    def give_back(self, name: str, new: Tried) -> None:
        """What a turn came to."""
        with self.table() as table:
            tried = table[name]
            tried.examples, tried.seconds = (
                tried.examples + new.examples,
                tried.seconds + new.seconds,
            )
            tried.rests, tried.by = new.rests, 0
            tried.unwritable = new.unwritable or tried.unwritable

    def left_by(self, process: int, why: str) -> list[str]:
        """The property that a process tried when it ended, which rests; others are free again."""
        with self.table() as table:
            for tried in table.values():
                if tried.by == -process:
                    tried.by = 0
            held = [name for name, tried in table.items() if tried.by == process]
            for name in held:
                table[name].by, table[name].rests = 0, why
            return held
