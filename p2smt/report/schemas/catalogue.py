"""The schemas by name: files that are read, and what commands print with ``--json``."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field, RootModel

from p2smt.cluster.file_model import TopologyModel
from p2smt.collectives.names import RequestKind
from p2smt.errors import InputError, did_you_mean
from p2smt.parallel_search.journal.file_model import JournalLineModel
from p2smt.plans.crossings.file import LeastSetModel
from p2smt.plans.file_model import OldPlanModel, PlanModel
from p2smt.plans.solution import ProofStatus
from p2smt.report.schemas.arrays.redistribute import RedistributeOutput, RedistributionStepEntry
from p2smt.report.schemas.calibrate import CalibrateOutput, CalibrateRunsOutput
from p2smt.report.schemas.crossings.symbolic import (
    CrossingsOutput,
    CrossingsPayloadOutput,
    CrossingsPlacementOutput,
    LeastSetOutput,
    SymbolicOutput,
    VerifyLeastSetOutput,
)
from p2smt.report.schemas.orders import (
    Chunk,
    ClassicOutput,
    ClassicsOutput,
    CompareOutput,
    Count,
    Nth,
    Output,
    OutputPart,
    PayloadBytes,
    PlacementsOutput,
    ProgramsOutput,
    Rank,
    Ratio,
    SchemaOutput,
    Seconds,
    TopologyCheckOutput,
    TopologyFabricOutput,
    TopologyImportOutput,
    TopologyListOutput,
    TopologyShowOutput,
    VerifyScheduleOutput,
)
from p2smt.report.schemas.schedules.certificate import (
    ScheduleCertificateModel,
    VerifyCertificateOutput,
)
from p2smt.report.schemas.solve import Regime, SolveOutput, TimedStep, VerifyPlanOutput
from p2smt.report.schemas.synthesis.synthesize import SynthesizeOutput, SynthesizeParetoOutput
from p2smt.report.schemas.workload.estimate import EstimateOutput
from p2smt.report.schemas.workload.plan import PlanOutput
from p2smt.resharding.plan_file import RedistributionModel
from p2smt.schedules.language.file_model import FileModel
from p2smt.schedules.verify.report import Kind, Verdict
from p2smt.training.model_file import TransformerModel

# `cost --json`: one request, several programs of one, several requests, or many sizes.


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


# `verify JOURNAL --json`.


Share = Annotated[str, Field(description="A whole number or a fraction, as text.")]


class SoughtMember(OutputPart):
    """A member that the search was for."""

    value: Annotated[int, Field(description="Its cost in ticks.")]
    witness: Annotated[str, Field(description="The text that it was made again from.")]


class JournalCover(OutputPart):
    """The closed cubes against the whole space."""

    complete: Annotated[bool, Field(description="Whether they are a partition of it.")]
    cubes: Annotated[Count, Field(description="Closed cubes, none inside another.")]
    open: Annotated[Count, Field(description="Cubes without a verdict.")]
    counted_in: Annotated[str, Field(description="What shares are counts of.")]
    counted: Annotated[Share, Field(description="What the closed cubes hold together.")]
    whole: Annotated[Share, Field(description="What the space holds.")]


class GivenUpCube(OutputPart):
    """A cube without a verdict, at which workers died."""

    cube: Annotated[list[str], Field(description="Its decisions, outermost first.")]
    deaths: Annotated[int, Field(ge=1, description="Of workers, after which it was given up.")]


class JournalVerdicts(OutputPart):
    """Verdicts that rest on a solver's word."""

    recorded: Annotated[Count, Field(description="How many there are.")]
    solved_again: Annotated[Count, Field(description="How many were given to a solver again.")]
    agreed: Annotated[Count, Field(description="Of these, how many nothing speaks against.")]
    unchecked: Annotated[Count, Field(description="How many the answer takes at their word.")]
    out_of_time: Annotated[Count, Field(description="How many got no answer in time.")]
    solver: Annotated[str, Field(description="Which solver; empty: as the search had it.")]
    another: Annotated[bool, Field(description="Whether it is another than the search had.")]
    disagreements: list[str]


