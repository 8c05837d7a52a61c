"""How many pieces, which rows to leave out, and how good the fit is.

Outliers are found first, against the most pieces that the rows allow, so that a lack of pieces
is not taken for noise.  The number of pieces is the least one whose held-out error is within
one standard error of the best (Breiman, Friedman, Olshen, Stone 1984, section 3.4.3), in a
cross-validation whose folds take every fifth size.  Nothing is random.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from p2smt.calibration.effective.constants import LEAST_S
from p2smt.calibration.lines import fit_lines
from p2smt.calibration.rows import Floats, Row, make_table, piece_names
from p2smt.cluster.topology import Piece
from p2smt.errors import InputError

MAX_PIECES = 3
SIZES_PER_PIECE = 4
"""Distinct loads that a fit needs for each of its pieces."""

MAX_OUTLIERS = 0.2
"""The largest share of rows that may be left out."""

_FOLDS = 5
_NEVER_OUTLYING, _SIGMAS = 0.15, 5.0  # of abs(log(predicted / measured))
_TOLERANCE = 1e-3  # two held-out errors closer than this count as equal
_MAD = 1.4826  # median absolute deviation to standard deviation, of a normal distribution

Mask = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Fit:
    """The pieces of one link for one set of rows.

    ``errors`` holds predicted / measured - 1 of every row, ``outliers`` the rows left out,
    ``held_out`` the held-out error (mean of abs(log(predicted / measured))) of 1, 2, .. pieces,
    and ``held_out_errors`` that of each row with the number of pieces chosen (inf: left out).
    """

    pieces: tuple[Piece, ...]
    errors: tuple[float, ...]
    outliers: tuple[int, ...]
    held_out: tuple[float, ...]
    held_out_errors: tuple[float, ...]

    @property
    def median_error(self) -> float:
        """Median of abs(predicted / measured - 1) over the rows that are not left out."""
        return float(np.median(np.abs(self._kept())))

    @property
    def max_error(self) -> float:
        """The largest abs(predicted / measured - 1) of a row that is not left out."""
        return float(np.abs(self._kept()).max())

    def _kept(self) -> Floats:
        return np.delete(np.array(self.errors), list(self.outliers))


def fit_pieces(rows: Sequence[Row], inner: Sequence[str] = (), what: str = "the fit") -> Fit:
    """The robust fit of a link to some rows.

    ``inner`` are the names of the pieces inside, which the found pieces take over.

    Raises:
        InputError: there are fewer than four distinct loads.
    """
    most = _most_pieces(rows, what)
    kept = _inliers(rows, inner, most)
    return fit_kept(rows, kept, inner, what)


def fit_kept(rows: Sequence[Row], kept: Mask, inner: Sequence[str] = (), what: str = "") -> Fit:
    """The same where it is known which rows are to be left out."""
    inliers = [row for row, keep in zip(rows, kept, strict=True) if keep]
    most = _most_pieces(rows, what)
    tries = [_held_out(inliers, inner, count) for count in range(1, most + 1)]
    return _fit_of(rows, kept, inner, _fewest(tries), tries)


def _most_pieces(rows: Sequence[Row], what: str) -> int:
    sizes = len({row.load_bytes for row in rows})
    if sizes < SIZES_PER_PIECE:
        raise InputError(
            f"{what}: {sizes} message sizes" if sizes else f"{what}: no measurement",
            f"a fit needs at least {SIZES_PER_PIECE} different ones, "
            f"{SIZES_PER_PIECE * MAX_PIECES} for {MAX_PIECES} pieces",
            "measure more sizes",
        )
    return min(MAX_PIECES, sizes // SIZES_PER_PIECE)


def _inliers(rows: Sequence[Row], inner: Sequence[str], count: int) -> Mask:
    """The rows that are no outliers of the most flexible fit."""
    table = make_table(rows, piece_names(count, inner))
    slack = np.log1p([row.slack for row in rows])
    kept = np.ones(len(rows), dtype=bool)
    for _ in range(5):
        off = np.abs(fit_lines(table.take(kept), count).log_errors(table))
        limit = max(_NEVER_OUTLYING, _SIGMAS * _MAD * float(np.median(off[kept])))
        now = _worst_left_out(off - slack, limit)
        if (now == kept).all():
            break
        kept = now
    return kept


def _worst_left_out(off: Floats, limit: float) -> Mask:
    kept = np.ones(len(off), dtype=bool)
    worst = np.argsort(-off, kind="stable")[: int(MAX_OUTLIERS * len(off))]
    kept[worst[off[worst] > limit]] = False
    return kept


def _held_out(rows: Sequence[Row], inner: Sequence[str], count: int) -> Floats:
    """abs(log(predicted / measured)) of each row, by fits that did not see its size."""
    table = make_table(rows, piece_names(count, inner))
    _, rank = np.unique(table.load_bytes[:, 0], return_inverse=True)
    folds = min(_FOLDS, int(rank.max()) + 1)
    found = np.zeros(len(rows))
    for fold in range(folds):
        out = rank % folds == fold
        lines = fit_lines(table.take(~out), count)
        found[out] = np.abs(lines.log_errors(table.take(out)))
    return found


def _fewest(tries: Sequence[Floats]) -> int:
    """The fewest pieces within one standard error of the best."""
    means = [float(errors.mean()) for errors in tries]
    best = int(np.argmin(means))
    spread = float(tries[best].std(ddof=1)) / math.sqrt(len(tries[best]))
    return 1 + next(i for i, mean in enumerate(means) if mean <= means[best] + spread + _TOLERANCE)


def _fit_of(
    rows: Sequence[Row], kept: Mask, inner: Sequence[str], count: int, tries: Sequence[Floats]
) -> Fit:
    """The final fit; a piece that no row uses is dropped by fitting one less."""
    names = piece_names(count, inner)
    table = make_table(rows, names)
    lines = fit_lines(table.take(kept), count)
    if len(lines.used(table.take(kept))) < count:
        return _fit_of(rows, kept, inner, count - 1, tries)
    held_out = np.full(len(rows), math.inf)
    held_out[kept] = tries[count - 1]
    order = _order(rows, lines.latency_s)
    return Fit(
        tuple(
            Piece(name, _latency(lines.latency_s[k]), _rounded(1 / lines.seconds_per_byte[k]))
            for name, k in zip(names, order, strict=True)
        ),
        tuple(float(e) for e in np.expm1(lines.log_errors(table))),
        tuple(int(r) for r in np.flatnonzero(~kept)),
        tuple(float(errors.mean()) for errors in tries),
        tuple(float(e) for e in held_out),
    )


def _latency(seconds: float) -> float:
    """A fitted latency; 0 for one that is too short to have been measured."""
    return _rounded(seconds) if seconds >= LEAST_S else 0.0


def _rounded(value: float) -> float:
    """Six digits: all that a measurement can tell, and a file that people can read."""
    return float(f"{value:.6g}")


def _order(rows: Sequence[Row], latency: Floats) -> list[int]:
    """Lines by latency, the highest first, where names do not pair them with inner pieces."""
    if any(ask.inside for row in rows for ask in row.asks):
        return list(range(len(latency)))
    return [int(k) for k in np.argsort(-latency, kind="stable")]
