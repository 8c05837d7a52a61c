"""Brute force for redistributions: every state of a small frame, every legal step, Dijkstra.

Which steps there are is asked of each step's own rule, for every pair of states and every kind;
what they cost is given as a function.  Nothing is pruned but by the cap on memory.  For frames of
up to about 200 states: the steps of a frame are listed once.
"""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Callable, Iterator
from functools import lru_cache

from p2smt.errors import InputError
from p2smt.resharding.endpoints import Ends
from p2smt.resharding.states import ArrayState, Frame
from p2smt.resharding.steps import KINDS, ArrayStep, MemoryLimit, StepKind, step_bytes

Price = Callable[[ArrayStep], float]
"""Seconds of a step, such as ``lambda step: prices.step(step).seconds``."""

SAME_PARTIAL = (StepKind.SLICE, StepKind.ALL_GATHER, StepKind.ALL_TO_ALL, StepKind.PERMUTE)
LESS_PARTIAL = (StepKind.REDUCE_SCATTER, StepKind.ALL_REDUCE)


@lru_cache(maxsize=256)
def all_states(frame: Frame, partial: tuple[int, ...] = ()) -> tuple[ArrayState, ...]:
    """Every state that fits: each digit shards a dimension, replicates or (of ``partial``) is."""
    found: list[ArrayState] = []
    digits = range(len(frame.digits))
    for places in itertools.product(range(-2, len(frame.shape)), repeat=len(frame.digits)):
        kept = tuple(d for d in digits if places[d] == -1)
        if not set(kept) <= set(partial):
            continue
        members = [[d for d in digits if places[d] == i] for i in range(len(frame.shape))]
        for dims in itertools.product(*map(itertools.permutations, members)):
            for order in range(len(frame.orders)):
                state = ArrayState(tuple(dims), kept, order)
                if frame.fits(state):
                    found.append(state)
    return tuple(found)


@lru_cache(maxsize=256)
def all_steps(
    frame: Frame, partial: tuple[int, ...] = ()
) -> dict[ArrayState, tuple[ArrayStep, ...]]:
    """From each state every step that its own rule allows."""
    states = all_states(frame, partial)
    return {one: tuple(_steps_from(frame, one, states)) for one in states}


def _steps_from(
    frame: Frame, before: ArrayState, states: tuple[ArrayState, ...]
) -> Iterator[ArrayStep]:
    for after in states:
        same = before.partial == after.partial
        for kind in SAME_PARTIAL if same else LESS_PARTIAL:
            step = KINDS[kind](before, after)
            if is_step(step, frame):
                yield step


def is_step(step: ArrayStep, frame: Frame) -> bool:
    """Whether the step's own rule allows it."""
    try:
        step.check(frame)
    except InputError:
        return False
    return True


def allowed(ends: Ends, step: ArrayStep, first: bool, limit: MemoryLimit) -> bool:
    """Whether a step keeps to the cap; ``first``: it is the first of its plan."""
    frame = ends.frame
    if not limit.of_steps:
        return frame.local_bytes(step.after) <= limit.limit_bytes
    kept = limit.keep_source and (not first or step.kind is StepKind.ALL_REDUCE)
    beside = frame.local_bytes(ends.source) if kept else 0
    return step_bytes(frame, step) + beside <= limit.limit_bytes


def best_path(
    ends: Ends, price: Price, limit: MemoryLimit, max_steps: int | None = None
) -> tuple[float, tuple[ArrayStep, ...]] | None:
    """The least cost of a plan (of at most ``max_steps`` steps), and one that has it; else None."""
    if ends.frame.local_bytes(ends.source) > limit.limit_bytes:
        return None
    steps = all_steps(ends.frame, ends.source.partial)
    if max_steps is None:
        return _dijkstra(ends, steps, price, limit)
    return _layers(ends, steps, price, limit, max_steps)


def best_cost(
    ends: Ends, price: Price, limit: MemoryLimit, max_steps: int | None = None
) -> float | None:
    """The least cost of a plan (of at most ``max_steps`` steps); None: none keeps to the cap."""
    found = best_path(ends, price, limit, max_steps)
    return None if found is None else found[0]


Found = tuple[float, tuple[ArrayStep, ...]]


def _dijkstra(
    ends: Ends,
    steps: dict[ArrayState, tuple[ArrayStep, ...]],
    price: Price,
    limit: MemoryLimit,
) -> Found | None:
    counter = itertools.count()
    heap: list[tuple[float, int, ArrayState, tuple[ArrayStep, ...]]] = [
        (0.0, next(counter), ends.source, ())
    ]
    closed: set[ArrayState] = set()
    best: dict[ArrayState, float] = {ends.source: 0.0}
    while heap:
        cost, _, state, path = heapq.heappop(heap)
        if state == ends.target:
            return cost, path
        if state in closed:
            continue
        closed.add(state)
        for step in steps[state]:
            if step.after in closed or not allowed(ends, step, not path, limit):
                continue
            then = cost + price(step)
            if then < best.get(step.after, math.inf):
                best[step.after] = then
                heapq.heappush(heap, (then, next(counter), step.after, (*path, step)))
    return None


def _layers(
    ends: Ends,
    steps: dict[ArrayState, tuple[ArrayStep, ...]],
    price: Price,
    limit: MemoryLimit,
    max_steps: int,
) -> Found | None:
    """Bellman's recursion over the number of steps."""
    best: dict[ArrayState, Found] = {ends.source: (0.0, ())}
    for _ in range(max_steps):
        longer = dict(best)
        for state, (cost, path) in best.items():
            for step in steps[state]:
                if not allowed(ends, step, not path, limit):
                    continue
                then = cost + price(step)
                if step.after not in longer or then < longer[step.after][0]:
                    longer[step.after] = (then, (*path, step))
        best = longer
    return best.get(ends.target)


def least_limit(ends: Ends, *, of_steps: bool, keep_source: bool = False) -> int | None:
    """The least cap in bytes that some plan keeps to, by trying caps; None: no plan exists."""
    low = ends.states_limit_bytes if not of_steps else ends.frame.local_bytes(ends.source)
    sizes = {low}
    for some in all_steps(ends.frame, ends.source.partial).values():
        for step in some:
            size = step_bytes(ends.frame, step) if of_steps else ends.frame.local_bytes(step.after)
            sizes |= {size, size + ends.frame.local_bytes(ends.source)}
    for size in sorted(size for size in sizes if size >= low):
        if best_cost(ends, lambda _: 1.0, MemoryLimit(size, of_steps, keep_source)) is not None:
            return size
    return None
