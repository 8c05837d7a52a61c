"""How many GPUs there can be, from what a system shows of them; no torch."""

from __future__ import annotations

from pathlib import Path

import pytest

from p2smt.errors import BackendError, ExecutionError
from p2smt.runtime.payload import RunOptions
from p2smt.runtime.ranks import place as gpus
from p2smt.runtime.ranks.place import Place, check_gpus, most_gpus

NCCL = RunOptions(backend="nccl", device="cuda")
PLACE = Place(5, 8, 5, 8, "localhost", 1, joined=True)


def system(root: Path, nodes: int = 0, cards: int = 0, *others: str) -> Path:
    """A machine with device files for some GPUs, and cards of which the driver may not know."""
    for name in ["sys/bus/pci/devices", "dev", *others]:
        (root / name).mkdir(parents=True, exist_ok=True)
    for number in range(nodes):
        (root / f"dev/nvidia{number}").touch()
    (root / "dev/nvidiactl").touch()
    for number, (vendor, kind) in enumerate([("0x10de", "0x030200")] * cards + [("0x8086", "0x")]):
        card = root / f"sys/bus/pci/devices/{number}"
        card.mkdir()
        (card / "vendor").write_text(f"{vendor}\n")
        (card / "class").write_text(f"{kind}\n")
    return root


@pytest.mark.parametrize(
    ("nodes", "cards", "visible", "most"),
    [
        (0, 0, None, 0),
        (4, 0, None, 4),
        (0, 8, None, 8),  # the driver makes its files when it is first used
        (4, 4, "", 0),
        (4, 4, "-1", 0),
        (4, 4, "2,0", 2),
        (4, 4, "1,-1,2", 1),
        (2, 2, "0,1,2,3", 2),
    ],
)
def test_most(tmp_path: Path, nodes: int, cards: int, visible: str | None, most: int) -> None:
    environment = {} if visible is None else {"CUDA_VISIBLE_DEVICES": visible}
    assert most_gpus(environment, system(tmp_path, nodes, cards)) == most


@pytest.mark.parametrize("way", ["dev/dxg", "dev/kfd", "dev/nvmap"])
def test_other_ways_are_left_to_torch(tmp_path: Path, way: str) -> None:
    assert most_gpus({}, system(tmp_path, 0, 0, way)) is None


def test_a_system_that_shows_nothing(tmp_path: Path) -> None:
    assert most_gpus({}, tmp_path) is None


@pytest.mark.parametrize("place", [None, PLACE])
def test_none_at_all(monkeypatch: pytest.MonkeyPatch, place: Place | None) -> None:
    monkeypatch.setattr(gpus, "most_gpus", lambda: 0)
    with pytest.raises(BackendError, match="backend nccl: this machine shows no CUDA GPU"):
        check_gpus(NCCL, place, 8)
    check_gpus(RunOptions(), place, 8)


def test_too_few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpus, "most_gpus", lambda: 2)
    check_gpus(NCCL, None, 2)
    check_gpus(RunOptions(backend="nccl", device="cuda", ranks_per_gpu=4), None, 8)
    with pytest.raises(ExecutionError, match="rank 2: needs GPU 2, but this machine has 2; start"):
        check_gpus(NCCL, None, 3)
    check_gpus(NCCL, PLACE, 8)  # a launcher may show each rank another
