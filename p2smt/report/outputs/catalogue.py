"""The schemas by name: files that are read, and what commands print with ``--json``."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from pydantic import BaseModel, TypeAdapter

from p2smt.cluster.file_model import TopologyModel
from p2smt.errors import InputError, did_you_mean
from p2smt.parallel_search.journal.file_model import JournalLineModel
from p2smt.plans.crossings.least_set_file import LeastSetModel
from p2smt.plans.file_model import OldPlanModel, PlanModel
from p2smt.plans.training.file_model import TransformerModel
from p2smt.report.outputs.answers import CompareAnswersOutput
from p2smt.report.outputs.calibrate import CalibrateOutput, CalibrateRunsOutput
from p2smt.report.outputs.certificate import (
    ForestModel,
    ScheduleCertificateModel,
    SizeCertificateModel,
)
from p2smt.report.outputs.costs import CostOutput, CostPlanOutput, CostSchedulesOutput
from p2smt.report.outputs.descriptions import with_descriptions
from p2smt.report.outputs.lists import (
    ClassicOutput,
    ClassicsOutput,
    ModelsOutput,
    PlacementsOutput,
    SchemaOutput,
    TopologyCheckOutput,
    TopologyFabricOutput,
    TopologyImportOutput,
    TopologyListOutput,
    TopologyShowOutput,
)
from p2smt.report.outputs.orders import CompareOutput, ExportOutput, OrderOutput
from p2smt.report.outputs.programs import ProgramsOutput
from p2smt.report.outputs.redistribute import (
    CostRedistributionOutput,
    RedistributeOutput,
    VerifyRedistributionOutput,
)
from p2smt.report.outputs.runs import RunPlanOutput, RunRedistributionOutput, RunScheduleOutput
from p2smt.report.outputs.schedules import (
    ConvertOutput,
    VerifyCertificateOutput,
    VerifyFamilyOutput,
    VerifyForestOutput,
    VerifyScheduleOutput,
    VerifySizesOutput,
)
from p2smt.report.outputs.shape import ErrorOutput
from p2smt.report.outputs.solve import SolveOutput, VerifyPlanOutput
from p2smt.report.outputs.symbolic import (
    CrossingsOutput,
    CrossingsPayloadOutput,
    CrossingsPlacementOutput,
    LeastSetOutput,
    SymbolicOutput,
    VerifyLeastSetOutput,
)
from p2smt.report.outputs.synthesize import (
    SynthesizeOutput,
    SynthesizeParetoOutput,
    SynthesizeSizesOutput,
    SynthesizeThroughputOutput,
)
from p2smt.report.outputs.training import EstimateOutput, PlanHostsOutput, PlanOutput
from p2smt.report.outputs.verified import VerifyJournalOutput, VerifyTunerOutput
from p2smt.report.transfers.output import (
    RunTransferOutput,
    TransferOutput,
    VerifyTransferOutput,
)
from p2smt.resharding.plan_file import RedistributionModel
from p2smt.schedules.language.file_model import FileModel
from p2smt.transfer.file_model import TransferModel, WeightLayoutModel

DIALECT = "https://json-schema.org/draft/2020-12/schema"

WHOLE = "Not said here: a whole number is written as one (2, not 2.0), and a key stands once."

FILES: Mapping[str, tuple[type[BaseModel], str]] = MappingProxyType(
    {
        "plan": (PlanModel, "plan files"),
        "plan-1": (OldPlanModel, "plan files of version 1"),
        "redistribution": (RedistributionModel, "plan files of redistributions"),
        "transfer-plan": (TransferModel, "plan files of transfers"),
        "layout": (WeightLayoutModel, "layout files: who holds which box of which tensor"),
        "sufficient": (LeastSetModel, "certificates of crossings --sufficient"),
        "schedule-certificate": (ScheduleCertificateModel, "certificates of bounds on schedules"),
        "size-certificate": (SizeCertificateModel, "certificates of synthesize --size"),
        "forest": (ForestModel, "forests of synthesize --objective throughput"),
        "topology": (TopologyModel, "topology files"),
        "model": (TransformerModel, "model files, of what is trained"),
        "schedule": (FileModel, "schedule files (YAML)"),
        "journal": (JournalLineModel, "lines of journals of searches (JSON lines)"),
    }
)
"""Files that are read: their models, and what they are."""

OUTPUTS: Mapping[str, tuple[Any, str]] = MappingProxyType(
    {
        "solve": (SolveOutput, "solve --json"),
        "placements": (PlacementsOutput, "placements --json"),
        "programs": (ProgramsOutput, "programs --json"),
        "compare": (CompareOutput, "compare --json"),
        "compare-answers": (CompareAnswersOutput, "compare --json of two answers"),
        "order": (OrderOutput, "order --json"),
        "synthesize": (SynthesizeOutput, "synthesize --json"),
        "synthesize-pareto": (SynthesizeParetoOutput, "synthesize --pareto --json"),
        "synthesize-sizes": (SynthesizeSizesOutput, "synthesize --size --json"),
        "synthesize-throughput": (
            SynthesizeThroughputOutput,
            "synthesize --objective throughput --json",
        ),
        "redistribute": (RedistributeOutput, "redistribute --json"),
        "transfer": (TransferOutput, "transfer --json"),
        "estimate": (EstimateOutput, "estimate --json"),
        "plan-training": (PlanOutput, "plan --json"),
        "plan-hosts": (PlanHostsOutput, "plan --hosts --json"),
        "cost": (CostOutput, "cost --json"),
        "cost-symbolic": (SymbolicOutput, "cost --symbolic --json"),
        "cost-plan": (CostPlanOutput, "cost PLAN --json"),
        "cost-redistribution": (CostRedistributionOutput, "cost PLAN --json of a redistribution"),
        "cost-schedules": (CostSchedulesOutput, "cost SCHEDULE.. --sizes --json"),
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
        "verify-sizes": (VerifySizesOutput, "verify CERTIFICATE --json of synthesize --size"),
        "verify-forest": (VerifyForestOutput, "verify FOREST --json"),
        "verify-journal": (VerifyJournalOutput, "verify JOURNAL --json"),
        "verify-plan": (VerifyPlanOutput, "verify PLAN --json"),
        "verify-redistribution": (
            VerifyRedistributionOutput,
            "verify PLAN --json of a redistribution",
        ),
        "verify-transfer": (VerifyTransferOutput, "verify PLAN --json of a transfer"),
        "verify-schedule": (VerifyScheduleOutput, "verify SCHEDULE --json"),
        "verify-tuner": (VerifyTunerOutput, "verify FILE --json of a file for a library"),
        "verify-family": (VerifyFamilyOutput, "verify --json with --upto or --program"),
        "run-plan": (RunPlanOutput, "run --json of a plan or a program"),
        "run-schedule": (RunScheduleOutput, "run SCHEDULE --json"),
        "run-redistribution": (RunRedistributionOutput, "run --json of a redistribution"),
        "run-transfer": (RunTransferOutput, "run --json of a transfer"),
        "calibrate": (CalibrateOutput, "calibrate --json"),
        "calibrate-runs": (CalibrateRunsOutput, "calibrate --runs --json"),
        "topology-list": (TopologyListOutput, "topology list --json"),
        "topology-show": (TopologyShowOutput, "topology show --json"),
        "topology-fabric": (TopologyFabricOutput, "topology fabric --json"),
        "topology-check": (TopologyCheckOutput, "topology check --json"),
        "topology-import": (TopologyImportOutput, "topology import --json, topology detect --json"),
        "classics": (ClassicsOutput, "classics --json"),
        "classics-name": (ClassicOutput, "classics NAME --json"),
        "convert": (ConvertOutput, "convert --json"),
        "export": (ExportOutput, "export --json"),
        "error": (ErrorOutput, "any command with --json, of an error"),
        "models": (ModelsOutput, "models --json"),
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
    kind, _ = known[name]
    found = {"$schema": DIALECT} | with_descriptions(TypeAdapter(kind).json_schema())
    if name in FILES:
        found["$comment"] = " ".join(filter(None, (found.get("$comment"), WHOLE)))
    return found
