"""One field of a strategy changed, on as many devices: what each change gains.

Data parallelism follows the other degrees, and sequence parallelism ends where tp does: so it is
with one option of a launch script that is changed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from p2smt.errors import InputError
from p2smt.parallelism.matrices import divisors
from p2smt.training.efficiency import TrainingRun
from p2smt.training.prediction import RunEstimate
from p2smt.training.present.priced import Launched
from p2smt.training.search.choices import Choices
from p2smt.training.search.question import PlanQuestion, value_of, value_text
from p2smt.training.strategy import DISPATCHERS, Batch, Recompute, Strategy, key_of, recompute_text

SHOWN = 3
"""So many changes are named."""
_FOLLOWS = "dp"


@dataclass(frozen=True, slots=True)
class SingleChange:
    """A field with its value before and after, and the run with it."""

    field: str
    before: str
    after: str
    found: RunEstimate

    @property
    def text(self) -> str:
        """Such as ``tp 8 -> 4``."""
        return f"{key_of(self.field)} {self.before} -> {self.after}"


def single_changes(
    question: PlanQuestion,
    run: TrainingRun,
    at: Launched,
    batches: tuple[int, int] | None = None,
) -> list[SingleChange]:
    """Every valid strategy that differs in one searched field and fits, the fastest first.

    Args:
        question: its space, what it fixes and its launcher say which values are looked at.
        run: the training with the strategy that is changed.
        at: where and how it is launched; the changed ones are so, too.
        batches: the least and the largest that a strategy may have, of which it has the largest;
            None: that of the run.
    """
    least, most = batches or (run.batch.sequences, run.batch.sequences)
    found = []
    for field, strategy in changed_strategies(question, run.strategy):
        try:
            one = at.changed(with_batch(run, strategy, least, most))
        except InputError:
            continue  # it breaks a rule
        if one.fits and not (question.lacks and question.lacks(strategy, question.model)):
            before, after = (_value(each, field) for each in (run.strategy, strategy))
            found.append(SingleChange(field, before, after, one))
    return sorted(found, key=lambda one: -one.found.tokens_per_s)


def _value(strategy: Strategy, field: str) -> str:
    if field == "recompute":
        return recompute_text(strategy)
    return value_text(value_of(strategy, field))


def with_batch(run: TrainingRun, strategy: Strategy, least: int, most: int) -> TrainingRun:
    """The training by a strategy, with the largest batch of a range that it can have; where it can
    have none, with the largest of all."""
    each = strategy.dp * strategy.micro_batch * (strategy.pp if strategy.vpp > 1 else 1)
    largest = most // each * each
    sequences = largest if largest >= least else most
    return TrainingRun(run.model, Batch(sequences, run.batch.tokens), strategy)


def best_of_fields(changes: Iterable[SingleChange]) -> list[SingleChange]:
    """Of changes in their order the first of each field."""
    first: dict[str, SingleChange] = {}
    for one in changes:
        first.setdefault(one.field, one)
    return list(first.values())


def changed_strategies(question: PlanQuestion, now: Strategy) -> Iterator[tuple[str, Strategy]]:
    """The strategies with another value of one field, most of them valid; names the field."""
    choices = Choices.of(question)
    for field in question.searched:
        for value in _values(question, choices, field, now.devices):
            if field != _FOLLOWS and value != value_of(now, field):
                try:
                    yield field, _changed(now, field, value)
                except InputError:
                    continue  # no strategy has such values together


def _values(question: PlanQuestion, choices: Choices, field: str, devices: int) -> Iterable[Any]:
    """The values of a field that the question looks at."""
    if field == "recompute":
        return choices.again
    numbers = choices.choices.get(field)
    if field == "dispatcher":
        return [DISPATCHERS[at] for at in numbers or ()]
    if field in ("sequence_parallel", "overlap"):
        return [bool(number) for number in numbers or ()]
    if numbers is not None:
        return numbers
    if field in ("vpp", "micro_batch"):
        return range(1, choices.largest[field] + 1)
    whole = {"ep": getattr(question.model.experts, "count", 1)}.get(field, devices)
    return [n for n in divisors(whole) if choices.allow(field, n)]


def _changed(now: Strategy, field: str, value: Any) -> Strategy:
    """The strategy with another value, on as many devices.

    Raises:
        InputError: no number of replicas fills them.
    """
    if field == "recompute":
        modules = value if isinstance(value, tuple) else ()
        kind = Recompute.NONE if modules else value
        return replace(now, recompute=kind, modules=modules, recompute_layers=0)
    changes: dict[str, Any] = {field: value}
    if field == "tp" and value == 1:
        changes["sequence_parallel"] = False
    found = replace(now, **changes, dp=1)
    dp, rest = divmod(now.devices, found.devices)
    if rest or dp < 1:
        rule = f"does not fill {now.devices} devices"
        raise InputError(f"strategy {key_of(field)}={value}", rule)
    return replace(found, dp=dp)
