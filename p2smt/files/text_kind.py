"""What a text seems to be, for refusals of files that no reader knows."""

from __future__ import annotations

import re

_HEAD = 256 * 1024
_WORD = r"([\w.:-]{1,60})"
_XML = re.compile(rf"(?:\s|<\?[^>]*>|<!--(?:(?!-->)[\s\S])*-->|<!(?!--)[^>]*>)*+<{_WORD}")
_JSON_KEY = re.compile(rf"\"{_WORD}\"\s*:")
_YAML_KEY = re.compile(rf"^{_WORD}:(?:\s|$)", re.MULTILINE)
_SHOWN_KEYS, _SHOWN = 4, 60


def seems(text: str) -> str:
    """What a text shows of itself: ``is XML of <system>``, ``begins with 'import torch'``."""
    head = text[:_HEAD].lstrip("\ufeff \t\r\n")
    if "\0" in head:
        return "is binary"
    if found := _XML.match(head):
        return f"is XML of <{found[1]}>"
    lines = (line.strip() for line in head.split("\n"))
    first = next((line for line in lines if line and not line.startswith(("#", "---"))), "")
    json = first[:1] in ("{", "[")
    keys = list(dict.fromkeys((_JSON_KEY if json else _YAML_KEY).findall(head)))[:_SHOWN_KEYS]
    if keys and (json or _YAML_KEY.match(first)):
        return f"is {'JSON' if json else 'YAML'} with the keys {', '.join(keys)}"
    return f"begins with {first[:_SHOWN]!r}" if first else "is empty"
