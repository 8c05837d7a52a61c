"""A plan changed in many ways that read well: each is invalid, with the kind of what is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.tools import cli
from tests.plans.tampering import (
    ALGORITHMS,
    ENTRY,
    FIRST,
    FORM,
    LENGTH,
    PIPELINE,
    RULE,
    SECOND,
    STEP,
    STEPS,
    Change,
    Plan,
    add,
    changed,
    drop,
    put,
    restrict,
    scale,
    swap,
    written,
)


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


Case = tuple[Change, str, str]
"""The change, the kind of violation, and a part of its message."""


def breaks(number: int, text: str, why: str, **data: object) -> Case:
    """Another restriction in place of one of the plan's, which does not keep it."""
    return restrict(number, text=text, **data), "restriction", f"{text}: {why}"


def another(text: str, why: str, **data: object) -> Case:
    """One more restriction, which the plan does not keep."""
    return add(text=text, **data), "restriction", f"{text}: {why}"


INVALID: dict[str, Case] = {
    # restrictions
    "rule within": breaks(RULE, "tp within node", "some group spans several", within=True),
    "rule of the other axis": breaks(RULE, "dp across node", "some group lies in one", axis="dp"),
    "rule at the other level": another(
        "dp within gpu",
        "some group spans several",
        kind="axis-rule",
        axis="dp",
        level="gpu",
        within=True,
    ),
    "fixed entry": breaks(ENTRY, "tp=node:4", "the matrix has 2 there", entry=4),
    "fixed entry of the other axis": breaks(
        ENTRY, "dp=node:2", "the matrix has 1 there", axis="dp"
    ),
    "length": breaks(LENGTH, "programs of at most 2 instructions", "it has 3", instructions=2),
    "length of one": breaks(
        LENGTH, "programs of at most 1 instruction", "it has 2", instructions=1
    ),
    "form": breaks(FORM, "no parallel", "step 2 has this form", form="parallel"),
    "one more form": another(
        "no inside", "step 1 has this form", kind="forbidden-form", form="inside"
    ),
    "steps": breaks(STEPS, "at most 0 steps across node", "it has 1", at_most=0),
    "steps at the other level": breaks(STEPS, "at most 1 step across gpu", "it has 3", level="gpu"),
    "algorithms": breaks(ALGORITHMS, "collectives run by tree", "", algorithms=["tree"]),
    "one more algorithm": breaks(
        ALGORITHMS, "collectives run by ring or tree", "", algorithms=["ring", "tree"]
    ),
    "pipeline": breaks(PIPELINE, "programs of several steps in 8 chunks", "it has 4", chunks=8),
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
    path = changed(restricted, change, tmp_path)
    outcome = cli("verify", path, "--json")
    data = outcome.json()
    assert (outcome.code, outcome.err, data["verdict"]) == (1, "", "invalid")
    found = [(broken["kind"], broken["message"]) for broken in data["violations"]]
    assert any(kind == k and message in text for k, text in found), found
    assert cli("cost", path).code == 1


def test_the_plan_itself_is_valid(restricted: Plan, tmp_path: Path) -> None:
    assert cli("verify", written(restricted, tmp_path), "--prove").code == 0
