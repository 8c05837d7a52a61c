"""A schema refuses what the reader of the file refuses, and nothing else.

Reasons that JSON Schema cannot express are named here, and in the schema's ``$comment``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from p2smt.cluster.file import dump_topology, load_topology, preset_names, topology_from_data
from p2smt.errors import InputError
from p2smt.files.validation import validated
from p2smt.files.yaml_text import dump_yaml, load_yaml
from p2smt.parallel_search.journal.file_model import LINES
from p2smt.plans.file_model import PlanModel
from p2smt.resharding.plan_file import RedistributionModel, redistribution_plan_data
from p2smt.schedules.language.file_model import FileModel
from p2smt.schedules.language.instance import parse_schedule
from tests.cli.tools import EVERY_KIND, TINY, cli
from tests.parallel_search.journal.searched import open_journal, search
from tests.parallel_search.journal.words import Words
from tests.resharding.planning import array_type, best_plan
from tests.schemas.mutations import mutants
from tests.schemas.tools import complaints
from tests.strategies.draws import Draws, draws

SYMBOLIC = sorted((Path(__file__).parents[1] / "schedules" / "symbolic").glob("*.yaml"))
TORUS: dict[str, Any] = {
    "name": "torus",
    "algorithms": ["ring"],
    "library": {"broadcast": "binomial"},
    "levels": [
        {
            "name": "node",
            "size": 4,
            "link": {
                "kind": "switch",
                "ports": 2,
                "protocols": [
                    {"name": "simple", "latency": "3 us", "bandwidth": "300 GB/s"},
                    {"name": "ll", "latency": "0.6 us", "bandwidth": "87.7 GB/s"},
                ],
                "device_bandwidth": "50 GB/s",
                "in_switch_reduction": {"min_members": 2},
                "measured": {
                    "all-reduce": [{"name": "a", "latency": "1 us", "bandwidth": "1 GB/s"}]
                },
            },
        },
        {
            "name": "chip",
            "size": 8,
            "link": {"kind": "torus", "dims": [2, 4], "bandwidth": "45 GB/s", "latency": "1 us"},
        },
    ],
}
MEASURED: dict[str, Any] = {
    "name": "measured",
    "library": "nccl-2.20",
    "overrides": {"broadcast": "ring"},
    "best": True,
    "calls": {"all-reduce": "12 us"},
    "calibrated": True,
    "errors": [
        {
            "level": "gpu",
            "operation": "all-reduce",
            "least": "8 B",
            "most": "64 KiB",
            "error": "0.12",
            "basis": "left out",
        },
        {
            "level": "gpu",
            "operation": "send",
            "least": "1 MiB",
            "error": 1,
            "basis": "in sample",
        },
    ],
    "levels": [
        {
            "name": "gpu",
            "size": 8,
            "link": {
                "kind": "switch",
                "bandwidth": "45 GB/s",
                "latency": "1 us",
                "fabric": "nvlink4",
                "efficiency": {"any": 0.8, "nvls": "0.69"},
                "hops": {"ll": "1 us"},
            },
        }
    ],
}
TOPOLOGIES: list[Any] = [
    TORUS,
    MEASURED,
    load_yaml(TINY, "tiny"),
    dump_topology(load_topology("azure-ndv4")),
]
SCHEDULES: list[Any] = [load_yaml(path.read_text(), path.name) for path in SYMBOLIC]
SCHEDULES.append(load_yaml(cli("classics", "ring-all-reduce", "--ranks", "3").out, "ring"))

ACROSS_KEYS = (
    "a name is used twice",
    "a level name is used twice",
    "must multiply to its size",
    "ports must spread evenly",
    "devices: at most",
    "B/s and below 1e18",
    "must be from 1 to 1e18 B/s",
    "is a part of the bandwidth",
    "is what overrides holds today",
    "is none of the levels",
    "holds for no payload",
)
"""What the reader of topologies refuses for reasons that its schema leaves out."""

ONE_COLLECTIVE = ("is not known; one of", "needs a number of chunks", "starts and shift")
"""What the reader of schedules says beyond their shape, and the schema as well."""

WRITTEN_AS_WHOLE = re.compile(r"[0-9]\.0: must be a whole number")
"""To JSON Schema 2.0 is a whole number; to readers it is not."""
ALL_OR_NONE = "times are null where a level is `assumed`, and then all, or none is"
"""No schema says that of a plan."""


def refusal(read: Callable[[], object]) -> str | None:
    """What a reader says against its input."""
    try:
        read()
    except InputError as error:
        return str(error)
    return None


@pytest.mark.parametrize("name", preset_names())
def test_presets_fit_their_schema(name: str) -> None:
    assert complaints("topology", dump_topology(load_topology(name))) == []


@given(st.sampled_from(TOPOLOGIES).flatmap(mutants))
def test_topologies(data: dict[str, Any]) -> None:
    said, found = refusal(lambda: topology_from_data(data, "it")), complaints("topology", data)
    if found:
        assert said is not None, found
    elif said is not None:
        assert any(reason in said for reason in ACROSS_KEYS), said


@given(st.sampled_from(SCHEDULES).flatmap(mutants))
@example({"p2smt_schedule": 1, "name": 2**70})
def test_schedules(data: dict[str, Any]) -> None:
    """Lines and expressions are texts to the schema, and numbers need not fit each other.

    In YAML a number of so many digits is a text.
    """
    text = dump_yaml(data)
    assume(refusal(lambda: load_yaml(text, "it")) is None)
    data = cast(dict[str, Any], load_yaml(text, "it"))
    shape = refusal(lambda: validated(FileModel, data, "it"))
    found = complaints("schedule", data)
    parameters = {"n": 4} if data.get("parameters") else {}
    said = refusal(lambda: parse_schedule(dump_yaml(data), "it", parameters))
    if found:
        assert said is not None, found
    else:
        assert shape is None
        assert not any(reason in (said or "") for reason in ONE_COLLECTIVE), said


@pytest.fixture(scope="module")
def plan_text(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("plans") / "plan.json"
    (path.parent / "tiny.yaml").write_text(TINY)
    cli("solve", "-t", str(path.parent / "tiny.yaml"), *EVERY_KIND, "-o", str(path))
    return path.read_text()


def test_a_plan_fits_its_schema(plan_text: str) -> None:
    assert complaints("plan", json.loads(plan_text)) == []


@given(choice=draws())
def test_plans(plan_text: str, choice: Draws) -> None:
    """Its topology apart, as above; its numbers need not agree."""
    data = choice.draw(mutants({**json.loads(plan_text), "topology": TORUS}))
    shape = refusal(lambda: validated(PlanModel, data, "it"))
    found = complaints("plan", data)
    if shape is not None:
        assert found or WRITTEN_AS_WHOLE.search(shape) or ALL_OR_NONE in shape, shape
    elif found:
        assert refusal(lambda: topology_from_data(data["topology"], "it")), found


@pytest.fixture(scope="module")
def redistribution() -> dict[str, Any]:
    source = array_type("a=2,b=4", (64, 64), "S(a),R;P(b)")
    plan = best_plan(source, array_type("a=2,b=4", (64, 64), "R,S(a,b)"))
    return {**redistribution_plan_data(plan), "topology": TORUS}


def test_a_redistribution_fits_its_schema(redistribution: dict[str, Any]) -> None:
    assert complaints("redistribution", redistribution) == []


def test_true_is_no_version(redistribution: dict[str, Any]) -> None:
    data = redistribution | {"schema_version": True}
    said = refusal(lambda: validated(RedistributionModel, data, "it"))
    assert said is not None
    assert said.startswith("it: schema_version True: must be 1")


@given(choice=draws())
def test_redistributions(redistribution: dict[str, Any], choice: Draws) -> None:
    """Its topology apart, as above; its numbers need not agree."""
    data = choice.draw(mutants(redistribution))
    shape = refusal(lambda: validated(RedistributionModel, data, "it"))
    found = complaints("redistribution", data)
    if shape is not None:
        assert found or WRITTEN_AS_WHOLE.search(shape), shape
    elif found:
        assert refusal(lambda: topology_from_data(data["topology"], "it")), found


@pytest.fixture(scope="module")
def journal(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """A line of every kind."""
    path = tmp_path_factory.mktemp("journals") / "j.jsonl"
    search(path, Words(), 2)
    with open_journal(path, Words(), 2):
        pass
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    return list({line["record"] + line.get("verdict", ""): line for line in lines}.values())


def test_lines_of_journals_fit_their_schema(journal: list[dict[str, Any]]) -> None:
    assert {line["record"] for line in journal} == set(LINES)
    assert [text for line in journal for text in complaints("journal", line)] == []


@given(choice=draws())
def test_journals(journal: list[dict[str, Any]], choice: Draws) -> None:
    """What a verdict needs is left out, and whether digests are right."""
    line = choice.draw(st.sampled_from(journal))
    data = choice.draw(mutants(line))
    shape = refusal(lambda: validated(LINES[line["record"]], data, "it"))
    found = complaints("journal", data)
    if shape is None:
        assert found == []
    elif not found:
        said = ("on record", "than its best member costs")
        assert WRITTEN_AS_WHOLE.search(shape) or any(text in shape for text in said), shape


@pytest.mark.parametrize(
    ("text", "fits"),
    [
        ("10 GB/s", True),
        ("200Gb/s", True),
        (" 1.5e3 KiB/s ", True),
        ("25 Gbps", True),
        ("10 kiB/s", False),
        ("10 GiBx", False),
        ("-1 GB/s", False),
        ("10", False),
        ("1" * 60 + " B/s", False),
    ],
)
def test_texts_of_bandwidths(text: str, fits: bool) -> None:
    data = {
        **TORUS,
        "levels": [
            {**TORUS["levels"][1], "link": {**TORUS["levels"][1]["link"], "bandwidth": text}}
        ],
    }
    assert (complaints("topology", data) == []) is fits
    assert (refusal(lambda: topology_from_data(data, "it")) is None) is fits
