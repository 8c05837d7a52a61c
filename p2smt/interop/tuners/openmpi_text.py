"""Rule files of Open MPI as C reads them: numbers and words, whatever lies between skipped.

Facts: Open MPI v5.0.x, ompi/mca/coll/base/coll_base_util.c (v4.1.x reads alike): a number is what
``%li`` takes (so that 010 is 8 and 0x10 is 16), what is none is skipped character by character, and
# opens a comment.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from p2smt.interop.tuners.choices import FileFault

_SPACE = " \t\n\v\f\r"
_LONG = re.compile(r"[+-]?(?:0[xX][0-9a-fA-F]+|0[0-7]*|[1-9][0-9]*)")
_SIZE = re.compile(r"[+-]?[0-9]+")
_TOKEN = re.compile(r"[^ \t\n\v\f\r#]+")
_LARGEST, _WORD = 2**63 - 1, 32


class BrokenRules(ValueError):
    """A file that the library drops as a whole: the name of the fault, the line and why."""

    def __init__(self, line: int, what: str, name: str = "ignored-whole") -> None:
        super().__init__(line, what, name)
        self.fault = FileFault(name, line, f"{what}: the whole file is ignored, silently")

    def __str__(self) -> str:
        return str(self.fault)


@dataclass(slots=True)
class RuleScanner:
    """A place in a text, and what was read otherwise than people read it."""

    text: str
    at: int = 0
    faults: list[FileFault] = field(default_factory=list)
    _told: int = -1

    @property
    def line(self) -> int:
        """The line of the place, from 1."""
        return self.text.count("\n", 0, self.at) + 1

    def number(self, what: str, *, size: bool = False) -> int:
        """The next number; ``size``: a decimal one.

        Raises:
            BrokenRules: the text ends, or it is below 0.
        """
        pattern = _SIZE if size else _LONG
        while self._skip():
            found = pattern.match(self.text, self.at)
            if found is None:
                self._odd("is no number, and is skipped")
                self.at += 1
                continue
            value = _value(found[0], decimal=size)
            if (word := self._token()) != found[0] or str(value) != word.lstrip("+"):
                self._odd(f"is read as {value}")
            self.at = found.end()
            if value < 0:
                raise BrokenRules(self.line, f"{what} is {value}")
            return value
        raise BrokenRules(self.line, f"it ends before {what}")

    def word(self, what: str) -> str:
        """The next word, of at most 32 characters.

        Raises:
            BrokenRules: the text ends.
        """
        if not self._skip():
            raise BrokenRules(self.line, f"it ends before {what}")
        start = self.at
        while self.at < min(len(self.text), start + _WORD) and self.text[self.at] not in _SPACE:
            self.at += 1
        return self.text[start : self.at]

    def takes(self, sign: str) -> bool:
        """Whether this sign comes next; it is read if it does."""
        if self._skip() and self.text[self.at] == sign:
            self.at += 1
            return True
        return False

    def digit_on_line(self) -> bool:
        """Whether a digit comes next on this line."""
        while self.text[self.at : self.at + 1] in (" ", "\t"):
            self.at += 1
        return self.text[self.at : self.at + 1].isdigit()

    def rest(self) -> bool:
        """Whether anything but comments is left."""
        return self._skip()

    def _skip(self) -> bool:
        """Past space and comments; whether anything is left."""
        while self.at < len(self.text):
            if self.text[self.at] == "#":
                end = self.text.find("\n", self.at)
                self.at = len(self.text) if end < 0 else end + 1
            elif self.text[self.at] in _SPACE:
                self.at += 1
            else:
                return True
        return False

    def _token(self) -> str:
        found = _TOKEN.match(self.text, self.at)
        return found[0] if found else ""

    def _odd(self, what: str) -> None:
        """Say it once of a token."""
        if self.at >= self._told:
            word = self._token()
            self._told = self.at + len(word)
            self.faults.append(FileFault("suffix", self.line, f"{word[:40]!r} {what}"))


def _value(digits: str, *, decimal: bool) -> int:
    """What C makes of digits: octal after a 0 unless decimal; at most the largest long."""
    sign, bare = (-1 if digits[0] == "-" else 1), digits.lstrip("+-")
    base = 10 if decimal else 16 if bare[1:2] in ("x", "X") else 8 if bare[0] == "0" else 10
    bare = bare[2:] if base == 16 else bare
    longest = bare.lstrip("0")[:64] or "0"
    return sign * min(int(longest, base), _LARGEST)
