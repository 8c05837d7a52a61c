"""`plan --compare`: what somebody runs now, from a strategy's text or a launch file."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from p2smt.cli.parameters import Text, Texts, option
from p2smt.cli.training import training_options as t
from p2smt.errors import InputError

if TYPE_CHECKING:
    from p2smt.cluster.link import Device
    from p2smt.interop.trainers.launch import Launch
    from p2smt.training.present.comparison import PresentRun
    from p2smt.training.present.priced import Launched
    from p2smt.training.search.question import PlanQuestion
    from p2smt.training.strategy import Strategy


@dataclass(frozen=True)
class CompareOptions:
    """What the best is compared with."""

    compare: Text = option(
        "STRATEGY|FILE",
        "What you run now, priced as it is launched beside the best: a strategy, a plan or "
        "estimate JSON, or what estimate FILE takes.",
    )
    launched: Text = option(
        "ORDER",
        "How its ranks are numbered, the fastest axis first, such as tp-cp-ep-pp-dp; default: as "
        "its launcher does, tp-cp-ep-dp-pp.",
    )
    settings: Texts = option(
        "NAME=VALUE",
        "What that FILE, or one in --measured, leaves open, by the names that errors ask for.",
        "--set",
    )

    @property
    def is_file(self) -> bool:
        """Whether a file, or a launch command, is given."""
        text = self.compare or ""
        return os.path.isfile(text) or ("--" in text and " " in text) or "=" not in text

    def read(
        self, model: Text, workload: t.WorkloadOptions, devices: int, measured: Texts
    ) -> Yours | None:
        """What is given; None: nothing to compare with.  What is ``measured`` may be a file, too.

        Raises:
            InputError: it is neither a strategy nor a file that can be read, or options are given
                that say something of it and there is nothing.
        """
        told = t.settings_of(self.settings)
        if self.compare is None:
            left = None if measured else self.settings
            for name, value in (("--launched", self.launched), ("--set", left)):
                if value or value == "":
                    raise InputError(name, "tells what --compare leaves open", "give that, too")
            return None
        if not self.compare.strip():
            raise InputError("--compare ''", "names nothing", "give a strategy or a launch file")
        if not self.is_file:
            if told and not measured:
                rule = "tells what a launch file leaves open"
                raise InputError("--set", rule, "drop it, or name the file")
            return Yours(self.compare, None, self.launched)
        return Yours(self.compare, self._launch(told, model, workload.seq, devices), self.launched)

    def _launch(self, told: dict[str, str], model: Text, seq: Text, devices: int) -> Launch:
        """The run of the file: on as many devices as it says, else on all."""
        file = self.compare or ""
        try:
            found = t.read_run(file, told, model, seq, None)
        except InputError:
            found = t.read_run(file, told, model, seq, devices)
        t.note_launch(found)
        return found


@dataclass(frozen=True)
class Yours:
    """What somebody runs: the ``text`` as given, and the run if it is a file's."""

    text: str
    launch: Launch | None
    launched: Text

    def completed(self, workload: t.WorkloadOptions) -> t.WorkloadOptions:
        """The options on the training, with what they do not say from the file."""
        from p2smt.units import plain

        if self.launch is None:
            return workload
        batch = self.launch.batch
        many = workload.global_batch or str(batch.sequences)
        strategy = self.launch.strategy
        own = replace(workload, global_batch=many, seq=str(batch.tokens))
        if own.optimizer_bytes is None:
            own = replace(own, optimizer_bytes=str(strategy.optimizer_bytes))
        if own.imbalance is None:
            own = replace(own, imbalance=plain(strategy.imbalance, 6))
        return own

    def strategy(
        self, workload: t.WorkloadOptions, devices: int, device: Device | None
    ) -> Strategy:
        """Its strategy; without ``dp`` it fills so many devices."""
        from p2smt.training.strategy import spread_strategy

        if self.launch is not None:
            return replace(self.launch.strategy, **workload.given())
        return replace(spread_strategy(self.text, devices, device), **workload.given())

    def present(
        self,
        question: PlanQuestion,
        strategy: Strategy,
        batches: tuple[int, int],
        hosts: Sequence[str] | None,
    ) -> PresentRun:
        """The training as it is launched: with the file's batch, else with the largest of the range
        that it can have.

        Raises:
            InputError: it is none of these devices.
        """
        from p2smt.training.efficiency import TrainingRun
        from p2smt.training.present.changes import with_batch
        from p2smt.training.present.comparison import PresentRun
        from p2smt.training.strategy import assumed_parts

        launched = self._launched(question, hosts)
        if self.launch is not None:
            run = TrainingRun(question.model, self.launch.batch, strategy)
            return PresentRun(run, launched)
        run = TrainingRun(question.model, question.batch, strategy)
        assumed = assumed_parts(strategy, self.text, bool(question.model.experts))
        return PresentRun(with_batch(run, strategy, *batches), launched, batches, assumed)

    def _launched(self, question: PlanQuestion, hosts: Sequence[str] | None) -> Launched:
        """Where and how it is launched: on the hosts as they are listed."""
        from p2smt.training.present.launch_order import LaunchOrder, parse_order
        from p2smt.training.present.priced import Launched

        order = LaunchOrder() if self.launch is None else LaunchOrder(self.launch.order)
        found = Launched(
            question.topology,
            question.efficiency,
            question.capacity_bytes,
            None if hosts is None else tuple(hosts),
            order if self.launched is None else parse_order(self.launched),
        )
        if self.launch is None or self.launched is not None:
            return found
        return _as_told(found, self.launch)


def _as_told(found: Launched, launch: Launch) -> Launched:
    """With ranks where the file says, if that is there; else a note says that they are in order."""
    from p2smt.cli.output import note

    if found.hosts is None:
        where, experts = launch.matrices_on(found.topology)
        if where is not None:
            return replace(found, placement=where, experts=experts)
    elif _there(launch, found):
        return replace(found, places=launch.places, expert_places=launch.expert_places)
    if launch.placement is not None or launch.places:
        note("its ranks lie on other hosts or levels than there are: they are taken in order")
    return found


def _there(launch: Launch, found: Launched) -> bool:
    """Whether the job has the hosts of the file's ranks, with as many devices."""
    each = found.topology.devices_under(found.topology.node_level)
    used = Counter(host for host, _ in launch.places)
    there = set(found.hosts or ())
    return bool(used) and all(host in there and n == each for host, n in used.items())
