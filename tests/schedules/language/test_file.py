"""Reading schedule files: what they mean, and what is refused, with the line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from p2smt.collectives.contract import Contribution, Goal, contract
from p2smt.errors import InputError
from p2smt.schedules.language.file_model import FileModel
from p2smt.schedules.language.instance import instantiate, parse_schedule, read_schedule
from p2smt.schedules.language.schedule_file import parse_symbolic, read_symbolic
from p2smt.schedules.model import Buffer, Connection, Schedule, Sizes, Span, StepRef
from tests.refusals import found_or_refusal, spliced
from tests.tiers import examples_of

HEAD = """\
p2smt_schedule: 1
name: a test
collective: {kind: allreduce, chunks: 2}
ranks: 2
"""


def steps_of(*lines: str, head: str = HEAD, **parameters: int) -> Schedule:
    """A schedule whose rank 0 has these lines."""
    text = head + "blocks:\n  - rank: 0\n    steps:\n" + "".join(f"      - {x}\n" for x in lines)
    return parse_schedule(text, "f.yaml", parameters)


def test_the_fields_of_a_step() -> None:
    schedule = steps_of(
        "send i[0] to 1",
        "receive-reduce-copy-send i[0..1] from 1 channel 2 into o[0..1], s[2..3] to 1",
        'put i[0..1] into packet o[0..1]@1 post up[0, 1], "a b" wait for 0.0, 1.3 relaxed',
        "reduce o[0] + s[1] into o[0] after nothing background",
        "await up[0, 1] after 0.1",
        "barrier all",
    )
    send, fused, put, add, wait, barrier = schedule.steps
    assert send.send == Connection(0, 1, 0)
    assert send.count == 1
    assert fused.kind == "receive-reduce-copy-send"
    assert fused.receive == Connection(1, 0, 2)
    assert fused.writes == (Span(0, Buffer.OUTPUT, 0, 2), Span(0, Buffer.SCRATCH, 2, 2))
    assert put.writes == (Span(1, Buffer.OUTPUT, 0, 2, packet=True),)
    assert put.posts == ("up[0, 1]", "a b")
    assert put.waits == (StepRef(0, 0), StepRef(1, 3))
    assert put.relaxed
    assert add.reads == (Span(0, Buffer.OUTPUT, 0, 1), Span(0, Buffer.SCRATCH, 1, 1))
    assert add.after == ()
    assert add.background
    assert (wait.kind, wait.awaits, wait.after) == ("await", ("up[0, 1]",), (StepRef(0, 1),))
    assert (barrier.kind, barrier.barrier, barrier.count) == ("barrier", "all", 0)
    assert [step.line for step in schedule.steps] == [8, 9, 10, 11, 12, 13]
    assert [step.index for step in schedule.steps] == [0, 1, 2, 3, 4, 5]


def test_sizes_counters_and_goals() -> None:
    text = """\
p2smt_schedule: 1
collective:
  kind: custom
  starts: ["i[0..1]@0", "nothing, i[5]@1"]
  goals:
    - o[0]@1 = i[0]@0 + i[5]@1
    - repeat: {c: 1..2}
      do:
        - o[c]@0 = nothing
ranks: 2
buffers:
  - {scratch: 2 * 3}
  - {input: rank + 4, output: 0}
initial: ["free[0] = 2", "free[1] = 0"]
blocks: []
"""
    schedule = parse_schedule(text)
    first, second = Contribution(0, 0), Contribution(1, 5)
    assert schedule.contract.starts == ((first, Contribution(0, 1)), (None, second))
    assert schedule.contract.goals == (Goal(1, 0, (first, second)), Goal(0, 1, ()), Goal(0, 2, ()))
    assert schedule.sizes == (Sizes(2, 3, 6), Sizes(5, 0, 0))
    assert schedule.initial == (("free[0]", 2), ("free[1]", 0))


def test_templates_loops_and_conditions() -> None:
    text = """\
