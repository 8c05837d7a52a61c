"""What a change of the cluster, of its memory or of the batch would gain a training."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from p2smt.api.planning import launcher_lacks
from p2smt.cluster.topology import Topology
from p2smt.cluster.what_if import ClusterChange
from p2smt.errors import InputError
from p2smt.result import SearchLimits, Status
from p2smt.training.gain import RateGain, rate_gain
from p2smt.training.prediction import RunEstimate
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


def plan_what_if(
    question: PlanQuestion,
    now: RunEstimate,
    changes: Sequence[ClusterChange],
    limits: SearchLimits | None = None,
) -> Iterator[WhatIf]:
    """The fastest strategy under each change, each searched for as ``question`` was.

    Args:
        question: as it is now.
        now: its fastest strategy, with a single collective for each request.
        changes: of the question's topology.
        limits: of each search.

    A search that is interrupted ends them all.
    """
    for change in changes:
        try:
            yield _fastest(question, now, change, limits or SearchLimits())
        except KeyboardInterrupt:
            return


def _fastest(
    question: PlanQuestion, now: RunEstimate, change: ClusterChange, limits: SearchLimits
) -> WhatIf:
    """Of the clusters that a change may mean, the fastest strategy of all."""
    found: RunEstimate | None = None
    statuses, reasons = set(), []
    for topology in change.topologies:
        try:
            asked = _changed(question, change, topology)
            answer = search_plan(asked, limits)
        except InputError as error:
            statuses.add(Status.INFEASIBLE)
            reasons.append(str(error))
            continue
        if answer.interrupted:
            raise KeyboardInterrupt
        statuses.add(answer.status)
        reasons.append(answer.reason or answer.proof())
        if answer.best is not None:
            one = answer.best.estimate(asked)
            found = one if found is None or one.iteration_s < found.iteration_s else found
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
