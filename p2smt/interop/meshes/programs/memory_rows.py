"""Rows of the payload as they lie in memory, for every member that a program tells apart.

The groups of a parallelism matrix all do the same, so the members of one are told apart, by their
place.  Those of a rank list need not: there every rank is told apart.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from p2smt.collectives.demand import Chunks, demand_of, plain_kind
from p2smt.collectives.names import DIRECT, Collective, RequestKind
from p2smt.errors import InputError
from p2smt.interop.meshes.tensor import launched_ranks
from p2smt.interop.places import PlacedPlan
from p2smt.parallelism.placement import IntArray, Placement
from p2smt.parallelism.rank_list import RankList
from p2smt.plans.file_model import RequestModel
from p2smt.plans.problem import located
from p2smt.plans.rank_scene import rank_step_groups
from p2smt.programs.program import parse_instruction

LocalSteps = tuple[tuple[tuple[int, ...], ...], ...]
"""For each step the groups inside one reduction group, as numbers of its members."""
_PARTED = (Collective.REDUCE_SCATTER, Collective.ALL_GATHER)


@dataclass(frozen=True, slots=True)
class CodedStep:
    """A step; ``groups`` is the number of its groups among those of the plan.

    ``rows`` are those that a rank's call works on, in the order in which they are sent (all-gather:
    its result); ``own`` those that it keeps of them (reduce-scatter) or brings (all-gather).
    """

    text: str
    operation: StepOperation
    groups: int
    rows: RowChoice
    own: RowChoice | None = None


@dataclass(frozen=True, slots=True)
class MemberGroups:
    """The groups whose members are told apart: ``local`` steps and ``places`` (group, member)."""

    local: tuple[LocalSteps, ...]
    places: IntArray
    listing: MemberListing


def member_groups(plan: PlacedPlan, request: LaunchedRequest) -> tuple[PlaceDigits, MemberGroups]:
    """The groups of a request whose members are told apart, and the variables of the members.

    Raises:
        InputError: a step's groups are not inside the request's, or not alike where they must be.
    """
    places = np.argsort(np.argsort(request.groups, axis=1), axis=1)
    local = _local_steps(plan, request)
    alike = (places == places[0]).all() and all(one == local[0] for one in local)
    if isinstance(plan.where, Placement) and alike:
        digits = digits_along(plan, plan.where, request.axes)
        values = {digit.name: digit.values for digit in digits.digits}
        return digits, MemberGroups(
            local[:1], places[:1], MemberListing("place", places[0], values)
        )
    rank_of = np.argsort(launched_ranks(plan).ravel())
    ranks = rank_of[request.groups.ravel()]
    digits = coordinates_along(plan, request.axes, ranks)
    values = {digit.name: digit.values for digit in digits.digits}
    return digits, MemberGroups(local, places, MemberListing("rank", ranks, values))


def _local_steps(plan: PlacedPlan, request: LaunchedRequest) -> tuple[LocalSteps, ...]:
    """The steps of each group of the request, in numbers of its members."""
    count, size = request.groups.shape
    owner = np.empty(request.groups.size, dtype=np.int64)
    number = np.empty(request.groups.size, dtype=np.int64)
    owner[request.groups] = np.arange(count)[:, None]
    number[request.groups] = np.arange(size)[None]
    found: list[list[tuple[tuple[int, ...], ...]]] = [[] for _ in range(count)]
    for step in request.steps:
        inside = _inside(f"{plan.source}: {request.name}, {step.text}", step, owner, number, count)
        for steps, groups in zip(found, inside, strict=True):
            steps.append(tuple(sorted(groups)))
    return tuple(map(tuple, found))


def _inside(
    given: str, step: LaunchedStep, owner: IntArray, number: IntArray, count: int
) -> list[list[tuple[int, ...]]]:
    found: list[list[tuple[int, ...]]] = [[] for _ in range(count)]
    for group in step.groups:
        ranks = list(group)
        owners = owner[ranks]
        if (owners != owners[0]).any():
            raise InputError(given, "has a group that is in no group of the request", "verify it")
        found[int(owners[0])].append(tuple(number[ranks].tolist()))
    return found


class MemoryRows:
    """The rows of members as they lie in memory.

    They are numbered by the members' launched ranks, as torch and JAX number what they scatter and
    gather; unless all end with all of them, where any numbering will do.
    """

    def __init__(self, request: LaunchedRequest, groups: MemberGroups) -> None:
        self.groups = groups
        plain = request.model.kind is RequestKind.ALL_REDUCE
        size = groups.places.shape[1]
        self.row_of = np.tile(np.arange(size), (len(groups.places), 1)) if plain else groups.places

    def choice(self, rows: Sequence[IntArray | None]) -> RowChoice:
        """The rows of all members, group after group, as an expression."""
        return row_choice(rows, self.groups.listing)

    def step(
        self, step: LaunchedStep, parts: Sequence[Sequence[GroupRows]], listed: int
    ) -> CodedStep:
        """A step, of which each group of the request has its parts."""
        size = self.groups.places.shape[1]
        whole: list[IntArray | None] = [None] * self.groups.places.size
        own: list[IntArray | None] = [None] * len(whole)
        parted = step.operation in _PARTED
        for number, inside in enumerate(parts):
            for group in inside:
                sent, kept = self._sent(number, group, parted=parted)
                for member, part in zip(group.members, kept, strict=True):
                    whole[number * size + member], own[number * size + member] = sent, part
        kept_rows = self.choice(own) if parted else None
        return CodedStep(step.text, step.operation, listed, self.choice(whole), kept_rows)

    def _sent(
        self, number: int, group: GroupRows, *, parted: bool
    ) -> tuple[IntArray, list[IntArray]]:
        """What a group works on, by its members' launched ranks, and each member's part of it."""
        parts = [np.sort(self.row_of[number][part]) for part in group.parts]
        if not parted:
            return parts[0], parts
        places = self.groups.places[number][list(group.members)]
        return np.concatenate([parts[i] for i in np.argsort(places).tolist()]), parts


# A rank's place in its group, as expressions over its coordinates.


@dataclass(frozen=True, slots=True)
class PlaceDigit:
    """A variable of the printed code: its name, its expression, and its value for each member."""

    name: str
    text: str
    values: IntArray


@dataclass(frozen=True, slots=True)
class PlaceDigits:
    """The coordinates of a rank along a request's axes, and their digits at each level."""

    coordinates: tuple[tuple[str, str], ...]
    digits: tuple[PlaceDigit, ...]

    def lines(self, used: Sequence[str]) -> list[str]:
        """Assignments of the variables that some expressions use."""
        words = set(re.findall(r"\w+", " ".join(used)))
        found = [digit for digit in self.digits if digit.name in words]
        words |= {word for digit in found for word in re.findall(r"\w+", digit.text)}
        lines = [f"{name} = {text}" for name, text in self.coordinates if name in words]
        return [*lines, *(f"{d.name} = {d.text}" for d in found if d.name != d.text)]


