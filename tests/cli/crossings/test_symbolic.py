"""`p2smt cost --symbolic`: what it prints, and what it refuses."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.tools import TINY, cli

REQUEST = ("--axes", "dp=8", "--placement", "[[2,4]]", "--reduce", "dp")
NESTED = "reduce-scatter inside node; all-reduce parallel node in root; all-gather inside node"


@pytest.fixture
def cluster(tmp_path: Path) -> str:
    path = tmp_path / "tiny.yaml"
    path.write_text(TINY)
    return str(path)


def test_the_text_has_every_symbol(cluster: str) -> None:
    done = cli("cost", "-t", cluster, *REQUEST, "--symbolic", "--program", NESTED)
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
    assert request["form"] == {"calls": 1, "latency": ["2", "12"], "maxima": [["7/4", "7/4"]]}


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (("--sizes", "1MiB"), "asks for numbers"),
        (("--pipeline", "4"), "asks for numbers"),
        (("--algorithm", "tree"), "square root"),
        (("--library", "nccl-2.20"), "a rule of its own"),
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
