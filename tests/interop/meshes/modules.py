"""Exported modules, imported by their files."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any


def load(path: str) -> Any:
    """A module by its file."""
    spec = importlib.util.spec_from_file_location(Path(path).stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
