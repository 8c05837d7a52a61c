"""What a text that names a rank order means: a name, a list in JSON, a file, an order of axes."""

from __future__ import annotations

import io
import math
import os
import re
import tokenize
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.lib import format as npy_format

from p2smt.cluster.hostlist import content_lines, hosts_in, parse_hostlist
from p2smt.cluster.topology import MAX_DEVICES
from p2smt.errors import InputError
from p2smt.files.json_text import loads, read_json
from p2smt.files.yaml_text import read_bytes, read_text
from p2smt.parallelism.placement import MAX_AXES, IntArray
from p2smt.parallelism.request import Problem
from p2smt.search import comparison

MAX_BYTES = 2**25
_ALIASES = {
    "sorted by leaf": "sorted",
    "sorted, axes exchanged": "exchanged",
    "axes exchanged": "exchanged",
}
"""Short names of standard orders, by what is printed; both may be given."""
_LABEL = re.compile(r"[A-Za-z0-9][A-Za-z0-9_. -]{0,39}")
_REMEDY = (
    "name one of the standard orders, a file of ranks or hosts, a mesh (.npy, .json), a list "
    "[0,2,1,3], or an order of axes such as tp-dp-pp"
)


def read_order(
    text: str, problem: Problem, listed: Sequence[str] | None, known: Mapping[str, IntArray]
) -> tuple[str, IntArray]:
    """The name and the rank tensor (shape: axis sizes, entries: device ids) of an order.

    Args:
        text: a name of ``known``; a list or matrix in JSON; a file; an order of axes; or a host
            list.  ``NAME=..`` gives it a name of its own.
        problem: axes, on the hosts that are listed.
        listed: the hosts in the order listed; None: nodes have no names.
        known: the standard orders.

    Raises:
        InputError: it is none of these, or does not fit the axes or the hosts.
    """
    label, equals, value = text.partition("=")
    if equals and _LABEL.fullmatch(label) and not os.path.exists(text):
        return label.strip(), _tensor(value, problem, listed, known)
    return _short(text), _tensor(text, problem, listed, known)


def _short(text: str) -> str:
    plain = " ".join(text.split())
    return plain if len(plain) <= 40 else plain[:38] + ".."


def _tensor(
    text: str, problem: Problem, listed: Sequence[str] | None, known: Mapping[str, IntArray]
) -> IntArray:
    by_name = {_ALIASES.get(name, name): ranks for name, ranks in known.items()} | {**known}
    if text in by_name:
        return by_name[text]
    if os.path.exists(text) or os.sep in text or text.endswith((".npy", ".json")):
        return _file(text, problem, listed)
    if text.lstrip().startswith(("[", "{")):
        return _json(_parsed(text), problem, listed, f"order {_short(text)!r}")
    if listed is not None and text.strip() and ("," in text or "[" in text or text in listed):
        return comparison.of_hosts(problem, parse_hostlist(text), f"order {_short(text)!r}")
    if comparison.is_axis_order(problem, text) or text in problem.axis_names:
        return comparison.of_axis_order(problem, text, comparison.launch_devices(problem, listed))
    names = f"; the standard orders are {', '.join(_ALIASES.get(x, x) for x in known)}"
    raise InputError(f"order {_short(text)!r}", "is none that is known", _REMEDY + names)


def _parsed(text: str) -> object:
    try:
        found: object = loads(text)
    except (ValueError, RecursionError):
        raise InputError(f"order {_short(text)!r}", "is not JSON", _REMEDY) from None
    return found


def _file(path: str, problem: Problem, listed: Sequence[str] | None) -> IntArray:
    source = f"order file {path[:200]!r}"
    if path.endswith(".npy"):
        start = comparison.launch_devices(problem, listed)
        return comparison.of_mesh(problem, read_npy(path), start, source)
    if path.endswith(".json"):
        return _json(read_json(path, source, _REMEDY, MAX_BYTES), problem, listed, source)
    found = parse_lines(read_text(path, "order file", MAX_BYTES), source)
    if isinstance(found, tuple):
        return comparison.of_hosts(problem, found, source)
    if isinstance(found, list):
        return comparison.of_places(problem, found, source)
    return comparison.of_mesh(problem, found, comparison.launch_devices(problem, listed), source)


