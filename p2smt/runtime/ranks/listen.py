"""The port at which ranks meet: opened before torch is imported, on one address only."""

from __future__ import annotations

import errno
import ipaddress
import os
import socket
from dataclasses import replace

from p2smt.errors import ExecutionError, InputError
from p2smt.runtime.ranks.place import Place

_BACKLOG = 4096


def listen(host: str, port: int) -> socket.socket:
    """A listening socket at an address of this machine, and at no other (port 0: any free one).

    Raises:
        OSError: the name is unknown, the address another machine's, or the port in use.
    """
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    family, _, _, _, address = min(found, key=lambda one: one[0] is not socket.AF_INET)
    return socket.create_server(address[:2], family=family, backlog=_BACKLOG)


def reason(error: OSError) -> str:
    """What went wrong, without the address."""
    if error.errno is None or error.errno < 0:  # getaddrinfo has numbers of its own
        return error.strerror or str(error)
    return os.strerror(error.errno)


def serving(place: Place) -> Place:
    """The place of a rank whose store nobody serves yet, with a socket for it.

    Raises:
        InputError: the ranks of other machines cannot reach the address.
        ExecutionError: the address cannot be listened on.
    """
    try:
        listener = listen(place.host, place.port)
    except OSError as error:
        at = f"{place.host}:{place.port}: {reason(error)}"
        elsewhere = error.errno == errno.EADDRNOTAVAIL
        remedy = "; set MASTER_ADDR to an address of this machine" if elsewhere else ""
        text = f"cannot open the port of the ranks: {at}{remedy}"
        raise ExecutionError(f"rank {place.rank}: {text}") from None
    address = listener.getsockname()[0]
    if place.local_ranks < place.ranks and ipaddress.ip_address(address).is_loopback:
        listener.close()
        raise InputError(
            f"MASTER_ADDR {place.host}",
            f"is {address} here, which other machines cannot reach",
            "set it to this machine's address in their network",
        )
    return replace(place, serves=False, listen_fd=listener.detach())
