"""The space-time picture: an arrow for each message, with the colours and dashes it should have."""

from __future__ import annotations

from collections import Counter
from xml.etree import ElementTree

from p2smt.fabric.fabric_file import load_fabric
from p2smt.problems.schedule import Arrival, FinalSum, SumSchedule, SumSend, SumStep
from p2smt.report.schedules.space_time import MOST_ARROWS, space_time_svg
from tests.synthesis.lowering.copies import solved
from tests.synthesis.lowering.sums import edges_of, ring_all_reduce

RING = load_fabric("ring:4")
SVG = "{http://www.w3.org/2000/svg}"


def arrows(text: str) -> list[dict[str, str]]:
    """Lines with a colour of their own: those of messages."""
    root = ElementTree.fromstring(text)
    assert root.tag == f"{SVG}svg"
    return [line.attrib for line in root.iter(f"{SVG}line") if line.get("stroke") != "#d8d8d8"]


def words(text: str) -> list[str]:
    return [found.text or "" for found in ElementTree.fromstring(text).iter(f"{SVG}text")]


def test_copies_have_their_roots_colours() -> None:
    sums = solved("dgx1", "allgather", (2, 3, 2))
    text = space_time_svg(sums, fabric=load_fabric("dgx1"), roots=[c // 2 for c in range(16)])
    drawn = arrows(text)
    assert len(drawn) == sum(len(step.sends) for step in sums.steps)
    assert set(Counter(line["stroke"] for line in drawn).values()) == {14}  # 2 chunks to 7 others
    assert not any("stroke-dasharray" in line for line in drawn)
    assert {"1: 2 rounds", "2: 1 round"} & set(words(text)) or "1: 1 round" in words(text)
    assert {f"rank {rank}" for rank in range(8)} <= set(words(text))


def test_sums_are_dashed_until_they_are_whole() -> None:
    sums = ring_all_reduce(edges_of(RING), 4)
    text = space_time_svg(sums, fabric=RING, title="<all> & more")
    assert words(text)[0] == "<all> & more: 6 steps, 6 rounds, 24 messages"
    looks = Counter(("stroke-dasharray" in a, float(a["stroke-width"]) > 2) for a in arrows(text))
    assert looks == {(False, False): 4, (True, False): 8, (False, True): 12}
    assert len({line["stroke"] for line in arrows(text)}) == 4


def test_arrows_lead_from_sender_to_receiver_in_their_column() -> None:
    drawn = arrows(space_time_svg(ring_all_reduce(edges_of(RING), 4), fabric=RING))
    starts = sorted({float(line["x1"]) for line in drawn})
    assert len(starts) == 6
    rows = sorted({float(line["y1"]) for line in drawn})
    for line in drawn:
        down = float(line["y2"]) > float(line["y1"])
        assert down == (float(line["y1"]) < rows[-1])
        assert float(line["x1"]) < float(line["x2"])


def test_more_rounds_are_wider() -> None:
    send = SumSend(0, 0, (None,))
    results = (FinalSum(0, 1, (Arrival(0, 0),)),)
    texts = [
        space_time_svg(SumSchedule((SumStep(n, (send,)),), results), fabric=load_fabric("ring:2"))
        for n in (2, 9)
    ]
    sizes = [
        max(float(r.get("width", 0)) for r in ElementTree.fromstring(t).iter(f"{SVG}rect"))
        for t in texts
    ]
    assert sizes[0] < sizes[1]


def heat(text: str) -> list[dict[str, str]]:
    """What a row shows; the first rectangles are the ground and the legend."""
    return [one.attrib for one in ElementTree.fromstring(text).iter(f"{SVG}rect")][7:]


def test_very_many_messages_are_a_heat_map() -> None:
    fabric, count = load_fabric("ring:2"), MOST_ARROWS + 1
    sends = tuple(SumSend(c, 0, (None,)) for c in range(count))
    full, half = (SumStep(rounds, sends) for rounds in (count, 2 * count))
    text = space_time_svg(SumSchedule((full, half, SumStep(1, ())), ()), fabric=fabric)
    assert arrows(text) == []
    row = heat(text)
    assert len(row) == 3
    assert len({one["fill"] for one in row}) == 3
    assert fabric.capacities[fabric.edges[0].loads[0]].name in words(text)


def test_many_ranks_are_a_heat_map_whose_equal_steps_are_one() -> None:
    fabric = load_fabric("ring:25")
    sums = ring_all_reduce(edges_of(fabric), 25)
    row = heat(space_time_svg(sums, fabric=fabric))
    assert len(row) == 25
    assert len({(one["fill"], one["width"], one["x"]) for one in row}) == 1
    assert [float(one["y"]) for one in row] == sorted({float(one["y"]) for one in row})
