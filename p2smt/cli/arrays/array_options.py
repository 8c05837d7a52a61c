"""Options that describe arrays, and what their values mean."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from p2smt.errors import InputError

if TYPE_CHECKING:
    from p2smt.arrays.array_type import ArrayType, Uneven
    from p2smt.arrays.mesh import Mesh
    from p2smt.cluster.topology import Topology

PEERS = ("dtensor", "shardy")
"""Planners that a plan may be compared with."""

MeshOption = Annotated[
    str | None,
    typer.Option("--mesh", "-m", metavar="NAME=N,..", help="Mesh axes such as dp=4,tp=8."),
]
ShapeOption = Annotated[
    str | None,
    typer.Option("--shape", metavar="N,N,..", help="Global shape such as 8192,8192 or 8192x8192."),
]
DtypeOption = Annotated[
    str, typer.Option("--dtype", metavar="NAME", help="f64, f32, bf16, f16, i64, i32, u8, ..")
]
FromOption = Annotated[
    str | None,
    typer.Option(
        "--from",
        metavar="TYPE",
        help="One entry per dimension, axes major first: 'S(dp),S(tp)', 'R,S(dp,tp)', sub-axes "
        "'S(tp:(2)4),R', partial axes 'R,R;P(dp);P(tp)'.",
    ),
]
ToOption = Annotated[str | None, typer.Option("--to", metavar="TYPE", help="The same.")]
DevicesOption = Annotated[
    str | None,
    typer.Option(
        "--device-ids",
        metavar="N,N,..",
        help="Device of each mesh position, row-major; default: 0,1,2,..",
    ),
]
ToDevicesOption = Annotated[
    str | None,
    typer.Option(
        "--to-device-ids", metavar="N,N,..", help="The same of the destination: another order."
    ),
]
UnevenOption = Annotated[
    str,
    typer.Option(
        "--uneven",
        metavar="RULE",
        help="Of dimensions that do not divide: refuse, padded or nested (chunks of chunks).",
    ),
]
CutsOption = Annotated[
    str,
    typer.Option("--cuts", metavar="WHERE", help="Axes may be cut at all primes, or at levels."),
]
MemoryOption = Annotated[
    str | None,
    typer.Option(
        "--memory",
        metavar="SIZE",
        help="Cap on input, output and pack buffer of every step, per device; default: every state "
        "at most the larger of source and destination.",
    ),
]


@dataclass(frozen=True, slots=True)
class ArrayTexts:
    """The options that describe the two types, as given."""

    mesh: str | None
    shape: str | None
    dtype: str
    source: str | None
    target: str | None
    placement: str | None
    device_ids: str | None
    to_device_ids: str | None
    uneven: str

    def types(self, topology: Topology) -> tuple[ArrayType, ArrayType]:
        """Source and destination.

        Raises:
            InputError: an option is missing, or its value does not fit.
        """
        from p2smt.arrays.array_type import ArrayType
        from p2smt.arrays.element import ElementType
        from p2smt.arrays.text import parse_layout

        mesh = self._mesh(topology)
        shape = shape_of(_given(self.shape, "--shape", "--shape 8192,8192"))
        if not shape:
            nothing = "an array without dimensions has nothing to shard"
            raise InputError("shape ()", nothing, "give at least one dimension")
        element, rule = ElementType.parse(self.dtype), uneven_of(self.uneven)
        first = parse_layout(_given(self.source, "--from", "--from 'S(dp),R'"), mesh)
        last = parse_layout(_given(self.target, "--to", "--to 'R,S(dp)'"), mesh)
        return (
            ArrayType(mesh, shape, element, first, rule),
            ArrayType(self._target_mesh(mesh), shape, element, last, rule),
        )

    def _mesh(self, topology: Topology) -> Mesh:
        """The mesh on the devices that a placement matrix or a list gives it."""
        from p2smt.arrays.text import parse_mesh
        from p2smt.cli.scene_options import placement_of

        text = _given(self.mesh, "--mesh", "--mesh dp=4,tp=8")
        if self.device_ids is not None:
            if self.placement is not None:
                rule = "both say which device stands where"
                raise InputError("--placement beside --device-ids", rule, "drop one of them")
            return parse_mesh(text, ids_of(self.device_ids, "--device-ids"))
        found = parse_mesh(text)
        if self.placement is None:
            return found
        matrix = placement_of(self.placement, topology, found.axes)
        return parse_mesh(text, [int(device) for device in matrix.rank_tensor().ravel()])

    def _target_mesh(self, mesh: Mesh) -> Mesh:
        from dataclasses import replace

        if self.to_device_ids is None:
            return mesh
        return replace(mesh, devices=tuple(ids_of(self.to_device_ids, "--to-device-ids")))


def _given(text: str | None, option: str, example: str) -> str:
    if text is None:
        raise InputError(option, "is missing", f"give it like {example}")
    return text


def shape_of(text: str) -> tuple[int, ...]:
    """A shape such as ``8192,8192``, ``(8192, 8192)`` or ``8192x8192``.

    Sizes of 0 are told by what they mean.

    Raises:
        InputError: it is no list of whole numbers.
    """
    from p2smt.cli.given import count_of

    if not text.strip("()[] "):
        return ()
    what = f"--shape {text[:60]!r}: a size"
    parts = text.strip("()[] ").removesuffix(",").replace("x", ",").split(",")
    return tuple(count_of(part.strip(), what, 2**53, least=0) for part in parts)


def ids_of(text: str, option: str) -> Sequence[int]:
    """Device ids such as ``0,2,1,3``.

    Raises:
        InputError: it is no list of whole numbers.
    """
    from p2smt.cli.given import count_of

    what = f"{option} {text[:60]!r}: a device"
    return [count_of(part, what, 2**31, least=0) for part in text.strip("[] ").split(",")]


def uneven_of(text: str) -> Uneven:
    """The rule of that name.

    Raises:
        InputError: there is none.
    """
    from p2smt.arrays.array_type import Uneven

    known = {rule.value: rule for rule in Uneven}
    if text not in known:
        raise InputError(f"--uneven {text[:40]!r}", f"must be one of {', '.join(known)}")
    return known[text]


def peers_of(text: str | None, shardy_file: str | None) -> tuple[str, ...] | None:
    """The planners of --compare; None: there is nothing to compare with.

    Raises:
        InputError: one is unknown, or --shardy-file has no use.
    """
    names = None if text is None else tuple(name.strip() for name in text.split(","))
    for name in names or ():
        if name not in PEERS:
            rule = f"is none of {' and '.join(PEERS)}"
            raise InputError(f"--compare {name[:40]!r}", rule, "name one of these")
    if shardy_file is not None and "shardy" not in (names or ()):
        raise InputError("--shardy-file", "is what --compare shardy reads", "drop it")
    return names
