"""Writes the table of NCCL's constants into docs/cost-model.md.  Usage: python docs/constants.py"""

from __future__ import annotations

from pathlib import Path

from experiments.testbed.written.marked import filled
from p2smt.cluster.library.model import Library, family_of
from p2smt.cluster.library.registry import library_of
from p2smt.cluster.topology import Algorithm

PAGE = Path(__file__).parent / "cost-model.md"
LIBRARY = "nccl-2.30"
BASE = ((Algorithm.TREE, "ll"), (Algorithm.RING, "ll"))
HOPS = (
    *((Algorithm.RING, protocol) for protocol in ("ll", "ll128", "simple")),
    *((Algorithm.TREE, protocol) for protocol in ("ll", "ll128", "simple")),
    *((Algorithm.NVLS, "simple"), (Algorithm.NVLS_TREE, "simple"), (Algorithm.PAT, "simple")),
)
TREE = ("ll", "ll128", "simple")
ASSUMED = {"roce": "its call as infiniband", "efa3": "as efa2", "gvnic": "as fastrak"}
FABRICS = ("infiniband", "roce", "efa", "efa2", "efa3", "fastrak", "gvnic", "tcpx")


def us(seconds: float | None) -> str:
    """A time in microseconds; a dash where there is none."""
    return "-" if seconds is None else f"{1e6 * seconds:.3g}"


def calls(library: Library) -> str:
    """The base latency of a formula, and what a call is priced with."""
    formula, found = library.formula, []
    base = {} if formula is None else dict(formula.base)
    for (algorithm, protocol), names in zip(BASE, ("all-reduce", "all-gather"), strict=True):
        shown = "all-reduce" if names == "all-reduce" else "reduce-scatter, all-gather, chains"
        cells = (us(base.get((algorithm, protocol))), us(library.call_s(names)))
        found.append(f"| a call: {shown} | {cells[0]} | {cells[1]} | | |\n")
    found.append(f"| a call: all-to-all, send | - | {us(library.call_s('send'))} | | |\n")
    return "".join(found)


def hops(library: Library) -> str:
    """A step inside a node and between nodes: by the formula, and as it is priced."""
    formula, found = library.formula, []
    chosen = {} if formula is None else dict(formula.hops)
    for algorithm, protocol in HOPS:
        cells = [f"a step: {algorithm.value} {protocol}"]
        for row, fabric, across in (("nvlink", "nvlink4", False), ("net", "infiniband", True)):
            cells.append(us(chosen.get((row, algorithm, protocol))))
            cells.append(us(library.hop_s(fabric, family_of(algorithm), protocol, across=across)))
        found.append(f"| {' | '.join(cells)} |\n")
    return "".join(found)


def networks(library: Library) -> str:
    """What each network costs a call and a tree's steps."""
    found = []
    for fabric in FABRICS:
        shown = f"{fabric} ({ASSUMED[fabric]})" if fabric in ASSUMED else fabric
        steps = (library.hop_s(fabric, "tree", name, across=True) for name in TREE)
        cells = (us(library.across_s(fabric)), *map(us, steps))
        found.append(f"| {shown} | {' | '.join(cells)} |\n")
    return "".join(found)


def table() -> str:
    """The constants of one version, in microseconds."""
    library = library_of(LIBRARY)
    head = "| us | inside: `tuning.cc` | priced | across: `tuning.cc` | priced |\n"
    second = "| us | a call across | a step: tree ll | tree ll128 | tree simple |\n"
    text = head + "|---|---|---|---|---|\n" + calls(library) + hops(library)
    pace = f"{library.ring_pace:g} times that where the ring spans nodes"
    text += f"\nA ring's step inside a node costs {pace}.\n"
    return text + "\n" + second + "|---|---|---|---|---|\n" + networks(library)


def page(text: str) -> str:
    """The page's text with the table of now."""
    return filled(text, "constants", table())


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text()))
