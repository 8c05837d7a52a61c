"""The values that a question leaves to each field of a strategy, and the sizes of axes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from p2smt.cluster.topology import Topology
from p2smt.parallelism.matrices import factorisations
from p2smt.parallelism.placement import IntArray
from p2smt.training.search.question import (
    COPIES,
    LARGEST_CP,
    LARGEST_MICRO_BATCH,
    LARGEST_OF_MIXTURES,
    LARGEST_VPP,
    MIXTURE_SEARCHED,
    STAGES,
    STAGES_OF_MIXTURES,
    Again,
    PlanQuestion,
    modules_in_order,
    value_text,
)
from p2smt.training.strategy import (
    AXES,
    DISPATCHERS,
    OPTIMIZER_BYTES,
    Recompute,
    Strategy,
    key_of,
)
from p2smt.training.validity import FIELDS

_NO_SCORES = "selective saves nothing with flash attention"


@dataclass(frozen=True, slots=True)
class Choices:
    """The values that each field may have: ``largest`` of degrees, ``choices`` of the others.

    Of ``recompute`` these are indices into ``again``, of ``dispatcher`` into ``DISPATCHERS``.
    ``left_out``: what is missing of a field's values, in words, and why.
    """

    largest: Mapping[str, int]
    choices: Mapping[str, tuple[int, ...]]
    left_out: Mapping[str, str]
    again: tuple[Again, ...]
    names: tuple[str, ...]

    @staticmethod
    def of(question: PlanQuestion) -> Choices:
        """The choices of a question, with what it fixes."""
        space, fixed = question.space, dict(question.fixed)
        one = fixed.get("recompute")
        again = _in_order(question.recomputes if one is None else (one,))  # type: ignore[arg-type]
        choices = {
            "sequence_parallel": _switch(space.sequence_parallel),
            "zero": tuple(sorted(set(space.zero or _stages(question)))),
            "recompute": tuple(range(len(again))),
        }
        if question.model.experts:
            names = space.dispatcher or DISPATCHERS
            choices["dispatcher"] = tuple(i for i, name in enumerate(DISPATCHERS) if name in names)
            choices["overlap"] = _switch(space.overlap)
        left_out = {"recompute": _NO_SCORES} if question.flash and space.recompute is None else {}
        for name, value in question.fixed:
            if name != "recompute":
                number = DISPATCHERS.index(value) if isinstance(value, str) else int(value)  # type: ignore[arg-type]
                choices[name] = (number,)
            left_out.pop(name, None)
        return Choices(_largest(question), choices, left_out, again, question.searched)

    def allow(self, name: str, value: int) -> bool:
        """Whether a field may have a value."""
        if name in self.choices:
            return value in self.choices[name]
        return value <= self.largest[name]

    def most(self, name: str) -> int:
        """The largest value that a degree may have."""
        return max(self.choices[name]) if name in self.choices else self.largest[name]

    def least(self, name: str) -> int:
        """The least value that a field may have."""
        return min(self.choices.get(name, (1,)))

    def without(self, name: str, devices: int) -> Choices:
        """The same, a field having any value; no degree of an axis is above ``devices``."""
        every = {"sequence_parallel": (0, 1), "zero": STAGES}
        every |= {"dispatcher": (0, 1), "overlap": (0, 1)} if name in MIXTURE_SEARCHED else {}
        rest = {key: found for key, found in self.choices.items() if key != name}
        freed = {name: every[name]} if name in every else {}
        largest = dict(self.largest) | {name: devices}
        return Choices(largest, rest | freed, self.left_out, self.again, self.names)

    def asked(self, name: str) -> str:
        """What is asked of a field, as briefly as users write it."""
        if name not in self.choices:
            return f"{key_of(name)} at most {self.largest[name]:,}"
        values = self.choices[name]
        words = [str(one) if name in _NUMBERED else self._value(name, one) for one in values]
        return f"{key_of(name)}{'=' if len(values) == 1 else ' of '}{', '.join(words)}"

    def text(self) -> tuple[tuple[str, str], ...]:
        """Each field with its values in words."""
        return tuple((name, self._words(name)) for name in self.names)

    def _words(self, name: str) -> str:
        if name not in self.choices:
            return f"1 to {self.largest[name]}"
        named = ", ".join(self._value(name, value) for value in self.choices[name])
        return named + (f" ({self.left_out[name]})" if name in self.left_out else "")

    def _value(self, name: str, value: int) -> str:
        if name == "recompute":
            return value_text(self.again[value])
        if name == "dispatcher":
            return DISPATCHERS[value]
        return ("no", "yes")[value] if name in _SWITCHES else str(value)


_SWITCHES = ("sequence_parallel", "overlap")
_NUMBERED = (*_SWITCHES, "zero")


def _in_order(every: Sequence[Again]) -> tuple[Again, ...]:
    """Each once: nothing, then modules as they are named, then whole kinds."""
    plain = [one if isinstance(one, Recompute) else modules_in_order(one) for one in every]
    kinds = list(Recompute)

    def key(one: Again) -> tuple[bool, bool, int]:
        kind = isinstance(one, Recompute)
        return one is not Recompute.NONE, kind, kinds.index(one) if kind else 0  # type: ignore[arg-type]

    return tuple(sorted(dict.fromkeys(plain), key=key))


def _switch(allowed: Sequence[bool] | None) -> tuple[int, ...]:
    return tuple(sorted(map(int, set(allowed or (0, 1)))))


def _shards_more_alone(question: PlanQuestion) -> bool:
    """Whether the launcher cannot shard the optimizer without sharding gradients, too."""
    if question.lacks is None:
        return False
    whole, sharded = (question.lacks(Strategy(dp=2, zero=n), question.model) for n in STAGES[:2])
    return not set(sharded) <= set(whole)


def _stages(question: PlanQuestion) -> tuple[int, ...]:
    """Of ZeRO; fewer bytes of the optimizer are of sharded ones alone."""
    few = question.model.experts and not _shards_more_alone(question)
    every = STAGES_OF_MIXTURES if few else STAGES
    return every if question.optimizer_bytes == OPTIMIZER_BYTES else every[1:]


def _largest(question: PlanQuestion) -> dict[str, int]:
    """The largest degrees: those asked for, else the usual ones."""
    space, model, devices = question.space, question.model, question.topology.devices
    usual = {
        "tp": switch_domain(question.topology),
        "pp": model.layers + 2,
        "dp": devices,
        "cp": LARGEST_CP,
        "vpp": LARGEST_VPP,
        "micro_batch": LARGEST_MICRO_BATCH,
    }
    if model.experts:
        usual |= dict(LARGEST_OF_MIXTURES) | {"ep": model.experts.count}
        usual["pp"] += model.mtp
        usual["tp"] = min(usual["tp"], model.heads)
    usual[COPIES] = question.most_copies
    return {name: getattr(space, name, None) or most for name, most in usual.items()}


def switch_domain(topology: Topology) -> int:
    """Devices that the innermost network joins without leaving a node."""
    return topology.devices_under(topology.node_level)


def axis_tuples(question: PlanQuestion, choices: Choices) -> list[tuple[int, ...]]:
    """The sizes of the axes that use all devices and that the choices allow."""
    return [
        sizes
        for sizes in factorisations(question.topology.devices, len(AXES))
        if all(choices.allow(axis, size) for axis, size in zip(AXES, sizes, strict=True))
    ]


def least_values(choices: Choices, tuples: Sequence[tuple[int, ...]]) -> dict[str, IntArray]:
    """Strategies with these axis sizes, what goes with them at its least.

    If they break a rule, so do all with the same sizes (:mod:`p2smt.training.validity`).
    Mixtures ask for sequence parallelism where they have tp.
    """
    values = {axis: np.array([sizes[i] for sizes in tuples]) for i, axis in enumerate(AXES)}
    rest = (name for name in FIELDS if name not in AXES)
    values |= {name: np.full(len(tuples), choices.least(name)) for name in rest}
    if "ep" in choices.names and 1 in choices.choices["sequence_parallel"]:
        values["sequence_parallel"] |= values["tp"] > 1
    return values
