"""What the symbols of a cost are on a topology: a line of text, and exact data."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from p2smt.cost.symbolic.form import LinkNumbers


def numbers_text(numbers: LinkNumbers, levels: Sequence[str]) -> str:
    """Such as ``here: c = 0 s; alpha_node = 5e-06 s; beta_node = 1/25000000000 s/byte``."""
    alphas = zip(levels, numbers.latency_s, strict=True)
    betas = zip(levels, numbers.s_per_byte, strict=True)
    parts = (
        f"c = {_seconds(numbers.call_s)} s",
        ", ".join(f"alpha_{name} = {_seconds(alpha)} s" for name, alpha in alphas),
        ", ".join(f"beta_{name} = {beta} s/byte" for name, beta in betas),
    )
    return f"here: {'; '.join(parts)}"


def _seconds(number: Fraction) -> str:
    """A decimal, as far as a float has it; ``numbers`` of the data are exact."""
    return f"{float(number):.15g}"


def numbers_data(numbers: LinkNumbers) -> dict[str, Any]:
    """The same as fractions; of each level, the outermost first."""
    return {
        "c": str(numbers.call_s),
        "alpha": list(map(str, numbers.latency_s)),
        "beta": list(map(str, numbers.s_per_byte)),
    }