class VerifyJournalOutput(Output):
    """The verdict on a journal."""

    verdict: Annotated[
        Literal["valid", "unproved", "invalid"],
        Field(description="unproved: nothing is wrong, but not every cube is closed by a proof."),
    ]
    proved: Annotated[
        bool, Field(description="Whether it is valid and no verdict is taken at its word.")
    ]
    violations: Annotated[list[str], Field(description="What is wrong, without solving.")]
    space: str
    skeleton: Literal["enumerate", "optimise", "decide"]
    top: Annotated[int, Field(ge=1, description="How many best members were sought.")]
    scale: Annotated[str, Field(description="What a tick is.")]
    status: Annotated[
        Literal["optimal", "feasible", "infeasible", "unknown", "complete", "truncated"] | None,
        Field(description="Of the answer made again; null: there is none."),
    ]
    best: list[SoughtMember]
    bound: Annotated[int | None, Field(description="Ticks that no member costs less than.")]
    count: Annotated[int | None, Field(description="Of the members that were listed.")]
    digest: Annotated[str | None, Field(description="Of the members that were listed.")]
    cover: JournalCover
    unsettled: Annotated[Count, Field(description="Cubes that may hold a better member.")]
    given_up: Annotated[list[GivenUpCube], Field(description="Of them, after deaths of workers.")]
    by_formula: Annotated[Count, Field(description="Cubes set aside by a bound computed again.")]
    members: Annotated[Count, Field(description="Members, each made again from its witness.")]
    verdicts: JournalVerdicts
    records: Annotated[Count, Field(description="Lines after the header.")]
    repeated: Annotated[Count, Field(description="Late and duplicate verdicts.")]
    torn_bytes: Annotated[Count, Field(description="Of a last line that is not whole.")]
    versions: Annotated[dict[str, str], Field(description="That the search began with.")]


# `run --json` of a plan or a program.


class MeasuredTimes(OutputPart):
    """Times of the slowest rank, one per repetition; null without repetitions."""

    measured_s: Annotated[Seconds | None, Field(description="Seconds: their median.")]
    spread_s: Annotated[Seconds | None, Field(description="Seconds: interquartile range.")]
    samples_s: list[Seconds]


class MeasuredStep(MeasuredTimes):
    """A step, as predicted and as measured."""

    instruction: str
    groups: list[list[Rank]]
    predicted_s: Seconds


class NumberedStep(MeasuredStep):
    """A step of one of the requests."""

    request: Nth


class MeasuredRequest(MeasuredTimes):
    """A request: whether its result is right, and how long it took."""

    request: str
    kind: RequestKind
    payload_bytes: PayloadBytes
    times: Annotated[int, Field(ge=1, description="Executions in an iteration.")]
    chunks: Annotated[int, Field(ge=1)]
    groups: list[list[Rank]]
    verified: bool
    errors: Annotated[list[str], Field(description="Results that are wrong.")]
    repetitions_checked: Annotated[Count, Field(description="Repetitions with checked results.")]
    float_checked: Annotated[bool, Field(description="Random floating-point data was checked too.")]
    replicas_agree: Annotated[
        bool | None, Field(description="A group has the same bits; null: nothing to compare.")
    ]
    predicted_s: Seconds
    baseline_predicted_s: Annotated[
        Seconds | None, Field(description="Seconds of the single collective; null: none.")
    ]
    baseline_s: Annotated[Seconds | None, Field(description="Seconds, measured.")]
    baseline_spread_s: Seconds | None
    baseline_samples_s: list[Seconds]
    speedup: Annotated[Ratio | None, Field(description="Baseline over program.")]
    steps: list[MeasuredStep]


class HowRun(OutputPart):
    """The options of a run, as they took effect."""

    backend: str
    device: str
    dtype: str
    warmup: Count
    repeat: Count
    seed: int


class HowPlanRun(HowRun):
    """The same for a plan."""

    ranks_per_gpu: Annotated[int, Field(ge=1)]


class RunVersions(OutputPart):
    """What it ran with."""

    p2smt: str
    platform: str


class RunPlanOutput(Output):
    """What running a plan or a program gave."""

    verified: Annotated[bool, Field(description="Every rank has the right result.")]
    steps: Annotated[list[NumberedStep], Field(description="The steps of all requests.")]
    measured_s: Annotated[Seconds | None, Field(description="Seconds of an iteration.")]
    baseline_s: Annotated[Seconds | None, Field(description="Seconds with single collectives.")]
    speedup: Annotated[Ratio | None, Field(description="Baseline over measured.")]
    requests: list[MeasuredRequest]
    options: HowPlanRun
    versions: RunVersions
    ranks: Annotated[list[dict[str, str]], Field(description="What each rank ran on.")]


# `run --json` of a redistribution.


class RunArrayStep(MeasuredTimes):
    """A step, as predicted and as measured."""

    kind: str
    text: str
    predicted_s: Seconds


