"""Pages of forests and of schedules by payload: what they draw, and what they refuse to draw."""

from __future__ import annotations

import json
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from p2smt.cli.codes import BAD_INPUT
from p2smt.interop.fabrics import read_fabric
from p2smt.report.page.sources import story_of
from p2smt.report.page.story import Still
from p2smt.report.schedules.forest_picture import LinkLoads, drawn_trees, forest_svg
from p2smt.report.schedules.size_picture import BOUND, MODEL, SizeCurves, size_svg
from p2smt.result import SearchLimits
from p2smt.synthesis.certificate.certificate import BoundedCollective
from p2smt.synthesis.certificate.forest import ForestClaim
from p2smt.synthesis.forests.network import ground_of_fabric
from p2smt.synthesis.forests.throughput import throughput
from tests.cli.tools import assert_one_error, cli
from tests.report.page.inputs import read
from tests.synthesis.sizes.made import gathered

SVG = "{http://www.w3.org/2000/svg}"


def still(path: Path) -> str:
    """The one picture of a file's story."""
    found = [p for s in story_of([str(path)]).sections for p in s.pictures if isinstance(p, Still)]
    assert len(found) == 1
    return found[0].svg


def marks(text: str, tag: str) -> list[ElementTree.Element]:
    return list(ElementTree.fromstring(text).iter(f"{SVG}{tag}"))


def claim(fabric: str, collective: BoundedCollective) -> ForestClaim:
    root = 0 if collective.rooted else None
    found = throughput(ground_of_fabric(read_fabric(fabric), root, ()), collective, SearchLimits())
    assert found is not None
    return found.claim


@pytest.mark.parametrize("fabric", ["ring:5", "dgx1", "dgx-a100:2"])
@pytest.mark.parametrize("collective", [BoundedCollective.ALL_REDUCE, BoundedCollective.BROADCAST])
def test_every_tree_drawn_has_all_ranks_and_their_messages(
    fabric: str, collective: BoundedCollective
) -> None:
    forest = claim(fabric, collective)
    trees, ranks = drawn_trees(forest), forest.network.ranks
    text = forest_svg(forest, "a < b & c")
    assert len(marks(text, "circle")) == ranks * len(trees)
    assert len(marks(text, "line")) == (ranks - 1) * len(trees)
    assert {adds for _, adds in trees} == {bool(forest.adding), False}
    assert "a < b & c" in [one.text for one in marks(text, "text")]


def test_links_are_as_busy_as_the_trees_make_them() -> None:
    """A ring of 4 broadcasts in two halves: both ways round, so six of eight links are full."""
    rows = list(LinkLoads.of(claim("ring:4", BoundedCollective.BROADCAST)).rows())
    assert {share for _, _, share in rows} == {1}
    assert sum(alike for _, alike, _ in rows) == 6


def test_a_forest_is_checked_for_its_page(inputs: Path, tmp_path: Path) -> None:
    story = story_of([str(inputs / "forest.json")])
    assert story.verdict.startswith("Checked: all-reduce on dgx-a100:2")
    assert story.figures[0].value == "173.3 GB/s"
    data = read(inputs / "forest.json")
    data["copying"][0]["weight"] = "1/1000"
    (tmp_path / "wrong.json").write_text(json.dumps(data))
    wrong = story_of([str(tmp_path / "wrong.json")])
    assert wrong.verdict.startswith("Wrong: ")
    assert not wrong.sections


def test_names_of_links_are_not_left_out(inputs: Path) -> None:
    done = cli("report", "--anonymous", str(inputs / "forest.json"), "-o", "page.html")
    assert_one_error(done, BAD_INPUT)
    assert "names of links" in done.err
    hidden = cli("show", "--anonymous", str(inputs / "times.json"))
    assert hidden.code == 0
    assert "dgx1" not in hidden.out


def test_times_of_an_answer_stand_beside_the_library(inputs: Path) -> None:
    text, story = still(inputs / "sizes.json"), story_of([str(inputs / "sizes.json")])
    assert len(marks(text, "polyline")) == 4
    assert any("nccl" in (one.text or "") for one in marks(text, "text"))
    assert story.figures[0].value == "1x"
    assert re.search(r"synthesized, then nccl-[\d.]+ from", story.figures[2].value)


def test_a_certificate_has_no_library(inputs: Path) -> None:
    assert len(marks(still(inputs / "times.json"), "polyline")) == 2


def test_the_bound_is_below_the_schedules() -> None:
    certificate = gathered().certificate
    assert certificate is not None
    curves = SizeCurves.of_certificate(certificate)
    found = {name: dict(points) for name, points in curves.curves}
    assert set(found) == {BOUND, MODEL}
    assert all(found[MODEL][n] >= s for n, s in found[BOUND].items())
    assert [low for low, _ in curves.pieces] == sorted(low for low, _ in curves.pieces)
    y = [float(one.split(",")[1]) for one in _points(size_svg(curves), 0)]
    assert y == sorted(y, reverse=True)  # more bytes take longer


def _points(text: str, number: int) -> list[str]:
    return marks(text, "polyline")[number].attrib["points"].split()


def test_one_payload_has_no_picture(tmp_path: Path) -> None:
    asked = "synthesize -t dgx1-v100:1 --fabric dgx1 --collective all-gather --size 1MiB --json"
    path = tmp_path / "one.json"
    path.write_text(cli(*asked.split()).out)
    story = story_of([str(path)])
    assert not any(isinstance(p, Still) for s in story.sections for p in s.pictures)
    data = read(path)
    data["spans"][0]["ratio"] = "1/0"
    path.write_text(json.dumps(data))
    done = cli("show", str(path))
    assert_one_error(done, BAD_INPUT)
    assert "no fraction" in done.err
