"""Small files of nodes, made as the tools print them.

Shapes are those of real ones: NCCL input files (Azure/azhpc-images, aws/aws-ofi-nccl), full dumps
(NVIDIA/nccl#1505, oracle-quickstart/oci-hpc), RCCL's models (ROCm/rccl, tools/topo_expl/models),
``nvidia-smi topo -m`` of a DGX-1 (microsoft/msccl-tools, tests/test_topologies.py), of 8 A100
(stas00/ml-engineering, network), with NIC0.. and a legend (NVIDIA/nccl#1505), underlined and with
empty affinities (GB200), and ``rocm-smi --showtopo`` (ROCm/rocm_smi_lib#108).
"""

from __future__ import annotations

from collections.abc import Sequence

LEGEND = """
Legend:

  X    = Self
  SYS  = Connection traversing PCIe as well as the SMP interconnect between NUMA nodes
  NV#  = Connection traversing a bonded set of # NVLinks
"""
NVSWITCH = "0x068000"


def pci(bus: str, kind: str, inside: str = "", **attributes: str) -> str:
    """A <pci>: bridge 0x0604, GPU 0x0302, Ethernet 0x0200, InfiniBand 0x0207."""
    told = {"link_speed": "16 GT/s", "link_width": "16"} | attributes
    shown = " ".join(f'{name}="{value}"' for name, value in told.items())
    return f'<pci busid="{bus}" class="{kind}" {shown}>\n{inside}</pci>\n'


def gpu(number: int, links: str = "", sm: int = 80, gcn: str | int = "") -> str:
    chip = f' gcn="{gcn}"' if gcn else ""
    return f'<gpu dev="{number}" sm="{sm}"{chip} rank="{number}" gdr="1">{links}</gpu>\n'


def link(target: str, count: int, kind: str = NVSWITCH, name: str = "nvlink") -> str:
    return f'<{name} target="{target}" count="{count}" tclass="{kind}"/>\n'


def net(number: int, speed: int = 200000, ports: int = 1) -> str:
    found = (
        f'<net name="mlx5_{number + i}" dev="{number + i}" speed="{speed}" port="{i + 1}"/>'
        for i in range(ports)
    )
    return f"<nic>{''.join(found)}</nic>\n"


def cpu(number: int, inside: str, **attributes: str) -> str:
    told = {"arch": "x86_64", "vendor": "AuthenticAMD", "familyid": "23", "modelid": "49"}
    shown = " ".join(f'{name}="{value}"' for name, value in (told | attributes).items())
    return f'<cpu numaid="{number}" affinity="0f" {shown}>\n{inside}</cpu>\n'


def system(*cpus: str) -> str:
    return f'<system version="1">\n{"".join(cpus)}</system>\n'


def bus(number: int) -> str:
    return f"0000:{number + 16:02x}:00.0"


def input_file(cpus: int = 4, each: int = 2, device: str = "", nic: str = "0x020700") -> str:
    """A cloud's input file: a switch per CPU with some GPUs and as many cards."""
    known = {"device": device} if device else {}
    parts = []
    for c in range(cpus):
        inside = "".join(
            pci(bus(c * each + i), "0x030200", **known) + pci(bus(64 + c * each + i), nic)
            for i in range(each)
        )
        parts.append(cpu(c, pci(f"ffff:ff:0{c + 1}.0", "0x060400", inside)))
    return system(*parts)


def dump(
    links: Sequence[str], sm: int = 80, speed: int = 200000, ports: int = 1, gcn: str | int = ""
) -> str:
    """A full dump of two CPUs: each GPU shares a switch with a card of some ports."""
    half = (len(links) + 1) // 2
    cpus = []
    for c in range(2):
        some = range(c * half, min(len(links), (c + 1) * half))
        inside = "".join(
            pci(
                bus(96 + i),
                "0x060400",
                pci(bus(i), "0x030200", gpu(i, links[i], sm, gcn))
                + pci(bus(64 + i), "0x020700", net(i * ports, speed, ports)),
            )
            for i in some
        )
        cpus.append(cpu(c, inside))
    return system(*cpus)


def switched(gpus: int = 8, counts: Sequence[int] = (2, 2, 2, 2, 2, 2), **more: int) -> str:
    """A dump of GPUs that have so many links to each NVSwitch."""
    links = "".join(link(bus(160 + i), count) for i, count in enumerate(counts))
    return dump([links] * gpus, **more)


