"""Cells of a grid in pools of hosts with CP-SAT.

Problem: an :class:`~p2smt.problems.allocation.AllocationProblem`: how many cells of each block lie
in each pool, so that what the loads of the uplinks cost is least.

Variables
    n[b, p]      cells of block b in pool p
    out[i, e]    of an edge of a message load: what leaves entity e at least
    into[i, e]   what enters it
    v[g, e]      what entity e sends for a group of a share load
    partly[g, e], wholly[g, e]  Boolean: e holds some, or all, of a group whose share is the same
                 for every number between none and all
    k[l, t]      the largest load l of the entities whose uplinks have the ticks t
    w[r, a]      ticks of way a of request r
    runs[r, a]   Boolean: it is the one that counts
    c[r]         ticks of request r
    m            objective if it is the maximum

Constraints
    C1 blocks       the cells of a block are its members
    C2 pools        a pool holds no more cells than hosts
    C3 messages     out and into of an edge differ by what its ends hold of e; k is at least the sum
                    of either
    C4 shares       v is the share of the number that e holds; k is at least their sum
    C5 ticks        w is at least the ticks of k
    C6 cheapest     one way of a request counts, and c is at least its ticks
    C7 held         so many cells of these blocks lie in each pool
    C8 at most      the objective does not exceed its limit
    C9 alone        for blocks in a chain: what each entity alone needs, given how many cells it
                    holds (follows from the others; below)
    C10 exchanges   of answers that differ by an exchange of pools that are alike, of blocks that
                    are, or by reversing the chain, one is kept

Objective: the sum of c, or m.

C9.  Let an entity hold c of P blocks of D cells.  If less than s < D leave it and less enter it
along the chain, its counts lie within s of each other.  So none is D, and at least c/s blocks are
there in part; or none is 0, and at least (PD - c)/s are; or all P are.  The load by shares is that
many times the share of a part.

Size: blocks x pools integers, edges (groups) x entities more of each load.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from ortools.sat.python import cp_model

from p2smt.encodings.run_cpsat import bound_without_answer, proved_bound, run
from p2smt.errors import TooLarge
from p2smt.problems.allocation import (
    AllocationProblem,
    Counts,
    Messages,
    Shares,
    WayTicks,
    least_parts,
)
from p2smt.result import Result, SearchLimits, SolveStats, Status, StopWatch

MAX_TICKS = 2**60
_SOLVER = "cpsat"


@dataclass(frozen=True, slots=True)
class Vars:
    """n by (block, pool); k by (load, ticks); c by request."""

    cells: Mapping[tuple[int, int], cp_model.IntVar]
    largest: Mapping[tuple[int, tuple[int, ...]], cp_model.IntVar]
    costs: tuple[cp_model.IntVar, ...]


def optimal_allocation(problem: AllocationProblem, limits: SearchLimits) -> Result[Counts]:
    """The cheapest answer; ``bound`` is the proved lower bound in ticks.

    The counter "objective" of the statistics is what the encoding says of its answer.

    Raises:
        TooLarge: the ticks exceed what the encoding can hold.
    """
    watch, model = StopWatch.start(limits), cp_model.CpModel()
    variables = _build(model, problem)
    goal = _goal(model, problem, variables)
    model.minimize(goal)
    left = watch.left()
    solver, verdict = run(model, left, in_ticks=True)
    if verdict not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        status = Status.INFEASIBLE if verdict == cp_model.INFEASIBLE else Status.UNKNOWN
        asked = status is Status.UNKNOWN and left.time_limit_s != 0
        bound = (bound_without_answer(solver) or 0) if asked else None  # no ticks are negative
        return Result(status, None, bound, SolveStats(_SOLVER, watch.elapsed_s()))
    value = solver.value(goal)
    proved = verdict == cp_model.OPTIMAL
    bound = value if proved else proved_bound(solver)
    stats = SolveStats(_SOLVER, watch.elapsed_s(), 1, (("objective", value),))
    answer = decode(problem, variables, solver)
    return Result(Status.OPTIMAL if proved else Status.FEASIBLE, answer, bound, stats)


def decode(problem: AllocationProblem, variables: Vars, solver: cp_model.CpSolver) -> Counts:
    """The counts of the solver's solution."""
    pools = range(len(problem.pools))
    return tuple(
        tuple(solver.value(variables.cells[b, p]) for p in pools) for b in range(problem.blocks)
    )


def c1_blocks(
    model: cp_model.CpModel,
    problem: AllocationProblem,
    cells: Mapping[tuple[int, int], cp_model.IntVar],
) -> None:
    """C1: the sum over the pools of a block's cells is its members."""
    for b in range(problem.blocks):
        row = [cells[b, p] for p in range(len(problem.pools))]
        if problem.members == 1:
            model.add_exactly_one(row)
        else:
            model.add(sum(row) == problem.members)


