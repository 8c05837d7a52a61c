"""What every command prints with --json has the shape of its schema, and the schema no more."""

from __future__ import annotations

import json
import re
import shlex
from contextlib import chdir
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import typer

from p2smt.cli.app import app
from p2smt.cluster.file import load_topology
from p2smt.fabric.fabric_file import load_fabric
from p2smt.report.outputs.catalogue import OUTPUTS, listed, schema_of
from p2smt.resharding.plan_file import redistribution_plan_data, redistribution_text
from p2smt.resharding.types import ArrayType, ElementType, parse_layout, parse_mesh
from p2smt.synthesis.bounds import rate_bound
from tests.calibration.fixtures import ALL, INSIDE, TRUTH, as_json, made_samples, printed
from tests.calibration.fixtures import report as json_report
from tests.cli.tools import H100, INVERTED, RACKS, SIX, SMALL, TINY, cli
from tests.interop.clusters.texts import DEEP, TWICE
from tests.interop.msccl.texts import waiting
from tests.interop.mscclpp.plans import all_gather
from tests.resharding.planning import best_plan, dearest_plan
from tests.schemas.commands import COMMANDS, ERRORS, SYMBOLIC, WORDS
from tests.schemas.statuses import contradictions, gap_in_words, told_gaps
from tests.schemas.tools import complaints, declared, fields
from tests.synthesis.sizes.made import gathered
from tests.training.measured.csv_rows import text_of
from tests.transfer.files import COLUMNS, ROWS


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, plan: dict[str, Any]) -> Path:
    """The files that the commands read."""
    path = tmp_path_factory.mktemp("files")
    (path / "tiny.yaml").write_text(TINY)
    (path / "inverted.yaml").write_text(INVERTED)
    (path / "gpus.yaml").write_text(TINY + H100)
    (path / "hosts.yaml").write_text(RACKS + H100)
    (path / "six.yaml").write_text(SIX + H100)
    (path / "small.yaml").write_text(SMALL)
    (path / "twice.conf").write_text(TWICE)
    (path / "deep.conf").write_text(DEEP)
    (path / "racks.yaml").write_text(RACKS)
    (path / "unstated.yaml").write_text(RACKS + "assumed: [rack]\n")
    _plans(path, plan)
    done = cli(
        *("solve", "-t", str(path / "unstated.yaml"), "--hosts", "n[1-5]", "-a", "dp=5,tp=2"),
        *("--reduce", "dp=1GiB", "-o", str(path / "unstated_plan.json")),
    )
    assert done.code == 0, done.err
    done = cli(
        *("solve", "-t", str(path / "racks.yaml"), "--hosts", "n[1-5]", "-a", "dp=4,tp=2"),
        *("--reduce", "dp=1GiB", "-o", str(path / "hosted.json")),
    )
    assert done.code == 0, done.err
    for file, name in (
        ("ring.xml", "ring-all-reduce"),
        ("ring.yaml", "ring-all-reduce"),
        ("pairs.yaml", "one-shot-all-reduce"),
    ):
        assert cli("classics", name, "--ranks", "8", "-o", str(path / file)).code == 0
    text = (path / "ring.xml").read_text()
    (path / "wrong.xml").write_text(text.replace('type="rrc"', 'type="r"', 1))
    (path / "alike.xml").write_text(waiting(2))
    text = (path / "ring.yaml").read_text()
    (path / "racy.yaml").write_text(text.replace(" wait for 1.0", "").replace(" wait for 0.0", ""))
    text = (SYMBOLIC / "ring_all_reduce.yaml").read_text()
    (path / "wrong_family.yaml").write_text(text.replace("rank + 1 - t", "rank - t"))
    (path / "plan_of_mscclpp.json").write_text(json.dumps(all_gather()))
    _measurements(path)
    runs = [{"kind": "moe"}, {"mbs": ""}, *({"group": group} for group in ("k22-a", "ours"))]
    (path / "runs.csv").write_text(text_of(*runs))
    (path / "group.csv").write_text(text_of({}, {"mbs": "1"}))
    (path / "measured.yaml").write_text(TINY + H100 + ERRORS)
    _redistributions(path)
    _transfers(path)
    _certificates(path)
    _journals(path)
    (path / "tuner.conf").write_text("allreduce,0,9,ring,simple,0,1,8\n")
    (path / "bad.conf").write_text("# nccl-tuner:\nallreduc,0,64K,tree,ll,2,1,8\n")
    return path


