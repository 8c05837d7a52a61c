"""Reads a schedule file: one schedule, or a family of them with parameters."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, TypeVar

from pydantic import BaseModel, ValidationError

from p2smt.errors import InputError
from p2smt.files.validation import validated
from p2smt.files.yaml_text import load_yaml_lines, read_text
from p2smt.problems.race import Operator, Term
from p2smt.schedules.language.contract_text import GoalText, parse_goal
from p2smt.schedules.language.expression import TokenStream, parse, take_term
from p2smt.schedules.language.file_model import BlockModel, FileModel, ParameterModel
from p2smt.schedules.language.grammar import NameText, StepText, parse_step, take_name
from p2smt.schedules.language.items import (
    Group,
    Line,
    Range,
    SourceFile,
    located,
    parse_condition,
    parse_items,
    parse_ranges,
)

if TYPE_CHECKING:
    from collections.abc import Callable

M = TypeVar("M", bound=BaseModel)

MAX_SCHEDULE_BYTES = 32 * 2**20


@dataclass(frozen=True, slots=True)
class Block:
    """Thread blocks of one template; ``rank`` None: one on each rank."""

    repeat: tuple[Range, ...]
    rank: Term | None
    block: Term
    when: Term | None
    parts: tuple[Line[StepText] | Group[StepText], ...]
    line: int


CounterText = tuple[NameText, "Term"]


@dataclass(frozen=True, slots=True)
class Symbolic:
    """A schedule file, parsed; :func:`p2smt.schedules.language.instance.instantiate` fills it in.

    free: parameters with the values they may have; derived: those that follow, in order.
    """

    model: FileModel
    file: SourceFile
    ranks: Term
    free: tuple[tuple[str, ParameterModel], ...]
    derived: tuple[tuple[str, Term], ...]
    blocks: tuple[Block, ...]
    goals: tuple[Line[GoalText] | Group[GoalText], ...]
    initial: tuple[Line[CounterText] | Group[CounterText], ...]

    @property
    def source(self) -> str:
        """The file's name."""
        return self.file.source

    def line(self, *path: int | str) -> int:
        """The line of a key."""
        return self.file.line(path)


def read_symbolic(path: str) -> Symbolic:
    """The schedules of a file.

    Raises:
        InputError: it cannot be read, or is no schedule file; names the line.
    """
    return parse_symbolic(read_text(path, "schedule", MAX_SCHEDULE_BYTES), path)


def parse_symbolic(text: str, source: str = "schedule") -> Symbolic:
    """The schedules of a file's text; ``source`` names it in messages.

    Raises:
        InputError: the text is no schedule file; names the line.
    """
    data, lines = load_yaml_lines(text, source, MAX_SCHEDULE_BYTES)
    file = SourceFile(source, lines)
    model = _checked(FileModel, data, file)
    free, derived = _parameters(model, file)
    cached = lru_cache(maxsize=4096)(parse_step)
    with located(source, file.line(("ranks",))):
        ranks = parse(model.ranks)
    goals = model.collective.goals or ()
    return Symbolic(
        model,
        file,
        ranks,
        free,
        derived,
        tuple(_block(block, file, i, cached) for i, block in enumerate(model.blocks)),
        parse_items(goals, parse_goal, file, ("collective", "goals")),
        parse_items(model.initial, _counter, file, ("initial",)),
    )


def _checked(model: type[M], data: object, file: SourceFile) -> M:
    """The data as a model; an error names the line of the key that is wrong."""
    try:
        return model.model_validate(data)
    except ValidationError as error:
        found = error.errors(include_url=False)
        first = min(found, key=lambda detail: detail["type"] != "extra_forbidden")
        path = tuple(part for part in first["loc"] if part not in ("text", "group"))
        if first["type"] == "missing":
            path = path[:-1]
    return validated(model, data, f"{file.source}, line {file.line(path)}")


def _parameters(
    model: FileModel, file: SourceFile
) -> tuple[tuple[tuple[str, ParameterModel], ...], tuple[tuple[str, Term], ...]]:
    free, derived = [], []
    for name, given in model.parameters.items():
        with located(file.source, file.line(("parameters", name))):
            if not name.isidentifier() or name == "rank" or parse(name).op is not Operator.NAME:
                raise InputError(f"parameter {name[:60]!r}", "is no name", "such as n")
            if isinstance(given, ParameterModel):
                free.append((name, given))
            else:
                derived.append((name, parse(given)))
    return tuple(free), tuple(derived)


def _block(
    model: BlockModel, file: SourceFile, position: int, one: Callable[[str], StepText]
) -> Block:
    path = ("blocks", position)
    with located(file.source, file.line((*path, "rank"))):
        rank = None if model.rank == "each" else parse(model.rank)
    with located(file.source, file.line((*path, "block"))):
        block = parse(model.block)
    return Block(
        parse_ranges(model.repeat, file, (*path, "repeat")),
        rank,
        block,
        parse_condition(model.when, file, path),
        parse_items(model.steps, one, file, (*path, "steps")),
        file.line(path),
    )


def _counter(text: str) -> CounterText:
    tokens = TokenStream(text)
    name = take_name(tokens)
    tokens.expect("=")
    value = take_term(tokens)
    if tokens.peek():
        raise tokens.error("expected the end", "write NAME = NUMBER")
    return name, value
