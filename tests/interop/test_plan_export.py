"""The groups of a plan's requests as files: right, with the channels that the plan counts on."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from p2smt.cluster.file import load_topology
from p2smt.collectives.contract import contract
from p2smt.errors import InputError
from p2smt.interop import plan_export
from p2smt.interop.mscclpp.parse import parse_mscclpp
from p2smt.interop.plan_export import ALGORITHMS, export_plan
from p2smt.interop.reading import AS_IT_STANDS
from p2smt.interop.schedule_files import read_schedule
from p2smt.plans.file import read_plan
from p2smt.plans.file_model import AnyPlan
from p2smt.plans.untimed import told
from p2smt.report.schedules.schedule_data import export_lines
from p2smt.schedules.classics import classic
from p2smt.schedules.cost.predict import schedule_cost
from p2smt.schedules.lower.lowered_request import PlanExport, machine_of, rings_of
from p2smt.schedules.model import Schedule
from p2smt.schedules.verify.report import Verdict
from p2smt.schedules.verify.verify import verify
from tests.cli.tools import EVERY_KIND, TINY, cli


def solved(folder: Path, topology: str, *options: str) -> AnyPlan:
    path = folder / "plan.json"
    made = cli("solve", "-t", topology, *options, "-o", str(path))
    assert made.code == 0, made.err
    return read_plan(str(path))


@pytest.fixture(scope="module")
def every_kind(tmp_path_factory: pytest.TempPathFactory) -> AnyPlan:
    folder = tmp_path_factory.mktemp("every")
    (folder / "tiny.yaml").write_text(TINY)
    return solved(folder, str(folder / "tiny.yaml"), *EVERY_KIND)


CARDS = """
name: cards
algorithms: [ring]
levels:
  - name: node
    size: 2
    link: {kind: switch, bandwidth: 100 GB/s, latency: 5 us, ports: 4}
  - {name: gpu, size: 4, link: {kind: switch, bandwidth: 270 GB/s, latency: 2 us}}
"""


@pytest.fixture(scope="module")
def cards(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A topology file of two nodes with four devices and a card for each."""
    path = tmp_path_factory.mktemp("cards") / "cards.yaml"
    path.write_text(CARDS)
    return str(path)


@pytest.fixture(scope="module")
def flat(cards: str) -> AnyPlan:
    """One ring over them."""
    return solved(Path(cards).parent, cards, "--axes", "dp=8", "--reduce", "dp=1GiB")


def schedules(made: PlanExport) -> list[Schedule]:
    """The files as they are read."""
    return [read_schedule(file.text, file.path, AS_IT_STANDS) for file in made.files]


def right(schedule: Schedule) -> None:
    report = verify(schedule)
    assert (report.verdict, report.violations, report.warnings) == (Verdict.VALID, (), ())
    assert schedule.warnings == ()


COLLECTIVES = ("allreduce", "reduce_scatter", "allgather", "alltoall")


@pytest.mark.parametrize("ending", ["xml", "json"])
@pytest.mark.parametrize("number", range(4))
def test_every_group_is_a_communicator(every_kind: AnyPlan, number: int, ending: str) -> None:
    made = export_plan(every_kind, number, f"out.{ending}")
    found = schedules(made)
    assert len(found) == made.groups == (1 if number == 2 else 2)
    for schedule in found:
        right(schedule)
        name, ranks, sizes = COLLECTIVES[number], schedule.ranks, schedule.sizes[0]
        chunks = min(sizes.input, sizes.output) // (ranks if name == "alltoall" else 1)
        in_place = name != "alltoall"
        assert schedule.contract == contract(name, ranks, chunks, in_place=in_place)
    devices = [device for file in made.files for device in file.content.devices]
    assert sorted(devices) == list(range(8))
    numbered = [f"out.{n}.{ending}" for n in (1, 2)]
    assert [file.path for file in made.files] == ([f"out.{ending}"] if number == 2 else numbered)


