"""Small questions, what brute force lists of them, and which cubes a solution obeys."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from itertools import product

from hypothesis import strategies as st

from p2smt.fabric.fabric import Capacity, Fabric, FabricEdge
from p2smt.parallel_search.subproblem import Member, Subproblem
from p2smt.solvers.ask import Solver
from p2smt.synthesis.schedule_space import ScheduleSpace
from p2smt.synthesis.setting import ScheduleSize, SynthesisSetting, copy_problem
from tests.synthesis import oracle

Holdings = tuple[oracle.State, ...]
"""(chunk, rank) that hold after each step, before the first one on."""

SMALL = ("allgather", "broadcast", "reduce", "scatter")


class Quiet:
    """Signals of a search of which nothing is heard."""

    def __init__(self, stopped: bool = False) -> None:
        self._stopped = stopped

    def stopped(self) -> bool:
        return self._stopped

    def cutoff(self) -> Member | None:
        return None


def made(name: str, ranks: int, pairs: list[tuple[int, int]], rates: list[Fraction]) -> Fabric:
    """Every edge with a capacity of its own."""
    edges = sorted(FabricEdge(a, b, (n,)) for n, (a, b) in enumerate(pairs))
    return Fabric(name, ranks, tuple(Capacity("", rate) for rate in rates), tuple(edges))


def circle() -> Fabric:
    """Three ranks, each with a link to the next alone."""
    return made("circle", 3, [(a, (a + 1) % 3) for a in range(3)], [Fraction(1)] * 3)


def square() -> Fabric:
    """Four ranks in a ring, both ways."""
    pairs = [(a, (a + turn) % 4) for a in range(4) for turn in (1, -1)]
    return made("square", 4, pairs, [Fraction(1)] * 8)


def all_reduce_fabrics() -> st.SearchStrategy[Fabric]:
    """Three ranks in a circle, one way or with one link back."""
    pairs = [(a, (a + 1) % 3) for a in range(3)]
    more = made("back", 3, [*pairs, (1, 0)], [Fraction(1)] * 4)
    return st.sampled_from([circle(), more])


@st.composite
def fabrics(draw: st.DrawFn) -> Fabric:
    """Three ranks in a circle, and some more edges; bandwidths may be fractions."""
    pairs = [(a, (a + 1) % 3) for a in range(3)]
    back = [(b, a) for a, b in pairs]
    pairs += draw(st.lists(st.sampled_from(back), max_size=2, unique=True))
    rates = st.sampled_from([Fraction(1), Fraction(2), Fraction(1, 2), Fraction(3, 2)])
    return made("drawn", 3, pairs, [draw(rates) for _ in pairs])


@st.composite
def copies(draw: st.DrawFn) -> ScheduleSpace:
    """Copies of few chunks in two or three steps, whether there is a schedule or not."""
    collective = draw(st.sampled_from(SMALL))
    chunks = draw(st.integers(1, 2)) if collective in ("broadcast", "reduce") else 1
    steps = draw(st.integers(2, 3 if collective in ("broadcast", "scatter") else 2))
    setting = SynthesisSetting(draw(fabrics()), collective, symmetry=False)
    size = ScheduleSize(steps, steps + draw(st.integers(0, 1)), chunks)
    return ScheduleSpace.of(setting, size, Solver.CPSAT)


def solutions(space: ScheduleSpace) -> Iterator[Holdings]:
    """The holdings of every schedule of copies, those of no use as well."""
    problem = copy_problem(space.setting, space.size, ())
    start = frozenset((c, chunk.root) for c, chunk in enumerate(problem.chunks))
    goal = {(c, v) for c, chunk in enumerate(problem.chunks) for v in chunk.goals}
    found: set[Holdings] = set()
    for rounds in product(range(1, problem.rounds + 1), repeat=problem.steps):
        if sum(rounds) == problem.rounds:
            known: set[Holdings] = {(start,)}
            for count in rounds:
                known = {
                    (*past, after)
                    for past in known
                    for after in oracle._steps(problem, past[-1], count)
                }
            found |= {one for one in known if goal <= one[-1]}
    return iter(found)


def sorted_chunks(space: ScheduleSpace, solution: Holdings, cube: Subproblem) -> bool:
    """Whether no chunk has greater decisions than a decided one before it that is alike."""
    routes = copy_problem(space.setting, space.size, ()).chunks
    words: dict[int, list[tuple[int, int]]] = {}
    for decision in cube.path:
        chunk, rank, step = (int(part[1:]) for part in decision.partition("=")[0].split("."))
        words.setdefault(chunk, []).append((rank, step))
    for chunk, places in words.items():
        own = [(chunk, rank) in solution[step] for rank, step in places]
        for other in range(chunk + 1, len(routes)):
            theirs = [(other, rank) in solution[step] for rank, step in places]
            if routes[other] == routes[chunk] and theirs > own:
                return False
    return True


def obeys(solution: Holdings, cube: Subproblem) -> bool:
    """Whether a schedule is in a cube, whose decisions are read here again."""
    for decision in cube.path:
        name, _, yes = decision.partition("=")
        chunk, rank, step = (int(part[1:]) for part in name.split("."))
        if ((chunk, rank) in solution[step]) is not (yes == "1"):
            return False
    return True
