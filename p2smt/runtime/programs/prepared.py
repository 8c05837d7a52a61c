"""A request on one rank, ready to run: its payload, and the program and baseline on it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from p2smt.runtime.job import JobRequest
from p2smt.runtime.options import RunOptions
from p2smt.runtime.payload import Array, Cutting, spread
from p2smt.runtime.programs.rank_program import RankProgram, cut
from p2smt.runtime.programs.regions import RowMoves, RowsHeld, moves_of
from p2smt.runtime.site import Site


@dataclass(frozen=True, slots=True)
class SingleCollective:
    """The single collective over the same payload; ``held``: the rows that a rank then holds."""

    program: RankProgram
    held: RowsHeld


@dataclass(slots=True)
class Prepared:
    """``flat`` is the padded payload, ``source`` the values that it is loaded with.

    ``held`` are the rows that the rank holds at the end; ``single`` is None where the request has
    no programs.
    """

    site: Site
    request: JobRequest
    cutting: Cutting
    held: RowsHeld
    source: torch.Tensor
    flat: torch.Tensor
    pieces: list[torch.Tensor]
    program: RankProgram
    single: SingleCollective | None

    def load(self, sign: int = 1) -> None:
        """Give the payload its values anew, or their negatives; nothing of a run before stays."""
        self.flat.copy_(self.source)
        if sign < 0:
            self.flat.neg_()
        self.program.load()
        if self.single is not None:
            self.single.program.load()

    def set_period(self, period: Array) -> None:
        """The values that ``load`` gives: a periodic payload, cut into pieces."""
        spans, rows = self.cutting.spans, self.cutting.rows
        values = np.concatenate([spread(period, span, rows).ravel() for span in spans])
        self.source.copy_(torch.from_numpy(values).to(self.source.dtype))

    def execute(self) -> None:
        """Load and run the program once."""
        self.load()
        self.site.synchronize()
        self.program.run()
        self.site.synchronize()

    def results(self) -> list[Array]:
        """The pieces as they are, in int64 or float64."""
        wide = torch.float64 if self.flat.dtype.is_floating_point else torch.int64
        return [piece.to(device="cpu", dtype=wide).numpy() for piece in self.pieces]


def prepare_request(
    site: Site, request: JobRequest, row_moves: RowMoves, options: RunOptions
) -> Prepared:
    """Allocate the payload, make the groups and prepare the moves."""
    cutting = Cutting.of(request.payload_bytes, options.data_type, request.size, request.chunks)
    data_type: torch.dtype = getattr(torch, options.data_type.value)
    flat = torch.zeros(cutting.padded, dtype=data_type, device=site.device)
    pieces, single, step = cut(flat, cutting), None, request.single()
    program = RankProgram.prepare(row_moves, pieces, site.rank, site.groups)
    if step is not None:
        alone = moves_of(request, (step,), site.ranks)
        whole = [flat.view(request.size, -1)]
        of_rank = RankProgram.prepare(alone, whole, site.rank, site.groups)
        single = SingleCollective(of_rank, alone.held[site.rank])
    held, source = row_moves.held[site.rank], torch.zeros_like(flat)
    return Prepared(site, request, cutting, held, source, flat, pieces, program, single)
