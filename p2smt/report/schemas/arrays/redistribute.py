"""`redistribute --json`."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from p2smt.report.schemas.orders import Bytes, Count, Gap, Output, OutputPart, PayloadBytes, Seconds
from p2smt.resharding.steps import StepKind
from p2smt.resharding.types import ElementType, Uneven
from p2smt.result import Status

DeviceNumber = Annotated[
    int, Field(ge=0, description="A device, numbered in hierarchy order from 0.")
]
LayoutText = Annotated[
    str, Field(description="A layout such as S(dp),R;P(tp): axes major first, then partial ones.")
]


class RedistributionStepEntry(OutputPart):
    """A step of a plan."""

    kind: StepKind
    text: Annotated[str, Field(description="What it does, with digits as sub-axes.")]
    after: LayoutText
    seconds: Seconds
    algorithm: Annotated[str, Field(description="none: nothing is sent.")]
    protocol: str
    bottleneck: Annotated[
        str | None, Field(description="The level whose worst link decides; null: nothing is sent.")
    ]
    load_bytes: Annotated[Bytes, Field(description="What that link carries in one direction.")]
    payload_bytes: Annotated[
        PayloadBytes, Field(description="A device's output of an all-gather, else its input.")
    ]
    local_bytes: Annotated[PayloadBytes, Field(description="The array on a device after it.")]
    step_bytes: Annotated[
        PayloadBytes,
        Field(description="Input, output and pack buffer on a device, and the source if kept."),
    ]


class MemoryCap(OutputPart):
    """The cap that the plan keeps to."""

    limit_bytes: PayloadBytes
    of_steps: Annotated[
        bool, Field(description="Of input, output and pack buffer; false: of every state.")
    ]
    keep_source: bool


class PeerEntry(OutputPart):
    """What another planner does, priced alike."""

    name: str
    seconds: Annotated[Seconds | None, Field(description="null: no plan of the six steps.")]
    peak_bytes: PayloadBytes | None
    peak_step_bytes: Annotated[
        PayloadBytes | None, Field(description="The --memory that its plan would need.")
    ]
    over_cap: Annotated[bool, Field(description="Whether its plan breaks the cap.")]
    steps: list[StepKind]
    note: str


class FoundRedistribution(OutputPart):
    """What was found between two types of an array."""

    from_: Annotated[LayoutText, Field(alias="from")]
    to: LayoutText
    status: Literal[Status.OPTIMAL, Status.FEASIBLE, Status.INFEASIBLE, Status.UNKNOWN]
    objective_s: Annotated[Seconds | None, Field(description="Seconds; null: there is no plan.")]
    bound_s: Annotated[
        Seconds | None,
        Field(description="No plan that was compared is faster; null: none exists under the cap."),
    ]
    physical_bound_s: Annotated[
        Seconds, Field(description="Nor does any other way to move the data, by the links alone.")
    ]
    gap: Annotated[Gap | None, Field(description="Of the time over its bound, as a part of it.")]
    peak_bytes: Annotated[PayloadBytes | None, Field(description="The largest single state.")]
    peak_step_bytes: Annotated[
        PayloadBytes | None, Field(description="Input, output and pack buffer of the dearest step.")
    ]
    max_steps: Annotated[
        Count | None,
        Field(description="Plans of so many steps were compared; null: of any length."),
    ]
    steps: list[RedistributionStepEntry]


class RedistributeOutput(Output, FoundRedistribution):
    """The fastest steps from one type of an array to another."""

    interrupted: Annotated[bool, Field(description="Stopped by the user: the best so far.")]
    cuts: Literal["primes", "levels"]
    mesh: str
    device_ids: Annotated[
        list[DeviceNumber], Field(description="Of each mesh position, row-major.")
    ]
    to_device_ids: list[DeviceNumber]
    shape: list[Annotated[int, Field(ge=1)]]
    padded_shape: Annotated[
        list[Annotated[int, Field(ge=1)]],
        Field(description="What bytes are of: the shape, padded where uneven is padded."),
    ]
    dtype: ElementType
    uneven: Uneven
    memory: MemoryCap
    least_limit_bytes: Annotated[
        PayloadBytes | None,
        Field(
            description="The least cap of this kind that a plan meets; null: unknown, or not asked"
        ),
    ]
    least_memory_bytes: Annotated[
        PayloadBytes | None,
        Field(description="The least --memory that a plan meets; null: not infeasible, or unknown"),
    ]
    too_few_steps: Annotated[
        bool, Field(description="Infeasible because of the number of steps, whatever the memory.")
    ]
    compared: Annotated[
        list[PeerEntry] | None, Field(description="With --compare; null: nothing is compared.")
    ]
    backward: Annotated[
        FoundRedistribution | None,
        Field(description="With --backward: the gradient's way, while its source is kept."),
    ]