def coordinates_along(plan: PlacedPlan, axes: Sequence[int], ranks: IntArray) -> PlaceDigits:
    """The coordinates of ranks of the plan along axes (indices), of which no digits are known."""
    found = _coordinates(plan, axes)
    every = np.unravel_index(ranks, plan.problem.axis_sizes)
    digits = [
        PlaceDigit(name, name, np.asarray(every[i], dtype=np.int64))
        for i, (name, _) in zip(axes, found, strict=True)
    ]
    return PlaceDigits(found, tuple(digits))


def _coordinates(plan: PlacedPlan, axes: Sequence[int]) -> tuple[tuple[str, str], ...]:
    names, sizes = plan.problem.axis_names, plan.problem.axis_sizes
    found = []
    for i in axes:
        below, size = math.prod(sizes[i + 1 :]), sizes[i]
        text = f"rank // {below}" if below > 1 else "rank"
        outermost = all(other == 1 for other in sizes[:i])
        found.append((f"on_{names[i]}", text if outermost else f"{text} % {size}"))
    return tuple(found)


def digits_along(plan: PlacedPlan, placement: Placement, axes: Sequence[int]) -> PlaceDigits:
    """The digits of the axes (indices) of a parallelism matrix; members are in device order."""
    shape = [placement.matrix[i][j] for j in range(placement.width) for i in axes]
    values = np.unravel_index(np.arange(math.prod(shape)), shape)
    digits = []
    for at, (j, i) in enumerate((j, i) for j in range(placement.width) for i in axes):
        if shape[at] > 1:
            name, text = _digit(plan, placement, i, j)
            digits.append(PlaceDigit(name, text, np.asarray(values[at], dtype=np.int64)))
    return PlaceDigits(_coordinates(plan, axes), tuple(digits))


def _digit(plan: PlacedPlan, placement: Placement, axis: int, level: int) -> tuple[str, str]:
    """The name and the expression of an axis's digit at a level."""
    row = placement.matrix[axis]
    whole = f"on_{plan.problem.axis_names[axis]}"
    below = math.prod(row[level + 1 :])
    above = math.prod(row[:level])
    if below == 1 and above == 1:
        return whole, whole
    text = f"{whole} // {below}" if below > 1 else whole
    level_name = plan.problem.topology.names[level].replace("-", "_")
    return f"{whole}_at_{level_name}", text if above == 1 else f"{text} % {row[level]}"


