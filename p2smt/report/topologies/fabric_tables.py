"""Fabrics for people, and as data."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from fractions import Fraction

from rich.console import Group, RenderableType

from p2smt.cluster.fabric.fabric import Fabric
from p2smt.cluster.fabric.wiring import WiredNodes
from p2smt.report.tables import table
from p2smt.report.text import printable
from p2smt.units import exact_bandwidth, format_bandwidth


def wiring_table(wirings: Sequence[WiredNodes], families: Sequence[str]) -> Group:
    """Fabrics that come with the package, and how the regular ones are written."""
    rows = [
        [one.name, str(one.ranks), printable(one.description.split(". ")[0].rstrip("."))]
        for one in wirings
    ]
    rows += [[form, "", "regular: links both ways, bandwidth 1"] for form in families]
    return table("fabrics", ["name", ">ranks", "what"], rows)


def fabric_tables(fabric: Fabric) -> RenderableType:
    """A fabric: its size, unit, and its capacities by their bandwidth."""
    edges = Counter(n for edge in fabric.edges for n in edge.loads)
    kinds = Counter((c.bandwidth, edges[n]) for n, c in enumerate(fabric.capacities))
    rows = [
        [str(count), str(rate), _rate(fabric.unit, rate), str(loads)]
        for (rate, loads), count in sorted(kinds.items())
    ]
    head = f"{fabric.name}: {fabric.ranks} ranks, {len(fabric.edges)} edges"
    unit = "none" if fabric.unit is None else format_bandwidth(float(fabric.unit))
    columns = [">capacities", ">units", ">bandwidth", ">edges that load it"]
    about = [printable(fabric.description)] if fabric.description else []
    sources = [f"source: {printable(source)}" for source in fabric.sources]
    shared = table("capacities, in chunks a round", columns, rows)
    named = [f"symmetry: {_cycles(image)}" for image in fabric.symmetries]
    return Group(printable(head), *about, f"unit: {unit}", "", shared, *named, *sources)


def fabric_data(fabric: Fabric) -> dict[str, object]:
    """A fabric as JSON: bandwidths are exact, as fractions in text."""
    return {
        "name": fabric.name,
        "ranks": fabric.ranks,
        "unit": None if fabric.unit is None else exact_bandwidth(float(fabric.unit)),
        "capacities": [{"name": c.name, "bandwidth": str(c.bandwidth)} for c in fabric.capacities],
        "edges": [
            {"source": e.source, "target": e.target, "loads": list(e.loads)} for e in fabric.edges
        ],
        "symmetries": [list(image) for image in fabric.symmetries],
    }


def _cycles(image: Sequence[int]) -> str:
    """A permutation in cycles, such as (0 1)(2 3); what stays is left out."""
    seen: set[int] = set()
    cycles = []
    for start in range(len(image)):
        cycle, at = list[int](), start
        while at not in seen:
            seen.add(at)
            cycle.append(at)
            at = image[at]
        if len(cycle) > 1:
            cycles.append("(" + " ".join(map(str, cycle)) + ")")
    return "".join(cycles) or "none moves"


def _rate(unit: Fraction | None, units: Fraction) -> str:
    return "" if unit is None else format_bandwidth(float(unit * units))
