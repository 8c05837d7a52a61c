"""Abbreviated values of options: read as what they stand for, which a note repeats."""

from __future__ import annotations

import pytest

from p2smt.cli.guide.abbreviations import abbreviations
from tests.cli.tools import assert_one_error, cli

SOLVE = ("solve", "-t", "dgx-a100:2", "--axes", "dp=4,tp=4")


@pytest.mark.parametrize(
    ("metavar", "text", "found"),
    [
        ("SIZE", "1G", {"1G": "1 GiB"}),
        ("SIZE", "1.5 k", {"1.5 k": "1536 B"}),
        ("SIZE", "1GB", {}),
        ("AXES[=SIZE[*N]]", "tp=64M*8k", {"64M": "64 MiB", "8k": "8192"}),
        ("AXES[=SIZE[*N]],..", "ep=7M,experts=1k,active=8", {"7M": "7 MiB", "1k": "1024"}),
        ("SIZE..SIZE", "1k..1G*4k", {"1k": "1 KiB", "1G": "1 GiB", "4k": "4096"}),
        ("CHANGE", "memory=141G", {"141G": "141 GiB"}),
        ("CHANGE", "batch=2k", {"2k": "2048"}),
        ("N,N,..", "8k,128000", {"8k": "8192"}),
        ("TIME", "5m", {"5m": "300 s"}),
        ("TIME", "90s", {}),
        ("N", "5m", {}),
        ("FILE", "8k", {}),
        ("NAME|FILE", "llama-8k", {}),
        ("N", "0.0001k", {}),
    ],
)
def test_what_stands_for_what(metavar: str, text: str, found: dict[str, str]) -> None:
    assert abbreviations([(metavar, text)]) == found


def test_an_answer_is_that_of_the_long_values() -> None:
    short = cli(*SOLVE, "--reduce", "dp=1G", "--reduce", "tp=8M*1k", "--time-limit", "5m", "--json")
    long = cli(*SOLVE, "--reduce", "dp=1GiB", "--reduce", "tp=8MiB*1024", "--json")
    requests = [one["plan"]["requests"] for one in (short.json(), long.json())]
    assert requests[0] == requests[1]
    assert "note: 1G is 1 GiB, 8M is 8 MiB, 1k is 1024, 5m is 300 s\n" in short.err
    assert "is 1 GiB" not in long.err


def test_a_refused_value_has_one_line_and_no_note() -> None:
    assert_one_error(cli(*SOLVE, "--reduce", "dp=1G", "--time-limit", "5x"))
