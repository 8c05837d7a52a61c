"""Fills in the parameters of a schedule file: one schedule, every step with its line."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from p2smt.collectives.contract import Contract
from p2smt.errors import InputError
from p2smt.schedules.folded import Folded, NamedCollective, Permutation, folded, symmetry_of
from p2smt.schedules.language.contract_text import (
    goals_of,
    named_collective,
    named_contract,
    start_of,
)
from p2smt.schedules.language.expression import evaluate, parse
from p2smt.schedules.language.file_model import BuffersModel, SymmetryModel
from p2smt.schedules.language.items import MAX_TURNS, Budget, error_at, expand, located, turns
from p2smt.schedules.language.schedule_file import Symbolic, parse_symbolic, read_symbolic
from p2smt.schedules.model import Connection, Schedule, Sizes, Span, Step, StepRef

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from numpy.typing import NDArray

    from p2smt.problems.race import Term
    from p2smt.schedules.language.grammar import NameText, PeerText, RefText, SpanText, StepText
    from p2smt.schedules.language.schedule_file import Block, Symbolic


MAX_RANKS = 65_536


def read_schedule(path: str, parameters: Mapping[str, int] | None = None) -> Schedule:
    """The schedule of a file, with these parameters.

    Raises:
        InputError: it cannot be read, is no schedule file, or lacks a parameter.
    """
    return instantiate(read_symbolic(path), parameters or {})


def parse_schedule(
    text: str, source: str = "schedule", parameters: Mapping[str, int] | None = None
) -> Schedule:
    """The schedule of a file's text, with these parameters.

    Raises:
        InputError: the text is no schedule file, or a parameter is missing.
    """
    return instantiate(parse_symbolic(text, source), parameters or {})


def instantiate(symbolic: Symbolic, parameters: Mapping[str, int]) -> Schedule:
    """The schedule for values of the parameters; ``Step.line`` is the line of the template.

    A derived parameter may be given instead of the free one that it follows from.

    Raises:
        InputError: a parameter is missing, unknown or out of its range, or an expression has
            no value there; names the line.
    """
    values = parameter_values(symbolic, parameters)
    ranks, budget, model = _ranks(symbolic, values), Budget(), symbolic.model
    if model.symmetry:
        return _told(symbolic, fold(symbolic, parameters), ranks, values)
    contract = _contract(symbolic, ranks, values, budget)
    return Schedule(
        name=model.name,
        contract=contract,
        sizes=_sizes(symbolic, contract, values),
        steps=_Steps(symbolic, ranks, values, budget).all(),
        form=model.form,
        protocol=model.protocol,
        initial=tuple(_initial(symbolic, values, budget)),
        warnings=tuple(model.warnings),
    )


def _ranks(symbolic: Symbolic, values: dict[str, int]) -> int:
    with located(symbolic.source, symbolic.line("ranks")):
        ranks = evaluate(symbolic.ranks, values)
        if not 1 <= ranks <= MAX_RANKS:
            raise InputError(f"ranks {ranks}", f"must be 1 to {MAX_RANKS}")
    return ranks


def _contract(symbolic: Symbolic, ranks: int, values: dict[str, int], budget: Budget) -> Contract:
    model = symbolic.model.collective
    with located(symbolic.source, symbolic.line("collective")):
        if model.goals is None:
            return named_contract(model, ranks, values)
        if model.starts is None or len(model.starts) != ranks:
            given = "no starts" if model.starts is None else f"{len(model.starts)} starts"
            raise InputError(given, f"there are {ranks} ranks", "give one line for each")
        shift = tuple(evaluate(parse(text), values) for text in model.shift or ())
        starts = tuple(start_of(text, values) for text in model.starts)
    goals = []
    for line, inside in expand(symbolic.goals, values, symbolic.source, budget):
        with located(symbolic.source, line.line):
            goals += goals_of(line.value, inside)
    with located(symbolic.source, symbolic.line("collective")):
        shift = shift or (0,) * ranks * model.in_place
        return Contract(model.kind, starts, tuple(goals), model.in_place, shift)


def default_sizes(contract: Contract) -> tuple[Sizes, ...]:
    """The buffer sizes that follow from a contract, without scratch."""
    output = 1 + max((goal.chunk for goal in contract.goals), default=-1)
    return tuple(Sizes(len(start), output, 0) for start in contract.starts)


def _sizes(symbolic: Symbolic, contract: Contract, values: dict[str, int]) -> tuple[Sizes, ...]:
    given, usual = symbolic.model.buffers, default_sizes(contract)
    with located(symbolic.source, symbolic.line("buffers")):
        if isinstance(given, BuffersModel):
            given = [given] * len(usual)
        if len(given) != len(usual):
            raise InputError(f"{len(given)} buffers", f"there are {len(usual)} ranks")
        pairs = enumerate(zip(given, usual, strict=True))
        return tuple(_size(model, size, {**values, "rank": r}) for r, (model, size) in pairs)


def _size(model: BuffersModel, usual: Sizes, values: dict[str, int]) -> Sizes:
    return Sizes(
        usual.input if model.input is None else _number(parse(model.input), values),
        usual.output if model.output is None else _number(parse(model.output), values),
        _number(parse(model.scratch), values),
    )


def _initial(
    symbolic: Symbolic, values: dict[str, int], budget: Budget
) -> Iterator[tuple[str, int]]:
    for line, inside in expand(symbolic.initial, values, symbolic.source, budget):
        with located(symbolic.source, line.line):
            name, value = line.value
            yield name_of(name, inside), evaluate(value, inside)


def _number(term: Term, values: Mapping[str, int]) -> int:
    value = evaluate(term, values)
    if not 0 <= value < MAX_NUMBER:
        raise InputError(f"{value}", f"must be 0 to {MAX_NUMBER - 1}")
    return value


def name_of(name: NameText, values: Mapping[str, int]) -> str:
    """The name with its numbers filled in, as in ``ready[3, 1]``."""
    if not name.places:
        return name.text
    return f"{name.text}[{', '.join(str(evaluate(place, values)) for place in name.places)}]"


@dataclass(slots=True)
class _Steps:
    """Builds the steps of all ranks, numbering those of each block."""

    symbolic: Symbolic
    ranks: int
    values: dict[str, int]
    budget: Budget
    lengths: dict[tuple[int, int], int] = field(default_factory=dict)

    def all(self) -> tuple[Step, ...]:
        """The steps of all blocks, in document order; of one template rank by rank."""
        return tuple(step for block in self.symbolic.blocks for step in self._template(block))

    def _template(self, block: Block) -> Iterator[Step]:
        source = self.symbolic.source
        ranks = range(self.ranks) if block.rank is None else (None,)
        self.budget.spend((source, block.line), len(ranks))
        for rank in ranks:
            values = self.values if rank is None else {**self.values, "rank": rank}
            for inside in turns(block.repeat, None, values, (source, block.line), self.budget):
                yield from self._block(block, inside)

    def _block(self, block: Block, values: dict[str, int]) -> Iterator[Step]:
        source = self.symbolic.source
        with located(source, block.line):
            if block.rank is not None:
                values = {**values, "rank": _number(block.rank, values)}
            if block.when is not None and not evaluate(block.when, values):
                return
            rank, number = values["rank"], _number(block.block, values)
            if rank >= self.ranks:
                raise InputError(f"rank {rank}", f"the ranks are 0 to {self.ranks - 1}")
        for line, inside in expand(block.parts, values, source, self.budget):
            index = self.lengths.get((rank, number), 0)
            self.lengths[rank, number] = index + 1
            try:
                yield step_of(line.value, inside, (rank, number, index), line.line)
            except InputError as error:
                raise error_at(source, line.line, error) from None


def step_of(
    text: StepText, values: Mapping[str, int], where: tuple[int, int, int], line: int
) -> Step:
    """The step of a template; ``where`` is its rank, block and index.

    Raises:
        InputError: an expression has no value, or a number of chunks is negative.
    """
    reads = tuple([_span(span, values) for span in text.reads])
    writes = tuple([_span(span, values) for span in text.writes])
    message = text.receive is not None or text.send is not None
    usual = (reads or writes)[0].count if reads or writes else int(message)
    return Step(
        *where,
        kind=text.kind,
        count=usual if text.count is None else _number(text.count, values),
        reads=reads,
        writes=writes,
        receive=_connection(text.receive, values),
        send=_connection(text.send, values),
        waits=_refs(text.waits, values),
        after=None if text.after is None else _refs(text.after, values),
        posts=tuple([name_of(name, values) for name in text.posts]),
        awaits=tuple([name_of(name, values) for name in text.awaits]),
        relaxed=text.relaxed,
        barrier=None if text.barrier is None else name_of(text.barrier, values),
        background=text.background,
        lane=text.lane,
        line=line,
    )


def _span(span: SpanText, values: Mapping[str, int]) -> Span:
    first = evaluate(span.first, values)
    last = first if span.last is span.first else evaluate(span.last, values)
    count = last - first + 1
    if not (abs(first) < MAX_NUMBER and 0 <= count < MAX_NUMBER):
        raise InputError(f"chunks {first}..{last}", "are not a range", "write FIRST..LAST")
    return Span(evaluate(span.rank, values), span.buffer, first, count, span.packet)


def _connection(peer: PeerText | None, values: Mapping[str, int]) -> Connection | None:
    if peer is None:
        return None
    return Connection(
        evaluate(peer.source, values), evaluate(peer.target, values), evaluate(peer.channel, values)
    )


def _refs(refs: tuple[RefText, ...], values: Mapping[str, int]) -> tuple[StepRef, ...]:
    return tuple([StepRef(evaluate(block, values), evaluate(at, values)) for block, at in refs])


# The values of a schedule file's parameters, from those that are given.


MAX_NUMBER = 2**31
_MOST_TRIED = 4096


def parameter_values(symbolic: Symbolic, given: Mapping[str, int]) -> dict[str, int]:
    """The values of all parameters, from those given.

    Raises:
        InputError: one is missing, unknown, out of its range, or contradicts the others.
    """
    free = dict(symbolic.free)
    known = [*free, *(name for name, _ in symbolic.derived)]
    for name in given:
        if name not in known:
            rule = f"is not a parameter; there is {', '.join(known) or 'none'}"
            raise InputError(f"{symbolic.source}: {name[:60]!r}", rule)
    missing = [name for name in free if name not in given]
    if not missing:
        return _agreeing(symbolic, given, given)
    if len(missing) == 1 and any(name not in free for name in given):
        return _searched(symbolic, given, missing[0])
    rule = "has no value"
    raise InputError(f"{symbolic.source}: parameter {missing[0]}", rule, f"give {missing[0]}=..")


def _searched(symbolic: Symbolic, given: Mapping[str, int], missing: str) -> dict[str, int]:
    """The least value of the missing parameter that gives what is given."""
    spec = dict(symbolic.free)[missing]
    last = spec.at_least + _MOST_TRIED
    for value in range(spec.at_least, min(last, spec.at_most or last) + 1):
        try:
            return _agreeing(symbolic, {**given, missing: value}, given)
        except InputError:
            continue
    shown = ", ".join(f"{name} = {value}" for name, value in given.items())
    rule = f"does not follow from a value of {missing}"
    raise InputError(f"{symbolic.source}: {shown}", rule, f"give {missing}=..")


def _agreeing(
    symbolic: Symbolic, values: Mapping[str, int], given: Mapping[str, int]
) -> dict[str, int]:
    found = {}
    for name, spec in symbolic.free:
        value = found[name] = values[name]
        most = MAX_NUMBER if spec.at_most is None else spec.at_most
        if not spec.at_least <= value <= most:
            rule = f"must be {spec.at_least} to {most}"
            raise InputError(f"{symbolic.source}: {name} = {value}", rule)
    for name, term in symbolic.derived:
        with located(symbolic.source, symbolic.line("parameters", name)):
            found[name] = evaluate(term, found)
            if given.get(name, found[name]) != found[name]:
                raise InputError(f"{name} = {given[name]}", f"must be {found[name]}")
    return found


# Schedules told by one program per orbit, and the symmetries that give the others.


_CYCLES = re.compile(r"(?:\(\s*\d{1,9}(?:\s+\d{1,9})*\s*\)\s*)+", re.ASCII)


def fold(symbolic: Symbolic, parameters: Mapping[str, int]) -> Folded:
    """The programs and symmetries of a file that has any, for values of the parameters.

    Raises:
        InputError: as :func:`instantiate`; a symmetry is none of the collective; the orbits of the
            ranks with a program overlap, or leave one out; a program says what has no image.
    """
    values = parameter_values(symbolic, parameters)
    ranks, budget, model = _ranks(symbolic, values), Budget(), symbolic.model
    what, scratch = _named(symbolic, ranks, values)
    each = next((block for block in symbolic.blocks if block.rank is None), None)
    if each is not None:
        given = f"{symbolic.source}, line {each.line}: a block of each rank"
        raise InputError(given, "is none of an orbit", "name one rank of each orbit")
    programs = Schedule(
        model.name,
        what.head(),
        (what.sizes(scratch),) * ranks,
        _Steps(symbolic, ranks, values, budget).all(),
        form=model.form,
        protocol=model.protocol,
        warnings=tuple(model.warnings),
    )
    generators = []
    for number, one in enumerate(model.symmetry):
        with located(symbolic.source, symbolic.line("symmetry", number)):
            generators.append(_symmetry(one, what, scratch, values))
    with located(symbolic.source, symbolic.line("symmetry")):
        return folded(what, programs, generators)


def _named(symbolic: Symbolic, ranks: int, values: dict[str, int]) -> tuple[NamedCollective, int]:
    """The collective, and how much scratch every rank has."""
    model, buffers = symbolic.model.collective, symbolic.model.buffers
    with located(symbolic.source, symbolic.line("collective")):
        if model.goals is not None:
            raise InputError("goals", "are of no collective with a name", "drop `symmetry`")
        chunks, _ = named_collective(model, values)
    with located(symbolic.source, symbolic.line("buffers")):
        if not isinstance(buffers, BuffersModel) or buffers.input or buffers.output:
            raise InputError("buffers", "are alike under a symmetry", "give scratch alone")
        scratch = _number(parse(buffers.scratch), values)
    if symbolic.model.initial:
        with located(symbolic.source, symbolic.line("initial")):
            raise InputError("counters", "have no images", "write the file without `symmetry`")
    found = NamedCollective(model.kind, ranks, chunks, model.in_place)
    with located(symbolic.source, symbolic.line("ranks")):
        found.require_listed(scratch)
    return found, scratch


def _symmetry(
    one: SymmetryModel, what: NamedCollective, scratch: int, values: dict[str, int]
) -> Permutation:
    return symmetry_of(
        what,
        permutation_of(one.ranks, "rank", what.ranks, values),
        permutation_of(one.chunks, "chunk", what.chunks, values),
        permutation_of(one.scratch, "chunk", scratch, values),
    )


def permutation_of(text: str, word: str, size: int, values: Mapping[str, int]) -> NDArray[np.int64]:
    """Where a text takes the numbers 0, 1, .. below ``size``; ``word`` stands for them in it.

    Raises:
        InputError: the text cannot be read, names others, or takes two to the same.
    """
    text = text.strip()
    if not size:
        return np.arange(0)
    if _CYCLES.fullmatch(text):
        images = _cycled(text, word, size)
    elif text.startswith("shift "):
        images = _shifted(text, word, size, values)
    else:
        term = parse(text)
        images = [evaluate(term, {**values, word: number}) for number in range(size)]
    outside = next((image for image in images if not 0 <= image < size), None)
    if outside is not None:
        raise InputError(f"symmetry {text[:60]!r}", f"names {word} {outside} of {size}")
    if len(set(images)) < size:
        twice = next(image for image in images if images.count(image) > 1)
        rule = f"is no permutation: it takes two to {word} {twice}"
        raise InputError(f"symmetry {text[:60]!r}", rule)
    return np.array(images, dtype=np.int64)


def _cycled(text: str, word: str, size: int) -> list[int]:
    images = list(range(size))
    numbers = [int(number) for number in re.findall(r"\d+", text)]
    for number in numbers:
        if number >= size:
            raise InputError(f"symmetry {text[:60]!r}", f"names {word} {number} of {size}")
    if len(set(numbers)) < len(numbers):
        raise InputError(f"symmetry {text[:60]!r}", f"names a {word} twice")
    for part in re.findall(r"\(([^)]*)\)", text):
        cycle = [int(number) for number in part.split()]
        for here, there in zip(cycle, (*cycle[1:], cycle[0]), strict=True):
            images[here] = there
    return images


def _shifted(text: str, word: str, size: int, values: Mapping[str, int]) -> list[int]:
    far, _, inside = text.removeprefix("shift ").partition(" in ")
    by, run = evaluate(parse(far), values), evaluate(parse(inside), values) if inside else size
    if run < 1 or size % run:
        rule = f"must be in runs that divide the {size} {word}s"
        raise InputError(f"symmetry {text[:60]!r}", rule, f"such as shift 1 in {size}")
    return [number - number % run + (number + by) % run for number in range(size)]


def _told(symbolic: Symbolic, found: Folded, ranks: int, values: dict[str, int]) -> Schedule:
    """The schedule of all ranks, step by step."""
    steps = found.told(MAX_TURNS)
    contract = _contract(symbolic, ranks, values, Budget())
    return replace(found.programs, contract=contract, steps=steps)
