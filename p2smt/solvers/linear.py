"""The door to linear programs: one solver, so nobody chooses."""

from __future__ import annotations

from p2smt.problems.flow import FlowPrices, FlowProblem
from p2smt.result import Result, SearchLimits


def ask_prices(problem: FlowProblem, limits: SearchLimits) -> Result[FlowPrices]:
    """The prices of the greatest bound: OPTIMAL; INFEASIBLE: some way is too long; UNKNOWN.

    They are floats: nothing is proved by them as they are.

    Raises:
        TooLarge: the problem exceeds a limit of the encoding.
        KeyboardInterrupt: after the search has been stopped.
    """
    import p2smt.encodings.schedule.flow.glop as glop

    return glop.best_prices(problem, limits)
