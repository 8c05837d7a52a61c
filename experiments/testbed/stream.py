"""One end of a measured TCP stream, as a process in a node; see bandwidth.py.

``stream.py receive PORT`` and ``stream.py send ADDRESS PORT`` talk to their parent line by line:
the receiver says ``listening``, the sender its round trip in seconds; both are then told the
window of the measurement, ``BEGIN END`` on the monotonic clock, which all processes of a machine
share.  The sender sends from at once to the end of the window; the receiver says the bytes per
second that arrived inside it.  Standard library only: it starts in 20 ms.
"""

from __future__ import annotations

import socket
import sys
import time

PATIENCE_S = 30.0
_ROUND_TRIPS = 50
_CHUNK_BYTES = 2**18


def main(arguments: list[str]) -> None:
    """Play the role that the arguments name."""
    match arguments:
        case ["receive", port]:
            receive(int(port))
        case ["send", address, port]:
            send(address, int(port))
        case _:
            sys.exit("usage: stream.py receive PORT | send ADDRESS PORT")


def receive(port: int) -> None:
    """Answer the round trips, then count what arrives in the window."""
    with socket.create_server(("", port)) as server:
        server.settimeout(PATIENCE_S)
        _say("listening")
        stream = server.accept()[0]
    with _prepared(stream):
        for _ in range(_ROUND_TRIPS):
            stream.sendall(stream.recv(1))
        _say(repr(_arriving_bytes_per_s(stream, *_window())))


def _arriving_bytes_per_s(stream: socket.socket, begin_s: float, end_s: float) -> float:
    """From the first to the last arrival in the window; 0 where fewer than two are in it."""
    space, count, first_s, last_s = bytearray(_CHUNK_BYTES), 0, 0.0, 0.0
    while got := stream.recv_into(space):
        now_s = time.monotonic()
        if begin_s <= now_s <= end_s:
            count += got if first_s else 0
            first_s, last_s = first_s or now_s, now_s
    return count / (last_s - first_s) if last_s > first_s else 0.0


def send(address: str, port: int) -> None:
    """Measure the round trip, then send until the window ends."""
    with _prepared(socket.create_connection((address, port), PATIENCE_S)) as stream:
        _say(repr(_round_trip_s(stream)))
        end_s, chunk = _window()[1], bytes(_CHUNK_BYTES)
        while time.monotonic() < end_s:
            stream.sendall(chunk)


def _round_trip_s(stream: socket.socket) -> float:
    """The median time for one byte there and back."""
    taken_s = []
    for _ in range(_ROUND_TRIPS):
        start_s = time.perf_counter()
        stream.sendall(b"x")
        stream.recv(1)
        taken_s.append(time.perf_counter() - start_s)
    return sorted(taken_s)[_ROUND_TRIPS // 2]


def _prepared(stream: socket.socket) -> socket.socket:
    stream.settimeout(PATIENCE_S)
    stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return stream


def _window() -> tuple[float, float]:
    begin_s, end_s = sys.stdin.readline().split()
    return float(begin_s), float(end_s)


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1:])
