"""Cubes closed by workers of a Dask cluster: of one on this machine, or of the user's own.

A worker closes one cube at a time, and has another one at hand, so that it need not wait for the
coordinator; one that has none takes what waits behind another's.  Each cube is pinned to the worker
that it is for, so that the death of a worker is told for each cube that it had, and is never
repaired by Dask behind the coordinator's back.  Cutoffs and the end of the search go to all workers
by ``Client.run``, which their event loops answer while a cube is being closed.  When the
coordinator dies, the scheduler gives up its cubes, and the workers see that (``_Signals``); the
processes of a cluster on this machine end with it, by Dask's own watch on the parent.

Results come by Dask's events, ahead of the future that has them too: fetching that takes two more
round trips.  And futures are let go a while later, since what is sent first makes the next message
wait (Dask sends to a scheduler every 10 ms, to a worker every 5 ms).

dask.distributed is the extra ``cluster``.
"""

from __future__ import annotations

import pickle
import queue
import time
from collections import deque
from collections.abc import Collection, Iterator, Sequence
from contextlib import ExitStack, suppress
from importlib.util import find_spec
from uuid import uuid4

from p2smt.errors import ExecutionError, InputError
from p2smt.skeletons.cube import Member
from p2smt.skeletons.engine import Ended, NotBegun
from p2smt.skeletons.engines.broadcast import sent
from p2smt.skeletons.engines.dask_cluster import (
    CONNECT_S,
    connected,
    local_cluster,
    require_distributed,
    tell_workers,
    versions_of,
)
from p2smt.skeletons.engines.dask_worker import Worked, closed_there, result_of
from p2smt.skeletons.engines.hands import Given, Hands
from p2smt.skeletons.engines.heard import forget, hear
from p2smt.skeletons.engines.tracker import start_tracker
from p2smt.skeletons.engines.versions import require_one_thread, require_same
from p2smt.skeletons.space import CubeTask, Space

LOOK_S = 1.0
"""Seconds between two looks at which workers there are; each is a round trip to the scheduler."""
FETCH_S = 1.0
"""Seconds in which a result arrives that a worker has, or else it is looked for."""

_AT_HAND = 2
"""Cubes of a worker: the one that it closes, and the next."""


