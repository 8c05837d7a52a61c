"""Selection files of MPICH: trees of conditions whose leaves name an algorithm, or a composition.

Facts: MPICH 5.0.x, src/mpi/coll/src/csel.c.  A file takes the place of the whole table, of which
there are two: algorithms (``mpir``), and how ranks of several nodes are put together (``ch4``).
Of the keys of an object the first that holds counts, and nothing leads back out of it.  A call that
no leaf takes, and a name that is none, end the job.  What is written is MPICH's own table, with
another choice where one is wanted.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from importlib.resources import files
from itertools import product
from typing import Any

from p2smt.interop.tuners.c_text import integer, is_number
from p2smt.interop.tuners.choices import (
    ChoiceTable,
    Chosen,
    Comm,
    FileFault,
    FileVerdict,
    LibraryCall,
    representatives,
    tabulated,
)
from p2smt.interop.tuners.rules import size_range

MPIR, CH4 = "mpich", "mpich-ch4"
ELEMENT_BYTES = 4
"""Of the vectors whose elements are counted: float32."""
MOST_BYTES = 2**31 - 1
"""The largest limit that MPICH reads as it is written."""
AVERAGE = ("allreduce", "bcast", "reduce", "alltoall")
"""The collectives whose ``avg_msg_size`` is known: a rank's vector, or its part for one peer."""
_TOTAL = (
    *(*AVERAGE, "alltoallv", "alltoallw", "allgather", "allgatherv", "gather", "scatter"),
    *("reduce_scatter", "reduce_scatter_block"),
)
_SUMS = ("allreduce", "reduce", "reduce_scatter", "reduce_scatter_block")
_COUNTED = (*_SUMS, "bcast", "allgather", "allgatherv")
_ASKED_OF = {
    "avg_msg_size": AVERAGE,
    "total_msg_size": _TOTAL,
    "count": _COUNTED,
    "is_commutative": _SUMS,
    "is_op_built_in": ("allreduce", "reduce"),
    "is_sendbuf_inplace": ("alltoall", "alltoallv", "alltoallw"),
    "is_block_regular": ("reduce_scatter",),
}
"""What is known of which collectives (of their nonblocking forms, too); of others the job ends."""
SIZED = (*AVERAGE, "allgather", "reduce_scatter", "reduce_scatter_block")
"""The collectives of which the table tells."""
_LEAVES = ("algorithm=", "composition=")
_TEST = re.compile(r"([a-z_]+)(<=|<|=)(.*)", re.DOTALL)
_SWITCHES = ("is_commutative", "is_op_built_in", "is_sendbuf_inplace", "is_block_regular")
_KNOWN = {
    "is_multi_threaded": ("yes", "no"),
    "comm_type": ("intra", "inter"),
    "comm_size": ("pow2", "node_comm_size"),
    "comm_hierarchy": ("parent", "node_roots", "node", "flat"),
    "is_node_consecutive": ("yes", "no"),
    **dict.fromkeys(_SWITCHES, ("yes", "no")),
}
_LIMITED = ("comm_size", "comm_avg_ppn", "avg_msg_size", "total_msg_size", "count")
Pairs = tuple[tuple[str, Any], ...]
"""An object of a file: keys, without spaces, and objects, in their order."""


@dataclass(frozen=True, slots=True)
class MpichKnown:
    """What MPICH 5 knows: the restrictions of its algorithms, its compositions, its own tables.

    ``pairs``: those that it has without a file, as a file is read.
    """

    restrictions: Mapping[str, Sequence[str]]
    compositions: Sequence[str]
    own: Mapping[str, Mapping[str, Any]]
    pairs: Mapping[str, Pairs]


@cache
def mpich_known() -> MpichKnown:
    """Read once from the data beside this module."""
    text = files("p2smt.interop.tuners").joinpath("mpich_5.json").read_text("utf-8")
    data = json.loads(text)
    own = {MPIR: data["mpir"], CH4: data["ch4"]}
    pairs = {form: parsed(json.dumps(table)) or () for form, table in own.items()}
    return MpichKnown(data["restrictions"], data["compositions"], own, pairs)