# Which rows of the payload each member of a group takes, as an expression over its place.


MAX_TABLE = 2**20
"""Most numbers in a table of rows."""


@dataclass(frozen=True, slots=True)
class RowChoice:
    """``count`` rows from ``first`` (an expression) on, ``step`` apart; or as tables have it.

    Tables are listed by a variable, ``by``: ``firsts`` has the first of these rows, ``table`` every
    row, in the order in which they lie in what is sent.  Both are empty where ``first`` says it.
    ``ragged``: some take fewer than ``count``.
    """

    count: int
    first: str = "0"
    step: int = 1
    table: tuple[tuple[int, ...], ...] = ()
    firsts: tuple[int, ...] = ()
    by: str = "place"
    ragged: bool = False


@dataclass(frozen=True, slots=True)
class MemberListing:
    """How members are listed in tables: by the variable ``by``, whose value is ``index``.

    ``digits`` are other variables of theirs, which expressions may use.
    """

    by: str
    index: IntArray
    digits: Mapping[str, IntArray]


def row_choice(rows: Sequence[IntArray | None], listing: MemberListing) -> RowChoice:
    """The choice that gives member i ``rows[i]``; None: it takes no part, and any will do.

    Raises:
        InputError: a table would be too long.
    """
    taking = np.array([i for i, own in enumerate(rows) if own is not None], dtype=np.int64)
    chosen = [own for own in rows if own is not None]
    count = max(map(len, chosen))
    ragged = any(len(own) != count for own in chosen)
    step = int(chosen[0][1] - chosen[0][0]) if len(chosen[0]) > 1 else 1
    wanted = step * np.arange(count)
    if not ragged and step > 0 and all((own - own[0] == wanted).all() for own in chosen):
        first = np.array([own[0] for own in chosen], dtype=np.int64)
        return _from_firsts(first, taking, RowChoice(count, step=step), listing)
    if len(rows) * count > MAX_TABLE:
        rule = "its ranks hold rows in more ways than can be written down"
        raise InputError("a program", rule, "export a smaller plan")
    table: list[tuple[int, ...]] = [tuple(range(count))] * len(rows)
    for at, own in zip(listing.index[taking].tolist(), chosen, strict=True):
        table[at] = tuple(own.tolist())
    return RowChoice(count, table=tuple(table), by=listing.by, ragged=ragged)


def _from_firsts(
    first: IntArray, taking: IntArray, found: RowChoice, listing: MemberListing
) -> RowChoice:
    """Rows told by the first of each member: by an expression, or by a table."""
    text = affine(first, {name: values[taking] for name, values in listing.digits.items()})
    if text is not None:
        return replace(found, first=text)
    firsts = np.zeros(len(listing.index), dtype=np.int64)
    firsts[listing.index[taking]] = first
    return replace(found, firsts=tuple(firsts.tolist()), by=listing.by)


def affine(values: IntArray, variables: Mapping[str, IntArray]) -> str | None:
    """``2 * a + b`` for values that are such a sum; None: they are not."""
    names = [name for name, found in variables.items() if found.any()]
    columns = np.stack([np.ones(len(values)), *(variables[name] for name in names)], axis=1)
    solved = np.rint(np.linalg.lstsq(columns, values.astype(float), rcond=None)[0])
    factors = solved.astype(np.int64)
    if (columns.astype(np.int64) @ factors != values).any() or (factors < 0).any():
        return None
    return sum_text(int(factors[0]), dict(zip(names, factors[1:].tolist(), strict=True)))


def sum_text(constant: int, factors: Mapping[str, int]) -> str:
    """A sum of multiples of variables and a constant, without what is 0."""
    parts = [
        name if factor == 1 else f"{factor} * {name}" for name, factor in factors.items() if factor
    ]
    if constant or not parts:
        parts.append(str(constant))
    return " + ".join(parts)


# Which rows of the payload the members of a group hold from step to step.
# A request over k members cuts the payload into k rows; members are numbered in the order of the
# plan's devices.  Every reduction group of a parallelism matrix does the same, so one is looked at.


MAX_ROWS = 2**22
"""Most numbers of rows that the members of one step may hold together, each set counted once."""


@dataclass(frozen=True, slots=True)
class GroupRows:
    """What a group works on in a step.

    ``members`` ascend.  ``parts[i]`` are the rows that member i keeps (reduce-scatter) or brings
    (all-gather); for the other collectives each has all that the group works on.
    """

    members: tuple[int, ...]
    parts: tuple[IntArray, ...]


