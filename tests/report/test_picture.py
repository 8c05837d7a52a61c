"""Pictures of redistributions: every device's block is where its type says, and the file is SVG."""

from __future__ import annotations

import itertools
import re
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from p2smt.cluster.file import load_topology
from p2smt.cluster.topology import Topology
from p2smt.errors import InputError
from p2smt.report.resharding_picture import held_blocks, picture, write_picture
from p2smt.resharding.endpoints import ends_of
from p2smt.resharding.redistribution_plan import RedistributionPlan
from p2smt.resharding.search import solve_redistribution
from p2smt.resharding.states import ArrayState, Frame
from p2smt.resharding.types import ArrayType, ElementType, Uneven, parse_layout, parse_mesh
from tests.strategies.draws import Draws, draws

SVG = "{http://www.w3.org/2000/svg}"


def array(mesh: str, shape: tuple[int, ...], layout: str, rule: Uneven) -> ArrayType:
    made = parse_mesh(mesh)
    return ArrayType(made, shape, ElementType.F32, parse_layout(layout, made), rule)


def frame_of(shape: tuple[int, ...], rule: Uneven) -> Frame:
    """A frame of two axes; nested where the shape is not even."""
    dims = ",".join("S(a)" if dim == 0 else "R" for dim in range(len(shape)))
    kind = array("a=2,b=4", shape, dims, rule)
    (ends, *_) = ends_of(kind, kind)
    return ends.frame


