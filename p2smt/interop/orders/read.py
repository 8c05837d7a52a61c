"""What a text that names a rank order means: a name, a list in JSON, a file, an order of axes."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence

import numpy as np

from p2smt.cluster.nodes.hostlist import parse_hostlist
from p2smt.errors import InputError
from p2smt.files.json_text import loads, read_json
from p2smt.files.yaml_text import read_text
from p2smt.interop.orders.mesh_json import array_of, named_mesh
from p2smt.interop.orders.npy import read_npy
from p2smt.interop.orders.rank_lines import parse_lines
from p2smt.parallelism.placement import IntArray
from p2smt.parallelism.request import Problem
from p2smt.search.comparison import tensors

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
        return tensors.of_hosts(problem, parse_hostlist(text), f"order {_short(text)!r}")
    if tensors.is_axis_order(problem, text) or text in problem.axis_names:
        return tensors.of_axis_order(problem, text, tensors.launch_devices(problem, listed))
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
        start = tensors.launch_devices(problem, listed)
        return tensors.of_mesh(problem, read_npy(path), start, source)
    if path.endswith(".json"):
        return _json(read_json(path, source, _REMEDY, MAX_BYTES), problem, listed, source)
    found = parse_lines(read_text(path, "order file", MAX_BYTES), source)
    if isinstance(found, tuple):
        return tensors.of_hosts(problem, found, source)
    if isinstance(found, list):
        return tensors.of_places(problem, found, source)
    return tensors.of_mesh(problem, found, tensors.launch_devices(problem, listed), source)


def _json(data: object, problem: Problem, listed: Sequence[str] | None, source: str) -> IntArray:
    """A mesh with named dimensions, a mesh or a rank list, or a matrix (which holds no 0)."""
    start = tensors.launch_devices(problem, listed)
    if isinstance(data, dict):
        if "mesh" not in data:
            raise InputError(source, "has no key mesh", _REMEDY)
        mesh = named_mesh(data, problem.axis_names, source)
        return tensors.of_mesh(problem, mesh, start, source)
    if isinstance(data, list) and data and all(isinstance(one, str) for one in data):
        return tensors.of_hosts(problem, data, source)
    found = array_of(data, source)
    if found.ndim == 2 and not np.any(found == 0):
        return tensors.of_matrix(problem, found.tolist(), source)
    return tensors.of_mesh(problem, found, start, source)
