"""One rank of a redistribution: runs its steps, checks and measures them."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from p2smt.resharding.states import ArrayState
from p2smt.resharding.types import ElementType
from p2smt.runtime.allocated import Allocated, watched
from p2smt.runtime.arrays.block_values import ArrayValues, block_of
from p2smt.runtime.arrays.moves import ArrayGroups, as_bytes, run_step, run_steps
from p2smt.runtime.arrays.rank_steps import ArrayJob, RankStep, rank_steps
from p2smt.runtime.payload import Floats, RankReport, RequestRun, RunOptions
from p2smt.runtime.process_groups import Site, Tell, machine


def run_array_rank(job: ArrayJob, options: RunOptions, site: Site, tell: Tell) -> RankReport:
    """Run a redistribution's part of a rank; the default process group must exist."""
    tell("preparation")
    groups = ArrayGroups()
    for step in job.steps:
        groups.make(step.groups(job.frame))
    steps = rank_steps(job.frame, job.steps, job.sources, site.rank)
    runner = _ArrayRunner(job, options, site, tell, steps, groups)
    runner.check()
    for repetition in options.repetitions:
        runner.repeat(repetition)
    return RankReport(site.rank, [runner.run], machine(site))


class _ArrayRunner:
    def __init__(
        self,
        job: ArrayJob,
        options: RunOptions,
        site: Site,
        tell: Tell,
        steps: tuple[RankStep, ...],
        groups: ArrayGroups,
    ) -> None:
        self.job, self.options, self.site, self.tell = job, options, site, tell
        self.steps, self.groups = steps, groups
        self.run = RequestRun(steps_s=[[] for _ in steps])

    def check(self) -> None:
        """Compare bits or exact values, then random ones within their bound."""
        self.tell("check")
        self._check_first()
        if self.job.reduces and self.job.frame.element.floating:
            self.tell("check of random values")
            self._check_random()
        self.run.checked = True

    def _check_first(self) -> None:
        """Compare, and note what is allocated meanwhile; a kept source must be as it was."""
        arrays = self._arrays()
        source = [self._source(arrays)]
        with watched(source[0]) as allocated:
            found = self._consume(source, allocated)
        self.run.memory_bytes = allocated.peak_bytes
        self._compare(arrays, found)
        if source and arrays.wrong_bits(source[0], self._source(arrays), self.job.start):
            self._note(f"rank {self.site.rank}: the source is not as it was")

    def _consume(
        self, source: list[torch.Tensor], allocated: Allocated | None = None
    ) -> torch.Tensor:
        """Run the steps; each frees what it was given, the first only if the source may go."""
        current = source[0] if self.job.keep_source else source.pop()
        for number, step in enumerate(self.steps):
            keep = number == 0 and self.job.keep_source
            current = run_steps(current, [step], self.groups, keep_source=keep)
            if allocated is not None:
                allocated.settle(current, *source)
        return current

    def _check_random(self) -> None:
        arrays = self._arrays()
        found = self._consume([arrays.random(self.job.start)])
        wrong, self.run.float_checked = arrays.wrong_random(found, self.job.end)
        self._note(wrong)

    def repeat(self, repetition: int) -> None:
        """Run as a whole and step by step, each timed and compared; values are new each time."""
        turn = 2 * (repetition + self.options.warmup) + 1
        whole = self._arrays(turn)
        source = [self._source(whole)]
        taken, found = self._timed("repetition", lambda: self._consume(source))
        right = self._compare(whole, found, self.options.named(repetition))
        parts = self._arrays(turn + 1)
        times, found = self._each_step(self._source(parts))
        right &= self._compare(parts, found, f"{self.options.named(repetition)}, step by step")
        if repetition >= 0:
            self.run.total_s.append(taken)
            self.run.repetitions_checked += right
            for samples, spent in zip(self.run.steps_s, times, strict=True):
                samples.append(spent)

    def _each_step(self, local: torch.Tensor) -> tuple[list[float], torch.Tensor]:
        times = []
        for number, step in enumerate(self.steps, start=1):
            move = functools.partial(run_step, local, step, self.groups)
            spent, local = self._timed(f"step {number} ({step.kind.value})", move)
            times.append(spent)
        return times, local

    def _timed(self, name: str, move: Callable[[], torch.Tensor]) -> tuple[float, torch.Tensor]:
        """All ranks begin together; seconds until the own part is done."""
        self.tell(name)
        self.site.synchronize()
        self.site.barrier()
        begin = time.perf_counter()
        found = move()
        self.site.synchronize()
        return time.perf_counter() - begin, found

    def _arrays(self, turn: int = 0) -> RankArrays:
        """Values of a turn: nothing old can pass for a result."""
        seed = self.options.seed + 2 * turn
        values = ArrayValues.of(self.job.frame, self.job.start, self.job.end, seed)
        return RankArrays(values, self.site.rank, self.site.device)

    def _source(self, arrays: RankArrays) -> torch.Tensor:
        if not self.job.reduces:
            return arrays.moved(self.job.start)
        exact = arrays.values.exact
        return arrays.exact(self.job.start) if exact else arrays.random(self.job.start)

    def _compare(self, arrays: RankArrays, found: torch.Tensor, where: str = "") -> bool:
        """Note what is wrong, of the first run that has something; whether all is right."""
        end = self.job.end
        if not self.job.reduces:
            wrong = arrays.wrong_bits(found, arrays.moved(end), end)
        elif arrays.values.exact:
            wrong = arrays.wrong_bits(found, arrays.exact(end), end)
        else:
            wrong, _ = arrays.wrong_random(found, end)
        self._note(wrong and f"{wrong} (in {where})" if where else wrong)
        return not wrong

    def _note(self, wrong: str) -> None:
        if wrong and not self.run.errors:
            self.run.errors.append(wrong)