def _json(data: object, problem: Problem, listed: Sequence[str] | None, source: str) -> IntArray:
    """A mesh with named dimensions, a mesh or a rank list, or a matrix (which holds no 0)."""
    start = comparison.launch_devices(problem, listed)
    if isinstance(data, dict):
        if "mesh" not in data:
            raise InputError(source, "has no key mesh", _REMEDY)
        mesh = named_mesh(data, problem.axis_names, source)
        return comparison.of_mesh(problem, mesh, start, source)
    if isinstance(data, list) and data and all(isinstance(one, str) for one in data):
        return comparison.of_hosts(problem, data, source)
    found = array_of(data, source)
    if found.ndim == 2 and not np.any(found == 0):
        return comparison.of_matrix(problem, found.tolist(), source)
    return comparison.of_mesh(problem, found, start, source)


# Lists of whole numbers in JSON: rank lists, matrices, meshes; and meshes with named dimensions.
# [0, 2, 1, 3]                                          the launched rank of each rank
# [[0, 1], [2, 3]]                                      a mesh (it holds 0), or a matrix (it does
# not)
# {"mesh": [[0, 1], [2, 3]], "mesh_dim_names": ["dp", "tp"]}    the fields of torch's DeviceMesh


_EXAMPLE = "write [[0,1],[2,3]], or add mesh_dim_names"


def array_of(value: object, source: str) -> IntArray:
    """The array that nested lists of whole numbers are.

    Raises:
        InputError: it is ragged, empty, too deep or too large, or holds something else.
    """
    shape: list[int] = []
    level: object = value
    while isinstance(level, list):
        shape.append(len(level))
        if len(shape) > MAX_AXES or not level:
            rule = f"must be lists of 1 to {MAX_AXES} levels, none empty"
            raise InputError(source, rule, _EXAMPLE)
        level = level[0]
    flat: list[object] = value if isinstance(value, list) else [value]
    for size in shape[1:]:
        if any(not isinstance(row, list) or len(row) != size for row in flat):
            raise InputError(source, "has rows of different lengths", _EXAMPLE)
        flat = [entry for row in flat if isinstance(row, list) for entry in row]
    numbers = [entry for entry in flat if type(entry) is int and 0 <= entry < MAX_DEVICES]
    if not shape or len(numbers) != len(flat) or len(flat) > MAX_DEVICES:
        rule = f"must hold whole numbers from 0 to {MAX_DEVICES - 1} alone"
        raise InputError(source, rule, _EXAMPLE)
    return np.array(numbers, dtype=np.int64).reshape(shape)


def named_mesh(data: dict[str, object], axes: Sequence[str], source: str) -> IntArray:
    """The mesh of an object with ``mesh`` and ``mesh_dim_names``, its dimensions in axes' order.

    Dimensions of size 1 may be left out, or have names that are no axes.

    Raises:
        InputError: a key is missing, or the names are not those of the axes.
    """
    names, mesh = data.get("mesh_dim_names"), array_of(data.get("mesh"), f"{source}: mesh")
    if names is None:
        return mesh
    if not isinstance(names, list) or any(not isinstance(name, str) for name in names):
        raise InputError(f"{source}: mesh_dim_names", "must be a list of names", _EXAMPLE)
    if len(names) != mesh.ndim or len(set(names)) != len(names):
        rule = f"must name each of {mesh.ndim} dimensions once"
        raise InputError(f"{source}: mesh_dim_names", rule, _EXAMPLE)
    kept = [i for i, name in enumerate(names) if name in axes or mesh.shape[i] > 1]
    if unknown := [names[i] for i in kept if names[i] not in axes]:
        rule = f"{unknown[0][:40]!r} is no axis"
        raise InputError(f"{source}: mesh_dim_names", rule, f"the axes are {', '.join(axes)}")
    mesh = mesh.reshape([mesh.shape[i] for i in kept])
    order = [kept_name for kept_name in axes if kept_name in names]
    at = [[names[i] for i in kept].index(name) for name in order]
    missing = [axes.index(name) for name in axes if name not in names]
    return np.expand_dims(mesh.transpose(at), missing) if missing else mesh.transpose(at)


