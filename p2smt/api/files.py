"""Plans, schedules and topologies as files.

What one kind of file alone needs is loaded by the functions that are about it: fits of links load
scipy, exports all formats of trainers and launchers.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import date
from fractions import Fraction
from typing import TYPE_CHECKING

from p2smt.cluster.file import dump_topology, load_topology
from p2smt.cluster.topology import Topology
from p2smt.errors import InputError
from p2smt.fabric.fabric import Fabric
from p2smt.files.json_text import read_json
from p2smt.files.write import write_all_atomically, write_atomically
from p2smt.files.yaml_text import dump_yaml, read_text
from p2smt.interop import schedule_files
from p2smt.interop.fabrics import read_fabric
from p2smt.interop.reading import Reading
from p2smt.plans import file as plan_file
from p2smt.plans.file import MAX_PLAN_BYTES
from p2smt.plans.file_model import AnyPlan
from p2smt.plans.solution import Solution
from p2smt.schedules.cost.against import step_s
from p2smt.schedules.model import Schedule
from p2smt.synthesis.certificate.certificate import KIND, ScheduleCertificate
from p2smt.synthesis.certificate.check import CertificateReport, check_certificate
from p2smt.synthesis.certificate.forest import (
    MAX_FOREST_BYTES,
    ForestClaim,
    ForestReport,
    TreeNetwork,
    check_forest,
    forest_of_text,
    is_forest,
)
from p2smt.synthesis.certificate.sizes import KIND as SIZE_KIND
from p2smt.synthesis.certificate.sizes import SizeCertificate, SizeReport, byte_s, check_sizes
from p2smt.synthesis.forests.network import failures_of, ground_of_fabric, ground_of_levels

if TYPE_CHECKING:
    from p2smt.calibration.build import Calibration
    from p2smt.interop.exported import Exported
    from p2smt.schedules.lower.lowered_request import PlanExport

StrPath = str | os.PathLike[str]


def read_plan(path: StrPath) -> AnyPlan:
    """The plan in a JSON file, as ``solve -o`` and :func:`write_plan` write it.

    Raises:
        InputError: the file cannot be read, or a key is unknown, missing or has a bad value.
    """
    return plan_file.read_plan(os.fspath(path))


def write_plan(solution: Solution, path: StrPath) -> None:
    """Write the best alternative as a plan file, whole or not at all.

    Raises:
        InputError: there is no answer, the name is that of a schedule (.yaml or .xml), or the file
            cannot be written.
    """
    plan_file.check_plan_name(os.fspath(path))
    if solution.best is None:
        given = f"a solution that is {solution.status.value}"
        raise InputError(given, "has no plan to write", "look at its status first")
    data = plan_file.plan_data(solution, solution.best)
    write_atomically(os.fspath(path), json.dumps(data) + "\n")


def read_schedule(
    path: StrPath,
    *,
    collective: str | None = None,
    root: int | None = None,
    in_place: bool | None = None,
    iterations: int | None = None,
    parameters: Mapping[str, int] | None = None,
) -> Schedule:
    """The schedule in a file: MSCCL XML, MSCCL++ JSON, or a schedule file (YAML).

    The arguments say what the file does not (:class:`~p2smt.interop.reading.Reading`).

    Raises:
        InputError: it is no schedule, or breaks the rules of its format.
    """
    name = os.fspath(path)
    text = schedule_files.schedule_text(name)
    if text is None:
        raise InputError(f"file {name[:200]!r}", "is not a schedule", "see docs/schedules.md")
    reading = Reading(root, collective, in_place, iterations, dict(parameters or {}))
    return schedule_files.read_schedule(text, name, reading)


def write_schedule(schedule: Schedule, path: StrPath, *, force: bool = False) -> None:
    """Write a schedule in the format that the file's name asks for: .xml, .json or .yaml.

    Args:
        schedule: what to write.
        path: the file.
        force: also where the runtime of that format would not run it.

    Raises:
        InputError: the format is not known, cannot express the schedule without loss, or has a
            runtime that would not run the file.
    """
    name = os.fspath(path)
    write_atomically(name, schedule_files.written(schedule, name, force=force))


def write_plan_schedules(
    plan: AnyPlan,
    path: StrPath,
    *,
    request: int = 1,
    group: int | None = None,
    algorithm: str | None = None,
    force: bool = False,
) -> PlanExport:
    """Write the groups of a request of a plan as schedules, as ``convert`` does.

    Args:
        plan: by :func:`read_plan`.
        path: .xml or .json: a file for each group, with its number before the ending; .yaml: all
            groups in one.
        request, group: which ones, counted from 1; without a group: all, with one: just ``path``.
        algorithm: ring, tree or direct; None: the one that is predicted to be fastest.
        force: also where the runtime of that format would not run it.

    Returns:
        What was written, and its predicted time.

    Raises:
        InputError: no such request or group, it cannot be said in the format, or a file cannot
            be written; then none is.
    """
    from p2smt.interop.plan_export import export_plan

    made = export_plan(plan, request - 1, os.fspath(path), group, algorithm, force=force)
    write_all_atomically({file.path: file.text for file in made.files})
    return made


def export(
    plan: AnyPlan,
    to: str,
    *,
    hosts: Sequence[str] | None = None,
    per_host: int | None = None,
    by_host: bool = False,
    path: StrPath = "FILE",
) -> Exported:
    """Where the ranks of a plan go, as the command ``export`` writes it.

    Args:
        plan: by :func:`read_plan`.
        to: ``csv``, ``slurm``, ``torchrun`` .., as ``p2smt export --help`` names them.
        hosts: names for the hosts of a plan that has none, in the order of its topology.
        per_host: devices of each host, where a node of the plan is several.
        by_host: number the ranks host by host as they are started, not as in the plan.
        path: what the notes call the file.

    Returns:
        The text of the file, and notes on its use.

    Raises:
        InputError: the name is not known, hosts do not fit, or the format cannot hold the plan.
    """
    from p2smt.interop.exports import writer_named
    from p2smt.interop.places import by_host as numbered_by_host
    from p2smt.interop.places import placed

    found = placed(plan, "plan", hosts, per_host)
    return writer_named(to).write(numbered_by_host(found) if by_host else found, os.fspath(path))


def write_topology(found: Topology | Calibration, path: StrPath) -> None:
    """Write a topology file that :func:`~p2smt.cluster.file.load_topology` reads back.

    That of a calibration says in comments what it was fitted to, how well, and today's date.

    Raises:
        InputError: the file cannot be written.
    """
    if isinstance(found, Topology):
        text = dump_yaml(dump_topology(found))
    else:
        from p2smt.calibration.build import calibrated_yaml

        text = calibrated_yaml(found, date.today().isoformat())
    write_atomically(os.fspath(path), text)


# Certificates of bounds on schedules: their check, as one function.


_OTHER = "the certificate is about another fabric than the one that is named"
_REMEDY = "give a plan, a certificate or a schedule as p2smt wrote it"


def is_certificate(path: StrPath) -> bool:
    """Whether a file is a certificate of a bound, by its ``kind``.

    Raises:
        InputError: it is no JSON, so that nobody knows.
    """
    return _kind_of(path) == KIND


def _kind_of(path: StrPath) -> object:
    name = os.fspath(path)
    data = read_json(name, f"file {name[:200]!r}", _REMEDY, MAX_PLAN_BYTES)
    return data.get("kind") if isinstance(data, dict) else None


def is_size_certificate(path: StrPath) -> bool:
    """Whether a file is a certificate of ``synthesize --size``, by its ``kind``.

    Raises:
        InputError: it is no JSON, so that nobody knows.
    """
    return _kind_of(path) == SIZE_KIND


def verify_sizes(
    path: StrPath, fabric: Fabric | None = None, topology: Topology | None = None
) -> SizeReport:
    """Derive bounds, times and ratio of a certificate of payloads again, in exact arithmetic.

    Args:
        path: its file.
        fabric: the one that it must be about, whose unit gives the seconds of a byte; None: the one
            that it holds, and the seconds that it states.
        topology: what gives the seconds of a step, under its library; None: those that it states.

    Raises:
        InputError: the file is no certificate.
    """
    claim = SizeCertificate.load(path)
    report = check_sizes(claim)
    if not report.valid:
        return report
    if topology is not None and Fraction(repr(step_s(topology))) != claim.alpha_s:
        under = f" under {topology.library_name}" if topology.library is not None else ""
        fault = f"alpha_s is not the latency of a step on {topology.name}{under}"
        return replace(report, faults=(fault,))
    if fabric is None:
        return report
    if not _same(claim.least, fabric):
        return replace(report, faults=(_OTHER,))
    unit = fabric.unit
    if unit is not None and byte_s(claim.least.collective, fabric.ranks, unit) == claim.beta_s:
        return report
    return replace(report, faults=("beta_s is not what the unit of the fabric makes of a byte",))


def is_forest_file(path: StrPath) -> bool:
    """Whether a file is a forest, by its ``kind``.

    Raises:
        InputError: it is no JSON, so that nobody knows.
    """
    name = os.fspath(path)
    return is_forest(read_json(name, f"file {name[:200]!r}", _REMEDY, MAX_FOREST_BYTES))


def verify_forest(path: StrPath, spec: str | None = None) -> ForestReport:
    """Add up the trees of a forest file again, in fractions alone.

    Args:
        path: the file.
        spec: the fabric or topology that its network must be of; None: the one that it holds.

    Raises:
        InputError: the file is no forest, or nothing has that name.
    """
    name = os.fspath(path)
    text = read_text(name, "forest", MAX_FOREST_BYTES)
    claim = forest_of_text(text, f"forest {name[:200]!r}")
    report = check_forest(claim)
    if spec is None or _known_as(claim, spec):
        return report
    return replace(report, faults=(*report.faults, _OTHER))


def _known_as(claim: ForestClaim, spec: str) -> bool:
    """Whether a name stands for the network of a forest, whatever that calls it."""
    name = claim.network.name
    return any(replace(one, name=name) == claim.network for one in _networks(claim, spec))


def _networks(claim: ForestClaim, spec: str) -> Iterator[TreeNetwork]:
    """What a name stands for: a level hierarchy, a fabric, or either."""
    failed = failures_of(claim.network.without)
    try:
        yield ground_of_levels(load_topology(spec), claim.root, failed).network
    except InputError:
        yield ground_of_fabric(read_fabric(spec), claim.root, failed).network
    else:
        yield ground_of_fabric(read_fabric(spec), claim.root, failed).network


def verify_bound(
    subject: ScheduleCertificate | StrPath, fabric: Fabric | None = None
) -> CertificateReport:
    """Derive the bound of a certificate, or of its file, again, in exact arithmetic.

    A certificate that is given as a value is held to the rules of its file too.

    Args:
        subject: the certificate, or the path of its file.
        fabric: the one that it must be about, edge by edge; None: the one that it holds.

    Raises:
        InputError: the file, or the value, is no certificate.
    """
    if isinstance(subject, ScheduleCertificate):
        claim = ScheduleCertificate.of_text(subject.text())
    else:
        claim = ScheduleCertificate.load(subject)
    report = check_certificate(claim)
    if fabric is None or _same(claim, fabric):
        return report
    return replace(report, faults=(*report.faults, _OTHER))


def _same(claim: ScheduleCertificate, fabric: Fabric) -> bool:
    held = claim.fabric
    return (
        held.ranks == fabric.ranks
        and held.capacities == fabric.bandwidths
        and held.edges == fabric.edge_rows
    )