def _journals(path: Path) -> None:
    """A list, a search for the best, the same broken off, and a list with a wrong count."""
    sizes = ("--levels", "4,16", "--axes", "4,16")
    question = ("-t", str(path / "tiny.yaml"), "-a", "dp=2,tp=4", "--reduce", "dp=1GiB")
    for name, words in (("list", ("placements", *sizes)), ("best", ("solve", *question))):
        done = cli(*words, "--journal", str(path / f"{name}.jsonl"))
        assert done.code == 0, done.err
    lines = (path / "best.jsonl").read_text().splitlines(keepends=True)
    (path / "cut.jsonl").write_text("".join(lines[:2])[:-3])
    text = (path / "list.jsonl").read_text()
    (path / "wrong.jsonl").write_text(text.replace('"count": 1', '"count": 2'))
    header, *records = map(json.loads, text.splitlines())
    given_up = {"verdict": "unknown", "count": None, "digest": None, "deaths": 3}
    records = [one | given_up if one["record"] == "closed" else one for one in records]
    (path / "died.jsonl").write_text("\n".join(map(json.dumps, [header, *records])))


def _certificates(path: Path) -> None:
    """A least sufficient set, and one whose multipliers are wrong; bounds on rounds, too."""
    done = cli("crossings", "--factors", "2,3", "--sufficient", "-o", str(path / "set.json"))
    assert done.code == 0, done.err
    data = json.loads((path / "set.json").read_text())
    data["exclusions"][0]["cases"][0]["weights"] = ["0"]
    (path / "wrong_set.json").write_text(json.dumps(data))
    claim = rate_bound(load_fabric("ring:5"), "all-reduce", 2).certificate
    claim.save(path / "rounds.json")
    replace(claim, bound=claim.bound * 2).save(path / "wrong_rounds.json")
    sized = gathered().certificate
    assert sized is not None
    (path / "sizes.json").write_text(sized.text())
    (path / "wrong_sizes.json").write_text(replace(sized, ratio=sized.ratio * 2).text())
    asked = ("--fabric", "ring:5", "--collective", "all-gather", "--objective", "throughput")
    done = cli("synthesize", *asked, "-o", str(path / "forest.json"))
    assert done.code == 0, done.err
    data = json.loads((path / "forest.json").read_text())
    (path / "wrong_forest.json").write_text(json.dumps(data | {"time": "1"}))


def _redistributions(path: Path) -> None:
    """A plan, one whose elements go astray, and one that is not the fastest."""
    mesh = parse_mesh("a=2,b=4")
    source, target = (
        ArrayType(mesh, (64, 64), ElementType.BF16, parse_layout(text, mesh))
        for text in ("S(a),S(b)", "S(b),S(a)")
    )
    plan = best_plan(source, target)
    data = redistribution_plan_data(plan)
    (path / "swap.json").write_text(json.dumps(data))
    done = cli(
        *("redistribute", "-t", "azure-ndv4:1", "--use", "gpu=2", "--mesh", "a=2"),
        *("--shape", "4,4", "--dtype", "f32", "--from", "S(a),R", "--to", "R,S(a)"),
        *("-o", str(path / "pair.json")),
    )
    assert done.code == 0, done.err
    *steps, last = data["steps"]
    turned = {**last, "sources": last["sources"][::-1]}
    (path / "wrong_swap.json").write_text(json.dumps({**data, "steps": [*steps, turned]}))
    slow = dearest_plan(source, target)
    (path / "slow_swap.json").write_text(redistribution_text(slow))


