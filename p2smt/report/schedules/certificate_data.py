"""The verdict on the certificate of a bound, for people and for ``--json``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from p2smt.schedules.certificate.check import (
    CHECKED,
    CertificateReport,
    claim_words,
    scope_words,
)


def certificate_lines(report: CertificateReport, fabric: str | None = None) -> Iterator[str]:
    """What is wrong, a line each; then the verdict.  ``fabric``: the name it was held against."""
    yield from report.faults
    if not report.valid:
        yield f"invalid: {claim_words(report.claim)}"
        return
    yield f"valid: {claim_words(report.claim)}"
    yield f"it holds {scope_words()}"
    yield f"checked: {', '.join(_checked(report, fabric))}"
    for what in _not_checked(report, fabric):
        yield f"not checked: {what}"


def certificate_data(report: CertificateReport, fabric: str | None = None) -> dict[str, Any]:
    """The verdict as data."""
    claim = report.claim
    return {
        "verdict": "valid" if report.valid else "invalid",
        "violations": list(report.faults),
        "claim": claim_words(claim),
        "collective": claim.collective.value,
        "root": claim.root,
        "fabric": claim.fabric.name,
        "ranks": claim.fabric.ranks,
        "steps": claim.steps,
        "bound_kind": claim.kind.value,
        "bound": str(claim.bound),
        "proved": None if report.proved is None else str(report.proved),
        "generators": len(claim.generators),
        "checked": _checked(report, fabric),
        "not_checked": _not_checked(report, fabric),
    }


def _checked(report: CertificateReport, fabric: str | None) -> list[str]:
    named = [] if fabric is None else [f"the fabric is {fabric}"]
    return [*CHECKED, *named] if report.valid else []


def _not_checked(report: CertificateReport, fabric: str | None) -> list[str]:
    if not report.valid or fabric is not None:
        return []
    name = report.claim.fabric.name
    return [f"that the fabric in the file is {name} (add --fabric)"]
