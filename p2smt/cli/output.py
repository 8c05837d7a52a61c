"""JSON on stdout, and notes beside it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from p2smt.report.outputs.shape import Output


def print_json(output: Output) -> None:
    """Print exactly one JSON object; numbers that JSON lacks (infinities) are null."""
    from p2smt.report.outputs.shape import printed

    typer.echo(json.dumps(printed(output), allow_nan=False))


def note(text: str, most: int | None = None) -> None:
    """One line beside the answer, on stderr, of at most so many characters."""
    from p2smt.report.text import MAX_MESSAGE, one_line

    typer.echo(f"note: {one_line(text, most or MAX_MESSAGE)}", err=True)