class DaskEngine:
    """An engine over ``processes`` local Dask workers, or over those of the scheduler given.

    Raises, on entering:
        BackendError: dask.distributed is not installed.
        ExecutionError: (also of ``wait``) the scheduler is gone.
        InputError: the scheduler does not answer or has no workers; a worker has several threads,
            or other versions.
    """

    def __init__(self, space: Space, processes: int = 1, scheduler: str | None = None) -> None:
        if processes < 1:
            raise InputError(f"processes {processes}", "must be at least 1")
        self._space = pickle.dumps(space)
        self._processes, self._scheduler = processes, scheduler
        self._search = f"p2smt-{uuid4().hex}"
        self._numbers = 0
        self._checked: dict[str, bool] = {}  # the workers there are: whether each is used
        self._waiting: deque[CubeTask] = deque()
        self._hands = Hands()
        self._done: queue.SimpleQueue[tuple[str, Worked | None]] = queue.SimpleQueue()
        self._spent: list[Given] = []  # came back, and their futures are not let go yet
        self._back: list[Ended] = []
        self._looked_s = 0.0
        self._stack = ExitStack()

    @property
    def workers(self) -> int:
        """How many workers there are to close cubes."""
        return sum(self._checked.values())

    @property
    def ahead(self) -> int:
        """One for each worker."""
        return (_AT_HAND - 1) * self.workers

    @property
    def dashboard(self) -> str:
        """Address of Dask's own pages on what the workers do; empty where bokeh is missing."""
        return self._client.dashboard_link if find_spec("bokeh") else ""

    def __enter__(self) -> DaskEngine:
        """Connect, and ask every worker for its versions."""
        require_distributed()
        start_tracker()
        with ExitStack() as stack:
            self._address = self._scheduler or stack.enter_context(local_cluster(self._processes))
            self._client = stack.enter_context(connected(self._address, not self._scheduler))
            stack.callback(self._leave)
            self._client.subscribe_topic(self._client.id, self._result)
            self._messages = stack.enter_context(sent(self._tell_all, CONNECT_S))
            self._look(first=True)
            stack.callback(self._drop)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *exc: object) -> None:
        """End what was started here; workers of the user's own cluster give up their cubes."""
        self._stack.__exit__(None, None, None)

    def submit(self, task: CubeTask) -> None:
        """Hand out a cube, as soon as a worker is free."""
        self._waiting.append(task)
        self._hand_out()

    def wait(self, timeout_s: float) -> Sequence[Ended]:
        """What came back, of living workers and of dead ones."""
        end_s = time.monotonic() + timeout_s
        while True:
            self._balance()
            back, self._back = self._back, []
            ended = [*back, *self._arrived(time.monotonic() if back else end_s), *self._lost()]
            self._require_scheduler()
            self._hand_out()
            if ended or time.monotonic() >= end_s:
                return ended

    def tell(self, cutoff: Member) -> None:
        """Send a cutoff to all workers, by another thread."""
        self._messages.put((cutoff, False))

    def stop(self) -> None:
        """Let all workers give up what they do; what they have at hand comes back as it was."""
        self._back += [NotBegun(task.cube) for task in self._waiting]
        self._waiting.clear()
        while late := self._hands.behind():
            self._take_back(late)
            self._back.append(NotBegun(late.task.cube))
        self._messages.put((None, True))

    def _hand_out(self) -> None:
        """Give what waits to the workers that have least."""
        counts = self._hands.counts()
        used = [worker for worker, is_used in self._checked.items() if is_used]
        for many in range(_AT_HAND):
            for worker in used:
                if self._waiting and counts[worker] == many:
                    self._give(self._waiting.popleft(), worker)
                    counts[worker] += 1

    def _balance(self) -> None:
        """Give idle workers what waits at others: nothing else waited for them."""
        counts = self._hands.counts()
        for worker, is_used in self._checked.items():
            if is_used and counts[worker] == 0 and (late := self._hands.behind()):
                self._take_back(late)
                self._give(late.task, worker)

    def _give(self, task: CubeTask, worker: str) -> None:
        self._numbers += 1
        key = f"{self._search}-{self._numbers}"
        arguments = (self._space, task, self._search, self._client.id)
        future = self._client.submit(
            closed_there, *arguments, key=key, pure=False, workers=[worker]
        )
        self._hands.add(Given(task, worker, key, self._numbers, future))
        future.add_done_callback(lambda done: self._done.put((done.key, None)))

    def _take_back(self, given: Given) -> None:
        """What a worker has at hand; if it has just begun with it, it gives up."""
        self._hands.take(given.key)
        given.future.cancel()

    def _arrived(self, end_s: float) -> Iterator[Ended]:
        """What workers gave back; waits for the first until then, or for the next look."""
        wait_s: float = min(LOOK_S, max(0.0, end_s - time.monotonic()))
        with suppress(queue.Empty):
            while True:
                key, ended = self._done.get(wait_s > 0, wait_s or None)
                if given := self._hands.take(key):
                    self._spent.append(given)
                    yield ended or self._outcome(given)
                wait_s = 0.0

    def _result(self, event: tuple[float, object]) -> None:
        """An event of this client: a result, or one of Dask's own."""
        if (found := result_of(event[1])) is not None:
            self._done.put(found)

    def _lost(self) -> Iterator[Ended]:
        """The cubes of workers that are gone; looked for once in a while."""
        if time.monotonic() < self._looked_s + LOOK_S:
            return
        self._look()
        for given in self._hands:
            if given.worker not in self._checked and self._hands.take(given.key):
                given.future.cancel()
                yield self._hands.lost(given)

    def _outcome(self, given: Given) -> Ended:
        """What became of a cube; the worker of one that was lost gets none before the next look.

        Raises:
            Exception: that of the worker.
        """
        from distributed import CancelledError, KilledWorker

        with suppress(KilledWorker, CancelledError, OSError):
            while True:
                try:
                    ended: Ended = given.future.result(timeout=FETCH_S)
                except TimeoutError:  # it was closed; has its worker gone since then?
                    if given.worker not in self._threads():
                        break
                else:
                    return ended
        given.future.cancel()
        self._checked.pop(given.worker, None)
        return self._hands.lost(given)

    def _look(self, first: bool = False) -> None:
        """Which workers there are; those that are new are asked for their versions."""
        self._looked_s = time.monotonic()
        threads = self._threads()
        self._let_go(threads)
        new = [worker for worker in threads if worker not in self._checked]
        self._checked = {w: used for w, used in self._checked.items() if w in threads}
        theirs = versions_of(self._client, new) if new else {}
        for worker in theirs:
            try:
                require_same(worker, theirs[worker])
                require_one_thread(worker, threads[worker])
            except InputError:
                if first:
                    raise
                self._checked[worker] = False  # it came later, and gets no cube
            else:
                self._checked[worker] = True

    def _let_go(self, workers: Collection[str]) -> None:
        """Forget futures of cubes that came back, once their workers have said that they did."""
        still = [one for one in self._spent if not one.future.done()]
        self._spent = [one for one in still if one.worker in workers]
        for given in still:
            if given.worker not in workers:
                given.future.cancel()

    def _threads(self) -> dict[str, int]:
        """How many threads each worker has, by its address."""
        try:
            return dict(self._client.nthreads())
        except OSError as error:
            raise self._gone() from error

    def _require_scheduler(self) -> None:
        """Hold that the connection is there; a scheduler that comes back has forgotten all."""
        if self._client.status != "running":
            raise self._gone()

    def _gone(self) -> ExecutionError:
        text = f"the scheduler {self._address} is gone; a search with a journal continues from it"
        return ExecutionError(text)

    def _drop(self) -> None:
        """Let go of every cube that is still out."""
        self.stop()
        for given in (*self._hands, *self._spent):
            given.future.cancel()
        self._spent.clear()

    def _tell_all(self, cutoff: Member | None, stopped: bool) -> None:
        tell_workers(self._client, hear, self._search, cutoff, stopped)

    def _leave(self) -> None:
        """Leave nothing of this search behind on the workers."""
        with suppress(Exception):  # Dask has a bare one for a scheduler that is no more
            self._client.unsubscribe_topic(self._client.id)
        tell_workers(self._client, forget, self._search)
