"""Mistakes in schedule files: one edit of the text, as a person would make it.

MSCCL XML: one attribute of a step or a block changed, a step dropped, doubled or moved.
MSCCL++ JSON: one operation dropped, doubled, moved or renamed, one number in it changed.
YAML: one line dropped, doubled or moved, one number, buffer, verb or phrase changed.
"""

from __future__ import annotations

import copy
import json
import re
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise
from typing import Any

Texts = Iterator[tuple[str, str]]
XML_TYPES = ("s", "r", "rcs", "rrc", "rrs", "rrcs", "cpy", "re", "nop")
NUMBERS = ("srcoff", "dstoff", "cnt", "depid", "deps")
OPERATIONS = ("put", "get", "copy", "re", "rre", "signal", "wait", "ppkt", "upkt", "nop", "barrier")
PHRASE = re.compile(r' (wait for|after|await|post|background|packet|barrier)( "[^"]*"| [\d.]+)?')


def _different(changed: Texts, text: str) -> Texts:
    seen = {text}
    for name, new in changed:
        if new not in seen:
            seen.add(new)
            yield name, new


def xml_mutants(text: str) -> Texts:
    """Edits of an MSCCL XML file."""
    yield from _different(_xml_mutants(text), text)


def _xml_mutants(text: str) -> Texts:
    count = len(list(ET.fromstring(text).iter("tb")))
    for block in range(count):
        for kind, edit in _XML_BLOCK.items():
            yield from _edited_xml(text, block, None, kind, edit)
        steps = len(list(list(ET.fromstring(text).iter("tb"))[block]))
        for step in range(steps):
            for kind, edit in _XML_STEP.items():
                yield from _edited_xml(text, block, step, kind, edit)


Edit = Callable[[ET.Element, int | None], None]


def _edited_xml(text: str, block: int, step: int | None, kind: str, edit: Edit) -> Texts:
    root = ET.fromstring(text)
    parent = list(root.iter("tb"))[block]
    edit(parent, step)
    for number, element in enumerate(parent):
        element.set("s", str(number))
    yield kind, ET.tostring(root, encoding="unicode")


def _set(name: str, value: str) -> Edit:
    def edit(parent: ET.Element, step: int | None) -> None:
        (parent if step is None else parent[step]).set(name, value)

    return edit


def _add(name: str, by: int) -> Edit:
    def edit(parent: ET.Element, step: int | None) -> None:
        element = parent if step is None else parent[step]
        element.set(name, str(int(element.get(name, "0")) + by))

    return edit


def _independent(parent: ET.Element, step: int | None) -> None:
    assert step is not None
    parent[step].set("depid", "-1")
    parent[step].set("deps", "-1")


def _drop(parent: ET.Element, step: int | None) -> None:
    assert step is not None
    parent.remove(parent[step])


def _double(parent: ET.Element, step: int | None) -> None:
    assert step is not None
    parent.insert(step, copy.deepcopy(parent[step]))


def _later(parent: ET.Element, step: int | None) -> None:
    assert step is not None
    element = parent[step]
    parent.remove(element)
    parent.insert(step + 1, element)


_XML_BLOCK: Mapping[str, Edit] = {
    f"block {name} {by:+d}": _add(name, by) for name in ("send", "recv", "chan") for by in (-1, 1)
}
_XML_STEP: Mapping[str, Edit] = {
    **{f"type {kind}": _set("type", kind) for kind in XML_TYPES},
    **{f"{name} {by:+d}": _add(name, by) for name in NUMBERS for by in (-1, 1)},
    **{f"{name} {b}": _set(name, b) for name in ("srcbuf", "dstbuf") for b in "ios"},
    "no dependency": _independent,
    "dropped": _drop,
    "doubled": _double,
    "after the next": _later,
}


def json_mutants(text: str) -> Texts:
    """Edits of an MSCCL++ JSON plan."""
    yield from _different(_json_mutants(text), text)


