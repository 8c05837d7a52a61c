"""What a rank does with a plan's requests: run, check, repeat, time.

Of a dispatch its tokens go out level by level, and come back combined.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import cast

import numpy as np
import torch
import torch.distributed as dist

from p2smt.collectives.dispatch import Dispatch
from p2smt.collectives.names import RequestKind
from p2smt.runtime.job import Job, JobRequest
from p2smt.runtime.payload import (
    Array,
    Cutting,
    Integers,
    RankReport,
    RequestRun,
    RunOptions,
    spread,
)
from p2smt.runtime.process_groups import Site, Tell, machine
from p2smt.runtime.programs.rank_program import RankProgram, cut
from p2smt.runtime.programs.reference_backend import (
    Mismatch,
    compare,
    exact_results,
    numbers_of,
    rounded_sum,
    single_result,
    wrong_rows,
)
from p2smt.runtime.programs.regions import RowMoves, RowsHeld, StepError, moves_of
from p2smt.runtime.programs.tokens import Tokens, dispatch_fault, tokens_of, wrong_element

# One rank of a job: runs every request, checks its results and times it.


def run_rank(job: Job, options: RunOptions, site: Site, tell: Tell) -> RankReport:
    """Run all requests of a job in order; the default process group must exist."""
    found = []
    for number, request in enumerate(job.requests, start=1):
        where = f"request {number} ({request.name})"
        found.append(_run_request(request, options, site, lambda what: tell(f"{where}, {what}")))  # noqa: B023
    return RankReport(site.rank, found, machine(site))


def _run_request(request: JobRequest, options: RunOptions, site: Site, tell: Tell) -> RequestRun:
    if isinstance(request.kind, Dispatch) and request.size > 1:
        return run_dispatch(request, options, site, tell)
    run = RequestRun()
    try:
        row_moves = moves_of(request, request.steps, site.ranks)
    except StepError as error:
        run.errors.append(f"{request.name}: {error}")
        return run
    if request.size == 1:
        run.checked = True
        return run
    tell("preparation")
    prepared = prepare_request(site, request, row_moves, options)
    check = options.check and any(site.rank in group for group in request.groups)
    if check:
        tell("check")
        run.errors += [str(w) for w in wrong_rows(request, row_moves.held) if w.rank == site.rank]
        check_exact(prepared, options, run)
        if options.data_type.unit_roundoff:
            check_random(prepared, options, run)
    if options.repeat:
        compared = Repetitions.of(prepared, options, run) if check else None
        time_request(prepared, options, run, tell, compared)
    return run


# Times a program on one rank: whole, step by step, and against the single collective.


def time_request(
    prepared: Prepared,
    options: RunOptions,
    run: RequestRun,
    tell: Tell,
    compared: Repetitions | None = None,
) -> None:
    """Program, baseline and single steps in turn; their order rotates with the repetitions.

    All ranks enter a timed section together, behind a barrier; each notes how long it takes
    until its own part is complete.  What each turn leaves is ``compared`` (None: nothing is).
    """
    run.steps_s = [[] for _ in prepared.request.steps]
    for repetition in options.repetitions:
        times = _repetition(prepared, options, repetition, tell, compared)
        if repetition < 0:
            continue
        for name, samples in (("program", run.total_s), ("baseline", run.baseline_s)):
            if name in times:
                samples.append(times[name])
        for step, taken in enumerate(run.steps_s, start=1):
            if f"step {step}" in times:
                taken.append(times[f"step {step}"])
    if compared is not None:
        compared.finish()


def _repetition(
    prepared: Prepared,
    options: RunOptions,
    repetition: int,
    tell: Tell,
    compared: Repetitions | None,
) -> dict[str, float]:
    """Times of one repetition by name; the order of the turns rotates."""
    times: dict[str, float] = {}

    def measure(name: str, run: Callable[[], None]) -> None:
        tell(name)
        times[name] = _timed(prepared, run)

    load = prepared.load if compared is None else compared.load

    def program() -> None:
        measure("program", prepared.program.run)

    def baseline() -> None:
        assert prepared.single is not None
        measure("baseline", prepared.single.program.run)

    def steps() -> None:
        for step in range(len(prepared.request.steps)):
            measure(f"step {step + 1}", lambda: prepared.program.run_step(step))  # noqa: B023

    turns = {"program": program, "baseline": baseline, "steps": steps}
    chosen = [name for name in options.timed if name != "baseline" or prepared.single is not None]
    first = repetition % len(chosen)
    for name in chosen[first:] + chosen[:first]:
        load()
        turns[name]()
        if compared is not None:
            compared.check(name, repetition)
    return times


def _timed(prepared: Prepared, run: Callable[[], None]) -> float:
    prepared.site.synchronize()
    prepared.site.barrier()
    begin = time.perf_counter()
    run()
    prepared.site.synchronize()
    return time.perf_counter() - begin


# Checks what every timed turn leaves, so that a fault in one of them is seen.
# A turn is the program, the single collective or the single steps, run once.  What it must leave is
# made once, from the closed form, and stays where the payload is: comparing is quick, exact and
# outside the times.  Nothing old can pass for a result: values change their signs from turn to
# turn, and buffers are filled with what is no result (:mod:`p2smt.runtime.payload`).


@dataclass(slots=True)
class Repetitions:
    """``right``: by piece, and ``single_right`` for the single collective, what turns must leave;
    ``wrong`` counts the turns that left something else.  A rank that was wrong before compares no
    more, but gives the others what they expect.
    """

    prepared: Prepared
    options: RunOptions
    run: RequestRun
    right: list[torch.Tensor]
    single_right: torch.Tensor
    sound: bool
    sign: int = 1
    wrong: int = 0
    first: str = field(default="")

    @staticmethod
    def of(prepared: Prepared, options: RunOptions, run: RequestRun) -> Repetitions:
        """Give the payload its exact values, and make what they must become."""
        request, cutting, rank = prepared.request, prepared.cutting, prepared.site.rank
        numbers = numbers_of(request, cutting, options, prepared.site.ranks)
        prepared.set_period(numbers.integers(rank))
        pieces = exact_results(request, cutting, rank, numbers)
        right = torch.empty_like(prepared.flat)
        right.copy_(_tensor(np.concatenate([piece.ravel() for piece in pieces])))
        single = single_result(request, cutting, rank, numbers) if prepared.single else None
        return Repetitions(
            prepared,
            options,
            run,
            cut(right, cutting),
            right.view(request.size, -1) if single is None else _tensor(single).to(right),
            not run.errors,
        )

    def load(self) -> None:
        """Give the payload its values anew, for the next turn."""
        self.sign = -self.sign
        self.prepared.load(self.sign)

    def check(self, turn: str, repetition: int) -> None:
        """Compare what a turn has left; the steps alone run on the first piece only."""
        prepared = self.prepared
        if not self.sound:
            return
        if self.sign < 0:
            prepared.flat.neg_()
        if turn == "baseline" and prepared.single is not None:
            found = self._single(prepared.single)
        else:
            found = self._pieces(1 if turn == "steps" else len(prepared.pieces))
        if found is None:
            return
        self.wrong += 1
        if not self.first:
            self.first = f"{found} (in {self.options.named(repetition)}, {turn})"

    def finish(self) -> None:
        """Report what was wrong."""
        self.run.repetitions_checked = self.options.repeat if self.sound else 0
        if self.first:
            more = f"; {self.wrong} timed results are wrong" if self.wrong > 1 else ""
            self.run.errors.append(f"{self.first}{more}")

    def _pieces(self, count: int) -> Mismatch | None:
        prepared = self.prepared
        pieces = zip(prepared.pieces[:count], self.right, strict=False)
        if all(_same(piece, right, prepared.held) for piece, right in pieces):
            return None
        request, rank = prepared.request, prepared.site.rank
        cutting = replace(prepared.cutting, spans=prepared.cutting.spans[:count])
        results = prepared.results()[:count]
        return compare(request, cutting, rank, prepared.held, results, _arrays(self.right[:count]))

    def _single(self, single: SingleCollective) -> Mismatch | None:
        prepared = self.prepared
        whole = prepared.flat.view(prepared.request.size, -1)
        if _same(whole, self.single_right, single.held):
            return None
        found, right = _arrays([whole, self.single_right])
        row, column = np.argwhere((found != right) & single.held[:, None])[0]
        what = "wrong value of the single collective"
        request, rank = prepared.request, prepared.site.rank
        values = float(right[row, column]), float(found[row, column])
        return Mismatch(request.name, rank, what, None, *values)


def _tensor(values: Array) -> torch.Tensor:
    return torch.from_numpy(np.ascontiguousarray(values))


def _arrays(tensors: Sequence[torch.Tensor]) -> list[Array]:
    wide = [torch.float64 if one.dtype.is_floating_point else torch.int64 for one in tensors]
    return [
        one.to(device="cpu", dtype=kind).numpy() for one, kind in zip(tensors, wide, strict=True)
    ]


def _same(found: torch.Tensor, right: torch.Tensor, held: RowsHeld) -> bool:
    if held.all():
        return torch.equal(found, right)
    return all(torch.equal(found[row], right[row]) for row in np.flatnonzero(held).tolist())


# Checks the results of a program on one rank against the closed form.


_REPLICATED = (RequestKind.ALL_REDUCE, RequestKind.ALL_GATHER)


def check_exact(prepared: Prepared, options: RunOptions, run: RequestRun) -> None:
    """Run on small integers, which every order of additions sums exactly."""
    request, cutting, rank = prepared.request, prepared.cutting, prepared.site.rank
    numbers = numbers_of(request, cutting, options, prepared.site.ranks)
    prepared.set_period(numbers.integers(rank))
    prepared.execute()
    right = exact_results(request, cutting, rank, numbers)
    wrong = compare(request, cutting, rank, prepared.held, prepared.results(), right)
    if wrong is not None and not run.errors:
        run.errors.append(str(wrong))
    run.digest, run.checked = _digest(prepared), True


def check_random(prepared: Prepared, options: RunOptions, run: RequestRun) -> None:
    """Run on random values and compare with sums in float64."""
    request, cutting, rank = prepared.request, prepared.cutting, prepared.site.rank
    numbers = numbers_of(request, cutting, options, prepared.site.ranks)

    def values(of: int) -> Array:
        rounded = torch.from_numpy(numbers.floats(of)).to(prepared.flat.dtype)
        return rounded.to(torch.float64).numpy()

    prepared.set_period(values(rank))
    prepared.execute()
    right, bounds = rounded_sum(request, cutting, rank, values, numbers)
    wrong = compare(request, cutting, rank, prepared.held, prepared.results(), right, bounds)
    if wrong is not None:
        run.errors.append(str(wrong))
    run.random_digest = _digest(prepared)
    run.float_checked = all(bool(np.isfinite(bound).all()) for bound in bounds)


def _digest(prepared: Prepared) -> str:
    """A hash of the result, where every rank of a group must have the same; else ""."""
    if prepared.request.kind not in _REPLICATED or not prepared.held.all():
        return ""
    data = prepared.flat.cpu().view(torch.uint8).numpy()
    return hashlib.blake2b(data.data, digest_size=16).hexdigest()


# A request on one rank, ready to run: its payload, and the program and baseline on it.


@dataclass(frozen=True, slots=True)
class SingleCollective:
    """The single collective over the same payload; ``held``: the rows that a rank then holds."""

    program: RankProgram
    held: RowsHeld


@dataclass(slots=True)
class Prepared:
    """``flat`` is the padded payload, ``source`` the values that it is loaded with.

    ``held`` are the rows that the rank holds at the end; ``single`` is None where the request has
    no programs.
    """

    site: Site
    request: JobRequest
    cutting: Cutting
    held: RowsHeld
    source: torch.Tensor
    flat: torch.Tensor
    pieces: list[torch.Tensor]
    program: RankProgram
    single: SingleCollective | None

    def load(self, sign: int = 1) -> None:
        """Give the payload its values anew, or their negatives; nothing of a run before stays."""
        self.flat.copy_(self.source)
        if sign < 0:
            self.flat.neg_()
        self.program.load()
        if self.single is not None:
            self.single.program.load()

    def set_period(self, period: Array) -> None:
        """The values that ``load`` gives: a periodic payload, cut into pieces."""
        spans, rows = self.cutting.spans, self.cutting.rows
        values = np.concatenate([spread(period, span, rows).ravel() for span in spans])
        self.source.copy_(torch.from_numpy(values).to(self.source.dtype))

    def execute(self) -> None:
        """Load and run the program once."""
        self.load()
        self.site.synchronize()
        self.program.run()
        self.site.synchronize()

    def results(self) -> list[Array]:
        """The pieces as they are, in int64 or float64."""
        wide = torch.float64 if self.flat.dtype.is_floating_point else torch.int64
        return [piece.to(device="cpu", dtype=wide).numpy() for piece in self.pieces]


def prepare_request(
    site: Site, request: JobRequest, row_moves: RowMoves, options: RunOptions
) -> Prepared:
    """Allocate the payload, make the groups and prepare the moves."""
    cutting = Cutting.of(request.payload_bytes, options.data_type, request.size, request.chunks)
    data_type: torch.dtype = getattr(torch, options.data_type.value)
    flat = torch.zeros(cutting.padded, dtype=data_type, device=site.device)
    pieces, single, step = cut(flat, cutting), None, request.single()
    program = RankProgram.prepare(row_moves, pieces, site.rank, site.groups)
    if step is not None:
        alone = moves_of(request, (step,), site.ranks)
        whole = [flat.view(request.size, -1)]
        of_rank = RankProgram.prepare(alone, whole, site.rank, site.groups)
        single = SingleCollective(of_rank, alone.held[site.rank])
    held, source = row_moves.held[site.rank], torch.zeros_like(flat)
    return Prepared(site, request, cutting, held, source, flat, pieces, program, single)


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
    for repetition in options.repetitions:
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
