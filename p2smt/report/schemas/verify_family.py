"""`verify --json` of a symbolic schedule (``--upto``), or of a program."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from p2smt.report.schemas.base import Chunk, Output, OutputPart, Rank
from p2smt.schedules.verify.report import Kind, Verdict


class InstanceViolation(OutputPart):
    """What is wrong at one size."""

    kind: Kind
    rank: Rank | None
    chunk: Chunk | None
    message: str


class CheckedInstance(OutputPart):
    """One size, checked in every interleaving."""

    parameters: dict[str, int]
    ranks: Annotated[int, Field(ge=1)]
    verdict: Verdict
    min_fifo_depth: int | None
    violations: list[InstanceViolation]


class VerifyFamilyOutput(Output):
    """The verdict on a schedule at many sizes."""

    verdict: Verdict
    claims: Annotated[list[str], Field(description="What is proved, and for which sizes.")]
    all_sizes: Annotated[bool, Field(description="Proved for every size, beyond those checked.")]
    instances: list[CheckedInstance]
