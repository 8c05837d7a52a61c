"""The programs that a cube needs: found by this process, or by another one of this machine.

What another process found is a text: its program is checked and timed here again; that no other
one is better is believed, as it is of a closed cube.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from p2smt.cost.scene import Scene
from p2smt.errors import EncodingBug, InputError, OutOfTimeError
from p2smt.parallelism.request import Request
from p2smt.plans.solution import RequestAnswer
from p2smt.result import SearchLimits, Status, StopWatch
from p2smt.search.one_request import known_answer
from p2smt.skeletons.shared_table import SharedTable
from p2smt.workload.search.programs import ProgramShelf, SceneRequest, Sought


@dataclass(frozen=True, slots=True)
class PatientShelf(ProgramShelf):
    """Programs that only the deadline cuts short: they serve later cubes, a budget's end does not
    make them worse.

    ``table``: where workers of this machine tell each other what they found.
    """

    deadline: StopWatch = field(default_factory=lambda: StopWatch.start(SearchLimits()))
    table: SharedTable | None = None

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
            cut_short = self.deadline.expired() and found.status is not Status.OPTIMAL
            return None if cut_short else _text(found)

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
            program, status, bound_s = json.loads(text)
            found = known_answer(request, scene, program, Status(status), float(bound_s))
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


def _text(answer: RequestAnswer) -> str:
    return json.dumps([str(answer.program), answer.status.value, answer.bound_s])
