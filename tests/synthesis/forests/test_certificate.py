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


# Forests of a few arcs, each of which breaks one rule.


def drawn(arcs: list[tuple[int, int, str | None]], ranks: int, **rest: Any) -> Data:
    """An all-gather without trees over vertices of which the first are ranks."""
    vertices = [f"v{n}" for n in range(1 + max(max(arc[:2]) for arc in arcs))]
    net = {"name": "drawn", "ranks": ranks, "measured": False, "without": []}
    return {
        "schema_version": 1,
        "kind": "forest",
        "collective": "all-gather",
        "root": None,
        "time": "1",
        "bound": "1",
        "symmetries": [],
        "parts": [[0]],
        "network": {**net, "vertices": vertices, "arcs": list(map(list, arcs))},
        "copying": [],
        "adding": [],
        **rest,
    }


def tree(root: int, weight: str, *ways: list[int]) -> Data:
    """A tree as a file has it."""
    return {"root": root, "weight": weight, "ways": list(ways)}


def fault(data: Data) -> str:
    """What is wrong with a forest."""
    return check_forest(forest_of(data, "drawn")).faults[0]


BOTH: list[tuple[int, int, str | None]] = [(0, 1, "1"), (1, 0, "1")]
EACH = [tree(0, "1", [0]), tree(1, "1", [1])]
BACK = [tree(0, "1", [1]), tree(1, "1", [0])]
TRIANGLE: list[tuple[int, int, str | None]] = [
    *((0, 1, "1"), (1, 2, "1"), (2, 0, "1")),
    *((1, 0, "1"), (2, 1, "1"), (0, 2, "1")),
]


def test_the_honest_ones_are_accepted() -> None:
    assert check_forest(forest_of(drawn(BOTH, 2, copying=EACH), "drawn")).valid
    reduced = {"collective": "all-reduce", "parts": [[0], [1]], "time": "2", "bound": "2"}
    data = drawn(BOTH, 2, copying=EACH, adding=BACK)
    assert check_forest(forest_of(data | reduced, "drawn")).valid


@pytest.mark.parametrize(
    ("arcs", "ranks", "moves"),
    [
        (TRIANGLE, 2, [[0, 1], [1, 2], [2, 0]]),  # a rank to a switch
        ([(0, 1, "1"), (1, 0, "2")], 2, [[0, 1], [1, 0]]),  # to another bandwidth
        ([*BOTH, (0, 1, "1")], 2, [[0, 1], [1, 0]]),  # two arcs to one
        (TRIANGLE, 3, [[0, 1], [1, 2]]),  # two of three
    ],
)
def test_maps_that_are_no_symmetries(
    arcs: list[tuple[int, int, str | None]], ranks: int, moves: list[list[int]]
) -> None:
    data = drawn(arcs, ranks, symmetries=[moves], copying=[tree(0, "1", [0])])
    assert fault(data) == "symmetry 1 does not keep ranks, root and arcs"


def test_a_symmetry_keeps_the_root() -> None:
    asked = {"collective": "broadcast", "root": 0, "parts": [[1]], "symmetries": [[[0, 1], [1, 0]]]}
    data = drawn(BOTH, 2, copying=EACH[:1]) | asked
    assert fault(data) == "symmetry 1 does not keep ranks, root and arcs"
    assert check_forest(forest_of(data | {"symmetries": []}, "drawn")).valid


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"adding": BACK}, "has no trees of that kind"),
        ({"copying": EACH[:1]}, "do not add up to 1"),
        ({"parts": [[0], [1]]}, "all-gather has one part"),
        ({"parts": [[0, 1]]}, "what enters it has no limit"),
        ({"collective": "broadcast", "root": 0, "parts": [[1]]}, "a root that has no data"),
        (
            {"collective": "all-reduce", "parts": [[0], [0, 1]], "adding": BACK},
            "every rank has to be in just one part",
        ),
        (
            {
                "collective": "all-reduce",
                "parts": [[0], [1]],
                "copying": [tree(0, "2", [0])],
                "adding": [tree(1, "2", [0])],
            },
            "copies another part than it adds up",
        ),
        (
            {
                "collective": "all-reduce",
                "parts": [[0], [1]],
                "copying": [tree(0, "1", [0])],
                "adding": [tree(0, "1", [1])],
            },
            "do not add up to 1 for each",
        ),
    ],
)
def test_forests_that_break_a_rule(changed: Data, words: str) -> None:
    assert words in fault(drawn(BOTH, 2, copying=EACH) | changed)


def test_ways_go_from_rank_to_rank_over_what_carries_something() -> None:
    asked = {"collective": "broadcast", "root": 0, "parts": [[2]]}
    through = [tree(0, "1", [0], [0, 1])]
    chain: list[tuple[int, int, str | None]] = [(0, 1, "1"), (1, 2, "1")]
    assert "from one rank to the next" in fault(drawn(chain, 3, copying=through) | asked)
    dry: list[tuple[int, int, str | None]] = [(0, 1, "0"), (1, 2, "1")]
    along = [tree(0, "1", [0], [1])]
    assert "carries nothing" in fault(drawn(dry, 3, copying=along) | asked)
    assert "has no limit" in fault(drawn([(0, 1, "1"), (1, 2, None)], 3, copying=along) | asked)


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