def test_one_group_alone(every_kind: AnyPlan) -> None:
    every = export_plan(every_kind, 0, "out.xml")
    for number, file in enumerate(every.files, start=1):
        alone = export_plan(every_kind, 0, "only.xml", number)
        assert [(f.path, f.text, f.group) for f in alone.files] == [("only.xml", file.text, number)]
        assert alone.exported_s == every.exported_s


def test_yaml_holds_all_groups(every_kind: AnyPlan) -> None:
    for number in range(5):
        made = export_plan(every_kind, number, "out.yaml")
        (found,) = schedules(made)
        right(found)
        assert found.ranks == 8
    (alone,) = schedules(export_plan(every_kind, 4, "out.yaml", 1))
    assert alone.ranks == 2


@pytest.mark.parametrize(
    ("request_", "group", "target", "words"),
    [
        (0, 3, "out.xml", "group 3: the groups are 1 to 2"),
        (2, 2, "out.json", "group 2: there is one group"),
        (5, None, "out.xml", "request 6: the requests are 1 to 5"),
        (4, None, "out.xml", "request 5, a send: is no collective of MSCCL XML; .*yaml"),
        (4, 1, "out.json", "request 5, a send: is no collective of MSCCL[+][+] JSON; .*yaml"),
        (0, None, "out.txt", "formats are"),
    ],
)
def test_what_cannot_be_exported(
    every_kind: AnyPlan, request_: int, group: int | None, target: str, words: str
) -> None:
    with pytest.raises(InputError, match=words):
        export_plan(every_kind, request_, target, group)


def test_single_devices_have_nothing_to_exchange(tmp_path: Path) -> None:
    (tmp_path / "tiny.yaml").write_text(TINY)
    asked = ("--axes", "dp=8,tp=1", "--reduce", "tp=1MiB", "--reduce", "dp=1MiB")
    plan = solved(tmp_path, str(tmp_path / "tiny.yaml"), *asked)
    with pytest.raises(InputError, match="single devices"):
        export_plan(plan, 0, "out.xml")


def test_shards_in_another_order_are_ranks_in_another_order(tmp_path: Path) -> None:
    """Reduce-scatter between the nodes, then inside, leaves shards across the device order."""
    (tmp_path / "tiny.yaml").write_text(TINY)
    asked = ("--axes", "dp=8", "--reduce-scatter", "dp=1GiB")
    plan = solved(tmp_path, str(tmp_path / "tiny.yaml"), *asked)
    shards = plan.requests[0].shards
    made = export_plan(plan, 0, "out.xml")
    (group,) = [file.content for file in made.files]
    assert shards is not None
    assert [shards[device] for device in group.devices] == list(range(8))
    (found,) = schedules(made)
    right(found)
    assert found.contract.collective == "reduce_scatter"


@pytest.mark.exhaustive
def test_a_ring_for_every_port(flat: AnyPlan, cards: str) -> None:
    """With a single ring it takes 18.8 ms instead of 7.0 ms: one card of four is used."""
    topology, bytes_ = load_topology(cards), flat.requests[0].bytes
    for ending in ("xml", "json", "yaml"):
        made = export_plan(flat, 0, f"out.{ending}", algorithm="ring")
        assert made.exported_s is not None
        assert made.exported_s < 1.05 * told(made.plan_s)
        (found,) = schedules(made)
        priced = schedule_cost(found, topology, bytes_).time_s
        assert priced == pytest.approx(made.exported_s, rel=0.01)
    used = schedule_cost(found, topology, bytes_).links
    assert len({load.link for load in used if load.link.level == "node"}) == 2 * 2 * 4
    single = schedule_cost(classic("ring-all-reduce", 8), topology, bytes_)
    assert single.time_s > 2.5 * told(flat.requests[0].seconds)


