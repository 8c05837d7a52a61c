"""JSON on stdout, and notes beside it."""

from __future__ import annotations

import json
import math
from typing import Any

import typer

from p2smt.report.outputs.shape import Output, printed


def print_json(data: Output | dict[str, Any]) -> None:
    """Print exactly one JSON object; numbers that JSON lacks (infinities) become null."""
    if isinstance(data, Output):
        typer.echo(json.dumps(printed(data), allow_nan=False))
        return
    typer.echo(json.dumps(_finite({"schema_version": 1, **data}), allow_nan=False))


def _finite(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, dict):
        return {key: _finite(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(inner) for inner in value]
    return value


def note(text: str, most: int | None = None) -> None:
    """One line beside the answer, on stderr, of at most so many characters."""
    from p2smt.report.text import MAX_MESSAGE, one_line

    typer.echo(f"note: {one_line(text, most or MAX_MESSAGE)}", err=True)
