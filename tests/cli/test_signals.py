"""Interrupts inside the bindings of a library, where Python would make something else of them."""

from tests.interpreter import assert_silent

ROUNDS = 150
INTERRUPTED_INSIDE_Z3 = f"""
import random, signal
import z3
from p2smt.cli.signals import Interrupts

draw = random.Random(0)
x = z3.Int("x")
signal.signal(signal.SIGVTALRM, lambda _number, _frame: signal.raise_signal(signal.SIGINT))
for _ in range({ROUNDS}):
    signal.signal(signal.SIGINT, signal.default_int_handler)
    Interrupts().install()
    try:
        signal.setitimer(signal.ITIMER_VIRTUAL, draw.uniform(1e-4, 1e-2))
        while True:
            z3.And(x + 1 > 0, z3.Or(x == 3, x * 2 < 5))
    except KeyboardInterrupt:
        pass
"""


def test_an_interrupt_inside_z3_s_bindings_stays_one() -> None:
    """Not an error of ctypes, and not swallowed by the end of an object."""
    assert_silent(INTERRUPTED_INSIDE_Z3)
