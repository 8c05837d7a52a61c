"""Constraints of a model one kind after the other, as long as there is time; no solver."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

from p2smt.result import StopWatch

M = TypeVar("M")
P = TypeVar("P")
V = TypeVar("V")


def stated(
    watch: StopWatch, model: M, problem: P, found: V, every: Iterable[Callable[[M, P, V], None]]
) -> bool:
    """State each kind; False: the time was over first, and the model is not complete."""
    for state in every:
        if watch.expired():
            return False
        state(model, problem, found)
    return not watch.expired()
