"""The cost of a program that a user wrote."""

from __future__ import annotations

from typing import Any

from p2smt.collectives.demand import demand_of
from p2smt.collectives.names import DIRECT, RequestKind
from p2smt.cost.bounds import request_bound_s
from p2smt.cost.pipeline import best_chunks, chunk_counts
from p2smt.cost.scene import Scene
from p2smt.errors import InputError
from p2smt.programs.check import check_program
from p2smt.programs.program import Grouping, Hierarchy, Program, parse_program


def given_program(kind: RequestKind, hierarchy: Hierarchy, text: str | None) -> Program:
    """The program of a text, or the single collective over the whole group."""
    if hierarchy.depth == 0:
        raise InputError("a reduction over one device", "needs no program")
    if text is None:
        whole = Grouping(0, hierarchy.depth)
        return Program((hierarchy.instruction(DIRECT[kind], whole),))
    return hierarchy.canonical(parse_program(text))


def program_report(
    kind: RequestKind,
    scene: Scene,
    program: Program,
    payload_bytes: int,
    pipeline: int | None = 1,
) -> dict[str, Any]:
    """Check a program and give its time step by step, as plain data.

    ``pipeline`` is the number of chunks of a program of several steps, None the best one;
    with several chunks the numbers of the steps are those of one of them.

    Raises:
        InputError: the program breaks a rule of the semantics; names step and rule.
    """
    checked = check_program(demand_of(kind), scene.hierarchy, program)
    if (broken := checked.trace.violation) is not None:
        raise InputError(
            f"program '{str(program)[:200]}'",
            f"is not valid: {broken.message} ({broken.kind.value})",
        )
    rows = checked.trace.payload_rows
    timed = best_chunks(
        chunk_counts(pipeline, len(program)),
        lambda chunks: scene.program_times(program, rows, payload_bytes, chunks),
    )
    names = scene.topology.names
    return {
        "program": str(program),
        "chunks": timed.chunks,
        "seconds": timed.seconds,
        "single_collective_s": scene.fixed_time(kind, payload_bytes).seconds,
        "physical_bound_s": request_bound_s(scene.topology, scene.digits, kind, payload_bytes),
        "checked": checked.how,
        "steps": [
            {
                "instruction": str(instruction),
                "seconds": step.seconds,
                "algorithm": step.algorithm,
                "protocol": step.protocol,
                "bottleneck": None if step.level is None else names[step.level],
                "load_bytes": step.load_bytes,
            }
            for instruction, step in zip(program.instructions, timed.steps, strict=True)
        ],
    }
