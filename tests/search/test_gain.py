"""What the answer gains over the default layout, and whether who measures would find it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

import p2smt
from p2smt.cluster.error_class import Basis, ErrorClass
from p2smt.cluster.file import load_topology
from p2smt.cluster.topology import Algorithm, Topology
from p2smt.cost import accuracy
from p2smt.cost.accuracy import ANY, SIZE_CLASSES, PriceBasis, PriceRange, system_name
from p2smt.parallelism.placement import parse_rule
from p2smt.parallelism.request import Problem
from p2smt.plans.solution import Gain, Shown, Solution, shown
from p2smt.report.outputs.shape import json_of
from p2smt.report.solution_data import solution_data
from tests.search.solve.test_without_proof import text_of

UNMEASURED = "not measured anywhere: run p2smt calibrate for 2 minutes"
CLUSTER = load_topology("dgx-a100:4")
STEPPED = load_topology("aws-p4d:4")
"""Large answers are programs of three steps, two of them inside a node."""
Publish = Callable[..., None]
Row = tuple[str, float, float]


def known(low: float, high: float, operation: str = "all-reduce") -> Row:
    return operation, low, high


@pytest.fixture
def publish(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Publish:
    """Make these rows all that is published, of a library on groups inside and across nodes,
    however many members these have in a node; ``other`` are those of any system."""
    files = iter(range(1000))

    def with_rows(
        of: Topology = CLUSTER, other: Row = (ANY, 0.5, 2.0), **systems: tuple[Row, ...]
    ) -> None:
        names = {"inside": system_name(of, 1), "across": system_name(of, 0)}
        shares = ("", *(f"{local} of " for local in range(1, 8)))
        every = [
            (share + names[name], of.library_name, row)
            for name, rows in systems.items()
            for row in rows
            for share in shares
        ]
        text = "blind:\n" + "".join(
            f'  - {{system: "{system}", library: "{library}", basis: fitted, collective: "{what}",'
            f" size_class: {size}, count: 9, low: {low}, median: 1, high: {high}}}\n"
            for system, library, (what, low, high) in [*every, (ANY, ANY, other)]
            for size, _ in SIZE_CLASSES
        )
        file = tmp_path / f"{next(files)}.yaml"
        file.write_text(text)
        monkeypatch.setattr(accuracy, "ACCURACY_FILE", file)

    return with_rows


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


def range_of(solution: Solution) -> PriceRange:
    answer = gain_of(solution).answer
    assert answer is not None
    return answer


def test_the_gain_is_the_default_layout_over_the_answer(publish: Publish) -> None:
    publish(inside=(known(0.9, 1.1),), across=(known(0.8, 1.2),))
    found = heavy()
    assert found.best is not None
    assert found.default is not None
    over = found.default.objective_s / found.best.objective_s - 1
    assert gain_of(found).over_default == over > 1
    data = json_of(solution_data(found))
    assert (data["gain"], data["gain_measurable"]) == (over, True)
    assert data["gain_shown"] == "would show"
    said = f"gain {100 * over:.3g} % over the default layout, "
    assert said in text_of(found)
    assert ": would show" in text_of(found)


@pytest.mark.parametrize(("part", "would"), [(0.99, True), (1.01, False)])
def test_a_gain_that_a_range_reaches_may_not_show(
    publish: Publish, part: float, would: bool
) -> None:
    """Whether the answer's high reaches the default's time, or its low the answer's."""
    publish(inside=(known(1, 1),), across=(known(1, 1),))
    over = gain_of(heavy()).over_default
    for rows in (known(1, 1 + part * over), known(1 / (1 + part * over), 1)):
        publish(inside=(rows,), across=(rows,))
        found = heavy()
        assert gain_of(found).measurable is would
        assert gain_of(found).shown is (Shown.YES if would else Shown.PERHAPS)
        assert f": {gain_of(found).shown.value}" in text_of(found)
        assert json_of(solution_data(found))["gain_measurable"] is would


def test_a_price_lies_in_its_own_range(publish: Publish) -> None:
    """Where all of a system is slower than predicted, too."""
    publish(inside=(known(1.2, 1.3),), across=(known(0.7, 0.8),))
    found = heavy()
    assert found.best is not None
    one = range_of(found)
    assert one.seconds == pytest.approx(found.best.objective_s)
    assert one.low_s <= one.seconds <= one.high_s


def stepped(*requests: str, axes: str = "dp=32") -> Problem:
    return asked(*requests, topology=STEPPED, axes=axes)


