"""`cost`, `programs` and `run` with every kind of request, several of them, and over sizes."""

from __future__ import annotations

import builtins
import re
from pathlib import Path
from typing import Any

import pytest

from tests.cli.tools import EVERY_KIND, RACKS, assert_one_error, cli

WHERE = ("--axes", "dp=2,tp=4", "--placement", "[[1,2],[2,2]]")
TEXT = "reduce-scatter inside node; all-reduce parallel node in root; all-gather inside node"
KINDS = {
    "--reduce": "all-reduce",
    "--reduce-scatter": "reduce-scatter",
    "--all-gather": "all-gather",
    "--all-to-all": "all-to-all",
    "--send": "send",
}
SEVERAL = ("--reduce", "tp=1GiB", "--reduce", "dp=64MiB*128", "--send", "tp=1MiB")
UNSIZED = tuple(text.partition("=")[0] for text in SEVERAL)
REQUEST = {
    *("kind", "axes", "bytes", "times", "total_s", "program", "chunks", "seconds"),
    *("single_collective_s", "algorithm_bound_s", "physical_bound_s", "regime", "checked", "steps"),
    *("range_s", "basis"),
}


@pytest.fixture
def cost(tiny: str) -> tuple[str, ...]:
    return ("cost", "-t", tiny, *WHERE)


@pytest.mark.parametrize("option", KINDS)
def test_every_kind_is_priced(cost: tuple[str, ...], option: str) -> None:
    outcome = cli(*cost, option, "tp=1.5GB*3", "--json")
    data = outcome.json()
    assert (outcome.code, set(data)) == (0, REQUEST | {"schema_version"})
    assert (data["kind"], data["axes"], data["bytes"]) == (KINDS[option], ["tp"], 1_500_000_000)
    assert data["total_s"] == 3 * data["seconds"] == 3 * data["single_collective_s"]
    assert len(data["steps"]) == 1
    lines = cli(*cost, option, "tp=1.5GB*3", "--details").out.splitlines()
    assert lines[2].startswith(KINDS[option])
    assert "3 times" in lines[-1]


def test_what_decides_a_time_is_named(cost: tuple[str, ...]) -> None:
    """Of bytes between nodes the cards, of bytes inside one its links, of one byte the latency."""
    for asked, decides in (("dp=1GiB", "cards"), ("tp=1GiB", "node links"), ("tp=1B", "latency")):
        inside = (*cost[:-1], "[[2,1],[1,4]]", "--reduce", asked)
        assert cli(*inside, "--json").json()["regime"] == decides
        assert f"; decided by {decides}; checked on" in cli(*inside).out
    sized = cli(*cost, "--reduce", "tp", "--sizes", "1B,1GiB", "--json").json()["sizes"]
    assert [at["regime"] for at in sized] == ["latency", "cards"]


def test_kind_says_what_reduce_asks_for(cost: tuple[str, ...]) -> None:
    by_kind = cli(*cost, "--reduce", "tp=1GiB", "--kind", "all-gather", "--json").json()
    for spelling in ("allgather", "AllGather", "all_gather"):
        assert cli(*cost, "--reduce", "tp=1GiB", "--kind", spelling, "--json").json() == by_kind
    assert by_kind == cli(*cost, "--all-gather", "tp=1GiB", "--json").json()
    assert_one_error(cli(*cost, "--send", "tp=1GiB", "--kind", "all-gather"))


def test_several_requests_are_all_priced(cost: tuple[str, ...]) -> None:
    data = cli(*cost, *SEVERAL, "--json").json()
    assert set(data) == {"schema_version", "objective_s", "range_s", "basis", "requests"}
    names = [(r["kind"], r["axes"], r["times"]) for r in data["requests"]]
    assert names == [("all-reduce", ["tp"], 1), ("all-reduce", ["dp"], 128), ("send", ["tp"], 1)]
    for request, (option, text) in zip(
        data["requests"], zip(SEVERAL[::2], SEVERAL[1::2], strict=True), strict=True
    ):
        alone = cli(*cost, option, text, "--json").json()
        assert request == {key: alone[key] for key in REQUEST}
    totals = [request["total_s"] for request in data["requests"]]
    assert data["objective_s"] == pytest.approx(sum(totals))
    largest = cli(*cost, *SEVERAL, "--objective", "max", "--json").json()
    assert largest["objective_s"] == max(totals)
    out = cli(*cost, *SEVERAL, "--details").out
    places = [out.index(name) for name in ("all-reduce tp 1 GiB", "all-reduce dp 64", "send tp")]
    assert places == sorted(places)
    assert " per iteration (total), " in out.splitlines()[-1]