def chunks(start: int, size: int, ways: list[tuple[int, int]]) -> tuple[int, int]:
    """The part of an interval that chunks of chunks leave: one (index, ways) after the other."""
    for index, count in ways:
        each = -(-size // count)
        skipped = min(index * each, size)
        start, size = start + skipped, min(each, size - skipped)
    return start, start + size


@given(st.sampled_from([(8, 16), (9, 10), (13, 8)]), draws())
def test_blocks_are_chunks_of_chunks(shape: tuple[int, ...], data: Draws) -> None:
    frame = frame_of(shape, Uneven.NESTED if shape[0] % 2 else Uneven.REFUSE)
    digits = data.draw(st.permutations(range(len(frame.digits))))
    split = data.draw(st.integers(0, len(digits)))
    state = ArrayState((tuple(digits[:split]), tuple(digits[split:])))
    found = held_blocks(frame, state)
    for device, place in enumerate(itertools.product(*map(range, frame.sizes))):
        for dim, size in enumerate(shape):
            ways = [(place[digit], frame.sizes[digit]) for digit in state.dims[dim]]
            assert tuple(found[device, dim]) == chunks(0, size, ways)


def test_blocks_are_those_of_devices_not_of_positions() -> None:
    mesh = parse_mesh("a=4", [2, 0, 3, 1])
    kind = ArrayType(mesh, (8,), ElementType.F32, parse_layout("S(a)", mesh))
    (ends, *_) = ends_of(kind, kind)
    found = held_blocks(ends.frame, ends.source)[:, 0, 0]
    assert found.tolist() == [2, 6, 0, 4]


@pytest.fixture(scope="module")
def topology() -> Topology:
    return load_topology("dgx-a100:2").nominal()


def plan_of(topology: Topology, source: str, target: str) -> RedistributionPlan:
    kinds = [array("a=2,b=8", (64, 64), text, Uneven.REFUSE) for text in (source, target)]
    return solve_redistribution(kinds[0], kinds[1], topology)


@pytest.mark.parametrize("source", ["S(a),S(b)", "S(a),R;P(b)"])
def test_a_panel_for_each_type_and_a_square_for_each_device(
    topology: Topology, source: str
) -> None:
    plan = plan_of(topology, source, "R,S(a,b)")
    drawn = ElementTree.fromstring(picture(plan))
    texts = ["".join(element.itertext()) for element in drawn.iter(f"{SVG}text")]
    for state in plan.steps:
        assert any(state.step.text(plan.frame) in text for text in texts)
    squares = [r for r in drawn.iter(f"{SVG}rect") if r.get("fill") == "#f2f2f2"]
    assert len(squares) == 16 * len(plan.states)
    hatched = [r for r in drawn.iter(f"{SVG}rect") if r.get("fill") == "url(#partial)"]
    assert len(hatched) == 16 * sum(bool(state.partial) for state in plan.states)


def test_filled_parts_have_the_size_of_the_blocks(topology: Topology) -> None:
    plan = plan_of(topology, "S(a),S(b)", "R,S(a,b)")
    drawn = ElementTree.fromstring(picture(plan))
    filled = [
        float(rect.get("width", "")) * float(rect.get("height", ""))
        for rect in drawn.iter(f"{SVG}rect")
        if re.fullmatch("#[0-9a-f]{6}", rect.get("fill", ""))
        and rect.get("fill") not in ("#f2f2f2", "#ffffff")
    ]
    sizes = [
        plan.frame.local_bytes(state) / plan.frame.local_bytes(ArrayState(((), ())))
        for state in plan.states
    ]
    expected = np.repeat(sizes, 16) * 30 * 30
    assert filled == pytest.approx(expected.tolist(), rel=0.01)


@pytest.mark.parametrize("target", ["R,S(a),S(b),R", "R,S(a),S(b:(1)2),S(b:(2)2)"])
def test_blocks_look_alike_only_where_they_are_the_same(target: str) -> None:
    """Of arrays sharded in three and four dimensions: by what is drawn and written of a block."""
    kinds = [
        array("a=2,b=4", (8, 8, 8, 8), text, Uneven.REFUSE) for text in ("S(a),S(b),R,R", target)
    ]
    plan = solve_redistribution(kinds[0], kinds[1], load_topology("azure-ndv4:1").nominal())
    text = picture(plan)
    assert "; under it elements of dimension 2" in text
    rows = re.findall(
        r"#f2f2f2' stroke='#b0b0b0'/>\n<rect (.*?)/>\n<text x='(\d+)' y='(\d+)'.*?>(.*?)</text>",
        text,
    )
    assert len(rows) == 8 * len(plan.states)
    for number, state in enumerate(plan.states):
        blocks = held_blocks(plan.frame, state)
        for one, other in itertools.combinations(range(8), 2):
            same = bool((blocks[one] == blocks[other]).all())
            looks = [_look(rows[8 * number + device]) for device in (one, other)]
            assert (looks[0] == looks[1]) == same
            colours = [re.findall("#[0-9a-f]{6}", look[0])[0] for look in looks]
            assert (colours[0] == colours[1]) == same


def _look(row: tuple[str, str, str, str]) -> tuple[str, str]:
    """Place and colour within the square, and what is written under it."""
    rect, left, low, under = row
    x, y = (float(re.findall(rf"{name}='([0-9.]+)'", rect)[0]) for name in "xy")
    place = f"{x - float(left):.2f} {y - float(low):.2f}"
    return place + re.sub(r"^x='[0-9.]+' y='[0-9.]+'", "", rect), under


def test_padded_arrays_are_named_so() -> None:
    kinds = [array("a=2,b=4", (13, 9), text, Uneven.PADDED) for text in ("S(a),S(b)", "R,S(b)")]
    plan = solve_redistribution(kinds[0], kinds[1], load_topology("azure-ndv4:1").nominal())
    assert "13,9 padded to 14,12 f32" in picture(plan)


def test_names_are_escaped_and_large_meshes_cut() -> None:
    topology = load_topology("dgx-a100:16").nominal()
    mesh = parse_mesh("a=16,b=8")
    kinds = [
        ArrayType(mesh, (1024,), ElementType.F32, parse_layout(text, mesh))
        for text in ("S(a)", "S(b)")
    ]
    plan = solve_redistribution(kinds[0], kinds[1], topology)
    text = picture(plan)
    assert "the first 64 of 128 devices" in text
    assert text.count("fill='#f2f2f2'") == 64 * len(plan.states)
    ElementTree.fromstring(text)


def test_a_picture_is_named_svg(topology: Topology, tmp_path: Path) -> None:
    plan = plan_of(topology, "S(a),S(b)", "R,S(a,b)")
    write_picture(plan, str(tmp_path / "made.svg"))
    assert (tmp_path / "made.svg").read_text() == picture(plan)
    with pytest.raises(InputError, match=r"must be named \.svg"):
        write_picture(plan, str(tmp_path / "made.png"))
