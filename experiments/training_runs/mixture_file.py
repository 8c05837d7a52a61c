"""Files of published runs of mixtures of experts and of low precision: one run a line.

Columns: ``model`` by name (``X N layers``: cut to N), ``kind``, ``gpu``, ``n_gpus``,
``framework``, ``precision``, ``gbs``, ``seq``, the degrees, ``layout`` (layers of each chunk, as
Megatron-LM writes them), what is computed again, ``step_s``, ``source``.  Empty: not published.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence
from dataclasses import replace

from p2smt.errors import InputError
from p2smt.files.yaml_text import read_text
from p2smt.training.efficiency import TrainingRun
from p2smt.training.formulas.stages import chunk_layers
from p2smt.training.measured.measured_runs import MeasuredRun, MeasuredRuns, RunRow
from p2smt.training.model_file import read_model
from p2smt.training.strategy import MODULES, Batch, Recompute, Strategy
from p2smt.training.transformer import LayerRun, Transformer

MAX_BYTES = 16 * 1024 * 1024
FRAMEWORKS: Sequence[tuple[str, str]] = (
    ("megatron-bridge", "megatron-bridge"),
    ("nemo2", "nemo"),
    ("SimuMax", "megatron-core"),
    ("automodel", "automodel"),
    ("primus", "primus"),
)
"""What the column begins or has in it, and the framework that it is."""
COUNTED = ("moe", "dense")
_WITHOUT_FLAGS = "the flags of its recipe are not known"
_UNMODELLED = re.compile(r"deepseek-v4|qwen3-next")
_FLEX = re.compile(r"flex|hybridep|deepep", re.I)


def read_mixtures(path: str) -> MeasuredRuns:
    """The runs of a file; rows that lack what a prediction needs are set aside with the reason.

    Raises:
        InputError: it cannot be read, or a number is none.
    """
    lines = csv.DictReader(io.StringIO(read_text(path, "runs file", MAX_BYTES)), strict=True)
    runs: list[MeasuredRun] = []
    refused: list[tuple[str, str]] = []
    for number, cells in enumerate(lines, start=2):
        row = RunRow({name: text or "" for name, text in cells.items()}, f"{path}, line {number}")
        why = _set_aside(row)
        try:
            if not why:
                runs.append(_built(row))
        except InputError as error:
            why = f"{error.given}: {error.rule}"
        if why:
            refused.append((row.named("id"), why))
    return MeasuredRuns(tuple(runs), tuple(refused))


def _set_aside(row: RunRow) -> str:
    """Why a row is no run to judge predictions by; empty where it is one."""
    if row.text("kind") not in COUNTED:
        return f"kind {row.text('kind')}"
    if not _framework(row):
        return f"framework {row.text('framework')}"
    if _UNMODELLED.search(row.text("model")):
        return f"model {row.text('model')}"
    moe = row.text("kind") == "moe"
    if moe and _assumed(row):
        return _WITHOUT_FLAGS
    needed = ("n_gpus", "gbs", "seq", "mbs", "step_s", "precision", *(("ep",) if moe else ()))
    missing = [name for name in needed if not row.text(name)]
    return f"{', '.join(missing)} not published" if missing else ""


def _assumed(row: RunRow) -> str:
    """What is taken of a dense run whose recipe is not known: that it has no flags."""
    unknown = _framework(row) == "megatron-bridge" and not row.text("flags_from")
    return _WITHOUT_FLAGS if unknown else ""


def _framework(row: RunRow) -> str:
    given = row.text("framework")
    return next((name for part, name in FRAMEWORKS if part in given), "")


def _built(row: RunRow) -> MeasuredRun:
    model = _model(row.named("model"), row.text("mtp") == "0")
    strategy = _strategy(row, model)
    batch = Batch(row.count("gbs"), row.count("seq"))
    return MeasuredRun(
        name=row.named("id"),
        group=model.name,
        sweep="",
        framework=_framework(row),
        hardware=row.named("gpu").lower(),
        training=TrainingRun(model, batch, strategy),
        step_s=row.seconds("step_s"),
        assumed=_assumed(row),
        counted=not _assumed(row),
    )


def _model(text: str, without_mtp: bool) -> Transformer:
    name, _, cut = text.partition(" ")
    model = read_model(name)
    if cut:
        every = model.each_kind
        count = int(cut.split()[0])
        kept = [every[0], *every[len(every) - count + 1 :]]
        order = LayerRun.of(kept) if model.order else ()
        model = replace(model, layers=count, order=order, mtp=0)
    return replace(model, mtp=0) if without_mtp else model


def _strategy(row: RunRow, model: Transformer) -> Strategy:
    def degree(column: str) -> int:
        return row.count(column) if row.text(column) else 1

    devices, tp, pp, cp = row.count("n_gpus"), degree("tp"), degree("pp"), degree("cp")
    if devices % (tp * pp * cp):
        raise row.error("n_gpus", f"is no multiple of tp, pp and cp, {tp * pp * cp}")
    dp = devices // (tp * pp * cp)
    again = row.text("recompute").split("(")[0].replace(",", " ").split()
    full = "full" in again
    sharded = row.text("fsdp") not in ("", "0")
    strategy = Strategy(
        tp=tp,
        pp=pp,
        dp=dp,
        cp=cp,
        vpp=degree("vpp"),
        micro_batch=row.count("mbs"),
        sequence_parallel=tp > 1,
        zero=3 if sharded and dp * cp > 1 else int(dp * cp > 1),
        recompute=Recompute.FULL if full else Recompute.NONE,
        dtype=_dtype(row.text("precision")),
        ep=degree("ep"),
        etp=degree("etp"),
        dispatcher="flex" if _FLEX.search(row.text("dispatcher")) else "alltoall",
        overlap=row.text("a2a_overlap") == "1",
        modules=() if full else tuple(name for name in MODULES if name in again),
        graphs={"partial": "partial", "full iteration": "full"}.get(
            row.text("cuda_graphs"), "none"
        ),
        fp8_attention=row.text("fp8_attention") == "1",
    )
    return replace(strategy, split=_split(row.text("layout"), model, strategy))


def _dtype(precision: str) -> str:
    """bf16, mxfp8, fp8 or nvfp4: a row with two values means the first."""
    first = precision.upper()
    if first.startswith("NVFP4"):
        return "nvfp4"
    if first.startswith(("MXFP8", "FP8-MX")):
        return "mxfp8"
    return "fp8" if first.startswith("FP8") else "bf16"


def _split(layout: str, model: Transformer, strategy: Strategy) -> tuple[int, ...]:
    """Layers of each chunk: as the layout says, as an even split has them, else evenly from the
    front, fewer in the last chunk, as Megatron-Bridge's recipes do."""
    if layout:
        return layout_chunks(layout)
    try:
        chunk_layers(model.layers, strategy, model.mtp)
    except InputError:
        each = -(-(model.layers + 2) // strategy.chunks)
        return _front(model.layers, each, strategy.chunks)
    return ()


def _front(layers: int, each: int, chunks: int) -> tuple[int, ...]:
    found = []
    for left in range(chunks, 0, -1):
        found.append(min(each, layers) if left > 1 else layers)
        layers -= found[-1]
    return tuple(found)


def layout_chunks(layout: str) -> tuple[int, ...]:
    """Layers of each chunk of a layout such as ``Et*4|(t*4|)*14tmL``, as Megatron-LM writes it.

    Raises:
        InputError: a letter or a bracket that such a layout does not have.
    """
    text, before = layout.replace(" ", ""), ""
    while text != before:
        before = text
        text = re.sub(r"\(([^()]*)\)\*(\d+)", lambda found: found[1] * int(found[2]), text)
        text = re.sub(r"([A-Za-z|])\*(\d+)", lambda found: found[1] * int(found[2]), text)
    if set(text) - set("EtmL|"):
        rule = "is no layout of a pipeline: its letters are E, t, m and L"
        raise InputError(f"layout {layout[:60]!r}", rule)
    return tuple(part.count("t") for part in text.split("|"))