@dataclass(frozen=True, slots=True)
class MpichCall:
    """A call as the conditions see it; ``size``: the whole vector in bytes.

    ``few``: whether there are fewer elements than ranks, to a power of two; None: as many as the
    size has of four bytes.
    """

    collective: str
    comm: Comm
    size: int
    is_commutative: bool = True
    is_op_built_in: bool = True
    is_sendbuf_inplace: bool = False
    is_block_regular: bool = True
    few: bool | None = None

    @property
    def base(self) -> str:
        """The blocking form of the collective."""
        return _base(self.collective)

    @property
    def measures(self) -> dict[str, int]:
        """What limits are compared with."""
        ranks, part = self.comm.ranks, self.size // self.comm.ranks
        whole = self.base in ("allreduce", "bcast", "reduce")
        total = self.size * ranks if whole else self.size
        counted = part if self.base in ("allgather", "reduce_scatter_block") else self.size
        return {
            "comm_size": ranks,
            "avg_msg_size": part if self.base == "alltoall" else self.size,
            "total_msg_size": total,
            "count": counted // ELEMENT_BYTES,
        }

    @property
    def is_few(self) -> bool:
        """Whether there are fewer elements than the largest power of two of ranks."""
        power = 1 << self.comm.ranks.bit_length() - 1
        return self.measures["count"] < power if self.few is None else self.few


def _base(collective: str) -> str:
    return collective[1:] if collective.startswith("i") else collective


@lru_cache(maxsize=4096)
def _test(key: str) -> re.Match[str] | None:
    return _TEST.fullmatch(key)


def parsed(text: str) -> Pairs | None:
    """The objects of a text, of a key that is there twice the last value; None: no such text."""

    def pairs(found: list[tuple[str, Any]]) -> Pairs:
        return tuple((key.replace(" ", ""), value) for key, value in found)

    try:
        tree = json.loads(text, object_pairs_hook=pairs)
    except (ValueError, RecursionError):
        return None
    return tree if isinstance(tree, tuple) and _objects(tree) else None


def _objects(tree: Pairs) -> bool:
    return all(isinstance(sub, tuple) and _objects(sub) for _, sub in tree)


def _last_of_each(tree: Pairs) -> Pairs:
    """As the reader has it: a key that comes again changes the value where it stood first."""
    return tuple(dict(tree).items())


def leaf_of(tree: Pairs) -> str | None:
    """The name in an object that is a leaf."""
    for key, _ in tree:
        if key.startswith(_LEAVES):
            return key.partition("=")[2]
    return None


def found_leaf(tree: Pairs, call: MpichCall, pruning: bool = True) -> str | None:
    """The leaf that a call comes to; None: none.

    ``pruning``: whether conditions on the communicator alone came so far.  These are decided when
    it is made, where ``comm_size<8`` is below 8; later it is up to 8.
    """
    name = leaf_of(tree)
    if name is not None:
        return name
    for key, sub in _last_of_each(tree):
        pruning = prunes(key, pruning)
        if _holds(key, call, pruning):
            return found_leaf(sub, call, pruning)
    return None


def prunes(key: str, before: bool) -> bool:
    """Whether a condition is decided when the communicator is made, as all before it were."""
    return before and (key.endswith("any") or key.startswith(("comm_", "is_node", "collective")))


def _holds(key: str, call: MpichCall, pruning: bool) -> bool:
    """Whether a condition holds; one that is none never does."""
    match = _test(key)
    if key == "any" or key.endswith("=any"):
        return True
    if match is None:
        return False
    what, sign, value = match.groups()
    if sign != "=":
        return _below(what, integer(value), call, pruning or what != "comm_size", sign == "<")
    match what:
        case "collective":
            return value == call.collective
        case "comm_type":
            return value == "intra"
        case "comm_size" if value == "pow2":
            return call.comm.ranks & (call.comm.ranks - 1) == 0
        case "comm_size":
            return value == "node_comm_size" and call.comm.nodes == 1
        case "comm_hierarchy":
            return (value == "parent") == (call.comm.per_node > 1)
        case "is_node_consecutive":  # on one node it is not (MPICH 5.0.2, run)
            return (value == "yes") == (call.comm.nodes > 1)
        case "is_multi_threaded":
            return value == "no"
        case _ if what in _SWITCHES:
            return bool(getattr(call, what) == (value == "yes"))
    return False


def _below(what: str, limit: int, call: MpichCall, exact: bool, strict: bool) -> bool:
    if (what, strict) == ("count", True):
        return call.is_few
    if what == "comm_avg_ppn":
        measure, limit = call.comm.ranks, limit * call.comm.nodes
    else:
        measure = call.measures.get(what, 0)
    return measure < limit if strict and exact else measure <= limit


# What is wrong with a file.


def judge_mpich(text: str, comms: Sequence[Comm]) -> FileVerdict:
    """What MPICH makes of a table of algorithms."""
    return _judged(MPIR, text, comms)


def judge_ch4(text: str, comms: Sequence[Comm]) -> FileVerdict:
    """What MPICH makes of a table of compositions."""
    return _judged(CH4, text, comms)


