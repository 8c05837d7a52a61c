"""What is claimed of memory: peaks, and whether a run fits.  Writes the page and the constants.

python -m experiments.training_runs.memory_study
"""

from __future__ import annotations

import csv
import statistics
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from experiments.testbed.script import ended
from experiments.training_runs.failed_runs import (
    MIXTURES,
    USED,
    Outcome,
    predicted_bytes,
    published,
    reported,
    reports,
)
from experiments.training_runs.megatron_memory import Peak, tests_peaks
from experiments.training_runs.mixture_file import read_mixtures
from experiments.training_runs.store import HERE
from p2smt.errors import InputError
from p2smt.training.efficiencies.frameworks import framework
from p2smt.training.memory_verdict import MemoryVerdict, memory_verdict, usable_bytes
from p2smt.training.strategy import strategy_text

PAGE = HERE / "memory.md"
LARGE_BYTES = 10 * 10**9
NEAR, NEAR_LARGE = 0.08, 0.06
"""Errors above these are listed with their reason: of tests below and from ``LARGE_BYTES``."""
MOST_REFUSED, MOST_TIGHT = 0.03, 0.2
"""Of runs that ran, the most that may be said not to fit, and to be tight."""
GRID = [part / 100 for part in range(50, 101)]
PAIRS = [(fits, usable) for usable in GRID for fits in GRID if fits <= usable]
WORKSPACES = "workspaces of cuBLAS and Transformer Engine, 0.1 to 0.3 GB, are not counted"
REASONS = {
    "attn_cudagraph": "probably in pools of captured graphs, which torch does not count",
    "fine_grained_offloading": "its activations lie on the host",
    "multi_dist_optimizer_instances": "the optimizer is sharded over a half of dp: two copies",
    "deepseek_proxy_fsdp_ep2_fsdp2": "trained in fp32: --bf16 is not given, which no strategy has",
    "flextron": "elastic: routers of widths and soft masks beside the model",
    "tunable_overlap": "micro-batches in groups of 5 where there are 4 stages, so more are held",
    "hybrid_mr_mcore_te_tp2_pp1_cp1": "two images, 5.9 and 3.9 GB; predicted is the former",
    "ep8_resume": "tokens are gathered from all ranks (--moe-token-dispatcher-type allgather)",
    "8experts2parallel": WORKSPACES,
    "groupedGEMM": WORKSPACES,
}
"""By a part of a test's name: why it is predicted wrongly."""
FAILURES = {
    "Megatron-Bridge/issues/3597": "a regression: gathering in fp4 is to take less, and takes more",
    "stanford_alpaca": "an Adam that is not fused: in its step a copy of the parameters more",
    "DeepSpeed/issues": "DeepSpeed of 2020: probably its flattened copies",
    "gpt-neox/issues/409": "DeepSpeed of 2021: probably its flattened copies",
}
"""By a part of a report's name: why a run that failed is said to fit."""


@dataclass(frozen=True, slots=True)
class Figures:
    """Parts of the runs of a half: of those that failed, and of those that ran."""

    failed: int
    ran: int
    failed_fit: float
    failed_tight: float
    ran_not: float
    ran_tight: float

    @staticmethod
    def of(outcomes: Sequence[Outcome], fits: float, usable: float) -> Figures:
        """What the two parts of a device's memory say of runs."""
        failed, ran = (
            [one.share for one in outcomes if one.failed is how] for how in (True, False)
        )
        return Figures(
            len(failed),
            len(ran),
            _part(failed, 0, fits),
            _part(failed, fits, usable),
            _part(ran, usable, float("inf")),
            _part(ran, fits, usable),
        )


def _part(shares: Sequence[float], above: float, most: float) -> float:
    return sum(above < share <= most for share in shares) / len(shares)


def fitted(outcomes: Sequence[Outcome]) -> tuple[float, float]:
    """The parts of a device up to which a run fits, and above which it does not.

    Of those that keep to ``MOST_REFUSED`` and ``MOST_TIGHT``, that which says of the fewest failed
    runs that they fit; of these that with the least reserve, then that with the most that is tight.
    """

    def cost(pair: tuple[float, float]) -> tuple[float, float, float]:
        return Figures.of(outcomes, *pair).failed_fit, -pair[1], pair[0]

    return min(filter(lambda pair: _kept(Figures.of(outcomes, *pair)), PAIRS), key=cost)


def _kept(found: Figures) -> bool:
    tight = max(found.ran_tight, found.failed_tight)
    return found.ran_not <= MOST_REFUSED and tight <= MOST_TIGHT


def published_peaks() -> Iterator[Peak]:
    """Runs with a published time and peak: of SimuMax's measurements on B200, each layout once."""
    found = {run.name: run for run in read_mixtures(str(MIXTURES)).runs}
    facts = framework("megatron-core")
    seen = set()
    with MIXTURES.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            run = found.get(row["id"])
            if run is None or not row["mem_gb"]:
                continue
            training, model = run.training, row["model"]
            key = (model, training.batch.tokens, training.strategy)
            if key not in seen:
                seen.add(key)
                text = strategy_text(training.strategy)
                name = f"{model}, {training.batch.tokens:,} tokens"
                measured = float(row["mem_gb"]) * 10**9
                yield Peak(name, text, measured, predicted_bytes(training, facts))


