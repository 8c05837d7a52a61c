"""Fits the constants of presets and libraries to all tables, and writes them where they hold.

    python -m experiments.accuracy.fit_presets

writes ``constants.json``, the ``efficiency`` of links in ``topologies/``, and the ``calls``,
``hops`` and channels of sends in ``p2smt/libraries/``; and ``constants_without.json``: for every
table that is to be predicted unseen, the constants that matter to it, fitted without it; and
``constants_blind.json``: the same for every system, fitted without any of its tables.  The
search starts at what the libraries' own sources say; a constant that no table tells stays there.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Mapping, Sequence

from experiments.accuracy.blind import BLIND, systems
from experiments.accuracy.fitting.constants import CONSTANTS, WITHOUT
from experiments.accuracy.fitting.constants_text import write_constants
from experiments.accuracy.fitting.fit import Losses, concerned, fitted
from experiments.accuracy.hold_out import LEFT_OUT
from experiments.accuracy.systems import is_fitted
from experiments.tables.tables import Published, tables
from experiments.testbed.script import ended
from p2smt.errors import InputError

US = 1e-6
START = {
    "call nccl all-reduce": 6.8 * US,
    "call nccl others": 6.6 * US,
    "call nccl p2p": 6.6 * US,
    "across nccl infiniband": 2 * US,
    "across nccl efa": 20 * US,
    "across nccl efa2": 20 * US,
    "across nccl fastrak": 20 * US,
    "across nccl tcpx": 100 * US,
    "times nccl inside": 1,
    "times nccl inside ring": 1,
    "times nccl inside nvls": 0.3,
    "times nccl inside p2p": 3,
    "times nccl network": 1,
    "on nccl nvlink5": 1 * US,
    "driver nccl roce": 1 * US,
    "driver nccl efa": 20 * US,
    "driver nccl efa2": 10 * US,
    "driver nccl fastrak": 20 * US,
    "driver nccl tcpx": 50 * US,
    "channel nccl": 20e9,
    "exchange nccl": 22e9,
    "handover nccl": 400e9,
    "member nccl": 1 * US,
    "pace": 1.2,
    "launch": 3 * US,
    "call rccl all": 12 * US,
    "across rccl infiniband": 20 * US,
    "across rccl roce": 20 * US,
    "times rccl inside": 1,
    "times rccl network": 1,
    "efficiency nvlink3 any": 0.8,
    "efficiency nvlink4 any": 0.8,
    "efficiency nvlink4 nvls": 0.7,
    "efficiency nvlink5 any": 0.8,
    "efficiency nvlink5 nvls": 0.7,
    "efficiency xgmi any": 0.7,
    "efficiency xgmi direct": 0.5,
    "efficiency infiniband any": 0.95,
    "efficiency infiniband ring": 0.9,
    "efficiency infiniband+nvlink2 any": 0.75,
    "efficiency infiniband+nvlink5 any": 0.95,
    "efficiency infiniband+nvlink5 ring": 0.8,
    "efficiency infiniband+nvl72 any": 0.95,
    "efficiency infiniband+nvl72 ring": 0.95,
    "efficiency infiniband+xgmi any": 0.9,
    "efficiency roce any": 0.95,
    "efficiency roce+xgmi any": 0.9,
    "efficiency efa any": 0.9,
    "efficiency efa2 any": 0.9,
    "efficiency fastrak any": 0.9,
    "efficiency tcpx any": 0.5,
}
"""Where the search starts: hops and calls as in NCCL's and RCCL's own tables, the rest guessed."""


def main(arguments: Sequence[str]) -> None:
    """Fit, and write every constant where it holds.

    Raises:
        InputError: there are arguments.
    """
    if arguments:
        raise InputError(f"argument {arguments[0]}", "none is expected", "leave it out")
    known = {name: one for name, one in tables().items() if is_fitted(one)}
    found = fitted(START, Losses(known), _say)
    CONSTANTS.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    write_constants(found)
    unseen = {name: without([name], found, known) for name in LEFT_OUT if name in known}
    WITHOUT.write_text(json.dumps(unseen, indent=1) + "\n", encoding="utf-8")
    blind = {
        system: without([table.name for table in mine], found, known)
        for system, mine in systems().items()
        if all(map(is_fitted, mine))
    }
    BLIND.write_text(json.dumps(blind, indent=1) + "\n", encoding="utf-8")


def _say(line: str) -> None:
    sys.stderr.write(f"{line}\n")


def without(
    names: Sequence[str], constants: Mapping[str, float], known: Mapping[str, Published]
) -> dict[str, float]:
    """The constants that matter to some tables, fitted again from the start to the others."""
    mine = concerned(constants, Losses({name: known[name] for name in names}))
    others = Losses({other: one for other, one in known.items() if other not in names})
    start = {one: _like_others(one, constants) for one in mine}
    found = fitted({**constants, **start}, others, names=mine)
    return {one: found[one] for one in mine}


CLOUDS = ("efa", "efa2", "fastrak")
"""Networks of clouds with drivers of their own (tcpx copies through the CPU)."""


def _like_others(name: str, constants: Mapping[str, float]) -> float:
    """Where the search starts for a constant; of a cloud's network the mean of the other clouds'.

    Of a network that no table has left its own constants are taken for those of its like.
    """
    kind, _, fabric = name.rpartition(" ")
    if fabric not in CLOUDS:
        return START[name]
    found = [constants[f"{kind} {one}"] for one in CLOUDS if one != fabric]
    return math.prod(found) ** (1 / len(found))


if __name__ == "__main__":
    sys.exit(ended(main, sys.argv[1:]))
