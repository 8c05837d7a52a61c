"""Written tuner files: they do what is asked, and every damage is found."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest

from p2smt.cluster.file import load_topology
from p2smt.cluster.topology import Topology
from p2smt.interop.tuners import regions as lookups
from p2smt.interop.tuners.choices import LARGEST_BYTES, LibraryCall, parse_comms
from p2smt.interop.tuners.formats import judged, tuner_format
from p2smt.interop.tuners.measured import ForcedTimes, read_forced
from p2smt.interop.tuners.nccl import NCCL, read_nccl
from p2smt.interop.tuners.regions import CommMember, Region, members_of, own_regions, regions
from p2smt.interop.tuners.rules import COLLECTIVES, TunerQuestion, chosen
from p2smt.interop.tuners.writers import AskedTuner, tuner_writer, write_tuner
from tests.interop.tuners.plugin import VARIABLE, asked_of
from tests.refusals import refusal

COMMS = parse_comms("1x8,2x8,4x8,4x1")
NOTHING = ForcedTimes({}, {})
LIBRARY = os.environ.get(VARIABLE, "")


@pytest.fixture(scope="module")
def cluster() -> Topology:
    return load_topology("dgx-h100:4")


def asked(cluster: Topology, measured: ForcedTimes = NOTHING, *, model: bool = False) -> AskedTuner:
    members = tuple(members_of(cluster, comm) for comm in COMMS)
    return AskedTuner(members, measured, 0.1, model)


def text_of(name: str, topology: Topology, what: AskedTuner) -> str:
    writer = tuner_writer(name)
    assert writer is not None
    return write_tuner(writer, topology, what, "FILE").text


def test_regions_change_where_what_holds_does() -> None:
    def at(size: int) -> tuple[str, str]:
        return ("b", "") if 777 <= size < 5000 else ("a", "")

    found = regions(at)
    assert [(one.first, one.last) for one in found] == [
        (0, 776),
        (777, 4999),
        (5000, LARGEST_BYTES),
    ]
    for one in found:
        assert at(max(one.first, lookups.SMALLEST)) == one.found == at(one.last)


def test_nccl_gets_its_own_choice_where_nothing_was_measured(cluster: Topology) -> None:
    text = text_of("nccl-tuner", cluster, asked(cluster))
    found = judged(text, COMMS)
    assert found.faults == ()
    assert found.format == "nccl-tuner"
    for member in asked(cluster).members:
        for collective in COLLECTIVES:
            for one in own_regions(cluster, member, collective):
                for size in (one.first, one.last):
                    call = found.choices.at(collective, member.comm, size)
                    assert call == LibraryCall(*one.found)


@pytest.mark.parametrize("name", ["rccl-tuner", "ncclx-tuner"])
def test_others_get_no_row_where_nothing_was_measured(name: str, cluster: Topology) -> None:
    topology = load_topology("mi300x:4") if name == "rccl-tuner" else cluster
    text = text_of(name, topology, asked(topology))
    assert all(line.startswith("#") for line in text.splitlines())
    assert judged(text, COMMS).format == name
    assert judged(text, COMMS, tuner_format(name)).faults == ()


def gain(first: int, last: int) -> ForcedTimes:
    """A tree with LL is twice as fast as the library's own choice from one size to another."""
    place, sizes = ("allreduce", COMMS[1]), [1 << k for k in range(10, 24)]
    own = dict.fromkeys(sizes, 2.0)
    tree = {size: 1.0 if first <= size <= last else 1.9 for size in sizes}
    return ForcedTimes({place: own}, {(place, ("tree", "ll")): tree})


@pytest.mark.parametrize("name", ["nccl-tuner", "ncclx-tuner"])
def test_a_measured_gain_is_written_and_no_more(name: str, cluster: Topology) -> None:
    before = judged(text_of(name, cluster, asked(cluster)), COMMS).choices
    found = judged(text_of(name, cluster, asked(cluster, gain(2**20, 2**22))), COMMS)
    assert found.faults == ()
    for size in (2**20, 2**21 + 48, 2**22):
        assert found.choices.at("allreduce", COMMS[1], size) == LibraryCall("tree", "ll")
    for size in (2**20 - 1, 2**22 + 16):
        place = ("allreduce", COMMS[1], size)
        assert found.choices.at(*place) == before.at(*place)
    same = ("allreduce", COMMS[2], 2**20)
    assert found.choices.at(*same) == before.at(*same)


def test_model_only_rows_say_so(cluster: Topology) -> None:
    plain = set(text_of("nccl-tuner", cluster, asked(cluster)).splitlines())
    text = text_of("nccl-tuner", cluster, asked(cluster, model=True))
    more = [line for line in text.splitlines() if line not in plain]
    assert more
    assert all(line.endswith(",-1,-1,model-only") for line in more)
    assert judged(text, COMMS).faults == ()


