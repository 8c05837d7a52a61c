"""--processes, --engine, --scheduler, --journal and --budget: a search in parts."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from p2smt.parallel_search.parallel_options import Spread


@dataclass(frozen=True, slots=True)
class SpreadTexts:
    """The options as given; None: an option is not given."""

    processes: str | None
    engine: str | None
    scheduler: str | None
    journal: str | None
    budget: str | None

    def given(self) -> dict[str, str | None]:
        """Each by its name."""
        return {f"--{one.name}": getattr(self, one.name) for one in fields(self)}

    @property
    def wanted(self) -> bool:
        """Whether the search goes in parts: one process and nothing else is the ordinary way."""
        rest = (self.engine, self.scheduler, self.journal, self.budget)
        return any(one is not None for one in rest) or self.processes not in (None, "1")

    @property
    def first(self) -> str:
        """The first option that asks for parts, as it would be written."""
        named = ((name, text) for name, text in self.given().items() if text is not None)
        return next(
            (f"{name} {text[:60]}" for name, text in named if (name, text) != ("--processes", "1")),
            "",
        )

    def check_apart(self, *outputs: str | None) -> None:
        """Hold that no output would be written over the journal.

        Raises:
            InputError: one is the same file.
        """
        from p2smt.errors import InputError

        named = {os.path.realpath(path) for path in outputs if path and "\0" not in path}
        journal = self.journal or ""
        if journal and "\0" not in journal and os.path.realpath(journal) in named:
            rule = "is an output as well, which would overwrite it"
            raise InputError(f"journal {journal[:200]!r}", rule, "rename one")

    def spread(self) -> Spread:
        """What they mean.

        Raises:
            InputError: one of them is out of range, or does not go with another.
        """
        from p2smt.cli import given, restrictions
        from p2smt.cli.output import note
        from p2smt.errors import InputError
        from p2smt.parallel_search.parallel_options import MAX_PROCESSES, Spread

        if self.scheduler is not None and self.processes is not None:
            both = f"--processes {self.processes[:20]} and --scheduler {self.scheduler[:60]}"
            raise InputError(both, "a scheduler has workers of its own", "drop --processes")
        processes = given.count_of(self.processes or "1", "--processes", MAX_PROCESSES)
        restrictions.writable(self.journal)
        budget_s = None if self.budget is None else given.seconds_of(self.budget, "--budget")
        where = processes, self.engine, self.scheduler
        return Spread(*where, self.journal, budget_s, told=note)


@contextmanager
def spread_over(texts: SpreadTexts) -> Iterator[Spread | None]:
    """The spread that the options ask for, with a line on stderr where that is a terminal.

    None: the search goes in one piece.
    """
    if not texts.wanted:
        yield None
        return
    from p2smt.report.progress import search_line
    from p2smt.report.tables import console

    spread, screen = texts.spread(), console(stderr=True)
    if not screen.is_terminal:
        yield spread
        return
    with search_line(screen) as progress:
        yield replace(spread, progress=progress)
