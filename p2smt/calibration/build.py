"""A calibrated topology: fitted to measured times from several tables together.

With a library its algorithms run, and the fit seeks what they make of the nominal links
(:mod:`p2smt.calibration.effective`); without one the links themselves are fitted in pieces
(:mod:`p2smt.calibration.fitted_levels`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from p2smt.calibration.effective import FittedConstant, Quantity, fit_constants
from p2smt.calibration.fitted_levels import CollectiveFit, LevelFit, fit_levels
from p2smt.calibration.samples import Predictor, Sample, usages
from p2smt.calibration.table_errors import (
    Disagreement,
    TableFit,
    disagreements,
    table_errors,
    table_fits,
)
from p2smt.cluster.file_model import dump_topology
from p2smt.cluster.link import EFFICIENCY_NAMES, MAX_EFFICIENCY
from p2smt.cluster.topology import Algorithm, Topology
from p2smt.collectives.names import Collective
from p2smt.cost.requested_algorithms import NamedStep, named_notes, running
from p2smt.errors import InputError
from p2smt.files.yaml_text import dump_yaml
from p2smt.units import format_bandwidth, plain

RING = (Algorithm.RING,)
LEAST_SIZES = 2
"""Of one message size a rate and a latency may each stand for the other."""


@dataclass(frozen=True, slots=True)
class Calibration:
    """A calibrated topology, and how well it meets what it was fitted to.

    ``levels`` reports the pieces of each level, outermost first (none with a library),
    ``constants`` what was fitted or kept of a library's (none without one).  ``tables`` holds
    errors by table, ``unexplained`` the times that a library's constants cannot explain, with the
    predicted one: those off by more than a factor of ``unexplained_beyond`` (1 without a library).
    ``notes`` says in words which samples cannot have run by the algorithms named; ``here``: they
    are of ranks of the cluster itself, so that no rate is doubted.
    """

    topology: Topology
    levels: tuple[LevelFit, ...]
    sources: tuple[str, ...] = ()
    constants: tuple[FittedConstant, ...] = ()
    tables: tuple[TableFit, ...] = ()
    unexplained: tuple[tuple[Sample, float], ...] = ()
    unexplained_beyond: float = 1.0
    notes: tuple[str, ...] = ()
    here: bool = False


def calibrate(
    topology: Topology,
    samples: Sequence[Sample],
    algorithms: Sequence[Algorithm] | None = None,
    sources: Sequence[str] = (),
    here: bool = False,
    allow_above_nominal: bool = False,
) -> Calibration:
    """The topology fitted to ``samples``, which come from one table or several.

    ``sources`` join those it has.  ``algorithms`` is what ran; None: what the library chooses, a
    ring without one.  What a sample says of itself (``ran``) goes before.  ``here``: they are of
    ranks of the cluster itself, so that its rates hold whatever the topology had, and without a
    library every collective gets pieces of its own.

    Raises:
        InputError: no sample, too few message sizes, a sample whose groups the topology does not
            have, algorithms by which none can have run, or a rate above the nominal one that is
            not allowed.
    """
    if not samples:
        raise InputError("a calibration", "has no measurement", "give at least one file")
    start = replace(topology, sources=(*topology.sources, *sources))
    ran = None if algorithms is None else tuple(algorithms)
    notes, allow = _all_notes(start, samples, ran), allow_above_nominal or here
    if topology.library:
        found = _with_library(running(start, ran), samples, tuple(sources), allow)
    else:
        samples, ran = _all_named(samples, ran or RING)
        found = _in_pieces(start, samples, ran, tuple(sources), here, allow)
    return replace(found, notes=notes, here=here)


def _all_named(
    samples: Sequence[Sample], otherwise: tuple[Algorithm, ...]
) -> tuple[Sequence[Sample], tuple[Algorithm, ...]]:
    """The samples and all that ran: where one says it of itself, the others ran ``otherwise``."""
    if all(sample.ran is None for sample in samples):
        return samples, otherwise
    named = [replace(sample, ran=sample.ran or otherwise) for sample in samples]
    return named, tuple(dict.fromkeys(found for sample in named for found in sample.ran or ()))


def _with_library(
    topology: Topology, samples: Sequence[Sample], sources: tuple[str, ...], allow: bool
) -> Calibration:
    _check_sizes(samples)
    if not allow:
        check_times(topology, samples)
    found = fit_constants(topology, samples, allow)

    def again(seen: Sequence[Sample], asked: Sequence[Sample]) -> NDArray[np.float64]:
        return _predicted(fit_constants(topology, seen, allow).topology, asked)

    tables = table_fits(samples, found.predicted_s, again)
    return Calibration(
        replace(found.topology, errors=table_errors(found.topology, tables)),
        (),
        sources,
        found.constants,
        tables,
        tuple((samples[i], found.predicted_s[i]) for i in found.outliers),
        found.outlying,
    )


def _check_sizes(samples: Sequence[Sample]) -> None:
    """Refuse times of so few sizes that a rate and a latency may each stand for the other."""
    if len({sample.payload_bytes for sample in samples}) < LEAST_SIZES:
        rule = f"a fit needs at least {LEAST_SIZES} different ones"
        raise InputError("1 message size", rule, "measure more sizes, up to what matters to you")


def _in_pieces(
    topology: Topology,
    samples: Sequence[Sample],
    algorithms: Sequence[Algorithm],
    sources: tuple[str, ...],
    always_own: bool,
    allow: bool,
) -> Calibration:
    fitted, levels = fit_levels(topology, samples, algorithms, always_own)
    if not allow:
        _check_pieces(topology, fitted, samples, always_own)

    def again(seen: Sequence[Sample], asked: Sequence[Sample]) -> NDArray[np.float64] | None:
        if not _level_set(topology, asked) <= _level_set(topology, seen):
            return None
        try:
            found, _ = fit_levels(topology, seen, algorithms, always_own)
        except InputError:  # too few sizes are left
            return None
        return _predicted(found, asked)

    predicted = _predicted(fitted, samples).tolist()
    tables = table_fits(samples, predicted, again)
    known = replace(fitted, errors=table_errors(fitted, tables))
    return Calibration(known, levels, sources, tables=tables)


def _predicted(topology: Topology, samples: Sequence[Sample]) -> NDArray[np.float64]:
    return Predictor.of(topology, samples).seconds(topology)


def _level_set(topology: Topology, samples: Sequence[Sample]) -> set[int]:
    """The levels that samples are measurements of."""
    return {usages(topology, sample)[0].level for sample in samples}


# What speaks against a calibration: tables badly met or short, and rates far too low.


DOUBTFUL, USELESS = 0.25, 1.0
"""Errors above which a calibration is warned of, and is none."""
FEW_SIZES = 4
"""A table of fewer message sizes is warned of."""
IMPLAUSIBLE = 0.5
"""A rate below this part of what the topology had is warned of: such links would be others."""


def useless(tables: Sequence[TableFit]) -> bool:
    """Whether a table is off by more than a factor of two."""
    return max((table.judged_error for table in tables), default=0.0) > USELESS


def doubts(calibration: Calibration) -> Iterator[str]:
    """A line about each table that is met badly, the worst first, that disagrees with another, or
    is short, and about each implausible rate."""
    for table in sorted(calibration.tables, key=lambda table: -table.judged_error):
        if table.judged_error > DOUBTFUL:
            yield _table(table)
    yield from map(_disagreement, disagreements(calibration.tables))
    yield from _few_sizes(calibration.tables)
    for found in () if calibration.here else calibration.constants:
        rate = found.constant.quantity is Quantity.EFFICIENCY
        if rate and found.fitted and found.value < IMPLAUSIBLE * found.before:
            yield _rate(calibration, found)


def _table(table: TableFit) -> str:
    seen = table.judged_error == table.median_error
    how = "in the fit" if seen else "left out of the fit"
    error = f"{100 * table.judged_error:.0f} %"
    return f"{table.source}, {table.operation.value}: {how}, predicted {error} off (median)"


def _disagreement(found: Disagreement) -> str:
    first, second = found.first, found.second
    errors = (f"{plain(100 * one.median_error, 2)} %" for one in (first, second))
    return (
        f"{first.source} and {second.source}, {first.operation.value}: the same groups differ by "
        f"{100 * found.difference:.0f} % (median of {found.sizes} sizes), more than the fit is off "
        f"({' and '.join(errors)}): other machines, versions or settings? fit them apart, and say "
        "what each is with --note"
    )


def _few_sizes(tables: Sequence[TableFit]) -> Iterator[str]:
    for table in tables:
        sizes = len({sample.payload_bytes for sample, _ in table.seen})
        if sizes < FEW_SIZES:
            yield (
                f"{table.source}, {table.operation.value}: {sizes} message size{'s' * (sizes > 1)} "
                "tell a rate and a latency badly apart: measure more"
            )


def _rate(calibration: Calibration, found: FittedConstant) -> str:
    topology, constant = calibration.topology, found.constant
    level = topology.names[constant.level or 0]
    value, before = (f"{plain(100 * part)} %" for part in (found.value, found.before))
    return (
        f"level {level}, efficiency of {constant.name}: fitted {value}, less than "
        f"half of the {before} of {topology.name}: measured on another machine, "
        f"or with another library than {topology.library_name}?"
    )


# What a calibration may not start from or end at: rates above the hardware's.


_REMEDY = "check links, ports, library and ranks, or give --allow-above-nominal"


@dataclass(frozen=True, slots=True)
class _Excess:
    """A rate above the nominal one, in bytes/s of a port, of ``what`` (empty: all) at a level."""

    level: int
    what: str
    found: float
    samples: tuple[Sample, ...] = ()


def check_times(topology: Topology, samples: Sequence[Sample]) -> None:
    """Refuse times that nominal links would not allow the algorithms that run by the library.

    A single time may be a slip; two of a kind are not.

    Raises:
        InputError: there are some.
    """
    for excess in _above_wire(topology, samples):

        def fits(algorithm: Algorithm, mine: tuple[Sample, ...] = excess.samples) -> bool:
            return not any(_above_wire(running(topology, (algorithm,)), mine))

        raise _above_nominal(topology, excess, fits)


def _above_wire(topology: Topology, samples: Sequence[Sample]) -> Iterator[_Excess]:
    steps = Predictor.of(topology, samples).steps(_at_nominal_rates(topology))
    found: dict[tuple[int, str], list[tuple[float, Sample]]] = {}
    for sample, step in zip(samples, steps, strict=True):
        if step.level is not None and step.wire_s > MAX_EFFICIENCY * sample.seconds:
            what = f"{sample.operation.value} by {step.algorithm}"
            factor = step.wire_s / sample.seconds
            found.setdefault((step.level, what), []).append((factor, sample))
    for (level, what), excess in found.items():
        if len(excess) > 1 or len(samples) == 1:
            rate = max(factor for factor, _ in excess) * _nominal(topology, level)
            yield _Excess(level, what, rate, tuple(sample for _, sample in excess))


def _nominal(topology: Topology, level: int) -> float:
    return topology.levels[level].link.bandwidth_bytes_per_s


def _at_nominal_rates(topology: Topology) -> Topology:
    """All of every link for whatever runs, also what a library leaves of it."""
    whole = tuple((name, 1.0) for name in EFFICIENCY_NAMES)
    levels = (replace(lv, link=replace(lv.link, efficiency=whole)) for lv in topology.levels)
    return replace(topology, levels=tuple(levels))


def _check_pieces(
    before: Topology, after: Topology, samples: Sequence[Sample], always_own: bool
) -> None:
    """Refuse fitted pieces that are faster than the link was before.

    Raises:
        InputError: there is one.
    """

    def fits(algorithm: Algorithm) -> bool:
        again, _ = fit_levels(before, samples, running(before, (algorithm,)).algorithms, always_own)
        return not any(_above_before(before, again))

    for excess in _above_before(before, after):
        raise _above_nominal(before, excess, fits)


def _above_before(before: Topology, after: Topology) -> Iterator[_Excess]:
    for j, new in enumerate(after.levels):
        for what, pieces in (("", new.link.pieces), *((c.value, p) for c, p in new.link.measured)):
            found = max(piece.bandwidth_bytes_per_s for piece in pieces)
            if found > MAX_EFFICIENCY * _nominal(before, j):
                yield _Excess(j, what, found)


def _above_nominal(
    topology: Topology, excess: _Excess, fits: Callable[[Algorithm], bool]
) -> InputError:
    """The refusal, which names the algorithms that could have run, as then no rate is exceeded."""
    by = f", {excess.what}" if excess.what else ""
    others = [algorithm.value for algorithm in Algorithm if _explains(fits, algorithm)]
    ran = (
        f"name what ran, as --algorithm {' or '.join(others)} would explain it; " if others else ""
    )
    return InputError(
        f"level {topology.levels[excess.level].name}{by}: {format_bandwidth(excess.found)} a port",
        f"is above the link's nominal {format_bandwidth(_nominal(topology, excess.level))}",
        ran + _REMEDY,
    )


def _explains(fits: Callable[[Algorithm], bool], algorithm: Algorithm) -> bool:
    try:
        return fits(algorithm)
    except InputError:  # nothing runs by it there
        return False


# Measured times of which it is said by which algorithm they ran: whether they can have.


def _all_notes(
    topology: Topology, samples: Sequence[Sample], algorithms: tuple[Algorithm, ...] | None
) -> tuple[str, ...]:
    """The notes of the samples, each by what is said of it, or else of all."""
    groups: dict[tuple[Algorithm, ...] | None, list[Sample]] = {}
    for sample in samples:
        groups.setdefault(sample.ran or algorithms, []).append(sample)
    found = [sample_notes(topology, group, ran) for ran, group in groups.items()]
    return tuple(dict.fromkeys(note for notes in found for note in notes))


def sample_notes(
    topology: Topology, samples: Sequence[Sample], algorithms: tuple[Algorithm, ...] | None
) -> tuple[str, ...]:
    """Notes on the samples that cannot have run by the algorithms named (None: none are).

    Raises:
        InputError: one of them nothing runs by there, or no sample can have run by them.
    """
    if algorithms is None:
        return ()
    asked = running(topology, algorithms)
    ran = Predictor.of(asked, samples).steps(asked)
    steps = [
        NamedStep(_text(sample), sample.operation, step.algorithm)
        for sample, step in zip(samples, ran, strict=True)
        if isinstance(sample.operation, Collective)
    ]
    return named_notes(topology, algorithms, steps)


def _text(sample: Sample) -> str:
    """The operation and its table; sources are lines of tables."""
    table = sample.source.rpartition(":")[0]
    return f"{sample.operation.value} ({table})" if table else sample.operation.value


# A calibrated topology as a YAML file that says what it was fitted from.


def calibrated_yaml(calibration: Calibration, date: str) -> str:
    """The file's text; reading it back gives ``calibration.topology``.

    The comments at its head say what it was fitted to, how well, and on which ``date``.
    """
    head = "".join(f"# {_printable(line)}\n" for line in _head(calibration, date))
    return f"{head}\n{dump_yaml(dump_topology(calibration.topology))}"


def _head(calibration: Calibration, date: str) -> Iterator[str]:
    found = list(doubts(calibration))
    if useless(calibration.tables):
        yield f"NOT TO BE RELIED ON: {found.pop(0)}"
    yield f"Fitted by p2smt calibrate on {date}, from"
    yield from (f"  {source}" for source in calibration.sources)
    yield from _constants(calibration) if calibration.constants else _levels(calibration)
    yield from (f"WARNING: {line}" for line in found)
    yield "Errors by table, medians of max(predicted / measured, measured / predicted) - 1:"
    yield from (f"  {_table_comment(found)}" for found in calibration.tables)


def _table_comment(found: TableFit) -> str:
    out = found.left_out_error
    left_out = "" if out is None else f"; {plain(100 * out, 2)} % by a fit to the other tables"
    named = f"{found.source}, {found.operation.value}, {found.times} times"
    return f"{named}: {plain(100 * found.median_error, 2)} %{left_out}"


def _constants(calibration: Calibration) -> Iterator[str]:
    library = calibration.topology.library_name
    yield f"Rates are nominal; efficiencies, hops and calls are what {library} makes of them."
    kept = [found.constant for found in calibration.constants if not found.fitted]
    if kept:
        yield "Kept, as the times do not determine them:"
    for constant in kept:
        where = (
            ""
            if constant.level is None
            else f", level {calibration.topology.names[constant.level]}"
        )
        yield f"  {constant.quantity.value} of {constant.name}{where}"


def _levels(calibration: Calibration) -> Iterator[str]:
    yield "Latencies and bandwidths are effective: what a run by these algorithms would need."
    yield "Errors by level are abs(predicted / measured - 1), outliers left out."
    for level in calibration.levels:
        if level.link is None:
            yield f"level {level.level}: not measured, kept as it was"
        yield from (f"level {level.level}, {_line(found)}" for found in level.collectives)


def _line(found: CollectiveFit) -> str:
    pieces = "own pieces" if found.own else "the link's pieces"
    return (
        f"{found.operation.value} by {pieces}: median {plain(100 * found.median_error, 2)} %, "
        f"largest {plain(100 * found.max_error, 2)} %; {len(found.samples)} times, "
        f"{len(found.outliers)} outliers left out"
    )


def _printable(text: str) -> str:
    """One line of a comment: YAML allows no control characters even there."""
    return "".join(c if c.isprintable() else "?" for c in text)
