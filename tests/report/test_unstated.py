"""Uplinks of which nobody stated the bandwidth: no command tells a time that rests on them."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from p2smt.cluster.allocation import unstated_levels
from p2smt.cluster.file import parse_topology
from tests.cli.test_options import EVERY
from tests.cli.tools import H100, RACKS, SMALL, assert_one_error, cli
from tests.transfer.files import cut

EVEN = (
    RACKS.replace("size: 3", "size: 2")
    .replace("n[1,3,5]", "n[1,3]")
    .replace(", bandwidth: 5 GB/s", "")
)
SCENE = "-t even.yaml -a dp=4,tp=2 --placement '[[2,2,1],[1,1,2]]'"
ARRAY = "-t even.yaml --mesh dp=4,tp=2 --shape 64,64 --from 'S(dp),S(tp)' --to 'R,S(dp,tp)'"
TRAINED = "-t even.yaml --model small.yaml --global-batch 16 --seq 1024"
HOSTS = "-t even.yaml -a dp=2,pp=2,tp=2 --reduce dp=1GiB --send pp=1MiB"
WITHOUT_TIMES = (
    f"solve {HOSTS} -o new.json",
    f"solve {HOSTS} --hosts n[1-4]",
    "solve -t even.yaml -a dp=4,tp=2 --reduce dp=1GiB",
    f"compare {HOSTS}",
    f"compare {HOSTS} --hosts n[1-4] listed '[0,4,1,5,2,6,3,7]'",
    "placements -t even.yaml -a dp=4,tp=2",
    f"programs {SCENE} --reduce dp --limit 2",
    f"cost {SCENE} --reduce dp --symbolic --nominal --algorithm ring --details",
    "cost plan.json",
    "verify plan.json",
    "verify plan.json --prove",
    "run plan.json --backend reference --payload 8KiB",
    f"run {SCENE} --reduce dp --backend reference --payload 8KiB",
    f"crossings {SCENE} --reduce dp --nominal --algorithm ring",
    "crossings -t even.yaml -a dp=4,tp=2 --reduce dp --reduce tp --nominal --algorithm ring",
    "verify ring.xml -t even.yaml --cost 1MiB",
)
REFUSED = (
    f"cost {SCENE} --reduce dp=1GiB",
    f"cost {SCENE} --reduce dp --sizes 1MiB,1GiB",
    f"programs {SCENE} --reduce dp=1GiB --limit 2",
    f"redistribute {ARRAY} -o new.json",
    "transfer -t even.yaml --from before.json --to after.json -o new.json",
    f"redistribute {ARRAY.replace('--to', '--to-mesh a=8 --to').replace('R,S(dp,tp)', 'R,S(a)')}",
    "synthesize -t even.yaml --collective all-gather --size 1MiB -o new.xml",
    "synthesize -t even.yaml --collective all-gather --objective throughput -o new.json",
    f"estimate {TRAINED} --strategy tp=2,dp=4,zero=1",
    f"plan {TRAINED} -o new.json --svg new.svg",
    "cost array.json",
    "verify array.json",
    "run array.json --backend reference",
)
TIMED = (
    f"cost {SCENE} --reduce tp=1GiB",
    f"programs {SCENE} --reduce tp=1GiB --limit 2",
)
"""No group leaves a rack, so what its uplinks carry does not matter."""
NO_TIMES = ("wall_s", "time_limit_s", "samples_s")
"""Keys of seconds that the search took, or may take; and measured ones, in lists."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The topology, with a plan and an array's plan on it; the latter from where all is stated."""
    path = tmp_path_factory.mktemp("unstated")
    (path / "small.yaml").write_text(SMALL)
    (path / "even.yaml").write_text(EVEN + "assumed: [rack]\n" + H100)
    named = EVEN.replace("library: none", "library: nccl-2.30")
    (path / "named.yaml").write_text(named + "assumed: [rack]\n" + H100)
    (path / "stated.yaml").write_text(EVEN + H100)
    for name, dimension in (("before", 0), ("after", 1)):
        (path / f"{name}.json").write_text(json.dumps(cut(8, 64, dimension)))
    for words in (
        f"solve -t {path}/even.yaml -a dp=2,pp=2,tp=2 --reduce dp=1GiB -o {path}/plan.json",
        f"redistribute {ARRAY.replace('even', f'{path}/stated')} -o {path}/array.json",
        f"classics ring-all-reduce --ranks 8 -o {path}/ring.xml",
    ):
        done = cli(*shlex.split(words))
        assert done.code in (0, 3), done.err
    data = json.loads((path / "array.json").read_text())
    data["topology"]["assumed"] = ["rack"]
    (path / "array.json").write_text(json.dumps(data))
    return path


