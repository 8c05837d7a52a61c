"""Families of schedules: proofs for every size up to a bound, and for all sizes where possible."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import islice, product
from math import prod
from typing import TYPE_CHECKING

from p2smt.collectives.demand import demand_of
from p2smt.errors import InputError, TooLarge
from p2smt.programs.check import check_program
from p2smt.programs.program import Hierarchy, small_model_length
from p2smt.schedules.families.induction import Induction, prove_all_sizes
from p2smt.schedules.language.expression import evaluate
from p2smt.schedules.language.instance import instantiate, parameter_values
from p2smt.schedules.language.schedule_file import Symbolic
from p2smt.schedules.lower.assemble import DEFAULT, lower_program
from p2smt.schedules.model import DEFAULT_DEPTH
from p2smt.schedules.races.decide import DEFAULT_EFFORT
from p2smt.schedules.verify.report import Kind, Report, Verdict, Violation
from p2smt.schedules.verify.verify import verify

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from p2smt.collectives.names import RequestKind
    from p2smt.programs.program import Program
    from p2smt.schedules.lower.assemble import Lowering
    from p2smt.schedules.model import Schedule


MAX_SIZES = 1000
MAX_TRIED = 100_000
# Choices of several parameters that are named one by one.
_LISTED = 6
Family = Callable[[int], "Schedule | None"]
"""A schedule by its number of ranks; None: there is none of that size."""


@dataclass(frozen=True, slots=True)
class Instance:
    """One size that was checked, in every interleaving.

    parameters: the values of the free parameters, by name.
    """

    parameters: tuple[tuple[str, int], ...]
    ranks: int
    report: Report

    def __str__(self) -> str:
        return ", ".join(f"{name} = {value}" for name, value in self.parameters)


@dataclass(frozen=True, slots=True)
class ParametricReport:
    """What is known about a family.

    upto: the bound on the number of ranks, and on every parameter.
    instances: each size that was checked by itself; the last one is the first invalid one.
    induction: the proof for all sizes, or why there is none.
    """

    upto: int
    instances: tuple[Instance, ...]
    induction: Induction

    @property
    def verdict(self) -> Verdict:
        """Of the family as far as it was looked at: invalid if one size is."""
        verdicts = {instance.report.verdict for instance in self.instances}
        if Verdict.INVALID in verdicts:
            return Verdict.INVALID
        if Verdict.UNKNOWN in verdicts or not verdicts:
            return Verdict.UNKNOWN
        return Verdict.VALID

    def claims(self) -> tuple[str, ...]:
        """What is proved, and how, one sentence each."""
        found = []
        for verdict in Verdict:
            sizes = [i for i in self.instances if i.report.verdict is verdict]
            if sizes:
                found.append(f"{verdict.value} (each instance checked): {_listed(sizes)}")
        if self.verdict is Verdict.INVALID:
            return tuple(found)
        if self.induction.proved:
            how = f"inductive proof, {self.induction.claims} claims"
            return (*found, f"valid ({how}): {self.induction.scope}")
        return (*found, f"nothing is claimed about other sizes: {self.induction.reason}")


def _listed(sizes: list[Instance]) -> str:
    """Sizes in words; one parameter as runs: ``n = 2..8``."""
    names = [name for name, _ in sizes[0].parameters]
    values = [value for size in sizes for _, value in size.parameters]
    if len(names) > 1 and len(sizes) > _LISTED:
        return f"all {len(sizes)} choices of {', '.join(names)} from {sizes[0]} to {sizes[-1]}"
    if len(names) != 1 or len(values) == 1 or values != [*range(values[0], values[-1] + 1)]:
        return "; ".join(map(str, sizes)) or "the only size"
    return f"{names[0]} = {values[0]}..{values[-1]}"


def prove_family(
    family: Symbolic | Family,
    upto: int,
    fifo_depth: int = DEFAULT_DEPTH,
    time_limit_s: float | None = None,
    effort: int | None = DEFAULT_EFFORT,
) -> ParametricReport:
    """Checks every size of a family with at most ``upto`` ranks; then seeks a proof for all.

    Stops at the first invalid size.  A parameter that does not bound the number of ranks is
    itself taken up to ``upto``.  A function is asked for every number of ranks from 2 on, and
    there is no proof for all sizes.

    Args:
        family: a schedule file with parameters, or a function from ranks to schedule.
        upto: ranks, and the largest value of a parameter.
        fifo_depth: messages that a connection holds.
        time_limit_s: wall seconds for each size; None: as long as the solver's effort lasts.
        effort: what the solver may spend on each size, in its own units; None: no limit.

    Raises:
        InputError: no size is in the bound, or the file is wrong at one; names the size.
        TooLarge: more than 1000 sizes are in the bound.
    """
    instances: list[Instance] = []
    for parameters, schedule in _schedules(family, upto):
        report = verify(schedule, fifo_depth, time_limit_s, effort)
        instances.append(Instance(parameters, schedule.ranks, report))
        if report.verdict is Verdict.INVALID:
            break
    if not instances:
        raise InputError(f"up to {upto} ranks", "there is no schedule of such a size", "raise it")
    return ParametricReport(upto, tuple(instances), _induction(family, instances, fifo_depth))


def _induction(family: Symbolic | Family, instances: list[Instance], fifo_depth: int) -> Induction:
    if not isinstance(family, Symbolic):
        return Induction(False, "all sizes", reason="it is a program, not a symbolic schedule")
    if instances[-1].report.verdict is Verdict.INVALID:
        return Induction(False, "all sizes", reason=f"{instances[-1]} is invalid")
    return prove_all_sizes(family, fifo_depth)


def _schedules(
    family: Symbolic | Family, upto: int
) -> Iterator[tuple[tuple[tuple[str, int], ...], Schedule]]:
    if isinstance(family, Symbolic):
        for parameters in sizes_of(family, upto):
            yield tuple(parameters.items()), _instance(family, parameters)
        return
    for ranks in range(2, upto + 1):
        schedule = family(ranks)
        if schedule is not None:
            yield (("n", ranks),), schedule


def _instance(family: Symbolic, parameters: dict[str, int]) -> Schedule:
    try:
        return instantiate(family, parameters)
    except InputError as error:
        shown = ", ".join(f"{name} = {value}" for name, value in parameters.items())
        raise type(error)(f"with {shown}: {error.given}", error.rule, error.remedy) from None


def sizes_of(family: Symbolic, upto: int) -> list[dict[str, int]]:
    """The values of the free parameters with which there are at most ``upto`` ranks.

    Raises:
        TooLarge: there are more than 1000.
    """
    ranges = []
    for _, spec in family.free:
        most = upto if spec.at_most is None else min(upto, spec.at_most)
        ranges.append(range(spec.at_least, most + 1))
    names = [name for name, _ in family.free]
    tried = (dict(zip(names, values, strict=True)) for values in product(*ranges))
    found = [one for one in islice(tried, MAX_TRIED) if 1 <= _ranks(family, one) <= upto]
    if len(found) > MAX_SIZES or next(tried, None) is not None:
        rule = f"gives more than {MAX_SIZES} sizes"
        raise TooLarge(f"the bound {upto}", rule, "lower it, or give parameters an at_most")
    return sorted(found, key=lambda one: (_ranks(family, one), *one.values()))


def _ranks(family: Symbolic, parameters: dict[str, int]) -> int:
    """The number of ranks; 0 where it has no value (a power that is too large)."""
    try:
        return evaluate(family.ranks, parameter_values(family, parameters))
    except InputError:
        return 0


# Programs as families of schedules: one schedule for every choice of the levels' sizes.


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
