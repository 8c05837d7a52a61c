"""Reads the device list that nccl-tests prints: hosts, GPUs on each, and which they are.

A line such as ``# Rank 0 Group 0 Pid 9 on h0 device 0 [0000:0f:00] NVIDIA H100 80GB HBM3``.  It
tells neither what joins GPUs nor network cards; the links inside a node are those of the GPU's
board, where its name tells it.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from p2smt.errors import InputError
from p2smt.interop.clusters.facts import Facts, OutsideFacts
from p2smt.interop.clusters.nodes.gpu_models import model_of_product
from p2smt.interop.clusters.nodes.node_facts import MAX_GPUS, Accelerator, NodeFacts, Told
from p2smt.interop.clusters.nodes.reduce import NOTHING_TOLD, facts_of_node, joined
from p2smt.interop.nccl_tests.elements import DeviceList
from p2smt.interop.nccl_tests.log_lines import plain_lines

NAME = "nccl-tests device list"
_DOMAINS = ("gb200", "gb300")


def is_rank_headers(text: str) -> bool:
    """Whether a text looks like what nccl-tests prints."""
    return ("algbw" in text and "busbw" in text) or "# Using devices" in text or "# Rank " in text


def read_rank_headers(text: str, source: str, told: Told = NOTHING_TOLD) -> Facts:
    """The hosts in what nccl-tests printed, and the inside of one.

    Raises:
        InputError: it has no list of devices, or a shortened one, or hosts are not alike.
    """
    listed = _listed(text, source)
    _check_whole(listed, source)
    hosts, each = _hosts(listed, source)
    outside = OutsideFacts((), loose=hosts) if hosts else None
    product = _product(listed, source)
    model = told.gpu or model_of_product(product)
    if outside is not None and each > 1 and not (model and joined(model, each)):
        named = f"{each} GPUs of a host are {product or 'of no name'}"
        what = f"{source}: {named}, so the links between them are not told"
        return Facts(source, outside=outside, lost=(what,), devices=each)
    node = facts_of_node(_node(source, each, product), told)
    lost = node.lost
    if model in _DOMAINS:
        lost = (
            *lost,
            f"{source}: NVLink of such hosts spans a rack; which hosts share one is not told",
        )
    inside = node.inside and replace(node.inside, assumed=True)
    return Facts(source, outside=outside, inside=inside, lost=lost, devices=each)


def _listed(text: str, source: str) -> DeviceList:
    """The first list of the file."""
    found = DeviceList()
    for number, plain in enumerate(plain_lines(text), 1):
        before = len(found.hosts)
        taken = found.take(plain, f"{source}, line {number}")
        again = taken and len(found.hosts) == before and not found.shortened
        if before and (again or _heads_table(plain)):
            break
    found.check_together()
    if not found.hosts:
        rule = "has no list of devices (lines such as # Rank 0 .. device 0)"
        raise InputError(source, rule, "give what nccl-tests prints above its table")
    return found


def _heads_table(line: str) -> bool:
    return {"size", "time"} <= set(line.split())


def _check_whole(listed: DeviceList, source: str) -> None:
    most = max(listed.hosts)
    if listed.shortened or len(listed.hosts) <= most:
        rule = f"lists {len(listed.hosts)} of {most + 1} or more ranks"
        raise InputError(f"{source}: its device list", rule, "give the whole list")


def _hosts(listed: DeviceList, source: str) -> tuple[tuple[str, ...], int]:
    """The names of the hosts by rank (none: one host without a name), and GPUs on each."""
    ranks = range(len(listed.hosts))
    places = [(listed.hosts[rank], listed.devices[rank]) for rank in ranks]
    if len(set(places)) < len(places):
        host, device = next(place for place, n in Counter(places).items() if n > 1)
        rule = "has two ranks" if host else "has two ranks, and hosts are not named"
        raise InputError(
            f"{source}: device {device} of {host or 'a host'}", rule, "give the list of one run"
        )
    counts = Counter(host for host, _ in places)
    if len(set(counts.values())) > 1:
        few, most = min(counts, key=counts.__getitem__), max(counts, key=counts.__getitem__)
        given = f"{source}: {few} with {counts[few]} GPUs, {most} with {counts[most]}"
        raise InputError(given, "hosts must have equally many GPUs each", "run on such")
    each = counts.most_common(1)[0][1]
    if each > MAX_GPUS:
        raise InputError(
            f"{source}: {each} GPUs on a host", f"must be at most {MAX_GPUS}", "name hosts"
        )
    if "" in counts:
        return (), each
    return tuple(host.replace(" ", "") for host in counts), each


def _product(listed: DeviceList, source: str) -> str:
    products = sorted(set(listed.products.values()))
    if len(products) > 1:
        shown = " and ".join(ascii(name[:40]) for name in products[:2])
        raise InputError(
            f"{source}: GPUs {shown}", "all hosts must have the same GPUs", "run on such"
        )
    return products[0]


def _node(source: str, gpus: int, product: str) -> NodeFacts:
    none = (0,) * gpus
    return NodeFacts(
        source,
        tuple(
            Accelerator(f"GPU{i}", model_of_product(product), called=product) for i in range(gpus)
        ),
        (),
        (none,) * gpus,
        none,
        ((None,) * gpus,) * gpus,
        linked=False,
    )
