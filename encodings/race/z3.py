"""An order of unordered accesses that makes an output chunk wrong, in z3.

Problem: a :class:`p2smt.problems.race.RaceProblem`, which has accesses on shared cells, a partial
order that every execution keeps, and what every write leaves as a sum of fixed parts and of what
reads see.  A read sees the last write before it.  Is there a total order in which the chunk's
multiset is not the wanted one?  (Reads-from and order as Booleans: Alglave, Kroening, Tautschnig,
"Partial orders for efficient bounded model checking of concurrent software", CAV 2013.)

Variables
    at[x]         bit-vector: place of point x in the order; points are accesses, and the start
                  and the end ("done") of nodes, which are one with the access of a node that
                  has one access and nothing else
    first[x, y]   Boolean: point x before point y, for pairs that matter and are not certain
    sees[r, s]    Boolean: read r sees source s
    least[r, p, k]  Boolean: read r sees part p at least k times, k = 1..cap; more than any
                  wanted count is all the same, so counts stop there
    executed[g]   Boolean, with a prefix: group g of steps is executed until the chunk is final

Constraints
    C1 step       a node starts, reads a position, writes it, is done
    C2 order      what must be done before a node is done before its start
    C3 places     first[x, y] is the order of the places
    C3 no circle  instead of C1, C2 and places, for few points: no three of them in a circle
                  (proofs are far shorter that way)
    C4 source     a read sees one source: a write before it with no other write between; the
                  contents before any write if all writes come later
    C5 value      the counts of a read are those of its source
    C6 counter    an await finds what it takes: posts before it and the initial value are at
                  least it and the awaits before it
    C6 exclusion  follows from that where every post is a node that has itself waited for the one
                  value there is, or comes after its own one that has: of two of them, one has
                  posted before the other one starts (found by search only with great effort)
    C7 packet     one of the writes of a packet comes before the node that reads it starts
    C8 wrong      some part of the chunk's value is not there as often as wanted
    C9 closed     with b is executed whatever must come before b; what is executed comes first;
                  all writers of the chunk are executed, or the end that reads it
    C10 at most   the weight of what is executed is within the bound

Objective: none.  The shortest wrong order is found by asking again with a smaller bound in C10.

Size: reads times the square of their sources, plus counters times the square of their nodes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations, permutations

import z3

from p2smt.encodings.run_z3 import new_solver, solution, spent
from p2smt.errors import OutOfTimeError
from p2smt.problems.race import Counting, RaceAnswer, RaceProblem, Read, Sum
from p2smt.result import Result, SearchLimits, SolveStats, Status, StopWatch

MAX_CLOSED = 32
"""Points up to which the order is stated in full."""


def c1_step(solver: z3.Solver, v: Vars, node: int, accesses: Sequence[int]) -> None:
    """C1: a node starts, reads a position, writes it, is done."""
    start, done = v.start(node), v.done(node)
    _in_order(solver, v, start, done)
    for x in accesses:
        _in_order(solver, v, start, x)
        _in_order(solver, v, x, done)
        for y in accesses:
            if v.sure(x, y):
                _in_order(solver, v, x, y)


def _in_order(solver: z3.Solver, v: Vars, x: int, y: int) -> None:
    """Point x before y; nothing to say if they share a place."""
    if not v.at[x].eq(v.at[y]):
        solver.add(z3.ULT(v.at[x], v.at[y]))


def c2_order(solver: z3.Solver, v: Vars, node: int) -> None:
    """C2: what must be done before a node is done before its start (nearest ones suffice)."""
    masks, implied = v.problem.before, 0
    for a in _bits(masks[node]):
        implied |= masks[a]
    for a in _bits(masks[node] & ~implied):
        solver.add(z3.ULT(v.at[v.done(a)], v.at[v.start(node)]))


def _bits(mask: int) -> Iterator[int]:
    while mask:
        yield (mask & -mask).bit_length() - 1
        mask &= mask - 1


def c3_places(solver: z3.Solver, v: Vars) -> None:
    """C3: first[x, y] is the order of the places; to be stated last."""
    for x, y in v.asked:
        solver.add(z3.Implies(v.first[x, y], z3.ULT(v.at[x], v.at[y])))
        solver.add(z3.Implies(v.first[y, x], z3.ULT(v.at[y], v.at[x])))


def c3_no_circle(solver: z3.Solver, v: Vars, points: Sequence[int]) -> None:
    """C3 without places, for few points: no three of them in a circle."""
    before = {(x, y): v.before(x, y) for x, y in permutations(points, 2)}
    for x, y, z in combinations(points, 3):
        for a, b, c in ((x, y, z), (x, z, y)):
            # not (a < b < c < a), and of two points one comes first
            _clause(solver, before[b, a], before[c, b], before[a, c])


def c4_source(solver: z3.Solver, v: Vars, r: int, read: Read) -> None:
    """C4: a read sees the last write before it, or the contents before any write."""
    solver.add(z3.PbEq([(sees, 1) for sees in v.sees[r]], 1))
    writes = [s.write for s in read.sources if s.write is not None]
    late = {other: v.before(read.access, other) for other in writes}
    for sees, source in zip(v.sees[r], read.sources, strict=True):
        seen, unseen = source.write, z3.Not(sees)
        for other in writes:
            if other == seen:
                _clause(solver, unseen, v.before(other, read.access))
            else:
                hidden = FALSE if seen is None else v.before(other, seen)
                _clause(solver, unseen, late[other], hidden)


def _clause(solver: z3.Solver, *sides: z3.BoolRef) -> None:
    """One of the sides holds; nothing is stated where that is certain."""
    some = any_of(sides)
    if some is not TRUE:
        solver.add(some)


def c5_value(solver: z3.Solver, v: Vars, r: int, read: Read) -> None:
    """C5: the counts of a read are those of its source."""
    seen: dict[int, list[list[z3.BoolRef]]] = {
        part: [[] for _ in least] for part, least in v.least[r].items()
    }
    for sees, source in zip(v.sees[r], read.sources, strict=True):
        for part, there in counts(v, source.value).items():
            for k, enough in enumerate(there):
                seen[part][k].append(both(sees, enough))
    for part, levels in v.least[r].items():
        for least, some in zip(levels, seen[part], strict=True):
            solver.add(least == any_of(some))


def c6_counter(solver: z3.Solver, v: Vars, counter: Counting) -> None:
    """C6: posts before an await, and what was there, are at least it and the awaits before it."""
    for wait in set(counter.awaits):
        start = v.start(wait)
        posts = [(v.before(v.done(p), start), 1) for p in counter.posts if p != wait]
        others = [w for w in counter.awaits if w != wait]
        # -(awaits before) is (awaits not before) - (how many there are)
        kept = [(z3.Not(v.before(v.start(w), start)), 1) for w in others]
        needed = len(counter.awaits) - counter.initial
        solver.add(z3.PbGe([*posts, *kept], needed) if needed > 0 else TRUE)


def c6_exclusion(solver: z3.Solver, v: Vars, counter: Counting) -> None:
    """Implied by C6: holders of a lock take turns."""
    sections = _sections(v.problem, counter) if counter.initial == 1 else {}
    for a, released in sections.items():
        for b, other in sections.items():
            if a < b:
                first = v.before(v.done(released), v.start(b))
                solver.add(z3.Or(first, v.before(v.done(other), v.start(a))))


def _sections(problem: RaceProblem, counter: Counting) -> dict[int, int]:
    """Await -> a post of its own that never comes before it; empty if some post is left over."""
    if len(set(counter.awaits)) < len(counter.awaits):
        return {}
    free, found = list(counter.posts), {}
    for wait in counter.awaits:
        later = [p for p in free if p == wait or problem.before[p] >> wait & 1]
        if later:
            post = min(later, key=lambda p: (p != wait, problem.before[p].bit_count()))
            free.remove(post)
            found[wait] = post
    return {} if free else found


def c7_packet(solver: z3.Solver, v: Vars, node: int, writes: Sequence[int]) -> None:
    """C7: one of the writes of a packet comes before the node that reads it starts."""
    solver.add(z3.Or([v.before(write, v.start(node)) for write in writes]))


def c8_wrong(solver: z3.Solver, v: Vars) -> None:
    """C8: some part of the chunk's value is not there as often as wanted."""
    there, wanted = counts(v, v.problem.value), dict(v.problem.wanted)
    wrong = []
    for part in sorted({*there, *wanted}):
        least, n = there.get(part, [FALSE] * v.problem.cap), wanted.get(part, 0)
        wrong += [least[n], *([z3.Not(least[n - 1])] if n else [])]
    solver.add(z3.Or(wrong))


