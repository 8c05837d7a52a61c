"""Every strategy of a question, as columns: degrees first, then what goes with them.

A strategy that another one equals in all but name is left out: sequence parallelism needs tp,
stages of ZeRO above 0 need something to shard over.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from p2smt.cluster.topology import Topology
from p2smt.errors import InputError
from p2smt.parallelism.placement import BoolArray, IntArray
from p2smt.workload.formulas.columns import RECOMPUTES, StrategyColumns
from p2smt.workload.search.pricing.matrices import divisors, factorisations
from p2smt.workload.search.question import SEARCHED, PlanQuestion
from p2smt.workload.strategy import AXES, Recompute, Strategy
from p2smt.workload.strategy_text import key_of
from p2smt.workload.validity import FIELDS, obey, violations

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
        longest = question.model.layers + 2
        largest = {
            "tp": switch_domain(question.topology) if space.tp is None else space.tp,
            "pp": longest if space.pp is None else space.pp,
            "dp": devices,
            "cp": space.cp,
            "vpp": longest if space.vpp is None else space.vpp,
            "micro_batch": space.micro_batch,
        }
        choices = {
            "sequence_parallel": tuple(sorted(map(int, set(space.sequence_parallel)))),
            "zero": tuple(sorted(set(space.zero))),
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

    def text(self) -> tuple[tuple[str, str], ...]:
        """Each field with its values in words."""
        return tuple((name, self._words(name)) for name in SEARCHED)

    def _words(self, name: str) -> str:
        if name not in self.choices:
            return f"1 to {self.largest[name]}"
        named = ", ".join(_value(name, value) for value in self.choices[name])
        return named + (f" ({self.left_out[name]})" if name in self.left_out else "")


def _value(name: str, value: int) -> str:
    if name == "recompute":
        return RECOMPUTES[value].value
    return ("no", "yes")[value] if name == "sequence_parallel" else str(value)


def switch_domain(topology: Topology) -> int:
    """Devices that the innermost network joins without leaving a node."""
    return topology.devices_under(topology.node_level)


def space_of(question: PlanQuestion, choices: Choices) -> StrategyColumns:
    """Every valid strategy of a question: in order of the axis sizes, then of the other fields.

    Raises:
        InputError: there is none; names a rule that excludes all, if one does.
    """
    tuples = _axis_tuples(question, choices)
    blocks = [_block(question, choices, sizes) for sizes in tuples]
    if not blocks:
        raise _none(question, choices)
    values = {
        name: np.concatenate([block[at] for block in blocks]) for at, name in enumerate(SEARCHED)
    }
    kept = obey(question.model, question.batch, values, question.topology.devices)
    kept &= _not_a_name(values, choices)
    if not kept.any():
        raise _none(question, choices)
    return _columns(question, {name: column[kept] for name, column in values.items()})


def _columns(question: PlanQuestion, values: Mapping[str, IntArray]) -> StrategyColumns:
    many = len(values["tp"])
    return StrategyColumns(
        tp=values["tp"],
        pp=values["pp"],
        dp=values["dp"],
        cp=values["cp"],
        vpp=values["vpp"],
        micro_batch=values["micro_batch"],
        sequence_parallel=values["sequence_parallel"] > 0,
        zero=values["zero"],
        recompute=values["recompute"],
        flash=np.full(many, question.flash),
        dtype=np.full(many, question.dtype),
    )


def _axis_tuples(question: PlanQuestion, choices: Choices) -> list[tuple[int, ...]]:
    """The sizes of the axes that a valid strategy may have: those that are valid by themselves."""
    found = [
        sizes
        for sizes in factorisations(question.topology.devices, len(AXES))
        if all(choices.allow(axis, size) for axis, size in zip(AXES, sizes, strict=True))
    ]
    values = {axis: np.array([sizes[i] for sizes in found]) for i, axis in enumerate(AXES)}
    one = np.ones(len(found), dtype=np.int64)
    values |= {"vpp": one, "micro_batch": one, "sequence_parallel": 0 * one}
    kept = obey(question.model, question.batch, values, question.topology.devices)
    return [sizes for sizes, keep in zip(found, kept, strict=True) if keep]


def _block(question: PlanQuestion, choices: Choices, sizes: Sequence[int]) -> tuple[IntArray, ...]:
    """The columns of all strategies with these axis sizes, before the rules."""
    degrees = dict(zip(AXES, sizes, strict=True))
    layers, most = question.model.layers, question.batch.sequences // degrees["dp"]
    chunks = {n // degrees["pp"] for n in divisors(layers) + divisors(layers + 2)}
    vpp = [n for n in sorted(chunks) if n > 0 and choices.allow("vpp", n)]
    micro = [n for n in divisors(most) if choices.allow("micro_batch", n)]
    given = {name: [value] for name, value in degrees.items()}
    given |= {"vpp": vpp, "micro_batch": micro}
    given |= {name: list(choices.choices[name]) for name in ("sequence_parallel", "zero")}
    given["recompute"] = list(choices.choices["recompute"])
    grid = np.meshgrid(*(np.array(given[name]) for name in SEARCHED), indexing="ij")
    return tuple(axis.ravel().astype(np.int64) for axis in grid)


def _not_a_name(values: Mapping[str, IntArray], choices: Choices) -> BoolArray:
    """Which strategies are no other ones under another name: switches need something to do.

    Where a switch that has nothing to do is fixed, it stays.
    """
    alone = values["dp"] * values["cp"] == 1
    least_zero, least_sp = choices.choices["zero"][0], choices.choices["sequence_parallel"][0]
    idle_zero = alone & (values["zero"] > least_zero)
    idle_sp = (values["tp"] == 1) & (values["sequence_parallel"] > least_sp)
    return np.asarray(~idle_zero & ~idle_sp, dtype=np.bool_)


def _none(question: PlanQuestion, choices: Choices) -> InputError:
    """Why no strategy is valid: a rule that the fixed values break by themselves, if one does."""
    values = {name: choices.choices.get(name, ()) for name, _ in question.fixed}
    fixed = {name: found[0] for name, found in values.items() if name in FIELDS}
    devices = question.topology.devices
    product = prod(fixed.get(axis, 1) for axis in AXES)
    given = ", ".join(f"{key_of(name)}={n}" for name, n in fixed.items()) or "the space"
    if product < 1 or devices % product:
        return InputError(given, f"the degrees do not divide the {devices:,} devices")
    least = {"tp": 1, "pp": 1, "dp": 1, "cp": 1, "vpp": 1, "micro_batch": 1} | fixed
    bare = Strategy(
        tp=least["tp"],
        pp=least["pp"],
        dp=least["dp"],
        cp=least["cp"],
        vpp=least["vpp"],
        micro_batch=least["micro_batch"],
        sequence_parallel=bool(least.get("sequence_parallel", 0)),
    )
    others = ["devices"] if "pp" in fixed else ["devices", "interleaving"]
    for broken in violations(question.model, question.batch, bare, devices):
        if broken.name not in others:  # of those larger degrees may help
            return broken.error()
    texts = (pair for pair in choices.text() if pair[0] not in fixed)
    space = ", ".join(f"{key_of(name)} {words}" for name, words in texts)
    rule = f"no strategy is valid on {devices:,} devices with {space}"
    remedy = "fix less, allow larger degrees, or take another batch or number of devices"
    return InputError(given, rule, remedy)