class RunRedistributionOutput(MeasuredTimes, Output):
    """What running a redistribution gave."""

    verified: Annotated[bool, Field(description="Every rank has the right result.")]
    mesh: str
    shape: Annotated[list[int], Field(description="Of the array, padded where its types are.")]
    dtype: str
    errors: Annotated[list[str], Field(description="Results that are wrong.")]
    repetitions_checked: Annotated[Count, Field(description="Repetitions with checked results.")]
    float_checked: Annotated[bool, Field(description="Random floating-point data was checked too.")]
    predicted_s: Seconds
    memory_bytes: Annotated[
        PayloadBytes | None,
        Field(description="The most that a rank held of the array; null: not measured."),
    ]
    predicted_bytes: Annotated[
        PayloadBytes, Field(description="Input, output and pack buffer of the dearest step.")
    ]
    steps: list[RunArrayStep]
    options: HowPlanRun
    versions: RunVersions
    ranks: Annotated[list[dict[str, str]], Field(description="What each rank ran on.")]


# `run --json` of a schedule.


class RunScheduleOutput(MeasuredTimes, Output):
    """What running a schedule gave."""

    verified: Annotated[bool, Field(description="Every rank has the right result.")]
    verdict: Annotated[str | None, Field(description="Of the checker; null: it was not asked.")]
    schedule: str
    form: Annotated[str, Field(description="The format that it came from.")]
    collective: str
    in_place: bool
    steps_count: Count
    payload_bytes: PayloadBytes
    fifo_depth: Annotated[int, Field(ge=1)]
    errors: list[str]
    repetitions_checked: Annotated[Count, Field(description="Repetitions with checked results.")]
    float_checked: bool
    interleavings: Annotated[Count, Field(description="Tried by the reference backend.")]
    options: HowRun
    versions: RunVersions
    ranks: Annotated[list[dict[str, str]], Field(description="What each rank ran on.")]


# `verify --json` of a symbolic schedule (``--upto``), or of a program.


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


# `verify --json` of a redistribution's plan; `cost --json` of one adds its steps.


class RedistributionViolation(OutputPart):
    """What is wrong with a plan; null where it is not about one step, rank or element."""

    kind: Annotated[
        str, Field(description="rule, meaning, groups, memory, cost or bound: what is not so.")
    ]
    step: Nth | None
    rank: Rank | None
    chunk: Annotated[
        list[Annotated[int, Field(ge=0)]] | None,
        Field(description="The dimension and the global index of the first element concerned."),
    ]
    message: str


class ProofOfRedistribution(OutputPart):
    """What solving the plan's question again says."""

    status: Annotated[
        ProofStatus, Field(description="proved: none is faster; refuted; open: a limit was met.")
    ]
    objective_s: Annotated[Seconds, Field(description="Seconds of the plan.")]
    bound_s: Annotated[Seconds, Field(description="Seconds that no plan beats.")]
    max_steps: Annotated[
        int | None, Field(description="Of plans of at most so many steps; null: of any length.")
    ]
    better_s: Annotated[Seconds | None, Field(description="Seconds of a faster plan.")]
    better_steps: list[RedistributionStepEntry] | None


class VerifyRedistributionOutput(Output):
    """The verdict on the plan of a redistribution."""

    verdict: Literal["valid", "invalid"]
    violations: list[RedistributionViolation]
    objective_s: Annotated[
        Seconds | None, Field(description="Seconds, computed anew; null: its steps are none.")
    ]
    peak_bytes: Annotated[PayloadBytes | None, Field(description="The largest state, on a device.")]
    peak_step_bytes: Annotated[
        PayloadBytes | None, Field(description="Input, output and pack buffer of a step.")
    ]
    checked: Annotated[list[str], Field(description="What was held against the plan.")]
    not_checked: Annotated[list[str], Field(description="What nothing has looked at.")]
    proof: Annotated[
        ProofOfRedistribution | None, Field(description="With --prove, of a valid plan.")
    ]


class CostRedistributionOutput(VerifyRedistributionOutput):
    """The verdict on a plan, and the steps of one whose steps are any."""

    proof: Annotated[None, Field(description="Only `verify --prove` seeks one.")]
    steps: list[RedistributionStepEntry]


DIALECT = "https://json-schema.org/draft/2020-12/schema"

WHOLE = "Not said here: a whole number is written as one (2, not 2.0), and a key stands once."

