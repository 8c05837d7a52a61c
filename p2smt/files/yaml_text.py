"""YAML text to plain data, safely: mappings, lists, text, whole numbers, booleans and null.

Nothing is constructed from tags.  Anchors, aliases, duplicate keys, other tags, deep nesting
and long files are refused, so that a hostile file costs no more than reading it.  Numbers with
a fraction stay text: no format of ours has a bare fraction, a quantity has a unit.
"""

from __future__ import annotations

import os
import re
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeAlias

import yaml
from yaml.composer import Composer

from p2smt.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


try:
    from yaml import CSafeLoader as _Parser
except ImportError:
    from yaml import SafeLoader as _Parser  # type: ignore[assignment]


Plain: TypeAlias = "bool | int | str | list[Plain] | dict[str, Plain] | None"
Path: TypeAlias = "tuple[int | str, ...]"
Lines: TypeAlias = "Mapping[Path, int]"
"""Line numbers by where a part is: keys and list positions from the top."""

MAX_BYTES = 256 * 1024
MAX_DEPTH = 16
MAX_PARTS = 600_000
_TAG = "tag:yaml.org,2002:"
_TEXT_TAGS = {_TAG + kind for kind in ("str", "float", "timestamp", "value", "merge")}
_WHOLE = re.compile(r"[-+]?(0|[1-9][0-9]{0,17})")


def read_text(path: str, what: str = "file", most: int = MAX_BYTES) -> str:
    """The text of a regular UTF-8 file of at most ``most`` bytes.

    Raises:
        InputError: the file is missing, a directory, unreadable, too large or not UTF-8.
    """
    given = f"{what} {path!r}"
    if os.path.isdir(path):
        raise InputError(given, "is a directory", "name a file in it")
    if os.path.exists(path) and not os.path.isfile(path):
        raise InputError(given, "is not a regular file", "save its text in a file")
    raw = read_bytes(path, given, most)
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        rule = f"is not UTF-8 text (byte {error.start})"
        raise InputError(given, rule, "save it as UTF-8") from None


def read_bytes(path: str, given: str, most: int, remedy: str = "shorten it") -> bytes:
    """A file of at most so many bytes; ``given`` names it in messages, ``remedy`` is for more.

    Raises:
        InputError: it cannot be read, or is larger.
    """
    try:
        with open(path, "rb") as file:
            raw = file.read(most + 1)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise InputError(given, f"cannot be read: {reason}", "check its path") from None
    if len(raw) > most:
        raise InputError(given, f"is larger than {most} bytes", remedy)
    return raw


def load_yaml(text: str, source: str, most: int = MAX_BYTES) -> Plain:
    """The plain data of one YAML document of at most ``most`` characters.

    ``source`` names it in messages.

    Raises:
        InputError: the text is not YAML, is empty, or uses what this module refuses.
    """
    try:
        node = _composed(text, source, most, _FastComposer)
    except InputError:
        if len(text) > MAX_BYTES:  # the other parser would take too long for its messages
            raise
        node = _composed(text, source, most, _Composer)
    return _plain(node, source)


def load_yaml_lines(text: str, source: str, most: int) -> tuple[Plain, Lines]:
    """As :func:`load_yaml`, for a text of at most ``most`` characters; and its line numbers.

    Raises:
        InputError: as there, or the text has more than 600,000 parts.
    """
    node = _composed(text, source, most, _FastComposer)
    lines: dict[Path, int] = {}
    _note_lines(node, (), lines)
    return _plain(node, source), lines


def _composed(
    text: str, source: str, most: int, loader: type[_Composer | _FastComposer]
) -> yaml.Node:
    if len(text) > most:
        raise InputError(source, f"is longer than {most} characters", "shorten it")
    with _one_line_errors(source):
        node: yaml.Node | None = yaml.compose(text, Loader=loader)
    if node is None:
        raise InputError(source, "is empty", "write at least one key")
    return node


def _note_lines(node: yaml.Node, path: Path, lines: dict[Path, int]) -> None:
    lines[path] = _line(node)
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            inside = (*path, str(key.value))
            _note_lines(value, inside, lines)
            lines[inside] = _line(key)
    elif isinstance(node, yaml.SequenceNode):
        for position, item in enumerate(node.value):
            _note_lines(item, (*path, position), lines)


@contextmanager
def _one_line_errors(source: str) -> Iterator[None]:
    try:
        yield
    except _RefusedError as refused:
        raise InputError(f"{source}, line {refused.line}", refused.rule, refused.remedy) from None
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        where = f"{source}, line {mark.line + 1}" if mark else source
        rule = f"is not valid YAML: {error.problem or error.context}"
        raise InputError(where, rule, "correct that line") from None
    except (yaml.YAMLError, ValueError, OverflowError, IndexError, RecursionError) as error:
        rule = f"is not valid YAML: {str(error)[:120]}"
        raise InputError(source, rule, "correct the file") from None


