"""The best schedules by payload, and the check of what is proved of them: data and tables."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from rich.console import Group, RenderableType

from p2smt.report.outputs.schedules import VerifySizesOutput
from p2smt.report.outputs.synthesize import (
    FasterFrom,
    SizedAnswer,
    SizedSpan,
    SizedTime,
    SynthesizeSizesOutput,
)
from p2smt.report.schedules.synthesis_data import (
    OUTSIDE,
    UNMADE,
    SynthesisFileNames,
    answer_data,
    found_words,
    setting_words,
    subject_data,
    unmade_subject,
    unsearched_words,
)
from p2smt.report.tables import table
from p2smt.report.text import printable
from p2smt.schedules.cost.against import (
    LEFT_OUT,
    FastestRun,
    LibraryPrices,
    TimedCurve,
    TimedWay,
    fastest_runs,
)
from p2smt.synthesis.by_size import (
    ProvedSpan,
    SizedPiece,
    SizedSchedules,
    SizesEnding,
    proved_spans,
)
from p2smt.synthesis.certificate.sizes import SizeCorner, SizeReport
from p2smt.synthesis.setting import CHUNKS_OF, too_many_messages
from p2smt.units import counted, format_bytes, format_time, plain

_SHORT = 6
"""So many payloads, and the last one, are on a first screen."""
OWN = "synthesized"
"""What tables call the schedules of the answer together."""


@dataclass(frozen=True, slots=True)
class SizedRow:
    """A payload that was asked about, in the model and by prices; None: the library has none."""

    payload: int
    piece: SizedPiece
    corner: SizeCorner
    price: TimedWay
    library: TimedWay | None


@dataclass(frozen=True, slots=True)
class PricedSchedules:
    """The answer with its rows, and whose price is lower where; ``spans``: where it is proved."""

    found: SizedSchedules
    prices: LibraryPrices
    rows: tuple[SizedRow, ...]
    runs: tuple[FastestRun, ...]
    spans: tuple[ProvedSpan, ...]

    @staticmethod
    def of(
        found: SizedSchedules, prices: LibraryPrices, payloads: Sequence[int]
    ) -> PricedSchedules:
        """With the prices at these payloads.

        Raises:
            InputError: a schedule cannot be priced on the topology.
        """
        claim = found.certificate
        if claim is None:
            return PricedSchedules(found, prices, (), (), ())
        own = TimedCurve(OWN, lambda n: _price(found, prices, n))
        library = TimedCurve(prices.name or "", lambda n: prices.own(n) or TimedWay(0.0, ""))
        rows = [
            SizedRow(
                payload,
                found.piece_of(payload),
                claim.corner_at(Fraction(payload)),
                own.at(payload),
                None if prices.name is None else library.at(payload),
            )
            for payload in payloads
        ]
        curves = [own] if prices.name is None else [own, library]
        return PricedSchedules(
            found, prices, tuple(rows), fastest_runs(curves, payloads), proved_spans(claim.corners)
        )

    @property
    def names(self) -> tuple[str, ...]:
        """Of what runs are about."""
        return (OWN,) if self.prices.name is None else (OWN, self.prices.name)


def _price(found: SizedSchedules, prices: LibraryPrices, payload: int) -> TimedWay:
    schedule = found.piece_of(payload).found.schedule
    assert schedule is not None  # only what has one is kept
    return prices.of(schedule, payload)


def sizes_data(
    priced: PricedSchedules,
    files: Mapping[int, SynthesisFileNames],
    certificate: str | None = None,
    svg: str | None = None,
) -> SynthesizeSizesOutput:
    """The answer; ``files``: what was written of each schedule, by its steps."""
    found, claim = priced.found, priced.found.certificate
    return SynthesizeSizesOutput(
        **vars(subject_data(found.setting)),
        status="proved" if found.proved else "open",
        ending=found.ending.value,
        unsearched=_unsearched(found),
        topology=priced.prices.topology.name,
        library=priced.prices.name,
        from_bytes=found.low,
        to_bytes=found.high,
        alpha_s=str(found.prices.alpha_s),
        beta_s=str(found.prices.beta_s),
        ratio=None if claim is None else str(claim.ratio),
        spans=[
            SizedSpan(from_bytes=str(one.low), to_bytes=str(one.high), ratio=str(one.ratio))
            for one in priced.spans
        ],
        pieces=[
            SizedAnswer(
                from_bytes=one.low,
                to_bytes=one.high,
                found=answer_data(one.found, files.get(one.found.size.steps, {})),
            )
            for one in found.pieces
        ],
        sizes=[_row_data(one) for one in priced.rows],
        faster=[
            FasterFrom(from_bytes=one.low, name=priced.names[one.curve]) for one in priced.runs
        ],
        certificate=certificate,
        svg=svg,
        left_out=LEFT_OUT,
        outside=OUTSIDE,
        wall_s=found.wall_s,
    )


def _row_data(row: SizedRow) -> SizedTime:
    size = row.piece.found.size
    return SizedTime(
        size_bytes=row.payload,
        steps=size.steps,
        rounds=size.rounds,
        chunks=size.chunks,
        seconds=float(row.corner.time_s),
        bound_s=float(row.corner.bound_s),
        price_s=row.price.seconds,
        protocol=row.price.way,
        library_s=None if row.library is None else row.library.seconds,
        library_way=None if row.library is None else row.library.way,
    )


def unmade_sizes_data(
    fabric: str,
    collective: str,
    root: int,
    topology: str,
    payloads: Sequence[int],
    wall_s: float,
) -> SynthesizeSizesOutput:
    """That time came before there was a fabric."""
    return SynthesizeSizesOutput(
        **vars(unmade_subject(fabric, collective, root)),
        status="open",
        ending=UNMADE,
        unsearched=None,
        topology=topology,
        library=None,
        from_bytes=payloads[0],
        to_bytes=payloads[-1],
        alpha_s=None,
        beta_s=None,
        ratio=None,
        spans=[],
        pieces=[],
        sizes=[],
        faster=[],
        certificate=None,
        svg=None,
        left_out=LEFT_OUT,
        outside=OUTSIDE,
        wall_s=wall_s,
    )


# For people: the verdict first, then which schedule is for which payloads, then prices.


def sizes_tables(priced: PricedSchedules, *, short: bool = False) -> RenderableType:
    """Verdict, times and prices, pieces, and what they rest on; ``short``: at few payloads."""
    found = priced.found
    shown: list[RenderableType] = [*_verdict(priced)]
    if found.pieces:
        shown += ["", _times(priced, short), "", _pieces(found)]
    return Group(*shown, "", *_notes(priced))


def _verdict(priced: PricedSchedules) -> Iterator[str]:
    found = priced.found
    if not found.schedules:
        many = too_many_messages(found.setting)
        why = "none is sought over so many ranks" if many else found.ending.value
        yield f"no schedule found: {why}"
    elif not priced.spans:
        yield f"nothing is proved: {found.ending.value}"
    else:
        yield "; ".join(map(span_words, priced.spans))
        if found.ending is SizesEnding.TIME and not found.proved:
            yield "searched until the time limit; a longer --time-limit may find better ones"
        elif found.ending is SizesEnding.STOPPED and not found.proved:
            yield f"{found.ending.value}; more time may find better ones"
    yield setting_words(found.setting)
    if len(found.pieces) > 1:
        runs = [FastestRun(at, one.low) for at, one in enumerate(found.pieces)]
        yield f"schedules: {run_words(runs, [str(one.found.size) for one in found.pieces])}"
    if priced.prices.name is not None and priced.runs:
        yield f"by prices: {run_words(priced.runs, priced.names)}"


def span_words(span: ProvedSpan) -> str:
    """What is proved from where to where."""
    over = f"{_least_words(span.ratio)} in the model"
    said = "proved optimal in the model" if span.ratio == 1 else over
    return f"{said} {_payload_words(span.low, span.high)}"


def _least_words(ratio: Fraction) -> str:
    return "the least time" if ratio == 1 else f"at most {ratio_words(ratio)} times the least time"


def ratio_words(ratio: Fraction) -> str:
    """A ratio with two decimals, or a power of ten; rounded up, as none is larger."""
    hundredths = math.ceil(100 * ratio)
    digits = len(str(hundredths))
    return plain(hundredths / 100, 12) if digits < 12 else f"10^{digits - 2}"


def _payload_words(low: Fraction, high: Fraction) -> str:
    first = format_bytes(float(low))
    return f"at {first}" if low == high else f"from {first} to {format_bytes(float(high))}"


def run_words(runs: Sequence[FastestRun], names: Sequence[str]) -> str:
    """Such as ``a.xml up to 9 MiB, then ring``."""
    words = [names[runs[0].curve]]
    for one in runs[1:]:
        words.append(f"up to {format_bytes(one.low)}, then {names[one.curve]}")
    return " ".join(words) if len(words) > 1 else f"{words[0]} at every payload"


def _pieces(found: SizedSchedules) -> RenderableType:
    rows = [
        [
            *(format_bytes(one.low), format_bytes(one.high)),
            *map(str, (one.found.size.steps, one.found.size.rounds, one.found.size.chunks)),
            *(str(one.found.rate), found_words(one.found)),
        ]
        for one in found.pieces
    ]
    columns = [">from", ">to", ">steps", ">rounds", ">chunks", ">R/C", "found"]
    of = CHUNKS_OF[found.setting.collective]
    return table(f"schedules by payload; chunks {of}", columns, rows, ["found"])


def _times(priced: PricedSchedules, short: bool) -> RenderableType:
    library = priced.prices.name
    columns = [">payload", ">in the model", ">over bound", ">price", "protocol"]
    columns += [] if library is None else [f">{library}", "its choice", ">price over it"]
    every = -(-len(priced.rows) // _SHORT) if short else 1
    shown = [*priced.rows[:-1:every], *priced.rows[-1:]]
    rows = [[*_time_cells(row), *_library_cells(row)] for row in shown]
    return table("times", columns, rows, ["protocol", "its choice"])


def _time_cells(row: SizedRow) -> Iterator[str]:
    yield format_bytes(row.payload)
    yield format_time(float(row.corner.time_s))
    yield ratio_words(row.corner.ratio)
    yield from (format_time(row.price.seconds), row.price.way)


def _library_cells(row: SizedRow) -> Iterator[str]:
    if row.library is not None:
        yield from (format_time(row.library.seconds), row.library.way)
        yield plain(row.price.seconds / row.library.seconds)


def _notes(priced: PricedSchedules) -> Iterator[str]:
    found, topology = priced.found, priced.prices.topology
    alpha, beta = (float(one) for one in (found.prices.alpha_s, found.prices.beta_s))
    yield (
        f"model: {format_time(alpha)} a step ({printable(topology.name)}), "
        f"{format_time(beta * 2**20)} a MiB of payload where R/C is 1"
    )
    if priced.prices.name is not None:
        call_s = priced.prices.call_s(found.low)
        yield f"prices: best protocol, and {format_time(call_s)} of a call of {priced.prices.name}"
    yield f"ends: {found.ending.value}"
    if why := _unsearched(found):
        yield why
    yield OUTSIDE
    yield f"in {format_time(found.wall_s)}"


def _unsearched(found: SizedSchedules) -> str | None:
    def met(steps: int, least: Fraction) -> bool:
        return any(one.size.steps <= steps and one.rate <= least for one in found.schedules)

    every = (n for n, one in found.bounds if n is not None and not met(n, one.value))
    return unsearched_words(found.setting, every)


# The check of a certificate.


HeldTo = tuple[str | None, str | None]
"""The names of the fabric and of the topology that a certificate was held against."""


def size_report_lines(report: SizeReport, held: HeldTo = (None, None)) -> Iterator[str]:
    """What is wrong, then the verdict."""
    claim = report.claim
    yield from report.faults
    low, high = Fraction(claim.low), Fraction(claim.high)
    name = held[0] if held[0] is not None and report.valid else claim.fabric.name
    yield printable(
        f"{'valid' if report.valid else 'invalid'}: {claim.least.collective} on {name} "
        f"({claim.fabric.ranks} ranks): {_payload_words(low, high)} schedules of "
        f"{', '.join(map(_triple_words, claim.schedules))} take {_least_words(claim.ratio)}"
    )
    if not report.valid:
        return
    alpha, beta = (format_time(float(one)) for one in (claim.alpha_s, 2**20 * claim.beta_s))
    yield f"in the model: {alpha} a step, {beta} a MiB of payload where R/C is 1"
    corners = counted(len(claim.corners), "corner")
    yield f"checked: {counted(len(claim.bounds) + 1, 'bound')}, {corners}, ratio"
    yield from (f"not checked: {what}" for what in _not_checked(report, held))


def _triple_words(triple: Sequence[int]) -> str:
    return f"({','.join(map(str, triple))})"


def _not_checked(report: SizeReport, held: HeldTo) -> list[str]:
    if not report.valid:
        return []
    name = f"that the fabric is {report.claim.fabric.name}"
    both = name, "that a step takes so long (-t names a topology)"
    own = [what for what, by in zip(both, held, strict=True) if by is None]
    return [*own, "that there are these schedules (their files show it)"]


def size_report_data(report: SizeReport, held: HeldTo = (None, None)) -> VerifySizesOutput:
    """The verdict as data."""
    claim = report.claim
    return VerifySizesOutput(
        verdict="valid" if report.valid else "invalid",
        violations=report.faults,
        collective=claim.least.collective,
        root=claim.least.root,
        fabric=claim.fabric.name,
        ranks=claim.fabric.ranks,
        from_bytes=claim.low,
        to_bytes=claim.high,
        alpha_s=str(claim.alpha_s),
        beta_s=str(claim.beta_s),
        ratio=str(claim.ratio),
        schedules=[_triple_words(one) for one in claim.schedules],
        not_checked=_not_checked(report, held),
    )
