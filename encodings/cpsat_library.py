"""OR-Tools' CP-SAT without pandas, which takes longer to load than the rest of it together.

``cp_model`` of OR-Tools (9.12 to 9.15, the versions read) names ``pandas.Index`` and
``pandas.Series`` in annotations, and uses them in methods for series of variables, which nothing in
this package calls.
"""

from __future__ import annotations

import contextlib
import sys
from types import ModuleType
from typing import Any

_CP_MODEL = "ortools.sat.python.cp_model"


class _Later(ModuleType):
    """Stands in for pandas: bare names while ``cp_model`` is read, the real ones from then on."""

    is_read = False

    def __getattr__(self, name: str) -> Any:
        if not self.is_read:
            return type(name, (), {})
        import pandas

        return getattr(pandas, name)


def load_cpsat() -> None:
    """Import ``cp_model``, with pandas put off until one of its methods needs it.

    Where either is loaded there is nothing to put off.  While this runs (a tenth of a second) other
    threads would import the stand-in, which is pandas afterwards.  A version of OR-Tools that does
    more with pandas as it is read is left to be imported as usual.
    """
    if {"pandas", _CP_MODEL} & sys.modules.keys():
        return
    later = sys.modules["pandas"] = _Later("pandas")
    try:
        with contextlib.suppress(AttributeError, ImportError, TypeError):
            from ortools.sat.python import cp_model  # noqa: F401
    finally:
        later.is_read = True
        del sys.modules["pandas"]
