"""Transfers written as code: ranks of both sides run it over Gloo, on state dicts of theirs."""

from __future__ import annotations

import importlib.util
import itertools
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest
import torch
import torch.distributed as dist

from p2smt.interop.weights.torch_code import CodedTransfer, literal, transfer_module
from p2smt.resharding.types import ElementType
from p2smt.result import SearchLimits
from p2smt.transfer.layouts import Tensor, WeightLayout
from p2smt.transfer.plan import TreePiece
from p2smt.transfer.question import TransferQuestion
from p2smt.transfer.search import plan_moves
from tests.cli.tools import cli
from tests.runtime.forked import fork_ranks, join
from tests.runtime.transfers.tools import interleaved, relayed
from tests.tiers import but_the_first
from tests.transfer.cases import Case, cluster, random_case


def coded(case: Case, *, buckets: int = 1, pieces: tuple[TreePiece, ...] = ()) -> CodedTransfer:
    """The plan of a case, or other pieces, to be written in bfloat16."""
    layouts = case.before, case.after
    question = TransferQuestion(
        cluster(16, 4), *layouts, case.sources, case.targets, 2, nominal=True
    )
    found = plan_moves(question.moves, question.ports, 2, SearchLimits())
    return CodedTransfer(question, pieces or found.pieces, buckets, ElementType.BF16, "a verdict")


