"""The stories of what was synthesized: a forest, and schedules by payload.

A forest is added up again for the page.  Of schedules by payload the page says what their file
claims, which ``p2smt verify`` checks.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

from p2smt.errors import InputError
from p2smt.report.page.reading import Fields, Names
from p2smt.report.page.story import Figure, Section, Still, Story, Table, clean, sentence
from p2smt.report.page.words import format_time3
from p2smt.report.schedules.forest_data import claim_words, height_of, rate_words, time_words
from p2smt.report.schedules.forest_picture import LinkLoads, drawn_trees, forest_svg
from p2smt.report.schedules.size_data import ratio_words, span_words
from p2smt.report.schedules.size_picture import BOUND, SizeCurves, size_svg
from p2smt.synthesis.by_size import ProvedSpan, proved_spans
from p2smt.synthesis.certificate.forest import ForestClaim, check_forest, forest_of
from p2smt.synthesis.certificate.sizes import SizeCertificate
from p2smt.units import counted, format_bytes, plain

MOST_ROWS = 400


def forest_story(data: Mapping[str, Any], path: str, names: Names) -> Story:
    """The story of a forest file.

    Raises:
        InputError: it is no such file; or names are to be left out, and links have some.
    """
    claim = forest_of(data, f"forest {path[:200]!r}")
    if names.anonymous:
        rule = "has names of links, which cannot be told from words"
        raise InputError(f"--anonymous {path[:60]}", rule, "drop it, or rename them in the file")
    fault = next(iter(check_forest(claim).faults), None)
    words = f"Wrong: {fault}" if fault else f"Checked: {claim_words(claim)}"
    name = clean(claim.network.name)
    return Story(
        title=clean(f"{claim.collective} on {name}, {claim.network.ranks} ranks", 120),
        verdict=sentence(f"{words}."),
        figures=() if fault else _forest_figures(claim),
        sections=() if fault else (_forest(claim),),
        rests=(("Network", "ranks, switches and ports as the file has them"),),
        commands=names.commands(f"p2smt verify {clean(path)}"),
        kind="report of a forest",
    )


def _forest_figures(claim: ForestClaim) -> tuple[Figure, ...]:
    units = 1 if claim.root is not None else claim.network.ranks
    rate, _, exact = rate_words(claim, units / claim.time).partition(" (")
    time, _, of = time_words(claim, claim.time).partition(" for ")
    trees = len(claim.copying) + len(claim.adding)
    each = "each stands for all that symmetries make of it" if claim.symmetries else ""
    return (
        Figure(clean(rate), "throughput", clean(exact.rstrip(")"))),
        Figure(clean(time), "of the busiest link", clean(f"for {of}")),
        Figure(f"{trees:,}", "trees", each),
    )


def _forest(claim: ForestClaim) -> Section:
    rows = list(LinkLoads.of(claim).rows())
    busy = counted(sum(alike for _, alike, share in rows if share == 1), "link")
    shares = [(clean(name), str(n), f"{plain(100 * float(s), 4)} %") for name, n, s in rows]
    shown = counted(len(drawn_trees(claim)), "heaviest tree")
    return Section(
        "Trees and links",
        f"The {shown}, from the root down; {busy} always busy.",
        (Still("trees, and how busy links are", forest_svg(claim, claim_words(claim))),),
        (
            Table(("root", "", ">weight", ">height"), tuple(_tree_rows(claim)), "Trees"),
            Table(("link", ">alike", ">busy"), tuple(shares[:MOST_ROWS]), "Links"),
        ),
    )


def _tree_rows(claim: ForestClaim) -> Iterator[tuple[str, ...]]:
    for adds, trees in ((False, claim.copying), (True, claim.adding)):
        for tree in trees[:MOST_ROWS]:
            height = str(height_of(claim, tree, adds=adds))
            yield str(tree.root), "adds up" if adds else "copies", str(tree.weight), height


def sizes_answer_story(answer: Fields, names: Names) -> Story:
    """The story of what ``synthesize --size --json`` printed.

    Raises:
        InputError: it is not as it was printed.
    """
    spans = [
        ProvedSpan(*(_fraction(one, key) for key in ("from_bytes", "to_bytes", "ratio")))
        for one in answer.each("spans")
    ]
    curves, library = SizeCurves.of_answer(answer), clean(answer.words("library"))
    curves = replace(curves, fabric=names.cluster(curves.fabric))
    faster = [(one.words("name"), one.number("from_bytes")) for one in answer.each("faster")]
    runs = ", then ".join(
        clean(name) + (f" from {format_bytes(low)}" if at else "")
        for at, (name, low) in enumerate(faster)
    )
    everywhere = " at every payload" if len(faster) == 1 else ""
    figures = [Figure(clean(runs + everywhere), "by prices")] if library and runs else []
    left_out = sentence(answer.words("left_out"))
    return _sizes_story(curves, spans, figures, (("Prices", left_out),), ())


def size_certificate_story(data: Mapping[str, Any], path: str, names: Names) -> Story:
    """The story of a certificate of times by payload.

    Raises:
        InputError: it is no such file.
    """
    claim = SizeCertificate.of_data(data, f"certificate {path[:200]!r}")
    commands = names.commands(f"p2smt verify {clean(path)}")
    curves = SizeCurves.of_certificate(claim)
    curves = replace(curves, fabric=names.cluster(curves.fabric))
    return _sizes_story(curves, proved_spans(claim.corners), [], (), commands)


def _fraction(fields: Fields, key: str) -> Fraction:
    try:
        return Fraction(fields.words(key)[:2000])
    except (ValueError, ZeroDivisionError):
        raise InputError(f"{fields.what}: {key}", "is no fraction", "print it again") from None


def _sizes_story(
    curves: SizeCurves,
    spans: Sequence[ProvedSpan],
    figures: Sequence[Figure],
    rests: tuple[tuple[str, str], ...],
    commands: tuple[str, ...],
) -> Story:
    ratio = max((one.ratio for one in spans), default=None)
    words = "; ".join(map(span_words, spans)) if spans else "nothing is proved"
    own = () if ratio is None else (Figure(f"{ratio_words(ratio)}x", "of the least time, at most"),)
    many, noun = counted(len(curves.pieces), "schedule").split()
    schedules = Figure(many, noun)
    return Story(
        title=clean(f"{curves.collective} on {curves.fabric}", 120),
        verdict=sentence(f"Claimed, not checked: {words}."),
        figures=(*own, schedules, *figures),
        sections=(_times(curves), _pieces(curves)) if curves.pieces else (),
        rests=(("Model", "steps one after the other, at one latency each"), *rests),
        commands=commands,
        kind="report of schedules by payload",
    )


def _times(curves: SizeCurves) -> Section:
    found = [dict(points) for _, points in curves.curves]
    heads = (">payload", *(f">{clean(name)}" for name, _ in curves.curves))
    rows = tuple(
        (format_bytes(payload), *(format_time3(points.get(payload, 0.0)) for points in found))
        for payload in list(found[0])[:MOST_ROWS]
    )
    pictures = (Still("times by payload", size_svg(curves)),) if curves.ranging else ()
    lead = f"No schedule is below the line of the {BOUND}."
    return Section("Times by payload", lead, pictures, (Table(heads, rows),))


def _pieces(curves: SizeCurves) -> Section:
    rows = tuple((format_bytes(low), clean(name)) for low, name in curves.pieces)
    lead = f"{counted(len(rows), 'schedule')}, fewest steps first."
    return Section("Which schedule", lead, first=Table((">from", "steps, rounds, chunks"), rows))
