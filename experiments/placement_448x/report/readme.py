"""The table of the project's README on the paper's claims, from the JSON files alone.

python -m experiments.placement_448x.report.readme
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from experiments.placement_448x.report.measured import NOT_PREDICTED, measured, with_model
from experiments.placement_448x.report.text import Lines, percent, table
from experiments.placement_448x.report.values import all_values


def claims_table() -> Lines:
    """Claim, paper, modelled and measured; ranges are over the test clusters.

    Shares and means come twice: over all requests, and over those whose groups differ.
    """
    value, every = all_values(), [data["summary"] for data in with_model()]
    most = [one["speedup"]["chosen_max"] for one in every]
    tops = [one[f"accuracy{which}"]["top_10"] for one in every for which in ("", "_distinct_cases")]
    rows = (
        (
            "placements of one all-reduce differ by up to",
            "448.5x",
            f"{value['ratio_effective']}, nominal links {value['ratio_nominal']}",
            _ratios(),
        ),
        *_counted(value, "", "speedup", "all requests"),
        *_counted(value, "once_", "speedup_distinct_requests", "each different group once"),
        (
            "largest speedup",
            "2.04x",
            f"over rings {value['max_ring']}, over trees {value['max_tree']}",
            f"{min(most):.2f}x to {max(most):.2f}x",
        ),
        (
            "the model's ten best hold the measured best",
            "> 90 %",
            NOT_PREDICTED,
            f"{percent(min(tops))}, with each different case once too",
        ),
    )
    yield from table(("claim", "paper", "modelled here", "measured here"), rows)


def _ratios() -> str:
    """The ratios of the clusters with a calibrated model; of the others it is said."""
    modelled = with_model()
    known = [data["summary"]["placement_ratio"] for data in modelled]
    others = [data["summary"]["placement_ratio"] for data in measured() if data not in modelled]
    more = "".join(f"; {ratio:.0f}x {NOT_PREDICTED}" for ratio in others)
    return f"{min(known):.0f}x to {max(known):.0f}x{more}"


def _range(numbers: Sequence[int]) -> str:
    return " to ".join(map(str, dict.fromkeys((min(numbers), max(numbers)))))


def _counted(
    value: Mapping[str, str], once: str, name: str, which: str
) -> Iterator[tuple[str, str, str, str]]:
    """Share and mean over requests counted in one way: as values and summaries name it."""
    every = [data["summary"][name] for data in with_model()]
    numbers, shares, means = (
        [one[key] for one in every] for key in ("requests", "chosen_share_gaining", "chosen_mean")
    )
    counts = f"{value[f'requests_{once}both']}, {value[f'requests_{once}ring']}"
    paper = ("69 %", "1.27x") if not once else ("", "")
    yield (
        f"requests that gain from a program ({which})",
        paper[0],
        f"{value[f'share_{once}both']}, over rings {value[f'share_{once}ring']} (of {counts})",
        f"{percent(min(shares))} to {percent(max(shares))} (of {_range(numbers)})",
    )
    yield (
        f"mean speedup ({which})",
        paper[1],
        f"{value[f'mean_{once}both']}, over rings {value[f'mean_{once}ring']}",
        f"{min(means):.2f}x to {max(means):.2f}x",
    )


if __name__ == "__main__":
    print("\n".join(claims_table()))
