"""Mutation testing: the checker refutes exactly the mutants that the exhaustive oracle calls wrong.

experiments/schedule_mutations has the figures for all mutants.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

import pytest

from p2smt.schedules.model import Schedule
from p2smt.schedules.verify.contributions import RULE
from p2smt.schedules.verify.report import Report, Verdict
from p2smt.schedules.verify.verify import verify
from tests.schedules.mutations import MUTATIONS, mutants
from tests.schedules.oracles.interleavings import TooBig, explore
from tests.schedules.oracles.publication import with_signals
from tests.schedules.random_schedules import random_schedule
from tests.schedules.small_schedules import SMALL, small_classics

LIMIT = 5_000


def disagreement(schedule: Schedule, depth: int = 8) -> str | None:
    """What the checker and the oracle do not agree on; None if they do, or if it is too big."""
    try:
        answer = explore(schedule, depth, LIMIT)
    except TooBig:
        return None
    wanted = Verdict.VALID if answer.right else Verdict.INVALID
    report = verify(schedule, depth)
    verdict = report.verdict
    if verdict is wanted or (answer.right and only_unpublished(schedule, report, depth)):
        return None
    return f"{verdict} but the oracle says {wanted}: {sorted(answer.reasons)} {answer.witness}"


def only_unpublished(schedule: Schedule, report: Report, depth: int) -> bool:
    """Whether all that is wrong is what packets do not publish."""
    if not all(RULE in broken.message for broken in report.violations):
        return False
    told = with_signals(schedule)
    return explore(told, depth).right and verify(told, depth).verdict is Verdict.VALID


def disagreements(schedule: Schedule, every: int, depth: int = 8) -> Iterator[str]:
    """The disagreements on every so many-th mutant."""
    for kind, name, mutant in islice(mutants(schedule), 0, None, every):
        if found := disagreement(mutant, depth):
            yield f"{kind}: {name}: {found}"


@pytest.mark.parametrize("depth", [1, 8])
@pytest.mark.parametrize("name", SMALL)
def test_small_schedules_are_right(name: str, depth: int) -> None:
    if name.startswith("ring") and depth == 1:
        assert explore(SMALL[name](), depth).reasons == {"deadlock"}
    else:
        assert explore(SMALL[name](), depth).right
    assert disagreement(SMALL[name](), depth) is None


@pytest.mark.parametrize("name", SMALL)
def test_smallest_depth(name: str) -> None:
    schedule = SMALL[name]()
    depth = verify(schedule).min_depth
    assert depth is not None
    assert explore(schedule, depth).right
    assert depth == 1 or explore(schedule, depth - 1).reasons == {"deadlock"}


def test_every_mutation_applies_and_changes_something() -> None:
    for name, mutate in MUTATIONS.items():
        found = [(s, m) for make in SMALL.values() for s in [make()] for _, m in mutate(s)]
        assert found, name
        assert all(schedule.steps != mutant.steps for schedule, mutant in found), name


def test_most_mutants_are_wrong_and_some_are_not() -> None:
    """Otherwise the comparison would show nothing."""
    sample = [m for make in SMALL.values() for _, _, m in islice(mutants(make()), 0, None, 25)]
    wrong = [m for m in sample if not explore(m).right]
    assert len(sample) / 2 < len(wrong) < len(sample)


@pytest.mark.parametrize("name", SMALL)
def test_sample_of_mutants(name: str) -> None:
    assert not list(disagreements(SMALL[name](), every=13))


@pytest.mark.parametrize("seed", range(60))
def test_random_schedules(seed: int) -> None:
    assert disagreement(random_schedule(seed, 4 + seed % 6)) is None


@pytest.mark.exhaustive
@pytest.mark.parametrize(("depth", "every"), [(8, 2), (1, 5)])
@pytest.mark.parametrize("name", SMALL)
def test_mutants_of_small_schedules(name: str, depth: int, every: int) -> None:
    assert not list(disagreements(SMALL[name](), every, depth))


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", small_classics())
def test_mutants_of_classics(name: str) -> None:
    schedule = small_classics()[name]
    assert explore(schedule).right
    assert disagreement(schedule) is None
    assert not list(disagreements(schedule, every=25))


@pytest.mark.exhaustive
@pytest.mark.parametrize("depth", [1, 8])
def test_many_random_schedules(depth: int) -> None:
    found = {
        seed: text
        for seed in range(1000, 1300)
        if (text := disagreement(random_schedule(seed, 4 + seed % 7, depth), depth))
    }
    assert not found
