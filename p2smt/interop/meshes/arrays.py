"""Arrays of ranks as Python text, short where they are regular."""

from __future__ import annotations

import math
import re
import textwrap
from collections.abc import Sequence

import numpy as np

from p2smt.parallelism.placement import IntArray

_ODD = re.compile(r"[^\w .+-]", re.ASCII)


def comment_name(source: str) -> str:
    """The file of a plan without anything that could end a comment or a string."""
    path = source.removeprefix("plan ").replace("\\", "/")
    return _ODD.sub("_", path.rpartition("/")[2])[-50:]


AxisDigit = tuple[int, int, int]
"""An axis, how many values one of its digits takes, and how much each adds to the rank."""


def digits_of(tensor: IntArray) -> list[AxisDigit] | None:
    """The tensor as a sum over digits of its axes, from the most significant of each; None: it is
    no such sum, whose terms count 0 to n-1 when put in order."""
    found: list[AxisDigit] = []
    for axis in range(tensor.ndim):
        line = np.moveaxis(tensor, axis, 0).reshape(tensor.shape[axis], -1)[:, 0]
        steps = _steps(line - line[0])
        if steps is None:
            return None
        found += [(axis, count, stride) for count, stride in steps]
    place = 1
    for _, count, stride in sorted(found, key=lambda digit: digit[2]):
        if stride != place:
            return None
        place *= count
    return found if place == tensor.size and (_sum_of(found, tensor) == tensor).all() else None


def _steps(line: IntArray) -> list[tuple[int, int]] | None:
    """A line of numbers from 0 as digits (count, stride), the most significant first."""
    found: list[tuple[int, int]] = []
    while len(line) > 1:
        stride = int(line[1])
        counts = line == stride * np.arange(len(line))
        run = len(line) if counts.all() else int(np.argmin(counts))
        if len(line) % run or stride < 1:
            return None
        found.append((run, stride))
        line = line[::run]
    return found[::-1]


def _sum_of(digits: list[AxisDigit], tensor: IntArray) -> IntArray:
    total = np.zeros(tensor.shape, dtype=np.int64)
    for axis, size in enumerate(tensor.shape):
        rest, part = np.arange(size), np.zeros(size, dtype=np.int64)
        for _, count, stride in reversed([digit for digit in digits if digit[0] == axis]):
            rest, value = rest // count, rest % count
            part += value * stride
        total += part.reshape([-1 if i == axis else 1 for i in range(tensor.ndim)])
    return total


def tensor_text(tensor: IntArray, arange: str, listed: str, transposed: str) -> str:
    """An expression for a tensor of 0 .. n-1.

    arange: what makes the numbers 0 .. n-1 (``torch.arange``); listed: what makes a tensor of a
    list; transposed: the method that permutes dimensions.
    """
    shape = ", ".join(map(str, tensor.shape)) + ("," if tensor.ndim == 1 else "")
    digits = digits_of(tensor)
    if digits is None:
        return f"{listed}(\n{wrapped(tensor.ravel().tolist())}\n).reshape({shape})"
    by_stride = sorted(digits, key=lambda digit: -digit[2])
    text = f"{arange}({tensor.size})"
    if by_stride != digits:
        sizes = ", ".join(str(count) for _, count, _ in by_stride)
        order = ", ".join(str(by_stride.index(digit)) for digit in digits)
        text = f"{text}.reshape({sizes}).{transposed}({order})"
        if tuple(count for _, count, _ in digits) == tensor.shape:
            return text
    return f"{text}.reshape({shape})"


def wrapped(numbers: list[int]) -> str:
    """A list of numbers over as many lines as it takes, indented."""
    return _filled(str(numbers))


def groups_lines(groups: Sequence[Sequence[int]]) -> str:
    """An entry of a tuple for groups of ascending ranks, over as many lines as it takes."""
    return _filled(f"{groups_text([list(group) for group in groups])},")


def _filled(text: str) -> str:
    return textwrap.fill(
        text,
        96,
        initial_indent="    ",
        subsequent_indent="     ",
        break_long_words=False,
        break_on_hyphens=False,
    )


def groups_text(groups: list[list[int]]) -> str:
    """An expression for groups of ascending ranks: ranges where the ranks are regular."""
    whole = _regular(groups)
    if whole is not None:
        return whole
    return "[" + ", ".join(_group(group) for group in groups) + "]"


def _group(group: list[int]) -> str:
    step = group[1] - group[0] if len(group) > 1 else 1
    if len(group) > 2 and group == list(range(group[0], group[-1] + 1, step)):
        return _range(str(group[0]), len(group), step)
    return str(group)


def _range(first: str, count: int, step: int) -> str:
    return f"range({interval(first, count, step)})"


def interval(first: str, count: int, step: int) -> str:
    """What ``range`` or ``slice`` takes for so many numbers from ``first``, an expression, on."""
    stop = str(int(first) + count * step) if first.isdigit() else f"{first} + {count * step}"
    return f"{first}, {stop}, {step}" if step > 1 else f"{first}, {stop}"


def _regular(groups: list[list[int]]) -> str | None:
    """One comprehension for groups that are ranges of one length and step, regularly placed."""
    count, ordered = len(groups[0]), sorted(groups)
    step = groups[0][1] - groups[0][0] if count > 1 else 1
    if len(groups) < 3 or any(
        len(group) != count or group != list(range(group[0], group[0] + count * step, step))
        for group in groups
    ):
        return None
    starts = np.array([group[0] for group in ordered], dtype=np.int64)
    digits = _steps(starts - starts[0])
    if digits is None or len(digits) > 3 or math.prod(c for c, _ in digits) != len(groups):
        return None
    names = "abc"[: len(digits)]
    if len(set(starts.tolist())) != len(groups) or _placed(digits) != (starts - starts[0]).tolist():
        return None
    loops = " ".join(
        f"for {name} in {_range('0', number, stride)}"
        for name, (number, stride) in zip(names, digits, strict=True)
    )
    base = f"{starts[0]} + " if starts[0] else ""
    return f"[{_range(base + ' + '.join(names), count, step)} {loops}]"


def _placed(digits: list[tuple[int, int]]) -> list[int]:
    found = [0]
    for count, stride in digits:
        found = [at + i * stride for at in found for i in range(count)]
    return found
