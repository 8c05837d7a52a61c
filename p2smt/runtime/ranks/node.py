"""The process of one machine: it opens the port of the ranks, imports torch once, forks its ranks
and watches them.

    python -m p2smt.runtime.ranks.node < SETUP

SETUP is a pickled :class:`NodeSetup`.  Events go to stdout, one JSON object a line.  When
stdin ends, or the process does, its ranks are killed: none outlives what started it.
"""

from __future__ import annotations

import contextlib
import json
import mmap
import os
import pickle
import selectors
import signal
import socket
import sys
import threading
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from p2smt.errors import BackendError, ExecutionError, InputError
from p2smt.runtime.payload import in_short
from p2smt.runtime.ranks.listen import listen, reason
from p2smt.runtime.ranks.place import Place
from p2smt.runtime.work import NodeSetup

if TYPE_CHECKING:
    from p2smt.runtime.payload import RankReport, RunOptions
    from p2smt.runtime.process_groups import Tell
    from p2smt.runtime.work import Work

    Worker = Callable[[Work, RunOptions, Place, Tell], list[RankReport] | None]
    """:func:`p2smt.runtime.ranks.worker.run_worker`."""

_WIDTH = 160


class Board:
    """One line of text per rank; made before the ranks are forked, and readable afterwards."""

    def __init__(self, ranks: int) -> None:
        self._memory = mmap.mmap(-1, max(1, ranks) * _WIDTH)

    def write(self, index: int, text: str) -> None:
        """Replace a line."""
        data = text.encode("utf-8", "replace")[:_WIDTH]
        self._memory[index * _WIDTH : (index + 1) * _WIDTH] = data.ljust(_WIDTH, b"\0")

    def read(self, index: int) -> str:
        """The line as it stands."""
        data = self._memory[index * _WIDTH : (index + 1) * _WIDTH]
        return data.rstrip(b"\0").decode("utf-8", "ignore")


@dataclass(slots=True)
class _Rank:
    """``told``: it has said how it went."""

    number: int
    process: int
    events: IO[bytes]
    told: bool = False


class Node:
    """Forks the ranks of a setup and passes their events on."""

    def __init__(self, setup: NodeSetup, events: IO[str]) -> None:
        self.setup, self.events = setup, events
        self.shared_cutoff = Board(setup.local_ranks)
        self.ranks: dict[int, _Rank] = {}
        # Ranks hold the reading end: it ends for them when this process does.
        self.life = os.pipe()

    def run(self, worker: Worker, listener: socket.socket | None) -> None:
        """Start all ranks; return once they have ended or stdin has."""
        self.tell(event="ready")
        for local in range(self.setup.local_ranks):
            self._fork(local, worker, listener)
        if listener is not None:
            listener.close()
        try:
            self._watch()
        finally:
            self._kill()

    def tell(self, **event: Any) -> None:
        """Send an event to whoever started this process."""
        self.events.write(json.dumps(event) + "\n")
        self.events.flush()

    def listen(self) -> socket.socket | None:
        """Open the port, where this is the first machine.

        Raises:
            OSError: it is in use, or the address is not this machine's.
        """
        if self.setup.first_rank:
            return None
        listener = listen(self.setup.host, self.setup.port)
        self.setup = replace(self.setup, port=listener.getsockname()[1])
        self.tell(event="listening", port=self.setup.port)
        return listener

    def _fork(self, local: int, worker: Worker, listener: socket.socket | None) -> None:
        reading, writing = os.pipe()
        process = os.fork()
        if process == 0:
            for inherited in (self.life[1], reading, self.events.fileno()):
                os.close(inherited)
            self._be_rank(local, worker, writing, listener)
        os.close(writing)
        number = self.setup.first_rank + local
        self.ranks[reading] = _Rank(number, process, os.fdopen(reading, "rb"))

    def _be_rank(
        self, local: int, worker: Worker, writing: int, listener: socket.socket | None
    ) -> None:
        """The life of a forked rank; never returns."""
        code = 1
        try:
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            threading.Thread(target=_end_with, args=(self.life[0],), daemon=True).start()
            event = self._rank_event(local, worker, listener)
            with os.fdopen(writing, "w") as out:
                out.write(json.dumps(event) + "\n")
            code = 0
        except SystemExit as ended:
            code = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
        finally:
            os._exit(code)

    def _rank_event(
        self, local: int, worker: Worker, listener: socket.socket | None
    ) -> dict[str, Any]:
        setup, rank = self.setup, self.setup.first_rank + local
        name_process(rank)
        fd = listener.fileno() if listener is not None and rank == 0 else None
        if listener is not None and rank:
            listener.close()
        ranks, host = setup.work.ranks, setup.host
        place = Place(rank, ranks, local, setup.local_ranks, host, setup.port, fd)
        try:
            reports = worker(
                setup.work, setup.options, place, lambda text: self.shared_cutoff.write(local, text)
            )
        except (BackendError, ExecutionError, InputError) as error:
            return {"event": "error", "kind": type(error).__name__, "text": str(error)}
        except Exception as error:
            text = f"{type(error).__name__}: {in_short(error)}"
            return {"event": "error", "kind": "failure", "text": text}
        return {"event": "done", "reports": reports and [asdict(report) for report in reports]}

    def _watch(self) -> None:
        waiting = selectors.DefaultSelector()
        waiting.register(sys.stdin.buffer.fileno(), selectors.EVENT_READ)
        for fd in self.ranks:
            waiting.register(fd, selectors.EVENT_READ)
        left = set(self.ranks)
        while left:
            for key, _ in waiting.select():
                if key.fd not in left:
                    self.tell(event="where", ranks=self._where())
                    return
                line = self.ranks[key.fd].events.readline()
                if not line.endswith(b"\n"):  # the end, or cut short by one
                    line = b""
                    waiting.unregister(key.fd)
                    left.discard(key.fd)
                self._pass_on(self.ranks[key.fd], line)

    def _pass_on(self, rank: _Rank, line: bytes) -> None:
        if line:
            rank.told = True
            self.tell(rank=rank.number, **json.loads(line))
            return
        _, status = os.waitpid(rank.process, 0)
        where = self.shared_cutoff.read(rank.number - self.setup.first_rank)
        code = os.waitstatus_to_exitcode(status)
        self.tell(event="exit", rank=rank.number, code=code, where=where, told=rank.told)
        rank.process = 0

    def _where(self) -> dict[int, str]:
        first = self.setup.first_rank
        alive = [rank.number for rank in self.ranks.values() if rank.process]
        return {number: self.shared_cutoff.read(number - first) for number in alive}

    def _kill(self) -> None:
        for rank in self.ranks.values():
            if rank.process:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(rank.process, signal.SIGKILL)
                os.waitpid(rank.process, 0)


def _end_with(life: int) -> None:
    """End this process as soon as the other end of a pipe is gone."""
    os.read(life, 1)
    os._exit(1)


def name_process(rank: int) -> None:
    """Show the rank in lists of processes (Linux; elsewhere nothing happens)."""
    with contextlib.suppress(OSError):
        Path("/proc/self/comm").write_text(f"p2smt-rank-{rank}")


def main() -> None:
    """Read the setup, run it."""
    events = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what libraries print must not mix with the events
    setup = pickle.load(sys.stdin.buffer)
    node = Node(setup, events)
    try:
        listener = node.listen()
    except OSError as error:
        node.tell(event="node", text=f"{setup.host}:{setup.port}: {reason(error)}")
        return
    from p2smt.runtime.ranks.worker import run_worker

    node.run(run_worker, listener)


if __name__ == "__main__":
    main()