def seconds_in(data: Any, key: str = "") -> Iterator[tuple[str, Any]]:
    """Every number whose key says that it is seconds."""
    if isinstance(data, dict):
        for name, value in data.items():
            yield from seconds_in(value, name)
    elif isinstance(data, list):
        for value in data:
            yield from seconds_in(value, key)
    elif isinstance(data, int | float) and not isinstance(data, bool):
        timed = key.endswith(("_s", "seconds")) and not key.endswith("_per_s")
        if timed and not key.endswith(NO_TIMES):
            yield key, data


def test_seconds_are_found_wherever_they_are() -> None:
    found = seconds_in({"a": [{"objective_s": 1.0, "wall_s": 2}], "seconds": [[3.0], None]})
    assert list(found) == [("objective_s", 1.0), ("seconds", 3.0)]


@pytest.mark.parametrize("words", WITHOUT_TIMES)
def test_no_time_is_told(folder: Path, monkeypatch: pytest.MonkeyPatch, words: str) -> None:
    monkeypatch.chdir(folder)
    monkeypatch.delenv("SLURM_JOB_NODELIST", raising=False)
    told, data = cli(*shlex.split(words)), cli(*shlex.split(words), "--json")
    assert told.code == data.code in (0, 3), data.err
    assert list(seconds_in(data.json())) == []
    shown = re.sub("(?s)here: .*", "", told.out)  # what the topology says of its levels
    assert not re.search(r"\d (ns|us|ms|s)\b", shown), shown
    if not words.startswith("placements"):
        assert re.search(
            "the bandwidth of rack uplinks is not stated|not predicted", told.out + told.err
        )


@pytest.mark.parametrize("words", REFUSED)
def test_what_is_but_times_is_refused(
    folder: Path, monkeypatch: pytest.MonkeyPatch, words: str
) -> None:
    monkeypatch.chdir(folder)
    for more in ((), ("--json",)):
        done = cli(*shlex.split(words), *more)
        assert_one_error(done)
        assert (
            "the bandwidth of rack uplinks in racks: is not stated, so no time is told" in done.err
        )
    assert {path.name for path in folder.iterdir()} <= {*_FILES, "new.json"}


_FILES = (
    "small.yaml",
    "even.yaml",
    "named.yaml",
    "stated.yaml",
    "plan.json",
    "array.json",
    "ring.xml",
    "before.json",
    "after.json",
)


def test_every_command_on_a_topology_is_tried() -> None:
    on_links = {path for path, option in EVERY if "--topology" in option.opts}
    tried = {(words.split()[0],) for words in (*WITHOUT_TIMES, *REFUSED)}
    # measurements state the bandwidths; order takes plans of trainings, which there are none of;
    # export has a test of its own
    assert on_links - tried == {("calibrate",), ("order",), ("export",)}


def test_a_plan_file_has_no_times_and_is_held_to_it(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    plan = json.loads(Path("plan.json").read_text())
    assert list(seconds_in({**plan, "topology": None})) == []
    assert plan["objective_s"] is None
    Path("half.json").write_text(json.dumps({**plan, "objective_s": 1.0}))
    done = cli("verify", "half.json")
    assert_one_error(done)
    assert "times are null" in done.err
    Path("half.json").unlink()


@pytest.mark.parametrize("target", ["out.xml", "out.yaml"])
def test_what_is_exported_is_told_without_a_time(folder: Path, tmp_path: Path, target: str) -> None:
    done = cli("convert", str(folder / "plan.json"), str(tmp_path / target))
    assert done.code == 0, done.err
    assert "the bandwidth of rack uplinks is not stated, so no time is told" in done.out
    assert not re.search(r"\d (ns|us|ms|s)\b", done.out)


def test_a_choice_is_told_of_communicators_in_one_rack(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    asked = ("export", "--to", "nccl-tuner", "-t", "named.yaml", "--comms")
    inside = cli(*asked, "2x2")
    assert (inside.code, "allreduce" in inside.out) == (0, True), inside.err
    across = cli(*asked, "2x2,4x2")
    assert (across.code, across.out) == (2, "")
    assert "the bandwidth of rack uplinks in racks: is not stated, so no time is told" in across.err


@pytest.mark.parametrize("words", TIMED)
def test_what_crosses_no_such_uplink_has_times(
    folder: Path, monkeypatch: pytest.MonkeyPatch, words: str
) -> None:
    monkeypatch.chdir(folder)
    unstated = cli(*shlex.split(words), "--json")
    stated = cli(*shlex.split(words.replace("even", "stated")), "--json")
    assert (unstated.code, unstated.err) == (stated.code, "")
    assert unstated.json() == stated.json()


def test_a_level_of_one_entity_carries_nothing() -> None:
    one = "".join(line for line in RACKS.splitlines(keepends=True) if "rack1" not in line)
    one = one.replace("size: 2", "size: 1", 1)
    topology = parse_topology(one + "assumed: [rack]\n", "one")
    assert topology.hosts is not None
    assert (topology.hosts.assumed, unstated_levels(topology)) == (("rack",), ())
