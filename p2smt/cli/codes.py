"""Exit codes (the same table as in the documentation of the command line)."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from p2smt.result import Status

OK, REFUTED, BAD_INPUT, NOT_SETTLED, INFEASIBLE, NO_BACKEND, FAILED = 0, 1, 2, 3, 4, 5, 6
INTERNAL, INTERRUPTED, TERMINATED = 70, 130, 143


def exit_code(status: Status) -> int:
    """The exit code of a status."""
    from p2smt.result import Status

    match status:
        case Status.OPTIMAL | Status.COMPLETE:
            return OK
        case Status.INFEASIBLE:
            return INFEASIBLE
        case Status.FEASIBLE | Status.TRUNCATED | Status.UNKNOWN:
            return NOT_SETTLED
