"""Selection files of MPICH: its own tables, with another choice where one is wanted."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from copy import deepcopy
from typing import Any

from p2smt.interop.tuners.choices import ChoiceTable, Chosen
from p2smt.interop.tuners.mpich import AVERAGE, CH4, MOST_BYTES, MPIR, mpich_known, prunes

_Tree = dict[str, Any]
_FLAT = {
    "allreduce": "MPIDI_Allreduce_intra_composition_beta",
    "bcast": "MPIDI_Bcast_intra_composition_gamma",
    "reduce": "MPIDI_Reduce_intra_composition_gamma",
}
"""The compositions that leave all ranks of several nodes to one algorithm."""
_GUARDS = {
    "commutative": ("is_commutative=yes", "is_commutative=no"),
    "builtin-op": ("is_op_built_in=yes", "is_op_built_in=no"),
    "no-inplace": ("is_sendbuf_inplace=no", "is_sendbuf_inplace=yes"),
    "parent-comm": ("comm_hierarchy=parent", "comm_hierarchy=any"),
}
"""By what an algorithm needs: where it may run, and where MPICH's own choice stays."""


def algorithm_name(collective: str, short: str) -> str:
    """The name of an algorithm in these files."""
    return f"MPIR_{collective.capitalize()}_intra_{short}"


def write_mpich(table: ChoiceTable) -> str:
    """The table of algorithms in which each communicator has its rows.

    Above 2 GiB, which no limit can name, holds what holds at 2 GiB.
    """
    return _text(table, MPIR, _guarded)


def write_ch4(table: ChoiceTable) -> str:
    """The table of compositions in which all ranks run as one where a table says what they run."""
    several = [row for row in table.rows if row.comm.nodes > 1 and row.collective in _FLAT]
    flat = ChoiceTable(tuple(several))
    return _text(flat, CH4, lambda row, _: {f"composition={_FLAT[row.collective]}": {}})


def _text(table: ChoiceTable, form: str, leaf: Any) -> str:
    tree = deepcopy(dict(mpich_known().own[form]))
    for name in dict.fromkeys(row.collective for row in table.rows if row.call is not None):
        rows = [row for row in table.rows if row.collective == name]
        kinds = tree[f"collective={name}"]
        kinds["comm_type=intra"] = _by_ranks(rows, _inside(kinds["comm_type=intra"]), leaf)
    return json.dumps(tree, indent=1) + "\n"


def _inside(own: Mapping[str, Any], pruning: bool = True) -> _Tree:
    """A table of MPICH's own below another condition: ``comm_size<8`` says there what it says where
    it stands, which is up to 7 where conditions on the communicator alone come before it."""
    found: _Tree = {}
    for key, sub in own.items():
        pruning = prunes(key, pruning)
        found[_up_to(key, pruning)] = _inside(sub, pruning)
    return found


def _up_to(key: str, pruning: bool) -> str:
    what, sign, limit = key.partition("comm_size<")
    if not sign or limit.startswith("="):
        return key
    return f"{what}comm_size<={int(limit) - pruning}"


def _by_ranks(rows: Sequence[Chosen], own: _Tree, leaf: Any) -> _Tree:
    """Each number of ranks by itself; all others as MPICH has them."""
    found: _Tree = {}
    by_ranks = {row.comm.ranks: [r for r in rows if r.comm == row.comm] for row in rows}
    for ranks in sorted(by_ranks):
        if ranks - 1 not in by_ranks:
            found[f"comm_size<={ranks - 1}"] = own
        found[f"comm_size<={ranks}"] = _by_size(by_ranks[ranks], own, leaf)
    return found | {"comm_size=any": own}


def _by_size(rows: Iterable[Chosen], own: _Tree, leaf: Any) -> _Tree:
    found: _Tree = {}
    for row in rows:
        average = row.collective in AVERAGE
        what = "avg_msg_size" if average else "total_msg_size"
        last = row.last // row.comm.ranks if row.collective == "alltoall" else row.last
        key = f"{what}<={last}" if last <= MOST_BYTES - 1 else f"{what}=any"
        found.setdefault(key, own if row.call is None else leaf(row, own))
        if last > MOST_BYTES - 1:
            break
    return found


def _guarded(row: Chosen, own: _Tree) -> _Tree:
    """The algorithm where it can run, and elsewhere MPICH's own choice."""
    call = row.call
    name = algorithm_name(row.collective, call.algorithm if call else "")
    tree: _Tree = {f"algorithm={name}": {}}
    for need in reversed(mpich_known().restrictions[name]):
        if need == "size-ge-pof2":
            tree = {"count<pow2": own, "count=any": tree}
        elif need in _GUARDS:
            yes, no = _GUARDS[need]
            tree = {yes: tree, no: own}
    return tree
