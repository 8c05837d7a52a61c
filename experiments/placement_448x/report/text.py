"""How the report writes tables, matrices, sizes, shares and times."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

Lines = Iterator[str]


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> Lines:
    """A table in Markdown."""
    yield "| " + " | ".join(head) + " |"
    yield "|" + "---|" * len(head)
    for row in rows:
        yield "| " + " | ".join(map(str, row)) + " |"


def matrix_text(matrix: Iterable[Iterable[int]]) -> str:
    """A matrix without blanks."""
    return "`" + str([list(row) for row in matrix]).replace(" ", "") + "`"


def size_text(payload_bytes: int) -> str:
    """Bytes in MiB or GiB."""
    gib = payload_bytes / 2**30
    return f"{gib:g} GiB" if gib >= 1 else f"{payload_bytes / 2**20:g} MiB"


def percent(share: float) -> str:
    """A share as a whole percentage."""
    return f"{100 * share:.0f} %"


def time_text(seconds: float) -> str:
    """Seconds with three digits, in ms below one second."""
    return f"{seconds:.3g} s" if seconds >= 1 else f"{1000 * seconds:.3g} ms"
