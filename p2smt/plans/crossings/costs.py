"""The symbolic cost of one program in a setting, from its text and the rules alone."""

from __future__ import annotations

from functools import lru_cache

from p2smt.collectives.demand import demand_of
from p2smt.collectives.names import RequestKind
from p2smt.cost.symbolic.form import CostForm
from p2smt.cost.symbolic.steps import symbolic_program
from p2smt.errors import InputError
from p2smt.plans.crossings.certificate import SymbolicSetting
from p2smt.programs.check import check_program
from p2smt.programs.program import Hierarchy, Program


def program_form(setting: SymbolicSetting, program: Program) -> CostForm:
    """The cost of a program, which the semantics runs first.

    Raises:
        InputError: the program is not valid there.
    """
    scene = setting.scene
    rows = _payload_rows(setting.kind, scene.hierarchy, program)
    form = symbolic_program(scene, program, rows).form()
    if form is None:
        given = f"program '{str(program)[:200]}'"
        raise InputError(given, "runs in several ways", "name one algorithm")
    return form


@lru_cache(maxsize=8192)
def _payload_rows(kind: RequestKind, hierarchy: Hierarchy, program: Program) -> tuple[int, ...]:
    """Rows of a state matrix that each step works on; ports play no part."""
    checked = check_program(demand_of(kind), hierarchy, program)
    if (fault := checked.trace.violation) is not None:
        given = f"program '{str(program)[:200]}'"
        raise InputError(given, f"is not valid: {fault.message} ({fault.kind.value})")
    return checked.trace.payload_rows
