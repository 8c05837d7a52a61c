"""The list of models that are known by name."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import RenderableType

from p2smt.report.outputs.lists import ListedModel, ModelsOutput
from p2smt.report.tables import table
from p2smt.training.model_file import read_model
from p2smt.training.model_names import model_names, other_names
from p2smt.training.transformer import Attention, LayerKind, Mlp, Transformer
from p2smt.units import plain


def models_data() -> ModelsOutput:
    """What `models` prints."""
    return ModelsOutput(models=[*map(_listed, model_names())])


def one_model_data(name: str) -> ModelsOutput:
    """The same of one model."""
    return ModelsOutput(models=[_listed(name)])


def model_tables() -> Iterator[RenderableType]:
    """The list as a table."""
    columns = ["name", "parameters", "active", "layers"]
    rows = [
        (one.name, _billions(one.parameters), _billions(one.active), one.layers_text)
        for one in models_data().models
    ]
    yield table("models", columns, rows)


def layers_text(model: Transformer) -> str:
    """How many layers of which kind: ``58 MLA + MoE, 3 MLA + dense``."""
    counts = sorted(model.kinds().items(), key=lambda item: -item[1])
    return ", ".join(f"{many} {_kind(kind, model)}" for kind, many in counts)


def _kind(kind: LayerKind, model: Transformer) -> str:
    full = "MLA" if model.mla else "attention"
    windowed = f"{'chunks' if model.chunked else 'window'} {model.window:,}"
    attention = {
        Attention.FULL: full,
        Attention.WINDOW: windowed,
        Attention.MAMBA: "Mamba-2",
        Attention.NONE: "",
    }[kind.attention]
    experts = model.experts and f"{model.experts.active} of {model.experts.count} experts"
    mlp = {Mlp.DENSE: "dense", Mlp.EXPERTS: experts or "", Mlp.NONE: ""}[kind.mlp]
    return " + ".join(part for part in (attention, mlp) if part)


def _billions(parameters: int) -> str:
    return f"{plain(parameters / 1e9, 4, grouped=True)} B"


def _listed(name: str) -> ListedModel:
    model = read_model(name)
    return ListedModel(
        name=name,
        names=list(other_names(name)),
        parameters=model.parameters,
        active=model.active_parameters,
        layers=model.layers,
        layers_text=layers_text(model),
    )
