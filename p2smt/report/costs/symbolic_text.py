"""Symbolic costs as text, as LaTeX and as data."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

from p2smt.collectives.demand import plain_kind
from p2smt.cost.symbolic.form import (
    CostForm,
    FillTerm,
    FormCell,
    LinkNumbers,
    Rationals,
    SymbolicCost,
    SymbolicStep,
)
from p2smt.cost.symbolic.steps import numbers_of
from p2smt.plans.given_program import PlacedProgram
from p2smt.report.outputs.symbolic import (
    AnyFormPart,
    ChoicePart,
    FillPart,
    FormCellPart,
    FormPart,
    NumbersPart,
    SymbolicOutput,
    SymbolicRequest,
    SymbolicStepPart,
    SymbolicWayPart,
)
from p2smt.units import exact_time, format_bytes

_AT_MOST = r"\le"
_LONGEST = 24
"""Characters of a fraction that is shown as it is."""


@dataclass(frozen=True, slots=True)
class PricedInSymbols:
    """A request with its program on a placement, and the symbolic cost of it."""

    placed: PlacedProgram
    cost: SymbolicCost


def symbolic_lines(found: Sequence[PricedInSymbols], latex: bool) -> Iterator[str]:
    """Each request and program with its cost."""
    for number, one in enumerate(found):
        yield from ("",) * (number > 0)
        what = str(one.placed.program) if one.placed.program is not None else "one fixed step"
        yield f"{'% ' if latex else ''}{one.placed.request.name}: {what}"
        yield (cost_latex if latex else cost_text)(one.cost)
    if found and not latex:
        yield ""
        topology = found[0].placed.scene.topology
        yield _legend(topology.library_name)
        yield numbers_text(numbers_of(topology), topology.names)


def _legend(library: str) -> str:
    """What the symbols stand for; with a library, that of others is by their ratio to these."""
    if not library:
        return (
            "c: seconds of a call; alpha: seconds of a message at a level; "
            "beta: seconds per byte on one port or link of it; n: bytes of the payload"
        )
    return (
        "c: seconds of an all-reduce's call inside a node; alpha: seconds of a ring's step by the "
        "simple protocol at a level; beta: seconds per byte at the nominal rate of one port or "
        f"link of it; n: bytes of the payload, whose bounds are {library}'s own"
    )


def cost_text(cost: SymbolicCost) -> str:
    """The cost as text: its form, or a sum over steps of the least of their ways.

    Where a library chooses by the payload, a form for each of its choices.
    """
    if cost.chosen:
        return "\n".join(
            f"{_range_text(cell)}, {_ways_text(cell)}:\n  {form_text(form, cost.levels)}"
            for cell in cost.cells()
            for form in cell.forms
        )
    form = cost.form()
    if form is not None:
        return form_text(form, cost.levels)
    steps = [[form_text(way, cost.levels) for way in forms] for forms in _step_forms(cost)]
    return "\n  + ".join(_joined(ways, "min(\n      ", ",\n      ", ")") for ways in steps)


def _range_text(cell: FormCell) -> str:
    if cell.high is None:
        return f"n from {exact_bytes(cell.low)} on" if cell.low else "any n"
    start = f"from {exact_bytes(cell.low)} " if cell.low else ""
    return f"n {start}{'below' if cell.below else 'up to'} {exact_bytes(cell.high)}"


def _ways_text(cell: FormCell) -> str:
    return "; ".join(f"{way.algorithm} {way.protocol}" for way in cell.ways[0])


def exact_bytes(number: Fraction) -> str:
    """A number of bytes: as people write it, and exactly, or between which whole numbers it is."""
    if not number:
        return "0 B"
    exact = str(number)
    if len(exact) > _LONGEST:
        below = math.floor(number)
        exact = f"between {below} and {below + 1}"
    return f"{format_bytes(float(number))} ({exact} B)"


def cost_latex(cost: SymbolicCost) -> str:
    """The same in LaTeX's mathematics."""
    if cost.chosen:
        rows = [
            f"{form_latex(form, cost.levels)} & {_range_latex(cell)}"
            for cell in cost.cells()
            for form in cell.forms
        ]
        return r"\begin{cases} " + r" \\ ".join(rows) + r" \end{cases}"
    form = cost.form()
    if form is not None:
        return form_latex(form, cost.levels)
    steps = [[form_latex(way, cost.levels) for way in forms] for forms in _step_forms(cost)]
    ends = (r"\min\left\{", ", ", r"\right\}")
    return " + ".join(_joined(ways, *ends) for ways in steps)


