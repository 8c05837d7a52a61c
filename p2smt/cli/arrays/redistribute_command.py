"""`p2smt redistribute`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from p2smt.cli import options as o
from p2smt.cli.arrays import array_options as a

if TYPE_CHECKING:
    from p2smt.interop.arrays.peers.compare import PeerRow
    from p2smt.search.redistribution.question import RedistributionAnswer


@dataclass(frozen=True, slots=True)
class Beside:
    """What is told beside the plan: other planners (of Shardy what it emitted), the gradient."""

    names: tuple[str, ...] | None
    shardy_file: str | None
    backward: bool

    def gradient(self, answer: RedistributionAnswer) -> RedistributionAnswer | None:
        """The way back of the plan's gradient, its source kept, as autograd keeps it."""
        if not self.backward or answer.plan is None:
            return None
        from p2smt.search.redistribution.backward import backward_answer

        memory = replace(answer.plan.memory, keep_source=True)
        return backward_answer(replace(answer.plan, memory=memory))

    def rows(self, answer: RedistributionAnswer) -> list[PeerRow] | None:
        """What they do; None: nothing was asked, or there is no plan."""
        if self.names is None or answer.plan is None:
            return None
        from p2smt.interop.arrays.peers.compare import compare_peers

        file = None if self.shardy_file is None else Path(self.shardy_file)
        return list(compare_peers(answer.plan, self.names, file))


def redistribute(
    topology: o.TopologyOption = None,
    use: o.UseOption = None,
    mesh: a.MeshOption = None,
    shape: a.ShapeOption = None,
    dtype: a.DtypeOption = "f32",
    source: a.FromOption = None,
    target: a.ToOption = None,
    placement: o.PlacementOption = None,
    device_ids: a.DevicesOption = None,
    to_device_ids: a.ToDevicesOption = None,
    memory: a.MemoryOption = None,
    keep_source: Annotated[
        bool, typer.Option("--keep-source", help="The source stays alive beside the steps.")
    ] = False,
    steps: Annotated[
        str | None,
        typer.Option(metavar="N", help="Compare plans of at most N steps; default: any length."),
    ] = None,
    uneven: a.UnevenOption = "refuse",
    cuts: a.CutsOption = "primes",
    compare: Annotated[
        str | None,
        typer.Option(metavar="NAMES", help="Other planners beside it: dtensor, shardy."),
    ] = None,
    shardy_file: Annotated[
        str | None,
        typer.Option(
            metavar="FILE", help="What Shardy emitted for it (MLIR), for --compare shardy."
        ),
    ] = None,
    backward: Annotated[
        bool, typer.Option("--backward", help="Also plan the way back of its gradient.")
    ] = False,
    svg: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Draw who holds which block before and after each step."),
    ] = None,
    algorithm: o.AlgorithmOption = None,
    library: o.LibraryOption = None,
    nominal: o.NominalOption = False,
    time_limit: o.TimeOption = None,
    seed: o.SeedOption = "0",
    workers: o.WorkersOption = "1",
    output: Annotated[
        str | None,
        typer.Option("--output", "-o", metavar="FILE", help="Write the plan here, as JSON."),
    ] = None,
    json: o.JsonOption = False,
) -> int:
    """The fastest steps from one sharding of an array to another, under a memory cap."""
    from p2smt.cli import given, restrictions
    from p2smt.cost.named import running
    from p2smt.report.arrays.picture import check_picture
    from p2smt.search.redistribution.cuts import Cuts
    from p2smt.search.redistribution.question import MAX_STEPS, RedistributionQuestion
    from p2smt.search.redistribution.solve import find_redistribution
    from p2smt.units import parse_bytes

    cluster = given.topology_of(topology, library, nominal=nominal, algorithm=algorithm, use=use)
    cluster = running(cluster, restrictions.algorithms(algorithm))
    texts = a.ArrayTexts(
        mesh, shape, dtype, source, target, placement, device_ids, to_device_ids, uneven
    )
    first, last = texts.types(cluster)
    question = RedistributionQuestion(
        first,
        last,
        cluster,
        None if memory is None else parse_bytes(memory, "--memory"),
        keep_source,
        None if steps is None else given.count_of(steps, "--steps", MAX_STEPS),
        Cuts.parse(cuts),
        given.limits_of(time_limit, seed, workers),
    )
    if backward:
        from p2smt.search.redistribution.backward import check_differentiable

        check_differentiable(first)
    beside = Beside(a.peers_of(compare, shardy_file), shardy_file, backward)
    for path in (output, svg):
        restrictions.writable(path)
    if output is not None:
        from p2smt.plans.file import check_plan_name

        check_plan_name(output)
    if svg is not None:
        check_picture(svg)
    answer = find_redistribution(question, until_interrupted=True)
    return _finish(answer, beside, output, svg, as_json=json)


def _finish(
    answer: RedistributionAnswer,
    beside: Beside,
    output: str | None,
    svg: str | None,
    *,
    as_json: bool,
) -> int:
    """Write the files first: what is shown may go to a pipe that nobody reads any more."""
    from p2smt.cli.codes import INTERRUPTED, exit_code
    from p2smt.cli.output import print_json
    from p2smt.report.arrays.redistribution_data import redistribution_data
    from p2smt.report.arrays.redistribution_tables import redistribution_tables
    from p2smt.report.tables import show

    peers, gradient = beside.rows(answer), beside.gradient(answer)
    written = _write(answer, output, svg)
    if as_json:
        print_json(redistribution_data(answer, peers, gradient))
    else:
        show(redistribution_tables(answer, peers, gradient))
        for line in written:
            typer.echo(line)
    return INTERRUPTED if answer.interrupted else exit_code(answer.status)


def _write(answer: RedistributionAnswer, output: str | None, svg: str | None) -> list[str]:
    """Write plan and picture; returns what to say of it."""
    from p2smt.report.text import printable

    lines: list[str] = []
    if answer.plan is None:
        return lines
    if output is not None:
        from p2smt.files.write import write_atomically
        from p2smt.plans.redistribution.file import redistribution_text

        write_atomically(output, redistribution_text(answer.plan))
        lines.append(f"plan written to {printable(output)}")
    if svg is not None:
        from p2smt.report.arrays.picture import write_picture

        write_picture(answer.plan, svg)
        lines.append(f"picture written to {printable(svg)}")
    return ["", *lines] if lines else []
