"""Quantities with units: the only place that parses and prints them.

Sizes are whole bytes, bandwidths bytes per second, times seconds, speeds of arithmetic floating
point operations per second.  ``B`` is a byte and ``b`` or ``bit`` a bit; ``k M G T`` (and ``P`` of
``PFLOP/s``) are powers of 1000, ``Ki Mi Gi Ti`` powers of 1024.  A prefix without a unit is binary,
as device memory and tokens are counted: a size ``1G`` is 1 GiB, a count ``8k`` is 8192.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from decimal import Decimal
from fractions import Fraction

from p2smt.errors import InputError

_SCALE = {
    "": 1,
    "k": 10**3,
    "K": 10**3,
    "M": 10**6,
    "G": 10**9,
    "T": 10**12,
    "Ki": 2**10,
    "Mi": 2**20,
    "Gi": 2**30,
    "Ti": 2**40,
}
_TIME = {
    "s": Fraction(1),
    "ms": Fraction(1, 10**3),
    "us": Fraction(1, 10**6),
    "\u00b5s": Fraction(1, 10**6),  # micro sign
    "\u03bcs": Fraction(1, 10**6),  # Greek mu, which looks the same
    "ns": Fraction(1, 10**9),
}
_NUMBER = r"\s*(?P<number>[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]{1,3})?)\s*"
_PREFIX = r"(?P<prefix>[kKMGT]i?|)"
_SIZE = re.compile(_NUMBER + r"(?:" + _PREFIX + r"B|(?P<bare>[kKMGT]))\s*", re.ASCII)
_RATE = re.compile(_NUMBER + _PREFIX + r"(?P<unit>B|b|bit)(?:/s|ps)\s*", re.ASCII)
_SPAN = re.compile(_NUMBER + r"(?P<unit>s|ms|us|\u00b5s|\u03bcs|ns)\s*")
_DURATION = re.compile(_NUMBER + r"(?P<unit>[smhd]?)\s*", re.ASCII)
_DURATION_S = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400}
_COUNT = re.compile(r"\s*(?P<number>[0-9]{1,18}(?:\.[0-9]{1,6})?)(?P<prefix>[kKMG]?)\s*", re.ASCII)
_BINARY = {"": 1, "k": 2**10, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}
_FLOPS = re.compile(_NUMBER + r"(?P<prefix>[kKMGTP]?)FLOP/s\s*", re.ASCII)
_LIMIT = 2**62

_DECIMAL = r"[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]{1,3})?"
_BLANKS = r"[ \t\n\r\f\v]*"
BANDWIDTH_PATTERN = rf"^{_BLANKS}{_DECIMAL}{_BLANKS}([kKMGT]|[KMGT]i)?(B|b|bit)(/s|ps){_BLANKS}$"
"""What :func:`parse_bandwidth` reads, as JSON Schema says it (ECMA-262); its range is apart."""
SIZE_PATTERN = rf"^{_BLANKS}{_DECIMAL}{_BLANKS}(([kKMGT]|[KMGT]i)?B|[kKMGT]){_BLANKS}$"
"""What :func:`parse_bytes` reads."""
FLOPS_PATTERN = rf"^{_BLANKS}{_DECIMAL}{_BLANKS}[kKMGTP]?FLOP/s{_BLANKS}$"
"""What :func:`parse_flops` reads."""
TIME_PATTERN = rf"^\s*{_DECIMAL}\s*(s|ms|us|\u00b5s|\u03bcs|ns)$"
"""What :func:`parse_time` reads."""
MAX_TEXT = 63
"""The most characters of a quantity."""


_SIZE_UNITS = "B, kB, MB, GB, TB, KiB, MiB, GiB, TiB; K, M, G, T are binary"
_RATE_UNITS = "B/s, b/s or bit/s after k, M, G, T, Ki, Mi, Gi, Ti or nothing"
_TIME_UNITS = "s, ms, us, ns"
_FLOPS_UNITS = "FLOP/s after k, M, G, T, P or nothing"


def _match(
    pattern: re.Pattern[str], text: object, what: str, example: str, units: str
) -> re.Match[str]:
    found = pattern.fullmatch(text) if isinstance(text, str) and len(text) <= MAX_TEXT else None
    if found is None:
        raise InputError(
            f"{what} {_shown(text)}",
            f"is not a non-negative decimal number with a unit ({units})",
            f"write it like {example}",
        )
    return found


def _shown(text: object) -> str:
    """What was given, short enough for one line."""
    shown = repr(text) if isinstance(text, str | int | float | None) else type(text).__name__
    return shown if len(shown) <= 62 else shown[:60] + ".."


def _bounded(value: Fraction, text: object, what: str) -> Fraction:
    if value >= _LIMIT:
        raise InputError(f"{what} {_shown(text)}", "is 2^62 or more", "give a smaller value")
    return value


def _prefix(found: re.Match[str], text: object, what: str) -> int:
    if bare := found.groupdict().get("bare"):
        return _BINARY[bare]
    if found["prefix"] not in _SCALE:
        raise InputError(
            f"{what} {text!r}", f"has the unknown prefix {found['prefix']!r}", "use KiB or kB"
        )
    return _SCALE[found["prefix"]]


def parse_bytes(text: object, what: str = "size") -> int:
    """Bytes in a text like ``512MiB``, ``1.5GB``, ``1G`` or ``100 B``: 1 or more, to the nearest.

    Half a byte is rounded up.
    """
    found = _match(_SIZE, text, what, "512MiB or 2GB", _SIZE_UNITS)
    exact = Fraction(found["number"]) * _prefix(found, text, what)
    value = _bounded(Fraction(math.floor(exact + Fraction(1, 2))), text, what)
    if exact < 1:
        raise InputError(f"{what} {text!r}", "is less than one byte", "give 1 B or more")
    return int(value)


MAX_SIZES = 256


def parse_sizes(text: str, what: str = "sizes") -> tuple[int, ...]:
    """Bytes in a text like ``1MiB,1GiB``, ``1KiB..8GiB`` or ``1KiB..8GiB*4``, ascending.

    A range has its first size, each time twice the size before (``*4``: four times), and its last.

    Raises:
        InputError: one is no size, or there twice; a range does not grow; there are too many.
    """
    found: set[int] = set()
    for part in text.split(","):
        more = _range(part, what) if ".." in part else {parse_bytes(part.strip(), what)}
        if twice := found & more:
            given, rule = f"{what} {_shown(text)}", f"have {format_bytes(min(twice))} twice"
            raise InputError(given, rule, "name each size once")
        found |= more
    if len(found) > MAX_SIZES:
        rule = f"are {len(found)}, more than {MAX_SIZES}"
        raise InputError(f"{what} {_shown(text)}", rule, "give fewer")
    return tuple(sorted(found))


def _range(text: str, what: str) -> set[int]:
    """The sizes of ``1KiB..8GiB*4``."""
    first, _, rest = text.partition("..")
    last, star, times = rest.partition("*")
    factor = parse_count(times, f"factor in {what}", 2**20) if star else 2
    low, high = (parse_bytes(end.strip(), what) if end.strip() else 0 for end in (first, last))
    if not 0 < low < high or factor < 2:
        raise InputError(
            f"{what} {_shown(text)}",
            "must have two ends and grow, by a factor of 2 or more",
            "write it like 1KiB..8GiB or 1KiB..8GiB*4",
        )
    found = {high}
    while low < high:
        found.add(low)
        low *= factor
    return found


def parse_bandwidth(text: object, what: str = "bandwidth") -> float:
    """Bytes per second in a text like ``25 GB/s``, ``200 Gb/s`` or ``100 Gbit/s``: positive."""
    return float(exact_rate(text, what))


def exact_rate(text: object, what: str = "bandwidth") -> Fraction:
    """As :func:`parse_bandwidth`, not rounded."""
    found = _match(_RATE, text, what, "25 GB/s or 200 Gb/s", _RATE_UNITS)
    bits = 1 if found["unit"] == "B" else 8
    value = _bounded(Fraction(found["number"]) * _prefix(found, text, what) / bits, text, what)
    if value < 1:
        raise InputError(
            f"{what} {text!r}", "is less than one byte per second", "give 1 B/s or more"
        )
    return value


def parse_time(text: object, what: str = "time") -> float:
    """Seconds in a text like ``3 us`` or ``1.5ms``: zero or more."""
    found = _match(_SPAN, text, what, "3 us or 1.5 ms", _TIME_UNITS)
    return float(_bounded(Fraction(found["number"]) * _TIME[found["unit"]], text, what))


PART_PATTERN = r"^[0-9]{1,20}(\.[0-9]{0,40})?([eE]-?[0-9]{1,3})?$"
"""A number with a point, as the reader of YAML passes it on: a text."""


def part_of_rate(value: object) -> float:
    """A number of a file that says which part of a bandwidth something reaches."""
    if isinstance(value, str) and re.fullmatch(PART_PATTERN, value):
        return float(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InputError(f"value {str(value)[:60]!r}", "is no part of a bandwidth", "write 0.8")
    return float(value)


def parse_flops(text: object, what: str = "peak") -> float:
    """Floating point operations per second in a text like ``989 TFLOP/s``: 1 or more."""
    found = _match(_FLOPS, text, what, "989 TFLOP/s or 2.25 PFLOP/s", _FLOPS_UNITS)
    scale = (_SCALE | {"P": 10**15})[found["prefix"]]
    value = _bounded(Fraction(found["number"]) * scale, text, what)
    if value < 1:
        raise InputError(f"{what} {text!r}", "is less than one FLOP/s", "give 1 FLOP/s or more")
    return float(value)


def parse_duration(text: object, what: str = "time") -> float:
    """Seconds of a wall time such as ``90s``, ``5m`` or ``1h``; a number alone is seconds.

    Parts of a second are written as :func:`parse_time` reads them.
    """
    found = _DURATION.fullmatch(text) if isinstance(text, str) and len(text) <= MAX_TEXT else None
    if found is None:
        try:
            return parse_time(text, what)
        except InputError as error:
            rule = "is not a non-negative decimal number with a unit (d, h, m, s, ms, us, ns)"
            raise InputError(error.given, rule, "write it like 30, 90s, 5m or 1h") from None
    value = Fraction(found["number"]) * _DURATION_S[found["unit"]]
    return float(_bounded(value, text, what))


def parse_count(text: str, what: str, limit: int = 10**9) -> int:
    """A whole number from 1 to ``limit`` in decimal digits, or as ``8k``: binary, 8192."""
    found = _COUNT.fullmatch(text)
    value = Fraction(found["number"]) * _BINARY[found["prefix"]] if found else Fraction(0)
    whole = found is not None and (found["prefix"] or "." not in found["number"])
    if not whole or value.denominator != 1 or not 1 <= value <= limit:
        raise InputError(
            f"{what} {_shown(text)}",
            f"is not a whole number from 1 to {limit}",
            "write digits, or k for 1024: 8192 is 8k" if limit >= 1024 else "write digits only",
        )
    return int(value)


def counted(number: int, noun: str, plural: str = "") -> str:
    """A number of things for people: ``1 step``, ``1,024 steps``; ``plural`` where not with s."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def roughly(number: int) -> str:
    """A whole number for people: as it is below a million, else such as ``5.8 x 10^27``."""
    text = str(number)
    return text if number < 10**6 else f"{text[0]}.{text[1]} x 10^{len(text) - 1}"


