"""Dask's own parts of a search: a cluster on this machine, and connections to any.

dask.distributed is the extra ``cluster``; it is imported when it is needed.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from typing import TYPE_CHECKING

from p2smt.errors import BackendError, ExecutionError, InputError
from p2smt.skeletons.engines.dask_worker import greeting

if TYPE_CHECKING:
    from distributed import Client, LocalCluster

HERE = "127.0.0.1"
"""All servers of a local cluster listen on this address: who reaches one can run any code."""
CONNECT_S = 10.0
"""Seconds in which a scheduler must answer and have a worker."""
SPARING = {
    "distributed.worker.multiprocessing-method": "spawn",
    "distributed.worker.profile.enabled": False,
    "distributed.admin.tick.interval": "500ms",
    "distributed.admin.system-monitor.interval": "5s",
}
"""A local cluster's own work: by default it samples stacks and clocks a hundred times a second in
each process, which costs the coordinator alone 5 % of a core."""


def require_distributed() -> None:
    try:
        import distributed  # noqa: F401  # that it is there is what is asked
    except ImportError as error:
        text = "dask.distributed is not installed: pip install 'p2smt[cluster]'"
        raise BackendError(text) from error


@contextmanager
def local_cluster(processes: int) -> Iterator[str]:
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
def connected(address: str, direct: bool) -> Iterator[Client]:
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
        except (OSError, ValueError, TypeError) as error:  # the last: TLS that is not set up
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


def tell_workers(client: Client, function: Callable[..., None], *arguments: object) -> None:
    """Call a function on all workers; of those that are gone, or of all, none hears."""
    with suppress(Exception):  # Dask has several for a cluster that is no more
        client.run(function, *arguments, on_error="ignore")


def versions_of(client: Client, workers: list[str]) -> dict[str, dict[str, str] | BaseException]:
    """The versions of these workers, or why they could not tell them."""
    return dict(client.run(greeting, workers=workers, on_error="return"))