p2smt_schedule: 1
parameters: {n: {at_least: 2}, last: n - 1}
collective: {kind: allreduce, chunks: n}
ranks: n
blocks:
  - rank: each
    steps:
      - repeat: {t: 0..n-2, peer: (rank + t + 1) mod n}
        when: rank != last
        do:
          - send i[peer] to peer
  - repeat: {b: 0..1}
    rank: 2 * b
    block: 1 + b
    steps:
      - nop
      - when: b
        do: [barrier x]
"""
    schedule = instantiate(parse_symbolic(text), {"n": 3})
    assert schedule.contract == contract("allreduce", 3, 3, in_place=False)
    told = [(s.rank, s.block, s.index, s.line, s.send and s.send.target) for s in schedule.steps]
    assert told == [
        (0, 0, 0, 11, 1),
        (0, 0, 1, 11, 2),
        (1, 0, 0, 11, 2),
        (1, 0, 1, 11, 0),
        (0, 1, 0, 16, None),
        (2, 2, 0, 16, None),
        (2, 2, 1, 18, None),
    ]
    assert instantiate(parse_symbolic(text), {"last": 2}) == schedule


@pytest.mark.parametrize(
    ("line", "rule"),
    [
        ("recieve i[0] from 1", "must begin with a verb; did you mean 'receive'"),
        ("send i[0]", "'send' does not go with these clauses; send CHUNKS to RANK"),
        ("receive from 1", "receive from RANK into CHUNKS"),
        ("copy i[0] to 1", "copy CHUNKS into CHUNKS"),
        ("reduce i[0] into o[0]", r"reduce CHUNKS \+ CHUNKS into CHUNKS"),
        ("rrs from 1 to 1", "rrs CHUNKS from RANK to RANK"),
        ("send x[0] to 1", "expected a clause|expected chunks"),
        ("send i[0 to 1", "expected ']'"),
        ("send i[0] to 1 to 1", "given twice"),
        ("send i[0] to 1 soon", "expected a clause"),
        ("send i[0..-2] to 1", "are not a range"),
        ("send i[t] to 1", "name 't': is not known here"),
        ("send i[0] to", "expected a number"),
        ("nop post 3", "expected a name"),
        ('nop post "\\x"', "is not a quoted text"),
        ("nop wait 1.0", "expected 'for'"),
        ("nop wait for 1", r"expected '\.'"),
        ("nop count 0-1", "must be 0 to"),
        ("7", "must be text"),
        ("{repeat: {t: 0..1..2}, do: []}", "expected the end"),
        ("{repeat: {rank: 0..1}, do: []}", "cannot be repeated over"),
        ("{when: 1 +, do: []}", "expected a number"),
        ("{wen: 1, do: []}", "unknown key 'wen'.*did you mean 'when'"),
        ("{repeat: {t: 0..5000000}, do: [nop]}", "gives more than 1000000"),
        ("{repeat: {t: 0..9, u: 0..999990}, do: []}", "gives more than 1000000"),
    ],
)
def test_a_wrong_line(line: str, rule: str) -> None:
    with pytest.raises(InputError, match=rf"f\.yaml, line 8: .*({rule})") as error:
        steps_of(line)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("old", "new", "rule"),
    [
        ("p2smt_schedule: 1", "p2smt_schedule: 2", "line 1: p2smt_schedule"),
        ("ranks: 2", "ranks: 0", "line 4: ranks 0: must be 1 to"),
        ("ranks: 2", "ranks: 99999999", "line 4: ranks 99999999"),
        ("ranks: 2", "ranks: n", "line 4: name 'n': is not known"),
        ("ranks: 2", "rank: 2", "line 4: unknown key 'rank'"),
        ("ranks: 2", "", "key is missing"),
        ("chunks: 2", "chunks: 0", "line 3: chunks 0: must be at least 1"),
        ("chunks: 2", "chunks: 3000000", "line 3: .*more than 4000000 contributions"),
        ("chunks: 2", "root: 2", "line 3: .*needs a number of chunks"),
        ("chunks: 2", "chunks: 2, starts: []", "line 3: starts and shift"),
        ("allreduce", "allredcue", "line 3: .*is not known; one of"),
        ("allreduce, chunks: 2", "x, goals: []", "line 3: no starts"),
        ("allreduce, chunks: 2", "x, goals: [], starts: ['o[0]', '']", "only input chunks"),
        ("allreduce, chunks: 2", "x, goals: ['i[0] = i[0]'], starts: ['', '']", "must be o"),
        (
            "allreduce, chunks: 2",
            "x, goals: ['o[0..1]@0 = i[0]@0'], starts: ['', '']",
            "line 3: goal: its parts",
        ),
        ("ranks: 2", "ranks: 2\nbuffers: [{}]", "line 5: 1 buffers"),
        ("ranks: 2", "ranks: 2\nbuffers: {scratch: -1}", "line 5: -1: must be 0 to"),
        ("ranks: 2", "ranks: 2\ninitial: [a]", "line 5: .*expected '='"),
        ("ranks: 2", "ranks: 2\nparameters: {rank: {}}", "line 5: parameter 'rank'"),
        ("ranks: 2", "ranks: 2\nparameters: {n: {}}", "parameter n: has no value; give n="),
        ("name: a test", "name: *a", "line 2: anchors and aliases"),
    ],
)
def test_a_wrong_head(old: str, new: str, rule: str) -> None:
    assert old in HEAD
    with pytest.raises(InputError, match=rf"^f\.yaml.*{rule}"):
        steps_of("nop", head=HEAD.replace(old, new))


def test_a_block_of_no_rank() -> None:
    with pytest.raises(InputError, match="line 6: rank 2: the ranks are 0 to 1"):
        parse_schedule(HEAD + "blocks:\n  - {rank: 2, steps: []}\n")


@pytest.mark.parametrize(
    ("given", "rule"),
    [
        ({}, "parameter k: has no value"),
        ({"k": 0}, "k = 0: must be 1 to 3"),
        ({"n": 6}, "n = 6: does not follow from a value of k"),
        ({"k": 2, "n": 8}, "n = 8: must be 4"),
        ({"m": 1}, "'m': is not a parameter; there is k, n"),
    ],
)
def test_wrong_parameters(given: dict[str, int], rule: str) -> None:
    parameters = "parameters: {k: {at_most: 3}, n: 2^k}\n"
    with pytest.raises(InputError, match=rule):
        steps_of("nop", head=HEAD.replace("ranks: 2", "ranks: n") + parameters, **given)


EXAMPLES = sorted((Path(__file__).parents[1] / "symbolic").glob("*.yaml"))


@settings(deadline=None, max_examples=examples_of(200))
@given(
    st.sampled_from(EXAMPLES).flatmap(
        lambda path: spliced(path.read_text(), "0129nkt[]{}()@.,:#-+^*/ \n\"'&!|>xorwhen")
    )
)
def test_damaged_files_give_a_schedule_or_one_line(text: str) -> None:
    found, said = found_or_refusal(of_size_3, text)
    assert found or said.startswith("f.yaml")


def of_size_3(text: str) -> Schedule:
    symbolic = parse_symbolic(text, "f.yaml")
    return instantiate(symbolic, {name: 3 for name, _ in symbolic.free})


def test_files(tmp_path: Path) -> None:
    path = tmp_path / "s.yaml"
    path.write_text(HEAD + "blocks: []\n")
    assert read_schedule(str(path)).ranks == 2
    path.write_bytes(b"\xff")
    with pytest.raises(InputError, match="is not UTF-8"):
        read_symbolic(str(path))
    with pytest.raises(InputError, match="cannot be read"):
        read_symbolic(str(tmp_path / "none.yaml"))


def test_the_schema_names_the_keys() -> None:
    schema = json.loads(json.dumps(FileModel.model_json_schema()))
    assert {"p2smt_schedule", "collective", "ranks", "blocks"} == set(schema["required"])
    assert schema["additionalProperties"] is False
