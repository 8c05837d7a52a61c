"""Rank orders side by side: ``compare --json``, and in ``solve --json`` of named hosts."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, RootModel

from p2smt.cluster.file_model import TopologyModel
from p2smt.collectives.names import RequestKind
from p2smt.programs.check import ProofBasis
from p2smt.result import Status
from p2smt.schedules.language.file_model import FileModel
from p2smt.schedules.verify.report import Kind, Verdict

# What the outputs share: no unknown keys, and numbers with their units.


Seconds = Annotated[float, Field(ge=0, description="Seconds.")]
Bytes = Annotated[float, Field(ge=0, description="Bytes; of a share of a payload, a fraction.")]
PayloadBytes = Annotated[int, Field(ge=0, description="Bytes, whole.")]
Ratio = Annotated[float, Field(ge=0, description="A ratio: 1 is equal.")]
Gap = Annotated[float, Field(ge=0, description="A relative difference: 0.05 is five per cent.")]
Error = Annotated[float, Field(ge=0, description="A relative error: 0.1 is ten per cent.")]
Count = Annotated[int, Field(ge=0, description="How many.")]
Rank = Annotated[int, Field(ge=0, description="A rank; ranks are numbered from 0.")]
Chunk = Annotated[int, Field(ge=0, description="A chunk of a buffer, numbered from 0.")]
Nth = Annotated[int, Field(ge=1, description="Its number; the first is 1.")]
RankMatrix = list[list[Annotated[int, Field(ge=1)]]]
"""A parallelism matrix: a row per axis, an entry per level."""


class OutputPart(BaseModel):
    """A part of an output: every key is there, and no other."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Output(OutputPart):
    """What a command prints with ``--json``: one object."""

    schema_version: Annotated[
        Literal[1], Field(description="Goes up when a field changes its meaning or goes away.")
    ]


class SizedName(OutputPart):
    """A level or an axis."""

    name: str
    size: Annotated[int, Field(ge=1)]


class NamedAlgorithm(OutputPart):
    """The cheapest way that a library has for a collective, where its rule takes another."""

    algorithm: str
    protocol: str
    seconds: Seconds
    settings: Annotated[
        str | None,
        Field(description="Variables that name it, such as NCCL_ALGO=Ring; null: there are none."),
    ]
    chosen_algorithm: Annotated[str, Field(description="What its rule takes.")]
    chosen_protocol: str
    chosen_s: Annotated[Seconds, Field(description="Seconds of one execution by that.")]


class DecisiveLink(OutputPart):
    """What decides the time of a request."""

    regime: Annotated[
        str | None,
        Field(
            description="The largest part of its time: latency, cards (the nodes' network cards), "
            "node links, or a level further out; null: it takes none."
        ),
    ]
    level: Annotated[str | None, Field(description="Of the link that bounds it; null: none does.")]
    owner: Annotated[
        str | None, Field(description="The switch or host whose uplink it is; null: not by name.")
    ]
    load_bytes: Annotated[Bytes, Field(description="Bytes on that link in one direction.")]


class OrderParts(OutputPart):
    """A rank order, one collective per request; lists are in the order of the requests."""

    name: str
    objective_s: Annotated[
        Seconds | None, Field(description="Seconds; null: bandwidths are not stated.")
    ]
    seconds: Annotated[
        list[Seconds] | None, Field(description="Of one execution of each request; null: as above.")
    ]
    bottlenecks: Annotated[list[DecisiveLink] | None, Field(description="null: as above.")]
    crossings: Annotated[
        dict[str, Count],
        Field(description="By level, connections that join ranks under different entities of it."),
    ]
    matters_from: Annotated[
        float | None,
        Field(
            ge=1,
            description="Least oversubscription of uplinks without a stated bandwidth that slows "
            "it down; null: none does, or all are stated.",
        ),
    ]
    matrix: Annotated[RankMatrix | None, Field(description="That expresses it; null: none does.")]
    hosts: Annotated[
        list[str] | None, Field(description="The host of each rank; null: nodes have no names.")
    ]


