"""Certificates of least sufficient sets as files, and back; the keys as pydantic models."""

from __future__ import annotations

import json
from collections.abc import Sequence
from fractions import Fraction
from typing import Annotated, Final, Literal

from pydantic import Field

from p2smt.collectives.names import RequestKind
from p2smt.errors import InputError
from p2smt.files.json_text import json_kind, read_json
from p2smt.files.plain import to_plain
from p2smt.files.validation import StrictModel, validated
from p2smt.parallelism.request import MAX_PROGRAM_LENGTH
from p2smt.plans.crossings.least_set import (
    EqualPrograms,
    Exclusion,
    LeastSet,
    Needed,
    SymbolicSetting,
    program_form,
)
from p2smt.plans.file import MAX_PLAN_BYTES
from p2smt.problems.crossing import CaseMultipliers, Coefficients, Refutation, SumOfMaxima
from p2smt.programs.program import parse_program
from p2smt.result import Status

SCHEMA_VERSION: Final = 1

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
    request: Annotated[RequestKind, Field(strict=False)]
    factors: Factors
    ports: Factors
    max_length: Annotated[int, Field(ge=1, le=MAX_PROGRAM_LENGTH)]
    calls: bool
    unknowns: list[str]
    costs: Annotated[list[EqualProgramsModel], Field(min_length=1)]
    members: Annotated[list[CostIndex], Field(min_length=1)]
    exclusions: list[ExclusionModel]
    needed: Annotated[list[NeededModel], Field(min_length=1)]


KIND: Final = "least-sufficient-set"
REMEDY = "give a file that crossings --sufficient -o wrote"


def least_set_text(found: LeastSet) -> str:
    """The certificate as the text of its file."""
    return json.dumps(least_set_model(found).model_dump(mode="json")) + "\n"


def least_set_model(found: LeastSet) -> LeastSetModel:
    """The certificate as its file has it.

    Raises:
        InputError: nothing is proved.
    """
    if found.status is not Status.OPTIMAL:
        raise InputError("a certificate", "is of a proof, and none was found", "give more time")
    setting = found.setting
    return LeastSetModel(
        schema_version=SCHEMA_VERSION,
        kind=KIND,
        request=setting.kind,
        factors=list(setting.factors),
        ports=list(setting.ports),
        max_length=setting.max_length,
        calls=setting.calls,
        unknowns=list(setting.unknowns),
        costs=[
            EqualProgramsModel(programs=list(map(str, one.programs)), **to_plain(one.cost))
            for one in found.costs
        ],
        members=list(found.members),
        exclusions=[
            ExclusionModel(excluded=one.excluded, **to_plain(one.refutation))
            for one in found.exclusions
        ],
        needed=[NeededModel(**to_plain(one)) for one in found.needed],
    )


def is_least_set(path: str) -> bool:
    """Whether a file is a certificate of a least sufficient set, by its ``kind``."""
    return json_kind(path, MAX_PLAN_BYTES) == KIND


def read_least_set(path: str) -> LeastSet:
    """What the certificate in a file claims; the claim is not checked, its programs are.

    Raises:
        InputError: the file cannot be read or is no certificate; or a key breaks a rule, which it
            names.
    """
    data = read_json(path, f"file {path[:200]!r}", REMEDY, MAX_PLAN_BYTES)
    return least_set_from(data, f"certificate {path[:200]!r}")


def least_set_from(data: object, source: str) -> LeastSet:
    """The claim in a certificate's data; ``source`` names it in messages.

    Raises:
        InputError: a key breaks a rule, or a program is not valid in the setting.
    """
    model = validated(LeastSetModel, data, source)
    setting = SymbolicSetting(
        tuple(model.factors), tuple(model.ports), model.request, model.max_length, model.calls
    )
    costs = []
    for stated in model.costs:
        programs = tuple(parse_program(text) for text in stated.programs)
        form = program_form(setting, programs[0])
        cost = _sum_of_maxima(stated.fixed, stated.maxima)
        costs.append(EqualPrograms(programs, form, cost))
    exclusions = [
        Exclusion(
            one.excluded,
            Refutation(
                tuple(one.by),
                tuple(
                    CaseMultipliers(_fractions(case.weights), tuple(map(_fractions, case.shares)))
                    for case in one.cases
                ),
            ),
        )
        for one in model.exclusions
    ]
    needed = tuple(Needed(_fractions(one.point), tuple(one.best)) for one in model.needed)
    return LeastSet(
        setting, tuple(costs), tuple(model.members), tuple(exclusions), needed, Status.OPTIMAL
    )


def _sum_of_maxima(fixed: Sequence[str], maxima: Sequence[Sequence[str]]) -> SumOfMaxima:
    return SumOfMaxima(_fractions(fixed), tuple(map(_fractions, maxima)))


def _fractions(texts: Sequence[str]) -> Coefficients:
    return tuple(map(Fraction, texts))
