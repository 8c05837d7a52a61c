"""Orders in files and texts: each form once, and what is refused without a traceback."""

from __future__ import annotations

import io
import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from p2smt.cluster.file import load_topology, parse_topology
from p2smt.errors import InputError
from p2smt.interop.rank_orders import array_of, named_mesh, parse_lines, parse_npy, read_order
from p2smt.parallelism.placement import IntArray
from p2smt.parallelism.request import Problem, parse_axes, reduce
from p2smt.search import comparison as tensors
from tests.cli.tools import RACKS
from tests.strategies.draws import Draws, draws

LISTED = ("n4", "n1", "n3", "n2")
MIXED = [0, 2, 4, 6, 1, 3, 5, 7]
PROBLEM = Problem(
    parse_topology(RACKS, "racks"), parse_axes("dp=2,pp=2,tp=2"), (reduce("dp=1MiB"),)
)
START = tensors.launch_devices(PROBLEM, LISTED)
KNOWN = {"listed": START.reshape(2, 2, 2)}


def read(text: str) -> tuple[str, list[int]]:
    name, ranks = read_order(text, PROBLEM, LISTED, KNOWN)
    return name, ranks.ravel().tolist()


def npy(array: np.typing.NDArray[np.generic]) -> bytes:
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_every_form_of_one_order(folder: Path) -> None:
    mesh = np.array(MIXED).reshape(2, 2, 2)
    wanted = START[mesh].ravel().tolist()
    (folder / "mesh.npy").write_bytes(npy(mesh))
    (folder / "small.npy").write_bytes(npy(np.asfortranarray(mesh.astype(np.uint8))))
    (folder / "mesh.json").write_text(json.dumps(mesh.tolist()))
    names = ["tp", "dp", "pp"]
    data = {"mesh": mesh.transpose(2, 0, 1).tolist(), "mesh_dim_names": names, "device": "cuda"}
    (folder / "named.json").write_text(json.dumps(data))
    (folder / "ranks.txt").write_text("\n".join(map(str, MIXED)) + "\n")
    (folder / "ranks.csv").write_text(",".join(map(str, MIXED)))
    each = [LISTED[rank // 2] for rank in MIXED]
    (folder / "hosts.txt").write_text("# by rank\n" + "\n".join(each))
    table = [f"{r},{LISTED[v // 2]},{v % 2}" for r, v in enumerate(MIXED)]
    (folder / "table.csv").write_text("rank,host,local_rank\n" + "\n".join(reversed(table)))
    (folder / "hosts.json").write_text(json.dumps(each))
    placed = list(enumerate(zip(each, (v % 2 for v in MIXED), strict=True)))
    lines = [f"rank {r}={host}.cluster.local slot={slot}" for r, (host, slot) in placed]
    (folder / "rankfile").write_text("\n".join(reversed(lines)))
    cores = [f"Rank {r} = {host} slots=0:{4 * slot}-{4 * slot + 3}" for r, (host, slot) in placed]
    (folder / "cores").write_text("# cores\n" + "\n".join(cores))
    texts = [path.name for path in folder.iterdir()] + [json.dumps(MIXED), "./ranks.txt"]
    assert len(texts) == 13
    for text in texts:
        assert read(text) == (text, wanted), text


def test_names_labels_orders_of_axes_and_host_lists() -> None:
    assert read("listed") == ("listed", START.tolist())
    assert read("mine=listed") == ("mine", START.tolist())
    assert read("tp-pp-dp")[1] == START.tolist()
    assert read("megatron=tp-cp-ep-dp-pp")[0] == "megatron"
    assert read("n4,n1,n3,n2")[1] == START.tolist()
    assert read("n[1-4]")[1] != START.tolist()


def test_a_mesh_holds_0_and_a_matrix_does_not() -> None:
    problem = Problem(load_topology("azure-ndv4:2"), parse_axes("dp=2,tp=8"), (reduce("dp=1MiB"),))
    _, matrix = read_order("[[1,2],[2,4]]", problem, None, {})
    assert matrix[1, 0] == 4
    _, mesh = read_order(json.dumps(np.arange(16).reshape(2, 8).tolist()), problem, None, {})
    assert mesh[1, 0] == 8


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("sorted-by", "is none that is known"),
        ("", "is none that is known"),
        ("[0,1", "is not JSON"),
        ("[" * 5000, "is not JSON"),
        ("[]", "none empty"),
        ("[[0,1],[2]]", "rows of different lengths"),
        ("[0,1.5]", "whole numbers"),
        ("[0,true]", "whole numbers"),
        ("[0,-1]", "whole numbers"),
        (f"[0,{10**30}]", "whole numbers"),
        ("{}", "has no key mesh"),
        ('{"mesh": [[0,1],[2,3]], "mesh_dim_names": ["dp"]}', "each of 2 dimensions once"),
        ('{"mesh": [[0,1],[2,3]], "mesh_dim_names": ["dp", "xx"]}', "'xx' is no axis"),
        ('{"mesh": 3}', "whole numbers"),
        ("[0,0,1,2,3,4,5,6]", "each launched rank .*; 7 is missing: ranks count from 0"),
        ("[1,2,3,4,5,6,7,8]", "each launched rank .*; 0 is missing"),
        ("[0,1,2,3,4,5,6,7,8]", "each launched rank .*; leave out what it holds beside them"),
        ("tp-cp-xx-pp", "'xx' is no axis; the axes are dp, pp, tp"),
        ("tpp-dp-pp", "'tpp' is no axis; .*did you mean 'tp'"),
        ("n1,n1,n2,n2", "; list the hosts, or a host for each rank as SLURM_HOSTFILE has"),
        ("table9.csv", "local rank 9, and a node 2 devices; count the devices of each host"),
        ("short.csv", "each on a device of its own; it reads like what p2smt export"),
        ("heading.csv", "has no line after its heading"),
        ("n[1-3],n9", "is not in racks"),
        ("n[1-999999999]", "names more than"),
        ("missing.npy", "cannot be read"),
        ("./missing", "cannot be read"),
        (".", "is a directory"),
        ("empty.txt", "is empty"),
        ("bytes.txt", "is not UTF-8"),
        ("text.npy", "is no .npy file"),
        ("floats.npy", "not whole numbers"),
        ("objects.npy", "not whole numbers"),
        ("huge.npy", "entries"),
        ("cut.npy", "cut short"),
        ("row.csv", "line 3: is not rank,host,local_rank"),
        ("twice.csv", "has rank 0 again"),
        ("odd.txt", "line 2: "),
    ],
)
def test_bad_orders(folder: Path, text: str, message: str) -> None:
    (folder / "empty.txt").write_text("# nothing\n")
    (folder / "bytes.txt").write_bytes(b"0\n\xff")
    (folder / "text.npy").write_text("0 1 2 3")
    (folder / "floats.npy").write_bytes(npy(np.zeros(8)))
    (folder / "objects.npy").write_bytes(npy(np.array([{}], dtype=object)))
    header = npy(np.zeros(8, dtype=np.int64))
    (folder / "huge.npy").write_bytes(header.replace(b"(8,), }        ", b"(99999999999,),}"))
    (folder / "cut.npy").write_bytes(header[:-1])
    (folder / "row.csv").write_text("rank,host,local_rank\n0,n1,0\n1,n2\n")
    (folder / "twice.csv").write_text("rank,host,local_rank\n0,n1,0\n0,n2,0\n")
    (folder / "table9.csv").write_text("rank,host,local_rank\n0,n1,9\n")
    (folder / "short.csv").write_text("rank,host,local_rank\n0,n1,0\n")
    (folder / "heading.csv").write_text("rank,host,local_rank\n")
    (folder / "odd.txt").write_text("n1\nn2 max_slots\n")
    with pytest.raises(InputError, match=message):
        read(text)


