"""Pages in a real browser: every control, no word on the console, narrow and wide, on paper."""

from __future__ import annotations

import json
import re
from html import escape
from pathlib import Path
from typing import Any

import pytest

from p2smt.report.page.html import page
from p2smt.report.page.sources import story_of
from tests.cli.tools import cli
from tests.report.page.browser import Browser
from tests.report.page.inputs import KINDS, changed, read


@pytest.fixture(params=KINDS)
def made(request: pytest.FixtureRequest, inputs: Path, tmp_path: Path) -> Path:
    """The page of a file."""
    done = cli("report", str(inputs / request.param), "-o", str(tmp_path / "page.html"))
    assert done.code == 0, done.err
    return tmp_path / "page.html"


USE_ALL = """
const done = {};
const used = (what) => { done[what] = (done[what] || 0) + 1; };
document.querySelectorAll('details').forEach(d => { d.open = true; used('details'); });
document.querySelectorAll('input[type=radio]').forEach(r => { r.click(); used('radio'); });
document.querySelectorAll('button').forEach(b => { b.click(); used('button'); });
document.querySelectorAll('select').forEach(s => {
  for (let i = 0; i < Math.min(s.options.length, 9); i++) {
    s.selectedIndex = i; s.dispatchEvent(new Event('change')); used('select');
  }
});
document.querySelectorAll('input[type=search]').forEach(s => {
  for (const text of ['1', 'n1', 'nowhere', '']) {
    s.value = text; s.dispatchEvent(new Event('change')); used('search');
  }
});
const keys = ['ArrowRight','ArrowDown','ArrowDown','ArrowLeft','ArrowUp','+','-','0','a'];
document.querySelectorAll('canvas[tabindex], .scatter').forEach(c => {
  c.focus();
  keys.forEach(key => c.dispatchEvent(new KeyboardEvent('keydown', {key, bubbles: true})));
  const box = c.getBoundingClientRect();
  for (const [x, y] of [[5, 5], [40, 30], [box.width / 2, box.height / 2]]) {
    const at = {clientX: box.x + x, clientY: box.y + y, bubbles: true, pointerId: 1};
    c.dispatchEvent(new PointerEvent('pointermove', at));
  }
  c.dispatchEvent(new WheelEvent('wheel', {deltaY: -1, ctrlKey: true, cancelable: true}));
  used('picture');
});
return done;
"""


def test_every_control_and_nothing_on_the_console(browser: Browser, made: Path) -> None:
    for width in (1280, 400):
        browser.open(made, width)
        assert browser.fits()
        done = browser.js(USE_ALL)
        assert done.get("details", 0) > 0 or "picture" not in done
        assert browser.js("return document.querySelectorAll('tr').length") > 0
        assert browser.fits()
        assert browser.log() == []
        loads = browser.js("return performance.getEntriesByType('resource').map(e => e.name)")
        assert [one for one in loads if not one.startswith("data:")] == []
        assert browser.js("return document.querySelector('.verdict').textContent") != ""


def test_it_prints(browser: Browser, made: Path) -> None:
    browser.open(made)
    paper = browser.pdf()
    assert paper.startswith(b"%PDF")
    assert len(paper) > 5000
    assert browser.log() == []


def test_every_picture_has_its_table(browser: Browser, made: Path) -> None:
    browser.open(made)
    browser.js("document.querySelectorAll('details').forEach(d => { d.open = true; })")
    lacking = """
      return [...document.querySelectorAll('section')].filter(
        s => s.querySelector('.picture') && !s.querySelector('table')).map(s => s.textContent)"""
    browser.until(lambda: browser.js(lacking) == [])


def opened(browser: Browser, inputs: Path, tmp_path: Path, name: str) -> None:
    (tmp_path / "page.html").write_text(page(story_of([str(inputs / name)])), encoding="utf-8")
    browser.open(tmp_path / "page.html")


def test_colours_change_and_hosts_are_found(browser: Browser, inputs: Path, tmp_path: Path) -> None:
    opened(browser, inputs, tmp_path, "hosted.json")
    live = "return document.querySelector('.grid .live').textContent"
    before = browser.pictures()[0]
    browser.js("document.querySelectorAll('input[type=radio]:not(:checked)')[0].click()")
    browser.until(lambda: browser.pictures()[0] != before)
    find = "const s=document.querySelector('[type=search]'); s.value=arguments[0];"
    change = f"{find} s.dispatchEvent(new Event('change'))"
    browser.js(change, "n1")
    assert browser.js(live).startswith("n1, ")
    browser.js(change, "nobody")
    assert browser.js(live) == "No such host or rank."
    data = read(inputs / "hosted.json")
    idle = data["answer"]["idle"][0]
    browser.js(change, idle)
    assert browser.js(live) == f"{idle}: no rank, left out of the job"
    for rank, host in enumerate(data["hosts"]):
        browser.js(change, str(rank))
        said = browser.js(live)
        assert said.startswith(f"{host}, device ")
        assert f"rank {rank}: dp {rank // 2}, tp {rank % 2}." in said


