"""The module of a plan: its mesh, what one device does, and the function of the whole array.

API: jax 0.10 (``jax.shard_map``, ``jax.lax``).  ``check_vma=False``, as JAX cannot tell that a
gathered or permuted block is the same on some devices.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator

from p2smt.arrays.element import ElementType
from p2smt.arrays.state import ArrayState
from p2smt.arrays.steps import StepKind
from p2smt.arrays.text import layout_text, mesh_text
from p2smt.errors import InputError
from p2smt.interop.arrays.shard_map import templates
from p2smt.interop.arrays.shard_map.lines import step_lines
from p2smt.interop.arrays.shard_map.names import DigitNames
from p2smt.interop.arrays.shard_map.parts import PlanPart, parts_of, position_pairs
from p2smt.interop.exported import Exported
from p2smt.interop.meshes.arrays import comment_name
from p2smt.plans.redistribution.plan import RedistributionPlan

_JAX_NAMES = {
    ElementType.F64: "float64",
    ElementType.F32: "float32",
    ElementType.F16: "float16",
    ElementType.BF16: "bfloat16",
    ElementType.I64: "int64",
    ElementType.I32: "int32",
    ElementType.I16: "int16",
    ElementType.I8: "int8",
    ElementType.U8: "uint8",
    ElementType.BOOL: "bool",
}


def write_shard_map(plan: RedistributionPlan, source: str) -> Exported:
    """The module of :func:`shard_map_text`, and how it is called."""
    note = "redistribute(x) takes an array that is sharded as NamedSharding(mesh(), SOURCE)"
    return Exported(shard_map_text(plan, source), (note,))


def shard_map_text(plan: RedistributionPlan, source: str = "a plan") -> str:
    """A Python module with ``redistribute(x)`` for arrays of the plan's source type.

    ``source`` names the plan in its first lines.  Partial values, for which JAX has no type, are
    stacked along a first dimension of the array, one entry for each value of the partial axes.

    Raises:
        InputError: blocks of several shapes (``nested``), which JAX arrays do not have.
    """
    if plan.frame.nested:
        rule = "JAX has blocks of one shape only"
        raise InputError("a plan of nested uneven dimensions", rule, "plan it with --uneven padded")
    names, parts = DigitNames.of(plan.frame), parts_of(plan)
    constants = f"{_constants(plan, names, parts)}\n{_orders(plan)}"
    sections = [f"{_head(plan, source)}\n{constants}", templates.MESH]
    sections += [_local(names, part, _local_name(parts, part)) for part in parts]
    sections += [templates.MAPPED, *([templates.RENUMBERED] if len(parts) > 1 else [])]
    sections.append(_whole(parts))
    if _padding(plan):
        sections.append(templates.PADDED)
    return "\n\n\n".join(section.strip("\n") for section in sections) + "\n"


def _head(plan: RedistributionPlan, source: str) -> str:
    kind = f"{plan.source.element.value}[{','.join(map(str, plan.source.shape))}]"
    ends = (layout_text(end.layout, end.mesh) for end in (plan.source, plan.target))
    first = f"{kind} from {' to '.join(ends)} on {mesh_text(plan.source.mesh)}"
    lines = textwrap.wrap(f"Redistributes {first}.", 96)
    lines.append(f"Written by p2smt from {comment_name(source)}.")
    partial = templates.PARTIAL if plan.start.partial else ""
    return templates.HEAD.format(first="\n".join(lines), partial=partial)


def _constants(plan: RedistributionPlan, names: DigitNames, parts: tuple[PlanPart, ...]) -> str:
    frame = plan.frame
    digits = ", ".join(frame.names([digit]) for digit in range(len(frame.digits)))
    comment = f"  # {digits}" if digits != ", ".join(names.names) else ""
    lines = [
        f"AXES = {names.all_text()}{comment}",
        f"SIZES = {_tuple(frame.sizes)}",
        f"SHAPE = {_tuple(_shape(plan, plan.start))}",
        f'DTYPE = "{_JAX_NAMES[frame.element]}"',
        f"SOURCE = {names.spec(parts[0].start)}",
        f"TARGET = {names.spec(parts[-1].end)}",
    ]
    for number, part in enumerate(parts[1:], start=1):
        lines += [
            f"BETWEEN_{number} = {names.spec(part.start)}",
            f"SHAPE_{number} = {_tuple(_shape(plan, part.start))}",
        ]
    padding = _padding(plan)
    if padding:
        lines += [f"UNPADDED = {_tuple(plan.source.shape)}", f"PADDING = ({padding})"]
    lines += _pairs(plan)
    return "\n".join(lines)


def _shape(plan: RedistributionPlan, state: ArrayState) -> tuple[int, ...]:
    """The global shape, with the dimension of partial values."""
    stacked = (plan.frame.ways(state.partial),) if state.partial else ()
    return (*stacked, *plan.frame.shape)


def _padding(plan: RedistributionPlan) -> str:
    """What each dimension has more than the array; empty if none has."""
    more = [new - old for new, old in zip(plan.frame.shape, plan.source.shape, strict=True)]
    return "".join(f"(0, {count}), " for count in more).rstrip() if any(more) else ""


def _pairs(plan: RedistributionPlan) -> Iterator[str]:
    """The messages of each permute, (from, to) as mesh positions."""
    for number, planned in enumerate(plan.steps, start=1):
        if planned.step.kind is StepKind.PERMUTE:
            pairs = position_pairs(plan.frame, planned)
            entries = (f"({source}, {target})" for source, target in pairs)
            yield from _listed(f"PAIRS_{number}", entries)


def _listed(name: str, entries: Iterable[str]) -> list[str]:
    """The lines of a tuple."""
    text = ", ".join(entries) + ","
    lines = textwrap.wrap(text, 96, initial_indent="    ", subsequent_indent="    ")
    return [f"{name} = (", *lines, ")"]


def _orders(plan: RedistributionPlan) -> str:
    """The device of each mesh position, for each order of devices."""
    orders = []
    for order in plan.frame.orders:
        plain = order == tuple(range(len(order)))
        orders.append(f"range({len(order)})" if plain else str(list(order)))
    if len(orders) == 1 and orders[0].startswith("range"):
        return f"ORDERS = ({orders[0]},)"
    return "\n".join(_listed("ORDERS", orders))


def _local_name(parts: tuple[PlanPart, ...], part: PlanPart) -> str:
    return "local" if len(parts) == 1 else f"local_{parts.index(part) + 1}"


def _local(names: DigitNames, part: PlanPart, name: str) -> str:
    body = ["x = x[0]"] if part.start.partial else []
    for number, planned in enumerate(part.steps, start=part.first):
        body.append(f"# {planned.step.text(names.frame)}")
        body += step_lines(planned.step, names, f"PAIRS_{number}")
    body.append("return x[None]" if part.end.partial else "return x")
    doc = '"""What one device does to its block."""'
    return "\n".join([f"def {name}(x):", f"    {doc}", *(f"    {line}" for line in body)])


def _whole(parts: tuple[PlanPart, ...]) -> str:
    """The function of the whole array, part after part."""
    lines, given = [], "SOURCE"
    for number, part in enumerate(parts, start=1):
        result = "P(AXES)" if part.moves_on else "TARGET"
        how = f"{_local_name(parts, part)}, {part.start.order}, {given}, {result}"
        lines.append(f"x = mapped({how})(x)")
        if part.moves_on:
            given = f"BETWEEN_{number}"
            lines.append(f"x = renumbered(x, {part.end.order}, {given}, SHAPE_{number})")
    lines[-1] = lines[-1].replace("x = ", "return ", 1)
    note = templates.NOT_INSIDE_JIT if len(parts) > 1 else templates.INSIDE_JIT
    return templates.WHOLE.format(note=note, lines="\n    ".join(lines))


def _tuple(numbers: tuple[int, ...]) -> str:
    return f"({', '.join(map(str, numbers))}{',' if len(numbers) == 1 else ''})"
