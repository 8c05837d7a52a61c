"""What differs from run to run or from machine to machine, as fixed words."""

from __future__ import annotations

import re

NAMES = {
    "HOST": ("host",),
    "PLATFORM": ("platform",),
    "VERSION": ("python", "p2smt", "numpy", "ortools", "z3-solver", "distributed"),
}
"""Keys of JSON whose text tells of the machine, by the word that stands for it."""

TIMES = ("wall_s", "at_s", "measured_s", "slowest_s", "spread_s", "baseline_s", "baseline_spread_s")
"""Keys of JSON whose number is measured."""

NUMBER = r"-?\d[\d.]*(?:e[+-]?\d+)?"
TIME = r"\d[\d.]* (?:ns|us|ms|s|min|h)\b"
RULES = (
    *((rf'("(?:{"|".join(keys)})": )"[^"]*"', rf'\1"{word}"') for word, keys in NAMES.items()),
    (rf'("(?:{"|".join(TIMES)})": ){NUMBER}', r'\1"TIME"'),
    (r'("(?:baseline_)?samples_s": )\[[^]]*\]', r'\1"TIMES"'),
    # A record of a journal: how long a part took.
    (rf'("seconds": ){NUMBER}(, "worker": )', r'\1"TIME"\2'),
    (rf"(?m)^(in ){TIME}$", r"\1TIME"),
    (rf"(?m)^(time ){TIME}( \(median, slowest rank\))", r"\1TIME\2"),
    (rf"(?m)^(step \d+, .*: ){TIME}(, predicted )", r"\1TIME\2"),
    # A solver gives any point where a program is alone best.
    (r"(?m)^( *alone best at ).*$", r"\1POINT"),
    (r'("alone_at": )\[[^]]*\]', r'\1"POINT"'),
)
_RULES = tuple((re.compile(pattern), words) for pattern, words in RULES)


def masked(text: str) -> str:
    """The text without measured times, versions and names of this machine."""
    for pattern, words in _RULES:
        text = pattern.sub(words, text)
    return text


_LONG = re.compile(r"(?<![\w.])\d+\.\d{4,}(?:e[+-]?\d+)?(?![\w.])")


def rounded(text: str, digits: int) -> str:
    """The text with its long numbers rounded to so many digits."""
    return _LONG.sub(lambda found: repr(float(f"{float(found[0]):.{digits}g}")), text)
