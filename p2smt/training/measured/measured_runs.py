"""Training runs whose iteration somebody measured and published, and their files.

A file has comma-separated values, one run a line, and a header of columns.  ``group`` = the unit to
leave out; ``sweep`` = runs that differ in the strategy only; ``mbs`` may be empty (not published);
``kind`` other than dense, and ``status`` other than ok, are set aside.  Runs that name no framework
are taken as Megatron's.  A framework ignores ``sp`` where tp is 1, and ``zero`` where dp and cp
are: runs may have them.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files

from p2smt.errors import InputError, did_you_mean
from p2smt.files.yaml_text import read_text
from p2smt.training.efficiencies.frameworks import framework, framework_of_group, named_hardware
from p2smt.training.efficiency import Efficiency, TrainingRun
from p2smt.training.search.plan_answer import StrategyRun
from p2smt.training.strategy import (
    MIXTURE_FIELDS,
    Batch,
    Recompute,
    Strategy,
    parse_strategy,
    strategy_text,
)
from p2smt.training.transformer import Transformer


@dataclass(frozen=True, slots=True)
class MeasuredRun:
    """What ran, where, and the seconds of an iteration.

    ``group``: runs of one model from one source, which are left out together; ``sweep``: runs
    that differ in the strategy only, or empty.  ``framework`` and ``hardware`` are names.
    ``assumed``: what the source does not say.  ``counted``: whether the strategy is published
    well enough to judge a prediction by the run; ``names_framework``: whether the file says what
    trained it, or its group is one of published runs.
    """

    name: str
    group: str
    sweep: str
    framework: str
    hardware: str
    training: TrainingRun
    step_s: float
    assumed: str = ""
    counted: bool = True
    names_framework: bool = True


@dataclass(frozen=True, slots=True)
class MeasuredRuns:
    """The runs of a file, and what of it is no run that can be predicted: (row, why)."""

    runs: tuple[MeasuredRun, ...]
    refused: tuple[tuple[str, str], ...]

    @property
    def counted(self) -> tuple[MeasuredRun, ...]:
        """The runs that predictions are judged by."""
        return tuple(run for run in self.runs if run.counted)


# Strategies of published runs, without their times: what an answer is near to, or outside of.


FOLDER = "p2smt.training.measured"
FILE = "strategies.csv"
COLUMNS = ("family", "framework", "efficiencies", "run", "strategy")


def strategies_text(rows: Sequence[tuple[MeasuredRun, str, Sequence[str]]]) -> str:
    """The file of the strategies of runs, each with the family of its devices and the names of the
    efficiencies that were fitted to it.
    """
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(COLUMNS)
    for run, family, fitted in rows:
        training = run.training
        where = f"{training.strategy.devices} {run.hardware}"
        name = f"{training.model.name} on {where} ({run.framework}, {run.name})"
        text = strategy_text(training.strategy)
        writer.writerow((family, run.framework, " ".join(fitted), name, text))
    return out.getvalue()


@cache
def measured_strategies(efficiency: Efficiency) -> tuple[StrategyRun, ...]:
    """Those of the runs that an efficiency was fitted to; of one that does not come with the
    package, those of its framework on its devices.

    What another framework ran says nothing of this one's constants.
    """
    text = files(FOLDER).joinpath(FILE).read_text(encoding="utf-8")
    rows = list(csv.DictReader(io.StringIO(text)))
    fitted = [row for row in rows if efficiency.name in row["efficiencies"].split()]
    alike = (efficiency.device, efficiency.framework.name)
    mine = fitted or [row for row in rows if (row["family"], row["framework"]) == alike]
    return tuple(StrategyRun(row["run"], parse_strategy(row["strategy"])) for row in mine)


def searched_strategies(
    efficiency: Efficiency, *, experts: bool = False
) -> tuple[StrategyRun, ...]:
    """Those of :func:`measured_strategies` that a search of dense models could choose, or of models
    with ``experts``: how these are spread says nothing of the others."""
    says = _spread if experts else _dense
    return tuple(one for one in measured_strategies(efficiency) if says(one.strategy))


def _spread(strategy: Strategy) -> bool:
    return strategy.ep > 1


def runs_beside(run: TrainingRun, efficiency: Efficiency) -> tuple[StrategyRun, ...]:
    """The fitted runs that say something of a run: of a dense model's only such, of a mixture's
    those of mixtures."""
    if run.model.experts:
        return searched_strategies(efficiency, experts=True)
    dense = run.model.seen(run.batch.tokens).dense and _dense(run.strategy)
    return searched_strategies(efficiency) if dense else measured_strategies(efficiency)


def _dense(strategy: Strategy) -> bool:
    usual = Strategy()
    return all(getattr(strategy, name) == getattr(usual, name) for name in MIXTURE_FIELDS)


MAX_BYTES = 16 * 1024 * 1024
MAX_RUNS = 20_000
DOUBTED = re.compile(r"\b(mbs|vpp|dp)\b")
"""Columns that a run's ``assumed`` must not name for it to count."""


