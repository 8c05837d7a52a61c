"""The shape of a plan file: its keys as pydantic models, version 2 and the older version 1."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, model_validator

from p2smt.cluster.error_model import AlgorithmName
from p2smt.cluster.file_model import TopologyModel
from p2smt.collectives.dispatch import (
    DISPATCH,
    MAX_EXPERTS,
    MAX_IMBALANCE,
    AnyKind,
    Dispatch,
    KindName,
)
from p2smt.collectives.names import Form, RequestKind
from p2smt.cost.accuracy import PriceBasis
from p2smt.display import Displayed, told
from p2smt.files.validation import StrictModel
from p2smt.parallelism.request import MAX_CHUNKS, MAX_PROGRAM_LENGTH, Request
from p2smt.plans.training.file_model import TrainingBlock
from p2smt.programs.program import ProofBasis
from p2smt.result import Status

SCHEMA_VERSION = 2
FormName = Annotated[Form, Field(strict=False)]
ExpertCount = Annotated[int, Field(ge=1, le=MAX_EXPERTS)]
BasisName = Annotated[ProofBasis, Field(strict=False)]
StatusName = Annotated[Status, Field(strict=False)]
Seconds = Annotated[float, Field(ge=0, allow_inf_nan=False)]
SecondsRange = Annotated[list[Seconds], Field(min_length=2, max_length=2)]
PriceBasisName = Annotated[PriceBasis, Field(strict=False)]
Count = Annotated[int, Field(ge=1, lt=2**62)]
Bytes = Annotated[int, Field(ge=0, lt=2**62)]
DeviceNumber = Annotated[int, Field(ge=0, lt=2**31)]
Load = Annotated[float, Field(ge=0, allow_inf_nan=False)]
HostName = Annotated[str, Field(min_length=1)]
ChunkCount = Annotated[int, Field(ge=1, le=MAX_CHUNKS)]


class AxisModel(StrictModel):
    """A parallelism axis."""

    name: str
    size: Count


KnownSeconds = Annotated[
    Seconds | None, Field(description="Seconds; null: nobody stated the bandwidth of a level.")
]


class StepModel(StrictModel):
    """One step: all ``groups`` (device ids) run the instruction at the same time.

    ``payload_bytes`` is the vector that the algorithm works on; ``bottleneck`` the level
    whose worst link carries ``load_bytes`` in one direction; ``range_s`` and ``basis`` are as of a
    request, with ``basis_why``.
    """

    instruction: str
    groups: list[list[DeviceNumber]]
    payload_bytes: Load
    seconds: KnownSeconds
    algorithm: str
    protocol: str
    bottleneck: str | None
    load_bytes: Load
    range_s: SecondsRange | None = None
    basis: PriceBasisName | None = None
    basis_why: str | None = None


class AtLevelModel(StrictModel):
    """What is said of an axis at a level."""

    kind: str
    text: str
    axis: str
    level: str


class AxisRuleModel(AtLevelModel):
    """``within``: each group of the axis lies in one entity of the level; else it spans several."""

    kind: Literal["axis-rule"]
    within: bool


class FixedEntryModel(AtLevelModel):
    """The matrix splits the axis ``entry`` ways at the level."""

    kind: Literal["fixed-entry"]
    entry: Count


class MaxLengthModel(StrictModel):
    """Programs have at most so many instructions; every plan says how many."""

    kind: Literal["max-length"]
    text: str
    instructions: Annotated[int, Field(ge=1, le=MAX_PROGRAM_LENGTH)]


class ForbiddenFormModel(StrictModel):
    """No instruction has this form (the one that is printed)."""

    kind: Literal["forbidden-form"]
    text: str
    form: FormName


class StepLimitModel(StrictModel):
    """At most so many steps have groups that span several entities of the level."""

    kind: Literal["step-limit"]
    text: str
    level: str
    at_most: Annotated[int, Field(ge=0, lt=2**31)]


class AlgorithmsModel(StrictModel):
    """Collectives run by one of these; otherwise as the topology's library runs them."""

    kind: Literal["algorithms"]
    text: str
    algorithms: Annotated[list[AlgorithmName], Field(min_length=1)]


class PipelineModel(StrictModel):
    """Programs of several steps run in ``chunks`` chunks; null: in the best number of them."""

    kind: Literal["pipeline"]
    text: str
    chunks: ChunkCount | None


Restriction = Annotated[
    AxisRuleModel
    | FixedEntryModel
    | MaxLengthModel
    | ForbiddenFormModel
    | StepLimitModel
    | AlgorithmsModel
    | PipelineModel,
    Field(discriminator="kind"),
]


class PlanSearchModel(StrictModel):
    """How the plan was sought; ``time_limit_s`` null: without a limit."""

    solver: Annotated[str, Field(min_length=1)]
    time_limit_s: Seconds | None
    seed: Annotated[int, Field(ge=0, lt=2**31)]
    workers: Annotated[int, Field(ge=1, lt=2**31)]