def test_gains_end_where_a_size_between_does_not_gain() -> None:
    place = ("allreduce", COMMS[0])
    own = {1: 1.0, 2: 1.0, 4: 1.0, 8: 1.0}
    forced = {1: 0.5, 2: 0.95, 4: 0.5, 8: 0.5}
    times = ForcedTimes({place: own}, {(place, ("ring", "ll")): forced})
    pair = ("ring", "ll")
    assert times.gains(place, 0.1) == (Region(1, 1, pair), Region(4, 8, pair))
    assert times.gains(place, 0.6) == ()
    assert ForcedTimes({place: own}, {}).gains(place, 0.1) == ()


def mutants(text: str, seed: int) -> list[str]:
    """A row dropped, two swapped, one renamed, one with -1 channels, the file cut."""
    draw, lines = random.Random(seed), text.splitlines()
    rows = [n for n, line in enumerate(lines) if line[0] != "#"]
    ends = [n for n in rows if lines[n].split(",")[1:3] == ["0", str(LARGEST_BYTES)]]
    last = draw.choice(ends)
    before = next(iter([n for n in rows if n + 1 in ends and n not in ends]))
    swapped = [*lines[:before], lines[before + 1], lines[before], *lines[before + 2 :]]
    any_row = draw.choice(rows)
    renamed = [*lines[:any_row], lines[any_row].capitalize(), *lines[any_row + 1 :]]
    words = lines[any_row].split(",")
    minus = [*lines[:any_row], ",".join([*words[:5], "-1", *words[6:]]), *lines[any_row + 1 :]]
    dropped = [*lines[:last], *lines[last + 1 :]]
    return ["\n".join(one) for one in (dropped, swapped, renamed, minus, lines[:last])]


@pytest.mark.parametrize("seed", range(8))
def test_every_damage_is_found(seed: int, cluster: Topology) -> None:
    for mutant in mutants(text_of("nccl-tuner", cluster, asked(cluster)), seed):
        assert judged(mutant, COMMS).faults


def test_groups_that_cannot_be_told_apart_and_want_other_rows(cluster: Topology) -> None:
    place = COMMS[1]
    two = (CommMember(place, tuple(range(16))), CommMember(place, tuple(range(16, 32))))
    same = text_of("nccl-tuner", cluster, AskedTuner(two, NOTHING))
    assert same == text_of("nccl-tuner", cluster, AskedTuner(two[:1], NOTHING))
    racks = load_topology("gb200-nvl72:2")
    crossing = CommMember(parse_comms("1x4")[0], (0, 1, 2, 3))
    other = CommMember(crossing.comm, (0, 1, 72, 73))
    said = refusal(text_of, "nccl-tuner", racks, AskedTuner((crossing, other), NOTHING))
    assert "cannot tell them apart" in said


def test_another_library_is_refused(cluster: Topology) -> None:
    said = refusal(text_of, "rccl-tuner", cluster, asked(cluster))
    assert "library" in said
    assert "nccl-2.30" in said


def test_a_communicator_larger_than_the_cluster_is_refused(cluster: Topology) -> None:
    assert "4 nodes of 8 devices" in refusal(members_of, cluster, parse_comms("5x8")[0])
    assert "4 nodes of 8 devices" in refusal(members_of, cluster, parse_comms("1x16")[0])


@pytest.mark.parametrize("text", ["", "8", "1x1", "0x8", "1x8,1x8", "1x8,", "x8", "1x9999999"])
def test_communicators_that_are_none(text: str) -> None:
    refusal(parse_comms, text)


@pytest.mark.parametrize("text", ["ring=a.txt", "ring/ll256=a.txt", "own", "own=", "=a"])
def test_measured_ways_that_are_none(text: str) -> None:
    assert "ring/ll128=a.txt" in refusal(read_forced, [text])


@pytest.mark.skipif(not LIBRARY, reason=f"{VARIABLE} names no built plugin")
def test_the_plugin_obeys_every_row(cluster: Topology, tmp_path: Path) -> None:
    text = text_of("nccl-tuner", cluster, asked(cluster, gain(2**20, 2**22), model=True))
    path, draw = tmp_path / "tuner.conf", random.Random(1)
    path.write_text(text)
    rules, table = read_nccl(text).rules, judged(text, COMMS).choices
    edges = {size + by for rule in rules for size in rule.sizes for by in (-1, 0, 1)}
    sizes = sorted(size for size in edges if 0 <= size <= LARGEST_BYTES)
    calls = [TunerQuestion(c, comm, s) for c in COLLECTIVES for comm in COMMS for s in sizes]
    for _ in range(5000):
        size = int(2 ** draw.uniform(0, 64)) - 1
        calls.append(TunerQuestion(draw.choice(COLLECTIVES), draw.choice(COMMS), size))
    answers = asked_of(path, LIBRARY, [(call, frozenset()) for call in calls])
    for call, answer in zip(calls, answers, strict=True):
        said = table.at(call.collective, call.comm, call.size)
        assert said is not None
        assert answer == ((said.algorithm, said.protocol), 0) == chosen(NCCL, rules, call)
