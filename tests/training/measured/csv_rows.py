"""Files of runs for tests, made of columns."""

from __future__ import annotations

from collections.abc import Mapping

ROW: Mapping[str, str] = {
    "id": "r1",
    "group": "k22-a",
    "sweep": "",
    "model": "a",
    "kind": "dense",
    "layers": "4",
    "hidden": "256",
    "heads": "4",
    "kv_heads": "4",
    "ffn": "1024",
    "gated": "0",
    "vocab": "1024",
    "seq": "128",
    "gbs": "8",
    "mbs": "2",
    "hardware": "a100-80",
    "precision": "fp16",
    "tp": "2",
    "sp": "0",
    "cp": "1",
    "pp": "1",
    "vpp": "1",
    "dp": "4",
    "zero": "0",
    "recompute": "full",
    "flash": "0",
    "status": "ok",
    "step_s": "1.5",
    "assumed": "",
}
"""One run on 8 devices."""


def text_of(*rows: Mapping[str, str]) -> str:
    """A file of rows, each ``ROW`` with other values; ids follow where none is given."""
    whole = [{**ROW, "id": f"r{i}", **row} for i, row in enumerate(rows)]
    header = list(dict.fromkeys(key for row in whole for key in row))
    lines = [",".join(row.get(key, "") for key in header) for row in whole]
    return "\n".join([",".join(header), *lines, ""])
