"""A dispatch on one rank: its tokens go out level by level, and come back combined."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import cast

import numpy as np
import torch
import torch.distributed as dist

from p2smt.runtime.job import JobRequest
from p2smt.runtime.payload import Integers, RequestRun, RunOptions
from p2smt.runtime.process_groups import Site, Tell
from p2smt.runtime.programs.tokens import Tokens, dispatch_fault, tokens_of, wrong_element


@dataclass(frozen=True, slots=True)
class _Hop:
    """What a rank exchanges at a level: the copies that it sends, by index, and how many it gets.

    ``held``: the copies that it had before.
    """

    index: torch.Tensor
    sent: list[int]
    got: list[int]
    held: int


@dataclass(slots=True)
class RankTokens:
    """The tokens of a group on one of its ranks.

    ``numbers`` are the copies that the rank holds once ``hops`` are known, its own tokens first.
    """

    tokens: Tokens
    member: int
    group: dist.ProcessGroup
    dtype: torch.dtype
    device: torch.device
    numbers: Integers
    hops: list[_Hop]

    @staticmethod
    def prepare(site: Site, tokens: Tokens, dtype: torch.dtype) -> RankTokens:
        """Tell the others, level by level, what is sent; copies name their tokens by number."""
        member = tokens.devices.index(site.rank)
        numbers = np.arange(tokens.count) + member * tokens.count
        group = site.groups.of(tokens.devices)
        found = RankTokens(tokens, member, group, dtype, site.device, numbers, [])
        for level in range(len(tokens.units)):
            found._meet(level)
        return found

    def _meet(self, level: int) -> None:
        plan = self.tokens.sends(self.member, level, self.numbers)
        sent = [len(index) for index in plan]
        counts = torch.tensor(sent, device=self.device)
        theirs = torch.empty_like(counts)
        dist.all_to_all_single(theirs, counts, group=self.group)
        index = torch.from_numpy(np.concatenate(plan)).to(self.device)
        hop = _Hop(index, sent, theirs.tolist(), len(self.numbers))
        told = torch.from_numpy(self.numbers).to(self.device)[index]
        came = self._exchange(told, hop.sent, hop.got)
        self.numbers = np.concatenate([self.numbers, came.cpu().numpy()])
        self.hops.append(hop)

    def _exchange(self, rows: torch.Tensor, sent: list[int], got: list[int]) -> torch.Tensor:
        found = rows.new_empty((sum(got), *rows.shape[1:]))
        dist.all_to_all_single(found, rows.contiguous(), got, sent, group=self.group)
        return found

    def dispatch(self, values: torch.Tensor) -> torch.Tensor:
        """The elements of every copy that the rank then holds, of its own tokens' elements."""
        for hop in self.hops:
            values = torch.cat([values, self._exchange(values[hop.index], hop.sent, hop.got)])
        return values

    def combine(self, sums: torch.Tensor) -> torch.Tensor:
        """The sums of its own tokens, of those of every copy."""
        for hop in reversed(self.hops):
            back = self._exchange(sums[hop.held :], hop.got, hop.sent)
            sums = sums[: hop.held].index_add(0, hop.index, back)
        return sums

    def own(self) -> torch.Tensor:
        """The elements of the rank's tokens."""
        return self.tensor(self.tokens.values(self.member))

    def tensor(self, values: Integers) -> torch.Tensor:
        """Whole numbers as elements of the payload's type, where the rank computes."""
        return torch.from_numpy(values).to(device=self.device, dtype=self.dtype)


def run_dispatch(request: JobRequest, options: RunOptions, site: Site, tell: Tell) -> RequestRun:
    """Dispatch, let the experts work, combine and compare every element; then time the dispatch."""
    run = RequestRun()
    if fault := dispatch_fault(request):
        run.errors.append(fault)
        return run
    site.groups.make(request.groups)
    tell("preparation")
    found = [(n, group) for n, group in enumerate(request.groups) if site.rank in group]
    if not found:
        return run
    number, _ = found[0]
    tokens = tokens_of(request, number, options)
    dtype: torch.dtype = getattr(torch, options.data_type.value)
    rank = RankTokens.prepare(site, tokens, dtype)
    right = rank.dispatch(rank.own())
    if options.check:
        tell("check")
        _check(request, site.rank, rank, right, run)
    if options.repeat:
        _time(request.name, rank, right, options, site, tell, run)
    return run


def _check(
    request: JobRequest, number: int, rank: RankTokens, copies: torch.Tensor, run: RequestRun
) -> None:
    misplaced = rank.tokens.misplaced(rank.member, rank.numbers)
    if misplaced:
        run.errors.append(f"{request.name}: rank {number}: {misplaced}")
    whole = _whole(copies)
    made = rank.tokens.processed(rank.member, rank.numbers, whole)
    sums = _whole(rank.combine(rank.tensor(made)))
    wrong = wrong_element(request.name, number, sums, rank.tokens.combined(rank.member))
    run.errors += [wrong] if wrong else []
    run.checked = True


def _whole(values: torch.Tensor) -> Integers:
    return cast(Integers, values.cpu().to(torch.int64).numpy())


def _time(
    name: str,
    rank: RankTokens,
    right: torch.Tensor,
    options: RunOptions,
    site: Site,
    tell: Tell,
    run: RequestRun,
) -> None:
    """Time the dispatch; elements change their signs, so that no old result passes for a new."""
    run.steps_s, sound, values = [[]], not run.errors, rank.own()
    for repetition in range(-options.warmup, options.repeat):
        tell("program")
        sign = -1 if repetition % 2 else 1
        signed = values * sign
        site.synchronize()
        site.barrier()
        begin = time.perf_counter()
        found = rank.dispatch(signed)
        site.synchronize()
        taken = time.perf_counter() - begin
        if options.check and sound and not torch.equal(found * sign, right):
            where = f"{name}: rank {site.rank}, repetition {repetition + 1}"
            run.errors.append(f"{where}: other copies than in the first run")
            sound = False
        if repetition >= 0:
            run.total_s.append(taken)
            run.steps_s[0].append(taken)
    run.repetitions_checked = options.repeat if options.check and sound else 0