def _judged(form: str, text: str, comms: Sequence[Comm]) -> FileVerdict:
    tree = parsed(text)
    if tree is None:
        fault = FileFault("aborts", 0, "it is no JSON of objects alone: the job ends")
        return FileVerdict(form, (fault,), (), ChoiceTable(()))
    asked = tuple(comms) or _named(tree)
    faults = [*dict.fromkeys(_static(form, tree, "", ""))]
    faults += [*_missing(form, tree), *dict.fromkeys(_reached(form, tree, asked))]
    names = [name for name in SIZED if f"collective={name}" in dict(tree)]

    def ask(name: str, comm: Comm, size: int) -> LibraryCall | None:
        leaf = found_leaf(tree, MpichCall(name, comm, size))
        return LibraryCall(short(leaf)) if leaf else None

    rows = [
        row
        for comm in asked
        for name in names
        for row in tabulated(
            (name,), (comm,), _edges(dict(tree)[f"collective={name}"], comm), ask
        ).rows
    ]
    table = ChoiceTable(tuple(rows))
    return FileVerdict(form, tuple(faults), tuple(_notes(form, tree)), table)


def short(leaf: str) -> str:
    """The name of an algorithm, or of a composition, without that of its collective."""
    return re.sub(r"^(MPIR|MPIDI)_[A-Za-z_]*?_(intra|inter|allcomm)_", "", leaf)


def _keys(tree: Pairs) -> Iterator[str]:
    for key, sub in tree:
        yield key
        yield from _keys(sub)


def _limits(tree: Pairs, *kinds: str) -> set[int]:
    tests = (match for key in _keys(tree) if (match := _test(key)) is not None)
    return {integer(m[3]) for m in tests if m[1] in kinds and m[2] != "=" and m[3] != "pow2"}


def _named(tree: Pairs) -> tuple[Comm, ...]:
    """A communicator on one node for each number of ranks that a file has."""
    numbers = {max(2, min(limit, 10**6)) for limit in _limits(tree, "comm_size")}
    return tuple(Comm(1, ranks) for ranks in sorted(numbers)[:8]) or (Comm(1, 8),)


