"""One end of a transfer between two nodes of a test cluster, as a process; standard library only.

``transfer.py receive PORT`` says ``listening``, takes one stream and says how many bytes it was;
``transfer.py send ADDRESS PORT BYTES`` sends one.
"""

from __future__ import annotations

import socket
import sys

PATIENCE_S = 600.0
_CHUNK_BYTES = 2**16


def receive(port: int) -> None:
    """Count one stream to its end."""
    with socket.create_server(("", port)) as server:
        server.settimeout(PATIENCE_S)
        _say("listening")
        stream = server.accept()[0]
    stream.settimeout(PATIENCE_S)
    space, count = bytearray(_CHUNK_BYTES), 0
    with stream:
        while got := stream.recv_into(space):
            count += got
    _say(str(count))


def send(address: str, port: int, count: int) -> None:
    """Send so many bytes, then end the stream."""
    with socket.create_connection((address, port), PATIENCE_S) as stream:
        stream.sendall(bytes(count))


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["receive", port]:
            receive(int(port))
        case ["send", address, port, count]:
            send(address, int(port), int(count))
        case _:
            sys.exit("usage: transfer.py receive PORT | send ADDRESS PORT BYTES")
