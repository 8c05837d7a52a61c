"""The small-model theorem (docs/small-model.md): its finite check, and lists that rest on it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from experiments.small_model.open_arcs import Closed, close
from experiments.small_model.page import PAGE, page
from experiments.small_model.search import Word, search
from experiments.small_model.study import CASES, Case, read, row_of
from p2smt.collectives.demand import demand_of
from p2smt.collectives.names import RequestKind
from p2smt.encodings.program.reachable import build_table
from p2smt.encodings.program.reachable_search import GOAL
from p2smt.parallelism.request import MAX_PROGRAM_LENGTH
from p2smt.problems.placement import InstructionSet, ProgramProblem
from p2smt.programs.program import small_model_length
from tests.imports import names_imported

EVERY_DAY = ("all-reduce:2:16", "all-reduce:3:6", "all-gather:3:16", "reduce-scatter:3:16")
LONG = ("all-reduce:5:5", "all-reduce:5:6", "all-reduce:6:5", "all-gather:5:16")


def marked(case: Case) -> object:
    if str(case) in EVERY_DAY:
        return case
    mark = pytest.mark.evidence if str(case) in LONG else pytest.mark.exhaustive
    return pytest.param(case, marks=mark)


@pytest.mark.parametrize("case", [marked(case) for case in CASES], ids=str)
def test_the_stored_rows_are_those_of_the_search(case: Case) -> None:
    stored = read()[case]
    assert replace(row_of(case), cpu_s=stored.cpu_s) == stored


def test_the_check_covers_the_range() -> None:
    """Of each request: up to 5 levels; of any length on 2, and more levels from fewer (lemma 7)."""
    rows = read()
    assert set(rows) == set(CASES)
    assert all(row.not_closed == 0 for row in rows.values())
    for levels in (1, 2):
        assert rows[Case("all-reduce", levels, MAX_PROGRAM_LENGTH)].new_states_to is not None
    for levels in (1, 2, 3, 4, 5):
        assert Case("all-reduce", levels, small_model_length(levels)) in rows
        assert Case("all-gather", levels, MAX_PROGRAM_LENGTH) in rows
    assert small_model_length(6) == 5


def test_the_page_says_what_was_found() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(read().values())


def test_the_check_shares_no_code_with_what_rests_on_it() -> None:
    files = sorted(PAGE.parent.glob("*.py"))
    assert len(files) > 5
    imported = {name for path in files for name in names_imported(path.read_text(encoding="utf-8"))}
    apart = ("p2smt.encodings", "p2smt.search", "p2smt.programs.semantics", "p2smt.solvers")
    assert not [name for name in imported if name.startswith(apart)]


def test_a_word_that_depends_on_the_sizes_is_not_closed() -> None:
    assert {how for _, how in close(search(3, RequestKind.ALL_REDUCE, 7))} == set(Closed)


def listed(levels: int, kind: RequestKind, length: int) -> set[Word]:
    """The programs that the product lists on twos."""
    instructions = InstructionSet.of(levels)
    problem = ProgramProblem(demand_of(kind), (2,) * levels, length, instructions)
    table = build_table(problem)
    found, words = set(), [(table.start, Word())]
    for left in range(length, 0, -1):
        after = []
        for node, word in words:
            for arc in table.steps(node, left):
                longer = (*word, arc.instruction)
                if arc.target == GOAL:
                    found.add(longer)
                else:
                    after.append((arc.target, longer))
        words = after
    return found


@pytest.mark.parametrize(
    ("levels", "kind", "length"),
    [
        (2, RequestKind.ALL_REDUCE, 16),
        (3, RequestKind.ALL_REDUCE, 6),
        (3, RequestKind.ALL_GATHER, 6),
        (3, RequestKind.REDUCE_SCATTER, 6),
        pytest.param(4, RequestKind.ALL_REDUCE, 5, marks=pytest.mark.exhaustive),
        pytest.param(4, RequestKind.ALL_REDUCE, 6, marks=pytest.mark.exhaustive),
        pytest.param(5, RequestKind.ALL_GATHER, 6, marks=pytest.mark.exhaustive),
        pytest.param(5, RequestKind.ALL_REDUCE, 6, marks=pytest.mark.evidence),
        pytest.param(6, RequestKind.ALL_REDUCE, 5, marks=pytest.mark.evidence),
    ],
)
def test_the_lists_are_the_programs_of_all_sizes(
    levels: int, kind: RequestKind, length: int
) -> None:
    found = search(levels, kind, length)
    assert set(found.programs()) == listed(levels, kind, length)
    assert not any(how is Closed.NOT for _, how in close(found))
