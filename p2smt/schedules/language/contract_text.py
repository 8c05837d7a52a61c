"""The ``collective`` of a schedule file: a named one, or starts and goals that are given."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from p2smt.collectives.contract import RULES, Contract, Contribution, Goal, contract
from p2smt.collectives.names import COLLECTIVES
from p2smt.errors import InputError, TooLarge
from p2smt.schedules.language.expression import TokenStream, evaluate, parse
from p2smt.schedules.language.grammar import SpanText, take_span
from p2smt.schedules.model import Buffer

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from p2smt.schedules.language.file_model import CollectiveModel

MAX_CONTRIBUTIONS = 4_000_000
_SAME_SIZE = ("allreduce", "reduce", "broadcast", "sendrecv")
_PARTED = ("reduce_scatter", "alltoall", "scatter")

GoalText = tuple[SpanText, tuple[SpanText, ...]]


def named_contract(model: CollectiveModel, ranks: int, values: Mapping[str, int]) -> Contract:
    """The contract of a collective that is given by its name and chunks.

    Raises:
        InputError: the name, the chunks or the root is wrong, or starts are given.
        TooLarge: it has more than 4,000,000 contributions.
    """
    chunks, root = named_collective(model, values)
    if ranks * chunks * (1 if model.kind in _SAME_SIZE else ranks) > MAX_CONTRIBUTIONS:
        rule = f"has more than {MAX_CONTRIBUTIONS} contributions"
        raise TooLarge(f"{model.kind} of {chunks} chunks on {ranks} ranks", rule, "take fewer")
    return contract(model.kind, ranks, chunks, in_place=model.in_place, root=root)


def named_collective(model: CollectiveModel, values: Mapping[str, int]) -> tuple[int, int]:
    """The chunks and the root of a collective that is given by its name.

    Raises:
        InputError: the name or the chunks are wrong, or starts are given.
    """
    if model.kind not in COLLECTIVES:
        known = ", ".join(COLLECTIVES)
        remedy = f"one of {known}; or give its starts and goals"
        raise InputError(f"collective {model.kind[:60]!r}", "is not known", remedy)
    if model.starts is not None or model.shift is not None:
        raise InputError("starts and shift", "are for a collective with goals", "give its goals")
    if model.chunks is None:
        raise InputError(
            f"collective {model.kind}", "needs a number of chunks", "such as chunks: 4"
        )
    chunks, root = (evaluate(parse(text), values) for text in (model.chunks, model.root))
    if chunks < 1:
        raise InputError(f"chunks {chunks}", "must be at least 1")
    return chunks, root


def parse_goal(text: str) -> GoalText:
    """An output chunk and the input chunks that it must be the sum of.

    Raises:
        InputError: the text is no goal.
    """
    tokens = TokenStream(text)
    target = take_span(tokens)
    tokens.expect("=")
    parts: list[SpanText] = []
    if not tokens.accept("nothing"):
        parts.append(take_span(tokens))
        while tokens.accept("+"):
            parts.append(take_span(tokens))
    if tokens.peek():
        raise tokens.error("expected '+' or the end")
    if target.buffer is not Buffer.OUTPUT or any(p.buffer is not Buffer.INPUT for p in parts):
        raise InputError(f"goal {text[:80]!r}", "must be o[..]@RANK = i[..]@RANK + ..")
    return target, tuple(parts)


def goals_of(text: GoalText, values: Mapping[str, int]) -> list[Goal]:
    """One goal per chunk of the target; chunk j of it is the sum of chunk j of the parts.

    Raises:
        InputError: a part has another number of chunks than the target.
    """
    target, *parts = (_cells(span, values) for span in (text[0], *text[1]))
    if any(len(part) != len(target) for part in parts):
        raise InputError("goal", "its parts have other numbers of chunks than the target")
    sums = zip(*parts, strict=True) if parts else [()] * len(target)
    return [Goal(*cell, tuple(part)) for cell, part in zip(target, sums, strict=True)]


def _cells(span: SpanText, values: Mapping[str, int]) -> list[Contribution]:
    first, last, rank = (evaluate(term, values) for term in (span.first, span.last, span.rank))
    if last - first >= MAX_CONTRIBUTIONS:
        raise TooLarge(f"chunks {first}..{last}", f"are more than {MAX_CONTRIBUTIONS}")
    return [Contribution(rank, chunk) for chunk in range(first, last + 1)]


def start_of(text: str, values: Mapping[str, int]) -> tuple[Contribution | None, ...]:
    """What the input chunks of a rank hold: input chunks of ranks, or ``nothing``.

    Raises:
        InputError: the text is no list of such.
    """
    tokens = TokenStream(text)
    found: list[Contribution | None] = []
    while tokens.peek():
        if tokens.accept("nothing"):
            found.append(None)
        else:
            span = take_span(tokens)
            if span.buffer is not Buffer.INPUT:
                raise InputError(f"{text[:80]!r}", "only input chunks hold something at the start")
            found += _cells(span, values)
        if tokens.peek():
            tokens.expect(",")
    return tuple(found)


def contract_data(given: Contract) -> dict[str, object]:
    """The ``collective`` of a file for a contract; the short form where it says the same."""
    if (short := _short(given)) is not None:
        return short
    data: dict[str, object] = {"kind": given.collective}
    if given.in_place:
        data["in_place"] = True
    if given.shift:
        data["shift"] = list(given.shift)
    data["starts"] = [_start_text(start) for start in given.starts]
    data["goals"] = [_goal_text(goal) for goal in given.goals]
    return data


def _short(given: Contract) -> dict[str, object] | None:
    kind, ranks = given.collective, given.ranks
    if kind not in COLLECTIVES or not ranks or not given.starts[0]:
        return None
    size = len(given.starts[0])
    chunks = size // ranks if kind in _PARTED else size
    root = _root(given)
    if chunks < 1 or not 0 <= root < ranks:
        return None
    if contract(kind, ranks, chunks, in_place=given.in_place, root=root) != given:
        return None
    data: dict[str, object] = {"kind": kind, "chunks": chunks}
    if root:
        data["root"] = root
    if given.in_place:
        data["in_place"] = True
    return data


def _root(given: Contract) -> int:
    if not RULES[given.collective].rooted:
        return 0
    if given.collective in ("reduce", "gather"):
        return given.goals[0].rank if given.goals else 0
    return next((r for r, start in enumerate(given.starts) if start and start[0]), 0)


def _start_text(start: Sequence[Contribution | None]) -> str:
    texts: list[str] = []
    run: list[Contribution] = []
    for part, after in pairwise((*start, None)):
        if part is None:
            texts.append("nothing")
            continue
        run.append(part)
        if after != Contribution(part.rank, part.chunk + 1):
            texts.append(_input_text(run))
            run = []
    return ", ".join(texts)


def _input_text(run: list[Contribution]) -> str:
    first, last = run[0], run[-1]
    chunks = str(first.chunk) if first == last else f"{first.chunk}..{last.chunk}"
    return f"i[{chunks}]@{atom_text(first.rank)}"


def _goal_text(goal: Goal) -> str:
    parts = " + ".join(_input_text([part]) for part in goal.parts)
    return f"o[{goal.chunk}]@{atom_text(goal.rank)} = {parts or 'nothing'}"


def atom_text(value: int) -> str:
    """A number where only an atom may stand."""
    return str(value) if value >= 0 else f"({value})"
