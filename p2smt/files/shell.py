"""What a shell script would run, found without running it.

The script is parsed by tree-sitter's grammar of bash; assignments, arrays, defaults, arithmetic, tests
and loops over words are evaluated, and nothing is executed.  What a script does not say (an unset
variable, the output of a command, a test of a file) stays in the words as a mark with the names that
would tell it: what is not needed need not be known.

Semantics: the POSIX Shell Command Language (IEEE Std 1003.1, chapter 2) and the manual of bash for
arrays, ``[[``, ``((`` and ``+=``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

import tree_sitter_bash
from tree_sitter import Language, Node, Parser

from p2smt.errors import InputError

MOST_BYTES = 1_000_000
_MOST_STEPS = 20_000
"""Statements that are evaluated at most: loops may be long, or without end."""
_OPEN, _SEPARATOR, _CLOSE = "\ue000", "\ue001", "\ue002"
_MARK = re.compile(f"{_OPEN}([^{_CLOSE}]*){_CLOSE}")
_FIELD = re.compile(f"(?:[^\\s{_OPEN}]|{_OPEN}[^{_CLOSE}]*{_CLOSE})+")
_SHELLS = ("bash", "sh", "zsh", "/bin/bash", "/bin/sh")
_SILENT = frozenset(
    "declaration_command comment test_command variable_assignment unset_command".split()
)
Value = str | list[str]


@dataclass(frozen=True, slots=True)
class Command:
    """A simple command: its words, and the line of the script it stands in (from 1)."""

    words: tuple[str, ...]
    line: int


@dataclass(frozen=True, slots=True)
class Script:
    """What a script runs, in order.

    ``sourced``: files that it reads and that are not at hand; ``defaults``: variables that it leaves
    to its environment, with the values it gives them otherwise.
    """

    commands: tuple[Command, ...]
    sourced: tuple[str, ...]
    defaults: Mapping[str, str]


def unknowns(words: Iterable[str]) -> tuple[str, ...]:
    """Names that would tell what is not known in some words, each once, in order."""
    found = (name for word in words for mark in _MARK.findall(word) for name in _names(mark))
    return tuple(dict.fromkeys(found))


def read_script(text: str, settings: Mapping[str, str], source: str) -> Script:
    """What a script runs.

    Args:
        text: the script.
        settings: values of variables by name, which win over what the script assigns; ``line 12``
            (yes or no) tells the outcome of a test there, ``$(nproc)`` what a command prints.
        source: names the script in errors.

    Raises:
        InputError: it is no shell script, or too long.
    """
    data = text.encode()
    if len(data) > MOST_BYTES:
        raise InputError(source, f"has more than {MOST_BYTES:,} bytes")
    if any(mark in text for mark in (_OPEN, _SEPARATOR, _CLOSE)):
        raise InputError(source, "holds characters for private use (U+E000 to U+E002)")
    shell = _Shell(dict(settings), source)
    shell.parse_and_run(text)
    return Script(tuple(shell.commands), tuple(dict.fromkeys(shell.sourced)), shell.defaults)


def _names(mark: str) -> list[str]:
    return mark.split(_SEPARATOR)


def _unknown(names: Iterable[str]) -> str:
    return f"{_OPEN}{_SEPARATOR.join(dict.fromkeys(names))}{_CLOSE}"


class _Exit(Exception):
    """The script ends here."""


class _Open(Exception):
    """Something is not known; ``names`` would tell it."""

    def __init__(self, names: Iterable[str]) -> None:
        super().__init__()
        self.names = tuple(dict.fromkeys(names))


@dataclass(frozen=True, slots=True)
class _Atom:
    """A part of a word: text as it is (``one``), to be split at blanks, or several words."""

    text: str = ""
    splits: bool = False
    many: tuple[str, ...] | None = None


def _fields(atoms: Sequence[_Atom]) -> list[str]:
    """The words that parts of a word make."""
    words: list[str] = []
    current: str | None = None
    for atom in atoms:
        if not atom.splits and atom.many is None:
            current = (current or "") + atom.text
            continue
        parts = _FIELD.findall(atom.text) if atom.many is None else atom.many
        if atom.splits and atom.text[:1].isspace() and current is not None:
            words.append(current)
            current = None
        for at, part in enumerate(parts):
            if at and current is not None:
                words.append(current)
                current = None
            current = (current or "") + part
        if atom.splits and atom.text[-1:].isspace() and current is not None:
            words.append(current)
            current = None
    return words if current is None else [*words, current]


@dataclass(slots=True)
class _Shell:
    """The state of a script as far as it has been evaluated."""

    settings: dict[str, str]
    source: str
    values: dict[str, Value] = field(default_factory=dict)
    functions: dict[str, Node] = field(default_factory=dict)
    arguments: list[str] = field(default_factory=list)
    commands: list[Command] = field(default_factory=list)
    sourced: list[str] = field(default_factory=list)
    defaults: dict[str, str] = field(default_factory=dict)
    steps: int = 0
    depth: int = 0

    # Statements.

    def parse_and_run(self, text: str) -> None:
        tree = Parser(Language(tree_sitter_bash.language())).parse(text.encode())
        wrong = _first_error(tree.root_node)
        if wrong is not None:
            line = wrong.start_point[0] + 1
            raise InputError(f"{self.source} line {line}", "is no shell script that can be read")
        try:
            self._each(tree.root_node.children)
        except _Exit:
            if self.depth:
                raise

    def _each(self, nodes: Iterable[Node]) -> None:
        for node in nodes:
            if node.is_named:
                self._run(node)

    def _run(self, node: Node) -> bool | None:
        """Evaluate a statement; whether it succeeds, None: that is not known."""
        self.steps += 1
        if self.steps > _MOST_STEPS or self.depth > 40:
            rule = f"takes more than {_MOST_STEPS:,} steps to evaluate"
            raise InputError(self.source, rule, "give the launch command alone")
        ways: dict[str, Callable[[Node], bool | None]] = {
            "variable_assignment": self._assign,
            "variable_assignments": self._all,
            "declaration_command": self._declare,
            "command": self._command,
            "redirected_statement": self._redirected,
            "pipeline": self._all,
            "list": self._list,
            "negated_command": self._negated,
            "compound_statement": self._compound,
            "subshell": self._all,
            "if_statement": self._if,
            "case_statement": self._case,
            "for_statement": self._for,
            "while_statement": self._while,
            "function_definition": self._define,
            "test_command": self._test,
            "unset_command": self._unset,
        }
        way = ways.get(node.type)
        return way(node) if way else None

    def _all(self, node: Node) -> bool | None:
        self._each(node.children)
        return None

    def _compound(self, node: Node) -> bool | None:
        if node.children and node.children[0].type == "((":
            return self._decided(node, lambda: self._number(node.named_children[0]) != 0)
        return self._all(node)

    def _redirected(self, node: Node) -> bool | None:
        body = node.child_by_field_name("body")
        return self._run(body) if body else None

    def _negated(self, node: Node) -> bool | None:
        found = self._run(node.named_children[0])
        return None if found is None else not found

    def _list(self, node: Node) -> bool | None:
        """``a && b``, ``a || b``: what follows a result that is not known may run or not."""
        left, right = node.named_children[0], node.named_children[-1]
        found = self._run(left)
        wanted = any(child.type == "&&" for child in node.children)
        if found is None and left.type != "test_command":
            # commands are taken to succeed
            found = True
        if found is None:
            self._either([right], self._why(left))
            return None
        return self._run(right) if found == wanted else found

    def _define(self, node: Node) -> bool | None:
        name, body = node.child_by_field_name("name"), node.child_by_field_name("body")
        if name and body:
            self.functions[_text(name)] = body
        return True

    def _unset(self, node: Node) -> bool | None:
        for name in node.named_children:
            self.values.pop(_text(name), None)
        return True

    def _declare(self, node: Node) -> bool | None:
        for child in node.named_children:
            if child.type == "variable_assignment":
                self._assign(child)
        return True

    def _assign(self, node: Node) -> bool | None:
        name, value = node.child_by_field_name("name"), node.child_by_field_name("value")
        if name is None or name.type == "subscript":
            return self._assign_item(name, value)
        adds = any(child.type == "+=" for child in node.children)
        self._set(_text(name), self._value_of(value), adds)
        return True

    def _assign_item(self, name: Node | None, value: Node | None) -> bool | None:
        array, index = (name.child_by_field_name(key) if name else None for key in ("name", "index"))
        if array and index:
            found = self.values.setdefault(_text(array), [])
            try:
                at = self._number(index)
            except _Open as missing:
                self.values[_text(array)] = [_unknown(missing.names)]
                return True
            if isinstance(found, list) and 0 <= at < 10_000:
                found += [""] * (at + 1 - len(found))
                found[at] = self._one(value)
        return True

    def _value_of(self, value: Node | None) -> Value:
        if value is not None and value.type == "array":
            return [word for child in value.named_children for word in self._words(child)]
        return self._one(value)

    def _set(self, name: str, value: Value, adds: bool = False) -> None:
        if name in self.settings:
            return
        old = self.values.get(name, [] if isinstance(value, list) else "")
        if adds and isinstance(old, list):
            value = [*old, *([value] if isinstance(value, str) else value)]
        elif adds:
            value = [old, *value] if isinstance(value, list) else old + value
        if isinstance(value, str) and "$(" in value and unknowns([value]) == ():
            value = value.strip()
        self.values[name] = self._as_named(name, value)

    @staticmethod
    def _as_named(name: str, value: Value) -> Value:
        """What a command prints is asked for by the variable that takes it."""
        if isinstance(value, str) and any("$(" in one for one in unknowns([value])):
            return _unknown([name])
        return value

    def _command(self, node: Node) -> bool | None:
        name = node.child_by_field_name("name")
        if name is None:
            return self._all(node)
        words = self._words(name.named_children[0] if name.named_children else name)
        for argument in node.children_by_field_name("argument"):
            words += self._words(argument)
        if not words:
            return True
        return self._call(words, node.start_point[0] + 1)

    def _call(self, words: list[str], line: int) -> bool | None:
        match words[0]:
            case "exit":
                raise _Exit
            case "true" | ":":
                return True
            case "false":
                return False
            case "eval":
                self._inner(" ".join(words[1:]))
            case "source" | ".":
                self.sourced += words[1:2]
            case "shift":
                del self.arguments[: 1 if len(words) < 2 else int(words[1])]
            case "let":
                self._inner("".join(f"(({word}))\n" for word in words[1:]))
            case name if name in self.functions:
                kept, self.arguments = self.arguments, words[1:]
                self.depth += 1
                self._run(self.functions[name])
                self.arguments, self.depth = kept, self.depth - 1
            case _:
                self._external(words, line)
        return None

    def _external(self, words: list[str], line: int) -> None:
        """A program; a shell that is given its script as an argument is read, too."""
        for at, word in enumerate(words[:-2]):
            if word in _SHELLS and re.fullmatch(r"-[a-z]*c", words[at + 1]):
                self.commands.append(Command(tuple(words[:at]), line)) if at else None
                self._inner(words[at + 2])
                return
        self.commands.append(Command(tuple(words), line))

    def _inner(self, text: str) -> None:
        """Evaluate text as a script; what is not known in it stays so."""
        self.depth += 1
        if self.depth > 40:
            raise InputError(self.source, "calls itself without end")
        names: list[str] = []

        def named(mark: re.Match[str]) -> str:
            names.append(mark.group(0))
            return f"${{__open_{len(names) - 1}}}"

        plain = _MARK.sub(named, text)
        self.values |= {f"__open_{at}": mark for at, mark in enumerate(names)}
        try:
            self.parse_and_run(plain)
        finally:
            self.depth -= 1

    # What may run or not.

    def _if(self, node: Node) -> bool | None:
        branches = [node, *(c for c in node.children if c.type in ("elif_clause", "else_clause"))]
        self._branches(branches)
        return None

    def _branches(self, branches: Sequence[Node]) -> None:
        """The first whose test holds; from one whose test is not known on, each of them."""
        for at, branch in enumerate(branches):
            if branch.type == "else_clause":
                self._each(_body(branch, None))
                return
            tests, body = _tests_of(branch)
            found = None
            for test in tests:
                found = self._run(test)
            if found is None:
                why = self._why(tests[-1] if tests else branch)
                said = self.settings.get(f"line {branch.start_point[0] + 1}")
                if said is None:
                    self._forks([body, branches[at + 1 :]], why)
                    return
                found = said == "yes"
            if found:
                self._each(body)
                return

    def _forks(self, ways: Sequence[Sequence[Node]], why: Sequence[str]) -> None:
        """Either these statements or the branches that follow."""
        body, rest = ways
        before, kept = _copy(self.values), list(self.arguments)
        ended = self._runs(lambda: self._each(body))
        one = self.values
        self.values, self.arguments = before, kept
        other_ended = self._runs(lambda: self._branches(rest))
        self.values = _merged(one, self.values, why, ended, other_ended)

    def _either(self, nodes: Sequence[Node], why: Sequence[str]) -> None:
        before = _copy(self.values)
        ended = self._runs(lambda: self._each(nodes))
        self.values = _merged(self.values, before, why, ended, False)

    @staticmethod
    def _runs(what: Callable[[], None]) -> bool:
        """Whether the script ends in it."""
        try:
            what()
        except _Exit:
            return True
        return False

    def _why(self, test: Node) -> tuple[str, ...]:
        """The names that would tell a test: of its words, else its line."""
        words = [word for node in _leaves(test) for word in self._words(node)]
        return unknowns(words) or (f"line {test.start_point[0] + 1}",)

    def _case(self, node: Node) -> bool | None:
        value = self._one(node.child_by_field_name("value"))
        names = unknowns([value])
        items = [child for child in node.named_children if child.type == "case_item"]
        for item in items:
            patterns = item.children_by_field_name("value")
            body = [c for c in item.named_children if c not in patterns]
            if names:
                self._either(body, names)
            elif any(fnmatchcase(value, self._one(pattern)) for pattern in patterns):
                self._each(body)
                return None
        return None

    def _for(self, node: Node) -> bool | None:
        name, body = node.child_by_field_name("variable"), node.child_by_field_name("body")
        if name and body:
            words = [w for v in node.children_by_field_name("value") for w in self._words(v)]
            for word in words:
                self._set(_text(name), word)
                self._each(body.named_children)
        return None

    def _while(self, node: Node) -> bool | None:
        body = node.child_by_field_name("body")
        tests = node.children_by_field_name("condition")
        if not body or not tests:
            return None
        while (found := self._run(tests[0])) is True:
            self._each(body.named_children)
        if found is None:
            self._either(body.named_children, self._why(tests[0]))
        return None

    # Tests and numbers.

    def _test(self, node: Node) -> bool | None:
        inside = node.named_children
        return self._decided(node, lambda: self._holds(inside[0])) if inside else False

    def _decided(self, node: Node, test: Callable[[], bool]) -> bool | None:
        said = self.settings.get(f"line {node.start_point[0] + 1}")
        try:
            return test()
        except _Open:
            return None if said is None else said == "yes"

    def _holds(self, node: Node) -> bool:
        match node.type:
            case "binary_expression":
                return self._compared(node)
            case "unary_expression" | "negated_command":
                return self._unary(node)
            case "parenthesized_expression":
                return self._holds(node.named_children[0])
            case _:
                return bool(self._known(node))

    def _compared(self, node: Node) -> bool:
        left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
        sign = _text(node.child_by_field_name("operator"))
        if left is None or right is None:
            raise _Open([f"line {node.start_point[0] + 1}"])
        if sign in ("&&", "-a"):
            return self._holds(left) and self._holds(right)
        if sign in ("||", "-o"):
            return self._holds(left) or self._holds(right)
        one, other = self._known(left), self._known(right)
        if sign in ("=", "=="):
            return fnmatchcase(one, other)
        if sign == "!=":
            return not fnmatchcase(one, other)
        if sign == "=~":
            return re.search(other, one) is not None
        signs = {"-eq": "==", "-ne": "!=", "-lt": "<", "-le": "<=", "-gt": ">", "-ge": ">="}
        return bool(_calculated(self._whole(one, left), signs.get(sign, sign), self._whole(other, right)))

    def _unary(self, node: Node) -> bool:
        sign = _text(node.child_by_field_name("operator")) or _text(node.children[0])
        inner = node.named_children[-1]
        match sign:
            case "!":
                return not self._holds(inner)
            case "-n":
                return self._known(inner) != ""
            case "-z":
                return self._known(inner) == ""
            case _:
                raise _Open([f"line {node.start_point[0] + 1}"])

    def _known(self, node: Node) -> str:
        """A word that must be known.

        An unset variable is empty in a test of whether it is, which a script may well ask.
        """
        found = self._one(node)
        if names := unknowns([found]):
            raise _Open(names)
        return found

    def _whole(self, text: str, node: Node) -> int:
        try:
            return int(text.strip() or "0")
        except ValueError:
            raise _Open([f"line {node.start_point[0] + 1}"]) from None

    def _number(self, node: Node) -> int:
        """The value of arithmetic.

        Raises:
            _Open: it holds what is not known, or what is not understood.
        """
        match node.type:
            case "number" | "word" | "variable_name" | "simple_expansion" | "expansion" | "string":
                return self._operand(node)
            case "parenthesized_expression":
                return self._number(node.named_children[0])
            case "binary_expression":
                left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
                sign = _text(node.child_by_field_name("operator"))
                if left and right and sign in ("=", "+=", "-=", "*="):
                    return self._changed(left, sign, self._number(right))
                if left and right:
                    return _calculated(self._number(left), sign, self._number(right))
            case "unary_expression":
                sign, inner = _text(node.children[0]), self._number(node.named_children[-1])
                return {"-": -inner, "+": inner, "!": int(not inner)}.get(sign, inner)
            case "postfix_expression":
                step = 1 if _text(node.children[-1]) == "++" else -1
                return self._changed(node.named_children[0], "+=", step)
            case "ternary_expression":
                test, one, other = node.named_children
                return self._number(one if self._number(test) else other)
        raise _Open([f"line {node.start_point[0] + 1}"])

    def _changed(self, name: Node, sign: str, by: int) -> int:
        old = 0 if sign == "=" else self._operand(name)
        found = by if sign == "=" else _calculated(old, sign[0], by)
        self._set(_text(name), str(found))
        return found

    def _operand(self, node: Node) -> int:
        text = self._variable(_text(node)) if node.type in ("variable_name", "word") else None
        if node.type == "word" and _text(node).lstrip("-").isdigit():
            text = _text(node)
        found = self._one(node) if text is None else text
        if names := unknowns([found]):
            raise _Open(names)
        return self._whole(found, node)

    # Words.

    def _words(self, node: Node) -> list[str]:
        """The words that an argument becomes."""
        return _fields(list(self._atoms(node)))

    def _one(self, node: Node | None) -> str:
        """An argument as one text, as assignments take it."""
        if node is None:
            return ""
        atoms = self._atoms(node)
        return "".join(" ".join(a.many) if a.many is not None else a.text for a in atoms)

    def _atoms(self, node: Node) -> Iterator[_Atom]:
        match node.type:
            case "comment" | "heredoc_body":
                return
            case "raw_string":
                yield _Atom(_text(node)[1:-1])
            case "ansi_c_string":
                yield _Atom(_text(node)[2:-1].encode().decode("unicode_escape"))
            case "string" | "translated_string":
                yield from self._quoted(node)
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
                yield _Atom(re.sub(r"\\(.)", r"\1", _text(node).replace("\\\n", ""), flags=re.S))

    def _quoted(self, node: Node) -> Iterator[_Atom]:
        """The parts between double quotes; blanks may lie between the nodes."""
        yield _Atom("")
        end = node.children[0].end_byte
        for child in node.children[1:-1]:
            whole = _text(child)
            if child.start_byte > end:
                yield _Atom(_between(node, end, child.start_byte))
            match child.type:
                case "string_content":
                    plain = whole.replace("\\\n", "")
                    yield _Atom(re.sub(r'\\([$`"\\])', r"\1", plain))
                case "simple_expansion" | "expansion":
                    yield _Atom(whole[: len(whole) - len(whole.lstrip())])
                    yield self._expanded(child, quoted=True)
                case "arithmetic_expansion":
                    yield _Atom(self._arithmetic(child))
                case "command_substitution":
                    yield _Atom(self._printed(child))
                case _:
                    yield _Atom(whole)
            end = child.end_byte
        if node.children[-1].start_byte > end:
            yield _Atom(_between(node, end, node.children[-1].start_byte))

    def _arithmetic(self, node: Node) -> str:
        try:
            return str(self._number(node.named_children[0]))
        except _Open as missing:
            return _unknown(missing.names)

    def _printed(self, node: Node) -> str:
        """What a command prints is not known, but of ``echo``; what ``--set`` tells is."""
        text = _text(node)
        text = f"$({text[1:-1]})" if text.startswith("`") else text
        if text in self.settings:
            return self.settings[text]
        inner = node.named_children
        if len(inner) == 1 and inner[0].type == "command":
            name = inner[0].child_by_field_name("name")
            if name is not None and _text(name) == "echo":
                words = [w for a in inner[0].children_by_field_name("argument") for w in self._words(a)]
                return " ".join(words)
        return _unknown([text])

    def _expanded(self, node: Node, *, quoted: bool) -> _Atom:
        name, index, sign, rest = _expansion(node)
        if name in ("@", "*") and not sign:
            return _Atom(many=tuple(self.arguments)) if quoted else self._split(self.arguments)
        if index in ("@", "*") and not sign:
            found = self._array(name)
            if quoted and index == "@":
                return _Atom(many=tuple(found))
            return _Atom(" ".join(found)) if quoted else self._split(found)
        text = self._changed_text(name, index, sign, rest)
        return _Atom(text, splits=not quoted)

    @staticmethod
    def _split(words: Sequence[str]) -> _Atom:
        return _Atom(" ".join(words), splits=True)

    def _array(self, name: str) -> list[str]:
        if name in self.settings:
            return self.settings[name].split()
        found = self.values.get(name)
        if found is None:
            return [_unknown([name])]
        return found if isinstance(found, list) else [found]

    def _variable(self, name: str) -> str:
        """The value of a variable, or a mark with its name."""
        if name in self.settings:
            return self.settings[name]
        if name == "#":
            return str(len(self.arguments))
        if name.isdigit() and 0 < int(name) <= len(self.arguments):
            return self.arguments[int(name) - 1]
        found = self.values.get(name)
        if isinstance(found, list):
            found = found[0] if found else ""
        return _unknown([name]) if found is None else found

    def _changed_text(self, name: str, index: str, sign: str, rest: Node | None) -> str:
        """The value of an expansion with an operator, such as ``:-`` or ``%``."""
        if index and index not in ("@", "*") and not sign:
            array = self._array(name)
            at = int(index) if index.lstrip("-").isdigit() else len(array)
            return array[at] if -len(array) <= at < len(array) else _unknown([f"{name}[{index}]"])
        if sign == "#" and rest is None:
            return str(len(self._array(name) if index else self._variable(name)))
        value = self._variable(name)
        is_set = value != _unknown([name])
        if sign in (":-", "-", ":=", "="):
            return self._default(name, value, is_set and (value != "" or ":" not in sign), sign, rest)
        if sign in (":+", "+"):
            return self._one(rest) if is_set and value else ""
        if sign in (":?", "?", "") or unknowns([value]):
            return value
        if rest is not None and sign in ("%", "%%", "#", "##"):
            return _stripped(value, sign, self._one(rest))
        simple = {"^^": value.upper(), ",,": value.lower()}
        return simple.get(sign, _unknown([name]))

    def _default(self, name: str, value: str, is_set: bool, sign: str, rest: Node | None) -> str:
        if is_set:
            return value
        found = self._one(rest)
        if found and not unknowns([found]):
            self.defaults.setdefault(name, found)
        if "=" in sign:
            self._set(name, found)
        return found


# Nodes of the grammar.


def _text(node: Node | None) -> str:
    return "" if node is None or node.text is None else node.text.decode()


def _between(node: Node, start: int, end: int) -> str:
    """Text of a node between two places of the script."""
    whole = node.text or b""
    return whole[start - node.start_byte : end - node.start_byte].decode()


def _first_error(node: Node) -> Node | None:
    if node.is_missing or node.type == "ERROR":
        return node
    if not node.has_error:
        return None
    return next(filter(None, map(_first_error, node.children)), node)


def _leaves(node: Node) -> Iterator[Node]:
    """The words of a test."""
    inner = node.named_children
    words = ("string", "simple_expansion", "expansion", "concatenation", "word", "number")
    if node.type in words or not inner:
        yield node
        return
    for child in inner:
        yield from _leaves(child)


def _tests_of(branch: Node) -> tuple[list[Node], list[Node]]:
    """The tests of ``if`` or ``elif``, and what is run if they hold."""
    at = next(n for n, child in enumerate(branch.children) if child.type == "then")
    tests = [child for child in branch.children[1:at] if child.is_named]
    return tests, list(_body(branch, at))


def _body(branch: Node, at: int | None) -> Iterator[Node]:
    start = 1 if at is None else at + 1
    for child in branch.children[start:]:
        if child.is_named and child.type not in ("elif_clause", "else_clause"):
            yield child


def _expansion(node: Node) -> tuple[str, str, str, Node | None]:
    """Name, index, operator and operand of an expansion."""
    name, index, sign = "", "", ""
    rest: Node | None = None
    for child in node.children:
        match child.type:
            case "variable_name" | "special_variable_name" if not name:
                name = _text(child)
            case "subscript" if not name:
                name = _text(child.child_by_field_name("name"))
                index = _text(child.child_by_field_name("index"))
            case "$" | "${" | "}":
                continue
            case _ if child.is_named and name:
                rest = rest or child
            case _:
                sign = sign or _text(child).strip()
    return name, index, sign, rest


def _calculated(left: int, sign: str, right: int) -> int:
    if sign in ("/", "%") and right == 0:
        raise _Open([])
    ways: dict[str, Callable[[int, int], int]] = {
        "+": lambda a, b: a + b,
        "-": lambda a, b: a - b,
        "*": lambda a, b: a * b,
        "/": lambda a, b: int(a / b) if abs(a) < 2**52 else a // b,
        "%": lambda a, b: a - b * int(a / b),
        "**": lambda a, b: a**b if 0 <= b < 64 else 0,
        "==": lambda a, b: int(a == b),
        "!=": lambda a, b: int(a != b),
        "<": lambda a, b: int(a < b),
        "<=": lambda a, b: int(a <= b),
        ">": lambda a, b: int(a > b),
        ">=": lambda a, b: int(a >= b),
        "&&": lambda a, b: int(bool(a and b)),
        "||": lambda a, b: int(bool(a or b)),
    }
    if sign not in ways:
        raise _Open([])
    return ways[sign](left, right)


def _stripped(value: str, sign: str, pattern: str) -> str:
    """A value without the shortest or the longest beginning or end of a pattern."""
    ends = range(len(value) + 1)
    if sign in ("#", "##"):
        fits = [n for n in ends if fnmatchcase(value[:n], pattern)]
        return value[(min if sign == "#" else max)(fits) :] if fits else value
    fits = [n for n in ends if fnmatchcase(value[n:], pattern)]
    return value[: (max if sign == "%" else min)(fits)] if fits else value


def _copy(values: Mapping[str, Value]) -> dict[str, Value]:
    return {name: list(v) if isinstance(v, list) else v for name, v in values.items()}


def _merged(
    one: Mapping[str, Value], other: Mapping[str, Value], why: Sequence[str], *ended: bool
) -> dict[str, Value]:
    """What is known after one of two ways was gone; a way on which the script ends was not."""
    if ended[0] != ended[1]:
        return dict(other if ended[0] else one)
    found: dict[str, Value] = {}
    for name in dict.fromkeys([*one, *other]):
        left, right = one.get(name), other.get(name)
        if left == right and left is not None:
            found[name] = left
        elif isinstance(left, list) and isinstance(right, list):
            many = min(len(left), len(right))
            alike = left[:many] == right[:many]
            found[name] = [*(left[:many] if alike else []), _unknown(why)]
        else:
            found[name] = _unknown(why)
    return found
