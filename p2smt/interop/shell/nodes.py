"""Nodes of tree-sitter's grammar of bash, read."""

from __future__ import annotations

from collections.abc import Iterator

import tree_sitter_bash
from tree_sitter import Language, Node, Parser


def parsed(text: str) -> Node:
    """The root of a script's syntax tree."""
    return Parser(Language(tree_sitter_bash.language())).parse(text.encode()).root_node


def text_of(node: Node | None) -> str:
    return "" if node is None or node.text is None else node.text.decode()


def between(node: Node, start: int, end: int) -> str:
    """Text of a node between two places of the script."""
    whole = node.text or b""
    return whole[start - node.start_byte : end - node.start_byte].decode()


def first_error(node: Node) -> Node | None:
    if node.is_missing or node.type == "ERROR":
        return node
    if not node.has_error:
        return None
    return next(filter(None, map(first_error, node.children)), node)


def leaves(node: Node) -> Iterator[Node]:
    """The words of a test."""
    inner = node.named_children
    words = ("string", "simple_expansion", "expansion", "concatenation", "word", "number")
    if node.type in words or not inner:
        yield node
        return
    for child in inner:
        yield from leaves(child)


def tests_of(branch: Node) -> tuple[list[Node], list[Node]]:
    """The tests of ``if`` or ``elif``, and what is run if they hold."""
    at = next(n for n, child in enumerate(branch.children) if child.type == "then")
    tests = [child for child in branch.children[1:at] if child.is_named]
    return tests, list(body_of(branch, at))


def body_of(branch: Node, at: int = 0) -> Iterator[Node]:
    for child in branch.children[at + 1 :]:
        if child.is_named and child.type not in ("elif_clause", "else_clause"):
            yield child


def expansion(node: Node) -> tuple[str, str, str, Node | None]:
    """Name, index, operator and operand of an expansion."""
    name, index, sign = "", "", ""
    rest: Node | None = None
    for child in node.children:
        match child.type:
            case "variable_name" | "special_variable_name" if not name:
                name = text_of(child)
            case "subscript" if not name:
                name = text_of(child.child_by_field_name("name"))
                index = text_of(child.child_by_field_name("index"))
            case "$" | "${" | "}":
                continue
            case _ if child.is_named and name:
                rest = rest or child
            case _:
                sign = sign or text_of(child).strip()
    return name, index, sign, rest
