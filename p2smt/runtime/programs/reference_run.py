"""Runs a job on the reference executor: one process, no times."""

from __future__ import annotations

import platform

import numpy as np

from p2smt.runtime.job import Job, JobRequest
from p2smt.runtime.options import RankReport, RequestRun, RunOptions
from p2smt.runtime.payload import Array, Cutting, DataType, spread
from p2smt.runtime.programs.closed_form import (
    compare,
    expected_pieces,
    numbers_of,
    rounded_sum,
    wrong_rows,
)
from p2smt.runtime.programs.reference import run_piece
from p2smt.runtime.programs.regions import RowMoves, RowsHeld, StepError, moves_of

_NUMPY = {DataType.FLOAT32: np.float32, DataType.FLOAT16: np.float16, DataType.INT64: np.int64}
"""numpy has no bfloat16: its integers are summed in float32, and random values not at all."""


def run_reference(job: Job, options: RunOptions) -> list[RankReport]:
    """The reports of all ranks, without times."""
    runs = [_run_request(job, request, options) for request in job.requests]
    machine = {"host": platform.node(), "python": platform.python_version(), "device": "numpy"}
    return [RankReport(rank, [run[rank] for run in runs], machine) for rank in range(job.ranks)]


def _run_request(job: Job, request: JobRequest, options: RunOptions) -> list[RequestRun]:
    runs = [RequestRun() for _ in range(job.ranks)]
    try:
        row_moves = moves_of(request, request.steps, job.ranks)
    except StepError as error:
        runs[error.rank].errors.append(f"{request.name}: {error}")
        return runs
    for wrong in wrong_rows(request, row_moves.held):
        runs[wrong.rank].errors.append(str(wrong))
    cutting = Cutting.of(request.payload_bytes, options.data_type, request.size, request.chunks)
    check = _Check(request, cutting, row_moves, options, runs)
    check.exact()
    if options.data_type in (DataType.FLOAT32, DataType.FLOAT16):
        check.random()
    return runs


class _Check:
    def __init__(
        self,
        request: JobRequest,
        cutting: Cutting,
        row_moves: RowMoves,
        options: RunOptions,
        runs: list[RequestRun],
    ) -> None:
        self.request, self.cutting, self.row_moves, self.runs = request, cutting, row_moves, runs
        self.numbers = numbers_of(request, cutting, options, len(runs))
        self.dtype = _NUMPY.get(options.data_type, np.float32)

    def exact(self) -> None:
        periods: dict[int, Array] = {rank: self.numbers.integers(rank) for rank in self._ranks()}
        results = self._execute(periods)
        for rank in self._ranks():
            right = expected_pieces(self.request, self.cutting, rank, periods.__getitem__)
            self._compare(rank, results[rank], right)
            self.runs[rank].checked = True

    def random(self) -> None:
        periods: dict[int, Array] = {
            rank: self.numbers.floats(rank).astype(self.dtype).astype(np.float64)
            for rank in self._ranks()
        }
        results, values = self._execute(periods), periods.__getitem__
        for rank in self._ranks():
            right, bounds = rounded_sum(self.request, self.cutting, rank, values, self.numbers)
            self._compare(rank, results[rank], right, bounds)
            finite = all(bool(np.isfinite(bound).all()) for bound in bounds)
            self.runs[rank].float_checked = finite

    def _ranks(self) -> list[int]:
        return [rank for group in self.request.groups for rank in group]

    def _execute(self, periods: dict[int, Array]) -> dict[int, list[Array]]:
        """The pieces of every rank after the program, in float64 or int64."""
        found: dict[int, list[Array]] = {rank: [] for rank in periods}
        wide = np.int64 if self.dtype is np.int64 else np.float64
        for span in self.cutting.spans:
            buffers = {
                rank: spread(period, span, self.cutting.rows).astype(self.dtype)
                for rank, period in periods.items()
            }
            run_piece(self.row_moves, buffers)
            for rank, buffer in buffers.items():
                found[rank].append(buffer.astype(wide))
        return found

    def _compare(
        self, rank: int, results: list[Array], right: list[Array], bounds: list[Array] | None = None
    ) -> None:
        held: RowsHeld = self.row_moves.held[rank]
        wrong = compare(self.request, self.cutting, rank, held, results, right, bounds)
        if wrong is not None:
            self.runs[rank].errors.append(str(wrong))
