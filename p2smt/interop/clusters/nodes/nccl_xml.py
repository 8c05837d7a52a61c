"""Reads NCCL's (and RCCL's) topology XML: input files of clouds, and full dumps.

Facts about it (NVIDIA/nccl, src/graph/xml.cc and topo.cc; ROCm/rccl has ``xgmi`` for ``nvlink``):
system > cpu > pci > pci.. > gpu > nvlink, and nic > net.  ``class`` is the PCI class: 0x03.. (AMD
also 0x12..) a GPU, 0x02.. a network card (0x0207 InfiniBand), others bridges.  ``link_speed`` times
``link_width`` is the link towards the CPU.  ``speed`` of a net is in Mb/s.  ``nvlink`` names its
target by bus id, ``tclass`` 0x068000 is an NVSwitch.  Input files have neither gpu nor net: NCCL
adds them, and the NVLinks, as it runs.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from xml.sax.handler import ContentHandler

from p2smt.errors import InputError
from p2smt.interop.clusters.nodes.gpu_models import (
    PCIE_GENERATIONS,
    chip_of_gcn,
    gpu_model,
    model_of_chip,
    model_of_device,
)
from p2smt.interop.clusters.nodes.node_facts import (
    MAX_CARDS,
    MAX_GPUS,
    Accelerator,
    BusPath,
    CardPort,
    NodeFacts,
)
from p2smt.interop.safe_xml import error_at, feed_xml

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from xml.sax.xmlreader import AttributesImpl


NAME = "NCCL topology XML"
_HEAD = 64 * 1024
_PASSED = (("<?", "?>"), ("<!--", "-->"))
_ROOT = re.compile(r"<system\b")
_LANES = 16
_SPEEDS = {"2.5": 1, "5": 2, "8": 3, "16": 4, "32": 5, "64": 6}
_SPEED = re.compile(r"([0-9]{1,2}(?:\.[0-9])?) GT/s(?: PCIe)?")
_NUMBER = re.compile(r"[0-9]{1,12}")
_LINKS = ("nvlink", "xgmi")
_SWITCH = "0x068000"
_INTERFACE = re.compile(r"eth\d|en[opsx]|bond")
_EFA = {"0xefa0": "efa", "0xefa1": "efa2", "0xefa2": "efa2", "0xefa3": "efa3"}
_EFA_FIRST_BYTES_PER_S = 12.5e9


def is_nccl_xml(text: str) -> bool:
    """Whether a text looks like one: after comments and the like comes <system."""
    at, head = 0, text[:_HEAD]
    while True:
        at += len(head[at:]) - len(head[at:].lstrip("\ufeff \t\r\n"))
        closing = next((end for start, end in _PASSED if head.startswith(start, at)), None)
        if closing is None:
            return bool(_ROOT.match(head, at))
        at = head.find(closing, at) + len(closing)
        if at < len(closing):
            return False


def parse_nccl_xml(text: str, source: str) -> NodeFacts:
    """The node in a topology file.

    Raises:
        InputError: it is malformed, or has no GPU.
    """
    root = xml_tree(text, source)
    if root.name != "system":
        raise root.error("is the root, not <system>", "give a topology file of NCCL")
    cpus, lost = _one_host(root)
    gpus = _ordered(list(_gpus(cpus)))
    ports = list(_ports([*cpus, *root.each("nic")]))
    _check_counts(gpus, ports, source)
    if len(gpus) != len({_bus(gpu) for gpu in gpus}):
        raise InputError(source, "two GPUs have one busid", "correct it")
    chips = [chip for gpu in gpus for chip in list(gpu.each("gpu"))[:1]]
    linked = len(chips) == len(gpus)
    pairs, to_switch, astray = _links(gpus)
    if astray:
        lost += (f"{astray} links lead from GPUs to themselves, or to what is no GPU: left out",)
    lost += tuple(_disagreeing(gpus))
    return NodeFacts(
        source,
        tuple(_accelerator(gpu) for gpu in gpus),
        tuple(port.facts for port in ports),
        pairs,
        to_switch,
        _nearness([*gpus, *(port.device for port in ports)]),
        linked,
        any(chip.text("gcn") or any(chip.each("xgmi")) for chip in chips),
        _socket(cpus),
        lost,
        _cpu(cpus),
    )


def _one_host(root: TreeElement) -> tuple[list[TreeElement], tuple[str, ...]]:
    """The CPUs of the first host; a dump of a domain that spans hosts has several."""
    cpus = list(root.each("cpu"))
    hosts = list(dict.fromkeys(cpu.text("host_hash") for cpu in cpus))
    if len(hosts) < 2:
        return cpus, ()
    kept = [cpu for cpu in cpus if cpu.text("host_hash") == hosts[0]]
    return kept, (
        f"of {len(hosts)} hosts in the file the first is read: if NVLink joins them, that is lost",
    )


def _check_counts(gpus: list[TreeElement], ports: list[_Port], source: str) -> None:
    if not gpus:
        rule = "has no GPU (a <pci> of class 0x03..)"
        raise InputError(source, rule, "give the topology of a node with GPUs")
    if len(gpus) > MAX_GPUS or len(ports) > MAX_CARDS:
        rule = f"a node has at most {MAX_GPUS} GPUs and {MAX_CARDS} network cards"
        raise InputError(f"{source}: {len(gpus)} GPUs, {len(ports)} cards", rule)


def _below(element: TreeElement) -> Iterator[TreeElement]:
    """Everything inside, in document order."""
    todo = element.inside[::-1]
    while todo:
        found = todo.pop()
        yield found
        todo.extend(found.inside[::-1])


def _gpus(cpus: list[TreeElement]) -> Iterator[TreeElement]:
    for cpu in cpus:
        for element in _below(cpu):
            kind = element.text("class").lower()
            is_gpu = kind.startswith(("0x03", "0x12")) or any(element.each("gpu"))
            if element.name == "pci" and is_gpu:
                yield element


def _ordered(gpus: list[TreeElement]) -> list[TreeElement]:
    """As CUDA numbers them: as the file says, or by bus id."""
    numbers = [_whole(chip, "dev") for gpu in gpus for chip in list(gpu.each("gpu"))[:1]]
    if len(numbers) == len(gpus) == len(set(numbers)) and None not in numbers:
        pairs = zip(numbers, range(len(gpus)), strict=True)
        return [gpus[i] for _, i in sorted((n or 0, i) for n, i in pairs)]
    return sorted(gpus, key=_bus)


def _bus(element: TreeElement) -> str:
    bus = element.text("busid").lower()
    if not re.fullmatch(r"[0-9a-f]{1,8}:[0-9a-f]{1,2}:[0-9a-f]{1,2}\.[0-9a-f]", bus):
        raise element.error(f"has busid={bus[:40]!r}", "write it like 0000:0f:00.0")
    return bus


def _whole(element: TreeElement, name: str) -> int | None:
    """A whole number; None where it is missing.

    Raises:
        InputError: it is there, and is none.
    """
    text = element.text(name)
    if not text:
        return None
    if not _NUMBER.fullmatch(text):
        raise element.error(f"has {name}={text[:40]!r}, not a whole number", "correct it")
    return int(text)


def _rate(element: TreeElement) -> float | None:
    """A PCIe link in each direction; None: not told."""
    found = _SPEED.fullmatch(element.text("link_speed"))
    generation = _SPEEDS.get(found[1].removesuffix(".0")) if found else None
    width = _whole(element, "link_width")
    if generation is None:
        return None
    if width is not None and width > _LANES:
        raise element.error(f"has link_width={width}", f"write at most {_LANES} lanes")
    return PCIE_GENERATIONS[generation] * (width or _LANES) / _LANES


def _accelerator(gpu: TreeElement) -> Accelerator:
    bridges = [element for element in gpu.way() if element.name == "pci"]
    rates = [rate for rate in map(_rate, bridges) if rate is not None]
    model, called, chip = _model(gpu)
    return Accelerator(_bus(gpu), model, _rate(gpu), min(rates, default=None), called, chip)


def _model(gpu: TreeElement) -> tuple[str, str, str]:
    """The model of a GPU, what it is called, and the chip where that alone is told.

    By its device number, or what the GPU itself says of its generation.
    """
    device, chips = gpu.text("device"), list(gpu.each("gpu"))
    gcn = chips[0].text("gcn")[:40] if chips else ""
    if named := model_of_device(device):
        return named, f"device {device}{f', gcn {gcn}' if gcn else ''}", ""
    if not chips:
        return "", f"device {device[:20]}" if device else "", ""
    chip = chip_of_gcn(gcn) if any(chips[0].each("xgmi")) else _chip(chips[0])
    return model_of_chip(chip), f"gcn {gcn}" if gcn else chip.replace("_", " "), chip


def _disagreeing(gpus: list[TreeElement]) -> Iterator[str]:
    """What is said where a device number and what the GPU says of its chip are of two models."""
    for gpu in gpus:
        model, called, _ = _model(gpu)
        chip = next((_chip(one) for one in gpu.each("gpu")), "")
        if model and chip and gpu_model(model).chip != chip:
            yield f"{called} is {model}, and the GPU is said to be {chip}: {model} is taken"
            return


def _chip(chip: TreeElement) -> str:
    """The chip that a GPU says it is; empty where it says none."""
    capability = _whole(chip, "sm")
    return chip_of_gcn(chip.text("gcn")[:40]) or (f"sm_{capability}" if capability else "")


def _links(gpus: list[TreeElement]) -> tuple[tuple[tuple[int, ...], ...], tuple[int, ...], int]:
    """Links between GPUs, those of each GPU to switches, and how many lead elsewhere."""
    number = {_bus(gpu): i for i, gpu in enumerate(gpus)}
    pairs = [[0] * len(gpus) for _ in gpus]
    to_switch = [0] * len(gpus)
    astray = 0
    for i, gpu in enumerate(gpus):
        for chip in list(gpu.each("gpu"))[:1]:
            for link in (one for name in _LINKS for one in chip.each(name)):
                count, target = _whole(link, "count") or 0, link.text("target").lower()
                if count > 64:
                    raise link.error(f"has count={count}", "a GPU has at most 64 links")
                if number.get(target, i) != i:
                    pairs[i][number[target]] += count
                elif link.text("tclass").lower() == _SWITCH or target == "fffffff:ffff:ff":
                    to_switch[i] += count
                else:
                    astray += count
    _check_symmetric(gpus, pairs)
    return tuple(map(tuple, pairs)), tuple(to_switch), astray


def _check_symmetric(gpus: list[TreeElement], pairs: list[list[int]]) -> None:
    for i, gpu in enumerate(gpus):
        for j in range(i):
            if pairs[i][j] != pairs[j][i]:
                rule = f"has {pairs[i][j]} links to {_bus(gpus[j])}, which has {pairs[j][i]} back"
                raise gpu.error(rule, "correct it, or dump the file again")


@dataclass(frozen=True, slots=True)
class _Port:
    """A port, and the element whose place in the tree is that of its card."""

    device: TreeElement
    facts: CardPort


def _ports(cpus: list[TreeElement]) -> Iterator[_Port]:
    """Of cards on PCIe, and of those that the file has elsewhere: under a CPU, or none."""
    for cpu in cpus:
        for element in (cpu, *_below(cpu)):
            kind = element.text("class").lower()
            nics = list(element.each("nic"))
            if element.name == "pci" and (nics or kind.startswith("0x02")):
                yield from _card(element, [net for nic in nics for net in nic.each("net")])
            elif element.name == "nic" and (element.parent is None or element.parent.name != "pci"):
                yield from _off_pcie(element)


def _card(card: TreeElement, nets: list[TreeElement]) -> Iterator[_Port]:
    """The ports of a card; one where the file lists none."""
    bus, fabric, pcie = _bus(card), _fabric(card), _rate(card)
    if not nets:
        first = card.text("device").lower() == "0xefa0"
        known = _EFA_FIRST_BYTES_PER_S if first else None
        yield _Port(card, CardPort(bus, bus, known, fabric, pcie))
    for net in nets:
        speed = _whole(net, "speed")
        rate = speed * 1e6 / 8 if speed else None
        yield _Port(card, CardPort(net.text("name")[:64] or bus, bus, rate, fabric, pcie))


def _off_pcie(nic: TreeElement) -> Iterator[_Port]:
    """The ports of a card whose place on PCIe the file does not tell."""
    for number, net in enumerate(nic.each("net")):
        name, speed = net.text("name")[:64], _whole(net, "speed")
        fabric = "ethernet" if _INTERFACE.match(name) else ""
        rate = speed * 1e6 / 8 if speed else None
        yield _Port(nic, CardPort(name or f"net {number}", name, rate, fabric))


def _fabric(card: TreeElement) -> str:
    """What a card speaks: by its class, and by who made it; empty: not told."""
    kind, maker = card.text("class").lower(), card.text("vendor").lower()
    if kind.startswith("0x0207"):
        return "infiniband"
    if maker == "0x1d0f":
        return _EFA.get(card.text("device").lower(), "")
    if maker == "0x1ae0":
        return "gvnic"
    return "roce" if maker == "0x15b3" else ""


def _nearness(devices: list[TreeElement]) -> tuple[tuple[BusPath | None, ...], ...]:
    """What lies between each two devices, by what holds them."""
    ways = [[id(element) for element in device.way()] for device in devices]
    return tuple(tuple(_between(a, b) for b in ways) for a in ways)


def _between(one: list[int], other: list[int]) -> BusPath:
    """By the ways to the CPU: bridges that lie between two devices, the one that joins them too."""
    shared = next(
        (i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b),
        min(len(one), len(other)),
    )
    if shared == 0:
        return BusPath.SYS
    if shared == 1:
        return BusPath.PHB
    bridges = len(one) + len(other) - 2 * shared + 1
    return BusPath.PIX if bridges == 1 else BusPath.PXB


def _cpu(cpus: list[TreeElement]) -> str:
    """Whose CPUs they are: by the maker of the first, or its architecture."""
    about: Mapping[str, str] = cpus[0].attributes if cpus else {}
    makers = {"GenuineIntel": "intel", "AuthenticAMD": "amd"}
    return "arm" if about.get("arch") == "arm64" else makers.get(about.get("vendor", ""), "")


def _socket(cpus: list[TreeElement]) -> float | None:
    """What joins the CPUs, as NCCL takes it to be (topo.h); None: it would not know either."""
    if not cpus:
        return None
    about: Mapping[str, str] = cpus[0].attributes
    if about.get("arch") == "ppc64":
        return 32e9
    if about.get("arch") == "arm64":
        return 6e9
    if about.get("vendor") == "AuthenticAMD":
        return 16e9
    model = _whole(cpus[0], "modelid")
    if about.get("vendor") != "GenuineIntel" or model is None:
        return None
    steps = ((0xCF, 40e9), (0x8F, 22e9), (0x55, 10e9), (0, 6e9))
    return next(rate for least, rate in steps if model >= least)


# An XML document as a tree of bounded size and depth.


MAX_CHARACTERS = 8 * 1024 * 1024
MAX_ELEMENTS = 20_000
MAX_DEPTH = 32


@dataclass(slots=True)
class TreeElement:
    """An element with what it holds; ``parent`` is None for the root."""

    name: str
    attributes: Mapping[str, str]
    line: int
    source: str
    parent: TreeElement | None = None
    inside: list[TreeElement] = field(default_factory=list)

    def error(self, rule: str, remedy: str) -> InputError:
        """An error about this element; it names the file and the line."""
        return error_at(self.source, self.line, f"<{self.name[:40]}> {rule}", remedy)

    def text(self, name: str) -> str:
        """An attribute; empty if it is missing."""
        return self.attributes.get(name, "").strip()

    def each(self, name: str) -> Iterator[TreeElement]:
        """The elements of that name directly inside."""
        return (element for element in self.inside if element.name == name)

    def way(self) -> list[TreeElement]:
        """What holds it, outermost first, without the root and itself."""
        found: list[TreeElement] = []
        above = self.parent
        while above is not None and above.parent is not None:
            found.append(above)
            above = above.parent
        return found[::-1]


def xml_tree(text: str, source: str) -> TreeElement:
    """The root of an XML document.

    Raises:
        InputError: it is not XML, has what is refused, or is too large or too deep.
    """
    handlers: list[_Grower] = []

    def made(line: Callable[[], int]) -> ContentHandler:
        handlers.append(_Grower(line, source))
        return handlers[-1]

    feed_xml(text, source, MAX_CHARACTERS, made)
    if not handlers[0].top.inside:
        raise InputError(source, "is empty", "give an XML document")
    return handlers[0].top.inside[0]


class _Grower(ContentHandler):
    """Puts the tree together."""

    def __init__(self, line: Callable[[], int], source: str) -> None:
        super().__init__()
        self._line, self._source = line, source
        self._open = [TreeElement("", {}, 1, source)]
        self._count = 0

    @property
    def top(self) -> TreeElement:
        """What holds the root."""
        return self._open[0]

    def startElement(self, name: str, attrs: AttributesImpl) -> None:  # noqa: N802
        above = self._open[-1] if len(self._open) > 1 else None
        element = TreeElement(name, dict(attrs.items()), self._line(), self._source, above)
        self._count += 1
        if self._count > MAX_ELEMENTS:
            raise element.error(f"is beyond {MAX_ELEMENTS} elements", "shorten the file")
        if len(self._open) > MAX_DEPTH:
            raise element.error(f"is nested deeper than {MAX_DEPTH}", "flatten it")
        self._open[-1].inside.append(element)
        self._open.append(element)

    def endElement(self, name: str) -> None:  # noqa: ARG002, N802
        self._open.pop()
