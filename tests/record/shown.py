"""An outcome as lines of text that tell in a diff what changed.

``$`` the command; ``=`` its exit code; ``|`` stdout; ``!`` stderr; ``+`` a file that it wrote, its
lines behind ``:``; ``-`` one that it removed; ``~`` what is left out, with its digest; ``?`` that
only what all right answers share is kept.  JSON on one line, as ``json.dumps`` writes it, is shown
on many: of stdout ``{}`` after the exit code says so.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tests.record.masks import masked, rounded
from tests.record.play import Outcome
from tests.record.schemas import Schemas

WIDTH = 110
MOST_LINES, KEPT_LINES = 70, 30
MOST_CHARACTERS, KEPT_CHARACTERS = 400, 200

CERTAIN = ("status", "verdict", "objective", "objective_s", "bound_s", "physical_bound_s")
"""Keys of JSON whose values are the same in all answers that are right."""
VERDICTS = ("optimal", "complete", "infeasible", "verified", "refuted", "proved", "best order")
"""How lines begin that say the same of all answers that are right."""


@dataclass(frozen=True)
class Entry:
    """A command, and three forms of what came of it, each with less of what another answer changes.

    All of it; all but the content of files; the exit code, status, objective and bound alone.
    """

    command: str
    forms: tuple[tuple[str, ...], ...]

    @property
    def lines(self) -> tuple[str, ...]:
        """All of it."""
        return self.forms[0]


class Entries:
    """Words the outcomes of one scene, in their order."""

    def __init__(self, digits: int | None = None) -> None:
        self._schemas = Schemas()
        self._digits = digits

    def entry(self, outcome: Outcome) -> Entry:
        """The forms of an outcome."""
        out, folded = self._unfolded(outcome)
        head = f"= {outcome.code}{' {}' if folded else ''}"
        printed = [head, *_lines(out, "|"), *_lines(self._steady(outcome.err), "!")]
        names = [f"{'-' if c is None else '+'} {n}" for n, c in outcome.written.items()]
        lines = [*printed]
        for name, content in zip(names, outcome.written.values(), strict=True):
            text = self._steady((content or b"").decode("utf-8", "backslashreplace"))
            lines += [name, *_lines(_on_many(text) or text, ":")]
        forms = (lines, [*printed, *names], [head, *_certain(outcome), *names])
        return Entry(outcome.command, tuple(tuple(form) for form in forms))

    def _steady(self, text: str) -> str:
        text = masked(text)
        return text if self._digits is None else rounded(text, self._digits)

    def _unfolded(self, outcome: Outcome) -> tuple[str, bool]:
        """Stdout, and whether it is JSON that is now on many lines; of a schema its essence."""
        text = self._steady(outcome.out)
        try:
            data = json.loads(text)
        except ValueError:
            return text, False
        if isinstance(data, dict) and "$schema" in data:
            name = outcome.command.split()[1]
            return "\n".join(self._schemas.shown(name, data)) + "\n", True
        many = _on_many(text)
        return (many, True) if many else (text, False)


def _on_many(text: str) -> str:
    """JSON on one line, as ``json.dumps`` writes it, on many; nothing of any other text."""
    if text[:1] not in "{[" or text.count("\n") != 1:
        return ""
    try:
        data = json.loads(text)
    except ValueError:
        return ""
    return "\n".join(pretty(data)) + "\n" if text == f"{json.dumps(data)}\n" else ""


def _certain(outcome: Outcome) -> Iterator[str]:
    """Status, objective and bound: what every right answer shares."""
    try:
        found = _values(json.loads(outcome.out))
    except ValueError:
        found = (line for line in outcome.out.splitlines() if line.startswith(VERDICTS))
    yield from (f"| {line}" for line in found)


def _values(data: Any, path: str = "") -> Iterator[str]:
    """The places in JSON that have a status, an objective or a bound."""
    if not isinstance(data, dict):
        return
    for key, value in data.items():
        if key in CERTAIN:
            yield f"{path}{key}: {json.dumps(value)}"
        else:
            yield from _values(value, f"{path}{key}.")


def pretty(data: Any, start: str = "", end: str = "", indent: str = "") -> Iterator[str]:
    """JSON on lines of at most ``WIDTH`` characters, but where one key and value is longer."""
    whole = f"{indent}{start}{json.dumps(data)}{end}"
    if len(whole) <= WIDTH or not data or not isinstance(data, dict | list):
        yield whole
        return
    pairs = isinstance(data, dict)
    parts = (
        [(f"{json.dumps(key)}: ", value) for key, value in data.items()]
        if isinstance(data, dict)
        else [("", value) for value in data]
    )
    yield f"{indent}{start}{'{' if pairs else '['}"
    for at, (key, value) in enumerate(parts, 1):
        yield from pretty(value, key, "," * (at < len(parts)), indent + " ")
    yield f"{indent}{'}' if pairs else ']'}{end}"


def _lines(text: str, mark: str) -> Iterator[str]:
    """A text, each line behind a mark; the rest of one that is long by its digest."""
    if not text:
        return
    lines = text.split("\n")
    last = lines.pop()
    lines += [f"{last}\\"] if last else []
    kept = lines if len(lines) <= MOST_LINES else lines[:KEPT_LINES]
    for line in kept:
        yield f"{mark} {_short(printable(line))}".rstrip(" ") if line else mark
    if len(kept) < len(lines):
        rest = "\n".join(lines[len(kept) :])
        yield f"~ {len(lines) - len(kept)} more lines, {_digest(rest)}"


def _short(line: str) -> str:
    if len(line) <= MOST_CHARACTERS:
        return line
    rest = line[KEPT_CHARACTERS:]
    return f"{line[:KEPT_CHARACTERS]} ~ {len(rest)} more characters, {_digest(rest)}"


def printable(line: str) -> str:
    """The line with what does not print, and blanks at its end, as escapes."""
    text = "".join(c if c.isprintable() else ascii(c)[1:-1] for c in line)
    blanks = len(text) - len(text.rstrip(" "))
    return text[: len(text) - blanks] + "\\x20" * blanks


def _digest(text: str) -> str:
    return f"sha256 {hashlib.sha256(text.encode()).hexdigest()[:16]}"