class LimitsModel(PlanSearchModel):
    """The same of placements and programs, of which several may be asked for."""

    solver: Literal["cpsat", "z3"]
    top: Annotated[int, Field(ge=1, le=1000)]


class DispatchModel(StrictModel):
    """What a dispatch says of the experts (:class:`~p2smt.collectives.dispatch.Dispatch`)."""

    experts: ExpertCount
    active: ExpertCount
    groups: ExpertCount = 1
    top_groups: ExpertCount = 1
    imbalance: Annotated[float, Field(ge=1, le=MAX_IMBALANCE)] = 1.0


class RequestModel(StrictModel):
    """One request with its program; times are of one execution, in seconds.

    In ``chunks`` chunks the program is pipelined: ``seconds`` is the time of all of them, and
    the numbers of ``steps`` are those of one.  ``dispatch``: of that kind, and of no other.
    ``matrix``: whose rows the ``axes`` are, in a plan of two; null: the plan has one.
    ``range_s`` is low and high of ``seconds``, ``basis`` what both rest on, and ``basis_why`` why
    on no more, in words; null: the file does not say.
    """

    kind_name: Annotated[KindName, Field(alias="kind")]
    dispatch: DispatchModel | None = None
    matrix: Literal["attention", "experts"] | None = None
    axes: Annotated[list[str], Field(min_length=1)]
    bytes: Count
    times: Count
    program: str | None
    chunks: ChunkCount = 1
    status: StatusName
    seconds: KnownSeconds
    bound_s: KnownSeconds
    physical_bound_s: KnownSeconds
    single_collective_s: KnownSeconds
    peak_bytes: Bytes
    shards: list[DeviceNumber] | None
    steps: list[StepModel]
    range_s: SecondsRange | None = None
    basis: PriceBasisName | None = None
    basis_why: str | None = None

    @model_validator(mode="after")
    def _a_dispatch_says_where(self) -> Self:
        """A dispatch has its numbers, which fit each other; no other kind has them."""
        if (self.kind_name == DISPATCH) != (self.dispatch is not None):
            raise ValueError("`dispatch` stands in requests of kind dispatch, and in no others")
        self.kind  # noqa: B018  # raises where its numbers contradict each other
        return self

    @property
    def kind(self) -> AnyKind:
        """What is asked for.

        Raises:
            InputError: the numbers of a dispatch contradict each other.
        """
        if self.dispatch is None:
            return RequestKind(self.kind_name)
        return Dispatch(**self.dispatch.model_dump())

    @property
    def as_request(self) -> Request:
        """The request alone.

        Raises:
            InputError: as for ``kind``, or an axis is named twice.
        """
        return Request(self.kind, tuple(self.axes), self.bytes, self.times)


class OldRequestModel(RequestModel):
    """A request of a plan of version 1; ``checked``: what its program had been run on."""

    checked: str


# A payload in parts, each by a program of its own, all at once.


FractionText = Annotated[str, Field(pattern=r"^[0-9]{1,12}(/[1-9][0-9]{0,11})?$")]


class SplitPriceModel(StrictModel):
    """What the links of a level are worth in a proof; the prices of all levels are 1 together."""

    level: str
    price: FractionText


class SplitPartModel(StrictModel):
    """A part of a payload as a request of its own; ``starts_s``: when each of its steps begins."""

    share: FractionText
    starts_s: Annotated[list[Seconds], Field(min_length=1)]
    request: RequestModel


class SplitModel(StrictModel):
    """The fastest split found of a request, counted from 0, over programs that run at once.

    Without ``parts`` none is faster than the request's one program.  No split takes less than
    ``least_s``, which ``prices`` prove; null: not every program of the request is known.
    """

    request: DeviceNumber
    seconds: Seconds
    least_s: Seconds | None
    prices: list[SplitPriceModel]
    parts: list[SplitPartModel]


# What the search that found a plan said beside it.


Rate = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Word = Annotated[str, Field(min_length=1, max_length=4096)]
MAX_POINTS = 1000
"""The most strategies near the best that a file lists."""


class PointBlock(StrictModel):
    """A strategy near the best; ``parts``: of its seconds, by name."""

    strategy: Word
    iteration_s: Seconds
    memory_bytes: Bytes
    parts: dict[str, Seconds]


class LinkLoadBlock(StrictModel):
    """How long the busiest link of a level is occupied in an iteration, all and by request.

    Each request has a busiest link of its own: together they occupy no link longer.
    """

    level: Word
    busy_s: Seconds
    requests: dict[str, Seconds]


class BesideBlock(StrictModel):
    """Another order of ranks with its time, one collective for each request."""

    name: Word
    seconds: Seconds


