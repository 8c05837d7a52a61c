"""`cost --json`: one request, several programs of one, several requests, or many sizes."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, RootModel

from p2smt.collectives.names import RequestKind
from p2smt.report.schemas.base import Output, OutputPart, PayloadBytes, Seconds
from p2smt.report.schemas.solve import Regime, TimedStep
from p2smt.report.schemas.verify_plan import VerifyPlanOutput


class CostedStep(TimedStep):
    """A step, and how the library carries it out."""

    algorithm: str
    protocol: str


class CostedRequest(OutputPart):
    """A request with its program; of one execution, in ``chunks`` chunks where it is pipelined."""

    kind: RequestKind
    axes: list[str]
    bytes: Annotated[PayloadBytes, Field(description="Bytes: its payload.")]
    times: Annotated[int, Field(ge=1, description="Executions in an iteration.")]
    total_s: Annotated[Seconds, Field(description="Seconds of an iteration.")]
    program: Annotated[str | None, Field(description="null: one fixed step, or nothing to do.")]
    chunks: Annotated[int, Field(ge=1, description="1: it is not pipelined.")]
    seconds: Annotated[Seconds, Field(description="Seconds, of all chunks.")]
    single_collective_s: Annotated[
        Seconds, Field(description="Seconds of the one collective that answers the request.")
    ]
    algorithm_bound_s: Annotated[
        Seconds,
        Field(
            description="Seconds that no program takes less than here, as priced: by the "
            "algorithms, their latencies, the library's calls; 0: not known."
        ),
    ]
    physical_bound_s: Annotated[
        Seconds,
        Field(description="Seconds that the links allow any schedule at best; 0: not known."),
    ]
    regime: Regime
    checked: Annotated[str, Field(description="What the program was simulated on.")]
    steps: Annotated[list[CostedStep], Field(description="With the numbers of one chunk.")]


class CostedPrograms(OutputPart):
    """Several programs of one request, in the order given."""

    programs: list[CostedRequest]


class CostedRequests(OutputPart):
    """Several requests, in the order of `solve`."""

    objective_s: Seconds
    requests: list[CostedRequest]


class _WithBytes(OutputPart):
    bytes: Annotated[PayloadBytes, Field(description="Bytes of every request.")]


class ProgramsOfSize(CostedPrograms, _WithBytes):
    """The programs at one size."""


class RequestsOfSize(CostedRequests, _WithBytes):
    """The requests at one size."""


class CostedSizes(OutputPart):
    """A table over sizes."""

    sizes: list[CostedRequest] | list[ProgramsOfSize] | list[RequestsOfSize]


class CostOfRequest(CostedRequest, Output):
    """One request with one program."""


class CostOfPrograms(CostedPrograms, Output):
    """Several programs of one request."""


class CostOfRequests(CostedRequests, Output):
    """Several requests with a program each."""


class CostBySize(CostedSizes, Output):
    """With --sizes."""


class CostOutput(RootModel[CostOfRequest | CostOfPrograms | CostOfRequests | CostBySize]):
    """The predicted time of programs: which of these it is follows from the options."""


class CostPlanOutput(VerifyPlanOutput):
    """The verdict on a plan, and the requests of a valid one; none where there are no times."""

    proof: Annotated[None, Field(description="Only `verify --prove` seeks one.")]
    requests: list[CostedRequest]