# Arrays of whole numbers in numpy's own format (.npy), nothing in which is executed.
# The header is read before the numbers: a file that claims more than it holds costs nothing.


MAX_NPY_BYTES = 8 * MAX_DEVICES + 2**16
_NPY_REMEDY = "save it with numpy.save(path, mesh.mesh.numpy())"

_DAMAGED = (
    *(ValueError, KeyError, TypeError, SyntaxError, RecursionError, EOFError, MemoryError),
    tokenize.TokenError,
)
"""What numpy raises for headers that are none."""


def read_npy(path: str) -> IntArray:
    """The array in a .npy file, as 64-bit whole numbers.

    Raises:
        InputError: the file cannot be read, is no .npy file, or holds no whole numbers, too many
            dimensions or too many entries.
    """
    given = f"file {path[:200]!r}"
    return parse_npy(read_bytes(path, given, MAX_NPY_BYTES, "a mesh has a number per rank"), given)


def parse_npy(raw: bytes, given: str) -> IntArray:
    """The array in the bytes of a .npy file; ``given`` names it in messages.

    Raises:
        InputError: as for :func:`read_npy`.
    """
    file = io.BytesIO(raw)
    try:
        version = npy_format.read_magic(file)
        reads = {(1, 0): npy_format.read_array_header_1_0, (2, 0): npy_format.read_array_header_2_0}
        shape, by_column, kind = reads[version](file)
    except _DAMAGED:
        raise InputError(given, "is no .npy file of version 1 or 2", _NPY_REMEDY) from None
    if kind.hasobject or kind.kind not in "iu":
        raise InputError(given, f"holds {str(kind)[:40]}, not whole numbers", _NPY_REMEDY)
    if not 1 <= len(shape) <= MAX_AXES or not 1 <= math.prod(shape) <= MAX_DEVICES:
        rule = f"has shape {str(list(shape))[:60]}, not 1 to {MAX_AXES} dimensions"
        raise InputError(given, f"{rule} and 1 to {MAX_DEVICES} entries", _NPY_REMEDY)
    rest = raw[file.tell() :]
    if len(rest) != math.prod(shape) * kind.itemsize:
        raise InputError(given, "is cut short, or longer than its header says", _NPY_REMEDY)
    found = np.frombuffer(rest, dtype=kind).reshape(shape, order="F" if by_column else "C")
    if found.min() < 0 or found.max() >= MAX_DEVICES:
        raise InputError(
            given, f"holds a number that is not from 0 to {MAX_DEVICES - 1}", _NPY_REMEDY
        )
    return found.astype(np.int64)


# Files of lines: ranks, hosts, a rankfile, or the table that `p2smt export --to csv` writes.
# 0                     n02                 rank,host,local_rank
# 2                     n01                 0,n02,0
# 1                     n[03-04]            1,n02,1


HEADER = ("rank", "host", "local_rank")
_WHOLE = re.compile(r"[0-9]{1,9}")
_RANKFILE = re.compile(r"rank\s+([0-9]{1,9})\s*=\s*(\S+)(?:\s+slots?\s*=\s*(\S+))?", re.IGNORECASE)


