"""How well predictions hold: which class counts, and which gains are larger than their error."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from p2smt.cluster.topology import CALL_NAMES
from p2smt.cost.library import accuracy
from p2smt.cost.library.accuracy import Accuracy, ErrorClass, Sized, accuracy_of, read_accuracies
from p2smt.errors import InputError

TEXT = """
nccl-2.20:
  - {operation: all-reduce, up_to: 64 KiB, error: 0.4}
  - {operation: all-reduce, error: 0.2}
  - {up_to: 1 MiB, error: 0.5}
gloo: []
"""
NCCL = read_accuracies(TEXT, "accuracy.yaml")["nccl-2.20"]


@pytest.mark.parametrize(
    ("operation", "payload", "error"),
    [
        ("all-reduce", 1, 0.4),
        ("all-reduce", 65536, 0.4),
        ("all-reduce", 65537, 0.2),
        ("all-gather", 2**20, 0.5),
        ("all-gather", 2**20 + 1, None),
    ],
)
def test_the_first_class_that_holds_counts(
    operation: str, payload: int, error: float | None
) -> None:
    assert NCCL.error_of(operation, payload) == error


def test_a_gain_is_measurable_from_the_error_on() -> None:
    small, large = Sized("all-reduce", 1024, 1.0), Sized("all-reduce", 2**30, 1.0)
    assert [NCCL.measurable(gain, [small]) for gain in (0.0, 0.39, 0.4)] == [False, False, True]
    assert [NCCL.measurable(gain, [large]) for gain in (0.19, 0.2)] == [False, True]
    assert NCCL.error_over([small, large]) == pytest.approx(0.3)
    assert NCCL.error_over([small, Sized("all-reduce", 2**30, 3.0)]) == pytest.approx(0.25)


def test_what_was_never_measured_says_nothing() -> None:
    known, unknown = Sized("all-reduce", 1024, 1.0), Sized("send", 2**30, 1e-9)
    assert NCCL.measurable(9.0, [known, unknown]) is None
    assert NCCL.measurable(9.0, []) is None
    silent = Sized("send", 2**30, 0.0)
    assert NCCL.measurable(9.0, [known, silent]) is True
    assert read_accuracies(TEXT, "t")["gloo"].measurable(9.0, [known]) is None


@given(
    st.lists(
        st.builds(
            Sized,
            st.sampled_from(CALL_NAMES),
            st.integers(1, 2**40),
            st.floats(1e-9, 1e3),
        ),
        min_size=1,
    )
)
def test_the_error_of_a_sum_lies_between_those_of_its_parts(parts: list[Sized]) -> None:
    every = Accuracy("x", (ErrorClass(0.1, 2**20), ErrorClass(0.7)))
    errors = [every.error_of(part.operation, part.payload_bytes) for part in parts]
    found = every.error_over(parts)
    assert found is not None
    known = [error for error in errors if error is not None]
    assert min(known) - 1e-12 <= found <= max(known) + 1e-12


def test_accuracies_are_found_by_the_name_of_the_library(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "accuracy.yaml"
    monkeypatch.setattr(accuracy, "ACCURACY_FILE", file)
    assert accuracy_of("nccl-2.20") is None, "there is no file yet"
    accuracy._committed.cache_clear()
    file.write_text(TEXT)
    assert accuracy_of("nccl-2.20") == NCCL
    assert accuracy_of("rccl") is None
    assert accuracy_of("") is None


def test_what_is_committed_can_be_read() -> None:
    if accuracy.ACCURACY_FILE.is_file():
        found = read_accuracies(accuracy.ACCURACY_FILE.read_text(), "accuracy.yaml")
        assert all(one.classes for one in found.values())


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("- 1", "no mapping"),
        ("nccl: 1", "no list"),
        ("nccl: [1]", "is no class"),
        ("nccl: [{up_to: 1 MiB}]", "is no class"),
        ("nccl: [{error: 0.1, size: 1 MiB}]", "is no class"),
        ("nccl: [{error: big}]", "no number"),
        ("nccl: [{error: -0.1}]", "from 0 to 10"),
        ("nccl: [{error: nan}]", "from 0 to 10"),
        ("nccl: [{error: 0.1, up_to: 5}]", "accuracy.yaml nccl: up_to"),
        ("nccl: [{error: 0.1, operation: allreduce}]", "is none of"),
    ],
)
def test_bad_files_are_refused_with_one_line(text: str, rule: str) -> None:
    with pytest.raises(InputError) as caught:
        read_accuracies(text, "accuracy.yaml")
    assert rule in str(caught.value)
    assert "\n" not in str(caught.value)
