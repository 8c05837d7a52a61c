"""``redistribute --json``, and the verdict on the plan of a redistribution."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal

from p2smt.plans.solution import ProofStatus
from p2smt.report.outputs.shape import (
    Bytes,
    Count,
    Gap,
    Noted,
    Output,
    OutputPart,
    PayloadBytes,
    PriceBasisWord,
    RangeSeconds,
    Said,
    Seconds,
)
from p2smt.report.outputs.solve import WhatChecked
from p2smt.resharding.plan_check import RedistributionNote
from p2smt.resharding.steps import MemoryLimit, StepKind
from p2smt.resharding.types import ElementType, Uneven
from p2smt.result import Status

DeviceNumber = Annotated[int, Said("A device, numbered in hierarchy order from 0.", ge=0)]
LayoutText = Annotated[
    str, Said("A layout such as S(dp),R;P(tp): axes major first, then partial ones.")
]


class RedistributionStepEntry(OutputPart):
    """A step of a plan."""

    kind: StepKind
    text: Annotated[str, Said("What it does, with digits as sub-axes.")]
    after: LayoutText
    seconds: Seconds
    range_s: RangeSeconds
    basis: PriceBasisWord
    algorithm: Annotated[str, Said("none: nothing is sent.")]
    protocol: str
    bottleneck: Annotated[
        str | None, Said("The level whose worst link decides; null: nothing is sent.")
    ]
    load_bytes: Annotated[Bytes, Said("What that link carries in one direction.")]
    payload_bytes: Annotated[
        PayloadBytes, Said("A device's output of an all-gather, else its input.")
    ]
    local_bytes: Annotated[PayloadBytes, Said("The array on a device after it.")]
    step_bytes: Annotated[
        PayloadBytes,
        Said("Input, output and pack buffer on a device, and the source if kept."),
    ]


MemoryCap = Annotated[
    MemoryLimit,
    Noted(
        limit_bytes=Said("Bytes, whole.", ge=0),
        of_steps=Said("Of input, output and pack buffer; false: of every state."),
    ),
    Said("The cap that the plan keeps to."),
]


class PeerEntry(OutputPart):
    """What another planner does, priced alike."""

    name: str
    seconds: Annotated[Seconds | None, Said("null: no plan of the six steps.")]
    peak_bytes: PayloadBytes | None
    peak_step_bytes: Annotated[PayloadBytes | None, Said("The --memory that its plan would need.")]
    over_cap: Annotated[bool, Said("Whether its plan breaks the cap.")]
    steps: Sequence[StepKind]
    note: str


FoundStatus = Literal[Status.OPTIMAL, Status.FEASIBLE, Status.INFEASIBLE, Status.UNKNOWN]


class FoundRedistribution(OutputPart):
    """What was found between two types of an array."""

    status: FoundStatus
    objective_s: Annotated[Seconds | None, Said("Seconds; null: there is no plan.")]
    range_s: Annotated[RangeSeconds, Said("Of all steps together.")]
    basis: PriceBasisWord
    bound_s: Annotated[
        Seconds | None,
        Said("No plan that was compared is faster; null: none exists under the cap."),
    ]
    physical_bound_s: Annotated[
        Seconds, Said("Nor does any other way to move the data, by the links alone.")
    ]
    gap: Annotated[Gap | None, Said("Of the time over its bound, as a part of it.")]
    peak_bytes: Annotated[PayloadBytes | None, Said("The largest single state.")]
    peak_step_bytes: Annotated[
        PayloadBytes | None, Said("Input, output and pack buffer of the dearest step.")
    ]
    max_steps: Annotated[
        Count | None,
        Said("Plans of so many steps were compared; null: of any length."),
    ]
    steps: Sequence[RedistributionStepEntry]


class BackwardRedistribution(FoundRedistribution):
    """The gradient's way back, between which types."""

    from_: LayoutText
    to: LayoutText


class WhetherInterrupted(OutputPart):
    """Whether a search came to its end."""

    interrupted: Annotated[bool, Said("Stopped by the user: the best so far.")]


class RedistributionTypes(OutputPart):
    """What is asked: the types, and the cap."""

    cuts: Literal["primes", "levels"]
    mesh: str
    device_ids: Annotated[Sequence[DeviceNumber], Said("Of each mesh position, row-major.")]
    to_device_ids: Sequence[DeviceNumber]
    shape: Sequence[Annotated[int, Said(ge=1)]]
    dtype: ElementType
    uneven: Uneven
    from_: LayoutText
    to: LayoutText
    padded_shape: Annotated[
        Sequence[Annotated[int, Said(ge=1)]],
        Said("What bytes are of: the shape, padded where uneven is padded."),
    ]
    memory: MemoryCap
    least_limit_bytes: Annotated[
        PayloadBytes | None,
        Said("The least cap of this kind that a plan meets; null: unknown, or not asked"),
    ]
    least_memory_bytes: Annotated[
        PayloadBytes | None,
        Said("The least --memory that a plan meets; null: not infeasible, or unknown"),
    ]
    too_few_steps: Annotated[
        bool, Said("Infeasible because of the number of steps, whatever the memory.")
    ]
    compared: Annotated[
        Sequence[PeerEntry] | None, Said("With --compare; null: nothing is compared.")
    ]
    backward: Annotated[
        BackwardRedistribution | None,
        Said("With --backward: the gradient's way, while its source is kept."),
    ]


class RedistributeOutput(RedistributionTypes, FoundRedistribution, WhetherInterrupted, Output):
    """The fastest steps from one type of an array to another."""


# `verify --json` of a redistribution's plan; `cost --json` of one adds its steps.


Violations = Sequence[
    Annotated[
        RedistributionNote,
        Noted(
            kind=Said("rule, meaning, groups, memory, cost or bound: what is not so."),
            step=Said("Its number; the first is 1.", ge=1),
            rank=Said("A rank; ranks are numbered from 0.", ge=0),
            chunk=Said("The dimension and the global index of the first element concerned.", ge=0),
        ),
    ]
]
"""What is wrong with a plan; null where it is not about one step, rank or element."""


class ProofOfRedistribution(OutputPart):
    """What solving the plan's question again says."""

    status: Annotated[ProofStatus, Said("proved: none is faster; refuted; open: a limit was met.")]
    objective_s: Annotated[Seconds, Said("Seconds of the plan.")]
    bound_s: Annotated[Seconds, Said("Seconds that no plan beats.")]
    max_steps: Annotated[
        int | None, Said("Of plans of at most so many steps; null: of any length.")
    ]
    better_s: Annotated[Seconds | None, Said("Seconds of a faster plan.")]
    better_steps: Sequence[RedistributionStepEntry] | None


class RedistributionVerdict(OutputPart):
    """Whether a plan is valid, and what it takes."""

    verdict: Literal["valid", "invalid"]
    violations: Violations
    objective_s: Annotated[
        Seconds | None, Said("Seconds, computed anew; null: its steps are none.")
    ]
    peak_bytes: Annotated[PayloadBytes | None, Said("The largest state, on a device.")]
    peak_step_bytes: Annotated[
        PayloadBytes | None, Said("Input, output and pack buffer of a step.")
    ]


class VerifyRedistributionOutput(WhatChecked, RedistributionVerdict, Output):
    """The verdict on the plan of a redistribution."""

    proof: Annotated[ProofOfRedistribution | None, Said("With --prove, of a valid plan.")]


class CostRedistributionOutput(VerifyRedistributionOutput):
    """The verdict on a plan, and the steps of one whose steps are any."""

    proof: Annotated[None, Said("Only `verify --prove` seeks one.")]
    steps: Sequence[RedistributionStepEntry]
