"""Files of a cluster, of any format and for any part of it, as one topology.

A format is a row of the table of :func:`formats`; the first that recognises a text reads it.
"""

from __future__ import annotations

import math
import os
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from p2smt.cluster.file import MAX_BYTES as MAX_TOPOLOGY_BYTES
from p2smt.cluster.file import dump_topology
from p2smt.cluster.hostlist import MAX_NAME
from p2smt.cluster.topology import MAX_DEVICES, MAX_LEVELS, Topology
from p2smt.errors import InputError, did_you_mean
from p2smt.files.yaml_text import MAX_PARTS as MAX_YAML_PARTS
from p2smt.files.yaml_text import Plain, dump_yaml, load_yaml, parts_of, read_text
from p2smt.interop.clusters.astra_sim import KINDS, Dimension, level_of
from p2smt.interop.clusters.combine import ImportOptions, combined
from p2smt.interop.clusters.kubernetes import (
    BLOCK_TIERS,
    MAX_BYTES,
    TIERS,
    ClusterFormat,
    Facts,
    Holder,
    OutsideFacts,
    Path,
    each_of,
    outside_of,
    parsed,
    read_kubernetes,
    recognises_kubernetes,
)
from p2smt.interop.clusters.nodes import facts as rocm_matrix
from p2smt.interop.clusters.nodes import nccl_xml, topo_matrix
from p2smt.interop.clusters.nodes.facts import MAX_GPUS, Accelerator, NodeFacts, Told
from p2smt.interop.clusters.nodes.models import model_of_product
from p2smt.interop.clusters.nodes.reduce import NOTHING_TOLD, facts_of_node
from p2smt.interop.clusters.slurm import MAX_CHARACTERS as MAX_LINE_CHARACTERS
from p2smt.interop.clusters.slurm import (
    SLURM_CONF,
    HostNames,
    SlurmLine,
    lines_of,
    read_slurm_yaml,
    recognises_slurm_yaml,
)
from p2smt.interop.nccl_tests.elements import DeviceList, unprefixed

MAX_FILES = 16
_MARK = "\ufeff"  # some editors put it before UTF-8


def formats(options: ImportOptions) -> tuple[ClusterFormat, ...]:
    """The formats that are read, those that are told most surely first."""
    return (
        SCONTROL,
        SLURM_CONF,
        PHYSICAL_HOSTS,
        ClusterFormat(
            "kubectl get nodes -o json",
            recognises_kubernetes,
            partial(read_kubernetes, keys=options.labels),
        ),
        ClusterFormat(
            "Slurm topology.yaml",
            recognises_slurm_yaml,
            partial(read_slurm_yaml, name=options.topology_name),
        ),
        ASTRA_SIM,
        *node_formats(options.told),
    )


def read_clusters(paths: Sequence[str], options: ImportOptions) -> tuple[Topology, tuple[str, ...]]:
    """The topology that files tell of together, and sentences on what was lost or filled in.

    Raises:
        InputError: a file is malformed or of no known format, or they do not tell of one cluster.
    """
    if not 1 <= len(paths) <= MAX_FILES:
        raise InputError(f"{len(paths)} files", f"give 1 to {MAX_FILES} files of a cluster")
    return combined([facts_of(path, options) for path in paths], options)


def import_text(topology: Topology) -> str:
    """The topology as the text of a file.

    Raises:
        InputError: the file would be larger than what is read.
    """
    data = dump_topology(topology)
    _check_written(parts_of(data), MAX_YAML_PARTS, "parts")  # before the text: it takes a while
    found = dump_yaml(data)
    _check_written(len(found.encode()), MAX_TOPOLOGY_BYTES, "bytes")
    return found


def _check_written(count: int, most: int, what: str) -> None:
    if count > most:
        rule = f"would not be read again: at most {most}"
        remedy = "name the hosts of your job alone: --hosts FILE"
        raise InputError(f"a topology file of {count} {what}", rule, remedy)


