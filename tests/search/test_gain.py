"""What the answer gains over the default layout, and whether who measures would find it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

import p2smt
from p2smt.cluster.error_class import Basis, ErrorClass
from p2smt.cluster.file import load_topology
from p2smt.cluster.topology import Algorithm, Topology
from p2smt.cost.accuracy import system_name
from p2smt.parallelism.request import Problem
from p2smt.parallelism.side_constraints import parse_rule
from p2smt.plans.solution import Accuracy, Gain, Solution
from p2smt.report.solution_data import solution_data
from p2smt.search import gain
from tests.search.solve.test_without_proof import text_of

SENTENCE = "no gain you would measure"
UNKNOWN = "not known whether you would measure it"
INSIDE = "8 x nvlink3 switch 300 GB/s"
ACROSS = "8 x nvlink3 switch 300 GB/s, infiniband 200 GB/s"
CLUSTER = load_topology("dgx-a100:4")
STEPPED = load_topology("aws-p4d:4")
"""Large answers are programs of three steps, two of them inside a node."""
Publish = Callable[..., None]


def known(
    error: float, operation: str = "all-reduce", basis: Basis = Basis.IN_SAMPLE
) -> ErrorClass:
    return ErrorClass(operation, error, basis)


@pytest.fixture
def publish(monkeypatch: pytest.MonkeyPatch) -> Publish:
    """Make these classes all that is published, of a library on groups inside and across nodes,
    however many members these have in a node."""

    def with_classes(of: Topology = CLUSTER, **systems: tuple[ErrorClass, ...]) -> None:
        names = {"inside": system_name(of, 1), "across": system_name(of, 0)}
        shares = ("", *(f"{local} of " for local in range(1, 8)))
        every = {share + names[name]: one for name, one in systems.items() for share in shares}
        found = {of.library_name: every}
        monkeypatch.setattr(gain, "published", lambda library: found.get(library, {}))

    return with_classes


def asked(*requests: str, topology: Topology = CLUSTER, axes: str = "dp=8,tp=4") -> Problem:
    wanted = tuple(p2smt.reduce(text) for text in requests)
    return Problem(topology, p2smt.parse_axes(axes), wanted)


def solved(problem: Problem) -> Solution:
    return p2smt.solve(problem, top=1)


def heavy() -> Solution:
    """The heavier dp, which is named first: the default layout has it across the nodes."""
    return solved(asked("dp=64MiB*9", "tp=1MiB"))


def gain_of(solution: Solution) -> Gain:
    assert solution.gain is not None
    return solution.gain


def test_the_gain_is_the_default_layout_over_the_answer(publish: Publish) -> None:
    publish(inside=(known(0.1),), across=(known(0.2),))
    found = heavy()
    assert found.best is not None
    assert found.default is not None
    over = found.default.objective_s / found.best.objective_s - 1
    assert gain_of(found).over_default == over > 1
    data = solution_data(found)
    assert (data["gain"], data["gain_measurable"]) == (over, True)
    assert SENTENCE not in text_of(found)
    assert f"gain {100 * over:.3g} % over the default layout, while predictions" in text_of(found)


@pytest.mark.parametrize(("part", "measurable"), [(0.99, True), (1.01, False)])
def test_a_gain_below_the_error_is_none(publish: Publish, part: float, measurable: bool) -> None:
    publish(inside=(known(0.0),), across=(known(0.0),))
    over = gain_of(heavy()).over_default
    publish(inside=(known(part * over),), across=(known(part * over),))
    found = heavy()
    assert gain_of(found).measurable is measurable
    assert gain_of(found).accuracy.error == pytest.approx(part * over)
    assert (SENTENCE in text_of(found)) is not measurable
    assert f"{CLUSTER.library_name} on this system are off by" in text_of(found)
    assert solution_data(found)["gain_measurable"] is measurable


def test_the_larger_error_of_the_two_counts(publish: Publish) -> None:
    """The answer has the heavy requests inside a node, the default layout across nodes."""
    for errors in ((0.1, 0.7), (0.7, 0.1)):
        publish(inside=(known(errors[0]),), across=(known(errors[1]),))
        error = gain_of(heavy()).accuracy.error
        assert error is not None
        assert 0.6 < error <= 0.7


def test_one_error_in_sample_is_all_in_sample(publish: Publish) -> None:
    out, seen = known(0.1, basis=Basis.LEFT_OUT), known(0.1)
    for inside, across, basis in ((out, out, Basis.LEFT_OUT), (seen, seen, Basis.IN_SAMPLE)):
        publish(inside=(inside,), across=(across,))
        found = heavy()
        assert gain_of(found).accuracy.basis is basis
        assert solution_data(found)["accuracy_basis"] == basis.value
        assert f"are off by 10 % ({basis.value})" in text_of(found)
    publish(inside=(seen,), across=(replace(out, error=0.5),))
    assert gain_of(solved(asked("dp=64MiB", "tp=1MiB"))).accuracy.basis is Basis.IN_SAMPLE


def stepped(*requests: str, axes: str = "dp=32") -> Problem:
    return asked(*requests, topology=STEPPED, axes=axes)


def test_the_error_of_an_answer_is_that_of_its_steps(publish: Publish) -> None:
    """Each with its collective, its payload and what its groups span, weighed by its time."""
    problem = stepped("dp=2GiB")
    found = solved(problem)
    assert found.best is not None
    (answer,) = found.best.requests
    assert answer.program is not None
    names = [one.collective.value for one in answer.program.instructions]
    assert names == ["reduce-scatter", "all-reduce", "all-gather"]
    first, second, third = (round(step.payload_bytes) for step in answer.steps)
    assert first == third == 8 * second == 2**31
    scattered = ErrorClass("reduce-scatter", 0.3, Basis.LEFT_OUT, first)
    gathered = replace(scattered, operation="all-gather", error=0.6)
    part = ErrorClass("all-reduce", 0.9, Basis.LEFT_OUT, 1, second)
    whole = ErrorClass("all-reduce", 0.1, Basis.LEFT_OUT, first)
    publish(STEPPED, inside=(scattered, gathered), across=(part, whole))
    weighed = zip(answer.steps, (0.3, 0.9, 0.6), strict=True)
    error = sum(step.seconds * error for step, error in weighed) / answer.seconds
    assert error > whole.error
    accuracy = gain_of(solved(problem)).accuracy
    assert accuracy.error == pytest.approx(error)
    assert accuracy.basis is Basis.LEFT_OUT
    seen = replace(gathered, basis=Basis.IN_SAMPLE)
    publish(STEPPED, inside=(scattered, seen), across=(part, whole))
    assert gain_of(solved(problem)).accuracy.basis is Basis.IN_SAMPLE


def test_a_step_that_nobody_measured_leaves_no_verdict(publish: Publish) -> None:
    """That the single collective was measured says nothing of a program's steps."""
    problem = stepped("dp=2GiB")
    publish(STEPPED, inside=(known(0.1),), across=(known(0.1),))
    said = "no published measurement of reduce-scatter on this system"
    says_unknown(solved(problem), said)
    parts = (known(0.1, "reduce-scatter"), known(0.1, "all-gather"))
    publish(STEPPED, inside=parts)
    across = system_name(STEPPED, 0)
    said = f"no published measurement of this system ({STEPPED.library_name}, 1 of {across})"
    says_unknown(solved(problem), said)
    small = ErrorClass("reduce-scatter", 0.1, Basis.IN_SAMPLE, 1, 2**20)
    publish(STEPPED, inside=(small, parts[1]), across=(known(0.1),))
    said = "no published measurement of reduce-scatter of 2 GiB on this system"
    says_unknown(solved(problem), said)


