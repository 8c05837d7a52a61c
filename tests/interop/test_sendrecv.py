"""``sendrecv``: every rank's input ends in the output of the next rank, in a ring."""

from __future__ import annotations

import pytest

from p2smt.collectives.contract import Contribution, contract
from p2smt.errors import InputError
from p2smt.interop.mscclpp.read import read_mscclpp
from p2smt.interop.mscclpp.write import write_mscclpp
from p2smt.interop.schedule_files import written
from p2smt.runtime.schedules.reference import run_reference
from p2smt.schedules.families.family import prove_family
from p2smt.schedules.language.instance import parse_schedule
from p2smt.schedules.language.schedule_file import parse_symbolic
from p2smt.schedules.language.schedule_text import dump_schedule
from p2smt.schedules.verify.report import Kind, Verdict
from p2smt.schedules.verify.verify import verify
from tests.interop.mscclpp.plans import NOP, Data, block, far, gpu, move, near, over, plan, read
from tests.refusals import refusal

FAMILY = """p2smt_schedule: 1
name: to the next
parameters:
  n: {at_least: 2}
collective: {kind: sendrecv, chunks: 2}
ranks: n
blocks:
  - rank: each
    block: 0
    steps:
      - send i[0..1] to (rank + 1) mod n
  - rank: each
    block: 1
    steps:
      - receive from (rank - 1) mod n into o[0..1]
"""


def plan_of(ranks: int, by: int = 1, collective: str = "sendrecv") -> Data:
    """Each rank puts its input into the output of the rank ``by`` further on, and waits."""
    gpus = []
    for rank in range(ranks):
        to, source = (rank + by) % ranks, (rank - by) % ranks
        ops = [
            over("signal", 1),
            over("wait", 0),
            NOP,
            move("put", [near("i", 0)], [far(0, 0)]),
            NOP,
            over("signal", 0),
            over("wait", 1),
            NOP,
        ]
        made = block(ops, memory=2, buffers=1)
        gpus.append(gpu(rank, [made], sizes=(1, 1, 0), memory=(to, source), remote=((to, "o"),)))
    return plan(gpus, collective=collective, inplace=False)


def test_the_contract() -> None:
    found = contract("sendrecv", 3, 2)
    got = {(goal.rank, goal.chunk): goal.parts for goal in found.goals}
    expected = {(r, c): (Contribution((r - 1) % 3, c),) for r in range(3) for c in range(2)}
    assert got == expected
    assert [len(start) for start in found.starts] == [2, 2, 2]
    assert contract("sendrecv", 3, 2, in_place=True).shift == (0, 0, 0)


@pytest.mark.parametrize("ranks", [3, 4])
@pytest.mark.parametrize("name", ["sendrecv", "send_recv"])
def test_a_plan_to_the_next_rank_is_valid(ranks: int, name: str) -> None:
    schedule = read(plan_of(ranks, collective=name))
    assert schedule.contract.collective == "sendrecv"
    assert verify(schedule).verdict is Verdict.VALID
    assert read_mscclpp(write_mscclpp(schedule), "f").contract == schedule.contract


def test_a_plan_to_another_rank_is_not() -> None:
    report = verify(read(plan_of(4, by=3)))
    assert report.verdict is Verdict.INVALID
    assert report.violations[0].kind is Kind.FOREIGN
    assert "contains rank 0's chunk 0" in report.violations[0].message


def test_msccl_has_no_name_for_it() -> None:
    schedule = parse_schedule(FAMILY, "f", {"n": 3})
    with pytest.raises(InputError, match="MSCCL XML has no collective 'sendrecv'"):
        written(schedule, "f.xml")


def test_yaml_keeps_its_name_and_the_reference_executor_runs_it() -> None:
    schedule = parse_schedule(FAMILY, "f", {"n": 3})
    assert parse_schedule(dump_schedule(schedule), "f").contract == schedule.contract
    assert "kind: sendrecv" in dump_schedule(schedule)
    assert verify(schedule).verdict is Verdict.VALID
    assert run_reference(schedule, seed=1).ok


def test_every_size_of_it() -> None:
    found = prove_family(parse_symbolic(FAMILY, "f"), 5)
    assert found.verdict is Verdict.VALID
    wrong = FAMILY.replace("(rank + 1)", "(rank + 2)").replace("(rank - 1)", "(rank - 2)")
    assert prove_family(parse_symbolic(wrong, "f"), 5).verdict is Verdict.INVALID


@pytest.mark.parametrize("key", ["inputChunks", "chunkGroups"])
def test_plans_of_the_older_dialect_are_named_as_such(key: str) -> None:
    old = plan_of(2)
    old["gpus"][1] |= {key: 1, "channels": [{"srcbuff": "i", "type": "sm", "connectedTo": [0]}]}
    text = refusal(read, old)
    assert f"gpus[1]: the key {key!r} is of the plans of MSCCL++ before 0.8.0" in text
    assert "make the plan again" in text
