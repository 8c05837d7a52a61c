"""`p2smt cost --symbolic`: what it prints, and what it refuses."""

from __future__ import annotations

import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
import yaml

import p2smt
from p2smt.units import parse_time
from tests.cli.tools import TINY, cli

LIBRARIES = Path(p2smt.__file__).parent / "libraries"
REQUEST = ("--axes", "dp=8", "--placement", "[[2,4]]", "--reduce", "dp")
NESTED = "reduce-scatter inside node; all-reduce parallel node in root; all-gather inside node"


@pytest.fixture
def cluster(tmp_path: Path) -> str:
    path = tmp_path / "tiny.yaml"
    path.write_text(TINY)
    return str(path)


def test_the_text_has_every_symbol(cluster: str) -> None:
    done = cli("cost", "-t", cluster, *REQUEST, "--symbolic", "--details", "--program", NESTED)
    assert done.code == 0
    lines = done.out.splitlines()
    assert lines[1] == (
        "3 c + 2 alpha_node + 6 alpha_gpu + n (3/2 beta_gpu + max(beta_node, 1/4 beta_gpu))"
    )


def test_latex_is_of_the_same_cost(cluster: str) -> None:
    done = cli("cost", "-t", cluster, *REQUEST, "--symbolic", "--latex")
    assert done.out.splitlines()[1] == (
        r"c + 2 \alpha_{\mathrm{node}} + 12 \alpha_{\mathrm{gpu}} + n \max\left("
        r"\frac{7}{4} \beta_{\mathrm{node}}, \frac{7}{4} \beta_{\mathrm{gpu}}\right)"
    )


def test_json_has_the_form(cluster: str) -> None:
    done = cli("cost", "-t", cluster, *REQUEST, "--symbolic", "--json")
    (request,) = done.json()["requests"]
    form = {"calls": 1, "latency": ["2", "12"], "maxima": [["7/4", "7/4"]], "fills": []}
    assert request["form"] == form


def test_a_library_has_a_form_for_each_of_its_choices() -> None:
    """A tree of two nodes of eight: a hop between them and seven inside, up and down."""
    place = ("--axes", "dp=16", "--placement", "[[2,8]]", "--reduce", "dp")
    asked = ("cost", "-t", "dgx-a100", *place, "--symbolic", "--details")
    lines = cli(*asked).out.splitlines()
    assert lines[1] == "n up to 145 KiB (16776000/113 B), tree ll:"
    known = yaml.safe_load((LIBRARIES / "nccl-2.20.yaml").read_text())
    between, inside = known["hops"]["network"], known["hops"]["inside"]
    calls = 1 + micros(known["calls_across"]["network"]) / micros(known["calls"]["all-reduce"])
    node = 2 * micros(between["tree"]["ll"]) / micros(between["ring"]["simple"])
    gpu = 14 * micros(inside["tree"]["ll"]) / micros(inside["ring"]["simple"])
    assert lines[2].startswith(f"  {calls} c + {node} alpha_node + {gpu} alpha_gpu + n max(")
    assert lines[-2].endswith("nccl-2.20's own")
    assert r"\begin{cases}" in cli(*asked, "--latex").out
    (request,) = cli(*asked, "--json").json()["requests"]
    assert request["form"] is None
    assert request["cells"][0]["high"] == request["steps"][0]["choice"][0]["high"] == "16776000/113"


def micros(text: str) -> Fraction:
    """The number of a latency in microseconds, exactly."""
    return Fraction(text.removesuffix(" us"))


def test_the_text_has_numbers_for_its_symbols(cluster: str) -> None:
    last = cli("cost", "-t", cluster, *REQUEST, "--symbolic", "--details").out.splitlines()[-1]
    assert last.startswith("here: c = 0 s; alpha_node = ")
    numbers = cli("cost", "-t", cluster, *REQUEST, "--symbolic", "--json").json()["numbers"]
    assert f"beta_gpu = {numbers['beta'][1]} s/byte" in last
    shown = last.partition("alpha_gpu = ")[2].partition(";")[0]
    assert parse_time(shown) == float(Fraction(numbers["alpha"][1]))


