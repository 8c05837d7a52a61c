"""What a journal has on record, line by line: a header first, then what came of each cube."""

from __future__ import annotations

import json
import platform
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from p2smt.files.plain import to_plain
from p2smt.parallel_search.subproblem import Closure, Member, SearchKind, Space, Subproblem

# The versions on which the answer of a search may depend.


PACKAGES = ("p2smt", "z3-solver", "ortools")
ABSENT = "absent"


def tool_versions() -> dict[str, str]:
    """Of Python and of the packages that find and check answers; nothing is imported for it."""
    return {"python": platform.python_version()} | {name: _version(name) for name in PACKAGES}


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ABSENT


OWN = "p2smt"
SEEDS = 2**31
"""Those of solvers are below."""


@dataclass(frozen=True, slots=True)
class JournalHeader:
    """Which search a journal is of.

    Attributes:
        space: the name by which the space is made again from its ``description``.
        skeleton: what is asked of it.
        description: the question, as JSON data.
        top: how many best members are sought.
        scale: what a tick is, in words or as a number.
        cube_rule: how the space is cut into cubes, in words.
        roots: the first cubes.
        options: how it is searched (seed, budget, engine ..): no part of the question.
        versions: of Python, p2smt and the solvers.
    """

    space: str
    skeleton: SearchKind
    description: Mapping[str, Any]
    top: int
    scale: str
    cube_rule: str
    roots: tuple[Subproblem, ...]
    options: Mapping[str, Any] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=tool_versions)

    def asked(self) -> dict[str, Any]:
        """The search without how it goes, as a journal's first line has it."""
        data: dict[str, Any] = to_plain(replace(self, roots=(), options={}, versions={}))
        del data["options"], data["versions"]
        return data | {"roots": [list(cube.path) for cube in self.roots]}

    def question(self) -> dict[str, Any]:
        """All that two searches must share for one to go on from the other's journal.

        Ticks and cubes are p2smt's own, so its version belongs to it; solvers only prove.
        """
        return {**self.asked(), "version of p2smt": self.versions.get(OWN)}

    def digest(self) -> str:
        """The SHA-256 of the question, in hexadecimal digits."""
        return sha256(canonical(self.question()).encode()).hexdigest()


def canonical(data: object) -> str:
    """JSON data as the one text that it has without blanks; the order of keys counts.

    Axes by their sizes are in an order, and it is part of the question.

    Raises:
        TypeError, ValueError: it is no JSON data.
    """
    return json.dumps(data, separators=(",", ":"), allow_nan=False)


def header_of(
    space: Space,
    name: str,
    *,
    top: int = 1,
    scale: str = "",
    cube_rule: str = "",
    options: Mapping[str, object] | None = None,
) -> JournalHeader:
    """The header for a search of this space, which ``name`` leads to (see JournalHeader)."""
    return JournalHeader(
        name,
        space.skeleton,
        json.loads(canonical(space.description())),
        top,
        scale,
        cube_rule,
        space.roots(),
        json.loads(canonical(options or {})),
    )


@dataclass(frozen=True, slots=True)
class SplitRecord:
    """A cube was replaced by all its children, after ``worker`` had it for so many ``seconds``.

    Journals of before this was noted say 0 and "".
    """

    cube: Subproblem
    children: tuple[Subproblem, ...]
    seconds: float = 0.0
    worker: str = ""


@dataclass(frozen=True, slots=True)
class Continuation:
    """From here on the search was continued by another process, with these options."""

    options: Mapping[str, Any]
    versions: Mapping[str, str]


JournalRecord = SplitRecord | Closure | Member | Continuation
"""A record after the header; a :class:`Member` is an incumbent."""


@dataclass(frozen=True, slots=True)
class JournalEntry:
    """A record with its line (the header is line 1) and its time.

    ``at_s``: wall seconds since the header, or the last Continuation, was written.
    """

    line: int
    at_s: float
    record: JournalRecord


@dataclass(frozen=True, slots=True)
class JournalText:
    """A journal as it was read.

    ``header`` is None where nothing is on record yet.  ``size`` bytes are whole lines;
    ``torn`` bytes after them are of a line that was not written to its end.  ``unended``: the last
    whole line lacks its line break.
    """

    header: JournalHeader | None
    entries: tuple[JournalEntry, ...]
    size: int
    torn: int
    unended: bool = False
