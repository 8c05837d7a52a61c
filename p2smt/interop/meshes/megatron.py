"""Megatron-LM: the order in which it numbers ranks, or the launch that its orders need.

``order`` of ``megatron.core.parallel_state.initialize_model_parallel`` names axes, the first
varying fastest.  Its command line has two: ``tp-cp-ep-dp-pp`` and, with
``--use-tp-pp-dp-mapping``, ``tp-cp-ep-pp-dp``.  Experts: ``ep`` is no factor of the ranks beside
``dp``, but part of it: Megatron numbers ranks twice, for dense layers with dp as a whole (and cp),
for experts with ep and what is left of dp (cp being part of it).  Both must give the same
pipelines; it asserts that the order ends in pp, or the two sizes of dp agree, which with ep or cp
they do not.  Sources: ``parallel_state.py`` (``RankGenerator``,
``initialize_model_parallel``), ``training/initialize.py``.
"""

from __future__ import annotations

from p2smt.errors import InputError
from p2smt.interop.exported import Exported
from p2smt.interop.launchers.places import PlacedPlan
from p2smt.interop.meshes.axis_roles import ordered_axes, roles_of

TOKENS = ("tp", "cp", "ep", "dp", "pp")
"""Its axes in the order of its default, the fastest first."""
_MAPPING = ("tp", "cp", "ep", "pp", "dp")
_ROLES = {
    **dict.fromkeys(("tp", "mp", "model", "tensor"), "tp"),
    **dict.fromkeys(("cp", "context"), "cp"),
    **dict.fromkeys(("ep", "expert"), "ep"),
    **dict.fromkeys(("dp", "data", "fsdp"), "dp"),
    **dict.fromkeys(("pp", "pipe", "pipeline", "stage"), "pp"),
}
_OPTIONS = {
    "tp": "--tensor-model-parallel-size",
    "cp": "--context-parallel-size",
    "ep": "--expert-model-parallel-size",
    "pp": "--pipeline-model-parallel-size",
}


def write_megatron(plan: PlacedPlan, _path: str) -> Exported:
    """The options of its command line; an order that the command line lacks as a line of Python.

    Raises:
        InputError: axes that it does not know, experts that it lays otherwise, or ranks that are
            launched in none of its orders: names the launch that they need.
    """
    roles = roles_of(plan, _ROLES, "Megatron-LM")
    sizes = dict(zip(roles, plan.problem.axis_sizes, strict=True))
    several = [
        roles[i]
        for i in reversed(ordered_axes(plan, "Megatron-LM"))
        if plan.problem.axis_sizes[i] > 1
    ]
    _check_twice_numbered(plan, roles, sizes, several)
    lines = [
        f"{option} {sizes[role]}" for role, option in _OPTIONS.items() if sizes.get(role, 1) > 1
    ]
    if _fits(several, TOKENS):
        return Exported("\n".join(lines or [f"{_OPTIONS['tp']} 1"]) + "\n")
    if _fits(several, _MAPPING):
        return Exported("\n".join([*lines, "--use-tp-pp-dp-mapping"]) + "\n")
    order = "-".join(_whole(several))
    call = f'# initialize_model_parallel(.., order="{order}")'
    return Exported("\n".join([*lines, call]) + "\n", (_note(plan, roles, order),))


def _fits(several: list[str], order: tuple[str, ...]) -> bool:
    """Whether these axes, the fastest first, are in this order."""
    return several == [token for token in order if token in several]


def _whole(several: list[str]) -> list[str]:
    """The order with the axes of one rank first; dp stands beside ep, which is part of it."""
    found = [token for token in TOKENS if token not in several] + several
    if "ep" in several and "dp" not in several:
        found.remove("dp")
        found.insert(found.index("ep") + 1, "dp")
    return found


def _note(plan: PlacedPlan, roles: tuple[str, ...], order: str) -> str:
    names = _launch(plan, roles)
    return (
        f"Megatron-LM's command line has no option for the order {order}: give it where "
        f"initialize_model_parallel is called, or launch the ranks in its usual one "
        f"(--launched {names})"
    )


def _launch(plan: PlacedPlan, roles: tuple[str, ...]) -> str:
    """The axes of the plan in Megatron's usual order, outermost first."""
    usual = sorted(range(len(roles)), key=lambda i: -TOKENS.index(roles[i]))
    return ",".join(plan.problem.axis_names[i] for i in usual)


def _check_twice_numbered(
    plan: PlacedPlan, roles: tuple[str, ...], sizes: dict[str, int], several: list[str]
) -> None:
    """What Megatron asserts of orders, and that its dp is the plan's ep and dp side by side."""
    remedy = f"launch the ranks so: --launched {_launch(plan, roles)}"
    experts, context = sizes.get("ep", 1) > 1, sizes.get("cp", 1) > 1
    if experts and context:
        rule = "Megatron-LM lays experts over the ranks of cp as well, not beside them"
        raise InputError(f"{plan.source}: axes ep and cp", rule, "plan without one of them")
    if experts and "dp" in several and abs(several.index("dp") - several.index("ep")) > 1:
        rule = "Megatron-LM's experts are part of dp, so ranks of dp and ep must lie side by side"
        raise InputError(f"{plan.source}: axis ep", rule, remedy)
    if (experts or context) and "pp" in several and several[-1] != "pp":
        rule = "with ep or cp, Megatron-LM takes only orders that end in pp (pp outermost)"
        raise InputError(f"{plan.source}: axis pp", rule, remedy)
