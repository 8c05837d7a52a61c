"""What is claimed of a least sufficient set, and what proves it.

Of plain factors it is claimed on a cluster of their own: switches all the way, and rings whose
numbers are symbols.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from p2smt.cluster.topology import Algorithm, Level, Link, LinkKind, Piece, Topology
from p2smt.collectives.demand import demand_of
from p2smt.collectives.names import RequestKind
from p2smt.cost.scene import Scene
from p2smt.cost.symbolic.form import CostForm
from p2smt.cost.symbolic.steps import symbolic_program
from p2smt.errors import InputError
from p2smt.parallelism.placement import Placement
from p2smt.problems.crossing import Coefficients, Refutation, SumOfMaxima
from p2smt.programs.check import check_program
from p2smt.programs.program import Hierarchy, Program
from p2smt.result import Status


@dataclass(frozen=True, slots=True)
class SymbolicSetting:
    """Programs of one request over plain factors, by rings: which, and what is unknown.

    ``ports`` of an entity of each level, outermost first.  ``calls``: the cost of a call is an
    unknown, too; otherwise calls cost nothing.
    """

    factors: tuple[int, ...]
    ports: tuple[int, ...]
    kind: RequestKind = RequestKind.ALL_REDUCE
    max_length: int = 5
    calls: bool = True

    @property
    def scene(self) -> Scene:
        """Where the programs run."""
        return factor_scene(self.factors, self.ports)

    @property
    def unknowns(self) -> tuple[str, ...]:
        """The names of the unknown numbers, in the order of coefficients."""
        levels = self.scene.topology.names
        first = ("c",) if self.calls else ()
        return (*first, *(f"alpha_{x}" for x in levels), *(f"n beta_{x}" for x in levels))

    def cost(self, form: CostForm) -> SumOfMaxima:
        """A symbolic cost over the unknowns; the payload is part of those of bandwidths."""
        calls = (Fraction(form.calls),) if self.calls else ()
        none = (Fraction(0),) * len(self.factors)
        before = (Fraction(0),) * len((*calls, *none))
        return SumOfMaxima(
            (*calls, *form.latency, *none), tuple((*before, *m) for m in form.maxima)
        )


@dataclass(frozen=True, slots=True)
class EqualPrograms:
    """Programs that cost the same whatever the hardware; the shortest is the first."""

    programs: tuple[Program, ...]
    form: CostForm
    cost: SumOfMaxima


@dataclass(frozen=True, slots=True)
class Exclusion:
    """Why a cost (by index) need not be in the set; ``by`` of its refutation are indices, too."""

    excluded: int
    refutation: Refutation


@dataclass(frozen=True, slots=True)
class Needed:
    """Numbers for which only the costs ``best`` (by index) are least: one of them is needed."""

    point: Coefficients
    best: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class LeastSet:
    """Fewest costs (``members``, by index) of which one is always least.

    ``costs`` are those of all programs, each once.  OPTIMAL: each other one has an exclusion, and
    no fewer costs meet all of ``needed``.  UNKNOWN: a limit came, and the costs in ``open`` may
    still be less somewhere.
    """

    setting: SymbolicSetting
    costs: tuple[EqualPrograms, ...]
    members: tuple[int, ...]
    exclusions: tuple[Exclusion, ...]
    needed: tuple[Needed, ...]
    status: Status
    open: tuple[int, ...] = ()
    wall_s: float = 0.0

    @property
    def programs(self) -> int:
        """How many programs there are in all."""
        return sum(len(one.programs) for one in self.costs)

    def alone(self, member: int) -> Coefficients | None:
        """Numbers for which this cost alone is least, where such are known."""
        return next((one.point for one in self.needed if one.best == (member,)), None)


# The symbolic cost of one program in a setting, from its text and the rules alone.


def program_form(setting: SymbolicSetting, program: Program) -> CostForm:
    """The cost of a program, which the semantics runs first.

    Raises:
        InputError: the program is not valid there.
    """
    scene = setting.scene
    rows = _payload_rows(setting.kind, scene.hierarchy, program)
    form = symbolic_program(scene, program, rows).form()
    if form is None:
        given = f"program '{str(program)[:200]}'"
        raise InputError(given, "runs in several ways", "name one algorithm")
    return form


@lru_cache(maxsize=8192)
def _payload_rows(kind: RequestKind, hierarchy: Hierarchy, program: Program) -> tuple[int, ...]:
    """Rows of a state matrix that each step works on; ports play no part."""
    checked = check_program(demand_of(kind), hierarchy, program)
    if (fault := checked.trace.violation) is not None:
        given = f"program '{str(program)[:200]}'"
        raise InputError(given, f"is not valid: {fault.message} ({fault.kind.value})")
    return checked.trace.payload_rows


_SYMBOL = Piece("", 1.0, 1.0)
"""One second a message and a byte: nothing but ratios within a link is read from it."""


def factor_scene(
    factors: Sequence[int], ports: Sequence[int], algorithm: Algorithm = Algorithm.RING
) -> Scene:
    """One reduction over all devices of a cluster with these factors, outermost first.

    ports: of an entity of each level; their number divides that of the devices below, or the
        other way round.

    Raises:
        InputError: a factor below 2, or ports that do not fit.
    """
    if min(factors, default=0) < 2:
        remedy = "leave ones out" if 1 in factors else "give some such as 4,8"
        raise InputError(f"factors {list(factors)}", "must be at least 2 each", remedy)
    if len(ports) != len(factors):
        rule = f"are for {len(ports)} levels, and there are {len(factors)}"
        raise InputError(f"ports {list(ports)}", rule, "give a number for each, such as 8,1")
    names = [name for name, _ in Hierarchy.plain(factors).aliases[1:]]
    levels = tuple(
        Level(name, size, Link(LinkKind.SWITCH, (_SYMBOL,), ports=count))
        for name, size, count in zip(names, factors, ports, strict=True)
    )
    topology = Topology(f"factors-{math.prod(factors)}", levels, algorithms=(algorithm,))
    return Scene.of(topology, Placement((tuple(factors),)), [0])
