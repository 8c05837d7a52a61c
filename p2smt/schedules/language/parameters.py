"""The values of a schedule file's parameters, from those that are given."""

from __future__ import annotations

from typing import TYPE_CHECKING

from p2smt.errors import InputError
from p2smt.schedules.language.expression import evaluate
from p2smt.schedules.language.items import located

if TYPE_CHECKING:
    from collections.abc import Mapping

    from p2smt.schedules.language.file import Symbolic

MAX_NUMBER = 2**31
_MOST_TRIED = 4096


def parameter_values(symbolic: Symbolic, given: Mapping[str, int]) -> dict[str, int]:
    """The values of all parameters, from those given.

    Raises:
        InputError: one is missing, unknown, out of its range, or contradicts the others.
    """
    free = dict(symbolic.free)
    known = [*free, *(name for name, _ in symbolic.derived)]
    for name in given:
        if name not in known:
            rule = f"is not a parameter; there is {', '.join(known) or 'none'}"
            raise InputError(f"{symbolic.source}: {name[:60]!r}", rule)
    missing = [name for name in free if name not in given]
    if not missing:
        return _agreeing(symbolic, given, given)
    if len(missing) == 1 and any(name not in free for name in given):
        return _searched(symbolic, given, missing[0])
    rule = "has no value"
    raise InputError(f"{symbolic.source}: parameter {missing[0]}", rule, f"give {missing[0]}=..")


def _searched(symbolic: Symbolic, given: Mapping[str, int], missing: str) -> dict[str, int]:
    """The least value of the missing parameter that gives what is given."""
    spec = dict(symbolic.free)[missing]
    last = spec.at_least + _MOST_TRIED
    for value in range(spec.at_least, min(last, spec.at_most or last) + 1):
        try:
            return _agreeing(symbolic, {**given, missing: value}, given)
        except InputError:
            continue
    shown = ", ".join(f"{name} = {value}" for name, value in given.items())
    rule = f"does not follow from a value of {missing}"
    raise InputError(f"{symbolic.source}: {shown}", rule, f"give {missing}=..")


def _agreeing(
    symbolic: Symbolic, values: Mapping[str, int], given: Mapping[str, int]
) -> dict[str, int]:
    found = {}
    for name, spec in symbolic.free:
        value = found[name] = values[name]
        most = MAX_NUMBER if spec.at_most is None else spec.at_most
        if not spec.at_least <= value <= most:
            rule = f"must be {spec.at_least} to {most}"
            raise InputError(f"{symbolic.source}: {name} = {value}", rule)
    for name, term in symbolic.derived:
        with located(symbolic.source, symbolic.line("parameters", name)):
            found[name] = evaluate(term, found)
            if given.get(name, found[name]) != found[name]:
                raise InputError(f"{name} = {given[name]}", f"must be {found[name]}")
    return found
