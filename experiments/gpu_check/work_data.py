"""Work for ranks as plain data, which JSON holds: jobs, schedules and redistributions.

A dataclass is its class's name under ``is`` and the fields that differ from their defaults, a
member of an enum its name, a named tuple its values under ``of``.  Only classes that are listed
are made.
"""

from __future__ import annotations

import dataclasses
from enum import Enum
from typing import Any

from p2smt.collectives.contract import Contract, Contribution, Goal
from p2smt.collectives.names import Collective, RequestKind
from p2smt.parallelism.placement import ParallelismAxis
from p2smt.resharding.states import ArrayState, Frame
from p2smt.resharding.steps import (
    AllGather,
    AllReduce,
    AllToAll,
    LocalSlice,
    Permute,
    ReduceScatter,
)
from p2smt.resharding.types import ElementType, Mesh, ReduceOp, SubAxis
from p2smt.runtime.arrays.rank_steps import ArrayJob
from p2smt.runtime.job import Job, JobRequest, JobStep
from p2smt.runtime.schedules.schedule_job import ScheduleJob
from p2smt.schedules.model import (
    Buffer,
    Connection,
    FilePlace,
    Schedule,
    Sizes,
    Span,
    Step,
    StepRef,
)

_JOBS = (Job, JobRequest, JobStep, Collective, RequestKind)
_SCHEDULES = (
    *(ScheduleJob, Schedule, Contract, Contribution, Goal, Sizes),
    *(Step, Span, StepRef, FilePlace, Buffer, Connection),
)
_ARRAYS = (
    *(ArrayJob, Frame, Mesh, ParallelismAxis, SubAxis, ElementType, ReduceOp, ArrayState),
    *(AllGather, AllReduce, AllToAll, LocalSlice, Permute, ReduceScatter),
)
_CLASSES: dict[str, Any] = {made.__name__: made for made in (*_JOBS, *_SCHEDULES, *_ARRAYS)}


def data_of(value: Any) -> Any:
    """What JSON holds; numbers with a point are times, of which six digits are kept."""
    kind = type(value).__name__
    if isinstance(value, Enum):
        return {"is": kind, "name": value.name}
    if dataclasses.is_dataclass(value):
        changed = (f for f in dataclasses.fields(value) if getattr(value, f.name) != f.default)
        return {"is": kind, **{f.name: data_of(getattr(value, f.name)) for f in changed}}
    if isinstance(value, tuple):
        found = [data_of(part) for part in value]
        return {"is": kind, "of": found} if hasattr(value, "_fields") else found
    return float(f"{value:.6g}") if isinstance(value, float) else value


def value_of(data: Any) -> Any:
    """The value again.

    Raises:
        KeyError: it names a class that is no part of work.
    """
    if isinstance(data, list):
        return tuple(map(value_of, data))
    if not isinstance(data, dict):
        return data
    made, rest = _CLASSES[data["is"]], {key: v for key, v in data.items() if key != "is"}
    if issubclass(made, Enum):
        return made[rest["name"]]
    if "of" in rest:
        return made(*value_of(rest["of"]))
    return made(**{key: value_of(part) for key, part in rest.items()})
