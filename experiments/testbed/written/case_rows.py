"""Results of studies that run case by case: a row each, in the order of the cases."""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from experiments.testbed.written.timings import Timed, taken
from p2smt.errors import InputError
from p2smt.report.progress import counted

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

C = TypeVar("C", bound=Hashable)
R = TypeVar("R", bound="DataclassInstance")


@dataclass(frozen=True, slots=True)
class CaseRows(Generic[C, R]):
    """A file with a row, a dataclass whose first field is ``case``, for each case that was run.

    ``case`` and ``row`` make these from their fields; a case is named by its text.  The field
    ``cpu_s`` of a row is kept apart (:mod:`experiments.testbed.written.timings`).
    """

    path: Path
    cases: Sequence[C]
    case: Callable[..., C]
    row: Callable[..., R]

    def read(self) -> dict[C, R]:
        """The stored rows; none before the study ran."""
        if not self.path.exists():
            return {}
        rows: list[dict[str, Any]] = json.loads(self.path.read_text(encoding="utf-8"))
        cases = [self.case(**row["case"]) for row in rows]
        timed = self._timed.joined(rows)
        return {c: self.row(**{**row, "case": c}) for c, row in zip(cases, timed, strict=True)}

    @property
    def _timed(self) -> Timed:
        return Timed(self.path.parent, ("cpu_s",), lambda row: str(self.case(**row["case"])))

    def run(self, arguments: Sequence[str], row_of: Callable[[C], R]) -> None:
        """Run the cases of these names, all of them where none is given, and store each.

        ``--times`` among the arguments renews what they took, too.

        Raises:
            InputError: a name is none of a case.
        """
        chosen, anew = taken(arguments)
        named = {str(case): case for case in self.cases}
        if unknown := set(chosen) - named.keys():
            raise InputError(f"cases {sorted(unknown)}", f"are none of {', '.join(named)}")
        for case in counted([named[name] for name in chosen] or self.cases, "cases"):
            self._write({**self.read(), case: row_of(case)}, anew)

    def _write(self, rows: dict[C, R], anew: bool) -> None:
        known = [asdict(rows[case]) for case in self.cases if case in rows]
        lines = [json.dumps(row) for row in self._timed.apart(known, anew)]
        self.path.write_text("[\n" + ",\n".join(lines) + "\n]\n", encoding="utf-8")
