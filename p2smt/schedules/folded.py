"""Schedules told by one program per orbit of ranks, and by the symmetries that give the others.

A *symmetry* permutes the ranks, and with them the chunks of each buffer, of every rank alike.  All
that can be made of the *generators* form a group; the program of a rank is the image of its
orbit's under the one symmetry that takes the program's rank there.  That there is only one is a
rule here: a symmetry that keeps a rank keeps everything.

A step on several chunks handles them in ascending order.  The image of a span must be a run of
chunks again, and every span of a step must be taken to it in the same order.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np

from p2smt.collectives.contract import RULES, Contract, MadeOf
from p2smt.errors import InputError, TooLarge
from p2smt.schedules.model import Buffer, Connection, Schedule, Sizes, Span, Step

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from p2smt.collectives.contract import CollectiveRule

    Images = NDArray[np.int64]

MAX_NUMBERS = 2**26
"""What a symmetry for each rank would say: where every rank and every chunk of a rank is taken."""


@dataclass(frozen=True, slots=True)
class NamedCollective:
    """A collective by its name: what contracts of a thousand ranks are too large to list.

    chunks: of a part (:func:`p2smt.collectives.contract.contract`).
    """

    kind: str
    ranks: int
    chunks: int
    in_place: bool

    @property
    def rule(self) -> CollectiveRule:
        """What it does for any number of ranks."""
        return RULES[self.kind]

    def sizes(self, scratch: int) -> Sizes:
        """The buffers of every rank."""
        parts = self.rule.input_parts, self.rule.output_parts
        given, made = (self.chunks * (self.ranks if each else 1) for each in parts)
        return Sizes(given, made, scratch)

    def require_listed(self, scratch: int) -> None:
        """Refuses what is too large for all symmetries to be listed.

        Raises:
            TooLarge: a symmetry for each rank would name too many numbers.
        """
        if self.ranks * (self.ranks + sum(self.sizes(scratch))) > MAX_NUMBERS:
            rule = f"times that and the chunks of a rank is more than {MAX_NUMBERS}"
            raise TooLarge(f"{self.ranks} ranks", rule, "take fewer ranks or chunks")

    def givers(self, rank: int) -> Images:
        """For each output chunk, the rank whose input it is made of; -1: the sum of everyone's."""
        match self.rule.source:
            case MadeOf.SUM:
                return np.full(self.chunks, -1)
            case MadeOf.OWNER:
                return np.repeat(np.arange(self.ranks), self.chunks)
            case _:  # a ring of sends: those with a root have no symmetries
                return np.full(self.chunks, (rank - 1) % self.ranks)

    def taken(self, rank: int) -> Images:
        """For each output chunk, the input chunk of those ranks that it is made of."""
        first = rank * self.chunks if self.rule.input_parts else 0
        parts = self.ranks if self.rule.output_parts else 1
        return np.tile(first + np.arange(self.chunks), parts)

    def goals(self, rank: int) -> Iterator[tuple[int, Images]]:
        """Of each output chunk, what it must be the sum of: rank times input chunks, plus chunk."""
        size = self.sizes(0).input
        pairs = zip(self.givers(rank).tolist(), self.taken(rank).tolist(), strict=True)
        for place, (giver, chunk) in enumerate(pairs):
            givers = np.arange(self.ranks) if giver < 0 else np.array([giver])
            yield place, givers * size + chunk

    def head(self) -> Contract:
        """The contract, without what it would list."""
        ranks, rule = range(self.ranks), self.rule
        shift = tuple(rule.shift(r, self.chunks) for r in ranks) if self.in_place else ()
        return Contract(self.kind, ((),) * self.ranks, (), self.in_place, shift)


@dataclass(frozen=True, slots=True, eq=False)
class Permutation:
    """A symmetry: where it takes the ranks, and the chunks of each buffer."""

    ranks: Images
    input: Images
    output: Images
    scratch: Images

    def of(self, buffer: Buffer) -> Images:
        """Where it takes the chunks of a buffer."""
        match buffer:
            case Buffer.INPUT:
                return self.input
            case Buffer.OUTPUT:
                return self.output
            case Buffer.SCRATCH:
                return self.scratch

    def after(self, first: Permutation) -> Permutation:
        """The symmetry that does ``first``, and then this."""
        return Permutation(
            self.ranks[first.ranks],
            self.input[first.input],
            self.output[first.output],
            self.scratch[first.scratch],
        )

    def is_as(self, other: Permutation) -> bool:
        """Whether it takes everything where another one does."""
        pairs = [(self.ranks, other.ranks), *((self.of(b), other.of(b)) for b in Buffer)]
        return all(np.array_equal(a, b) for a, b in pairs)


