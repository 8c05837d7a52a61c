"""Lines of a schedule file and groups of them, repeated or conditional."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

from p2smt.errors import InputError, TooLarge
from p2smt.schedules.language.expression import TokenStream, evaluate, parse, take_term
from p2smt.schedules.language.file_model import GroupModel

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from p2smt.files.yaml_text import Lines, Path
    from p2smt.problems.race import Term

T = TypeVar("T")

MAX_TURNS = 1_000_000


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A file and its line numbers."""

    source: str
    lines: Lines

    def line(self, path: Path) -> int:
        """The line of a part, or of the nearest part that it is in."""
        while path and path not in self.lines:
            path = path[:-1]
        return self.lines.get(path, 1)


@contextmanager
def located(source: str, line: int) -> Iterator[None]:
    """Errors inside name the file and this line."""
    try:
        yield
    except InputError as error:
        raise error_at(source, line, error) from None


def error_at(source: str, line: int, error: InputError) -> InputError:
    """The error with the file and the line in front."""
    return type(error)(f"{source}, line {line}: {error.given}", error.rule, error.remedy)


@dataclass(frozen=True, slots=True)
class Range:
    """A name that takes the values ``low`` to ``high``, both included."""

    name: str
    low: Term
    high: Term


@dataclass(frozen=True, slots=True)
class Line(Generic[T]):
    """A line, parsed."""

    value: T
    line: int


@dataclass(frozen=True, slots=True)
class Group(Generic[T]):
    """Lines that are repeated over ranges while ``when`` holds."""

    repeat: tuple[Range, ...]
    when: Term | None
    holds: tuple[Line[str], ...]
    parts: tuple[Line[T] | Group[T], ...]
    line: int


class Budget:
    """Turns of loops that are left, over a whole file."""

    def __init__(self) -> None:
        self.left = MAX_TURNS

    def spend(self, where: tuple[str, int], turns: int = 1) -> None:
        """Take some; ``where`` is the file and the line.

        Raises:
            TooLarge: none are left.
        """
        self.left -= turns
        if self.left < 0:
            rule = f"gives more than {MAX_TURNS} lines and turns of loops"
            given = f"{where[0]}, line {where[1]}: the schedule"
            raise TooLarge(given, rule, "take smaller parameters")


def parse_ranges(ranges: Mapping[str, str], file: SourceFile, path: Path) -> tuple[Range, ...]:
    """The ranges of a group; ``path`` is where they are.

    Raises:
        InputError: one is neither LOW..HIGH nor one value.
    """
    found = []
    for name, text in ranges.items():
        with located(file.source, file.line((*path, name))):
            tokens = TokenStream(text)
            low = take_term(tokens)
            high = take_term(tokens) if tokens.accept("..") else low
            if tokens.peek():
                raise tokens.error("expected the end", "write LOW..HIGH, or one value")
            if not name.isidentifier() or name == "rank":
                raise InputError(f"name {name[:60]!r}", "cannot be repeated over", "such as t")
            found.append(Range(name, low, high))
    return tuple(found)


def parse_condition(when: str | None, file: SourceFile, path: Path) -> Term | None:
    """The condition of a group; None if there is none.

    Raises:
        InputError: it is no expression.
    """
    if when is None:
        return None
    with located(file.source, file.line((*path, "when"))):
        return parse(when)


def parse_items(
    items: Sequence[str | GroupModel], one: Callable[[str], T], file: SourceFile, path: Path
) -> tuple[Line[T] | Group[T], ...]:
    """Lines and groups, each line parsed by ``one``; ``path`` is where the list is.

    Raises:
        InputError: a line or a range cannot be parsed; names its line number.
    """
    parts: list[Line[T] | Group[T]] = []
    for position, item in enumerate(items):
        here = (*path, position)
        if isinstance(item, GroupModel):
            parts.append(_group(item, one, file, here))
        else:
            line = file.line(here)
            try:
                parts.append(Line(one(item), line))
            except InputError as error:
                raise error_at(file.source, line, error) from None
    return tuple(parts)


def _group(model: GroupModel, one: Callable[[str], T], file: SourceFile, path: Path) -> Group[T]:
    lines = enumerate(model.holds)
    return Group(
        parse_ranges(model.repeat, file, (*path, "repeat")),
        parse_condition(model.when, file, path),
        tuple(Line(text, file.line((*path, "holds", i))) for i, text in lines),
        parse_items(model.do, one, file, (*path, "do")),
        file.line(path),
    )


def expand(
    parts: Sequence[Line[T] | Group[T]], values: dict[str, int], source: str, budget: Budget
) -> Iterator[tuple[Line[T], dict[str, int]]]:
    """Every line with the values of names there, in order.

    Raises:
        InputError: an expression has no value.
        TooLarge: the budget is spent.
    """
    for part in parts:
        if isinstance(part, Line):
            budget.spend((source, part.line))
            yield part, values
            continue
        for inside in turns(part.repeat, part.when, values, (source, part.line), budget):
            yield from expand(part.parts, inside, source, budget)


def turns(
    repeat: tuple[Range, ...],
    when: Term | None,
    values: dict[str, int],
    where: tuple[str, int],
    budget: Budget,
) -> Iterator[dict[str, int]]:
    """The values of names in every turn in which ``when`` holds; ``where``: file and line.

    Raises:
        InputError: an expression has no value.
        TooLarge: the budget is spent.
    """
    if not repeat:
        with located(*where):
            holds = when is None or evaluate(when, values)
        if holds:
            yield values
        return
    first, *others = repeat
    with located(*where):
        if first.name in values:
            raise InputError(f"name {first.name!r}", "has a value already", "take another name")
        low, high = evaluate(first.low, values), evaluate(first.high, values)
    budget.spend(where, max(0, high - low + 1))
    for value in range(low, high + 1):
        yield from turns(tuple(others), when, {**values, first.name: value}, where, budget)
