"""What the values of options mean."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from p2smt.cli.output import note, note_beside

if TYPE_CHECKING:
    from p2smt.cluster.topology import Algorithm, Topology
    from p2smt.collectives.names import RequestKind
    from p2smt.parallelism.placement import ParallelismAxis
    from p2smt.search.solve import GivenRanks

CHEAPEST = ("best", "auto")
"""The --algorithm that takes the cheapest way, not the library's choice; and its older name."""
_PERCENT = re.compile(r"\s*(?P<number>[0-9]{1,9}(\.[0-9]{1,9})?)\s*%\s*", re.ASCII)
_MAX_TIME_S = 10**6
_MAX_ENTRY = 2**31


def topology_of(
    spec: str | None,
    library: str | None = None,
    *,
    nominal: bool = False,
    algorithm: str | None = None,
    use: Sequence[str] | None = None,
) -> Topology:
    """The topology of --topology, which must be given, with --use, --library, --nominal,
    --algorithm best.

    What of it does not count, or is only assumed, is said on stderr.
    """
    from p2smt.cluster.file import load_noting, preset_names
    from p2smt.cluster.library.registry import known_or_named, library_of
    from p2smt.cluster.trimmed import parse_uses, trimmed, use_notes
    from p2smt.cost.requested_algorithms import topology_notes
    from p2smt.errors import InputError

    if spec is None:
        raise InputError("topology", "is missing", "give --topology azure-ndv4:4 or a YAML file")
    replaced = library is not None or nominal
    found, text = load_noting(spec, known_or_named if replaced else library_of)
    found = trimmed(found, parse_uses(use or ()))
    for line in use_notes(found) if use else ():
        note(line)
    if nominal:
        return _nominal(found, library)
    if library is not None:
        found = _under(found, _library_named(library))
    if found.library is not None:
        from p2smt.cost.requested_algorithms import check_topology

        check_topology(found, found.library)
    if text and library is None:
        note_beside(text) if spec.partition(":")[0] in preset_names() else note(text)
    for line in topology_notes(found):
        note(line)
    return found.cheapest() if algorithm in CHEAPEST else found


def _under(found: Topology, library: str) -> Topology:
    """The topology under another library, and what that drops."""
    if found.fitted_for_other(library):
        note(
            f"{found.name[:100]} was calibrated under {found.library_name or 'a library'}: its "
            f"calls, hops and efficiencies of collectives do not hold for {library}, which has its "
            "own; calibrate under that library"
        )
    return found.under(library)


def _nominal(found: Topology, library: str | None) -> Topology:
    from p2smt.errors import InputError

    if library is not None:
        raise InputError("--nominal beside --library", "is without a library", "drop one of them")
    if found.fitted:
        given = f"--nominal: {found.name[:100]}"
        rule = "was calibrated, so its rates are not nominal"
        raise InputError(given, rule, "drop --nominal, or name the preset")
    return found.nominal()


def _library_named(text: str) -> str:
    """The name of --library; one in a file becomes known by its name."""
    from p2smt.cluster.library.file import is_library_file, read_library
    from p2smt.cluster.library.registry import register_library
    from p2smt.errors import InputError

    if not text.strip():
        raise InputError(f"--library {text!r}", "names no library", "give one, or none")
    if is_library_file(text):
        found = read_library(text)
        register_library(found)
        return found.name
    return text


def levels_of(
    spec: str | None, levels: str | None, use: Sequence[str] | None = None
) -> tuple[tuple[str, ...], tuple[int, ...]]:
    """Names and sizes of the levels of --topology, or of --levels (named l1, l2, ..)."""
    from p2smt.errors import InputError

    if (spec is None) == (levels is None):
        raise InputError("levels", "give either --topology or --levels")
    if levels is None:
        from p2smt.cluster.topology import check_even

        topology = topology_of(spec, use=use)
        check_even(topology)
        return topology.names, topology.sizes
    if use:
        raise InputError("--use", "is of the levels of a topology", "give sizes to --levels")
    sizes = sizes_of(levels, "levels")
    return tuple(f"l{n}" for n in range(1, len(sizes) + 1)), sizes