def test_each_request_may_have_its_program(cost: tuple[str, ...]) -> None:
    data = cli(*cost, *SEVERAL, "--program", TEXT, "--program", "single", "--json").json()
    programs = [request["program"] for request in data["requests"]]
    assert programs == [TEXT, "all-reduce inside root", None]
    outcome = cli(*cost, *SEVERAL, "--program", TEXT)
    assert_one_error(outcome)
    assert "all-reduce tp 1 GiB, all-reduce dp 64 MiB x 128" in outcome.err


def test_several_programs_of_one_request_are_compared(cost: tuple[str, ...]) -> None:
    two = (*cost, "--reduce", "tp=1GiB", "--program", TEXT, "--program", "single")
    data = cli(*two, "--json").json()
    alone = cli(*cost, "--reduce", "tp=1GiB", "--program", TEXT, "--json").json()
    assert data["programs"][0] == {key: alone[key] for key in REQUEST}
    assert [p["program"] for p in data["programs"]] == [TEXT, "all-reduce inside root"]
    lines = cli(*two, "--details").out.splitlines()
    assert lines[0] == TEXT
    assert lines[-1].startswith(f"fastest: {TEXT} (")


def test_a_sweep_has_what_each_size_has_alone(cost: tuple[str, ...]) -> None:
    data = cli(*cost, *UNSIZED[:2], "--sizes", "1KiB..4KiB,1GiB", "--json").json()
    assert [at["bytes"] for at in data["sizes"]] == [1024, 2048, 4096, 2**30]
    alone = cli(*cost, *SEVERAL[:2], "--json").json()
    assert data["sizes"][-1] == {key: alone[key] for key in REQUEST}
    several = cli(*cost, *UNSIZED, "--sizes", "1MiB", "--json").json()["sizes"]
    assert [r["bytes"] for r in several[0]["requests"]] == [2**20] * 3
    two = ("--program", TEXT, "--program", "single")
    programs = cli(*cost, "--reduce", "tp", *two, "--sizes", "1MiB", "--json").json()["sizes"]
    assert [p["program"] for p in programs[0]["programs"]] == [TEXT, "all-reduce inside root"]


def test_a_sweep_for_people(cost: tuple[str, ...]) -> None:
    lines = cli(*cost, "--reduce", "tp", "--sizes", "1KiB..8GiB", "--details").out.splitlines()
    assert lines[0] == "all-reduce tp: time of one execution"
    assert lines[1].split()[:2] == ["size", "time"]
    assert [line.strip().split("  ")[0] for line in lines[2:4]] == ["1 KiB", "2 KiB"]
    assert len(lines) == 2 + 24
    compared = cli(
        *cost, "--reduce", "tp", "--program", TEXT, "--sizes", "1KiB,1GiB", "--details"
    ).out
    assert f"A  {TEXT}" in compared
    assert compared.splitlines()[-1].startswith("fastest: ")
    several = cli(*cost, *UNSIZED, "--sizes", "1KiB", "--details").out
    assert several.count(": time of one execution") == 3


def test_bus_bandwidth_is_that_of_nccl_tests(cost: tuple[str, ...]) -> None:
    factors = {"--reduce": 1.5, "--reduce-scatter": 0.75, "--all-to-all": 0.75, "--send": 1.0}
    for option, factor in factors.items():
        line = cli(*cost, option, "tp", "--sizes", "1GB", "--details").out.splitlines()[2]
        data = cli(*cost, option, "tp=1GB", "--json").json()
        shown = re.findall(r"([\d.]+) ([kMG]?)B/s", line)[0]
        scale = {"": 1.0, "k": 1e3, "M": 1e6, "G": 1e9}[shown[1]]
        assert float(shown[0]) * scale == pytest.approx(factor * 1e9 / data["seconds"], rel=1e-3)


