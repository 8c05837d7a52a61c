"""The options of a trainer from a plan file that has a ``training`` block."""

from __future__ import annotations

from p2smt.errors import InputError
from p2smt.interop.exported import Exported, Writer
from p2smt.interop.launchers.places import PlacedPlan
from p2smt.interop.trainers.trainer import Trainer
from p2smt.plans.file_model import PlanModel
from p2smt.workload.training_plan.block import efficiency_in, run_of


def options_writer(trainer: Trainer, ending: str) -> Writer:
    """A row for `export`: the options with which the trainer runs a plan's strategy."""

    def write(placed: PlacedPlan, path: str) -> Exported:  # noqa: ARG001
        plan = placed.plan
        if not isinstance(plan, PlanModel) or plan.training is None:
            rule = "is no plan of a training: it says nothing of model, batch and strategy"
            raise InputError(placed.source, rule, "give a file that `p2smt plan -o` wrote")
        run = run_of(plan.training, placed.source)
        framework = efficiency_in(plan.training, placed.source).framework
        return trainer.export(run.model, run.batch, run.strategy, framework)

    what = f"{trainer.title}: how it runs the strategy of `plan -o`"
    return Writer(f"{trainer.name}-options", what, ending, write)
