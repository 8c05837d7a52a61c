"""z3's terms may be dropped in any thread, while a check runs in another one."""

import pytest

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
