"""Interrupts at any moment around a solver's thread: each arrives, none leaves a lock behind."""

import subprocess
import sys

from tests.interpreter import assert_silent

ROUNDS = 3000
INTERRUPTED_AGAIN_AND_AGAIN = f"""
import random, signal, sys, threading, time
from p2smt.encodings.interruptible import run_interruptibly

draw = random.Random(0)
signal.signal(signal.SIGALRM, signal.default_int_handler)
sys.unraisablehook = lambda problem: signal.setitimer(signal.ITIMER_REAL, 1e-4)
for _ in range({ROUNDS}):
    try:
        signal.setitimer(signal.ITIMER_REAL, draw.uniform(1e-6, 5e-4))
        while True:
            assert run_interruptibly(lambda: 7, lambda: None) == 7
    except KeyboardInterrupt:
        pass
while threading.active_count() > 1:
    time.sleep(0.01)
"""


def test_an_interrupt_leaves_the_search_at_any_moment() -> None:
    """Thousands of starts of threads, one after another, are met in all their places."""
    assert_silent(INTERRUPTED_AGAIN_AND_AGAIN)


STOPPED = """
import signal, threading
from p2smt.encodings.interruptible import run_interruptibly

told = threading.Event()
signal.signal(signal.SIGALRM, signal.default_int_handler)
def work():
    signal.pthread_kill(threading.main_thread().ident, signal.SIGALRM)
    told.wait()
try:
    run_interruptibly(work, told.set)
except KeyboardInterrupt:
    print(told.is_set())
"""


def test_an_interrupt_stops_the_search_and_awaits_it() -> None:
    done = subprocess.run(
        [sys.executable, "-c", STOPPED], capture_output=True, text=True, timeout=600, check=False
    )
    assert (done.stdout, done.stderr) == ("True\n", "")
