"""Random frames on random clusters, random states of them, and random steps from a state."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from hypothesis import strategies as st

from p2smt.cluster.topology import Topology
from p2smt.resharding.states import ArrayState, Frame
from p2smt.resharding.steps import KINDS, ArrayStep, StepKind
from p2smt.resharding.types import ElementType, Mesh, SubAxis
from tests.strategies.draws import shuffles
from tests.strategies.libraries import run_by
from tests.strategies.topologies import topologies

_LEVELS = ((2, 4), (4, 2), (2, 2, 2), (3, 4), (2, 3), (6,), (2, 6), (2, 2, 4))
Dims = list[tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class ArrayScene:
    """A cluster, a frame on some of its devices, and a source of states and steps."""

    topology: Topology
    frame: Frame
    shuffle: Random


@st.composite
def array_scenes(draw: st.DrawFn) -> ArrayScene:
    """With and without a library; often all devices in order, else some in any order."""
    sizes = draw(st.sampled_from(_LEVELS))
    topology = draw(topologies(sizes))
    if draw(st.booleans()):
        topology = draw(run_by(topology))
    shuffle = draw(shuffles())
    factors = _primes(math.prod(sizes))
    while len(factors) > 1 and shuffle.random() < 0.2:
        factors.pop(shuffle.randrange(len(factors)))
    return ArrayScene(topology, random_frame(shuffle, factors, topology.devices), shuffle)


def random_frame(shuffle: Random, factors: list[int], devices: int) -> Frame:
    """A frame with digits of these sizes, of one or two axes, on some of so many devices."""
    factors, cut = shuffle.sample(factors, len(factors)), shuffle.randint(0, len(factors))
    split = [part for part in (factors[:cut], factors[cut:]) if part]
    count = math.prod(factors)
    mesh = Mesh.of([(f"a{i}", math.prod(part)) for i, part in enumerate(split)])
    digits = [digit for i, part in enumerate(split) for digit in _digits(i, part)]
    every = shuffle.sample(range(devices), count)
    order = tuple(sorted(every) if shuffle.random() < 0.7 else every)
    other = tuple(shuffle.sample(order, count)) if shuffle.random() < 0.3 else order
    shape = tuple(count * shuffle.choice([1, 5, 1000]) for _ in range(shuffle.randint(1, 3)))
    orders = tuple(dict.fromkeys((order, other)))
    return Frame(mesh, tuple(digits), orders, shape, ElementType.F32)


def _digits(axis: int, factors: list[int]) -> list[SubAxis]:
    return [SubAxis(axis, math.prod(factors[:i]), size) for i, size in enumerate(factors)]


def _primes(number: int) -> list[int]:
    found = []
    for prime in (2, 3, 5, 7):
        while number % prime == 0:
            found.append(prime)
            number //= prime
    return found


def random_state(
    shuffle: Random, frame: Frame, partial: tuple[int, ...] | None = None
) -> ArrayState:
    """Any state; ``partial``: only these digits may be partial."""
    digits = list(range(len(frame.digits)))
    may = set(digits if partial is None else partial)
    dims: list[list[int]] = [[] for _ in frame.shape]
    kept = []
    for digit in shuffle.sample(digits, len(digits)):
        if digit in may and shuffle.random() < 0.4:
            kept.append(digit)
        elif shuffle.random() < 0.8:
            shuffle.choice(dims).append(digit)
    order = shuffle.randrange(len(frame.orders))
    return ArrayState(tuple(map(tuple, dims)), tuple(sorted(kept)), order)


def random_step(
    shuffle: Random, frame: Frame, state: ArrayState, kinds: Sequence[StepKind] = tuple(StepKind)
) -> ArrayStep | None:
    """A step of one of these kinds that the state allows, if any."""
    for kind in shuffle.sample(kinds, len(kinds)):
        after = _after(shuffle, frame, state, kind)
        if after is not None and after != state:
            return KINDS[kind](state, after)
    return None


def _after(shuffle: Random, frame: Frame, state: ArrayState, kind: StepKind) -> ArrayState | None:
    match kind:
        case StepKind.SLICE:
            free = set(range(len(frame.digits))) - state.sharding - set(state.partial)
            return _joined(shuffle, state, _some(shuffle, sorted(free)))
        case StepKind.ALL_GATHER:
            cuts = [shuffle.randint(0, len(dim)) for dim in state.dims]
            dims = tuple(dim[:cut] for dim, cut in zip(state.dims, cuts, strict=True))
            return ArrayState(dims, state.partial, state.order)
        case StepKind.ALL_TO_ALL:
            return _exchanged(shuffle, state)
        case StepKind.PERMUTE:
            return random_permute(shuffle, frame, state)
        case StepKind.REDUCE_SCATTER:
            return _joined(shuffle, state, _some(shuffle, state.partial))
        case StepKind.ALL_REDUCE:
            gone = _some(shuffle, state.partial)
            kept = tuple(digit for digit in state.partial if digit not in gone)
            return ArrayState(state.dims, kept, state.order)


def random_permute(shuffle: Random, frame: Frame, state: ArrayState) -> ArrayState:
    """Digits of one size change places, then each dimension's order and perhaps the devices'."""
    sizes, partial = frame.sizes, set(state.partial)
    renamed: dict[int, int] = {}
    for size in set(sizes):
        same = [d for d in range(len(sizes)) if sizes[d] == size and d not in partial]
        renamed |= dict(zip(same, shuffle.sample(same, len(same)), strict=True))
    moved = [[renamed[digit] for digit in dim] for dim in state.dims]
    dims = tuple(tuple(shuffle.sample(dim, len(dim))) for dim in moved)
    return ArrayState(dims, state.partial, shuffle.randrange(len(frame.orders)))


def _some(shuffle: Random, digits: list[int] | tuple[int, ...]) -> list[int]:
    return shuffle.sample(list(digits), shuffle.randint(1, len(digits))) if digits else []


def _joined(shuffle: Random, state: ArrayState, digits: list[int]) -> ArrayState:
    """The digits join the ends of dimensions."""
    dims = [list(dim) for dim in state.dims]
    for digit in digits:
        shuffle.choice(dims).append(digit)
    kept = tuple(digit for digit in state.partial if digit not in digits)
    return ArrayState(tuple(map(tuple, dims)), kept, state.order)


def _exchanged(shuffle: Random, state: ArrayState) -> ArrayState | None:
    """Ends of some dimensions go to the others."""
    places = shuffle.sample(range(len(state.dims)), len(state.dims))
    cut = shuffle.randint(0, len(places))
    losers, takers = places[:cut], places[cut:]
    dims, moved = [list(dim) for dim in state.dims], []
    for place in losers:
        keep = shuffle.randint(0, len(dims[place]))
        moved += dims[place][keep:]
        del dims[place][keep:]
    if not moved or not takers:
        return None
    for digit in shuffle.sample(moved, len(moved)):
        dims[shuffle.choice(takers)].append(digit)
    return ArrayState(tuple(map(tuple, dims)), state.partial, state.order)
