"""The site of the documentation: its parts, and the whole, built and opened without a network."""

from __future__ import annotations

import hashlib
import shutil
import tomllib
from pathlib import Path

import pytest

from docs.site import build, links, reference, stage
from tests.imports import ROOT
from tests.site.browser import browser

VENDOR = ROOT / "docs" / "site" / "vendor"
OWN = (
    *("file:", "data:", "blob:", "about:", "devtools:"),
    *("chrome:", "chrome-extension:", "chrome-untrusted:"),
)
"""Addresses of files, and of the browser itself, whose first page may still be loading."""


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site") / "sources"
    stage.stage(folder)
    return folder


def test_links_between_staged_pages_lead_to_files(sources: Path) -> None:
    for page in sources.rglob("*.md"):
        parts = stage.FENCE.split(page.read_text(encoding="utf-8"))[::2]
        targets = {found[3] for part in parts for found in stage.LINK.finditer(part)}
        inside = {one for one in targets if one and not stage.FOREIGN.match(one)}
        assert {one for one in inside if not (page.parent / one).is_file()} == set(), page


def test_code_stands_as_text_and_a_folder_as_its_list(sources: Path) -> None:
    joint = sources / "source" / "p2smt" / "search" / "joint.py.txt"
    assert joint.read_bytes() == (ROOT / "p2smt" / "search" / "joint.py").read_bytes()
    listed = (sources / "source" / "topologies" / "files.txt").read_text().splitlines()
    assert {"dgx-a100.yaml", "fabrics/"} <= set(listed)


@pytest.mark.slow
@pytest.mark.exhaustive
def test_every_page_has_its_place(sources: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(sources, tmp_path / "sources"))
    for name, text in reference.everything().items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    assert "reference/commands/plan.md" in build.setting(folder)
    (folder / "stray.md").write_text("# Stray")
    with pytest.raises(RuntimeError, match=r"stray\.md"):
        build.setting(folder)


def test_pages_of_docs_have_their_place_in_the_navigation() -> None:
    told = build.SETTING.read_text(encoding="utf-8")
    pages = {stage.place(p).as_posix() for p in stage.pages() if "experiments" not in p.parts}
    assert {page for page in pages if f" {page}\n" not in told} == set()


def test_vendored_files_are_those_that_are_listed() -> None:
    listed = tomllib.loads((VENDOR / "VENDORED.toml").read_text(encoding="utf-8"))["file"]
    assert {one["name"] for one in listed} == {path.name for path in VENDOR.glob("*.js")}
    for one in listed:
        assert hashlib.sha256((VENDOR / one["name"]).read_bytes()).hexdigest() == one["sha256"]
        assert one["licence"]
        assert one["version"]


def test_a_command_page_has_every_option() -> None:
    (page,) = (text for name, text in reference.command_pages() if name.endswith("/verify.md"))
    assert "{ #verify-fix }" in page
    assert page.startswith("# p2smt verify\n")


def test_defaults_of_keys_are_written_as_json() -> None:
    (page,) = (text for name, text in reference.schema_pages() if name.endswith("/topology.md"))
    assert "`best`\n:   boolean; default `false`" in page
    assert 'string; default `""`' in page


def test_public_names_are_all_there() -> None:
    import p2smt

    text = "".join(text for _, text in reference.python_pages())
    assert {name for name in p2smt.__all__ if f".{name}\n" not in text} == set()


def test_dead_links_lost_anchors_and_foreign_loads_are_found(tmp_path: Path) -> None:
    (tmp_path / "good.html").write_text('<h1 id="top"></h1><a href="https://example.org">x</a>')
    (tmp_path / "bad.html").write_text(
        '<a href="no.html"></a><a href="good.html#no"></a><a href="good.html#top"></a>'
        '<script src="https://example.org/x.js"></script><link rel="stylesheet" href="//e.org/x">'
    )
    assert [*links.complaints(tmp_path)] == [
        "bad.html: loads https://example.org/x.js",
        "bad.html: loads //e.org/x",
        "bad.html: no.html is not there",
        "bad.html: good.html#no has no such anchor",
    ]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("zensical", reason="the extra docs is not installed")
    return build.build(tmp_path_factory.mktemp("built"))


@pytest.mark.slow
@pytest.mark.exhaustive
def test_the_site_builds_strictly_and_no_link_is_dead(site: Path) -> None:
    assert (site / "reference" / "commands" / "plan.html").is_file()
    text = (site / "reference" / "python" / "api.html").read_text(encoding="utf-8")
    assert "p2smt.api.planning.plan" in text
    assert ":func:" not in text


PAGES = ("index.html", "planning.html", "reference/python/api.html")
FOUND = """
const all = root => [...root.querySelectorAll('*')].flatMap(
  one => one.shadowRoot ? [one, ...all(one.shadowRoot)] : [one]);
document.querySelector('.md-search__button').click();
const wait = (find, then) => {
  const it = find(); it ? then(it) : setTimeout(wait, 50, find, then); };
const named = name => all(document).filter(one => one.localName === name);
wait(() => named('input').find(one => one.type === 'text' || one.type === 'search'), field => {
  const set = Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, 'value').set;
  set.call(field, 'rankfile');
  field.dispatchEvent(new Event('input', {bubbles: true, composed: true}));
  const known = new Set(document.querySelectorAll('a'));
  const fresh = () => named('a').filter(one => !known.has(one) && one.href.includes('open-mpi'));
  wait(() => fresh()[0], one => done(one.href));
});
"""
"""Types a word into the search, and hands on where the first result that it waits for leads."""


@pytest.mark.slow
@pytest.mark.exhaustive
def test_a_browser_asks_no_host_and_search_finds(site: Path, tmp_path: Path) -> None:
    with browser(tmp_path) as opened:
        opened.requested()
        for page in PAGES:
            opened.open((site / page).as_uri())
        found = opened.run(FOUND)
        asked = opened.requested()
        assert found.endswith("/launchers/index.html#open-mpi")
        assert any(url.endswith("/files/iframe-worker.js") for url in asked)
        assert [url for url in asked if not url.startswith(OWN)] == []


@pytest.mark.slow
@pytest.mark.exhaustive
def test_a_foreign_load_would_be_seen(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    page.write_text('<script src="http://foreign.invalid/x.js"></script>')
    with browser(tmp_path / "profile") as opened:
        opened.open(page.as_uri())
        assert "http://foreign.invalid/x.js" in opened.requested()
