"""Reads public launch files, and says of each what became of its options.

Usage: python -m experiments.launch_files.study FOLDER [RESULTS]

FOLDER has the files that files.yaml names; their texts are not part of this repository.
RESULTS, results.json of this folder if none is given, gets the outcomes.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from p2smt.api.workload import read_model
from p2smt.errors import InputError
from p2smt.files.yaml_text import load_yaml, read_text
from p2smt.interop.trainers.launches import read_launch
from p2smt.report.progress import counted
from p2smt.training.strategy import strategy_text

HERE = Path(__file__).parent
RESULTS = HERE / "results.json"
READ, REFUSED, FAULT = "read", "refused", "fault"
FAULTS = (
    *("effect on time and memory is not known", "is no TOML", "does not say"),
    *("must be a whole number", "starts several trainings", "devices are asked for"),
)
"""In messages: what is no refusal of something that is not priced, but not understood."""


def files() -> list[Mapping[str, Any]]:
    """The files with their facts."""
    data: Any = load_yaml(read_text(str(HERE / "files.yaml")), "files.yaml")
    return list(data["files"])


def outcome(path: Path, facts: Mapping[str, Any]) -> dict[str, Any]:
    """What reading a file gives: the run and its options by name, or why it is not read."""
    own = HERE / f"{facts.get('model')}.yaml"
    named = str(own) if own.exists() else facts.get("model")
    settings = {str(name): str(value) for name, value in facts.get("settings", {}).items()}
    model = None if named is None else read_model(named)
    try:
        found = read_launch(str(path), settings, model=model, devices=facts["devices"])
    except InputError as error:
        said = str(error).replace(str(path), path.name)
        kind = FAULT if any(word in said for word in FAULTS) else REFUSED
        return {"outcome": kind, "said": said}
    return {
        "outcome": READ,
        "strategy": strategy_text(found.strategy),
        "batch": f"{found.batch.sequences} x {found.batch.tokens}",
        "mapped": list(getattr(found, "mapped", ())),
        "ignored": list(found.ignored),
        "assumed": len(found.assumed),
    }


def main(folder: str, results: str = str(RESULTS)) -> None:
    """Read all files, and write the outcomes."""
    found = {
        one["file"]: outcome(Path(folder) / one["file"], one) for one in counted(files(), "files")
    }
    Path(results).write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    for name, one in found.items():
        print(name, one["outcome"], one.get("strategy", one.get("said")))


if __name__ == "__main__":
    main(*sys.argv[1:])