def test_dimensions_of_one_rank_may_be_left_out() -> None:
    data: dict[str, object] = {"mesh": [[[0], [1]]], "mesh_dim_names": ["cp", "dp", "x"]}
    assert named_mesh(data, ("dp", "tp"), "mesh").tolist() == [[0], [1]]


@given(st.binary(max_size=300) | st.binary(max_size=200).map(lambda b: npy(np.arange(8)) + b))
def test_no_bytes_break_the_reader_of_arrays(raw: bytes) -> None:
    try:
        found = parse_npy(raw, "fuzz")
    except InputError:
        return
    assert found.size >= 1


@given(draws())
def test_no_change_of_an_array_breaks_the_reader(data: Draws) -> None:
    raw = bytearray(npy(np.arange(8)))
    for _ in range(data.draw(st.integers(1, 4))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    try:
        found = parse_npy(bytes(raw), "fuzz")
    except InputError:
        return
    assert found.min() >= 0


@pytest.mark.exhaustive
@given(st.recursive(st.integers(-2, 9) | st.none() | st.text(max_size=2), st.lists, max_leaves=20))
def test_no_value_breaks_the_reader_of_lists(value: object) -> None:
    try:
        found: IntArray = array_of(value, "fuzz")
    except InputError:
        return
    assert found.tolist() == value


@example(",")
@given(st.text(max_size=200) | st.from_regex(r"([0-9n,\[\]# -]*\n)*", fullmatch=True))
def test_no_text_breaks_the_reader_of_lines(text: str) -> None:
    try:
        parse_lines(text, "fuzz")
    except InputError:
        return


@given(st.text(max_size=60))
def test_no_text_breaks_the_reader_of_orders(text: str) -> None:
    try:
        _, ranks = read_order(text, PROBLEM, LISTED, KNOWN)
    except InputError:
        return
    assert ranks.shape == (2, 2, 2)