@pytest.mark.exhaustive
def test_groups_that_are_alike_are_priced_by_one_of_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All together have more steps than are priced."""
    most = 2500
    monkeypatch.setattr(plan_export, "MAX_PRICED_STEPS", most)
    asked = ("--axes", "dp=32,tp=8", "--reduce", "dp=1GiB", "--fix", "dp=node:32")
    plan = solved(tmp_path, "dgx-a100:32", *asked)
    made = export_plan(plan, 0, "out.xml", 8, "ring")
    (file,) = made.files
    assert most < len(file.content.schedule.steps) * made.groups
    assert made.exported_s == pytest.approx(made.plan_s, rel=0.05)


def test_the_fastest_algorithm_is_taken(every_kind: AnyPlan) -> None:
    best = export_plan(every_kind, 0, "out.xml").exported_s
    found = [export_plan(every_kind, 0, "out.xml", algorithm=name) for name in ALGORITHMS]
    times = [made.exported_s for made in found if made.exported_s is not None]
    assert best is not None
    assert min(times) <= best <= 1.1 * min(times)
    assert {made.means.split()[0] for made in found} == set(ALGORITHMS)


def test_ports_between_machines_only(flat: AnyPlan) -> None:
    (file,) = export_plan(flat, 0, "out.json", algorithm="ring").files
    for gpu in parse_mscclpp(file.text, file.path).gpus:
        for block in gpu.blocks:
            for op in block.operations:
                far = {c.kind for c in op.channels if (c.peer < 4) != (gpu.rank < 4)}
                near = {c.kind for c in op.channels if (c.peer < 4) == (gpu.rank < 4)}
                assert far <= {"port"}
                assert near <= {"memory"}


def _port(device: int, ports: int, under: int) -> int:
    return device % under * ports // under


@pytest.mark.parametrize("preset", ["dgx-a100:2", "dgx2:3", "aws-p4d:2", "gb200-nvl72:2"])
def test_rings_use_different_ports(preset: str) -> None:
    """Each ring is one round through every entity, and enters it by a port of its own."""
    topology, draw = load_topology(preset), random.Random(5)
    under, ports = topology.devices_under(0), topology.levels[0].link.ports
    whole = list(range(topology.devices))
    some = sorted(draw.sample(whole, topology.devices // 2))
    for devices in (whole, some):
        rings = [[devices[place] for place in ring] for ring in rings_of(topology, devices)]
        reached = [{_port(d, ports, under) for d in devices if d // under == e} for e in (0, 1)]
        assert len(rings) >= max(map(len, reached))
        for ring in rings:
            assert sorted(ring) == devices
            crossings = [
                a // under != b // under for a, b in zip(ring, [*ring[1:], ring[0]], strict=True)
            ]
            assert sum(crossings) == topology.levels[0].size
    rings = rings_of(topology, whole)
    assert {_port(ring[0], ports, under) for ring in rings} == set(range(ports))
    assert {_port(ring[-1], ports, under) for ring in rings} == set(range(ports))


def test_one_ring_where_one_port_is_reached() -> None:
    topology = load_topology("dgx-a100:4")
    assert rings_of(topology, [0, 8, 16]) == [[0, 1, 2]]
    assert rings_of(topology, [0, 1, 2, 3]) == [[0, 1, 2, 3]]
    assert len(rings_of(load_topology("gcp-a2-highgpu-16g:2"), list(range(32)))) == 1


def test_machines() -> None:
    assert [machine_of(load_topology("dgx-a100:2"), d) for d in (0, 7, 8)] == [0, 0, 1]
    rack = load_topology("gb200-nvl72:2")
    assert machine_of(rack, 0) == machine_of(rack, rack.devices // 2 - 1)
    assert machine_of(rack, 0) != machine_of(rack, rack.devices // 2)


def test_what_the_export_loses_is_told(tmp_path: Path) -> None:
    asked = ("--axes", "dp=4,tp=4", "--reduce", "dp=64KiB", "--reduce", "tp=16MiB", "--nominal")
    plan = solved(tmp_path, "azure-ndv5:2", *asked)
    kept, lost = (list(export_lines(export_plan(plan, 0, f"o.{e}")))[-1] for e in ("xml", "json"))
    assert "as exported (ring LL)" in kept
    assert "1.00 times as long" in kept
    assert "the plan counts on" not in kept
    assert "(ring Simple)" in lost
    assert lost.endswith("the plan counts on ring ll")
