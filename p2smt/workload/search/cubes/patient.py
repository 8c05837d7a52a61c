"""The programs that a cube needs: found by this process, or by another one of this machine.

What another process found is a text: its program is timed here again.  That no other one is better
is believed, as it is of a closed cube.  What it was checked on is taken over as well, until a
member with it is made again (:meth:`~p2smt.skeletons.space.Space.member`): then it is checked
anew, by the worker that found the member and by the coordinator.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from p2smt.collectives.demand import demand_of
from p2smt.cost.scene import Scene
from p2smt.errors import EncodingBug, InputError, OutOfTimeError
from p2smt.parallelism.request import Request
from p2smt.plans.solution import RequestAnswer
from p2smt.programs.check import Checked, checked_once
from p2smt.programs.semantics import Trace
from p2smt.result import SearchLimits, Status, StopWatch
from p2smt.search.one_request import known_answer
from p2smt.skeletons.shared_table import SharedTable
from p2smt.workload.search.programs import ProgramShelf, SceneRequest, Sought


@dataclass(frozen=True, slots=True)
class PatientShelf(ProgramShelf):
    """Programs that only the deadline cuts short: they serve later cubes, a budget's end does not
    make them worse.

    ``table``: where the processes of a search on this machine tell each other what they found.
    ``checks``: whether what another one found is checked here before it is used.
    """

    deadline: StopWatch = field(default_factory=lambda: StopWatch.start(SearchLimits()))
    table: SharedTable | None = None
    checks: bool = False

    def turns(self, asked: Sequence[Sought]) -> Iterator[Sought]:
        """First those that no other process seeks at the moment."""
        left = list(asked)
        while left:
            free = (i for i, one in enumerate(left) if not self._sought_elsewhere(one))
            yield left.pop(next(free, 0))

    def seek(self, asked: SceneRequest, scene: Scene, watch: StopWatch) -> RequestAnswer:
        """As the base class does, once the budget allows it to begin; or what another one found."""
        if watch.expired():
            raise OutOfTimeError
        if self.table is None or not _shared(asked, scene):
            return ProgramShelf.seek(self, asked, scene, self.deadline)

        def search() -> str | None:
            found = ProgramShelf.seek(self, asked, scene, self.deadline)
            # what is not the best may have been cut short, by the deadline or the search's end
            return _text(found) if found.status is Status.OPTIMAL else None

        def wait() -> None:
            if watch.expired():
                raise OutOfTimeError

        text = self.table.found_or_sought(_key(asked, scene), search, wait)
        found = self.known(asked) or (text and self._learnt(asked, scene, text))
        return found or ProgramShelf.seek(self, asked, scene, self.deadline)

    def _learnt(self, asked: SceneRequest, scene: Scene, text: str) -> RequestAnswer | None:
        """The answer that another process told; None if it is none."""
        request = Request(asked.kind, asked.axes, asked.payload_bytes)
        try:
            program, status, bound_s, checked = json.loads(text)
            check = None if self.checks else _checked(checked)
            found = known_answer(request, scene, program, Status(status), float(bound_s), check)
        except (ValueError, TypeError, InputError, EncodingBug):
            return None
        self.kept[asked.number, asked.kind, asked.payload_bytes] = found
        return found

    def _sought_elsewhere(self, one: Sought) -> bool:
        asked, scene = one
        if self.table is None or not _shared(asked, scene):
            return False
        return self.table.waits(_key(asked, scene))


def _shared(asked: SceneRequest, scene: Scene) -> bool:
    """Whether a request has a program: one fixed step is found sooner than looked up."""
    return asked.kind.has_programs and scene.hierarchy.size > 1


def _key(asked: SceneRequest, scene: Scene) -> str:
    return json.dumps([scene.digits, asked.kind.value, asked.payload_bytes])


def _text(answer: RequestAnswer) -> str | None:
    """An answer with a program, for other processes."""
    if answer.program is None:
        return None
    checked = checked_once(demand_of(answer.request.kind), answer.hierarchy, answer.program)
    trace = checked.trace
    run = [trace.payload_rows, trace.peak_rows, trace.shards, checked.factors, checked.exact]
    return json.dumps([str(answer.program), answer.status.value, answer.bound_s, run])


def _checked(run: Any) -> Checked:
    """What a valid program was checked on.

    Raises:
        ValueError: that is not told.
    """
    match run:
        case [[*rows], int(peak), None | [*_] as shards, [*factors], bool(exact)]:
            ends = None if shards is None else tuple(map(int, shards))
            trace = Trace(None, tuple(map(int, rows)), peak, ends)
            return Checked(trace, tuple(map(int, factors)), exact)
        case _:
            raise ValueError(run)