def meshed(pairs: Sequence[Sequence[int]], name: str = "nvlink", gcn: str = "", **more: int) -> str:
    """A dump of GPUs that have links to each other."""
    return dump(
        [
            "".join(link(bus(j), n, "0x030200", name) for j, n in enumerate(row) if n)
            for row in pairs
        ],
        gcn=gcn,
        **more,
    )


def matrix(
    cells: Sequence[Sequence[str]], cards: Sequence[str] = (), tail: str = "\t0-23\t0\t\tN/A"
) -> str:
    """What nvidia-smi topo -m prints of these cells: GPUs first, then cards."""
    gpus = len(cells) - len(cards)
    names = [f"GPU{i}" for i in range(gpus)] + list(cards)
    head = "\t" + "\t".join(names) + "\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\n"
    rows = [
        "\t".join([name, *(f" {c} " if c == "X" else c for c in row)])
        + (tail if i < gpus else "\t\t\t")
        for i, (name, row) in enumerate(zip(names, cells, strict=True))
    ]
    return head + "\n".join(rows) + "\n" + LEGEND


def alike(count: int, cell: str) -> list[list[str]]:
    """Cells of GPUs that are all joined alike."""
    return [["X" if i == j else cell for j in range(count)] for i in range(count)]


def with_cards(cells: Sequence[Sequence[str]], near: Sequence[Sequence[str]]) -> list[list[str]]:
    """The cells with cards: ``near[c][g]`` is what lies between card c and GPU g."""
    found = [[*row, *(card[i] for card in near)] for i, row in enumerate(cells)]
    for c, card in enumerate(near):
        others = ["X" if c == d else "SYS" for d in range(len(near))]
        found.append([*card, *others])
    return found


# A DGX-1's hybrid cube mesh, as its matrix has it.
CUBE = (
    (0, 1, 1, 2, 2, 0, 0, 0),
    (1, 0, 2, 1, 0, 2, 0, 0),
    (1, 2, 0, 2, 0, 0, 1, 0),
    (2, 1, 2, 0, 0, 0, 0, 1),
    (2, 0, 0, 0, 0, 1, 1, 2),
    (0, 2, 0, 0, 1, 0, 2, 1),
    (0, 0, 1, 0, 1, 2, 0, 2),
    (0, 0, 0, 1, 2, 1, 2, 0),
)


def cells_of(pairs: Sequence[Sequence[int]], other: str = "SYS") -> list[list[str]]:
    return [
        ["X" if i == j else f"NV{n}" if n else other for j, n in enumerate(row)]
        for i, row in enumerate(pairs)
    ]


def devices(hosts: Sequence[str], each: int, product: str = "NVIDIA H100 80GB HBM3") -> str:
    """A list of devices as nccl-tests prints it, above the head of a table."""
    lines = [
        f"#  Rank {h * each + d:2} Group  0 Pid {99 + d} on {host:>10} device {d:2} [0x0{d}] "
        f"{product}\n"
        for h, host in enumerate(hosts)
        for d in range(each)
    ]
    return (
        "# nThread 1 nGpus 1\n# Using devices\n" + "".join(lines) + "#\n# size time algbw busbw\n"
    )


def rocm(kinds: Sequence[Sequence[str]], weights: Sequence[Sequence[int]] = ()) -> str:
    """What rocm-smi --showtopo prints."""
    names = [f"GPU{i}" for i in range(len(kinds))]

    def block(title: str, rows: Sequence[Sequence[object]]) -> str:
        body = "".join(
            f"{name}   {'  '.join(str(cell) for cell in row)}   \n"
            for name, row in zip(names, rows, strict=True)
        )
        return f"==== {title} ====\n       {'   '.join(names)}   \n{body}\n"

    found = "==== ROCm System Management Interface ====\n"
    found += block("Weight between two GPUs", weights) if weights else ""
    found += block("Link Type between two GPUs", kinds) + "==== Numa Nodes ====\n"
    return found + "".join(
        f"GPU[{i}]\t\t: (Topology) Numa Node: {2 * i // len(kinds)}\n" for i in range(len(kinds))
    )
