"""What a user asks: requests along axes, and the whole problem that `solve` answers."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, cast, get_args

from p2smt.cluster.topology import Algorithm, Topology
from p2smt.collectives.dispatch import DISPATCH, AnyKind, Dispatch
from p2smt.collectives.names import Form, RequestKind
from p2smt.errors import InputError
from p2smt.parallelism.placement import (
    MAX_AXES,
    AxisRule,
    FixedEntry,
    ParallelismAxis,
    Placement,
)
from p2smt.units import format_bytes, parse_bytes, parse_count

MAX_PROGRAM_LENGTH = 16

MAX_REQUESTS = 32
MAX_NUMBER = 2**62
DEFAULT_LENGTH = 5
MAX_CHUNKS = 1024

Objective = Literal["sum", "max"]


@dataclass(frozen=True, slots=True)
class Request:
    """A communication that each iteration needs ``times`` times along some axes.

    ``payload_bytes`` is the whole vector per device: all-gather: its output; reduce-scatter:
    its input; all-to-all: all that a rank sends; dispatch: a rank's tokens, each
    once; send: what goes to the next rank along the
    axis, without wrap-around.
    """

    kind: AnyKind
    axes: tuple[str, ...]
    payload_bytes: int
    times: int = 1

    def __post_init__(self) -> None:
        if not self.axes or len(set(self.axes)) != len(self.axes):
            raise InputError(
                f"request along {list(self.axes)}", "needs at least one axis, each named once"
            )
        if not 1 <= self.payload_bytes < MAX_NUMBER or not 1 <= self.times < MAX_NUMBER:
            raise InputError(
                f"request {'+'.join(self.axes)}", "bytes and times must be from 1 to below 2^62"
            )
        if self.kind is RequestKind.SEND and len(self.axes) > 1:
            raise InputError(
                f"send along {'+'.join(self.axes)}",
                "a send goes to the next rank along one axis",
                "give one request per axis",
            )

    @property
    def name(self) -> str:
        """Kind and axes without size, such as ``all-reduce dp``."""
        return f"{self.kind.value} {'+'.join(self.axes)}"

    def __str__(self) -> str:
        times = f" x {self.times}" if self.times > 1 else ""
        where = f" {self.kind}" if isinstance(self.kind, Dispatch) else ""
        return f"{self.name} {format_bytes(self.payload_bytes)}{where}{times}"


def parse_request(text: str, kind: AnyKind) -> Request:
    """A request such as ``dp=1GiB``, ``tp=64MiB*128`` or ``dp+cp=512MiB``."""
    axes, equals, amount = text.partition("=")
    if not equals:
        raise InputError(
            f"request {text[:60]!r}", "is not AXES=SIZE or AXES=SIZE*TIMES", "write it like dp=1GiB"
        )
    size, star, times = amount.partition("*")
    count = parse_count(times, f"times in {text[:60]!r}") if star else 1
    names = tuple(name.strip() for name in axes.split("+"))
    if len(set(names)) != len(names):
        raise InputError(f"request {text[:60]!r}", "names an axis twice")
    return Request(kind, names, parse_bytes(size.strip(), f"size in {text[:60]!r}"), count)


def reduce(text: str) -> Request:
    """An all-reduce request such as ``dp=1GiB`` (the whole vector per device)."""
    return parse_request(text, RequestKind.ALL_REDUCE)


def reduce_scatter(text: str) -> Request:
    """A reduce-scatter request; the size is that of its input."""
    return parse_request(text, RequestKind.REDUCE_SCATTER)


def all_gather(text: str) -> Request:
    """An all-gather request; the size is that of its output."""
    return parse_request(text, RequestKind.ALL_GATHER)


def all_to_all(text: str) -> Request:
    """An all-to-all request; the size is all that a rank sends, its own share included."""
    return parse_request(text, RequestKind.ALL_TO_ALL)


def dispatch(text: str) -> Request:
    """A dispatch such as ``ep=7MiB,experts=256,active=8``; the size is that of a rank's tokens."""
    size, kind = dispatch_parts(text)
    return parse_request(size, kind)


def dispatch_parts(text: str) -> tuple[str, Dispatch]:
    """Axes and size of a dispatch as texts, and what it says of its experts.

    Raises:
        InputError: that is missing or wrong.
    """
    size, _, numbers = text.partition(",")
    return size, _experts_of(numbers, f"{DISPATCH} {text[:60]!r}")


_NUMBERS = ("experts", "active", "groups", "top_groups", "imbalance")


def _experts_of(text: str, given: str) -> Dispatch:
    """The kind of a text such as ``experts=256,active=8,groups=8,top_groups=4,imbalance=1.3``.

    Raises:
        InputError: a number is unknown, missing, given twice, none, or contradicts others.
    """
    parts = [part.partition("=") for part in text.split(",") if part]
    texts = {name.strip(): value.strip() for name, _, value in parts}
    limit = {"groups", "top_groups"}
    needed = {"experts", "active"} | (limit if limit & texts.keys() else set())
    lacking = sorted(needed - texts.keys())
    wrong = [name for name in texts if name not in _NUMBERS]
    if wrong:
        raise InputError(f"{wrong[0][:40]!r} in {given}", f"must be one of {', '.join(_NUMBERS)}")
    if lacking or len(texts) < len(parts):
        rule = f"lacks {' and '.join(lacking)}" if lacking else "names a number twice"
        raise InputError(given, rule, "write it like ep=7MiB,experts=256,active=8")
    imbalance = texts.pop("imbalance", "1")
    if not re.fullmatch(r"[0-9]{1,9}(\.[0-9]{1,9})?", imbalance):
        raise InputError(f"imbalance={imbalance[:40]} in {given}", "is no number", "write 1.3")
    counts = {name: parse_count(value, f"{name} in {given}") for name, value in texts.items()}
    return Dispatch(**counts, imbalance=float(imbalance))


