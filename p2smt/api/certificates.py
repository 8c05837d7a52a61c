"""Certificates of bounds on schedules: their check, as one function."""

from __future__ import annotations

import os
from dataclasses import replace

from p2smt.api.files import StrPath
from p2smt.cluster.fabric.fabric import Fabric
from p2smt.files.json_text import read_json
from p2smt.plans.file import MAX_PLAN_BYTES
from p2smt.schedules.certificate.certificate import KIND, ScheduleCertificate
from p2smt.schedules.certificate.check import CertificateReport, check_certificate

_OTHER = "the certificate is about another fabric than the one that is named"
_REMEDY = "give a plan, a certificate or a schedule as p2smt wrote it"


def is_certificate(path: StrPath) -> bool:
    """Whether a file is a certificate of a bound, by its ``kind``.

    Raises:
        InputError: it is no JSON, so that nobody knows.
    """
    name = os.fspath(path)
    data = read_json(name, f"file {name[:200]!r}", _REMEDY, MAX_PLAN_BYTES)
    return isinstance(data, dict) and data.get("kind") == KIND


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
