"""The texts of ``golden/``: one for a scene, an entry for each of its commands."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from difflib import unified_diff
from typing import TypeVar

from tests.record.scenes import Scene
from tests.record.shown import Entry

SHOWN_LINES = 12
"""Lines of a difference that are shown for each command."""
VARIES = "? one answer of several: only what all share"


@dataclass(frozen=True)
class Kept:
    """The lines of a command as they are kept, and whether its answer is one of several."""

    command: str
    lines: tuple[str, ...]

    @property
    def varies(self) -> bool:
        """Whether only what is certain is kept."""
        return self.lines[:1] == (VARIES,)


EntryT = TypeVar("EntryT", Entry, Kept)


def kept(entry: Entry, varies: bool) -> Kept:
    """What is kept of an entry."""
    return Kept(entry.command, (VARIES, *entry.certain) if varies else entry.lines)


def text_of(entries: Iterable[Kept]) -> str:
    """The text of a scene."""
    return "\n".join("".join(f"{x}\n" for x in (f"$ {e.command}", *e.lines)) for e in entries)


def entries_of(text: str) -> list[Kept]:
    """The entries of such a text: ``entries_of(text_of(x)) == x``."""
    found: list[Kept] = []
    for part in f"\n{text}".split("\n$ ")[1:]:
        command, *lines = part.rstrip("\n").split("\n")
        found.append(Kept(command, tuple(lines)))
    return found


def kept_of(scene: Scene) -> list[Kept]:
    """The entries of a scene in ``golden/``; none where it is new."""
    if not scene.golden.exists():
        return []
    return entries_of(scene.golden.read_text(encoding="utf-8"))


Key = tuple[str, int]
"""A command, and how often the scene had it before."""


def keyed(entries: Iterable[EntryT]) -> dict[Key, EntryT]:
    """The entries by their commands, of which a scene may have one more than once."""
    seen = Counter[str]()
    found: dict[Key, EntryT] = {}
    for entry in entries:
        found[entry.command, seen[entry.command]] = entry
        seen[entry.command] += 1
    return found


def now(old: Iterable[Kept], new: Iterable[Entry]) -> list[Kept]:
    """New entries, kept as the old ones of the same commands are."""
    vary = {key for key, entry in keyed(old).items() if entry.varies}
    return [kept(entry, key in vary) for key, entry in keyed(new).items()]


def changes(old: Iterable[Kept], new: Iterable[Kept]) -> Iterator[str]:
    """Which commands are new, gone or changed, each change with its first lines."""
    before, after = keyed(old), keyed(new)
    yield from (f"gone     {command}" for command, n in before if (command, n) not in after)
    for key, entry in after.items():
        if key not in before:
            yield f"new      {entry.command}"
        elif before[key] != entry:
            diff = unified_diff(before[key].lines, entry.lines, n=0, lineterm="")
            lines = [line for line in diff if line[:3] not in ("@@ ", "---", "+++")]
            yield f"changed  {entry.command}"
            yield from (f"    {line}" for line in lines[:SHOWN_LINES])
            if len(lines) > SHOWN_LINES:
                yield f"    .. {len(lines) - SHOWN_LINES} more lines"
    if not set(before) ^ set(after) and [*before] != [*after]:
        yield "commands are in another order"