def test_the_range_of_an_answer_is_the_sum_of_its_steps(publish: Publish) -> None:
    """Each with its collective and what its groups span: low sums with low, high with high."""
    problem = stepped("dp=2GiB")
    found = solved(problem)
    assert found.best is not None
    (answer,) = found.best.requests
    assert answer.program is not None
    names = [one.collective.value for one in answer.program.instructions]
    assert names == ["reduce-scatter", "all-reduce", "all-gather"]
    ends = [(0.9, 1.2), (0.7, 1.1), (0.8, 1.5)]
    scatter, reduced, gathered = (known(*e, name) for e, name in zip(ends, names, strict=True))
    publish(STEPPED, inside=(scatter, gathered), across=(reduced,))
    one = range_of(solved(problem))
    seconds = [step.seconds for step in answer.steps]
    assert one.basis is PriceBasis.FITTED
    low, high = (sum(s * end[n] for s, end in zip(seconds, ends, strict=True)) for n in (0, 1))
    assert (one.low_s, one.high_s) == pytest.approx((low, high))
    data = json_of(solution_data(solved(problem)))
    assert data["range_s"] == pytest.approx([low, high])
    assert data["range_basis"] == data["plan"]["range_basis"] == "fitted here"
    assert data["plan"]["range_s"] == data["range_s"]
    assert data["plan"]["requests"][0]["range_s"] == pytest.approx([low, high])


def test_a_sum_is_as_firm_as_its_weakest_part(publish: Publish) -> None:
    """That the single collective was measured says nothing of a program's steps."""
    problem = stepped("dp=2GiB")
    publish(STEPPED, inside=(known(0.9, 1.1),), across=(known(0.9, 1.1),))
    assert range_of(solved(problem)).basis is PriceBasis.LIKE
    gathered = (known(0.9, 1.1, "all-gather"), known(0.9, 1.1, "reduce-scatter"))
    publish(STEPPED, inside=gathered)
    says_unmeasured(solved(problem), "no table of this fabric")


def test_of_the_largest_request_all_steps_count(publish: Publish) -> None:
    """On what the largest rests, the whole does."""
    both = replace(stepped("dp+tp=2GiB", "tp=10GiB", axes="dp=4,tp=8"), objective="max")
    parts = (known(0.6, 1.4, "reduce-scatter"), known(0.6, 1.4, "all-gather"))
    publish(STEPPED, inside=(*parts, known(0.9, 1.1)), across=(known(0.6, 1.4),))
    found = solved(both)
    assert found.best is not None
    large, small = found.best.requests
    assert len(large.steps) > len(small.steps) == 1
    assert small.total_s < large.total_s
    one = range_of(found)
    assert one.high_s == pytest.approx(1.4 * large.total_s)
    assert one.low_s == pytest.approx(max(0.6 * large.total_s, 0.9 * small.total_s))


def says_unmeasured(found: Solution, why: str) -> None:
    """The gain has no verdict but a remedy, and the text and the JSON say why."""
    data = json_of(solution_data(found))
    assert gain_of(found).measurable is None
    assert (data["gain_measurable"], data["accuracy"], data["accuracy_basis"]) == (None,) * 3
    assert data["accuracy_unknown"] == why
    assert data["gain_shown"] == UNMEASURED
    assert f": {UNMEASURED} ({why})" in text_of(found)
    assert range_of(found).high_s > range_of(found).low_s


def test_a_fabric_of_which_there_is_no_table_is_assumed(publish: Publish) -> None:
    publish(inside=(known(0.9, 1.1),))
    says_unmeasured(heavy(), "no table of this fabric")


def test_other_systems_with_the_same_fabrics_are_like_it(publish: Publish) -> None:
    """Of another operation, too: links were fitted to it."""
    publish(inside=(known(0.9, 1.1, "send"),), across=(known(0.9, 1.1, "send"),))
    found = heavy()
    assert range_of(found).basis is PriceBasis.LIKE
    assert gain_of(found).shown is not Shown.UNMEASURED
    assert "to " in range_of(found).text
    assert range_of(found).text.endswith(": fitted on a like system")


def test_another_library_or_none_has_no_verdict(publish: Publish) -> None:
    publish(inside=(known(0.9, 1.1),), across=(known(0.9, 1.1),))
    rccl = asked("dp=64MiB*9", "tp=1MiB", topology=CLUSTER.under("rccl"))
    says_unmeasured(solved(rccl), "no table of rccl")
    textbook = asked("dp=64MiB*9", "tp=1MiB", topology=CLUSTER.under("none"))
    says_unmeasured(solved(textbook), "no library runs here")


def test_named_algorithms_are_not_what_was_published(publish: Publish) -> None:
    publish(inside=(known(0.9, 1.1),), across=(known(0.9, 1.1),))
    ring = replace(asked("dp=64MiB*9", "tp=1MiB"), algorithms=(Algorithm.RING,))
    one = range_of(solved(ring))
    assert (one.basis, one.why) == (PriceBasis.LIKE, accuracy.RESTRICTED)


