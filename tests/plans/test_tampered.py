"""A plan with every kind of restriction, changed in many ways: each change is told for what it is.

What breaks a rule of the format is bad input, in one line that names the file; what reads well
and is not true is invalid, with the kind of what is wrong and a message that says where.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cli.tools import assert_one_error, cli

Plan = dict[str, Any]
Change = Callable[[Plan], object]

RESTRICTED = (
    *("--axes", "dp=2,tp=4", "--reduce", "tp=64MiB", "--reduce-scatter", "tp=1MiB"),
    *("--send", "dp=1MiB", "--require", "tp across node", "--fix", "tp=node:2", "--length", "3"),
    *("--forbid-form", "master", "--max-steps-at", "node=1", "--algorithm", "ring"),
    *("--pipeline", "4"),
)
RULE, ENTRY, LENGTH, FORM, STEPS, ALGORITHMS, PIPELINE = range(7)  # in its restrictions
FIRST, SECOND = ("requests", 0), ("requests", 1)
STEP = (*FIRST, "steps", 0)


@pytest.fixture(scope="module")
def restricted(tiny: str) -> Plan:
    data = cli("solve", "-t", tiny, *RESTRICTED, "--json").json()
    assert data["status"] == "optimal"
    assert isinstance(data["plan"], dict)
    return data["plan"]


def put(*path: str | int, to: object) -> Change:
    """Replace the value at a path."""

    def change(plan: Plan) -> None:
        at: Any = plan
        for key in path[:-1]:
            at = at[key]
        at[path[-1]] = to

    return change


def scale(*path: str | int, by: float) -> Change:
    """Multiply the number at a path."""

    def change(plan: Plan) -> None:
        at: Any = plan
        for key in path[:-1]:
            at = at[key]
        at[path[-1]] *= by

    return change


def drop(*path: str | int) -> Change:
    """Take a key or an entry out."""

    def change(plan: Plan) -> None:
        at: Any = plan
        for key in path[:-1]:
            at = at[key]
        del at[path[-1]]

    return change


def restrict(number: int, **more: object) -> Change:
    """Change a restriction, its text with it."""
    return lambda plan: plan["restrictions"][number].update(more)


def add(**data: object) -> Change:
    """One more restriction."""
    return lambda plan: plan["restrictions"].append(data)


def both(*changes: Change) -> Change:
    """One change after the other."""
    return lambda plan: [change(plan) for change in changes]


def swap(*path: str | int) -> Change:
    """Exchange the first two entries of the list at a path."""

    def change(plan: Plan) -> None:
        at: Any = plan
        for key in path:
            at = at[key]
        at[0], at[1] = at[1], at[0]

    return change


def backwards(plan: Plan) -> None:
    plan["ranks"].reverse()


def shorter(plan: Plan) -> None:
    """The last step and instruction are gone."""
    request = plan["requests"][0]
    request["program"] = request["program"].rpartition(";")[0]
    request["steps"].pop()


def other_program(plan: Plan) -> None:
    """Both requests claim each other's programs."""
    one, other = plan["requests"][:2]
    one["program"], other["program"] = other["program"], one["program"]


def optimal_of_feasible(plan: Plan) -> None:
    plan["requests"][0]["status"] = "feasible"