def c2_pools(
    model: cp_model.CpModel,
    problem: AllocationProblem,
    cells: Mapping[tuple[int, int], cp_model.IntVar],
) -> None:
    """C2: the cells in a pool are at most its hosts, and as many where no host is left over."""
    for p, hosts in enumerate(problem.pools):
        total = sum(cells[b, p] for b in range(problem.blocks))
        model.add(total <= hosts if problem.idle else total == hosts)


def c5_ticks(
    model: cp_model.CpModel, way: cp_model.IntVar, load: cp_model.IntVar, ticks: Sequence[int]
) -> None:
    """C5: w is at least the ticks of k; also of a line below them, which the relaxation sees."""
    cost = model.new_int_var(ticks[0], ticks[-1], "t")
    model.add_element(load, list(ticks), cost)
    model.add(way >= cost)
    first = next((v for v, t in enumerate(ticks) if t > ticks[0]), None)
    if first is not None and first < len(ticks) - 1:
        step = (ticks[-1] - ticks[first]) // (len(ticks) - 1 - first)
        below = min(t - step * v for v, t in enumerate(ticks))
        model.add(way >= step * load + below)


def c6_cheapest(
    model: cp_model.CpModel, request: cp_model.IntVar, ways: Sequence[cp_model.IntVar]
) -> None:
    """C6: exactly one way counts; c is at least its ticks."""
    if len(ways) == 1:
        model.add(request >= ways[0])
        return
    runs = [model.new_bool_var(f"runs{a}") for a in range(len(ways))]
    model.add_exactly_one(runs)
    for chosen, way in zip(runs, ways, strict=True):
        model.add(request >= way).only_enforce_if(chosen)


def c7_held(
    model: cp_model.CpModel,
    problem: AllocationProblem,
    cells: Mapping[tuple[int, int], cp_model.IntVar],
) -> None:
    """C7: the cells of these blocks in each pool are as many as is held."""
    for one in problem.held:
        for p, count in enumerate(one.counts):
            model.add(sum(cells[b, p] for b in one.blocks) == count)


def c8_at_most(model: cp_model.CpModel, goal: cp_model.LinearExprT, ticks: int) -> None:
    """C8: the objective is at most so many ticks."""
    model.add(goal <= ticks)


def _build(model: cp_model.CpModel, problem: AllocationProblem) -> Vars:
    cells = {
        (b, p): model.new_int_var(0, min(problem.members, hosts), f"n{b},{p}")
        for b in range(problem.blocks)
        for p, hosts in enumerate(problem.pools)
    }
    c1_blocks(model, problem, cells)
    c2_pools(model, problem, cells)
    c7_held(model, problem, cells)
    held = held_of(problem, cells)
    largest = _largest(model, problem, held)
    costs = tuple(_request(model, largest, ways) for ways in problem.requests)
    variables = Vars(cells, largest, costs)
    c9_alone(model, problem, largest)
    c10_exchanges(model, problem, cells)
    for b, row in enumerate(problem.start or ()):
        for p, count in enumerate(row):
            model.add_hint(cells[b, p], count)
    return variables


def _largest(
    model: cp_model.CpModel, problem: AllocationProblem, held: EntityCells
) -> dict[tuple[int, tuple[int, ...]], cp_model.IntVar]:
    """k by load and ticks, each bounded by the loads of its entities."""
    wanted: dict[tuple[int, tuple[int, ...]], set[int]] = {}
    for way in (way for ways in problem.requests for way in ways):
        for entity, uplink in enumerate(way.uplinks):
            if uplink is not None:
                wanted.setdefault((uplink.load, uplink.ticks), set()).add(entity)
    found, known = {}, {}
    for (load, ticks), entities in wanted.items():
        key = load, frozenset(entities)
        if key not in known:
            known[key] = model.new_int_var(0, len(ticks) - 1, f"k{load}")
            for entity in sorted(entities):
                _carry(model, problem, held, load, entity, known[key])
        found[load, ticks] = known[key]
    return found


def _carry(
    model: cp_model.CpModel,
    problem: AllocationProblem,
    held: EntityCells,
    load: int,
    entity: int,
    largest: cp_model.IntVar,
) -> None:
    """k is at least the load of one entity: C3 or C4."""
    kind = problem.loads[load]
    if isinstance(kind, Messages):
        c3_messages(model, problem, held, kind, entity, largest)
    else:
        c4_shares(model, problem, held, kind, entity, largest)