def parse_lines(text: str, source: str) -> IntArray | tuple[str, ...] | list[tuple[str, int]]:
    """The launched rank of each rank, or hosts, or host and local rank of each rank.

    Empty lines, and what follows a #, are skipped.

    Raises:
        InputError: there is nothing, too much, or a line of another kind; names its number.
    """
    lines = list(content_lines(text))
    if not lines:
        raise InputError(source, "is empty", "write a rank or a host a line")
    if len(lines) > MAX_DEVICES:
        raise InputError(source, f"has more than {MAX_DEVICES} lines", "a line is a rank or a host")
    if tuple(part.strip() for part in lines[0][1].split(",")) == HEADER:
        return _table(lines[1:], source)
    if _RANKFILE.match(lines[0][1]):
        return _rankfile(lines, source)
    words = [(n, word) for n, line in lines for word in line.replace(",", " ").split()]
    if not words:
        raise InputError(source, "has no word", "write a rank or a host a line")
    if all(_WHOLE.fullmatch(word) for _, word in words):
        return _ranks(words, source)
    return hosts_in(lines, source)


def _ranks(words: Sequence[tuple[int, str]], source: str) -> IntArray:
    numbers = [int(word) for _, word in words]
    if len(numbers) > MAX_DEVICES or max(numbers) >= MAX_DEVICES:
        rule = f"must hold at most {MAX_DEVICES} ranks, from 0"
        raise InputError(source, rule, "write each launched rank once, row-major over the axes")
    return np.array(numbers, dtype=np.int64)


def _rankfile(lines: Sequence[tuple[int, str]], source: str) -> list[tuple[str, int]]:
    """Host and local rank by rank of Open MPI's rankfile (mpirun(1)).

    The slots of a host are its devices where they are 0, 1, .. once each, as p2smt export writes
    them; any others are cores, and the local ranks of a host count in the order of its ranks.
    """
    found: dict[int, tuple[str, str]] = {}
    for number, line in lines:
        one = _RANKFILE.fullmatch(line)
        where = f"{source}: line {number}"
        if one is None:
            raise InputError(where, "is no line of a rankfile", "write it like rank 0=n01 slot=0")
        if int(one[1]) in found:
            raise InputError(where, f"has rank {int(one[1])} again", "give each rank one line")
        if one[2].startswith("+"):
            rule = f"names {one[2][:40]} by its number in an allocation"
            raise InputError(where, rule, "write the name of the host")
        found[int(one[1])] = (one[2], one[3] or "")
    _check_ranks(found, source, "write a line for each rank")
    slots: dict[str, list[str]] = {}
    for rank in range(len(found)):
        slots.setdefault(found[rank][0], []).append(found[rank][1])
    local = {
        host: [int(one) for one in each]
        if sorted(each) == sorted(map(str, range(len(each))))
        else list(range(len(each)))
        for host, each in slots.items()
    }
    return [(found[rank][0], local[found[rank][0]].pop(0)) for rank in range(len(found))]


def _check_ranks(found: Mapping[int, object], source: str, remedy: str) -> None:
    if sorted(found) != list(range(len(found))):
        raise InputError(source, f"must have each rank 0..{len(found) - 1} once", remedy)


def _table(lines: Sequence[tuple[int, str]], source: str) -> list[tuple[str, int]]:
    """Host and local rank by rank."""
    found: dict[int, tuple[str, int]] = {}
    for number, line in lines:
        parts = [part.strip() for part in line.split(",")]
        if len(parts) != len(HEADER) or not all(_WHOLE.fullmatch(parts[i]) for i in (0, 2)):
            rule, remedy = f"is not {','.join(HEADER)}", "write it like 0,n01,0"
            raise InputError(f"{source}: line {number}", rule, remedy)
        rank = int(parts[0])
        if rank in found:
            given = f"{source}: line {number}"
            raise InputError(given, f"has rank {rank} again", "give each rank one line")
        found[rank] = (parts[1], int(parts[2]))
    if not found:
        raise InputError(source, "has no line after its heading", "write one like 0,n01,0")
    _check_ranks(found, source, "write all that p2smt export --to csv does")
    return [found[rank] for rank in range(len(found))]
