"""The public function on the hosts of a job: degrees, batch, hosts and their order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from p2smt.result import SearchLimits, StopWatch
from p2smt.training.plan import TrainingPlan, training_plan
from p2smt.training.prediction import RunEstimate
from p2smt.training.search.hosts.answer import HostsAnswer
from p2smt.training.search.hosts.search import WITHOUT_LIMIT_S
from p2smt.training.search.hosts.search import plan_on_hosts as search
from p2smt.training.search.question import PlanQuestion


@dataclass(frozen=True, slots=True)
class PlannedOnHosts:
    """What was found: the answer, and its best one as an estimate (None: there is none).

    ``round``: the best with the roundest batch of the range, where the best has another: people
    choose such batches.
    """

    answer: HostsAnswer
    estimate: RunEstimate | None
    round: RunEstimate | None = None

    @property
    def plan(self) -> TrainingPlan | None:
        """The best as a plan, whose file lists its hosts."""
        return None if self.estimate is None else training_plan(self.estimate)


def plan_on_hosts(
    question: PlanQuestion,
    hosts: Sequence[str],
    batches: tuple[int, int] | None = None,
    limits: SearchLimits | None = None,
) -> PlannedOnHosts:
    """The strategy of most tokens a second on some of the hosts that a job got, with a proof.

    Args:
        question: its topology names its hosts.
        hosts: those that the job got; which of them stay idle, and the order of the others, is part
            of the answer.
        batches: the least and the largest global batch; None: that of the question.
        limits: wall-clock limit of the whole; None: a minute.

    Raises:
        InputError: the topology lacks a host, or what is asked is not searched on hosts.
        EncodingBug: an order is faster than what was proved.

    On KeyboardInterrupt the best answer so far is returned, ``interrupted`` set.
    """
    watch = StopWatch.start(limits or SearchLimits(time_limit_s=WITHOUT_LIMIT_S))
    answer = search(question, hosts, batches, watch.left())
    if not answer.best:
        return PlannedOnHosts(answer, None)
    best = answer.best[0]
    rounded = _roundest(*answer.batches)
    beside = None
    if rounded != best.run.batch.sequences and not (answer.interrupted or watch.expired()):
        batch = replace(question.batch, sequences=rounded)
        other = search(replace(question, batch=batch), hosts, None, watch.left())
        beside = other.best[0].estimate(other.question) if other.best else None
    return PlannedOnHosts(answer, best.estimate(answer.question), beside)


def _roundest(least: int, most: int) -> int:
    """The multiple of the largest power of two that lies between."""
    power = 1
    while most // (2 * power) * 2 * power >= least:
        power *= 2
    return most // power * power
