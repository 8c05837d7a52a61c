"""Side constraints on placements as a user writes them.

    tp within node      every entry of tp at the node column and outside it is 1
    dp across rack      the opposite: one of them is more than 1
    pp=rack:2,node:1    pp is split 2 ways at the rack column and not at the node column

A requirement holds as it stands; forbidding a rule requires its opposite.
"""

from __future__ import annotations

from collections.abc import Sequence

from p2smt.errors import InputError
from p2smt.parallelism.placement import AxisRule, FixedEntry

_MAX_SHOWN = 80


def parse_rule(
    text: str, require: bool, axis_names: Sequence[str], level_names: Sequence[str]
) -> AxisRule:
    """The rule that requires (or, with ``require=False``, forbids) "AXIS within|across LEVEL".

    Raises:
        InputError: the text has another form, or an axis or level is unknown.
    """
    words = text.split()
    if len(words) != 3 or words[1] not in ("within", "across"):
        raise InputError(
            f"rule {_shown(text)}",
            "a rule is AXIS within LEVEL, or AXIS across LEVEL",
            f"write for example {_example(axis_names)} within {_example(level_names)}",
        )
    axis = _index("axis", words[0], axis_names, text)
    level = _index("level", words[2], level_names, text)
    inside = (words[1] == "within") is require
    return AxisRule(axis, level, inside, by_opposite=not require)


def parse_fix(
    text: str, axis_names: Sequence[str], level_names: Sequence[str]
) -> tuple[FixedEntry, ...]:
    """The entries that "AXIS=LEVEL:N,LEVEL:N,..." fixes, in the order of the text.

    Raises:
        InputError: the text has another form, a level is named twice, or an axis or level is
            unknown.
    """
    axis_name, equals, entries = text.partition("=")
    if not equals:
        raise _not_a_fix(text, axis_names, level_names)
    axis = _index("axis", axis_name.strip(), axis_names, text)
    found: list[FixedEntry] = []
    for entry in entries.split(","):
        level_name, _, value = (part.strip() for part in entry.partition(":"))
        if not (value.isascii() and value.isdigit() and len(value) < 19 and int(value) > 0):
            raise _not_a_fix(text, axis_names, level_names)
        level = _index("level", level_name, level_names, text)
        if level in [other.level for other in found]:
            raise InputError(f"fix {_shown(text)}", f"names level {level_name} twice")
        found.append(FixedEntry(axis, level, int(value)))
    return tuple(found)


def _not_a_fix(text: str, axis_names: Sequence[str], level_names: Sequence[str]) -> InputError:
    return InputError(
        f"fix {_shown(text)}",
        "a fix is AXIS=LEVEL:N, with positive integers N, and more LEVEL:N after commas",
        f"write for example {_example(axis_names)}={_example(level_names)}:2",
    )


def _index(kind: str, name: str, names: Sequence[str], text: str) -> int:
    if name not in names:
        raise InputError(
            f"{kind} {_shown(name)} in {_shown(text)}",
            f"there is no such {kind}",
            f"use one of {', '.join(names)}",
        )
    return names.index(name)


def _shown(text: str) -> str:
    return repr(text if len(text) <= _MAX_SHOWN else text[:_MAX_SHOWN] + "...")


def _example(names: Sequence[str]) -> str:
    """The last name but one, or the only one: for levels, where most axes fit."""
    return names[-2:][0] if names else "NAME"
