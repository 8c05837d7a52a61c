"""Plain enumeration of strategies and placements, each predicted by itself."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace

from p2smt.parallelism.placement import Matrix, Placement
from p2smt.training.efficiency import TrainingRun
from p2smt.training.iteration import predict, predict_with
from p2smt.training.search.question import PlanQuestion
from p2smt.training.strategy import Strategy
from tests.oracles.strategies import all_strategies, placements_of


@dataclass(frozen=True)
class Enumerated:
    """Every strategy that fits with its least time and a matrix of it; and the counts of all."""

    times: dict[Strategy, tuple[float, Matrix]]
    strategies: int
    too_large: int
    lacking: int
    unplaced: int
    placements: int
    memory: dict[Strategy, float]

    @property
    def best_s(self) -> float:
        return min(seconds for seconds, _ in self.times.values())

    def near(self, within: float) -> set[Strategy]:
        """Strategies within so much of the best one, to rounding."""
        limit_s = self.best_s * (1 + within) * (1 + 1e-9)
        return {strategy for strategy, (seconds, _) in self.times.items() if seconds <= limit_s}

    def equal(self, tie: float) -> list[list[Strategy]]:
        """Strategies that count as equal together: those within a tie of the fastest left."""
        left, found = sorted(self.times, key=lambda one: self.times[one][0]), []
        while left:
            limit_s = self.times[left[0]][0] * (1 + max(tie, 1e-9))
            found.append([one for one in left if self.times[one][0] <= limit_s])
            left = left[len(found[-1]) :]
        return found

    def alike(self, strategy: Strategy) -> set[Strategy]:
        """Others that differ in dp, cp and micro-batch only and take the same time."""
        mine = self.times[strategy][0]
        return {
            one
            for one, (seconds, _) in self.times.items()
            if one != strategy
            and abs(seconds - mine) <= 1e-6 * mine
            and replace(one, dp=strategy.dp, cp=strategy.cp, micro_batch=strategy.micro_batch)
            == strategy
        }


def enumerated(question: PlanQuestion, most_tp: int) -> Enumerated:
    """All that there is, one after the other."""
    times: dict[Strategy, tuple[float, Matrix]] = {}
    memory: dict[Strategy, float] = {}
    capacity = question.capacity_bytes
    strategies = too_large = lacking = unplaced = placements = 0
    for strategy in all_strategies(question, most_tp):
        strategies += 1
        run = TrainingRun(question.model, question.batch, strategy)
        matrices = placements_of(question, strategy, question.rules)
        placements += len(matrices)
        device, free = question.topology.known_device, defaultdict[str, float](float)
        memory[strategy] = predict_with(run, device, question.efficiency, free).memory.total
        if memory[strategy] > capacity:
            too_large += 1
            continue
        if not matrices:
            unplaced += 1
            continue
        if question.lacks is not None and question.lacks(strategy, question.model):
            lacking += 1
            continue
        predicted = (
            (predict(run, question.topology, question.efficiency, Placement(matrix)), matrix)
            for matrix in matrices
        )
        times[strategy] = min((found.time.iteration_s, matrix) for found, matrix in predicted)
    return Enumerated(times, strategies, too_large, lacking, unplaced, placements, memory)
