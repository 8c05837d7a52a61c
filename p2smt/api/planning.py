"""The public functions on strategies: the search for the best one, its plan file, trainers."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from p2smt.files.write import write_atomically
from p2smt.interop.exported import Exported
from p2smt.interop.trainers.option_table import TRAINERS, find_trainer, lacks_of
from p2smt.parallel_search.parallel_options import Spread
from p2smt.result import SearchLimits, StopWatch
from p2smt.training.efficiency import Efficiency, Framework, TrainingRun
from p2smt.training.measured.run import measured_strategies, searched_strategies
from p2smt.training.plan import TrainingPlan, training_plan, training_plan_data
from p2smt.training.prediction import RunEstimate
from p2smt.training.search.answer import PlanAnswer, PlannedStrategy
from p2smt.training.search.plan import plan as search_plan
from p2smt.training.search.question import Lacks, PlanQuestion
from p2smt.training.strategy import Batch, Strategy
from p2smt.training.transformer import Transformer

if TYPE_CHECKING:
    from p2smt.api.files import StrPath


def launcher_lacks(name: str, batch: Batch) -> Lacks:
    """What the trainer of that name lacks for a strategy of a model, for ``lacks`` of a question.

    Raises:
        InputError: no such trainer is known.
    """
    return lacks_of(find_trainer(name), batch)


@dataclass(frozen=True, slots=True)
class TrainerOptions:
    """A strategy as a trainer takes it; or what the trainer ``lacks``, and no text."""

    name: str
    title: str
    text: str
    notes: tuple[str, ...]
    lacks: tuple[str, ...]


def trainer_options(
    model: Transformer, batch: Batch, strategy: Strategy, framework: Framework | None = None
) -> list[TrainerOptions]:
    """A valid strategy as every trainer takes it that is known here.

    ``framework``: what the prediction of the strategy assumes to overlap; None: there is none.
    """
    found = []
    for trainer in TRAINERS:
        lacks = trainer.lacks(model, batch, strategy)
        made = Exported("") if lacks else trainer.export(model, batch, strategy, framework)
        found.append(TrainerOptions(trainer.name, trainer.title, made.text, made.notes, lacks))
    return found


@dataclass(frozen=True, slots=True)
class Planned:
    """What was found: the answer, its best strategies estimated, the best one as a plan.

    ``options``: the best strategy as trainers take it.
    """

    answer: PlanAnswer
    top: tuple[RunEstimate, ...]
    plan: TrainingPlan | None
    options: tuple[TrainerOptions, ...]

    @property
    def interrupted(self) -> bool:
        """Whether the user stopped it: the answer, or its programs, are the best until then."""
        return self.answer.interrupted or (self.plan is not None and self.plan.interrupted)


def plan(
    question: PlanQuestion, limits: SearchLimits | None = None, spread: Spread | None = None
) -> Planned:
    """The fastest strategy and placement, with a proof, and programs for its requests.

    Args:
        question: model, batch, topology, efficiency, and what restricts the answer.
        limits: of wall time, for all of it.
        spread: search part by part, in several processes or with a journal; None: in one piece.

    Raises:
        InputError: what is asked cannot be.

    On KeyboardInterrupt the best answer so far is returned, ``interrupted`` set; no programs are
    sought after it.
    """
    limits = limits or SearchLimits()
    watch = StopWatch.start(limits)
    measured = searched_strategies(question.efficiency)
    answer = search_plan(question, limits, measured, spread)
    if not measured:
        answer = replace(answer, outside=(_unmeasured(question.efficiency),))
    top = tuple(_estimated(question, one) for one in answer.top)
    if not top:
        return Planned(answer, (), None, ())
    strategy, framework = top[0].run.strategy, question.efficiency.framework
    options = trainer_options(question.model, question.batch, strategy, framework)
    known, search = answer.top[0].programs, not answer.interrupted
    best = training_plan(top[0], watch.left(), known=known, search=search)
    return Planned(answer, top, best.within(limits), tuple(options))


def _unmeasured(efficiency: Efficiency) -> str:
    what = "of a dense model by" if measured_strategies(efficiency) else "of"
    return f"no run {what} {efficiency.framework.name} on {efficiency.device} is known here"


def _estimated(question: PlanQuestion, one: PlannedStrategy) -> RunEstimate:
    return RunEstimate(
        TrainingRun(question.model, question.batch, one.strategy),
        question.topology,
        question.efficiency,
        one.placement,
        one.with_programs or one.prediction,
        question.capacity_bytes,
    )


def write_training_plan(found: TrainingPlan, path: StrPath) -> None:
    """Write a plan file with its ``training`` block, which `verify`, `run` and `export` take.

    Raises:
        InputError: on one device nothing is sent, so there is no plan; or it cannot be written.
    """
    write_atomically(os.fspath(path), json.dumps(training_plan_data(found)) + "\n")
