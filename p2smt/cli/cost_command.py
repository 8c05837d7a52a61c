"""`p2smt cost`."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from p2smt.cli import options as o


def cost(
    plan: Annotated[str | None, typer.Argument(help="A plan file, to be re-costed.")] = None,
    topology: o.TopologyOption = None,
    axes: o.AxesOption = None,
    placement: o.PlacementOption = None,
    reduce: Annotated[str | None, typer.Option(help="Such as dp=1GiB.")] = None,
    kind: Annotated[
        str, typer.Option(help="all-reduce, reduce-scatter or all-gather.")
    ] = "all-reduce",
    program: Annotated[
        str | None, typer.Option(help="Program text; default: the single collective.")
    ] = None,
    algorithm: o.AlgorithmOption = None,
    json: o.JsonOption = False,
) -> int:
    """The predicted time of a program on a placement, step by step; or of a plan file."""
    from p2smt.errors import InputError

    if plan is not None:
        if any(given is not None for given in (topology, axes, placement, reduce, program)):
            raise InputError("a plan file", "stands alone", "drop the other options")
        from p2smt.cli.verify_command import verify

        return verify(plan, json)
    return _show(_data(topology, axes, placement, reduce, kind, program, algorithm), json)


def _data(
    topology: str | None,
    axes: str | None,
    placement: str | None,
    reduce: str | None,
    kind: str,
    text: str | None,
    algorithm: str | None,
) -> dict[str, Any]:
    from dataclasses import replace

    from p2smt.bounds import request_bound_s
    from p2smt.cli import restrictions, scene_options
    from p2smt.errors import InputError
    from p2smt.program_cost import given_program, program_report

    chosen = scene_options.program_kind(kind)
    where = scene_options.where(topology, None, axes, placement, reduce)
    if where.scene is None:
        raise InputError(f"reduce {reduce}", "has no size", "write it like dp=1GiB")
    scene, wanted = where.scene, restrictions.algorithms(algorithm)
    if wanted is not None:
        scene = replace(scene, topology=replace(scene.topology, algorithms=wanted))
    program = given_program(chosen, where.hierarchy, text)
    report = program_report(chosen, scene, program, where.payload_bytes)
    bound = request_bound_s(scene.topology, scene.digits, chosen, where.payload_bytes)
    return {**report, "physical_bound_s": bound}


def _show(data: dict[str, Any], as_json: bool) -> int:
    from p2smt.report.tables import console, gap, table
    from p2smt.units import format_bytes, format_time

    if as_json:
        o.print_json(data)
        return 0
    rows = [
        [
            step["instruction"],
            format_time(step["seconds"]),
            f"{step['algorithm']} {step['protocol']}",
            f"{step['bottleneck']} {format_bytes(step['load_bytes'])}",
        ]
        for step in data["steps"]
    ]
    screen = console()
    screen.print(table("steps", ["instruction", ">time", "algorithm", "bottleneck"], rows))
    seconds, bound = data["seconds"], data["physical_bound_s"]
    screen.print(
        f"\n{format_time(seconds)}; single collective {format_time(data['single_collective_s'])}; "
        f"link-level bound {format_time(bound)} (gap {gap(seconds, bound)}); "
        f"checked on {data['checked']}"
    )
    return 0
