"""A row of the table of formulas."""

from __future__ import annotations

from dataclasses import dataclass

from sympy import Expr, Symbol

PAPER = "arXiv 2205.05198"  # Reducing Activation Recomputation in Large Transformer Models
MEGATRON = "arXiv 2104.04473"  # Efficient Large-Scale Language Model Training on GPU Clusters
ZERO = "arXiv 1910.02054"  # ZeRO: Memory Optimizations Toward Training Trillion Parameter Models
FLASH = "arXiv 2205.14135"  # FlashAttention
RING = "arXiv 2310.01889"  # Ring Attention with Blockwise Transformers
COUNTED = "counted"
"""Follows from the operation itself: what is multiplied, read, or written."""


@dataclass(frozen=True, slots=True)
class FormulaRow:
    """A named quantity: an expression in given symbols and the names of other rows.

    ``meaning`` says in words what it is, ``source`` where the formula is from.
    """

    name: str
    expression: Expr
    unit: str
    meaning: str
    source: str

    @property
    def symbol(self) -> Symbol:
        """The symbol by which other rows name it."""
        return Symbol(self.name, nonnegative=True)