def _request(
    model: cp_model.CpModel,
    largest: Mapping[tuple[int, tuple[int, ...]], cp_model.IntVar],
    ways: Sequence[WayTicks],
) -> cp_model.IntVar:
    """c of a request."""
    prices = [_priced(model, largest, way) for way in ways]
    least = min(way.least for way in ways)
    cost = model.new_int_var(least, max(_most(way) for way in ways), "c")
    c6_cheapest(model, cost, prices)
    return cost


def _priced(
    model: cp_model.CpModel,
    largest: Mapping[tuple[int, tuple[int, ...]], cp_model.IntVar],
    way: WayTicks,
) -> cp_model.IntVar:
    """w of a way."""
    cost = model.new_int_var(way.least, _most(way), "w")
    for load, ticks in sorted({(u.load, u.ticks) for u in way.uplinks if u is not None}):
        c5_ticks(model, cost, largest[load, ticks], ticks)
    return cost


def _most(way: WayTicks) -> int:
    """The most that a way can cost."""
    return max([way.least, *(u.ticks[-1] for u in way.uplinks if u is not None)])


def _goal(
    model: cp_model.CpModel, problem: AllocationProblem, variables: Vars
) -> cp_model.LinearExprT:
    most = sum(max(_most(way) for way in ways) for ways in problem.requests)
    if most > MAX_TICKS:
        raise TooLarge("ticks of an allocation", f"their sum must be at most {MAX_TICKS}")
    goal: cp_model.LinearExprT = sum(variables.costs)
    if problem.worst:
        goal = model.new_int_var(0, most, "m")
        model.add_max_equality(goal, variables.costs)
    if problem.at_most is not None:
        c8_at_most(model, goal, problem.at_most)
    return goal


# Loads of the uplinks: C3 and C4.


EntityCells = Mapping[tuple[int, int], cp_model.LinearExpr]
"""Cells of each block in each entity."""


def held_of(
    problem: AllocationProblem, cells: Mapping[tuple[int, int], cp_model.IntVar]
) -> EntityCells:
    """The sum over its pools of what each entity holds of each block."""
    return {
        (b, e): cp_model.LinearExpr.sum([cells[b, p] for p in pools])
        for e, pools in enumerate(problem.entities)
        for b in range(problem.blocks)
    }


def c3_messages(
    model: cp_model.CpModel,
    problem: AllocationProblem,
    held: EntityCells,
    load: Messages,
    entity: int,
    largest: cp_model.IntVar,
) -> None:
    """C3: out - into is what the first end of an edge has more; k >= the sum of either."""
    most = min(problem.members, sum(problem.pools[p] for p in problem.entities[entity]))
    out, into = [], []
    for a, b, count in load.edges:
        leaves = model.new_int_var(0, most, "out")
        enters = model.new_int_var(0, most, "into")
        model.add(leaves - enters == held[a, entity] - held[b, entity])
        model.add(leaves <= held[a, entity])
        model.add(enters <= held[b, entity])
        out.append(count * leaves)
        into.append(count * enters)
    model.add(sum(out) <= largest)
    model.add(sum(into) <= largest)


def c4_shares(
    model: cp_model.CpModel,
    problem: AllocationProblem,
    held: EntityCells,
    load: Shares,
    entity: int,
    largest: cp_model.IntVar,
) -> None:
    """C4: v is the share of what the entity holds of a group; k >= their sum."""
    total: list[cp_model.LinearExprT] = []
    for group in load.groups:
        inside = sum(held[b, entity] for b in group)
        size = len(group) * problem.members
        if len(set(load.sent[1:-1])) == 1:
            total.append(load.sent[1] * _partly(model, inside, size))
        elif size > 1:
            total.append(_looked_up(model, inside, load.sent))
    model.add(sum(total) <= largest)


def _partly(model: cp_model.CpModel, inside: cp_model.LinearExprT, size: int) -> cp_model.IntVar:
    """Whether an entity holds some of a group and not all: 0 < inside < size."""
    partly, wholly = model.new_bool_var("partly"), model.new_bool_var("wholly")
    model.add(inside <= size * wholly + (size - 1) * partly)
    model.add(inside >= size * wholly + partly)
    model.add_at_most_one(partly, wholly)
    return partly


def _looked_up(
    model: cp_model.CpModel, inside: cp_model.LinearExprT, sent: Sequence[int]
) -> cp_model.IntVar:
    """The share of a number of cells."""
    number = model.new_int_var(0, len(sent) - 1, "held")
    model.add(number == inside)
    share = model.new_int_var(0, max(sent), "v")
    model.add_element(number, list(sent), share)
    return share


