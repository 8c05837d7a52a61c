"""XML text to a handler, safely: no document type, no entity, nothing external, bounded length."""

from __future__ import annotations

from typing import TYPE_CHECKING
from xml.sax import SAXParseException

from defusedxml.common import DefusedXmlException
from defusedxml.expatreader import DefusedExpatParser

from p2smt.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable
    from xml.sax.handler import ContentHandler

_SLICE = 1 << 20


def error_at(source: str, line: int, rule: str, remedy: str) -> InputError:
    """An error about a line of a file."""
    return InputError(f"{source}, line {line}", rule, remedy)


def feed_xml(
    text: str,
    source: str,
    most: int,
    handler_of: Callable[[Callable[[], int]], ContentHandler],
) -> None:
    """Hands the elements of an XML document to a handler, in document order.

    most: so many characters may the text have.  handler_of: makes the handler, from a function
    that says which line is being read.

    Raises:
        InputError: the text is not XML, is too large, or has what is refused; what the handler
            raises.
    """
    if len(text) > most:
        raise InputError(source, f"is longer than {most} characters", "shorten it")
    parser = DefusedExpatParser(forbid_dtd=True)

    def line() -> int:
        return parser.getLineNumber() or 1

    parser.setContentHandler(handler_of(line))
    try:
        for start in range(0, len(text), _SLICE):
            parser.feed(text[start : start + _SLICE])
        parser.close()
    except SAXParseException as error:
        rule = f"is not valid XML: {error.getMessage()}"
        raise error_at(source, error.getLineNumber() or 1, rule, "correct that line") from None
    except DefusedXmlException:
        rule = "a document type or an entity is refused"
        raise error_at(source, line(), rule, "leave it out") from None
    except InputError:
        raise
    except ValueError as error:
        rule = f"is not valid XML: {str(error)[:80]}"
        raise error_at(source, line(), rule, "correct the file") from None
