"""The table of docs/studies.md on the paper's claims, from the JSON files alone.

python -m experiments.placement_448x.report.readme
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from experiments.placement_448x.report.measured import measured, with_model
from experiments.placement_448x.report.text import Lines, percent, table
from experiments.placement_448x.report.values import all_values


def claims_table() -> Lines:
    """Claim and paper; modelled over rings and by the library's choice; test clusters.

    Shares and means come twice: each different group once, and over all requests.  Ranges are over
    the test clusters.
    """
    value, every = all_values(), [data["summary"] for data in with_model()]
    tops = [one[f"accuracy{which}"]["top_10"] for one in every for which in ("", "_distinct_cases")]
    rows = (
        (
            "placements of one all-reduce differ by up to",
            "448.5x",
            *(f"{value[f'ratio_{way}']}, nominal {value[f'nominal_{way}']}" for way in WAYS),
            _range("placement_ratio_predicted", [one["summary"] for one in measured()], "{:.0f}x"),
            _range("placement_ratio", [one["summary"] for one in measured()], "{:.0f}x"),
        ),
        *_counted(value, "once_", "speedup_distinct_requests", "each different group once"),
        *_counted(value, "", "speedup", "all requests"),
        (
            "largest speedup",
            "2.04x",
            *(value[f"max_{way}"] for way in WAYS),
            _range("predicted_max", [one["speedup"] for one in every], "{:.2f}x"),
            _range("chosen_max", [one["speedup"] for one in every], "{:.2f}x"),
        ),
        (
            "the model's ten best hold the measured best",
            "> 90 %",
            *["(measured only)"] * 3,
            f"{percent(min(tops))}, with each different case once too",
        ),
    )
    head = ("claim", "paper", "modelled, rings only", "ring and tree, the library's choice")
    yield from table((*head, "test clusters, predicted", "measured"), rows)


WAYS = ("ring", "library")


def _range(key: str, summaries: Sequence[Mapping[str, float]], form: str) -> str:
    """The least and the largest over the test clusters."""
    numbers = [one[key] for one in summaries]
    return " to ".join(dict.fromkeys(map(form.format, (min(numbers), max(numbers)))))


def _counted(
    value: Mapping[str, str], once: str, name: str, which: str
) -> Iterator[tuple[str, ...]]:
    """Share and mean over requests counted in one way: as values and summaries name it."""
    every = [data["summary"][name] for data in with_model()]
    shares = [{key: 100 * one[key] for key in SHARES} for one in every]
    paper = ("69 %", "1.27x") if not once else ("", "")
    yield (
        f"requests that gain from a program ({which})",
        paper[0],
        *(f"{value[f'share_{once}{way}']} of {value[f'requests_{once}{way}']}" for way in WAYS),
        _range("predicted_share_gaining", shares, "{:.0f} %"),
        f"{_range('chosen_share_gaining', shares, '{:.0f} %')} of "
        f"{_range('requests', every, '{}')}",
    )
    yield (
        f"mean speedup ({which})",
        paper[1],
        *(value[f"mean_{once}{way}"] for way in WAYS),
        _range("predicted_mean", every, "{:.2f}x"),
        _range("chosen_mean", every, "{:.2f}x"),
    )


SHARES = ("predicted_share_gaining", "chosen_share_gaining")


if __name__ == "__main__":
    print("\n".join(claims_table()))