def facts_of(path: str, options: ImportOptions) -> Facts:
    """What one file tells.

    Raises:
        InputError: it cannot be read, is of no known format, or malformed.
    """
    text = read_text(path, "cluster file", MAX_BYTES).removeprefix(_MARK)
    known = formats(options)
    for one in known:
        if one.recognises(text):
            return one.read(text, os.path.basename(path)[:100])
    rule = f"is none of: {', '.join(one.name for one in known)}"
    raise InputError(f"cluster file {path[:200]!r}", rule, "give one of them")


# Reads an ASTRA-sim network file.


_KEYS = ("topology", "npus_count", "bandwidth", "latency")
_NUMBER = re.compile(r"[0-9]{1,12}(\.[0-9]{0,12})?([eE][+-]?[0-9]{1,2})?")
_HEAD = 64 * 1024


def is_astra_sim(text: str) -> bool:
    """Whether a text looks like one."""
    return bool(re.search(r"^[ \t]*[\"']?npus_count[\"']?[ \t]*:", text[:_HEAD], re.M))


def read_astra_sim(text: str, source: str) -> Facts:
    """The levels in a network file, named dim1 (the innermost), dim2, ..

    Raises:
        InputError: it is malformed, or of more levels or devices than a topology may have.
    """
    found = dimensions_in(text, source)
    levels, under = [], 1
    for number, dimension in enumerate(found, 1):
        levels.append(level_of(dimension, f"dim{number}", under))
        under *= dimension.size
    return Facts(source, whole=tuple(reversed(levels)))


def dimensions_in(text: str, source: str) -> list[Dimension]:
    """The dimensions of a network file, the innermost first."""
    lists = _lists(load_yaml(text, source), source)
    kinds, sizes, rates, latencies = (lists[key] for key in _KEYS)
    found = [
        Dimension(
            KINDS[_kind(kind, f"{source}: topology[{i}]")],
            _size(size, f"{source}: npus_count[{i}]"),
            _number(rate, f"{source}: bandwidth[{i}]", "GB/s", 1e-9, 1e9) * 1e9,
            _number(latency, f"{source}: latency[{i}]", "ns", 0, 1e15) / 1e9,
        )
        for i, (kind, size, rate, latency) in enumerate(
            zip(kinds, sizes, rates, latencies, strict=True)
        )
    ]
    devices = math.prod(dimension.size for dimension in found)
    if devices > MAX_DEVICES:
        raise InputError(f"{source}: {devices} NPUs", f"at most {MAX_DEVICES} are supported")
    return found


def _lists(data: Plain, source: str) -> dict[str, list[Plain]]:
    if not isinstance(data, dict):
        raise InputError(source, f"must be a mapping with {', '.join(_KEYS)}", "correct the file")
    for key in data:
        if key not in _KEYS:
            remedy = did_you_mean(key, _KEYS) or f"its keys are {', '.join(_KEYS)}"
            raise InputError(f"{source}: key {key[:40]!r}", "is none of a network file", remedy)
    found: dict[str, list[Plain]] = {}
    for key in _KEYS:
        value = data.get(key)
        if not isinstance(value, list) or not 1 <= len(value) <= MAX_LEVELS:
            rule = f"must be a list with an entry for each of 1 to {MAX_LEVELS} dimensions"
            raise InputError(f"{source}: {key}", rule, f"write {key}: [ .. ]")
        found[key] = value
    counts = {key: len(value) for key, value in found.items()}
    if len(set(counts.values())) > 1:
        shown = ", ".join(f"{key} {count}" for key, count in counts.items())
        raise InputError(f"{source}: {shown}", "must have as many entries each", "correct it")
    return found


def _kind(value: Plain, where: str) -> str:
    if not isinstance(value, str) or value not in KINDS:
        remedy = did_you_mean(str(value)[:40], tuple(KINDS)) or "pick one"
        rule = f"must be one of {', '.join(KINDS)}"
        raise InputError(f"{where}: {str(value)[:40]!r}", rule, remedy)
    return value


