"""Malformed, truncated, hostile and huge MSCCL XML: one line of error, bounded work."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from p2smt.errors import TooLarge
from p2smt.interop.msccl import parse as checked_xml
from p2smt.interop.msccl import parse as msccl_parse
from p2smt.interop.msccl.read import read_msccl
from p2smt.schedules.model import Schedule
from p2smt.schedules.verify.verify import verify
from tests.interop.msccl.texts import algo, block, gpu, ring, step, swap
from tests.refusals import found_or_refusal, spliced
from tests.strategies.draws import Draws, draws

RING, SWAP = ring(2), swap()
COPY = SWAP.replace("</gpu>", '<copy i_off="0" o_off="1"/></gpu>')
BOMB = """<!DOCTYPE algo [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;"><!ENTITY c "&b;&b;&b;&b;">]>
<algo name="&c;" ngpus="1" coll="allreduce"/>"""
EXTERNAL = """
<!DOCTYPE algo [<!ENTITY x SYSTEM "file:///etc/passwd">]><algo name="&x;"/>"""
OUTSIDE = '<!DOCTYPE algo SYSTEM "http://localhost/algo.dtd"><algo/>'


def outcome(text: str) -> Schedule | str:
    """The schedule, or the one line that refuses it; any other error fails the test."""
    found, said = found_or_refusal(read_msccl, text, "f.xml")
    assert found or (said.startswith("f.xml") and len(said) < 400)
    return found or said


@pytest.mark.parametrize("text", [BOMB, EXTERNAL, OUTSIDE])
def test_document_types_and_entities_are_refused(text: str) -> None:
    shown = outcome(text)
    line = 1 + text.index("<!DOCTYPE")
    assert shown == f"f.xml, line {line}: a document type or an entity is refused; leave it out"


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("", "is empty"),
        (" ", "no element found"),
        ("<", "is not valid XML"),
        ("<gpu/>", "the file holds <gpu>"),
        ("<algo>" * 100_000, "<algo> holds <algo>"),
        ('<algo ngpus="1" coll="allreduce">' + "<a>" * 100_000, "<algo> holds <a>"),
        (f"<{'x' * 100_000}/>", "the file holds <xxx"),
        (RING.replace("test", "&x;"), "undefined entity"),
        (RING.replace("test", "\x00"), "invalid token"),
        (RING.replace("test", "\ud800"), "is not valid XML"),
        (RING.replace("<algo", "<algo inplace='1'"), "duplicate attribute"),
        (RING + RING, "a second <algo> begins; give each a file of its own"),
        (RING + "<!-- -->" + RING, "junk after document element"),
        ("<?xml version='1.0' encoding='ebcdic'?>" + RING.replace('"2"', '"x"'), "'x'"),
        (RING.replace('id="0"', f'id="{"9" * 5000}"', 1), "id='9999"),
    ],
)
def test_malformed(text: str, what: str) -> None:
    shown = outcome(text)
    assert isinstance(shown, str)
    assert what in shown


def test_no_more_than_so_many_characters(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checked_xml, "MAX_CHARACTERS", len(RING))
    assert isinstance(outcome(RING), Schedule)
    assert outcome(RING + " ") == f"f.xml: is longer than {len(RING)} characters; shorten it"


def test_no_more_than_so_many_elements(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checked_xml, "MAX_ELEMENTS", 11)
    assert isinstance(outcome(RING), Schedule)
    monkeypatch.setattr(checked_xml, "MAX_ELEMENTS", 10)
    assert outcome(RING) == "f.xml, line 13: <step> is beyond 10 elements; split the file"


def test_no_more_than_so_many_chunks_moved(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(msccl_parse, "MAX_MOVED", 4)
    with pytest.raises(TooLarge, match=r"line 8: <step> is beyond 4 chunks handled"):
        read_msccl(ring(3), "f.xml")


def test_huge_numbers_cost_nothing() -> None:
    """What is far out of bounds is found to be so without going there."""
    most = 2**31 - 1
    body = block(0, step(0, "cpy", f"s{most}", f"o-{most}", cnt=most, depid=most, deps=most))
    schedule = outcome(algo([gpu(0, body), gpu(1)]))
    assert isinstance(schedule, Schedule)
    assert {v.kind for v in verify(schedule).violations} >= {"out-of-bounds", "unknown-dependency"}


@pytest.mark.parametrize("text", [RING, COPY])
def test_every_prefix(text: str) -> None:
    whole = text.rstrip()
    for end in range(0, len(whole), 7):
        assert isinstance(outcome(whole[:end]), str)


@given(
    st.sampled_from([RING, SWAP, COPY]).flatmap(
        lambda text: spliced(text, "<>/=\"'&; -0123456789abcdeiorst\n\x00\u0661")
    )
)
def test_mutations(text: str) -> None:
    outcome(text)


NUMBERS = st.one_of(
    st.integers(-3, 5), st.integers(-(10**31), 10**31), st.sampled_from(["NaN", "inf", "", "0x1"])
)


@given(draws())
def test_attributes_of_any_value(data: Draws) -> None:
    """Whatever the attributes are: refused, or a schedule that the checker can judge."""
    lines = SWAP.split('"')
    for place in data.draw(st.lists(st.integers(0, len(lines) // 2 - 1), min_size=1, max_size=3)):
        lines[2 * place + 1] = str(data.draw(NUMBERS))
    found = outcome('"'.join(lines))
    if isinstance(found, Schedule):
        verify(found)


@given(st.text())
def test_any_text(text: str) -> None:
    assert isinstance(outcome(text), str)