@dataclass(frozen=True, slots=True)
class ProgramRows:
    """The groups of every step, and the rows that members end with; None: nothing."""

    steps: tuple[tuple[GroupRows, ...], ...]
    ends: tuple[IntArray | None, ...]


Steps = Sequence[tuple[Collective, Sequence[Sequence[int]]]]
"""Collectives, and the members of each of their groups, ascending."""


def program_rows(kind: RequestKind, size: int, steps: Steps) -> ProgramRows:
    """The rows of a program over ``size`` members.

    Raises:
        InputError: a step cannot be carried out, or rows are too many to write down.
    """
    sets = _RowSets()
    held: list[int | None]
    if demand_of(kind).start.chunks is Chunks.OWN:
        held = [sets.number(np.array([member], dtype=np.int64)) for member in range(size)]
    else:
        held = [sets.number(np.arange(size, dtype=np.int64))] * size
    found = []
    for number, (collective, groups) in enumerate(steps, start=1):
        given = f"step {number} ({collective.value})"
        found.append(tuple(_group(given, collective, tuple(g), held, sets) for g in groups))
    ends = tuple(None if at is None else sets.rows[at] for at in held)
    return ProgramRows(tuple(found), ends)


class _RowSets:
    """Sets of rows, each kept once and known by a number."""

    def __init__(self) -> None:
        self.rows: list[IntArray] = []
        self._known: dict[bytes, int] = {}
        self._made: dict[tuple[object, ...], list[int]] = {}
        self._total = 0

    def number(self, rows: IntArray) -> int:
        key = rows.tobytes()
        if key not in self._known:
            self._total += len(rows)
            if self._total > MAX_ROWS:
                rule = "its ranks hold rows in more ways than can be written down"
                raise InputError("a program", rule, "export a smaller plan")
            self._known[key] = len(self.rows)
            self.rows.append(rows)
        return self._known[key]

    def split(self, number: int, parts: int) -> list[int]:
        """The runs that a reduce-scatter leaves, one for each member."""
        key = ("split", number, parts)
        if key not in self._made:
            self._made[key] = [self.number(part) for part in np.split(self.rows[number], parts)]
        return self._made[key]

    def union(self, numbers: tuple[int, ...]) -> int:
        """What an all-gather leaves."""
        key = ("union", *numbers)
        if key not in self._made:
            joined = np.unique(np.concatenate([self.rows[number] for number in numbers]))
            self._made[key] = [self.number(joined)]
        return self._made[key][0]


def _group(
    given: str,
    collective: Collective,
    members: tuple[int, ...],
    held: list[int | None],
    sets: _RowSets,
) -> GroupRows:
    """What a group works on; ``held`` becomes what its members have afterwards."""
    first = held[members[0]]
    own = tuple(held[member] for member in members)
    if first is None or (collective is not Collective.BROADCAST and None in own):
        raise _impossible(given, "a member holds nothing that it could give")
    if collective is Collective.BROADCAST:
        left: Sequence[int | None] = [first] * len(members)
        parts = [first] * len(members)
    elif collective is Collective.ALL_GATHER:
        parts = [number for number in own if number is not None]
        whole = sets.union(tuple(parts))
        if len(sets.rows[whole]) != len(members) * len(sets.rows[first]):
            raise _impossible(given, "its members do not bring other rows each, and as many")
        left = [whole] * len(members)
    else:
        if set(own) != {first}:
            raise _impossible(given, "its members reduce different rows")
        left, parts = _reduced(given, collective, first, len(members), sets)
    for member, number in zip(members, left, strict=True):
        held[member] = number
    return GroupRows(members, tuple(sets.rows[number] for number in parts))


def _reduced(
    given: str, collective: Collective, rows: int, members: int, sets: _RowSets
) -> tuple[list[int | None], list[int]]:
    """What members hold after a reduction, and their parts of it."""
    if collective is Collective.REDUCE:
        return [rows, *[None] * (members - 1)], [rows] * members
    if collective is Collective.ALL_REDUCE:
        return [rows] * members, [rows] * members
    if len(sets.rows[rows]) % members:
        raise _impossible(given, "its rows do not split evenly over the members")
    parts = sets.split(rows, members)
    return list(parts), parts


def _impossible(given: str, rule: str) -> InputError:
    return InputError(given, f"cannot be carried out: {rule}", "verify the plan")


# A request of a plan as steps over groups of launched ranks.


StepOperation = Collective | RequestKind
"""What a step does: a collective, or all that the request asks for."""


