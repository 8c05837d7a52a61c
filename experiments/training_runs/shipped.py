"""The efficiencies that come with p2smt, written from the committed results.

python -m experiments.training_runs.shipped
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from experiments.testbed.script import ended
from experiments.training_runs.store import HERE, read
from p2smt.errors import InputError
from p2smt.training.efficiencies.efficiency_files import dump_efficiency
from p2smt.training.efficiencies.frameworks import framework, layer_seconds
from p2smt.training.efficiency import Efficiency

FOLDER = HERE.parents[1] / "p2smt" / "training" / "efficiencies"
SHIPPED = {
    "megatron-a100": ("megatron-a100", "megatron"),
    "nemo-h100": ("nemo-h100", "nemo"),
    "megatron-h100": ("nemo-h100", "megatron-core"),
    "fsdp-a100": ("fsdp-a100", "fsdp"),
    "fsdp-h100": ("fsdp-h100", "fsdp"),
}
"""Name: whose fit, and which framework's facts.  Runs of Megatron on H100 publish no micro-batch,
so that NeMo's, which is built on it, stand for them."""


def shipped(data: dict[str, Any]) -> dict[Path, str]:
    """The text of each file."""
    return {FOLDER / f"{name}.yaml": _text(name, data) for name in SHIPPED}


def _text(name: str, data: dict[str, Any]) -> str:
    fit, facts = SHIPPED[name]
    row = next(one for one in data["sets"] if one["name"] == fit)
    found = Efficiency(
        name=name,
        device=name.rpartition("-")[2],
        framework=framework(facts),
        fraction=row["fraction"],
        layer_s=layer_seconds(facts),
        runs=row["runs"],
        error=row["mean"],
    )
    groups = [one["group"] for one in data["groups"] if one["name"] == fit]
    source = f"experiments/training_runs/runs.csv, groups {', '.join(groups)}"
    return dump_efficiency(found, (source,))


def main(arguments: Sequence[str]) -> None:
    """Write the files.

    Raises:
        InputError: there are arguments.
    """
    if arguments:
        raise InputError(f"{len(arguments)} arguments", "none is expected")
    for path, text in shipped(read()).items():
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    sys.exit(ended(main, sys.argv[1:]))
