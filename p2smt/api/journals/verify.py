"""``p2smt.verify_journal``."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from p2smt.api.journals.spaces import MAKERS, Maker, remade_space
from p2smt.errors import InputError
from p2smt.result import SearchLimits, StopWatch
from p2smt.skeletons.journal.file import read_journal
from p2smt.skeletons.journal.verify import DEFAULT_SAMPLE, JournalReport, verify_records

if TYPE_CHECKING:
    from p2smt.api.files import StrPath


def verify_journal(
    path: StrPath,
    *,
    sample: int | None = DEFAULT_SAMPLE,
    time_limit_s: float | None = None,
    told: Callable[[int, int], None] | None = None,
    makers: Mapping[str, Maker] = MAKERS,
) -> JournalReport:
    """Verify the journal of a search: its cover, bounds, members, and verdicts solved again.

    Args:
        path: a file that ``--journal`` wrote, whether the search is over or not.
        sample: how many verdicts of solvers to solve again; None: all.
        time_limit_s: wall seconds for that.
        told: is told how many of how many are solved again.
        makers: how spaces are made again, by their names.

    Raises:
        InputError: the file is no journal, or of no space that is known here.
    """
    name = os.fspath(path)
    source, text = f"journal {name[:200]!r}", read_journal(name)
    if text.header is None:
        raise InputError(source, "has no whole line, so nothing is on record", "search first")
    remade = remade_space(text.header, source, makers)
    watch = StopWatch.start(SearchLimits(time_limit_s))
    return verify_records(text, source, remade, sample=sample, watch=watch, told=told)
