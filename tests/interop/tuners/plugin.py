"""NCCL's example tuner plugin, asked through ctypes.

Build it from NVIDIA/nccl, plugins/tuner/example: ``gcc -shared -fPIC -I nccl -o libnccltuner.so
plugin.c``, and name it in the environment variable ``P2SMT_NCCL_TUNER_PLUGIN``.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from p2smt.interop.tuners.rules import ALGORITHMS, COLLECTIVES, PROTOCOLS, TunerQuestion

VARIABLE = "P2SMT_NCCL_TUNER_PLUGIN"
IGNORE, DEAR = -1.0, 5.0
Answer = tuple[tuple[str, str] | None, int]


class _Tuner(ctypes.Structure):
    _fields_ = [(name, ctypes.c_void_p) for name in ("name", "init", "ask", "finalize")]


def asked_of(
    file: Path, library: str, questions: list[tuple[TunerQuestion, frozenset[int]]]
) -> list[Answer]:
    """What the plugin answers, reading a file anew for each communicator.

    Of each question the pairs (algorithm x 3 + protocol) that are impossible.
    """
    tuner = _Tuner.in_dll(ctypes.CDLL(library), "ncclTunerPlugin_v5")
    answers = []
    for question, impossible in questions:
        with _context(tuner, file, question) as context:
            answers.append(_ask(tuner, context, question, impossible))
    return answers


@contextmanager
def _context(tuner: _Tuner, file: Path, question: TunerQuestion) -> Iterator[ctypes.c_void_p]:
    kinds = (ctypes.c_uint64, ctypes.c_size_t, ctypes.c_size_t)
    init = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, *kinds, *[ctypes.c_void_p] * 3)(
        tuner.init
    )
    context, comm = ctypes.c_void_p(), question.comm
    _set(file)
    assert init(ctypes.addressof(context), 0, comm.ranks, comm.nodes, None, None, None) == 0
    yield context
    ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)(tuner.finalize)(context)


def _set(file: Path) -> None:
    ctypes.CDLL(None).setenv(b"NCCL_TUNER_CONFIG_FILE", os.fsencode(file), 1)


def _ask(
    tuner: _Tuner, context: ctypes.c_void_p, question: TunerQuestion, impossible: frozenset[int]
) -> Answer:
    size = len(ALGORITHMS) * len(PROTOCOLS)
    table = (ctypes.c_float * size)(*(IGNORE if n in impossible else DEAR for n in range(size)))
    channels = ctypes.c_int(-7)
    kinds = (ctypes.c_int, ctypes.c_size_t, ctypes.c_int, ctypes.c_void_p, *[ctypes.c_int] * 3)
    ask = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, *kinds, ctypes.c_void_p)(tuner.ask)
    number, calls = COLLECTIVES.index(question.collective), question.grouped
    where, count = ctypes.addressof(table), (len(ALGORITHMS), len(PROTOCOLS))
    done = ask(
        context,
        number,
        question.size,
        calls,
        where,
        *count,
        question.registered,
        ctypes.addressof(channels),
    )
    assert done == 0
    named = [n for n in range(size) if table[n] == 0]
    assert len(named) < 2
    pair = (ALGORITHMS[named[0] // 3], PROTOCOLS[named[0] % 3]) if named else None
    return pair, channels.value