def test_of_the_largest_request_all_steps_count(publish: Publish) -> None:
    """A step of the smaller request, longer than each of the larger one's, counts nothing."""
    both = replace(stepped("dp+tp=2GiB", "tp=10GiB", axes="dp=4,tp=8"), objective="max")
    parts = (known(0.4, "reduce-scatter"), known(0.4, "all-gather"))
    publish(STEPPED, inside=(*parts, known(0.1)), across=(known(0.4),))
    found = solved(both)
    assert found.best is not None
    large, small = found.best.requests
    assert len(large.steps) > len(small.steps) == 1
    longest = max(step.seconds for step in large.steps)
    assert longest < small.total_s < large.total_s
    assert gain_of(found).accuracy.error == pytest.approx(0.4)


def says_unknown(found: Solution, why: str) -> None:
    """The gain has no verdict, and the text and the JSON say why."""
    data = solution_data(found)
    assert gain_of(found).measurable is None
    assert (data["gain_measurable"], data["accuracy"], data["accuracy_basis"]) == (None,) * 3
    assert data["accuracy_unknown"].startswith(why)
    assert f"{UNKNOWN}: {why}" in text_of(found)
    assert SENTENCE not in text_of(found)


def test_a_system_that_nobody_published_has_no_verdict(publish: Publish) -> None:
    publish(inside=(known(0.1),))
    said = f"no published measurement of this system ({CLUSTER.library_name}, 1 of {ACROSS})"
    says_unknown(heavy(), said)


def test_an_operation_that_nobody_published_has_no_verdict(publish: Publish) -> None:
    publish(inside=(known(0.1, "send"),), across=(known(0.1, "send"),))
    says_unknown(heavy(), "no published measurement of all-reduce on this system")
    small = ErrorClass("all-reduce", 0.1, Basis.IN_SAMPLE, 2**10, 2**20)
    publish(inside=(small,), across=(small,))
    says_unknown(heavy(), "no published measurement of all-reduce of 64 MiB on this system")