@pytest.mark.parametrize("place", [("azure-ndv4", "[[2,8]]"), ("dgx-a100:2", "[[2,8]]")])
@pytest.mark.parametrize(
    ("program", "size"),
    [
        (NESTED, 4096),
        (NESTED, 2**30),
        *(("single", 2**n) for n in (12, 22, 23)),
        ("single", 7910400),
    ],
)
def test_numbers_put_in_by_hand_are_the_time(
    place: tuple[str, str], program: str, size: int
) -> None:
    """From the data alone, as a reader of it would."""
    topology, matrix = place
    request = ("-t", topology, "--axes", "dp=16", "--placement", matrix, "--reduce", "dp")
    asked = ("cost", *request, "--program", program, "--json")
    data = cli(*asked, "--symbolic").json()
    expected = cli(*asked, "--sizes", f"{size}B").json()["sizes"][0]["seconds"]
    cells = data["requests"][0]["cells"]
    cell = next(one for one in cells if reaches(one, Fraction(size)))
    assert seconds(cell["form"], data["numbers"], size) == pytest.approx(expected, rel=1e-12)


def test_numbers_of_crossings_are_the_time_in_each_cell() -> None:
    """From the data alone, with trees that fill and are full."""
    place = ("-t", "azure-ndv4", "--axes", "dp=16", "--reduce", "dp", "--length", "3")
    data = cli("crossings", *place, "--json").json()
    forms = {one["name"]: one for one in data["programs"]}
    for cell in data["cells"]:
        low, high = (Fraction(cell["payload"][end] or 2**30) for end in ("from", "to"))
        size = math.floor((low + high) / 2)
        asked = ("cost", *place[:-2], "--placement", "[[2,8]]", "--program", cell["program"])
        expected = cli(*asked, "--sizes", f"{size}B", "--json").json()["sizes"][0]["seconds"]
        found = seconds(forms[cell["best"]], data["numbers"], size)
        assert found == pytest.approx(expected, rel=1e-12)


def reaches(cell: dict[str, Any], size: Fraction) -> bool:
    """Whether a payload is within a cell, none before which has it."""
    high = cell["high"] and Fraction(cell["high"])
    return high is None or size < high or (size == high and not cell["below"])


def seconds(form: dict[str, Any], numbers: dict[str, Any], size: int) -> float:
    """A cost with numbers put in, as the schema says what each part is."""
    alphas, betas = ([*map(Fraction, numbers[name])] for name in ("alpha", "beta"))
    total = Fraction(form["calls"]) * Fraction(numbers["c"])
    total += sum(dotted(form["latency"], alphas))
    total += size * sum(max(dotted(row, betas)) for row in form["maxima"])
    fills = Fraction(0)
    for fill in form["fills"]:
        wire = max(dotted(fill["loads"], betas))
        stage = sum(max(dotted(row, alphas)) for row in fill["stages"])
        root = Fraction(math.sqrt(Fraction(fill["factor"]) * size * wire * stage))
        fills += root if fill["most"] is None else min(root, Fraction(fill["most"]) * stage)
    return float(total + fills)


def dotted(factors: list[str], numbers: list[Fraction]) -> list[Fraction]:
    """The factors of a row, each times the number of its level."""
    return [Fraction(a) * b for a, b in zip(factors, numbers, strict=True)]


def test_a_tree_is_shown_with_its_root(cluster: str) -> None:
    done = cli("cost", "-t", cluster, *REQUEST, "--symbolic", "--details", "--algorithm", "tree")
    root = "sqrt(8 n max(beta_node, 7/4 beta_gpu) (2 alpha_node + 4 alpha_gpu))"
    assert done.out.splitlines()[1].endswith(f" + {root}")


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (("--sizes", "1MiB"), "asks for numbers"),
        (("--pipeline", "4"), "asks for numbers"),
        (("--algorithm", "nvls"), "known to libraries only"),
    ],
)
def test_what_has_no_symbolic_cost_is_refused(
    cluster: str, options: tuple[str, ...], reason: str
) -> None:
    done = cli("cost", "-t", cluster, *REQUEST, "--symbolic", *options)
    assert (done.code, done.out) == (2, "")
    assert reason in done.err
    assert len(done.err.splitlines()) == 1


def test_a_plan_has_numbers_and_stands_alone() -> None:
    done = cli("cost", "plan.json", "--symbolic")
    assert done.code == 2
    assert "stands alone" in done.err
