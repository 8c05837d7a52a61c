"""Writes a schedule as a schedule file, in the one canonical form."""

from __future__ import annotations

import json
import re
from itertools import groupby
from typing import TYPE_CHECKING

from p2smt.errors import InputError
from p2smt.files.yaml_text import dump_yaml
from p2smt.schedules.language.contract_text import atom_text, contract_data
from p2smt.schedules.language.grammar import CONTROLS, DataActions, fits, verb_of
from p2smt.schedules.language.instance import default_sizes

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from p2smt.schedules.model import Connection, Schedule, Sizes, Span, Step, StepRef

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_PLACE = r"(?:0|-?[1-9][0-9]{0,17})"
_PLACED = re.compile(rf"{_NAME.pattern}\[{_PLACE}(?:, {_PLACE})*\]")
_PLAIN = re.compile(r"[a-z][A-Za-z0-9_ \[\].,+@>()\"-]*")


def dump_schedule(schedule: Schedule) -> str:
    """The text of the schedule file; reading it gives the same schedule.

    Raises:
        InputError: the steps of a block are not numbered 0, 1, .. in order.
    """
    head = {"p2smt_schedule": 1, "name": schedule.name}
    for key, usual in (("form", "yaml"), ("protocol", "Simple")):
        if getattr(schedule, key) != usual:
            head[key] = getattr(schedule, key)
    text = dump_yaml(head) + _collective_text(schedule)
    text += dump_yaml({"ranks": schedule.ranks} | _buffers(schedule))
    if schedule.initial:
        lines = [f"{name_text(name)} = {value}" for name, value in schedule.initial]
        text += dump_yaml({"initial": lines})
    if schedule.warnings:
        text += dump_yaml({"warnings": list(schedule.warnings)})
    blocks = "\n".join(_blocks(schedule))
    return text + (f"blocks:\n{blocks}\n" if blocks else "blocks: []\n")


def _collective_text(schedule: Schedule) -> str:
    data = contract_data(schedule.contract)
    if "goals" in data:
        return dump_yaml({"collective": data})
    inside = ", ".join(f"{key}: {json.dumps(value).strip(chr(34))}" for key, value in data.items())
    return f"collective: {{{inside}}}\n"


def _buffers(schedule: Schedule) -> dict[str, object]:
    usual = default_sizes(schedule.contract)
    if usual == schedule.sizes:
        return {}
    given = [_buffer(*pair) for pair in zip(schedule.sizes, usual, strict=True)]
    return {"buffers": given[0] if all(one == given[0] for one in given) else given}


def _buffer(size: Sizes, usual: Sizes) -> dict[str, int]:
    pairs = zip(("input", "output", "scratch"), size, usual, strict=True)
    return {key: value for key, value, known in pairs if value != known}


def _blocks(schedule: Schedule) -> Iterator[str]:
    lengths: dict[tuple[int, int], int] = {}
    for where, steps in groupby(schedule.steps, key=lambda step: (step.rank, step.block)):
        yield f"  - rank: {where[0]}\n    block: {where[1]}\n    steps:"
        for step in steps:
            if step.index != lengths.get(where, 0):
                rule = f"is step {lengths.get(where, 0)} of its block in document order"
                raise InputError(str(step), rule, "number the steps 0, 1, ..")
            lengths[where] = step.index + 1
            yield f"      - {_scalar(step_text(step))}"


def _scalar(text: str) -> str:
    return text if _PLAIN.fullmatch(text) else json.dumps(text)


def step_text(step: Step) -> str:
    """The line of a step; :func:`p2smt.schedules.language.grammar.parse_step` reads it."""
    actions = DataActions(
        min(len(step.reads), 2), step.receive is not None, bool(step.writes), step.send is not None
    )
    data = [*_data(step, actions)]
    control = [*_control(step)]
    verb = verb_of(actions)
    if fits(step.kind, actions) and not (verb == "nop" and step.kind in CONTROLS):
        return " ".join([step.kind, *data, *control])
    leader = control[0].split(" ")[0] if control else ""
    if verb == "nop" and not data and leader in CONTROLS:
        known = [] if step.kind == leader else [f"as {_kind_text(step.kind)}"]
        return " ".join([*control, *known])
    return " ".join([verb, *data, *control, f"as {_kind_text(step.kind)}"])


def _data(step: Step, actions: DataActions) -> Iterator[str]:
    if step.reads:
        yield " + ".join(_span_text(span, step.rank) for span in step.reads)
    if step.receive is not None:
        yield f"from {_peer_text(step.receive, step.rank, receives=True)}"
    if step.writes:
        yield "into " + ", ".join(_span_text(span, step.rank) for span in step.writes)
    if step.send is not None:
        yield f"to {_peer_text(step.send, step.rank, receives=False)}"
    spans = (*step.reads, *step.writes)
    usual = spans[0].count if spans else int(actions.receives or actions.sends)
    if step.count != usual:
        yield f"count {step.count}"


def _control(step: Step) -> Iterator[str]:
    if step.awaits:
        yield f"await {_names_text(step.awaits)}"
    if step.posts:
        yield f"post {_names_text(step.posts)}"
    if step.barrier is not None:
        yield f"barrier {name_text(step.barrier)}"
    if step.waits:
        yield f"wait for {_refs_text(step.waits)}"
    if step.after is not None:
        yield f"after {_refs_text(step.after) or 'nothing'}"
    if step.relaxed:
        yield "relaxed"
    if step.background:
        yield "background"
    if step.lane is not None:
        yield f"lane {_kind_text(step.lane)}"


def _span_text(span: Span, rank: int) -> str:
    last = span.start + span.count - 1
    chunks = f"{span.start}" if span.count == 1 else f"{span.start}..{last}"
    owner = "" if span.rank == rank else f"@{atom_text(span.rank)}"
    return f"{'packet ' * span.packet}{span.buffer.value}[{chunks}]{owner}"


def _peer_text(connection: Connection, rank: int, *, receives: bool) -> str:
    source, target, channel = connection
    own, other = (target, source) if receives else (source, target)
    peer = f"{other}" if own == rank else f"{source} -> {target}"
    return peer + (f" channel {channel}" if channel else "")


def _refs_text(refs: Iterable[StepRef]) -> str:
    return ", ".join(f"{atom_text(ref.block)}.{atom_text(ref.index)}" for ref in refs)


def _names_text(names: Iterable[str]) -> str:
    return ", ".join(map(name_text, names))


def name_text(name: str) -> str:
    """A counter's name: as it is if it is a word with numbers, otherwise in quotes."""
    plain = _NAME.fullmatch(name) or _PLACED.fullmatch(name)
    return name if plain else json.dumps(name)


def _kind_text(kind: str) -> str:
    return kind if _NAME.fullmatch(kind) else json.dumps(kind)
