"""The written form of layouts, and the rules of layouts."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

from p2smt.errors import InputError
from p2smt.resharding.types import Layout, ReduceOp, SubAxis, layout_text, parse_layout, parse_mesh
from tests.strategies.redistributions import ArrayScene, array_scenes, random_state
from tests.tiers import examples_of

MESH = parse_mesh("dp=2,tp=8,ep=3")
DP, TP, EP = (SubAxis(i, 1, size) for i, size in enumerate((2, 8, 3)))


@pytest.mark.parametrize(
    ("text", "layout"),
    [
        ("S(dp),S(tp)", Layout(((DP,), (TP,)))),
        ("R,S(dp,tp)", Layout(((), (DP, TP)))),
        ("R,S(tp,dp)", Layout(((), (TP, DP)))),
        ("R", Layout(((),))),
        ("S(tp:(2)4,dp),S(tp:(1)2)", Layout(((SubAxis(1, 2, 4), DP), (SubAxis(1, 1, 2),)))),
        ("R,R;P(dp);P(tp)", Layout(((), ()), (DP, TP))),
        ("R,R;P(dp,max);P(tp,max)", Layout(((), ()), (DP, TP), ReduceOp.MAX)),
        ("S(ep);P(tp:(4)2,avg)", Layout(((EP,),), (SubAxis(1, 4, 2),), ReduceOp.AVG)),
    ],
)
def test_layouts_are_read_and_written(text: str, layout: Layout) -> None:
    assert parse_layout(text, MESH) == layout
    assert layout_text(layout, MESH) == text


def test_spaces_and_the_default_reduction_are_read() -> None:
    found = parse_layout(" S( dp , tp ) , R ; P( ep , sum ) ", MESH)
    assert layout_text(found, MESH) == "S(dp,tp),R;P(ep)"


@settings(derandomize=True, deadline=None, max_examples=examples_of(300))
@given(array_scenes())
def test_what_is_written_is_read_back(scene: ArrayScene) -> None:
    frame = scene.frame
    layout = frame.layout(random_state(scene.shuffle, frame))
    assert parse_layout(layout_text(layout, frame.mesh), frame.mesh) == layout


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "empty entry"),
        ("R,,R", "empty entry"),
        ("S(dp,R", "open bracket"),
        ("S(dp)),R", "open bracket|is none"),
        ("S()", "neither an axis"),
        ("S(dp,)", "neither an axis"),
        ("X(dp)", "'X\\(dp\\)' is none"),
        ("s(dp)", "is none"),
        ("R;S(dp)", "no P\\(axis\\)"),
        ("R;P(dp", "no P\\(axis\\)"),
        ("R;", "no P\\(axis\\)"),
        ("R;P()", "neither an axis"),
        ("R;P(dp,median)", "reduction 'median'"),
        ("R;P(dp,max);P(tp)", "max and sum"),
        ("S(zz)", "'zz': is none"),
        ("S(tp:2)", "neither an axis"),
        ("S(tp:(3)2)", "no such part"),
        ("S(dp),S(dp)", "dp and dp: an axis shards"),
        ("S(dp);P(dp)", "dp and dp: an axis shards"),
        ("S(tp:(1)4,tp:(2)2)", "once at most"),
        ("S(tp),S(tp:(2)4)", "once at most"),
    ],
)
def test_bad_layouts_are_refused_in_one_line(text: str, said: str) -> None:
    with pytest.raises(InputError, match=said) as caught:
        parse_layout(text, MESH)
    assert "\n" not in str(caught.value)


def test_neighbouring_parts_do_not_overlap() -> None:
    parse_layout("S(tp:(1)2,tp:(4)2),S(tp:(2)2)", MESH)
