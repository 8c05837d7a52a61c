"""Cubes closed by workers of a Dask cluster: of one on this machine, or of the user's own.

A worker has one cube at a time.  Each cube is pinned to the worker that it is for, so that the
death of a worker is told for each cube that it had, and is never repaired by Dask behind the
coordinator's back.  Cutoffs and the end of the search go to all workers by
``Client.run``, which their event loops answer while a cube is being closed.  When the coordinator
dies, the scheduler gives up its cubes, and the workers see that (``_Signals``); the
processes of a cluster on this machine end with it, by Dask's own watch on the parent.

Results come by Dask's events, ahead of the future that has them too: fetching that takes two more
round trips.  And futures are let go a while later, since what is sent first makes the next message
wait (Dask sends to a scheduler every 10 ms, to a worker every 5 ms).

dask.distributed is the extra ``cluster``.  This file, when an engine starts, and ``dask_worker``
alone import it.
"""

from __future__ import annotations

import asyncio
import logging
import pickle
import queue
import time
from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING
from uuid import uuid4

from p2smt.errors import BackendError, ExecutionError, InputError
from p2smt.skeletons.cube import Member
from p2smt.skeletons.engine import Ended, WorkerDied
from p2smt.skeletons.engines.broadcast import sent
from p2smt.skeletons.engines.dask_worker import Worked, closed_there, greeting, result_of
from p2smt.skeletons.engines.heard import forget, hear
from p2smt.skeletons.engines.tracker import start_tracker
from p2smt.skeletons.engines.versions import require_one_thread, require_same
from p2smt.skeletons.space import CubeTask, Space

if TYPE_CHECKING:
    from distributed import Client, Future, LocalCluster

HERE = "127.0.0.1"
"""All servers of a local cluster listen on this address: who reaches one can run any code."""
CONNECT_S = 10.0
"""Seconds in which a scheduler must answer and have a worker."""
LOOK_S = 1.0
"""Seconds between two looks at which workers there are; each is a round trip to the scheduler."""
FETCH_S = 1.0
"""Seconds in which a result arrives that a worker has, or else it is looked for."""
SPARING = {
    "distributed.worker.multiprocessing-method": "spawn",
    "distributed.worker.profile.enabled": False,
    "distributed.admin.tick.interval": "500ms",
    "distributed.admin.system-monitor.interval": "5s",
}
"""A local cluster's own work: by default it samples stacks and clocks a hundred times a second in
each process, which costs the coordinator alone 5 % of a core."""


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
        self._given: dict[str, _Given] = {}  # by the key of the future
        self._done: queue.SimpleQueue[tuple[str, Worked | None]] = queue.SimpleQueue()
        self._spent: list[_Given] = []  # came back, and their futures are not let go yet
        self._looked_s = 0.0
        self._stopping = False
        self._stack = ExitStack()

    @property
    def workers(self) -> int:
        """How many workers there are to close cubes."""
        return sum(self._checked.values())

    @property
    def dashboard(self) -> str:
        """Address of Dask's own pages on what the workers do; empty where bokeh is missing."""
        return self._client.dashboard_link if find_spec("bokeh") else ""

    def __enter__(self) -> DaskEngine:
        """Connect, and ask every worker for its versions."""
        _require_distributed()
        start_tracker()
        with ExitStack() as stack:
            self._address = self._scheduler or stack.enter_context(_local(self._processes))
            self._client = stack.enter_context(_client(self._address, not self._scheduler))
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
            ended = [*self._arrived(end_s), *self._lost()]
            self._require_scheduler()
            self._hand_out()
            if ended or time.monotonic() >= end_s:
                return ended

    def tell(self, cutoff: Member) -> None:
        """Send a cutoff to all workers, by another thread."""
        self._messages.put((cutoff, False))

    def stop(self) -> None:
        """Let all workers give up."""
        self._stopping = True
        self._waiting.clear()
        self._messages.put((None, True))

    def _hand_out(self) -> None:
        busy = {given.worker for given in self._given.values()}
        free = [worker for worker, used in self._checked.items() if used and worker not in busy]
        for worker in free[: len(self._waiting)]:
            self._give(self._waiting.popleft(), worker)

    def _give(self, task: CubeTask, worker: str) -> None:
        self._numbers += 1
        key = f"{self._search}-{self._numbers}"
        arguments = (self._space, task, self._search, self._client.id)
        future = self._client.submit(
            closed_there, *arguments, key=key, pure=False, workers=[worker]
        )
        self._given[key] = _Given(task, worker, future)
        future.add_done_callback(lambda done: self._done.put((done.key, None)))

    def _arrived(self, end_s: float) -> Iterator[Ended]:
        """What workers gave back; waits for the first until then, or for the next look."""
        wait_s: float = min(LOOK_S, max(0.0, end_s - time.monotonic()))
        with suppress(queue.Empty):
            while True:
                key, ended = self._done.get(wait_s > 0, wait_s or None)
                if given := self._given.pop(key, None):
                    self._spent.append(given)
                    yield ended or self._outcome(given)
                wait_s = 0.0

    def _result(self, event: tuple[float, object]) -> None:
        """An event of this client: a result, or one of Dask's own."""
        if (found := result_of(event[1])) is not None:
            self._done.put(found)

    def _lost(self) -> Iterator[Ended]:
        """The cubes of workers that are gone; every quarter of a second."""
        if time.monotonic() < self._looked_s + LOOK_S:
            return
        self._look()
        for key, given in list(self._given.items()):
            if given.worker not in self._checked:
                del self._given[key]
                given.future.cancel()
                yield WorkerDied(given.task.cube)

    def _outcome(self, given: _Given) -> Ended:
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
        return WorkerDied(given.task.cube)

    def _look(self, first: bool = False) -> None:
        """Which workers there are; those that are new are asked for their versions."""
        self._looked_s = time.monotonic()
        threads = self._threads()
        self._let_go(threads)
        new = [worker for worker in threads if worker not in self._checked]
        self._checked = {w: used for w, used in self._checked.items() if w in threads}
        theirs = _asked(self._client, new) if new else {}
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
        for given in (*self._given.values(), *self._spent):
            given.future.cancel()
        self._spent.clear()

    def _tell_all(self, cutoff: Member | None, stopped: bool) -> None:
        _told(self._client, hear, self._search, cutoff, stopped)

    def _leave(self) -> None:
        """Leave nothing of this search behind on the workers."""
        with suppress(Exception):  # Dask has a bare one for a scheduler that is no more
            self._client.unsubscribe_topic(self._client.id)
        _told(self._client, forget, self._search)


