"""The verdict on the certificate of a bound, for people and for ``--json``.

``fabric``: the name of the fabric that the certificate was held against; None: none.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from p2smt.report.text import printable
from p2smt.schedules.certificate.check import (
    CertificateReport,
    checked_of,
    claim_words,
    scope_words,
)


def certificate_lines(report: CertificateReport, fabric: str | None = None) -> Iterator[str]:
    """What is wrong, a line each; then the verdict."""
    yield from report.faults
    yield printable(f"{_verdict(report)}: {_claim(report, fabric)}")
    if not report.valid:
        return
    yield f"it holds {scope_words()}"
    yield printable(f"checked: {', '.join(_checked(report, fabric))}")
    for what in _not_checked(report, fabric):
        yield printable(f"not checked: {what}")


def certificate_data(report: CertificateReport, fabric: str | None = None) -> dict[str, Any]:
    """The verdict as data."""
    claim = report.claim
    return {
        "verdict": _verdict(report),
        "violations": list(report.faults),
        "claim": _claim(report, fabric),
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


def _verdict(report: CertificateReport) -> str:
    return "valid" if report.valid else "invalid"


def _claim(report: CertificateReport, fabric: str | None) -> str:
    """The claim; of a valid one about a fabric that was named, under that name."""
    return claim_words(report.claim, fabric if report.valid else None)


def _checked(report: CertificateReport, fabric: str | None) -> list[str]:
    if not report.valid:
        return []
    held, named = report.claim.fabric.name, []
    if fabric is not None:
        other = "" if held == fabric else f" (the file calls it {held[:60]!r})"
        named = [f"the fabric is {fabric}{other}"]
    return [*checked_of(report.claim), *named]


def _not_checked(report: CertificateReport, fabric: str | None) -> list[str]:
    if not report.valid or fabric is not None:
        return []
    name = report.claim.fabric.name
    return [f"that the fabric in the file is {name} (add --fabric)"]
