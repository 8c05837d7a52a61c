"""How many pieces, which rows to leave out, and how good the fit is.

Outliers are found first, against the most pieces that the rows allow, so that a lack of pieces
is not taken for noise.  The number of pieces is the least one whose held-out error is within
one standard error of the best (Breiman, Friedman, Olshen, Stone 1984, section 3.4.3), in a
cross-validation whose folds take every fifth size.  Nothing is random.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import least_squares

from p2smt.calibration.effective import LEAST_S
from p2smt.calibration.fit_rows import FitTable, Floats, Row, make_table, piece_names
from p2smt.cluster.topology import Piece
from p2smt.errors import InputError

MAX_PIECES = 3
SIZES_PER_PIECE = 4
"""Distinct loads that a fit needs for each of its pieces."""

MAX_OUTLIERS = 0.2
"""The largest share of rows that may be left out."""

_FOLDS = 5
NEVER_OUTLYING, _SIGMAS = 0.15, 5.0  # of abs(log(predicted / measured))
_TOLERANCE = 1e-3  # two held-out errors closer than this count as equal
_MAD = 1.4826  # median absolute deviation to standard deviation, of a normal distribution

Mask = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Fit:
    """The pieces of one link for one set of rows.

    ``errors`` holds predicted / measured - 1 of every row, ``outliers`` the rows left out,
    ``wire_share`` the largest part of a time that bytes make up, ``held_out`` the held-out error
    (mean of abs(log(predicted / measured))) of 1, 2, .. pieces, and ``held_out_errors`` that of
    each row with the number of pieces chosen (inf: left out).
    """

    pieces: tuple[Piece, ...]
    errors: tuple[float, ...]
    outliers: tuple[int, ...]
    held_out: tuple[float, ...]
    held_out_errors: tuple[float, ...]
    wire_share: float = 1.0

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
        limit = max(NEVER_OUTLYING, _SIGMAS * _MAD * float(np.median(off[kept])))
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
        lines.wire_share(table.take(kept)),
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


# The robust fit of a minimum of lines: t = min over i of steps a_i + load b_i.
# (A pipelined tree adds a square root, :mod:`p2smt.cost.bounds`; several algorithms, more
# terms.)
#
# Minimizes the soft-L1 loss of log(predicted / measured), so that every size counts alike and an
# outlier pulls with bounded force.  The loss has local minima: the starts cut the loads into
# consecutive ranges, one line each (between protocols, the message decides), at every choice of
# cuts on a grid, and the best of them are polished.  Nothing is random.


LOSS_SCALE = 0.03
"""Residuals well above this weigh linearly, those below quadratically."""

_CUTS, _POLISHED = 11, 4
_SECONDS_PER_BYTE = (1.0 / 0.99e18, 1.0)  # what a topology allows: 1 B/s to 1e18 B/s


@dataclass(frozen=True, slots=True)
class Lines:
    """Fitted lines: ``latency_s`` and ``seconds_per_byte`` of shape (lines,), and their loss."""

    latency_s: Floats
    seconds_per_byte: Floats
    loss: float

    def predict(self, table: FitTable) -> Floats:
        """Predicted seconds of each row."""
        return np.asarray(_times(table, self.latency_s, self.seconds_per_byte).min(axis=1))

    def used(self, table: FitTable) -> set[int]:
        """The lines that are the least one for some row."""
        best = _times(table, self.latency_s, self.seconds_per_byte).argmin(axis=1)
        return {int(k) for k in np.take_along_axis(table.piece, best[:, None], axis=1).ravel()}

    def wire_share(self, table: FitTable) -> float:
        """The largest part of a predicted time that bytes make up, on this link or inside it."""
        times = _times(table, self.latency_s, self.seconds_per_byte)
        _, wire = _parts(table, self.latency_s, self.seconds_per_byte)
        best = times.argmin(axis=1)[:, None]
        return float(np.take_along_axis(wire / times, best, axis=1).max())

    def log_errors(self, table: FitTable) -> Floats:
        """log(predicted / measured) of each row."""
        return np.asarray(np.log(self.predict(table) / table.seconds))


def fit_lines(table: FitTable, count: int) -> Lines:
    """The best fit of ``count`` lines, highest latency first where the order is free."""
    starts = sorted(
        ((_loss(table, a, b), tuple(a), tuple(b)) for a, b in _starts(table, count)),
        key=lambda start: start[0],
    )
    polished = [_polish(table, np.array(a), np.array(b)) for _, a, b in starts[:_POLISHED]]
    return min(polished, key=lambda lines: lines.loss)


def _parts(table: FitTable, latency: Floats, beta: Floats) -> tuple[Floats, Floats]:
    """Latencies and transfer times of every way."""
    wire = np.maximum(table.load_bytes * beta[table.piece], table.floor_s)
    return table.fixed_s + table.steps * latency[table.piece], wire


def _times(table: FitTable, latency: Floats, beta: Floats) -> Floats:
    """Seconds of every way: A + W, or 2 A + W + sqrt(8 W A) per pass of a pipelined tree."""
    start, wire = _parts(table, latency, beta)
    pipeline = wire + 2 * start + np.sqrt(8 * wire * start)
    return np.where(table.passes > 0, pipeline, start + wire)


def _slopes(table: FitTable, latency: Floats, beta: Floats) -> tuple[Floats, Floats]:
    """Derivatives of every way's time by its latencies A, and by log(b)."""
    start, wire = _parts(table, latency, beta)
    ratio = np.sqrt(np.maximum(wire, 1e-30) / np.maximum(start, 1e-30))
    by_start = np.where(table.passes > 0, 2 + math.sqrt(2) * ratio, 1.0)
    by_wire = np.where(table.passes > 0, 1 + math.sqrt(2) / ratio, 1.0)
    return by_start, np.where(
        table.load_bytes * beta[table.piece] < table.floor_s, 0.0, by_wire * wire
    )


