"""What a change of the cluster, of its memory or of the batch would gain a training."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from p2smt.api.planning import launcher_lacks
from p2smt.cluster.changed_cluster import ClusterChange
from p2smt.cluster.topology import Topology
from p2smt.errors import InputError
from p2smt.result import SearchLimits, Status
from p2smt.training.gain import RateGain, rate_gain
from p2smt.training.prediction import BestRun, RunEstimate
from p2smt.training.search.hosts.search import plan_on_hosts as search_on_hosts
from p2smt.training.search.plan import plan as search_plan
from p2smt.training.search.question import PlanQuestion


@dataclass(frozen=True, slots=True)
class WhatIf:
    """A change and what is best then: ``found`` None with the ``reason`` where nothing is.

    ``status``: ``optimal`` where the fastest is proved; of an estimate there is nothing to prove.
    """

    change: str
    status: Status
    found: RunEstimate | None
    gain: RateGain | None
    reason: str = ""


AskChanged = Callable[[PlanQuestion, ClusterChange], BestRun]
"""The fastest strategy; None: there is none, for the ``reason``."""


def plan_what_if(
    question: PlanQuestion,
    now: RunEstimate,
    changes: Sequence[ClusterChange],
    limits: SearchLimits | None = None,
    ask: AskChanged | None = None,
) -> Iterator[WhatIf]:
    """The fastest strategy under each change, each searched for as ``question`` was.

    Args:
        question: as it is now.
        now: its fastest strategy, with a single collective for each request.
        changes: of the question's topology.
        limits: of each search.
        ask: how a question is asked, such as :func:`asked_on_hosts`; None: over placements.

    A search that is interrupted ends them all.
    """
    for change in changes:
        try:
            yield _fastest(question, now, change, ask or _by_placements(limits))
        except KeyboardInterrupt:
            return


def _by_placements(limits: SearchLimits | None) -> AskChanged:
    def ask(question: PlanQuestion, _: ClusterChange) -> BestRun:
        answer = search_plan(question, limits)
        if answer.interrupted:
            raise KeyboardInterrupt
        best = None if answer.best is None else answer.best.estimate(question)
        return BestRun(best, answer.status, answer.reason or answer.proof())

    return ask


def asked_on_hosts(
    hosts: Sequence[str], batches: tuple[int, int], limits: SearchLimits | None = None
) -> AskChanged:
    """How a question is asked on the hosts of a job, of which as many are taken as a change says:
    whichever are best.  Where it says more than the job has, all that the topology names count."""

    def ask(question: PlanQuestion, change: ClusterChange) -> BestRun:
        known = () if question.topology.hosts is None else question.topology.hosts.names
        more = change.hosts is not None and change.hosts > len(hosts)
        listed = known if more else [name for name in hosts if name in known]
        batch = question.batch.sequences
        asked = batches if change.sequences is None else (batch, batch)
        answer = search_on_hosts(question, listed, asked, limits, most_hosts=change.hosts)
        if answer.interrupted:
            raise KeyboardInterrupt
        best = answer.best[0].estimate(answer.question) if answer.best else None
        return BestRun(best, answer.status, "nothing fits into memory")

    return ask


def _fastest(
    question: PlanQuestion, now: RunEstimate, change: ClusterChange, ask: AskChanged
) -> WhatIf:
    """Of the clusters that a change may mean, the fastest strategy of all."""
    found: RunEstimate | None = None
    statuses, reasons = set(), []
    for topology in change.topologies:
        try:
            answer = ask(_changed(question, change, topology), change)
        except InputError as error:
            statuses.add(Status.INFEASIBLE)
            reasons.append(str(error))
            continue
        statuses.add(answer.status)
        reasons.append(answer.reason)
        if (one := answer.found) is not None:
            found = one if found is None or one.tokens_per_s > found.tokens_per_s else found
    if found is None:
        never = statuses == {Status.INFEASIBLE}
        status = Status.INFEASIBLE if never else Status.UNKNOWN
        return WhatIf(change.text, status, None, None, reasons[0])
    proved = statuses <= {Status.OPTIMAL, Status.INFEASIBLE}
    status = Status.OPTIMAL if proved else Status.FEASIBLE
    return WhatIf(change.text, status, found, rate_gain(now, found))


def _changed(question: PlanQuestion, change: ClusterChange, topology: Topology) -> PlanQuestion:
    """The question under a change: one strategy is asked for, and none near it."""
    batch, memory = question.batch, question.memory_bytes
    if change.sequences is not None:
        batch = replace(batch, sequences=change.sequences)
    if change.memory_bytes is not None and memory is not None:
        memory = change.memory_bytes
    lacks = launcher_lacks(question.launcher, batch) if question.launcher else question.lacks
    asked = replace(question, topology=topology, batch=batch, memory_bytes=memory, lacks=lacks)
    return replace(asked, within=0.0, top=1)


def estimate_what_if(
    now: RunEstimate,
    changes: Sequence[ClusterChange],
    again: Callable[[Topology, int, int | None], RunEstimate],
    memory: int | None = None,
) -> Iterator[WhatIf]:
    """The same strategy under each change.

    ``again`` estimates it on another topology, with another batch (sequences) and the bytes that a
    run may take (None: of the device), which ``memory`` says of now.
    """
    for change in changes:
        sequences = change.sequences or now.run.batch.sequences
        most = memory if memory is None else change.memory_bytes or memory
        runs: list[RunEstimate] = []
        reasons: list[str] = []
        for topology in change.topologies:
            try:
                runs.append(again(topology, sequences, most))
            except InputError as error:
                reasons.append(str(error))
        if not runs:
            yield WhatIf(change.text, Status.INFEASIBLE, None, None, reasons[0])
            continue
        best = min(runs, key=lambda one: (not one.fits, one.iteration_s))
        gain = rate_gain(now, best)
        reason = "" if best.fits else "does not fit"
        yield WhatIf(change.text, Status.COMPLETE, best, gain, reason)