def symmetry_of(
    what: NamedCollective, ranks: Images, chunks: Images, scratch: Images
) -> Permutation:
    """The symmetry that takes ranks, the chunks of a part, and scratch as told.

    A buffer with a part for every rank has its parts permuted as the ranks are.

    Raises:
        InputError: it is none of this collective.
    """
    parts = (ranks[:, None] * what.chunks + chunks[None, :]).ravel()
    given, made = what.rule.input_parts, what.rule.output_parts
    found = Permutation(ranks, parts if given else chunks, parts if made else chunks, scratch)
    if broken := _not_kept(what, found):
        named = f"the symmetry that takes rank 0 to {ranks[0]}"
        raise InputError(named, f"is none of {what.kind}: {broken}", "see docs/schedule-file.md")
    return found


def _not_kept(what: NamedCollective, one: Permutation) -> str | None:
    """What of a collective a permutation does not keep, in words; None: it is a symmetry."""
    if what.rule.rooted:
        return "it has a root"
    head = what.head()
    for rank in range(what.ranks):
        image = int(one.ranks[rank])
        givers, there = what.givers(rank), what.givers(image)[one.output]
        moved = np.where(givers < 0, -1, one.ranks[givers])
        chunks = one.input[what.taken(rank)]
        if not (moved == there).all() or (chunks != what.taken(image)[one.output]).any():
            return f"what rank {rank} must end with does not become what rank {image} must"
        if what.in_place and not _shared(one, head.shift[rank], head.shift[image]):
            return f"it tears apart input and output of rank {rank}, which share memory"
    return None


def _shared(one: Permutation, shift: int, there: int) -> bool:
    """Whether chunks of both buffers that share a place still do, for shifts of rank and image."""
    small, large = (one.input, one.output) if shift >= 0 else (one.output, one.input)
    places = abs(shift) + np.arange(len(small))
    return np.array_equal(large[places], abs(there) + small)


@dataclass(frozen=True, slots=True, eq=False)
class Folded:
    """A schedule told by orbits.

    what: the collective.
    programs: the steps of those ranks alone that have a program; its contract lists nothing.
    generators: the symmetries that were named; each is one of the collective.
    group: all symmetries; the first leaves everything where it is.
    homes: of each rank, the rank whose program it runs the image of, and the number of the
        symmetry that takes it there.
    """

    what: NamedCollective
    programs: Schedule
    generators: tuple[Permutation, ...]
    group: tuple[Permutation, ...]
    homes: tuple[tuple[int, int], ...]
    _runs: dict[tuple[Buffer, int, int], tuple[Images, Images]] = field(default_factory=dict)

    @property
    def orbits(self) -> int:
        """How many programs there are."""
        return self.what.ranks // len(self.group)

    @property
    def steps(self) -> int:
        """Steps of all ranks."""
        return len(self.programs.steps) * len(self.group)

    def runs(self, span: Span) -> tuple[Images, Images]:
        """Where each symmetry takes a span: the first chunk, and in which order its chunks come.

        Raises:
            InputError: one takes it to chunks that are no run.
        """
        key = span.buffer, span.start, span.count
        if key not in self._runs:
            inside = slice(span.start, span.start + span.count)
            images = np.stack([one.of(span.buffer)[inside] for one in self.group])
            first = images.min(axis=1)
            if (images.max(axis=1) - first != span.count - 1).any():
                remedy = "name chunks so that it does, or handle them one by one"
                raise InputError(f"{span}", "a symmetry does not take it to a run", remedy)
            self._runs[key] = first, images - first[:, None]
        return self._runs[key]

    def image(self, step: Step, number: int) -> Step:
        """A step as a symmetry takes it to another rank."""
        ranks = self.group[number].ranks
        return replace(
            step,
            rank=int(ranks[step.rank]),
            reads=tuple(self._image(span, number) for span in step.reads),
            writes=tuple(self._image(span, number) for span in step.writes),
            receive=step.receive and connection_image(step.receive, ranks),
            send=step.send and connection_image(step.send, ranks),
        )

    def _image(self, span: Span, number: int) -> Span:
        first = int(self.runs(span)[0][number])
        return replace(span, rank=int(self.group[number].ranks[span.rank]), start=first)

    def told(self, most: int) -> tuple[Step, ...]:
        """The steps of all ranks.

        Raises:
            TooLarge: there are more than so many.
        """
        if self.steps > most:
            rule = f"has {self.steps} steps on all ranks, and {most} can be written out"
            raise TooLarge(f"schedule {self.programs.name[:60]!r}", rule, "verify it as it is")
        own: dict[int, list[Step]] = {}
        for step in self.programs.steps:
            own.setdefault(step.rank, []).append(step)
        homes = [(own.get(home, []), number) for home, number in self.homes]
        return tuple(self.image(step, number) for steps, number in homes for step in steps)


