"""z3 and the limits that it is given; its terms may be dropped while a check runs elsewhere."""

import pytest
import z3

from p2smt.encodings.run_z3 import new_solver, solution
from p2smt.errors import GaveUpError
from p2smt.result import SearchLimits, StopWatch
from tests.interpreter import assert_silent

DROPPED_ELSEWHERE = """
import gc, threading
import z3
from p2smt.encodings.run_z3 import new_solver

gc.disable()
ended = threading.Event()

def collect():
    while not ended.wait(1e-4):
        gc.collect()

threading.Thread(target=collect).start()
x = z3.BitVecs("x0 x1 x2 x3 x4 x5 x6 x7", 12)
for _ in range(60):
    cycles = [[z3.BitVec(f"y{i % 50}", 8) + i] for i in range(300)]
    for one in cycles:
        one.append(one)
    del cycles, one
    solver = new_solver(0, "QF_FD")
    solver.add(z3.Distinct(x), sum(x) * x[0] == x[1] * x[2])
    solver.set("timeout", 20)
    solver.check()
ended.set()
"""


@pytest.mark.exhaustive
@pytest.mark.slow
def test_terms_are_dropped_while_a_check_runs() -> None:
    """As Python's collector does it, in the thread that it happens to run in."""
    assert_silent(DROPPED_ELSEWHERE)


def test_effort_beyond_32_bits_is_no_small_one() -> None:
    """Of 2^32 + 1 z3 would keep 1, which is not enough to place six queens."""
    for effort, enough in ((1, False), (2**32 + 1, True), (2**40, True)):
        solver, places = new_solver(0), [z3.Int(f"q{n}") for n in range(6)]
        solver.add(*(z3.And(place >= 0, place < 6) for place in places), z3.Distinct(places))
        for step in (1, -1):
            solver.add(z3.Distinct([place + step * n for n, place in enumerate(places)]))
        watch = StopWatch.start(SearchLimits(effort=effort))
        if enough:
            assert solution(solver, watch, resumes=False) is not None
        else:
            with pytest.raises(GaveUpError):
                solution(solver, watch, resumes=False)
