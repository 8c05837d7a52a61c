"""First screens of lists: names by family, the rest of what is known of each in the details."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from p2smt.report.outputs.lists import ListedClassic, ListedModel
from p2smt.report.screen import COLUMNS, LINES, fitted, full_width, names_block, screen, wrapped
from p2smt.units import counted

_LEAST = 3
"""A family of fewer stands among the others."""


def families(names: Sequence[str], least: int) -> dict[str, list[str]]:
    """Names by the letters that they begin with; families of fewer than ``least`` come together."""
    found: dict[str, list[str]] = {}
    for name in names:
        family = re.split(r"[^a-z]", name, maxsplit=1)[0]
        found.setdefault(family, []).append(name)
    large = {family: each for family, each in found.items() if len(each) >= least}
    others = [name for family, each in found.items() if family not in large for name in each]
    return {**large, "others": others}


def models_screen(models: Sequence[ListedModel]) -> list[str]:
    """The names, the largest of a family first."""
    largest = sorted(models, key=lambda one: -one.parameters)
    by_family = families([one.name for one in largest], _LEAST)
    others = by_family.pop("others")
    blocks = [names_block(family, each) for family, each in sorted(by_family.items())]
    commands = "plan, estimate and transfer"
    head = f"{counted(len(models), 'model')}: -m NAME of {commands}, the largest first"
    below = ["a model file: p2smt models NAME; parameters and layers of each: --details"]
    return [head, *screen([*blocks, names_block("others", others, 3)], LINES - 2), *below]


def topologies_screen(
    presets: Sequence[str], profiles: Sequence[str], fabrics: Sequence[str], regular: Sequence[str]
) -> list[str]:
    """Presets by family; then what is another kind of cluster, under its option."""
    by_family = families(presets, 1)
    blocks = [names_block(family, each, 3) for family, each in sorted(by_family.items())]
    counts = {"preset": len(presets), "profile": len(profiles), "fabric": len(fabrics)}
    told = ", ".join(counted(count, noun) for noun, count in counts.items())
    head = [f"{told}: -t NAME, or NAME:N for N of the outermost"]
    below = [
        f"as measured on a system (-t): {', '.join(profiles)}",
        f"fabrics, of ranks and edges (synthesize --fabric): {', '.join((*fabrics, *regular))}",
        "one: p2smt topology show NAME; what each is: --details",
    ]
    last = full_width(below)
    return [*head, *screen(blocks, LINES - 1 - len(last)), *last]


def schemas_screen(listed: Mapping[str, str]) -> list[str]:
    """The names of schemas: those of files, then those of answers."""
    answers = [name for name, of in listed.items() if "--json" in of]
    files = [name for name in listed if name not in answers]
    head = f"{counted(len(listed), 'schema')}: p2smt schema NAME prints one"
    blocks = [names_block("files", files, 4), names_block("--json", answers, 13)]
    return [head, *screen(blocks, LINES - 2), "of which file or command: --details"]


def classics_screen(classics: Sequence[ListedClassic]) -> list[str]:
    """The names by what they compute; of those that do not run on any ranks, on which."""
    by_collective: dict[str, list[str]] = {}
    for one in classics:
        where = "" if one.ranks.startswith("any") else f" ({one.ranks})"
        by_collective.setdefault(one.collective, []).append(one.name + where)
    lines = [
        f"{counted(len(classics), 'classic algorithm')}: p2smt classics NAME --ranks 8 -o X.xml"
    ]
    for collective, each in sorted(by_collective.items()):
        first, *others = wrapped(f"{collective}: {', '.join(each)}", COLUMNS - 4)
        lines += [first, *(f"    {line}" for line in others)]
    return fitted([*lines, "parameters of each: --details"])


def converted_screen(lines: Sequence[str]) -> Iterator[str]:
    """What was written; of many files their number first, and last how the times compare."""
    *files, times = lines
    if len(files) > 1:
        yield f"{counted(len(files), 'file')} written"
    last = full_width([times])
    shown = [line for file in files for line in full_width([file])]
    yield from fitted(shown, LINES - len(last) - (len(files) > 1))
    yield from last