def c9_closed(solver: z3.Solver, v: Vars) -> None:
    """C9: what is executed is closed and comes first, and the chunk is final then."""
    prefix = v.problem.prefix
    if prefix is None:
        return
    solver.add([z3.Implies(v.executed[b], v.executed[a]) for a, b in prefix.closed])
    ran = [v.executed[group] for group in prefix.group_of]
    all_written = z3.And([ran[node] for node in prefix.needs])
    solver.add(all_written if prefix.end is None else z3.Or(all_written, ran[prefix.end]))
    for x, y in (*v.asked, *((y, x) for x, y in v.asked)):
        solver.add(z3.Or(z3.Not(ran[v.node_of(x)]), ran[v.node_of(y)], v.first[x, y]))


def c10_at_most(solver: z3.Solver, v: Vars) -> None:
    """C10: the weight of what is executed is within the bound."""
    prefix = v.problem.prefix
    if prefix is not None:
        pairs = [(g, w) for g, w in zip(v.executed, prefix.weights, strict=True) if w]
        fits = z3.PbLe(pairs, prefix.at_most) if pairs else z3.BoolVal(prefix.at_most >= 0)
        solver.add(fits if prefix.at_most >= 0 else FALSE)


def build(problem: RaceProblem, solver: z3.Solver, watch: StopWatch) -> Vars:
    """State the problem.  Ends early where the time is up: then no answer is asked for."""
    v = Vars.of(problem)
    for r, read in enumerate(problem.reads):
        if not watch.expired():
            c4_source(solver, v, r, read)
            c5_value(solver, v, r, read)
    for counter in problem.counters:
        c6_counter(solver, v, counter)
        c6_exclusion(solver, v, counter)
    for packet in problem.packets:
        c7_packet(solver, v, packet.node, packet.writes)
    c8_wrong(solver, v)
    _order(solver, v)
    c9_closed(solver, v)
    c10_at_most(solver, v)
    return v


