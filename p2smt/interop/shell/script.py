"""What a shell script would run, found without running it.

The script is parsed by tree-sitter's grammar of bash; assignments, arrays, defaults, arithmetic,
tests and loops over words are evaluated, and nothing is executed.  What a script does not say (an
unset variable, the output of a command, a test of a file) stays in the words as a mark with the
names that would tell it: what is not needed need not be known.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

from tree_sitter import Node

from p2smt.errors import InputError
from p2smt.interop.shell.expansion import ShellWords
from p2smt.interop.shell.nodes import body_of, first_error, parsed, tests_of, text_of
from p2smt.interop.shell.variables import (
    CLOSE,
    MARK,
    OPEN,
    SEPARATOR,
    Missing,
    ShellVariables,
    Value,
    merged,
    unknown,
    unknowns,
)

MOST_BYTES = 1_000_000
_MOST_STEPS = 20_000
"""Statements that are evaluated at most: loops may be long, or without end."""
_CONTINUED = re.compile(r"\\\n\s*\Z")
"""A line that goes on behind the end."""
_DEEPEST = 40
_SETTING_UP = re.compile(
    r"(activate|conda\.sh|setup-env\.sh|setvars\.sh|profile|rc)\Z|/etc/|modules?/"
)
"""Files that put programs and libraries where they are found."""
_SHELLS = frozenset(("bash", "sh", "zsh", "/bin/bash", "/bin/sh"))


@dataclass(frozen=True, slots=True)
class ShellCommand:
    """A simple command: its words, and the line of the script it stands in (from 1).

    ``under``: the words that start the shell which runs it, as of ``srun -n 8 bash -c '..'``.
    """

    words: tuple[str, ...]
    line: int
    under: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Script:
    """What a script runs, in order.

    ``sourced``: files that it reads, which are not looked at; ``doubted``: variables that one of
    them may set anew, with its name; ``defaults``: variables that it
    leaves to its environment, with the values that they have if nobody sets them; ``files``: those
    that it writes from here-documents, by the names that it gives them.
    """

    commands: tuple[ShellCommand, ...]
    sourced: tuple[str, ...]
    defaults: Mapping[str, str]
    files: Mapping[str, str]
    doubted: Mapping[str, str]


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
    if len(text.encode()) > MOST_BYTES:
        raise InputError(source, f"has more than {MOST_BYTES:,} bytes")
    if any(mark in text for mark in (OPEN, SEPARATOR, CLOSE)):
        raise InputError(source, "holds characters for private use (U+E000 to U+E002)")
    shell = _Shell(ShellVariables(settings), source)
    try:
        with suppress(_Exit):
            shell.run_text(text)
    except RecursionError:
        raise InputError(source, "is nested too deeply to be read") from None
    sourced = tuple(dict.fromkeys(shell.sourced))
    told = shell.variables.defaults, shell.files, shell.doubted
    return Script(tuple(shell.commands), sourced, *told)


class _Exit(Exception):
    """The script ends here."""


@dataclass(slots=True)
class _Shell:
    """A script as far as it has been evaluated; statements succeed (True), fail, or may (None)."""

    variables: ShellVariables
    source: str
    functions: dict[str, Node] = field(default_factory=dict)
    commands: list[ShellCommand] = field(default_factory=list)
    sourced: list[str] = field(default_factory=list)
    files: dict[str, str] = field(default_factory=dict)
    doubted: dict[str, str] = field(default_factory=dict)
    steps: int = 0
    depth: int = 0
    inner_line: int | None = None
    """Where the text stands that ``eval`` or ``bash -c`` is given."""
    under: tuple[str, ...] = ()
    """What starts the shell that runs it."""

    @property
    def _words(self) -> ShellWords:
        return ShellWords(self.variables)

    def run_text(self, text: str) -> None:
        root = parsed(_CONTINUED.sub("\n", text))
        wrong = first_error(root)
        if wrong is not None:
            line = self.inner_line or wrong.start_point[0] + 1
            raise InputError(f"{self.source} line {line}", "cannot be read as a script of bash")
        self._each(root.children)

    def _each(self, nodes: Iterable[Node]) -> None:
        for node in nodes:
            if node.is_named:
                self._run(node)

    def _run(self, node: Node) -> bool | None:
        """Evaluate a statement."""
        self.steps += 1
        if self.steps > _MOST_STEPS or self.depth > _DEEPEST:
            rule = f"takes more than {_MOST_STEPS:,} steps to evaluate, or calls itself without end"
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

    def _line(self, node: Node) -> int:
        return self.inner_line or node.start_point[0] + 1

    # Statements.

    def _all(self, node: Node) -> bool | None:
        self._each(node.children)
        return None

    def _compound(self, node: Node) -> bool | None:
        if node.children and node.children[0].type == "((":
            return self._decided(node, lambda: self._words.number(node.named_children[0]) != 0)
        return self._all(node)

    def _redirected(self, node: Node) -> bool | None:
        body = node.child_by_field_name("body")
        found = self._run(body) if body else None
        self._write(node, body)
        return found

    def _write(self, node: Node, body: Node | None) -> None:
        """Keep the file that ``cat > FILE <<EOF``, or ``tee FILE``, makes of a here-document."""
        documents = [one for one in node.children if one.type == "heredoc_redirect"]
        parts = [*node.children, *(part for one in documents for part in one.children)]
        text = next((part for part in parts if part.type == "heredoc_body"), None)
        words = (
            [word for each in body.named_children for word in self._words.words(each)]
            if body
            else []
        )
        names = [
            self._words.one(part.child_by_field_name("destination"))
            for part in parts
            if part.type == "file_redirect" and text_of(part).startswith(">")
        ]
        if words[:1] == ["tee"]:
            names += [word for word in words[1:] if not word.startswith("-")]
        if text is None or words[:1] not in (["cat"], ["tee"]) or not names:
            return
        start = next(part for part in parts if part.type == "heredoc_start")
        plain = text_of(start)[:1] in ("'", '"', "\\")
        self.files[names[0]] = text_of(text) if plain else self._words.document(text)

    def _negated(self, node: Node) -> bool | None:
        found = self._run(node.named_children[0])
        return None if found is None else not found

    def _list(self, node: Node) -> bool | None:
        """``a && b``, ``a || b``: what follows a test that is not known may run or not."""
        left, right = node.named_children[0], node.named_children[-1]
        found = self._run(left)
        if found is None and left.type == "test_command":
            self._forks(lambda: self._each([right]), lambda: None, self._words.why(left))
            return None
        succeeds = True if found is None else found  # commands are taken to succeed
        goes_on = any(child.type == "&&" for child in node.children) == succeeds
        return self._run(right) if goes_on else succeeds

    def _define(self, node: Node) -> bool | None:
        name, body = node.child_by_field_name("name"), node.child_by_field_name("body")
        if name and body:
            self.functions[text_of(name)] = body
        return True

    def _unset(self, node: Node) -> bool | None:
        for name in node.named_children:
            self.variables.values.pop(text_of(name), None)
        return True

    def _declare(self, node: Node) -> bool | None:
        self._each(c for c in node.named_children if c.type == "variable_assignment")
        return True

    def _assign(self, node: Node) -> bool | None:
        name, value = node.child_by_field_name("name"), node.child_by_field_name("value")
        if name is not None and name.type == "subscript":
            return self._assign_item(name, value)
        adds = any(child.type == "+=" for child in node.children)
        self.variables.give(text_of(name), self._value_of(value), adds=adds)
        return True

    def _assign_item(self, name: Node, value: Node | None) -> bool | None:
        array, index = name.child_by_field_name("name"), name.child_by_field_name("index")
        found = list(self.variables.values.get(text_of(array), []))
        if array is None or index is None:
            return None
        try:
            at = self._words.number(index)
            found += [""] * (min(at, 9_999) + 1 - len(found))
            found[at] = self._words.one(value)
        except (Missing, IndexError) as missing:
            found = [unknown(getattr(missing, "names", (text_of(array),)))]
        self.variables.values[text_of(array)] = found
        return True

    def _value_of(self, value: Node | None) -> Value:
        if value is not None and value.type == "array":
            return [word for child in value.named_children for word in self._words.words(child)]
        return self._words.one(value)

    # Commands.

    def _command(self, node: Node) -> bool | None:
        name = node.child_by_field_name("name")
        if name is None:
            return self._all(node)
        words = self._words.words(name)
        for argument in node.children_by_field_name("argument"):
            words += self._words.words(argument)
        return self._call(words, self._line(node)) if words else True

    def _call(self, words: list[str], line: int) -> bool | None:
        match words[0]:
            case "exit":
                raise _Exit
            case "true" | ":":
                return True
            case "false":
                return False
            case "eval":
                self._inner(" ".join(words[1:]), line)
            case "source" | ".":
                self._source(words[1:2])
            case "read" | "mapfile" | "readarray":
                self._read(words)
            case "shift":
                self._shift(words[1:])
            case "let":
                self._inner("".join(f"(({word}))\n" for word in words[1:]), line)
            case name if name in self.functions:
                self._call_function(name, words[1:])
            case _:
                self._external(words, line)
        return None

    def _source(self, files: Sequence[str]) -> None:
        """A file may set what was set before: variables, whose names then ask for it.  Arrays, as
        of options, are taken to be the script's own, and files that set up a shell to set none."""
        self.sourced += files
        for file in files:
            if _SETTING_UP.search(file):
                continue
            for name, value in self.variables.values.items():
                known = isinstance(value, str) and not unknowns([value])
                if known and name not in self.variables.settings:
                    self.variables.values[name] = unknown([name])
                    self.doubted.setdefault(name, file)

    def _read(self, words: Sequence[str]) -> None:
        """What comes from files or commands is not known: the names of its variables ask for it."""
        for name in (word for word in words[1:] if word.isidentifier()):
            self.variables.give(name, [unknown([name])])

    def _shift(self, words: Sequence[str]) -> None:
        many = int(words[0]) if words and words[0].isdigit() else 1
        del self.variables.arguments[:many]

    def _call_function(self, name: str, arguments: list[str]) -> None:
        kept, self.variables.arguments = self.variables.arguments, arguments
        self.depth += 1
        self._run(self.functions[name])
        self.variables.arguments, self.depth = kept, self.depth - 1

    def _external(self, words: list[str], line: int) -> None:
        """A program; a shell that is given its script as an argument is read, too."""
        for at, word in enumerate(words[:-2]):
            if word in _SHELLS and re.fullmatch(r"-[a-z]*c", words[at + 1]):
                if at:
                    self.commands.append(ShellCommand(tuple(words[:at]), line, self.under))
                self._in_shell(words[at + 2], words[at + 4 :], tuple(words[:at]), line)
                return
        self.commands.append(ShellCommand(tuple(words), line, self.under))

    def _in_shell(self, text: str, arguments: list[str], under: tuple[str, ...], line: int) -> None:
        """A script of its own, whose arguments stand behind its name."""
        kept = self.variables.arguments, self.under
        self.variables.arguments, self.under = arguments, (*self.under, *under)
        self._inner(text, line)
        self.variables.arguments, self.under = kept

    def _inner(self, text: str, line: int) -> None:
        """Evaluate text as a script; what is not known in it stays so."""
        marks: list[str] = []

        def named(mark: re.Match[str]) -> str:
            marks.append(mark.group(0))
            return f"${{__open_{len(marks) - 1}}}"

        plain = MARK.sub(named, text)
        self.variables.values |= {f"__open_{at}": mark for at, mark in enumerate(marks)}
        kept, self.inner_line = self.inner_line, line
        self.depth += 1
        self.run_text(plain)
        self.depth, self.inner_line = self.depth - 1, kept

    # What may run or not.

    def _if(self, node: Node) -> bool | None:
        clauses = (c for c in node.children if c.type in ("elif_clause", "else_clause"))
        self._branches([node, *clauses])
        return None

    def _branches(self, branches: Sequence[Node]) -> None:
        """The first whose test holds; where a test is not known, both ways."""
        if not branches:
            return
        first, rest = branches[0], branches[1:]
        if first.type == "else_clause":
            self._each(body_of(first))
            return
        tests, body = tests_of(first)
        found: bool | None = None
        for test in tests:
            found = self._run(test)
        if found is None:
            found = self._told(first)
        if found is None:
            why = self._words.why(tests[-1])
            self._forks(lambda: self._each(body), lambda: self._branches(rest), why)
        elif found:
            self._each(body)
        else:
            self._branches(rest)

    def _told(self, node: Node) -> bool | None:
        """What a setting says of the test in a line."""
        said = self.variables.settings.get(f"line {self._line(node)}")
        return None if said is None else said == "yes"

    def _forks(
        self, one: Callable[[], None], other: Callable[[], None], why: Sequence[str]
    ) -> None:
        """Either of two ways; one on which the script ends was not gone."""
        before, arguments = self.variables.copied(), list(self.variables.arguments)
        ends = self._ends(one)
        after, self.variables.values = self.variables.values, before
        self.variables.arguments = arguments
        if self._ends(other):
            self.variables.values = after
        elif not ends:
            self.variables.values = merged(after, self.variables.values, why)

    @staticmethod
    def _ends(what: Callable[[], None]) -> bool:
        """Whether the script ends in it."""
        try:
            what()
        except _Exit:
            return True
        return False

    def _case(self, node: Node) -> bool | None:
        value = self._words.one(node.child_by_field_name("value"))
        why = unknowns([value])
        for item in (child for child in node.named_children if child.type == "case_item"):
            patterns = item.children_by_field_name("value")
            body = [child for child in item.named_children if child not in patterns]
            if why:
                self._forks(lambda body=body: self._each(body), lambda: None, why)  # type: ignore[misc]
            elif any(fnmatchcase(value, self._words.one(pattern)) for pattern in patterns):
                self._each(body)
                return None
        return None

    def _for(self, node: Node) -> bool | None:
        name, body = node.child_by_field_name("variable"), node.child_by_field_name("body")
        if name and body:
            values = node.children_by_field_name("value")
            for word in [word for value in values for word in self._words.words(value)]:
                self.variables.give(text_of(name), word)
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
            why = self._words.why(tests[0])
            self._forks(lambda: self._each(body.named_children), lambda: None, why)
        return None

    def _test(self, node: Node) -> bool | None:
        inside = node.named_children
        return self._decided(node, lambda: self._words.holds(inside[0])) if inside else False

    def _decided(self, node: Node, test: Callable[[], bool]) -> bool | None:
        try:
            return test()
        except Missing:
            return self._told(node)