def _transfers(path: Path) -> None:
    """A plan, one whose time is wrong, and one of which a piece is lost."""
    for name, layout in (("rows", ROWS), ("columns", COLUMNS)):
        (path / f"{name}.json").write_text(json.dumps(layout))
    done = cli(
        *("transfer", "-t", str(path / "tiny.yaml"), "--from", str(path / "rows.json")),
        *("--to", str(path / "columns.json"), "-o", str(path / "sent.json")),
    )
    assert done.code == 0, done.err
    data = json.loads((path / "sent.json").read_text())
    (path / "wrong_sent.json").write_text(json.dumps(data | {"bandwidth_s": 1.0}))
    (path / "unsent.json").write_text(json.dumps(data | {"pieces": data["pieces"][1:]}))


def _plans(path: Path, plan: dict[str, Any]) -> None:
    first, *others = plan["requests"]
    step = {**first["steps"][0], "groups": first["steps"][0]["groups"][1:]}
    free = [rule for rule in plan["restrictions"] if rule["kind"] != "fixed-entry"]
    wrong = {**first, "steps": [step, *first["steps"][1:]]}
    for name, data in (
        ("plan", plan),
        ("wrong_plan", {**plan, "requests": [wrong, *others]}),
        ("slow_plan", {**plan, "restrictions": free}),
        ("wrong_times", {**plan, "objective_s": 1.0}),
    ):
        (path / f"{name}.json").write_text(json.dumps(data))


def _measurements(path: Path) -> None:
    sizes = tuple(2**i for i in range(12, 33, 2))
    samples = made_samples(TRUTH, INSIDE, sizes=sizes)
    samples[5] = replace(samples[5], seconds=10 * samples[5].seconds)
    text = printed(samples, 8, 1)
    (path / "inside.txt").write_text(text)
    (path / "wrong.txt").write_text(text.replace("      0\n", "      5\n", 1))
    across = json_report(made_samples(TRUTH, ALL, sizes=sizes), 32, 4)
    (path / "across.json").write_text(as_json(across))
    preset = load_topology("dgx-h100:2")
    for name, where, nodes in (("one", INSIDE, 1), ("two", ALL, 2)):
        made = made_samples(preset, where, sizes=sizes)
        made[3] = replace(made[3], seconds=8 * made[3].seconds)
        (path / f"{name}.txt").write_text(printed(made, 8 * nodes, nodes))
    done = cli(
        "calibrate", "--from-nccl-tests", str(path / "inside.txt"), "-o", f"{path}/derived.yaml"
    )
    assert done.code == 0, done.err


@cache
def outputs_of(name: str, folder: Path) -> tuple[dict[str, Any], ...]:
    """What the commands of a schema print."""
    words, found = WORDS.get(name, (name,)), []
    for arguments in COMMANDS[name]:
        with chdir(folder):
            done = cli(*words, *shlex.split(arguments), "--json")
        assert done.out, f"{name} {arguments}: {done.err}"
        found.append(done.json())
    return tuple(found)


SLOW = ("calibrate", "run-redistribution", "run-transfer")
NAMES = [pytest.param(n, marks=[pytest.mark.exhaustive] * (n in SLOW)) for n in OUTPUTS]


TIMED = ("solve", "compare", "redistribute", "plan-training")
"""Schemas whose outputs have a status beside a time and its proved bound."""


@pytest.mark.parametrize("name", NAMES)
def test_no_status_contradicts_its_bound(name: str, folder: Path) -> None:
    outputs = outputs_of(name, folder)
    timed = [one for one in outputs if {"status", "objective_s", "bound_s"} <= set(one)]
    assert bool(timed) == (name in TIMED)
    for arguments, output in zip(COMMANDS[name], outputs, strict=True):
        assert contradictions(output) == [], arguments


@pytest.mark.parametrize("name", TIMED)
def test_people_are_told_the_same_gap(name: str, folder: Path) -> None:
    """By the outputs whose time and bound do not depend on a limit of time."""
    for arguments, output in zip(COMMANDS[name], outputs_of(name, folder), strict=True):
        told = output["status"] == "optimal" and output["objective_s"] is not None
        if told and "--time-limit" not in arguments:
            with chdir(folder):
                shown = cli(*WORDS.get(name, (name,)), *shlex.split(arguments)).out
            assert told_gaps(shown)[:1] in ([], [gap_in_words(output)]), shown
            assert re.search(r"^(proof)? *optimal|order proved|proved", shown, re.MULTILINE), shown