def _loss(table: FitTable, latency: Floats, beta: Floats) -> float:
    z = np.log(_times(table, latency, beta).min(axis=1) / table.seconds) / LOSS_SCALE
    return float(np.mean(2 * (np.sqrt(1 + z * z) - 1)))


def _starts(table: FitTable, count: int) -> Iterator[tuple[Floats, Floats]]:
    """Lines of consecutive load ranges; line 0 is that of the largest messages."""
    order = np.argsort(table.load_bytes[:, 0], kind="stable")
    grid = np.unique(np.linspace(0, len(order), _CUTS + 1).round().astype(int))
    for cuts in combinations(grid[1:-1], min(count - 1, len(grid) - 2)):
        edges = [0, *cuts, len(order)]
        ranges = [order[low:high] for low, high in pairwise(edges)][::-1]
        ranges += [ranges[-1]] * (count - len(ranges))
        latency, beta = np.zeros(count), np.zeros(count)
        for k, chosen in enumerate(ranges):
            least = beta[k - 1] if k else _SECONDS_PER_BYTE[0]
            latency[k], beta[k] = _line(table, chosen, k, least)
        yield latency, beta
        if table.passes.any():  # of whose latencies the line has twice and a root's worth too much
            yield latency / 8, beta


def _line(table: FitTable, chosen: np.ndarray, k: int, least: float) -> tuple[float, float]:
    """One line through some rows in relative error; its slope is at least ``least``.

    A minimum of lines is concave: of smaller messages, a byte costs no less.  Way k of a row
    is the first algorithm by piece k (:func:`p2smt.calibration.fit_rows.make_table`).
    """
    seconds = table.seconds[chosen]
    rest = np.maximum(1 - table.fixed_s[chosen, k] / seconds, 1e-3)
    steps, load = table.steps[chosen, k] / seconds, table.load_bytes[chosen, k] / seconds
    weight = np.ones(len(chosen))
    latency = beta = 0.0
    for _ in range(4):
        latency, beta = _weighted_line(weight, steps, load, rest, least)
        off = (steps * latency + load * beta - rest) / LOSS_SCALE
        weight = 1 / np.sqrt(1 + off * off)
    return latency, beta


def _weighted_line(
    weight: Floats, steps: Floats, load: Floats, rest: Floats, least: float
) -> tuple[float, float]:
    """Least squares of steps a + load b = rest with a >= 0 and b >= ``least``."""
    ss, sl, ll = ((weight * x * y).sum() for x, y in ((steps, steps), (steps, load), (load, load)))
    sr, lr = (weight * steps * rest).sum(), (weight * load * rest).sum()
    determinant = ss * ll - sl * sl
    latency, beta = 0.0, lr / ll
    if determinant > 1e-12 * ss * ll:
        latency, beta = (sr * ll - lr * sl) / determinant, (ss * lr - sl * sr) / determinant
    if latency < 0:
        latency, beta = 0.0, lr / ll
    if beta < least:
        latency, beta = max(0.0, (sr - sl * least) / ss), least
    return float(latency), float(min(beta, _SECONDS_PER_BYTE[1]))


def _polish(table: FitTable, latency: Floats, beta: Floats) -> Lines:
    """A local minimum of the loss near a start; variables are latencies / unit and log(b)."""
    count = len(latency)
    unit = float((table.seconds / table.steps[:, 0]).min())
    low, high = (float(np.log(limit)) for limit in _SECONDS_PER_BYTE)

    def lines(x: Floats) -> tuple[Floats, Floats]:
        return x[:count] * unit, np.exp(x[count:])

    done = least_squares(
        lambda x: np.log(_times(table, *lines(x)).min(axis=1) / table.seconds),
        np.concatenate([latency / unit, np.clip(np.log(beta), low, high)]),
        jac=lambda x: _jacobian(table, *lines(x), unit),
        bounds=([0.0] * count + [low - 1e-6] * count, [np.inf] * count + [high + 1e-6] * count),
        loss="soft_l1",
        f_scale=LOSS_SCALE,
        ftol=1e-13,
        xtol=1e-13,
        gtol=1e-13,
        max_nfev=300,
    )
    found, slopes = lines(done.x)
    slopes = np.clip(slopes, *_SECONDS_PER_BYTE)
    return Lines(found, slopes, _loss(table, found, slopes))


def _jacobian(table: FitTable, latency: Floats, beta: Floats, unit: float) -> Floats:
    """Derivatives of each row's log time by latency / unit and log(b): those of its best way."""
    count, each = len(latency), np.arange(len(table.seconds))
    times = _times(table, latency, beta)
    best = times.argmin(axis=1)
    by_start, by_wire = (part[each, best] for part in _slopes(table, latency, beta))
    k, total = table.piece[each, best], times[each, best]
    found = np.zeros((len(each), 2 * count))
    found[each, k] = by_start * table.steps[each, best] * unit / total
    found[each, count + k] = by_wire / total
    return found