def connection_image(one: Connection, ranks: Images) -> Connection:
    """A connection between the images of its ends."""
    return Connection(int(ranks[one.source]), int(ranks[one.target]), one.channel)


def folded(what: NamedCollective, programs: Schedule, generators: Sequence[Permutation]) -> Folded:
    """The schedule of these programs and generators.

    Raises:
        InputError: a rank has no program or several, a symmetry keeps a rank and moves others, or
            a step says what has no image.
    """
    ranks = tuple(dict.fromkeys(step.rank for step in programs.steps))
    if not ranks:
        raise InputError(f"schedule {programs.name[:60]!r}", "has no steps", "write a program")
    group = _group(generators, _identity(what, programs.sizes[0]), ranks[0])
    found = Folded(what, programs, tuple(generators), group, tuple(_homes(what, group, ranks)))
    for step in programs.steps:
        _require_image(found, step)
    return found


def _identity(what: NamedCollective, sizes: Sizes) -> Permutation:
    return Permutation(*(np.arange(size) for size in (what.ranks, *sizes)))


def _group(
    generators: Sequence[Permutation], identity: Permutation, rank: int
) -> tuple[Permutation, ...]:
    """All products of generators; each is known by where it takes a rank."""
    known = {rank: identity}
    for one in (found := [identity]):
        for generator in generators:
            image = int(generator.ranks[one.ranks[rank]])
            if image not in known:
                known[image] = generator.after(one)
                found.append(known[image])
            elif not generator.after(one).is_as(known[image]):
                rule = f"take rank {rank} to rank {image} in two ways"
                remedy = "symmetries that keep a rank must keep all ranks and chunks"
                raise InputError("the symmetries", rule, remedy)
    return tuple(found)


def _homes(
    what: NamedCollective, group: Sequence[Permutation], ranks: Sequence[int]
) -> Iterator[tuple[int, int]]:
    """Of each rank, the rank with its program and the symmetry; orbits part the ranks."""
    homes: dict[int, tuple[int, int]] = {}
    for home in ranks:
        for number, one in enumerate(group):
            image = int(one.ranks[home])
            if image in homes:
                other = homes[image][0]
                if other == home:
                    rule = f"keep rank {home} and move rank {ranks[0]}"
                    raise InputError("the symmetries", rule, "name such that move every rank")
                rule = f"are of one orbit, that of rank {image}"
                remedy = "write one of their programs, or name fewer symmetries"
                raise InputError(f"ranks {other} and {home}", rule, remedy)
            homes[image] = home, number
    missing = next((rank for rank in range(what.ranks) if rank not in homes), None)
    if missing is not None:
        rule = "is in no orbit of a rank with a program"
        raise InputError(f"rank {missing}", rule, "write its program, or name more symmetries")
    yield from (homes[rank] for rank in range(what.ranks))


def _require_image(told: Folded, step: Step) -> None:
    """Refuses a step that has no image, or that symmetries are not defined for."""
    others = (step.posts, step.awaits, step.barrier, step.background, step.lane, step.relaxed)
    spans = (*step.reads, *step.writes)
    if any(others) or any(span.packet or span.rank != step.rank for span in spans):
        rule = "has more than messages, waits and chunks of its own rank"
        raise InputError(f"{step}", rule, "write the schedule without `symmetry`")
    ends = chain.from_iterable((one[0], one[1]) for one in (step.send, step.receive) if one)
    for rank in ends:
        if not 0 <= rank < told.what.ranks:
            raise InputError(f"{step}", f"names rank {rank} of 0 to {told.what.ranks - 1}")
    sizes = told.programs.sizes[0]
    for span in spans:
        if span.start < 0 or span.count < 1 or span.start + span.count > sizes.of(span.buffer):
            raise InputError(f"{step}", f"uses {span}, which has {sizes.of(span.buffer)} chunks")
    if not spans and step.count > 1:
        raise InputError(f"{step}", "keeps no chunk in memory, and has several", "store them")
    orders = [told.runs(span)[1] for span in spans]
    if any(not np.array_equal(orders[0], other) for other in orders[1:]):
        raise InputError(f"{step}", "has chunks that a symmetry takes to others in two orders")