def _size(value: Plain, where: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 2 <= value <= MAX_DEVICES:
        rule = f"must be a whole number from 2 to {MAX_DEVICES}"
        raise InputError(f"{where}: {str(value)[:40]!r}", rule)
    return value


def _number(value: Plain, where: str, unit: str, low: float, high: float) -> float:
    """A number; those with a fraction come as text."""
    text = str(value) if isinstance(value, int | str) and not isinstance(value, bool) else ""
    found = float(text) if _NUMBER.fullmatch(text) else math.nan
    if not low <= found <= high:
        rule = f"must be a number of {unit} from {low:g} to {high:g}"
        raise InputError(f"{where}: {str(value)[:40]!r}", rule, "check its unit")
    return found


ASTRA_SIM = ClusterFormat("ASTRA-sim network YAML", is_astra_sim, read_astra_sim)


# The formats that tell what is inside a node.


MAX_CHARACTERS = 8 * 1024 * 1024


def node_formats(told: Told = NOTHING_TOLD) -> tuple[ClusterFormat, ...]:
    """The formats of nodes, as they are read with what is said beside the file."""

    def reader(parse: Callable[[str, str], NodeFacts]) -> Callable[[str, str], Facts]:
        return lambda text, source: facts_of_node(parse(_bounded(text, source), source), told)

    def ranks(text: str, source: str) -> Facts:
        return read_rank_headers(_bounded(text, source), source, told)

    return (
        ClusterFormat(nccl_xml.NAME, nccl_xml.is_nccl_xml, reader(nccl_xml.parse_nccl_xml)),
        ClusterFormat(
            rocm_matrix.NAME, rocm_matrix.is_rocm_matrix, reader(rocm_matrix.parse_rocm_matrix)
        ),
        ClusterFormat(
            topo_matrix.NAME, topo_matrix.is_topo_matrix, reader(topo_matrix.parse_topo_matrix)
        ),
        ClusterFormat(NAME, is_rank_headers, ranks),
    )


def _bounded(text: str, source: str) -> str:
    if len(text) > MAX_CHARACTERS:
        raise InputError(source, f"is longer than {MAX_CHARACTERS} characters", "shorten it")
    return text


# Reads the device list that nccl-tests prints: hosts, GPUs on each, and which they are.
# A line such as ``# Rank 0 Group 0 Pid 9 on h0 device 0 [0000:0f:00] NVIDIA H100 80GB HBM3``.  It
# tells neither what joins GPUs nor network cards; the links inside a node are those of the GPU's
# board, where its name tells it.


NAME = "nccl-tests device list"
MAX_LINE = 4096
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
    if not model and outside is not None:
        named = f"{each} GPUs of a host are {product or 'of no name'}"
        what = f"{source}: {named}, so the links between them are not told"
        return Facts(source, outside=outside, lost=(what,), devices=each)
    node = facts_of_node(_node(source, each, model_of_product(product)), told)
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
    for number, line in enumerate(text.split("\n"), 1):
        plain = unprefixed(line[:MAX_LINE])
        before = len(found.hosts)
        taken = found.take(plain, f"{source}, line {number}")
        again = taken and len(found.hosts) == before and not found.shortened
        if before and (again or _heads_table(plain)):
            break
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


def _node(source: str, gpus: int, model: str) -> NodeFacts:
    none = (0,) * gpus
    return NodeFacts(
        source,
        tuple(Accelerator(f"GPU{i}", model) for i in range(gpus)),
        (),
        (none,) * gpus,
        none,
        ((None,) * gpus,) * gpus,
        linked=False,
    )


# Where Google Cloud says that virtual machines are: ``resourceStatus.physicalHost``.
# Either as JSON (``gcloud compute instances list --format=json``), or as lines of names and
# locations in any order, with commas or blanks between them, as Google's cluster-toolkit asks for
# them:
#
#     gcloud compute instances list --format="csv[no-
#     heading](zone,resourceStatus.physicalHost,name)"
#     us-central1-a,/4d5e/0a1b/f00d,a3-0
#
# A location is ``/block/subblock/host``, on older machines ``/cluster/rack/host``, and one more
# level goes before it on some; the last part is the machine itself, and is no level.
# (cloud.google.com/compute/docs, sort_nodes.py of GoogleCloudPlatform/cluster-toolkit.)


MAX_PARTS = 6
_LINE = re.compile(r"^[^#\n/]{0,300}(^|[ \t,])/[\w.-]+/[\w.-]+", re.MULTILINE)
_NAME = re.compile(r"[A-Za-z0-9_.:-]+")
_PARTS = ("cluster", "block", "subblock", "host")
_HEADINGS = ("name", "zone", "physical_host", "physicalhost")
_ZONE = re.compile(r"[a-z]+-[a-z]+\d+-[a-z]")


def read_physical_hosts(text: str, source: str) -> Facts:
    """The machines of a list by where they are.

    Raises:
        InputError: no machine has a location, one is named twice, or locations are unequally deep.
    """
    if len(text) > MAX_LINE_CHARACTERS and not _is_json(text):
        raise InputError(source, f"is longer than {MAX_LINE_CHARACTERS} characters", "shorten it")
    found = _in_json(text, source) if _is_json(text) else _in_lines(text, source)
    paths: dict[str, Path] = {}
    loose: dict[str, None] = {}
    for name, location, where in found:
        if name in paths or name in loose:
            raise InputError(f"{where}: {name[:80]!r}", "is named twice", "name each once")
        if len(name) > MAX_NAME:
            raise InputError(where, f"has a name longer than {MAX_NAME} characters", "rename it")
        if location:
            paths[name] = _path(location, where)
        else:
            loose[name] = None
    depths = {len(path): name for name, path in paths.items()}
    if not paths:
        rule = "names no machine with a physicalHost"
        raise InputError(source, rule, "they need a compact placement, or a machine type that has")
    if len(depths) > 1:
        few, many = (depths[depth] for depth in (min(depths), max(depths)))
        rule = f"has fewer parts in its physicalHost than {many[:80]}"
        raise InputError(f"{source}: {few[:80]}", rule, "list machines of one kind")
    return Facts(source, outside_of(paths, tuple(loose)))


def _is_json(text: str) -> bool:
    return text.lstrip()[:1] in ("{", "[")


def _path(location: str, where: str) -> Path:
    parts = tuple(location.strip("/").split("/"))
    if not 2 <= len(parts) <= MAX_PARTS + 1 or not all(parts):
        rule = f"is a physicalHost of {len(parts)} parts, not 2 to {MAX_PARTS + 1}"
        raise InputError(f"{where}: {location[:80]!r}", rule, "it reads like /block/subblock/host")
    return parts[:-1]


def _in_json(text: str, source: str) -> Iterator[tuple[str, str, str]]:
    data = parsed(text, source)
    if isinstance(data, dict) and "items" not in data:
        data = [data]
    for item, where in each_of(data, source, "items"):
        name = item.get("name") if isinstance(item, dict) else None
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise InputError(where, "has no name", "give gcloud compute instances list")
        yield name, _location(item.get("resourceStatus"), where), where


def _location(status: Any, where: str) -> str:
    """The location of a machine, or an empty text."""
    found = status.get("physicalHost", "") if isinstance(status, dict) else ""
    parts = status.get("physicalHostTopology") if isinstance(status, dict) else None
    if not found and isinstance(parts, dict):
        found = "".join(f"/{parts[part]}" for part in _PARTS if parts.get(part))
    if not isinstance(found, str):
        raise InputError(f"{where}: physicalHost", "must be text", "give the output as it is")
    return found


def _in_lines(text: str, source: str) -> Iterator[tuple[str, str, str]]:
    for number, line in enumerate(text.splitlines(), start=1):
        words = [word for word in re.split(r"[\s,]+", line.partition("#")[0].strip()) if word]
        where = f"{source}, line {number}"
        if not words or any(word.lower() in _HEADINGS for word in words):
            continue
        places = [word for word in words if word.startswith("/")]
        others = [word for word in words if not word.startswith("/")]
        names = [word for word in others if not _ZONE.fullmatch(word)]
        if len(places) > 1 or len(names) != 1 or not _NAME.fullmatch(names[0]):
            rule = "is not a name and a physicalHost, with a zone or without"
            raise InputError(where, rule, "write it like us-central1-a,/b/s/h,vm-0")
        yield names[0], places[0] if places else "", where


def _recognises(text: str) -> bool:
    if _is_json(text):
        return '"physicalHost' in text or '"resourceStatus"' in text
    return _LINE.search(text) is not None


PHYSICAL_HOSTS = ClusterFormat("list of physicalHost", _recognises, read_physical_hosts)


# What ``scontrol show topology`` prints: a line per switch or block.
#     SwitchName=leaf0 Level=0 LinkSpeed=1 Nodes=n[01-05]
#     SwitchName=spine Level=1 LinkSpeed=1 Nodes=n[01-12] Switches=leaf[0-1]
#
# The nodes of a switch of switches are all that lie under it, so they are not read.  Blocks print
# ``BlockName=b0 BlockIndex=0 Nodes=n[01-04] BlockSize=4``, and aggregated ones
# ``AggregatedBlock=..`` (src/plugins/topology of SchedMD/slurm).


_SIGN = re.compile(
    r"^(SwitchName=\S+ Level=|BlockName=\S+ BlockIndex=|AggregatedBlock=)", re.MULTILINE
)
_SCONTROL_KEYS = {
    "switchname": ("switchname", "level", "linkspeed", "nodes", "switches"),
    "blockname": ("blockname", "blockindex", "nodes", "blocksize"),
    "aggregatedblock": ("aggregatedblock", "blockindex", "nodes", "blocksize"),
}


def read_scontrol(text: str, source: str) -> Facts:
    """The switches or blocks that scontrol printed.

    Raises:
        InputError: a line that belongs to neither, both in one text, or a line that was cut off.
    """
    names = HostNames()
    holders: list[Holder] = []
    kinds: dict[str, str] = {}
    for line in lines_of(text, source):
        first = next(iter(line.words))
        if first not in _SCONTROL_KEYS:
            rule = f"begins with {first[:40]!r}, not with SwitchName or BlockName"
            raise InputError(line.where, rule, "give what scontrol show topology prints alone")
        line.only(_SCONTROL_KEYS[first])
        kinds.setdefault(first, line.where)
        if first != "aggregatedblock":
            holders.append(_holder(line, first, names))
    if "switchname" in kinds and len(kinds) > 1:
        other = next(where for kind, where in kinds.items() if kind != "switchname")
        raise InputError(other, "has blocks beside switches", "give one topology at a time")
    if not holders:
        raise InputError(source, "names no switch and no block", "give the whole output")
    lost = (
        (f"{source}: aggregated blocks are what Slurm plans with, and no levels",)
        if "aggregatedblock" in kinds
        else ()
    )
    tiers = TIERS if "switchname" in kinds else BLOCK_TIERS
    return Facts(source, OutsideFacts(tuple(holders), tiers=tiers), lost=lost)


def _holder(line: SlurmLine, first: str, names: HostNames) -> Holder:
    if "nodes" not in line.words and "switches" not in line.words and "level" not in line.words:
        raise InputError(line.where, "is cut off", "give the whole output of scontrol")
    switches = names.named(line.words.get("switches", ""), line.where)
    hosts = () if switches else names.named(line.words.get("nodes", ""), line.where)
    return Holder(line.words[first], switches, hosts, line.number)


SCONTROL = ClusterFormat(
    "scontrol show topology", lambda text: _SIGN.search(text) is not None, read_scontrol
)
