"""Relations between devices, rows and contributions of a hierarchy of any sizes, as diagrams.

A relation over some variables is a set of k-tuples of equality types, one type per level.  It is
kept as a decision diagram: a node branches on the type at its level; equal subsets are one node, so
two relations are equal where their numbers are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce

from experiments.small_model.equality_types import (
    Choices,
    Formula,
    Type,
    Where,
    Witnesses,
    choices,
    number_of,
    type_of,
    types,
)

Node = int
EMPTY: Node = 0
"""The empty relation, at every level."""
_END: Node = 1
"""Below the last level: the tuple is in the relation."""
_Memo = dict[tuple[Node, ...], Node]


class Diagrams:
    """A store of relations over hierarchies of ``levels`` levels."""

    def __init__(self, levels: int) -> None:
        self.levels = levels
        self.children: list[tuple[Node, ...]] = [(), ()]
        self._numbers: dict[tuple[Node, ...], Node] = {}
        self._unions: dict[tuple[Node, Node], Node] = {}
        self._plans: dict[object, list[tuple[Choices, _Memo]]] = {}
        self._memos: dict[object, _Memo] = {}

    def node(self, children: tuple[Node, ...]) -> Node:
        """The node with these children, by the number of the type."""
        if not any(children):
            return EMPTY
        found = self._numbers.get(children)
        if found is None:
            found = self._numbers[children] = len(self.children)
            self.children.append(children)
        return found

    def product(self, variables: int, allowed: Sequence[Callable[[Type], bool]]) -> Node:
        """Tuples whose type at every level is allowed there."""
        below = _END
        for allow in reversed(allowed):
            below = self.node(tuple(below if allow(t) else EMPTY for t in types(variables)))
        return below

    def somewhere(self, variables: int, chosen: Sequence[Callable[[Type], bool]]) -> Node:
        """Tuples whose type is one of the chosen at one level or more."""
        found, everything = EMPTY, _END
        for choose in reversed(chosen):
            each = types(variables)
            found = self.node(tuple(everything if choose(t) else found for t in each))
            everything = self.node((everything,) * len(each))
        return found

    def union(self, one: Node, other: Node) -> Node:
        """The union of two relations over the same variables."""
        if one == other or not other:
            return one
        if not one:
            return other
        key = (one, other) if one < other else (other, one)
        found = self._unions.get(key)
        if found is None:
            pairs = zip(self.children[one], self.children[other], strict=True)
            found = self._unions[key] = self.node(tuple(self.union(a, b) for a, b in pairs))
        return found

    def holds(self, relation: Node, digits: Sequence[Sequence[int]]) -> bool:
        """Whether digits, for each level those of the variables in order, are in a relation."""
        at = reduce(lambda n, of: n and self.children[n][number_of(type_of(of))], digits, relation)
        return at == _END

    def solve(
        self,
        formula: Formula,
        where: tuple[Where, ...],
        relations: tuple[Node, ...],
        witnesses: Witnesses = Witnesses.ANY,
    ) -> Node:
        """The relation that a formula defines; without output, EMPTY if nothing satisfies it.

        ``where`` is asked of each level, ``relations`` are those the formula names, in order.
        """
        key = (formula, where, witnesses)
        plan = self._plans.get(key)
        if plan is None:
            memos = self._memos  # levels below are shared by all that ask the same of them
            plan = self._plans[key] = [
                (
                    choices(formula, where[level], witnesses),
                    memos.setdefault((formula, where[level:], witnesses), {}),
                )
                for level in range(self.levels)
            ]
        return self._solved(plan, 0, relations, len(formula.holds), not formula.output)

    def _solved(
        self,
        plan: list[tuple[Choices, _Memo]],
        level: int,
        nodes: tuple[Node, ...],
        positive: int,
        closed: bool,
    ) -> Node:
        if EMPTY in nodes[:positive]:
            return EMPTY
        if level == self.levels:
            return EMPTY if any(nodes[positive:]) else _END
        per_type, memo = plan[level]
        known = memo.get(nodes)
        if known is not None:
            return known
        below = [self.children[node] for node in nodes]
        results = []
        for chosen in per_type:
            found, seen = EMPTY, set()
            for numbers in chosen:
                down = tuple(
                    [kids[at] if kids else EMPTY for kids, at in zip(below, numbers, strict=True)]
                )
                if down not in seen:
                    seen.add(down)
                    part = self._solved(plan, level + 1, down, positive, closed)
                    found = self.union(found, part) if part else found
                    if found and closed:
                        break
            results.append(found)
        answer = memo[nodes] = self.node(tuple(results))
        return answer