def sizes_of(text: str, what: str) -> tuple[int, ...]:
    """Sizes such as ``4,16``; there may be as many as a topology has levels, or fewer."""
    from p2smt.cluster.topology import MAX_DEVICES, MAX_LEVELS
    from p2smt.errors import InputError
    from p2smt.units import parse_count

    parts = text.split(",")
    if len(parts) > MAX_LEVELS:
        raise InputError(f"{what} {text[:60]!r}", f"1 to {MAX_LEVELS} sizes are supported")
    return tuple(parse_count(part, f"{what} {text[:60]!r}: size", MAX_DEVICES) for part in parts)


def axes_of(text: str | None) -> tuple[ParallelismAxis, ...]:
    """Axes by name, or sizes that get the names a1, a2, .."""
    from p2smt.errors import InputError
    from p2smt.parallelism.placement import ParallelismAxis
    from p2smt.parallelism.request import check_axes, parse_axes

    if text is None:
        raise InputError("axes", "are missing", "give --axes dp=8,tp=4")
    if "=" in text:
        return parse_axes(text)
    if not re.fullmatch(r"[\s\d,.+-]+", text):
        raise InputError(
            f"axes {text[:60]!r}", "are neither NAME=SIZE,.. nor sizes", "write dp=8,tp=4, or 8,4"
        )
    sizes = sizes_of(text, "axes")
    return check_axes([ParallelismAxis(f"a{n}", size) for n, size in enumerate(sizes, start=1)])


def program_kind(text: str | None, *, exchanges: bool = False) -> RequestKind:
    """A request kind that has reduction programs, or ``exchanges``; all-reduce where none is
    given."""
    from p2smt.collectives.names import RequestKind, operation_named
    from p2smt.errors import InputError

    known = {
        kind.value: kind
        for kind in RequestKind
        if kind.has_programs or (exchanges and kind.has_exchanges)
    }
    if text is None:
        return RequestKind.ALL_REDUCE
    found = operation_named(text)
    if found is None or found.value not in known:
        rule, remedy = f"must be one of {', '.join(known)}", "other requests have no programs"
        raise InputError(f"kind {text[:40]!r}", rule, remedy)
    return known[found.value]


def algorithms_of(text: str | None) -> tuple[Algorithm, ...] | None:
    """Algorithms by name, separated by commas; None: any, as where the cheapest way is taken."""
    from p2smt.cluster.topology import Algorithm
    from p2smt.errors import InputError

    if text is None or text in CHEAPEST:
        return None
    known = {algorithm.value: algorithm for algorithm in Algorithm}
    names = [name.strip() for name in text.split(",")]
    for name in names:
        if name not in known or names.count(name) > 1:
            rule = f"must be best or some of {', '.join(known)}, once each"
            raise InputError(f"algorithm {name[:40]!r}", rule)
    return tuple(known[name] for name in names)


def step_limit_of(text: str, levels: Sequence[str]) -> tuple[str, int]:
    """A level and the most steps whose groups cross it, such as ``node=1``."""
    from p2smt.cluster.topology import ROOT
    from p2smt.errors import InputError

    name, equals, count = text.partition("=")
    if not equals or name not in levels or name == ROOT:
        known = [level for level in levels if level != ROOT]
        rule = "must be LEVEL=N: at most N steps of a program whose groups cross that level"
        remedy = f"write it like {known[0]}=1; levels are {', '.join(known)}"
        raise InputError(f"--max-steps-at {text[:40]!r}", rule, remedy)
    return name, _steps(count, f"--max-steps-at {text[:40]!r}: N")


def _steps(text: str, what: str) -> int:
    from p2smt.units import parse_count

    return 0 if text.strip() == "0" else parse_count(text, what, 100)


