"""The texts of ``golden/``: one for a scene, an entry for each of its commands."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from difflib import unified_diff
from typing import TypeVar

from tests.record.scenes import Scene
from tests.record.shown import Entry

SHOWN_LINES = 12
"""Lines of a difference that are shown for each command."""
MARKS = ("", "? files hold one answer of several", "? one answer of several")
"""What stands before the lines of each form of an entry."""


@dataclass(frozen=True)
class Kept:
    """The lines of a command as they are kept."""

    command: str
    lines: tuple[str, ...]

    @property
    def form(self) -> int:
        """Which form of an entry is kept."""
        return MARKS.index(self.lines[0]) if self.lines[0] in MARKS else 0


EntryT = TypeVar("EntryT", Entry, Kept)


def kept(entry: Entry, form: int = 0) -> Kept:
    """What is kept of an entry."""
    mark = MARKS[form]
    return Kept(entry.command, ((mark,) if mark else ()) + entry.forms[form])


def kept_of_all(entries: Sequence[Entry]) -> Kept:
    """What is kept of a command that was run several times: the first form that is always alike."""
    first, *others = entries
    forms = range(len(MARKS))
    alike = (n for n in forms if all(other.forms[n] == first.forms[n] for other in others))
    return kept(first, next(alike, forms[-1]))


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
    """New entries, kept in the forms of the old ones of the same commands."""
    forms = {key: entry.form for key, entry in keyed(old).items()}
    return [kept(entry, forms.get(key, 0)) for key, entry in keyed(new).items()]


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