def read_runs(path: str) -> MeasuredRuns:
    """The runs of a file.

    Raises:
        InputError: it cannot be read, lacks a column, has a bad value or no run.
    """
    return parse_runs(read_text(path, "runs file", MAX_BYTES), path[:200])


def parse_runs(text: str, source: str) -> MeasuredRuns:
    """The runs of a text; ``source`` names it in messages.

    Raises:
        InputError: as of :func:`read_runs`.
    """
    runs: list[MeasuredRun] = []
    refused: list[tuple[str, str]] = []
    names: set[str] = set()
    for row in _rows(text, source):
        name = row.named("id")
        if name in names:
            raise row.error("id", "is there twice", "give every run its own")
        names.add(name)
        why = _set_aside(row)
        if why:
            refused.append((name, why))
        else:
            runs.append(_run(row))
    if not runs:
        raise InputError(source, "has no run of a dense model that was timed", "add runs")
    return MeasuredRuns(tuple(runs), tuple(refused))


def _rows(text: str, source: str) -> Iterator[RunRow]:
    lines = csv.reader(io.StringIO(text.removeprefix("\ufeff"), newline=""), strict=True)
    try:
        header = [name.strip() for name in next(lines, [])]
        check_header(header, source)
        for number, cells in enumerate((cells for cells in lines if cells), start=1):
            where = f"{source}, line {lines.line_num}"
            if number > MAX_RUNS:
                raise InputError(source, f"has more than {MAX_RUNS} runs", "split the file")
            if len(cells) != len(header):
                rule = f"has {len(cells)} cells, the header {len(header)}"
                raise InputError(where, rule, "put texts with commas in quotes")
            yield RunRow(dict(zip(header, cells, strict=True)), where)
    except csv.Error as error:
        where = f"{source}, line {lines.line_num}"
        raise InputError(where, f"is not comma-separated: {error}", "correct it") from None


def _set_aside(row: RunRow) -> str:
    """Why a row is no run that the model predicts; empty where it is one."""
    if row.text("kind") not in ("", "dense"):
        return f"a model of kind {row.text('kind')[:40]}; dense ones are predicted only"
    if row.text("status") not in ("", "ok"):
        return f"status {row.text('status')[:40]}"
    return ""


def _run(row: RunRow) -> MeasuredRun:
    try:
        return _built(row)
    except InputError as error:
        if error.given.startswith(row.where):
            raise
        raise InputError(f"{row.where}: {error.given}", error.rule, error.remedy) from None


def _built(row: RunRow) -> MeasuredRun:
    assumed, group = row.text("assumed"), row.named("group")
    usual = named_hardware(row.named("hardware")).framework
    named = row.text("framework") or framework_of_group(group)
    framework(named or usual)  # refuses a name that is not known, on its line
    batch = Batch(row.count("gbs"), row.count("seq"))
    return MeasuredRun(
        name=row.named("id"),
        group=group,
        sweep=row.text("sweep"),
        framework=named or usual,
        hardware=row.text("hardware"),
        training=TrainingRun(_model(row), batch, _strategy(row)),
        step_s=row.seconds("step_s"),
        assumed=assumed,
        counted=bool(row.text("mbs")) and not DOUBTED.search(assumed),
        names_framework=bool(named),
    )


def _model(row: RunRow) -> Transformer:
    hidden, heads = row.count("hidden"), row.count("heads")
    if hidden % heads:
        raise row.error("hidden", f"is no multiple of heads, {heads}")
    return Transformer(
        name=row.named("model"),
        layers=row.count("layers"),
        hidden=hidden,
        heads=heads,
        kv_heads=row.count("kv_heads"),
        ffn=row.count("ffn"),
        gated=row.switch("gated"),
        vocab=row.count("vocab"),
        head_size=hidden // heads,
    )


