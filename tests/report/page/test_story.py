"""What pages say, without a browser: verdict and numbers, the same bytes, refusals, names."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from html import unescape
from pathlib import Path
from typing import Any

import pytest

from p2smt.api.files import read_schedule
from p2smt.cli.codes import BAD_INPUT
from p2smt.report.page.charts import front_of, ticks
from p2smt.report.page.cluster_map import columns_of, runs
from p2smt.report.page.html import json_text, page
from p2smt.report.page.reading import Names
from p2smt.report.page.schedule_story import messages_of
from p2smt.report.page.sources import story_of
from p2smt.report.page.story import PlotPoint, clean
from p2smt.report.page.words import format_time3
from p2smt.schedules.classics import classic
from p2smt.units import format_gigabytes
from tests.cli.tools import assert_one_error, cli
from tests.report.page.inputs import KINDS, read


def text_of(html: str) -> str:
    """What a reader without script sees: no style, script or data."""
    bare = re.sub(r"<(style|script)[^>]*>.*?</\1>", "", html, flags=re.S)
    return unescape(re.sub(r"<[^>]+>", " ", bare))


@pytest.mark.parametrize("name", KINDS)
def test_every_kind_has_a_verdict_and_numbers_without_script(inputs: Path, name: str) -> None:
    story = story_of([str(inputs / name)])
    said = text_of(page(story))
    assert story.verdict in said
    for figure in story.figures:
        assert figure.value in said
    for section in story.sections:
        assert section.lead in said
    assert page(story) == page(story_of([str(inputs / name)]))


@pytest.mark.parametrize("name", KINDS)
def test_the_terminal_has_at_most_twenty_lines(inputs: Path, name: str) -> None:
    done = cli("show", str(inputs / name))
    lines = done.out.splitlines()
    assert done.code == 0
    assert len(lines) <= 20
    assert all(len(line) <= 80 for line in lines)
    verdict = " ".join(done.out.split("verdict")[1].split())
    assert verdict.startswith(story_of([str(inputs / name)]).verdict[:60])


def test_a_plan_says_what_its_file_says(inputs: Path, tmp_path: Path) -> None:
    data = read(inputs / "training.json")
    story = story_of([str(inputs / "training.json")])
    seconds = data["training"]["prediction"]["iteration_s"]
    assert story.figures[0].value == format_time3(seconds)
    titles = [one.title for one in story.sections]
    assert titles[:3] == ["Where the time goes", "Memory against the device", "Who sits where"]
    assert story.commands[0] == f"{data['answer']['command']} -o training.json"
    assert "Not proved" not in story.verdict
    unproved = data | {"answer": data["answer"] | {"status": "feasible"}}
    (tmp_path / "open.json").write_text(json.dumps(unproved))
    assert "Not proved" in story_of([str(tmp_path / "open.json")]).verdict
    (scatter,) = next(one for one in story.sections if one.title == "What else would do").pictures
    assert len(scatter.points) >= len(data["answer"]["points"])  # type: ignore[union-attr]
    assert sum(one.chosen for one in scatter.points) == 1  # type: ignore[union-attr]


def test_an_older_file_says_what_it_lacks(inputs: Path, tmp_path: Path) -> None:
    for name in ("training.json", "placed.json"):
        data = read(inputs / name)
        del data["answer"]
        (tmp_path / name).write_text(json.dumps(data))
        story = story_of([str(tmp_path / name)])
        assert "loads of every level" in story.lacks[0]
        assert "proved" not in story.verdict.lower() or name == "placed.json"
        assert "Steps that level" in "".join(one.lead for one in story.sections)


def test_of_two_files_the_gain_is_the_first_number(inputs: Path) -> None:
    first, second = (read(inputs / name) for name in ("other.json", "training.json"))
    story = story_of([str(inputs / "other.json"), str(inputs / "training.json")])
    times = [one["training"]["prediction"]["iteration_s"] for one in (first, second)]
    assert story.figures[0].value == f"{times[0] / times[1] - 1:+.1%}"
    assert story.verdict.startswith(story.figures[0].value)
    printed = read(inputs / "printed.json")
    other = story_of([str(inputs / "printed.json")])
    assert other.figures[0].value == f"{printed['comparison']['gain']:+.1%}"


def test_names_are_replaced_everywhere(inputs: Path, tmp_path: Path) -> None:
    data = json.dumps(read(inputs / "hosted.json"))
    for old, new in (("n1", "zebra-1"), ("n2", "zebra-2"), ("n3", "zebra-3"), ("n4", "zebra-4")):
        data = data.replace(f'"{old}"', f'"{new}"')
    data = data.replace("n[1,3,5]", "zebra-[1,3,5]").replace("n[2,4]", "zebra-[2,4]")
    data = data.replace("n[1,3]", "zebra-[1,3]").replace("n[1-4]", "zebra-[1-4]")
    data = data.replace("rack0", "zebra-rack0").replace("rack1", "zebra-rack1")
    data = data.replace('"racks"', '"zebra-cluster"').replace("racks.yaml", "zebra.yaml")
    path = tmp_path / "zebra.json"
    path.write_text(data)
    plain, hidden = (page(story_of([str(path)], Names(one))) for one in (False, True))
    assert plain.count("zebra") > 5
    assert "zebra" not in hidden
    assert "host 1" in hidden
    done = cli("report", str(path), "-o", str(tmp_path / "page.html"), "--anonymous")
    assert done.code == 0
    assert "zebra" not in (tmp_path / "page.html").read_text()
    refused = cli("show", str(inputs / "listed.json"), "--anonymous")
    assert_one_error(refused)


@pytest.mark.parametrize(
    "arguments",
    [
        ("report", "training.json"),
        ("report", "training.json", "-o", "page.json"),
        ("report", "missing.json", "-o", "page.html"),
        ("report", "tiny.yaml", "-o", "page.html"),
        ("report", "training.json", "placed.json", "-o", "page.html"),
        ("report", "training.json", "training.json", "training.json", "-o", "page.html"),
        ("show", "empty.json"),
        ("show", "list.json"),
    ],
)
def test_bad_input_is_one_line(
    inputs: Path, arguments: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for one in inputs.iterdir():
        (tmp_path / one.name).write_bytes(one.read_bytes())
    (tmp_path / "empty.json").write_text("{}")
    (tmp_path / "list.json").write_text("[]")
    monkeypatch.chdir(tmp_path)
    done = cli(*arguments)
    assert_one_error(done, BAD_INPUT)
    assert not Path("page.html").exists()


def test_numbers_of_an_answer_are_checked(inputs: Path, tmp_path: Path) -> None:
    data = read(inputs / "printed.json")
    for key, bad in (("parts", {"compute": "x"}), ("iteration_s", -1), ("memory", {"a": []})):
        spoiled: dict[str, Any] = data | {"recommended": data["recommended"] | {key: bad}}
        (tmp_path / "bad.json").write_text(json.dumps(spoiled))
        assert_one_error(cli("show", str(tmp_path / "bad.json")))


# Parts.


def test_texts_are_printable_and_short() -> None:
    assert clean("a\u202eb\nc") == r"a\u202eb c"
    assert len(clean("x" * 5000)) == 60
    found = json_text({"a": "</script><!--&\u2028"})
    assert not set("<>&\u2028") & set(found)
    assert json.loads(found) == {"a": "</script><!--&\u2028"}


def test_the_front_is_what_nothing_beats() -> None:
    places = [(3.0, 1.0), (1.0, 3.0), (2.0, 3.0), (2.0, 2.0), (3.0, 2.0), (1.0, 4.0)]
    points = [PlotPoint(x, y, "", "") for x, y in places]
    beaten = [any(o != p and o[0] <= p[0] and o[1] <= p[1] for o in places) for p in places]
    assert sorted(front_of(points)) == [at for at, one in enumerate(beaten) if not one]


def test_ticks_are_round_and_enclose() -> None:
    for low, high in ((0.0, 80.0), (5.19, 5.44), (6.1362, 6.13645), (1.0, 1.0), (0.0, 0.0)):
        found = ticks(low, high)
        assert found[0] <= low + 1e-12
        assert found[-1] >= high - 1e-12
        assert 2 <= len(found) <= 8


def test_runs_give_the_numbers_back() -> None:
    for numbers in ([], [4], [0, 1, 2, 3], [0, 8, 16, 1, 9, 17, 5], [3, 3, 3, 1]):
        back = [start + k * step for start, step, count in runs(numbers) for k in range(count)]
        assert back == numbers


def test_rounds_of_a_schedule_are_those_of_its_algorithm() -> None:
    for ranks in (2, 5, 8):
        sent, stuck = messages_of(classic("ring-all-reduce", ranks))
        assert stuck == 0
        assert max(one.round for one in sent) == 2 * (ranks - 1)
        assert {(one.source, one.target) for one in sent} == {
            (rank, (rank + 1) % ranks) for rank in range(ranks)
        }
    sent, _ = messages_of(classic("pairwise-all-to-all", 5))
    assert {one.round for one in sent} == {1}
    sent, _ = messages_of(classic("recursive-doubling-all-reduce", 8))
    assert max(one.round for one in sent) == 3


def test_a_signal_without_data_is_no_round(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ranks of MSCCL++ say that they are ready before the first message."""
    monkeypatch.chdir(tmp_path)
    for ranks in (4, 8):
        asked = ("classics", "ring-all-reduce", "--ranks", str(ranks), "-o", "ring.json")
        assert cli(*asked).code == 0
        sent, stuck = messages_of(read_schedule("ring.json"))
        assert (stuck, max(one.round for one in sent)) == (0, 2 * (ranks - 1))


