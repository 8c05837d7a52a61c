"""An XML document as a tree of bounded size and depth."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from xml.sax.handler import ContentHandler

from p2smt.errors import InputError
from p2smt.interop.safe_xml import error_at, feed_xml

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from xml.sax.xmlreader import AttributesImpl

MAX_CHARACTERS = 8 * 1024 * 1024
MAX_ELEMENTS = 20_000
MAX_DEPTH = 32


@dataclass(slots=True)
class TreeElement:
    """An element with what it holds; ``parent`` is None for the root."""

    name: str
    attributes: Mapping[str, str]
    line: int
    source: str
    parent: TreeElement | None = None
    inside: list[TreeElement] = field(default_factory=list)

    def error(self, rule: str, remedy: str) -> InputError:
        """An error about this element; it names the file and the line."""
        return error_at(self.source, self.line, f"<{self.name[:40]}> {rule}", remedy)

    def text(self, name: str) -> str:
        """An attribute; empty if it is missing."""
        return self.attributes.get(name, "").strip()

    def each(self, name: str) -> Iterator[TreeElement]:
        """The elements of that name directly inside."""
        return (element for element in self.inside if element.name == name)

    def way(self) -> list[TreeElement]:
        """What holds it, outermost first, without the root and itself."""
        found: list[TreeElement] = []
        above = self.parent
        while above is not None and above.parent is not None:
            found.append(above)
            above = above.parent
        return found[::-1]


def xml_tree(text: str, source: str) -> TreeElement:
    """The root of an XML document.

    Raises:
        InputError: it is not XML, has what is refused, or is too large or too deep.
    """
    handlers: list[_Grower] = []

    def made(line: Callable[[], int]) -> ContentHandler:
        handlers.append(_Grower(line, source))
        return handlers[-1]

    feed_xml(text, source, MAX_CHARACTERS, made)
    if not handlers[0].top.inside:
        raise InputError(source, "is empty", "give an XML document")
    return handlers[0].top.inside[0]


class _Grower(ContentHandler):
    """Puts the tree together."""

    def __init__(self, line: Callable[[], int], source: str) -> None:
        super().__init__()
        self._line, self._source = line, source
        self._open = [TreeElement("", {}, 1, source)]
        self._count = 0

    @property
    def top(self) -> TreeElement:
        """What holds the root."""
        return self._open[0]

    def startElement(self, name: str, attrs: AttributesImpl) -> None:  # noqa: N802
        above = self._open[-1] if len(self._open) > 1 else None
        element = TreeElement(name, dict(attrs.items()), self._line(), self._source, above)
        self._count += 1
        if self._count > MAX_ELEMENTS:
            raise element.error(f"is beyond {MAX_ELEMENTS} elements", "shorten the file")
        if len(self._open) > MAX_DEPTH:
            raise element.error(f"is nested deeper than {MAX_DEPTH}", "flatten it")
        self._open[-1].inside.append(element)
        self._open.append(element)

    def endElement(self, name: str) -> None:  # noqa: ARG002, N802
        self._open.pop()
