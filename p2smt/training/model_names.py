"""The models that come with the package, found by any usual writing of their names."""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Iterator, Mapping
from functools import cache
from types import MappingProxyType

from p2smt.errors import InputError
from p2smt.files.packaged import names_in, text_in

_PACKAGED = "p2smt.training.models"
MOST_NEAR = 5
"""Names listed where a name is not known."""
MAX_NAME = 60

_ALIASES: Mapping[str, str] = MappingProxyType(
    {
        "llama-3.1-8b": "llama-3-8b",
        "llama-3.1-70b": "llama-3-70b",
        "llama-3.3-70b": "llama-3-70b",
        "llama-3.1-405b": "llama-3-405b",
        "llama-4-scout-17b-16e": "llama-4-scout",
        "llama-4-maverick-17b-128e": "llama-4-maverick",
        "deepseek-r1": "deepseek-v3",
        "deepseek-v3.1": "deepseek-v3",
        "deepseek-v2.5": "deepseek-v2",
        "deepseek-coder-v2": "deepseek-v2",
        "deepseek-coder-v2-lite": "deepseek-v2-lite",
        "gpt-3": "gpt-3-175b",
        "mistral-7b": "mistral-7b-v0.3",
        "nemotron-3-nano-30b-a3b": "nemotron-3-nano",
        "nemotron-3-super-120b-a12b": "nemotron-3-super",
        "nemotron-3-ultra-550b-a55b": "nemotron-3-ultra",
    }
)
"""Other names of models with the same sizes."""

_REFUSED: tuple[tuple[str, str], ...] = (
    (r"deepseek-?v3\.2|deepseek-?v4|glm-?5", "attends to chosen or compressed tokens (sparse)"),
    (r"qwen-?3-?next|qwen-?3\.5|kimi-?linear", "has gated delta nets (linear attention)"),
    (r"minimax-?(text|01|m1)|rwkv", "has linear attention"),
    (r"deepseek-?vl|qwen-?.*-?vl|llava|internvl", "has a tower for images"),
    (r"\bt5\b|\bbart\b|\bbert\b|whisper", "has an encoder"),
    (r"jamba|zamba|falcon-?mamba|\bmamba-?(1|\d+\.\d+b|\d+m)", "has Mamba-1 or shared layers"),
    (r"falcon-?h1", "has attention and Mamba-2 side by side in a layer"),
)
"""Names of models that are not modelled, and why."""

_DRESSING = re.compile(
    r"-(instruct|base|chat|hf|it|pt|preview|thinking|bf16|fp8|nvfp4|[0-9]{4}|v\d+(\.\d+)?)$"
)
"""What publishers append to the name of a model of the same sizes."""


@cache
def model_names() -> tuple[str, ...]:
    """The models that come with the package, sorted."""
    return names_in(_PACKAGED)


def model_text(name: str) -> str:
    """The YAML text of a model that comes with the package, with its sources.

    Raises:
        InputError: there is no model of that name.
    """
    if name not in model_names():
        raise _unknown(name)
    return text_in(_PACKAGED, name)


def known_as(name: str) -> str:
    """The packaged name of a model: ``meta-llama/Llama-3.1-405B-Instruct`` is llama-3-405b.

    Raises:
        InputError: there is no such model; near names are listed, or the reason why it is refused.
    """
    for written in _writings(name):
        if found := _by_letters().get(_letters(written)):
            return found
    raise _unknown(name)


def other_names(name: str) -> tuple[str, ...]:
    """Names besides its own that a packaged model has by the table of names."""
    return tuple(alias for alias, known in _ALIASES.items() if known == name != alias)


def _writings(name: str) -> Iterator[str]:
    """The name without its publisher, and without what is appended to it, one after the other."""
    short = name[:200].rstrip("/").rpartition("/")[2].lower()
    for prefix in ("meta-", "nvidia-", "ibm-"):
        short = short.removeprefix(prefix)
    yield short
    while short != (shorter := _DRESSING.sub("", short)):
        yield (short := shorter)


def _letters(name: str) -> str:
    """Letters, digits and points alone: qwen-3-8b and Qwen3_8B are the same."""
    return re.sub(r"[^a-z0-9.]", "", name.lower())


def _by_letters() -> Mapping[str, str]:
    own = {name: name for name in model_names()}
    return {_letters(written): name for written, name in {**_ALIASES, **own}.items()}


def _unknown(name: str) -> InputError:
    """Names near the one given, or all; or why it is not modelled."""
    given = f"model {name[:MAX_NAME]!r}"
    for pattern, reason in _REFUSED:
        if re.search(pattern, name[:MAX_NAME], re.I):
            return InputError(given, f"{reason}: not modelled", "see p2smt models")
    if os.path.exists(name):
        remedy = f"give it to plan or estimate, as -m {name[:MAX_NAME]}"
        return InputError(given, "is a file, not the name of a known model", remedy)
    known = model_names()
    near = difflib.get_close_matches(name[:MAX_NAME].lower(), known, n=MOST_NEAR, cutoff=0.5)
    remedy = f"did you mean {', '.join(near)}?" if near else "p2smt models lists the known ones"
    return InputError(given, "is neither a known model nor a file", remedy)