def test_a_deadlock_is_told() -> None:
    schedule = classic("ring-all-reduce", 3)
    steps = tuple(
        replace(step, receive=step.receive and step.receive._replace(channel=9))
        for step in schedule.steps
    )
    broken = replace(schedule, steps=steps)
    _, stuck = messages_of(broken)
    assert stuck == len(steps) - 3  # each rank's first send comes


def test_grids_are_wide_and_full() -> None:
    from p2smt import load_topology

    assert columns_of(load_topology("dgx-h100:2048")) == (64, 4)
    for name in ("dgx-h100:2", "gb200-nvl72"):
        found = load_topology(name)
        for columns, size in zip(columns_of(found), found.sizes, strict=True):
            assert 1 <= columns <= size


def test_what_is_to_spare_is_of_what_a_training_may_use(inputs: Path) -> None:
    """As `plan` says it: what is kept free of a device is not to spare."""
    story = story_of([str(inputs / "training.json")])
    plan = read(inputs / "training.json")
    block = plan["training"]
    memory = block["prediction"]["memory"]
    needed = sum(value for key, value in memory.items() if key != "stage")
    (lead,) = [one.lead for one in story.sections if one.title.startswith("Memory")]
    left = format_gigabytes(block["memory_bytes"] - needed)
    usable = format_gigabytes(block["memory_bytes"])
    assert f"{format_gigabytes(needed)} of {usable} usable, {left} to spare." in lead


