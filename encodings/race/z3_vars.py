"""Variables of the encoding of races (:mod:`p2smt.encodings.race.z3`), and counts by literals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import z3

from p2smt.problems.race import RaceProblem, Sum

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