# Tensors of known values for a rank, and what is wrong with what the steps have made of them.


def torch_type(element: ElementType) -> torch.dtype:
    """The type that PyTorch has for an element type."""
    found: torch.dtype = getattr(torch, element.long_name)
    return found


@dataclass(frozen=True, slots=True)
class RankArrays:
    """Makes a rank's tensors; ``values`` say what they hold, ``device`` is where they lie."""

    values: ArrayValues
    rank: int
    device: torch.device

    def moved(self, state: ArrayState) -> torch.Tensor:
        """Arbitrary bits: what a state has of an array that only moves."""
        bits, element = self.values.bits(state, self.rank), self.values.frame.element
        if element is ElementType.BOOL:
            bits = bits % np.uint64(2)
        size = element.item_bytes
        wide = np.ascontiguousarray(bits).view(np.uint8).reshape(-1, 8)
        flat = torch.from_numpy(np.ascontiguousarray(wide[:, :size]).reshape(-1))
        return self._own(flat.view(torch_type(element)).view(bits.shape))

    def exact(self, state: ArrayState) -> torch.Tensor:
        """Numbers whose reduction is exact, reduced as far as they are in a state."""
        return self._tensor(self.values.integers(state, self.rank))

    def random(self, state: ArrayState) -> torch.Tensor:
        """The random contribution that the rank has in a state before any reduction."""
        (found,) = self.values.floats(state, self.rank)
        return self._tensor(found)

    def wrong_bits(self, found: torch.Tensor, right: torch.Tensor, state: ArrayState) -> str:
        """The first element that is not what it must be, in words; "" if all are."""
        if tuple(found.shape) != tuple(right.shape):
            return self._said(f"shape {tuple(found.shape)}, expected {tuple(right.shape)}")
        if torch.equal(as_bytes(found.contiguous()), as_bytes(right)):
            return ""
        one, other = (_rows(tensor) for tensor in (found, right))
        return self._first((one != other).any(dim=1).cpu().numpy(), found, right, state)

    def wrong_random(self, found: torch.Tensor, state: ArrayState) -> tuple[str, bool]:
        """The same for random numbers, within their bound; and whether it is finite."""
        right, bound = self.values.reduce(self._rounded(state), state)
        error = np.abs(found.to("cpu", torch.float64).numpy() - right)
        wrong = ~(error <= bound)
        limited = bool(np.isfinite(bound).all())
        if not wrong.any():
            return "", limited
        return self._first(wrong.reshape(-1), found, torch.from_numpy(right), state), limited

    def _rounded(self, state: ArrayState) -> Iterator[Floats]:
        for term in self.values.floats(state, self.rank):
            yield torch.from_numpy(term).to(self._type).to(torch.float64).numpy()

    @property
    def _type(self) -> torch.dtype:
        return torch_type(self.values.frame.element)

    def _tensor(self, values: NDArray[Any]) -> torch.Tensor:
        return self._own(torch.from_numpy(np.ascontiguousarray(values)).to(self._type))

    def _own(self, tensor: torch.Tensor) -> torch.Tensor:
        """A copy in memory of the device's allocator, whose account is watched."""
        return tensor.to(self.device, copy=True)

    def _first(
        self, wrong: NDArray[Any], found: torch.Tensor, right: torch.Tensor, state: ArrayState
    ) -> str:
        flat = int(np.flatnonzero(wrong)[0])
        place = tuple(int(i) for i in np.unravel_index(flat, tuple(right.shape)))
        first = block_of(self.values.frame, state, self.rank).first
        where = tuple(a + b for a, b in zip(first, place, strict=True))
        values = f"expected {right[place].item()}, found {found[place].item()}"
        count = int(np.count_nonzero(wrong))
        return self._said(
            f"{count} elements are wrong, the first at {where} of the array: {values}"
        )

    def _said(self, text: str) -> str:
        return f"rank {self.rank}: {text}"


def _rows(tensor: torch.Tensor) -> torch.Tensor:
    """The bytes of each element."""
    return as_bytes(tensor.contiguous()).view(-1, tensor.element_size())