def settings_of(texts: Sequence[str], example: str) -> dict[str, str]:
    """The text of each value of ``--set NAME=VALUE`` by the name it is given to.

    Raises:
        InputError: a text without a value, or a name that is given two.
    """
    from p2smt.errors import InputError

    found: dict[str, str] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals:
            raise InputError(f"parameter {text[:40]!r}", "has no value", f"write it like {example}")
        if name in found:
            given = f"--set {name[:40]}={found[name][:40]!r} and {value[:40]!r}"
            raise InputError(given, "a parameter takes one value", "give it once")
        found[name] = value
    return found


def count_of(text: str, what: str, most: int = 10**9, least: int = 1) -> int:
    """A whole number from ``least`` (0 or 1) to ``most``."""
    from p2smt.errors import InputError
    from p2smt.units import parse_count

    if least == 0 and text.strip() == "0":
        return 0
    try:
        return parse_count(text, what, most)
    except InputError as error:
        rule = f"is not a whole number from {least} to {most}"
        raise InputError(error.given, rule, error.remedy) from None


def pipeline_of(text: str | None) -> int | None:
    """A number of chunks (1 where none is given), or None for ``auto``."""
    from p2smt.errors import InputError
    from p2smt.parallelism.request import MAX_CHUNKS
    from p2smt.units import parse_count

    if text == "auto":
        return None
    try:
        return parse_count(text, "pipeline", MAX_CHUNKS) if text is not None else 1
    except InputError as error:
        rule = f"is neither a whole number from 1 to {MAX_CHUNKS} nor auto"
        raise InputError(error.given, rule, "write it like 8 or auto") from None


def gap_of(text: str, what: str = "within") -> float:
    """A relative gap such as ``5%``, as a part of one."""
    from p2smt.errors import InputError
    from p2smt.search.near_optimal import MAX_GAP

    found = _PERCENT.fullmatch(text)
    gap = float(found["number"]) / 100 if found else -1.0
    if not 0 <= gap <= MAX_GAP:
        if plain := _PERCENT.fullmatch(text + "%"):
            raise InputError(f"{what} {text[:60]!r}", "lacks its %", f"write {plain['number']}%")
        rule = f"is no percentage from 0% to {100 * MAX_GAP:.0f}%"
        raise InputError(f"{what} {text[:60]!r}", rule, "write it like 5%")
    return gap


def seconds_of(text: str, what: str) -> float:
    """A wall time such as 90s, 5m or 1h; seconds where no unit is given."""
    from p2smt.errors import InputError
    from p2smt.units import parse_duration

    seconds = parse_duration(text, what)
    if seconds > _MAX_TIME_S:
        raise InputError(f"{what} {text!r}", f"is more than {_MAX_TIME_S} s")
    return seconds


def rank_order_of(text: str) -> GivenRanks:
    """The matrix, or the device of each rank, of --compare."""
    return whole_numbers_of(
        text,
        "--compare",
        "a matrix such as [[4,1],[1,16]], or the device of each rank such as [0,2,1,3]",
    )


def whole_numbers_of(text: str, what: str, example: str) -> GivenRanks:
    """A JSON matrix or list of whole numbers; ``example`` says what it should look like.

    Raises:
        InputError: it is neither.
    """
    from p2smt.errors import InputError
    from p2smt.files.json_text import loads

    try:
        value: object = loads(text)
    except (ValueError, RecursionError):
        raise InputError(f"{what} {text[:60]!r}", "is not JSON", f"give {example}") from None
    if isinstance(value, list) and all(map(_is_whole, value)):
        return value
    if isinstance(value, list) and all(
        isinstance(v, list) and all(map(_is_whole, v)) for v in value
    ):
        return value
    raise InputError(
        f"{what} {text[:60]!r}",
        "is neither a matrix nor a list of whole numbers below 2^31",
        f"give {example}",
    )


def _is_whole(value: object) -> bool:
    return type(value) is int and abs(value) < _MAX_ENTRY
