"""Symbolic costs as text, as LaTeX and as data."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from p2smt.cost.symbolic.form import CostForm, Rationals, SymbolicCost
from p2smt.plans.given_program import PlacedProgram


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
        yield (
            "c: seconds of a call; alpha: seconds of a message at a level; "
            "beta: seconds per byte on one port or link of it; n: bytes of the payload"
        )


def cost_text(cost: SymbolicCost) -> str:
    """The cost as text: its form, or a sum over steps of the least of their ways."""
    form = cost.form()
    if form is not None:
        return form_text(form, cost.levels)
    steps = [[form_text(way, cost.levels) for way in forms] for forms in _step_forms(cost)]
    return "\n  + ".join(_joined(ways, "min(\n      ", ",\n      ", ")") for ways in steps)


def cost_latex(cost: SymbolicCost) -> str:
    """The same in LaTeX's mathematics."""
    form = cost.form()
    if form is not None:
        return form_latex(form, cost.levels)
    steps = [[form_latex(way, cost.levels) for way in forms] for forms in _step_forms(cost)]
    ends = (r"\min\left\{", ", ", r"\right\}")
    return " + ".join(_joined(ways, *ends) for ways in steps)


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
    sums = [_maximum(loads, levels) for loads in form.maxima]
    if sums:
        inner = " + ".join(sums)
        parts.append(f"n ({inner})" if len(sums) > 1 or " + " in inner else f"n {inner}")
    return " + ".join(part for part in parts if part) or "0"


def _maximum(loads: Rationals, levels: Sequence[str]) -> str:
    terms = _linear(loads, levels, "beta_{}")
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
    sums = [_latex_maximum(loads, names) for loads in form.maxima]
    if sums:
        inner = " + ".join(sums)
        parts.append(rf"n \left({inner}\right)" if len(sums) > 1 else f"n {inner}")
    return " + ".join(part for part in parts if part) or "0"


def _latex_maximum(loads: Rationals, names: Sequence[str]) -> str:
    terms = _latex_linear(loads, names, r"\beta")
    return terms[0] if len(terms) == 1 else rf"\max\left({', '.join(terms)}\right)"


def _latex_linear(numbers: Rationals, names: Sequence[str], symbol: str) -> list[str]:
    named = [_latex_term(a, f"{symbol}_{{{name}}}") for a, name in zip(numbers, names, strict=True)]
    return [term for term in named if term]


def _latex_term(number: Fraction, symbol: str) -> str:
    if not number:
        return ""
    if number.denominator == 1:
        return symbol if number == 1 else f"{number} {symbol}"
    return rf"\frac{{{number.numerator}}}{{{number.denominator}}} {symbol}"


def symbolic_data(found: Sequence[PricedInSymbols]) -> dict[str, Any]:
    """The costs as data: rationals as texts such as ``31/16``."""
    levels = found[0].cost.levels if found else ()
    return {"levels": list(levels), "requests": [_request_data(one) for one in found]}


def _request_data(one: PricedInSymbols) -> dict[str, Any]:
    request, program, cost = one.placed.request, one.placed.program, one.cost
    form = cost.form()
    return {
        "kind": request.kind.value,
        "axes": list(request.axes),
        "program": None if program is None else str(program),
        "steps": [
            {
                "instruction": step.text,
                "ways": [
                    {
                        "algorithm": way.algorithm,
                        "protocol": way.protocol,
                        "latency": list(map(str, way.latency)),
                        "loads": list(map(str, way.loads)),
                    }
                    for way in step.ways
                ],
            }
            for step in cost.steps
        ],
        "form": None if form is None else form_data(form),
        "text": cost_text(cost),
        "latex": cost_latex(cost),
    }


def form_data(form: CostForm) -> dict[str, Any]:
    """A form as data."""
    return {
        "calls": form.calls,
        "latency": list(map(str, form.latency)),
        "maxima": [list(map(str, loads)) for loads in form.maxima],
    }