def exact_bytes(size: int) -> str:
    """Whole bytes as text that :func:`parse_bytes` reads back to the same number."""
    units = {"TiB": 2**40, "GiB": 2**30, "MiB": 2**20, "KiB": 2**10, "B": 1}
    unit = next(unit for unit, scale in units.items() if size % scale == 0)
    return f"{size // units[unit]} {unit}"


def exact_bandwidth(bytes_per_s: float) -> str:
    """A bandwidth as text that :func:`parse_bandwidth` reads back to the same number."""
    steps = {"TB/s": 1e12, "GB/s": 1e9, "MB/s": 1e6, "kB/s": 1e3}
    return _exact(bytes_per_s, steps, "B/s", parse_bandwidth)


def exact_flops(flops: float) -> str:
    """A speed of arithmetic as text that :func:`parse_flops` reads back to the same number."""
    steps = {"TFLOP/s": 1e12, "GFLOP/s": 1e9, "MFLOP/s": 1e6, "kFLOP/s": 1e3}
    return _exact(flops, steps, "FLOP/s", parse_flops)


def exact_time(seconds: float) -> str:
    """A time as text that :func:`parse_time` reads back to the same number."""
    return _exact(seconds, {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}, "s", parse_time)


def _exact(
    value: float, steps: Mapping[str, float], base: str, parse: Callable[[object], float]
) -> str:
    for unit, size in steps.items():
        text = f"{_decimal(float(f'{value / size:.12g}'))} {unit}"
        if value >= size and parse(text) == value:
            return text
    return f"{_decimal(value)} {base}"


