"""Why no strategy is valid, or none can be placed: the fewest rules that exclude all, and what is
asked that they exclude.

Only axis sizes are looked at, what goes with them at its least: the rules are such that whatever
obeys one obeys it also then (:mod:`p2smt.training.validity`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations

import numpy as np

from p2smt.errors import InputError
from p2smt.parallelism.placement import AxisRule, BoolArray, FixedEntry, IntArray
from p2smt.plans.restrictions import rule_text
from p2smt.training.megatron_rules import GIVEN_RULES
from p2smt.training.search.candidates import placement_counts
from p2smt.training.search.choices import Choices, axis_tuples, least_values
from p2smt.training.search.copies import joined_sizes
from p2smt.training.search.question import COPIES, SEARCHED, PlanQuestion
from p2smt.training.strategy import AXES
from p2smt.training.validity import (
    FIELDS,
    RULES,
    FieldValues,
    ValidityRule,
    broken_rules,
    broken_switch_rules,
    sentence_of,
    switch_rules,
)

_DEVICES = RULES[0]
"""The rule that holds for all sizes that are looked at, if there are any."""


def contradiction(
    question: PlanQuestion, choices: Choices, batches: tuple[int, int] | None = None
) -> InputError:
    """What a question asks that the rules exclude together; the rules leave it no strategy.

    Given is the least of it: with any of it dropped the rules that are named leave something.
    ``batches``: the least and the largest that it may have; None: its own alone.
    """
    least, most = batches or (question.batch.sequences,) * 2
    every = range(least, most + 1)
    if not _given(question, "pp"):  # the usual limit is what the rule on layers says
        choices = choices.without("pp", question.topology.devices)
    rules = _excluding(question, choices, every)
    needed = _needed(question, choices, rules, every)
    if any(name in AXES and not _about(name, rules) for name in needed):
        rules = (_DEVICES, *rules)
    batch, devices = question.batch, question.topology.devices
    many = f"{most}" if least == most else f"{least:,} to {most:,}"
    model = question.model
    said = ", and ".join(sentence_of(rule, model, batch, devices, many) for rule in rules)
    named = f"rule{'s' if len(rules) > 1 else ''} {', '.join(rule.name for rule in rules)}"
    asked = ", ".join(choices.asked(name) for name in SEARCHED if name in needed)
    rule = f"no strategy is valid on {devices:,} devices: {said} ({named})"
    if asked:
        return InputError(asked, rule, "change one of these")
    many = f"{most:,}" if least == most else many
    given = f"{model.name} with {many} sequences of {batch.tokens:,} tokens"
    return InputError(given, rule, "take another batch, model or number of devices")


def switch_contradiction(
    question: PlanQuestion, choices: Choices, values: FieldValues
) -> InputError:
    """The fewest rules on what goes with degrees that all strategies break one of, and what is
    asked of their fields; ``values`` are of the strategies that obey all other rules."""
    every = switch_rules(question.model)
    broken = broken_switch_rules(question.model, question.batch, values)
    rules = range(len(every))
    sets = (found for many in rules for found in combinations(rules, many + 1))
    found = next((one for one in sets if np.any([broken[at] for at in one], axis=0).all()), ())
    chosen = [every[at] for at in found]
    fields = {name for rule in chosen for name in rule.fields}
    asked = [name for name in question.searched if name in fields and _given(question, name)]
    devices = question.topology.devices
    said = ", and ".join(_said(rule, question, devices) for rule in chosen)
    named = f"rule{'s' if len(chosen) > 1 else ''} {', '.join(rule.name for rule in chosen)}"
    given = ", ".join(choices.asked(name) for name in asked) or question.model.name[:40]
    rule = f"no strategy is valid on {devices:,} devices: {said} ({named})"
    return InputError(given, rule, "change one of these" if asked else chosen[0].remedy)


def placing_rules(question: PlanQuestion, sizes: IntArray) -> str:
    """The fewest rules on placements under which axes of none of these sizes have one, in words.

    ``sizes``: of the rows of its placements each; none of these has a placement under all rules.
    """
    needed = question.rules
    for rule in question.rules:
        rest = tuple(one for one in needed if one is not rule)
        if not placement_counts(replace(question, rules=rest), sizes).any():
            needed = rest
    joined = np.array([joined_sizes(question, one)[0] for one in sizes.tolist()])
    return ", ".join(_placing(rule, question, joined[:, rule.axis]) for rule in needed)


def _placing(rule: AxisRule | FixedEntry, question: PlanQuestion, sizes: IntArray) -> str:
    """A rule, and what of the level or of the axis' sizes is against it."""
    level = question.topology.levels[rule.level]
    text = rule_text(rule, question.axes, question.topology.names)
    if isinstance(rule, FixedEntry) and level.size % rule.value:
        return f"{text} ({rule.value} must divide the {level.size} of {level.name})"
    least, most = int(sizes.min()), int(sizes.max())
    is_size = f"is {most}" if least == most else f"is at most {most}"
    return f"{text} ({question.axes[rule.axis]} {is_size})"


