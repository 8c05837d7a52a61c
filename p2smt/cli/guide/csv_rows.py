"""``--csv``: the table of an answer, made of what ``--json`` prints.

A column is a key of the rows, one inside another by a dot (``parts.compute``): their units are
those of the JSON, which their names end in (``seconds``, ``total_s``, ``load_bytes``).
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any

ROWS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "plan": ("top",),
        "estimate": ("requests",),
        "models": ("models",),
        "solve": ("near_optimal_placements", "alternatives"),
        "compare": ("orders", "first second"),
        "placements": ("placements",),
        "programs": ("programs", "requests"),
        "cost": ("sizes", "requests", "steps"),
        "crossings": ("cells", "members"),
        "synthesize": ("points", "sizes", "trees"),
        "redistribute": ("steps",),
        "transfer": ("compared", "levels"),
        "run": ("steps", "requests"),
        "calibrate": ("tables", "efficiencies"),
        "classics": ("classics",),
        "schema": ("schemas",),
        "topology list": ("presets",),
    }
)
"""The table of each command: the first of these keys that its answer has, or two rows' keys."""


def csv_text(data: Mapping[str, Any], keys: Iterable[str]) -> str:
    """The rows under the first of these keys, RFC 4180: a header, then a line for each.

    A list of words or numbers has spaces between them, what else is neither number nor text is
    JSON; tables inside a row are left out, and null is empty.
    """
    rows = [dict(_cells(row)) for row in _rows(data, keys)]
    names = list(dict.fromkeys(name for row in rows for name in row))
    text = io.StringIO()
    writer = csv.DictWriter(text, names)
    if names:
        writer.writeheader()
        writer.writerows(rows)
    return text.getvalue()


def _rows(data: Mapping[str, Any], keys: Iterable[str]) -> Iterator[Mapping[str, Any]]:
    for key in keys:
        single = [data[one] for one in key.split() if one in data] if " " in key else []
        for row in single or data.get(key) or ():
            yield row if isinstance(row, Mapping) else {key.removesuffix("s"): row}
        if single or data.get(key):
            return


def _cells(row: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in row.items():
        if isinstance(value, Mapping) and value:
            yield from _cells(value, f"{before}{key}.")
        elif not _is_table(value):
            yield before + key, _cell(value)


def _is_table(value: object) -> bool:
    return isinstance(value, list) and any(isinstance(one, Mapping) for one in value)


def _cell(value: Any) -> Any:
    if isinstance(value, list) and all(isinstance(one, str | float | int) for one in value):
        return " ".join(map(str, value))
    plain = isinstance(value, str | int | float | None) and not isinstance(value, bool)
    return value if plain else json.dumps(value)
