"""The schemas by name: files that are read, and what commands print with ``--json``."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from pydantic import BaseModel

from p2smt.cluster.file_model import TopologyModel
from p2smt.errors import InputError
from p2smt.files.suggest import did_you_mean
from p2smt.plans.crossings.file_model import LeastSetModel
from p2smt.plans.file_model import OldPlanModel, PlanModel
from p2smt.plans.redistribution.file_model import RedistributionModel
from p2smt.report.schemas.arrays.redistribute import RedistributeOutput
from p2smt.report.schemas.arrays.run import RunRedistributionOutput
from p2smt.report.schemas.calibrate import CalibrateOutput, CalibrateRunsOutput
from p2smt.report.schemas.cost import CostOutput, CostPlanOutput
from p2smt.report.schemas.crossings.cells import (
    CrossingsOutput,
    CrossingsPayloadOutput,
    CrossingsPlacementOutput,
)
from p2smt.report.schemas.crossings.least_set import LeastSetOutput, VerifyLeastSetOutput
from p2smt.report.schemas.crossings.symbolic import SymbolicOutput
from p2smt.report.schemas.journals.verify import VerifyJournalOutput
from p2smt.report.schemas.lists import (
    ClassicOutput,
    ClassicsOutput,
    SchemaOutput,
    TopologyCheckOutput,
    TopologyFabricOutput,
    TopologyImportOutput,
    TopologyListOutput,
    TopologyShowOutput,
)
from p2smt.report.schemas.orders import CompareOutput
from p2smt.report.schemas.run_plan import RunPlanOutput
from p2smt.report.schemas.run_schedule import RunScheduleOutput
from p2smt.report.schemas.schedules.certificate import (
    ScheduleCertificateModel,
    VerifyCertificateOutput,
)
from p2smt.report.schemas.search import PlacementsOutput, ProgramsOutput
from p2smt.report.schemas.solve import SolveOutput
from p2smt.report.schemas.synthesis.synthesize import (
    SynthesizeOutput,
    SynthesizeParetoOutput,
)
from p2smt.report.schemas.verify_family import VerifyFamilyOutput
from p2smt.report.schemas.verify_plan import VerifyPlanOutput
from p2smt.report.schemas.verify_redistribution import (
    CostRedistributionOutput,
    VerifyRedistributionOutput,
)
from p2smt.report.schemas.verify_schedule import VerifyScheduleOutput
from p2smt.report.schemas.workload.estimate import EstimateOutput
from p2smt.report.schemas.workload.plan import PlanOutput
from p2smt.schedules.language.file_model import FileModel
from p2smt.skeletons.journal.file_model import JournalLineModel
from p2smt.workload.models.file_model import TransformerModel

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
