"""A table of choices over collective, communicator and size, and what is wrong with a file of one.

Sizes are bytes of p2smt's payload, the whole vector (of an all-gather the output).  A file compares
sizes with constants alone, so that one size in each interval between neighbouring constants stands
for every size: what is true of these is true of all.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from p2smt.errors import InputError

MODEL_ONLY = "model-only"
"""What stands on every line that rests on no measured time."""
LARGEST_BYTES = 2**64 - 1
"""The largest size that a library can be asked about."""
MAX_COMMS = 64
MAX_RANKS = 10**6
_COMM = re.compile(r"([1-9]\d{0,6})x([1-9]\d{0,6})")


@dataclass(frozen=True, slots=True, order=True)
class Comm:
    """A communicator as these files see it: so many nodes, so many ranks on each."""

    nodes: int
    per_node: int

    @property
    def ranks(self) -> int:
        """How many ranks it has."""
        return self.nodes * self.per_node

    def __str__(self) -> str:
        return f"{self.nodes}x{self.per_node}"


@dataclass(frozen=True, slots=True)
class LibraryCall:
    """What a library is told to run, in the library's own words.

    settings: numbers that go with it, such as channels, segment or requests, by name.
    """

    algorithm: str
    protocol: str = ""
    settings: tuple[tuple[str, int], ...] = ()

    def setting(self, name: str, default: int = 0) -> int:
        """A number of that name."""
        return dict(self.settings).get(name, default)

    def __str__(self) -> str:
        numbers = " ".join(f"{name}={value}" for name, value in self.settings)
        return " ".join(filter(None, (self.algorithm, self.protocol, numbers)))


@dataclass(frozen=True, slots=True)
class Chosen:
    """What runs for sizes ``first`` to ``last``, both included; None: the library's own choice.

    model_only: it rests on a prediction alone, which its line in a file says.
    """

    collective: str
    comm: Comm
    first: int
    last: int
    call: LibraryCall | None
    model_only: bool = False


@dataclass(frozen=True, slots=True)
class ChoiceTable:
    """Rows by collective and communicator; of each the sizes ascend and do not overlap."""

    rows: tuple[Chosen, ...]

    def at(self, collective: str, comm: Comm, size: int) -> LibraryCall | None:
        """What runs for a size; None: the library's own choice, also where no row says anything."""
        for row in self.rows:
            if (row.collective, row.comm) == (collective, comm) and row.first <= size <= row.last:
                return row.call
        return None


@dataclass(frozen=True, slots=True)
class FileFault:
    """Something that a file makes a library do which nobody can have meant.

    name: one of the short names of faults, such as ``gap``.  line: from 1; 0: of the whole file.
    """

    name: str
    line: int
    what: str

    def __str__(self) -> str:
        where = f"line {self.line}: " if self.line else ""
        return f"{self.name}: {where}{self.what}"


@dataclass(frozen=True, slots=True)
class FileVerdict:
    """What a file makes its library do: the faults, what else is to be known, and the table."""

    format: str
    faults: tuple[FileFault, ...]
    notes: tuple[str, ...]
    choices: ChoiceTable


def parse_comms(text: str) -> tuple[Comm, ...]:
    """Communicators such as ``1x8,2x8``: nodes x ranks per node, each once.

    Raises:
        InputError: one is none, is given twice, or there are too many.
    """
    found: list[Comm] = []
    for word in text.split(","):
        match = _COMM.fullmatch(word.strip())
        comm = Comm(int(match[1]), int(match[2])) if match else None
        if comm is None or not 2 <= comm.ranks <= MAX_RANKS:
            rule = f"must be nodes x ranks per node, of 2 to {MAX_RANKS} ranks"
            raise InputError(f"--comms {word.strip()[:40]!r}", rule, "such as 1x8,2x8")
        if comm in found:
            raise InputError(f"--comms {comm}", "is given twice", "give it once")
        found.append(comm)
    if len(found) > MAX_COMMS:
        rule = f"{len(found)} are given, and at most {MAX_COMMS} may be"
        raise InputError("--comms", rule, "give the file fewer")
    return tuple(found)


def representatives(constants: Iterable[int]) -> tuple[tuple[int, int], ...]:
    """The intervals (first, last) of sizes between constants, ascending, from 0 to the largest.

    constants: the sizes from which on a comparison may come out otherwise.  What holds for the
    first size of an interval holds for all of it.
    """
    inside = {size for size in constants if 0 < size <= LARGEST_BYTES}
    edges = [*sorted({0, *inside}), LARGEST_BYTES + 1]
    return tuple((first, after - 1) for first, after in pairwise(edges))


def tabulated(
    collectives: Sequence[str],
    comms: Sequence[Comm],
    constants: Iterable[int],
    ask: Callable[[str, Comm, int], LibraryCall | None],
) -> ChoiceTable:
    """The table of what ``ask`` answers, over every size; neighbours that are alike are one row."""
    intervals, rows = representatives(constants), list[Chosen]()
    for comm in comms:
        for collective in collectives:
            start = len(rows)
            for first, last in intervals:
                call = ask(collective, comm, first)
                if len(rows) > start and rows[-1].call == call:
                    first = rows.pop().first
                rows.append(Chosen(collective, comm, first, last, call))
    return ChoiceTable(tuple(rows))