class AnswerBlock(StrictModel):
    """What a search said; null: not known, or not asked for.

    ``proof`` and ``gap`` are of all that was searched, not of the plan's requests alone; the gap is
    how much faster another may be at most.  ``outside``: how it lies outside of what was measured.
    ``reserve_bytes``: kept free on a device.  ``idle``: hosts of the job without ranks.
    """

    command: Word | None = None
    status: StatusName
    proof: str = ""
    gap: Rate | None = None
    outside: list[str] = Field(default_factory=list)
    reserve_bytes: Bytes | None = None
    tokens_per_s: Rate | None = None
    mfu: Rate | None = None
    within: Rate | None = None
    points: list[PointBlock] = Field(default_factory=list, max_length=MAX_POINTS)
    links: list[LinkLoadBlock] = Field(default_factory=list)
    beside: list[BesideBlock] = Field(default_factory=list)
    idle: list[Annotated[str, Field(min_length=1)]] = Field(default_factory=list)


class _PlanFields(Displayed, StrictModel):
    """What plans of both versions have."""

    topology: TopologyModel
    axes: list[AxisModel]
    ranks: list[DeviceNumber]
    objective: Literal["sum", "max"]
    objective_s: KnownSeconds
    bound_s: KnownSeconds
    physical_bound_s: KnownSeconds
    status: StatusName
    peak_bytes: Bytes

    def summary(self) -> str:
        """Axes, cluster, status and time."""
        axes = ",".join(f"{axis.name}={axis.size}" for axis in self.axes)
        return f"{axes} on {self.topology.name!r}: {told(self.status.value, self.objective_s)}"

    __str__ = Displayed.__repr__

    def _times(self) -> Iterator[float | None]:
        """What is null together, or not at all."""
        yield from (self.objective_s, self.bound_s, self.physical_bound_s)
        for one in getattr(self, "requests", ()):
            yield from (one.seconds, one.bound_s, one.physical_bound_s, one.single_collective_s)
            yield from (step.seconds for step in one.steps)

    @model_validator(mode="after")
    def _times_are_told(self) -> Self:
        """Times are null only where nobody stated the bandwidth of a level, and then all are."""
        nulls = {one is None for one in self._times()}
        if len(nulls) > 1 or (True in nulls and not self.topology.assumed):
            text = "times are null where a level is `assumed`, and then all, or none is"
            raise ValueError(text)
        return self


class PlanModel(_PlanFields):
    """A plan file.  Devices are numbered in hierarchy order of the embedded topology.

    ``ranks[r]`` is the device of rank r, ranks being row-major over the axes as listed;
    ``matrix`` is null where no matrix expresses them.  ``restrictions`` and ``limits`` are those
    under which the answer was sought.  On named hosts ``hosts[r]`` is that of rank r, and
    ``with_programs_s`` the objective with the programs of the requests: ``objective_s``,
    ``bound_s`` and ``status`` speak of one collective each.  ``allocation`` is the cluster of all
    the hosts that the job got, where some of them have no rank; ``topology`` is that of the others.
    ``basis``: why no program is missed, where ``status`` or ``bound_s`` is proved; null: the file
    does not say.  ``training`` is the run whose requests these are, in the plans of `p2smt plan`.
    ``range_s`` is low and high of ``objective_s``, ``range_basis`` what both rest on, and
    ``range_basis_why`` why on no more, in words.  ``answer``: what the search said beside it.
    ``splits``: of requests over programs that run at once, where they were looked for.
    """

    schema_version: Literal[2]
    matrix: list[list[DeviceNumber]] | None
    restrictions: list[Restriction]
    limits: LimitsModel
    requests: list[RequestModel]
    basis: list[BasisName] | None = None
    hosts: list[HostName] | None = None
    with_programs_s: Seconds | None = None
    allocation: TopologyModel | None = None
    training: TrainingBlock | None = None
    range_s: SecondsRange | None = None
    range_basis: PriceBasisName | None = None
    range_basis_why: str | None = None
    answer: AnswerBlock | None = None
    splits: list[SplitModel] | None = None

    @model_validator(mode="after")
    def _requests_say_which_matrix(self) -> Self:
        """Requests name their matrix where there are two, and nowhere else."""
        two = self.training is not None and self.training.placement is not None
        if any((one.matrix is not None) != two for one in self.requests):
            raise ValueError("requests have a `matrix` where `training` has a placement, else none")
        return self

    @property
    def links_alone(self) -> bool:
        """Whether link-level bounds count nothing but links: files without ``basis`` are older."""
        return self.basis is not None


class OldPlanModel(_PlanFields):
    """A plan file of version 1: its restrictions are words, and its limits are not told."""

    schema_version: Literal[1]
    matrix: list[list[DeviceNumber]]
    restrictions: list[str]
    requests: list[OldRequestModel]
    links_alone: ClassVar[bool] = False


AnyPlan = PlanModel | OldPlanModel