@dataclass(frozen=True, slots=True)
class _Given:
    """A cube that a worker has."""

    task: CubeTask
    worker: str
    future: Future


# The cluster.


def _require_distributed() -> None:
    try:
        import distributed  # noqa: F401  # that it is there is what is asked
    except ImportError as error:
        text = "dask.distributed is not installed: pip install 'p2smt[cluster]'"
        raise BackendError(text) from error


@contextmanager
def _local(processes: int) -> Iterator[str]:
    """Address of a scheduler with so many workers of one thread, all on the loopback address.

    The first death of a worker is told, not tried again: the coordinator counts deaths.

    Raises:
        ExecutionError: it does not start in the time that Dask gives it.
    """
    import dask

    with dask.config.set(SPARING), _cluster(processes) as cluster:
        yield cluster.scheduler_address


def _cluster(processes: int) -> LocalCluster:
    from distributed import LocalCluster

    try:
        return LocalCluster(
            n_workers=processes,
            threads_per_worker=1,
            processes=True,
            memory_limit=0,
            host=HERE,
            dashboard_address=f"{HERE}:0",
            worker_dashboard_address=f"{HERE}:0",
            scheduler_kwargs={"allowed_failures": 0},
            silence_logs=logging.CRITICAL,
        )
    except (OSError, RuntimeError) as error:  # a TimeoutError is an OSError
        reason = str(error) or type(error).__name__
        text = f"a Dask cluster of {processes} workers does not start on this machine ({reason})"
        raise ExecutionError(f"{text}: ask for fewer, or give --engine processes") from error


@contextmanager
def _client(address: str, direct: bool) -> Iterator[Client]:
    """A connection to a scheduler that has workers; ``direct``: they can be reached from here.

    Raises:
        InputError: it does not answer, or has none.
    """
    import dask
    from distributed import Client

    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    limit = dask.config.set({"distributed.comm.timeouts.connect": CONNECT_S})
    with limit, ExitStack() as stack:
        try:
            with ThreadPoolExecutor(1) as apart:  # this thread may run an event loop
                apart.submit(asyncio.run, _answers(address)).result()
            client = stack.enter_context(
                Client(address, timeout=CONNECT_S, set_as_default=False, direct_to_workers=direct)
            )
        except (OSError, ValueError) as error:
            rule = f"does not answer within {CONNECT_S:.0f} s ({str(error) or 'silence'})"
            remedy = "start `dask scheduler`, and give the address that it prints"
            raise InputError(f"scheduler {address}", rule, remedy) from error
        client.loop.asyncio_loop.set_exception_handler(_note)
        try:
            client.wait_for_workers(1, timeout=CONNECT_S)
        except TimeoutError as error:
            remedy = f"start some: `dask worker {address} --nthreads 1`"
            raise InputError(f"scheduler {address}", "has no worker", remedy) from error
        yield client


def _note(_: object, context: Mapping[str, object]) -> None:
    """What nobody awaits in Dask's own thread: the end of a worker, which is told as such."""
    logging.getLogger("distributed").debug("%s", context)


async def _answers(address: str) -> None:
    """Return once a scheduler answers: ``Client`` waits forever for a server that is silent.

    Raises:
        OSError: it does not answer in time.
        ValueError: this is no address.
    """
    from distributed import Security
    from distributed.comm import connect

    arguments = Security().get_connection_args("client")
    comm = await asyncio.wait_for(connect(address, CONNECT_S, **arguments), CONNECT_S)
    comm.abort()


def _told(client: Client, function: Callable[..., None], *arguments: object) -> None:
    """Call a function on all workers; of those that are gone, or of all, none hears."""
    with suppress(Exception):  # Dask has several for a cluster that is no more
        client.run(function, *arguments, on_error="ignore")


def _asked(client: Client, workers: list[str]) -> dict[str, dict[str, str] | BaseException]:
    """The versions of these workers, or why they could not tell them."""
    return dict(client.run(greeting, workers=workers, on_error="return"))
