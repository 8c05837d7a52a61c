"""Frameworks that are known, by name and by the published runs that they trained."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

from p2smt.errors import InputError
from p2smt.files.suggest import did_you_mean
from p2smt.files.validation import validated
from p2smt.files.yaml_text import load_yaml
from p2smt.workload.efficiencies.file_model import FrameworkModel, FrameworksModel
from p2smt.workload.efficiency import Framework

FOLDER = "p2smt.workload.efficiencies"
_FILE = "frameworks.yaml"


def framework_names() -> tuple[str, ...]:
    """Their names, sorted."""
    return tuple(sorted(_known()))


def framework(name: str) -> Framework:
    """What a framework overlaps.

    Raises:
        InputError: it is not known.
    """
    found = _found(name)
    return Framework(
        name=found.name,
        tp_hidden=found.tp_hidden,
        pp_hidden=found.pp_hidden,
        dp_hidden=found.dp_hidden,
        fetch_hidden=found.fetch_hidden,
        gradient_bytes=found.gradient_bytes,
        gradient_bytes_fp16=found.gradient_bytes_fp16,
        attention=found.attention,
    )


def layer_seconds(name: str) -> float:
    """What launches of a layer's kernels take in a framework, forward and backward.

    Raises:
        InputError: the framework is not known.
    """
    return _found(name).layer_s


def framework_of_group(group: str) -> str:
    """The framework of a group of published runs; empty where that is not known."""
    for name, found in _known().items():
        if group.startswith(tuple(found.groups)):
            return name
    return ""


def _found(name: str) -> FrameworkModel:
    found = _known().get(name)
    if found is None:
        names = framework_names()
        remedy = did_you_mean(name, names) or f"known are {', '.join(names)}"
        raise InputError(f"framework {name[:40]!r}", "is not known", remedy)
    return found


@cache
def _known() -> dict[str, FrameworkModel]:
    text = files(FOLDER).joinpath(_FILE).read_text(encoding="utf-8")
    read = validated(FrameworksModel, load_yaml(text, _FILE), _FILE)
    return {found.name: found for found in read.frameworks}