def test_contradictions_are_found() -> None:
    for wrong in (
        {"status": "optimal", "objective_s": 20.51, "bound_s": 1.01},
        {"status": "optimal", "objective_s": 1.0, "bound_s": None},
        {"status": "feasible", "objective_s": 1.0, "bound_s": 1.1},
        {"status": "feasible", "objective_s": 2.0, "bound_s": 1.0, "gap": 0.0},
        {"status": "schedule", "optimal": True, "rate": "3/2", "bound": "1"},
        {"status": "schedule", "optimal": False, "rate": "3/2", "bound": "3/2"},
        {"proved": True, "best": "2", "bound": "1", "gap": "1/2"},
        {"proved": False, "best": "2", "bound": "1", "gap": "0"},
    ):
        assert len(contradictions([{"within": wrong}])) == 1, wrong
    assert contradictions({"status": "optimal", "objective_s": 1.0, "bound_s": 1.0, "gap": 0}) == []


def test_every_output_is_tried() -> None:
    assert set(COMMANDS) == set(OUTPUTS)


@pytest.mark.parametrize("name", NAMES)
def test_outputs_and_schema_agree(name: str, folder: Path) -> None:
    """Both ways: what is printed is allowed, and what is described is printed somewhere."""
    outputs = outputs_of(name, folder)
    assert [text for output in outputs for text in complaints(name, output)] == []
    seen = {path for output in outputs for path in fields(output)}
    unseen = set(declared(schema_of(name))) - seen - OF_ANY
    if name == "plan-hosts":  # of a type that plan-training has, too
        unseen = {path for path in unseen if not path.startswith(".shortfall.degrees.")}
    if name == "plan-training":
        unseen = {path for path in unseen if path.rpartition(".")[2] not in GIVEN_ALONE}
    if name == "estimate":
        unseen -= SEARCHED_ALONE
    assert sorted(unseen) == []


OF_ANY = {".defaults", ".defaults[].source", ".defaults[].words"}
"""Of whatever takes defaults (tests/cli/guide/test_defaults.py)."""
GIVEN_ALONE = (
    *("recompute_layers", "dp_replicate", "shared_overlap", "mtp_chunk", "offload"),
    "fp8_params",
)
"""Fields of strategies that are given to `estimate`, and none that is searched has."""

SEARCHED_ALONE = {".expert_hosts", ".experts_inside"}
"""What a search finds for experts on hosts; without one they have the ranks of attention."""


OPTIONAL = {
    "calibrate": {"unmeasured"},
    "verify-schedule": {"fix", "cost", "symmetry"},
    "estimate": {
        *("expert_axes", "expert_matrix", "host_order", "idle", "inside"),
        *("expert_hosts", "experts_inside"),
    },
    "plan-training": {"expert_axes"},
}
"""Keys that an output may have."""


@pytest.mark.parametrize("name", NAMES)
def test_a_schema_refuses_what_is_no_output(name: str, folder: Path) -> None:
    """A key too many, one too few, and a value of another type, for every key at the top."""
    output = outputs_of(name, folder)[-1]
    assert complaints(name, {**output, "colour": 1})
    optional = OPTIONAL.get(name, set())
    for key in output:
        assert complaints(name, {**output, key: object()})
        assert key in optional or complaints(name, {k: v for k, v in output.items() if k != key})


def test_every_command_with_json_has_a_schema() -> None:
    described = {schema["of"] for schema in cli("schema", "--json").json()["schemas"]}
    assert described == set(listed().values())
    for words in _commands_with_json():
        assert any(f" {words} " in f" {text} " for text in described), words


def _commands_with_json() -> list[str]:
    root = typer.main.get_command(app())
    found, waiting = [], [("", root)]
    while waiting:
        name, command = waiting.pop()
        waiting += [(f"{name} {k}", c) for k, c in getattr(command, "commands", {}).items()]
        if any("--json" in parameter.opts for parameter in command.params):
            found.append(name.strip())
    return found


def test_a_schema_of_no_known_name_is_refused() -> None:
    done = cli("schema", "solved")
    assert (done.code, done.out) == (2, "")
    assert "did you mean 'solve'?" in done.err
    assert "lists them" in cli("schema", "x").err