def send(text: str) -> Request:
    """A send to the next rank along the axis, without wrap-around."""
    return parse_request(text, RequestKind.SEND)


def parse_axes(text: str) -> tuple[ParallelismAxis, ...]:
    """Axes such as ``dp=8,tp=4``, outermost (slowest varying) first."""
    axes = []
    for part in text.split(","):
        name, equals, size = part.partition("=")
        if not equals:
            raise InputError(f"axes {text[:60]!r}", "are not NAME=SIZE,..", "write dp=8,tp=4")
        axes.append(ParallelismAxis(name.strip(), parse_count(size, f"size of axis {name[:20]!r}")))
    return check_axes(axes)


def check_axes(axes: Sequence[ParallelismAxis]) -> tuple[ParallelismAxis, ...]:
    """The axes, if their number is supported and their names differ."""
    names = [axis.name for axis in axes]
    if not 1 <= len(names) <= MAX_AXES:
        raise InputError(f"{len(names)} axes", f"1 to {MAX_AXES} axes are supported")
    for name in names:
        if names.count(name) > 1:
            raise InputError(f"axis {name!r}", "is named twice", "give each axis its own name")
    return tuple(axes)


def parse_objective(text: str) -> Objective:
    """``sum`` or ``max``."""
    for objective in get_args(Objective):
        if text == objective:
            return cast(Objective, objective)
    raise InputError(f"objective {text[:20]!r}", "must be sum or max")


@dataclass(frozen=True, slots=True)
class Problem:
    """A cluster, axes and requests: find the placement and the programs of least time.

    ``objective``: ``sum`` (total time per iteration) or ``max`` (the largest request).
    ``rules`` restrict the matrix; ``forbidden_forms`` and ``step_limits`` (level name, at
    most so many steps whose groups cross that level) restrict the programs.  ``algorithms``
    restricts how a collective may run (None: whatever the topology's library offers).
    ``pipeline`` is the number of chunks in which a program of several steps runs, its steps
    overlapping (:mod:`p2smt.cost.step_time`); None chooses the best number with the program.
    """

    topology: Topology
    axes: tuple[ParallelismAxis, ...]
    requests: tuple[Request, ...]
    objective: Objective = "sum"
    max_length: int = DEFAULT_LENGTH
    rules: tuple[AxisRule | FixedEntry, ...] = ()
    forbidden_forms: frozenset[Form] = frozenset()
    step_limits: tuple[tuple[str, int], ...] = ()
    algorithms: tuple[Algorithm, ...] | None = field(default=None)
    pipeline: int | None = 1

    def __post_init__(self) -> None:
        check_axes(self.axes)
        if not 1 <= len(self.requests) <= MAX_REQUESTS:
            raise InputError(
                f"{len(self.requests)} requests",
                f"give 1 to {MAX_REQUESTS}",
                "for example --reduce dp=1GiB",
            )
        for request in self.requests:
            self._check_request(request)
        parse_objective(self.objective)
        if not 1 <= self.max_length <= MAX_PROGRAM_LENGTH:
            raise InputError(f"length {self.max_length}", f"must be 1 to {MAX_PROGRAM_LENGTH}")
        if self.pipeline is not None and not 1 <= self.pipeline <= MAX_CHUNKS:
            raise InputError(
                f"pipeline {self.pipeline}",
                f"must be 1 to {MAX_CHUNKS} chunks",
                "give None for the best number of them",
            )
        self._check_restrictions()

    def _check_request(self, request: Request) -> None:
        members = [self.axis_sizes[i] for i in self.axis_indices(request)]
        if isinstance(request.kind, Dispatch):
            request.kind.check_ranks(math.prod(members))

    def _check_restrictions(self) -> None:
        levels = self.topology.names
        for rule in self.rules:
            if not (0 <= rule.axis < len(self.axes) and 0 <= rule.level < len(levels)):
                raise InputError(
                    f"rule {rule}", "names an axis or a level by an index out of range"
                )
        for level, count in self.step_limits:
            if level not in levels or count < 0:
                raise InputError(
                    f"step limit {level[:40]}={count}",
                    "must be a level and a number of steps from 0",
                    f"levels are {', '.join(levels)}",
                )

    @property
    def axis_sizes(self) -> tuple[int, ...]:
        """Sizes of the axes in the order given."""
        return tuple(axis.size for axis in self.axes)

    @property
    def axis_names(self) -> tuple[str, ...]:
        """Names of the axes in the order given."""
        return tuple(axis.name for axis in self.axes)

    def axis_indices(self, request: Request) -> tuple[int, ...]:
        """Indices of a request's axes, in the order of the axes."""
        for name in request.axes:
            if name not in self.axis_names:
                raise InputError(
                    f"axis {name[:40]!r} in request '{request}'",
                    "is not among the axes",
                    f"axes are {', '.join(self.axis_names)}",
                )
        return tuple(i for i, name in enumerate(self.axis_names) if name in request.axes)


def spanned_levels(problem: Problem, placement: Placement) -> list[str]:
    """The levels whose uplinks carry something: of which a request's group spans several entities.

    An axis with a factor above one at a level, or at one outside it, spans several of its entities.
    """
    rows = [
        placement.matrix[axis]
        for request in problem.requests
        for axis in problem.axis_indices(request)
    ]
    names = problem.topology.names
    return [name for j, name in enumerate(names) if any(max(row[: j + 1]) > 1 for row in rows)]
