"""What the compiled formulas are: functions of arrays, and what is sent beside them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np

from p2smt.collectives.names import RequestKind
from p2smt.parallelism.placement import FloatArray
from p2smt.training.prediction import Cover


@dataclass(frozen=True, slots=True)
class CompiledRows:
    """Rows as one function: of the symbols ``inputs``, which earlier rows may be."""

    inputs: tuple[str, ...]
    function: Callable[..., dict[str, Any]]

    @classmethod
    def of(cls, function: Callable[..., dict[str, Any]]) -> CompiledRows:
        """A function whose parameters are symbols; it gives them and the rows by name."""
        return cls(tuple(inspect.signature(function).parameters), function)

    def __call__(self, values: Mapping[str, FloatArray]) -> dict[str, FloatArray]:
        """The rows' values by name; arrays are broadcast against each other."""
        found = self.function(*(values[name] for name in self.inputs))
        for name in self.inputs:
            del found[name]
        return {name: np.asarray(value, dtype=np.float64) for name, value in found.items()}


@dataclass(frozen=True, slots=True)
class Traffic:
    """A request of some axes; its formulas are rows of the table.

    ``edge``: how many calls of an iteration have nothing to hide under.  ``closes``: of several
    chunks a stage the last rank sends to the first one, too, which has the next chunk.
    """

    name: str
    kind: RequestKind
    axes: tuple[str, ...]
    _: KW_ONLY
    cover: Cover = Cover.NOTHING
    once: bool = False
    edge: int = 0
    closes: bool = False

    @property
    def key(self) -> str:
        """The name as formulas have it."""
        return self.name.replace(" ", "_")

    def row_name(self, what: str) -> str:
        """The name of one of its formulas: ``payload``, ``calls``, ``part`` or ``cover_s``."""
        return f"{self.key}_{what}"


@dataclass(frozen=True, slots=True)
class FormulaTable:
    """``counts`` need no device: sizes, operations, bytes, calls; ``seconds`` do."""

    counts: CompiledRows
    seconds: CompiledRows
    traffic: tuple[Traffic, ...]