def loaded(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location("moved", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def written(folder: Path, plan: CodedTransfer, chunk: int = 5) -> Path:
    """The module, with chunks so small that pieces have several."""
    path = folder / "moved.py"
    path.write_text(transfer_module(plan))
    clean(path)
    text = path.read_text()
    path.write_text(text.replace("\nCHUNK = 2097152\n", f"\nCHUNK = {chunk}\n"))
    assert f"\nCHUNK = {chunk}\n" in path.read_text()
    return path


def clean(path: Path) -> None:
    """What is written is as formatters and linters want it, by their own rules."""
    ruff = str(Path(sys.executable).with_name("ruff"))
    for words in (("check",), ("format", "--check")):
        done = subprocess.run(
            [ruff, *words, "--isolated", str(path)], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr


def whole(case: Case, dtype: torch.dtype) -> dict[str, torch.Tensor]:
    """Tensors whose values are small integers, exact in bfloat16, all different for a while."""
    found = {}
    for number, (name, tensor) in enumerate(case.before.tensors.items()):
        count = int(torch.tensor(tensor.shape, dtype=torch.int64).prod())
        values = (torch.arange(count) * 7 + 31 * number) % 251
        found[name] = values.to(dtype).reshape(tensor.shape)
    return found


def moved_by_ranks(
    path: Path,
    plan: CodedTransfer,
    case: Case,
    dtype: torch.dtype,
    ranks: tuple[int, ...] = (),
    *,
    grouped: bool = False,
) -> int:
    """Every rank loads the module, moves its part, and compares every value.

    ``ranks``: those of the plan in a job of more; ``grouped``: by a process group.
    """

    def work(number: int) -> None:
        join(number, max(len(plan.devices), max(ranks, default=0) + 2), path.parent / "store")
        module = loaded(path)
        group = dist.new_group(sorted(ranks)) if grouped else None
        if ranks and number not in ranks:
            return
        rank = ranks.index(number) if ranks else number
        module.make_groups(group, None if grouped else ranks or None)
        values = whole(case, dtype)
        before = {
            name: [one.clone() for one in own] for name, own in module.cut(values, rank).items()
        }
        right = module.cut(values, rank, after=True)
        after = {name: [torch.full_like(one, -1) for one in own] for name, own in right.items()}
        module.move(before, after | {"other": None})
        for name, own in right.items():
            for found, one in zip(after[name], own, strict=True):
                assert torch.equal(found, one), (rank, name)

    return fork_ranks(max(ranks) + 2 if ranks else len(plan.devices), work)


@pytest.mark.cluster
@pytest.mark.parametrize("grouped", [True, False])
def test_the_ranks_may_be_some_of_a_larger_job(tmp_path: Path, *, grouped: bool) -> None:
    """By a process group, or in another order by a list; stars and chains."""
    case = interleaved()
    stars = starred(case)
    plan = coded(case, buckets=2, pieces=tuple(_every_second(stars)))
    path = written(tmp_path, plan)
    ranks = tuple(range(1, 1 + len(plan.devices)))
    ranks = ranks if grouped else ranks[::-1]
    assert moved_by_ranks(path, plan, case, torch.bfloat16, ranks, grouped=grouped) == 0


def _every_second(stars: tuple[TreePiece, ...]) -> Iterator[TreePiece]:
    """Of every second class its star, of the others the pieces as planned."""
    own = coded(interleaved()).pieces
    for star in stars:
        planned = [piece for piece in own if piece.number == star.number]
        yield from [star] if star.number % 2 == 0 else planned


def test_a_padded_tensor_is_told(tmp_path: Path) -> None:
    module = loaded(written(tmp_path, coded(interleaved())))
    said = module._misfit([torch.empty(256, 64)], [(232, 64)])
    assert said.endswith("if the rest is padding, give tensor[:232]")
    said = module._misfit([torch.empty(232, 65)], [(232, 64)])
    assert said.endswith("give tensor[:, :64]")
    assert "boxes are of" in module._misfit([torch.empty(230, 64)], [(232, 64)])


@pytest.mark.cluster
@pytest.mark.parametrize("buckets", but_the_first(3, 1))
def test_interleaved_parts_are_moved(tmp_path: Path, buckets: int) -> None:
    """A sender of float32 casts as it packs."""
    plan = coded(interleaved(), buckets=buckets)
    path = written(tmp_path, plan)
    assert moved_by_ranks(path, plan, interleaved(), torch.float32) == 0


@pytest.mark.cluster
@pytest.mark.parametrize("seed", but_the_first(0, 1, 2, 3))
def test_random_layouts_are_moved(tmp_path: Path, seed: int) -> None:
    case = random_case(seed, 4, [6, 8][seed % 2], same=seed % 2 == 0, small=True)
    plan = coded(case, buckets=1 + seed % 2)
    path = written(tmp_path, plan)
    assert moved_by_ranks(path, plan, case, torch.bfloat16) == 0


def starred(case: Case) -> tuple[TreePiece, ...]:
    """Every class as a whole from its first holder to each that needs it."""
    return tuple(
        TreePiece(number, 0, one.elements, tuple((one.holders[0], d) for d in one.needers))
        for number, one in enumerate(case.moves().classes)
    )


@pytest.mark.cluster
def test_stars_are_broadcast(tmp_path: Path) -> None:
    case = interleaved()
    plan = coded(case, buckets=2, pieces=starred(case))
    path = written(tmp_path, plan)
    stars = loaded(path).STARS
    sizes = [len(one.needers) for one in case.moves().classes]
    assert max(sizes) > 1
    assert stars
    assert {1 + len(receivers) for _, receivers in stars} <= {1 + size for size in sizes}
    assert moved_by_ranks(path, plan, case, torch.bfloat16) == 0


@pytest.mark.cluster
def test_a_star_and_a_chain_over_the_same_ranks(tmp_path: Path) -> None:
    """Halves of every class, in turn: the one is broadcast, the other passed on."""
    case, pieces = interleaved(), []
    for star in starred(case):
        way = (star.edges[0][0], *(target for _, target in star.edges))
        half = max(1, star.stop // 2)
        pieces.append(replace(star, stop=half))
        if half < star.stop:
            pieces.append(replace(star, start=half, edges=tuple(itertools.pairwise(way))))
    plan = coded(case, pieces=tuple(pieces))
    path = written(tmp_path, plan)
    module = loaded(path)
    edges = [tuple(module._edges(row[3])) for row in module.PIECES]
    chained = {
        (own[0][0], tuple(sorted(t for _, t in own)))
        for own in edges
        if own[1:2] and own[1][0] == own[0][1]
    }
    assert chained & {*module.STARS}
    assert moved_by_ranks(path, plan, case, torch.bfloat16) == 0


@pytest.mark.cluster
@pytest.mark.exhaustive
def test_others_pass_on_what_they_neither_have_nor_need(tmp_path: Path) -> None:
    case = interleaved()
    plan = coded(case, pieces=relayed(coded(case).pieces, 8))
    assert 8 in plan.devices
    path = written(tmp_path, plan)
    assert moved_by_ranks(path, plan, case, torch.bfloat16) == 0


def test_chains_are_no_stars(tmp_path: Path) -> None:
    case = interleaved()
    pieces = []
    for one in starred(case):
        way = (one.edges[0][0], *(target for _, target in one.edges))
        edges = tuple(itertools.pairwise(way))
        pieces.append(TreePiece(one.number, one.start, one.stop, edges))
    module = loaded(written(tmp_path, coded(case, pieces=tuple(pieces))))
    assert module.STARS == ()
    devices = list(module.DEVICES)
    for row, piece in zip(module.PIECES, pieces, strict=True):
        assert [(devices[a], devices[b]) for a, b in module._edges(row[3])] == list(piece.edges)


def test_names_of_strangers_are_texts(tmp_path: Path) -> None:
    """Neither a tensor's name nor a level's in the verdict becomes code."""
    case, name = interleaved(), '""" \n\'); import os #\\'
    before, after = (
        WeightLayout(4, {name: Tensor(name, (10, 7))}, {name: one.shards["w"]})
        for one in (case.before, case.after)
    )
    plan = coded(Case(before, after, case.sources, case.targets))
    module = loaded(written(tmp_path, replace(plan, verdict=f"entry of {name} 8")))
    assert module.PATTERNS[0][0] == (name,)
    assert "entry of '''" in str(module.__doc__)


def test_other_shapes_and_missing_tensors_are_named(tmp_path: Path) -> None:
    module = loaded(written(tmp_path, coded(interleaved())))
    values = whole(interleaved(), torch.bfloat16)
    own = module.cut(values, 0)
    with pytest.raises(ValueError, match="w: rank 0 has a part of it before this"):
        module._own({}, 0, False)
    own["w"] = own["w"][:1]
    with pytest.raises(ValueError, match=r"w on rank 0: .* its boxes are of"):
        module._own(own, 0, False)


@pytest.mark.cluster
def test_a_module_is_loaded_from_trainers_of_a_small_model(tmp_path: Path) -> None:
    """The file of the command: a receiver fills its own state dict in place."""
    path, rows, columns = (tmp_path / name for name in ("moved.py", "rows.json", "columns.json"))
    rows.write_text(
        '{"devices": 2, "tensors": [{"name": "weight", "shape": [6, 4], "boxes": ['
        '{"box": [[0, 3], [0, 4]], "devices": [0]}, {"box": [[3, 6], [0, 4]], "devices": [1]}]}]}'
    )
    columns.write_text(
        '{"devices": 1, "tensors": [{"name": "weight", "shape": [6, 4], "boxes": ['
        '{"box": [[0, 6], [0, 4]], "devices": [0]}]}]}'
    )
    done = cli(
        *("transfer", "-t", "dgx-h100:1", "--from", str(rows), "--to", str(columns)),
        *("--to-device-ids", "2", "--dtype", "f32", "--code", str(path)),
    )
    assert done.code == 0, done.err
    assert "code written to" in done.out
    clean(path)

    def work(rank: int) -> None:
        join(rank, 3, tmp_path / "store")
        module = loaded(path)
        module.make_groups()
        values = torch.arange(24.0).reshape(6, 4)
        receiver = torch.nn.Linear(4, 6)
        before = {} if rank == 2 else {"weight": values[3 * rank : 3 * rank + 3]}
        module.move(before, receiver.state_dict() if rank == 2 else {})
        assert torch.equal(receiver.weight, values) == (rank == 2)
        assert dist.get_world_size() == len(module.DEVICES)

    assert fork_ranks(3, work) == 0


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ((), "()"),
        ((1,), "(1,)"),
        (("it's", 'a "b"', "\u00fc\n"), '("it\'s", \'a "b"\', "\\xfc\\n")'),
        (tuple(range(40)), "(\n" + "".join(f"    {n},\n" for n in range(40)) + ")"),
    ],
)
def test_tables_read_back(value: tuple[object, ...], text: str) -> None:
    assert literal(value) == text
    assert eval(text) == value
