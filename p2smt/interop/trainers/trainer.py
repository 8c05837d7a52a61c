"""What a trainer can run, and how it is told to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from p2smt.errors import InputError
from p2smt.interop.exported import Exported, Writer
from p2smt.interop.places import PlacedPlan
from p2smt.interop.trainers.rank_layout import RankLayout
from p2smt.parallelism.placement import IntArray, Placement
from p2smt.plans.file_model import PlanModel
from p2smt.plans.training.file_model import ExpertRanksBlock, PlacementBlock, TrainingBlock
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


_Write = Callable[[Transformer, Batch, Strategy, RankLayout | None], Exported]


@dataclass(frozen=True, slots=True)
class Trainer:
    """A program that trains transformers.

    ``name``: what users call it; ``title``: what it calls itself; ``commit``: the one whose rules
    these are.  ``frameworks``: whose efficiencies predict it, the nearest first.  ``missing``: what
    it lacks.  ``split``: what it lacks for the layers of the chunks of a strategy, in words, or
    empty.  ``write``: the file for a strategy that it can run.  ``overlap``: what is added to that,
    so that it overlaps what a prediction assumes.  ``ranks``: why it has not the groups of a
    layout, in words, or empty.  ``python``: the same as ``write`` as Python, where it takes both.
    ``given``: of ``RARE_FIELDS`` those of a strategy that it is told.  ``format``: what `export`
    calls what it takes, where that is not ``NAME-options``.
    """

    name: str
    title: str
    commit: str
    frameworks: tuple[str, ...]
    dtypes: tuple[str, ...]
    missing: tuple[MissingFeature, ...]
    write: _Write
    split: Callable[[Transformer, Strategy], str] = lambda _, __: ""
    overlap: Callable[[Strategy, Framework], Exported] = lambda _, __: Exported("")
    ranks: Callable[[Strategy, RankLayout], str] = lambda _, __: ""
    python: _Write | None = None
    given: Callable[[Strategy], tuple[str, ...]] = lambda _: ()
    format: str = ""

    @property
    def export_name(self) -> str:
        """What ``export --to`` calls what it takes."""
        return self.format or f"{self.name}-options"

    def lacks(self, model: Transformer, batch: Batch, strategy: Strategy) -> tuple[str, ...]:
        """What is missing to run a valid strategy, in words; empty: nothing."""
        model = model.seen(batch.tokens)
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
        layout: RankLayout | None = None,
        python: bool = False,
    ) -> Exported:
        """The text that the trainer takes, and notes on what else it needs.

        ``framework``: what the prediction of the strategy assumes to overlap; None: there is none.
        ``layout``: where its ranks lie; None: as the trainer numbers them.  ``python``: as Python,
        where the trainer takes that, too.

        Raises:
            InputError: the strategy is invalid, or needs what the trainer lacks, which is named; or
                the trainer numbers ranks otherwise than they lie.
        """
        check(model, batch, strategy, strategy.devices)
        missing = self.lacks(model, batch, strategy)
        if missing:
            sizes = ",".join(f"{axis}={getattr(strategy, axis)}" for axis in AXES)
            rule = f"{self.title} lacks {'; '.join(missing)}"
            raise InputError(f"strategy {sizes}", rule, f"plan with --launcher {self.name}")
        if layout is not None and (wrong := self.ranks(strategy, layout)):
            sizes = ",".join(f"{axis}={getattr(strategy, axis)}" for axis in (*AXES, "ep", "etp"))
            raise InputError(
                f"ranks of {sizes}", f"{self.title} {wrong}", _remedy(self, strategy, layout)
            )
        on_amd = layout is not None and layout.topology.of_amd
        if on_amd and (cuda := cuda_alone(strategy)):
            rule = f"needs {cuda}, and the devices are AMD's"
            remedy = "take graphs=partial or none"
            raise InputError("dispatcher=flex beside graphs=full", rule, remedy)
        write = self.python if python and self.python is not None else self.write
        found = write(model.seen(batch.tokens), batch, strategy, layout)
        added = Exported("") if framework is None else self.overlap(strategy, framework)
        timed = () if framework is None else dispatch_notes(strategy)
        notes = (*found.notes, *added.notes, *timed, *(flex_notes(strategy) if on_amd else ()))
        return Exported(found.text + added.text, notes)


def dispatch_notes(strategy: Strategy) -> tuple[str, ...]:
    """By what tokens reach their experts, as the time takes it, where several ways would do.

    What gradients are reduced in needs no note: options say it where it is not the default.
    """
    if strategy.ep * strategy.etp == 1 or strategy.dispatcher != "alltoall":
        return ()
    return (
        "the time takes the library's all-to-all of experts: plan --dispatcher flex for DeepEP",
    )


# The flex dispatcher on AMD's devices: DeepEP and HybridEP are written in CUDA.


def flex_notes(strategy: Strategy) -> tuple[str, ...]:
    """What the flex dispatcher takes there; none without it.

    Source: README of deepseek-ai/DeepEP (its branch for ROCm, pull request 578), and AMD's
    Primus-Turbo.
    """
    if cuda := cuda_alone(strategy):
        return (f"flex with graphs=full needs {cuda}, and the devices are AMD's",)
    yours = "its branch mori-ep, or the one in Primus-Turbo"
    words = f"flex on AMD needs a DeepEP for ROCm ({yours}); alltoall needs none"
    return (words,) if strategy.dispatcher == "flex" else ()


def cuda_alone(strategy: Strategy) -> str:
    """What of a strategy there is no build of for AMD, in words; empty: all can be."""
    captured = strategy.dispatcher == "flex" and strategy.graphs == "full"
    return "HybridEP, which runs on CUDA alone" if captured else ""


def _remedy(trainer: Trainer, strategy: Strategy, layout: RankLayout) -> str:
    if not trainer.ranks(strategy, layout.as_attention()):
        return f"launch them as the plan has them, or --launched {','.join(AXES)}"
    return f"plan with --launcher {trainer.name}, which keeps to its order"


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

    def write(placed: PlacedPlan, path: str) -> Exported:
        return exported_options(trainer, placed, path.lower().endswith(".py"))

    what = f"{trainer.title}: how it runs the strategy of `plan -o`"
    return Writer(trainer.export_name, what, ending, write)


def exported_options(trainer: Trainer, placed: PlacedPlan, python: bool = False) -> Exported:
    """The strategy of a plan as a trainer takes it, its ranks launched as they are placed.

    Raises:
        InputError: the plan is none of a training, or the trainer cannot run it so.
    """
    block = training_of(placed)
    run = run_of(block, placed.source)
    framework = efficiency_in(block, placed.source).framework
    layout = RankLayout.of_plan(placed, run.strategy, expert_devices(block, run.strategy))
    return trainer.export(run.model, run.batch, run.strategy, framework, layout, python)


def expert_devices(block: TrainingBlock, strategy: Strategy) -> IntArray | None:
    """The device of each rank over the axes of experts; None: the plan has one matrix."""
    match block.placement:
        case None:
            return None
        case ExpertRanksBlock(expert_ranks=ranks):
            return np.array(ranks, dtype=np.int64).reshape(strategy.expert_sizes)
        case PlacementBlock(experts=rows):
            return Placement(tuple(map(tuple, rows))).rank_tensor()


def training_of(placed: PlacedPlan) -> TrainingBlock:
    """What a plan says of model, batch and strategy.

    Raises:
        InputError: it says nothing of them.
    """
    plan = placed.plan
    if not isinstance(plan, PlanModel) or plan.training is None:
        rule = "is no plan of a training: it says nothing of model, batch and strategy"
        raise InputError(placed.source, rule, "give a file that `p2smt plan -o` wrote")
    return plan.training
