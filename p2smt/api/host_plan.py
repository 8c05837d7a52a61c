"""The public function on the hosts of a job: degrees, batch, hosts and their order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from p2smt.api.efficiencies import known_of
from p2smt.api.planning import Recommended, Why, picked
from p2smt.display import Displayed
from p2smt.errors import InputError
from p2smt.result import SAME, SearchLimits, StopWatch
from p2smt.training.iteration import estimate_range
from p2smt.training.measured.measured_runs import searched_strategies
from p2smt.training.measured.prediction_errors import iteration_range
from p2smt.training.prediction import RunEstimate
from p2smt.training.present.comparison import (
    NearMeasured,
    PresentRun,
    RunComparison,
    compare_with,
)
from p2smt.training.search.hosts.hosted_answer import HostedStrategy, HostsAnswer
from p2smt.training.search.hosts.search import WITHOUT_LIMIT_S
from p2smt.training.search.hosts.search import plan_on_hosts as search
from p2smt.training.search.known import FAR, most_known
from p2smt.training.search.question import PlanQuestion
from p2smt.training.training_plan import TrainingPlan, training_plan

NEAR_UNITS = 200
"""So many pairs of a strategy and a matrix inside are looked at for what is near the best, unless
all are asked for."""
ALL_UNITS = 10**9


@dataclass(frozen=True, slots=True, repr=False)
class PlannedOnHosts(Displayed):
    """What was found: the answer, and its fastest strategy as an estimate (None: there is none).

    ``round``: the best with the roundest batch of the range, where the best has another: people
    choose such batches.  ``listed``: the fastest strategies, each on the fastest order that is
    known for it, and behind them the one nearest to a measured run where it is none of them.
    ``recommended``: the one to run.
    """

    answer: HostsAnswer
    estimate: RunEstimate | None
    round: RunEstimate | None = None
    listed: tuple[RunEstimate, ...] = ()
    recommended: Recommended | None = None

    def summary(self) -> str:
        """Status, and the one to run."""
        return self.answer.status.value + ("" if self.plan is None else f": {self.plan.summary()}")

    @property
    def plan(self) -> TrainingPlan | None:
        """The one to run as a plan, whose file lists its hosts."""
        return None if self.recommended is None else self.recommended.plan


def plan_on_hosts(
    question: PlanQuestion,
    hosts: Sequence[str],
    batches: tuple[int, int] | None = None,
    limits: SearchLimits | None = None,
    pick: str | None = None,
    *,
    all_near: bool = False,
) -> PlannedOnHosts:
    """The strategy of most tokens a second on some of the hosts that a job got, with a proof;
    beside it the one to run.

    Args:
        question: its topology names its hosts.
        hosts: those that the job got; which of them stay idle, and the order of the others, is part
            of the answer.
        batches: the least and the largest global batch; None: that of the question.
        limits: wall-clock limit of the whole; None: a minute.
        pick: which of the listed strategies to run, by its number or ``fastest``; None: of those
            near the best whose times lie in the range of its time, the one nearest to a measured
            run.
        all_near: look at all that may be near the best, however long that takes.

    Raises:
        InputError: the topology lacks a host, or what is asked is not searched on hosts, or picked.
        EncodingBug: an order is faster than what was proved.

    On KeyboardInterrupt the best answer so far is returned, ``interrupted`` set.
    """
    number = picked(pick, question.top)
    watch = StopWatch.start(limits or SearchLimits(time_limit_s=WITHOUT_LIMIT_S))
    units = ALL_UNITS if all_near else NEAR_UNITS
    answer = search(question, hosts, batches, watch.left(), units)
    if not answer.best:
        return PlannedOnHosts(answer, None)
    best = answer.best[0]
    rounded = _roundest(*answer.batches)
    beside = None
    if rounded != best.run.batch.sequences and not (answer.interrupted or watch.expired()):
        batch = replace(question.batch, sequences=rounded)
        other = search(replace(question, batch=batch), hosts, None, watch.left())
        beside = other.best[0].estimate(other.question) if other.best else None
    listed, run = _listed(answer, number)
    return PlannedOnHosts(answer, best.estimate(answer.question), beside, listed, run)


def _listed(answer: HostsAnswer, number: int) -> tuple[tuple[RunEstimate, ...], Recommended]:
    """The fastest strategies, and which of them to run; ``number``: the one that is picked."""
    members = answer.best[:1] if answer.near is None else answer.near.members
    near = _most_known(answer, members)
    listed = list(members[: answer.question.top])
    if near is not None and near not in listed:
        listed.append(near)
    if number > len(listed):
        rule = f"is not listed: there are {len(listed)}"
        raise InputError(f"--pick {number}", rule, "pick one of these, or list more with --top")
    at, why = number - 1, Why.PICKED
    if not number:
        at, why = (0, Why.FASTEST) if near is None else (listed.index(near), Why.NEAREST)
    estimates = tuple(one.estimate(answer.question) for one in listed)
    chosen = training_plan(estimates[at])
    return estimates, Recommended(at + 1, why, chosen, known_of(estimates[at]))


def _most_known(answer: HostsAnswer, members: Sequence[HostedStrategy]) -> HostedStrategy | None:
    """Of those whose times lie in the range of the fastest's the one nearest to a measured run."""
    question = answer.question
    measured = searched_strategies(question.efficiency, experts=question.model.experts is not None)
    if not measured:
        return None
    fastest = members[0].estimate(question)
    within = iteration_range(fastest, estimate_range(fastest), shared_zero=True)
    high_s = within.high_s / members[0].sequences
    able = [one for one in members if one.sequence_s <= high_s * (1 + SAME)]
    at, _, apart = most_known([one.run.strategy for one in able], measured)
    return able[at] if apart <= FAR else None


def compare_on_hosts(
    found: PlannedOnHosts, present: PresentRun, limits: SearchLimits | None = None
) -> RunComparison:
    """What somebody runs on the hosts of a job, beside the best there.

    ``limits``: of the search for its best order; None: a minute.
    """
    near = _near_measured(found)
    return compare_with(found.answer.question, present, found.estimate, near, limits)


def _near_measured(found: PlannedOnHosts) -> NearMeasured | None:
    """The one to run, where that is the one of the list that is nearest to a measured run."""
    run = found.recommended
    if run is None or run.why is not Why.NEAREST or run.known.nearest is None:
        return None
    return NearMeasured(run.estimate, run.known.nearest.name, run.known.apart)


def _roundest(least: int, most: int) -> int:
    """The multiple of the largest power of two that lies between."""
    power = 1
    while most // (2 * power) * 2 * power >= least:
        power *= 2
    return most // power * power
