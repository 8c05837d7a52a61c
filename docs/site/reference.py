"""The pages of the reference: commands from their parameters, files from their schemas, Python.

Each function gives the text of pages by where they stand below the site's sources.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

import p2smt
from p2smt.cli.app import app
from p2smt.cli.guide.commands import COMMANDS
from p2smt.report.outputs.catalogue import listed, schema_of

ARGUMENTS = "Arguments"
OTHER = "Options"
FILES = "files"
MOST_DEPTH = 6


def everything() -> Mapping[str, str]:
    """All pages of the reference."""
    return {**dict(command_pages()), **dict(schema_pages()), **dict(python_pages())}


# Commands: what help says, an anchor for each option.


def command_pages() -> Iterator[tuple[str, str]]:
    """A page for each command, those of groups on the page of their group."""
    from typer.main import get_command

    root: Any = get_command(app())
    for name in COMMANDS:
        parts = _command(f"p2smt {name}", root.commands[name], "#")
        yield f"reference/commands/{name}.md", "\n".join(parts) + "\n"


def _command(path: str, command: Any, mark: str) -> Iterator[str]:
    context = command.context_class(command, info_name=path)
    yield f"{mark} {path}\n"
    yield f"{_prose(command.help or '')}\n"
    usage = " ".join(command.collect_usage_pieces(context))
    yield f"```text\n{path} {usage}\n```\n"
    yield from _parameters(path, command, context, mark)
    yield from _examples(command, context)
    for name, inner in getattr(command, "commands", {}).items():
        yield from _command(f"{path} {name}", inner, f"{mark}#")


def _parameters(path: str, command: Any, context: Any, mark: str) -> Iterator[str]:
    groups = defaultdict[str, list[str]](list)
    for one in command.get_params(context):
        record = one.get_help_record(context)
        if record is not None:
            option = one.param_type_name == "option"
            group = (getattr(one, "rich_help_panel", None) or OTHER) if option else ARGUMENTS
            groups[group].append(_entry(path, *record))
    for group, entries in groups.items():
        yield f"{mark}# {group} {{ #{_anchor(path, group)} }}\n"
        yield from entries


def _entry(path: str, name: str, text: str) -> str:
    """A parameter and what it is."""
    long = re.search(r"--[\w-]+|\w+", name)
    anchor = _anchor(path, long[0] if long else name)
    return f"`{name}`{{ #{anchor} }}\n:   {_prose(text)}\n"


def _anchor(path: str, name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", f"{path.removeprefix('p2smt ')} {name}".lower()).strip("-")


def _examples(command: Any, context: Any) -> Iterator[str]:
    formatter = context.make_formatter()
    command.format_epilog(context, formatter)
    if said := formatter.getvalue().strip("\n"):
        yield f"```text\n{said}\n```\n"


def _prose(text: str) -> str:
    """Text of help in Markdown, where none of its signs means anything."""
    return re.sub(r"([\\*_<>\[\]`|#])", r"\\\1", re.sub(r" *\n *", " ", text.strip()))


# Files and JSON answers: their keys, from the schemas.


def schema_pages() -> Iterator[tuple[str, str]]:
    """A page for each schema."""
    for name, what in listed().items():
        schema = schema_of(name)
        parts = [f"# {name}: {what}\n", f"`p2smt schema {name}` prints it for programs.\n"]
        if comment := schema.get("$comment"):
            parts.append(f"{_prose(comment)}\n")
        parts += [*_keys(schema), *_definitions(schema)]
        yield f"reference/schemas/{name}.md", "\n".join(parts)


def _definitions(schema: Mapping[str, Any]) -> Iterator[str]:
    for name, part in schema.get("$defs", {}).items():
        yield f"## {name}\n"
        if "description" in part:
            yield f"{_prose(part['description'])}\n"
        yield from _keys(part)
        if "enum" in part:
            yield f"One of {', '.join(f'`{value}`' for value in part['enum'])}.\n"


def _keys(part: Mapping[str, Any]) -> Iterator[str]:
    needed = part.get("required", ())
    for key, value in part.get("properties", {}).items():
        words = [_type(value)]
        words += [] if key not in needed else ["must be there"]
        if "default" in value:
            words.append(f"default `{json.dumps(value['default'])}`")
        told = f". {_prose(value['description'])}" if "description" in value else ""
        yield f"`{key}`\n:   {'; '.join(words)}{told}\n"


def _type(value: Mapping[str, Any], depth: int = 0) -> str:
    """What a value is, in words."""
    if "$ref" in value:
        name = value["$ref"].rpartition("/")[2]
        return f"[{name}](#{name.lower()})"
    for several in ("anyOf", "oneOf", "allOf"):
        if several in value and depth < MOST_DEPTH:
            return " or ".join(_type(one, depth + 1) for one in value[several])
    if "enum" in value or "const" in value:
        return " or ".join(f"`{one}`" for one in value.get("enum", [value.get("const")]))
    if value.get("type") == "array" and isinstance(value.get("items"), Mapping):
        return f"list of {_type(value['items'], depth + 1)}"
    if isinstance(value.get("additionalProperties"), Mapping):
        return f"object of {_type(value['additionalProperties'], depth + 1)}"
    return str(value.get("type", "any value"))


# Python: public names, a page for each package that they come from.


def python_pages() -> Iterator[tuple[str, str]]:
    """Directives that mkdocstrings fills."""
    packages = defaultdict[str, list[str]](list)
    for name in sorted(p2smt.__all__):
        home = vars(p2smt)["_HOME"][name]
        packages[_page_of(home)].append(f"{home}.{name}")
    for package, paths in sorted(packages.items()):
        directives = "".join(f"::: {path}\n\n" for path in paths)
        yield f"reference/python/{package}.md", f"# Python: {package}\n\n{directives}"


def _page_of(module: str) -> str:
    return module.split(".")[1]
