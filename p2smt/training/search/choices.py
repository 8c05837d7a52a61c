"""The values that a question leaves to each field of a strategy, and the sizes of axes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from p2smt.cluster.topology import Topology
from p2smt.parallelism.matrices import factorisations
from p2smt.parallelism.placement import IntArray
from p2smt.training.formulas.stages import RECOMPUTES
from p2smt.training.search.question import (
    LARGEST_CP,
    LARGEST_MICRO_BATCH,
    LARGEST_VPP,
    SEARCHED,
    STAGES,
    PlanQuestion,
)
from p2smt.training.strategy import AXES, OPTIMIZER_BYTES, Recompute, key_of
from p2smt.training.validity import FIELDS

_NO_SCORES = "selective saves nothing with flash attention"


@dataclass(frozen=True, slots=True)
class Choices:
    """The values that each field may have: ``largest`` of degrees, ``choices`` of the others.

    ``left_out``: what is missing of a field's values, in words, and why.
    """

    largest: Mapping[str, int]
    choices: Mapping[str, tuple[int, ...]]
    left_out: Mapping[str, str]

    @staticmethod
    def of(question: PlanQuestion) -> Choices:
        """The choices of a question, with what it fixes."""
        space, devices = question.space, question.topology.devices
        largest = {
            "tp": space.tp or switch_domain(question.topology),
            "pp": space.pp or question.model.layers + 2,
            "dp": devices,
            "cp": space.cp or LARGEST_CP,
            "vpp": space.vpp or LARGEST_VPP,
            "micro_batch": space.micro_batch or LARGEST_MICRO_BATCH,
        }
        choices = {
            "sequence_parallel": tuple(sorted(map(int, set(space.sequence_parallel or (0, 1))))),
            "zero": tuple(sorted(set(space.zero or _stages(question)))),
            "recompute": tuple(sorted(RECOMPUTES.index(one) for one in set(question.recomputes))),
        }
        left_out = {"recompute": _NO_SCORES} if question.flash and space.recompute is None else {}
        for name, value in question.fixed:
            number = RECOMPUTES.index(value) if isinstance(value, Recompute) else int(value)
            choices[name] = (number,)
            left_out.pop(name, None)
        return Choices(largest, choices, left_out)

    def allow(self, name: str, value: int) -> bool:
        """Whether a field may have a value."""
        if name in self.choices:
            return value in self.choices[name]
        return value <= self.largest[name]

    def least(self, name: str) -> int:
        """The least value that a field may have."""
        return min(self.choices.get(name, (1,)))

    def without(self, name: str, devices: int) -> Choices:
        """The same, a field having any value; no degree of an axis is above ``devices``."""
        every = {"sequence_parallel": (0, 1), "zero": STAGES}
        rest = {key: found for key, found in self.choices.items() if key != name}
        freed = {name: every[name]} if name in every else {}
        return Choices(dict(self.largest) | {name: devices}, rest | freed, self.left_out)

    def asked(self, name: str) -> str:
        """What is asked of a field, as briefly as users write it."""
        if name not in self.choices:
            return f"{key_of(name)} at most {self.largest[name]:,}"
        values = self.choices[name]
        return f"{key_of(name)}{'=' if len(values) == 1 else ' of '}{', '.join(map(str, values))}"

    def text(self) -> tuple[tuple[str, str], ...]:
        """Each field with its values in words."""
        return tuple((name, self._words(name)) for name in SEARCHED)

    def _words(self, name: str) -> str:
        if name not in self.choices:
            return f"1 to {self.largest[name]}"
        named = ", ".join(_value(name, value) for value in self.choices[name])
        return named + (f" ({self.left_out[name]})" if name in self.left_out else "")


def _stages(question: PlanQuestion) -> tuple[int, ...]:
    """Of ZeRO; fewer bytes of the optimizer are of sharded ones alone."""
    return STAGES if question.optimizer_bytes == OPTIMIZER_BYTES else STAGES[1:]


def _value(name: str, value: int) -> str:
    if name == "recompute":
        return RECOMPUTES[value].value
    return ("no", "yes")[value] if name == "sequence_parallel" else str(value)


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
    """
    values = {axis: np.array([sizes[i] for sizes in tuples]) for i, axis in enumerate(AXES)}
    rest = (name for name in FIELDS if name not in AXES)
    return values | {name: np.full(len(tuples), choices.least(name)) for name in rest}