def _order(solver: z3.Solver, v: Vars) -> None:
    """C1 to C3: with few points without places, which makes proofs much shorter."""
    v.asked.extend((x, y) for x, y in v.first if x < y)
    points = sorted({x for pair in v.asked for x in pair})
    if len(points) <= MAX_CLOSED:
        c3_no_circle(solver, v, points)
        return
    own: list[list[int]] = [[] for _ in v.problem.before]
    for number, access in enumerate(v.problem.accesses):
        own[access.node].append(number)
    for node, accesses in enumerate(own):
        c1_step(solver, v, node, accesses)
        c2_order(solver, v, node)
    c3_places(solver, v)


def decode(model: z3.ModelRef, v: Vars) -> RaceAnswer:
    """The pairs that matter, first one first."""
    first = (
        (x, y, z3.is_true(model.eval(v.first[x, y], model_completion=True))) for x, y in v.asked
    )
    return RaceAnswer(tuple((x, y) if before else (y, x) for x, y, before in first))


def wrong_order(problem: RaceProblem, limits: SearchLimits) -> Result[RaceAnswer]:
    """An order in which the chunk is wrong: FEASIBLE, INFEASIBLE (proved), or UNKNOWN."""
    watch, solver = StopWatch.start(limits), new_solver(limits.seed)
    v = build(problem, solver, watch)
    before = spent(solver)
    try:
        model = solution(solver, watch)
    except OutOfTimeError as error:
        stats = SolveStats("z3", watch.elapsed_s(), effort=spent(solver) - before)
        return Result(Status.UNKNOWN, stats=replace(stats, reason=str(error)))
    stats = SolveStats("z3", watch.elapsed_s(), effort=spent(solver) - before)
    if model is None:
        return Result(Status.INFEASIBLE, stats=stats)
    return Result(Status.FEASIBLE, decode(model, v), stats=stats)


# Variables, and counts by literals.


Counts = dict[int, list[z3.BoolRef]]
"""Part -> [at least once, at least twice, ..]; a part that is absent does not occur."""

TRUE, FALSE = z3.BoolVal(True), z3.BoolVal(False)