# What it is called: the change, the kind of violation, and a part of its message.
INVALID: dict[str, tuple[Change, str, str]] = {
    # restrictions
    "rule within": (
        restrict(RULE, within=True, text="tp within node"),
        "restriction",
        "tp within node: some group spans several",
    ),
    "rule of the other axis": (
        restrict(RULE, axis="dp", text="dp across node"),
        "restriction",
        "dp across node: some group lies in one",
    ),
    "rule at the other level": (
        add(kind="axis-rule", text="dp within gpu", axis="dp", level="gpu", within=True),
        "restriction",
        "dp within gpu: some group spans several",
    ),
    "fixed entry": (
        restrict(ENTRY, entry=4, text="tp=node:4"),
        "restriction",
        "tp=node:4: the matrix has 2 there",
    ),
    "fixed entry of the other axis": (
        restrict(ENTRY, axis="dp", text="dp=node:2"),
        "restriction",
        "dp=node:2: the matrix has 1 there",
    ),
    "length": (
        restrict(LENGTH, instructions=2, text="programs of at most 2 instructions"),
        "restriction",
        "programs of at most 2 instructions: it has 3",
    ),
    "length of one": (
        restrict(LENGTH, instructions=1, text="programs of at most 1 instruction"),
        "restriction",
        "programs of at most 1 instruction: it has 2",
    ),
    "form": (
        restrict(FORM, form="parallel", text="no parallel"),
        "restriction",
        "no parallel: step 2 has this form",
    ),
    "one more form": (
        add(kind="forbidden-form", text="no inside", form="inside"),
        "restriction",
        "no inside: step 1 has this form",
    ),
    "steps": (
        restrict(STEPS, at_most=0, text="at most 0 steps across node"),
        "restriction",
        "at most 0 steps across node: it has 1",
    ),
    "steps at the other level": (
        restrict(STEPS, level="gpu", text="at most 1 step across gpu"),
        "restriction",
        "at most 1 step across gpu: it has 3",
    ),
    "algorithms": (
        restrict(ALGORITHMS, algorithms=["tree"], text="collectives run by tree"),
        "restriction",
        "collectives run by tree",
    ),
    "one more algorithm": (
        restrict(ALGORITHMS, algorithms=["ring", "tree"], text="collectives run by ring or tree"),
        "restriction",
        "collectives run by ring or tree",
    ),
    "pipeline": (
        restrict(PIPELINE, chunks=8, text="programs of several steps in 8 chunks"),
        "restriction",
        "programs of several steps in 8 chunks: it has 4",
    ),
    "no pipeline": (
        drop("restrictions", PIPELINE),
        "restriction",
        "programs of several steps in 1 chunk: it has 4",
    ),
    # bounds and statuses
    "bound above the time": (put("bound_s", to=1.0), "bound", "bound_s lies above"),
    "bound of an optimal plan": (scale("bound_s", by=0.99), "bound", "is called optimal, but"),
    "no bound": (put("bound_s", to=0.0), "bound", "the plan: is called optimal, but bound_s"),
    "request bound above the time": (put(*FIRST, "bound_s", to=1.0), "bound", "request 1: bound_s"),
    "request bound below": (scale(*FIRST, "bound_s", by=0.5), "bound", "request 1: is called"),
    "bound of one way to run": (
        scale("requests", 2, "bound_s", by=0.5),
        "bound",
        "request 3: is called optimal",
    ),
    "link-level bound": (scale(*FIRST, "physical_bound_s", by=1.01), "bound", "request 1 physical"),
    "less link-level bound": (scale(*FIRST, "physical_bound_s", by=0.5), "bound", "request 1 phys"),
    "link-level bound of one way": (
        put("requests", 2, "physical_bound_s", to=0.0),
        "bound",
        "request 3 physical_bound_s says 0.0",
    ),
    "link-level bound of the plan": (
        lambda plan: plan.update(physical_bound_s=plan["objective_s"]),
        "bound",
        "which the links allow this placement",
    ),
    "infeasible": (put("status", to="infeasible"), "bound", "infeasible is none of a plan"),
    "complete": (put(*FIRST, "status", to="complete"), "bound", "complete is none of a plan"),
    "truncated": (put(*SECOND, "status", to="truncated"), "bound", "truncated is none of a plan"),
    "optimal of a feasible request": (optimal_of_feasible, "bound", "not each of its requests is"),
    # ranks and matrix
    "two ranks": (swap("ranks"), "ranks", "not those of the matrix"),
    "ranks backwards": (backwards, "ranks", "not those of the matrix"),
    "ranks missing": (drop("ranks", 0), "ranks", "not those of the matrix"),
    "no ranks": (put("ranks", to=[]), "ranks", "not those of the matrix"),
    "ranks of others": (put("ranks", 0, to=99), "ranks", "not those of the matrix"),
    "a rank twice": (put("ranks", 0, to=1), "ranks", "not those of the matrix"),
    "the other matrix": (put("matrix", to=[[2, 1], [1, 4]]), "group-shape", "the groups do not"),
    "no matrix": (put("matrix", to=None), "group-shape", "on a rank list is one step"),
    # groups and programs
    "a group": (swap(*STEP, "groups", 0), "group-shape", "the groups do not repeat"),
    "a device of a group": (put(*STEP, "groups", 0, 0, to=6), "group-shape", "do not repeat"),
    "a device of no cluster": (put(*STEP, "groups", 0, 0, to=64), "group-shape", "do not repeat"),
    "a group missing": (drop(*STEP, "groups", 0), "group-shape", "do not repeat"),
    "groups of the next step": (
        lambda plan: plan["requests"][0]["steps"][0].update(
            groups=plan["requests"][0]["steps"][1]["groups"]
        ),
        "rows-differ",
        "step 2",
    ),
    "groups of a send": (
        swap("requests", 2, "steps", 0, "groups", 0),
        "group-shape",
        "is not send on the groups",
    ),
    "a step": (swap(*FIRST, "steps"), "group-shape", "not those of the program"),
    "a step missing": (drop(*FIRST, "steps", 2), "group-shape", "not those of the program"),
    "a program that ends early": (shorter, "goal-missed", "after step 2 device 0 still lacks"),
    "programs exchanged": (other_program, "group-shape", "not those of the program"),
    "no program": (put(*FIRST, "program", to=None), "group-shape", "needs a program"),
    "another kind": (
        put(*FIRST, "kind", to="all-gather"),
        "rows-differ",
        "step 1 (reduce-scatter)",
    ),
    "other axes": (put(*FIRST, "axes", to=["dp"]), "group-shape", "do not repeat"),
    # numbers
    "time": (scale(*FIRST, "seconds", by=0.999), "cost", "request 1 seconds says"),
    "time of a step": (scale(*STEP, "seconds", by=1.001), "cost", "request 1 step 1 seconds"),
    "load": (scale(*STEP, "load_bytes", by=2), "cost", "request 1 step 1 load_bytes"),
    "payload": (scale(*STEP, "payload_bytes", by=2), "cost", "request 1 step 1 payload_bytes"),
    "protocol": (put(*STEP, "protocol", to="LL"), "cost", "algorithm, protocol or bottleneck"),
    "bottleneck": (put(*STEP, "bottleneck", to=None), "cost", "algorithm, protocol or bottleneck"),
    "objective": (scale("objective_s", by=0.5), "cost", "objective_s says"),
    "another objective": (put("objective", to="max"), "cost", "objective_s says"),
    "single collective": (scale(*FIRST, "single_collective_s", by=2), "cost", "single_collective"),
    "bytes": (scale(*FIRST, "bytes", by=2), "cost", "request 1 seconds says"),
    "times": (put(*FIRST, "times", to=7), "cost", "objective_s says"),
    "chunks": (put(*FIRST, "chunks", to=2), "cost", "request 1 seconds says"),
    "chunks of one step": (put("requests", 2, "chunks", to=4), "cost", "only several steps"),
    "peak": (put("peak_bytes", to=1), "cost", "peak_bytes says 1"),
    "peak of a request": (put(*FIRST, "peak_bytes", to=1), "cost", "request 1 peak_bytes says 1"),
    "shards": (swap(*SECOND, "shards"), "cost", "request 2 shards"),
    "no shards": (put(*SECOND, "shards", to=None), "cost", "request 2 shards"),
    "shards of an all-reduce": (put(*FIRST, "shards", to=[0, 1, 2, 3]), "cost", "request 1 shards"),
    "latency": (
        put("topology", "levels", 1, "link", "latency", to="1 ms"),
        "cost",
        "request 1 seconds says",
    ),
    "ports": (put("topology", "levels", 0, "link", "ports", to=4), "cost", "the cost model"),
}


