"""How well predictions hold: which class counts, and what the committed ones are of."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from p2smt.cluster.error_class import MAX_ERROR, Basis, ErrorClass, kept_error
from p2smt.cluster.file import load_topology, preset_names
from p2smt.cost import accuracy
from p2smt.cost.accuracy import (
    Weighed,
    error_of,
    error_over,
    published,
    read_accuracies,
    system_name,
)
from p2smt.errors import InputError
from tests.refusals import refusal

TEXT = """
nccl-2.20:
  8 x nvlink4 switch 450 GB/s:
    - {operation: all-reduce, least: 8 B, most: 64 KiB, error: 0.4, basis: left out}
    - {operation: all-reduce, least: 64 KiB, error: 0.2, basis: in sample}
    - {operation: send, least: 1 MiB, most: 2 MiB, error: 0.5, basis: in sample}
gloo: {}
"""
READ = read_accuracies(TEXT, "accuracy.yaml")
CLASSES = READ["nccl-2.20"]["8 x nvlink4 switch 450 GB/s"]


@pytest.mark.parametrize(
    ("operation", "payload", "error"),
    [
        ("all-reduce", 7, None),
        ("all-reduce", 8, 0.4),
        ("all-reduce", 65536, 0.4),
        ("all-reduce", 65537, 0.2),
        ("all-reduce", 2**40, 0.2),
        ("send", 2**20 - 1, None),
        ("send", 2**21, 0.5),
        ("send", 2**21 + 1, None),
        ("all-gather", 2**20, None),
    ],
)
def test_the_first_class_that_holds_counts(
    operation: str, payload: int, error: float | None
) -> None:
    found = error_of(CLASSES, operation, payload)
    assert (None if found is None else found.error) == error


def test_what_was_left_out_says_so() -> None:
    assert [one.basis for one in CLASSES[:2]] == [Basis.LEFT_OUT, Basis.IN_SAMPLE]
    assert READ["gloo"] == {}


def test_an_error_counts_by_its_time() -> None:
    half = [Weighed(1.0, 0.4, Basis.LEFT_OUT), Weighed(1.0, 0.2, Basis.LEFT_OUT)]
    error, basis = error_over(half)
    assert (round(error, 12), basis) == (0.3, Basis.LEFT_OUT)
    error, basis = error_over([half[0], Weighed(3.0, 0.2, Basis.IN_SAMPLE)])
    assert (round(error, 12), basis) == (0.25, Basis.IN_SAMPLE)


@given(
    st.lists(
        st.builds(Weighed, st.floats(1e-9, 1e3), st.floats(0, 10), st.sampled_from(Basis)),
        min_size=1,
    )
)
def test_the_error_of_a_sum_lies_between_those_of_its_parts(parts: list[Weighed]) -> None:
    found, basis = error_over(parts)
    errors = [part.error for part in parts]
    assert min(errors) - 1e-9 <= found <= max(errors) + 1e-9
    assert (basis is Basis.LEFT_OUT) == all(part.basis is Basis.LEFT_OUT for part in parts)


def test_four_of_five_keep_to_an_error() -> None:
    assert kept_error([0.5, 0.1, 0.4, 0.2, 0.3]) == 0.4
    assert kept_error([0.1, 0.2]) == 0.2
    assert [kept_error([float(n) for n in range(1, many + 1)]) for many in (10, 15, 35)] == [
        8,
        12,
        28,
    ]


def test_they_are_found_by_the_name_of_the_library(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "accuracy.yaml"
    file.write_text(TEXT)
    monkeypatch.setattr(accuracy, "ACCURACY_FILE", file)
    assert published("nccl-2.20") == READ["nccl-2.20"]
    assert published("rccl") == {}
    assert published("") == {}


def test_what_is_committed_is_of_systems_that_presets_describe() -> None:
    """No class is for all systems or for all operations, and each can be asked for."""
    assert accuracy.ACCURACY_FILE.is_file()
    found = read_accuracies(accuracy.ACCURACY_FILE.read_text(), "accuracy.yaml")
    assert {"nccl-2.20", "nccl-2.30", "rccl"} <= set(found)
    described = {
        system_name(topology, level)
        for name in preset_names()
        for topology in [load_topology(name)]
        for level in range(len(topology.levels))
    }
    for systems in found.values():
        whole = {system for system in systems if " of " not in system}
        parts = {system.split(" of ")[-1].partition(",")[0] for system in set(systems) - whole}
        assert whole <= described
        assert parts <= {system.partition(",")[0] for system in described}
        assert all(classes for classes in systems.values())


def test_what_nobody_measured_is_not_committed() -> None:
    """No table has H200 on RoCE, one of RCCL on NVLink, or Gloo; A100 across nodes an exchange."""
    for library, preset in (("nccl-2.30", "gcp-a3-ultra"), ("nccl-2.30", "dgx-b300")):
        assert system_name(load_topology(preset), 0) not in published(library)
    assert all("xgmi" in system for system in published("rccl"))
    assert published("gloo") == {}
    a100 = published("nccl-2.20")[system_name(load_topology("dgx-a100"), 0)]
    assert {one.operation for one in a100} == {"all-to-all"}
    p5 = published("nccl-2.30")[system_name(load_topology("aws-p5"), 0)]
    assert {one.operation for one in p5} == {"all-reduce"}


CLASS = "operation: all-reduce, least: 1 B, error: 0.1, basis: in sample"


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("- 1", "no mapping"),
        ("nccl: 1", "no mapping"),
        ("nccl: {node: 1}", "no list"),
        ("nccl: {node: [1]}", "must be a mapping"),
        ("nccl: {node: [{least: 1 MiB}]}", "operation"),
        (f"nccl: {{node: [{{{CLASS}, size: 1 MiB}}]}}", "size"),
        (f"nccl: {{node: [{{{CLASS.replace('0.1', 'big')}}}]}}", "is no number"),
        (f"nccl: {{node: [{{{CLASS.replace('0.1', '-0.1')}}}]}}", "from 0 to 10"),
        (f"nccl: {{node: [{{{CLASS.replace('0.1', 'nan')}}}]}}", "from 0 to 10"),
        (f"nccl: {{node: [{{{CLASS}, most: 5}}]}}", "most"),
        (f"nccl: {{node: [{{{CLASS.replace('1 B', '2 B')}, most: 1 B}}]}}", "no payload"),
        (f"nccl: {{node: [{{{CLASS.replace('all-reduce', 'allreduce')}}}]}}", "is none of"),
        (f"nccl: {{node: [{{{CLASS.replace('in sample', 'seen')}}}]}}", "in sample"),
    ],
)
def test_bad_files_are_refused_with_one_line(text: str, rule: str) -> None:
    assert rule in refusal(read_accuracies, text, "accuracy.yaml")


def test_no_class_has_an_impossible_error() -> None:
    with pytest.raises(InputError, match="from 0 to 10"):
        ErrorClass("send", MAX_ERROR + 1, Basis.IN_SAMPLE)
