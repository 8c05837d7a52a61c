"""``cost --json``: one request, several programs of one, several requests, or many sizes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from p2smt.collectives.dispatch import KindName
from p2smt.report.outputs.shape import (
    Bytes,
    Output,
    OutputPart,
    PayloadBytes,
    PriceBasisWord,
    RangeSeconds,
    Said,
    Seconds,
)
from p2smt.report.outputs.solve import Regime, VerifyPlanOutput
from p2smt.report.outputs.synthesize import FasterFrom

# `cost --json`: one request, several programs of one, several requests, or many sizes.


class CostedStep(OutputPart):
    """A step and how the library carries it out; of a pipelined program, of one chunk."""

    instruction: str
    seconds: Seconds | None
    algorithm: str
    protocol: str
    bottleneck: Annotated[str | None, Said("The level whose worst link bounds the time.")]
    load_bytes: Annotated[Bytes, Said("Bytes on that link in one direction.")]
    range_s: RangeSeconds
    basis: PriceBasisWord


class RequestFigures(OutputPart):
    """A request and the time of its program."""

    kind: KindName
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


class BoundByAlgorithms(OutputPart):
    """What the algorithms allow."""

    algorithm_bound_s: Annotated[
        Seconds,
        Said(
            "Seconds that no program takes less than here, as priced: by the "
            "algorithms, their latencies, the library's calls; 0: not known."
        ),
    ]


class BoundByLinks(OutputPart):
    """What the links allow."""

    physical_bound_s: Annotated[
        Seconds,
        Said("Seconds that the links allow any schedule at best; 0: not known."),
    ]


class RequestSteps(OutputPart):
    """What decides the time, and the steps."""

    regime: Regime
    checked: Annotated[str, Said("What the program was simulated on.")]
    steps: Annotated[Sequence[CostedStep], Said("With the numbers of one chunk.")]
    range_s: RangeSeconds
    basis: PriceBasisWord


class CostedRequest(RequestSteps, BoundByLinks, BoundByAlgorithms, RequestFigures):
    """A request with its program; of one execution, in ``chunks`` chunks where it is pipelined."""


class PlannedRequest(RequestSteps, BoundByAlgorithms, BoundByLinks, RequestFigures):
    """The same of a plan's file, in the order of its keys."""


class CostedPrograms(OutputPart):
    """Several programs of one request, in the order given."""

    programs: Sequence[CostedRequest]


class CostedRequests(OutputPart):
    """Several requests, in the order of `solve`."""

    objective_s: Seconds
    requests: Sequence[CostedRequest]
    range_s: RangeSeconds
    basis: PriceBasisWord


class _WithBytes(OutputPart):
    bytes: Annotated[PayloadBytes, Said("Bytes of every request.")]


class RequestOfSize(CostedRequest, _WithBytes):
    """The request at one size."""


class ProgramsOfSize(CostedPrograms, _WithBytes):
    """The programs at one size."""


class RequestsOfSize(CostedRequests, _WithBytes):
    """The requests at one size."""


class CostedSizes(OutputPart):
    """A table over sizes."""

    sizes: Sequence[RequestOfSize] | Sequence[ProgramsOfSize] | Sequence[RequestsOfSize]


class CostOfRequest(CostedRequest, Output):
    """One request with one program."""


class CostOfPrograms(CostedPrograms, Output):
    """Several programs of one request."""


class CostOfRequests(CostedRequests, Output):
    """Several requests with a program each."""


class CostBySize(CostedSizes, Output):
    """With --sizes."""


CostOutput = CostOfRequest | CostOfPrograms | CostOfRequests | CostBySize
"""The predicted time of programs: which of these it is follows from the options."""


class CostPlanOutput(VerifyPlanOutput):
    """The verdict on a plan, and the requests of a valid one; none where there are no times."""

    proof: Annotated[None, Said("Only `verify --prove` seeks one.")]
    requests: Sequence[PlannedRequest]


# `cost --json` of schedule files.


class ScheduleTime(OutputPart):
    """The time of a schedule, or of the library's choice, at one payload."""

    size_bytes: PayloadBytes
    name: Annotated[str, Said("The file, or the library.")]
    seconds: Annotated[Seconds, Said("A call's cost included, where there is a library.")]
    way: Annotated[str, Said("The best protocol; of a library, what it chooses.")]


class CostSchedulesOutput(Output):
    """Schedules over payloads, beside what the library runs itself."""

    topology: str
    library: Annotated[str | None, Said("null: it runs no such collective, or there is none.")]
    collective: str
    sizes: Sequence[ScheduleTime]
    faster: Annotated[
        Sequence[FasterFrom], Said("Whose price is the lower one, from the first size on.")
    ]
    left_out: Annotated[str, Said("What prices leave out.")]