def _range_latex(cell: FormCell) -> str:
    if cell.high is None:
        return r"\text{otherwise}"
    return f"n {'<' if cell.below else _AT_MOST} {latex_number(cell.high)}"


def _step_forms(cost: SymbolicCost) -> list[list[CostForm]]:
    """The ways of each step as costs of their own."""
    levels = len(cost.levels)
    return [
        list(dict.fromkeys(CostForm.of([way], levels) for way in step.ways))
        for step in cost.steps
        if step.ways
    ]


def _joined(texts: Sequence[str], before: str, between: str, after: str) -> str:
    return texts[0] if len(texts) == 1 else before + between.join(texts) + after


def form_text(form: CostForm, levels: Sequence[str]) -> str:
    """A form such as ``c + 6 alpha_node + 56 alpha_gpu + n 31/16 max(beta_node, beta_gpu)``."""
    parts = [_term(Fraction(form.calls), "c"), *_linear(form.latency, levels, "alpha_{}")]
    sums = [_maximum(loads, levels, "beta_{}") for loads in form.maxima]
    if sums:
        inner = " + ".join(sums)
        parts.append(f"n ({inner})" if len(sums) > 1 or " + " in inner else f"n {inner}")
    parts += [_fill(fill, levels) for fill in form.fills]
    return " + ".join(part for part in parts if part) or "0"


def _fill(fill: FillTerm, levels: Sequence[str]) -> str:
    """Such as ``min(sqrt(16 n beta_node alpha_node), 8 alpha_node)``."""
    rows = [_maximum(row, levels, "alpha_{}") for row in fill.stages]
    stage = rows[0] if len(rows) == 1 else f"({' + '.join(rows)})"
    root = f"sqrt({fill.factor} n {_maximum(fill.loads, levels, 'beta_{}')} {stage})"
    return root if fill.most is None else f"min({root}, {fill.most} {stage})"


def _maximum(loads: Rationals, levels: Sequence[str], symbol: str) -> str:
    terms = _linear(loads, levels, symbol)
    return terms[0] if len(terms) == 1 else f"max({', '.join(terms)})"


def _linear(numbers: Rationals, levels: Sequence[str], symbol: str) -> list[str]:
    named = [_term(a, symbol.format(name)) for a, name in zip(numbers, levels, strict=True)]
    return [term for term in named if term]


def _term(number: Fraction, symbol: str) -> str:
    if not number:
        return ""
    return symbol if number == 1 else f"{number} {symbol}"


def form_latex(form: CostForm, levels: Sequence[str]) -> str:
    r"""The same in LaTeX's mathematics, levels as ``\alpha_{\mathrm{node}}``."""
    names = [rf"\mathrm{{{name.replace('_', chr(92) + '_')}}}" for name in levels]
    parts = [_latex_term(Fraction(form.calls), "c")]
    parts += _latex_linear(form.latency, names, r"\alpha")
    sums = [_latex_maximum(loads, names, r"\beta") for loads in form.maxima]
    if sums:
        inner = " + ".join(sums)
        parts.append(rf"n \left({inner}\right)" if len(sums) > 1 else f"n {inner}")
    parts += [_latex_fill(fill, names) for fill in form.fills]
    return " + ".join(part for part in parts if part) or "0"


def _latex_fill(fill: FillTerm, names: Sequence[str]) -> str:
    rows = [_latex_maximum(row, names, r"\alpha") for row in fill.stages]
    stage = rows[0] if len(rows) == 1 else rf"\left({' + '.join(rows)}\right)"
    wire = _latex_maximum(fill.loads, names, r"\beta")
    root = rf"\sqrt{{{latex_number(fill.factor)} n {wire} {stage}}}"
    if fill.most is None:
        return root
    return rf"\min\left({root}, {latex_number(fill.most)} {stage}\right)"


def _latex_maximum(loads: Rationals, names: Sequence[str], symbol: str) -> str:
    terms = _latex_linear(loads, names, symbol)
    return terms[0] if len(terms) == 1 else rf"\max\left({', '.join(terms)}\right)"


