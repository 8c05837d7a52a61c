"""The public functions on strategies: the search for the best one, its plan file, trainers."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import TYPE_CHECKING, Any

from p2smt.api.efficiencies import known_of
from p2smt.display import Displayed
from p2smt.errors import InputError
from p2smt.files.write import write_atomically
from p2smt.interop.exported import Exported
from p2smt.interop.trainers.option_table import TRAINERS, find_trainer, lacks_of
from p2smt.interop.trainers.rank_layout import RankLayout
from p2smt.interop.trainers.trainer import cuda_alone
from p2smt.parallel_search.parallel_options import Spread
from p2smt.result import SearchLimits, StopWatch
from p2smt.training.efficiency import Efficiency, Framework
from p2smt.training.measured.measured_runs import measured_strategies, searched_strategies
from p2smt.training.prediction import RunEstimate
from p2smt.training.search.known import Known
from p2smt.training.search.plan import plan as search_plan
from p2smt.training.search.plan_answer import PlanAnswer, PlannedStrategy
from p2smt.training.search.question import Lacks, PlanQuestion
from p2smt.training.strategy import Batch, Strategy
from p2smt.training.training_plan import TrainingPlan, training_plan, training_plan_data
from p2smt.training.transformer import Transformer

if TYPE_CHECKING:
    from p2smt.api.files import StrPath
    from p2smt.training.present.comparison import PresentRun, RunComparison


_DIGITS = 4


def launcher_lacks(name: str, batch: Batch) -> Lacks:
    """What the trainer of that name lacks for a strategy of a model, for ``lacks`` of a question.

    Raises:
        InputError: no such trainer is known.
    """
    return lacks_of(find_trainer(name), batch)


@dataclass(frozen=True, slots=True)
class TrainerOptions:
    """A strategy as a trainer takes it; or what the trainer ``lacks``, and no text.

    ``format``: what `export` calls it; ``placed``: whether ranks in the trainer's order have the
    groups of the placement.
    """

    name: str
    title: str
    text: str
    notes: tuple[str, ...]
    lacks: tuple[str, ...]
    format: str
    placed: bool = True


def trainer_options(
    model: Transformer,
    batch: Batch,
    strategy: Strategy,
    framework: Framework | None = None,
    estimate: RunEstimate | None = None,
) -> list[TrainerOptions]:
    """A valid strategy as every trainer takes it that is known here, its ranks in order.

    ``framework``: what the prediction of the strategy assumes to overlap; None: there is none.
    ``estimate``: that of the strategy, which says where it runs; None: on machines of NVIDIA's.
    """
    found, layout, real = [], None, None
    if estimate is not None:
        layout = RankLayout.of(estimate.topology, strategy, None)
        real = RankLayout.of(estimate.topology, strategy, estimate.placement, estimate.experts)
    for trainer in TRAINERS:
        lacks = trainer.lacks(model, batch, strategy)
        on_amd = estimate is not None and estimate.topology.of_amd
        if on_amd and (cuda := cuda_alone(strategy)):
            lacks = (*lacks, f"what replaces {cuda}")
        made = Exported("") if lacks else trainer.export(model, batch, strategy, framework, layout)
        placed = real is None or not trainer.ranks(strategy, real)
        said = trainer.name, trainer.title, made.text, made.notes, lacks
        found.append(TrainerOptions(*said, trainer.export_name, placed))
    return found


class Why(Enum):
    """Why a strategy is the one to run."""

    NEAREST = "nearest to a measured run, of those in the range of the fastest"
    FASTEST = "the fastest"
    PICKED = "picked"


FASTEST = "fastest"
"""What is picked by name; others are by their number in the list."""


@dataclass(frozen=True, slots=True)
class Recommended:
    """The strategy to run: ``number`` of the listed ones, from 1, as a plan.

    ``known``: what measured runs say of it.
    """

    number: int
    why: Why
    plan: TrainingPlan
    known: Known

    @property
    def estimate(self) -> RunEstimate:
        """The strategy with its programs."""
        return self.plan.estimate


@dataclass(frozen=True, slots=True, repr=False)
class Planned(Displayed):
    """What was found: the answer, its best strategies estimated, the best one as a plan.

    ``listed``: the best strategies, and behind them the one nearest to a measured run where it is
    none of them.  ``recommended``: the one to run; None: there is none.  ``options``: that strategy
    as trainers take it.  ``known``: what measured runs say of the best.
    """

    answer: PlanAnswer
    listed: tuple[RunEstimate, ...]
    plan: TrainingPlan | None
    recommended: Recommended | None
    options: tuple[TrainerOptions, ...]
    known: Known | None = None

    def summary(self) -> str:
        """Status, and the one to run."""
        run = self.recommended
        return self.answer.status.value + ("" if run is None else f": {run.plan.summary()}")

    @property
    def top(self) -> tuple[RunEstimate, ...]:
        """The best strategies."""
        return self.listed[: len(self.answer.top)]

    @property
    def interrupted(self) -> bool:
        """Whether the user stopped it: the answer, or its programs, are the best until then."""
        plans = (self.plan, None if self.recommended is None else self.recommended.plan)
        stopped = any(one is not None and one.interrupted for one in plans)
        return self.answer.interrupted or stopped


def plan(
    question: PlanQuestion,
    limits: SearchLimits | None = None,
    spread: Spread | None = None,
    pick: str | None = None,
) -> Planned:
    """The fastest strategy and placement, with a proof, and programs for its requests; beside it
    the one to run.

    Args:
        question: model, batch, topology, efficiency, and what restricts the answer.
        limits: of wall time, for all of it.
        spread: search part by part, in several processes or with a journal; None: in one piece.
        pick: which of the listed strategies to run, by its number or ``fastest``; None: of those
            near the best whose times lie in the range of its time, the one nearest to a measured
            run.

    Raises:
        InputError: what is asked cannot be.

    On KeyboardInterrupt the best answer so far is returned, ``interrupted`` set; no programs are
    sought after it.
    """
    number = picked(pick, question.top)
    limits = limits or SearchLimits()
    watch = StopWatch.start(limits)
    mixture = question.model.experts is not None
    measured = searched_strategies(question.efficiency, experts=mixture)
    answer = search_plan(question, limits, measured, spread)
    if not measured:
        answer = replace(answer, outside=(_unmeasured(question.efficiency, mixture),))
    listed = _listed(answer)
    if not listed:
        return Planned(answer, (), None, None, ())
    if number > len(listed):
        rule = f"is not listed: there are {len(listed)}"
        raise InputError(f"--pick {number}", rule, "pick one of these, or list more with --top")
    chosen, why = _chosen(answer, listed, number)
    sought: dict[int, TrainingPlan] = {}
    stopped = answer.interrupted
    for at in dict.fromkeys((chosen, 0)):
        one = sought[at] = _with_programs(question, listed[at], limits, watch, search=not stopped)
        stopped |= one.interrupted
    said = {at: known_of(one.estimate) for at, one in sought.items()}
    run = Recommended(chosen + 1, why, sought[chosen], said[chosen])
    options = trainer_options(
        *(question.model, question.batch, listed[chosen].strategy, question.efficiency.framework),
        run.estimate,
    )
    estimates = tuple(one.estimate(question) for one in listed)
    return Planned(answer, estimates, sought[0], run, tuple(options), said[0])


def compare_planned(
    found: Planned, present: PresentRun, limits: SearchLimits | None = None
) -> RunComparison:
    """What somebody runs beside the fastest of a plan, and beside the one of the list that is
    nearest to a measured run; ``limits``: of the search for its best placement."""
    from p2smt.training.present.comparison import NearMeasured, compare_with  # few plans compare

    best = found.listed[0] if found.listed else None
    near, run_near = None, found.answer.recommended
    if run_near is not None:
        one = run_near.planned.estimate(found.answer.question)
        near = NearMeasured(one, run_near.run.name, run_near.distance)
    return compare_with(found.answer.question, present, best, near, limits)


def picked(pick: str | None, most: int) -> int:
    """The number that is picked; 0: none is.

    Raises:
        InputError: it is neither a number nor ``fastest``, or there cannot be so many.
    """
    if pick is None or pick == FASTEST:
        return int(pick == FASTEST)
    number = int(pick) if pick.isascii() and pick.isdigit() and len(pick) <= _DIGITS else 0
    if not 1 <= number <= most + 1:
        rule = f"must be {FASTEST}, or a number of the list, from 1 to {most + 1}"
        raise InputError(f"--pick {pick[:40]!r}", rule, "list more with --top")
    return number


def _listed(answer: PlanAnswer) -> tuple[PlannedStrategy, ...]:
    near = None if answer.recommended is None else answer.recommended.planned
    behind = near is not None and near.strategy not in [one.strategy for one in answer.top]
    return answer.top + ((near,) if near is not None and behind else ())


def _chosen(answer: PlanAnswer, listed: Sequence[PlannedStrategy], number: int) -> tuple[int, Why]:
    """Which of the listed ones to run, from 0, and why."""
    if number:
        return number - 1, Why.PICKED
    if answer.recommended is None:
        return 0, Why.FASTEST
    strategies = [one.strategy for one in listed]
    return strategies.index(answer.recommended.planned.strategy), Why.NEAREST


def _with_programs(
    question: PlanQuestion,
    one: PlannedStrategy,
    limits: SearchLimits,
    watch: StopWatch,
    *,
    search: bool,
) -> TrainingPlan:
    """A strategy as a plan, which says the limits of all of it, not what was left."""
    asked = one.estimate(question), watch.left()
    return training_plan(*asked, known=one.programs, search=search).within(limits)


def _unmeasured(efficiency: Efficiency, mixture: bool) -> str:
    kind = "mixture of experts" if mixture else "dense model"
    what = f"of a {kind} by" if measured_strategies(efficiency) else "of"
    return f"no run {what} {efficiency.framework.name} on {efficiency.device} is known here"


def write_training_plan(
    found: TrainingPlan, path: StrPath, answer: Mapping[str, Any] | None = None
) -> None:
    """Write a plan file with its ``training`` block, which `verify`, `run` and `export` take.

    ``answer``: what the search said beside it (:class:`p2smt.plans.file_model.AnswerBlock`).

    Raises:
        InputError: on one device nothing is sent, so there is no plan; or it cannot be written.
    """
    said = {} if answer is None else {"answer": answer}
    write_atomically(os.fspath(path), json.dumps(training_plan_data(found) | said) + "\n")
