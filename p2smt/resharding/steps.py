"""The six steps of a redistribution, each with the type before and after it, and its rule.

After arXiv 2112.01075.  ``moved`` digits G are what a step's groups differ in: the members of a
group exchange blocks, all groups at once.  Digits leave the end of a dimension's list only, and
join its end, because blocks must stay contiguous.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import ClassVar

from p2smt.errors import InputError
from p2smt.resharding.states import ArrayState, Frame


class StepKind(Enum):
    """The kinds of steps, by the names that plans have for them."""

    SLICE = "slice"
    ALL_GATHER = "all-gather"
    ALL_TO_ALL = "all-to-all"
    PERMUTE = "permute"
    REDUCE_SCATTER = "reduce-scatter"
    ALL_REDUCE = "all-reduce"


@dataclass(frozen=True, slots=True)
class ArrayStep:
    """A step from one state to another; subclasses say which rule makes it one.

    ``gained[i]`` and ``lost[i]`` are the digits that dimension i has more, or less, afterwards.
    """

    before: ArrayState
    after: ArrayState
    kind: ClassVar[StepKind]

    @property
    def gained(self) -> tuple[tuple[int, ...], ...]:
        """Per dimension the digits that its list has more afterwards, in their order."""
        return tuple(
            tuple(d for d in new if d not in old)
            for old, new in zip(self.before.dims, self.after.dims, strict=True)
        )

    @property
    def lost(self) -> tuple[tuple[int, ...], ...]:
        """Per dimension the digits that its list has less afterwards, in their order."""
        return tuple(
            tuple(d for d in old if d not in new)
            for old, new in zip(self.before.dims, self.after.dims, strict=True)
        )

    @property
    def reduced(self) -> tuple[int, ...]:
        """The partial digits that are reduced."""
        return tuple(d for d in self.before.partial if d not in self.after.partial)

    @property
    def moved(self) -> tuple[int, ...]:
        """The digits in which the members of a group differ, ascending."""
        lists = (*self.gained, *self.lost, self.reduced)
        return tuple(sorted({digit for digits in lists for digit in digits}))

    def groups(self, frame: Frame) -> tuple[tuple[int, ...], ...]:
        """The devices of each group, by mesh position; of a permute and a slice none."""
        if self.kind in (StepKind.PERMUTE, StepKind.SLICE):
            return ()
        found = frame.groups(self.moved, self.before.order).tolist()
        return tuple(map(tuple, found))

    def check(self, frame: Frame) -> None:
        """Raise InputError, naming the rule, unless this is such a step between two fitting states.

        Raises:
            InputError: a rule is broken.
        """
        for state in (self.before, self.after):
            _check_state(self.kind, frame, state)
        if self.kind is not StepKind.PERMUTE and self.before.order != self.after.order:
            raise self._error("only a permute changes the order of devices")
        self._check_rule()
        if frame.nested:
            self._check_nested(frame)

    def _check_rule(self) -> None:
        raise NotImplementedError

    def _check_nested(self, frame: Frame) -> None:
        """Chunks of chunks: a collective over several axes at once would mix them up."""
        if self.kind is StepKind.PERMUTE:
            if any(
                not frame.is_even(i, s)
                for s in (self.before, self.after)
                for i in range(len(s.dims))
            ):
                raise self._error("nested chunks of an uneven dimension are not permuted")
        elif len(self.moved) > 1:
            raise self._error("of nested uneven arrays a step moves one mesh axis at a time")

    def _error(self, rule: str) -> InputError:
        return InputError(f"step {self.kind.value}", rule)

    def _refuse(self, wrong: bool, rule: str) -> None:
        if wrong:
            raise self._error(rule)

    def text(self, frame: Frame) -> str:
        """What it does, for people: ``all-gather tp from dim 1``."""
        raise NotImplementedError


def _check_state(kind: StepKind, frame: Frame, state: ArrayState) -> None:
    used = [digit for dim in state.dims for digit in dim] + list(state.partial)
    given = f"step {kind.value}"
    if len(state.dims) != len(frame.shape):
        raise InputError(given, "its state has not as many dimensions as the array")
    if len(set(used)) != len(used):
        raise InputError(given, "a digit shards, or is partial, once at most")
    if not all(0 <= digit < len(frame.digits) for digit in used):
        raise InputError(given, "its state names a digit that the mesh does not have")
    if list(state.partial) != sorted(state.partial) or not 0 <= state.order < len(frame.orders):
        raise InputError(given, "its state is not written in its one form")
    if not frame.fits(state):
        raise InputError(given, "a dimension does not divide by its shards")


def _appended(old: Sequence[Sequence[int]], new: Sequence[Sequence[int]]) -> bool:
    """Whether each new list is the old one with more digits at its end."""
    return all(tuple(b[: len(a)]) == tuple(a) for a, b in zip(old, new, strict=True))


class LocalSlice(ArrayStep):
    """Each device keeps its part of a block that it has as a whole: nothing is sent."""

    __slots__ = ()
    kind = StepKind.SLICE

    def _check_rule(self) -> None:
        self._refuse(
            not _appended(self.before.dims, self.after.dims), "digits join at the end of a list"
        )
        self._refuse(self.before.partial != self.after.partial, "partial digits stay")
        self._refuse(not self.moved, "moves nothing")

    def text(self, frame: Frame) -> str:
        return f"slice {_by_dim(frame, self.gained, 'dim', ' by ')}"


class AllGather(ArrayStep):
    """The members of a group put their blocks together; each has all of them afterwards."""

    __slots__ = ()
    kind = StepKind.ALL_GATHER

    def _check_rule(self) -> None:
        self._refuse(
            not _appended(self.after.dims, self.before.dims), "digits leave the end of a list"
        )
        self._refuse(self.before.partial != self.after.partial, "partial digits stay")
        self._refuse(not self.moved, "moves nothing")

    def text(self, frame: Frame) -> str:
        return f"all-gather {_moved(frame, self.lost, 'from')}"


class AllToAll(ArrayStep):
    """Digits move from the ends of some dimensions' lists to the ends of others'.

    Every member sends the same amount to every other, since no dimension both loses and gains.
    """

    __slots__ = ()
    kind = StepKind.ALL_TO_ALL

    def _check_rule(self) -> None:
        self._refuse(self.before.partial != self.after.partial, "partial digits stay")
        for old, new in zip(self.before.dims, self.after.dims, strict=True):
            whole = new[: len(old)] == old or old[: len(new)] == new
            self._refuse(not whole, "a dimension only loses digits at its end, or only gains there")
        lost = {digit for digits in self.lost for digit in digits}
        gained = {digit for digits in self.gained for digit in digits}
        self._refuse(lost != gained, "every digit that leaves a dimension joins another")
        self._refuse(not self.moved, "moves nothing")

    def text(self, frame: Frame) -> str:
        takers = [i for i, digits in enumerate(self.gained) if digits]
        lost = _moved(frame, self.lost, "from")
        if len(takers) > 1:
            return f"all-to-all {lost}; {_moved(frame, self.gained, 'to')}"
        joined = self.gained[takers[0]]
        same = joined == tuple(digit for digits in self.lost for digit in digits)
        order = "" if same else f" as {frame.names(joined)}"
        return f"all-to-all {lost} to dim {takers[0]}{order}"


class Permute(ArrayStep):
    """Blocks change places whole: any other type of the same local shape and partial digits.

    Each device receives one block; which of its holders sends it is chosen by hierarchy.
    """

    __slots__ = ()
    kind = StepKind.PERMUTE

    def check(self, frame: Frame) -> None:
        super().check(frame)
        same = frame.local_shape(self.before) == frame.local_shape(self.after)
        self._refuse(not same, "the local shape stays")

    def _check_rule(self) -> None:
        self._refuse(self.before.partial != self.after.partial, "partial digits stay")
        self._refuse(self.before == self.after, "moves nothing")

    @property
    def moved(self) -> tuple[int, ...]:
        """The digits whose place changes, ascending."""
        lists = zip(self.before.dims, self.after.dims, strict=True)
        changed: set[int] = set()
        for old, new in lists:
            changed |= {d for d in (*old, *new) if _place(old, d) != _place(new, d)}
        return tuple(sorted(changed))

    def text(self, frame: Frame) -> str:
        from p2smt.resharding.types import layout_text

        where = layout_text(frame.layout(self.after), frame.mesh)
        order = " on the destination's devices" if self.before.order != self.after.order else ""
        return f"permute to {where}{order}"


class ReduceScatter(ArrayStep):
    """Partial digits are reduced; each member keeps its part of the result."""

    __slots__ = ()
    kind = StepKind.REDUCE_SCATTER

    def _check_rule(self) -> None:
        self._refuse(
            not _appended(self.before.dims, self.after.dims), "digits join at the end of a list"
        )
        gained = {digit for digits in self.gained for digit in digits}
        self._refuse(
            not gained or gained != set(self.reduced), "every reduced digit shards afterwards"
        )
        left = set(self.before.partial) - gained
        self._refuse(set(self.after.partial) != left, "the other partial digits stay")

    def text(self, frame: Frame) -> str:
        return f"reduce-scatter {_moved(frame, self.gained, 'to')}"


class AllReduce(ArrayStep):
    """Partial digits are reduced; each member has the whole result."""

    __slots__ = ()
    kind = StepKind.ALL_REDUCE

    def _check_rule(self) -> None:
        self._refuse(self.before.dims != self.after.dims, "no digit moves")
        self._refuse(not self.reduced, "reduces nothing")
        self._refuse(
            not set(self.after.partial) <= set(self.before.partial), "makes nothing partial"
        )

    def text(self, frame: Frame) -> str:
        return f"all-reduce {frame.names(self.reduced)}"


KINDS: dict[StepKind, type[ArrayStep]] = {
    step.kind: step for step in (LocalSlice, AllGather, AllToAll, Permute, ReduceScatter, AllReduce)
}
"""The class of each kind."""


def _place(digits: tuple[int, ...], digit: int) -> int:
    return digits.index(digit) if digit in digits else -1


def _moved(frame: Frame, lists: Sequence[Sequence[int]], word: str) -> str:
    """``tp from dim 1``, for each dimension with some."""
    some = ((i, digits) for i, digits in enumerate(lists) if digits)
    return ", ".join(f"{frame.names(digits)} {word} dim {i}" for i, digits in some)


def _by_dim(frame: Frame, lists: Sequence[Sequence[int]], word: str, joint: str) -> str:
    """``dim 1 by tp``, for each dimension with some."""
    some = ((i, digits) for i, digits in enumerate(lists) if digits)
    return ", ".join(f"{word} {i}{joint}{frame.names(digits)}" for i, digits in some)


# Bytes that a redistribution needs on a device: of states, and of the steps between them.


@dataclass(frozen=True, slots=True)
class MemoryLimit:
    """A cap in bytes per device.

    ``of_steps``: it bounds input, output and pack buffer of every step; else every state.
    ``keep_source``: the source stays alive beside the steps after the first.

    One array at a time (the theorem of arXiv 2112.01075) is what ``peak_bytes`` counts.  An
    allocator sees a step's input and output together, and the buffer in which blocks are packed
    for sending or unpacked from receiving:

    | step | input | output | pack buffer |
    |---|---|---|---|
    | slice | b | b / G, a copy | none |
    | all-gather | b | b G | b G, where the blocks do not follow each other in the output |
    | all-to-all | b | b | b (nested: the larger of input and output) |
    | permute | b | b | none |
    | reduce-scatter | b | b / G | b, where the parts do not follow each other in the input |
    | all-reduce | b | in place | none |

    A reduce-scatter to nested parts of unequal length always packs, and pads each part to the
    longest: its buffer has G outputs.
    """

    limit_bytes: int
    of_steps: bool = False
    keep_source: bool = False


def step_bytes(frame: Frame, step: ArrayStep) -> int:
    """Input, output and pack buffer of a step."""
    before, after = frame.local_bytes(step.before), frame.local_bytes(step.after)
    return before + _output(step, after) + pack_bytes(frame, step)


def _output(step: ArrayStep, after: int) -> int:
    return 0 if step.kind is StepKind.ALL_REDUCE else after


def pack_bytes(frame: Frame, step: ArrayStep) -> int:
    """The buffer in which blocks are packed, or from which they are unpacked."""
    match step.kind:
        case StepKind.SLICE | StepKind.PERMUTE | StepKind.ALL_REDUCE:
            return 0
        case StepKind.ALL_TO_ALL:
            return max(frame.local_bytes(step.before), frame.local_bytes(step.after))
        case StepKind.ALL_GATHER:
            whole = leads(frame, step.before, step.lost)
            return 0 if whole else frame.local_bytes(step.after)
        case StepKind.REDUCE_SCATTER:
            if _padded(frame, step):
                return frame.ways(step.moved) * frame.local_bytes(step.after)
            whole = leads(frame, step.after, step.gained)
            return 0 if whole else frame.local_bytes(step.before)


def _padded(frame: Frame, step: ArrayStep) -> bool:
    """Whether the parts of a reduce-scatter may differ in length: only nested ones do."""
    cut = (i for i, digits in enumerate(step.gained) if digits)
    return any(not frame.is_even(i, step.after) for i in cut)


def leads(frame: Frame, small: ArrayState, lists: Sequence[Sequence[int]]) -> bool:
    """Whether the blocks of a group follow each other in memory: only the leading dimension is cut.

    ``small`` is the state of the smaller blocks.  The group's members must have the order of the
    blocks, too: that of their digits, ascending.
    """
    cut = [i for i, digits in enumerate(lists) if digits]
    if len(cut) != 1 or list(lists[cut[0]]) != sorted(lists[cut[0]]):
        return False
    return math.prod(frame.local_shape(small)[: cut[0]]) == 1


def peak_bytes(frame: Frame, states: Sequence[ArrayState]) -> int:
    """The largest single state."""
    return max(map(frame.local_bytes, states))


def peak_step_bytes(frame: Frame, steps: Sequence[ArrayStep], keep_source: bool = False) -> int:
    """The largest of the steps' bytes; without steps those of the one state are :func:`peak_bytes`.

    ``keep_source``: beside each step after the first stands the source, and a first all-reduce
    does not overwrite it.
    """
    every = (needed_bytes(frame, steps, number, keep_source) for number in range(len(steps)))
    return max(every, default=0)


def needed_bytes(
    frame: Frame, steps: Sequence[ArrayStep], number: int, keep_source: bool = False
) -> int:
    """Bytes of a step of a plan, counted from 0; with ``keep_source`` the kept one's among them."""
    own = step_bytes(frame, steps[number])
    return own + kept_bytes(frame, steps, number) if keep_source else own


def kept_bytes(frame: Frame, steps: Sequence[ArrayStep], number: int) -> int:
    """What keeping the source adds to a step, counted from 0."""
    first = steps[0]
    if number == 0 and first.kind is not StepKind.ALL_REDUCE:
        return 0
    return frame.local_bytes(first.before)


def within(
    frame: Frame, source: ArrayState, steps: Sequence[ArrayStep], limit: MemoryLimit
) -> bool:
    """Whether a plan keeps to a cap."""
    if limit.of_steps:
        peak = peak_step_bytes(frame, steps, limit.keep_source)
        return max(peak, frame.local_bytes(source)) <= limit.limit_bytes
    return peak_bytes(frame, [source, *(step.after for step in steps)]) <= limit.limit_bytes
