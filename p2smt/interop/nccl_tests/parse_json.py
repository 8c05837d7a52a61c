"""Reads what nccl-tests writes with ``-J`` (file version 3, src/util.cu).

The object holds ``args`` (the command), ``env``, ``config`` with ``devices`` (one entry per
process, which has nthreads x ngpus ranks), and ``results``.  ``env`` is the whole environment
of whoever ran it: neither it nor anything but the name of the test in ``args`` is kept.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

from p2smt.cluster.topology import MAX_DEVICES
from p2smt.errors import InputError
from p2smt.files.json_text import loads
from p2smt.interop.nccl_tests.devices import counted
from p2smt.interop.nccl_tests.elements import (
    RankCount,
    Timing,
    TimingTable,
    check_times,
    parts_of,
    test_in,
)

_HALF_DIGIT = 0.5e-6  # six decimals
_SIDES = ("out_of_place", "in_place")
_FIGURES = ("time", "alg_bw", "bus_bw")


def parse_json(text: str, source: str) -> list[TimingTable]:
    """The table in a JSON report.

    Raises:
        InputError: the text is not such a report, or is cut short.
    """
    data = _object(_parsed(text, source), source)
    results = data.get("results")
    if not isinstance(results, list):
        raise InputError(f"{source}: results", "must be a list of rows", "run it again with -J")
    timings: list[Timing] = []
    wrong: list[int] = []
    first_type = None
    for number, entry in enumerate(results, 1):
        row = _object(entry, f"{source}: results[{number}]")
        first_type = _same_type(row.get("type"), first_type, f"{source}: results[{number}]")
        found, bad = _row(row, source, number)
        if bad:
            wrong.append(number)
        else:
            timings += found
    args = data.get("args")
    first = args[0] if isinstance(args, list) and args and isinstance(args[0], str) else ""
    said = _said(data, source)
    return [TimingTable(source, test_in(first), said, tuple(timings), tuple(wrong))]


def _same_type(found: Any, first: str | None, where: str) -> str | None:
    """The data type of all rows so far."""
    if not isinstance(found, str):
        return first
    if first is not None and found != first:
        raise InputError(f"{where}: type {found[:40]}", f"the report has {first[:40]} above")
    return found


def _parsed(text: str, source: str) -> Any:
    try:
        return loads(text)
    except json.JSONDecodeError as error:
        rule = f"is not complete JSON: {error.msg[:80]}"
        raise InputError(f"{source}, line {error.lineno}", rule, "run it again with -J") from None
    except (ValueError, RecursionError) as error:
        rule = f"is not a report of nccl-tests: {str(error)[:80]}"
        raise InputError(source, rule, "run it again with -J") from None


def _object(value: Any, where: str) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise InputError(where, "must be a JSON object", "run it again with -J")
    return value


def _row(row: Mapping[str, Any], source: str, number: int) -> tuple[list[Timing], bool]:
    """The times of one row, and whether any result was wrong."""
    where = f"{source}: results[{number}]"
    size = _number(row.get("size"), f"{where}.size", 2.0**62)
    parts = _parts(row, int(size))
    found, wrong = [], False
    for side in _SIDES:
        if row.get(side) is None:
            continue
        cell = _object(row[side], f"{where}.{side}")
        if "time" not in cell:
            rule = "has no time" + (", only cpu_time (option -C)" if "cpu_time" in cell else "")
            raise InputError(f"{where}.{side}", rule, "measure without -C")
        wrong |= cell.get("nwrong") is not None and _number(cell["nwrong"], where) > 0
        values = [_number(cell.get(key, 0.0), f"{where}.{side}.{key}") for key in _FIGURES]
        timing = _timing(number, int(size), values, cell, parts)
        if size and timing.seconds:
            check_times(timing, where)
            found.append(timing)
    return found, wrong


def _parts(row: Mapping[str, Any], size: int) -> int:
    count, data_type = row.get("count"), row.get("type")
    if not isinstance(count, int) or not 0 < count < 2**62 or not isinstance(data_type, str):
        return 0
    return parts_of(size, count, data_type)


def _timing(
    number: int, size: int, values: list[float], cell: Mapping[str, Any], parts: int
) -> Timing:
    error = _HALF_DIGIT if "alg_bw" in cell and "bus_bw" in cell else 0.0
    time, alg, bus = values
    return Timing(number, size, time / 1e6, alg, bus, error, error, parts)


def _number(value: Any, where: str, limit: float = 1e12) -> float:
    whole = isinstance(value, int | float) and not isinstance(value, bool)
    if not whole or not 0 <= value < limit or not math.isfinite(value):
        shown = repr(value)[:40] if isinstance(value, str | int | float) else type(value).__name__
        raise InputError(f"{where} {shown}", "is not a number in range", "run it again with -J")
    return float(value)


def _said(data: Mapping[str, Any], source: str) -> tuple[RankCount, ...]:
    """Ranks and hosts, from the processes; nothing if the report does not tell."""
    config = data.get("config")
    if not isinstance(config, dict) or not isinstance(config.get("devices"), list):
        return ()
    each = 1
    for key in ("nthreads", "ngpus"):
        each *= int(_number(config.get(key, 1), f"{source}: config.{key}", MAX_DEVICES))
    names: dict[int, str] = {}
    for i, entry in enumerate(config["devices"][:MAX_DEVICES]):
        device = _object(entry, f"{source}: config.devices[{i}]")
        if device.get("group") not in (0, None):
            rule = "the ranks ran in several groups at once"
            raise InputError(source, rule, "measure one group of all ranks")
        names[i] = str(device.get("hostname", ""))[:255]
    whole = each > 0 and names and all(names.values())
    return (counted(f"{source}: config", "its device list", names, each),) if whole else ()