def test_a_calibration_says_its_own_errors(publish: Publish) -> None:
    publish(inside=(known(0.1, 10),), across=(known(0.1, 10),))

    def error(value: float, basis: Basis = Basis.LEFT_OUT) -> ErrorClass:
        return ErrorClass("all-reduce", value, basis)

    mine = (("gpu", error(0.03)), ("node", error(0.02)))
    fitted = replace(CLUSTER, calibrated=True, errors=mine)
    found = solved(asked("dp=64MiB*9", "tp=1MiB", topology=fitted))
    one = range_of(found)
    assert (one.basis, one.why) == (PriceBasis.MEASURED, "")
    assert one.seconds / 1.03 <= one.low_s < one.seconds < one.high_s <= one.seconds / 0.97
    assert json_of(solution_data(found))["accuracy_basis"] == "left out"
    seen = replace(fitted, errors=tuple((level, error(0.03, Basis.IN_SAMPLE)) for level, _ in mine))
    found = solved(asked("dp=64MiB*9", "tp=1MiB", topology=seen))
    assert range_of(found).text.endswith(": measured here, in sample")
    assert json_of(solution_data(found))["accuracy_basis"] == "in sample"
    half = replace(fitted, errors=mine[:1])
    found = solved(asked("dp=64MiB*9", "tp=1MiB", topology=half))
    says_unmeasured(found, "the calibration measured no all-reduce over level node")
    few = ErrorClass("all-reduce", 0.1, Basis.IN_SAMPLE, 1, 2**10)
    small = replace(fitted, errors=(("node", few), ("gpu", few)))
    found = solved(asked("dp=64MiB*9", "tp=1MiB", topology=small))
    said = "the calibration measured no all-reduce of 64 MiB over level gpu"
    says_unmeasured(found, said)
    other = asked("dp=64MiB*9", "tp=1MiB", topology=fitted.under("nccl-2.30"))
    says_unmeasured(solved(other), accuracy.UNMEASURED)


def test_pipelined_gains_have_no_verdict(publish: Publish) -> None:
    publish(inside=(known(0.9, 1.1),), across=(known(0.9, 1.1),))
    problem = replace(asked("dp=8GiB", axes="dp=32"), pipeline=None)
    found = solved(problem)
    assert found.best is not None
    (answer,) = found.best.requests
    assert answer.chunks > 1
    says_unmeasured(found, "no table measures a pipelined collective")
    assert range_of(found).seconds == answer.seconds


def test_the_default_layout_itself_gains_nothing(publish: Publish) -> None:
    publish(inside=(known(0.95, 1.05),), across=(known(0.95, 1.05),))
    found = solved(replace(asked("tp=1MiB"), max_length=1))
    assert gain_of(found).over_default == pytest.approx(0.0, abs=1e-9)
    assert gain_of(found).measurable is False
    assert "no gain: the default layout takes no longer" in text_of(found)
    assert json_of(solution_data(found))["gain_shown"] is None
    publish()
    unsaid = text_of(solved(replace(asked("tp=1MiB"), max_length=1)))
    assert UNMEASURED not in unsaid
    assert "over the default layout" not in unsaid


def test_an_answer_that_is_slower_says_by_how_much(publish: Publish) -> None:
    """The default layout has tp inside a node, where it must not be."""
    publish(inside=(known(0.95, 1.05),), across=(known(0.95, 1.05),))
    names = (["dp", "tp"], ["node", "gpu"])
    rule = parse_rule("tp across node", True, *names)
    found = solved(replace(asked("tp=64MiB"), rules=(rule,)))
    assert found.best is not None
    assert found.default is not None
    slower = found.best.objective_s / found.default.objective_s - 1
    assert slower > 0.1
    shown_as = f"{100 * slower:.3g}" if slower < 9.995 else f"{100 * slower:.0f}"
    assert f"no gain: {shown_as} % slower than the default layout" in text_of(found)
    assert " 0 % over" not in text_of(found)
    assert json_of(solution_data(found))["gain"] == pytest.approx(1 / (1 + slower) - 1)


def test_without_an_answer_nothing_is_gained() -> None:
    names = (["dp", "tp"], ["node", "gpu"])
    both = tuple(parse_rule(f"{name} within node", True, *names) for name in names[0])
    found = solved(replace(asked("dp=1MiB"), rules=both))
    assert found.gain is None
    assert json_of(solution_data(found))["gain"] is None
    assert json_of(solution_data(found))["named_algorithms"] == []


def test_what_nobody_measured_shows_nothing() -> None:
    firm = PriceRange(1.0, 1.0, 1.0, PriceBasis.FITTED)
    assert shown(firm, replace(firm, seconds=2.0, low_s=2.0, high_s=2.0)) is Shown.YES
    guess = PriceRange(9.0, 9.0, 9.0, PriceBasis.ASSUMED)
    assert shown(firm, guess) is shown(guess, firm) is Shown.UNMEASURED
    assert shown(firm, None) is Shown.PERHAPS