class _RefusedError(Exception):
    def __init__(self, line: int, rule: str, remedy: str) -> None:
        super().__init__(line, rule, remedy)
        self.line = line
        self.rule, self.remedy = rule, remedy


class _Careful(Composer):
    """Composes nodes, refusing aliases, deep nesting and many parts while it reads."""

    depth = 0
    parts = 0

    def compose_node(self, parent: yaml.Node | None, index: object) -> yaml.Node | None:
        event: yaml.Event = self.peek_event()  # type: ignore[attr-defined]
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None):
            raise _RefusedError(
                _line(event), "anchors and aliases are refused", "write the value out"
            )
        self.depth += 1
        self.parts += 1
        if self.parts > MAX_PARTS:
            raise _RefusedError(_line(event), f"has more than {MAX_PARTS} parts", "split the file")
        if self.depth > MAX_DEPTH:
            raise _RefusedError(_line(event), f"nesting is deeper than {MAX_DEPTH}", "flatten it")
        node = super().compose_node(parent, index)  # type: ignore[arg-type]
        self.depth -= 1
        return node


class _Composer(_Careful, yaml.SafeLoader):
    """Reads with the parser in Python, whose messages say what it found instead: for what the
    other one refuses."""


class _FastComposer(_Careful, _Parser):
    """Reads with the parser in C where PyYAML was built with it: ten times as fast."""

    def __init__(self, stream: str) -> None:
        _Parser.__init__(self, stream)
        Composer.__init__(self)


def _line(part: yaml.Event | yaml.Node) -> int:
    return part.start_mark.line + 1 if part.start_mark else 1


def _plain(node: yaml.Node, source: str) -> Plain:
    if isinstance(node, yaml.MappingNode) and node.tag == _TAG + "map":
        return _mapping(node, source)
    if isinstance(node, yaml.SequenceNode) and node.tag == _TAG + "seq":
        return [_plain(item, source) for item in node.value]
    if isinstance(node, yaml.ScalarNode):
        return _scalar(node, source)
    raise _tag_refused(node, source)


def _mapping(node: yaml.MappingNode, source: str) -> dict[str, Plain]:
    found: dict[str, Plain] = {}
    for key, value in node.value:
        if not isinstance(key, yaml.ScalarNode):
            where = f"{source}, line {_line(key)}"
            raise InputError(where, "a key must be text", "write a plain word before the colon")
        name = _text(key, source)
        if name in found:
            where = f"{source}, line {_line(key)}: key {name[:60]!r}"
            raise InputError(where, "is given twice in one mapping", "keep one of them")
        found[name] = _plain(value, source)
    return found


def _text(node: yaml.ScalarNode, source: str) -> str:
    """The text of a scalar; escaped surrogate pairs, as JSON writes them, become characters."""
    text = str(node.value)
    if text.isascii():
        return text
    try:
        return text.encode("utf-16", "surrogatepass").decode("utf-16")
    except UnicodeDecodeError:
        where = f"{source}, line {_line(node)}"
        raise InputError(where, "half of a surrogate pair", "write the character") from None


def _scalar(node: yaml.ScalarNode, source: str) -> Plain:
    text = _text(node, source)
    if node.tag == _TAG + "int":
        return int(text) if _WHOLE.fullmatch(text) else text
    if node.tag == _TAG + "bool" and text.lower() in ("true", "yes", "on", "false", "no", "off"):
        return text.lower() in ("true", "yes", "on")
    if node.tag == _TAG + "null" and text.lower() in ("", "~", "null"):
        return None
    if node.tag in _TEXT_TAGS:
        return text
    raise _tag_refused(node, source)


def _tag_refused(node: yaml.Node, source: str) -> InputError:
    where = f"{source}, line {_line(node)}"
    return InputError(where, f"the tag {node.tag[:60]} is refused", "write plain YAML values")


def parts_of(data: object) -> int:
    """How many parts plain data has as YAML, of which :func:`load_yaml` takes MAX_PARTS."""
    if isinstance(data, dict):
        return 1 + sum(1 + parts_of(value) for value in data.values())
    if isinstance(data, list):
        return 1 + sum(map(parts_of, data))
    return 1


class _Dumper(yaml.SafeDumper):
    """Writes what :func:`load_yaml` reads: no anchors for parts that occur twice."""

    def ignore_aliases(self, _data: object) -> bool:
        return True


def dump_yaml(data: Mapping[str, object]) -> str:
    """Plain data as YAML in the order given; :func:`load_yaml` reads it back."""
    return yaml.dump(data, Dumper=_Dumper, sort_keys=False, width=100)
