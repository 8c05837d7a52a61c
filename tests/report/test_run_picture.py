"""Pictures of runs: every matrix entry and place of a device is where the placement says."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest

from p2smt.api.workload import estimate
from p2smt.cluster.file import parse_topology
from p2smt.parallelism.placement import Placement
from p2smt.report.training.picture import run_picture
from p2smt.training.prediction import RunEstimate
from p2smt.training.strategy import AXES, EXPERT_AXES, Batch
from p2smt.training.transformer import Experts, Transformer
from tests.cli.tools import H100, TINY

SVG = "{http://www.w3.org/2000/svg}"
DENSE = Transformer("dense", 4, 64, 8, 4, 96, True, 100, 8)
MIXTURE = Transformer(*("mixed", 4, 64, 8, 4, 0, True, 100, 8), experts=Experts(8, 2, 48))
FOLDED = "pp=2,dp=2,tp=2,sp=1,ep=2,etp=2,zero=1"


def estimated(model: Transformer, strategy: str) -> RunEstimate:
    cluster = parse_topology(TINY + H100, "tiny")
    return estimate(model, cluster, strategy, Batch(64, 128), "megatron-bridge-h100")


def texts(found: RunEstimate) -> list[str]:
    """The texts of a picture, in their order; it is XML."""
    root = ElementTree.fromstring(run_picture([found]))
    return ["".join(one.itertext()) for one in root.iter(f"{SVG}text")]


def check_matrix(said: list[str], title: str, axes: tuple[str, ...], where: Placement) -> None:
    """That a matrix and the places of devices stand behind its title."""
    at = said.index(title) + 1 + where.width
    for axis, entries in zip(axes, where.matrix, strict=True):
        assert said[at : at + 1 + where.width] == [axis, *map(str, entries)]
        at += 1 + where.width
    several = [name for name, size in zip(axes, where.axis_sizes, strict=True) if size > 1]
    assert said[at] == f"a row for each node; places on {' '.join(several)}"
    ranks = where.rank_tensor()
    for device, words in enumerate(said[at + 1 : at + 1 + ranks.size]):
        place = dict(re.findall(r"([a-z]+)(\d+)", words))
        index = tuple(int(place.get(name, 0)) for name in axes)
        assert ranks[index] == device
        assert list(place) == several


@pytest.mark.parametrize("strategy", ["pp=2,dp=2,tp=2", "dp=8", "cp=2,dp=4,zero=1"])
def test_a_dense_model_has_one_matrix(strategy: str) -> None:
    found = estimated(DENSE, strategy)
    assert found.placement is not None
    said = texts(found)
    check_matrix(said, "parts of each axis at each level", AXES, found.placement)
    assert sum(one.startswith("parts of each axis") for one in said) == 1


@pytest.mark.parametrize("strategy", [FOLDED, "dp=8,ep=4", "cp=2,dp=4,ep=8", "dp=8"])
def test_a_mixture_has_both(strategy: str) -> None:
    found = estimated(MIXTURE, strategy)
    assert found.placement is not None
    assert found.experts is not None
    said = texts(found)
    title = "parts of each axis of {} at each level"
    check_matrix(said, title.format("attention"), AXES, found.placement)
    check_matrix(said, title.format("experts"), EXPERT_AXES, found.experts)


def test_nothing_lies_below_the_picture() -> None:
    root = ElementTree.fromstring(run_picture([estimated(MIXTURE, FOLDED)]))
    boxes = list(root.iter(f"{SVG}rect"))[1:]
    ends = [float(one.attrib["y"]) + float(one.attrib["height"]) for one in boxes]
    assert max(ends) <= float(root.attrib["height"])
    sides = [float(one.attrib["x"]) + float(one.attrib["width"]) for one in boxes]
    assert max(sides) <= float(root.attrib["width"])