# What follows from the others, or picks one of equals: C9 and C10.


_Key = tuple[int, tuple[int, ...]]


def c9_alone(
    model: cp_model.CpModel,
    problem: AllocationProblem,
    largest: Mapping[_Key, cp_model.IntVar],
) -> None:
    """C9: given the messages k of entities, their k of shares is at least what one needs alone."""
    for chain in (i for i, load in enumerate(problem.loads) if _is_chain(problem, load)):
        for part, share in _parts(problem):
            for (message, ticks), moved in _of(largest, chain):
                for (other, ticks_of_share), shared in _of(largest, part):
                    both = _entities(problem, (message, ticks)) & _entities(
                        problem, (other, ticks_of_share)
                    )
                    if both:
                        _staircase(model, problem, sorted(both), moved, shared, share)


def _of(
    largest: Mapping[_Key, cp_model.IntVar], load: int
) -> Iterator[tuple[_Key, cp_model.IntVar]]:
    return ((key, k) for key, k in largest.items() if key[0] == load)


def _entities(problem: AllocationProblem, key: _Key) -> set[int]:
    """The entities whose load goes into a k."""
    return {
        e
        for ways in problem.requests
        for way in ways
        for e, uplink in enumerate(way.uplinks)
        if uplink is not None and (uplink.load, uplink.ticks) == key
    }


def _is_chain(problem: AllocationProblem, load: Messages | Shares) -> bool:
    """Whether messages go from each block to the next, one a cell."""
    steps = tuple((b, b + 1, 1) for b in range(problem.blocks - 1))
    return isinstance(load, Messages) and load.edges == steps


def _parts(problem: AllocationProblem) -> Iterator[tuple[int, int]]:
    """Loads with a group for each block whose share is the same for every part, and that share."""
    each = tuple((b,) for b in range(problem.blocks))
    for i, load in enumerate(problem.loads):
        if isinstance(load, Shares) and load.groups == each and len(set(load.sent[1:-1])) == 1:
            yield i, load.sent[1]


def _staircase(
    model: cp_model.CpModel,
    problem: AllocationProblem,
    entities: list[int],
    moved: cp_model.IntVar,
    shared: cp_model.IntVar,
    share: int,
) -> None:
    """Below each step of ``moved`` there are so many parts."""
    before = -1
    for limit in reversed(range(problem.members + 1)):
        parts = max(least_parts(problem, e, limit) for e in entities)
        if parts <= before:
            continue
        before = parts
        if limit == problem.members:
            model.add(shared >= share * parts)
            continue
        more = model.new_bool_var("more")
        model.add(moved >= limit + 1).only_enforce_if(more)
        if parts <= problem.blocks:
            model.add(shared >= share * parts).only_enforce_if(more.negated())
        else:
            model.add(more == 1)


def c10_exchanges(
    model: cp_model.CpModel,
    problem: AllocationProblem,
    cells: Mapping[tuple[int, int], cp_model.IntVar],
) -> None:
    """C10: blocks that are alike ascend by weight; the chain's first is no heavier than its last.

    A block weighs its cells by the kinds of their pools, so pools that are alike weigh the same;
    of those the first block's cells descend.
    """
    kinds = _kinds(problem)
    if problem.held or problem.members == 1:
        return
    for first, second in pairwise(range(len(kinds))):
        if kinds[first] == kinds[second]:
            model.add(cells[0, first] >= cells[0, second])
    weight = [
        sum((kind + 1) ** 2 * cells[b, p] for p, kind in enumerate(kinds))
        for b in range(problem.blocks)
    ]
    if problem.alike:
        for lighter, heavier in pairwise(weight):
            model.add(lighter <= heavier)
    elif problem.mirrored:
        model.add(weight[0] <= weight[-1])


def _kinds(problem: AllocationProblem) -> list[int]:
    """A number for each pool, the same for neighbours that can be exchanged.

    Those are pools of as many hosts whose switches hold nothing else, and cost as much.
    """
    found: list[int] = []
    for pool in range(len(problem.pools)):
        same = pool > 0 and _kind(problem, pool) == _kind(problem, pool - 1)
        found.append(found[-1] if same else len(found))
    return found


def _kind(problem: AllocationProblem, pool: int) -> tuple[object, ...]:
    around = [e for e, pools in enumerate(problem.entities) if pool in pools]
    alone = [e for e in around if len(problem.entities[e]) == 1]
    outer = tuple(e for e in around if e not in alone)
    prices = tuple(
        tuple(way.uplinks[e] for e in alone) for ways in problem.requests for way in ways
    )
    return problem.pools[pool], outer, prices
