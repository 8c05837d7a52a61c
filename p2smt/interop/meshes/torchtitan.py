"""TorchTitan: the degrees of parallelism, all that it takes.

It numbers ranks row-major over pp, dp_replicate, dp_shard, cp, tp, in that order, whatever the
degrees.  Expert parallelism takes the innermost ranks of dp_shard, cp and tp together.  Source:
``torchtitan/distributed/parallel_dims.py``; options of ``[parallelism]``.
"""

from __future__ import annotations

from p2smt.errors import InputError
from p2smt.interop.exported import Exported
from p2smt.interop.launchers.places import PlacedPlan
from p2smt.interop.meshes.axis_roles import ordered_axes, roles_of

ORDER = ("pp", "dp_replicate", "dp_shard", "ep", "cp", "tp")
"""Its axes, outermost first; expert parallelism is the inner part of dp_shard."""

_ROLES = {
    **dict.fromkeys(("pp", "pipe", "pipeline", "stage"), "pp"),
    **dict.fromkeys(("dp_replicate", "replicate", "hsdp"), "dp_replicate"),
    **dict.fromkeys(("dp", "dp_shard", "fsdp", "data"), "dp_shard"),
    **dict.fromkeys(("ep", "expert"), "ep"),
    **dict.fromkeys(("cp", "context"), "cp"),
    **dict.fromkeys(("tp", "mp", "model", "tensor"), "tp"),
}
_OPTIONS = {
    "pp": "pipeline_parallel_degree",
    "dp_replicate": "data_parallel_replicate_degree",
    "dp_shard": "data_parallel_shard_degree",
    "cp": "context_parallel_degree",
    "tp": "tensor_parallel_degree",
    "ep": "expert_parallel_degree",
}


def write_torchtitan(plan: PlacedPlan, _path: str) -> Exported:
    """The options of its command line, one a line.

    Raises:
        InputError: axes that it does not know, or ranks that are not launched in its order: names
            the launch that they need.
    """
    roles = roles_of(plan, _ROLES, "TorchTitan")
    sizes = dict(zip(roles, plan.problem.axis_sizes, strict=True))
    _check_experts(plan, sizes)
    wanted = sorted(range(len(roles)), key=lambda i: ORDER.index(roles[i]))
    several = [i for i in ordered_axes(plan, "TorchTitan") if plan.problem.axis_sizes[i] > 1]
    if several != [i for i in wanted if plan.problem.axis_sizes[i] > 1]:
        names = ",".join(plan.problem.axis_names[i] for i in wanted)
        rule = "TorchTitan numbers ranks over pp, dp_replicate, dp_shard, cp, tp and nothing else"
        remedy = f"launch them so: --launched {names}, here and for the launcher's file"
        raise InputError(f"{plan.source}: its launched ranks", rule, remedy)
    experts = sizes.get("ep", 1)
    sizes["dp_shard"] = sizes.get("dp_shard", 1) * experts
    lines = [
        f"--parallelism.{option} {sizes.get(role, 1)}"
        for role, option in _OPTIONS.items()
        if role != "ep" or experts > 1
    ]
    return Exported("\n".join(lines) + "\n")


def _check_experts(plan: PlacedPlan, sizes: dict[str, int]) -> None:
    if sizes.get("ep", 1) > 1 and sizes.get("cp", 1) * sizes.get("tp", 1) > 1:
        rule = "TorchTitan lays experts over the ranks of cp and tp as well, not beside them"
        raise InputError(
            f"{plan.source}: axis ep beside cp or tp", rule, "plan without one of them"
        )
