"""Quantities: what is read, what is refused, and that texts read back to the same number."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from p2smt.errors import InputError
from p2smt.units import (
    MAX_SIZES,
    exact_bandwidth,
    exact_time,
    format_bandwidth,
    format_bytes,
    format_flops,
    format_gigabytes,
    format_time,
    parse_bandwidth,
    parse_bytes,
    parse_count,
    parse_duration,
    parse_sizes,
    parse_time,
    plain,
    roughly,
)
from tests.imports import ROOT, files_below


@pytest.mark.parametrize(
    ("parse", "text", "expected"),
    [
        (parse_bytes, "512MiB", 512 * 2**20),
        (parse_bytes, "2GB", 2 * 10**9),
        (parse_bytes, "100 B", 100),
        (parse_bytes, "1KiB", 1024),
        (parse_bytes, "1kB", 1000),
        (parse_bytes, "1KB", 1000),
        (parse_bytes, "1k", 1024),
        (parse_bytes, "64M", 64 * 2**20),
        (parse_bytes, "1.5 G", 3 * 2**29),
        (parse_bytes, "2T", 2**41),
        (parse_duration, "90s", 90.0),
        (parse_duration, "5m", 300.0),
        (parse_duration, "1.5h", 5400.0),
        (parse_duration, "2d", 172800.0),
        (parse_duration, "30", 30.0),
        (parse_duration, "5ms", 0.005),
        (parse_bytes, " 1.5 KiB ", 1536),
        (parse_bytes, "1e3 MB", 10**9),
        (parse_bytes, "0.5TiB", 2**39),
        (parse_bytes, "8.2GiB", 8_804_682_957),  # 8804682956.8
        (parse_bytes, "1.5GB", 1_500_000_000),
        (parse_bytes, "1.0001 KiB", 1024),
        (parse_bytes, "1.5B", 2),
        (parse_bytes, "0.1KiB", 102),
        (parse_bytes, "4611686018427387903 B", 2**62 - 1),
        (parse_bandwidth, "25 GB/s", 25e9),
        (parse_bandwidth, "200 Gb/s", 25e9),
        (parse_bandwidth, "100 Gbit/s", 12.5e9),
        (parse_bandwidth, "100 Gbps", 12.5e9),
        (parse_bandwidth, "1GiB/s", float(2**30)),
        (parse_bandwidth, "8 b/s", 1.0),
        (parse_bandwidth, "1.8 TB/s", 1.8e12),
        (parse_time, "3 us", 3e-6),
        (parse_time, "3 \u00b5s", 3e-6),
        (parse_time, "3 \u03bcs", 3e-6),
        (parse_time, "1.5ms", 1.5e-3),
        (parse_time, "0 s", 0.0),
        (parse_time, "600 ns", 600e-9),
    ],
)
def test_quantities(parse: Callable[[str], float], text: str, expected: float) -> None:
    found = parse(text)
    assert (found, type(found)) == (expected, type(expected))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1KiB", (1024,)),
        ("1KiB..8KiB", (1024, 2048, 4096, 8192)),
        ("1KiB..8GiB", tuple(2**n for n in range(10, 34))),
        ("1KB..5KB", (1000, 2000, 4000, 5000)),
        ("1KiB..1MiB*32", (2**10, 2**15, 2**20)),
        ("1MiB, 1KiB .. 2KiB ,1B", (1, 2**10, 2**11, 2**20)),
        ("1.5GB,8.2GiB", (1_500_000_000, 8_804_682_957)),
    ],
)
def test_sizes(text: str, expected: tuple[int, ...]) -> None:
    assert parse_sizes(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        *("", ",", "..", "1KiB..", "..1KiB", "1KiB..2KiB..4KiB", "2KiB..1KiB", "1KiB..1MiB*1"),
        *("1KiB..1MiB*", "1KiB..1MiB*2.5", "1KiB*2", "1..8", "8KiB;9KiB", "1KiB..1KiB"),
        *("1MiB,1MiB", "1KiB..8KiB,4KiB", "1KiB..4KiB,2KiB..8KiB", "1KiB,1024B"),
        ",".join(f"{n} B" for n in range(1, MAX_SIZES + 2)),
    ],
)
def test_refuses_lists_of_sizes(text: str) -> None:
    with pytest.raises(InputError, match="sizes") as caught:
        parse_sizes(text)
    assert caught.value.remedy


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("1MiB,1MiB", "sizes '1MiB,1MiB': have 1 MiB twice; name each size once"),
        ("1KiB..1KiB", "sizes '1KiB..1KiB': must have two ends and grow"),
        ("1KiB..", "sizes '1KiB..': must have two ends and grow"),
        ("1B..1EiB*2", "sizes '1EiB': is not a .* with a unit .B, kB, MB, GB, TB, KiB, MiB, GiB,"),
    ],
)
def test_a_list_of_sizes_that_is_refused_says_why(text: str, words: str) -> None:
    with pytest.raises(InputError, match=words):
        parse_sizes(text)


@given(st.integers(1, 2**50), st.integers(1, 2**50), st.integers(2, 64))
def test_a_range_grows_by_its_factor_to_its_end(one: int, more: int, factor: int) -> None:
    low, high = one, one + more
    *grown, last = parse_sizes(f"{low}B..{high}B*{factor}")
    assert last == high
    assert grown == [low * factor**n for n in range(len(grown))]
    assert high <= low * factor ** len(grown)


NOT_A_QUANTITY = [
    "",
    " ",
    "5",
    5,
    5.0,
    True,
    None,
    float("nan"),
    float("inf"),
    ["5 GB/s"],
    {},
    "nan",
    "nan GB/s",
    "inf GB/s",
    "-3 GB/s",
    "-3 us",
    "+3 B",
    "1e999",
    "1e9999 B",
    "5 furlongs",
    "1,5 GB/s",
    "1_000 B",
    "0x10 B",
    ".5 GB/s",
    "\u0665 us",  # a digit of another script
    "\u0665 B",
    "GB/s",
    "1 2 B",
    "3 GB/s GB/s",
    "1" * 100 + " B",
]


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (7, "7"),
        (999_999, "999999"),
        (1_000_000, "1.0 x 10^6"),
        (5_889_241_796_446_748_858_646_528_000, "5.8 x 10^27"),
    ],
)
def test_large_numbers_are_told_roughly(number: int, text: str) -> None:
    assert roughly(number) == text


@pytest.mark.parametrize("parse", [parse_bytes, parse_bandwidth, parse_time])
@pytest.mark.parametrize("text", NOT_A_QUANTITY, ids=repr)
def test_refuses_what_is_no_quantity(parse: object, text: object) -> None:
    with pytest.raises(InputError, match="quantity") as caught:
        parse(text, "quantity")  # type: ignore[operator]
    assert caught.value.rule
    assert caught.value.remedy


SIZES = (
    *("0 B", "0.5 B", "0.99 B", "0.0009KiB", "4611686018427387903.5 B", "1e999 B"),
    *("5 GB/s", "1 kiB", "8 Gb", "1Gi", "1P"),
)
DURATIONS = ("", "m", "5 min", "5M", "-5m", "1e999 s", "5 GB", "1h30m", "5x")
BANDWIDTHS = ("0 GB/s", "0 b/s", "1 b/s", "1e999 GB/s", "5 GB", "5 us", "1 kiB/s")
TIMES = ("1e999 s", "5 GB", "5 min", "5 S", "5 m s", "5m", "1h")


@pytest.mark.parametrize(
    ("parse", "text"),
    [
        *((parse_bytes, text) for text in SIZES),
        *((parse_bandwidth, text) for text in BANDWIDTHS),
        *((parse_time, text) for text in TIMES),
        *((parse_duration, text) for text in DURATIONS),
    ],
)
def test_refuses_quantities_of_another_kind_or_size(
    parse: Callable[[str], float], text: str
) -> None:
    with pytest.raises(InputError) as caught:
        parse(text)
    assert caught.value.remedy


@pytest.mark.parametrize("text", ["", "0", "-1", "1.5", "x", "1e3", "101", "9" * 50, "\u0665"])
def test_refuses_counts(text: str) -> None:
    with pytest.raises(InputError, match="nodes") as caught:
        parse_count(text, "nodes", 100)
    assert caught.value.remedy


def test_count() -> None:
    assert parse_count(" 100 ", "nodes", 100) == 100


@pytest.mark.parametrize(
    ("text", "expected"),
    [("8k", 8192), ("8K", 8192), (" 1.5k", 1536), ("2M", 2**21), ("1G", 2**30)],
)
def test_abbreviated_counts(text: str, expected: int) -> None:
    assert parse_count(text, "tokens", 2**30) == expected


@pytest.mark.parametrize("text", ["8kB", "8Ki", "8 k k", "0k", "0.01k", "2G", "1.5", "1e3k", "8T"])
def test_refuses_abbreviated_counts(text: str) -> None:
    with pytest.raises(InputError, match="8192 is 8k"):
        parse_count(text, "tokens", 2**30)


PREFIXES = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9, "Ki": 2**10, "Mi": 2**20, "Gi": 2**30}


@given(st.integers(1, 2**62 - 1))
def test_whole_bytes_read_back(value: int) -> None:
    assert parse_bytes(f"{value} B") == value
    shown = parse_bytes(format_bytes(value))
    assert abs(shown - value) <= value / 1000  # four digits are shown


@given(
    st.decimals(min_value=1, max_value=9999, places=4),
    st.sampled_from(sorted(PREFIXES)),
)
def test_sizes_are_rounded_to_the_nearest_byte(number: Decimal, prefix: str) -> None:
    exact = Fraction(number) * PREFIXES[prefix]
    assert 2 * abs(parse_bytes(f"{number}{prefix}B") - exact) <= 1
    assert parse_bytes(f"{number} {prefix}B") == parse_bytes(f"{number}{prefix}B")


@given(st.floats(min_value=1, max_value=1e18, exclude_max=True))
def test_exact_bandwidth_reads_back(value: float) -> None:
    assert parse_bandwidth(exact_bandwidth(value)) == value


@given(st.floats(min_value=0, max_value=1e6, exclude_max=True))
def test_exact_time_reads_back(value: float) -> None:
    assert parse_time(exact_time(value)) == value


@pytest.mark.parametrize(
    ("shown", "expected"),
    [
        (exact_bandwidth(25e9), "25 GB/s"),
        (exact_bandwidth(12.5e9), "12.5 GB/s"),
        (exact_time(14e-6), "14 us"),
        (exact_time(0.0), "0 s"),
        (format_bytes(2**30), "1 GiB"),
        (format_bytes(100), "100 B"),
        (format_bandwidth(25e9), "25 GB/s"),
        (format_time(0.0125), "12.5 ms"),
        (format_time(0), "0 s"),
        (format_time(float("inf")), "unbounded"),
        (format_time(1e-12), "0.001 ns"),
    ],
)
def test_printed_forms(shown: str, expected: str) -> None:
    assert shown == expected


FORMATS = (format_bytes, format_gigabytes, format_bandwidth, format_flops, format_time)


@given(st.floats(min_value=0, max_value=1e30), st.sampled_from(FORMATS))
def test_no_printed_quantity_has_an_exponent(value: float, shown: Callable[[float], str]) -> None:
    number, _, unit = shown(value).partition(" ")
    assert re.fullmatch(r"[0-9][0-9,]*(\.[0-9]+)?", number)
    assert unit


@given(st.floats(min_value=1e-12, max_value=1e18))
@example(3e-12)
@example(1e17)
def test_no_exact_quantity_has_an_exponent(value: float) -> None:
    shown = [exact_time(value), *([exact_bandwidth(value)] if value >= 1 else [])]
    assert all("e" not in text for text in shown)


@given(st.floats(min_value=1e-9, max_value=1e15), st.integers(1, 6))
def test_a_number_keeps_its_digits(value: float, digits: int) -> None:
    assert abs(float(plain(value, digits)) - value) <= value * 10.0 ** (1 - digits)
    assert plain(-value, digits) == f"-{plain(value, digits)}"


@pytest.mark.parametrize(
    ("shown", "expected"),
    [
        (plain(1390.2), "1390"),
        (plain(999.6), "1000"),
        (plain(0.000012345), "0.0000123"),
        (plain(1234567.0, grouped=True), "1,234,567"),
        (plain(float("inf")), "inf"),
        (format_gigabytes(999.9e9), "1,000 GB"),
        (format_time(15349.0), "15349 s"),
    ],
)
def test_numbers_for_people(shown: str, expected: str) -> None:
    assert shown == expected


def test_texts_for_people_use_no_format_that_has_exponents() -> None:
    """``:.3g`` writes 1390 as 1.39e+03; seconds per byte alone are written so."""
    wrong = [
        f"{path.relative_to(ROOT)}:{part.lineno}"
        for folder in ("report", "cli")
        for path in files_below(ROOT / "p2smt" / folder)
        for part in ast.walk(ast.parse(path.read_text()))
        if isinstance(part, ast.FormattedValue) and _has_exponents(part)
        if path.name != "symbolic_text.py"
    ]
    assert wrong == []


def _has_exponents(part: ast.FormattedValue) -> bool:
    texts = part.format_spec.values if isinstance(part.format_spec, ast.JoinedStr) else []
    last = texts[-1] if texts else None
    return isinstance(last, ast.Constant) and str(last.value)[-1:] in ("g", "e")
