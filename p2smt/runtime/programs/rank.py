"""One rank of a job: runs every request, checks its results and times it."""

from __future__ import annotations

from p2smt.runtime.job import Job, JobRequest
from p2smt.runtime.options import RankReport, RequestRun, RunOptions
from p2smt.runtime.programs.check import check_exact, check_random
from p2smt.runtime.programs.closed_form import wrong_rows
from p2smt.runtime.programs.prepared import prepare_request
from p2smt.runtime.programs.regions import StepError, moves_of
from p2smt.runtime.programs.repetitions import Repetitions
from p2smt.runtime.programs.timing import time_request
from p2smt.runtime.site import Site, Tell, machine


def run_rank(job: Job, options: RunOptions, site: Site, tell: Tell) -> RankReport:
    """Run all requests of a job in order; the default process group must exist."""
    found = []
    for number, request in enumerate(job.requests, start=1):
        where = f"request {number} ({request.name})"
        found.append(_run_request(request, options, site, lambda what: tell(f"{where}, {what}")))  # noqa: B023
    return RankReport(site.rank, found, machine(site))


def _run_request(request: JobRequest, options: RunOptions, site: Site, tell: Tell) -> RequestRun:
    run = RequestRun()
    try:
        row_moves = moves_of(request, request.steps, site.ranks)
    except StepError as error:
        run.errors.append(f"{request.name}: {error}")
        return run
    if request.size == 1:
        run.checked = True
        return run
    tell("preparation")
    prepared = prepare_request(site, request, row_moves, options)
    check = options.check and any(site.rank in group for group in request.groups)
    if check:
        tell("check")
        run.errors += [str(w) for w in wrong_rows(request, row_moves.held) if w.rank == site.rank]
        check_exact(prepared, options, run)
        if options.data_type.unit_roundoff:
            check_random(prepared, options, run)
    if options.repeat:
        compared = Repetitions.of(prepared, options, run) if check else None
        time_request(prepared, options, run, tell, compared)
    return run