class OrderBeside(OrderParts):
    """An order with its distance to the best one."""

    gap: Annotated[
        float | None,
        Field(
            ge=-1,
            description="Its time over that of the best order found, less one (below 0: no matrix "
            "expresses it, and it is faster than all); null: not known.",
        ),
    ]
    bound_gap: Annotated[
        Gap | None,
        Field(description="The same over the proved bound; null: no bound holds for it."),
    ]


class CompareOutput(Output):
    """Rank orders side by side; the numbers at the top are those of the best order."""

    status: Annotated[Status, Field(description="optimal: the best order is proved to be it.")]
    interrupted: Annotated[bool, Field(description="Stopped by the user: the best so far.")]
    notes: Annotated[list[str], Field(description="What else is to be known, in words.")]
    objective: Literal["sum", "max"]
    objective_s: Annotated[Seconds | None, Field(description="Seconds; null: none, or not known.")]
    bound_s: Annotated[Seconds | None, Field(description="Seconds, proved; null: not known.")]
    requests: Annotated[list[str], Field(description="The requests in words.")]
    orders: list[OrderBeside]
    best: Annotated[OrderParts | None, Field(description="null: none was found.")]
    idle: Annotated[
        list[str] | None,
        Field(description="Hosts without ranks in the best order; null: nodes have no names."),
    ]
    uplinks_stated: Annotated[
        bool, Field(description="false: no times, as a bandwidth is unknown.")
    ]


# JSON of `topology list | show | check | fabric | import`, of `classics` and of `schema`.


Devices = Annotated[int, Field(ge=1, description="How many devices it has.")]
ParameterValue = bool | int | list[int] | None


class TopologyListOutput(Output):
    """The presets: level hierarchies, and fabrics."""

    presets: list[str]
    fabrics: list[str]


FractionText = Annotated[str, Field(pattern=r"^[0-9]+(/[0-9]+)?$", description="A fraction.")]


class FabricCapacity(OutputPart):
    """What edges share."""

    name: str
    bandwidth: Annotated[FractionText, Field(description="Chunks in a round, in units.")]


class FabricWay(OutputPart):
    """An edge from one rank to another."""

    source: Annotated[int, Field(ge=0)]
    target: Annotated[int, Field(ge=0)]
    loads: Annotated[list[int], Field(min_length=1, description="Numbers of capacities.")]


class TopologyFabricOutput(Output):
    """One fabric."""

    name: str
    ranks: Annotated[int, Field(ge=1)]
    unit: Annotated[str | None, Field(description="Of bandwidth; null: they have none.")]
    capacities: list[FabricCapacity]
    edges: Annotated[list[FabricWay], Field(description="Sorted.")]
    symmetries: Annotated[
        list[list[int]], Field(description="Those the file names: where each rank goes.")
    ]


class TopologyShowOutput(Output):
    """One topology."""

    topology: TopologyModel
    devices: Devices


class TopologyCheckOutput(Output):
    """A topology file that is well formed; of another there is an error instead."""

    verdict: Literal["valid"]
    name: str
    devices: Devices


class ImportedLevel(OutputPart):
    """A level of an imported topology."""

    name: str
    size: Annotated[int, Field(ge=1)]
    ports: Annotated[int, Field(ge=1, description="Uplinks of an entity.")]
    bandwidth_bytes_per_s: Annotated[float, Field(description="Of a port, in one direction.")]
    assumed: Annotated[
        bool, Field(description="Nobody stated the bandwidth: taken as that of all its nodes.")
    ]


class TopologyImportOutput(Output):
    """What was made of files of a cluster."""

    levels: Annotated[list[ImportedLevel], Field(description="Outermost first.")]
    hosts: Annotated[list[str], Field(description="In the order of the devices; empty: unnamed.")]
    left_out: Annotated[list[str], Field(description="Hosts that are in no one certain place.")]
    lost: Annotated[list[str], Field(description="What was left out or filled in, in sentences.")]
    devices: Annotated[int, Field(ge=1, description="How many there are on the hosts.")]
    topology: TopologyModel