@dataclass(frozen=True, slots=True)
class LaunchedStep:
    """A step: its text, what it does, and its groups of launched ranks.

    Members are in the order of the communicator that the plan counts on.  A reduce ends, and a
    broadcast begins, at the first rank of a group.
    """

    text: str
    operation: StepOperation
    groups: tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True)
class LaunchedRequest:
    """A request: its groups of launched ranks (group, member), and its steps.

    A send's groups are in the order in which they send; ``axes`` are indices.
    """

    model: RequestModel
    name: str
    axes: tuple[int, ...]
    groups: IntArray
    steps: tuple[LaunchedStep, ...]

    @property
    def size(self) -> int:
        """Ranks of a group."""
        return int(self.groups.shape[1])


def launched_requests(plan: PlacedPlan) -> tuple[LaunchedRequest, ...]:
    """The requests of a plan over its launched ranks.

    Raises:
        InputError: groups that are not those of the plan's devices, instructions that do not
            parse, or a plan of two matrices.
    """
    if plan.experts is not None:
        rule = "has requests on two matrices, and code is for those of one"
        raise InputError(plan.source, rule, "run them with `p2smt run`")
    names: set[str] = set()
    orders = _orders(plan)
    return tuple(_request(plan, number, orders, names) for number in range(len(plan.plan.requests)))


def _orders(plan: PlacedPlan) -> tuple[IntArray, IntArray]:
    """By device: what members of groups are ordered by, and the launched rank; -1: there is none.

    Ranks of a rank list on named hosts are ordered as in the plan, others by device
    (:func:`p2smt.plans.rank_scene.rank_step_groups`).
    """
    count = plan.problem.topology.devices
    launched = np.full(count, -1, dtype=np.int64)
    launched[[place.device for place in plan.places]] = [place.rank for place in plan.places]
    order = np.arange(count, dtype=np.int64)
    if isinstance(plan.where, RankList) and plan.problem.topology.hosts is not None:
        order[plan.where.rank_tensor().ravel()] = np.arange(len(plan.places))
    return order, launched


def _request(
    plan: PlacedPlan, number: int, orders: tuple[IntArray, IntArray], names: set[str]
) -> LaunchedRequest:
    model = plan.plan.requests[number]
    source = f"{plan.source}: request {number + 1}"
    with located(source):
        kind = plain_kind(model.kind, "has no code: leave it to the framework's dispatcher")
    request = plan.problem.requests[number]
    axes, rank_of = plan.problem.axis_indices(request), orders[1]
    if isinstance(plan.where, RankList):
        groups = rank_step_groups(plan.problem, request, plan.where)
    else:
        groups = plan.where.groups(axes)
    if groups.shape[1] > 1 and not model.steps:
        raise InputError(source, "has no steps", "verify the plan")
    steps = tuple(
        LaunchedStep(
            step.instruction if model.program else model.kind.value,
            _operation(model, step.instruction),
            _ranks(f"{source}, step {i}", kind, step.groups, orders),
        )
        for i, step in enumerate(model.steps, start=1)
    )
    return LaunchedRequest(model, _name(model, names), axes, rank_of[groups], steps)


def _name(model: RequestModel, names: set[str]) -> str:
    """A name for a function, another for each request."""
    plain = f"{model.kind.value}_{'_'.join(model.axes)}".replace("-", "_")
    name, count = plain, 1
    while name in names:
        count += 1
        name = f"{plain}_{count}"
    names.add(name)
    return name


def _operation(model: RequestModel, instruction: str) -> StepOperation:
    kind = plain_kind(model.kind)
    if kind not in DIRECT:
        return kind
    if model.program is None:
        return DIRECT[kind]
    return parse_instruction(instruction).reduction


def _ranks(
    given: str, kind: RequestKind, groups: list[list[int]], orders: tuple[IntArray, IntArray]
) -> tuple[tuple[int, ...], ...]:
    """Groups of devices as launched ranks in their order, those of a send as they send.

    Each device is in one group at most, and has a rank.
    """
    order, rank_of = orders
    every = [device for group in groups for device in group]
    if not groups or any(len(group) < 2 for group in groups):
        raise InputError(given, "has a group of fewer than two devices", "verify the plan")
    if len(set(every)) != len(every):
        raise InputError(given, "has a device in two groups", "verify the plan")
    if max(every) >= len(rank_of) or (rank_of[every] < 0).any():
        raise InputError(given, "has a device that the plan has no rank on", "verify the plan")
    found = []
    for group in groups:
        members = np.array(group, dtype=np.int64)
        if kind is not RequestKind.SEND:
            members = members[np.argsort(order[members])]
        found.append(tuple(rank_of[members].tolist()))
    return tuple(found)
