"""What a trainer can run, and how it is told to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from p2smt.errors import InputError
from p2smt.interop.exported import Exported, Writer
from p2smt.interop.places import PlacedPlan
from p2smt.plans.file_model import PlanModel
from p2smt.training.efficiency import Framework
from p2smt.training.plan_block import efficiency_in, run_of
from p2smt.training.strategy import AXES, RARE_FIELDS, Batch, Recompute, Strategy
from p2smt.training.transformer import Transformer
from p2smt.training.validity import check


@dataclass(frozen=True, slots=True)
class MissingFeature:
    """Something that a trainer has not, and the strategies that need it.

    ``words``: what is missing, as the object of "lacks".  ``needed``: whether a strategy needs it
    for a model and batch.
    """

    words: str
    needed: Callable[[Transformer, Batch, Strategy], bool]


@dataclass(frozen=True, slots=True)
class Trainer:
    """A program that trains transformers.

    ``name``: what users call it; ``title``: what it calls itself; ``commit``: the one whose rules
    these are.  ``frameworks``: whose efficiencies predict it, the nearest first.  ``missing``: what
    it lacks.  ``split``: what it lacks for the layers of the chunks of a strategy, in words, or
    empty.  ``write``: the file for a strategy that it can run.  ``overlap``: what is added to that,
    so that it overlaps what a prediction assumes.  ``given``: of ``RARE_FIELDS`` those of a
    strategy that it is told.
    """

    name: str
    title: str
    commit: str
    frameworks: tuple[str, ...]
    dtypes: tuple[str, ...]
    missing: tuple[MissingFeature, ...]
    split: Callable[[Transformer, Strategy], str]
    write: Callable[[Transformer, Batch, Strategy], Exported]
    overlap: Callable[[Strategy, Framework], Exported] = lambda _, __: Exported("")
    given: Callable[[Strategy], tuple[str, ...]] = lambda _: ()

    def lacks(self, model: Transformer, batch: Batch, strategy: Strategy) -> tuple[str, ...]:
        """What is missing to run a valid strategy, in words; empty: nothing."""
        found = [
            feature.words for feature in self.missing if feature.needed(model, batch, strategy)
        ]
        if strategy.dtype not in self.dtypes:
            found.append(f"training in {strategy.dtype[:40]}")
        told = self.given(strategy)
        found += [f"an option for {name} here" for name in _rare(strategy) if name not in told]
        return (*found, *filter(None, [self.split(model, strategy)]))

    def export(
        self,
        model: Transformer,
        batch: Batch,
        strategy: Strategy,
        framework: Framework | None = None,
    ) -> Exported:
        """The text that the trainer takes, and notes on what else it needs.

        ``framework``: what the prediction of the strategy assumes to overlap; None: there is none.

        Raises:
            InputError: the strategy is invalid, or needs what the trainer lacks, which is named.
        """
        check(model, batch, strategy, strategy.devices)
        missing = self.lacks(model, batch, strategy)
        if missing:
            sizes = ",".join(f"{axis}={getattr(strategy, axis)}" for axis in AXES)
            rule = f"{self.title} lacks {'; '.join(missing)}"
            raise InputError(f"strategy {sizes}", rule, f"plan with --launcher {self.name}")
        found = self.write(model, batch, strategy)
        added = Exported("") if framework is None else self.overlap(strategy, framework)
        return Exported(found.text + added.text, (*found.notes, *added.notes))


def _rare(strategy: Strategy) -> list[str]:
    """Fields that few trainings have and this one does; how tokens are routed is no option."""
    usual = Strategy()
    told = (name for name in RARE_FIELDS if name != "imbalance")
    return [name for name in told if getattr(strategy, name) != getattr(usual, name)]


def needs_selective(_: Transformer, __: Batch, found: Strategy) -> bool:
    """Where attention alone is computed again."""
    return found.recompute is Recompute.SELECTIVE


# The options of a trainer from a plan file that has a ``training`` block.


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
