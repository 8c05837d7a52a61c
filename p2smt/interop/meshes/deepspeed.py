"""DeepSpeed: the axes and sizes of ``ProcessTopology``, which numbers ranks row-major over them.

Source: ``deepspeed/runtime/pipe/topology.py`` (``ProcessTopology``: "row-major" over ``axes``;
``PipelineParallelGrid`` looks up ``pipe``, ``data`` and ``model``), and ``deepspeed.initialize``
(``mesh_param``: sizes of ``data_parallel`` and ``sequence_parallel``).
"""

from __future__ import annotations

from p2smt.errors import InputError
from p2smt.interop.exported import Exported
from p2smt.interop.launchers.places import PlacedPlan
from p2smt.interop.meshes.arrays import comment_name
from p2smt.interop.meshes.axis_roles import ordered_axes, roles_of

_SEQUENCE = "sequence"
_ROLES = {
    **dict.fromkeys(("pp", "pipe", "pipeline", "stage"), "pipe"),
    **dict.fromkeys(("dp", "data", "zero", "fsdp", "dp_shard"), "data"),
    **dict.fromkeys(("tp", "mp", "model", "tensor"), "model"),
    **dict.fromkeys(("sp", "cp", "sequence", "context"), _SEQUENCE),
}


def write_deepspeed(plan: PlacedPlan, _path: str) -> Exported:
    """A Python function that makes the process topology, or ``mesh_param`` for a sequence axis.

    Raises:
        InputError: axes that DeepSpeed does not know, or ranks that are row-major over none.
    """
    roles = roles_of(plan, _ROLES, "DeepSpeed")
    order = ordered_axes(plan, "DeepSpeed")
    sizes = {roles[i]: plan.problem.axis_sizes[i] for i in order}
    if _SEQUENCE not in sizes:
        return Exported(_topology(plan, sizes))
    several = [role for role, size in sizes.items() if size > 1]
    if several not in (["data", _SEQUENCE], [_SEQUENCE], ["data"], []):
        rule = "DeepSpeed has a sequence axis beside data alone, and inside it"
        raise InputError(f"{plan.source}: ranks over {', '.join(several)}", rule, "plan it so")
    return Exported(_mesh_param(plan, sizes))


def _mesh_param(plan: PlacedPlan, sizes: dict[str, int]) -> str:
    value = f"({sizes.get('data', 1)}, {sizes[_SEQUENCE]})"
    return (
        f"# {comment_name(plan.source)}, written by p2smt: data_parallel, sequence_parallel of\n"
        "# deepspeed.initialize(.., mesh_param=mesh_param)\n"
        f"mesh_param = {value}\n"
    )


def _topology(plan: PlacedPlan, sizes: dict[str, int]) -> str:
    every = {**{role: 1 for role in ("pipe", "data") if role not in sizes}, **sizes}
    axes = ", ".join(f'"{role}"' for role in every)
    dims = ", ".join(map(str, every.values()))
    lines = [
        f'"""The process topology of {comment_name(plan.source)}, written by p2smt."""',
        "",
        "from deepspeed.runtime.pipe.topology import ProcessTopology",
        "",
        "",
        "def process_topology() -> ProcessTopology:",
        '    """For PipelineModule(.., topology=process_topology())."""',
        f"    return ProcessTopology(axes=[{axes}], dims=[{dims}])",
    ]
    return "\n".join(lines) + "\n"