@pytest.mark.parametrize("name", ["p.png", "p.svg", "p.pdf"])
def test_a_sweep_is_drawn(cost: tuple[str, ...], tmp_path: Path, name: str) -> None:
    pytest.importorskip("matplotlib")
    path = tmp_path / name
    sweep = (*cost, "--reduce", "tp", "--send", "tp", "--sizes", "1KiB..1MiB", "--plot", str(path))
    assert cli(*sweep).out.endswith(f"\nplot written to {path}\n")
    content = path.read_bytes()
    assert content.startswith({"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}[name[2:]])
    assert cli(*sweep, "--json").json()["sizes"]
    assert path.read_bytes() == content
    assert [p.name for p in tmp_path.iterdir() if p.suffix != ".yaml"] == [name]


def test_without_matplotlib_a_plot_is_refused(
    cost: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def absent(name: str, *more: Any, **named: Any) -> Any:
        if name.split(".")[0] == "matplotlib":
            raise ModuleNotFoundError(name="matplotlib")
        return loaded(name, *more, **named)

    loaded = builtins.__import__
    monkeypatch.setattr(builtins, "__import__", absent)
    path = tmp_path / "p.png"
    outcome = cli(*cost, "--reduce", "tp", "--sizes", "1KiB", "--plot", str(path))
    assert_one_error(outcome, 5)
    assert "p2smt[plots]" in outcome.err
    assert not path.exists()


@pytest.mark.parametrize("size", ["", "=1GiB"])
def test_sizes_take_the_place_of_those_of_requests(cost: tuple[str, ...], size: str) -> None:
    outcome = cli(*cost, "--reduce", f"tp{size}", "--sizes", "1KiB", "--json")
    unsized = cli(*cost, "--reduce", "tp", "--sizes", "1KiB", "--json")
    assert outcome.json()["sizes"] == unsized.json()["sizes"]
    assert ("takes the place of the sizes" in outcome.err) is bool(size)


BAD: list[tuple[str, ...]] = [
    ("--reduce", "tp"),
    ("--reduce", "tp", "--sizes", ""),
    ("--reduce", "tp", "--sizes", "1KiB.."),
    ("--reduce", "tp", "--sizes", "1GiB..1KiB"),
    ("--reduce", "tp", "--sizes", "1KiB..1GiB*1"),
    ("--reduce", "tp", "--sizes", "1KiB..1GiB*x"),
    ("--reduce", "tp", "--sizes", "1KiB;1MiB"),
    ("--reduce", "tp", "--sizes", ",".join(f"{n}B" for n in range(1, 300))),
    ("--reduce", "tp=1GiB", "--plot", "p.png"),
    ("--reduce", "tp", "--sizes", "1KiB", "--plot", "p.gif"),
    ("--reduce", "tp", "--sizes", "1KiB", "--plot", "missing/p.png"),
    ("--send", "dp+tp=1MiB"),
    ("--send", "tp=1MiB", "--program", TEXT),
    ("--reduce", "tp=1GiB*0"),
    ("--reduce", "tp=1GiB", "--objective", "mean"),
    ("--reduce", "tp=1GiB", *("--reduce", "dp=1KiB") * 32),
    (),
]


@pytest.mark.parametrize("more", BAD, ids=lambda more: " ".join(more)[:60])
def test_bad_input(
    cost: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, more: tuple[str, ...]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert_one_error(cli(*cost, *more))
    assert not list(tmp_path.glob("p.*"))


def test_a_plan_is_shown_as_solve_shows_it(tiny: str, tmp_path: Path) -> None:
    path = str(tmp_path / "plan.json")
    shown = cli("solve", "-t", tiny, *EVERY_KIND, "-o", path, "--details").out
    assert ": assumed, no library runs here" in shown
    costs = cli("cost", path, "--details")
    assert costs.code == 0
    table = shown[shown.index("requests: time per") : shown.index("checked on")].strip()
    assert table in costs.out
    placement = shown[shown.index("placement\n") : shown.index("requests: time per")]
    assert placement in costs.out
    assert all(line in costs.out for line in shown.splitlines() if line.startswith("peak payload"))
    solved = cli("solve", "-t", tiny, *EVERY_KIND, "--json").json()["plan"]["requests"]
    data = cli("cost", path, "--json").json()
    assert data["verdict"] == "valid"
    assert [set(request) for request in data["requests"]] == [REQUEST] * 5
    assert [r["total_s"] for r in data["requests"]] == [r["times"] * r["seconds"] for r in solved]
    for other in (("--sizes", "1KiB"), ("--send", "tp=1KiB"), ("--objective", "max")):
        assert_one_error(cli("cost", path, *other))


def test_programs_of_several_requests(tiny: str) -> None:
    every = ("programs", "-t", tiny, *WHERE, "--length", "3")
    requests = ("--reduce", "tp=1GiB", "--reduce", "dp+tp", "--all-gather", "tp", "--send", "tp")
    data = cli(*every, *requests, "--json").json()
    assert set(data) == {"schema_version", "status", "requests"}
    assert [r["kind"] for r in data["requests"]] == [
        *("all-reduce", "all-reduce", "all-gather", "send")
    ]
    for request, n in zip(data["requests"][:3], (0, 2, 4), strict=True):
        alone = cli(*every, *requests[n : n + 2], "--json").json()
        del alone["schema_version"]
        assert request == {"kind": request["kind"], "axes": request["axes"], **alone}
    assert (data["requests"][3]["count"], data["requests"][3]["programs"]) == (0, [])
    lines = cli(*every, *requests, "--details").out.splitlines()
    assert lines[0] == "all-reduce tp"
    assert lines[-2:] == ["send tp", "complete: no programs, one fixed step"]
    best = cli(*every, *requests, "--top", "1", "--json").json()["requests"]
    assert [p["seconds"] is None for r in best for p in r["programs"]] == [False, True, True]


def test_a_list_that_is_cut_short_is_not_settled(tiny: str) -> None:
    two = ("--reduce", "tp=1GiB", "--send", "tp=1GiB", "--limit", "1")
    outcome = cli("programs", "-t", tiny, *WHERE, *two, "--json")
    assert outcome.code == 3
    assert outcome.json()["status"] == outcome.json()["requests"][0]["status"] == "truncated"


def test_run_takes_every_request(tiny: str) -> None:
    programs = ("--program", TEXT, "--program", "single", "--program", "single")
    requests = ("--reduce", "tp=1KiB", "--reduce", "dp=1KiB*2", "--all-gather", "tp=1KiB")
    more = ("--send", "dp=1KiB", "--all-to-all", "tp=1KiB")
    every = ("run", "-t", tiny, *WHERE, "--backend", "reference", *requests, *more, *programs)
    outcome = cli(*every, "--json")
    data = outcome.json()
    assert (outcome.code, data["verified"]) == (0, True)
    names = ["all-reduce tp", "all-reduce dp", "all-gather tp", "all-to-all tp", "send dp"]
    assert [request["request"] for request in data["requests"]] == names
    assert [len(request["steps"]) for request in data["requests"]] == [3, 1, 1, 1, 1]
    predicted = cli("cost", "-t", tiny, *WHERE, *requests, *more, *programs, "--json").json()
    for ran, priced in zip(data["requests"], predicted["requests"], strict=True):
        assert ran["predicted_s"] == pytest.approx(priced["seconds"], rel=1e-12)
    out = cli(*every).out
    assert "nothing was timed" in out
    assert not any(word in out for word in ("measured", "spread", " - "))


def test_run_without_a_size_takes_the_payload(tiny: str) -> None:
    every = ("run", "-t", tiny, *WHERE, "--backend", "reference", "--reduce", "tp", "--send", "dp")
    assert_one_error(cli(*every))
    data = cli(*every, "--payload", "1KiB", "--json").json()
    assert [request["payload_bytes"] for request in data["requests"]] == [1024, 1024]


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (("--axes", "dp", "--reduce", "dp"), ("axes 'dp'", "dp=8,tp=4")),
        ((*WHERE[:3], "[[4,2", "--reduce", "dp"), ("--placement '[[4,2'", "a row per axis")),
        (
            (*WHERE[:3], "[4,2]", "--reduce", "dp"),
            ("--placement '[4,2]'", "is an order of ranks", "p2smt compare"),
        ),
        ((*WHERE[:3], "[]", "--reduce", "dp"), ("--placement '[]'", "is not a matrix")),
        ((*WHERE, "--reduce", "dp"), ("all-reduce dp", "has no size", "dp=1GiB")),
    ],
)
def test_messages_of_cost_name_what_was_given_and_the_remedy(
    tiny: str, command: tuple[str, ...], words: tuple[str, ...]
) -> None:
    outcome = cli("cost", "-t", tiny, *command)
    assert_one_error(outcome)
    assert all(word in outcome.err for word in words), outcome.err


def test_messages_of_solve_name_what_was_given_and_the_remedy(tiny: str) -> None:
    solve = ("solve", "-t", tiny, "--axes", "dp=8", "--reduce", "dp=1GiB")
    for more, words in (
        (("--max-steps-at", "gpu"), ("--max-steps-at 'gpu'", "LEVEL=N", "write it like node=1")),
        (("--max-steps-at", "gpu=x"), ("--max-steps-at 'gpu=x'", "whole number")),
        (("--compare", "foo"), ("--compare 'foo'", "the device of each rank such as [0,2,1,3]")),
    ):
        outcome = cli(*solve, *more)
        assert_one_error(outcome)
        assert all(word in outcome.err for word in words), outcome.err


@pytest.mark.parametrize(("end", "title"), [("xml", "MSCCL XML"), ("json", "MSCCL++ JSON")])
@pytest.mark.parametrize("more", [(), ("--json",)])
def test_cost_of_a_schedule_says_where_it_is_predicted(
    tmp_path: Path, end: str, title: str, more: tuple[str, ...]
) -> None:
    path = str(tmp_path / f"ring.{end}")
    assert cli("classics", "ring-all-reduce", "--ranks", "4", "-o", path).code == 0
    outcome = cli("cost", path, *more)
    assert_one_error(outcome)
    assert f"is a schedule ({title}), not a plan" in outcome.err
    assert "`p2smt verify FILE --cost SIZE --topology NAME`" in outcome.err
    outcome = cli("cost", path, "-t", "dgx1-v100", *more)
    assert_one_error(outcome)
    assert "`p2smt verify FILE --cost SIZE --topology dgx1-v100`" in outcome.err


TWO_CARDS = """
name: a100-two-cards
library: LIBRARY
levels:
  - name: node
    size: 2
    link: {kind: switch, ports: 2, bandwidth: 25 GB/s, latency: 14 us, fabric: infiniband}
  - name: gpu
    size: 8
    link: {kind: switch, bandwidth: 300 GB/s, latency: 3.4 us, fabric: nvlink3}
"""


@pytest.mark.parametrize("library", ["nccl-2.12", "nccl-2.20", "nccl-2.30"])
def test_a_library_that_is_all_but_undecided_says_so(library: str, tmp_path: Path) -> None:
    """2 x 8 A100 with two cards of 200 Gb/s (NVIDIA/nccl, 837): where they lie on the GPUs'
    switches, NCCL's planner takes the ring for 1 GiB (42.2 ms, its tree 45.6 by its own estimate);
    on processors with slower PCIe its tree, which is the faster one."""
    path = tmp_path / "cards.yaml"
    path.write_text(TWO_CARDS.replace("LIBRARY", library), encoding="utf-8")
    asked = ["--axes", "dp=16", "--placement", "[[2,8]]", "--reduce", "dp=1GiB"]
    found = cli("cost", "-t", str(path), *asked)
    assert found.code == 0
    assert "ring simple" in found.out
    assert "by the library's own tree simple (NCCL_ALGO=Tree): its rule chooses" in found.err
    assert "% ahead by its own estimate, so that other hosts may differ" in found.err


def test_a_single_collective_says_what_its_library_has_and_does_not_choose() -> None:
    """NCCL takes a ring over two GPUs of two nodes, where its own tree is faster beyond both
    ranges; a tree that is asked for is compared with nothing, nor is a gain within the ranges."""
    asked = ["cost", "-t", "dgx-b200:2", "--use", "gpu=2", "--axes", "dp=4"]
    asked += ["--placement", "[[2,2]]", "--reduce", "dp=64MiB"]
    found = cli(*asked)
    assert "ring simple" in found.out
    shown = re.search(r"all-reduce dp 64 MiB takes (\S+ us) by the library's own tree", found.err)
    assert shown
    assert "NCCL_ALGO=Tree" in found.err
    assert "its rule chooses ring simple, 7 % ahead by its own estimate, so that" in found.err
    tree = cli(*asked, "--algorithm", "tree")
    assert "tree simple" in tree.out
    assert "its rule chooses" not in tree.err
    program = "reduce-scatter inside root; all-gather inside root"
    assert "its rule chooses" not in cli(*asked, "--program", program).err
    four = ("cost", "-t", "dgx-h100:4", "--axes", "dp=32", "--placement", "[[4,8]]")
    within = cli(*four, "--reduce", "dp=8GiB")
    assert "ring simple" in within.out
    assert "its rule chooses" not in within.err


def test_the_library_is_named_on_the_first_screen(tiny: str, tmp_path: Path) -> None:
    """Of one request, of several, of programs, over sizes, and of a plan."""
    (tmp_path / "nccl.yaml").write_text(Path(tiny).read_text().replace("none", "nccl-2.30"))
    found = Path(tmp_path / "nccl.yaml")
    one, several = ("--reduce", "dp=1MiB"), ("--reduce", "dp=1MiB", "--reduce", "tp=1MiB")
    programs = (*one, "--program", "single", "--program", "single")
    for asked in (one, several, programs, ("--reduce", "dp", "--sizes", "1MiB,2MiB")):
        done = cli("cost", "-t", str(found), *WHERE, *asked)
        assert done.code == 0, done.err
        assert re.search(r"\blibrary +nccl-2\.30\b", " ".join(done.out.split())), asked
    plan = str(tmp_path / "plan.json")
    assert cli("solve", "-t", str(found), "-a", "dp=2,tp=4", *one, "-o", plan).code == 0
    assert "library  nccl-2.30" in cli("cost", plan).out
    assert "library none" in " ".join(cli("cost", "-t", tiny, *WHERE, *one).out.split())


def test_one_axis_over_all_devices_needs_no_placement(tiny: str) -> None:
    asked = ("cost", "-t", tiny, "--axes", "dp=8", "--reduce", "dp=1MiB", "--json")
    assert cli(*asked).json() == cli(*asked, "--placement", "[[2,4]]").json()
    assert_one_error(cli(*asked[:3], "--axes", "dp=4", *asked[5:]))
    assert "--placement: is missing" in cli(*asked[:3], "--axes", "dp=2,tp=4", *asked[5:]).err


def test_groups_without_a_price_of_the_library_are_told(tmp_path: Path) -> None:
    """Under several switches above the nodes, of libraries of MPI alone."""
    note = "has no price for groups that lie unevenly over rack"
    for library, said in (("openmpi-5", True), ("nccl-2.30", False), ("none", False)):
        topology = tmp_path / f"{library}.yaml"
        topology.write_text(RACKS.replace("none", library).replace("algorithms: [ring]\n", ""))
        asked = ("-t", str(topology), "--axes", "dp=10", "--reduce", "dp=1MiB")
        done = cli("cost", *asked)
        assert done.code == 0, done.err
        assert (note in done.err) == said