def _decimal(value: float) -> str:
    """A number as it is read back, without an exponent unless it would have very many zeros."""
    text = format(Decimal(repr(value)), "f")
    return (text if len(text) <= MAX_TEXT - 5 else repr(value)).removesuffix(".0")


def plain(value: float, digits: int = 3, *, grouped: bool = False) -> str:
    """A number for people: so many digits, or all before the point; never with an exponent.

    ``grouped``: commas between thousands.
    """
    if not math.isfinite(value):
        return f"{value}"
    rounded = float(f"{value:.{digits}g}")
    if abs(rounded) >= 10**digits:
        return f"{value:{',' if grouped else ''}.0f}"
    return format(Decimal(f"{rounded:.{digits}g}"), "f")


def _scaled(value: float, steps: Mapping[str, float], digits: int = 4) -> str:
    last = list(steps.items())[-1]
    unit, size = next((one for one in steps.items() if value >= one[1]), last)
    return f"{plain(value / size, digits)} {unit}"


def format_bytes(value: float) -> str:
    """Bytes for people, with binary prefixes: ``1 GiB``."""
    return _scaled(value, {"TiB": 2**40, "GiB": 2**30, "MiB": 2**20, "KiB": 2**10, "B": 1})


def format_gigabytes(value: float) -> str:
    """Bytes in the unit in which vendors state a device's memory: ``80 GB`` (10^9)."""
    return f"{plain(value / 1e9, grouped=True)} GB"


