"""One change somewhere in plain data: a key less or more, another value, an entry less or twice."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

from hypothesis import strategies as st

Place = tuple[int | str, ...]
VALUES: tuple[object, ...] = (
    *(None, True, -1, 0, 1, 2, 7, 2**31, 2**70, "", "x", "0", "root", "1 GiBx", "10 GB/s", "3 us"),
    *("switch", "torus", "ring", "all-reduce", "allreduce", "sum", "optimal", [], {}, [1], ["x"]),
    *({"a": 1}, {"min_members": 1}, {"min_members": 3}, [[1]]),
)


def places(data: object, above: Place = ()) -> Iterator[Place]:
    """Where data has a part, from the top: keys and positions."""
    yield above
    if isinstance(data, dict):
        for key, inner in data.items():
            yield from places(inner, (*above, key))
    elif isinstance(data, list):
        for position, inner in enumerate(data):
            yield from places(inner, (*above, position))


def part(data: Any, place: Place) -> Any:
    """The part at a place."""
    for key in place:
        data = data[key]
    return data


@st.composite
def mutants(draw: st.DrawFn, data: dict[str, Any]) -> dict[str, Any]:
    """The data with one change."""
    made = copy.deepcopy(data)
    *above, last = draw(st.sampled_from([place for place in places(made) if place]))
    owner: Any = part(made, tuple(above))
    match draw(st.sampled_from(("value", "value", "drop", "key", "twice", "swap"))):
        case "value":
            owner[last] = copy.deepcopy(draw(st.sampled_from(VALUES)))
        case "drop":
            del owner[last]
        case "key" if isinstance(owner, dict):
            owner["colour"] = draw(st.sampled_from(VALUES))
        case "twice" if isinstance(owner, list) and isinstance(last, int):
            owner.append(copy.deepcopy(owner[last]))
        case "swap":
            others = [place for place in places(made) if place]
            owner[last] = copy.deepcopy(part(made, draw(st.sampled_from(others))))
    return made
