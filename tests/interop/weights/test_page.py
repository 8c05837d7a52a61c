"""The page of layouts: its file is read, and it names every family, option and refusal there is."""

from __future__ import annotations

import json
import re
from pathlib import Path

from p2smt.interop.weights.models import WEIGHT_FAMILIES
from p2smt.interop.weights.table import FRAMEWORKS, MESHES, layout_of
from p2smt.transfer.layout_file import layout_of_data

PAGE = (Path(__file__).parents[3] / "docs" / "transfer-layouts.md").read_text(encoding="utf-8")


def test_its_file_is_read() -> None:
    (text,) = re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL)
    layout = layout_of_data(json.loads(text), "the page")
    assert layout.devices == 4
    assert len({id(shards) for shards in layout.shards.values()}) == 1


def test_it_names_families_and_options() -> None:
    (families,) = re.findall(r"Names are known of these families\n(.*?)\n\n", PAGE, re.DOTALL)
    named = families.partition(":")[2].strip().rstrip(".").replace("\n", " ").split(", ")
    assert named == list(WEIGHT_FAMILIES)
    for name, framework in FRAMEWORKS.items():
        (row,) = re.findall(rf"^\| `{name}:`.*$", PAGE, re.MULTILINE)
        said = set(re.findall(r"`([a-z]+)[`=]", row))
        assert set(framework.options) <= said, name
    assert all(f"`{name}:`" in PAGE for name in MESHES)


def test_its_layouts_are_read() -> None:
    (text,) = re.findall(r"```text\n(.*?)```", PAGE, re.DOTALL)
    layouts = [line.split()[0] for line in text.splitlines()]
    assert [layout_of(one, "llama-3-70b").devices for one in layouts[:-1]] == [64, 8, 64, 8, 8, 8]
