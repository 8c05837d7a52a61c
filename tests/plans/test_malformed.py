"""A plan changed against the rules of the format: bad input, in one line that names the file."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.tools import assert_one_error, cli
from tests.plans.tampering import (
    ALGORITHMS,
    ENTRY,
    FIRST,
    FORM,
    LENGTH,
    PIPELINE,
    RULE,
    STEP,
    STEPS,
    Change,
    Plan,
    add,
    both,
    changed,
    drop,
    put,
    restrict,
)

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
    "unknown kind": (put("restrictions", RULE, "kind", to="wish"), "[0].kind 'wish': must be"),
    "no kind": (drop("restrictions", RULE, "kind"), "lacks the key 'kind'"),
    "no text": (drop("restrictions", RULE, "text"), "text"),
    "no axis": (drop("restrictions", RULE, "axis"), "axis"),
    "one more key": (put("restrictions", RULE, "more", to=1), "more"),
    "words": (
        put("restrictions", RULE, to="tp across node"),
        "restrictions[0] 'tp across node': must be a mapping with kind, text and the keys of its "
        'kind; write {"kind": .., "text": ..}',
    ),
    "an axis of words": (
        put("axes", 0, to="tp"),
        "axes[0] 'tp': must be a mapping with name, size; write",
    ),
    "limits of words": (put("limits", to="none"), "limits 'none': must be a mapping with solver"),
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
    "endless time limit": (
        put("limits", "time_limit_s", to=float("inf")),
        "has Infinity, which is no number",
    ),
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


PYDANTIC = ("Input ", "Unable to", "should ", "model_type", "correct the value")
"""Words of the library that reads the file, which say nothing to a user."""


@pytest.mark.parametrize("name", BAD)
def test_what_breaks_the_format_is_bad_input(restricted: Plan, tmp_path: Path, name: str) -> None:
    change, message = BAD[name]
    path = changed(restricted, change, tmp_path)
    for command in ("verify", "cost"):
        outcome = cli(command, path)
        assert_one_error(outcome)
        assert message in outcome.err, outcome.err
        assert "plan.json" in outcome.err
        assert not any(words in outcome.err for words in PYDANTIC), outcome.err
