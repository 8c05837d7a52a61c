"""`p2smt verify` of the journal of a search."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext

import typer

_SAMPLE_S = 300.0
"""Wall seconds in which a sample is solved again, unless others are given: z3 may take for ever."""


def is_journal_file(file: str) -> bool:
    """Whether a file is a journal by its name, or by how it starts."""
    from p2smt.parallel_search.journal.file import is_journal

    return file.endswith(".jsonl") or is_journal(file)


def verify_journal_file(
    file: str, json: bool, sample: str | None, every: bool, time_limit: str | None
) -> int:
    """Verify a journal; ``sample``, or ``every``: how many verdicts to solve again."""
    from p2smt.api.journals import verify_journal
    from p2smt.cli import given
    from p2smt.cli.codes import NOT_SETTLED, OK, REFUTED
    from p2smt.cli.output import print_json
    from p2smt.report.journals import journal_data, journal_lines
    from p2smt.report.text import printable

    many, limits = sample_of(sample, every), given.limits_of(time_limit, "0")
    limit_s = _SAMPLE_S if time_limit is None and not every else limits.time_limit_s
    with _told() as told:
        report = verify_journal(file, sample=many, time_limit_s=limit_s, told=told)
    if json:
        print_json(journal_data(report))
    else:
        typer.echo("\n".join(map(printable, journal_lines(report))))
    if report.proved:
        return OK
    return NOT_SETTLED if report.valid else REFUTED


def sample_of(sample: str | None, every: bool) -> int | None:
    """How many verdicts --sample and --all ask for; None: all.

    Raises:
        InputError: both are given, or the number is none.
    """
    from p2smt.cli import given
    from p2smt.errors import InputError
    from p2smt.parallel_search.journal.verify import DEFAULT_SAMPLE

    if every and sample is not None:
        raise InputError("--sample and --all", "ask for different numbers", "give one of them")
    if every:
        return None
    return DEFAULT_SAMPLE if sample is None else given.count_of(sample, "sample", 10**9, least=0)


def refuse_journal_options(sample: str | None, every: bool) -> None:
    """Raise InputError if an option of journals is given."""
    from p2smt.errors import InputError

    if every or sample is not None:
        name = "--all" if every else "--sample"
        raise InputError(name, "is for journals of searches", "drop it")


def _told() -> AbstractContextManager[Callable[[int, int], None] | None]:
    """A line on stderr that counts, where stderr is a terminal."""
    from p2smt.report.tables import console

    screen = console(stderr=True)
    if not screen.is_terminal:
        return nullcontext(None)
    from p2smt.report.progress import live_count

    return live_count(screen, "solving again")
