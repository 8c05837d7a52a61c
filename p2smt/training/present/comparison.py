"""A training as it is launched now beside the best one: what of the gain is the order of ranks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from p2smt.errors import InputError
from p2smt.result import SAME, SearchLimits, Status
from p2smt.training.efficiency import TrainingRun
from p2smt.training.gain import RateGain, rate_gain
from p2smt.training.iteration import estimate_range
from p2smt.training.measured.errors import iteration_range
from p2smt.training.prediction import BestRun, RunEstimate
from p2smt.training.present.best_order import best_hosts, best_placement
from p2smt.training.present.changes import SingleChange, single_changes
from p2smt.training.present.priced import Launched
from p2smt.training.search.question import PlanQuestion
from p2smt.training.strategy import RARE_FIELDS, Strategy, key_of


@dataclass(frozen=True, slots=True)
class NearMeasured:
    """A strategy as it is planned, and the measured run by ``name`` that it is nearest to."""

    found: RunEstimate
    name: str
    distance: float


@dataclass(frozen=True, slots=True)
class PresentRun:
    """What somebody runs, where and how it is ``launched``.

    ``batches``: the least and the largest that strategies with one field changed may have; None:
    that of the run.  ``assumed``: what its text leaves open, with the values that it has then.

    Raises:
        InputError: it is none of these devices: it does not fill them, or there are not so many.
    """

    run: TrainingRun
    launched: Launched
    batches: tuple[int, int] | None = None
    assumed: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        topology, hosts = self.launched.topology, self.launched.hosts
        each = topology.devices_under(topology.node_level)
        most = topology.devices if hosts is None else len(hosts) * each
        needed = self.run.strategy.devices
        self.launched.order.check(self.run.strategy)
        if needed == most or (hosts is not None and needed < most and needed % each == 0):
            return
        rule = f"takes {needed:,} devices, and there are {most:,}"
        if hosts is not None and needed < most:
            rule = f"takes {needed:,} devices, which are no whole hosts of {each}"
        raise InputError("--compare", rule, "change a degree, or leave dp out: it follows")


@dataclass(frozen=True, slots=True)
class RunComparison:
    """What somebody runs, the same in its best order, and the best.

    ``yours`` None: it cannot run, and ``broken`` says the rule.  ``planned``: the best that was
    searched for; None: there is none.  ``near``: the one of those as good as the best that is
    nearest to a measured run.  ``changes``: single ones, the fastest first: those that are faster
    than yours, or, where yours cannot run, those that can.  ``assumed``: as of the present run.
    """

    run: TrainingRun
    launched: Launched
    yours: RunEstimate | None
    broken: str
    ordered: BestRun
    planned: RunEstimate | None
    near: NearMeasured | None
    changes: tuple[SingleChange, ...]
    assumed: tuple[str, ...] = ()

    @property
    def best(self) -> RunEstimate | None:
        """The best that is known: the search may not look at strategies like yours."""
        return (self.ordered.found or self.yours) if self.beyond else self.planned

    @property
    def beyond(self) -> bool:
        """Whether yours in its best order is faster than all that was searched."""
        mine = self.ordered.found or self.yours
        if mine is None or not mine.fits:
            return False
        return self.planned is None or mine.tokens_per_s > self.planned.tokens_per_s * (1 + SAME)

    @property
    def runs(self) -> bool:
        """Whether yours can run: it is valid and fits into memory."""
        return self.yours is not None and self.yours.fits

    @property
    def gain(self) -> RateGain | None:
        """Of the best over yours, in tokens a second; None: one of them has no time."""
        if self.yours is None or self.best is None:
            return None
        return rate_gain(self.yours, self.best)

    @property
    def order_gain(self) -> RateGain | None:
        """What of it the order of ranks gains alone; None: it was not searched for."""
        if self.yours is None or self.ordered.found is None:
            return None
        return rate_gain(self.yours, self.ordered.found)

    @property
    def degrees_gain(self) -> float | None:
        """The rest of the gain, as a part of what yours trains on: both sum up."""
        whole, order = self.gain, self.order_gain
        return None if whole is None or order is None else whole.gain - order.gain

    @property
    def device_gain(self) -> float | None:
        """The gain in tokens a second of a device; None: the best has as many devices as yours, or
        one of them has no time."""
        whole, best = self.gain, self.best
        if whole is None or best is None:
            return None
        mine, then = self.run.strategy.devices, best.run.strategy.devices
        return None if mine == then else (1 + whole.gain) * mine / then - 1

    @property
    def inside_error(self) -> bool:
        """Whether yours takes no longer than the best may take by the error of the model."""
        if self.yours is None or self.best is None:
            return False
        within = iteration_range(self.best, estimate_range(self.best))
        slowest_s = within.high_s / self.best.prediction.tokens
        return self.yours.iteration_s / self.yours.prediction.tokens <= slowest_s * (1 + SAME)

    @property
    def apart(self) -> tuple[str, ...]:
        """Fields of yours that the search does not choose and that the best has otherwise."""
        if self.planned is None:
            return ()
        return tuple(_apart(self.run.strategy, self.planned.run.strategy))


def _apart(yours: Strategy, best: Strategy) -> Iterator[str]:
    for name in ("split", "flash", "dtype", "dropout", "graphs", "fp8_params", *RARE_FIELDS):
        if getattr(yours, name) != getattr(best, name):
            yield key_of(name) if name not in ("recompute_layers", "mtp_chunk") else name


def compare_with(
    question: PlanQuestion,
    present: PresentRun,
    planned: RunEstimate | None,
    near: NearMeasured | None = None,
    limits: SearchLimits | None = None,
) -> RunComparison:
    """What somebody runs beside the best that was planned.

    Args:
        question: what was asked for the best.
        present: its batch may be another than that of the best.
        planned: the best; None: none was found.
        near: as good as the best, and nearest to a measured run.
        limits: of the search for its best order; None: on hosts a minute.
    """
    run, launched = present.run, present.launched
    yours, broken = _priced(run, launched)
    ordered = BestRun(None, Status.UNKNOWN, broken)
    if yours is not None:
        search = best_placement if launched.hosts is None else best_hosts
        ordered = search(question, yours, limits)
    changes = single_changes(question, run, launched, present.batches)
    if yours is not None and yours.fits:
        least = yours.tokens_per_s * (1 + SAME)
        changes = [one for one in changes if one.found.tokens_per_s > least]
    found = (run, launched, yours, broken, ordered, planned, near, tuple(changes))
    return RunComparison(*found, present.assumed)


def _priced(run: TrainingRun, launched: Launched) -> tuple[RunEstimate | None, str]:
    """Yours, or the rule that it breaks in words."""
    try:
        return launched.price(run), ""
    except InputError as error:
        return None, str(error)
