"""Any text, and files with mistakes: facts, or one line of error."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from p2smt.cluster.topology import MAX_DEVICES, Topology
from p2smt.interop.clusters.astra_sim import ASTRA_SIM
from p2smt.interop.clusters.facts import ClusterFormat
from p2smt.interop.clusters.nodes.node_facts import Told
from p2smt.interop.clusters.read import node_formats
from tests.interop.clusters.nodes.test_astra_sim import TEXT
from tests.interop.clusters.nodes.texts import (
    CUBE,
    alike,
    cells_of,
    devices,
    input_file,
    matrix,
    meshed,
    rocm,
    switched,
    with_cards,
)
from tests.refusals import found_or_refusal, spliced
from tests.strategies.draws import Draws, draws

FORMATS = (*node_formats(Told("a100", 4, 1e9, "roce")), *node_formats(), ASTRA_SIM)
MATRIX = matrix(with_cards(alike(4, "NV4"), [["PIX", "PIX", "SYS", "SYS"]] * 2), ["NIC0", "NIC1"])
FILES = (
    switched(4, ports=2),
    meshed(CUBE, sm=70),
    input_file(4, 2, "0x20b0"),
    MATRIX,
    matrix(cells_of(CUBE)),
    devices(["a", "b"], 2),
    rocm([["0" if i == j else "XGMI" for j in range(4)] for i in range(4)], [[15] * 4] * 4),
    TEXT,
)


def check(text: str, formats: tuple[ClusterFormat, ...] = FORMATS) -> None:
    """Every format takes the text, or refuses it in one line; any other error fails the test."""
    for one in formats:
        one.recognises(text)
        found, said = found_or_refusal(one.read, text, "f")
        if found is None:
            assert said.startswith(("f", "GPU"))
            assert len(said) < 500
            continue
        levels = found.whole or (found.inside.levels if found.inside else ())
        if levels:
            assert 1 <= Topology("t", levels).devices <= MAX_DEVICES
        else:
            assert found.outside is not None


@pytest.mark.parametrize("text", FILES)
def test_files_are_taken_by_their_format(text: str) -> None:
    takers = [one for one in (*node_formats(), ASTRA_SIM) if one.recognises(text)]
    found, said = found_or_refusal(takers[0].read, text, "f")
    assert found or "--gpu" in said


@pytest.mark.parametrize("text", FILES)
def test_every_prefix(text: str) -> None:
    for end in range(0, len(text), max(1, len(text) // 40)):
        check(text[:end])


@given(st.text(max_size=300))
def test_any_text(text: str) -> None:
    check(text)


@given(st.lists(st.sampled_from([*FILES[3].split(), "\n", "\t", "GPU0", "X", "NV4"]), max_size=80))
def test_any_words_of_a_matrix(words: list[str]) -> None:
    check(" ".join(words))


@given(
    st.sampled_from(FILES).flatmap(
        lambda text: spliced(text, "<>/=\"'&;: -0123456789abcdeGPUNVX[]{}\t\n\x00\x1b\u0661")
    )
)
def test_mutations(text: str) -> None:
    check(text)


@given(draws())
def test_lines_dropped_doubled_and_moved(data: Draws) -> None:
    lines = data.draw(st.sampled_from(FILES)).split("\n")
    for _ in range(data.draw(st.integers(1, 3))):
        at, to = (data.draw(st.integers(0, len(lines) - 1)) for _ in range(2))
        match data.draw(st.sampled_from(["drop", "double", "move"])):
            case "drop" if len(lines) > 1:
                del lines[at]
            case "double":
                lines.insert(at, lines[at])
            case _:
                lines[at], lines[to] = lines[to], lines[at]
    check("\n".join(lines))


NUMBERS = st.one_of(st.integers(-3, 200), st.integers(-(10**30), 10**30), st.just(""))


@given(draws())
def test_attributes_of_any_value(data: Draws) -> None:
    parts = data.draw(st.sampled_from(FILES[:3])).split('"')
    for place in data.draw(st.lists(st.integers(0, len(parts) // 2 - 1), min_size=1, max_size=4)):
        parts[2 * place + 1] = str(data.draw(NUMBERS))
    check('"'.join(parts))


@given(
    st.integers(1, 9).flatmap(
        lambda n: st.lists(
            st.lists(st.sampled_from([0, 0, 1, 2, 4, 12]), min_size=n, max_size=n),
            min_size=n,
            max_size=n,
        )
    )
)
def test_any_matrix_of_links(pairs: list[list[int]]) -> None:
    """However GPUs are joined: levels that hold those alike, and the others are named."""
    count = len(pairs)
    both = [[pairs[min(i, j)][max(i, j)] for j in range(count)] for i in range(count)]
    text = matrix(cells_of(both, "NODE"))
    (kind,) = (one for one in node_formats(Told("a100")) if one.recognises(text))
    found, said = found_or_refusal(kind.read, text, "f")
    if found is None or found.inside is None:
        assert "must be alike" in said
    else:
        kept = Topology("t", found.inside.levels).devices
        named = [one.partition("DEVICES=")[2] for one in found.lost if "DEVICES=" in one]
        assert kept == (len(named[-1].split(",")) if named else count)
