"""Small MSCCL XML texts of our own."""

from __future__ import annotations

from collections.abc import Iterable


def attributes(**given: object) -> str:
    """``a="1" b="x"``; None leaves an attribute out."""
    return " ".join(f'{name}="{value}"' for name, value in given.items() if value is not None)


def step(number: int, kind: str, source: str = "i0", target: str = "", **more: object) -> str:
    """A step with all attributes; places as ``"o3"``."""
    target = target or source
    usual: dict[str, object] = {
        "s": number,
        "type": kind,
        "srcbuf": source[0],
        "srcoff": source[1:],
        "dstbuf": target[0],
        "dstoff": target[1:],
        "cnt": 1,
        "depid": -1,
        "deps": -1,
        "hasdep": 0,
    }
    return f"<step {attributes(**usual | more)}/>"


def block(number: int, *steps: str, send: int = -1, recv: int = -1, chan: int = 0) -> str:
    """A thread block."""
    inside = "\n".join(f"      {line}" for line in steps)
    return f"    <tb {attributes(id=number, send=send, recv=recv, chan=chan)}>\n{inside}\n    </tb>"


def gpu(number: int, *inside: str, chunks: tuple[int, int, int] = (2, 2, 0)) -> str:
    """A gpu of so many input, output and scratch chunks."""
    i, o, s = chunks
    head = attributes(id=number, i_chunks=i, o_chunks=o, s_chunks=s)
    return "\n".join([f"  <gpu {head}>", *inside, "  </gpu>"])


def algo(gpus: Iterable[str], **more: object) -> str:
    """A file; usually an in-place all-reduce of as many chunks as gpus."""
    gpus = list(gpus)
    usual: dict[str, object] = {
        "name": "test",
        "proto": "Simple",
        "nchannels": 1,
        "nchunksperloop": len(gpus),
        "ngpus": len(gpus),
        "coll": "allreduce",
        "inplace": 1,
    }
    return "\n".join([f"<algo {attributes(**usual | more)}>", *gpus, "</algo>"]) + "\n"


def ring(ranks: int = 3, **more: object) -> str:
    """An in-place ring all-reduce: s, rrs.., rrcs, rcs.., r."""
    kinds = ["s", *["rrs"] * (ranks - 2), "rrcs", *["rcs"] * (ranks - 2), "r"]
    gpus = []
    for rank in range(ranks):
        steps = [step(k, kind, f"i{(rank - k) % ranks}") for k, kind in enumerate(kinds)]
        body = block(0, *steps, send=(rank + 1) % ranks, recv=(rank - 1) % ranks)
        gpus.append(gpu(rank, body, chunks=(ranks, 0, 0)))
    return algo(gpus, **more)


def swap(*, gap: str = "", **more: object) -> str:
    """Two gpus, out of place: copy, receive and reduce in three blocks with dependencies."""
    gpus = []
    for rank in (0, 1):
        gpus.append(
            gpu(
                rank,
                block(0, step(0, "s", "i0", "s0", cnt=2), send=1 - rank),
                block(1, step(0, "r", "i0", "s0", cnt=2, hasdep=1), recv=1 - rank),
                block(
                    2,
                    step(0, "cpy", "i0", "o0", cnt=2),
                    gap or step(1, "re", "s0", "o0", cnt=2, depid=1, deps=0),
                ),
                chunks=(2, 2, 2),
            )
        )
    return algo(gpus, **{"inplace": 0} | more)


def waiting(ranks: int) -> str:
    """A ring, and on each gpu a block that waits for one which announces nothing."""
    text = ring(ranks).replace('s_chunks="0"', 's_chunks="1"')
    first = block(1, step(0, "cpy", "i0", "s0"))
    second = block(2, step(0, "nop", depid=1, deps=0), step(1, "cpy", "s0", "s0", cnt=0))
    return text.replace("  </gpu>", f"{first}\n{second}\n  </gpu>")
