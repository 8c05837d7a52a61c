"""The study of public launch files: its table is of its outcomes, most files are read whole."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

from experiments.launch_files.page import BEFORE, PAGE, outcomes, page
from experiments.launch_files.study import FAULT, HERE, READ, REFUSED, files, outcome
from p2smt.files.yaml_text import load_yaml
from p2smt.training.strategy import parse_strategy


def test_the_page_is_of_now() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert page(text) == text, "run: python -m experiments.launch_files.page"


def test_two_files_of_each_query_and_most_are_read_whole() -> None:
    queries: Any = load_yaml((HERE / "queries.yaml").read_text(), "queries.yaml")
    names = [one["name"] for one in queries["queries"]]
    assert Counter(one["query"] for one in files()) == dict.fromkeys(names, 2)
    found = outcomes()
    assert found.keys() == outcomes(BEFORE).keys() == {one["file"] for one in files()}
    counts = Counter(one["outcome"] for one in found.values())
    assert counts[READ] >= 7
    assert counts[FAULT] == 0
    for facts in files():
        one = found[facts["file"]]
        if one["outcome"] == READ:
            assert parse_strategy(one["strategy"]).devices == facts["devices"]
            assert not set(one["mapped"]) & set(one["ignored"])
        else:
            assert one["said"].startswith(facts["file"])


def test_outcomes_tell_what_is_refused_from_what_is_not_understood(tmp_path: Path) -> None:
    data = {"train_micro_batch_size_per_gpu": 1, "bf16": {"enabled": True}}
    told = {"devices": 8, "model": "llama-3.2-1b", "settings": {"seq": 1024}}
    path = tmp_path / "ds.json"
    for more, kind in (
        ({}, READ),
        ({"zero_optimization": {"offload_param": {"device": "cpu"}}}, REFUSED),
        ({"train_micro_batch_size_per_gpu": "auto"}, FAULT),
    ):
        path.write_text(json.dumps(data | more))
        assert outcome(path, told)["outcome"] == kind
