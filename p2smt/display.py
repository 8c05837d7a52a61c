"""What notebooks show of an answer: a part of a page, its rows, and one line.

Answers lie below the writers of pages, which load much: these are looked for when a notebook asks.
"""

from __future__ import annotations

import importlib
from typing import Any

from p2smt.errors import BackendError
from p2smt.units import format_time

WRITER = "p2smt.report.notebooks.display"
"""The module with ``answer_html(answer)`` and ``answer_rows(answer)``."""


def told(status: str, seconds: float | None) -> str:
    """A status with the time of the answer, where one is known: ``optimal, 12.5 ms``."""
    return status if seconds is None else f"{status}, {format_time(seconds)}"


class Displayed:
    """An answer that says in one line what it is, and shows itself in notebooks."""

    __slots__ = ()

    def summary(self) -> str:
        """What the answer is, in a few words."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.summary()}>"

    def _repr_html_(self) -> str:
        """Verdict, pictures and tables, as HTML that stands alone and runs no script."""
        found: str = importlib.import_module(WRITER).answer_html(self)
        return found

    def to_pandas(self) -> Any:
        """The rows of the answer as a ``pandas.DataFrame``; names of columns end in their units.

        Of a plan the strategies near the best, of a solution the requests of each alternative, of a
        redistribution and a schedule the steps, of a topology the levels.

        Raises:
            BackendError: pandas is not installed.
        """
        try:
            import pandas
        except ImportError:
            text = "to_pandas(): needs pandas, which is not installed; pip install 'p2smt[report]'"
            raise BackendError(text) from None
        return pandas.DataFrame(importlib.import_module(WRITER).answer_rows(self))
