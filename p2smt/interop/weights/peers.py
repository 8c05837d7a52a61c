"""What the rules of other tools would take for the same transfer, priced by the same ports.

Each rule is written anew from its source, and says who sends which part of a tensor to whom; all
of it goes at once, so that the busiest port is its time.  (``gather`` alone goes step by step.)
Under a cap on memory rules take tensors in the order of the model, as the tools do: as many at once
as no device gets more bytes than the cap, or one that is larger alone; times of these steps add up.

* ``megatron``: the planner of Megatron-LM's refit (megatron/core/resharding/planner.py and
  utils.py at d98e8a64, ``_round_robin_dp``): every receiver pulls from one owner of the tensor, by
  its rank over the dense data-parallel groups, from the first owner where there is one group.
* ``awex``: replica i of the receiver pulls from replica i mod n (awex/transfer/transfer_plan.py of
  inclusionAI/Awex at 4e19c60).
* ``alpa``: of all replicas the least loaded sends, to every receiver, or once to the first of a
  chain over all receivers; the all-gather that it may put after sends is left out
  (alpa/pipeline_parallel/cross_mesh_resharding.py of alpa-projects/alpa at b8078a9f,
  ``_generate_send_recv_resharding_strategy_by_loads`` and the one by broadcasts).
* ``m2n``: replicas of the source take nodes of the receiver in turn, or runs of nodes; the sources
  of a block are dealt out to the replicas of it in the first of them, go on from node to node, and
  inside to the others (contrib/nccl_m2n/src/reshard_loadbalance.cc and reshard_prepare.cc of
  NVIDIA/nccl at 5067397c).
* ``gather``: the first owner of a tensor gathers all of it and sends it whole along a chain over
  the receivers, one such root after the other, as trainers of reinforcement learning do.
* ``first``: every receiver pulls from the first holder.

Receivers that have a part already do not get it.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import pairwise

from p2smt.errors import InputError, did_you_mean
from p2smt.transfer.answer import ComparedRule
from p2smt.transfer.classes import Devices, volume
from p2smt.transfer.layouts import overlap
from p2smt.transfer.plan import Edge
from p2smt.transfer.ports import Port, PortMap
from p2smt.transfer.question import TransferQuestion

PARTS = 16
"""What a rule chooses tensor by tensor is chosen for so many parts of what is alike."""


@dataclass(frozen=True)
class PeerCell:
    """Bytes that a box of the source and one of the target share, of all tensors that are alike.

    ``owners`` have some part of the tensor before, ``receivers`` after; ``place``: which of so many
    source boxes of its target box this is.
    """

    owners: Devices
    receivers: Devices
    holders: Devices
    wanters: Devices
    place: tuple[int, int]
    payload: int

    @property
    def needers(self) -> Iterator[tuple[int, int]]:
        """Who wants it and lacks it, with its number among those who want it."""
        has = set(self.holders)
        return ((i, d) for i, d in enumerate(self.wanters) if d not in has)


@dataclass(frozen=True)
class _Asked:
    """A transfer as rules see it; ``counts``: tensors of each pattern, by number (None: all)."""

    question: TransferQuestion
    counts: Mapping[int, int] | None = None

    @property
    def ports(self) -> PortMap:
        return self.question.ports

    @cached_property
    def cells(self) -> Sequence[PeerCell]:
        """The cells, those that are alike together."""
        found = Counter[_CellKey]()
        for number, pattern in enumerate(self.question.moves.patterns):
            count = len(pattern.tensors) if self.counts is None else self.counts.get(number, 0)
            for key, size in self.alike[number] if count else ():
                found[key] += size * count * self.question.item_bytes
        return [PeerCell(*key, payload) for key, payload in found.items()]

    @cached_property
    def alike(self) -> Sequence[Sequence[tuple[_CellKey, int]]]:
        """By pattern, the cells of one of its tensors with their elements."""
        return [list(self._of(one.tensors[0])) for one in self.question.moves.patterns]

    def _of(self, tensor: str) -> Iterator[tuple[_CellKey, int]]:
        before, after = self._boxes(tensor)
        owners, receivers = _all(before), _all(after)
        for box, wanters in after:
            both = ((overlap(box, other), holders) for other, holders in before)
            shared = [(volume(cell), holders) for cell, holders in both if cell is not None]
            for at, (size, holders) in enumerate(shared):
                yield (owners, receivers, holders, wanters, (at, len(shared))), size

    def in_order(self, cap_bytes: int, *, whole: bool = False) -> Iterator[_Asked]:
        """Steps that keep to a cap, tensors in the order of the first layout.

        ``whole``: every receiver gets whole tensors, and their first owner what it lacks.
        """
        number = {
            tensor: n
            for n, one in enumerate(self.question.moves.patterns)
            for tensor in one.tensors
        }
        received = self._gathered if whole else self._received
        gets = [received(n) for n in range(len(self.question.moves.patterns))]
        counts, filled = Counter[int](), Counter[int]()
        for tensor in self.question.before.tensors:
            more = gets[number[tensor]]
            if counts and any(filled[d] + size > cap_bytes for d, size in more.items()):
                yield self._step(counts)
                counts, filled = Counter(), Counter()
            counts[number[tensor]] += 1
            filled.update(more)
        yield self._step(counts)

    def _step(self, counts: Mapping[int, int]) -> _Asked:
        made = _Asked(self.question, counts)
        made.__dict__.update(alike=self.alike, dense=self.dense)
        return made

    def _received(self, pattern: int) -> Mapping[int, int]:
        """Bytes that each device gets of a tensor."""
        found = Counter[int]()
        for key, size in self.alike[pattern]:
            for _, device in PeerCell(*key, size).needers:
                found[device] += size * self.question.item_bytes
        return found

    def _gathered(self, pattern: int) -> Mapping[int, int]:
        """Bytes that each device gets of a tensor that one gathers and sends whole."""
        found = Counter[int]()
        for key, size in self.alike[pattern]:
            cell = PeerCell(*key, size * self.question.item_bytes)
            root = cell.owners[0]
            getting = {*cell.receivers} - {root} | ({root} - {*cell.holders})
            found.update(dict.fromkeys(getting, cell.payload))
        return found

    def _boxes(self, tensor: str) -> tuple[_Boxes, _Boxes]:
        asked = self.question
        first, second = (
            [(box, tuple(devices[rank] for rank in ranks)) for box, ranks in shards.boxes]
            for shards, devices in (
                (asked.before.shards[tensor], asked.sources),
                (asked.after.shards[tensor], asked.targets),
            )
        )
        return first, second

    @cached_property
    def dense(self) -> Mapping[int, Devices]:
        """The devices that hold the same of dense tensors: the widest cut that a device is in."""
        found: dict[int, tuple[int, int, Devices]] = {}
        for pattern in self.question.moves.patterns:
            before, _ = self._boxes(pattern.tensors[0])
            every = [d for _, own in before for d in own]
            if len(every) == len(set(every)):
                for _, own in before:
                    key = (len(every), len(before), own)
                    found |= {d: key for d in own if key[:2] > found.get(d, (0, 0))[:2]}
        return {d: own for d, (_, _, own) in found.items()}


_CellKey = tuple[Devices, Devices, Devices, Devices, tuple[int, int]]
"""Owners, receivers, holders, wanters and place of a cell."""
_Boxes = list[tuple[tuple[tuple[int, int], ...], Devices]]
_Sends = Iterator[tuple[Edge, int]]
"""Who sends to whom, and how many bytes."""


def _all(boxes: _Boxes) -> Devices:
    return tuple(sorted({d for _, own in boxes for d in own}))


def _first(asked: _Asked) -> _Sends:
    for cell in asked.cells:
        for _, device in cell.needers:
            yield (cell.holders[0], device), cell.payload


def _awex(asked: _Asked) -> _Sends:
    for cell in asked.cells:
        for replica, device in cell.needers:
            yield (cell.holders[replica % len(cell.holders)], device), cell.payload


def _megatron(asked: _Asked) -> _Sends:
    grouped = {
        owners: _by_group(owners, asked.dense) for owners in {cell.owners for cell in asked.cells}
    }
    for cell in asked.cells:
        groups = grouped[cell.owners]
        for _, device in cell.needers:
            owner = device if device in cell.owners else _chosen(groups, device)
            if owner not in cell.holders:  # the one beside it, of the same copy of the model
                copy = asked.dense.get(owner, (owner,)).index(owner)
                owner = cell.holders[copy % len(cell.holders)]
            yield (owner, device), cell.payload


def _by_group(owners: Devices, dense: Mapping[int, Devices]) -> Sequence[Sequence[int]]:
    """Owners by their dense data-parallel groups."""
    groups: dict[Devices, list[int]] = defaultdict(list)
    for owner in owners:
        groups[dense.get(owner, (owner,))].append(owner)
    return [groups[key] for key in sorted(groups)]


def _chosen(groups: Sequence[Sequence[int]], device: int) -> int:
    if len(groups) == 1:
        return groups[0][0]
    own = groups[device % len(groups)]
    return own[device // len(groups) % len(own)]


def _alpa_sends(asked: _Asked) -> _Sends:
    load = Counter[int]()
    for cell in asked.cells:
        for _, device in cell.needers:
            for sender, payload in _least_loaded(load, cell):
                yield (sender, device), payload


def _alpa_broadcasts(asked: _Asked) -> _Sends:
    load = Counter[int]()
    for cell in asked.cells:
        chain = sorted(device for _, device in cell.needers)
        if chain:
            for sender, payload in _least_loaded(load, cell):
                yield (sender, chain[0]), payload
            yield from ((edge, cell.payload) for edge in pairwise(chain))


def _least_loaded(load: Counter[int], cell: PeerCell) -> Iterator[tuple[int, int]]:
    """Parts of a cell, each by the holder that has sent least."""
    if len(cell.holders) == 1:
        yield cell.holders[0], cell.payload
        return
    for part in range(PARTS):
        payload = cell.payload * (part + 1) // PARTS - cell.payload * part // PARTS
        sender = min(cell.holders, key=load.__getitem__)
        load[sender] += payload
        yield sender, payload


def _m2n(asked: _Asked) -> _Sends:
    for cell in asked.cells:
        nodes: dict[int, list[int]] = defaultdict(list)
        for device in cell.wanters:
            nodes[asked.ports.node(device)].append(device)
        leaders = [own[_leader(len(own), *cell.place)] for own in nodes.values()]
        has = set(cell.holders)
        for replica, run in enumerate(_runs(len(leaders), len(cell.holders))):
            way = (cell.holders[replica], *(leaders[node] for node in run))
            inside = ((leaders[n], d) for n in run for d in list(nodes.values())[n])
            for source, target in (*pairwise(way), *inside):
                if target not in has and source != target:
                    yield (source, target), cell.payload


def _leader(replicas: int, at: int, sources: int) -> int:
    """Which of the replicas in a node takes source ``at`` of so many of a block."""
    each, more = divmod(sources, replicas)
    if at < more * (each + 1):
        return at // (each + 1)
    return more + (at - more * (each + 1)) // each


def _runs(nodes: int, replicas: int) -> Iterator[range]:
    """The nodes that each replica of the source serves."""
    each, more, at = *divmod(nodes, replicas), 0
    for replica in range(min(nodes, replicas)):
        stop = at + each + (replica < more)
        yield range(at, stop)
        at = stop


def _gather(asked: _Asked) -> Iterator[_Sends]:
    """The sends of one root after the other."""
    roots: dict[int, list[PeerCell]] = defaultdict(list)
    for cell in asked.cells:
        roots[cell.owners[0]].append(cell)
    for root, cells in roots.items():
        yield _rooted(root, cells)


def _rooted(root: int, cells: Sequence[PeerCell]) -> _Sends:
    whole = Counter[Devices]()
    for cell in cells:
        whole[cell.receivers] += cell.payload
        if root not in cell.holders:
            yield (cell.holders[0], root), cell.payload
    for receivers, payload in whole.items():
        chain = (root, *(device for device in receivers if device != root))
        yield from ((edge, payload) for edge in pairwise(chain))


def _at_once(rule: Callable[[_Asked], _Sends]) -> Callable[[_Asked], Iterator[_Sends]]:
    return lambda asked: iter((rule(asked),))


GATHER = "gather"
RULES: Mapping[str, Mapping[str, Callable[[_Asked], Iterator[_Sends]]]] = {
    "megatron": {"Megatron's planner": _at_once(_megatron)},
    "awex": {"awex": _at_once(_awex)},
    "alpa": {
        "Alpa's sends": _at_once(_alpa_sends),
        "Alpa's broadcasts": _at_once(_alpa_broadcasts),
    },
    "m2n": {"NCCL's m2n": _at_once(_m2n)},
    GATHER: {"gather and broadcast": _gather},
    "first": {"the first holder": _at_once(_first)},
}
"""By the name that ``--compare`` takes: the rules, by what they are called."""


def rule_names(text: str, what: str = "--compare") -> tuple[str, ...]:
    """The names in a list such as ``megatron,awex``; ``what`` names it in errors.

    Raises:
        InputError: a name is none, or is there twice.
    """
    found: list[str] = []
    for name in (part.strip() for part in text.split(",")):
        if name not in RULES:
            remedy = did_you_mean(name, RULES) or "give some of them"
            raise InputError(f"{what} {name[:40]!r}", f"is none of {', '.join(RULES)}", remedy)
        if name in found:
            raise InputError(f"{what} {name}", "is there twice", "name each once")
        found.append(name)
    return tuple(found)


def compared_rules(question: TransferQuestion, names: Sequence[str]) -> tuple[ComparedRule, ...]:
    """What each of the named rules takes."""
    cap, whole = question.memory_bytes, _Asked(question)
    found = []
    for name in names:
        parts = [whole] if cap is None else list(whole.in_order(cap, whole=name == GATHER))
        found += [_priced(parts, label, rule) for label, rule in RULES[name].items()]
    return tuple(found)


def _priced(
    parts: Sequence[_Asked], label: str, rule: Callable[[_Asked], Iterator[_Sends]]
) -> ComparedRule:
    total, worst, binding = Fraction(0), Fraction(0), None
    for asked in parts:
        for sends in rule(asked):
            seconds, port = _busiest(asked.ports, sends)
            total += seconds
            if seconds > worst:
                worst, binding = seconds, port
    return ComparedRule(label, total, binding)


def _busiest(ports: PortMap, sends: _Sends) -> tuple[Fraction, Port | None]:
    """The time of the busiest port of sends that go at once."""
    pairs, loads = Counter[Edge](), Counter[Port]()
    for edge, payload in sends:
        pairs[edge] += payload
    for edge, payload in pairs.items():
        for port in ports.message(*edge):
            loads[port] += payload
    times = ((Fraction(load) / ports.rate(port), port) for port, load in loads.items())
    return max(times, key=lambda one: (one[0], -one[1].entity), default=(Fraction(0), None))
