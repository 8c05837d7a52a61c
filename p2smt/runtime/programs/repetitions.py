"""Checks what every timed turn leaves, so that a fault in one of them is seen.

A turn is the program, the single collective or the single steps, run once.  What it must leave is
made once, from the closed form, and stays where the payload is: comparing is quick, exact and
outside the times.  Nothing old can pass for a result: values change their signs from turn to turn,
and buffers are filled with what is no result (:mod:`p2smt.runtime.unwritten`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import torch

from p2smt.runtime.options import RequestRun, RunOptions
from p2smt.runtime.payload import Array
from p2smt.runtime.programs.closed_form import (
    Mismatch,
    compare,
    exact_results,
    numbers_of,
    single_result,
)
from p2smt.runtime.programs.prepared import Prepared, SingleCollective
from p2smt.runtime.programs.rank_program import cut
from p2smt.runtime.programs.regions import RowsHeld


@dataclass(slots=True)
class Repetitions:
    """``right``: by piece, and ``single_right`` for the single collective, what turns must leave;
    ``wrong`` counts the turns that left something else.  A rank that was wrong before compares no
    more, but gives the others what they expect.
    """

    prepared: Prepared
    options: RunOptions
    run: RequestRun
    right: list[torch.Tensor]
    single_right: torch.Tensor
    sound: bool
    sign: int = 1
    wrong: int = 0
    first: str = field(default="")

    @staticmethod
    def of(prepared: Prepared, options: RunOptions, run: RequestRun) -> Repetitions:
        """Give the payload its exact values, and make what they must become."""
        request, cutting, rank = prepared.request, prepared.cutting, prepared.site.rank
        numbers = numbers_of(request, cutting, options, prepared.site.ranks)
        prepared.set_period(numbers.integers(rank))
        pieces = exact_results(request, cutting, rank, numbers)
        right = torch.empty_like(prepared.flat)
        right.copy_(_tensor(np.concatenate([piece.ravel() for piece in pieces])))
        single = single_result(request, cutting, rank, numbers) if prepared.single else None
        return Repetitions(
            prepared,
            options,
            run,
            cut(right, cutting),
            right.view(request.size, -1) if single is None else _tensor(single).to(right),
            not run.errors,
        )

    def load(self) -> None:
        """Give the payload its values anew, for the next turn."""
        self.sign = -self.sign
        self.prepared.load(self.sign)

    def check(self, turn: str, repetition: int) -> None:
        """Compare what a turn has left; the steps alone run on the first piece only."""
        prepared = self.prepared
        if not self.sound:
            return
        if self.sign < 0:
            prepared.flat.neg_()
        if turn == "baseline" and prepared.single is not None:
            found = self._single(prepared.single)
        else:
            found = self._pieces(1 if turn == "steps" else len(prepared.pieces))
        if found is None:
            return
        self.wrong += 1
        if not self.first:
            self.first = f"{found} (in {_named(turn, repetition, self.options)})"

    def finish(self) -> None:
        """Report what was wrong."""
        self.run.repetitions_checked = self.options.repeat if self.sound else 0
        if self.first:
            more = f"; {self.wrong} timed results are wrong" if self.wrong > 1 else ""
            self.run.errors.append(f"{self.first}{more}")

    def _pieces(self, count: int) -> Mismatch | None:
        prepared = self.prepared
        pieces = zip(prepared.pieces[:count], self.right, strict=False)
        if all(_same(piece, right, prepared.held) for piece, right in pieces):
            return None
        request, rank = prepared.request, prepared.site.rank
        cutting = replace(prepared.cutting, spans=prepared.cutting.spans[:count])
        results = prepared.results()[:count]
        return compare(request, cutting, rank, prepared.held, results, _arrays(self.right[:count]))

    def _single(self, single: SingleCollective) -> Mismatch | None:
        prepared = self.prepared
        whole = prepared.flat.view(prepared.request.size, -1)
        if _same(whole, self.single_right, single.held):
            return None
        found, right = _arrays([whole, self.single_right])
        row, column = np.argwhere((found != right) & single.held[:, None])[0]
        what = "wrong value of the single collective"
        request, rank = prepared.request, prepared.site.rank
        values = float(right[row, column]), float(found[row, column])
        return Mismatch(request.name, rank, what, None, *values)


def _tensor(values: Array) -> torch.Tensor:
    return torch.from_numpy(np.ascontiguousarray(values))


def _arrays(tensors: Sequence[torch.Tensor]) -> list[Array]:
    wide = [torch.float64 if one.dtype.is_floating_point else torch.int64 for one in tensors]
    return [
        one.to(device="cpu", dtype=kind).numpy() for one, kind in zip(tensors, wide, strict=True)
    ]


def _same(found: torch.Tensor, right: torch.Tensor, held: RowsHeld) -> bool:
    if held.all():
        return torch.equal(found, right)
    return all(torch.equal(found[row], right[row]) for row in np.flatnonzero(held).tolist())


def _named(turn: str, repetition: int, options: RunOptions) -> str:
    if repetition < 0:
        return f"warm-up {repetition + options.warmup + 1} of {options.warmup}, {turn}"
    return f"timed repetition {repetition + 1} of {options.repeat}, {turn}"