@pytest.mark.parametrize("name", INVALID)
def test_what_is_not_true_is_told(restricted: Plan, tmp_path: Path, name: str) -> None:
    change, kind, message = INVALID[name]
    changed = copy.deepcopy(restricted)
    change(changed)
    assert changed != restricted
    path = tmp_path / "plan.json"
    path.write_text(json.dumps(changed))
    outcome = cli("verify", str(path), "--json")
    data = outcome.json()
    assert (outcome.code, outcome.err, data["verdict"]) == (1, "", "invalid")
    found = [(broken["kind"], broken["message"]) for broken in data["violations"]]
    assert any(kind == k and message in text for k, text in found), found
    assert cli("cost", str(path)).code == 1


TEXT = "text 'no master': does not say what its data say: 'no parallel'"

# What it is called: the change, and a part of the message.
BAD: dict[str, tuple[Change, str]] = {
    # restrictions
    "data without its text": (put("restrictions", FORM, "form", to="parallel"), TEXT),
    "text without its data": (
        put("restrictions", RULE, "text", to="tp within node"),
        "does not say what its data say: 'tp across node'",
    ),
    "unknown axis": (restrict(RULE, axis="xx", text="xx across node"), "axis 'xx': there is no"),
    "unknown level": (
        restrict(RULE, level="rack", text="tp across rack"),
        "there is no such level",
    ),
    "unknown level of an entry": (
        restrict(ENTRY, level="rack", text="tp=rack:2"),
        "restrictions[1].level 'rack'",
    ),
    "unknown level of steps": (
        restrict(STEPS, level="rack", text="at most 1 step across rack"),
        "restrictions[4].level 'rack'",
    ),
    "unknown kind": (put("restrictions", RULE, "kind", to="wish"), "restrictions[0]"),
    "no kind": (drop("restrictions", RULE, "kind"), "restrictions[0]"),
    "no text": (drop("restrictions", RULE, "text"), "text"),
    "no axis": (drop("restrictions", RULE, "axis"), "axis"),
    "one more key": (put("restrictions", RULE, "more", to=1), "more"),
    "words": (put("restrictions", RULE, to="tp across node"), "restrictions[0]"),
    "no list": (put("restrictions", to={}), "restrictions"),
    "no restrictions": (drop("restrictions"), "restrictions: this key is missing"),
    "no length": (drop("restrictions", LENGTH), "lack max-length"),
    "empty restrictions": (put("restrictions", to=[]), "lack max-length"),
    "two lengths": (
        add(kind="max-length", text="programs of at most 4 instructions", instructions=4),
        "have max-length twice",
    ),
    "two pipelines": (
        add(kind="pipeline", text="programs of several steps in 2 chunks", chunks=2),
        "have pipeline twice",
    ),
    "length zero": (put("restrictions", LENGTH, "instructions", to=0), "instructions"),
    "length of a hundred": (put("restrictions", LENGTH, "instructions", to=100), "instructions"),
    "negative steps": (put("restrictions", STEPS, "at_most", to=-1), "at_most"),
    "entry zero": (put("restrictions", ENTRY, "entry", to=0), "entry"),
    "unknown form": (put("restrictions", FORM, "form", to="sideways"), "form"),
    "unknown algorithm": (put("restrictions", ALGORITHMS, "algorithms", to=["x"]), "algorithms"),
    "no algorithms": (put("restrictions", ALGORITHMS, "algorithms", to=[]), "algorithms"),
    "an algorithm twice": (
        restrict(ALGORITHMS, algorithms=["ring", "ring"], text="collectives run by ring or ring"),
        "name one twice",
    ),
    "chunks of a pipeline": (put("restrictions", PIPELINE, "chunks", to=4096), "chunks"),
    "within as text": (put("restrictions", RULE, "within", to="no"), "within"),
    # limits
    "no limits": (drop("limits"), "limits: this key is missing"),
    "another solver": (put("limits", "solver", to="oracle"), "limits.solver 'oracle'"),
    "negative time limit": (put("limits", "time_limit_s", to=-1.0), "limits.time_limit_s"),
    "endless time limit": (put("limits", "time_limit_s", to=float("inf")), "limits.time_limit_s"),
    "seed as text": (put("limits", "seed", to="0"), "limits.seed"),
    "no workers": (put("limits", "workers", to=0), "limits.workers"),
    "one more limit": (put("limits", "memory", to=1), "unknown key 'memory' in limits"),
    # statuses, versions, types
    "unknown status": (put(*FIRST, "status", to="perfect"), "requests[0].status 'perfect'"),
    "status as a number": (put("status", to=1), "status 1"),
    "version 3": (put("schema_version", to=3), "only versions 1 and 2 are known"),
    "version true": (put("schema_version", to=True), "only versions 1 and 2 are known"),
    "version 2.0": (put("schema_version", to=2.0), "schema_version"),
    "version null": (put("schema_version", to=None), "only versions 1 and 2 are known"),
    "version 1 of new keys": (put("schema_version", to=1), "unknown key 'limits'"),
    "no version": (drop("schema_version"), "is no plan"),
    "matrix of another size": (put("matrix", to=[[2, 2], [2, 2]]), "row products"),
    "matrix of a row": (put("matrix", to=[[1, 2]]), "row products"),
    "matrix of zeros": (put("matrix", to=[[0, 0], [0, 0]]), "entries must be positive"),
    "matrix of text": (put("matrix", to="[[1,2],[2,2]]"), "matrix"),
    "no matrix key": (drop("matrix"), "matrix: this key is missing"),
    "axis of another size": (put("axes", 0, "size", to=4), "row products"),
    "axis named otherwise": (put("axes", 0, "name", to="xx"), "is not among the axes"),
    "axis named twice": (put("axes", 0, "name", to="tp"), "is named twice"),
    "axis without a name": (put("axes", 0, "name", to=""), "axis name ''"),
    "rank as text": (put("ranks", 0, to="0"), "ranks[0]"),
    "negative rank": (put("ranks", 0, to=-1), "ranks[0]"),
    "level of another size": (put("topology", "levels", 0, "size", to=4), "column products"),
    "bandwidth without a unit": (
        put("topology", "levels", 0, "link", "bandwidth", to="10"),
        "bandwidth",
    ),
    "chunks beyond": (put(*FIRST, "chunks", to=2**20), "requests[0].chunks"),
    "what it was checked on": (put(*FIRST, "checked", to="devices"), "unknown key 'checked'"),
    "bytes of zero": (put(*FIRST, "bytes", to=0), "requests[0].bytes"),
    "time as text": (put(*FIRST, "seconds", to="1 s"), "requests[0].seconds"),
    "instruction of no language": (
        both(put(*STEP, "instruction", to="hope"), put(*FIRST, "program", to="hope")),
        "instruction 'hope'",
    ),
    "level of no cluster": (
        lambda plan: plan["requests"][0].update(
            program=plan["requests"][0]["program"].replace("node", "rack"),
            steps=[
                {**step, "instruction": step["instruction"].replace("node", "rack")}
                for step in plan["requests"][0]["steps"]
            ],
        ),
        "level 'rack'",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_what_breaks_the_format_is_bad_input(restricted: Plan, tmp_path: Path, name: str) -> None:
    change, message = BAD[name]
    changed = copy.deepcopy(restricted)
    change(changed)
    path = tmp_path / "plan.json"
    path.write_text(json.dumps(changed))
    for command in ("verify", "cost"):
        outcome = cli(command, str(path))
        assert_one_error(outcome)
        assert message in outcome.err, outcome.err
        assert "plan.json" in outcome.err


def test_there_are_many() -> None:
    assert len(INVALID) + len(BAD) >= 60


def test_the_plan_itself_is_valid(restricted: Plan, tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    path.write_text(json.dumps(restricted))
    assert cli("verify", str(path), "--prove").code == 0
