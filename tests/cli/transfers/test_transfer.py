"""`p2smt transfer`: the first screen, the plan file, and bad input in one line."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import p2smt
from p2smt.report.transfers.screens import transfer_screen
from p2smt.result import Status
from p2smt.transfer.answer import find_transfer
from p2smt.transfer.question import TransferQuestion
from tests.cli.tools import TINY, Outcome, assert_one_error, cli
from tests.transfer.cases import cluster, random_case
from tests.transfer.files import COLUMNS, ROWS

ASKED = ("transfer", "-t", "tiny.yaml", "--from", "rows.json", "--to", "columns.json")


def refused(done: Outcome, said: str) -> None:
    """One line, and what it says."""
    assert_one_error(done)
    assert said in done.err


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tiny.yaml").write_text(TINY)
    for name, layout in (("rows", ROWS), ("columns", COLUMNS)):
        (tmp_path / f"{name}.json").write_text(json.dumps(layout))
    return tmp_path


@pytest.mark.usefixtures("folder")
def test_the_verdict_comes_first() -> None:
    done = cli(*ASKED, "--nominal", "-o", "plan.json")
    assert done.code == 0, done.err
    first, *others = done.out.splitlines()
    assert first.startswith("optimal: ")
    assert others[-1] == "plan written to plan.json"
    assert cli("verify", "plan.json").out.startswith("valid: every element arrives once")
    assert "needed by" in cli(*ASKED, "--details").out


def test_the_uplink_of_a_rack_binds_and_is_verified(folder: Path) -> None:
    """And its price moved to a rack that nobody is in proves nothing."""
    rack = "  - {name: rack, size: 3, link: {kind: switch, bandwidth: 2 GB/s, latency: 10 us}}\n"
    nodes = TINY.replace("levels:\n", f"levels:\n{rack}")
    (folder / "racks.yaml").write_text(nodes)
    asked = [word.replace("tiny.yaml", "racks.yaml") for word in ASKED]
    done = cli(*asked, "--to-device-ids", "8-11", "--nominal", "-o", "plan.json")
    assert done.code == 0, done.err
    assert " of rack " in done.out.splitlines()[0]
    assert cli("verify", "plan.json").code == 0
    data = json.loads((folder / "plan.json").read_text())
    for price in data["prices"]:
        price["entity"] = 2
    (folder / "plan.json").write_text(json.dumps(data))
    assert "the prices prove 0.0 s" in cli("verify", "plan.json").out


@pytest.mark.usefixtures("folder")
def test_its_json_says_what_is_proved() -> None:
    data = cli(*ASKED, "--json").json()
    assert data["status"] == "optimal"
    assert data["total_s"] == pytest.approx(data["bandwidth_s"] + data["fill_s"])
    assert data["gap"] == pytest.approx(0, abs=1e-6)
    assert data["sent_bytes"] == 2 * 4 * 12


@pytest.mark.usefixtures("folder")
def test_its_time_has_a_range() -> None:
    for more in ((), ("--nominal",)):
        data = cli(*ASKED, *more, "--json").json()
        assert data["range_s"][0] <= data["total_s"] <= data["range_s"][1]
        assert data["basis"] == "assumed"  # no library runs there
        text = " ".join(cli(*ASKED, *more).out.split())
        assert "; latencies and filling add" in text
        assert ": assumed " in text
    still = cli(*ASKED[:5], "--to", "rows.json", "--json").json()
    assert (still["range_s"], still["basis"]) == (None, None)


@pytest.mark.usefixtures("folder")
def test_nothing_moves_where_nothing_has_to() -> None:
    done = cli("transfer", "-t", "tiny.yaml", "--from", "rows.json", "--to", "rows.json")
    assert done.code == 0
    assert done.out.startswith("optimal: nothing moves")


@pytest.mark.usefixtures("folder")
def test_without_time_nothing_is_proved() -> None:
    done = cli(*ASKED, "--time-limit", "0")
    assert done.code == 3
    assert "nothing is proved" in done.out.splitlines()[0]


@pytest.mark.usefixtures("folder")
def test_ranks_are_placed_by_ranges() -> None:
    done = cli(*ASKED, "--device-ids", "3,0-2", "--to-device-ids", "4-7", "--json")
    assert done.code == 0, done.err
    assert done.json()["kept_bytes"] == 0


@pytest.mark.usefixtures("folder")
def test_who_is_not_told_where_to_go_stays() -> None:
    """Ranks after it are on the devices of those before, where there are as many."""
    asked = [*ASKED]
    asked[4] = "columns.json"
    assert "nothing moves" in cli(*asked, "--device-ids", "2-5").out
    fewer = json.loads(json.dumps(COLUMNS))
    wider = fewer | {"devices": 6}
    Path("more.json").write_text(json.dumps(wider))
    asked[6] = "more.json"
    refused(cli(*asked, "--device-ids", "2-5"), "say their devices by --to-device-ids")
    assert cli(*asked, "--device-ids", "2-5", "--to-device-ids", "0-5").code == 0


HOSTED = TINY.replace("name: tiny", "name: named") + "hosts: b[1-2]\n"


def test_hosts_say_the_devices_and_name_the_ports(folder: Path) -> None:
    (folder / "named.yaml").write_text(HOSTED)
    asked = [*ASKED, "--nominal"]
    asked[2] = "named.yaml"
    named = cli(*asked, "--hosts", "b2", "--to-hosts", "b1", "--json")
    assert named.code == 0, named.err
    numbers = cli(*asked, "--device-ids", "4-7", "--to-device-ids", "0-3", "--json")
    assert named.json() == numbers.json()
    assert named.json()["binding"] == "sending of b2"
    assert "port 0 of b1, in" in named.json()["levels"][0]["port"]
    assert cli(*asked, "--hosts", "b2", "--json").json()["levels"][0]["level"] == "gpu"
    refused(cli(*asked, "--hosts", "b3"), "host 'b3': is not in named")
    refused(cli(*asked, "--hosts", "b1,b1"), "names 'b1' twice")
    refused(cli(*asked, "--hosts", "b1", "--device-ids", "0-3"), "says what --device-ids says")
    refused(cli(*ASKED, "--hosts", "b1"), "names no hosts")


@pytest.mark.usefixtures("folder")
def test_more_ranks_than_devices_are_counted() -> None:
    words = ("-m", "llama-3-8b", "--from", "fsdp:dp=8", "--to", "vllm:tp=8,engines=17")
    done = cli("transfer", "-t", "dgx-h100:16", *words)
    refused(done, "--to vllm:tp=8,engines=17: 136 ranks: the cluster has 128 devices")


@pytest.mark.parametrize(
    ("layout", "said"),
    [("none.json", "does not exist"), ("rows.yaml", "is of no known framework")],
)
@pytest.mark.usefixtures("folder")
def test_what_is_no_layout_file_is_refused(layout: str, said: str) -> None:
    refused(cli(*ASKED[:3], "--from", layout, "--to", "columns.json"), said)


@pytest.mark.usefixtures("folder")
def test_no_layout_is_written_over() -> None:
    refused(cli(*ASKED, "-o", "columns.json"), "'columns.json': is a file that is read")
    refused(cli(*ASKED, "-o", "x.py", "--code", "./x.py"), "--code './x.py': is the file of")
    assert json.loads(Path("columns.json").read_text()) == COLUMNS


@pytest.mark.usefixtures("folder")
def test_both_layouts_are_needed() -> None:
    refused(cli(*ASKED[:5]), "--to: is missing")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--memory", "1B"), "an element of each piece"),
        (("--dtype", "i8"), "quantised ones have scales"),
        (("--dtype", "fp8"), "is none that weights are sent in"),
        (("--device-ids", "0-2"), "3 source devices: the layout has 4"),
        (("--device-ids", "0,1,2,2"), "source device 2: is named twice"),
        (("--to-device-ids", "4-8"), "5 target devices: the layout has 4"),
        (("--to-device-ids", "5-8"), "target device 8"),
        (("--to-device-ids", "3-0"), "is no range"),
        (("--to-device-ids", "0-x"), "a device"),
    ],
)
@pytest.mark.usefixtures("folder")
def test_bad_options_are_one_line(words: tuple[str, ...], said: str) -> None:
    refused(cli(*ASKED, *words), said)


def lost(layout: dict[str, Any]) -> None:
    del layout["tensors"][0]["boxes"][2]


def doubled(layout: dict[str, Any]) -> None:
    layout["tensors"][0]["boxes"][2]["devices"] = [2]
    layout["tensors"][0]["boxes"].append({"box": [[5, 6], [4, 5]], "devices": [2]})


def renamed(layout: dict[str, Any]) -> None:
    layout["tensors"][0]["name"] = "v"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lost, "--to columns.json: element [0, 4] of tensor 'w': is held by no device"),
        (doubled, "element [5, 4] of tensor 'w': is held by device 2 twice"),
        (renamed, "tensor 'v': is missing in the first layout"),
    ],
)
def test_a_bad_layout_is_named(
    folder: Path, change: Callable[[dict[str, Any]], None], said: str
) -> None:
    layout = copy.deepcopy(COLUMNS)
    change(layout)
    (folder / "columns.json").write_text(json.dumps(layout))
    refused(cli(*ASKED), said)


def test_links_without_a_switch_are_refused(folder: Path) -> None:
    (folder / "tiny.yaml").write_text(TINY.replace("kind: switch", "kind: ring"))
    refused(cli(*ASKED), "switched links alone")


@pytest.mark.usefixtures("folder")
def test_rules_of_others_are_compared() -> None:
    done = cli(*ASKED, "--compare", "megatron,alpa", "--json")
    assert done.code == 0, done.err
    found = done.json()["compared"]
    assert [one["rule"] for one in found] == [
        "Megatron's planner",
        "Alpa's sends",
        "Alpa's broadcasts",
    ]
    assert all(one["times_bound"] >= 1 - 1e-9 and one["port"] for one in found)
    assert "the first holder: 1.00 x the bound, " in cli(*ASKED, "--compare", "first").out
    rules = ("--compare", "megatron,awex,alpa,m2n,gather,first")
    text = cli(*ASKED, *rules, "--details").out
    assert all(name in text for name in ("NCCL's m2n", "gather and broadcast", "the first holder"))
    assert "plan     1 tensor in" in text
    assert cli(*ASKED, *rules, "--csv").out.startswith("rule,seconds,times_bound,port")
    assert cli(*ASKED, "--csv").out.startswith("level,")
    refused(cli(*ASKED, "--compare", "nobody"), "--compare 'nobody': is none of megatron")


@pytest.mark.usefixtures("folder")
def test_a_plan_that_relays_is_verified_as_one() -> None:
    """Columns on every other device: the cards between them are idle."""
    words = ("--device-ids", "0,2,4,6", "--to-device-ids", "8,10,12,14", "--nominal")
    asked = [*ASKED, *words]
    asked[2] = "dgx-h100:2"
    direct = cli(*asked, "--json").json()
    relayed = cli(*asked, "--relay", "-o", "plan.json", "--json").json()
    assert relayed["relayed"]
    assert relayed["bandwidth_s"] < 0.6 * direct["bandwidth_s"]
    assert relayed["relayed_bound_s"] is None
    assert cli("verify", "plan.json").code == 0
    data = json.loads(Path("plan.json").read_text())
    Path("plan.json").write_text(json.dumps(data | {"relayed": False}))
    assert "is sent to device" in cli("verify", "plan.json").out


@pytest.mark.usefixtures("folder")
def test_a_file_says_that_plans_with_relays_may_take_less(folder: Path) -> None:
    """As the command does; files of before do not know, and no plan takes less than it says."""
    words = ("--device-ids", "0,2,4,6", "--to-device-ids", "8,10,12,14", "--nominal")
    asked = [*ASKED, *words]
    asked[2] = "dgx-h100:2"
    told = cli(*asked, "-o", "plan.json").out
    shown = cli("show", "plan.json").out
    for text in (told, shown):
        assert "of plans without relays" in " ".join(text.split())
        assert "which --relay seeks" in " ".join(text.split())
    assert cli("report", "plan.json", "-o", "page.html").code == 0
    page = (folder / "page.html").read_text()
    assert "of plans without relays" in page
    assert "no plan without relays moves the bytes in less" in page
    assert cli("verify", "plan.json").code == 0
    data = json.loads((folder / "plan.json").read_text())
    assert data["relayed_bound_s"] < data["bandwidth_s"]
    before = {key: value for key, value in data.items() if key != "relayed_bound_s"}
    (folder / "plan.json").write_text(json.dumps(before))
    assert cli("verify", "plan.json").code == 0
    assert "relays" not in cli("show", "plan.json").out
    (folder / "plan.json").write_text(json.dumps(data | {"relayed_bound_s": 1.0}))
    assert "plans that relay are said to take 1.0 s or more" in cli("verify", "plan.json").out


# Broken plan files.


def plan(folder: Path) -> dict[str, Any]:
    assert cli(*ASKED, "-o", "plan.json").code == 0
    data: dict[str, Any] = json.loads((folder / "plan.json").read_text())
    return data


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("bandwidth_s", 1.0, "bytes take"),
        ("fill_s", 1.0, "latencies and filling add"),
        ("bound_s", "1", "the prices prove"),
        ("staging_bytes", 1, "bytes are staged"),
        ("buckets", 2, "are said to be"),
        ("prices", [], "it is said to be optimal"),
        ("pieces", [], "is in no piece"),
        ("source_devices", [0, 1, 2], "must be 0 to 2"),
    ],
)
def test_a_changed_plan_is_refused(folder: Path, key: str, value: object, said: str) -> None:
    (folder / "plan.json").write_text(json.dumps(plan(folder) | {key: value}))
    done = cli("verify", "plan.json")
    assert done.code == 1
    assert done.out.startswith("invalid: ")
    assert said in done.out


def test_changed_prices_prove_no_more(folder: Path) -> None:
    """Of 200 changed certificates none proves more than the plan takes."""
    data, chance = plan(folder), random.Random(1)
    for _ in range(200):
        changed = copy.deepcopy(data)
        one = chance.choice(changed["prices"])
        one["price"] = str(Fraction(one["price"]) * Fraction(chance.randrange(9), 4))
        (folder / "changed.json").write_text(json.dumps(changed))
        report = p2smt.verify(str(folder / "changed.json"))
        assert report.bound_s is not None  # type: ignore[union-attr]
        assert float(report.bound_s) <= data["bandwidth_s"] * (1 + 1e-9)  # type: ignore[union-attr]


def test_a_price_on_no_port_is_refused(folder: Path) -> None:
    data = plan(folder)
    data["prices"][0]["entity"] = 10**6
    (folder / "plan.json").write_text(json.dumps(data))
    assert "no such" in cli("verify", "plan.json").out


def test_the_file_says_what_was_asked(folder: Path) -> None:
    data = plan(folder)
    assert data["command"] == "p2smt " + " ".join(ASKED)
    text = cli("show", "plan.json").out
    assert f"{data['command']} -o plan.json" in " ".join(text.split())
    del data["command"]
    (folder / "plan.json").write_text(json.dumps(data))
    assert cli("verify", "plan.json").code == 0


@pytest.mark.usefixtures("folder")
def test_two_files_are_compared() -> None:
    for name, more in (("one", ()), ("two", ("--memory", "30B"))):
        assert cli(*ASKED, *more, "-o", f"{name}.json").code in (0, 3)
    done = cli("show", "one.json", "two.json")
    assert done.code == 0, done.err
    assert "verdict  The second takes " in done.out
    assert cli("report", "one.json", "two.json", "-o", "page.html").code == 0
    assert "What changes" in Path("page.html").read_text()


def test_a_plan_is_no_other_file(folder: Path) -> None:
    plan(folder)
    refused(cli("cost", "plan.json"), "a transfer, which p2smt cost does not take")


@pytest.mark.parametrize(("memory", "rounded"), [(100, True), (None, False)])
def test_a_gap_of_whole_elements_is_said_to_be(memory: int | None, rounded: bool) -> None:
    case = random_case(5, 8, 8, same=False, small=True)
    places = case.sources, case.targets
    layouts = case.before, case.after
    asked = TransferQuestion(
        cluster(16, 4), *layouts, *places, 2, nominal=True, memory_bytes=memory
    )
    answer = find_transfer(asked)
    assert (answer.status is Status.OPTIMAL) != rounded
    assert answer.rounded == rounded
    said = " ".join(" ".join(transfer_screen(answer, ())).split())
    assert ("optimal in one bucket: the gap is of whole elements alone" in said) == rounded


@pytest.mark.usefixtures("folder")
def test_a_cap_is_kept_by_buckets() -> None:
    done = cli(*ASKED, "--memory", "30B", "-o", "plan.json", "--json")
    assert done.code in (0, 3), done.err
    assert done.json()["buckets"] > 1
    assert done.json()["staging_bytes"] <= 30
    assert cli("verify", "plan.json").code == 0


# redistribute onto another mesh.

ARRAY = (
    *("redistribute", "-t", "dgx-h100:4", "--mesh", "dp=8,tp=4", "--shape", "512,512"),
    *("--from", "S(dp),S(tp)", "--to-mesh", "a=4,b=2,c=2", "--to", "S(b,c),S(a)"),
)


@pytest.mark.parametrize("ids", [(), ("--to-device-ids", "0-15"), ("--to-device-ids", "16-31")])
def test_an_array_goes_onto_another_mesh(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ids: tuple[str, ...]
) -> None:
    monkeypatch.chdir(tmp_path)
    done = cli(*ARRAY, *ids, "-o", "plan.json")
    assert done.code == 0, done.err
    assert done.out.startswith("optimal: ")
    assert cli("verify", "plan.json").code == 0


def test_an_array_is_drawn_and_coded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    made = ("--svg", "made.svg", "--code", "made.py", "--dtype", "i64")
    done = cli(*ARRAY, "--to-device-ids", "16-31", *made)
    assert done.code == 0, done.err
    assert done.out.endswith("code written to made.py\npicture written to made.svg\n")
    text = Path("made.py").read_text()
    compile(text, "made.py", "exec")
    assert "\nDTYPE = torch.int64\n" in text
    assert "inside node" in Path("made.svg").read_text()


@pytest.mark.usefixtures("folder")
def test_code_is_of_two_meshes() -> None:
    one = [word for word in ARRAY if word not in ("--to-mesh", "a=4,b=2,c=2")]
    one[one.index("S(b,c),S(a)")] = "R,S(dp,tp)"
    refused(cli(*one, "--code", "made.py"), "--code: is written of a way to another mesh")
    assert not Path("made.py").exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--memory", "1GiB"), "--memory: is of steps on one mesh"),
        (("--keep-source",), "--keep-source: is of steps on one mesh"),
        (("--steps", "2"), "--steps: is of steps on one mesh"),
        (("--cuts", "levels"), "--cuts: is of steps on one mesh"),
        (("--compare", "dtensor"), "--compare: is told of steps on one mesh"),
        (("--backward",), "--backward: is told of steps on one mesh"),
        (("--algorithm", "ring"), "--algorithm: is told of steps on one mesh"),
        (("--svg", "made.png"), "must be named .svg"),
        (("--code", "made.txt"), "must be named .py"),
        (("--code", "made.py", "-o", "./made.py"), "--code 'made.py': is the file of --output"),
        (("--to-device-ids", "0-14"), "15 target devices: the layout has 16"),
        (("--to-device-ids", "30-45"), "target device 32"),
    ],
)
def test_what_is_of_one_mesh_is_refused(words: tuple[str, ...], said: str) -> None:
    refused(cli(*ARRAY, *words), said)


def test_partial_values_do_not_cross_meshes() -> None:
    asked = [*ARRAY]
    asked[asked.index("S(dp),S(tp)")] = "S(dp),R;P(tp)"
    refused(cli(*asked), "partial values")