class ListedClassic(OutputPart):
    """A classic algorithm."""

    name: str
    collective: str
    ranks: Annotated[str, Field(description="Which numbers of ranks it takes, in words.")]
    parameters: Annotated[dict[str, ParameterValue], Field(description="With their defaults.")]
    summary: str


class ClassicsOutput(Output):
    """The classic algorithms."""

    classics: list[ListedClassic]


class ClassicOutput(Output):
    """A classic algorithm that was made (``classics NAME``)."""

    name: str
    ranks: Annotated[int, Field(ge=1)]
    steps: Count
    output: Annotated[str | None, Field(description="The file that it was written to.")]
    schedule: Annotated[
        FileModel | None, Field(description="The schedule file as data; null: it was written.")
    ]


class ListedSchema(OutputPart):
    """A schema that `schema NAME` prints."""

    name: str
    of: Annotated[str, Field(description="What it is the schema of.")]


class SchemaOutput(Output):
    """The schemas (`schema` without a name)."""

    schemas: list[ListedSchema]


# `placements --json` and `programs --json`.


class PlacementsOutput(Output):
    """Every parallelism matrix of a cluster and its axes, each once."""

    status: Status
    count: Count
    levels: Annotated[list[SizedName], Field(description="Outermost first.")]
    axes: list[SizedName]
    placements: Annotated[
        list[RankMatrix], Field(description="A row per axis, an entry per level.")
    ]
    conflict: Annotated[
        list[str], Field(description="Restrictions that leave no answer; of an infeasible one.")
    ]
    notes: Annotated[list[str], Field(description="What else is to be known, in words.")]


class ProgramEntry(OutputPart):
    """A program of a list of all."""

    text: str
    instructions: list[str]


class TimedProgramEntry(ProgramEntry):
    """A program of a list of the best."""

    seconds: Annotated[Seconds | None, Field(description="Seconds; null: no size was given.")]
    checked: Annotated[str, Field(description="What it was simulated on.")]


class _Counted(OutputPart):
    status: Status
    basis: Annotated[
        list[ProofBasis], Field(description="Why no program is missed; empty: some may be.")
    ]
    count: Count
    count_by_length: Annotated[
        list[Count], Field(description="How many have one instruction, two, and so on.")
    ]


class EveryProgram(_Counted):
    """Every valid program."""

    checked: Annotated[str, Field(description="What the programs were simulated on.")]
    programs: list[ProgramEntry]


class BestPrograms(_Counted):
    """The best programs: by time, or without a size by length.

    By time they stand beside the single collective of the request.
    """

    programs: list[TimedProgramEntry]
    single_collective_s: Annotated[
        Seconds | None, Field(description="Seconds, as the library chooses it; null: not priced.")
    ]
    program_gain: Annotated[
        float | None,
        Field(ge=0, description="That over the best program's time, less one; null: no gain."),
    ]
    gain_by_choice: Annotated[
        float | None,
        Field(
            ge=0,
            description="The same of naming an algorithm without a program; null: no gain.",
        ),
    ]
    named_algorithm: Annotated[
        NamedAlgorithm | None, Field(description="That one; null: the library chooses it anyway.")
    ]


class _WithRequest(OutputPart):
    kind: RequestKind
    axes: list[str]


class EveryProgramOfRequest(EveryProgram, _WithRequest):
    """Every valid program of one of several requests."""


class BestProgramsOfRequest(BestPrograms, _WithRequest):
    """The best programs of one of several requests."""


class EveryProgramOutput(EveryProgram, Output):
    """Of one request, or of factors."""


class BestProgramsOutput(BestPrograms, Output):
    """The same with --top."""


