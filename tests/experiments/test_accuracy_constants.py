"""Constants of presets and libraries: they stand where the fit says, and no better one is near."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from experiments.accuracy.cells import predictor
from experiments.accuracy.fit_presets import START
from experiments.accuracy.fitting.constants import (
    WITHOUT,
    committed,
    committed_without,
    efficiencies,
    fitted_hops,
    fitted_library,
    fitted_topology,
    link_name,
)
from experiments.accuracy.fitting.constants_text import preset_text, written
from experiments.accuracy.fitting.fit import Losses, concerned, fitted, loss_of
from experiments.accuracy.fitting.own_hops import own_hops
from experiments.accuracy.hold_out import LEFT_OUT
from experiments.accuracy.launches import launched
from experiments.accuracy.systems import has_preset, library_of_version
from experiments.tables.tables import tables
from p2smt.cluster.file import load_topology, parse_topology
from p2smt.cluster.library.registry import library_of
from p2smt.cluster.topology import Topology
from p2smt.collectives.names import RequestKind
from tests.tiers import but_the_first


@cache
def rewritten() -> tuple[tuple[Path, str], ...]:
    """What the committed constants make of the files that hold them."""
    return tuple(written(committed()))


@pytest.mark.exhaustive
def test_presets_and_libraries_hold_the_fitted_constants() -> None:
    assert list(committed()) == list(START)
    for path, text in rewritten():
        assert path.read_text(encoding="utf-8") == text, path.name


@pytest.mark.exhaustive
def test_a_constant_changes_its_line_alone() -> None:
    text = load_text("aws-p5")
    changed = preset_text("aws-p5", text, {**committed(), "efficiency efa2 any": 0.5})
    (old,) = set(text.splitlines()) - set(changed.splitlines())
    (new,) = set(changed.splitlines()) - set(text.splitlines())
    assert "efficiency: {any: 0.5}" in new
    assert new.split("#")[1] == old.split("#")[1]
    link = parse_topology(changed, "changed").levels[0].link
    assert link.efficiency == (("any", 0.5),)


def load_text(name: str) -> str:
    (found,) = (text for path, text in rewritten() if path.stem == name)
    return found


LINKED = ("dgx-h100", "dgx-b200", "mi300x", "gb200-nvl72", "mi355x")


def test_links_by_what_they_join() -> None:
    names = {name: link_name(load_topology(name), 0) for name in LINKED}
    assert names == {
        "dgx-h100": "infiniband",
        "dgx-b200": "infiniband+nvlink5",
        "mi300x": "infiniband+xgmi",
        "gb200-nvl72": "infiniband+nvl72",
        "mi355x": "roce+xgmi",
    }
    constants = {"efficiency nvlink3 ring": 0.7, "efficiency nvlink3 any": 0.8}
    assert efficiencies(constants, "nvlink3") == (("any", 0.8), ("ring", 0.7))
    assert efficiencies(constants, "nvlink2") == efficiencies(constants, "nvlink3")
    assert efficiencies(constants, "efa") == ()


@pytest.mark.exhaustive
def test_a_preset_says_whose_tables_tell_its_rates() -> None:
    """Its own systems', or another's that it is assumed to be like."""
    found = {
        name: [line for line in load_text(name).splitlines() if "efficiency:" in line]
        for name in ("dgx-h100", "azure-ndv5")
    }
    own, other = (lines[0].partition("# ")[2] for lines in found.values())
    assert own.startswith("measured: dell-xe9680-h100-8xNDR400, h100-nebius, ")
    assert own.endswith(" of experiments/tables")
    assert other.startswith("assumed as that of dgx-h100, ")
    assert "measured: dell" in other


def test_hops_are_the_librarys_own_times_one_factor() -> None:
    """All of a place move together, undetermined ones with those that a table tells."""
    library = library_of("nccl-2.30")
    constants = {**committed(), "times nccl network": 0.5, "times nccl inside ring": 2.0}
    constants |= {"times nccl inside": 3.0, "driver nccl efa2": 10e-6}
    hops, own = fitted_hops(library, constants), dict(own_hops("nccl"))
    network = [key for key in hops if key[0] == "network"]
    assert {family for _, family, _ in network} == {"ring", "tree", "nvls", "pat", "p2p"}
    assert all(hops[key] == pytest.approx(0.5 * own[key]) for key in network)
    for protocol in ("ll", "ll128", "simple"):
        for place in ("inside", "pcie"):
            ring, tree = (place, "ring", protocol), (place, "tree", protocol)
            assert hops[ring] == pytest.approx(6 * own[ring])
            assert hops[tree] == pytest.approx(3 * own[tree])
        flushes = 2 if protocol == "simple" else 1
        for fabric in ("efa2", "efa3"):
            added = hops[fabric, "tree", protocol] - hops["network", "tree", protocol]
            assert added == pytest.approx(flushes * 10e-6)
    older = fitted_hops(library_of("nccl-2.12"), constants)
    added = older["efa2", "tree", "simple"] - older["network", "tree", "simple"]
    assert added == pytest.approx(10e-6)  # what the driver says stands for the hop: no flush


def test_the_own_steps_are_those_of_the_formulas() -> None:
    """What a library chooses by and what its prices start from are one table, but for few."""
    for name, rows in (("nccl-2.30", ("nvlink", "pci", "net")), ("rccl", ("xgmi", "pci", "net"))):
        formula = library_of(name).formula
        assert formula is not None
        own = dict(own_hops("rccl" if name == "rccl" else "nccl"))
        chosen = {
            (place, algorithm.value, protocol): seconds
            for place, row in zip(("inside", "pcie", "network"), rows, strict=True)
            for (at, algorithm, protocol), seconds in formula.hops
            if at == row
        }
        shared = set(own) & set(chosen)
        assert len(shared) > 10
        others = {key for key in shared if own[key] != pytest.approx(chosen[key])}
        assert others == ({("network", "ring", "simple")} if name == "rccl" else set())


def test_calls_across_nodes_are_by_fabric() -> None:
    constants = {**committed(), "across nccl infiniband": 4e-6, "across nccl efa2": 30e-6}
    other = fitted_library(library_of("nccl-2.30"), constants, "other")
    assert [other.across_s(name) for name in ("infiniband", "roce", "efa2", "efa3")] == [
        *(4e-6, 4e-6, 30e-6, 30e-6)
    ]
    assert other.ring_pace == constants["pace"]
    assert other.call_s("all-gather") == constants["call nccl others"]
    library = library_of("nccl-2.30")
    assert (other.formula, other.runs) == (library.formula, library.runs)


def test_one_process_launches_on_its_devices_in_turn() -> None:
    constants = {**committed(), "launch": 2e-6}
    table = tables()["a100-node-1x8"]
    topology = load_topology("dgx-a100:1")
    longer = launched(topology, table, constants)
    kind = RequestKind.ALL_REDUCE
    for size in (2**10, 2**20):
        found = [predictor(one, 8, kind)(size).seconds for one in (topology, longer)]
        assert found[1] - found[0] == pytest.approx(7 * 2e-6)
    assert launched(topology, replace(table, note=""), constants) is topology


def test_loss_by_hand() -> None:
    logs = np.array([0.0, 0.1, -0.2])
    assert loss_of(logs) == pytest.approx(0.1 + 0.05)
    far = np.array([math.log(4.4)])
    assert loss_of(far) == pytest.approx(1.5 * math.log(4.4) + 2 * math.log(2))
    assert loss_of(far) == loss_of(-far)


def test_the_search_finds_a_bandwidth() -> None:
    """A table made by the model with another efficiency gives that efficiency back."""
    constants = committed()
    table = tables()["aws-p4de-2x8"]
    wanted = {**constants, "efficiency efa any": 0.6}
    topology = fitted_topology(load_topology("aws-p4d:2"), wanted)
    made = replace(
        table, rows=tuple((n, seconds_of(topology, n)) for n in range(2**26, 2**31, 2**26))
    )
    losses = Losses({made.name: made})
    name = "efficiency efa any"
    found = fitted({**constants, name: 0.8}, losses, names=[name])
    assert found[name] == pytest.approx(0.6, rel=0.05)
    assert {key for key in found if found[key] != constants[key]} <= {name}
    mine = concerned(constants, losses)
    assert name in mine
    assert not {"efficiency roce any", "times nccl inside nvls"} & set(mine)


def seconds_of(topology: Topology, size: int) -> float:
    return predictor(topology, 16, RequestKind.ALL_REDUCE)(size).seconds


def test_every_table_left_out_has_constants() -> None:
    assert set(json.loads(WITHOUT.read_text(encoding="utf-8"))) == set(LEFT_OUT)


@pytest.mark.parametrize("name", but_the_first(*LEFT_OUT))
def test_tables_left_out_have_constants_of_their_own(name: str) -> None:
    """Those that matter to the table alone, and none of what only other tables tell."""
    found = json.loads(WITHOUT.read_text(encoding="utf-8"))[name]
    assert set(found) == set(concerned(committed(), Losses({name: tables()[name]})))
    assert committed_without(name) == {**committed(), **found}


def test_versions() -> None:
    names = ("NCCL 2.8.4", "NCCL 2.26.2", "NCCL 2.28.7", "RCCL of ROCm 6.3.4", "")
    wanted = ["nccl-2.12", "nccl-2.20", "nccl-2.30", "", ""]
    assert [library_of_version(text) for text in names] == wanted


@pytest.mark.exhaustive
def test_no_constant_near_the_fitted_ones_is_better() -> None:
    """Each constant alone, 5 % up or down, gains at most two hundredths of the loss of a table.

    The fit ends with steps of 2 %.
    """
    constants = committed()
    losses = Losses({name: one for name, one in tables().items() if has_preset(one)})
    least = sum(losses.of(constants).values())
    for name, value in constants.items():
        for factor in (0.95, 1.05):
            if name.startswith("efficiency") and value * factor > 1:
                continue
            if name == "pace" and value * factor < 1:
                continue
            assert sum(losses.of({**constants, name: value * factor}).values()) > least - 0.02