FILES: Mapping[str, tuple[type[BaseModel], str]] = MappingProxyType(
    {
        "plan": (PlanModel, "plan files"),
        "plan-1": (OldPlanModel, "plan files of version 1"),
        "redistribution": (RedistributionModel, "plan files of redistributions"),
        "sufficient": (LeastSetModel, "certificates of crossings --sufficient"),
        "schedule-certificate": (ScheduleCertificateModel, "certificates of bounds on schedules"),
        "topology": (TopologyModel, "topology files"),
        "model": (TransformerModel, "model files, of what is trained"),
        "schedule": (FileModel, "schedule files (YAML)"),
        "journal": (JournalLineModel, "lines of journals of searches (JSON lines)"),
    }
)
"""Files that are read: their models, and what they are."""

OUTPUTS: Mapping[str, tuple[type[BaseModel], str]] = MappingProxyType(
    {
        "solve": (SolveOutput, "solve --json"),
        "placements": (PlacementsOutput, "placements --json"),
        "programs": (ProgramsOutput, "programs --json"),
        "compare": (CompareOutput, "compare --json"),
        "synthesize": (SynthesizeOutput, "synthesize --json"),
        "synthesize-pareto": (SynthesizeParetoOutput, "synthesize --pareto --json"),
        "redistribute": (RedistributeOutput, "redistribute --json"),
        "estimate": (EstimateOutput, "estimate --json"),
        "plan-training": (PlanOutput, "plan --json"),
        "cost": (CostOutput, "cost --json"),
        "cost-symbolic": (SymbolicOutput, "cost --symbolic --json"),
        "cost-plan": (CostPlanOutput, "cost PLAN --json"),
        "cost-redistribution": (CostRedistributionOutput, "cost PLAN --json of a redistribution"),
        "crossings": (CrossingsOutput, "crossings --factors --json"),
        "crossings-payload": (CrossingsPayloadOutput, "crossings --topology --json"),
        "crossings-placement": (
            CrossingsPlacementOutput,
            "crossings --topology --json without --placement",
        ),
        "crossings-sufficient": (LeastSetOutput, "crossings --sufficient --json"),
        "verify-sufficient": (VerifyLeastSetOutput, "verify CERTIFICATE --json"),
        "verify-certificate": (
            VerifyCertificateOutput,
            "verify CERTIFICATE --json of a bound on schedules",
        ),
        "verify-journal": (VerifyJournalOutput, "verify JOURNAL --json"),
        "verify-plan": (VerifyPlanOutput, "verify PLAN --json"),
        "verify-redistribution": (
            VerifyRedistributionOutput,
            "verify PLAN --json of a redistribution",
        ),
        "verify-schedule": (VerifyScheduleOutput, "verify SCHEDULE --json"),
        "verify-family": (VerifyFamilyOutput, "verify --json with --upto or --program"),
        "run-plan": (RunPlanOutput, "run --json of a plan or a program"),
        "run-schedule": (RunScheduleOutput, "run SCHEDULE --json"),
        "run-redistribution": (RunRedistributionOutput, "run --json of a redistribution"),
        "calibrate": (CalibrateOutput, "calibrate --json"),
        "calibrate-runs": (CalibrateRunsOutput, "calibrate --runs --json"),
        "topology-list": (TopologyListOutput, "topology list --json"),
        "topology-show": (TopologyShowOutput, "topology show --json"),
        "topology-fabric": (TopologyFabricOutput, "topology fabric --json"),
        "topology-check": (TopologyCheckOutput, "topology check --json"),
        "topology-import": (TopologyImportOutput, "topology import --json, topology detect --json"),
        "classics": (ClassicsOutput, "classics --json"),
        "classics-name": (ClassicOutput, "classics NAME --json"),
        "schema": (SchemaOutput, "schema --json"),
    }
)
"""What commands print: the models, and by which command."""


def listed() -> Mapping[str, str]:
    """Every schema by name, with what it is the schema of."""
    return {name: what for name, (_, what) in [*FILES.items(), *OUTPUTS.items()]}


def schema_of(name: str) -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) of that name.

    Raises:
        InputError: there is none of that name.
    """
    known = {**FILES, **OUTPUTS}
    if name not in known:
        remedy = did_you_mean(name, known) or "`p2smt schema` lists them"
        raise InputError(f"schema {name[:40]!r}", "there is none of that name", remedy)
    model, _ = known[name]
    found = {"$schema": DIALECT} | model.model_json_schema()
    if name in FILES:
        found["$comment"] = " ".join(filter(None, (found.get("$comment"), WHOLE)))
    return found