def _latex_linear(numbers: Rationals, names: Sequence[str], symbol: str) -> list[str]:
    named = [_latex_term(a, f"{symbol}_{{{name}}}") for a, name in zip(numbers, names, strict=True)]
    return [term for term in named if term]


def _latex_term(number: Fraction, symbol: str) -> str:
    if not number:
        return ""
    return symbol if number == 1 else f"{latex_number(number)} {symbol}"


def latex_number(number: Fraction) -> str:
    """A rational as LaTeX."""
    if number.denominator == 1:
        return str(number)
    return rf"\frac{{{number.numerator}}}{{{number.denominator}}}"


def symbolic_data(found: Sequence[PricedInSymbols]) -> SymbolicOutput:
    """The costs as data."""
    return SymbolicOutput(
        levels=found[0].cost.levels if found else (),
        numbers=numbers_data(numbers_of(found[0].placed.scene.topology)) if found else None,
        requests=[_request_data(one) for one in found],
    )


def _request_data(one: PricedInSymbols) -> SymbolicRequest:
    request, program, cost = one.placed.request, one.placed.program, one.cost
    form = cost.form()
    return SymbolicRequest(
        kind=plain_kind(request.kind),
        axes=request.axes,
        program=None if program is None else str(program),
        steps=[_step_data(step) for step in cost.steps],
        form=None if form is None else any_form_data(form),
        cells=[_cell_data(cell, cost.levels) for cell in cost.cells()] if cost.chosen else [],
        text=cost_text(cost),
        latex=cost_latex(cost),
    )


def _step_data(step: SymbolicStep) -> SymbolicStepPart:
    return SymbolicStepPart(
        instruction=step.text,
        ways=[
            SymbolicWayPart(
                algorithm=way.algorithm,
                protocol=way.protocol,
                calls=way.calls,
                latency=way.latency,
                loads=way.loads,
                fill=None if way.fill is None else _fill_data(way.fill),
            )
            for way in step.ways
        ],
        choice=[
            ChoicePart(low=cell.low, high=cell.high, below=cell.below, way=cell.way)
            for cell in step.choice
        ],
    )


def _cell_data(cell: FormCell, levels: Sequence[str]) -> FormCellPart:
    (form,) = cell.forms
    return FormCellPart(
        low=cell.low,
        high=cell.high,
        below=cell.below,
        form=any_form_data(form),
        ways=[f"{way.algorithm} {way.protocol}" for way in cell.ways[0]],
        text=form_text(form, levels),
        latex=form_latex(form, levels),
    )


def form_data(form: CostForm) -> FormPart:
    """A form of whole calls and nothing pipelined as data."""
    return FormPart(calls=int(form.calls), latency=form.latency, maxima=form.maxima)


def any_form_data(form: CostForm) -> AnyFormPart:
    """Any form as data."""
    fills = [_fill_data(fill) for fill in form.fills]
    return AnyFormPart(calls=form.calls, latency=form.latency, maxima=form.maxima, fills=fills)


def _fill_data(fill: FillTerm) -> FillPart:
    return FillPart(factor=fill.factor, loads=fill.loads, stages=fill.stages, most=fill.most)


# What the symbols of a cost are on a topology: a line of text, and exact data.


def numbers_text(numbers: LinkNumbers, levels: Sequence[str]) -> str:
    """Such as ``here: c = 0 s; alpha_node = 5 us; beta_node = 1/25000000000 s/byte``.

    Times are told as far as floats have them; ``numbers`` of the data are exact.
    """
    alphas = zip(levels, numbers.latency_s, strict=True)
    betas = zip(levels, numbers.s_per_byte, strict=True)
    parts = (
        f"c = {exact_time(float(numbers.call_s))}",
        ", ".join(f"alpha_{name} = {exact_time(float(alpha))}" for name, alpha in alphas),
        ", ".join(f"beta_{name} = {beta} s/byte" for name, beta in betas),
    )
    return f"here: {'; '.join(parts)}"


def numbers_data(numbers: LinkNumbers) -> NumbersPart:
    """The same as fractions; of each level, the outermost first."""
    return NumbersPart(c=numbers.call_s, alpha=numbers.latency_s, beta=numbers.s_per_byte)