@dataclass(frozen=True, slots=True)
class Vars:
    """See the encoding's head; ``first`` fills up as pairs are asked for.

    asked: the pairs that C4 to C8 name, each once; those of C3 come from these.
    """

    problem: RaceProblem
    at: tuple[z3.BitVecRef, ...]
    sees: tuple[tuple[z3.BoolRef, ...], ...]
    least: tuple[Counts, ...]
    executed: tuple[z3.BoolRef, ...]
    first: dict[tuple[int, int], z3.BoolRef] = field(default_factory=dict)
    asked: list[tuple[int, int]] = field(default_factory=list)

    @staticmethod
    def of(problem: RaceProblem) -> Vars:
        """Fresh variables."""
        same = _representatives(problem)
        bits = max(1, len(same).bit_length())
        sees = [
            tuple(z3.Bool(f"sees{r}_{s}") for s in range(len(read.sources)))
            for r, read in enumerate(problem.reads)
        ]
        levels = range(1, problem.cap + 1)
        least = [
            {p: [z3.Bool(f"least{r}_{p}_{k}") for k in levels] for p in sorted(parts)}
            for r, parts in enumerate(_supports(problem))
        ]
        groups = range(len(problem.prefix.weights) if problem.prefix else 0)
        return Vars(
            problem,
            tuple(z3.BitVec(f"at{x}", bits) for x in same),
            tuple(sees),
            tuple(least),
            tuple(z3.Bool(f"executed{g}") for g in groups),
        )

    def node_of(self, point: int) -> int:
        """The node that a point belongs to."""
        accesses, nodes = len(self.problem.accesses), len(self.problem.before)
        return self.problem.accesses[point].node if point < accesses else (point - accesses) % nodes

    def start(self, node: int) -> int:
        """The point at which a node starts."""
        return len(self.problem.accesses) + node

    def done(self, node: int) -> int:
        """The point at which a node is done."""
        return len(self.problem.accesses) + len(self.problem.before) + node

    def before(self, x: int, y: int) -> z3.BoolRef:
        """Whether point x comes before point y (different points)."""
        sure = self.sure(x, y)
        if sure is not None:
            return TRUE if sure else FALSE
        if (x, y) not in self.first:
            a, b = min(x, y), max(x, y)
            self.first[a, b] = z3.Bool(f"first{a}_{b}")
            self.first[b, a] = z3.Not(self.first[a, b])
        return self.first[x, y]

    def sure(self, x: int, y: int) -> bool | None:
        """What is certain about two points, by their nodes or as accesses of one node."""
        i, j = self.node_of(x), self.node_of(y)
        if i != j:
            masks = self.problem.before
            return True if masks[j] >> i & 1 else False if masks[i] >> j & 1 else None
        places = _place(self, x), _place(self, y)
        accesses = self.problem.accesses
        inside = x < len(accesses) and y < len(accesses)
        if inside and accesses[x].position != accesses[y].position:
            return None
        return None if places[0] == places[1] else places[0] < places[1]


def _place(v: Vars, point: int) -> int:
    """Order of the points of a node: start, reads, writes, done."""
    accesses = v.problem.accesses
    if point < len(accesses):
        return 2 if accesses[point].write else 1
    return 0 if point < v.done(0) else 3


def _representatives(problem: RaceProblem) -> list[int]:
    """For each point the one whose place it shares: a node's only access stands for it."""
    accesses, nodes = len(problem.accesses), len(problem.before)
    own: list[list[int]] = [[] for _ in range(nodes)]
    for number, access in enumerate(problem.accesses):
        own[access.node].append(number)
    awaited = {n for c in problem.counters for n in (*c.posts, *c.awaits)}
    apart = awaited | {packet.node for packet in problem.packets}
    alone = [m[0] if len(m) == 1 and n not in apart else None for n, m in enumerate(own)]
    ends = [accesses + nodes * k + n for k in (0, 1) for n in range(nodes)]
    shared = [alone[n] for _ in (0, 1) for n in range(nodes)]
    return [*range(accesses), *(x if s is None else s for x, s in zip(ends, shared, strict=True))]


def _supports(problem: RaceProblem) -> list[set[int]]:
    """The parts that each read can see: a least fixed point."""
    found: list[set[int]] = [set() for _ in problem.reads]
    users: list[set[int]] = [set() for _ in problem.reads]
    for r, read in enumerate(problem.reads):
        for source in read.sources:
            found[r].update(part for part, _ in source.value.parts)
            for used, _ in source.value.reads:
                users[used].add(r)
    todo = list(range(len(problem.reads)))
    while todo:
        used = todo.pop()
        for r in users[used]:
            if not found[used] <= found[r]:
                found[r] |= found[used]
                todo.append(r)
    return found


def any_of(sides: Sequence[z3.BoolRef]) -> z3.BoolRef:
    """Disjunction; constants, which are always the same two objects, are folded."""
    if any(side is TRUE for side in sides):
        return TRUE
    left = [side for side in sides if side is not FALSE]
    return z3.Or(left) if len(left) > 1 else left[0] if left else FALSE


def both(a: z3.BoolRef, b: z3.BoolRef) -> z3.BoolRef:
    """Conjunction, constants folded."""
    if a is FALSE or b is FALSE:
        return FALSE
    return b if a is TRUE else a if b is TRUE else z3.And(a, b)


def _add(a: Sequence[z3.BoolRef], b: Sequence[z3.BoolRef]) -> list[z3.BoolRef]:
    """At least k of a sum: at least i of one and k - i of the other, for some i."""
    more, other = [TRUE, *a], [TRUE, *b]
    return [
        any_of([both(more[i], other[k - i]) for i in range(k + 1)]) for k in range(1, len(a) + 1)
    ]


def counts(v: Vars, value: Sum) -> Counts:
    """The counts of a value."""
    cap = v.problem.cap
    levels = range(1, cap + 1)
    total: Counts = {p: [TRUE if k <= n else FALSE for k in levels] for p, n in value.parts}
    for read, times in value.reads:
        for part, least in v.least[read].items():
            for _ in range(min(times, cap)):
                total[part] = _add(total[part], least) if part in total else least
    return total