def test_a_plan_on_hosts_that_was_printed_says_what_a_device_has(
    inputs: Path, tmp_path: Path
) -> None:
    data = read(inputs / "on_hosts.json")
    given, run = data["free_bytes"], data["recommended"]
    assert given + run["capacity_bytes"] == 80 * 10**9
    (lead,) = [
        one.lead
        for one in story_of([str(inputs / "on_hosts.json")]).sections
        if one.title.startswith("Memory")
    ]
    assert f" of {format_gigabytes(run['capacity_bytes'])} usable, " in lead
    data["recommended_known"]["outside"] = ["cp=8: measured are 1 only"]
    for one in (run, data["best"], *data["top"]):
        one.pop("capacity_bytes", None)
    (tmp_path / "older.json").write_text(json.dumps(data))
    older = story_of([str(tmp_path / "older.json")])
    assert older.lacks[0] == "how much memory a device has: plan again"
    assert not any(one.title.startswith("Memory") for one in older.sections)
    assert older.warnings == (("Beyond what was measured", "cp=8: measured are 1 only"),)


def test_the_verdict_of_a_broken_schedule_is_its_first_word() -> None:
    assert story_of(["examples/lost_dependency.xml"]).verdict.startswith(
        "Invalid. rank 0 block 0 step 1 s "
    )


def test_a_certificate_is_told_as_a_claim(tmp_path: Path) -> None:
    """Nothing is checked for a page, so that no word of it may sound like a proof."""
    path = tmp_path / "bound.json"
    asked = "--fabric ring:4 --collective all-gather --steps 2 --rounds 3 --chunks 2"
    assert cli("synthesize", *asked.split(), "--certificate", str(path)).code == 0
    story = story_of([str(path)])
    assert story.title == "A schedule-certificate"
    assert "not checked" in story.verdict
    assert story.lacks == ()