def test_another_library_or_none_has_no_verdict(publish: Publish) -> None:
    publish(inside=(known(0.1),), across=(known(0.1),))
    rccl = asked("dp=64MiB*9", "tp=1MiB", topology=CLUSTER.under("rccl"))
    says_unknown(solved(rccl), "no published measurement of rccl")
    textbook = asked("dp=64MiB*9", "tp=1MiB", topology=CLUSTER.under("none"))
    says_unknown(solved(textbook), "no library runs here")


def test_named_algorithms_are_not_what_was_published(publish: Publish) -> None:
    publish(inside=(known(0.1),), across=(known(0.1),))
    ring = replace(asked("dp=64MiB*9", "tp=1MiB"), algorithms=(Algorithm.RING,))
    says_unknown(solved(ring), "published tables are of what the library chooses")


def test_a_calibration_says_its_own_errors(publish: Publish) -> None:
    publish(inside=(known(0.1),), across=(known(0.1),))
    mine = (("gpu", known(0.03, basis=Basis.LEFT_OUT)), ("node", known(0.02)))
    fitted = replace(CLUSTER, calibrated=True, errors=mine)
    found = solved(asked("dp=64MiB*9", "tp=1MiB", topology=fitted))
    error = gain_of(found).accuracy.error
    assert error is not None
    assert 0.02 < error <= 0.03
    assert "predictions of this calibration are off by" in text_of(found)
    half = replace(fitted, errors=mine[:1])
    found = solved(asked("dp=64MiB*9", "tp=1MiB", topology=half))
    says_unknown(found, "the calibration measured no all-reduce over level node")
    few = ErrorClass("all-reduce", 0.1, Basis.IN_SAMPLE, 1, 2**10)
    small = replace(fitted, errors=(("node", few), ("gpu", few)))
    found = solved(asked("dp=64MiB*9", "tp=1MiB", topology=small))
    says_unknown(found, "the calibration measured no all-reduce of 64 MiB over level gpu")
    says_unknown(
        solved(asked("dp=64MiB*9", "tp=1MiB", topology=fitted.under("nccl-2.30"))),
        "the calibration has no errors of this library with these algorithms",
    )


def test_pipelined_gains_have_no_verdict(publish: Publish) -> None:
    publish(inside=(known(0.1),), across=(known(0.1),))
    problem = replace(asked("dp=8GiB", axes="dp=32"), pipeline=None)
    found = solved(problem)
    assert found.best is not None
    assert found.best.requests[0].chunks > 1
    says_unknown(found, "no table measures a pipelined collective")


def test_the_default_layout_itself_gains_nothing(publish: Publish) -> None:
    publish(inside=(known(0.05),), across=(known(0.05),))
    found = solved(replace(asked("tp=1MiB"), max_length=1))
    assert gain_of(found).over_default == pytest.approx(0.0, abs=1e-9)
    assert gain_of(found).measurable is False
    assert "no gain: the default layout takes no longer" in text_of(found)
    assert SENTENCE not in text_of(found)
    publish()
    unsaid = text_of(solved(replace(asked("tp=1MiB"), max_length=1)))
    assert UNKNOWN not in unsaid
    assert "over the default layout" not in unsaid


def test_an_answer_that_is_slower_says_by_how_much(publish: Publish) -> None:
    """The default layout has tp inside a node, where it must not be."""
    publish(inside=(known(0.05),), across=(known(0.05),))
    names = (["dp", "tp"], ["node", "gpu"])
    rule = parse_rule("tp across node", True, *names)
    found = solved(replace(asked("tp=64MiB"), rules=(rule,)))
    assert found.best is not None
    assert found.default is not None
    slower = found.best.objective_s / found.default.objective_s - 1
    assert slower > 0.1
    shown = f"{100 * slower:.3g}" if slower < 9.995 else f"{100 * slower:.0f}"
    assert f"no gain: {shown} % slower than the default layout" in text_of(found)
    assert " 0 % over" not in text_of(found)
    assert solution_data(found)["gain"] == pytest.approx(1 / (1 + slower) - 1)


def test_of_the_largest_request_only_its_own_error_counts(publish: Publish) -> None:
    small = ErrorClass("all-reduce", 0.25, Basis.IN_SAMPLE, 1, 2**20)
    classes = (small, known(0.5))
    publish(inside=classes, across=classes)
    both = asked("dp=1MiB", "tp=1GiB")
    assert gain_of(solved(replace(both, objective="max"))).accuracy.error == 0.5
    error = gain_of(solved(both)).accuracy.error
    assert error is not None
    assert 0.25 < error < 0.5


def test_without_an_answer_nothing_is_gained() -> None:
    names = (["dp", "tp"], ["node", "gpu"])
    both = tuple(parse_rule(f"{name} within node", True, *names) for name in names[0])
    found = solved(replace(asked("dp=1MiB"), rules=both))
    assert found.gain is None
    assert solution_data(found)["gain"] is None
    assert solution_data(found)["named_algorithms"] == []


def test_an_accuracy_that_is_not_known_has_no_error() -> None:
    assert Gain(1.0, Accuracy(unknown="why")).measurable is None