def _edges(tree: Pairs, comm: Comm) -> Iterator[int]:
    """The sizes from which on some condition may come out otherwise, and some more."""
    ranks, power = comm.ranks, 1 << comm.ranks.bit_length() - 1
    counts = {power, *_limits(tree, "count")}
    elements = {(count + n) * ELEMENT_BYTES for count in counts for n in (0, 1)}
    for limit in elements | _limits(tree, "avg_msg_size", "total_msg_size"):
        for size in (limit, limit + 1):
            yield from (size, size * ranks, -(-size // ranks))


def _static(form: str, tree: Pairs, collective: str, place: str) -> Iterator[FileFault]:
    """Faults of single keys, in words of where they stand."""
    repeated = [key for key, count in _counts(tree).items() if count > 1]
    for key in repeated:
        yield FileFault("same-key", 0, f"{place}{key} is there twice, and the last counts")
    if not tree:
        yield FileFault("gap", 0, f"{place or 'the file'} is empty: a call that comes here ends")
        return
    name = leaf_of(tree)
    if name is not None:
        yield from _leaf(form, name, collective, place)
        return
    for index, (key, sub) in enumerate(tree):
        own = key.removeprefix("collective=") if key.startswith("collective=") else collective
        yield from _key(key, own, place)
        if key.endswith("any") and index + 1 < len(tree):
            yield FileFault("unreachable", 0, f"{place}{key}: what follows it is never reached")
        yield from _static(form, sub, own, f"{place}{key}: ")


def _counts(tree: Pairs) -> dict[str, int]:
    keys = [key for key, _ in tree]
    return {key: keys.count(key) for key in keys}


def _leaf(form: str, name: str, collective: str, place: str) -> Iterator[FileFault]:
    known = mpich_known()
    names = known.restrictions if form == MPIR else known.compositions
    if name not in names:
        yield FileFault("unknown-name", 0, f"{place}{name[:60]} is no {_WORD[form]}: the job ends")
    elif not re.match(rf"(MPIR|MPIDI)_{collective.capitalize()}_(intra|inter|allcomm)", name):
        yield FileFault("aborts", 0, f"{place}{name} is of another collective: the job ends")


_WORD = {MPIR: "algorithm", CH4: "composition"}


def _key(key: str, collective: str, place: str) -> Iterator[FileFault]:
    match = _test(key)
    if key == "any" or key.endswith("=any"):
        return
    what, sign, value = match.groups() if match else ("", "", "")
    limit = sign != "=" and what in _LIMITED and value != "pow2"
    if what == "collective" and f"collective={value}" in mpich_known().own[MPIR]:
        return
    if not limit and value not in _KNOWN.get(what, ()) and key != "count<pow2":
        yield FileFault("unknown-name", 0, f"{place}{key[:60]} is no condition: the job ends")
    elif limit and not is_number(value):
        yield FileFault("suffix", 0, f"{place}{key[:60]} is read as {integer(value)}")
    elif limit and int(value) != integer(value):
        said = f"{place}{key[:60]} is read as {integer(value)}: from 2 GiB on only any can be said"
        yield FileFault("overflow", 0, said)
    if collective and _base(collective) not in _ASKED_OF.get(what, (_base(collective),)):
        said = f"{place}{what} is not known of {collective}: the job ends"
        yield FileFault("aborts", 0, said)


def _missing(form: str, tree: Pairs) -> Iterator[FileFault]:
    """Collectives without an entry; of compositions, those fall back to the algorithms."""
    for key in mpich_known().own[MPIR] if form == MPIR else ():
        if key not in dict(tree):
            said = f"{key.removeprefix('collective=')} is left out: a job that calls it ends"
            yield FileFault("gap", 0, said)


def _reached(form: str, tree: Pairs, comms: Sequence[Comm]) -> Iterator[FileFault]:
    """Calls that come to no leaf, or to an algorithm that cannot run them."""
    usual = mpich_known().pairs[form]  # whose choices are MPICH's own business
    same = dict(usual)
    for key, sub in _last_of_each(tree):
        if same.get(key) == sub:
            continue
        name = key.removeprefix("collective=")
        kinds = [kind for kind in _SWITCHES if any(k.startswith(kind) for k in _keys(sub))]
        needed = mpich_known().restrictions if form == MPIR else {}
        for comm in comms:
            for first, last in representatives(_edges(sub, comm)):
                for call in _calls(name, comm, first, kinds, needed, sub):
                    leaf = found_leaf(tree, call)
                    where = f"{name} of {size_range(first, last)} on {comm}"
                    if leaf is None and form == MPIR:
                        yield FileFault("gap", 0, f"{where} comes to no algorithm: the job ends")
                    own = found_leaf(usual, call)
                    for need in needed.get(leaf or "", ()):
                        if leaf != own and not _met(need, call):
                            said = f"{name} on {comm}: {short(leaf or '')} is reached without"
                            yield FileFault("missing-guard", 0, f"{said} {need}")


_NEEDS = {
    "commutative": "is_commutative",
    "builtin-op": "is_op_built_in",
    "no-inplace": "is_sendbuf_inplace",
    "inplace": "is_sendbuf_inplace",
}


def _calls(
    name: str,
    comm: Comm,
    size: int,
    kinds: Sequence[str],
    needed: Mapping[str, Sequence[str]],
    sub: Pairs,
) -> Iterator[MpichCall]:
    """Calls of a size with all that the conditions, or the algorithms named, tell apart."""
    named = {need for leaf in _leaves(sub) for need in needed.get(leaf, ())}
    switches = sorted({*kinds, *(_NEEDS[need] for need in named if need in _NEEDS)})
    few = (False, True) if "size-ge-pof2" in named else (None,)
    plain = MpichCall(name, comm, size)
    for values in product((True, False), repeat=len(switches)):
        for fewer in few:
            said: dict[str, Any] = dict(zip(switches, values, strict=True))
            yield replace(plain, few=fewer, **said)


def _leaves(tree: Pairs) -> Iterator[str]:
    name = leaf_of(tree)
    if name is not None:
        yield name
        return
    for _, sub in tree:
        yield from _leaves(sub)


def _met(need: str, call: MpichCall) -> bool:
    """Whether a call meets what an algorithm needs."""
    match need:
        case "commutative" | "builtin-op" | "inplace":
            return bool(getattr(call, _NEEDS[need]))
        case "no-inplace":
            return not call.is_sendbuf_inplace
        case "power-of-two":
            return call.comm.ranks & (call.comm.ranks - 1) == 0
        case "size-ge-pof2":
            return not call.is_few
        case "parent-comm":
            return call.comm.per_node > 1
    return True


def _notes(form: str, tree: Pairs) -> Iterator[str]:
    yield "read by MPICH 5.0; the file takes the place of the whole table"
    if form == MPIR:
        yield (
            "on several nodes an all-reduce, a reduce and a broadcast are put together of steps "
            "inside nodes and between them, which this table is for; mpich-ch4 says otherwise"
        )
    if any(key.startswith("count") for key in _keys(tree)):
        yield f"elements are counted as of {ELEMENT_BYTES} bytes"


def looks_mpich(text: str) -> bool:
    """Whether a text is a table of algorithms, as far as its leaves tell."""
    return _looks(text, "algorithm=")


def looks_ch4(text: str) -> bool:
    """Whether a text is a table of compositions."""
    return _looks(text, "composition=")


def _looks(text: str, leaf: str) -> bool:
    if not text.lstrip().startswith("{") or "collective=" not in text.replace(" ", ""):
        return False
    return leaf in text.replace(" ", "")


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