def test_a_point_is_explained(browser: Browser, inputs: Path, tmp_path: Path) -> None:
    opened(browser, inputs, tmp_path, "training.json")
    told = "return document.querySelector('section .live[id$=told]').textContent"
    press = """document.querySelector('.scatter').dispatchEvent(
      new KeyboardEvent('keydown', {key: 'ArrowRight'}))"""
    browser.js(press)
    assert "chosen:" in browser.js(told)
    assert "GB" in browser.js(told)


def test_a_chunk_is_followed(browser: Browser, inputs: Path, tmp_path: Path) -> None:
    opened(browser, inputs, tmp_path, "ring.yaml")
    whole = browser.pictures()[0]
    pick = """const s = document.querySelector('select'); s.selectedIndex = arguments[0];
      s.dispatchEvent(new Event('change'))"""
    browser.js(pick, 1)
    browser.until(lambda: browser.pictures()[0] != whole)
    one = browser.pictures()[0]
    browser.js(pick, 2)
    browser.until(lambda: browser.pictures()[0] not in (whole, one))


# What strangers write.

PAYLOADS = (
    "</script><script>window.ran=1</script>",
    "<img src=x onerror=window.ran=1>",
    "<svg onload=window.ran=1>",
    '"><script>window.ran=1</script>',
    "' onmouseover='window.ran=1' x='",
    "javascript:window.ran=1",
    "<!--<script>window.ran=1</script>",
    "]]><script>window.ran=1</script>",
    "</title><script>window.ran=1</script>",
    "</style><script>window.ran=1</script>",
    "\u202e<b>window.ran=1</b>\u2028\u0000",
    "{{constructor.constructor('window.ran=1')()}}",
    "x" * 5000,
)
FREE = ("description", "sources", "proof", "outside", "command", "range_basis_why")


def hostile(data: Any, shift: int) -> Any:
    """Names and sentences of a plan replaced, as far as its file may have any there."""
    count = [shift]

    def of(key: str, value: str) -> str:
        if key not in FREE and not (key == "name" and value in ("racks", "tiny", "rack0", "rack1")):
            return value
        count[0] += 1
        return PAYLOADS[count[0] % len(PAYLOADS)]

    return changed(data, of)


@pytest.mark.parametrize("name", ["training.json", "hosted.json", "placed.json", "moved.json"])
def test_names_of_strangers_do_nothing(
    browser: Browser, inputs: Path, tmp_path: Path, name: str
) -> None:
    for shift in range(0, len(PAYLOADS), 3):
        data = hostile(read(inputs / name), shift)
        answer = data.get("answer", {})
        for number, one in enumerate(answer.get("points", ())[1:]):
            one["parts"] = {PAYLOADS[number % len(PAYLOADS)]: one["iteration_s"]}
        for number, one in enumerate(answer.get("beside", ())):
            one["name"] = PAYLOADS[(number + shift) % len(PAYLOADS)][:4000]
        if "command" in answer:
            answer["command"] = answer["command"][:4000]
        (tmp_path / "plan.json").write_text(json.dumps(data))
        done = cli("report", str(tmp_path / "plan.json"), "-o", str(tmp_path / "page.html"))
        assert done.code == 0, done.err
        browser.open(tmp_path / "page.html", 400)
        browser.js(USE_ALL)
        assert browser.js("return window.ran === undefined")
        assert browser.fits()
        assert browser.log() == []


def test_without_escapes_and_policy_they_would(
    browser: Browser, inputs: Path, tmp_path: Path
) -> None:
    data = read(inputs / "placed.json")
    data["topology"]["name"] = PAYLOADS[1]
    (tmp_path / "plan.json").write_text(json.dumps(data))
    html = page(story_of([str(tmp_path / "plan.json")]))
    assert PAYLOADS[1] not in html
    raw = html.replace(escape(PAYLOADS[1], quote=True), PAYLOADS[1])
    assert raw != html
    bare = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", raw)
    (tmp_path / "page.html").write_text(bare, encoding="utf-8")
    browser.open(tmp_path / "page.html")
    browser.until(lambda: browser.js("return window.ran === 1"))
    (tmp_path / "page.html").write_text(raw, encoding="utf-8")
    browser.open(tmp_path / "page.html")
    assert browser.js("return window.ran === undefined")
    assert browser.log() != []