def _json_mutants(text: str) -> Texts:
    plan = json.loads(text)
    for gpu, block in _blocks(plan):
        ops = plan["gpus"][gpu]["threadblocks"][block]["ops"]
        for n in range(len(ops)):
            for kind, new in _op_edits(ops, n):
                edited = copy.deepcopy(plan)
                edited["gpus"][gpu]["threadblocks"][block]["ops"] = new
                yield kind, json.dumps(edited, indent=1)


def _blocks(plan: Any) -> Iterator[tuple[int, int]]:
    for gpu, content in enumerate(plan["gpus"]):
        for block in range(len(content["threadblocks"])):
            yield gpu, block


def _op_edits(ops: list[Any], n: int) -> Iterator[tuple[str, list[Any]]]:
    yield "dropped", ops[:n] + ops[n + 1 :]
    yield "doubled", [*ops[:n], ops[n], *ops[n:]]
    if n + 1 < len(ops):
        yield "after the next", [*ops[:n], ops[n + 1], ops[n], *ops[n + 2 :]]
    for name in OPERATIONS:
        yield f"name {name}", [*ops[:n], {**ops[n], "name": name}, *ops[n + 1 :]]
    for path, value in _numbers(ops[n], ()):
        for by in (-1, 1):
            yield (
                f"{path[-1] if isinstance(path[-1], str) else path[0]} {by:+d}",
                [
                    *ops[:n],
                    _with(ops[n], path, value + by),
                    *ops[n + 1 :],
                ],
            )


def _numbers(value: Any, path: tuple[Any, ...]) -> Iterator[tuple[tuple[Any, ...], int]]:
    items: Any = ()
    if isinstance(value, dict):
        items = value.items()
    elif isinstance(value, list):
        items = enumerate(value)
    elif isinstance(value, int) and not isinstance(value, bool):
        yield path, value
    for key, part in items:
        yield from _numbers(part, (*path, key))


def _with(op: Any, path: tuple[Any, ...], value: int) -> Any:
    edited = copy.deepcopy(op)
    place = edited
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    return edited


def yaml_mutants(text: str) -> Texts:
    """Edits of a schedule in YAML, in the lines below ``steps``."""
    yield from _different(_yaml_mutants(text), text)


def _yaml_mutants(text: str) -> Texts:
    lines = text.splitlines()
    first = next((n for n, line in enumerate(lines) if re.match(r"\s*(steps|ranks):", line)), 0)
    body = [n for n in range(first + 1, len(lines)) if re.match(r"\s*- (?!rank:)", lines[n])]
    for n in body:
        yield "dropped", "\n".join(lines[:n] + lines[n + 1 :])
        yield "doubled", "\n".join([*lines[:n], lines[n], *lines[n:]])
        for name, line in _line_edits(lines[n]):
            yield name, "\n".join([*lines[:n], line, *lines[n + 1 :]])
    for n, m in pairwise(body):
        if m == n + 1:
            yield "after the next", "\n".join([*lines[:n], lines[m], lines[n], *lines[m + 1 :]])


def _line_edits(line: str) -> Texts:
    for found in re.finditer(r"\d+", line):
        for by in (-1, 1):
            number = str(int(found.group()) + by)
            yield f"number {by:+d}", line[: found.start()] + number + line[found.end() :]
    for found in re.finditer(r"\b[ios](?=\[)", line):
        for buffer in "ios":
            yield f"buffer {buffer}", line[: found.start()] + buffer + line[found.end() :]
    for found in PHRASE.finditer(line):
        yield f"no {found.group(1)}", line[: found.start()] + line[found.end() :]
    dash, verb, rest = line.partition("- ")
    for other in XML_TYPES:
        yield f"verb {other}", dash + verb + re.sub(r"^\w+", other, rest)


FILE_MUTATIONS: Mapping[str, Callable[[str], Texts]] = {
    ".xml": xml_mutants,
    ".json": json_mutants,
    ".yaml": yaml_mutants,
}