class RequestProgramsOutput(Output):
    """Of several requests."""

    status: Annotated[Status, Field(description="complete: every list is.")]
    requests: list[EveryProgramOfRequest] | list[BestProgramsOfRequest]


class ProgramsOutput(RootModel[EveryProgramOutput | BestProgramsOutput | RequestProgramsOutput]):
    """Every valid program, or the best ones: which of these it is follows from the options."""


# `verify --json` of a schedule.


class ScheduleStep(OutputPart):
    """Where a step stands."""

    rank: Rank
    block: int
    step: Annotated[int, Field(ge=0, description="In its thread block, from 0.")]
    inner: Annotated[
        int | None, Field(description="Which operation inside that step; null: it is all of it.")
    ]
    kind: Annotated[str, Field(description="As the file writes it.")]
    line: Annotated[int | None, Field(description="In the file, from 1; null: not known.")]


class InterleavedStep(ScheduleStep):
    """An entry of an interleaving."""

    part: Annotated[str, Field(description="Which part of the step; empty: the whole.")]


class ScheduleViolation(OutputPart):
    """What is wrong with a schedule, and an interleaving that shows it."""

    kind: Kind
    rank: Rank | None
    chunk: Chunk | None
    step: Annotated[int | None, Field(description="Of the first step that it names.")]
    message: str
    steps: Annotated[list[ScheduleStep], Field(description="The steps at fault.")]
    details: list[str]
    interleaving: list[InterleavedStep]


class CheckedSchedule(OutputPart):
    """What was checked."""

    name: str
    format: str
    collective: str
    in_place: bool
    ranks: Annotated[int, Field(ge=1)]
    steps: Count


class RepairedStep(ScheduleStep):
    """The step to change, and how."""

    change: str


class RepairOutput(OutputPart):
    """The repair, or how far the search for one went."""

    repair: RepairedStep | None
    tried: Annotated[Count, Field(description="Changes of one step that were tried.")]
    complete: Annotated[bool, Field(description="Every change of one step was tried.")]


class ScheduleCostOutput(OutputPart):
    """The predicted time on a topology."""

    seconds: Seconds
    bound_s: Annotated[Seconds, Field(description="Seconds that no run can beat.")]
    payload_bytes: PayloadBytes
    bottleneck: Annotated[str | None, Field(description="The busiest link.")]
    bottleneck_bytes: Annotated[Bytes | None, Field(description="Bytes over that link.")]
    bottleneck_busy_share: Annotated[Ratio, Field(description="Of the time; at most 1.")]
    critical_path: list[ScheduleStep]
    approximate: bool


class VerifyScheduleOutput(Output):
    """The verdict on a schedule, over all its interleavings."""

    verdict: Verdict
    violations: list[ScheduleViolation]
    warnings: list[str]
    schedule: CheckedSchedule
    fifo_depth: Annotated[int, Field(ge=1, description="Messages that a connection holds.")]
    min_fifo_depth: Annotated[
        int | None, Field(description="From this depth on every step gets its turn; null: none.")
    ]
    racy_chunks: Annotated[Count, Field(description="Chunks accessed in no certain order.")]
    races_harmless: Annotated[bool | None, Field(description="null: there are none.")]
    unused_messages: Annotated[
        Count | None, Field(description="Messages whose data no output needs; null: not counted.")
    ]
    memory_rule: Annotated[
        str | None,
        Field(description="By which the order of data was judged; null: no packets are used."),
    ]
    runtime: Annotated[str | None, Field(description="That is meant; null: p2smt alone.")]
    runnable: Annotated[bool, Field(description="That runtime would run it.")]
    reasons: Annotated[list[str], Field(description="Why it would not.")]
    reason: Annotated[str, Field(description="Why nothing is known; empty: it is.")]
    fix: Annotated[RepairOutput | None, Field(description="With --fix.")] = None
    cost: Annotated[ScheduleCostOutput | None, Field(description="With --cost.")] = None
    notes: Annotated[
        list[str] | None, Field(description="With --cost, where no time can be told: why.")
    ] = None
