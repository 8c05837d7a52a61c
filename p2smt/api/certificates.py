"""Certificates of bounds on schedules: their check, as one function."""

from __future__ import annotations

import json
import os
from dataclasses import replace

from p2smt.api.files import StrPath
from p2smt.cluster.fabric.fabric import Fabric
from p2smt.schedules.certificate.certificate import KIND, MAX_BYTES, ScheduleCertificate
from p2smt.schedules.certificate.check import CertificateReport, check_certificate

_OTHER = "the certificate is about another fabric than the one that is named"


def is_certificate(path: StrPath) -> bool:
    """Whether a file is a certificate of a bound, by its ``kind``."""
    try:
        if os.path.getsize(path) > MAX_BYTES:
            return False
        with open(path, encoding="utf-8") as file:
            data = json.load(file)
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(data, dict) and data.get("kind") == KIND


def verify_bound(
    subject: ScheduleCertificate | StrPath, fabric: Fabric | None = None
) -> CertificateReport:
    """Derive the bound of a certificate, or of its file, again, in exact arithmetic.

    Args:
        subject: the certificate, or the path of its file.
        fabric: the one that it must be about, edge by edge; None: the one that it holds.

    Raises:
        InputError: the file is no certificate.
    """
    claim = subject
    if not isinstance(claim, ScheduleCertificate):
        claim = ScheduleCertificate.load(claim)
    report = check_certificate(claim)
    if fabric is None or _same(claim, fabric):
        return report
    return replace(report, faults=(*report.faults, _OTHER))


def _same(claim: ScheduleCertificate, fabric: Fabric) -> bool:
    held = claim.fabric
    return (
        held.ranks == fabric.ranks
        and held.capacities == tuple(capacity.bandwidth for capacity in fabric.capacities)
        and held.edges == tuple((e.source, e.target, e.loads) for e in fabric.edges)
    )
