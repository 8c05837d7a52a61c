"""Files of forests: read back, refused where they are damaged, and not believed where changed."""

from __future__ import annotations

import json
from collections.abc import Callable
from fractions import Fraction
from functools import cache
from typing import Any

import pytest

from p2smt.report.outputs.certificate import ForestModel
from p2smt.synthesis.certificate.certificate import BoundedCollective
from p2smt.synthesis.certificate.forest import check_forest, forest_of, forest_of_text
from tests.refusals import refusal
from tests.synthesis.forests.test_rate import forest

OWN = BoundedCollective
Data = dict[str, Any]
CASES = {
    "gather": ("dgx-a100:2", OWN.ALL_GATHER),
    "scatter": ("dgx1", OWN.REDUCE_SCATTER),
    "send": ("torus:3x3", OWN.BROADCAST),
    "add": ("dgx1", OWN.REDUCE),
    "reduce": ("dgx-a100:2", OWN.ALL_REDUCE),
}


@cache
def text_of(name: str) -> str:
    """The text of a forest."""
    fabric, collective = CASES[name]
    return forest(fabric, collective).claim.text()


@pytest.mark.parametrize("name", CASES)
def test_a_file_says_what_it_is_of(name: str) -> None:
    claim = forest_of_text(text_of(name))
    assert claim.text() == text_of(name)
    assert check_forest(claim).valid
    ForestModel.model_validate_json(text_of(name))


def raised(data: Data, key: str) -> None:
    """A fraction becomes a thousandth larger."""
    data[key] = str(Fraction(data[key]) * Fraction(1001, 1000))


def lowered(data: Data, key: str) -> None:
    """A fraction becomes a thousandth smaller."""
    data[key] = str(Fraction(data[key]) * Fraction(999, 1000))


def trees(data: Data) -> list[Data]:
    """Its trees of either kind."""
    return [*data["copying"], *data["adding"]]


def cut_an_edge(data: Data) -> None:
    """A tree without one of its ways."""
    trees(data)[0]["ways"].pop()


def lead_elsewhere(data: Data) -> None:
    """A way that is another's."""
    ways = trees(data)[0]["ways"]
    ways[0] = ways[1]


def tear(data: Data) -> None:
    """A way over the arcs of another one, too."""
    ways = trees(data)[0]["ways"]
    ways[0] = ways[0] + ways[1]


def move_the_root(data: Data) -> None:
    """A tree of another root."""
    tree = trees(data)[0]
    tree["root"] = (tree["root"] + 1) % data["network"]["ranks"]


def take_a_rank(data: Data) -> None:
    """A part with a rank more, or less."""
    part = data["parts"][0]
    other = next(rank for rank in range(data["network"]["ranks"]) if rank not in part)
    part.append(other)


def forget_a_tree(data: Data) -> None:
    """A tree less."""
    (data["copying"] or data["adding"]).pop()


def narrow_an_arc(data: Data) -> None:
    """Every arc carries a thousandth less."""
    for arc in data["network"]["arcs"]:
        if arc[2] is not None:
            arc[2] = str(Fraction(arc[2]) * Fraction(999, 1000))


CHANGES: dict[str, Callable[[Data], None]] = {
    "time up": lambda data: raised(data, "time"),
    "time down": lambda data: lowered(data, "time"),
    "bound up": lambda data: raised(data, "bound"),
    "bound down": lambda data: lowered(data, "bound"),
    "weight up": lambda data: raised(trees(data)[0], "weight"),
    "weight down": lambda data: lowered(trees(data)[-1], "weight"),
    "edge cut": cut_an_edge,
    "edge twice": lead_elsewhere,
    "edge torn": tear,
    "root moved": move_the_root,
    "rank taken": take_a_rank,
    "tree forgotten": forget_a_tree,
    "arcs narrowed": narrow_an_arc,
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("name", CASES)
def test_what_was_changed_is_not_believed(name: str, change: str) -> None:
    data = json.loads(text_of(name))
    CHANGES[change](data)
    report = check_forest(forest_of(data, "changed"))
    assert not report.valid
    assert len(report.faults) == 1


def test_symmetries_are_not_believed() -> None:
    for number in range(len(json.loads(text_of("gather"))["symmetries"])):
        data = json.loads(text_of("gather"))
        moves = data["symmetries"][number]
        moves[0][1], moves[1][1] = moves[1][1], moves[0][1]
        assert not check_forest(forest_of(data, "changed")).valid
    data = json.loads(text_of("gather"))
    data["symmetries"] = []
    assert not check_forest(forest_of(data, "changed")).valid
    data = json.loads(text_of("send"))
    data["symmetries"].append([[0, 1], [1, 0]])
    assert not check_forest(forest_of(data, "changed")).valid


@pytest.mark.parametrize("part", [[], ["a switch"]])
def test_parts_without_ranks_prove_nothing(part: list[str]) -> None:
    data = json.loads(text_of("reduce"))
    data["parts"].append([data["network"]["ranks"] for _ in part])  # the first behind the ranks
    for bound in (data["bound"], data["time"]):
        report = check_forest(forest_of(data | {"bound": bound}, "changed"))
        assert report.faults == ("a part has no ranks, or what enters it has no limit",)


def _set(*path: Any, value: object) -> Callable[[Data], None]:
    def change(data: Data) -> None:
        at: Any = data
        for key in path[:-1]:
            at = at[key]
        at[path[-1]] = value

    return change


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (_set("kind", value="trees"), "schema_version and kind"),
        (_set("schema_version", value=2), "schema_version and kind"),
        (_set("collective", value="all-to-all"), "collective"),
        (_set("root", value=0), "must be null"),
        (_set("time", value=0.5), "time"),
        (_set("more", value=1), "keys"),
        (_set("network", "ranks", value=-1), "ranks"),
        (_set("network", "measured", value=1), "measured"),
        (_set("network", "arcs", 0, value=[0, 1]), "an arc"),
        (_set("network", "arcs", 0, 0, value=10**6), "vertex"),
        (_set("parts", 0, value=[1, 1]), "twice"),
        (_set("symmetries", 0, value=[[1, 2], [1, 3]]), "twice"),
        (_set("copying", 0, "ways", 0, 0, value=-1), "arc"),
        (_set("copying", 0, "weight", value="1/0"), "weight"),
    ],
)
def test_files_that_are_none(change: Callable[[Data], None], words: str) -> None:
    data = json.loads(text_of("gather"))
    change(data)
    assert words in refusal(forest_of, data, "forest 'file.json'")