def copies_contradiction(question: PlanQuestion, asked: Sequence[int]) -> InputError:
    """No strategy can have as many copies of shards as are asked for."""
    rules = [rule for rule in GIVEN_RULES if rule.name.startswith(COPIES)]
    said = "it must divide dp, and of a mixture dp cp tp / (ep etp), ZeRO must shard something "
    said += "(zero=1 to 3), and shards must lie on 2 ranks or more"
    named = ", ".join(rule.name for rule in rules)
    rule = f"no strategy is valid on {question.topology.devices:,} devices: {said} (rules {named})"
    given = (
        f"{COPIES} of {', '.join(map(str, asked))}" if len(asked) > 1 else f"{COPIES}={asked[0]}"
    )
    return InputError(given, rule, "take fewer copies, or drop it")


def _said(rule: ValidityRule, question: PlanQuestion, devices: int) -> str:
    """A rule in words that stand alone."""
    sentence = sentence_of(rule, question.model, question.batch, devices)
    return f"{rule.name} {sentence}" if sentence.startswith("must") else sentence


def _needed(
    question: PlanQuestion,
    choices: Choices,
    rules: Sequence[ValidityRule],
    batches: Sequence[int],
) -> frozenset[str]:
    """Fields of which something is asked so that the rules leave nothing, fixed ones above all."""
    needed, left = set(), choices
    for name in sorted(FIELDS, key=lambda name: _given(question, name)):
        without = left.without(name, question.topology.devices)
        if _exclude(_broken(question, without, batches), rules):
            left = without
        else:
            needed.add(name)
    return frozenset(needed)


def _given(question: PlanQuestion, name: str) -> int:
    """2: the field is fixed; 1: it is limited; 0: it is as usual."""
    if name in dict(question.fixed):
        return 2
    return int(getattr(question.space, name, None) is not None)


def _about(name: str, rules: Sequence[ValidityRule]) -> bool:
    return any(name in rule.fields for rule in rules)


def _excluding(
    question: PlanQuestion, choices: Choices, batches: Sequence[int]
) -> tuple[ValidityRule, ...]:
    """The fewest rules that each strategy breaks one of, with each batch; of several sets the first
    of the table."""
    broken = _broken(question, choices, batches)
    sets = (found for many in range(1, len(RULES)) for found in combinations(RULES, many))
    return next((found for found in sets if _exclude(broken, found)), RULES)


def _broken(
    question: PlanQuestion, choices: Choices, batches: Sequence[int]
) -> Mapping[str, BoolArray]:
    """Which sizes of the axes, with each batch, break which rule; where none use all devices, all
    that there are."""
    tuples = axis_tuples(question, choices)
    if not tuples:
        return {rule.name: np.array([rule is _DEVICES]) for rule in RULES}
    least, devices = least_values(choices, tuples), question.topology.devices
    each = [
        broken_rules(question.model, replace(question.batch, sequences=many), least, devices)
        for many in batches
    ]
    return {rule.name: np.concatenate([one[rule.name] for one in each]) for rule in RULES}


def _exclude(broken: Mapping[str, BoolArray], rules: Sequence[ValidityRule]) -> bool:
    """Whether all break one of the rules."""
    return bool(np.any([broken[rule.name] for rule in rules], axis=0).all())
