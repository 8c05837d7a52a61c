"""Pictures and pages of transfers: squares are the pairs that send, bars are ports' times."""

from __future__ import annotations

import json
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from p2smt.report.transfers import picture
from p2smt.report.transfers.picture import drawn_ports, transfer_picture
from p2smt.report.transfers.told import ToldTransfer
from p2smt.result import SearchLimits
from p2smt.transfer.answer import TransferAnswer
from p2smt.transfer.question import TransferQuestion
from p2smt.transfer.search import plan_moves
from tests.cli.tools import TINY, assert_one_error, cli
from tests.transfer.cases import Case, cluster, random_case
from tests.transfer.files import COLUMNS, ROWS

SVG = "{http://www.w3.org/2000/svg}"


def told(case: Case, memory: int | None = None) -> ToldTransfer:
    layouts = case.before, case.after
    places = case.sources, case.targets
    question = TransferQuestion(cluster(8, 4), *layouts, *places, 2, True, memory)
    found = plan_moves(question.moves, question.ports, 2, SearchLimits())
    return ToldTransfer.of_answer(TransferAnswer(question, found))


@pytest.mark.parametrize("same", [True, False])
def test_every_pair_of_nodes_has_a_square(same: bool) -> None:
    one = told(random_case(3, 8, 12, same=same))
    drawn = ElementTree.fromstring(transfer_picture(one))
    titles = [str(title.text) for title in drawn.iter(f"{SVG}title")]
    node = one.question.ports.node
    pairs = {(node(a), node(b)) for a, b in one.replay.sent if node(a) != node(b)}
    assert {title.split(":")[0] for title in titles if title.startswith("node")} == {
        f"node {a} to {b}" for a, b in pairs
    }
    busiest, inside = one.inside
    assert sum(title.startswith("gpu") for title in titles) == len(inside)
    assert all(node(a) == node(b) == busiest for a, b in inside)


def test_ports_are_drawn_as_long_as_they_take() -> None:
    """Bar by bar: together the time of the port, on the scale of the whole."""
    one = told(random_case(3, 8, 12, same=False), memory=10_000)
    assert one.times.count > 1
    drawn = ElementTree.fromstring(transfer_picture(one))
    widths: dict[str, float] = {}
    track = 0.0
    for rect in drawn.iter(f"{SVG}rect"):
        if rect.get("height") == "14.00" and rect.get("fill") == "#f6f6f6":
            track = float(rect.attrib["width"])
        elif rect.get("height") == "14.00":
            widths[rect.attrib["y"]] = widths.get(rect.attrib["y"], 0) + float(rect.attrib["width"])
    chosen = [one.seconds[port] for port in drawn_ports(one)]
    assert list(widths.values()) == pytest.approx(
        [track * seconds / one.total_s for seconds in chosen], abs=0.02 * one.times.count
    )


@pytest.mark.parametrize("most", [1, 48])
def test_buckets_that_are_too_many_are_said_to_be(
    monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    monkeypatch.setattr(picture, "MOST_BUCKETS", most)
    one = told(random_case(3, 8, 12, same=False), memory=10_000)
    assert 1 < one.times.count <= 48
    said = f"busiest ports over time, all {one.times.count} buckets as one"
    assert (said in transfer_picture(one)) == (most == 1)


def test_hops_are_the_least_on_a_way() -> None:
    one = told(random_case(1, 4, 16, same=False))
    for piece in one.pieces:
        depth = dict.fromkeys({source for source, _ in piece.edges}, 0)
        for source, target in piece.edges:
            depth[target] = depth[source] + 1
            assert one.hops[source, target] <= depth[target]
    assert set(one.hops) == set(one.replay.sent)
    assert min(one.hops.values()) == 1


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name, data in (("rows.json", ROWS), ("columns.json", COLUMNS)):
        (tmp_path / name).write_text(json.dumps(data))
    (tmp_path / "tiny.yaml").write_text(TINY)
    return tmp_path


ASKED = ("transfer", "-t", "tiny.yaml", "--from", "rows.json", "--to", "columns.json")


def test_a_plan_is_shown_and_reported(folder: Path) -> None:
    done = cli(*ASKED, "--to-device-ids", "4-7", "-o", "plan.json", "--svg", "plan.svg")
    assert done.code == 0, done.err
    assert "picture written to plan.svg" in done.out
    verdict = done.out.splitlines()[0]
    ElementTree.fromstring((folder / "plan.svg").read_text())
    shown = cli("show", "plan.json")
    assert shown.code == 0, shown.err
    assert verdict.split(" by ")[0] in shown.out
    assert "Most goes from node 0 to 1" in shown.out
    assert cli("report", "plan.json", "-o", "page.html").code == 0
    page = (folder / "page.html").read_text()
    for heading in ("Where the time goes", "Who sends to whom", "Busiest ports", "Who sits where"):
        assert heading in page
    data = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.S)
    assert data is not None
    (heat,) = [one for one in json.loads(data[1]).values() if one.get("kind") == "heat"]
    assert heat["rows"] == ["0\u21921"]
    assert sum(cell[2] for cell in heat["cells"]) == 16


def test_nothing_that_moves_is_shown(folder: Path) -> None:
    asked = [*ASKED]
    asked[-1] = "rows.json"
    assert cli(*asked, "-o", "plan.json", "--svg", "plan.svg").code == 0
    assert "Nothing is sent" in cli("show", "plan.json").out
    ElementTree.fromstring((folder / "plan.svg").read_text())


@pytest.mark.usefixtures("folder")
def test_a_plan_that_is_not_right_is_not_shown() -> None:
    assert cli(*ASKED, "-o", "plan.json").code == 0
    data = json.loads(Path("plan.json").read_text())
    Path("plan.json").write_text(json.dumps(data | {"pieces": data["pieces"][1:]}))
    done = cli("show", "plan.json")
    assert_one_error(done, 2)
    assert "is in no piece" in done.err
    assert "p2smt verify says more" in done.err


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--svg", "plan.png"), "must be named .svg"),
        (("--code", "plan.txt"), "must be named .py"),
        (("--svg", "none/plan.svg"), "none"),
        (("--code", "none/plan.py"), "none"),
    ],
)
def test_names_of_files_are_looked_at_first(words: tuple[str, ...], said: str) -> None:
    done = cli(*ASKED, *words)
    assert_one_error(done, 2)
    assert said in done.err
