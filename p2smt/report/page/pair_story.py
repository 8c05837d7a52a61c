"""The story of a comparison: two files, or what `plan --compare` prints; the gain comes first."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from p2smt.api.saved_answers import ComparedAnswers, SavedAnswer, compare_answers
from p2smt.report.page.reading import Fields, Names
from p2smt.report.page.story import (
    Bar,
    BarPart,
    Bars,
    Figure,
    Section,
    Stack,
    Story,
    Table,
    clean,
    sentence,
)
from p2smt.report.page.training_story import degrees
from p2smt.report.page.words import format_time3
from p2smt.units import format_gigabytes


def pair_story(first: str, second: str, own: Story, names: Names) -> Story:
    """The second file's own story, with what it gains over the first."""
    found = compare_answers(first, second)
    gain = f"{found.gain:+.1%}"
    what = "tokens a second" if found.first.work > 1 else "speed"
    within, sure = "no range of both is known", ""
    if found.gain_range is not None:
        low, high = found.gain_range
        within = f"{low:+.1%} to {high:+.1%}, errors of both apart"
        sure = " The errors of both leave the sign open." if not found.sure else ""
    unlike = ", ".join(map(clean, found.unlike))
    warnings = (("They do not answer the same", sentence(f"other {unlike}")),) * bool(unlike)
    return replace(
        own,
        title=f"{own.title}, against another",
        verdict=f"{gain} in {what} against the first file.{sure} {own.verdict}",
        figures=(Figure(gain, f"{what}, against the first file", within), *own.figures[:2]),
        sections=(_against(found, names), *own.sections),
        warnings=(*warnings, *own.warnings),
        kind="report of a comparison",
    )


def _against(found: ComparedAnswers, names: Names) -> Section:
    """Both times on one scale, part by part, and a row for what differs."""
    both = (("first", found.first), ("second", found.second))
    whole = max(one.seconds for _, one in both)
    stacks = tuple(_stack(name, one, whole) for name, one in both)
    heads = ("", *(_named(name, one, names) for name, one in both))
    rows = [("answer", *(_chosen(one) for _, one in both))]
    rows.append(("time", *(format_time3(one.seconds) for _, one in both)))
    rows.append(("memory of a device", *(format_gigabytes(one.memory_bytes) for _, one in both)))
    for part in dict.fromkeys([*found.first.parts, *found.second.parts]):
        times = (format_time3(one.parts.get(part, 0.0)) for _, one in both)
        rows.append((clean(part), *times))
    if not names.anonymous:
        for key in found.unlike:
            rows.append((clean(key), *(sentence(one.asked.get(key, "none")) for _, one in both)))
    lead = "Both on one scale; what each part gains or loses stands in the table."
    table = Table(heads, tuple(rows))
    return Section("What changes", lead, stacks, first=table)


def _named(name: str, one: SavedAnswer, names: Names) -> str:
    return name if names.anonymous else clean(f"{name}: {one.path.rpartition('/')[2]}")


def _stack(name: str, one: SavedAnswer, whole: float) -> Stack:
    parts = tuple(
        BarPart(clean(part), seconds, format_time3(seconds))
        for part, seconds in one.parts.items()
        if seconds > 0
    )
    return Stack(f"{name}: {format_time3(one.seconds)}", parts, whole, format_time3(whole))


def _chosen(one: SavedAnswer) -> str:
    return degrees(one.chosen) if one.chosen.count("=") > 2 else clean(one.chosen, 120)


# What `plan --compare` prints.


def compared(story: Story, said: Fields) -> Story:
    """A training's story with what is gained over what is run now."""
    gain = said.data.get("gain")
    if not isinstance(gain, int | float):
        broken = sentence(said.words("broken"))
        return replace(story, warnings=((("What is run now cannot be", broken)), *story.warnings))
    ends = said.data.get("gain_range")
    within = ""
    if isinstance(ends, list) and [*map(type, ends)] == [float, float]:
        within = f"{ends[0]:+.1%} to {ends[1]:+.1%}, links slow or fast for both"
    figure = Figure(f"{gain:+.1%}", "tokens a second, against what is run now", within)
    caution = " It lies inside the model's error." if said.data.get("inside_error") else ""
    caution += _each_device(said)
    return replace(
        story,
        verdict=f"{gain:+.1%} tokens a second against what is run now.{caution} {story.verdict}",
        figures=(figure, *story.figures[:2]),
        sections=(_runs(said, gain), *story.sections),
    )


def _each_device(said: Fields) -> str:
    """What is gained of a device, where the best has more or fewer of them."""
    each = said.data.get("gain_per_device")
    if not isinstance(each, int | float):
        return ""
    mine, best = (said.inside(key).number("devices") for key in ("yours", "best"))
    return f" By {best:,.0f} devices in place of {mine:,.0f}: {each:+.1%} of a device."


def _runs(said: Fields, gain: float) -> Section:
    """What is run now, in its best order, after single changes, and the best: tokens a second."""
    named: Mapping[str, str] = {"yours": "now", "ordered": "now, in its best order", "best": "best"}
    bars, rows = [], []
    for key, name in named.items():
        if isinstance(said.data.get(key), dict):
            one = said.inside(key)
            rate, seconds = one.number("tokens_per_s"), one.number("iteration_s")
            bars.append(Bar(name, rate, f"{rate:,.0f} tokens/s", key == "best"))
            size = format_gigabytes(one.number("memory_bytes"))
            rows.append((name, clean(one.words("strategy"), 160), format_time3(seconds), size))
    for one in said.each("changes"):
        name, size = f"now, but {one.words('change')}", format_gigabytes(one.number("memory_bytes"))
        strategy = clean(one.words("strategy"), 160)
        rows.append((clean(name), strategy, format_time3(one.number("iteration_s")), size))
    lead = f"{gain:+.1%} tokens a second by the best; the table has single changes, too."
    heads = ("", "strategy", ">iteration", ">memory")
    table = Table(heads, tuple(rows), "What was compared")
    picture = Bars("tokens a second", tuple(bars))
    return Section("Against what is run now", lead, (picture,), (table,))
