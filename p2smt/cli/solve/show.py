"""How an answer of `p2smt solve` is shown and written."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from rich.console import RenderableType

    from p2smt.plans.solution import Solution
    from p2smt.report.outputs.solve import SolveOutput
    from p2smt.search.comparison import Comparison
    from p2smt.search.joint import ProgressCallback


def live(in_parts: bool = False) -> AbstractContextManager[ProgressCallback | None]:
    """A line on stderr with incumbent, bound and gap, where stderr is a terminal.

    A search ``in_parts`` has a line of its own.
    """
    from p2smt.report.tables import console

    screen = console(stderr=True)
    if in_parts or not screen.is_terminal:
        return nullcontext(None)
    from p2smt.report.progress import live_line

    return live_line(screen)


def finish(
    solution: Solution,
    output: str | None,
    *,
    as_json: bool,
    beside: Comparison | None = None,
) -> int:
    """Write the plan first: what is shown may go to a pipe that nobody reads any more.

    ``beside``: the orders that an answer on named hosts is compared with.
    """
    from p2smt.cli.codes import INTERRUPTED, exit_code

    data: SolveOutput | None = None
    if as_json or output is not None:
        from p2smt.report.solution_data import solution_data

        data = solution_data(solution, beside)
    written = None
    try:
        if output is not None and data is not None and data.plan is not None:
            _write(output, data.plan)
            written = output
    finally:
        if as_json and data is not None:
            _print(data)
        else:
            _show(solution, beside, written)
    return INTERRUPTED if solution.interrupted else exit_code(solution.status)


def _print(data: SolveOutput) -> None:
    from p2smt.cli.output import print_json

    print_json(data)


def _show(solution: Solution, beside: Comparison | None, written: str | None) -> None:
    from p2smt.report.tables import show
    from p2smt.report.text import printable

    show(_tables(solution, beside))
    if written is not None:
        typer.echo(f"\nplan written to {printable(written)}")


def _tables(solution: Solution, beside: Comparison | None) -> RenderableType:
    """The tables of each are loaded for it alone: those of hosts need the search over hosts."""
    if beside is None:
        from p2smt.report.solution_tables import solution_tables

        return solution_tables(solution)
    from p2smt.report.orders import host_tables

    return host_tables(solution, beside)


def _write(output: str, plan: Mapping[str, Any]) -> None:
    import json as json_module

    from p2smt.files.write import write_atomically

    write_atomically(output, json_module.dumps(plan) + "\n")
