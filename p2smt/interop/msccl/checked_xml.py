"""XML elements one after the other, safely, with their line numbers.

A document type, entities and anything external are refused, the nesting is fixed by a table, and
the text and the number of elements are bounded: a hostile file costs no more than reading it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING
from xml.sax.handler import ContentHandler

from p2smt.files.suggest import did_you_mean
from p2smt.interop.safe_xml import error_at, feed_xml

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from xml.sax.xmlreader import AttributesImpl

    from p2smt.errors import InputError

MAX_CHARACTERS = 64 * 1024 * 1024
MAX_ELEMENTS = 1_000_000
MAX_NUMBER = 2**31 - 1
"""Largest number that the runtime holds in an attribute."""

_WHOLE = re.compile(r"-?[0-9]{1,10}")


@dataclass(frozen=True, slots=True)
class XmlElement:
    """The start of an element: its attributes, and the line it is on."""

    name: str
    attributes: Mapping[str, str]
    line: int
    source: str

    def error(self, rule: str, remedy: str) -> InputError:
        """An error about this element; it names the file and the line."""
        return error_at(self.source, self.line, f"<{self.name}> {rule}", remedy)

    def has(self, name: str) -> bool:
        """Whether the attribute is there."""
        return name in self.attributes

    def text(self, name: str, default: str | None = None) -> str:
        """An attribute as it is, or the default where it is missing and there is one."""
        found = self.attributes.get(name, default)
        if found is None:
            raise self.error(f"lacks the attribute {name!r}", "add it")
        return found

    def integer(
        self, name: str, default: int | None = None, low: int = 0, high: int = MAX_NUMBER
    ) -> int:
        """An attribute as a whole number between two bounds."""
        text = self.attributes.get(name)
        if text is None and default is not None:
            return default
        number = None if text is None else _whole(text)
        if number is None or not low <= number <= high:
            shown = f"{name}={_shown(self.text(name))}"
            raise self.error(f"has {shown}, not a whole number from {low} to {high}", "correct it")
        return number

    def flag(self, name: str) -> bool | None:
        """An attribute that is 0 or 1; None where it is missing."""
        return bool(self.integer(name, high=1)) if name in self.attributes else None

    def word(self, name: str, known: tuple[str, ...], default: str | None = None) -> str:
        """An attribute that must be one of some words."""
        text = self.text(name, default)
        if text not in known:
            rule = f"has {name}={_shown(text)}, not one of {', '.join(known)}"
            raise self.error(rule, did_you_mean(text, known) or "pick one")
        return text


def walk(
    text: str,
    source: str,
    inside: Mapping[str, tuple[str, ...]],
    visit: Callable[[XmlElement], None],
) -> None:
    """Visits the elements of an XML document in document order.

    inside: by an element's name, which ones it may hold; under "", what the document may be.

    Raises:
        InputError: the text is not XML, is too large, or has what is refused.
    """
    feed_xml(text, source, MAX_CHARACTERS, lambda line: _Handler(line, source, inside, visit))


class _Handler(ContentHandler):
    """Checks where elements may be, and hands them out."""

    def __init__(
        self,
        line: Callable[[], int],
        source: str,
        inside: Mapping[str, tuple[str, ...]],
        visit: Callable[[XmlElement], None],
    ) -> None:
        super().__init__()
        self._line, self._source, self._inside, self._visit = line, source, inside, visit
        self._open = [""]
        self._count = 0

    def startElement(self, name: str, attrs: AttributesImpl) -> None:  # noqa: N802
        element = XmlElement(name, dict(attrs.items()), self._line(), self._source)
        known = self._inside[self._open[-1]]
        if name not in known:
            raise self._misplaced(name[:60], known)
        self._count += 1
        if self._count > MAX_ELEMENTS:
            raise element.error(f"is beyond {MAX_ELEMENTS} elements", "split the file")
        self._open.append(name)
        self._visit(element)

    def endElement(self, name: str) -> None:  # noqa: ARG002, N802
        self._open.pop()

    def characters(self, content: str) -> None:
        if content.strip():
            rule = f"text {_shown(content.strip())} between elements"
            raise error_at(self._source, self._line(), rule, "remove it")

    def _misplaced(self, name: str, known: tuple[str, ...]) -> InputError:
        there = f"<{self._open[-1]}>" if self._open[-1] else "the file"
        rule = f"{there} holds <{name}>"
        expected = " and ".join(f"<{word}>" for word in known) or "nothing"
        remedy = did_you_mean(name, known) or f"{expected} may be there"
        return error_at(self._source, self._line(), rule, remedy)


@lru_cache(maxsize=4096)
def _whole(text: str) -> int | None:
    return int(text) if _WHOLE.fullmatch(text) else None


def _shown(text: str) -> str:
    return ascii(text if len(text) <= 40 else text[:40] + "..")
