"""Schedules that are told by orbits, small ones of several kinds, as texts of files."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

EXAMPLE = Path(__file__).parents[3] / "examples" / "hierarchical_all_reduce.yaml"


def _file(head: str, blocks: str) -> str:
    start = "p2smt_schedule: 1\nname: it\n"
    return start + dedent(head).strip() + "\nblocks:\n" + dedent(blocks).strip("\n") + "\n"


RING = _file(
    """
    collective: {kind: allreduce, chunks: 4, in_place: true}
    ranks: 4
    symmetry: [{ranks: shift 1, chunks: shift 1}]
    """,
    """
      - rank: 0
        steps:
          - repeat: {t: 0..2}
            do:
              - send i[(4 - t) mod 4] to 1
              - receive-reduce-copy i[3 - t] from 3 into i[3 - t]
          - repeat: {t: 0..2}
            do:
              - send i[(5 - t) mod 4] to 1
              - receive from 3 into i[(4 - t) mod 4]
    """,
)
HALVING = _file(
    """
    collective: {kind: allreduce, chunks: 4, in_place: true}
    ranks: 4
    symmetry:
      - {ranks: rank xor 1, chunks: (0 1)(2 3)}
      - {ranks: (0 2)(1 3), chunks: chunk xor 2}
    """,
    """
      - rank: 0
        steps:
          - send i[2..3] to 2
          - receive-reduce-copy i[0..1] from 2 into i[0..1]
          - send i[1] to 1
          - receive-reduce-copy i[0] from 1 into i[0]
          - send i[0] to 1
          - receive from 1 into i[1]
          - send i[0..1] to 2
          - receive from 2 into i[2..3]
    """,
)
ALL_GATHER = _file(
    """
    collective: {kind: allgather, chunks: 2}
    ranks: 3
    symmetry: [{ranks: (0 1 2)}]
    """,
    """
      - rank: 0
        steps:
          - send i[0..1] to 1
          - copy i[0..1] into o[0..1]
          - receive-copy-send from 2 into o[4..5] to 1
          - receive from 2 into o[2..3]
    """,
)
ALL_TO_ALL = _file(
    """
    collective: {kind: alltoall, chunks: 1}
    ranks: 4
    symmetry: [{ranks: shift 1}]
    """,
    """
      - rank: 0
        steps:
          - copy i[0] into o[0]
          - repeat: {t: 1..3}
            do: ["send i[t] to t", "receive from (4 - t) mod 4 into o[(4 - t) mod 4]"]
    """,
)
SCATTER = _file(
    """
    collective: {kind: reduce_scatter, chunks: 1}
    ranks: 3
    buffers: {scratch: 1}
    symmetry: [{ranks: shift 1}]
    """,
    """
      - rank: 0
        steps:
          - send i[2] to 1
          - receive-reduce-copy i[1] from 2 into s[0]
          - send s[0] to 1
          - receive-reduce-copy i[0] from 2 into o[0]
    """,
)
TWO_ORBITS = _file(
    """
    collective: {kind: allreduce, chunks: 1, in_place: true}
    ranks: 4
    symmetry: [{ranks: shift 2}]
    """,
    """
      - rank: 0
        steps:
          - receive-reduce-copy i[0] from 1 into i[0]
          - send i[0] to 2
          - receive-reduce-copy i[0] from 2 into i[0]
          - send i[0] to 1
      - rank: 1
        steps:
          - send i[0] to 0
          - receive from 0 into i[0]
    """,
)
TWO_BLOCKS = _file(
    """
    collective: {kind: allreduce, chunks: 2, in_place: true}
    ranks: 2
    buffers: {scratch: 1}
    symmetry: [{ranks: shift 1, chunks: shift 1}]
    """,
    """
      - rank: 0
        block: 0
        steps:
          - send i[1] to 1
          - receive from 1 into s[0]
          - nop wait for 1.0
      - rank: 0
        block: 1
        steps:
          - reduce i[0] + s[0] into i[0] wait for 0.1
          - send i[0] to 1 channel 1
          - receive from 1 channel 1 into i[1] wait for 0.0
    """,
)
EXCHANGE = _file(
    """
    collective: {kind: sendrecv, chunks: 1}
    ranks: 3
    symmetry: [{ranks: shift 1}]
    """,
    """
      - rank: 0
        steps: ["send i[0] to 1", "receive from 2 into o[0]"]
    """,
)
SMALL = {
    "ring": RING,
    "halving": HALVING,
    "all-gather": ALL_GATHER,
    "all-to-all": ALL_TO_ALL,
    "reduce-scatter": SCATTER,
    "two orbits": TWO_ORBITS,
    "two blocks": TWO_BLOCKS,
    "exchange": EXCHANGE,
}
