"""The shape of a certificate's file: its keys as pydantic models."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from p2smt.files.validation import StrictModel
from p2smt.parallelism.request import MAX_PROGRAM_LENGTH
from p2smt.plans.file_model import KindName

SCHEMA_VERSION = 1

ExactNumber = Annotated[str, Field(pattern=r"^[0-9]{1,200}(/[1-9][0-9]{0,199})?$")]
"""A rational such as 31/16, not negative."""
PerUnknown = list[ExactNumber]
CostIndex = Annotated[int, Field(ge=0, lt=2**31)]
Factors = Annotated[list[Annotated[int, Field(ge=1, lt=2**31)]], Field(min_length=1, max_length=8)]


class EqualProgramsModel(StrictModel):
    """Programs of one cost: ``fixed`` . x plus the largest part of each of the ``maxima``."""

    programs: Annotated[list[str], Field(min_length=1)]
    fixed: PerUnknown
    maxima: list[PerUnknown]


class CaseModel(StrictModel):
    """Farkas multipliers of one case: of the members named, and of each maximum excluded."""

    weights: PerUnknown
    shares: list[PerUnknown]


class ExclusionModel(StrictModel):
    """Why the cost ``excluded`` is nowhere less than the costs ``by``, which are members."""

    excluded: CostIndex
    by: Annotated[list[CostIndex], Field(min_length=1)]
    cases: list[CaseModel]


class NeededModel(StrictModel):
    """Numbers for which only the costs ``best`` are least."""

    point: PerUnknown
    best: Annotated[list[CostIndex], Field(min_length=1)]


class LeastSetModel(StrictModel):
    """A least sufficient set of programs over plain factors, by rings, with its certificate.

    Costs are numbered from 0 in the order of ``costs``; ``members`` are the set.  ``unknowns``
    names what the numbers of each row belong to.
    """

    schema_version: Literal[1]
    kind: Literal["least-sufficient-set"]
    request: KindName
    factors: Factors
    ports: Factors
    max_length: Annotated[int, Field(ge=1, le=MAX_PROGRAM_LENGTH)]
    calls: bool
    unknowns: list[str]
    costs: Annotated[list[EqualProgramsModel], Field(min_length=1)]
    members: Annotated[list[CostIndex], Field(min_length=1)]
    exclusions: list[ExclusionModel]
    needed: Annotated[list[NeededModel], Field(min_length=1)]
