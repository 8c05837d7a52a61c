"""Constraint-solver-based synthesis of parallelism placements and reduction programs.

    import p2smt

    cluster = p2smt.load_topology("azure-ndv4:4")
    problem = p2smt.Problem(
        cluster,
        p2smt.parse_axes("dp=8,tp=4"),
        (p2smt.reduce("dp=1GiB"), p2smt.reduce("tp=64MiB*128")),
    )
    solution = p2smt.solve(problem)

Names are imported on first use, so that ``import p2smt`` is quick.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from p2smt.api.anchoring import anchor as anchor
    from p2smt.api.anchoring import parse_measured as parse_measured
    from p2smt.api.arrays import array_type as array_type
    from p2smt.api.arrays import compare_transfer as compare_transfer
    from p2smt.api.arrays import read_redistribution as read_redistribution
    from p2smt.api.arrays import redistribute as redistribute
    from p2smt.api.arrays import transfer_weights as transfer_weights
    from p2smt.api.arrays import weight_layout as weight_layout
    from p2smt.api.arrays import write_redistribution as write_redistribution
    from p2smt.api.arrays import write_transfer as write_transfer
    from p2smt.api.calibrate import calibrate as calibrate
    from p2smt.api.calibrate import measure as measure
    from p2smt.api.calibrate import read_measurements as read_measurements
    from p2smt.api.clusters import import_topology as import_topology
    from p2smt.api.compare import compare as compare
    from p2smt.api.efficiencies import efficiency_of as efficiency_of
    from p2smt.api.files import export as export
    from p2smt.api.files import read_plan as read_plan
    from p2smt.api.files import read_schedule as read_schedule
    from p2smt.api.files import write_plan as write_plan
    from p2smt.api.files import write_plan_schedules as write_plan_schedules
    from p2smt.api.files import write_schedule as write_schedule
    from p2smt.api.files import write_topology as write_topology
    from p2smt.api.host_plan import PlannedOnHosts as PlannedOnHosts
    from p2smt.api.host_plan import plan_on_hosts as plan_on_hosts
    from p2smt.api.journals import verify_journal as verify_journal
    from p2smt.api.order import OrderedHosts as OrderedHosts
    from p2smt.api.order import order_hosts as order_hosts
    from p2smt.api.placements import placements as placements
    from p2smt.api.planning import Planned as Planned
    from p2smt.api.planning import plan as plan
    from p2smt.api.planning import trainer_options as trainer_options
    from p2smt.api.planning import write_training_plan as write_training_plan
    from p2smt.api.run import run as run
    from p2smt.api.run import run_programs as run_programs
    from p2smt.api.saved_answers import compare_answers as compare_answers
    from p2smt.api.synthesis import forest_schedule as forest_schedule
    from p2smt.api.synthesis import synthesize as synthesize
    from p2smt.api.synthesis import synthesize_by_size as synthesize_by_size
    from p2smt.api.synthesis import synthesize_frontier as synthesize_frontier
    from p2smt.api.synthesis import throughput_forest as throughput_forest
    from p2smt.api.tensors import TensorFunction as TensorFunction
    from p2smt.api.tensors import torch_function as torch_function
    from p2smt.api.verify import verify as verify
    from p2smt.api.verify import verify_family as verify_family
    from p2smt.api.verify import verify_program as verify_program
    from p2smt.api.what_if import plan_what_if as plan_what_if
    from p2smt.api.workload import estimate as estimate
    from p2smt.api.workload import read_model as read_model
    from p2smt.calibration.build import Calibration as Calibration
    from p2smt.calibration.samples import Measurements as Measurements
    from p2smt.cluster.changed_cluster import parse_changes as parse_changes
    from p2smt.cluster.file import load_topology as load_topology
    from p2smt.cluster.file import preset_names as preset_names
    from p2smt.cluster.library.model import Library as Library
    from p2smt.cluster.library.registry import library_names as library_names
    from p2smt.cluster.library.registry import library_of as library_of
    from p2smt.cluster.library.registry import register_library as register_library
    from p2smt.cluster.link import Device as Device
    from p2smt.cluster.topology import Algorithm as Algorithm
    from p2smt.cluster.topology import Level as Level
    from p2smt.cluster.topology import Link as Link
    from p2smt.cluster.topology import LinkKind as LinkKind
    from p2smt.cluster.topology import Piece as Piece
    from p2smt.cluster.topology import Topology as Topology
    from p2smt.cluster.trimmed import trimmed as trimmed
    from p2smt.collectives.dispatch import Dispatch as Dispatch
    from p2smt.collectives.names import Collective as Collective
    from p2smt.collectives.names import Form as Form
    from p2smt.collectives.names import RequestKind as RequestKind
    from p2smt.cost.library.ways import register_algorithm as register_algorithm
    from p2smt.errors import BackendError as BackendError
    from p2smt.errors import EncodingBug as EncodingBug
    from p2smt.errors import ExecutionError as ExecutionError
    from p2smt.errors import InputError as InputError
    from p2smt.errors import TooLarge as TooLarge
    from p2smt.fabric.fabric import Fabric as Fabric
    from p2smt.interop.arrays.shard_map import shard_map_text as shard_map_text
    from p2smt.interop.exported import Exported as Exported
    from p2smt.interop.fabrics import read_fabric as read_fabric
    from p2smt.interop.schedule_files import runnable as runnable
    from p2smt.parallel_search.journal.journal_verification import JournalReport as JournalReport
    from p2smt.parallel_search.parallel_options import Spread as Spread
    from p2smt.parallelism.folded import FoldedAxes as FoldedAxes
    from p2smt.parallelism.folded import FoldedPlacement as FoldedPlacement
    from p2smt.parallelism.placement import AxisRule as AxisRule
    from p2smt.parallelism.placement import FixedEntry as FixedEntry
    from p2smt.parallelism.placement import ParallelismAxis as ParallelismAxis
    from p2smt.parallelism.placement import Placement as Placement
    from p2smt.parallelism.placement import parse_fix as parse_fix
    from p2smt.parallelism.placement import parse_rule as parse_rule
    from p2smt.parallelism.request import Problem as Problem
    from p2smt.parallelism.request import Request as Request
    from p2smt.parallelism.request import all_gather as all_gather
    from p2smt.parallelism.request import all_to_all as all_to_all
    from p2smt.parallelism.request import dispatch as dispatch
    from p2smt.parallelism.request import parse_axes as parse_axes
    from p2smt.parallelism.request import reduce as reduce
    from p2smt.parallelism.request import reduce_scatter as reduce_scatter
    from p2smt.parallelism.request import send as send
    from p2smt.plans.check.check_plan import PlanReport as PlanReport
    from p2smt.plans.check.check_plan import check_plan as check_plan
    from p2smt.plans.crossings.least_set import LeastSet as LeastSet
    from p2smt.plans.crossings.least_set import SymbolicSetting as SymbolicSetting
    from p2smt.plans.crossings.least_set_check import check_least_set as check_least_set
    from p2smt.plans.given_program import cost_by_size as cost_by_size
    from p2smt.plans.given_program import cost_of as cost_of
    from p2smt.plans.solution import Alternative as Alternative
    from p2smt.plans.solution import Solution as Solution
    from p2smt.problems.placement import PlacementProblem as PlacementProblem
    from p2smt.programs.program import Program as Program
    from p2smt.programs.program import parse_program as parse_program
    from p2smt.resharding.backward import backward_plan as backward_plan
    from p2smt.resharding.redistribution_plan import RedistributionPlan as RedistributionPlan
    from p2smt.resharding.types import ArrayType as ArrayType
    from p2smt.resharding.types import Layout as Layout
    from p2smt.resharding.types import Mesh as Mesh
    from p2smt.result import SearchLimits as SearchLimits
    from p2smt.result import Status as Status
    from p2smt.runtime.payload import RunOptions as RunOptions
    from p2smt.runtime.ranks.run_schedule import ScheduleResult as ScheduleResult
    from p2smt.runtime.summary import RunResult as RunResult
    from p2smt.schedules.classics import classic as classic
    from p2smt.schedules.cost.predict import schedule_cost as schedule_cost
    from p2smt.schedules.families.family import ParametricReport as ParametricReport
    from p2smt.schedules.lower.lowered_request import PlanExport as PlanExport
    from p2smt.schedules.model import Runnable as Runnable
    from p2smt.schedules.model import Schedule as Schedule
    from p2smt.schedules.verify.repair import find_repair as find_repair
    from p2smt.schedules.verify.report import Report as Report
    from p2smt.schedules.verify.report import Verdict as Verdict
    from p2smt.search.allocation.cell_grids import baselines as baselines
    from p2smt.search.allocation.solve_on_hosts import solve_on_hosts as solve_on_hosts
    from p2smt.search.comparison import Comparison as Comparison
    from p2smt.search.conflict import rule_conflict as rule_conflict
    from p2smt.search.crossings.least import least_set as least_set
    from p2smt.search.program_synthesis import ProgramList as ProgramList
    from p2smt.search.program_synthesis import request_programs as request_programs
    from p2smt.search.prove import prove as prove
    from p2smt.search.solve import solve as solve
    from p2smt.solvers.ask import Solver as Solver
    from p2smt.synthesis.bounds import RateBound as RateBound
    from p2smt.synthesis.bounds import distance_bound as distance_bound
    from p2smt.synthesis.bounds import rate_bound as rate_bound
    from p2smt.synthesis.by_size import SizedSchedules as SizedSchedules
    from p2smt.synthesis.certificate.certificate import ScheduleCertificate as ScheduleCertificate
    from p2smt.synthesis.certificate.check import CertificateReport as CertificateReport
    from p2smt.synthesis.forests.pieces import PieceSchedule as PieceSchedule
    from p2smt.synthesis.forests.throughput import Throughput as Throughput
    from p2smt.synthesis.frontier import ScheduleFrontier as ScheduleFrontier
    from p2smt.synthesis.setting import Answer as Answer
    from p2smt.synthesis.setting import Synthesis as Synthesis
    from p2smt.training.efficiency import Efficiency as Efficiency
    from p2smt.training.efficiency import Framework as Framework
    from p2smt.training.prediction import Prediction as Prediction
    from p2smt.training.prediction import RunEstimate as RunEstimate
    from p2smt.training.search.plan_answer import PlanAnswer as PlanAnswer
    from p2smt.training.search.question import PlanQuestion as PlanQuestion
    from p2smt.training.search.question import Prices as Prices
    from p2smt.training.search.question import SpaceLimits as SpaceLimits
    from p2smt.training.strategy import Batch as Batch
    from p2smt.training.strategy import Recompute as Recompute
    from p2smt.training.strategy import Strategy as Strategy
    from p2smt.training.strategy import parse_strategy as parse_strategy
    from p2smt.training.strategy import strategy_text as strategy_text
    from p2smt.training.training_plan import TrainingPlan as TrainingPlan
    from p2smt.training.training_plan import training_plan as training_plan
    from p2smt.training.transformer import Transformer as Transformer
    from p2smt.transfer.answer import ComparedRule as ComparedRule
    from p2smt.transfer.answer import TransferAnswer as TransferAnswer
    from p2smt.transfer.layouts import WeightLayout as WeightLayout

_HOMES = {
    "p2smt.search.solve": ("solve",),
    "p2smt.search.allocation.solve_on_hosts": ("solve_on_hosts",),
    "p2smt.search.allocation.cell_grids": ("baselines",),
    "p2smt.search.prove": ("prove",),
    "p2smt.search.program_synthesis": (
        "ProgramList",
        "request_programs",
    ),
    "p2smt.errors": (
        "BackendError",
        "EncodingBug",
        "ExecutionError",
        "InputError",
        "TooLarge",
    ),
    "p2smt.parallelism.folded": (
        "FoldedAxes",
        "FoldedPlacement",
    ),
    "p2smt.parallelism.placement": (
        "AxisRule",
        "FixedEntry",
        "ParallelismAxis",
        "Placement",
        "parse_fix",
        "parse_rule",
    ),
    "p2smt.problems.placement": ("PlacementProblem",),
    "p2smt.programs.program": (
        "Program",
        "parse_program",
    ),
    "p2smt.parallelism.request": (
        "Problem",
        "Request",
        "all_gather",
        "all_to_all",
        "dispatch",
        "parse_axes",
        "reduce",
        "reduce_scatter",
        "send",
    ),
    "p2smt.result": (
        "SearchLimits",
        "Status",
    ),
    "p2smt.collectives.dispatch": ("Dispatch",),
    "p2smt.collectives.names": (
        "Collective",
        "Form",
        "RequestKind",
    ),
    "p2smt.plans.check.check_plan": (
        "PlanReport",
        "check_plan",
    ),
    "p2smt.plans.crossings.least_set": (
        "LeastSet",
        "SymbolicSetting",
    ),
    "p2smt.plans.crossings.least_set_check": ("check_least_set",),
    "p2smt.search.crossings.least": ("least_set",),
    "p2smt.plans.given_program": (
        "cost_by_size",
        "cost_of",
    ),
    "p2smt.plans.solution": (
        "Alternative",
        "Solution",
    ),
    "p2smt.cluster.topology": (
        "Algorithm",
        "Level",
        "Link",
        "LinkKind",
        "Piece",
        "Topology",
    ),
    "p2smt.cluster.file": (
        "load_topology",
        "preset_names",
    ),
    "p2smt.cluster.trimmed": ("trimmed",),
    "p2smt.cluster.library.model": ("Library",),
    "p2smt.cluster.library.registry": (
        "library_names",
        "library_of",
        "register_library",
    ),
    "p2smt.cost.library.ways": ("register_algorithm",),
    "p2smt.calibration.build": ("Calibration",),
    "p2smt.calibration.samples": ("Measurements",),
    "p2smt.runtime.payload": ("RunOptions",),
    "p2smt.schedules.classics": ("classic",),
    "p2smt.schedules.cost.predict": ("schedule_cost",),
    "p2smt.schedules.families.family": ("ParametricReport",),
    "p2smt.schedules.model": (
        "Runnable",
        "Schedule",
    ),
    "p2smt.synthesis.bounds": (
        "RateBound",
        "distance_bound",
        "rate_bound",
    ),
    "p2smt.synthesis.certificate.certificate": ("ScheduleCertificate",),
    "p2smt.synthesis.certificate.check": ("CertificateReport",),
    "p2smt.schedules.verify.repair": ("find_repair",),
    "p2smt.schedules.verify.report": (
        "Report",
        "Verdict",
    ),
    "p2smt.parallel_search.parallel_options": ("Spread",),
    "p2smt.solvers.ask": ("Solver",),
    "p2smt.api.tensors": (
        "TensorFunction",
        "torch_function",
    ),
    "p2smt.interop.arrays.shard_map": ("shard_map_text",),
    "p2smt.resharding.backward": ("backward_plan",),
    "p2smt.api.arrays": (
        "array_type",
        "compare_transfer",
        "read_redistribution",
        "redistribute",
        "transfer_weights",
        "weight_layout",
        "write_redistribution",
        "write_transfer",
    ),
    "p2smt.transfer.answer": ("ComparedRule", "TransferAnswer"),
    "p2smt.transfer.layouts": ("WeightLayout",),
    "p2smt.resharding.types": (
        "ArrayType",
        "Layout",
        "Mesh",
    ),
    "p2smt.resharding.redistribution_plan": ("RedistributionPlan",),
    "p2smt.api.saved_answers": ("compare_answers",),
    "p2smt.api.calibrate": (
        "calibrate",
        "measure",
        "read_measurements",
    ),
    "p2smt.api.clusters": ("import_topology",),
    "p2smt.api.compare": ("compare",),
    "p2smt.interop.trainers.launches": ("read_launch",),
    "p2smt.api.files": (
        "export",
        "read_plan",
        "read_schedule",
        "write_plan",
        "write_plan_schedules",
        "write_schedule",
        "write_topology",
    ),
    "p2smt.api.synthesis": (
        "forest_schedule",
        "synthesize",
        "synthesize_by_size",
        "synthesize_frontier",
        "throughput_forest",
    ),
    "p2smt.synthesis.by_size": ("SizedSchedules",),
    "p2smt.synthesis.forests.pieces": ("PieceSchedule",),
    "p2smt.synthesis.forests.throughput": ("Throughput",),
    "p2smt.synthesis.frontier": ("ScheduleFrontier",),
    "p2smt.synthesis.setting": (
        "Answer",
        "Synthesis",
    ),
    "p2smt.api.run": (
        "run",
        "run_programs",
    ),
    "p2smt.interop.schedule_files": ("runnable",),
    "p2smt.search.comparison": ("Comparison",),
    "p2smt.search.conflict": ("rule_conflict",),
    "p2smt.interop.exported": ("Exported",),
    "p2smt.schedules.lower.lowered_request": ("PlanExport",),
    "p2smt.runtime.summary": ("RunResult",),
    "p2smt.runtime.ranks.run_schedule": ("ScheduleResult",),
    "p2smt.api.verify": (
        "verify",
        "verify_family",
        "verify_program",
    ),
    "p2smt.api.journals": ("verify_journal",),
    "p2smt.parallel_search.journal.journal_verification": ("JournalReport",),
    "p2smt.api.placements": ("placements",),
    "p2smt.api.order": ("OrderedHosts", "order_hosts"),
    "p2smt.api.host_plan": ("PlannedOnHosts", "plan_on_hosts"),
    "p2smt.api.planning": (
        "Planned",
        "plan",
        "trainer_options",
        "write_training_plan",
    ),
    "p2smt.api.efficiencies": ("efficiency_of",),
    "p2smt.api.anchoring": (
        "anchor",
        "parse_measured",
    ),
    "p2smt.api.what_if": ("plan_what_if",),
    "p2smt.cluster.changed_cluster": ("parse_changes",),
    "p2smt.api.workload": (
        "estimate",
        "read_model",
    ),
    "p2smt.cluster.link": ("Device",),
    "p2smt.fabric.fabric": ("Fabric",),
    "p2smt.interop.fabrics": ("read_fabric",),
    "p2smt.training.strategy": (
        "Batch",
        "Recompute",
        "Strategy",
        "parse_strategy",
        "strategy_text",
    ),
    "p2smt.training.efficiency": (
        "Efficiency",
        "Framework",
    ),
    "p2smt.training.prediction": (
        "Prediction",
        "RunEstimate",
    ),
    "p2smt.training.search.plan_answer": ("PlanAnswer",),
    "p2smt.training.search.question": (
        "PlanQuestion",
        "Prices",
        "SpaceLimits",
    ),
    "p2smt.training.training_plan": ("TrainingPlan", "training_plan"),
    "p2smt.training.transformer": ("Transformer",),
}
_HOME = {name: module for module, names in _HOMES.items() for name in names}
__all__ = list(_HOME)
__version__ = "0.1.0"


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME})


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'p2smt' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOME[name]), name)