def _strategy(row: RunRow) -> Strategy:
    choices = [choice.value for choice in Recompute]
    if row.text("recompute") not in choices:
        raise row.error("recompute", f"must be one of {', '.join(choices)}")
    said = Strategy(
        tp=row.count("tp"),
        pp=row.count("pp"),
        dp=row.count("dp"),
        cp=row.count("cp"),
        vpp=row.count("vpp"),
        micro_batch=row.count("mbs") if row.text("mbs") else 1,
        sequence_parallel=row.switch("sp"),
        zero=row.count("zero", 0),
        recompute=Recompute(row.text("recompute")),
        flash=row.switch("flash"),
        dtype=row.named("precision"),
    )
    split, sharded = said.sequence_parallel and said.tp > 1, said.dp * said.cp > 1
    return replace(said, sequence_parallel=split, zero=said.zero if sharded else 0)


# Columns of a file of runs, and one row's texts as values.


NEEDED = (
    *("id", "group", "model", "layers", "hidden", "heads", "kv_heads", "ffn", "gated", "vocab"),
    *("seq", "gbs", "mbs", "hardware", "precision", "tp", "sp", "cp", "pp", "vpp", "dp"),
    *("zero", "recompute", "flash", "step_s"),
)
"""Columns that every file of runs has."""
OPTIONAL = ("sweep", "kind", "status", "assumed", "framework")
"""Columns that are read where a file has them; others are left alone."""
MOST_DIGITS = 9


def check_header(header: Sequence[str], source: str) -> None:
    """Refuse a file that lacks a column, or has one twice.

    Raises:
        InputError: naming the columns.
    """
    missing = [name for name in NEEDED if name not in header]
    if len(missing) == len(NEEDED):
        remedy = f"its first line names the columns: {', '.join(NEEDED)}"
        raise InputError(source, "has none of the columns of a runs file", remedy)
    if missing:
        rest = [name for name in header if name not in (*NEEDED, *OPTIONAL)]
        remedy = f"the columns are {', '.join(NEEDED)}"
        near = did_you_mean(missing[0], rest)
        given = f"{source}: no column {', '.join(missing)}"
        raise InputError(given, "every one of these is needed", near or remedy)
    twice = [name for name in (*NEEDED, *OPTIONAL) if header.count(name) > 1]
    if twice:
        raise InputError(f"{source}: column {twice[0]}", "is there twice", "keep one of them")


class RunRow:
    """A line of the file: ``where`` names it in messages."""

    __slots__ = ("_texts", "where")

    def __init__(self, texts: Mapping[str, str], where: str) -> None:
        self._texts, self.where = texts, where

    def text(self, column: str) -> str:
        """What a column says; empty also where the file has no such column."""
        return self._texts.get(column, "").strip()

    def named(self, column: str) -> str:
        """As :meth:`text`, which must say something.

        Raises:
            InputError: it is empty.
        """
        found = self.text(column)
        if not found:
            raise self.error(column, "must not be empty")
        return found

    def count(self, column: str, least: int = 1) -> int:
        """A whole number.

        Raises:
            InputError: it is none, or below ``least``.
        """
        text = self.text(column)
        if not (text.isascii() and text.isdigit() and len(text) <= MOST_DIGITS):
            raise self.error(column, f"must be a whole number of at most {MOST_DIGITS} digits")
        if int(text) < least:
            raise self.error(column, f"must be at least {least}")
        return int(text)

    def switch(self, column: str) -> bool:
        """0 or 1.

        Raises:
            InputError: it is neither.
        """
        if self.text(column) not in ("0", "1"):
            raise self.error(column, "must be 0 or 1")
        return self.text(column) == "1"

    def seconds(self, column: str) -> float:
        """A time above zero.

        Raises:
            InputError: it is none.
        """
        try:
            value = float(self.text(column))
        except ValueError:
            raise self.error(column, "must be a number of seconds") from None
        if not 0 < value < 10**MOST_DIGITS:
            rule = f"must be more than 0 seconds and less than 1e{MOST_DIGITS}"
            raise self.error(column, rule, "leave out runs that were not timed")
        return value

    def error(self, column: str, rule: str, remedy: str = "correct the file") -> InputError:
        """An error about a column of this line."""
        return InputError(f"{self.where}: {column} {self.text(column)[:40]!r}", rule, remedy)
