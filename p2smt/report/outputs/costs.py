"""``cost --json``: one request, several programs of one, several requests, or many sizes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from p2smt.collectives.names import RequestKind
from p2smt.report.outputs.shape import Output, Part, PayloadBytes, Said, Seconds
from p2smt.report.outputs.solve import Regime, TimedStep, VerifyPlanOutput

# `cost --json`: one request, several programs of one, several requests, or many sizes.


@dataclass(frozen=True, kw_only=True)
class CostedStep(TimedStep):
    """A step, and how the library carries it out."""

    algorithm: str
    protocol: str


@dataclass(frozen=True, kw_only=True)
class CostedRequest(Part):
    """A request with its program; of one execution, in ``chunks`` chunks where it is pipelined."""

    kind: RequestKind
    axes: Sequence[str]
    bytes: Annotated[PayloadBytes, Said("Bytes: its payload.")]
    times: Annotated[int, Said("Executions in an iteration.", ge=1)]
    total_s: Annotated[Seconds, Said("Seconds of an iteration.")]
    program: Annotated[str | None, Said("null: one fixed step, or nothing to do.")]
    chunks: Annotated[int, Said("1: it is not pipelined.", ge=1)]
    seconds: Annotated[Seconds, Said("Seconds, of all chunks.")]
    single_collective_s: Annotated[
        Seconds, Said("Seconds of the one collective that answers the request.")
    ]
    algorithm_bound_s: Annotated[
        Seconds,
        Said(
            "Seconds that no program takes less than here, as priced: by the "
            "algorithms, their latencies, the library's calls; 0: not known."
        ),
    ]
    physical_bound_s: Annotated[
        Seconds,
        Said("Seconds that the links allow any schedule at best; 0: not known."),
    ]
    regime: Regime
    checked: Annotated[str, Said("What the program was simulated on.")]
    steps: Annotated[Sequence[CostedStep], Said("With the numbers of one chunk.")]


@dataclass(frozen=True, kw_only=True)
class CostedPrograms(Part):
    """Several programs of one request, in the order given."""

    programs: Sequence[CostedRequest]


@dataclass(frozen=True, kw_only=True)
class CostedRequests(Part):
    """Several requests, in the order of `solve`."""

    objective_s: Seconds
    requests: Sequence[CostedRequest]


@dataclass(frozen=True, kw_only=True)
class _WithBytes(Part):
    bytes: Annotated[PayloadBytes, Said("Bytes of every request.")]


@dataclass(frozen=True, kw_only=True)
class ProgramsOfSize(CostedPrograms, _WithBytes):
    """The programs at one size."""


@dataclass(frozen=True, kw_only=True)
class RequestsOfSize(CostedRequests, _WithBytes):
    """The requests at one size."""


@dataclass(frozen=True, kw_only=True)
class CostedSizes(Part):
    """A table over sizes."""

    sizes: Sequence[CostedRequest] | Sequence[ProgramsOfSize] | Sequence[RequestsOfSize]


@dataclass(frozen=True, kw_only=True)
class CostOfRequest(CostedRequest, Output):
    """One request with one program."""


@dataclass(frozen=True, kw_only=True)
class CostOfPrograms(CostedPrograms, Output):
    """Several programs of one request."""


@dataclass(frozen=True, kw_only=True)
class CostOfRequests(CostedRequests, Output):
    """Several requests with a program each."""


@dataclass(frozen=True, kw_only=True)
class CostBySize(CostedSizes, Output):
    """With --sizes."""


CostOutput = CostOfRequest | CostOfPrograms | CostOfRequests | CostBySize
"""The predicted time of programs: which of these it is follows from the options."""


@dataclass(frozen=True, kw_only=True)
class CostPlanOutput(VerifyPlanOutput):
    """The verdict on a plan, and the requests of a valid one; none where there are no times."""

    proof: Annotated[None, Said("Only `verify --prove` seeks one.")]
    requests: Sequence[CostedRequest]
