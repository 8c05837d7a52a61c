"""The cases: what is run together on one start of ranks, read from the file that comes along."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from experiments.gpu_check.work_data import data_of, value_of
from p2smt.runtime.job import Job
from p2smt.runtime.work import Work

FILE = Path(__file__).resolve().parent / "cases.json"


@dataclass(frozen=True, slots=True)
class CaseSet:
    """Work for one start of ranks.

    ``timed``: its times are shown, of several repetitions.  ``large``: it is run after all that is
    not.  ``every_type``: also in the types beside float32.  ``predicted_s``: of work whose steps
    have no prediction of their own.
    """

    name: str
    work: Work
    timed: bool = False
    large: bool = False
    every_type: bool = False
    predicted_s: float | None = None

    @property
    def cases(self) -> tuple[str, ...]:
        """Their names: of programs, those of the requests."""
        if isinstance(self.work, Job):
            return tuple(request.name for request in self.work.requests)
        return (self.name,)


def text_of(sets: Sequence[CaseSet]) -> str:
    """The file: a set a line."""
    rows = (
        {
            "name": one.name,
            "timed": one.timed,
            "large": one.large,
            "every_type": one.every_type,
            "predicted_s": data_of(one.predicted_s),
            "work": data_of(one.work),
        }
        for one in sets
    )
    return "[\n" + ",\n".join(json.dumps(row) for row in rows) + "\n]\n"


def read_sets(path: Path = FILE) -> tuple[CaseSet, ...]:
    """The sets of a file."""
    rows = json.loads(path.read_text(encoding="utf-8"))
    return tuple(CaseSet(**{**row, "work": value_of(row["work"])}) for row in rows)
