"""`p2smt calibrate`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from p2smt.cli import options as o

if TYPE_CHECKING:
    from p2smt.calibration.build import Calibration
    from p2smt.calibration.samples import Measurements
    from p2smt.cluster.topology import Algorithm, Topology
    from p2smt.cost.algorithms import Operation


def calibrate(
    files: Annotated[list[str] | None, typer.Argument(metavar="FILE", help="Measurements.")] = None,
    from_nccl_tests: Annotated[
        bool,
        typer.Option("--from-nccl-tests", help="FILEs are outputs of nccl-tests, or -J reports."),
    ] = False,
    topology: o.TopologyOption = None,
    library: o.LibraryOption = None,
    collective: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="What ran, where a file does not tell."),
    ] = None,
    ranks: Annotated[
        str | None,
        typer.Option(
            metavar="N,..", help="Ranks of every file, or of each in turn; auto: as it says."
        ),
    ] = None,
    algorithm: Annotated[
        str | None,
        typer.Option(
            metavar="NAMES",
            help="What ran, such as ring,tree; default: the library's choice.  Without a library: "
            "ring by default; best: the fastest of the topology's.",
        ),
    ] = None,
    allow_above_nominal: Annotated[
        bool,
        typer.Option("--allow-above-nominal", help="Fit rates above the links' nominal ones."),
    ] = False,
    backend: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Measure here, with gloo or nccl; no FILEs then."),
    ] = None,
    sizes: Annotated[
        str, typer.Option(metavar="SIZE,..", help="Payloads to measure.")
    ] = "16KiB,64KiB,256KiB,1MiB,4MiB,8MiB",
    repeat: Annotated[str, typer.Option(metavar="N", help="Timed repetitions of each.")] = "5",
    time_limit: Annotated[
        str, typer.Option(metavar="TIME", help="For all measurements, such as 30 or 30s.")
    ] = "1800",
    runs: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Measured training runs (CSV): fit efficiencies."),
    ] = None,
    efficiency: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Of --runs only this one, such as nemo-h100."),
    ] = None,
    output: Annotated[
        str | None,
        typer.Option(
            "--output", "-o", metavar="FILE", help="Write the topology, or the efficiency, here."
        ),
    ] = None,
    json: o.JsonOption = False,
) -> int:
    """Fit a topology to measured times: its links, or what its library makes of them.

    Either to outputs of nccl-tests, or, with --backend, to collectives that are run here, on a
    rank per device of --topology: on ranks of its own, or under torchrun or srun.  With --runs:
    the part of the peak that frameworks reach, fitted to measured iterations of training.
    """
    from p2smt.cli import given, restrictions
    from p2smt.errors import InputError

    restrictions.writable(output)
    if runs is not None or efficiency is not None:
        _check_runs(runs, bool(files or from_nccl_tests or topology or library), backend)
        from p2smt.cli.calibrate_runs import calibrate_runs

        return calibrate_runs(str(runs), efficiency, output, json)
    if backend is None:
        found = _from_files(files or [], from_nccl_tests, topology, library, collective, ranks)
        return _finish(found, algorithm, allow_above_nominal, output, json)
    if files or from_nccl_tests or collective is not None:
        rule = "measures here; FILE, --from-nccl-tests and --collective are for files"
        raise InputError(f"--backend {backend[:20]}", rule, "drop one or the other")
    cluster = given.topology_of(topology, library)
    measured = _measure(backend, cluster, ranks, sizes, repeat, time_limit)
    if measured is None:
        return 0
    return _finish(measured, algorithm, allow_above_nominal, output, json)


def _check_runs(runs: str | None, others: bool, backend: str | None) -> None:
    """Refuse --efficiency without runs, and runs beside measurements of collectives.

    Raises:
        InputError: it is so.
    """
    from p2smt.errors import InputError

    if runs is None:
        raise InputError("--efficiency", "names one of those fitted to --runs", "add --runs FILE")
    if others or backend is not None:
        rule = "fits efficiencies; measurements of collectives and topologies are for links"
        raise InputError(f"--runs {runs[:80]}", rule, "drop one or the other")


def _measure(
    backend: str, cluster: Topology, ranks: str | None, sizes: str, repeat: str, limit: str
) -> Measurements | None:
    """Run collectives here; None on ranks that have nothing to say."""
    from p2smt.api.calibrate import measure
    from p2smt.cli import given
    from p2smt.cli.runs import run_options
    from p2smt.units import parse_bytes

    if ranks is not None:
        run_options.check_started(given.count_of(ranks, "ranks"), cluster.devices)
    payloads = [parse_bytes(size.strip(), "sizes") for size in sizes.split(",")]
    options = run_options.options_of(backend, None, "float32", "1", repeat, limit, "0", "1")
    return measure(cluster, options, payloads)


def _from_files(
    files: list[str],
    from_nccl_tests: bool,
    topology: str | None,
    library: str | None,
    collective: str | None,
    ranks: str | None,
) -> Measurements:
    from p2smt.api.calibrate import read_measurements
    from p2smt.cli import given
    from p2smt.errors import InputError

    if topology is None and library is not None:
        raise InputError("--library", "runs on a topology", "name it with --topology")
    if files and not from_nccl_tests:
        named = f"{files[0][:80]!r}{' ..' * (len(files) > 1)}"
        rule = "is read as measurements of nccl-tests with --from-nccl-tests only"
        raise InputError(named, rule, "add --from-nccl-tests")
    if not from_nccl_tests:
        raise InputError(
            "calibrate", "needs measurements", "give --from-nccl-tests FILE.., or --backend gloo"
        )
    return read_measurements(
        *files,
        topology=None if topology is None else given.topology_of(topology, library),
        operation=None if collective is None else _operation(collective),
        ranks=None if ranks is None else _ranks(ranks),
    )


def _ranks(text: str) -> int | list[int | None]:
    """One number for all files, or one for each."""
    from p2smt.cli import given
    from p2smt.cluster.topology import MAX_DEVICES

    words = [word.strip() for word in text.split(",")]
    found = [None if w == "auto" else given.count_of(w, "ranks", MAX_DEVICES) for w in words]
    return found[0] if len(found) == 1 and found[0] is not None else found


def _operation(name: str) -> Operation:
    from p2smt.collectives.names import Collective, RequestKind
    from p2smt.errors import InputError

    known: dict[str, Operation] = {collective.value: collective for collective in Collective}
    known |= {kind.value: kind for kind in (RequestKind.ALL_TO_ALL, RequestKind.SEND)}
    if name not in known:
        raise InputError(f"collective {name[:40]!r}", f"must be one of {', '.join(known)}")
    return known[name]


def _finish(
    found: Measurements, algorithm: str | None, allow: bool, output: str | None, as_json: bool
) -> int:
    """Fit, write the topology, and report; code 3 if it is not to be relied on."""
    from p2smt.api.calibrate import calibrate as fit
    from p2smt.api.files import write_topology
    from p2smt.calibration.build import useless
    from p2smt.cli.codes import NOT_SETTLED, OK
    from p2smt.cli.output import note, print_json
    from p2smt.report.calibration import calibration_data

    algorithms = _what_ran(algorithm, found.topology)
    calibration = fit(found, algorithms, allow)
    for text in calibration.notes:
        note(text)
    if output is not None:
        write_topology(calibration, output)
    if as_json:
        print_json(calibration_data(calibration, found.wrong))
    else:
        _show(calibration, found, output)
    return NOT_SETTLED if useless(calibration.tables) else OK


def _what_ran(text: str | None, topology: Topology) -> tuple[Algorithm, ...] | None:
    """The algorithms of --algorithm; the cheapest of all is what the textbook runs, no library."""
    from p2smt.cli import given, restrictions
    from p2smt.errors import InputError

    if text not in given.CHEAPEST:
        return restrictions.algorithms(text)
    if topology.library:
        rule = f"is not what {topology.library_name} runs, so that no time was measured of it"
        remedy = "name what ran, such as ring, or leave --algorithm out for the library's choice"
        raise InputError(f"--algorithm {text}", rule, remedy)
    return topology.algorithms


def _show(calibration: Calibration, found: Measurements, output: str | None) -> None:
    from p2smt.calibration.build import doubts
    from p2smt.report.calibration import calibration_tables
    from p2smt.report.tables import show
    from p2smt.report.text import printable

    show(calibration_tables(calibration))
    if found.wrong:
        typer.echo(f"\nleft out, wrong results: {printable(', '.join(found.wrong))[:500]}")
    if output is not None:
        typer.echo(f"\ntopology written to {printable(output)}")
    for line in doubts(calibration):
        typer.echo(f"warning: {printable(line)}", err=True)
