"""`p2smt cost`."""

from __future__ import annotations

from typing import Any

from p2smt.cli import options as o


def cost(
    plan: o.PlanArgument = None,
    topology: o.TopologyOption = None,
    axes: o.AxesOption = None,
    placement: o.PlacementOption = None,
    reduce: o.RequestOption = None,
    kind: o.KindOption = None,
    program: o.ProgramOption = None,
    algorithm: o.AlgorithmOption = None,
    pipeline: o.PipelineOption = None,
    json: o.JsonOption = False,
) -> int:
    """The predicted time of a program, or of a plan file."""
    from p2smt.cli.output import print_json
    from p2smt.errors import InputError

    if plan is not None:
        others = (topology, axes, placement, reduce, kind, program, algorithm, pipeline)
        if any(given is not None for given in others):
            raise InputError("a plan file", "stands alone", "drop the other options")
        from p2smt.cli.verify_command import verify_plan

        code = verify_plan(plan, json)
        if not json and code == 0:
            _show_plan(plan)
        return code
    data = _data(topology, axes, placement, reduce, kind, program, algorithm, pipeline)
    if json:
        print_json(data)
    else:
        _show(data)
    return 0


def _show_plan(path: str) -> None:
    """The times of a valid plan, by request and step."""
    from p2smt.plans.file import read_plan
    from p2smt.plans.solution import in_chunks
    from p2smt.report.tables import console, table, times_title
    from p2smt.units import format_time

    rows, requests = [], read_plan(path).requests
    for request in requests:
        name = f"{request.kind.value} {'+'.join(request.axes)} x {request.times}"
        name += in_chunks(request.chunks)
        rows.append([name, format_time(request.seconds * request.times)])
        rows += [[f"  {step.instruction}", format_time(step.seconds)] for step in request.steps]
    title = times_title(request.chunks for request in requests)
    console().print(table(title, ["request and steps", ">time"], rows))


def _data(
    topology: str | None,
    axes: str | None,
    placement: str | None,
    reduce: str | None,
    kind: str | None,
    text: str | None,
    algorithm: str | None,
    pipeline: str | None,
) -> dict[str, Any]:
    from dataclasses import replace

    from p2smt.cli import given, restrictions, scene_options
    from p2smt.errors import InputError
    from p2smt.plans.given_program import given_program, program_report

    given.topology_of(topology)
    chunks = given.pipeline_of(pipeline)
    chosen = scene_options.program_kind(kind)
    where = scene_options.where(topology, None, axes, placement, reduce)
    if where.scene is None:
        raise InputError(f"reduce {reduce}", "has no size", "write it like dp=1GiB")
    scene, wanted = where.scene, restrictions.algorithms(algorithm)
    if wanted is not None:
        scene = replace(scene, topology=scene.topology.running(wanted))
    program = given_program(chosen, where.hierarchy, text)
    return program_report(chosen, scene, program, where.payload_bytes, chunks)


def _show(data: dict[str, Any]) -> None:
    from p2smt.plans.solution import in_chunks
    from p2smt.report.tables import gap, show, table
    from p2smt.units import format_bytes, format_time

    rows = [
        [
            step["instruction"],
            format_time(step["seconds"]),
            f"{step['algorithm']} {step['protocol']}",
            f"{step['bottleneck']} {format_bytes(step['load_bytes'])}",
        ]
        for step in data["steps"]
    ]
    seconds, bound, chunks = data["seconds"], data["physical_bound_s"], data["chunks"]
    single = data["single_collective_s"]
    title = "steps" if chunks == 1 else "steps of one chunk"
    show(
        table(title, ["instruction", ">time", "algorithm", "bottleneck"], rows),
        f"\n{format_time(seconds)}{in_chunks(chunks)}; single collective {format_time(single)}; "
        f"link-level bound {format_time(bound)} (gap {gap(seconds, bound)}); "
        f"checked on {data['checked']}",
    )