def page() -> str:
    """The page of the study."""
    outcomes = (*reported(), *published())
    seen, unseen = ([one for one in outcomes if one.seen is half] for half in (True, False))
    rows, tests, others = reports(), list(tests_peaks()), list(published_peaks())
    used = {row["source"] for row in rows if row["status"] in USED}
    fits, usable = fitted(seen)
    return TEXT.format(
        tests=len(tests),
        median=f"{statistics.median(abs(one.error) for one in tests):.1%}",
        large=_peaks([one for one in tests if one.measured_bytes >= LARGE_BYTES]),
        wrong=_reasons(tests),
        published=_peaks(others),
        fits=f"{fits:.0%}",
        usable=f"{usable:.0%}",
        figures=_figures(seen, unseen, fits, usable),
        reports=len({row["source"] for row in rows}),
        used=len(used),
        misses=_misses(outcomes),
        unused=_unused(rows),
        every=_table(("run", "need of the device", "said", "it"), map(_outcome, reported())),
    )


def _peaks(found: Iterable[Peak]) -> str:
    return _table(
        ("run", "strategy", "measured", "predicted", "error"),
        (
            (
                one.name,
                f"`{one.strategy}`",
                f"{one.measured_bytes / 1e9:.1f} GB",
                f"{one.predicted_bytes / 1e9:.1f} GB",
                f"{one.error:+.1%}",
            )
            for one in found
        ),
    )


def _reasons(tests: Iterable[Peak]) -> str:
    def wrong(one: Peak) -> bool:
        return abs(one.error) > (NEAR_LARGE if one.measured_bytes >= LARGE_BYTES else NEAR)

    return _table(
        ("test", "measured", "error", "why"),
        (
            (
                one.name,
                f"{one.measured_bytes / 1e9:.1f} GB",
                f"{one.error:+.0%}",
                _why(one.name, REASONS),
            )
            for one in tests
            if wrong(one)
        ),
    )


def _figures(seen: Sequence[Outcome], unseen: Sequence[Outcome], fits: float, usable: float) -> str:
    halves = {"fitted to": seen, "**not seen**": unseen}
    rows = []
    for name, half in halves.items():
        found = Figures.of(half, fits, usable)
        parts = (found.failed_fit, found.failed_tight, found.ran_not, found.ran_tight)
        rows.append((name, str(found.failed), str(found.ran), *(f"{one:.1%}" for one in parts)))
    head = ("half", "failed", "ran", "failed: said to fit", "tight")
    return _table((*head, "ran: said not to", "tight"), rows)


def _misses(outcomes: Iterable[Outcome]) -> str:
    missed = [one for one in outcomes if one.failed and _verdict(one) is MemoryVerdict.FITS]
    return "\n".join(f"* {_short(one.report)}: {_why(one.report, FAILURES)}" for one in missed)


def _unused(rows: Iterable[dict[str, str]]) -> str:
    why = Counter(row["status"] for row in rows if row["status"] not in USED)
    return "\n".join(f"* {many}: {name.removeprefix('not used: ')}" for name, many in why.items())


def _outcome(one: Outcome) -> tuple[str, ...]:
    told = "failed" if one.failed else "ran"
    return (_short(one.report), f"{one.share:.0%}", _verdict(one).value, told)


def _verdict(one: Outcome) -> MemoryVerdict:
    return memory_verdict(int(one.needed_bytes), usable_bytes(int(one.device_bytes)))


def _short(report: str) -> str:
    return report.removeprefix("https://github.com/")


def _why(name: str, reasons: dict[str, str]) -> str:
    return next((why for part, why in reasons.items() if part in name), "")


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


TEXT = """# Memory: peaks, and whether a run fits

Written by `make training-memory`. No number here has another origin. Nothing in the bytes is
fitted; the two parts of a device that the verdict rests on are.

## Megatron-LM's own tests

[mcore_memory.csv](mcore_memory.csv): peaks that functional tests of Megatron-LM measured (GPT,
mixtures, hybrids, from 2 GB; a path and commit in each row), on the last rank, the median over
images; predicted from the options as the tests give them. Of {tests} tests the median error is
{median}. Those from 10 GB:

{large}

Wrong by more than 8 %, or by 6 % from 10 GB:

{wrong}

## Published peaks

Of [mixtures.csv](mixtures.csv): torch's peak of allocated bytes on 8 B200, a row in each layout.

{published}

## Whether a run fits

[failed_runs.csv](failed_runs.csv) has every report of memory that did not suffice that the searches
of [failed_queries.txt](failed_queries.txt) returned: {reports} reports, {used} of them with options
that tell what ran. Runs that ran are theirs, and those with a published time in
[runs.csv](runs.csv) and mixtures.csv whose options are known. They were split by report (of
published runs by model, framework and device), by a hash, before any fit.

Fitted are two parts of a device's memory as nvidia-smi counts it. A run that is predicted to need
up to {fits} of it fits, above {usable} it does not fit, between them it is tight. Of the pairs that
say of at most 3 % of the runs that ran that they do not fit, and of at most 20 % of either kind
that they are tight, it is that which says of the fewest failed runs that they fit, with the least
reserve. Numbers are of the first half alone; that the reserve is to be the least, where several fit
alike, was decided when both had been looked at.

{figures}

Failed runs that are said to fit:

{misses}

{every}

## Reports that are not used

{unused}
"""


def main(arguments: Sequence[str]) -> None:
    """Write the page.

    Raises:
        InputError: there are arguments.
    """
    if arguments:
        raise InputError(f"{len(arguments)} arguments", "none is expected")
    PAGE.write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    sys.exit(ended(main, sys.argv[1:]))
