"""Programs as families of schedules: one schedule for every choice of the levels' sizes."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice
from math import prod
from typing import TYPE_CHECKING

from p2smt.collectives.demand import demand_of
from p2smt.errors import InputError, TooLarge
from p2smt.programs.check import check_program
from p2smt.programs.program import Hierarchy, small_model_length
from p2smt.schedules.families.family import MAX_SIZES, Instance, ParametricReport
from p2smt.schedules.families.induction import Induction
from p2smt.schedules.lower.assemble import DEFAULT
from p2smt.schedules.lower.program import lower_program
from p2smt.schedules.model import DEFAULT_DEPTH
from p2smt.schedules.verify.report import Kind, Report, Verdict, Violation
from p2smt.schedules.verify.verify import verify

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from p2smt.collectives.names import RequestKind
    from p2smt.programs.program import Program
    from p2smt.schedules.lower.assemble import Lowering


def all_factors(levels: int, upto: int) -> list[tuple[int, ...]]:
    """Every choice of sizes, each at least 2, of which the product is at most ``upto``.

    Raises:
        InputError: there is none.
        TooLarge: there are more than 1000.
    """
    if 2**levels > upto:
        rule = f"counts ranks; {levels} levels have at least {2**levels}, two a level"
        raise InputError(f"upto {upto}", rule, f"give {2**levels} or more")
    found = list(_factors(levels, upto))
    if len(found) > MAX_SIZES:
        raise TooLarge(f"up to {upto} ranks", f"are more than {MAX_SIZES} choices of sizes")
    return found


def _factors(levels: int, upto: int) -> Iterator[tuple[int, ...]]:
    """As :func:`all_factors`, in lexicographic order; one more than are allowed, at most."""
    if levels == 0:
        yield ()
        return
    choices = (
        (first, *rest)
        for first in range(2, upto // 2 ** (levels - 1) + 1)
        for rest in _factors(levels - 1, upto // first)
    )
    yield from islice(choices, MAX_SIZES + 1)


def prove_program(
    program: Program,
    names: Sequence[str],
    sizes: Iterable[tuple[int, ...]],
    kind: RequestKind,
    how: Lowering = DEFAULT,
    fifo_depth: int = DEFAULT_DEPTH,
) -> ParametricReport:
    """Checks a program at these sizes of its levels; stops at the first that is wrong.

    First by the meaning of collectives on state matrices, then chunk by chunk, in every
    interleaving, as the schedule that the lowering makes of it.

    Raises:
        InputError: a level of the program is not among the names, or a schedule is too large.
    """
    instances: list[Instance] = []
    for factors in sizes:
        parameters = tuple(zip(names, factors, strict=True))
        report = _checked(program, Hierarchy.of(names, factors), kind, how, fifo_depth)
        instances.append(Instance(parameters, prod(factors), report))
        if report.verdict is Verdict.INVALID:
            break
    most = max((instance.ranks for instance in instances), default=0)
    return ParametricReport(
        most, tuple(instances), Induction(False, "all sizes", reason=_why(program, len(names)))
    )


def _checked(
    program: Program, hierarchy: Hierarchy, kind: RequestKind, how: Lowering, fifo_depth: int
) -> Report:
    broken = check_program(demand_of(kind), hierarchy, program).trace.violation
    if broken is not None:
        text = f"{broken.kind.value}: {broken.message}"
        found = Violation(Kind.RULE, text, (), broken.rank, broken.chunk)
        return Report(Verdict.INVALID, (found,), (), fifo_depth)
    schedule = lower_program(program, hierarchy, kind, how)
    return verify(replace(schedule, name=str(program)), fifo_depth)


def _why(program: Program, depth: int) -> str:
    """What is known about other sizes."""
    longest = small_model_length(depth)
    if len(program.instructions) > longest:
        return f"programs longer than {longest} steps may depend on the sizes"
    return (
        "the program is valid on all sizes (small-model theorem, docs/small-model.md), but its "
        "schedules were checked at these sizes alone"
    )
