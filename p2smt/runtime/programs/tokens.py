"""Tokens of a dispatch: who goes where, by a seed, and what must come of it.

A rank's tokens have ``WIDTH`` elements each.  Which experts each goes to is drawn from the seed
alone, so that any rank can say it of any token.  Expert e makes x + b(e) of an element x; combine
adds what a token's experts make of it, each times a weight of that token.  All are small integers,
whose sums every element type holds exactly.

Copies go level by level, from the outermost inwards: who holds a copy sends one to each other
entity of the level, inside the entity that it is in, that has an expert of the token.  There it is
for the member of the same place to hand on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from p2smt.collectives.dispatch import Dispatch
from p2smt.errors import InputError
from p2smt.runtime.job import JobRequest
from p2smt.runtime.payload import DataType, Floats, Integers, RequestRun, RunOptions, mixed_bits

WIDTH = 64
"""Elements of a token."""
_WEIGHTS = 2  # 1 or 2


def check_exact(kind: Dispatch, data_type: DataType) -> int:
    """The largest value that an expert may make of an element, so that all sums are exact.

    Raises:
        InputError: the type holds too few integers for the sums over the experts of a token.
    """
    most = data_type.exact_limit // (_WEIGHTS * kind.active)
    if most < 2:
        rule = f"holds too few integers for sums over {kind.active} experts"
        raise InputError(f"type {data_type.value}", rule, "run it with --dtype float32")
    return most


@dataclass(slots=True)
class Tokens:
    """The tokens of a group's ranks, which are counted as its members.

    ``devices`` are the members' devices, ``units`` how many devices an entity of each level has,
    from the outermost level; ``count`` is the number of a rank's tokens.  Token t of member s has
    the number ``s * count + t``.
    """

    kind: Dispatch
    devices: tuple[int, ...]
    units: tuple[int, ...]
    count: int
    most: int
    seed: int
    _experts: dict[int, Integers] = field(default_factory=dict)

    @property
    def ranks(self) -> int:
        """Members of the group."""
        return len(self.devices)

    def experts(self, member: int) -> Integers:
        """The experts of a member's tokens, shape (tokens, active)."""
        if member not in self._experts:
            self._experts[member] = self._drawn(member)
        return self._experts[member]

    def _drawn(self, member: int) -> Integers:
        """Any experts alike (Gumbel's trick); with imbalance those of one rank more often."""
        kind, shape = self.kind, (self.count, self.kind.experts)
        random = np.random.default_rng((self.seed, self.devices[0], member))
        score = random.gumbel(size=shape) + self._favour()
        open_groups = random.random((self.count, kind.groups)).argsort(axis=1) < kind.top_groups
        score[~np.repeat(open_groups, kind.experts // kind.groups, axis=1)] = -np.inf
        return np.argpartition(-score, kind.active - 1, axis=1)[:, : kind.active]

    def _favour(self) -> Floats:
        """Logarithms of how often experts are chosen: a rank has ``imbalance`` times the mean."""
        ranks, wanted = self.ranks, min(self.kind.imbalance, 0.9 * self.ranks)
        if wanted <= 1:
            return np.zeros(self.kind.experts)
        owner = np.arange(self.kind.experts) // (self.kind.experts // ranks)
        often = wanted * (ranks - 1) / (ranks - wanted)
        return np.asarray(np.where(owner == self.seed % ranks, np.log(often), 0.0))

    def chosen(self, numbers: Integers) -> Integers:
        """The experts of tokens by number, shape (tokens, active)."""
        found = np.empty((len(numbers), self.kind.active), dtype=np.int64)
        source, place = np.divmod(numbers, self.count)
        for member in np.unique(source):
            found[source == member] = self.experts(int(member))[place[source == member]]
        return found

    def owners(self, numbers: Integers) -> Integers:
        """The members that have those experts."""
        return self.chosen(numbers) // (self.kind.experts // self.ranks)

    def sends(self, member: int, level: int, numbers: Integers) -> list[Integers]:
        """Per member, which of the copies that this one holds it gets at a level, by index."""
        devices = np.array(self.devices)
        entity = devices // self.units[level]
        around = devices // self.units[level - 1] if level else np.zeros_like(devices)
        needed = np.zeros((len(numbers), self.ranks), dtype=bool)
        needed[np.arange(len(numbers))[:, None], self.owners(numbers)] = True
        found = [np.empty(0, dtype=np.int64) for _ in devices]
        place = int(np.flatnonzero(np.flatnonzero(entity == entity[member]) == member)[0])
        for other in np.unique(entity[around == around[member]]):
            if other != entity[member]:
                inside = np.flatnonzero(entity == other)
                target = inside[place % len(inside)]
                found[target] = np.flatnonzero(needed[:, inside].any(axis=1))
        return found

    def values(self, member: int) -> Integers:
        """The elements of a member's tokens, shape (tokens, WIDTH), from 1 on."""
        element = np.arange(self.count * WIDTH, dtype=np.uint64)
        mixed = mixed_bits(element, self.devices[member], self.seed)
        return np.asarray(
            mixed % np.uint64(self.most - self._shift) + np.uint64(1), np.int64
        ).reshape(self.count, WIDTH)

    @property
    def _shift(self) -> int:
        return max(1, self.most // 4)

    def _terms(self, numbers: Integers) -> tuple[Integers, Integers]:
        """The weight of each expert of a token, and that times what the expert adds."""
        chosen = self.chosen(numbers)
        salted = np.asarray(numbers[:, None] * self.kind.experts + chosen, np.uint64)
        weight = np.asarray(mixed_bits(salted, 1, self.seed) % np.uint64(_WEIGHTS), np.int64) + 1
        added = mixed_bits(np.asarray(chosen, np.uint64), 2, self.seed) % np.uint64(self._shift + 1)
        return weight, weight * np.asarray(added, np.int64)

    def processed(self, member: int, numbers: Integers, values: Integers) -> Integers:
        """What a member's experts make of copies, weighted and added; 0 where none is asked."""
        own = self.owners(numbers) == member
        weight, added = (np.where(own, term, 0).sum(axis=1) for term in self._terms(numbers))
        return np.asarray(values * weight[:, None] + added[:, None])

    def combined(self, member: int) -> Integers:
        """What must come back to a member, computed directly: shape (tokens, WIDTH)."""
        numbers = np.arange(self.count) + member * self.count
        weight, added = (term.sum(axis=1) for term in self._terms(numbers))
        return np.asarray(self.values(member) * weight[:, None] + added[:, None])

    def misplaced(self, member: int, numbers: Integers) -> str:
        """What is wrong with the copies that a member holds in the end; empty: nothing."""
        every = np.arange(self.ranks * self.count)
        needed = every[(self.owners(every) == member).any(axis=1)]
        if len(np.unique(numbers)) < len(numbers):
            return "a copy of a token came twice"
        lost = np.setdiff1d(needed, numbers)
        return f"{len(lost)} tokens for its experts did not come" if len(lost) else ""


def wrong_element(name: str, rank: int, found: Integers, right: Integers) -> str:
    """The first element that is not as computed directly, in words; empty: all are."""
    off = np.flatnonzero((found != right).ravel())
    if not len(off):
        return ""
    at = int(off[0])
    values = f"expected {right.ravel()[at]}, found {found.ravel()[at]}"
    return f"{name}: rank {rank}, element {at}: wrong value: {values}"


# On the reference backend: every rank in one process.


def run_tokens(tokens: Tokens) -> tuple[list[Integers], list[Integers], list[list[int]]]:
    """Dispatch and combine: per member the copies held and the sums that came back.

    And per level how many copies each member sent.
    """
    members = range(tokens.ranks)
    held = [np.arange(tokens.count) + member * tokens.count for member in members]
    values = [tokens.values(member) for member in members]
    sent, counts = [], []
    for level in range(len(tokens.units)):
        plan = [tokens.sends(member, level, held[member]) for member in members]
        came = [[held[s][plan[s][member]] for s in members] for member in members]
        brought = [[values[s][plan[s][member]] for s in members] for member in members]
        starts = [len(numbers) for numbers in held]
        held = [np.concatenate([held[m], *came[m]]) for m in members]
        values = [np.concatenate([values[m], *brought[m]]) for m in members]
        sent.append((plan, starts))
        counts.append([sum(map(len, one)) for one in plan])
    sums = [tokens.processed(member, held[member], values[member]) for member in members]
    for plan, starts in reversed(sent):
        for member in members:
            at = starts[member]
            for source in members:
                index = plan[source][member]
                sums[source][index] += sums[member][at : at + len(index)]
                at += len(index)
    return held, [sums[m][: tokens.count] for m in members], counts


def dispatch_fault(request: JobRequest) -> str:
    """Why the steps of a dispatch are not one dispatch in its groups; empty: they are."""
    steps = [sorted(step.groups) for step in request.steps]
    if steps == [sorted(request.groups)]:
        return ""
    return f"{request.name}: is not one dispatch on the groups of its axes"


def check_tokens(request: JobRequest, options: RunOptions, runs: Sequence[RequestRun]) -> None:
    """Run a dispatch and its combine on the reference backend; note what each rank has wrong."""
    for number, group in enumerate(request.groups):
        tokens = tokens_of(request, number, options)
        held, sums, _ = run_tokens(tokens)
        for member, rank in enumerate(group):
            misplaced = tokens.misplaced(member, held[member])
            right = tokens.combined(member)
            wrong = wrong_element(request.name, rank, sums[member], right)
            named = f"{request.name}: rank {rank}: {misplaced}" if misplaced else ""
            runs[rank].errors += [text for text in (named, wrong) if text]
            runs[rank].checked = True


def tokens_of(request: JobRequest, number: int, options: RunOptions) -> Tokens:
    """The tokens of a request's group, by its number.

    Raises:
        InputError: the element type holds too few integers, or the request is no dispatch.
    """
    if not isinstance(request.kind, Dispatch):
        raise InputError(request.name, "is no dispatch")
    count = -(-request.payload_bytes // (WIDTH * options.data_type.item_bytes))
    most = check_exact(request.kind, options.data_type)
    units = levels_of(request.units)
    return Tokens(request.kind, request.groups[number], units, count, most, options.seed)


def levels_of(units: Sequence[int]) -> tuple[int, ...]:
    """The units of levels that differ from those outside them: of the others nothing is sent."""
    return tuple(one for i, one in enumerate(units) if i == 0 or one != units[i - 1])