def format_bandwidth(bytes_per_s: float) -> str:
    """A bandwidth for people, with decimal prefixes: ``25 GB/s``."""
    return _scaled(bytes_per_s, {"TB/s": 1e12, "GB/s": 1e9, "MB/s": 1e6, "kB/s": 1e3, "B/s": 1})


def format_flops(flops: float) -> str:
    """A speed of arithmetic for people, with decimal prefixes: ``989 TFLOP/s``."""
    return _scaled(flops, {"TFLOP/s": 1e12, "GFLOP/s": 1e9, "MFLOP/s": 1e6, "FLOP/s": 1})


def format_time(seconds: float) -> str:
    """A time for people: ``12.5 ms``; infinity prints as ``unbounded``."""
    if math.isinf(seconds):
        return "unbounded"
    if seconds == 0:
        return "0 s"
    return _scaled(seconds, {"s": 1, "ms": 1e-3, "us": 1e-6, "ns": 1e-9})


def format_time_range(
    low_s: float, high_s: float, holding_s: float | None = None, moved: float = math.inf
) -> str:
    """A range of times in the unit of its end, for people: ``0.7 to 1.1 ms``.

    It has two digits, or as many more as keep its ends apart and round these by at most ``moved``
    of its width; four at most.  Rounded, it still holds the time ``holding_s``.
    """
    steps = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}
    unit, size = next((step for step in steps.items() if high_s >= step[1]), ("ns", 1e-9))
    ends = (low_s / size, high_s / size)
    value = None if holding_s is None else holding_s / size
    most = moved * (ends[1] - ends[0]) if high_s > low_s else math.inf
    texts = [(_rounded(ends[0], n, value, -1), _rounded(ends[1], n, value, 1)) for n in (2, 3, 4)]
    fitting = (
        found
        for found in texts
        if found[0] != found[1]
        and all(abs(float(a) - b) <= most for a, b in zip(found, ends, strict=True))
    )
    low, high = next(fitting, texts[-1])
    return f"{low} to {high} {unit}"


def _rounded(end: float, digits: int, value: float | None, sign: int) -> str:
    """An end of a range with so many digits; outward, if the nearest left a value outside."""
    nearest = float(f"{end:.{digits}g}")
    if value is not None and (value - nearest) * sign > 0 and end > 0:
        step = 10.0 ** (math.floor(math.log10(end)) - digits + 1)
        nearest = step * (math.ceil(end / step) if sign > 0 else math.floor(end / step))
    return f"{float(f'{nearest:.{digits + 1}g}'):.12g}"
