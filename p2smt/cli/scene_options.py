"""Where programs run: plain factors, or requests of a placement's axes on a topology."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from p2smt.cli import given
from p2smt.collectives.names import RequestKind
from p2smt.errors import InputError

if TYPE_CHECKING:
    from p2smt.cluster.topology import Topology
    from p2smt.parallelism.placement import ParallelismAxis, Placement
    from p2smt.parallelism.request import Problem, Request

_UNSIZED = 1


@dataclass(frozen=True, slots=True)
class RequestTexts:
    """The options that ask for requests, as given; --kind is what --reduce asks for."""

    reduce: list[str] | None = None
    reduce_scatter: list[str] | None = None
    all_gather: list[str] | None = None
    all_to_all: list[str] | None = None
    send: list[str] | None = None
    kind: str | None = None

    @property
    def some(self) -> bool:
        """Whether there is any request."""
        return any((self.reduce, self.reduce_scatter, self.all_gather, self.all_to_all, self.send))

    def texts(self) -> list[tuple[RequestKind, str]]:
        """Each with its kind: in the order of the kinds, then as given.

        Raises:
            InputError: there is none, or --kind has nothing to say.
        """
        if not self.some:
            rule = "are missing"
            raise InputError("requests", rule, "name the axes, such as --reduce dp=1GiB")
        if self.kind is not None and not self.reduce:
            raise InputError("--kind", "says what --reduce asks for", "drop it, or give --reduce")
        others = given.by_kind(
            reduce_scatter=self.reduce_scatter,
            all_gather=self.all_gather,
            all_to_all=self.all_to_all,
            send=self.send,
        )
        return [(program_kind(self.kind), text) for text in self.reduce or []] + others


@dataclass(frozen=True, slots=True)
class PlacedRequests:
    """A problem on a placement; ``sized`` says of each request whether its size was given.

    A request without a size stands with one byte.
    """

    problem: Problem
    placement: Placement
    sized: tuple[bool, ...]

    def of(self, payload_bytes: int | None) -> Problem:
        """The problem with this payload for every request; None: as given.

        Raises:
            InputError: a request has no size.
        """
        if payload_bytes is None:
            for request, sized in zip(self.problem.requests, self.sized, strict=True):
                if not sized:
                    remedy = f"write it like {'+'.join(request.axes)}=1GiB"
                    raise InputError(request.name, "has no size", remedy)
            return self.problem
        requests = tuple(replace(r, payload_bytes=payload_bytes) for r in self.problem.requests)
        return replace(self.problem, requests=requests)


def program_kind(text: str | None) -> RequestKind:
    """A request kind that has programs; all-reduce where none is given."""
    known = {kind.value: kind for kind in RequestKind if kind.has_programs}
    if text is None:
        return RequestKind.ALL_REDUCE
    if text not in known:
        raise InputError(
            f"kind {text[:40]!r}",
            f"must be one of {', '.join(known)}",
            "other requests have no programs",
        )
    return known[text]


def placement_of(
    text: str | None, topology: Topology, axes: tuple[ParallelismAxis, ...]
) -> Placement:
    """The matrix of --placement, its sizes checked."""
    from p2smt.cluster.allocation import check_even
    from p2smt.parallelism.placement import Placement

    check_even(topology)
    if text is None:
        raise InputError("--placement", "is missing", "give it like '[[4,1],[1,16]]'")
    example = "a matrix such as [[4,1],[1,16]], with a row per axis and a column per level"
    numbers = given.whole_numbers_of(text, "--placement", example)
    rows = [row for row in numbers if isinstance(row, list)]
    if numbers and not rows:
        rule = "is an order of ranks, and what is given here is a matrix"
        remedy = f"`p2smt compare` says what orders of ranks cost; or give {example}"
        raise InputError(f"--placement {text[:60]!r}", rule, remedy)
    if not rows:
        raise InputError(f"--placement {text[:60]!r}", "is not a matrix", f"give {example}")
    found = Placement(tuple(tuple(row) for row in rows))
    found.check(topology.sizes, [axis.size for axis in axes])
    return found


def placed_requests(
    topology: str | None,
    axes: str | None,
    placement: str | None,
    texts: RequestTexts,
    algorithm: str | None = None,
    pipeline: str | None = None,
    objective: str = "sum",
    library: str | None = None,
    nominal: bool = False,
    use: list[str] | None = None,
    *,
    timed: bool = False,
) -> PlacedRequests:
    """The problem that the options describe, and its placement."""
    from p2smt.cluster.allocation import check_stated

    asked = (topology, axes, texts, algorithm, pipeline, objective, library, nominal, use)
    problem = requested(*asked, timed=timed)
    sized = tuple("=" in text for _, text in texts.texts())
    placed = placement_of(placement, problem.topology, problem.axes)
    if timed:
        check_stated(problem.topology, _crossed(problem, placed))
    return PlacedRequests(problem, placed, sized)


def _crossed(problem: Problem, placement: Placement) -> list[str]:
    """The levels whose uplinks carry something: of which a group spans several entities."""
    rows = [
        [placement.matrix[axis] for axis in problem.axis_indices(request)]
        for request in problem.requests
    ]
    return [
        name
        for j, name in enumerate(problem.topology.names)
        if any(row[: j + 1] != (1,) * (j + 1) for group in rows for row in map(tuple, group))
    ]


def requested(
    topology: str | None,
    axes: str | None,
    texts: RequestTexts,
    algorithm: str | None = None,
    pipeline: str | None = None,
    objective: str = "sum",
    library: str | None = None,
    nominal: bool = False,
    use: list[str] | None = None,
    *,
    timed: bool = False,
) -> Problem:
    """The problem that the options describe, on no placement yet.

    Where no time is to be told (``timed``) it is said what is taken of uplinks.

    Raises:
        InputError: an option is wrong.
    """
    from p2smt.cli import restrictions
    from p2smt.cli.output import note
    from p2smt.cluster.allocation import unstated_levels
    from p2smt.parallelism.request import Problem, parse_objective

    cluster = given.topology_of(topology, library, nominal=nominal, algorithm=algorithm, use=use)
    for name in () if timed else unstated_levels(cluster):
        note(f"the bandwidth of {name} uplinks is not stated: they are taken as non-blocking")
    return Problem(
        cluster,
        given.axes_of(axes),
        tuple(_request(text, kind) for kind, text in texts.texts()),
        objective=parse_objective(objective),
        algorithms=restrictions.algorithms(algorithm),
        pipeline=given.pipeline_of(pipeline),
    )


def _request(text: str, kind: RequestKind) -> Request:
    """A request whose size may be missing, such as ``dp``, ``dp=1GiB`` or ``tp=64MiB*128``."""
    from p2smt.parallelism.request import Request, parse_request

    if "=" in text:
        return parse_request(text, kind)
    return Request(kind, tuple(name.strip() for name in text.split("+")), _UNSIZED)
