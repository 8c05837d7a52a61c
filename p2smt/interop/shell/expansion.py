"""Words, numbers and tests of a script, evaluated.

Semantics: the POSIX Shell Command Language (IEEE Std 1003.1, chapter 2) and the manual of bash for
arrays, ``[[`` and ``((``.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from types import MappingProxyType

from tree_sitter import Node

from p2smt.interop.shell.nodes import between, expansion, leaves, text_of
from p2smt.interop.shell.variables import CLOSE, OPEN, Missing, ShellVariables, unknown, unknowns

_FIELD = re.compile(f"(?:[^\\s{OPEN}]|{OPEN}[^{CLOSE}]*{CLOSE})+")
_OPERANDS = frozenset(
    ("number", "word", "variable_name", "simple_expansion", "expansion", "string")
)
_COMPARISONS = MappingProxyType(
    {"-eq": "==", "-ne": "!=", "-lt": "<", "-le": "<=", "-gt": ">", "-ge": ">="}
)


@dataclass(frozen=True, slots=True)
class _Atom:
    """A part of a word: text as it is, to be split at blanks (``splits``), or several words."""

    text: str = ""
    splits: bool = False
    many: tuple[str, ...] | None = None


@dataclass(slots=True)
class ShellWords:
    """Evaluates words by the variables as they are."""

    variables: ShellVariables

    def words(self, node: Node) -> list[str]:
        """The words that an argument becomes."""
        return _fields(self._atoms(node))

    def one(self, node: Node | None) -> str:
        """An argument as one text, as assignments take it."""
        if node is None:
            return ""
        atoms = self._atoms(node)
        return "".join(" ".join(a.many) if a.many is not None else a.text for a in atoms)

    def known(self, node: Node) -> str:
        """An argument as one text.

        Raises:
            Missing: something in it is not known.
        """
        found = self.one(node)
        if names := unknowns([found]):
            raise Missing(names)
        return found

    def document(self, node: Node) -> str:
        """The text of a here-document, with what its expansions give."""
        end, parts = node.start_byte, list[_Atom]()
        for child in node.children:
            parts.append(_Atom(between(node, end, child.start_byte)))
            parts += self._in_quotes(child)
            end = child.end_byte
        parts.append(_Atom(between(node, end, node.end_byte)))
        return "".join(part.text + " ".join(part.many or ()) for part in parts)

    def why(self, test: Node) -> tuple[str, ...]:
        """The names that would tell a test: those of its words, else (as of files) its line."""
        if _OF_FILES.search(text_of(test)):
            return (_line(test),)
        found = unknowns(word for node in leaves(test) for word in self.words(node))
        return found or (_line(test),)

    # Parts of words.

    def _atoms(self, node: Node) -> Iterator[_Atom]:
        match node.type:
            case "comment" | "heredoc_body":
                return
            case "raw_string":
                yield _Atom(text_of(node)[1:-1])
            case "ansi_c_string":
                yield _Atom(text_of(node)[2:-1].encode().decode("unicode_escape"))
            case "string" | "translated_string":
                parts = [part for part in self._quoted(node) if part != _Atom()]
                if [part.many is None for part in parts] != [False]:
                    yield _Atom()  # an empty word is one; an empty array between quotes is none
                yield from parts
            case "concatenation" | "command_name":
                for child in node.children:
                    yield from self._atoms(child)
            case "simple_expansion" | "expansion":
                yield self._expanded(node, quoted=False)
            case "arithmetic_expansion":
                yield _Atom(self._arithmetic(node))
            case "command_substitution" | "process_substitution":
                yield _Atom(self._printed(node), splits=True)
            case _:
                plain = text_of(node).replace("\\\n", "")
                yield _Atom(re.sub(r"\\(.)", r"\1", plain, flags=re.S))

    def _quoted(self, node: Node) -> Iterator[_Atom]:
        """The parts between double quotes; blanks may lie between the nodes."""
        end = node.children[0].end_byte
        for child in node.children[1:]:
            if child.start_byte > end:
                yield _Atom(between(node, end, child.start_byte))
            end = child.end_byte
            if child.end_byte < node.end_byte:
                yield from self._in_quotes(child)

    def _in_quotes(self, child: Node) -> Iterator[_Atom]:
        whole = text_of(child)
        match child.type:
            case "string_content":
                yield _Atom(re.sub(r'\\([$`"\\])', r"\1", whole.replace("\\\n", "")))
            case "simple_expansion" | "expansion":
                yield _Atom(whole[: len(whole) - len(whole.lstrip())])
                yield self._expanded(child, quoted=True)
            case "arithmetic_expansion":
                yield _Atom(self._arithmetic(child))
            case "command_substitution":
                yield _Atom(self._printed(child))
            case _:
                yield _Atom(whole)

    def _printed(self, node: Node) -> str:
        """What a command prints is not known, but of ``echo``; a setting may tell it."""
        text = text_of(node)
        text = f"$({text[1:-1]})" if text.startswith("`") else text
        if text in self.variables.settings:
            return self.variables.settings[text]
        inner = node.named_children
        name = inner[0].child_by_field_name("name") if len(inner) == 1 else None
        if name is not None and text_of(name) == "echo":
            arguments = inner[0].children_by_field_name("argument")
            return " ".join(word for each in arguments for word in self.words(each))
        return unknown([text])

    def _expanded(self, node: Node, *, quoted: bool) -> _Atom:
        name, index, sign, rest = expansion(node)
        if sign or (name not in ("@", "*") and index not in ("@", "*")):
            return _Atom(self._operated(name, index, sign, rest), splits=not quoted)
        found = self.variables.arguments if name in ("@", "*") else self.variables.array(name)
        if quoted and "@" in (name, index):
            return _Atom(many=tuple(found))
        return _Atom(" ".join(found), splits=not quoted)

    def _operated(self, name: str, index: str, sign: str, rest: Node | None) -> str:
        """The value of an expansion with an operator, such as ``:-`` or ``%``."""
        if sign == "#" and rest is None:
            counted = self.variables.array(name) if index else [self.variables.text(name)]
            if names := unknowns(counted):
                return unknown(names)
            return str(len(counted if index else counted[0]))
        value = (
            self._item(name, index) if index not in ("", "@", "*") else self.variables.text(name)
        )
        is_set = value != unknown([name])
        if sign in (":-", "-", ":=", "="):
            empty = value == "" and ":" in sign
            return value if is_set and not empty else self._default(name, sign, rest)
        if sign in (":+", "+"):
            if not is_set:
                self.variables.defaults.setdefault(name, "")
            return self.one(rest) if is_set and value else ""
        if sign in (":?", "?", "") or unknowns([value]):
            return value
        if rest is not None and sign in ("%", "%%", "#", "##"):
            return _stripped(value, sign, self.one(rest))
        return {"^^": value.upper(), ",,": value.lower()}.get(sign, unknown([name]))

    def _item(self, name: str, index: str) -> str:
        array = self.variables.array(name)
        at = int(index) if index.lstrip("-").isdigit() else len(array)
        return array[at] if -len(array) <= at < len(array) else unknown([f"{name}[{index}]"])

    def _default(self, name: str, sign: str, rest: Node | None) -> str:
        found = self.one(rest)
        if not unknowns([found]):
            self.variables.defaults.setdefault(name, found)
        if "=" in sign:
            self.variables.give(name, found)
        return found

    # Numbers.

    def _arithmetic(self, node: Node) -> str:
        try:
            return str(self.number(node.named_children[0]))
        except Missing as missing:
            return unknown(missing.names)

    def number(self, node: Node) -> int:
        """The value of arithmetic.

        Raises:
            Missing: it holds what is not known, or what is not understood.
        """
        if node.type in _OPERANDS:
            return self._operand(node)
        inner = node.named_children
        sign = text_of(node.child_by_field_name("operator"))
        match node.type:
            case "parenthesized_expression":
                return self.number(inner[0])
            case "binary_expression" if sign in ("=", "+=", "-=", "*="):
                return self._changed(inner[0], sign, self.number(inner[-1]))
            case "binary_expression":
                return _calculated(self.number(inner[0]), sign, self.number(inner[-1]), node)
            case "unary_expression":
                value = self.number(inner[-1])
                return {"-": -value, "!": int(not value)}.get(text_of(node.children[0]), value)
            case "postfix_expression":
                step = 1 if text_of(node.children[-1]) == "++" else -1
                return self._changed(inner[0], "+=", step) - step
            case "ternary_expression":
                test, one, other = inner
                return self.number(one if self.number(test) else other)
        raise Missing([_line(node)])

    def _changed(self, name: Node, sign: str, by: int) -> int:
        found = by if sign == "=" else _calculated(self._operand(name), sign[0], by, name)
        self.variables.give(text_of(name), str(found))
        return found

    def _operand(self, node: Node) -> int:
        text = text_of(node)
        if node.type in ("variable_name", "word") and not text.lstrip("-").isdigit():
            found = self.variables.text(text)
            if names := unknowns([found]):
                raise Missing(names)
            return _whole(found, node)
        return _whole(self.known(node), node)

    # Tests.

    def holds(self, node: Node) -> bool:
        """Whether a test holds.

        Raises:
            Missing: it depends on what is not known.
        """
        match node.type:
            case "binary_expression":
                return self._compared(node)
            case "unary_expression" | "negated_command":
                return self._unary(node)
            case "parenthesized_expression":
                return self.holds(node.named_children[0])
            case _:
                return self.known(node) != ""

    def _compared(self, node: Node) -> bool:
        left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
        sign = text_of(node.child_by_field_name("operator"))
        if left is None or right is None:
            raise Missing([_line(node)])
        if sign in ("&&", "-a"):
            return self.holds(left) and self.holds(right)
        if sign in ("||", "-o"):
            return self.holds(left) or self.holds(right)
        one, other = self.known(left), self.known(right)
        if sign in ("=", "==", "!="):
            return fnmatchcase(one, other) == (sign != "!=")
        if sign == "=~":
            return _found(other, one, node)
        sign = _COMPARISONS.get(sign, sign)
        return bool(_calculated(_whole(one, left), sign, _whole(other, right), node))

    def _unary(self, node: Node) -> bool:
        sign = text_of(node.child_by_field_name("operator")) or text_of(node.children[0])
        inner = node.named_children[-1]
        if sign == "!":
            return not self.holds(inner)
        if sign in ("-n", "-z"):
            return (self._or_empty(inner) == "") == (sign == "-z")
        raise Missing([_line(node)])

    def _or_empty(self, node: Node) -> str:
        """A word in a test of whether it is empty: what nobody sets is."""
        found = self.one(node)
        for name in unknowns([found]):
            if name.isidentifier() and not self.variables.is_set(name):
                self.variables.defaults.setdefault(name, "")
                found = found.replace(unknown([name]), "")
        if names := unknowns([found]):
            raise Missing(names)
        return found


_OF_FILES = re.compile(r"(?<![^\s!])-[bcdefghkprsuwxLNOSG]\s")


def _line(node: Node) -> str:
    return f"line {node.start_point[0] + 1}"


def _fields(atoms: Iterable[_Atom]) -> list[str]:
    """The words that parts of a word make."""
    words: list[str] = []
    current: str | None = None
    for atom in atoms:
        if not atom.splits and atom.many is None:
            current = (current or "") + atom.text
            continue
        parts = _FIELD.findall(atom.text) if atom.many is None else atom.many
        if atom.text[:1].isspace() and current is not None:
            words.append(current)
            current = None
        for at, part in enumerate(parts):
            if at and current is not None:
                words.append(current)
                current = None
            current = (current or "") + part
        if atom.text[-1:].isspace() and current is not None:
            words.append(current)
            current = None
    return words if current is None else [*words, current]


def _whole(text: str, node: Node) -> int:
    try:
        return int(text.strip() or "0")
    except ValueError:
        raise Missing([_line(node)]) from None


def _found(pattern: str, text: str, node: Node) -> bool:
    if "[:" in pattern:  # a class of characters, which Python's expressions lack
        raise Missing([_line(node)])
    try:
        return re.search(pattern, text) is not None
    except re.error:
        raise Missing([_line(node)]) from None


def _truncated(left: int, right: int) -> int:
    """Division towards zero, as in C."""
    found = abs(left) // abs(right)
    return found if (left < 0) == (right < 0) else -found


_SIGNS: Mapping[str, Callable[[int, int], int]] = MappingProxyType(
    {
        "+": operator.add,
        "-": operator.sub,
        "*": operator.mul,
        "/": _truncated,
        "%": lambda left, right: left - right * _truncated(left, right),
        "==": operator.eq,
        "!=": operator.ne,
        "<": operator.lt,
        "<=": operator.le,
        ">": operator.gt,
        ">=": operator.ge,
        "&&": lambda left, right: bool(left) and bool(right),
        "||": lambda left, right: bool(left) or bool(right),
    }
)


def _calculated(left: int, sign: str, right: int, node: Node) -> int:
    if sign == "**" and 0 <= right < 64:
        return int(left**right)
    if sign not in _SIGNS or (sign in "/%" and right == 0):
        raise Missing([_line(node)])
    return int(_SIGNS[sign](left, right))


def _stripped(value: str, sign: str, pattern: str) -> str:
    """A value without the shortest or the longest beginning or end of a pattern."""
    ends: Sequence[int] = range(len(value) + 1)
    if sign in ("#", "##"):
        fits = [n for n in ends if fnmatchcase(value[:n], pattern)]
        return value[(min if sign == "#" else max)(fits) :] if fits else value
    fits = [n for n in ends if fnmatchcase(value[n:], pattern)]
    return value[: (max if sign == "%" else min)(fits)] if fits else value
