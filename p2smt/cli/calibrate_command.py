"""`p2smt calibrate`."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING, Literal

import typer

from p2smt.cli import given
from p2smt.cli import option_groups as o
from p2smt.cli.codes import NOT_SETTLED, OK
from p2smt.cli.guide.progress import say
from p2smt.cli.output import note as tell_note
from p2smt.cli.output import tell_tables, writable
from p2smt.cli.parameters import Text, Texts, argument, flag, opened, option, part
from p2smt.errors import InputError
from p2smt.units import counted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from p2smt.calibration.samples import Measurements
    from p2smt.cluster.topology import Algorithm, Topology
    from p2smt.cost.algorithms import Operation
    from p2smt.training.measured.efficiency_fit import EfficiencyFit


@opened
def calibrate(
    *,
    files: Texts = argument("FILE", "Measurements; FILE=NAMES: what ran in it, as a.txt=ring."),
    from_nccl_tests: bool = flag("FILEs are outputs of nccl-tests, or -J reports."),
    from_osu: bool = flag("FILEs are outputs of the OSU micro-benchmarks."),
    topology: Text = o.TOPOLOGY,
    prices: o.PriceOptions = part("library"),
    use: Texts = o.USE,
    collective: Text = option("NAME", "What ran, where a file does not tell."),
    ranks: Text = option("N,..", "Ranks of every file, or of each in turn; auto: as it says."),
    algorithm: Text = option(
        "NAMES",
        "What ran, such as ring,tree; default: the library's choice.  Without a library: ring by "
        "default; best: the fastest of the topology's.",
    ),
    allow_above_nominal: bool = flag("Fit rates above the links' nominal ones."),
    backend: Text = option("NAME", "Measure here, with gloo, nccl or mpi; no FILEs then."),
    sizes: str = option(
        "SIZE,..", "Payloads to measure.", default="16KiB,64KiB,256KiB,1MiB,4MiB,8MiB"
    ),
    repeat: str = option("N", "Timed repetitions of each.", default="5"),
    time_limit: str = option("TIME", "For all measurements, such as 90s or 1h.", default="1800"),
    runs: Text = option("FILE", "Measured training runs (CSV): fit efficiencies."),
    efficiency: Text = option("NAME", "Of --runs only this one, such as nemo-h100."),
    note: Text = option("TEXT", "Kept in the file: what this cluster is, its settings."),
    output: Text = option("FILE", "Write the topology, or the efficiency, here.", "-o"),
    shown: o.ShownOptions,
) -> int:
    """Fit a topology to measured times: its links, or what its library makes of them.

    Either to outputs of nccl-tests or of the OSU micro-benchmarks, or, with --backend, to
    collectives that are run here, on a rank per device of --topology: on ranks of its own, or under
    torchrun, srun or mpirun.  With --runs: the part of the peak that frameworks reach, fitted to
    measured iterations of training.
    """
    library = prices.library
    writable(output)
    if runs is not None or efficiency is not None:
        others = files or from_nccl_tests or from_osu or topology or library or note is not None
        _check_runs(runs, bool(others), backend)
        return calibrate_runs(str(runs), efficiency, output, shown)
    if backend is None:
        source = _source(files or [], from_nccl_tests, from_osu)
        cluster = _of_files(topology, library, use)
        paths, ran = _named_files(files or [], algorithm)
        found = _from_files(paths, cluster, collective, ranks, ran, source)
        return _finish(noted(found, note), algorithm, allow_above_nominal, output, shown)
    if files or from_nccl_tests or from_osu or collective is not None:
        rule = "measures here; FILE, --from-nccl-tests, --from-osu and --collective are for files"
        raise InputError(f"--backend {backend[:20]}", rule, "drop one or the other")
    cluster = given.topology_of(topology, library, use=use)
    measured = _measure(backend, cluster, ranks, sizes, repeat, time_limit)
    if measured is None:
        return 0
    return _finish(noted(measured, note), algorithm, allow_above_nominal, output, shown)


MOST_NOTED = 500


def noted(found: Measurements, note: str | None) -> Measurements:
    """The measurements with a note of the user's among their sources.

    Raises:
        InputError: it is empty, too long, or not one line.
    """
    if note is None:
        return found
    text = note.strip()
    if not text or len(text) > MOST_NOTED or not text.isprintable():
        rule = f"must be one line of 1 to {MOST_NOTED} printable characters"
        raise InputError(f"--note {text[:40]!r}", rule, "shorten it")
    return replace(found, sources=(*found.sources, f"note: {text}"))


def _check_runs(runs: str | None, others: bool, backend: str | None) -> None:
    """Refuse --efficiency without runs, and runs beside measurements of collectives.

    Raises:
        InputError: it is so.
    """
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
    from p2smt.cli.run_command import LaunchOptions, check_started
    from p2smt.units import parse_bytes, plain

    check_started(ranks, cluster.devices)
    payloads = [parse_bytes(size.strip(), "sizes") for size in sizes.split(",")]
    options = LaunchOptions(repeat=repeat, time_limit=limit).options(backend)
    many = f"{len(payloads)} sizes, {counted(cluster.devices, 'rank')}, {backend}"
    say(f"measuring {many}, at most {plain(options.time_limit_s)} s")
    measured = measure(cluster, options, payloads)
    say("fitting")
    return measured


Printed = Literal["nccl-tests", "osu"]


def _source(files: list[str], from_nccl_tests: bool, from_osu: bool) -> Printed:
    """Who printed the files.

    Raises:
        InputError: that is not said, or there are none.
    """
    if from_nccl_tests and from_osu:
        given_two = "--from-nccl-tests and --from-osu"
        raise InputError(given_two, "files are of one or the other", "calibrate with one of them")
    if files and not (from_nccl_tests or from_osu):
        named = f"{files[0][:80]!r}{' ..' * (len(files) > 1)}"
        rule = "is read as measurements of nccl-tests with --from-nccl-tests only"
        raise InputError(named, rule, "add --from-nccl-tests, or --from-osu for those of OSU")
    if not (from_nccl_tests or from_osu):
        remedy = "give --from-nccl-tests FILE.., --from-osu FILE.., or --backend gloo"
        raise InputError("calibrate", "needs measurements", remedy)
    return "osu" if from_osu else "nccl-tests"


def _named_files(
    files: list[str], algorithm: str | None
) -> tuple[list[str], list[tuple[Algorithm, ...] | None] | None]:
    """The files, and what ran in each where that is said of one; a file may have = in its name.

    Raises:
        InputError: what ran is said of all, too, or is no algorithm.
    """
    parts = [(file, "", "") if os.path.isfile(file) else file.rpartition("=") for file in files]
    paths = [path if equals else file for (path, equals, _), file in zip(parts, files, strict=True)]
    ran = [given.algorithms_of(names) if equals else None for _, equals, names in parts]
    if not any(equals for _, equals, _ in parts):
        return files, None
    if algorithm is not None:
        said = next(file for file, (_, equals, _) in zip(files, parts, strict=True) if equals)
        rule = f"is what ran in all files, and {said[:80]!r} says it of one"
        raise InputError(f"--algorithm {algorithm[:40]}", rule, "say it of each file, or of all")
    return paths, ran


def _of_files(topology: str | None, library: str | None, use: list[str] | None) -> Topology | None:
    """The topology that files of measurements ran on, where it is named.

    Raises:
        InputError: an option needs a topology.
    """
    for given_one, name in ((library, "--library"), (use, "--use")):
        if topology is None and given_one:
            raise InputError(name, "is of a topology", "name it with --topology")
    return None if topology is None else given.topology_of(topology, library, use=use)


def _from_files(
    files: list[str],
    topology: Topology | None,
    collective: str | None,
    ranks: str | None,
    ran: list[tuple[Algorithm, ...] | None] | None,
    source: Printed,
) -> Measurements:
    from p2smt.api.calibrate import read_measurements

    return read_measurements(
        *files,
        topology=topology,
        operation=None if collective is None else _operation(collective),
        ranks=None if ranks is None else _ranks(ranks),
        algorithms=ran,
        source=source,
    )


def _ranks(text: str) -> int | list[int | None]:
    """One number for all files, or one for each."""
    from p2smt.cluster.topology import MAX_DEVICES

    words = [word.strip() for word in text.split(",")]
    found = [None if w == "auto" else given.count_of(w, "ranks", MAX_DEVICES) for w in words]
    return found[0] if len(found) == 1 and found[0] is not None else found


def _operation(name: str) -> Operation:
    from p2smt.collectives.names import CALL_NAMES, operation_named

    found = operation_named(name)
    if found is None:
        rule = f"must be one of {', '.join(CALL_NAMES)}"
        raise InputError(f"collective {name[:40]!r}", rule)
    return found


def _finish(
    found: Measurements,
    algorithm: str | None,
    allow: bool,
    output: str | None,
    shown: o.ShownOptions,
) -> int:
    """Fit, write the topology, and report; code 3 if it is not to be relied on."""
    from p2smt.api.calibrate import calibrate as fit
    from p2smt.api.files import write_topology
    from p2smt.calibration.build import doubts, useless
    from p2smt.report.calibration import calibration_data, calibration_screen, calibration_tables
    from p2smt.report.text import printable

    algorithms = _what_ran(algorithm, found.topology)
    calibration = fit(found, algorithms, allow)
    for text in calibration.notes:
        tell_note(text)
    if output is not None:
        write_topology(calibration, output)
    lines = []
    if found.wrong:
        lines.append(f"left out, wrong results: {printable(', '.join(found.wrong))[:500]}")
    if output is not None:
        lines.append(f"topology written to {printable(output)}")
    tell_tables(
        shown.json,
        lambda: calibration_data(calibration, found.wrong),
        lambda: (
            (calibration_tables(calibration),)
            if shown.details
            else calibration_screen(calibration, lines)
        ),
        ["", *lines] if lines and shown.details else (),
        details=shown.details,
    )
    for line in () if shown.json else doubts(calibration):
        typer.echo(f"warning: {printable(line)}", err=True)
    return NOT_SETTLED if useless(calibration.tables) else OK


def _what_ran(text: str | None, topology: Topology) -> tuple[Algorithm, ...] | None:
    """The algorithms of --algorithm; the cheapest of all is what the textbook runs, no library."""
    if text not in given.CHEAPEST:
        return given.algorithms_of(text)
    if topology.library:
        rule = f"is not what {topology.library_name} runs, so that no time was measured of it"
        remedy = "name what ran, such as ring, or leave --algorithm out for the library's choice"
        raise InputError(f"--algorithm {text}", rule, remedy)
    return topology.algorithms


# With --runs: efficiencies from measured training runs.


def calibrate_runs(path: str, name: str | None, output: str | None, shown: o.ShownOptions) -> int:
    """Fit a constant per framework and device; write that of ``name`` as a file.

    Raises:
        InputError: the runs cannot be fitted, or ``name`` is none of what was.
    """
    from p2smt.report.calibration import efficiency_data, efficiency_screen, efficiency_tables
    from p2smt.report.text import printable
    from p2smt.training.measured.efficiency_fit import fits, step_s
    from p2smt.training.measured.measured_runs import read_runs

    runs = read_runs(path)
    found = fits(runs.counted, step_s, name or "")
    chosen = _chosen(found, name, output is not None)
    if output is not None:
        _write(chosen[0], path, output)
    lines = [] if output is None else [f"efficiency written to {printable(output)}"]
    tell_tables(
        shown.json,
        lambda: efficiency_data(chosen, runs),
        lambda: (
            (efficiency_tables(chosen, runs),)
            if shown.details
            else efficiency_screen(chosen, runs, lines)
        ),
        ["", *lines] if lines and shown.details else (),
        details=shown.details,
    )
    return OK


def _chosen(fits: Sequence[EfficiencyFit], name: str | None, one: bool) -> Sequence[EfficiencyFit]:
    """The fits of a name; all without one.

    Raises:
        InputError: there is none of that name, or one is needed and there are several.
    """
    from p2smt.errors import did_you_mean

    names = [fit.efficiency.name for fit in fits]
    if name is not None:
        found = [fit for fit in fits if fit.efficiency.name == name]
        if not found:
            remedy = did_you_mean(name, names) or f"fitted are {', '.join(names)}"
            raise InputError(f"--efficiency {name[:40]}", "is not among the runs' own", remedy)
        return found
    if one and len(fits) > 1:
        rule = "holds one efficiency, and the runs give " + ", ".join(names)
        raise InputError("--output", rule, "name one with --efficiency")
    return fits


def _write(fit: EfficiencyFit, path: str, output: str) -> None:
    from p2smt.files.write import write_atomically
    from p2smt.training.efficiencies.efficiency_files import dump_efficiency

    told = (f"what it cannot tell: {fit.cannot_tell}",) if fit.cannot_tell else ()
    sources = (f"fitted to {path[:200]}", *told)
    write_atomically(output, dump_efficiency(fit.efficiency, sources))
