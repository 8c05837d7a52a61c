"""What `plan` answers on the hosts of a job."""

from __future__ import annotations

from dataclasses import dataclass

from p2smt.result import SolveStats, Status
from p2smt.training.efficiency import TrainingRun
from p2smt.training.on_hosts import HostRanks
from p2smt.training.prediction import Prediction, RunEstimate
from p2smt.training.search.plan_answer import Shortfall
from p2smt.training.search.question import PlanQuestion


@dataclass(frozen=True, slots=True)
class HostedStrategy:
    """A strategy with its batch, on hosts in an order."""

    run: TrainingRun
    where: HostRanks
    prediction: Prediction

    @property
    def sequences(self) -> int:
        """The global batch."""
        return self.run.batch.sequences

    @property
    def sequence_s(self) -> float:
        """Seconds of a sequence, all devices together."""
        return self.prediction.time.iteration_s / self.sequences

    def estimate(self, question: PlanQuestion) -> RunEstimate:
        """The same as an estimate of the question's training."""
        return RunEstimate(
            self.run,
            self.where.topology,
            question.efficiency,
            None,
            self.prediction,
            question.capacity_bytes,
            on_hosts=self.where,
        )


@dataclass(frozen=True, slots=True)
class HostsSearched:
    """How much was looked at: strategies of the host counts that were opened (with their batches),
    those bounded by their requests, pairs with a matrix inside, orders costed device by device, and
    questions to a solver."""

    host_counts: int
    strategies: int
    bounded: int
    units: int
    costed: int
    calls: int


@dataclass(frozen=True, slots=True)
class HostsNearBest:
    """The strategies that take at most ``1 + within`` times the best one's seconds of a sequence.

    Each is on the fastest order that is known for it, the fastest strategy first.  COMPLETE: there
    are no others.
    """

    within: float
    status: Status
    members: tuple[HostedStrategy, ...]
    interrupted: bool = False

    @property
    def count(self) -> int:
        """How many there are, the best one among them."""
        return len(self.members)


@dataclass(frozen=True, slots=True)
class HostsAnswer:
    """The strategies, host counts, hosts and orders of most tokens a second that were found.

    ``best``: the best of each pair of host count and degrees that was costed, the fastest first.
    ``bound_s``: no answer takes less of a sequence.  ``status`` OPTIMAL: the first one takes that,
    to a billionth.  ``batches``: the least and the largest batch that were asked for.  ``near``:
    the strategies near the best, if they were looked for.  ``shortfall``: where there is no answer,
    what comes nearest to fitting; None: memory is not why.
    """

    question: PlanQuestion
    batches: tuple[int, int]
    listed: tuple[str, ...]
    best: tuple[HostedStrategy, ...]
    bound_s: float
    status: Status
    searched: HostsSearched
    stats: SolveStats
    interrupted: bool = False
    near: HostsNearBest | None = None
    shortfall: Shortfall | None = None

    @property
    def gap(self) -> float:
        """How much slower the best is than the bound, at most; 0: it is proved."""
        if self.status is Status.OPTIMAL or not self.best:
            return 0.0
        return self.best[0].sequence_s / self.bound_s - 1
